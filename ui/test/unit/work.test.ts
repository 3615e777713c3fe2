// The health must be that of crates/ocm/src/health/work.rs, with the same messages.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Fields, fields, map} from '../../src/fields';
import {ObjectRow, qualifiedName, shortName} from '../../src/objects';
import {evaluateHealth, healthyMessage} from '../../src/work';
import {
    NOW,
    PASSWORD,
    TOKEN,
    availableConditions,
    before,
    condition,
    healthyWork,
    largeWork,
    mixedWork,
    newWork,
    object,
    work,
} from '../samples';

const WEB = object('apps/v1', 'Deployment', 'web');

/** Returns a work with one Deployment with these conditions. */
function deploymentWork(
    conditions: readonly Fields[],
    spec: Fields = {},
    applied = condition('Applied', 'True'),
): Fields {
    const base = work('eu1', [{manifest: WEB, resource: 'deployments', conditions}], applied);
    return {...base, spec: {...map(base, 'spec'), ...spec}};
}

const RULES = {
    manifestConfigs: [
        {
            resourceIdentifier: {group: 'apps', resource: 'deployments', namespace: '*', name: '*'},
            conditionRules: [{condition: 'Progressing'}, {condition: 'Healthy'}],
        },
    ],
};

/** Returns the health of the Deployment with these conditions, and its message. */
function healthOf(conditions: readonly Fields[], spec: Fields = {}): [string, string] {
    const [row] = evaluateHealth(deploymentWork(conditions, spec), NOW).objects;
    assert(row !== undefined);
    return [row.health, row.message];
}

test('evaluates each state of an object', () => {
    const rows = evaluateHealth(mixedWork(), NOW).objects.map(row => [
        shortName(row),
        row.applied,
        row.available,
        row.health,
        row.message.slice(0, 40),
    ]);
    assert.deepEqual(rows, [
        ['Service shop/web', true, true, 'Healthy', ''],
        ['Deployment shop/web', true, true, 'Degraded', 'ProgressDeadlineExceeded: ReplicaSet "we'],
        ['Deployment shop/api', true, true, 'Progressing', 'waiting for rollout to finish: 4 of 5 up'],
        ['Deployment shop/reports', true, true, 'Suspended', 'it is paused'],
        ['StorageClass fast', false, undefined, 'Degraded', 'Failed to apply manifest: storageclasses'],
        ['ConfigMap shop/settings', true, false, 'Missing', 'Resource is not available'],
        ['Secret shop/credentials', true, true, 'Healthy', ''],
        ['Ingress shop/web', true, true, 'Healthy', ''],
        ['Namespace shop', true, true, 'Healthy', ''],
    ]);
    assert.equal(evaluateHealth(mixedWork(), NOW).health, 'Degraded');
});

test('a healthy work has the message of the health check', () => {
    const healthy = evaluateHealth(healthyWork(), NOW);
    assert.deepEqual(
        [healthy.health, healthy.message, healthyMessage(healthy)],
        ['Healthy', '', '4 objects are healthy on managed cluster cluster1'],
    );
});

test('a work that the agent has not processed waits with all its objects', () => {
    const waiting = evaluateHealth(newWork(), NOW);
    const message = 'waiting for the agent of managed cluster cluster3 to apply it';
    assert.deepEqual([waiting.health, waiting.message, waiting.objects.length], ['Waiting', message, 9]);
    assert(
        waiting.objects.every(row => row.health === 'Waiting' && row.message === message && row.manifest !== undefined),
    );
    const earlier = condition('Applied', 'True', '', {observedGeneration: 3});
    assert.equal(evaluateHealth(deploymentWork(availableConditions(), {}, earlier), NOW).health, 'Waiting');
});

test('a work that is being deleted shows the reason for the delay', () => {
    const base = healthyWork();
    const deleting = {
        ...base,
        metadata: {...map(base, 'metadata'), deletionTimestamp: '2026-06-01T11:59:00Z'},
        status: {conditions: [condition('Deleting', 'True', 'waiting for a finalizer')]},
    };
    const {health, message} = evaluateHealth(deleting, NOW);
    assert.deepEqual(
        [health, message],
        ['Progressing', 'the agent of managed cluster cluster1 is removing its objects: waiting for a finalizer'],
    );
});

test('only a lasting failure is Degraded', () => {
    const failed = (seconds: number): Fields[] => [
        condition('Applied', 'False', 'no such kind', {lastTransitionTime: before(seconds)}),
    ];
    assert.deepEqual(healthOf(failed(59)), ['Progressing', 'no such kind']);
    assert.deepEqual(healthOf(failed(61)), ['Degraded', 'no such kind']);
});

test('an object that was missing and then applied waits for the next check', () => {
    const missing = condition('Available', 'False', 'Resource is not available', {lastTransitionTime: before(40)});
    assert.equal(healthOf([condition('Applied', 'True', '', {lastTransitionTime: before(30)}), missing])[0], 'Waiting');
    assert.equal(healthOf([condition('Applied', 'True', '', {lastTransitionTime: before(50)}), missing])[0], 'Missing');
});

test('waits for rules without a result, except from an old agent', () => {
    const [applied, available, feedback] = availableConditions() as [Fields, Fields, Fields];
    const waiting = ['Waiting', 'waiting for the agent of managed cluster eu1 to report its status'];
    assert.deepEqual(healthOf([applied, available, feedback, condition('Progressing', 'False')], RULES), waiting);
    assert.deepEqual(healthOf([applied, available], RULES), waiting);
    assert.deepEqual(healthOf([applied, available], {}), ['Healthy', '']);
    assert.deepEqual(
        healthOf(availableConditions(condition('Healthy', 'True', '', {observedGeneration: 3})), RULES),
        waiting,
    );
    const base = deploymentWork([applied, available, feedback], RULES);
    const checked = {
        ...base,
        status: {
            ...map(base, 'status'),
            conditions: [applied, condition('Available', 'True', '', {observedGeneration: 4})],
        },
    };
    const message =
        '1 object is applied on managed cluster eu1, whose agent does not report health, which OCM 1.0 and newer does';
    assert.equal(evaluateHealth(checked, NOW).message, message);
});

test('a rule without a result makes the health Unknown', () => {
    const failed = condition('Healthy', 'False', 'no such field', {reason: 'ConditionRuleExpressionError'});
    assert.deepEqual(healthOf(availableConditions(failed)), ['Unknown', 'its health is not known: no such field']);
});

test('a complete object is healthy unless a rule reports that it is broken', () => {
    assert.deepEqual(
        healthOf([condition('Applied', 'True'), condition('Complete', 'True'), condition('Available', 'False')]),
        ['Healthy', ''],
    );
    assert.equal(
        healthOf([condition('Applied', 'True'), condition('Complete', 'True'), condition('Healthy', 'False')])[0],
        'Degraded',
    );
});

test('a complete work stays healthy until it gets a new object', () => {
    const earlier = condition('Applied', 'True', '', {observedGeneration: 3});
    const base = deploymentWork([earlier, condition('Complete', 'True')], {}, earlier);
    const complete = {...base, status: {...map(base, 'status'), conditions: [earlier, condition('Complete', 'True')]}};
    assert.equal(evaluateHealth(complete, NOW).health, 'Healthy');
    const extended = {...complete, spec: {workload: {manifests: [WEB, object('batch/v1', 'Job', 'next')]}}};
    const message =
        'waiting for the agent of managed cluster eu1 to apply it, which it does not do while the work is complete';
    assert.deepEqual(
        [evaluateHealth(extended, NOW).health, evaluateHealth(extended, NOW).message],
        ['Waiting', message],
    );
});

test('ignores objects of an earlier generation', () => {
    const base = deploymentWork([condition('Applied', 'False', 'old', {observedGeneration: 3})]);
    assert.deepEqual(
        evaluateHealth(base, NOW).objects.map(row => [row.health, row.message]),
        [['Unknown', 'the agent has not reported on it']],
    );
});

test('a malformed status is never healthy', () => {
    assert.deepEqual(
        [evaluateHealth({...healthyWork(), status: 'fine'}, NOW)].map(({health, message}) => [health, message]),
        [['Unknown', 'its status is malformed: status is text']],
    );
    const malformed = {
        ...healthyWork(),
        status: {conditions: [condition('Applied', 'True')], resourceStatus: {manifests: [7, {conditions: ['x']}]}},
    };
    assert.equal(evaluateHealth(malformed, NOW).health, 'Unknown');
    for (const value of [undefined, null, 3, [], 'x', {metadata: 3, spec: [], status: {conditions: {}}}]) {
        assert.equal(typeof evaluateHealth(fields(value), NOW).health, 'string');
    }
});

test('rows have manifests, feedback and times', () => {
    const rows = new Map(
        evaluateHealth(mixedWork(), NOW).objects.map((row): [string, ObjectRow] => [shortName(row), row]),
    );
    const web = rows.get('Deployment shop/web');
    assert.deepEqual(web?.feedback, [
        {name: 'ReadyReplicas', value: '2'},
        {name: 'Replicas', value: '3'},
        {name: 'Image', value: 'registry.example.com/shop/web:2.4.1'},
    ]);
    assert.deepEqual([fields(web?.manifest)['kind'], web?.since], ['Deployment', before(540)]);
    assert.equal(
        evaluateHealth(mixedWork(), NOW).lastWrite,
        before(42),
        'the last write of the status, not the last change in it',
    );
    assert.equal(qualifiedName(rows.get('StorageClass fast') as ObjectRow), 'fast');
});

test('no row contains a value of a Secret, not even in a message', () => {
    const text = JSON.stringify(mixedWork())
        .split('"Resource is available"')
        .join(JSON.stringify(`refused: ${PASSWORD} and token-of-the-shop`));
    const rows = evaluateHealth(JSON.parse(text), NOW).objects.filter(row => row.kind === 'Secret');
    assert.equal(rows.length, 1);
    for (const {manifest: _, ...shown} of rows) {
        const json = JSON.stringify(shown);
        for (const value of [PASSWORD, TOKEN, 'token-of-the-shop']) assert(!json.includes(value), json);
        assert(json.includes('refused: •••••••• and ••••••••'));
    }
});

test('finds the degraded one of thousands of objects', () => {
    const large = largeWork(5000);
    const {objects, health} = evaluateHealth(large, NOW);
    assert.deepEqual([objects.length, health], [5000, 'Degraded']);
    assert.deepEqual(objects.filter(row => row.health !== 'Healthy').map(qualifiedName), ['shop/settings-4993']);
});
