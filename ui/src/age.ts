// Formats the age of Kubernetes timestamps.

const UNITS: readonly (readonly [string, number])[] = [
    ['d', 86_400],
    ['h', 3_600],
    ['m', 60],
    ['s', 1],
];

/** Returns an age such as `2 h 5 m`, or undefined without a time. Future times, from a fast clock, count as now. `now` is in milliseconds. */
export function age(since: string | undefined, now: number): string | undefined {
    const then = Date.parse(since ?? '');
    if (Number.isNaN(then)) return undefined;
    let left = Math.max(0, Math.floor((now - then) / 1000));
    const found = UNITS.findIndex(([, length]) => left >= length);
    const first = found < 0 ? UNITS.length - 1 : found;
    // Days are shown with hours, and hours with minutes. Minutes are shown without seconds.
    const told: string[] = [];
    for (const [unit, length] of UNITS.slice(first, first < 2 ? first + 2 : first + 1)) {
        const count = Math.floor(left / length);
        left -= count * length;
        if (count > 0 || told.length === 0) told.push(`${count} ${unit}`);
    }
    return told.join(' ');
}

/** Returns the time some seconds before `now`, which is in milliseconds, in the format of Kubernetes. */
export function ago(seconds: number, now: number): string {
    return `${new Date(now - seconds * 1000).toISOString().slice(0, 19)}Z`;
}
