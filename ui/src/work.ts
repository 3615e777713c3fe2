// Evaluates the health of a ManifestWork and its objects. The rules are those of crates/ocm/src/health/work.rs and of the health
// check in deploy/argocd_cm.yaml, which explains them.

import {ago} from './age';
import {lastStatusWrite} from './agent';
import {Condition, Conditions, conditionsOf, evaluatedTo, is, isBehind} from './conditions';
import {Fields, fields, isMap, list, map, maps, number, text, textOf, typeName} from './fields';
import {Evaluated, HealthStatus, worst} from './health';
import {ObjectRow, keyOf, manifestsOf, maskedRow, rowFromManifest, rowFromStatus, shortName, withIds} from './objects';
import {CONTENT_HASH, Verdicts, evaluate, valuesOf, verdictsOn} from './verdicts';

/** The number of seconds after which a failure is Degraded. */
const GRACE_SECONDS = 60;

/** OCM's message for a rule without one: the message of Progressing also says why the object is broken. */
const NO_MESSAGE = 'Manifest is not Healthy';

/**
 * The maximum number of reported manifests besides those of the spec. An agent reports each once; those of a complete work may be of an
 * earlier spec.
 */
const UNEXPECTED_MAX = 1000;

/** The label of a work that the plugin has created. */
const APPLICATION_LABEL = 'argocd-ocm-cmp.github.io/application';

export interface WorkStatus {
    readonly cluster: string;
    readonly health: HealthStatus;
    /** The message about the whole work; empty if the messages of its objects are sufficient. */
    readonly message: string;
    readonly objects: readonly ObjectRow[];
    /** The time of the last write of its status. */
    readonly lastWrite: string | undefined;
}

/** The fields of the work that determine the health of its objects. */
interface WorkContext {
    readonly spec: Fields;
    readonly configs: Configs;
    readonly generation: number | undefined;
    readonly conditions: Conditions;
    /** The message of an object that waits to be applied. */
    readonly notApplied: string;
    /** The message of an applied object whose status is not reported. */
    readonly notChecked: string;
    /** A failure that began after this time is not Degraded yet. */
    readonly graceStart: string;
    readonly lastWrite: string | undefined;
    /** True if the work is complete, so that the agent does not process it again. */
    readonly isComplete: boolean;
    /** True if the plugin has created the work, with an entry for each object. */
    readonly isOfPlugin: boolean;
}

/** Evaluates the health of a work at `now`, which is in milliseconds. */
export function evaluateHealth(work: Fields, now: number): WorkStatus {
    const metadata = map(work, 'metadata');
    const spec = map(work, 'spec');
    const status = map(work, 'status');
    const name = textOf(metadata, 'namespace');
    const cluster = name === '' ? 'managed cluster without a name' : `managed cluster ${name}`;
    const conditions = conditionsOf(status);
    const generation = number(metadata, 'generation');
    const items = list(map(status, 'resourceStatus'), 'manifests');
    const fault = faultOf(work, conditions);
    const lastWrite = lastStatusWrite(work);
    const withoutObjectStatus = (health: HealthStatus, message: string): WorkStatus => {
        const isMalformed = fault !== undefined && health === 'Waiting';
        const evaluated: Evaluated = isMalformed ? ['Unknown', malformed(fault)] : [health, message];
        return {
            cluster: name,
            health: evaluated[0],
            message: evaluated[1],
            objects: withIds(manifestsOf(spec).map(manifest => rowFromManifest(manifest, ...evaluated))),
            lastWrite,
        };
    };

    if ('deletionTimestamp' in metadata) {
        const deleting = conditions.all.get('Deleting')?.message;
        const reason = deleting === undefined ? '' : `: ${deleting}`;
        const message = `the agent of ${cluster} is removing its objects${reason}${left(items)}`;
        return withoutObjectStatus('Progressing', message);
    }

    const applied = conditions.all.get('Applied');
    const isOutdated = isBehind(applied, generation);
    const context: WorkContext = {
        spec,
        configs: configsOf(spec),
        generation,
        conditions,
        notApplied: `waiting for the agent of ${cluster} to apply it`,
        notChecked: `waiting for the agent of ${cluster} to report its status`,
        graceStart: ago(GRACE_SECONDS, now),
        lastWrite,
        isComplete: isOutdated && hasRun(spec, conditions, generation, items),
        isOfPlugin: APPLICATION_LABEL in map(metadata, 'labels'),
    };
    if (
        applied === undefined ||
        !(is(applied, 'True') || is(applied, 'False')) ||
        (isOutdated && !context.isComplete)
    ) {
        const why = is(conditions.all.get('Complete'), 'True')
            ? ', which it does not do while the work is complete'
            : '';
        return withoutObjectStatus('Waiting', context.notApplied + why);
    }

    if (items.length > manifestsOf(spec).length + UNEXPECTED_MAX) {
        return withoutObjectStatus('Unknown', malformed(`it has ${items.length} manifests`));
    }

    let withoutRules = 0;
    const objects: ObjectRow[] = [];
    items.forEach((item, at) => {
        const itemConditions = conditionsOf(fields(item));
        const row = rowFromStatus(at, item, itemConditions);
        const evaluated = objectHealth(item, itemConditions, context, () => withoutRules++);
        if (evaluated !== undefined) objects.push({...row, health: evaluated[0], message: evaluated[1]});
    });
    const rows = withManifests(objects, manifestsOf(spec), context.notApplied);

    let health = worst(
        rows.map(row => row.health),
        'Healthy',
    );
    let message = '';
    if (is(applied, 'False') && (health === 'Suspended' || health === 'Healthy')) {
        health = isInGrace(applied, context) ? 'Progressing' : 'Degraded';
        message = applied.message ?? `the agent of ${cluster} cannot apply it`;
    } else if (fault !== undefined && health === 'Healthy') {
        health = 'Unknown';
        message = malformed(fault);
    } else if (health === 'Healthy' && withoutRules > 0) {
        message = `${objectCount(rows.length)}applied on ${cluster}, whose agent does not report health, which OCM 1.0 and newer does`;
    }
    return {cluster: name, health, message, objects: rows, lastWrite};
}

/** Returns a description of the objects of a deleted work that the agent still finds. */
function left(items: readonly unknown[]): string {
    const names: string[] = [];
    items.forEach((item, at) => {
        const row = rowFromStatus(at, item);
        if (isMap(item) && row.available === true) names.push(shortName(row));
    });
    if (names.length === 0) return '';
    const more = names.length > 3 ? `, and ${names.length - 3} more` : '';
    return `; left: ${names.slice(0, 3).join(', ')}${more}`;
}

/** Returns the message of a healthy work without another message. */
export function healthyMessage(work: WorkStatus): string {
    return `${objectCount(work.objects.length)}healthy on managed cluster ${work.cluster}`;
}

function objectCount(objects: number): string {
    return objects === 0 ? '' : objects === 1 ? '1 object is ' : `${objects} objects are `;
}

function malformed(fault: string): string {
    return `its status is malformed: ${fault}`;
}

/** Returns a description of the first malformed part of the status. */
function faultOf(work: Fields, conditions: Conditions): string | undefined {
    const notAMapping = (owner: Fields, key: string): string | undefined => {
        const value = owner[key];
        return value === undefined || value === null || isMap(value) ? undefined : `${key} is ${typeName(value)}`;
    };
    const inStatus = (fault: string | undefined): string | undefined =>
        fault === undefined ? undefined : `status.${fault}`;
    const status = map(work, 'status');
    const manifests = map(status, 'resourceStatus')['manifests'];
    const isList = manifests === undefined || manifests === null || Array.isArray(manifests);
    return (
        notAMapping(work, 'status') ??
        inStatus(conditions.fault) ??
        inStatus(notAMapping(status, 'resourceStatus')) ??
        inStatus(isList ? undefined : `resourceStatus.manifests is ${typeName(manifests)}`)
    );
}

/** Adds the manifest to each row, and a row for each object of the spec that is not reported. */
function withManifests(rows: readonly ObjectRow[], manifests: readonly unknown[], notApplied: string): ObjectRow[] {
    const unreported = new Map<string, ObjectRow>();
    for (const manifest of manifests) {
        const row = rowFromManifest(manifest, 'Waiting', notApplied);
        unreported.set(keyOf(row), row);
    }
    const reported = rows.map(row => ({...row, manifest: unreported.get(keyOf(row))?.manifest}));
    for (const row of rows) unreported.delete(keyOf(row));
    return withIds([...reported, ...unreported.values()].map(maskedRow));
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
        const name = shortName(rowFromStatus(at, item));
        if (isDone) done.add(name);
        else done.delete(name);
    });
    return manifestsOf(spec).every(manifest => done.has(shortName(rowFromManifest(manifest, 'Waiting', ''))));
}

/** Returns the health of an object, or undefined for the status of an earlier generation. A malformed status is never Healthy. */
function objectHealth(
    item: unknown,
    conditions: Conditions,
    context: WorkContext,
    countWithoutRules: () => void,
): Evaluated | undefined {
    const evaluated = healthFromConditions(fields(item), conditions, context, countWithoutRules);
    const fault = isMap(item) ? conditions.fault : `it is ${typeName(item)}`;
    if (evaluated !== undefined && fault !== undefined && (evaluated[0] === 'Waiting' || evaluated[0] === 'Healthy')) {
        return ['Unknown', malformed(fault)];
    }
    return evaluated;
}

function healthFromConditions(
    item: Fields,
    conditions: Conditions,
    context: WorkContext,
    countWithoutRules: () => void,
): Evaluated | undefined {
    const get = (type: string): Condition | undefined => conditions.all.get(type);
    const [applied, available, healthy, progressing] = [
        get('Applied'),
        get('Available'),
        get('Healthy'),
        get('Progressing'),
    ];
    const waiting: Evaluated = ['Waiting', context.notChecked];
    const healthyObject: Evaluated = ['Healthy', ''];
    if (applied === undefined) return ['Waiting', context.notApplied];
    if (applied.generation !== undefined && isBehind(applied, context.generation) && !context.isComplete)
        return undefined;
    if (is(applied, 'False'))
        return [
            isInGrace(applied, context) ? 'Progressing' : 'Degraded',
            withRemedy(applied.message ?? 'the agent cannot apply it', map(item, 'resourceMeta')),
        ];
    const broken: Evaluated | undefined = evaluatedTo(healthy, 'False')
        ? ['Degraded', (healthy?.message === NO_MESSAGE ? progressing : healthy)?.message ?? 'it is broken']
        : undefined;
    const {isKnown, rules, verdicts, reportsHash} = configuredFor(item, context.configs);
    const values = valuesOf(item);
    // The agent does not update a complete object, which may have been deleted: its other conditions are outdated.
    if (is(get('Complete'), 'True')) {
        if (verdicts === undefined) return broken ?? healthyObject;
        const verdict = evaluate(verdicts, values);
        return verdict[0] === 'Degraded' ? verdict : healthyObject;
    }
    if (available !== undefined && is(available, 'False')) {
        // The agent found it missing, applied it, and has not checked it since.
        if (applied.since >= available.since && isInGrace(applied, context)) return waiting;
        return ['Missing', available.message ?? 'it is not on the cluster'];
    }
    if (available !== undefined && !is(available, 'True')) return ['Unknown', available.message ?? context.notChecked];

    const meta = map(item, 'resourceMeta');
    const [kind, resource] = [text(meta, 'kind'), text(meta, 'resource')];
    if (context.isOfPlugin && !isKnown && kind !== undefined && resource !== undefined) {
        const entry = `${kind}.${textOf(meta, 'group')}=${resource}`;
        if (!PLAIN.test(kind + textOf(meta, 'group') + resource))
            return ['Degraded', 'its resource name on the cluster is not valid'];
        return ['Degraded', `its resource name on the cluster is ${resource}: set resource-names to ${entry}`];
    }
    // Values have no generation, nor have the results of rules of OCM 1.0. The agent writes both together with the work's Available.
    const feedback = get('StatusFeedbackSynced');
    const workAvailable = context.conditions.all.get('Available');
    const isCurrent = workAvailable !== undefined && !isBehind(workAvailable, context.generation);
    const isChecked = isCurrent && available !== undefined && feedback !== undefined;
    const hash = reportsHash && isChecked ? hashOf(item, context.spec) : undefined;
    const isOutdated = hash !== undefined && hash !== values.get(CONTENT_HASH);
    const outdated: Evaluated = ['Progressing', 'waiting for the agent to apply the change'];
    if (verdicts !== undefined) {
        if (!isChecked) return waiting;
        if (!is(feedback, 'True')) {
            return ['Unknown', `its health is not known: ${feedback.message ?? 'the agent cannot report it'}`];
        }
        // The agent does not know the rules.
        if (feedback.reason === 'NoStatusFeedbackSynced') {
            countWithoutRules();
            return healthyObject;
        }
        return isOutdated ? outdated : evaluate(verdicts, values);
    }
    if (healthy === undefined && progressing === undefined && (rules.has('Healthy') || rules.has('Progressing'))) {
        if (!isChecked) return waiting;
        countWithoutRules();
        return healthyObject;
    }
    if ((rules.has('Healthy') && healthy === undefined) || (rules.has('Progressing') && progressing === undefined))
        return waiting;
    const ofRules = [healthy, progressing].filter(each => each !== undefined);
    const isStale = (result: Condition): boolean =>
        result.generation === undefined ? !isCurrent : isBehind(result, context.generation);
    if (ofRules.some(isStale)) return waiting;
    if (isOutdated) return outdated;
    if (broken !== undefined) return broken;
    if (evaluatedTo(progressing, 'True')) {
        return [
            values.get('Suspended') === true || evaluatedTo(get('Suspended'), 'True') ? 'Suspended' : 'Progressing',
            progressing?.message ?? 'it is not ready yet',
        ];
    }
    const withoutResult = ofRules.find(each => !evaluatedTo(each, 'True') && !evaluatedTo(each, 'False'));
    return withoutResult === undefined
        ? healthyObject
        : ['Unknown', `its health is not known: ${withoutResult.message ?? 'the rule gives no answer'}`];
}

/** The characters of kinds and their resources. The cluster reports them, and people copy the remedy. */
const PLAIN = /^[A-Za-z0-9.-]*$/;

/** Returns true if a condition may be transient. The cluster's clock may be hours ahead, so it is at least as old as the last write. */
function isInGrace({since}: Condition, {graceStart, lastWrite}: WorkContext): boolean {
    return since > graceStart && (lastWrite === undefined || lastWrite > graceStart);
}

/** Adds the remedy to the agent's message, if it shows that the plugin has assumed another scope. */
function withRemedy(message: string, meta: Fields): string {
    const kind = `${textOf(meta, 'kind')}.${textOf(meta, 'group')}`;
    if (!PLAIN.test(kind)) return message;
    if (message.endsWith('the server could not find the requested resource'))
        return `${message}: if the kind is cluster-scoped, set cluster-scoped-kinds to ${kind}`;
    if (message.endsWith('the server does not allow this method on the requested resource'))
        return `${message}: if the kind is namespaced, remove ${kind} from cluster-scoped-kinds`;
    return message;
}

interface Configured {
    /** True if an entry applies to the object. */
    readonly isKnown: boolean;
    /** The condition types that the spec's rules set on an object. */
    readonly rules: ReadonlySet<string>;
    /** The verdicts on its kind, if the agent reports all values that they need. */
    readonly verdicts: Verdicts | undefined;
    readonly reportsHash: boolean;
}

/** An entry of the spec. */
interface Config {
    readonly position: number;
    /** The condition types that its rules set. */
    readonly types: ReadonlySet<string>;
    /** The names of the values that the agent reports. */
    readonly names: ReadonlySet<string>;
}

/** The entries of the spec by the identifiers of their objects, because an agent may report thousands of objects. */
type Configs = ReadonlyMap<string, readonly Config[]>;

function identifierOf(which: Fields, namespace: string, name: string): string {
    return JSON.stringify([textOf(which, 'group'), textOf(which, 'resource'), namespace, name]);
}

function configsOf(spec: Fields): Configs {
    const configs = new Map<string, Config[]>();
    maps(spec, 'manifestConfigs').forEach((entry, position) => {
        const types = maps(entry, 'conditionRules').flatMap(rule => text(rule, 'condition') ?? []);
        const paths = maps(entry, 'feedbackRules').flatMap(rule => maps(rule, 'jsonPaths'));
        const names = paths.flatMap(path => text(path, 'name') ?? []);
        const config = {position, types: new Set(types), names: new Set(names)};
        const which = map(entry, 'resourceIdentifier');
        const identifier = identifierOf(which, textOf(which, 'namespace'), textOf(which, 'name'));
        configs.set(identifier, [...(configs.get(identifier) ?? []), config]);
    });
    return configs;
}

/**
 * Returns the configuration of an object in the spec; the first entry with rules and the first with feedback count. Wildcards inside
 * a name are not supported here, but the conditions of such rules count once they exist.
 */
function configuredFor(item: Fields, configs: Configs): Configured {
    const meta = map(item, 'resourceMeta');
    const [namespace, name] = [textOf(meta, 'namespace'), textOf(meta, 'name')];
    const identifiers = [
        identifierOf(meta, namespace, name),
        identifierOf(meta, namespace, '*'),
        identifierOf(meta, '*', name),
        identifierOf(meta, '*', '*'),
    ];
    const matching = identifiers
        .flatMap(identifier => configs.get(identifier) ?? [])
        .sort((one, other) => one.position - other.position);
    const withRules = matching.find(config => config.types.size > 0);
    const withFeedback = matching.find(config => config.names.size > 0);
    // Rules of the object's entry take precedence.
    const isOverridden = withRules !== undefined && withRules !== withFeedback;
    const verdicts = verdictsOn(textOf(meta, 'group'), textOf(meta, 'kind'));
    const reports = (value: string): boolean => withFeedback?.names.has(value) === true;
    return {
        isKnown: matching.length > 0,
        rules: withRules?.types ?? new Set(),
        verdicts: isOverridden || !verdicts?.needs.every(reports) ? undefined : verdicts,
        reportsHash: reports(CONTENT_HASH),
    };
}

/** Returns the content hash of an object in the spec. */
function hashOf(item: Fields, spec: Fields): string | undefined {
    const ordinal = number(map(item, 'resourceMeta'), 'ordinal');
    const object = ordinal === undefined ? undefined : manifestsOf(spec)[ordinal];
    return text(map(map(fields(object), 'metadata'), 'annotations'), 'argocd-ocm-cmp.github.io/content-hash');
}
