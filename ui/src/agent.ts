// When a work was last heard of.

import {Condition, conditionsOf} from './conditions';
import {Fields, map, maps, text, textOf} from './fields';

/**
 * When the status of a work was last written, as far as it tells. An agent that has nothing new to say writes nothing, so an
 * old time may well be the state of now: whether the hub hears from the cluster is another question.
 */
export function lastHeard(work: Fields): string | undefined {
    const status = map(work, 'status');
    const writes = maps(map(work, 'metadata'), 'managedFields')
        .filter(entry => textOf(entry, 'subresource') === 'status')
        .map(entry => text(entry, 'time'));
    const manifests = maps(map(status, 'resourceStatus'), 'manifests');
    const changes = [status, ...manifests].map(owner => lastChange(conditionsOf(owner).all.values()));
    return newest([...writes, ...changes]);
}

/** When one of these conditions last changed. */
export function lastChange(conditions: Iterable<Condition>): string | undefined {
    return newest(Array.from(conditions, condition => condition.since));
}

function newest(times: readonly (string | undefined)[]): string | undefined {
    let found: string | undefined;
    for (const time of times) {
        if (time !== undefined && time !== '' && (found === undefined || time > found)) found = time;
    }
    return found;
}
