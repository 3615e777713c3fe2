import assert from 'node:assert/strict';
import {test} from 'node:test';
import {applicationName, clustersOnHold, fleetOf, headline, unreachableClusters} from '../../src/fleet';
import {subline} from '../../src/components/panel';
import {SET_HEALTH, application, fleet, resource, set, setTree} from '../samples';
import {setOf} from '../../src/set';

test('counts clusters by their works, the worst first', () => {
    const app = application([
        resource('eu10', 'Healthy'),
        resource('eu2', 'Healthy'),
        resource('eu1', 'Progressing', 'rolling out'),
        resource('eu1', 'Degraded', 'it is broken', {name: 'shop-wave2'}),
        resource('eu3', 'Missing', '', {status: 'OutOfSync'}),
        {group: '', kind: 'ConfigMap', namespace: 'eu4', name: 'x', status: 'Synced', health: {status: 'Degraded'}},
    ]);
    const actual = fleetOf(app);
    assert.deepEqual(
        actual.clusters.map(({name, health, message, sync, works, healthy}) => [
            name,
            health,
            message,
            sync,
            works.length,
            healthy,
        ]),
        [
            ['eu1', 'Degraded', 'it is broken', 'Synced', 2, 0],
            ['eu3', 'Missing', '', 'OutOfSync', 1, 0],
            ['eu2', 'Healthy', '', 'Synced', 1, 1],
            ['eu10', 'Healthy', '', 'Synced', 1, 1],
        ],
    );
    assert.equal(headline(actual), '2 of 4 clusters healthy');
    assert.equal(subline(actual), '1 degraded, 1 missing');
    assert.equal(headline(fleetOf(application([resource('eu1', 'Healthy')]))), '1 of 1 cluster healthy');
});

test('summarizes twenty clusters, eighteen of them healthy', () => {
    const actual = fleetOf(fleet(20));
    assert.equal(headline(actual), '18 of 20 clusters healthy');
    assert.equal(subline(actual), '1 degraded, 1 progressing, 1 cannot be reached');
    assert.deepEqual(
        actual.clusters.filter(cluster => cluster.unreachable).map(cluster => cluster.name),
        ['cluster12'],
    );
});

test('uses the health of the tree if the resource has none', () => {
    const tree = {nodes: [{...resource('eu1', 'Suspended', 'it is paused')}]};
    assert.equal(fleetOf(application([resource('eu1', undefined)]), tree).clusters[0]?.health, 'Suspended');
    const unchecked = fleetOf(application([resource('eu1', undefined)]), {nodes: []});
    assert.deepEqual([unchecked.clusters[0]?.health, unchecked.unchecked], ['Unknown', true]);
    assert.equal(headline(unchecked), '1 cluster');
    assert.match(subline(unchecked), /argocd_cm\.yaml/);
});

test('ignores works that are hooks, and has no headline without works', () => {
    assert.equal(headline(fleetOf(application([resource('eu1', 'Degraded', '', {hook: true})]))), undefined);
    for (const malformed of [{}, {status: {resources: 'none'}}, {status: {resources: [null, 3, {group: 7}]}}])
        assert.equal(headline(fleetOf(malformed)), undefined);
});

test('finds unreachable clusters in the conditions of the controller, also those that are only listed', () => {
    const condition = (message: string) => ({type: 'ManagedClusterUnreachableWarning', message});
    const unreachable = unreachableClusters({
        conditions: [
            condition('eu1: its agent does not report to the hub'),
            condition('and 2 more clusters: eu2, eu3'),
            {type: 'ComparisonError', message: 'eu4: no'},
        ],
    });
    assert.deepEqual([...unreachable], ['eu1', 'eu2', 'eu3']);
});

test('finds clusters on hold with the end and the reason', () => {
    const condition = (message: string) => ({type: 'ManagedClusterOnHoldWarning', message});
    const status = {
        resources: [resource('eu1', 'Healthy'), resource('eu2', 'Healthy')],
        conditions: [condition('eu1: on hold until 2026-12-01T06:00:00Z: audit'), condition('and 1 more cluster: eu3')],
    };
    assert.deepEqual(
        [...clustersOnHold(status)],
        [
            ['eu1', 'on hold until 2026-12-01T06:00:00Z: audit'],
            ['eu3', ''],
        ],
    );
    const held = fleetOf({status});
    assert.deepEqual(
        held.clusters.map(cluster => cluster.hold),
        ['on hold until 2026-12-01T06:00:00Z: audit', undefined],
    );
    assert.equal(subline(held), '1 on hold');
});

test('shows a ManifestWorkReplicaSet with the health of Argo CD and the counts of OCM', () => {
    const actual = setOf(set(), setTree());
    assert.deepEqual([actual.health, actual.message], [SET_HEALTH.status, SET_HEALTH.message]);
    assert.deepEqual(actual.counts, [
        ['total', 20],
        ['applied', 20],
        ['available', 19],
        ['progressing', 1],
        ['degraded', 1],
    ]);
    assert.deepEqual(actual.placements, [{name: 'all-shops', groups: '1 (20 / 20 clusters applied)'}]);
    assert.equal(actual.objects.length, 9);
    const app = application([{...resource('shops', 'Degraded', SET_HEALTH.message), kind: 'ManifestWorkReplicaSet'}]);
    assert.deepEqual([headline(fleetOf(app)), fleetOf(app).sets[0]?.message], [undefined, SET_HEALTH.message]);
});

test('names an Application with its namespace if that is not the one of Argo CD', () => {
    const metadata = {name: 'shop', namespace: 'team-a'};
    assert.equal(applicationName({metadata, status: {controllerNamespace: 'argocd'}}), 'team-a/shop');
    assert.equal(applicationName({metadata, status: {controllerNamespace: 'team-a'}}), 'shop');
    assert.equal(applicationName({metadata}), 'shop');
});
