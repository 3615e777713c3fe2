// The pictures of the extension in docs/ui.

import {createHash} from 'node:crypto';
import {application, fleet, healthyWork, largeWork, mixedWork, newWork, resource, set, setTree} from '../samples';
import {Chromium} from './driver';

/** The digests of the texts in the pictures, as `npm run screenshots` has taken them. */
export const DIGESTS = 'test/browser/pictures.json';

interface Picture {
    readonly name: string;
    /** The part of the page in the picture. */
    readonly part: string | undefined;
    readonly draw: (chromium: Chromium, address: string) => Promise<void>;
}

export const PICTURES: Picture[] = [];

/** Returns the digest of the text of the picture that is drawn now. */
export async function digestOf(chromium: Chromium, picture: Picture): Promise<string> {
    const text: string = await chromium.run(
        'return document.querySelector(arguments[0]).innerText',
        picture.part ?? '#app',
    );
    return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

/** Adds a picture of a component, at first or after steps in the page. */
function capture(
    name: string,
    height: number,
    theme: string,
    component: string,
    props: unknown,
    frame: string,
    steps?: (chromium: Chromium) => Promise<unknown>,
    part?: string,
    query = '',
): void {
    const draw = async (chromium: Chromium, address: string): Promise<void> => {
        await chromium.size(1400, height);
        await chromium.open(`${address}/?react=18&theme=${theme}${query}`);
        await chromium.run(`show(${component}, arguments[0], arguments[1])`, props, frame);
        await chromium.until(
            'return document.getElementById("argocd-ocm-cmp-style") && document.fonts.status === "loaded"',
        );
        await steps?.(chromium);
    };
    PICTURES.push({name, part, draw});
}

const WORK = 'registered.ManifestWork.component';
const FLYOUT = 'registered.panel.flyout';
const app = application([]);
const click = (selector: string) => (chromium: Chromium) =>
    chromium.run(`document.querySelector(arguments[0]).click()`, selector);
capture('work', 800, 'light', WORK, {application: app, resource: mixedWork(), tree: {}}, 'sheet');
capture('work-dark', 800, 'dark', WORK, {application: app, resource: mixedWork(), tree: {}}, 'sheet');
capture('work-healthy', 560, 'light', WORK, {application: app, resource: healthyWork(), tree: {}}, 'sheet');
capture('work-waiting', 800, 'light', WORK, {application: app, resource: newWork(), tree: {}}, 'sheet');
capture(
    'work-unreachable',
    600,
    'light',
    WORK,
    {application: fleet(20), resource: healthyWork('cluster12'), tree: {}},
    'sheet',
);
capture('work-large', 900, 'light', WORK, {application: app, resource: largeWork(3000), tree: {}}, 'sheet');
capture(
    'object',
    1000,
    'light',
    WORK,
    {application: app, resource: mixedWork(), tree: {}},
    'sheet',
    click('[data-cell="1:1"]'),
);
capture(
    'secret',
    960,
    'light',
    WORK,
    {application: app, resource: healthyWork(), tree: {}},
    'sheet',
    click('[data-cell="2:1"]'),
);
capture(
    'set',
    840,
    'light',
    'registered.ManifestWorkReplicaSet.component',
    {application: app, resource: set(), tree: setTree()},
    'sheet',
);
capture('clusters', 960, 'light', FLYOUT, {application: fleet(2000), tree: {}}, 'sheet');
capture('clusters-dark', 960, 'dark', FLYOUT, {application: fleet(20), tree: {}}, 'sheet', click('[data-cell="2:1"]'));
capture(
    'clusters-unchecked',
    500,
    'light',
    FLYOUT,
    {application: application([resource('cluster1', undefined), resource('cluster2', undefined)]), tree: {}},
    'sheet',
);
capture('panel', 260, 'light', 'registered.panel.component', {application: fleet(20)}, 'application-status-panel');
capture(
    'panel-dark',
    260,
    'dark',
    'registered.panel.component',
    {application: fleet(2000)},
    'application-status-panel',
);

capture(
    'cluster',
    860,
    'light',
    'registered.page.component',
    {},
    'sheet',
    chromium => chromium.until('return document.querySelector(".ocm-grid__row") !== null'),
    undefined,
    '&cluster=cluster2',
);

// The tabs that ask a cluster: only the details, for docs/live.md.
for (const [name, theme, tab] of [
    ['live-object', 'light', 'Live'],
    ['live-diff', 'light', 'Diff'],
    ['live-pods', 'light', 'Pods'],
    ['live-logs', 'dark', 'Logs'],
] as const)
    capture(
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
