// Shows a summary of the managed clusters on the page of an Application. It opens the list of all clusters.

import {fields} from '../fields';
import {Fleet, fleetOf, headline} from '../fleet';
import {HealthStatus, worst} from '../health';
import {Element, h, react} from '../react';
import {counts} from '../select';
import {healthIcon} from './parts';
import {useStyle} from './style';

/** The props that Argo CD passes to the status panel. */
export interface PanelProps {
    readonly application?: unknown;
    readonly openFlyout?: () => void;
}

/** Renders nothing for an Application without works. */
export function StatusPanel(props: PanelProps): Element | null {
    useStyle();
    const fleet = react().useMemo(() => fleetOf(fields(props.application)), [props.application]);
    const summary = headline(fleet) ?? fleet.sets[0]?.message;
    if (summary === undefined) return null;
    const all = [...fleet.clusters, ...fleet.sets];
    const health = worst(
        all.map(each => each.health),
        'Unknown',
    );
    return h(
        'div',
        {className: 'application-status-panel__item ocm-panel'},
        h(
            'div',
            {className: 'ocm-panel__title'},
            h('label', null, 'MANAGED CLUSTERS'),
            h(
                'button',
                {
                    type: 'button',
                    className: 'argo-button application-status-panel__more-button',
                    'aria-label': 'Show the managed clusters',
                    onClick: props.openFlyout,
                },
                h('i', {className: 'fa fa-ellipsis-h', 'aria-hidden': true}),
            ),
        ),
        h(
            'div',
            {className: 'application-status-panel__item-value ocm-panel__value'},
            h(
                'button',
                {type: 'button', className: 'ocm-panel__open', onClick: props.openFlyout},
                healthIcon(health),
                ' ',
                summary === '' ? health : summary,
            ),
        ),
        h('div', {className: 'application-status-panel__item-name'}, subline(fleet)),
    );
}

/** Returns the numbers of clusters that are not healthy, by state, and the messages of sets. */
export function subline(fleet: Fleet): string {
    if (fleet.unchecked) return 'Argo CD has no health check for works: apply deploy/argocd_cm.yaml.';
    const unhealthy = counts(fleet.clusters).filter(([health]) => health !== 'Healthy');
    const parts = unhealthy.map(
        ([health, count]: readonly [HealthStatus, number]) => `${count} ${health.toLowerCase()}`,
    );
    const unreachable = fleet.clusters.filter(cluster => cluster.unreachable).length;
    if (unreachable > 0) parts.push(`${unreachable} cannot be reached`);
    const held = fleet.clusters.filter(cluster => cluster.hold !== undefined).length;
    if (held > 0) parts.push(`${held} on hold`);
    const sets = fleet.clusters.length > 0 ? fleet.sets : fleet.sets.slice(1);
    parts.push(...sets.map(set => `${set.name}: ${set.message}`));
    return parts.join(', ');
}
