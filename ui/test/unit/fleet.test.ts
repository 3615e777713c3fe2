import assert from 'node:assert/strict';
import {test} from 'node:test';
import {called, fleetOf, headline, silentClusters} from '../../src/fleet';
import {subline} from '../../src/components/panel';
import {SET_HEALTH, application, fleet, resource, set, setTree} from '../samples';
import {setOf} from '../../src/set';

test('counts clusters by their works, the worst first', () => {
    const app = application([
        resource('eu10', 'Healthy'),
        resource('eu2', 'Healthy'),
        resource('eu1', 'Progressing', 'on its way'),
        resource('eu1', 'Degraded', 'it is broken', {name: 'shop-wave2'}),
        resource('eu3', 'Missing', '', {status: 'OutOfSync'}),
        {group: '', kind: 'ConfigMap', namespace: 'eu4', name: 'x', status: 'Synced', health: {status: 'Degraded'}},
    ]);
    const found = fleetOf(app);
    assert.deepEqual(
        found.clusters.map(({name, verdict, message, sync, works, healthy}) => [
            name,
            verdict,
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
    assert.equal(headline(found), '2 of 4 clusters healthy');
    assert.equal(subline(found), '1 degraded, 1 missing');
    assert.equal(headline(fleetOf(application([resource('eu1', 'Healthy')]))), '1 of 1 cluster healthy');
});

test('summarizes twenty clusters, eighteen of them healthy', () => {
    const found = fleetOf(fleet(20));
    assert.equal(headline(found), '18 of 20 clusters healthy');
    assert.equal(subline(found), '1 degraded, 1 progressing, 1 cannot be reached');
    assert.deepEqual(
        found.clusters.filter(cluster => cluster.silent).map(cluster => cluster.name),
        ['cluster12'],
    );
});

test('uses the health of the tree if the resource has none', () => {
    const tree = {nodes: [{...resource('eu1', 'Suspended', 'it is paused')}]};
    assert.equal(fleetOf(application([resource('eu1', undefined)]), tree).clusters[0]?.verdict, 'Suspended');
    const unchecked = fleetOf(application([resource('eu1', undefined)]), {nodes: []});
    assert.deepEqual([unchecked.clusters[0]?.verdict, unchecked.unchecked], ['Unknown', true]);
    assert.equal(headline(unchecked), '1 cluster');
    assert.match(subline(unchecked), /argocd_cm\.yaml/);
});

test('ignores works that are hooks, and has no headline without works', () => {
    assert.equal(headline(fleetOf(application([resource('eu1', 'Degraded', '', {hook: true})]))), undefined);
    for (const odd of [{}, {status: {resources: 'none'}}, {status: {resources: [null, 3, {group: 7}]}}])
        assert.equal(headline(fleetOf(odd)), undefined);
});

test('finds unreachable clusters in the conditions of the controller, also those that are only listed', () => {
    const condition = (message: string) => ({type: 'ManagedClusterUnreachableWarning', message});
    const silent = silentClusters({
        conditions: [
            condition('eu1: its agent does not report to the hub'),
            condition('and 2 more clusters: eu2, eu3'),
            {type: 'ComparisonError', message: 'eu4: no'},
        ],
    });
    assert.deepEqual([...silent], ['eu1', 'eu2', 'eu3']);
});

test('shows a ManifestWorkReplicaSet with the health of Argo CD and the counts of OCM', () => {
    const found = setOf(set(), setTree());
    assert.deepEqual([found.verdict, found.message], [SET_HEALTH.status, SET_HEALTH.message]);
    assert.deepEqual(found.counts, [
        ['total', 20],
        ['applied', 20],
        ['available', 19],
        ['progressing', 1],
        ['degraded', 1],
    ]);
    assert.deepEqual(found.placements, [{name: 'all-shops', groups: '1 (20 / 20 clusters applied)'}]);
    assert.equal(found.objects.length, 9);
    const app = application([{...resource('shops', 'Degraded', SET_HEALTH.message), kind: 'ManifestWorkReplicaSet'}]);
    assert.deepEqual([headline(fleetOf(app)), fleetOf(app).sets[0]?.message], [undefined, SET_HEALTH.message]);
});

test('names an Application with its namespace if that is not the one of Argo CD', () => {
    const metadata = {name: 'shop', namespace: 'team-a'};
    assert.equal(called({metadata, status: {controllerNamespace: 'argocd'}}), 'team-a/shop');
    assert.equal(called({metadata, status: {controllerNamespace: 'team-a'}}), 'shop');
    assert.equal(called({metadata}), 'shop');
});
