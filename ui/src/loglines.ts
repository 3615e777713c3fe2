// Divides a stream of logs into lines to show. Logs may contain anything, and have no end.

/** The number of lines that are kept. */
export const MAX_LINES = 10_000;
/** The length at which a line is divided. */
const MAX_LENGTH = 16_384;

/** Escape sequences of terminals, other control characters except tabs, and those that change the direction of text. */
const CONTROL =
    /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

export interface LogLines {
    /** The last lines. */
    readonly lines: readonly string[];
    /** The start of the next line. */
    readonly rest: string;
    /** The number of earlier lines that are no longer kept. */
    readonly dropped: number;
}

export const NO_LINES: LogLines = {lines: [], rest: '', dropped: 0};

/** Returns the lines with a further part of the stream. */
export function appended(before: LogLines, part: string): LogLines {
    const parts = (before.rest + part).split('\n');
    let rest = parts.pop() ?? '';
    const added = parts.flatMap(divided);
    const tooLong = divided(rest);
    rest = tooLong.pop() ?? '';
    const lines = [...before.lines, ...added, ...tooLong];
    const dropped = Math.max(0, lines.length - MAX_LINES);
    return {lines: dropped === 0 ? lines : lines.slice(dropped), rest, dropped: before.dropped + dropped};
}

function divided(line: string): string[] {
    const parts: string[] = [];
    for (let start = 0; start === 0 || start < line.length; start += MAX_LENGTH)
        parts.push(line.slice(start, start + MAX_LENGTH));
    return parts;
}

/** Returns the text of a line without what a terminal would interpret. */
export function plain(line: string): string {
    return line.replace(CONTROL, '');
}

/** Returns the parts of a text, with those at odd places equal to the words in any case. */
export function matches(text: string, words: string): string[] {
    if (words === '') return [text];
    const parts: string[] = [];
    const [inside, wanted] = [text.toLowerCase(), words.toLowerCase()];
    // Some characters have another length in lower case.
    if (inside.length !== text.length) return [text];
    let start = 0;
    for (let at = inside.indexOf(wanted); at >= 0; at = inside.indexOf(wanted, start)) {
        parts.push(text.slice(start, at), text.slice(at, at + wanted.length));
        start = at + wanted.length;
    }
    return [...parts, text.slice(start)];
}
