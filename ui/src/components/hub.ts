// The page of a managed cluster: every Application on it that the user may see.

import {Fields, map, textOf} from '../fields';
import {compareNames} from '../fleet';
import {
    Hub,
    LIST,
    OnCluster,
    clusterPath,
    hubOf,
    isClusterName,
    mapInParallel,
    onCluster,
    pathOf,
    unread,
} from '../hub';
import {argoCd} from '../live';
import {Child, Element, c, h, react} from '../react';
import {healthBar, worksTable} from './clusters';
import {Details} from './details';
import {useSelection} from './filter';
import {Grid, GridColumn, healthColumn} from './grid';
import {failureNote, useLoaded} from './live';
import {choice, note, openPage, pageLink, placeholder} from './parts';
import {useStyle} from './style';

/** Returns the cluster in the address of the page. */
function useCluster(): string {
    const {useEffect, useState} = react();
    const [, render] = useState(0);
    useEffect(() => {
        const listener = (): void => render(current => current + 1);
        window.addEventListener('popstate', listener);
        return () => window.removeEventListener('popstate', listener);
    }, []);
    // Argo CD's sidebar changes the address without this event, and renders the page again.
    return new URLSearchParams(window.location.search).get('cluster') ?? '';
}

export function HubPage(): Element {
    useStyle();
    const {useState} = react();
    const cluster = useCluster();
    const [round, setRound] = useState(0);
    const hub = useLoaded(async signal => hubOf(await argoCd(LIST, signal)), [round], true);
    const reload = h(
        'button',
        {type: 'button', className: 'ocm-chip', onClick: () => setRound(current => current + 1)},
        'Reload',
    );
    let body: Child;
    if (hub.state === 'loading') body = placeholder('Reading the Applications …');
    else if (hub.state === 'failed') body = failureNote(hub.error);
    else
        body = h(
            'div',
            null,
            c(Chooser, {key: `choose ${cluster}`, hub: hub.value, cluster}),
            shown(hub.value, cluster),
        );
    return h('div', {className: 'ocm ocm-page'}, h('div', {className: 'ocm-live__bar'}, reload), body);
}

function shown(hub: Hub, cluster: string): Element {
    const count = hub.clusters.length;
    if (cluster === '')
        return placeholder(
            count === 0
                ? 'No Application that you may see is delivered to a managed cluster.'
                : `Choose one of ${count} managed cluster${count === 1 ? '' : 's'}.`,
        );
    if (!isClusterName(cluster)) return placeholder(`${JSON.stringify(cluster)} is not the name of a managed cluster.`);
    return c(ClusterPane, {key: cluster, hub, cluster});
}

/** An input for the name of a cluster, with the known names. */
function Chooser({hub, cluster}: {readonly hub: Hub; readonly cluster: string}): Element {
    const [name, setName] = react().useState(cluster);
    const onSubmit = (event: Event): void => {
        event.preventDefault();
        openPage(clusterPath(name.trim()));
    };
    return h(
        'form',
        {className: 'ocm-bar', onSubmit},
        h('input', {
            className: 'argo-field ocm-bar__filter',
            list: 'ocm-clusters',
            placeholder: 'Managed cluster',
            'aria-label': 'Managed cluster',
            value: name,
            onChange: (event: {target: {value: string}}) => setName(event.target.value),
        }),
        h(
            'datalist',
            {id: 'ocm-clusters'},
            hub.clusters.map(value => h('option', {key: value, value})),
        ),
        h('button', {type: 'submit', className: 'ocm-chip'}, 'Show'),
    );
}

interface PaneProps {
    readonly hub: Hub;
    readonly cluster: string;
}

function ClusterPane({hub, cluster}: PaneProps): Element {
    const {useState} = react();
    const listed = hub.byCluster.get(cluster) ?? [];
    const [project, setProject] = useState('');
    const [open, setOpen] = useState<string | undefined>(undefined);
    const answer = useLoaded(
        signal =>
            mapInParallel(listed, application =>
                argoCd(pathOf(application), signal).then(
                    found => onCluster(found, cluster),
                    error => unread(application, error),
                ),
            ),
        [hub],
        true,
    );
    const all = answer.state === 'ready' ? answer.value : NONE;
    const projects = [...new Set(all.map(row => row.project))].sort(compareNames);
    const ofProject = react().useMemo(
        () => (project === '' ? all : all.filter(row => row.project === project)),
        [all, project],
    );
    const more = choice(
        'Project',
        project,
        [['', 'All projects'], ...projects.map(name => [name, name] as const)],
        setProject,
    );
    const {rows, order, onOrder, bar} = useSelection(ofProject, COLUMNS, 'Applications', more);
    const openRow = all.find(({id}) => id === open);
    const hold = all.find(row => row.hold !== undefined)?.hold;
    let body: Child;
    if (answer.state === 'loading') body = placeholder(`Reading ${listed.length} Applications …`);
    else if (answer.state === 'failed') body = failureNote(answer.error);
    else if (all.length === 0) body = placeholder(`No Application that you may see is delivered to ${cluster}.`);
    else
        body = h(
            'div',
            null,
            healthBar(all),
            bar,
            rows.length === 0
                ? placeholder('No Applications match the filter.')
                : c(Grid<OnCluster>, {
                      label: `Applications on ${cluster}`,
                      columns: COLUMNS,
                      rows,
                      keyOf: ({id}) => id,
                      order,
                      onOrder,
                      open,
                      onOpen: setOpen,
                  }),
        );
    return h(
        'div',
        null,
        h('h2', {className: 'ocm-title'}, cluster),
        hold !== undefined && note('fa-pause-circle', '#f4c030', `${cluster} is ${hold || 'on hold'}`),
        all.some(({unreachable}) => unreachable) &&
            note('fa-exclamation-triangle', '#f4c030', `${cluster} is unreachable: showing its last reported state.`),
        hub.placed > 0 &&
            note(
                'fa-info-circle',
                '#6D7F8B',
                `Not included: ${hub.placed} Application${hub.placed === 1 ? '' : 's'} with a Placement, whose clusters Argo CD does not know. To see them, run: `,
                h('code', null, `argocd-ocm-cmp status --clusters ${cluster}`),
            ),
        body,
        openRow !== undefined &&
            c(Details, {
                key: openRow.id,
                title: openRow.id,
                onClose: () => setOpen(undefined),
                body: h(
                    'div',
                    {className: 'ocm-details__body'},
                    openRow.message !== '' && h('p', {className: 'ocm-message'}, openRow.message),
                    openRow.works.length > 0 && worksTable(openRow.application, openRow.works, false),
                    pageLink(applicationPath(openRow.application), 'Open the Application'),
                ),
            }),
    );
}

const NONE: readonly OnCluster[] = [];

function applicationPath(application: Fields): string {
    const metadata = map(application, 'metadata');
    return `applications/${encodeURIComponent(textOf(metadata, 'namespace'))}/${encodeURIComponent(textOf(metadata, 'name'))}`;
}

const COLUMNS: readonly GridColumn<OnCluster>[] = [
    {
        id: 'application',
        title: 'Application',
        width: 'minmax(140px, 1.5fr)',
        text: ({id}) => id,
        compare: (one, other) => compareNames(one.id, other.id),
    },
    {id: 'project', title: 'Project', width: 'minmax(90px, 1fr)', text: ({project}) => project},
    healthColumn('130px'),
    {id: 'sync', title: 'Sync', width: '100px', text: ({sync}) => sync},
    {
        id: 'works',
        title: 'Works',
        width: '80px',
        text: ({works}) => String(works.length),
        compare: (one, other) => one.works.length - other.works.length,
        unfiltered: true,
    },
    {id: 'message', title: 'Message', width: 'minmax(200px, 4fr)', text: ({message}) => message},
];
