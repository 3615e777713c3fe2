// verdicts.json has works in many states with the output of `argocd-ocm-cmp status -o json`, which must be the same here.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {Fields, map, textOf} from '../../src/fields';
import {VERDICTS} from '../../src/verdict';
import {judge} from '../../src/work';

interface Said {
    readonly work: Fields;
    readonly health: string;
    /** Kind, name, health and message of each object. */
    readonly objects: readonly [string, string, string, string][];
}

const said = JSON.parse(readFileSync('test/verdicts.json', 'utf8')) as {at: string; works: readonly Said[]};

test('evaluates each work and object as the program does', () => {
    for (const {work, health, objects} of said.works) {
        const judged = judge(work, Date.parse(said.at));
        const name = textOf(map(work, 'metadata'), 'name');
        assert.equal(judged.verdict, health, name);
        assert.deepEqual(
            judged.objects.map(row => [row.kind, row.name, row.verdict, row.message]),
            objects,
            name,
        );
    }
});

test('the works cover every verdict', () => {
    const verdicts = new Set(said.works.flatMap(({objects}) => objects.map(([, , verdict]) => verdict)));
    assert.deepEqual([...verdicts].sort(), [...VERDICTS].sort());
});
