// The Applications on a managed cluster, from what Argo CD returns to a user. Its answers may have any content.

import {Fields, isMap, list, map, maps, text, textOf} from './fields';
import {GROUP, SET, WORK, WorkHealth, compareNames, fleetOf} from './fleet';
import {HealthStatus, fromArgoCd} from './health';

const PULL = 'apps.open-cluster-management.io/pull-to-ocm-managed-cluster';
const PULL_CLUSTER = 'apps.open-cluster-management.io/ocm-managed-cluster';
/** The texts that Go's `strconv.ParseBool`, with which the controller reads the label, parses as true. */
const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);

/** The path of the list of Applications, with the fields that lead to their clusters. A list has neither health of works nor conditions. */
export const LIST = `applications?fields=${[
    'metadata.name',
    'metadata.namespace',
    'metadata.labels',
    'metadata.annotations',
    'spec',
    'status.sync.status',
    'status.resources',
]
    .map(field => `items.${field}`)
    .join(',')}`;

/** The path of the page of all clusters, in which the parameter `cluster` selects one. */
export const PAGE = 'managed-clusters';

/** Returns the path of the page of a cluster. */
export function clusterPath(cluster: string): string {
    return `${PAGE}?${new URLSearchParams({cluster})}`;
}

/** Returns true if a text can be the name of a managed cluster. Others come from a link, and would become a part of a command to copy. */
export function isClusterName(text: string): boolean {
    return /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/.test(text);
}

/** The Applications of a hub. */
export interface Hub {
    /** The Applications by managed cluster. */
    readonly byCluster: ReadonlyMap<string, readonly Fields[]>;
    /** The names of the managed clusters, sorted. */
    readonly clusters: readonly string[];
    /** The number of Applications for the clusters of a Placement, which Argo CD does not know. */
    readonly placed: number;
}

/** An Application on a managed cluster. */
export interface OnCluster {
    /** Its namespace and name. */
    readonly id: string;
    readonly application: Fields;
    readonly project: string;
    readonly health: HealthStatus;
    readonly sync: string;
    readonly message: string;
    /** Its works there; none in the pull model, and if Argo CD cannot create them. */
    readonly works: readonly WorkHealth[];
    /** The hold of the cluster. */
    readonly hold: string | undefined;
    readonly unreachable: boolean;
}

/** Groups a list of Applications by managed cluster. */
export function hubOf(answer: Fields): Hub {
    const byCluster = new Map<string, Fields[]>();
    const applications = maps(answer, 'items');
    for (const application of applications) {
        for (const cluster of clustersOf(application)) {
            const there = byCluster.get(cluster);
            if (there === undefined) byCluster.set(cluster, [application]);
            else there.push(application);
        }
    }
    return {
        byCluster,
        clusters: [...byCluster.keys()].sort(compareNames),
        placed: applications.filter(application => works(application).some(({kind}) => kind === SET)).length,
    };
}

/** Returns the path of an Application in the API of Argo CD. */
export function pathOf(application: Fields): string {
    const metadata = map(application, 'metadata');
    const project = text(map(application, 'spec'), 'project') ?? 'default';
    const query = new URLSearchParams({appNamespace: textOf(metadata, 'namespace'), project});
    return `applications/${encodeURIComponent(textOf(metadata, 'name'))}?${query}`;
}

/** Returns the state of an Application on a cluster: that of its works there, or the reason why it has none. */
export function onCluster(application: Fields, cluster: string): OnCluster {
    const status = map(application, 'status');
    const fleet = fleetOf({...application, status: {...status, resources: works(application)}});
    const there = fleet.clusters.find(({name}) => name === cluster);
    // A sync that fails for other clusters does not concern this one; one that cannot remove a work here does.
    const isElsewhere = ({status, kind, namespace}: Fields): boolean =>
        status === 'Synced' || (kind === WORK && namespace !== cluster);
    const isSynced = there !== undefined && listed(application).every(isElsewhere);
    const concerns = ({type}: Fields): boolean => type !== 'SyncError' || !isSynced;
    const conditions = conditionsOf(application).filter(concerns);
    const error = conditions.find(condition => textOf(condition, 'type').endsWith('Error'));
    const reason = error === undefined ? '' : `${textOf(error, 'type')}: ${textOf(error, 'message')}`;
    const sync = text(map(status, 'sync'), 'status') ?? '';
    const common = {...row(application), hold: there?.hold, unreachable: there?.unreachable ?? false};
    // With an error of Argo CD, only an earlier version is healthy.
    const isRefused = conditions.some(({type}) => /^(?!ManifestWork|ManagedCluster).*Error$/.test(String(type)));
    const ofCurrent = (health: HealthStatus): HealthStatus => (isRefused && health === 'Healthy' ? 'Degraded' : health);
    if (there !== undefined) {
        const own = there.health === 'Healthy' ? '' : there.message;
        const health = ofCurrent(there.health);
        const unchecked = fleet.unchecked ? 'Argo CD has no health of the works.' : '';
        const message = [reason, own, unchecked].filter(part => part !== '').join('; ');
        return {...common, health, sync: there.sync, message, works: there.works};
    }
    if (pulledOn(application) === cluster) {
        const pulled = map(status, 'health');
        const first = conditions.find(condition => textOf(condition, 'type').endsWith('Warning')) ?? {};
        const message = [reason, textOf(pulled, 'message'), textOf(first, 'message')].find(part => part !== '') ?? '';
        const inArgoCd = text(pulled, 'status');
        const health = inArgoCd === undefined ? 'Waiting' : ofCurrent(fromArgoCd(inArgoCd));
        return {...common, health, sync, message, works: []};
    }
    const health = sync === '' ? 'Waiting' : 'Missing';
    return {...common, health, sync, message: reason || 'It has no work on the cluster yet.', works: []};
}

/** Returns the conditions of an Application, and as further ones a failed hydration or sync, for which Argo CD may write none. */
function conditionsOf(application: Fields): Fields[] {
    const status = map(application, 'status');
    const conditions = maps(status, 'conditions');
    const hydration = map(map(status, 'sourceHydrator'), 'currentOperation');
    // Argo CD keeps it when the Application leaves the hydrator.
    if (isMap(map(application, 'spec')['sourceHydrator']) && hydration['phase'] === 'Failed')
        conditions.push({type: 'HydrationError', message: hydration['message']});
    // Until Argo CD starts a requested sync, this is the one before.
    const {phase, message} = isMap(application['operation']) ? {} : map(status, 'operationState');
    if ((phase === 'Failed' || phase === 'Error') && map(status, 'sync')['status'] !== 'Synced')
        conditions.push({type: 'SyncError', message});
    return conditions;
}

/** Returns the row of an Application that could not be read. */
export function unread(application: Fields, error: unknown): OnCluster {
    const message = error instanceof Error ? error.message : String(error);
    const sync = text(map(map(application, 'status'), 'sync'), 'status') ?? '';
    return {...row(application), health: 'Unknown', sync, message, works: [], hold: undefined, unreachable: false};
}

function row(application: Fields): Pick<OnCluster, 'id' | 'application' | 'project'> {
    const metadata = map(application, 'metadata');
    return {
        id: `${textOf(metadata, 'namespace')}/${textOf(metadata, 'name')}`,
        application,
        project: text(map(application, 'spec'), 'project') ?? 'default',
    };
}

/** Runs a function for each item, a few at a time, and returns the results in order. */
export async function mapInParallel<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
    const AT_ONCE = 6;
    const results: R[] = [];
    let next = 0;
    const worker = async (): Promise<void> => {
        for (let at = next++; at < items.length; at = next++) results[at] = await run(items[at] as T);
    };
    await Promise.all(Array.from({length: Math.min(AT_ONCE, items.length)}, worker));
    return results;
}

function clustersOf(application: Fields): Set<string> {
    const clusters = new Set<string>();
    for (const work of works(application)) if (work['kind'] === WORK) clusters.add(textOf(work, 'namespace'));
    const pulled = pulledOn(application);
    if (pulled !== undefined) clusters.add(pulled);
    // After a comparison, Argo CD lists all works, also those that it has not created.
    const isCompared = /^(Synced|OutOfSync)$/.test(textOf(map(map(application, 'status'), 'sync'), 'status'));
    if (!isCompared) for (const target of targetsOf(application)) clusters.add(target);
    clusters.delete('');
    return clusters;
}

/** Returns all works in the status of an Application, without hooks. */
function listed(application: Fields): Fields[] {
    return maps(map(application, 'status'), 'resources').filter(
        resource => textOf(resource, 'group') === GROUP && resource['hook'] !== true,
    );
}

/**
 * Returns the works of an Application in its status. Those that Argo CD would prune may only have a mark of the Application, which the
 * agent of a cluster may write. After a failed comparison these are all works; then their names decide.
 */
function works(application: Fields): Fields[] {
    const [name = '', namespace = ''] = ['name', 'namespace'].map(key => textOf(map(application, 'metadata'), key));
    const set = settingsOf(application, 'name', ['NAME']);
    const names = [name, ...set, ...set.map(own => `${name}.${own}`)];
    // As `argocd-ocm-cmp generate` names works and their parts.
    const isNamed = (work: string): boolean =>
        names.some(own => work === own || work.startsWith(`${own}.p`)) || work.startsWith(`${namespace}.${name}.`);
    return listed(application).filter(
        resource =>
            resource['requiresPruning'] !== true ||
            (resource['status'] === 'Unknown' && isNamed(textOf(resource, 'name'))),
    );
}

/** Returns the managed cluster of an Application of the pull model. */
function pulledOn(application: Fields): string | undefined {
    const metadata = map(application, 'metadata');
    return TRUE.has(textOf(map(metadata, 'labels'), PULL))
        ? text(map(metadata, 'annotations'), PULL_CLUSTER)
        : undefined;
}

/** Returns the clusters that the plugin's settings of an Application name. */
function targetsOf(application: Fields): string[] {
    const values = settingsOf(application, 'clusters', ['CLUSTERS', 'TARGET_CLUSTER']);
    return values.flatMap(value => value.split(',').map(name => name.trim()));
}

/** Returns the texts of a setting of each source, as the plugin reads them: those of the parameter, else of the first of the variables. */
function settingsOf(application: Fields, parameter: string, variables: readonly string[]): string[] {
    const spec = map(application, 'spec');
    const sources = [map(spec, 'source'), map(map(spec, 'sourceHydrator'), 'drySource'), ...maps(spec, 'sources')];
    return sources.flatMap(source => {
        const texts = (field: string, wanted: string): string[] =>
            maps(map(source, 'plugin'), field)
                .filter(({name}) => name === wanted)
                .flatMap(each => [each['value'], each['string'], ...list(each, 'array')])
                .filter((text): text is string => typeof text === 'string' && text.trim() !== '');
        const given = [texts('parameters', parameter), ...variables.map(variable => texts('env', variable))];
        return given.find(found => found.length > 0) ?? [];
    });
}
