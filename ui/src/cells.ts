// Computes the rendered rows of a grid with thousands of rows, all of the same height, and the cell to which a key moves the focus.

export interface Cell {
    /** 0 is the header row. */
    readonly row: number;
    readonly column: number;
}

/** The number of rows rendered above and below the visible ones. */
const EXTRA_ROWS = 8;

/** Returns the first rendered row, and the first row after the rendered ones. Heights are in pixels. */
export function renderedRows(scrollTop: number, height: number, rowHeight: number, rows: number): [number, number] {
    const first = Math.min(rows, Math.max(0, Math.floor(scrollTop / rowHeight) - EXTRA_ROWS));
    const end = Math.min(rows, Math.ceil((scrollTop + height) / rowHeight) + EXTRA_ROWS);
    return [first, Math.max(first, end)];
}

/** Returns the scroll position that makes a row visible, or undefined if it is visible. */
export function scrollPositionFor(
    row: number,
    scrollTop: number,
    height: number,
    rowHeight: number,
): number | undefined {
    const top = row * rowHeight;
    if (top < scrollTop) return top;
    if (top + rowHeight > scrollTop + height) return top + rowHeight - height;
    return undefined;
}

/** Returns the cell to which a key moves from a cell, as in WAI-ARIA grids, or undefined for another key. */
export function nextCell(
    from: Cell,
    key: string,
    control: boolean,
    size: {rows: number; columns: number; page: number},
): Cell | undefined {
    const to = (row: number, column: number): Cell => ({
        row: Math.min(Math.max(row, 0), size.rows),
        column: Math.min(Math.max(column, 0), size.columns - 1),
    });
    switch (key) {
        case 'ArrowUp':
            return to(control ? 0 : from.row - 1, from.column);
        case 'ArrowDown':
            return to(control ? size.rows : from.row + 1, from.column);
        case 'ArrowLeft':
            return to(from.row, from.column - 1);
        case 'ArrowRight':
            return to(from.row, from.column + 1);
        case 'Home':
            return to(control ? 0 : from.row, 0);
        case 'End':
            return to(control ? size.rows : from.row, size.columns - 1);
        case 'PageUp':
            return to(from.row === 0 ? 0 : Math.max(1, from.row - size.page), from.column);
        case 'PageDown':
            return to(from.row + size.page, from.column);
        default:
            return undefined;
    }
}
