// Evaluates the health of a ManifestWork and its objects, with the rules of crates/ocm/src/health/work.rs and of the health check in
// deploy/argocd_cm.yaml, which explains each.

import {ago} from './age';
import {lastHeard} from './agent';
import {Condition, Conditions, conditionsOf, is, isBehind, says} from './conditions';
import {Fields, fields, isMap, list, map, maps, number, text, textOf, typeName} from './fields';
import {ObjectRow, carried, identified, isSuspended, keyOf, named, presentable, shortName, unseen} from './objects';
import {Verdict, worst} from './verdict';

/** The number of seconds before a failure counts as lasting. */
const GRACE = 60;

export interface Work {
    readonly cluster: string;
    readonly verdict: Verdict;
    /** The message about the work as a whole; empty if those of its objects are sufficient. */
    readonly message: string;
    readonly objects: readonly ObjectRow[];
    /** The time of the last write of its status. */
    readonly heard: string | undefined;
}

/** The data of the work that the health of its objects depends on. */
interface Told {
    readonly spec: Fields;
    readonly generation: number | undefined;
    readonly conditions: Conditions;
    readonly notApplied: string;
    readonly notLookedAt: string;
    /** A failure since a later time does not count as lasting. */
    readonly grace: string;
    /** True if the work is complete, so that the agent does not process it again. */
    readonly frozen: boolean;
}

/** Evaluates the health of a work at a time in milliseconds. */
export function judge(work: Fields, now: number): Work {
    const metadata = map(work, 'metadata');
    const spec = map(work, 'spec');
    const status = map(work, 'status');
    const name = textOf(metadata, 'namespace');
    const cluster = name === '' ? 'managed cluster without a name' : `managed cluster ${name}`;
    const conditions = conditionsOf(status);
    const generation = number(metadata, 'generation');
    const items = list(map(status, 'resourceStatus'), 'manifests');
    const fault = faultOf(work, conditions);
    const heard = lastHeard(work);
    const whole = (verdict: Verdict, message: string): Work => {
        const unknown = fault !== undefined && verdict === 'Waiting';
        const told: [Verdict, string] = unknown ? ['Unknown', unreadable(fault)] : [verdict, message];
        return {
            cluster: name,
            verdict: told[0],
            message: told[1],
            objects: identified(carried(spec).map(manifest => unseen(manifest, ...told))),
            heard,
        };
    };

    if ('deletionTimestamp' in metadata) {
        const deleting = conditions.all.get('Deleting')?.message;
        const more = deleting === undefined ? '' : `: ${deleting}`;
        return whole('Progressing', `the agent of ${cluster} is removing its objects${more}`);
    }

    const applied = conditions.all.get('Applied');
    const behind = isBehind(applied, generation);
    const told: Told = {
        spec,
        generation,
        conditions,
        notApplied: `waiting for the agent of ${cluster} to apply it`,
        notLookedAt: `waiting for the agent of ${cluster} to look at it`,
        grace: ago(GRACE, now),
        frozen: behind && hasRun(spec, conditions, generation, items),
    };
    if (applied === undefined || !(is(applied, 'True') || is(applied, 'False')) || (behind && !told.frozen)) {
        const why = is(conditions.all.get('Complete'), 'True')
            ? ', which it does not do while the work is complete'
            : '';
        return whole('Waiting', told.notApplied + why);
    }

    let withoutRules = 0;
    const objects: ObjectRow[] = [];
    items.forEach((item, at) => {
        const found = conditionsOf(fields(item));
        const row = named(at, item, found);
        const verdict = verdictOn(row, item, found, told, () => withoutRules++);
        if (verdict !== undefined) objects.push({...row, verdict: verdict[0], message: verdict[1]});
    });
    const rows = withManifests(objects, carried(spec));

    let verdict = worst(
        rows.map(row => row.verdict),
        'Healthy',
    );
    let message = '';
    if (is(applied, 'False') && (verdict === 'Suspended' || verdict === 'Healthy')) {
        verdict = applied.since > told.grace ? 'Progressing' : 'Degraded';
        message = applied.message ?? `the agent of ${cluster} cannot apply it`;
    } else if (fault !== undefined && verdict === 'Healthy') {
        verdict = 'Unknown';
        message = unreadable(fault);
    } else if (verdict === 'Healthy' && withoutRules > 0) {
        message = `${counted(rows.length)}applied on ${cluster}, whose agent does not report health, which OCM 1.0 and newer does`;
    }
    return {cluster: name, verdict, message, objects: rows, heard};
}

/** Returns the message of a healthy work without another message. */
export function allIsWell(work: Work): string {
    return `${counted(work.objects.length)}healthy on managed cluster ${work.cluster}`;
}

function counted(objects: number): string {
    return objects === 0 ? '' : objects === 1 ? '1 object is ' : `${objects} objects are `;
}

function unreadable(fault: string): string {
    return `its status cannot be understood: ${fault}`;
}

/** Returns the first part of the status that an agent does not write like this. */
function faultOf(work: Fields, conditions: Conditions): string | undefined {
    const wrong = (owner: Fields, key: string): string | undefined => {
        const value = owner[key];
        return value === undefined || value === null || isMap(value) ? undefined : `${key} is ${typeName(value)}`;
    };
    const inStatus = (fault: string | undefined): string | undefined =>
        fault === undefined ? undefined : `status.${fault}`;
    const status = map(work, 'status');
    const manifests = map(status, 'resourceStatus')['manifests'];
    const isList = manifests === undefined || manifests === null || Array.isArray(manifests);
    return (
        wrong(work, 'status') ??
        inStatus(conditions.fault) ??
        inStatus(wrong(status, 'resourceStatus')) ??
        inStatus(isList ? undefined : `resourceStatus.manifests is ${typeName(manifests)}`)
    );
}

/** Adds the manifest to each row, and a row for each object of the spec that is not reported. */
function withManifests(rows: readonly ObjectRow[], manifests: readonly unknown[]): ObjectRow[] {
    const silent = new Map<string, ObjectRow>();
    for (const manifest of manifests) {
        const row = unseen(manifest, 'Unknown', 'the agent has not reported on it');
        silent.set(keyOf(row), row);
    }
    const found = rows.map(row => ({...row, manifest: silent.get(keyOf(row))?.manifest}));
    for (const row of rows) silent.delete(keyOf(row));
    return identified([...found, ...silent.values()].map(presentable));
}

/**
 * Returns true if all objects of a complete work are complete. The agent neither applies such a work again nor reports its new
 * generation, and completed objects stay completed.
 */
function hasRun(
    spec: Fields,
    conditions: Conditions,
    generation: number | undefined,
    items: readonly unknown[],
): boolean {
    const complete = conditions.all.get('Complete');
    if (!is(complete, 'True') || isBehind(complete, generation)) return false;
    const done = new Set<string>();
    items.forEach((item, at) => {
        const isDone = is(conditionsOf(fields(item)).all.get('Complete'), 'True');
        const name = shortName(named(at, item));
        if (isDone) done.add(name);
        else done.delete(name);
    });
    return carried(spec).every(manifest => done.has(shortName(unseen(manifest, 'Waiting', ''))));
}

/** Returns the health of an object and the reason, or undefined if it is from an earlier generation. */
function verdictOn(
    row: ObjectRow,
    item: unknown,
    found: Conditions,
    told: Told,
    seenWithoutRules: () => void,
): [Verdict, string] | undefined {
    const verdict = verdictBy(row, fields(item), found, told, seenWithoutRules);
    const fault = isMap(item) ? found.fault : `it is ${typeName(item)}`;
    if (verdict !== undefined && fault !== undefined && (verdict[0] === 'Waiting' || verdict[0] === 'Healthy')) {
        return ['Unknown', unreadable(fault)];
    }
    return verdict;
}

function verdictBy(
    row: ObjectRow,
    item: Fields,
    found: Conditions,
    told: Told,
    seenWithoutRules: () => void,
): [Verdict, string] | undefined {
    const get = (type: string): Condition | undefined => found.all.get(type);
    const [applied, available, healthy, progressing] = [
        get('Applied'),
        get('Available'),
        get('Healthy'),
        get('Progressing'),
    ];
    const waiting: [Verdict, string] = ['Waiting', told.notLookedAt];
    const well: [Verdict, string] = ['Healthy', ''];
    if (applied === undefined) return ['Waiting', told.notApplied];
    if (applied.generation !== undefined && isBehind(applied, told.generation) && !told.frozen) return undefined;
    const fresh = applied.since > told.grace;
    if (is(applied, 'False'))
        return [fresh ? 'Progressing' : 'Degraded', applied.message ?? 'the agent cannot apply it'];
    const broken: [Verdict, string] | undefined = says(healthy, 'False')
        ? ['Degraded', healthy?.message ?? 'it is broken']
        : undefined;
    // The agent does not update a complete object, which may have been deleted: its other conditions are outdated.
    if (is(get('Complete'), 'True')) return broken ?? well;
    if (available !== undefined && is(available, 'False')) {
        // It was missing, and then applied, and not checked since.
        if (applied.since >= available.since && fresh) return waiting;
        return ['Missing', available.message ?? 'it is not on the cluster'];
    }
    if (available !== undefined && !is(available, 'True')) return ['Unknown', available.message ?? told.notLookedAt];

    const rules = rulesOf(item, told.spec);
    if (healthy === undefined && progressing === undefined && (rules.has('Healthy') || rules.has('Progressing'))) {
        const looked = told.conditions.all.get('Available');
        const hasLooked = looked !== undefined && !isBehind(looked, told.generation);
        if (available === undefined || !hasLooked || get('StatusFeedbackSynced') === undefined) return waiting;
        seenWithoutRules();
        return well;
    }
    if ((rules.has('Healthy') && healthy === undefined) || (rules.has('Progressing') && progressing === undefined))
        return waiting;
    const verdicts = [healthy, progressing].filter(each => each !== undefined);
    if (verdicts.some(each => isBehind(each, told.generation))) return waiting;
    if (broken !== undefined) return broken;
    if (says(progressing, 'True')) {
        return [isSuspended(row) ? 'Suspended' : 'Progressing', progressing?.message ?? 'it is not ready yet'];
    }
    const silent = verdicts.find(each => !says(each, 'True') && !says(each, 'False'));
    return silent === undefined
        ? well
        : ['Unknown', `its health is not known: ${silent.message ?? 'the rule gives no answer'}`];
}

/**
 * Returns the condition types that the spec's rules set on an object; the first matching entry wins. Only a wildcard that is the
 * whole text matches here; with any other, the conditions count as soon as they exist.
 */
function rulesOf(item: Fields, spec: Fields): ReadonlySet<string> {
    const meta = map(item, 'resourceMeta');
    for (const config of maps(spec, 'manifestConfigs')) {
        const rules = maps(config, 'conditionRules');
        const which = map(config, 'resourceIdentifier');
        const same = (key: string): boolean => textOf(which, key) === textOf(meta, key);
        const any = (key: string): boolean => textOf(which, key) === '*' || same(key);
        if (rules.length > 0 && same('resource') && same('group') && any('namespace') && any('name')) {
            return new Set(rules.map(rule => text(rule, 'condition')).filter(type => type !== undefined));
        }
    }
    return new Set();
}
