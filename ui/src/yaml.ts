// Formats an object as YAML for reading: in block style, with apiVersion, kind and metadata first.

import {Fields, isMap} from './fields';

/** Text that needs no quotes in any version of YAML. */
const PLAIN = /^[A-Za-z_/](?:[A-Za-z0-9_./@+=(),•-]|:(?=\S)| (?=[^#\s]))*$/;
/** Text that would be read as another type. */
const WORDS = /^(?:y|n|yes|no|on|off|true|false|null|\.inf|\.nan|~)$/i;

export function yaml(value: unknown): string {
    return `${lines(value).join('\n')}\n`;
}

function lines(value: unknown): string[] {
    if (Array.isArray(value) && value.length > 0) {
        return value.flatMap((item: unknown) => after('-', lines(item), isBlock(item)));
    }
    if (isMap(value) && Object.keys(value).length > 0) {
        return entries(value).flatMap(([key, part]) => {
            const name = `${scalar(key)}:`;
            if (typeof part === 'string' && isLong(part))
                return [`${name} ${literal(part)}`, ...indented(textLines(part))];
            const below = lines(part);
            if (!isBlock(part)) return [`${name} ${below.join('')}`];
            return [name, ...(Array.isArray(part) ? below : indented(below))];
        });
    }
    if (typeof value === 'string' && isLong(value))
        return [literal(value), ...textLines(value).map(line => line && `  ${line}`)];
    return [scalar(value)];
}

const FIRST = ['apiVersion', 'kind', 'metadata'];

function entries(object: Fields): [string, unknown][] {
    if (!('kind' in object)) return Object.entries(object);
    const place = (key: string): number => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);
    return Object.entries(object).sort(([one], [other]) => place(one) - place(other));
}

function after(mark: string, below: string[], block: boolean): string[] {
    const [first = '', ...rest] = below;
    return [`${mark} ${first}`, ...(block ? indented(rest) : rest)];
}

function indented(below: readonly string[]): string[] {
    return below.map(line => (line === '' ? line : `  ${line}`));
}

function isBlock(value: unknown): boolean {
    return Array.isArray(value) ? value.length > 0 : isMap(value) && Object.keys(value).length > 0;
}

/** Returns true if the text has several lines and can be a block scalar. */
function isLong(text: string): boolean {
    return (
        /[^\n]\n/.test(text) &&
        /^[^\s]/.test(text) &&
        !/[^\n\t -~\u00a0-\ud7ff]/.test(text) &&
        !/[ \t](?:\n|$)/.test(text)
    );
}

function literal(text: string): string {
    return text.endsWith('\n\n') ? '|+' : text.endsWith('\n') ? '|' : '|-';
}

function textLines(text: string): string[] {
    return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
}

function scalar(value: unknown): string {
    if (Array.isArray(value)) return '[]';
    if (isMap(value)) return '{}';
    if (typeof value !== 'string') return JSON.stringify(value ?? null);
    return PLAIN.test(value) && !WORDS.test(value) && !value.endsWith(':') ? value : JSON.stringify(value);
}
