// Builds the extension, and writes it into the manifest that installs it. With --check, fails if the manifest is outdated, and
// writes nothing to it.

import {build} from 'esbuild';
import {createHash} from 'node:crypto';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';

const SCRIPT = 'dist/extension-argocd-ocm-cmp.js';
const MANIFEST = '../deploy/deploy_ui.yaml';

process.chdir(fileURLToPath(new URL('.', import.meta.url)));

const {outputFiles} = await build({
    entryPoints: ['src/index.ts'],
    bundle: true,
    format: 'iife',
    target: 'es2020',
    charset: 'utf8',
    minifyIdentifiers: true,
    minifySyntax: true,
    write: false,
});
// Each page of Argo CD loads it. No text in the sources has lines that start with a space.
const script = outputFiles[0].text.replace(/^ +/gm, '');
mkdirSync('dist', {recursive: true});
writeFileSync(SCRIPT, script);

const manifest = readFileSync('deploy_ui.template.yaml', 'utf8')
    .replace('    # SCRIPT\n', () => script.replace(/^(?=.)/gm, '    '))
    .replace('CHECKSUM', createHash('sha256').update(script).digest('hex').slice(0, 16));
if (!process.argv.includes('--check')) {
    writeFileSync(MANIFEST, manifest);
    console.log(`ui/${SCRIPT}: ${Buffer.byteLength(script)} bytes, written to deploy/deploy_ui.yaml`);
} else if (readFileSync(MANIFEST, 'utf8') !== manifest) {
    console.error('deploy/deploy_ui.yaml is outdated: run "npm run build" in ui/ and commit it');
    process.exitCode = 1;
}
