// Filters and sorts rows.

import {HEALTH_STATUSES, HealthStatus, rank} from './health';

export interface Column<Row> {
    readonly id: string;
    readonly title: string;
    /** Its width, as a CSS grid track. */
    readonly width: string;
    /** The text for the filter and the tooltip, and for the cell unless the column renders it. */
    readonly text: (row: Row) => string;
    /** Compares rows by this column. Defaults to comparing the text. */
    readonly compare?: (one: Row, other: Row) => number;
    /** True if the filter ignores the column. */
    readonly unfiltered?: boolean;
}

export interface Order {
    readonly column: string;
    readonly descending: boolean;
}

/** Returns the rows that contain each word of the filter and have one of the selected health statuses, if any is selected. */
export function filtered<Row extends {health: HealthStatus}>(
    rows: readonly Row[],
    columns: readonly Column<Row>[],
    words: string,
    selected: ReadonlySet<HealthStatus>,
): Row[] {
    const terms = words
        .toLowerCase()
        .split(/\s+/)
        .filter(word => word !== '');
    const searched = columns.filter(column => !column.unfiltered);
    return rows.filter(row => {
        if (selected.size > 0 && !selected.has(row.health)) return false;
        if (terms.length === 0) return true;
        const text = searched
            .map(column => column.text(row))
            .join('\n')
            .toLowerCase();
        return terms.every(word => text.includes(word));
    });
}

/** Returns the sorted rows. Without an order, the worst are first; rows of the same health keep their order. */
export function sorted<Row extends {health: HealthStatus}>(
    rows: readonly Row[],
    columns: readonly Column<Row>[],
    order: Order | undefined,
): Row[] {
    const column = columns.find(({id}) => id === order?.column);
    const byHealth = (one: Row, other: Row): number => rank(one.health) - rank(other.health);
    if (order === undefined || column === undefined) return [...rows].sort(byHealth);
    const compare =
        column.compare ?? ((one: Row, other: Row): number => collator.compare(column.text(one), column.text(other)));
    const sign = order.descending ? -1 : 1;
    return [...rows].sort((one, other) => sign * compare(one, other) || byHealth(one, other));
}

const collator = new Intl.Collator('en', {numeric: true});

/** Returns the order after a click on a column header: first ascending, then descending, then the default. */
export function nextOrder(order: Order | undefined, column: string): Order | undefined {
    if (order?.column !== column) return {column, descending: false};
    return order.descending ? undefined : {column, descending: true};
}

/** Returns the number of rows with each health status, the worst first. */
export function counts(rows: readonly {health: HealthStatus}[]): (readonly [HealthStatus, number])[] {
    const numbers = new Map<HealthStatus, number>();
    for (const {health} of rows) numbers.set(health, (numbers.get(health) ?? 0) + 1);
    return HEALTH_STATUSES.flatMap(health => {
        const count = numbers.get(health);
        return count === undefined ? [] : [[health, count] as const];
    });
}
