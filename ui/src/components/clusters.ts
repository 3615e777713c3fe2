// Shows the state of an Application on all its managed clusters.

import {Fields, fields, map, textOf} from '../fields';
import {Cluster, GROUP, WorkHealth, compareNames, fleetOf, headline} from '../fleet';
import {clusterPath} from '../hub';
import {HealthStatus, appearance} from '../health';
import {Element, c, h, react} from '../react';
import {counts} from '../select';
import {Details} from './details';
import {useSelection} from './filter';
import {Grid, GridColumn, healthColumn} from './grid';
import {subline} from './panel';
import {healthLabel, note, pageLink, placeholder, tableHead} from './parts';
import {useStyle} from './style';

/** The props that Argo CD passes to the flyout of the status panel. */
export interface FlyoutProps {
    readonly application?: unknown;
    readonly tree?: unknown;
}

export function Clusters(props: FlyoutProps): Element {
    useStyle();
    const {useMemo, useState} = react();
    const application = fields(props.application);
    const fleet = useMemo(() => fleetOf(application, fields(props.tree)), [props.application, props.tree]);
    const [open, setOpen] = useState<string | undefined>(undefined);
    const {rows, order, onOrder, bar} = useSelection(fleet.clusters, COLUMNS, 'clusters');
    const openCluster = fleet.clusters.find(cluster => cluster.name === open);
    return h(
        'div',
        {className: 'ocm'},
        h('h2', {className: 'ocm-title'}, headline(fleet) ?? 'Managed clusters'),
        fleet.unchecked && note('fa-exclamation-triangle', '#f4c030', subline(fleet)),
        fleet.sets.length > 0 && worksTable(application, fleet.sets, true),
        fleet.clusters.length > 0 && healthBar(fleet.clusters),
        fleet.clusters.length > 0 && bar,
        fleet.clusters.length > 0 &&
            (rows.length === 0
                ? placeholder('No clusters match the filter.')
                : c(Grid<Cluster>, {
                      label: 'Managed clusters',
                      columns: COLUMNS,
                      rows,
                      keyOf: nameOf,
                      order,
                      onOrder,
                      open,
                      onOpen: setOpen,
                  })),
        openCluster !== undefined &&
            c(Details, {
                key: openCluster.name,
                title: openCluster.name,
                onClose: () => setOpen(undefined),
                body: h(
                    'div',
                    {className: 'ocm-details__body'},
                    openCluster.unreachable &&
                        note(
                            'fa-exclamation-triangle',
                            '#f4c030',
                            'It is unreachable: showing its last reported state.',
                        ),
                    openCluster.hold !== undefined &&
                        note('fa-pause-circle', '#f4c030', openCluster.hold || 'It is on hold.'),
                    worksTable(application, openCluster.works, false),
                    pageLink(clusterPath(openCluster.name), `All Applications on ${openCluster.name}`),
                ),
            }),
    );
}

const nameOf = (cluster: Cluster): string => cluster.name;

const COLUMNS: readonly GridColumn<Cluster>[] = [
    {
        id: 'cluster',
        title: 'Cluster',
        width: 'minmax(140px, 1.5fr)',
        compare: (one, other) => compareNames(one.name, other.name),
        text: cluster =>
            cluster.name +
            (cluster.unreachable ? ' cannot be reached' : '') +
            (cluster.hold === undefined ? '' : ' on hold'),
        cell: cluster => [
            cluster.name,
            cluster.unreachable &&
                h('i', {
                    key: 'unreachable',
                    className: 'fa fa-exclamation-triangle ocm-unreachable',
                    role: 'img',
                    'aria-label': 'cannot be reached',
                }),
            cluster.hold !== undefined &&
                h('i', {
                    key: 'hold',
                    className: 'fa fa-pause-circle ocm-unreachable',
                    role: 'img',
                    title: cluster.hold,
                    'aria-label': 'on hold',
                }),
        ],
    },
    healthColumn('130px'),
    {id: 'sync', title: 'Sync', width: '100px', text: cluster => cluster.sync},
    {
        id: 'works',
        title: 'Works healthy',
        width: '120px',
        text: cluster => `${cluster.healthy} of ${cluster.works.length}`,
        unfiltered: true,
        compare: (one, other) => one.healthy / one.works.length - other.healthy / other.works.length,
    },
    {
        id: 'message',
        title: 'Message',
        width: 'minmax(200px, 4fr)',
        text: cluster => (cluster.health === 'Healthy' ? '' : cluster.message),
    },
];

/** Shows the number of rows with each health status as a bar. */
export function healthBar(rows: readonly {health: HealthStatus}[]): Element {
    const numbers = counts(rows);
    return h(
        'div',
        {
            className: 'ocm-health-bar',
            role: 'img',
            'aria-label': numbers.map(([health, count]) => `${count} ${health}`).join(', '),
        },
        numbers.map(([health, count]) =>
            h('span', {
                key: health,
                style: {flexGrow: count, background: appearance(health).colour},
                title: `${count} ${health}`,
            }),
        ),
    );
}

export function worksTable(application: Fields, all: readonly WorkHealth[], isSet: boolean): Element {
    return h(
        'table',
        {className: 'ocm-table'},
        tableHead([isSet ? 'ManifestWorkReplicaSet' : 'Work', 'Health', 'Sync', 'Message']),
        h(
            'tbody',
            null,
            all.map(work =>
                h(
                    'tr',
                    {key: `${work.namespace}/${work.name}`},
                    h('td', null, link(application, work, isSet)),
                    h('td', null, healthLabel(work.health)),
                    h('td', null, work.sync),
                    h('td', null, work.message),
                ),
            ),
        ),
    );
}

/** Creates a link to the tab with the objects of a work. */
function link(application: Fields, work: WorkHealth, isSet: boolean): Element {
    const metadata = map(application, 'metadata');
    const href = `applications/${textOf(metadata, 'namespace')}/${textOf(metadata, 'name')}?${new URLSearchParams({
        node: [GROUP, work.kind, work.namespace, work.name, '0'].join('/'),
        tab: 'extension-0',
    })}`;
    return pageLink(href, isSet ? `${work.namespace}/${work.name}` : work.name);
}
