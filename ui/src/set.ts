// Reads the state of a ManifestWorkReplicaSet. OCM reports only numbers of clusters; the state of objects is in the works of the
// clusters.

import {lastStatusWrite} from './agent';
import {Condition, conditionsOf} from './conditions';
import {Fields, map, maps, number, text, textOf} from './fields';
import {GROUP, SET} from './fleet';
import {HealthStatus, fromArgoCd} from './health';
import {ObjectRow, manifestsOf, rowFromManifest, withIds} from './objects';

export interface SetStatus {
    readonly health: HealthStatus;
    readonly message: string;
    /** The number of clusters in each of OCM's states. */
    readonly counts: readonly (readonly [string, number])[];
    /** The number of clusters of each Placement that have the work, as OCM reports it. */
    readonly placements: readonly {readonly name: string; readonly groups: string}[];
    readonly conditions: readonly Condition[];
    readonly objects: readonly ObjectRow[];
    /** The time of the last write of its status. */
    readonly lastWrite: string | undefined;
}

const COUNTS = ['total', 'applied', 'available', 'progressing', 'degraded'];

/** Returns the state of a set, with its health from the resource tree of the Application. */
export function setOf(set: Fields, tree: Fields): SetStatus {
    const metadata = map(set, 'metadata');
    const status = map(set, 'status');
    const summary = map(status, 'summary');
    const node = maps(tree, 'nodes').find(
        node =>
            textOf(node, 'group') === GROUP &&
            textOf(node, 'kind') === SET &&
            textOf(node, 'namespace') === textOf(metadata, 'namespace') &&
            textOf(node, 'name') === textOf(metadata, 'name'),
    );
    const inArgoCd = map(node ?? {}, 'health');
    return {
        health: fromArgoCd(text(inArgoCd, 'status')),
        message: textOf(inArgoCd, 'message'),
        counts: COUNTS.flatMap(name => {
            const count = number(summary, name);
            return count === undefined ? [] : [[name, count] as const];
        }),
        placements: maps(status, 'placementSummary').map(placement => ({
            name: textOf(placement, 'name'),
            groups: textOf(placement, 'availableDecisionGroups'),
        })),
        conditions: [...conditionsOf(status).all.values()],
        objects: withIds(
            manifestsOf(map(map(set, 'spec'), 'manifestWorkTemplate')).map(manifest =>
                rowFromManifest(manifest, 'Unknown', ''),
            ),
        ),
        lastWrite: lastStatusWrite(set),
    };
}
