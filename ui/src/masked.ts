// Masks the values of Secrets in manifests, in manifests inside others, and in the annotations that contain the applied object.

import {Fields, isMap, map, textOf} from './fields';

/** Replaces a value, whatever its length. */
export const MASK = '••••••••';

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** The minimum length of a value to mask in text: a shorter one may be an ordinary word. */
const MIN_MASKED_LENGTH = 4;

export function isSecret(object: {readonly kind: string}): boolean {
    return object.kind === 'Secret';
}

/** Returns a copy with the values of all Secrets masked. */
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

/** Masks annotations, in which tools store a copy of the object. `values` are the values of the Secret that has the annotations. */
function annotations(value: unknown, values?: ReadonlySet<string>): unknown {
    if (!isMap(value)) return masked(value);
    return each(value, (name, text) => {
        if (typeof text !== 'string') return masked(text);
        const quotes = name === LAST_APPLIED || /^\s*[[{]/.test(text);
        if (values !== undefined) return quotes ? MASK : withMasked(text, values);
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

/** Returns the values of a Secret, encoded and decoded, that are long enough to mask in text. */
export function secretValues(object: Fields): ReadonlySet<string> {
    const values = Object.values(map(object, 'data'));
    const all = [...Object.values(map(object, 'stringData')), ...values, ...values.map(decoded)];
    return new Set(all.filter((text): text is string => typeof text === 'string' && text.length >= MIN_MASKED_LENGTH));
}

function decoded(text: unknown): string | undefined {
    try {
        return typeof text === 'string'
            ? new TextDecoder().decode(Uint8Array.from(atob(text), char => char.charCodeAt(0)))
            : undefined;
    } catch {
        return undefined;
    }
}

/** Returns the text with these values masked; the longest first, because another one may be a part of it. */
export function withMasked(text: string, values: ReadonlySet<string>): string {
    const longestFirst = [...values].sort((one, other) => other.length - one.length);
    return longestFirst.reduce((text, value) => text.split(value).join(MASK), text);
}
