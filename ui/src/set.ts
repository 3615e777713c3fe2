// The state of a ManifestWorkReplicaSet. OCM reports only the numbers of clusters; the state of objects is in the works of the clusters.

import {lastHeard} from './agent';
import {Condition, conditionsOf} from './conditions';
import {Fields, map, maps, number, text, textOf} from './fields';
import {GROUP, SET} from './fleet';
import {ObjectRow, carried, identified, unseen} from './objects';
import {Verdict, ofArgoCd} from './verdict';

export interface SetStatus {
    readonly verdict: Verdict;
    readonly message: string;
    /** The number of clusters in each of OCM's states. */
    readonly counts: readonly (readonly [string, number])[];
    /** The number of clusters of each Placement that have the work, as OCM reports it. */
    readonly placements: readonly {readonly name: string; readonly groups: string}[];
    readonly conditions: readonly Condition[];
    readonly objects: readonly ObjectRow[];
    readonly heard: string | undefined;
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
    const health = map(node ?? {}, 'health');
    return {
        verdict: ofArgoCd(text(health, 'status')),
        message: textOf(health, 'message'),
        counts: COUNTS.flatMap(name => {
            const count = number(summary, name);
            return count === undefined ? [] : [[name, count] as const];
        }),
        placements: maps(status, 'placementSummary').map(placement => ({
            name: textOf(placement, 'name'),
            groups: textOf(placement, 'availableDecisionGroups'),
        })),
        conditions: [...conditionsOf(status).all.values()],
        objects: identified(
            carried(map(map(set, 'spec'), 'manifestWorkTemplate')).map(manifest => unseen(manifest, 'Unknown', '')),
        ),
        heard: lastHeard(set),
    };
}
