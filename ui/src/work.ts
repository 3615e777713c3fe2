// How a ManifestWork fares, object by object: the rules of src/status/work.rs and of the health check in deploy/argocd_cm.yaml, which
// says why each is needed.

import {ago} from './age';
import {lastHeard} from './agent';
import {Condition, Conditions, conditionsOf, is, isBehind, says} from './conditions';
import {Fields, fields, isMap, list, map, maps, number, text, textOf, typeName} from './fields';
import {ObjectRow, carried, identified, isSuspended, keyOf, named, presentable, shortName, unseen} from './objects';
import {Verdict, worst} from './verdict';

/** How many seconds a failure has to mend itself. */
const GRACE = 60;

export interface Work {
    readonly cluster: string;
    readonly verdict: Verdict;
    /** What is to be said of the work as a whole; empty where its objects tell it all. */
    readonly message: string;
    readonly objects: readonly ObjectRow[];
    /** When its status was last written. */
    readonly heard: string | undefined;
}

/** What the verdicts on the objects are made of. */
interface Told {
    readonly spec: Fields;
    readonly generation: number | undefined;
    readonly conditions: Conditions;
    readonly notApplied: string;
    readonly notLookedAt: string;
    /** Such a time is too young for what is so since then to count as lasting. */
    readonly grace: string;
    /** Whether it is complete, so that the agent does not look at it again. */
    readonly frozen: boolean;
}

/** How a work fares at a time in milliseconds. */
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

/** The message of a work that is healthy, and of which nothing else is to be said. */
export function allIsWell(work: Work): string {
    return `${counted(work.objects.length)}healthy on managed cluster ${work.cluster}`;
}

function counted(objects: number): string {
    return objects === 0 ? '' : objects === 1 ? '1 object is ' : `${objects} objects are `;
}

function unreadable(fault: string): string {
    return `its status cannot be understood: ${fault}`;
}

/** What in the status is not as an agent writes it. */
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

/** Gives each row its manifest; an object of the spec of which nothing is said has a row too. */
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
 * The agent does not apply a work again that is complete, nor says that it has seen a change of it. What has run has run: only
 * an object that has not is missing.
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

/** How an object fares and why; nothing when it is left from an earlier generation. */
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
    // The agent leaves alone what is complete, and it may be gone: its other conditions are those of its last days.
    if (is(get('Complete'), 'True')) return broken ?? well;
    if (available !== undefined && is(available, 'False')) {
        // Found missing, then applied: not looked at since.
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
 * The condition types that the spec's rules set on an object: the first entry that matches counts. A wildcard that is not the
 * whole text is not understood here; its conditions are, once they are there.
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
