// Takes the screenshots in docs/ui, with `npm run screenshots`, or those of the names that follow it.

import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {start} from './driver';
import {serve} from './page';
import {DIGESTS, PICTURES, digestOf} from './pictures';

const FOLDER = '../docs/ui';

const page = await serve('dist/extension-argocd-ocm-cmp.js');
const chromium = await start();
mkdirSync(FOLDER, {recursive: true});
const names = process.argv.slice(3);
const digests = JSON.parse(readFileSync(DIGESTS, 'utf8')) as Record<string, string>;
for (const picture of PICTURES.filter(({name}) => names.length === 0 || names.includes(name))) {
    await picture.draw(chromium, page.address);
    // Transitions end meanwhile.
    await new Promise(done => setTimeout(done, 300));
    digests[picture.name] = await digestOf(chromium, picture);
    await chromium.screenshot(`${FOLDER}/${picture.name}.png`, picture.part);
}
writeFileSync(DIGESTS, `${JSON.stringify(digests, undefined, 4)}\n`);

await chromium.close();
page.close();
