// The extension in a real Chromium, in pages that load it as Argo CD does.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {
    PASSWORD,
    TOKEN,
    application,
    fleet,
    healthyWork,
    largeWork,
    mixedWork,
    newWork,
    set,
    setTree,
} from '../samples';
import {REACTS} from './page';
import {FLYOUT, PAGE, PANEL, SET, WORK, becomes, chromium, click, column, count, open, show, texts} from './stage';

for (const react of REACTS) {
    for (const theme of ['light', 'dark']) {
        test(`with React ${react} everything is shown in the ${theme} theme, without errors`, async () => {
            await open(react, theme);
            assert.match(await chromium.run('return React.version'), new RegExp(`^${react}\\.`));
            assert.deepEqual(await chromium.run('return Object.keys(registered)'), [
                'ManifestWork',
                'ManifestWorkReplicaSet',
                'panel',
                'page',
            ]);
            assert.deepEqual(
                await chromium.run(
                    'return [registered.ManifestWork.group, registered.ManifestWork.title, registered.panel.id]',
                ),
                ['work.open-cluster-management.io', 'OBJECTS', 'argocd-ocm-cmp'],
            );

            await show(WORK, {application: application([]), resource: mixedWork(), tree: {}});
            await becomes('.ocm-head__health', 'Degraded');
            assert.deepEqual(await column(1), [
                'shop/web',
                'fast',
                'shop/settings',
                'shop/api',
                'shop/reports',
                'shop/web',
                'shop/credentials',
                'shop/web',
                'shop',
            ]);
            assert.deepEqual((await column(5)).slice(0, 5), [
                'Degraded',
                'Degraded',
                'Missing',
                'Progressing',
                'Suspended',
            ]);
            await click('[data-cell="1:1"]');
            await becomes('.ocm-details h3', 'Deployment shop/web');
            assert.match((await texts('.ocm-yaml'))[0] ?? '', /^apiVersion: apps\/v1\nkind: Deployment\n/);

            // When Argo CD passes a new state of the same work, open details stay open.
            await show(WORK, {application: application([]), resource: healthyWork('cluster2'), tree: {}});
            await becomes('.ocm-head__health', 'Healthy');
            await show(SET, {application: application([]), resource: set(), tree: setTree()});
            await becomes('.ocm-head__health', 'Degraded');
            await show(PANEL, {application: fleet(20)}, 'application-status-panel');
            await becomes('.ocm-panel__open', ' 18 of 20 clusters healthy');
            await show(FLYOUT, {application: fleet(20), tree: {}});
            await becomes('.ocm-title', '18 of 20 clusters healthy');
            assert.deepEqual((await column(0)).slice(0, 3), ['cluster2', 'cluster7', 'cluster1']);
            await show(PAGE, {});
            await becomes('.ocm-placeholder', 'Choose one of 20 managed clusters.');
            await chromium.run(
                'history.pushState(null, "", "?cluster=cluster2"); dispatchEvent(new PopStateEvent("popstate"))',
            );
            await becomes('.ocm-bar__count', '8 Applications');
            assert.deepEqual(await chromium.run('return window.errors'), []);
        });
    }
}

test('a row shows all details of its object', async () => {
    await open();
    await show(WORK, {application: application([]), resource: mixedWork(), tree: {}});
    await chromium.until('return document.querySelector(`[data-cell="2:1"]`) !== null');
    const cells = await Promise.all(Array.from({length: 10}, (_, at) => column(at)));
    assert.deepEqual(
        cells.map(texts => texts[0]),
        [
            'Deployment',
            'shop/web',
            '2',
            'yes',
            'yes',
            'Degraded',
            'ReadyReplicas 2, Replicas 3, Image registry.example.com/shop/web:2.4.1',
            'ProgressDeadlineExceeded: ReplicaSet "web-7d4b9c" has timed out progressing.',
            '9 m',
            'YAML',
        ],
    );
    assert.deepEqual(cells.map(texts => texts[1]).slice(3, 6), ['no', '–', 'Degraded']);
    assert.deepEqual(await texts('.ocm-facts dd'), ['cluster2', '2', '42 s ago']);
    await show(WORK, {application: application([]), resource: newWork(), tree: {}});
    await becomes('.ocm-head__health', 'Waiting');
    assert.equal(await count('.ocm-grid__row'), 9);
});

test('the page contains no value of a Secret, whichever row is open', async () => {
    await open();
    const work = mixedWork();
    await show(WORK, {application: application([]), resource: work, tree: {}});
    const rows = await count('.ocm-grid__row');
    for (let row = 1; row <= rows; row++) {
        await click(`[data-cell="${row}:9"]`);
        await chromium.until('return document.querySelector(".ocm-yaml") !== null');
        const html: string = await chromium.run('return document.getElementById("app").outerHTML');
        for (const value of [PASSWORD, TOKEN, 'token-of-the-shop', Buffer.from(PASSWORD).toString('base64')])
            assert(!html.includes(value), `row ${row}`);
        await click(`[data-cell="${row}:9"]`);
        await chromium.until('return document.querySelector(".ocm-details") === null');
    }
    await click('[data-cell="7:9"]');
    await becomes('.ocm-details h3', 'Secret shop/credentials');
    assert.match((await texts('.ocm-yaml'))[0] ?? '', /stringData:\n {2}password: "•+"/);
});

test('a work of thousands of objects shows the degraded one first', async () => {
    await open();
    await show(WORK, {application: application([]), resource: largeWork(3000), tree: {}});
    await becomes('.ocm-bar__count', '3000 objects');
    assert.deepEqual(
        [(await column(1))[0], (await column(5))[0], (await column(5))[1]],
        ['shop/settings-2993', 'Degraded', 'Healthy'],
    );
    assert((await count('.ocm-grid__row')) < 60);
});

test('the page renders objects with any content', async () => {
    await open('19');
    const malformed = [
        undefined,
        null,
        7,
        'x',
        [],
        {},
        {metadata: [], spec: 3, status: 'no'},
        {status: {resources: [null], conditions: [{}]}},
        {
            spec: {workload: {manifests: [null, 3, {kind: 'Secret', data: 7}]}},
            status: {conditions: [{type: 'Applied', status: 'True'}], resourceStatus: {manifests: [null, 'x']}},
        },
    ];
    for (const value of malformed) {
        for (const component of [WORK, SET, PANEL, FLYOUT])
            await show(component, {application: value, resource: value, tree: value});
    }
    assert.deepEqual(await chromium.run('return window.errors'), []);
});
