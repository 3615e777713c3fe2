// The objects of a work: what the spec carries and what the agent says of it, as rows.

import {lastChange} from './agent';
import {Condition, Conditions, conditionsOf} from './conditions';
import {Fields, fields, list, map, maps, number, text, textOf} from './fields';
import {MASK, hidden, isSecret, secretValues} from './masked';
import {Verdict} from './verdict';

/** A value that the agent's feedback rules brought. */
export interface Feedback {
    readonly name: string;
    readonly value: string;
}

export interface ObjectRow {
    /** Tells it from all others of its work. */
    readonly id: string;
    readonly group: string;
    readonly kind: string;
    /** Empty for none. */
    readonly namespace: string;
    readonly name: string;
    /** What it is called where its name is not known: its place in the work. */
    readonly place: string;
    /** Whether the agent has applied it, where it has tried. */
    readonly applied: boolean | undefined;
    /** Whether it is on the cluster, where the agent has looked. */
    readonly available: boolean | undefined;
    readonly verdict: Verdict;
    /** Why; empty where nothing is to be said. */
    readonly message: string;
    readonly feedback: readonly Feedback[];
    readonly conditions: readonly Condition[];
    /** When one of its conditions last changed. */
    readonly since: string | undefined;
    /** Its manifest among those of the work, where it is there. */
    readonly manifest: unknown;
}

/** Tells objects of a work apart, as long as they have names and none is told of twice. */
export function keyOf(row: Pick<ObjectRow, 'group' | 'kind' | 'namespace' | 'name'>): string {
    return [row.group, row.kind, row.namespace, row.name].join('/');
}

/** What the health checks call it: `Deployment shop/web`. */
export function shortName(row: Pick<ObjectRow, 'kind' | 'namespace' | 'name' | 'place'>): string {
    return row.kind === '' || row.name === '' ? row.place : `${row.kind} ${placedName(row)}`;
}

/** `shop/web`, or `web` where it has no namespace. */
export function placedName(row: Pick<ObjectRow, 'namespace' | 'name' | 'place'>): string {
    if (row.name === '') return row.place;
    return row.namespace === '' ? row.name : `${row.namespace}/${row.name}`;
}

/** What the spec of a work, or of what is made into one, carries. */
export function carried(spec: Fields): readonly unknown[] {
    return list(map(spec, 'workload'), 'manifests');
}

/** An object of the spec of which the status has nothing that counts. */
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

/** What the status calls an object, and what the agent has said of it; no verdict yet. */
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

/** The same rows, each with an id that stays as long as the objects do. */
export function identified(rows: readonly ObjectRow[]): ObjectRow[] {
    const seen = new Map<string, number>();
    return rows.map(row => {
        const key = keyOf(row);
        const before = seen.get(key) ?? 0;
        seen.set(key, before + 1);
        return {...row, id: before === 0 ? key : `${key} ${before + 1}`};
    });
}

/** What of a row may be shown: the values of a Secret are not, wherever they have come to stand. */
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

/** Whether the object says that it waits for somebody. */
export function isSuspended(row: ObjectRow): boolean {
    return row.feedback.find(value => value.name === 'Suspended')?.value === 'true';
}
