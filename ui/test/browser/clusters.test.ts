// The managed clusters of an Application in a real Chromium: two thousand of them, and with the keyboard only.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {application, fleet, healthyWork, resource} from '../samples';
import {FLYOUT, PANEL, WORK, becomes, chromium, click, column, count, focused, open, show} from './stage';

test('two thousand clusters can be used with the keyboard only', async () => {
    await open();
    await show(FLYOUT, {application: fleet(2000), tree: {}});
    await becomes('.ocm-title', '1836 of 2000 clusters healthy');
    await chromium.run(
        'window.escapes = 0; document.addEventListener("keydown", event => { if (event.key === "Escape") window.escapes++; })',
    );
    assert((await count('.ocm-grid__row')) < 60, 'only visible rows are rendered');
    assert.deepEqual(
        await chromium.run(
            'const grid = document.querySelector("[role=grid]"); return [grid.ariaRowCount, grid.ariaColCount, grid.ariaLabel]',
        ),
        ['2001', '5', 'Managed clusters'],
    );

    // Tab stops: the filter, four health statuses, the grid.
    for (let stop = 0; stop < 6; stop++) await chromium.press('Tab');
    assert.equal(await focused(), '1:0');
    assert.match(
        await chromium.run('return getComputedStyle(document.activeElement).outline'),
        /rgb\(0, 162, 179\) solid 2px/,
        'the focus is visible',
    );
    assert.equal(await count('[role=grid] [tabindex="0"]'), 1);
    const path: [string, string][] = [
        ['ArrowDown', '2:0'],
        ['ArrowRight', '2:1'],
        ['End', '2:4'],
        ['Control+End', '2000:4'],
        ['Home', '2000:0'],
        ['ArrowDown', '2000:0'],
        ['Control+Home', '0:0'],
        ['ArrowDown', '1:0'],
        ['PageDown', '12:0'],
    ];
    for (const [key, cell] of path) {
        await chromium.press(key);
        await chromium
            .until('return document.activeElement.dataset.cell === arguments[0]', cell)
            .catch(async () => assert.equal(await focused(), cell, key));
        const isInSight =
            'const cell = document.activeElement.getBoundingClientRect(), body = document.querySelector(".ocm-grid__body").getBoundingClientRect(); return cell.top >= body.top && cell.bottom <= body.bottom + 1';
        assert(await chromium.run(isInSight), `${key}: ${cell} is not visible`);
    }

    // Open the details, and return to the same cell.
    await chromium.press('Enter');
    await chromium.until('return document.activeElement.className === "ocm-details"');
    await chromium.press('Escape');
    await chromium.until('return document.querySelector(".ocm-details") === null');
    assert.equal(await focused(), '12:0');
    assert.equal(await chromium.run('return window.escapes'), 0, 'Argo CD would close its panel');
    await chromium.press('Enter');
    await chromium.until('return document.activeElement.className === "ocm-details"');
    await chromium.run('document.querySelector(`[data-cell="12:0"]`).focus()');
    await chromium.press('Escape');
    await chromium.until('return document.querySelector(".ocm-details") === null');
    assert.equal(await chromium.run('return window.escapes'), 0, 'also if a row has the focus');
    await chromium.press('Escape');
    assert.equal(await chromium.run('return window.escapes'), 1, 'Argo CD handles Escape if no details are open');

    // A row keeps the focus when it is scrolled out of view.
    await chromium.run('document.querySelector(".ocm-grid__body").scrollTop = 40000');
    await chromium.until(
        'return [...document.querySelectorAll(".ocm-grid__row")].some(row => row.ariaRowIndex === "1110")',
    );
    assert.equal(await focused(), '12:0');
    assert((await count('.ocm-grid__row')) < 60);
    assert.deepEqual(await chromium.run('return window.errors'), []);
});

test('filters clusters by words and health, and sorts them by columns', async () => {
    await open();
    await show(FLYOUT, {application: fleet(2000), tree: {}});
    await chromium.press('Tab', ...'cluster19 degraded');
    await becomes('.ocm-bar__count', '3 of 2000 clusters');
    assert.deepEqual(await column(0), ['cluster1902', 'cluster1943', 'cluster1978']);
    for (let at = 0; at < 'cluster19 degraded'.length; at++) await chromium.press('\ue003');
    await becomes('.ocm-bar__count', '2000 clusters');

    const chips = '[...document.querySelectorAll(".ocm-chip")].map(chip => [chip.textContent, chip.ariaPressed])';
    assert.deepEqual(await chromium.run(`return ${chips}`), [
        ['Degraded 60', 'false'],
        ['Progressing 100', 'false'],
        ['Suspended 4', 'false'],
        ['Healthy 1836', 'false'],
    ]);
    await chromium.press('Tab', 'Tab', 'Space');
    await becomes('.ocm-bar__count', '100 of 2000 clusters');
    assert.deepEqual(await chromium.run(`return ${chips}[1]`), ['Progressing 100', 'true']);
    await chromium.press('Tab', 'Enter');
    await becomes('.ocm-bar__count', '104 of 2000 clusters');

    // Back to the header of the grid: ascending, descending, and the default.
    await chromium.press('Tab', 'Tab', 'ArrowUp');
    assert.equal(await focused(), '0:0');
    const sort = 'return document.querySelector("[data-cell=\\"0:0\\"]").ariaSort';
    for (const [expected, first] of [
        ['ascending', 'cluster7'],
        ['descending', 'cluster1987'],
        ['none', 'cluster7'],
    ]) {
        await chromium.press('Enter');
        await chromium.until(`${sort} === arguments[0]`, expected);
        assert.equal((await column(0))[0], first, expected);
    }
});

test('a cluster links to the objects of its works, in the page of Argo CD', async () => {
    await open();
    await show(FLYOUT, {application: fleet(20), tree: {}});
    await click('[data-cell="1:0"]');
    await becomes('.ocm-details h3', 'cluster2');
    await chromium.run('window.addEventListener("popstate", () => window.moved = true)');
    await click('.ocm-details a');
    const [path, query, moved]: [string, string, boolean] = await chromium.run(
        'return [location.pathname, location.search, window.moved]',
    );
    assert.equal(path, '/applications/argocd/shop');
    assert.deepEqual(Object.fromEntries(new URLSearchParams(query)), {
        node: 'work.open-cluster-management.io/ManifestWork/cluster2/shop/0',
        tab: 'extension-0',
    });
    assert(moved, 'the page must not reload');
});

test('marks an unreachable cluster in the list and in its work', async () => {
    await open();
    const app = fleet(20);
    await show(FLYOUT, {application: app, tree: {}});
    await chromium.until('return document.querySelector(".ocm-unreachable") !== null');
    assert.deepEqual(
        (await column(0)).filter(name => name.startsWith('cluster12')),
        ['cluster12'],
    );
    assert.equal(await count('.ocm-unreachable'), 1);
    await chromium.press('Tab', ...'cannot reached');
    await becomes('.ocm-bar__count', '1 of 20 clusters');
    await show(WORK, {application: app, resource: healthyWork('cluster12'), tree: {}});
    await becomes('.ocm-note', 'cluster12 is unreachable: showing its last reported state.');
});

test('the panel opens all clusters, and is missing without works', async () => {
    await open();
    await chromium.run(
        'window.opened = 0; show(registered.panel.component, {application: arguments[0], openFlyout: () => window.opened++}, "application-status-panel")',
        fleet(20),
    );
    await becomes('.ocm-panel__open', ' 18 of 20 clusters healthy');
    await chromium.press('Tab', 'Enter', 'Tab', 'Space');
    await chromium.until('return window.opened === 2');
    await show(PANEL, {application: application([])}, 'application-status-panel');
    await chromium.until('return document.querySelector(".ocm-panel") === null');
    const message = '20 of 20 clusters applied, 1 degraded';
    await show(
        PANEL,
        {application: application([{...resource('shops', 'Degraded', message), kind: 'ManifestWorkReplicaSet'}])},
        'application-status-panel',
    );
    await becomes('.ocm-panel__open', ` ${message}`);
});
