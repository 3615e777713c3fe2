// tests/data/health contains works in many states with the health that the program computes, and verdict_cases.json works whose
// values the hub evaluates. The extension must agree.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {Fields, isMap, map, textOf} from '../../src/fields';
import {HEALTH_STATUSES} from '../../src/health';
import {evaluateHealth} from '../../src/work';

type ObjectHealth = [kind: string, name: string, health: string, message: string];

interface VerdictCase {
    readonly work: Fields;
    readonly health: string;
    readonly objects: readonly ObjectHealth[];
}

interface HealthCase {
    readonly name: string;
    /** The work, in which `{of: PIECE, POINTER: VALUE}` is the piece with other values; null removes one. */
    readonly object: Fields;
    readonly health: string;
    readonly message: string;
    /** Undefined for a ManifestWorkReplicaSet, whose health the extension takes from Argo CD. */
    readonly objects?: readonly ObjectHealth[];
}

const verdicts = JSON.parse(readFileSync('test/verdict_cases.json', 'utf8')) as {at: string; works: VerdictCase[]};
const now = Date.parse(verdicts.at);
const at = (seconds: string): string => new Date(now - Number(seconds) * 1000).toISOString().replace('.000', '');
const file = readFileSync('../tests/data/health/cases.json', 'utf8').replace(/(\d+) seconds ago/g, (_, ago: string) =>
    at(ago),
);
const {pieces, cases} = JSON.parse(file) as {pieces: Fields; cases: HealthCase[]};

function build(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(build);
    if (!isMap(value)) return value;
    const fields = Object.entries(value).map(([key, field]) => [key, build(field)] as const);
    if (!('of' in value)) return Object.fromEntries(fields);
    const piece = build(pieces[textOf(value, 'of')]);
    for (const [pointer, field] of fields) {
        const keys = pointer.split('/').slice(1);
        const last = keys.pop();
        if (last === undefined) continue;
        const parent = keys.reduce((owner: unknown, key) => (owner as Record<string, unknown>)[key], piece);
        if (last === '-') (parent as unknown[]).push(field);
        else if (field === null) Reflect.deleteProperty(parent as object, last);
        else (parent as Record<string, unknown>)[last] = field;
    }
    return piece;
}

const works = cases.flatMap(({name, object, health, message, objects}) =>
    objects === undefined ? [] : [{name, work: build(object) as Fields, health, message, objects}],
);

test('evaluates each work and object as the program does', () => {
    const named = verdicts.works.map(each => ({
        ...each,
        message: undefined,
        name: textOf(map(each.work, 'metadata'), 'name'),
    }));
    for (const {name, work, health, message, objects} of [...works, ...named]) {
        const evaluated = evaluateHealth(work, now);
        assert.equal(evaluated.health, health, name);
        // The messages of objects stand for an empty message of the work.
        if (message !== undefined && evaluated.message !== '') assert.equal(evaluated.message, message, name);
        assert.deepEqual(
            evaluated.objects.map(row => [row.kind, row.name, row.health, row.message]),
            objects,
            name,
        );
    }
});

test('the works cover every health status', () => {
    const statuses = new Set(works.flatMap(({objects}) => objects.map(([, , health]) => health)));
    assert.deepEqual([...statuses].sort(), [...HEALTH_STATUSES].sort());
});
