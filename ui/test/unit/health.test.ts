// health_cases.json contains works in many states with the output of `argocd-ocm-cmp status -o json`, and verdict_cases.json works whose
// values the hub evaluates. The extension must agree.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {Fields, map, textOf} from '../../src/fields';
import {HEALTH_STATUSES} from '../../src/health';
import {evaluateHealth} from '../../src/work';

interface HealthCase {
    readonly work: Fields;
    readonly health: string;
    /** Kind, name, health and message of each object. */
    readonly objects: readonly [string, string, string, string][];
}

interface Cases {
    readonly at: string;
    readonly works: readonly HealthCase[];
}

const [cases, verdictCases] = ['health_cases', 'verdict_cases'].map(
    name => JSON.parse(readFileSync(`test/${name}.json`, 'utf8')) as Cases,
) as [Cases, Cases];

test('evaluates each work and object as the program does', () => {
    for (const {work, health, objects} of [...cases.works, ...verdictCases.works]) {
        const evaluated = evaluateHealth(work, Date.parse(cases.at));
        const name = textOf(map(work, 'metadata'), 'name');
        assert.equal(evaluated.health, health, name);
        assert.deepEqual(
            evaluated.objects.map(row => [row.kind, row.name, row.health, row.message]),
            objects,
            name,
        );
    }
});

test('the works cover every health status', () => {
    const statuses = new Set(cases.works.flatMap(({objects}) => objects.map(([, , health]) => health)));
    assert.deepEqual([...statuses].sort(), [...HEALTH_STATUSES].sort());
});
