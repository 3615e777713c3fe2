// Creates the rows of a work's objects, from its spec and the status that the agent reports.

import {lastChange} from './agent';
import {Condition, Conditions, conditionsOf} from './conditions';
import {Fields, fields, list, map, maps, number, text, textOf} from './fields';
import {HealthStatus} from './health';
import {MASK, isSecret, secretValues, withMasked} from './masked';

/** A value that the agent reports because of a feedback rule. */
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
    /** Shown instead of the name if it has none: its position in the work. */
    readonly placeholder: string;
    /** True if the agent applied it; undefined if it has not tried. */
    readonly applied: boolean | undefined;
    /** True if it is on the cluster; undefined if the agent has not checked. */
    readonly available: boolean | undefined;
    readonly health: HealthStatus;
    /** The reason for the health; may be empty. */
    readonly message: string;
    readonly feedback: readonly Feedback[];
    readonly conditions: readonly Condition[];
    /** The time of the last change of its conditions. */
    readonly since: string | undefined;
    /** Its manifest in the work; undefined if the work no longer contains it. */
    readonly manifest: unknown;
}

/** Returns a key of the object. It is unique if all objects of the work have names and are reported once. */
export function keyOf(row: Pick<ObjectRow, 'group' | 'kind' | 'namespace' | 'name'>): string {
    return [row.group, row.kind, row.namespace, row.name].join('/');
}

/** Returns the name in the messages of the health checks, such as `Deployment shop/web`. */
export function shortName(row: Pick<ObjectRow, 'kind' | 'namespace' | 'name' | 'placeholder'>): string {
    return row.kind === '' || row.name === '' ? row.placeholder : `${row.kind} ${qualifiedName(row)}`;
}

/** Returns `shop/web`, or `web` without a namespace. */
export function qualifiedName(row: Pick<ObjectRow, 'namespace' | 'name' | 'placeholder'>): string {
    if (row.name === '') return row.placeholder;
    return row.namespace === '' ? row.name : `${row.namespace}/${row.name}`;
}

/** Returns the manifests in the spec of a work, or of a template of works. */
export function manifestsOf(spec: Fields): readonly unknown[] {
    return list(map(spec, 'workload'), 'manifests');
}

/** Returns the row of an object of the spec without a valid status. */
export function rowFromManifest(manifest: unknown, health: HealthStatus, message: string): ObjectRow {
    const object = fields(manifest);
    const metadata = map(object, 'metadata');
    const version = textOf(object, 'apiVersion');
    return {
        id: '',
        group: version.includes('/') ? version.slice(0, version.indexOf('/')) : '',
        kind: textOf(object, 'kind'),
        namespace: textOf(metadata, 'namespace'),
        name: textOf(metadata, 'name'),
        placeholder: 'an object without a name',
        applied: undefined,
        available: undefined,
        health,
        message,
        feedback: [],
        conditions: [],
        since: undefined,
        manifest,
    };
}

/** Returns the row of an object from its status, without its health. */
export function rowFromStatus(
    at: number,
    item: unknown,
    conditions: Conditions = conditionsOf(fields(item)),
): ObjectRow {
    const manifest = fields(item);
    const meta = map(manifest, 'resourceMeta');
    return {
        id: '',
        group: textOf(meta, 'group'),
        kind: text(meta, 'kind') ?? textOf(meta, 'resource'),
        namespace: textOf(meta, 'namespace'),
        name: textOf(meta, 'name'),
        placeholder: `manifests[${number(meta, 'ordinal') ?? at}]`,
        applied: statusOf(conditions, 'Applied'),
        available: statusOf(conditions, 'Available'),
        health: 'Waiting',
        message: '',
        feedback: feedbackOf(manifest),
        conditions: [...conditions.all.values()],
        since: lastChange(conditions.all.values()),
        manifest: undefined,
    };
}

function statusOf(conditions: Conditions, type: string): boolean | undefined {
    const status = conditions.all.get(type)?.status;
    return status === 'True' ? true : status === 'False' ? false : undefined;
}

function feedbackOf(manifest: Fields): Feedback[] {
    return maps(map(manifest, 'statusFeedback'), 'values').map(value => {
        const field = map(value, 'fieldValue');
        const content = field['integer'] ?? field['string'] ?? field['boolean'] ?? field['jsonRaw'];
        return {name: textOf(value, 'name'), value: content === undefined || content === null ? '' : String(content)};
    });
}

/** Returns the rows with their ids, which do not change while the work has the same objects. */
export function withIds(rows: readonly ObjectRow[]): ObjectRow[] {
    const counts = new Map<string, number>();
    return rows.map(row => {
        const key = keyOf(row);
        const previous = counts.get(key) ?? 0;
        counts.set(key, previous + 1);
        return {...row, id: previous === 0 ? key : `${key} ${previous + 1}`};
    });
}

/** Returns the row; of a Secret, with its values masked in all fields. */
export function maskedRow(row: ObjectRow): ObjectRow {
    if (!isSecret(row)) return row;
    const values = secretValues(fields(row.manifest));
    const conditions = row.conditions.map(condition => ({
        ...condition,
        message: condition.message === undefined ? undefined : withMasked(condition.message, values),
    }));
    const feedback = row.feedback.map(({name}) => ({name, value: MASK}));
    return {...row, message: withMasked(row.message, values), feedback, conditions};
}
