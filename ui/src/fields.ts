// What stands in an object of Kubernetes, whatever stands there: what is not of the type asked for is as good as nothing.

export type Fields = Readonly<Record<string, unknown>>;

const NOTHING: Fields = Object.freeze({});

/** A mapping, or an empty one. */
export function fields(value: unknown): Fields {
    return isMap(value) ? value : NOTHING;
}

export function isMap(value: unknown): value is Fields {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The mapping that is there, or an empty one. */
export function map(owner: Fields, key: string): Fields {
    return fields(owner[key]);
}

/** A text that is not empty. */
export function text(owner: Fields, key: string): string | undefined {
    const value = owner[key];
    return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A text, or an empty one. */
export function textOf(owner: Fields, key: string): string {
    return text(owner, key) ?? '';
}

export function number(owner: Fields, key: string): number | undefined {
    const value = owner[key];
    return typeof value === 'number' ? value : undefined;
}

export function list(owner: Fields, key: string): readonly unknown[] {
    const value = owner[key];
    return Array.isArray(value) ? value : [];
}

/** The mappings in a list. */
export function maps(owner: Fields, key: string): Fields[] {
    return list(owner, key).filter(isMap);
}

/** What a value is, in words. */
export function typeName(value: unknown): string {
    if (value === null || value === undefined) return 'null';
    if (Array.isArray(value)) return 'a list';
    switch (typeof value) {
        case 'boolean':
            return 'true or false';
        case 'number':
            return 'a number';
        case 'string':
            return 'text';
        default:
            return 'a mapping';
    }
}
