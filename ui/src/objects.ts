// The objects of a work as rows, from its spec and the status that the agent reports.

import {lastChange} from './agent';
import {Condition, Conditions, conditionsOf} from './conditions';
import {Fields, fields, list, map, maps, number, text, textOf} from './fields';
import {MASK, hidden, isSecret, secretValues} from './masked';
import {Verdict} from './verdict';

/** A value that the agent reports by a feedback rule. */
export interface Feedback {
    readonly name: string;
    readonly value: string;
}

export interface ObjectRow {
    /** Unique in its work. */
    readonly id: string;
    readonly group: string;
    readonly kind: string;
    /** Empty for none. */
    readonly namespace: string;
    readonly name: string;
    /** Its position in the work, which is shown if it has no name. */
    readonly place: string;
    /** True if the agent applied it; undefined if it has not tried. */
    readonly applied: boolean | undefined;
    /** True if it is on the cluster; undefined if the agent has not checked. */
    readonly available: boolean | undefined;
    readonly verdict: Verdict;
    /** The reason for the health; may be empty. */
    readonly message: string;
    readonly feedback: readonly Feedback[];
    readonly conditions: readonly Condition[];
    /** The time of the last change of its conditions. */
    readonly since: string | undefined;
    /** Its manifest in the work, if that has it. */
    readonly manifest: unknown;
}

/** Returns a key of the object, which is unique if all objects of the work have names and are reported once. */
export function keyOf(row: Pick<ObjectRow, 'group' | 'kind' | 'namespace' | 'name'>): string {
    return [row.group, row.kind, row.namespace, row.name].join('/');
}

/** Returns the name that the health checks show, such as `Deployment shop/web`. */
export function shortName(row: Pick<ObjectRow, 'kind' | 'namespace' | 'name' | 'place'>): string {
    return row.kind === '' || row.name === '' ? row.place : `${row.kind} ${placedName(row)}`;
}

/** Returns `shop/web`, or `web` without a namespace. */
export function placedName(row: Pick<ObjectRow, 'namespace' | 'name' | 'place'>): string {
    if (row.name === '') return row.place;
    return row.namespace === '' ? row.name : `${row.namespace}/${row.name}`;
}

/** Returns the manifests in the spec of a work, or of a template of works. */
export function carried(spec: Fields): readonly unknown[] {
    return list(map(spec, 'workload'), 'manifests');
}

/** Returns the row of an object without a usable status. */
export function unseen(manifest: unknown, verdict: Verdict, message: string): ObjectRow {
    const object = fields(manifest);
    const metadata = map(object, 'metadata');
    const version = textOf(object, 'apiVersion');
    return {
        id: '',
        group: version.includes('/') ? version.slice(0, version.indexOf('/')) : '',
        kind: textOf(object, 'kind'),
        namespace: textOf(metadata, 'namespace'),
        name: textOf(metadata, 'name'),
        place: 'an object without a name',
        applied: undefined,
        available: undefined,
        verdict,
        message,
        feedback: [],
        conditions: [],
        since: undefined,
        manifest,
    };
}

/** Returns the row of an object from its status, without its health yet. */
export function named(at: number, item: unknown, conditions: Conditions = conditionsOf(fields(item))): ObjectRow {
    const manifest = fields(item);
    const meta = map(manifest, 'resourceMeta');
    return {
        id: '',
        group: textOf(meta, 'group'),
        kind: text(meta, 'kind') ?? textOf(meta, 'resource'),
        namespace: textOf(meta, 'namespace'),
        name: textOf(meta, 'name'),
        place: `manifests[${number(meta, 'ordinal') ?? at}]`,
        applied: known(conditions, 'Applied'),
        available: known(conditions, 'Available'),
        verdict: 'Waiting',
        message: '',
        feedback: feedbackOf(manifest),
        conditions: [...conditions.all.values()],
        since: lastChange(conditions.all.values()),
        manifest: undefined,
    };
}

function known(conditions: Conditions, type: string): boolean | undefined {
    const status = conditions.all.get(type)?.status;
    return status === 'True' ? true : status === 'False' ? false : undefined;
}

function feedbackOf(manifest: Fields): Feedback[] {
    return maps(map(manifest, 'statusFeedback'), 'values').map(value => {
        const field = map(value, 'fieldValue');
        const found = field['integer'] ?? field['string'] ?? field['boolean'] ?? field['jsonRaw'];
        return {name: textOf(value, 'name'), value: found === undefined || found === null ? '' : String(found)};
    });
}

/** Returns the rows with ids that stay the same while the objects do. */
export function identified(rows: readonly ObjectRow[]): ObjectRow[] {
    const seen = new Map<string, number>();
    return rows.map(row => {
        const key = keyOf(row);
        const before = seen.get(key) ?? 0;
        seen.set(key, before + 1);
        return {...row, id: before === 0 ? key : `${key} ${before + 1}`};
    });
}

/** Returns the row with the values of a Secret masked everywhere. */
export function presentable(row: ObjectRow): ObjectRow {
    if (!isSecret(row)) return row;
    const values = secretValues(fields(row.manifest));
    const conditions = row.conditions.map(condition => ({
        ...condition,
        message: condition.message === undefined ? undefined : hidden(condition.message, values),
    }));
    const feedback = row.feedback.map(({name}) => ({name, value: MASK}));
    return {...row, message: hidden(row.message, values), feedback, conditions};
}

/** Returns true if the object reports that it is suspended. */
export function isSuspended(row: ObjectRow): boolean {
    return row.feedback.find(value => value.name === 'Suspended')?.value === 'true';
}
