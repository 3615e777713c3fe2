// A ManifestWorkReplicaSet: OCM counts the clusters; how each object fares, the works of the clusters say.

import {lastHeard} from './agent';
import {Condition, conditionsOf} from './conditions';
import {Fields, map, maps, number, text, textOf} from './fields';
import {GROUP, SET} from './fleet';
import {ObjectRow, carried, identified, unseen} from './objects';
import {Verdict, ofArgoCd} from './verdict';

export interface SetStatus {
    readonly verdict: Verdict;
    readonly message: string;
    /** How many clusters are in each state, as OCM names them. */
    readonly counts: readonly (readonly [string, number])[];
    /** What OCM says of each Placement: on how many of its clusters the work is. */
    readonly placements: readonly {readonly name: string; readonly groups: string}[];
    readonly conditions: readonly Condition[];
    readonly objects: readonly ObjectRow[];
    readonly heard: string | undefined;
}

const COUNTS = ['total', 'applied', 'available', 'progressing', 'degraded'];

/** Of a set and the tree of its Application, in which Argo CD's verdict on it is. */
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
