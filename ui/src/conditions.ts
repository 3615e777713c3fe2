// Conditions as they stand in a status, whatever stands there.

import {Fields, isMap, number, text, textOf, typeName} from './fields';

export interface Condition {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    /** When it became so, as Kubernetes writes it: such texts compare as their times do. */
    readonly since: string;
    readonly message: string | undefined;
    readonly generation: number | undefined;
}

/** The conditions of a work or of an object. */
export interface Conditions {
    /** By type; of several the last. */
    readonly all: ReadonlyMap<string, Condition>;
    /** What stands there and is no condition. */
    readonly fault: string | undefined;
}

export function conditionsOf(owner: Fields): Conditions {
    const all = new Map<string, Condition>();
    const items = owner['conditions'];
    if (items === undefined || items === null) return {all, fault: undefined};
    if (!Array.isArray(items)) return {all, fault: `conditions is ${typeName(items)}`};
    let fault: string | undefined;
    items.forEach((item: unknown, at) => {
        const type = isMap(item) ? text(item, 'type') : undefined;
        if (isMap(item) && type !== undefined) all.set(type, condition(type, item));
        else fault ??= `conditions[${at}] is not a condition`;
    });
    return {all, fault};
}

function condition(type: string, fields: Fields): Condition {
    return {
        type,
        status: textOf(fields, 'status'),
        reason: textOf(fields, 'reason'),
        since: textOf(fields, 'lastTransitionTime'),
        message: text(fields, 'message'),
        generation: number(fields, 'observedGeneration'),
    };
}

/** Whether it is there and has this status. */
export function is(condition: Condition | undefined, status: string): boolean {
    return condition?.status === status;
}

/** What a condition rule says. One that could not be evaluated says False too, and nothing about the object. */
export function says(condition: Condition | undefined, status: string): boolean {
    return is(condition, status) && condition?.reason === 'ConditionRuleEvaluated';
}

/** Whether it is of an earlier generation than this. */
export function isBehind(condition: Condition | undefined, generation: number | undefined): boolean {
    return condition !== undefined && generation !== undefined && (condition.generation ?? 0) < generation;
}
