// Filters, sorting, rendered rows, keys, and short texts.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {age} from '../../src/age';
import {nextCell, renderedRows, scrollPositionFor} from '../../src/cells';
import {Column, counts, filtered, nextOrder, sorted} from '../../src/select';
import {HealthStatus} from '../../src/health';
import {waveName} from '../../src/wave';
import {NOW, before} from '../samples';

interface Row {
    readonly health: HealthStatus;
    readonly name: string;
    readonly size: number;
}

const row = (health: HealthStatus, name: string, size = 0): Row => ({health, name, size});
const ROWS = [
    row('Healthy', 'web 10', 3),
    row('Degraded', 'api 1', 2),
    row('Healthy', 'web 9', 1),
    row('Waiting', 'db', 9),
];
const COLUMNS: readonly Column<Row>[] = [
    {id: 'name', title: 'Name', width: '1fr', text: ({name}) => name},
    {
        id: 'size',
        title: 'Size',
        width: '1fr',
        text: ({size}) => String(size),
        compare: (one, other) => one.size - other.size,
        unfiltered: true,
    },
];
const names = (rows: readonly Row[]): string[] => rows.map(({name}) => name);

test('sorts failing rows first, and keeps the order of others', () => {
    assert.deepEqual(names(sorted(ROWS, COLUMNS, undefined)), ['api 1', 'db', 'web 10', 'web 9']);
});

test('sorts rows by a column, ascending, descending, and by default', () => {
    const orders = [nextOrder(undefined, 'name')];
    for (let at = 0; at < 3; at++) orders.push(nextOrder(orders[at], 'name'));
    assert.deepEqual(orders, [
        {column: 'name', descending: false},
        {column: 'name', descending: true},
        undefined,
        {column: 'name', descending: false},
    ]);
    assert.deepEqual(names(sorted(ROWS, COLUMNS, orders[0])), ['api 1', 'db', 'web 9', 'web 10']);
    assert.deepEqual(names(sorted(ROWS, COLUMNS, {column: 'size', descending: true})), [
        'db',
        'web 10',
        'api 1',
        'web 9',
    ]);
    assert.deepEqual(nextOrder(orders[1], 'size'), {column: 'size', descending: false});
});

test('filters by all words and one of the selected states', () => {
    const noStatus = new Set<HealthStatus>();
    assert.deepEqual(names(filtered(ROWS, COLUMNS, ' WEB  1', noStatus)), ['web 10']);
    assert.deepEqual(names(filtered(ROWS, COLUMNS, '9', noStatus)), ['web 9'], 'the filter ignores the size');
    assert.deepEqual(names(filtered(ROWS, COLUMNS, '', new Set<HealthStatus>(['Waiting', 'Degraded']))), [
        'api 1',
        'db',
    ]);
    assert.deepEqual(counts(ROWS), [
        ['Degraded', 1],
        ['Waiting', 1],
        ['Healthy', 2],
    ]);
});

test('renders only visible rows and a few around them', () => {
    assert.deepEqual(renderedRows(0, 360, 36, 2000), [0, 18]);
    assert.deepEqual(renderedRows(36_000, 360, 36, 2000), [992, 1018]);
    assert.deepEqual(renderedRows(71_640, 360, 36, 2000), [1982, 2000]);
    assert.deepEqual(renderedRows(71_640, 360, 36, 3), [3, 3], 'there are fewer rows now');
    assert.deepEqual(renderedRows(0, 0, 36, 0), [0, 0]);
    assert.equal(scrollPositionFor(5, 0, 360, 36), undefined);
    assert.equal(scrollPositionFor(10, 0, 360, 36), 36);
    assert.equal(scrollPositionFor(3, 360, 360, 36), 108);
});

test('keys move from cell to cell and never out of the grid', () => {
    const size = {rows: 2000, columns: 5, page: 12};
    const to = (row: number, column: number, key: string, control = false): string => {
        const cell = nextCell({row, column}, key, control, size);
        return cell === undefined ? 'none' : `${cell.row}:${cell.column}`;
    };
    assert.deepEqual(
        ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Home', 'End', 'PageUp', 'PageDown', 'x'].map(key =>
            to(5, 2, key),
        ),
        ['4:2', '6:2', '5:1', '5:3', '5:0', '5:4', '1:2', '17:2', 'none'],
    );
    assert.deepEqual(
        [
            to(0, 0, 'ArrowUp'),
            to(0, 0, 'ArrowLeft'),
            to(2000, 4, 'ArrowDown'),
            to(2000, 4, 'ArrowRight'),
            to(1995, 0, 'PageDown'),
        ],
        ['0:0', '0:0', '2000:4', '2000:4', '2000:0'],
    );
    assert.deepEqual(
        [to(5, 2, 'Home', true), to(5, 2, 'End', true), to(5, 2, 'ArrowDown', true)],
        ['0:0', '2000:4', '2000:2'],
    );
});

test('shows ages with the significant units', () => {
    const ages = [0, 59, 60, 3_599, 3_600, 7_500, 86_400, 90_000, 40 * 86_400].map(seconds =>
        age(before(seconds), NOW),
    );
    assert.deepEqual(ages, ['0 s', '59 s', '1 m', '59 m', '1 h', '2 h 5 m', '1 d', '1 d 1 h', '40 d']);
    assert.deepEqual(
        [age(before(-30), NOW), age('', NOW), age('yesterday', NOW), age(undefined, NOW)],
        ['0 s', undefined, undefined, undefined],
    );
});

test('names waves by their phase', () => {
    const wave = (wave: string, hook?: string): string =>
        waveName({
            annotations: {
                'argocd.argoproj.io/sync-wave': wave,
                ...(hook === undefined ? {} : {'argocd.argoproj.io/hook': hook}),
            },
        });
    assert.deepEqual(
        ['0', '-3', '7', '-2000000', '-1999997', '2000000', '2999999', 'x'].map(each => wave(each)),
        ['0', '-3', '7', 'PreSync', 'PreSync 3', 'PostSync', 'PostSync 999999', '0'],
    );
    assert.deepEqual([waveName({}), wave('2', 'SyncFail'), wave('0', 'PreDelete')], ['0', 'SyncFail 2', 'PreDelete']);
});
