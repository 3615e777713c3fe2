import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Fields} from '../../src/fields';
import {MASK, masked, secretValues, withMasked} from '../../src/masked';
import {PASSWORD, SECRET, TOKEN, object} from '../samples';

function revealsValue(value: unknown): boolean {
    const text = JSON.stringify(masked(value));
    return [PASSWORD, TOKEN, 'token-of-the-shop'].some(secret => text.includes(secret) || text.includes(btoa(secret)));
}

test('shows the keys of a Secret, but not its values', () => {
    assert.deepEqual(masked(SECRET), {...SECRET, stringData: {password: MASK}, data: {token: MASK}});
});

test('masks a value of any type or length in the same way', () => {
    const malformed = object('v1', 'Secret', 'malformed', 'shop', {
        data: {a: 7, b: null, c: {d: 'x'}, e: ''},
        stringData: 'all of it',
    });
    assert.deepEqual(masked(malformed), {...malformed, data: {a: MASK, b: MASK, c: MASK, e: MASK}, stringData: MASK});
});

test('masks Secrets in other objects at any depth', () => {
    for (const wrapped of [
        {apiVersion: 'v1', kind: 'List', items: [SECRET]},
        {apiVersion: 'v1', kind: 'SecretList', items: [{metadata: {name: 'a'}, data: {token: TOKEN}}, SECRET]},
        {kind: 'ManifestWork', spec: {workload: {manifests: [SECRET]}}},
        {
            kind: 'ManifestWork',
            spec: {
                workload: {
                    manifests: [
                        {kind: 'List', items: [{kind: 'ManifestWork', spec: {workload: {manifests: [SECRET]}}}]},
                    ],
                },
            },
        },
        [[SECRET]],
    ]) {
        assert(!revealsValue(wrapped), JSON.stringify(masked(wrapped)));
        assert(JSON.stringify(masked(wrapped)).includes(MASK));
    }
});

test('masks copies of a Secret in annotations', () => {
    const applied = {'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(SECRET)};
    const annotated = (annotations: Fields, of: Fields): Fields => ({...of, metadata: {name: 'x', annotations}});
    assert(!revealsValue(annotated(applied, SECRET)));
    assert(!revealsValue(annotated({'example.com/original': JSON.stringify(SECRET)}, SECRET)));
    assert(
        !revealsValue(
            annotated({'example.com/note': `the password is ${PASSWORD}, the token token-of-the-shop`}, SECRET),
        ),
    );
    assert(!revealsValue(annotated(applied, {kind: 'List'})));
    const work = {kind: 'ManifestWork', spec: {workload: {manifests: [SECRET]}}};
    assert(
        !revealsValue(
            annotated(
                {'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(work)},
                {kind: 'ManifestWork'},
            ),
        ),
    );
    assert(
        !revealsValue(
            annotated(
                {'kubectl.kubernetes.io/last-applied-configuration': `kind: Secret\npassword: ${PASSWORD}`},
                {kind: 'List'},
            ),
        ),
    );
});

test('masks a value of which another one is the start', () => {
    const values = secretValues({stringData: {user: 'pass', password: 'password123'}});
    assert.equal(withMasked('pass, password123', values), `${MASK}, ${MASK}`);
});

test('shows other objects unchanged', () => {
    const config = object('v1', 'ConfigMap', 'settings', 'shop', {
        data: {key: 'value'},
        metadata: {annotations: {note: 'plain', list: '[1]'}},
    });
    assert.deepEqual(masked(config), config);
    const sealed = object('bitnami.com/v1alpha1', 'SealedSecret', 'credentials', 'shop', {
        spec: {encryptedData: {token: 'AgB'}},
    });
    assert.deepEqual(masked(sealed), sealed);
});
