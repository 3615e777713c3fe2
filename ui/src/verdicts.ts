// Evaluates the values that the agent reports on an object, by the rules of crates/ocm/src/verdicts/table.rs. verdicts.json is
// generated from them.

import {Fields, map, maps, number, text} from './fields';
import {Evaluated, HealthStatus} from './health';
import table from './verdicts.json';

/** The name of the value with an object's content hash. */
export const CONTENT_HASH = 'ContentHash';

type Value = number | string | boolean;
type Values = ReadonlyMap<string, Value>;

/** A condition: its kind, and names of values; of `is` and `isNot`, a name and a text; of `less`, a number and a number. */
type Test = readonly [string, string, string?] | readonly ['less', readonly string[], readonly string[]];

interface Rule {
    readonly health: HealthStatus;
    readonly when: readonly Test[];
    readonly message: string;
}

export interface Verdicts {
    /** The names of the values that the rules use. */
    readonly needs: readonly string[];
    /** The first rule that applies decides. */
    readonly rules: readonly Rule[];
}

const VERDICTS = table as unknown as Readonly<Record<string, Verdicts>>;

/** Returns the verdicts on a kind, or undefined if the table does not have it. */
export function verdictsOn(group: string, kind: string): Verdicts | undefined {
    const name = group === '' ? kind : `${kind}.${group}`;
    return Object.prototype.hasOwnProperty.call(VERDICTS, name) ? VERDICTS[name] : undefined;
}

/** Returns the values that the agent reports on an object. */
export function valuesOf(item: Fields): Values {
    const values = new Map<string, Value>();
    for (const reported of maps(map(item, 'statusFeedback'), 'values')) {
        const field = map(reported, 'fieldValue');
        const flag = typeof field['boolean'] === 'boolean' ? field['boolean'] : undefined;
        const value = number(field, 'integer') ?? text(field, 'string') ?? text(field, 'jsonRaw') ?? flag;
        const name = text(reported, 'name');
        if (name !== undefined && value !== undefined) values.set(name, value);
    }
    return values;
}

/** Evaluates the values of an object. A healthy object has no message. */
export function evaluate(verdicts: Verdicts, values: Values): Evaluated {
    const rule = verdicts.rules.find(({when}) => when.every(test => holds(test, values)));
    return rule === undefined ? ['Healthy', ''] : [rule.health, messageOf(rule, values)];
}

function numberOf(values: Values, name: string | undefined): number {
    const value = name === undefined ? undefined : values.get(name);
    return typeof value === 'number' ? value : 0;
}

function textOf(values: Values, name: string): string {
    const value = values.get(name);
    return typeof value === 'string' ? value : '';
}

function difference(values: Values, names: readonly string[]): number {
    return numberOf(values, names[0]) - numberOf(values, names[1]);
}

function holds(test: Test, values: Values): boolean {
    const [kind, one, other] = test;
    if (typeof one !== 'string') return difference(values, one) < difference(values, other as readonly string[]);
    const text = typeof other === 'string' ? other : '';
    switch (kind) {
        case 'has':
            return values.has(one);
        case 'lacks':
            return !values.has(one);
        case 'is':
            return textOf(values, one) === text;
        case 'isNot':
            return textOf(values, one) !== text;
        case 'isTrue':
            return values.get(one) === true;
        case 'isNotTrue':
            return values.get(one) !== true;
        case 'earlier':
            return values.has(one) && textOf(values, one) < textOf(values, text);
        case 'differs':
            return values.get(one) !== values.get(text);
        default:
            return false;
    }
}

/** Returns the message, in which `{Name}` stands for a text, `{#Name}` for a number and `{#Name-Other}` for a difference. */
function messageOf(rule: Rule, values: Values): string {
    return rule.message.replace(/\{(#?)([^}]*)\}/g, (_, isNumber: string, names: string) =>
        isNumber === '' ? textOf(values, names) : String(difference(values, names.split('-'))),
    );
}
