// The health of an Application's works in Argo CD, by managed cluster.

import {Fields, map, maps, text, textOf} from './fields';
import {HealthStatus, fromArgoCd, rank} from './health';

export const GROUP = 'work.open-cluster-management.io';
export const WORK = 'ManifestWork';
export const SET = 'ManifestWorkReplicaSet';

/** The health and sync status of a work in Argo CD. */
export interface WorkHealth {
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
    readonly health: HealthStatus;
    readonly message: string;
    /** Synced, OutOfSync or Unknown. */
    readonly sync: string;
}

/** The health and sync status of all works of the Application on a cluster. */
export interface Cluster {
    readonly name: string;
    /** The worst health of its works. */
    readonly health: HealthStatus;
    /** The message of the worst of its works. */
    readonly message: string;
    readonly sync: string;
    /** The worst first. */
    readonly works: readonly WorkHealth[];
    readonly healthy: number;
    /** True if the agent does not report to the hub: the state is the last reported one. */
    readonly unreachable: boolean;
    /** The hold of the cluster, such as `on hold until 2026-12-01T06:00:00Z: storage migration`. */
    readonly hold: string | undefined;
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
            const inArgoCd = text(own, 'status') === undefined ? (inTree.get(resourceKey(resource)) ?? own) : own;
            checked ||= text(inArgoCd, 'status') !== undefined;
            return {
                kind: textOf(resource, 'kind'),
                namespace: textOf(resource, 'namespace'),
                name: textOf(resource, 'name'),
                health: fromArgoCd(text(inArgoCd, 'status')),
                message: textOf(inArgoCd, 'message'),
                sync: text(resource, 'status') ?? 'Unknown',
            };
        });
    const unreachable = unreachableClusters(status);
    const holds = clustersOnHold(status);
    const byCluster = new Map<string, WorkHealth[]>();
    for (const work of works.filter(({kind}) => kind === WORK)) {
        const ofCluster = byCluster.get(work.namespace);
        if (ofCluster === undefined) byCluster.set(work.namespace, [work]);
        else ofCluster.push(work);
    }
    const clusters = Array.from(byCluster, ([name, ofCluster]) =>
        clusterOf(name, ofCluster, unreachable.has(name), holds.get(name)),
    );
    return {
        clusters: clusters.sort(byHealth),
        sets: works.filter(({kind}) => kind === SET).sort(byHealth),
        unchecked: works.length > 0 && !checked,
    };
}

function clusterOf(name: string, works: WorkHealth[], unreachable: boolean, hold: string | undefined): Cluster {
    works.sort(byHealth);
    return {
        name,
        health: works[0]?.health ?? 'Unknown',
        message: works[0]?.message ?? '',
        sync: ['OutOfSync', 'Unknown'].find(sync => works.some(work => work.sync === sync)) ?? 'Synced',
        works,
        healthy: works.filter(work => work.health === 'Healthy').length,
        unreachable,
        hold,
    };
}

type HealthAndName = Pick<WorkHealth, 'health' | 'name'>;

/** Orders by health, the worst first, and then by name. */
function byHealth(one: HealthAndName, other: HealthAndName): number {
    return rank(one.health) - rank(other.health) || compareNames(one.name, other.name);
}

const names = new Intl.Collator('en', {numeric: true});

/** Compares names so that `cluster2` is before `cluster10`. */
export function compareNames(one: string, other: string): number {
    return names.compare(one, other);
}

/** Returns the name of an Application, with its namespace if that is not Argo CD's. */
export function applicationName(application: Fields): string {
    const [name, namespace] = ['name', 'namespace'].map(key => textOf(map(application, 'metadata'), key));
    const controllerNamespace = text(map(application, 'status'), 'controllerNamespace') ?? namespace;
    return namespace === controllerNamespace ? `${name}` : `${namespace}/${name}`;
}

function resourceKey(resource: Fields): string {
    return ['group', 'kind', 'namespace', 'name'].map(key => textOf(resource, key)).join('/');
}

/** Returns the clusters that the controller reports as unreachable. If there are very many, its conditions name only some. */
export function unreachableClusters(status: Fields): ReadonlySet<string> {
    return new Set(reportedClusters(status, 'ManagedClusterUnreachableWarning').keys());
}

/** Returns the clusters that the controller reports as on hold, with the end and the reason as far as known. */
export function clustersOnHold(status: Fields): ReadonlyMap<string, string> {
    return reportedClusters(status, 'ManagedClusterOnHoldWarning');
}

/** Returns the clusters that conditions of a type name, with their messages; one condition may list more clusters. */
function reportedClusters(status: Fields, type: string): Map<string, string> {
    const reported = new Map<string, string>();
    for (const condition of maps(status, 'conditions')) {
        if (text(condition, 'type') !== type) continue;
        const message = textOf(condition, 'message');
        const end = message.indexOf(': ');
        const [subject, rest] = end < 0 ? [message, ''] : [message.slice(0, end), message.slice(end + 2)];
        if (/^and \d+ more clusters?$/.test(subject)) rest.split(', ').forEach(name => reported.set(name, ''));
        else reported.set(subject, rest);
    }
    return reported;
}

/**
 * Returns a text such as `18 of 20 clusters healthy`, or undefined without clusters. If Argo CD has no health of works, the text
 * has only the number of clusters.
 */
export function headline(fleet: Fleet): string | undefined {
    const total = fleet.clusters.length;
    if (total === 0) return undefined;
    const clusters = `cluster${total === 1 ? '' : 's'}`;
    if (fleet.unchecked) return `${total} ${clusters}`;
    const healthy = fleet.clusters.filter(cluster => cluster.health === 'Healthy').length;
    return `${healthy} of ${total} ${clusters} healthy`;
}
