// The page of a managed cluster in a real Chromium.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {fleet} from '../samples';
import {FLYOUT, PAGE, becomes, chromium, click, column, count, focused, open, show, texts} from './stage';

const ON_CLUSTER2 = [
    'argocd/shop',
    'argocd/refused',
    'argocd/payments',
    'argocd/edge',
    'argocd/billing',
    'argocd/catalogue',
    'argocd/identity',
    'argocd/search',
];

test('a cluster is chosen with the keyboard, and shows its Applications, the worst first', async () => {
    await open();
    await show(PAGE, {});
    await becomes('.ocm-placeholder', 'Choose one of 20 managed clusters.');
    await chromium.press('Tab', 'Tab', ...'cluster2', 'Enter');
    await becomes('.ocm-title', 'cluster2');
    await becomes('.ocm-bar__count', '8 Applications');
    assert.deepEqual(await chromium.run('return [location.pathname, location.search]'), [
        '/managed-clusters',
        '?cluster=cluster2',
    ]);
    assert.deepEqual(await column(0), ON_CLUSTER2);
    assert.deepEqual((await column(2)).slice(0, 5), ['Degraded', 'Missing', 'Progressing', 'Suspended', 'Healthy']);
    assert.deepEqual((await texts('.ocm-note')).slice(0, 1), [
        'cluster2 is on hold until 2026-06-02T06:00:00Z: storage migration',
    ]);
    await becomes('.ocm-note code', 'argocd-ocm-cmp status --clusters cluster2');

    // The grid, and the works of the Application with two.
    await chromium.run('document.querySelector("[data-cell=\\"1:0\\"]").focus()');
    await chromium.press('ArrowDown', 'ArrowDown');
    assert.equal(await focused(), '3:0');
    await chromium.press('Enter');
    await becomes('.ocm-details h3', 'argocd/payments');
    assert.deepEqual(await texts('.ocm-details a'), ['payments', 'payments.part-wave2', 'Open the Application']);
    const links: string[] = await chromium.run(
        'return [...document.querySelectorAll(".ocm-details a")].map(link => link.getAttribute("href"))',
    );
    assert.match(links[0] ?? '', /^applications\/argocd\/payments\?node=.*%2Fcluster2%2Fpayments%2F0&tab=extension-0$/);
    assert.equal(links[2], 'applications/argocd/payments');
    await chromium.press('Escape');
    await chromium.until('return document.querySelector(".ocm-details") === null');
    assert.equal(await focused(), '3:0');
    await chromium.run('history.back()');
    await becomes('.ocm-placeholder', 'Choose one of 20 managed clusters.');
    await chromium.run('history.forward()');
    await becomes('.ocm-title', 'cluster2');
    // The sidebar.
    await chromium.run('history.pushState(null, "", "/managed-clusters")');
    await show(PAGE, {});
    await becomes('.ocm-placeholder', 'Choose one of 20 managed clusters.');
    assert.deepEqual(await chromium.run('return window.errors'), []);
});

test('a name that is none is not shown in a command', async () => {
    await open('18', 'light', `&cluster=${encodeURIComponent('a; id')}`);
    await show(PAGE, {});
    await becomes('.ocm-placeholder', '"a; id" is not the name of a managed cluster.');
    assert.equal(await chromium.run('return document.querySelectorAll(".ocm-page code").length'), 0);
});

test('filters by health, project and words', async () => {
    await open('18', 'dark', '&cluster=cluster2');
    await show(PAGE, {});
    await becomes('.ocm-bar__count', '8 Applications');
    const select = 'document.querySelector("select.ocm-select")';
    assert.deepEqual(await chromium.run(`return [...${select}.options].map(option => option.text)`), [
        'All projects',
        'data',
        'default',
        'edge',
        'web',
    ]);
    await chromium.run(`${select}.focus()`);
    await chromium.press(...'web');
    await becomes('.ocm-bar__count', '4 Applications');
    assert.deepEqual(await column(0), ['argocd/refused', 'argocd/billing', 'argocd/identity', 'argocd/search']);
    await chromium.run(
        '[...document.querySelectorAll(".ocm-chip")].find(chip => chip.textContent === "Missing 1").click()',
    );
    await becomes('.ocm-bar__count', '1 of 4 Applications');
    assert.deepEqual(await column(5), ['ComparisonError: the policy does not allow Deployments']);
    assert.deepEqual(await chromium.run('return window.errors'), []);
});

test('says what it cannot show', async () => {
    await open('18', 'light', '&cluster=nowhere');
    await show(PAGE, {});
    await becomes('.ocm-placeholder', 'No Application that you may see is delivered to nowhere.');
    await open('18', 'light', '&api=empty');
    await show(PAGE, {});
    await becomes('.ocm-placeholder', 'No Application that you may see is delivered to a managed cluster.');
    await open('18', 'light', '&api=failed&cluster=cluster2');
    await show(PAGE, {});
    await becomes('.ocm-note', 'the cache is not synced');
    await open('18', 'light', '&api=refused&cluster=cluster2');
    await show(PAGE, {});
    await becomes('.ocm-bar__count', '8 Applications');
    const row = (await column(0)).indexOf('argocd/search');
    assert.deepEqual([(await column(2))[row], (await column(5))[row]], ['Unknown', 'permission denied']);
    assert.equal(await count('.ocm-grid__row'), 8);
});

test('the clusters of an Application lead to the page', async () => {
    await open();
    await show(FLYOUT, {application: fleet(20), tree: {}});
    await click('[data-cell="1:0"]');
    await becomes('.ocm-details h3', 'cluster2');
    await chromium.run('[...document.querySelectorAll(".ocm-details a")].pop().click()');
    assert.equal(
        await chromium.run('return location.pathname + location.search'),
        '/managed-clusters?cluster=cluster2',
    );
});
