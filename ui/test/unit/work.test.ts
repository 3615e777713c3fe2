// The health must be that of crates/ocm/src/health/work.rs, with the same messages.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {fields} from '../../src/fields';
import {ObjectRow, qualifiedName, shortName} from '../../src/objects';
import {evaluateHealth, healthyMessage} from '../../src/work';
import {NOW, PASSWORD, TOKEN, before, condition, healthyWork, largeWork, mixedWork, newWork} from '../samples';

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
    const endless = {...malformed, status: {...malformed.status, resourceStatus: {manifests: Array(10000).fill({})}}};
    assert.equal(evaluateHealth(endless, NOW).message, 'its status is malformed: it has 10000 manifests');
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
