// Controls to filter rows: an input for words, and a button for each verdict in the rows.

import {Child, Element, h, react} from '../react';
import {Column, Order, counts, filtered, nextOrder, sorted} from '../select';
import {Verdict} from '../verdict';
import {verdictIcon} from './parts';

export interface Chosen<Row> {
    readonly rows: readonly Row[];
    readonly order: Order | undefined;
    readonly onOrder: (column: string) => void;
    /** The controls. */
    readonly bar: Element;
}

/** Returns the rows that the user selected, and the controls. `things` is the name of the rows, `more` are further controls. */
export function useChoice<Row extends {verdict: Verdict}>(
    all: readonly Row[],
    columns: readonly Column<Row>[],
    things: string,
    more?: Child,
): Chosen<Row> {
    const {useMemo, useState} = react();
    const [words, setWords] = useState('');
    const [verdicts, setVerdicts] = useState<ReadonlySet<Verdict>>(() => new Set());
    const [order, setOrder] = useState<Order | undefined>(undefined);
    const rows = useMemo(
        () => sorted(filtered(all, columns, words, verdicts), columns, order),
        [all, words, verdicts, order],
    );
    const toggle = (verdict: Verdict): void =>
        setVerdicts(
            known => new Set(known.has(verdict) ? [...known].filter(other => other !== verdict) : [...known, verdict]),
        );
    // A selected verdict keeps its button even if no row has it any more.
    const told = new Map(counts(all));
    for (const verdict of verdicts) if (!told.has(verdict)) told.set(verdict, 0);
    const bar = h(
        'div',
        {className: 'ocm-bar', role: 'search'},
        h('input', {
            type: 'search',
            className: 'argo-field ocm-bar__filter',
            placeholder: `Filter ${things}`,
            'aria-label': `Filter ${things}`,
            value: words,
            onChange: (event: {target: {value: string}}) => setWords(event.target.value),
        }),
        h(
            'div',
            {className: 'ocm-bar__chips', role: 'group', 'aria-label': 'Shown states'},
            Array.from(told, ([verdict, count]) =>
                h(
                    'button',
                    {
                        key: verdict,
                        type: 'button',
                        className: `ocm-chip${verdicts.has(verdict) ? ' ocm-chip--pressed' : ''}`,
                        'aria-pressed': verdicts.has(verdict),
                        onClick: () => toggle(verdict),
                    },
                    verdictIcon(verdict),
                    `${verdict} ${count}`,
                ),
            ),
            more,
        ),
        h(
            'span',
            {className: 'ocm-bar__count', role: 'status'},
            rows.length === all.length ? `${all.length} ${things}` : `${rows.length} of ${all.length} ${things}`,
        ),
    );
    return {rows, order, onOrder: column => setOrder(known => nextOrder(known, column)), bar};
}
