// Which rows are shown, and in which order.

import {VERDICTS, Verdict, rank} from './verdict';

export interface Column<Row> {
    readonly id: string;
    readonly title: string;
    /** Its width as CSS has it for a column of a grid. */
    readonly width: string;
    /** What is filtered by, told to the pointer, and shown where nothing else is. */
    readonly text: (row: Row) => string;
    /** The order by this column; by its text where it is missing. */
    readonly compare?: (one: Row, other: Row) => number;
    /** Whether its text is not looked at when the user filters. */
    readonly unfiltered?: boolean;
}

export interface Order {
    readonly column: string;
    readonly descending: boolean;
}

/** The rows in which each word of the filter stands, of these verdicts or, where none is chosen, of all. */
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

/** The rows in an order; without one those that fare worst come first, and otherwise all stay as they are. */
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

/** What another click on the head of a column asks for: up, down, and the first order again. */
export function nextOrder(order: Order | undefined, column: string): Order | undefined {
    if (order?.column !== column) return {column, descending: false};
    return order.descending ? undefined : {column, descending: true};
}

/** How many rows there are of each verdict that some row has; the worst first. */
export function counts(rows: readonly {verdict: Verdict}[]): (readonly [Verdict, number])[] {
    const found = new Map<Verdict, number>();
    for (const {verdict} of rows) found.set(verdict, (found.get(verdict) ?? 0) + 1);
    return VERDICTS.flatMap(verdict => {
        const count = found.get(verdict);
        return count === undefined ? [] : [[verdict, count] as const];
    });
}
