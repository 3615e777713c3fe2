// The tabs of an object that ask its cluster, with a fake of the back end. With ARGOCD_SERVER, ARGOCD_PASSWORD and LIVE_PORT, the
// requests go through that argocd-server, whose extension `live` is at the port.

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {createServer} from 'node:http';
import {Chromium, start} from '../browser/driver';
import {Page, serve, throughArgoCd} from '../browser/page';
import {liveHeaders, livePath} from '../../src/live';
import {answerLive, recorded} from '../fake_live';
import {PASSWORD, application, object} from '../samples';

const {ARGOCD_SERVER, ARGOCD_PASSWORD, LIVE_PORT} = process.env;
const backend = createServer(answerLive);
let page: Page;
let chromium: Chromium;

before(async () => {
    if (LIVE_PORT !== undefined) await new Promise<void>(done => backend.listen(Number(LIVE_PORT), '127.0.0.1', done));
    const server = ARGOCD_SERVER === undefined ? undefined : throughArgoCd(ARGOCD_SERVER, await logIn());
    page = await serve('dist/extension-argocd-ocm-cmp.js', server ?? answerLive, server);
    chromium = await start();
    await chromium.size(1400, 1000);
});

/** Returns the token of a session, after the argocd-server has read the configuration of its extension. */
async function logIn(): Promise<string> {
    const body = JSON.stringify({username: 'admin', password: ARGOCD_PASSWORD});
    const headers = {'content-type': 'application/json'};
    const session = await fetch(`http://${ARGOCD_SERVER}/api/v1/session`, {method: 'POST', headers, body});
    const {token} = (await session.json()) as {token: string};
    const of = {cookie: `argocd.token=${token}`, ...liveHeaders(application([]))};
    const target = {cluster: 'cluster2', group: 'apps', kind: 'Deployment', namespace: 'shop', name: 'web'};
    let last = '';
    for (let tries = 0; tries < 600; tries++) {
        const answer = await fetch(`http://${ARGOCD_SERVER}/${livePath('tree', target)}`, {headers: of});
        if (answer.ok) return token;
        last = `${answer.status} ${await answer.text()}`;
        await new Promise(done => setTimeout(done, 200));
    }
    throw new Error(`argocd-server has no extension live: ${last}`);
}

after(async () => {
    await chromium?.close();
    page?.close();
    backend.close();
    backend.closeAllConnections();
});

/** Opens the details of the only object of a work. */
async function open(name: string, kind = 'Deployment', react = '18', theme = 'light'): Promise<void> {
    await chromium.open(`${page.address}/?react=${react}&theme=${theme}`);
    await chromium.until('return window.registered && registered.panel !== undefined');
    const manifest = object(kind === 'Secret' ? 'v1' : 'apps/v1', kind, name);
    const work = {metadata: {name: 'shop', namespace: 'cluster2'}, spec: {workload: {manifests: [manifest]}}};
    const props = {application: application([]), resource: work, tree: {}};
    await chromium.run('show(registered.ManifestWork.component, arguments[0], "sheet")', props);
    await chromium.until(`return document.querySelector('[data-cell="1:1"]') !== null`);
    await chromium.run(`document.querySelector('[data-cell="1:1"]').click()`);
    await chromium.until(`return document.querySelector('[role=tablist]') !== null`);
}

const select = (tab: string): Promise<unknown> =>
    chromium.run(
        `[...document.querySelectorAll('[role=tab]')].find(tab => tab.textContent === arguments[0]).click()`,
        tab,
    );
const press = (label: string): Promise<unknown> =>
    chromium.run(
        `[...document.querySelectorAll('.ocm-details button')].find(it => (it.getAttribute('aria-label') || it.textContent) === arguments[0]).click()`,
        label,
    );
const panel = (): Promise<string> => chromium.run(`return document.querySelector('[role=tabpanel]').innerText`);
const shows = (text: string): Promise<void> =>
    chromium.until(`return document.querySelector('[role=tabpanel]').innerText.includes(arguments[0])`, text);
const choose = (label: string, value: string): Promise<unknown> =>
    chromium.run(
        `const select = document.querySelector('select[aria-label="' + arguments[0] + '"]');
        Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, 'value').set.call(select, arguments[1]);
        select.dispatchEvent(new Event('change', {bubbles: true}));`,
        label,
        value,
    );
const unharmed = async (): Promise<void> => {
    assert.equal(await chromium.run('return window.hacked'), null);
    assert.deepEqual(await chromium.run('return window.errors'), []);
};

for (const react of ['16', '19']) {
    test(`tabs show the object as it is on its cluster, with React ${react}`, async () => {
        await open('web', 'Deployment', react, 'dark');
        const requests = recorded.length;
        await shows('Manifest in the work');
        assert.equal(recorded.length, requests, 'no request before a tab is opened');

        await select('Live');
        await shows('replicas: 5');
        assert(!(await panel()).includes('managedFields'));
        const {url, application, project} = recorded[recorded.length - 1] ?? {url: ''};
        assert.match(url, /\/object\?cluster=cluster2&group=apps&kind=Deployment&namespace=shop&name=web$/);
        assert.deepEqual([application, project], ['argocd:shop', 'default']);

        await select('Diff');
        await shows('spec.replicas');
        const cells = `return [...document.querySelectorAll('[role=tabpanel] tbody tr:first-child td')].map(it => it.textContent)`;
        assert.deepEqual(await chromium.run(cells), ['spec.replicas', '3', '5']);

        await select('Pods');
        await shows('CrashLoopBackOff');
        const rows = `return [...document.querySelectorAll('[role=tabpanel] tbody td:first-child')].map(it => it.textContent)`;
        assert.deepEqual(await chromium.run(rows), [
            'Deployment web',
            'ReplicaSet web-7d4b9c',
            'Pod web-7d4b9c-1',
            'Pod web-7d4b9c-2',
        ]);

        await select('Events');
        await shows('Back-off restarting <img');
        assert.match(await panel(), /BackOff[\s\S]*ScalingReplicaSet/);
        await unharmed();
    });
}

test('logs are shown as text, searched, followed and limited to a container', async () => {
    await open('web');
    await select('Pods');
    await shows('CrashLoopBackOff');
    await press('Logs of web-7d4b9c-1');
    await shows('last line');
    assert.match(recorded[recorded.length - 1]?.url ?? '', /&pod=web-7d4b9c-1&tail=100$/);
    const text = await panel();
    assert(text.includes('[web-7d4b9c-1 web] red and cleared'), text);
    assert(text.includes('GET <img src=x') && text.includes('café 日本'), text);

    await chromium.run(`document.querySelector('input[aria-label="Search the lines"]').focus()`);
    await chromium.press('R', 'E', 'D');
    await shows('1 of 5 lines');
    assert.deepEqual(await chromium.run(`return [...document.querySelectorAll('mark')].map(it => it.textContent)`), [
        'red',
        'red',
    ]);
    await chromium.run(`document.querySelector('input[aria-label="Search the lines"]').select()`);
    await chromium.press('t', 'i', 'c', 'k');

    await choose('Container', 'web');
    await press('Follow');
    await shows('tick 3');
    assert.match(recorded[recorded.length - 1]?.url ?? '', /&pod=web-7d4b9c-1&container=web&tail=100&follow=true$/);
    await press('Follow');
    await shows('0 of 5 lines');
    await press('Previous');
    await chromium.run(`document.querySelector('input[aria-label="Search the lines"]').select()`);
    await chromium.press('p');
    await shows('1 of 1 lines');
    await press('Wrap');
    assert.equal(await chromium.run(`return document.querySelectorAll('.ocm-log--wrap').length`), 0);
    await unharmed();
});

test('the keyboard moves between the tabs', async () => {
    await open('web');
    await chromium.run(`document.querySelector('[role=tab][aria-selected=true]').focus()`);
    const selected = (): Promise<string> =>
        chromium.run(`return document.querySelector('[role=tab][aria-selected=true]').textContent`);
    const focused = (): Promise<string> => chromium.run('return document.activeElement.textContent');
    for (const [key, tab] of [
        ['ArrowRight', 'Live'],
        ['End', 'Logs'],
        ['ArrowRight', 'State'],
        ['ArrowLeft', 'Logs'],
        ['Home', 'State'],
    ] as const) {
        await chromium.press(key);
        await chromium.until(
            `return document.querySelector('[role=tab][aria-selected=true]').textContent === arguments[0]`,
            tab,
        );
        assert.deepEqual([await selected(), await focused()], [tab, tab]);
    }
    await chromium.press('Escape');
    await chromium.until(`return document.querySelector('.ocm-details') === null`);
});

test('what cannot be shown is said in one line', async () => {
    for (const [name, text] of [
        ['unreachable', 'managed cluster cluster2 is unreachable: its agent is not connected'],
        ['forbidden', 'you have no permission'],
        ['nonsense', 'the answer is not JSON'],
        ['missing', 'This hub does not have the feature live'],
        ['page', 'This hub does not have the feature live'],
        ['fast', 'The object is not on the cluster.'],
    ] as const) {
        await open(name);
        await select('Live');
        await shows(text);
        await unharmed();
    }
});

test('values of a Secret are never on the page', async () => {
    await open('credentials', 'Secret');
    for (const [tab, text] of [
        ['Live', 'kind: Secret'],
        ['Diff', 'data.password'],
    ] as const) {
        await select(tab);
        await shows(text);
        const html: string = await chromium.run('return document.documentElement.outerHTML');
        for (const value of [PASSWORD, btoa(PASSWORD)]) assert(!html.includes(value), tab);
    }
});

test('the page of a cluster reads the Applications that the user may see', async () => {
    await chromium.open(`${page.address}/?react=18&theme=light&cluster=cluster2`);
    await chromium.until('return window.registered && registered.page !== undefined');
    await chromium.run('show(registered.page.component, {}, "sheet")');
    await chromium.until(
        'return [...document.querySelectorAll(".ocm-grid__row")].some(row => row.textContent.startsWith("argocd/shop"))',
    );
    assert.deepEqual(await chromium.run('return window.errors'), []);
});
