// Reads the conditions of a status, which may have any content.

import {Fields, isMap, number, text, textOf, typeName} from './fields';

export interface Condition {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    /** The last transition time in the format of Kubernetes, which sorts like the time. */
    readonly since: string;
    readonly message: string | undefined;
    readonly generation: number | undefined;
}

/** The conditions of a work or of an object. */
export interface Conditions {
    /** By type. Of several conditions with the same type, the last counts. */
    readonly all: ReadonlyMap<string, Condition>;
    /** A description of the first entry that is not a condition. */
    readonly fault: string | undefined;
}

/** Reads the conditions of a work or of an object. */
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

/** Returns true if the condition exists and has this status. */
export function is(condition: Condition | undefined, status: string): boolean {
    return condition?.status === status;
}

/**
 * Returns true if a condition rule evaluated to this status. OCM also sets False if the evaluation failed, which is not the state
 * of the object.
 */
export function evaluatedTo(condition: Condition | undefined, status: string): boolean {
    return is(condition, status) && condition?.reason === 'ConditionRuleEvaluated';
}

/** Returns true if the condition is of an earlier generation. */
export function isBehind(condition: Condition | undefined, generation: number | undefined): boolean {
    return condition !== undefined && generation !== undefined && (condition.generation ?? 0) < generation;
}
