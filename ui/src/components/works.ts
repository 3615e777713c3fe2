// The tabs of a ManifestWork and of a ManifestWorkReplicaSet.

import {Condition} from '../conditions';
import {Fields, fields, map} from '../fields';
import {applicationName, clustersOnHold, compareNames, unreachableClusters} from '../fleet';
import {HealthStatus} from '../health';
import {ObjectRow, qualifiedName} from '../objects';
import {Child, Element, c, h, react, useNow} from '../react';
import {setOf} from '../set';
import {waveName} from '../wave';
import {WorkStatus, evaluateHealth, healthyMessage} from '../work';
import {facts} from './details';
import {useSelection} from './filter';
import {Grid, GridColumn, healthColumn} from './grid';
import {ObjectDetails} from './object';
import {ageLabel, agoLabel, healthLabel, note, placeholder, yesNo} from './parts';
import {useStyle} from './style';

/** The props that Argo CD passes to the tab of a resource. */
export interface TabProps {
    readonly application?: unknown;
    readonly resource?: unknown;
    readonly tree?: unknown;
}

export function WorkTab(props: TabProps): Element {
    useStyle();
    const now = useNow();
    const resource = fields(props.resource);
    const metadata = map(resource, 'metadata');
    const work = react().useMemo(() => evaluateHealth(resource, now), [props.resource, now]);
    const unreachable = unreachableClusters(map(fields(props.application), 'status')).has(work.cluster);
    const hold = clustersOnHold(map(fields(props.application), 'status')).get(work.cluster);
    const message =
        work.message !== ''
            ? work.message
            : work.health === 'Healthy'
              ? healthyMessage(work)
              : healthyCountMessage(work);
    const summary = facts([
        ['Cluster', work.cluster],
        ['Wave', waveName(metadata)],
        ['Agent last wrote', agoLabel(work.lastWrite, now)],
    ]);
    return h(
        'div',
        {className: 'ocm'},
        healthHead(work.health, message),
        summary,
        unreachable &&
            note(
                'fa-exclamation-triangle',
                '#f4c030',
                `${work.cluster} is unreachable: showing its last reported state.`,
            ),
        hold !== undefined && note('fa-pause-circle', '#f4c030', `${work.cluster} is ${hold || 'on hold'}`),
        c(Objects, {
            objects: work.objects,
            metadata,
            now,
            hasState: true,
            cluster: work.cluster,
            application: fields(props.application),
        }),
    );
}

export function SetTab(props: TabProps): Element {
    useStyle();
    const now = useNow();
    const resource = fields(props.resource);
    const metadata = map(resource, 'metadata');
    const set = react().useMemo(() => setOf(resource, fields(props.tree)), [props.resource, props.tree]);
    const summary: (readonly [string, Child])[] = [
        ...set.counts.map(([name, count]) => [`Clusters ${name}`, count] as const),
        ...set.placements.map(({name, groups}) => [`Placement ${name}`, groups] as const),
        ['Wave', waveName(metadata)],
        ['OCM last wrote', agoLabel(set.lastWrite, now)],
    ];
    return h(
        'div',
        {className: 'ocm'},
        healthHead(set.health, set.message),
        facts(summary),
        set.conditions.length > 0 &&
            facts(set.conditions.map(condition => [condition.type, conditionText(condition)] as const)),
        note(
            'fa-info-circle',
            '#6D7F8B',
            'OCM creates a work with these objects for each cluster. To see their state there, run: ',
            h('code', null, `argocd-ocm-cmp status ${applicationName(fields(props.application))}`),
        ),
        c(Objects, {
            objects: set.objects,
            metadata,
            now,
            hasState: false,
            cluster: undefined,
            application: fields(props.application),
        }),
    );
}

function healthHead(health: HealthStatus, message: string): Element {
    return h('div', {className: 'ocm-head'}, h('span', {className: 'ocm-head__health'}, healthLabel(health)), message);
}

function healthyCountMessage(work: WorkStatus): string {
    const healthy = work.objects.filter(({health}) => health === 'Healthy').length;
    return `${healthy} of ${work.objects.length} objects are healthy on managed cluster ${work.cluster}`;
}

function conditionText(condition: Condition): string {
    return [condition.status, condition.reason, condition.message]
        .filter(text => text !== undefined && text !== '')
        .join(': ');
}

interface ObjectsProps {
    readonly objects: readonly ObjectRow[];
    /** The metadata of the work. */
    readonly metadata: Fields;
    readonly now: number;
    readonly hasState: boolean;
    /** The managed cluster of the work, or undefined for a ManifestWorkReplicaSet. */
    readonly cluster: string | undefined;
    readonly application: Fields;
}

function Objects({objects, metadata, now, hasState, cluster, application}: ObjectsProps): Element {
    const [open, setOpen] = react().useState<string | undefined>(undefined);
    const wave = waveName(metadata);
    const columns = columnsOf(wave, now, hasState);
    const {rows, order, onOrder, bar} = useSelection(objects, columns, 'objects');
    const openRow = objects.find(({id}) => id === open);
    return h(
        'div',
        null,
        hasState || objects.length > 10 ? bar : null,
        rows.length === 0
            ? placeholder(objects.length === 0 ? 'The work has no objects.' : 'No objects match the filter.')
            : c(Grid<ObjectRow>, {
                  label: 'Objects of the work',
                  columns,
                  rows,
                  keyOf: ({id}) => id,
                  order,
                  onOrder,
                  open,
                  onOpen: setOpen,
              }),
        openRow !== undefined &&
            c(ObjectDetails, {
                key: openRow.id,
                row: openRow,
                wave,
                now,
                hasState,
                cluster,
                application,
                onClose: () => setOpen(undefined),
            }),
    );
}

function columnsOf(wave: string, now: number, hasState: boolean): GridColumn<ObjectRow>[] {
    const kind = (row: ObjectRow): string => (row.group === '' ? row.kind : `${row.kind}.${row.group}`);
    const availability = (value: boolean | undefined): number => (value === false ? 0 : value === undefined ? 1 : 2);
    const name: GridColumn<ObjectRow>[] = [
        {id: 'kind', title: 'Kind', width: 'minmax(100px, 1.1fr)', text: kind, cell: row => row.kind},
        {
            id: 'name',
            title: 'Namespace/name',
            width: 'minmax(140px, 1.8fr)',
            text: qualifiedName,
            compare: (one, other) => compareNames(qualifiedName(one), qualifiedName(other)),
        },
        // All objects of a work have the wave of the work.
        {id: 'wave', title: 'Wave', width: '80px', text: () => wave, compare: () => 0, unfiltered: true},
    ];
    const yaml: GridColumn<ObjectRow> = {
        id: 'yaml',
        title: 'YAML',
        width: '56px',
        text: () => 'Show the manifest',
        compare: () => 0,
        unfiltered: true,
        cell: () => h('span', {className: 'ocm-link'}, 'YAML'),
    };
    if (!hasState) return [...name, yaml];
    return [
        ...name,
        {
            id: 'applied',
            title: 'Applied',
            width: '74px',
            text: row => yesNo(row.applied),
            compare: (one, other) => availability(one.applied) - availability(other.applied),
            unfiltered: true,
        },
        {
            id: 'available',
            title: 'Available',
            width: '84px',
            text: row => yesNo(row.available),
            compare: (one, other) => availability(one.available) - availability(other.available),
            unfiltered: true,
        },
        healthColumn('120px'),
        {id: 'values', title: 'Values', width: 'minmax(100px, 1.7fr)', text: values},
        {id: 'message', title: 'Message', width: 'minmax(140px, 3fr)', text: row => row.message},
        {
            id: 'since',
            title: 'Changed',
            width: '90px',
            text: row => row.since ?? '',
            cell: row => ageLabel(row.since, now),
            compare: (one, other) => (other.since ?? '').localeCompare(one.since ?? ''),
            unfiltered: true,
        },
        yaml,
    ];
}

function values(row: ObjectRow): string {
    return row.feedback.map(({name, value}) => `${name} ${value}`).join(', ');
}
