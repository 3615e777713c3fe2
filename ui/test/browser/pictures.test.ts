// The pictures in docs/ui have the texts that the extension shows now.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {after, before, test} from 'node:test';
import {Chromium, start} from './driver';
import {Page, serve} from './page';
import {DIGESTS, PICTURES, digestOf} from './pictures';

let page: Page;
let chromium: Chromium;

before(async () => {
    page = await serve('dist/extension-argocd-ocm-cmp.js');
    chromium = await start();
});

after(async () => {
    await chromium?.close();
    page?.close();
});

test('pictures show the texts of the extension', async () => {
    const digests = JSON.parse(readFileSync(DIGESTS, 'utf8')) as Record<string, string>;
    const outdated: string[] = [];
    for (const picture of PICTURES) {
        await picture.draw(chromium, page.address);
        const isUpToDate = async () => (await digestOf(chromium, picture)) === digests[picture.name];
        const deadline = Date.now() + 10_000;
        while (!(await isUpToDate()))
            if (Date.now() > deadline) {
                outdated.push(picture.name);
                break;
            }
    }
    assert.deepEqual(outdated, [], `npm run screenshots ${outdated.join(' ')}`);
});
