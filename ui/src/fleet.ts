// The health of an Application's works in Argo CD, by managed cluster.

import {Fields, map, maps, text, textOf} from './fields';
import {Verdict, ofArgoCd, worst} from './verdict';

export const GROUP = 'work.open-cluster-management.io';
export const WORK = 'ManifestWork';
export const SET = 'ManifestWorkReplicaSet';

/** The health and sync status of a work in Argo CD. */
export interface WorkHealth {
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
    readonly verdict: Verdict;
    readonly message: string;
    /** Synced, OutOfSync or Unknown. */
    readonly sync: string;
}

/** The health and sync status of all works of the Application on a cluster. */
export interface Cluster {
    readonly name: string;
    /** The worst health of its works. */
    readonly verdict: Verdict;
    /** The message of the worst of its works. */
    readonly message: string;
    readonly sync: string;
    /** The worst first. */
    readonly works: readonly WorkHealth[];
    readonly healthy: number;
    /** True if the cluster does not contact the hub, so its state is the last reported one. */
    readonly silent: boolean;
}

export interface Fleet {
    /** The worst first. */
    readonly clusters: readonly Cluster[];
    /** The ManifestWorkReplicaSets, from which OCM creates a work for each cluster of a Placement. */
    readonly sets: readonly WorkHealth[];
    /** True if Argo CD has no health for any work. */
    readonly unchecked: boolean;
}

/** Returns the fleet of an Application, with its resource tree if available. */
export function fleetOf(application: Fields, tree?: Fields): Fleet {
    const status = map(application, 'status');
    const inTree = new Map<string, Fields>();
    for (const node of maps(tree ?? {}, 'nodes')) inTree.set(resourceKey(node), map(node, 'health'));
    let checked = false;
    const works = maps(status, 'resources')
        // As for the health of the Application, works that are Argo CD hooks do not count.
        .filter(resource => textOf(resource, 'group') === GROUP && resource['hook'] !== true)
        .map(resource => {
            const own = map(resource, 'health');
            const health = text(own, 'status') === undefined ? (inTree.get(resourceKey(resource)) ?? own) : own;
            checked ||= text(health, 'status') !== undefined;
            return {
                kind: textOf(resource, 'kind'),
                namespace: textOf(resource, 'namespace'),
                name: textOf(resource, 'name'),
                verdict: ofArgoCd(text(health, 'status')),
                message: textOf(health, 'message'),
                sync: text(resource, 'status') ?? 'Unknown',
            };
        });
    const silent = silentClusters(status);
    const byCluster = new Map<string, WorkHealth[]>();
    for (const work of works.filter(({kind}) => kind === WORK)) {
        const known = byCluster.get(work.namespace);
        if (known === undefined) byCluster.set(work.namespace, [work]);
        else known.push(work);
    }
    const clusters = Array.from(byCluster, ([name, known]) => clusterOf(name, known, silent.has(name)));
    return {
        clusters: clusters.sort(byVerdict),
        sets: works.filter(({kind}) => kind === SET).sort(byVerdict),
        unchecked: works.length > 0 && !checked,
    };
}

function clusterOf(name: string, works: WorkHealth[], silent: boolean): Cluster {
    works.sort(byVerdict);
    return {
        name,
        verdict: works[0]?.verdict ?? 'Unknown',
        message: works[0]?.message ?? '',
        sync: ['OutOfSync', 'Unknown'].find(sync => works.some(work => work.sync === sync)) ?? 'Synced',
        works,
        healthy: works.filter(work => work.verdict === 'Healthy').length,
        silent,
    };
}

function byVerdict(one: {verdict: Verdict; name: string}, other: {verdict: Verdict; name: string}): number {
    if (one.verdict !== other.verdict) return worst([one.verdict, other.verdict], 'Healthy') === one.verdict ? -1 : 1;
    return compareNames(one.name, other.name);
}

const names = new Intl.Collator('en', {numeric: true});

/** Compares names so that `cluster2` is before `cluster10`. */
export function compareNames(one: string, other: string): number {
    return names.compare(one, other);
}

/** Returns the name of an Application, with its namespace if that is not Argo CD's. */
export function called(application: Fields): string {
    const [name, namespace] = ['name', 'namespace'].map(key => textOf(map(application, 'metadata'), key));
    const home = text(map(application, 'status'), 'controllerNamespace') ?? namespace;
    return namespace === home ? `${name}` : `${namespace}/${name}`;
}

function resourceKey(resource: Fields): string {
    return ['group', 'kind', 'namespace', 'name'].map(key => textOf(resource, key)).join('/');
}

/** Returns the clusters that the controller reports as unreachable. Of very many, its conditions name only some. */
export function silentClusters(status: Fields): ReadonlySet<string> {
    const silent = new Set<string>();
    for (const condition of maps(status, 'conditions')) {
        if (text(condition, 'type') !== 'ManagedClusterUnreachableWarning') continue;
        const message = textOf(condition, 'message');
        const [subject = '', rest = ''] = message.split(': ', 2);
        if (/^and \d+ more clusters?$/.test(subject)) rest.split(', ').forEach(name => silent.add(name));
        else silent.add(subject);
    }
    return silent;
}

/** Returns a text such as `18 of 20 clusters healthy`. Without clusters it is undefined; without health it has only the number. */
export function headline(fleet: Fleet): string | undefined {
    const total = fleet.clusters.length;
    if (total === 0) return undefined;
    const clusters = `cluster${total === 1 ? '' : 's'}`;
    if (fleet.unchecked) return `${total} ${clusters}`;
    const healthy = fleet.clusters.filter(cluster => cluster.verdict === 'Healthy').length;
    return `${healthy} of ${total} ${clusters} healthy`;
}
