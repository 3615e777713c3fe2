// Shows an object of a work: the state that the agent reports, its manifest, and the tabs that ask its cluster.

import {Fields} from '../fields';
import {Target} from '../live';
import {isSecret, masked} from '../masked';
import {ObjectRow, qualifiedName, shortName} from '../objects';
import {Child, Element, c, h, react} from '../react';
import {yaml} from '../yaml';
import {Details, facts} from './details';
import {LIVE_TABS, LivePane, LiveTab} from './live';
import {ageLabel, healthLabel, tableHead, yesNo} from './parts';

interface Props {
    readonly row: ObjectRow;
    readonly wave: string;
    readonly now: number;
    /** True if an agent reports the object; false in a ManifestWorkReplicaSet. */
    readonly hasState: boolean;
    /** The managed cluster of the work, or undefined for a ManifestWorkReplicaSet. */
    readonly cluster: string | undefined;
    readonly application: Fields;
    readonly onClose: () => void;
}

type Tab = 'State' | LiveTab;
const TABS: readonly Tab[] = ['State', ...LIVE_TABS];

export function ObjectDetails(props: Props): Element {
    const {row, now, cluster, application, onClose} = props;
    const {useState} = react();
    const [tab, setTab] = useState<Tab>('State');
    const [pod, setPod] = useState('');
    const title = shortName(row);
    const state = c(State, props);
    if (cluster === undefined || row.name === '') return c(Details, {title, onClose, body: state});
    const {group, kind, namespace, name} = row;
    const target: Target = {cluster, group, kind, namespace, name};
    const onLogs = (pod: string): void => {
        setPod(pod);
        setTab('Logs');
    };
    const select = (next: Tab): void => {
        setPod('');
        setTab(next);
    };
    const body = h(
        'div',
        null,
        c(TabList, {tab, onSelect: select}),
        h(
            'div',
            {role: 'tabpanel', 'aria-label': tab},
            tab === 'State' ? state : c(LivePane, {key: tab, tab, target, application, now, onLogs, pod}),
        ),
    );
    return c(Details, {title, onClose, body});
}

/** The arrow keys, Home and End select a tab, as in WAI-ARIA. */
function TabList({tab, onSelect}: {readonly tab: Tab; readonly onSelect: (tab: Tab) => void}): Element {
    const list = react().useRef<HTMLElement | null>(null);
    const onKeyDown = (event: KeyboardEvent): void => {
        const [at, last] = [TABS.indexOf(tab), TABS.length - 1];
        const to: Readonly<Record<string, number>> = {
            ArrowLeft: at === 0 ? last : at - 1,
            ArrowRight: at === last ? 0 : at + 1,
            Home: 0,
            End: last,
        };
        const next = TABS[to[event.key] ?? -1];
        if (next === undefined) return;
        event.preventDefault();
        onSelect(next);
        list.current?.querySelectorAll('button')[TABS.indexOf(next)]?.focus();
    };
    return h(
        'div',
        {ref: list, className: 'ocm-tabs', role: 'tablist', 'aria-label': 'Views of the object', onKeyDown},
        TABS.map(name =>
            h(
                'button',
                {
                    key: name,
                    type: 'button',
                    role: 'tab',
                    className: 'ocm-tabs__tab',
                    'aria-selected': name === tab,
                    tabIndex: name === tab ? 0 : -1,
                    onClick: () => onSelect(name),
                },
                name,
            ),
        ),
    );
}

/** Shows what the agent reports, and the manifest in the work. */
function State({row, wave, now, hasState}: Props): Element {
    const state: (readonly [string, Child])[] = [
        ['Health', healthLabel(row.health)],
        ['Applied', yesNo(row.applied)],
        ['Available', yesNo(row.available)],
        ['Last change', ageLabel(row.since, now)],
        ...row.feedback.map(({name, value}) => [name, value] as const),
    ];
    return h(
        'div',
        {className: 'ocm-details__body'},
        row.message !== '' && h('p', {className: 'ocm-message'}, row.message),
        facts([['Wave', wave], ...(hasState ? state : [])]),
        row.conditions.length > 0 &&
            h(
                'table',
                {className: 'ocm-table'},
                tableHead(['Condition', 'Status', 'Reason', 'Since', 'Message']),
                h(
                    'tbody',
                    null,
                    row.conditions.map(condition =>
                        h(
                            'tr',
                            {key: condition.type},
                            h('td', null, condition.type),
                            h('td', null, condition.status),
                            h('td', null, condition.reason),
                            h('td', null, ageLabel(condition.since, now)),
                            h('td', null, condition.message),
                        ),
                    ),
                ),
            ),
        c(Manifest, {row}),
    );
}

function Manifest({row}: {readonly row: ObjectRow}): Element {
    const {useMemo, useState} = react();
    const text = useMemo(() => (row.manifest === undefined ? undefined : yaml(masked(row.manifest))), [row.manifest]);
    const [copied, setCopied] = useState(false);
    if (text === undefined) return h('p', {className: 'ocm-placeholder'}, 'The work no longer contains this object.');
    const copy = (): void =>
        void navigator.clipboard?.writeText(text).then(
            () => setCopied(true),
            () => setCopied(false),
        );
    return h(
        'div',
        null,
        h(
            'div',
            {className: 'ocm-details__head'},
            h('h4', null, `Manifest in the work${isSecret(row) ? ', with hidden values' : ''}`),
            h('button', {type: 'button', className: 'ocm-chip', onClick: copy}, copied ? 'Copied' : 'Copy'),
        ),
        h('pre', {className: 'ocm-yaml', tabIndex: 0, 'aria-label': `YAML of ${qualifiedName(row)}`}, text),
    );
}
