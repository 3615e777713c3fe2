// Builds the extension, and the manifest that delivers it. With --check the manifest is not written, and it fails where
// that is not what it should be.

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
    write: false,
});
const script = outputFiles[0].text;
mkdirSync('dist', {recursive: true});
writeFileSync(SCRIPT, script);

const manifest = readFileSync('deploy_ui.template.yaml', 'utf8')
    .replace('    # The script stands here.\n', () => script.replace(/^(?=.)/gm, '    '))
    .replace('CHECKSUM', createHash('sha256').update(script).digest('hex').slice(0, 16));
if (!process.argv.includes('--check')) {
    writeFileSync(MANIFEST, manifest);
    console.log(`ui/${SCRIPT}: ${Buffer.byteLength(script)} bytes; deploy/deploy_ui.yaml carries it`);
} else if (readFileSync(MANIFEST, 'utf8') !== manifest) {
    console.error(
        'deploy/deploy_ui.yaml does not carry what ui/src builds to: run "npm run build" in ui/ and commit it',
    );
    process.exitCode = 1;
}
