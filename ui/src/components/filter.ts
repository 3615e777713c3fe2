// Creates the controls that filter rows: an input for words, and a button for each health status in the rows.

import {HealthStatus} from '../health';
import {Child, Element, h, react} from '../react';
import {Column, Order, counts, filtered, nextOrder, sorted} from '../select';
import {healthIcon} from './parts';

export interface Selection<Row> {
    readonly rows: readonly Row[];
    readonly order: Order | undefined;
    readonly onOrder: (column: string) => void;
    /** The controls. */
    readonly bar: Element;
}

/** Returns the rows that the user selected, and the controls. `noun` names the rows in the plural; `more` are further controls. */
export function useSelection<Row extends {health: HealthStatus}>(
    all: readonly Row[],
    columns: readonly Column<Row>[],
    noun: string,
    more?: Child,
): Selection<Row> {
    const {useMemo, useState} = react();
    const [words, setWords] = useState('');
    const [selected, setSelected] = useState<ReadonlySet<HealthStatus>>(() => new Set());
    const [order, setOrder] = useState<Order | undefined>(undefined);
    const rows = useMemo(
        () => sorted(filtered(all, columns, words, selected), columns, order),
        [all, words, selected, order],
    );
    const toggle = (health: HealthStatus): void =>
        setSelected(
            current =>
                new Set(current.has(health) ? [...current].filter(other => other !== health) : [...current, health]),
        );
    // Keep the button of a selected health status, even if no row has it any more.
    const chips = new Map(counts(all));
    for (const health of selected) if (!chips.has(health)) chips.set(health, 0);
    const bar = h(
        'div',
        {className: 'ocm-bar', role: 'search'},
        h('input', {
            type: 'search',
            className: 'argo-field ocm-bar__filter',
            placeholder: `Filter ${noun}`,
            'aria-label': `Filter ${noun}`,
            value: words,
            onChange: (event: {target: {value: string}}) => setWords(event.target.value),
        }),
        h(
            'div',
            {className: 'ocm-bar__chips', role: 'group', 'aria-label': 'Health'},
            Array.from(chips, ([health, count]) =>
                h(
                    'button',
                    {
                        key: health,
                        type: 'button',
                        className: `ocm-chip${selected.has(health) ? ' ocm-chip--pressed' : ''}`,
                        'aria-pressed': selected.has(health),
                        onClick: () => toggle(health),
                    },
                    healthIcon(health),
                    `${health} ${count}`,
                ),
            ),
            more,
        ),
        h(
            'span',
            {className: 'ocm-bar__count', role: 'status'},
            rows.length === all.length ? `${all.length} ${noun}` : `${rows.length} of ${all.length} ${noun}`,
        ),
    );
    return {rows, order, onOrder: column => setOrder(current => nextOrder(current, column)), bar};
}
