// Builds a script of test/ and runs it: `node run.mjs test/browser/screenshots.ts`.

import {build} from 'esbuild';
import {pathToFileURL} from 'node:url';

const outfile = `dist/test/${process.argv[2].replace(/\W/g, '-')}.mjs`;
await build({
    entryPoints: [process.argv[2]],
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    target: 'node20',
    outfile,
});
await import(pathToFileURL(outfile));
