// The values of Secrets are never shown: not in a manifest, not in one that is carried in another, and not where they are
// quoted, as in the annotations in which tools keep what they applied.

import {Fields, isMap, map, textOf} from './fields';

/** Stands for a value, whatever its length. */
export const MASK = '••••••••';

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** A shorter value may be a word of the sentence that it is found in. */
const LEAST_QUOTED = 4;

export function isSecret(object: {readonly kind: string}): boolean {
    return object.kind === 'Secret';
}

/** The same with the values of all Secrets in it masked. */
export function masked(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(masked);
    if (!isMap(value)) return value;
    const kind = textOf(value, 'kind');
    const items = value['items'];
    if (kind === 'SecretList' && Array.isArray(items)) {
        return each(value, (key, part) =>
            key === 'items' ? items.map(item => (isMap(item) ? secret(item) : MASK)) : masked(part),
        );
    }
    return isSecret({kind})
        ? secret(value)
        : each(value, (key, part) => (key === 'annotations' ? annotations(part) : masked(part)));
}

function secret(object: Fields): Fields {
    const values = secretValues(object);
    return each(object, (key, part) => {
        if (key === 'data' || key === 'stringData')
            return isMap(part) ? each(part, () => MASK) : part === null ? null : MASK;
        if (key !== 'metadata' || !isMap(part)) return masked(part);
        return each(part, (name, value) => (name === 'annotations' ? annotations(value, values) : masked(value)));
    });
}

/** What tools keep of an object in its annotations is the object once more. `values` are those of the Secret that has them. */
function annotations(value: unknown, values?: ReadonlySet<string>): unknown {
    if (!isMap(value)) return masked(value);
    return each(value, (name, text) => {
        if (typeof text !== 'string') return masked(text);
        const quotes = name === LAST_APPLIED || /^\s*[[{]/.test(text);
        if (values !== undefined) return quotes ? MASK : hidden(text, values);
        return quotes ? maskedText(text) : text;
    });
}

function maskedText(text: string): string {
    try {
        return JSON.stringify(masked(JSON.parse(text)));
    } catch {
        return text.includes('Secret') ? MASK : text;
    }
}

function each(object: Fields, change: (key: string, value: unknown) => unknown): Fields {
    return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(key, value)]));
}

/** The values of a Secret, and what they are in plain text, as far as they are long enough to be told from other words. */
export function secretValues(object: Fields): ReadonlySet<string> {
    const values = Object.values(map(object, 'data'));
    const all = [...Object.values(map(object, 'stringData')), ...values, ...values.map(plain)];
    return new Set(all.filter((text): text is string => typeof text === 'string' && text.length >= LEAST_QUOTED));
}

function plain(text: unknown): string | undefined {
    try {
        return typeof text === 'string'
            ? new TextDecoder().decode(Uint8Array.from(atob(text), char => char.charCodeAt(0)))
            : undefined;
    } catch {
        return undefined;
    }
}

/** A text with these values masked. */
export function hidden(text: string, values: ReadonlySet<string>): string {
    return [...values].reduce((text, value) => text.split(value).join(MASK), text);
}
