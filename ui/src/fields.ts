// Reads fields of Kubernetes objects. They may have any content: a value of the wrong type counts as missing.

export type Fields = Readonly<Record<string, unknown>>;

const NOTHING: Fields = Object.freeze({});

/** Returns the value if it is a mapping, otherwise an empty one. */
export function fields(value: unknown): Fields {
    return isMap(value) ? value : NOTHING;
}

export function isMap(value: unknown): value is Fields {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns a field that is a mapping, or an empty one. */
export function map(owner: Fields, key: string): Fields {
    return fields(owner[key]);
}

/** Returns a string field that is not empty. */
export function text(owner: Fields, key: string): string | undefined {
    const value = owner[key];
    return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns a string field, or an empty string. */
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

/** Returns the mappings in a list field. */
export function maps(owner: Fields, key: string): Fields[] {
    return list(owner, key).filter(isMap);
}

/** Returns the name of a value's type. */
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
