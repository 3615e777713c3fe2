// Shows a summary of the managed clusters on the page of an Application, which opens the list of all.

import {fields} from '../fields';
import {Fleet, fleetOf, headline} from '../fleet';
import {Element, h, react} from '../react';
import {counts} from '../select';
import {Verdict, worst} from '../verdict';
import {verdictIcon} from './parts';
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
    const told = headline(fleet) ?? fleet.sets[0]?.message;
    if (told === undefined) return null;
    const all = [...fleet.clusters, ...fleet.sets];
    const verdict = worst(
        all.map(each => each.verdict),
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
                verdictIcon(verdict),
                ' ',
                told === '' ? verdict : told,
            ),
        ),
        h('div', {className: 'application-status-panel__item-name'}, subline(fleet)),
    );
}

/** Returns the numbers of clusters that are not healthy, by state, and the messages of sets. */
export function subline(fleet: Fleet): string {
    if (fleet.unchecked) return 'Argo CD has no health check for works: apply deploy/argocd_cm.yaml.';
    const ill = counts(fleet.clusters).filter(([verdict]) => verdict !== 'Healthy');
    const told = ill.map(([verdict, count]: readonly [Verdict, number]) => `${count} ${verdict.toLowerCase()}`);
    const silent = fleet.clusters.filter(cluster => cluster.silent).length;
    if (silent > 0) told.push(`${silent} cannot be reached`);
    const sets = fleet.clusters.length > 0 ? fleet.sets : fleet.sets.slice(1);
    told.push(...sets.map(set => `${set.name}: ${set.message}`));
    return told.join(', ');
}
