// A grid that renders only the visible ones of thousands of rows. Keys move the focus between cells, as in WAI-ARIA grids.

import {Cell, nextCell, renderedRows, scrollPositionFor} from '../cells';
import {HealthStatus, rank} from '../health';
import {Child, Element, h, react} from '../react';
import {Column, Order} from '../select';
import {healthLabel} from './parts';

const ROW_HEIGHT = 36;
/** The header stays visible above the rows. */
const HEAD_HEIGHT = 35;

export interface GridColumn<Row> extends Column<Row> {
    readonly cell?: (row: Row) => Child;
}

/** Returns the column with the health of rows. */
export function healthColumn<Row extends {readonly health: HealthStatus}>(width: string): GridColumn<Row> {
    return {
        id: 'health',
        title: 'Health',
        width,
        text: ({health}) => health,
        compare: (one, other) => rank(one.health) - rank(other.health),
        cell: ({health}) => healthLabel(health),
    };
}

export interface GridProps<Row> {
    /** The label for screen readers. */
    readonly label: string;
    readonly columns: readonly GridColumn<Row>[];
    readonly rows: readonly Row[];
    readonly keyOf: (row: Row) => string;
    readonly order: Order | undefined;
    readonly onOrder: (column: string) => void;
    /** The key of the row whose details are shown. */
    readonly open: string | undefined;
    readonly onOpen: (key: string | undefined) => void;
}

export function Grid<Row>(props: GridProps<Row>): Element {
    const {label, columns, rows, keyOf, order, open} = props;
    const {useEffect, useRef, useState} = react();
    const root = useRef<HTMLElement | null>(null);
    const body = useRef<HTMLElement | null>(null);
    const [viewport, setViewport] = useState({scrollTop: 0, height: 400});
    const [focused, setFocused] = useState<Cell>({row: 1, column: 0});
    const hasMoved = useRef(false);
    const active = {row: Math.min(focused.row, rows.length), column: Math.min(focused.column, columns.length - 1)};

    const measure = (): void => {
        const {scrollTop = 0, clientHeight = 0} = body.current ?? {};
        const height = clientHeight - HEAD_HEIGHT;
        setViewport(current =>
            current.scrollTop === scrollTop && current.height === height ? current : {scrollTop, height},
        );
    };
    useEffect(measure);
    useEffect(() => {
        window.addEventListener('resize', measure);
        return () => window.removeEventListener('resize', measure);
    }, []);

    const activate = (cell: Cell): void => {
        const row = rows[cell.row - 1];
        const column = columns[cell.column];
        if (cell.row === 0 && column !== undefined) props.onOrder(column.id);
        else if (row !== undefined) props.onOpen(open === keyOf(row) ? undefined : keyOf(row));
    };
    const onKey = (event: KeyboardEvent): void => {
        const size = {
            rows: rows.length,
            columns: columns.length,
            page: Math.max(1, Math.floor(viewport.height / ROW_HEIGHT) - 1),
        };
        const to = event.altKey || event.metaKey ? undefined : nextCell(active, event.key, event.ctrlKey, size);
        if (to !== undefined) {
            hasMoved.current = true;
            setFocused(to);
        } else if (event.key === 'Enter' || event.key === ' ') {
            activate(active);
        } else if (event.key === 'Escape' && open !== undefined) {
            props.onOpen(undefined);
        } else {
            return;
        }
        event.preventDefault();
        // Argo CD also handles keys: Escape would close the whole panel.
        event.stopPropagation();
    };
    const latest = useRef(onKey);
    latest.current = onKey;
    useEffect(() => {
        const listener = (event: KeyboardEvent): void => latest.current(event);
        root.current?.addEventListener('keydown', listener);
        return () => root.current?.removeEventListener('keydown', listener);
    }, []);

    useEffect(() => {
        if (!hasMoved.current) return;
        hasMoved.current = false;
        if (body.current !== null && active.row > 0) {
            const {scrollTop, clientHeight} = body.current;
            const to = scrollPositionFor(active.row - 1, scrollTop, clientHeight - HEAD_HEIGHT, ROW_HEIGHT);
            if (to !== undefined) body.current.scrollTop = to;
        }
        root.current
            ?.querySelector<HTMLElement>(`[data-cell="${active.row}:${active.column}"]`)
            ?.focus({preventScroll: true});
    }, [focused]);

    const template = columns.map(column => column.width).join(' ');
    const cellProps = (cell: Cell): Record<string, unknown> => ({
        key: cell.column,
        'data-cell': `${cell.row}:${cell.column}`,
        'aria-colindex': cell.column + 1,
        tabIndex: cell.row === active.row && cell.column === active.column ? 0 : -1,
        onFocus: () =>
            setFocused(current => (current.row === cell.row && current.column === cell.column ? current : cell)),
    });
    const head = columns.map((column, at) => {
        const sort = order?.column === column.id ? (order.descending ? 'descending' : 'ascending') : 'none';
        return h(
            'div',
            {
                ...cellProps({row: 0, column: at}),
                role: 'columnheader',
                'aria-sort': sort,
                className: 'ocm-grid__title',
                onClick: () => activate({row: 0, column: at}),
            },
            column.title,
            sort !== 'none' &&
                h('i', {className: `fa fa-caret-${sort === 'ascending' ? 'up' : 'down'}`, 'aria-hidden': true}),
        );
    });
    const renderRow = (at: number): Child => {
        const row = rows[at];
        if (row === undefined) return null;
        const key = keyOf(row);
        return h(
            'div',
            {
                key,
                role: 'row',
                'aria-rowindex': at + 2,
                'aria-selected': open === key,
                className: `argo-table-list__row ocm-grid__row${open === key ? ' ocm-grid__row--open' : ''}`,
                style: {top: at * ROW_HEIGHT, gridTemplateColumns: template},
                onClick: () => activate({row: at + 1, column: 0}),
            },
            columns.map((column, index) =>
                h(
                    'div',
                    {
                        ...cellProps({row: at + 1, column: index}),
                        role: 'gridcell',
                        className: 'ocm-grid__cell',
                        title: column.text(row),
                    },
                    column.cell?.(row) ?? column.text(row),
                ),
            ),
        );
    };
    const [first, end] = renderedRows(viewport.scrollTop, viewport.height, ROW_HEIGHT, rows.length);
    const rendered: Child[] = [];
    // Render the row with the focus even if it is not visible: the focus would be lost otherwise.
    if (active.row > 0 && active.row - 1 < first) rendered.push(renderRow(active.row - 1));
    for (let at = first; at < end; at++) rendered.push(renderRow(at));
    if (active.row - 1 >= end) rendered.push(renderRow(active.row - 1));

    return h(
        'div',
        {
            ref: root,
            className: 'argo-table-list argo-table-list--clickable ocm-grid',
            role: 'grid',
            'aria-label': label,
            'aria-rowcount': rows.length + 1,
            'aria-colcount': columns.length,
        },
        h(
            'div',
            {ref: body, role: 'presentation', className: 'ocm-grid__body', tabIndex: -1, onScroll: measure},
            h(
                'div',
                {
                    role: 'row',
                    'aria-rowindex': 1,
                    className: 'argo-table-list__row ocm-grid__head',
                    style: {gridTemplateColumns: template},
                },
                head,
            ),
            h(
                'div',
                {role: 'rowgroup', className: 'ocm-grid__lines', style: {height: rows.length * ROW_HEIGHT}},
                rendered,
            ),
        ),
    );
}
