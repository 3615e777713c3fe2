// Formats the age of Kubernetes timestamps.

const UNITS: readonly (readonly [string, number])[] = [
    ['d', 86_400],
    ['h', 3_600],
    ['m', 60],
    ['s', 1],
];

/**
 * Returns an age, such as `2 h 5 m`, or undefined if `since` is not a time. A future time, from a fast clock, counts as now. `now`
 * is in milliseconds.
 */
export function age(since: string | undefined, now: number): string | undefined {
    const then = Date.parse(since ?? '');
    if (Number.isNaN(then)) return undefined;
    let remaining = Math.max(0, Math.floor((now - then) / 1000));
    const largest = UNITS.findIndex(([, length]) => remaining >= length);
    const first = largest < 0 ? UNITS.length - 1 : largest;
    // Days are shown with hours, and hours with minutes. Minutes are shown without seconds.
    const parts: string[] = [];
    for (const [unit, length] of UNITS.slice(first, first < 2 ? first + 2 : first + 1)) {
        const count = Math.floor(remaining / length);
        remaining -= count * length;
        if (count > 0 || parts.length === 0) parts.push(`${count} ${unit}`);
    }
    return parts.join(' ');
}

/** Returns the time some seconds before `now` in the format of Kubernetes. `now` is in milliseconds. */
export function ago(seconds: number, now: number): string {
    return `${new Date(now - seconds * 1000).toISOString().slice(0, 19)}Z`;
}
