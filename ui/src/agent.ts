// Finds when an agent last wrote the status of a work.

import {Condition, conditionsOf} from './conditions';
import {Fields, map, maps, text, textOf} from './fields';

/**
 * Returns the time of the last write of a work's status, if known. An agent writes only changes: an old time does not mean that
 * the state is outdated or the cluster unreachable.
 */
export function lastStatusWrite(work: Fields): string | undefined {
    const status = map(work, 'status');
    const writes = maps(map(work, 'metadata'), 'managedFields')
        .filter(entry => textOf(entry, 'subresource') === 'status')
        .map(entry => text(entry, 'time'));
    const manifests = maps(map(status, 'resourceStatus'), 'manifests');
    const changes = [status, ...manifests].map(owner => lastChange(conditionsOf(owner).all.values()));
    return newest(writes) ?? newest(changes);
}

/** Returns the time of the last change of these conditions. */
export function lastChange(conditions: Iterable<Condition>): string | undefined {
    return newest(Array.from(conditions, condition => condition.since));
}

function newest(times: readonly (string | undefined)[]): string | undefined {
    let result: string | undefined;
    for (const time of times) {
        if (time !== undefined && time !== '' && (result === undefined || time > result)) result = time;
    }
    return result;
}
