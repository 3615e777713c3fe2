// Filters and sorts rows.

import {VERDICTS, Verdict, rank} from './verdict';

export interface Column<Row> {
    readonly id: string;
    readonly title: string;
    /** Its width, as a CSS grid track. */
    readonly width: string;
    /** The text for the filter and the tooltip, and for the cell if `cell` is missing. */
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

/** Returns the rows that contain each word of the filter and have one of the selected verdicts, if any is selected. */
export function filtered<Row extends {verdict: Verdict}>(
    rows: readonly Row[],
    columns: readonly Column<Row>[],
    words: string,
    verdicts: ReadonlySet<Verdict>,
): Row[] {
    const wanted = words
        .toLowerCase()
        .split(/\s+/)
        .filter(word => word !== '');
    const looked = columns.filter(column => !column.unfiltered);
    return rows.filter(row => {
        if (verdicts.size > 0 && !verdicts.has(row.verdict)) return false;
        if (wanted.length === 0) return true;
        const text = looked
            .map(column => column.text(row))
            .join('\n')
            .toLowerCase();
        return wanted.every(word => text.includes(word));
    });
}

/** Returns the sorted rows. Without an order, the worst are first, and otherwise the order stays. */
export function sorted<Row extends {verdict: Verdict}>(
    rows: readonly Row[],
    columns: readonly Column<Row>[],
    order: Order | undefined,
): Row[] {
    const column = columns.find(({id}) => id === order?.column);
    const byVerdict = (one: Row, other: Row): number => rank(one.verdict) - rank(other.verdict);
    if (order === undefined || column === undefined) return [...rows].sort(byVerdict);
    const compare =
        column.compare ?? ((one: Row, other: Row): number => texts.compare(column.text(one), column.text(other)));
    const sign = order.descending ? -1 : 1;
    return [...rows].sort((one, other) => sign * compare(one, other) || byVerdict(one, other));
}

const texts = new Intl.Collator('en', {numeric: true});

/** Returns the order after a click on a column header: ascending, descending, and then the default. */
export function nextOrder(order: Order | undefined, column: string): Order | undefined {
    if (order?.column !== column) return {column, descending: false};
    return order.descending ? undefined : {column, descending: true};
}

/** Returns the number of rows of each verdict in the rows, the worst first. */
export function counts(rows: readonly {verdict: Verdict}[]): (readonly [Verdict, number])[] {
    const found = new Map<Verdict, number>();
    for (const {verdict} of rows) found.set(verdict, (found.get(verdict) ?? 0) + 1);
    return VERDICTS.flatMap(verdict => {
        const count = found.get(verdict);
        return count === undefined ? [] : [[verdict, count] as const];
    });
}
