// Takes the screenshots in docs/ui, with `npm run screenshots`.

import {mkdirSync} from 'node:fs';
import {application, fleet, healthyWork, largeWork, mixedWork, newWork, resource, set, setTree} from '../samples';
import {Chromium, start} from './driver';
import {serve} from './page';

const FOLDER = '../docs/ui';

const page = await serve('dist/extension-argocd-ocm-cmp.js');
const chromium = await start();
mkdirSync(FOLDER, {recursive: true});

async function capture(
    name: string,
    height: number,
    theme: string,
    component: string,
    props: unknown,
    frame: string,
    then?: (chromium: Chromium) => Promise<unknown>,
    part?: string,
): Promise<void> {
    await chromium.size(1400, height);
    await chromium.open(`${page.address}/?react=18&theme=${theme}`);
    await chromium.run(`show(${component}, arguments[0], arguments[1])`, props, frame);
    await chromium.until(
        'return document.getElementById("argocd-ocm-cmp-style") && document.fonts.status === "loaded"',
    );
    await then?.(chromium);
    await new Promise(done => setTimeout(done, 300));
    await chromium.screenshot(`${FOLDER}/${name}.png`, part);
}

const WORK = 'registered.ManifestWork.component';
const FLYOUT = 'registered.panel.flyout';
const app = application([]);
const click = (selector: string) => (chromium: Chromium) =>
    chromium.run(`document.querySelector(arguments[0]).click()`, selector);
await capture('work', 800, 'light', WORK, {application: app, resource: mixedWork(), tree: {}}, 'sheet');
await capture('work-dark', 800, 'dark', WORK, {application: app, resource: mixedWork(), tree: {}}, 'sheet');
await capture('work-healthy', 560, 'light', WORK, {application: app, resource: healthyWork(), tree: {}}, 'sheet');
await capture('work-waiting', 800, 'light', WORK, {application: app, resource: newWork(), tree: {}}, 'sheet');
await capture(
    'work-unreachable',
    600,
    'light',
    WORK,
    {application: fleet(20), resource: healthyWork('cluster12'), tree: {}},
    'sheet',
);
await capture('work-large', 900, 'light', WORK, {application: app, resource: largeWork(3000), tree: {}}, 'sheet');
await capture(
    'object',
    1000,
    'light',
    WORK,
    {application: app, resource: mixedWork(), tree: {}},
    'sheet',
    click('[data-cell="1:1"]'),
);
await capture(
    'secret',
    960,
    'light',
    WORK,
    {application: app, resource: healthyWork(), tree: {}},
    'sheet',
    click('[data-cell="2:1"]'),
);
await capture(
    'set',
    840,
    'light',
    'registered.ManifestWorkReplicaSet.component',
    {application: app, resource: set(), tree: setTree()},
    'sheet',
);
await capture('clusters', 960, 'light', FLYOUT, {application: fleet(2000), tree: {}}, 'sheet');
await capture(
    'clusters-dark',
    960,
    'dark',
    FLYOUT,
    {application: fleet(20), tree: {}},
    'sheet',
    click('[data-cell="2:1"]'),
);
await capture(
    'clusters-unchecked',
    500,
    'light',
    FLYOUT,
    {application: application([resource('cluster1', undefined), resource('cluster2', undefined)]), tree: {}},
    'sheet',
);
await capture(
    'panel',
    260,
    'light',
    'registered.panel.component',
    {application: fleet(20)},
    'application-status-panel',
);
await capture(
    'panel-dark',
    260,
    'dark',
    'registered.panel.component',
    {application: fleet(2000)},
    'application-status-panel',
);

// The tabs that ask a cluster: only the details, for docs/live.md.
for (const [name, theme, tab] of [
    ['live-object', 'light', 'Live'],
    ['live-diff', 'light', 'Diff'],
    ['live-pods', 'light', 'Pods'],
    ['live-logs', 'dark', 'Logs'],
] as const)
    await capture(
        name,
        1000,
        theme,
        WORK,
        {application: app, resource: mixedWork(), tree: {}},
        'sheet',
        async chromium => {
            await chromium.size(1000, 1400);
            await click('[data-cell="4:1"]')(chromium);
            await chromium.run(
                `[...document.querySelectorAll('[role=tab]')].find(tab => tab.textContent === arguments[0]).click()`,
                tab,
            );
            await chromium.until(
                `return document.querySelector('[role=tabpanel] tbody, .ocm-log div, [role=tabpanel] .ocm-yaml') !== null`,
            );
        },
        '.ocm-details',
    );

await chromium.close();
page.close();
