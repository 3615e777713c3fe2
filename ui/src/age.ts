// Times as Kubernetes writes them, told as their age.

const UNITS: readonly (readonly [string, number])[] = [
    ['d', 86_400],
    ['h', 3_600],
    ['m', 60],
    ['s', 1],
];

/** `2 h 5 m`; a time to come, by a clock that is ahead, is now. Nothing where there is no time. `now` is in milliseconds. */
export function age(since: string | undefined, now: number): string | undefined {
    const then = Date.parse(since ?? '');
    if (Number.isNaN(then)) return undefined;
    let left = Math.max(0, Math.floor((now - then) / 1000));
    const found = UNITS.findIndex(([, length]) => left >= length);
    const first = found < 0 ? UNITS.length - 1 : found;
    // Days are told with hours, hours with minutes; who waits for minutes does not count seconds.
    const told: string[] = [];
    for (const [unit, length] of UNITS.slice(first, first < 2 ? first + 2 : first + 1)) {
        const count = Math.floor(left / length);
        left -= count * length;
        if (count > 0 || told.length === 0) told.push(`${count} ${unit}`);
    }
    return told.join(' ');
}

/** A time so many seconds before `now`, which is in milliseconds, as Kubernetes writes it. */
export function ago(seconds: number, now: number): string {
    return `${new Date(now - seconds * 1000).toISOString().slice(0, 19)}Z`;
}
