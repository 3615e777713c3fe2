// Builds the tests and runs them with the test runner of Node.js: all, or those of the given folders of test/.

import {spawnSync} from 'node:child_process';
import {readdirSync} from 'node:fs';
import {build} from 'esbuild';

const folders = process.argv.length > 2 ? process.argv.slice(2) : ['unit', 'browser', 'live'];
const entryPoints = folders.flatMap(folder =>
    readdirSync(`test/${folder}`)
        .filter(name => name.endsWith('.test.ts'))
        .map(name => `test/${folder}/${name}`),
);
const {metafile} = await build({
    entryPoints,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    target: 'node20',
    outdir: 'dist/test',
    outbase: 'test',
    outExtension: {'.js': '.mjs'},
    metafile: true,
});
const {status} = spawnSync(process.execPath, ['--test', '--test-reporter=spec', ...Object.keys(metafile.outputs)], {
    stdio: 'inherit',
});
process.exitCode = status ?? 1;
