// The tabs that show an object as it is on its cluster. Only an open tab sends requests.

import {Fields} from '../fields';
import {
    Difference,
    Events,
    LiveObject,
    NotInstalled,
    Target,
    Tree,
    TreeNode,
    events,
    liveHeaders,
    liveObject,
    livePath,
    request,
    tree,
} from '../live';
import {isSecret, masked, MASK} from '../masked';
import {Child, Element, c, h, react} from '../react';
import {yaml} from '../yaml';
import {Logs} from './logs';
import {ageLabel, note, placeholder, tableHead} from './parts';

export const LIVE_TABS = ['Live', 'Diff', 'Pods', 'Events', 'Logs'] as const;
export type LiveTab = (typeof LIVE_TABS)[number];

export type Answer<T> =
    | {readonly state: 'loading'}
    | {readonly state: 'failed'; readonly error: unknown}
    | {readonly state: 'ready'; readonly value: T};

interface Props {
    readonly tab: LiveTab;
    readonly target: Target;
    readonly application: Fields;
    readonly now: number;
    /** Opens the logs of a Pod. */
    readonly onLogs: (pod: string) => void;
    /** The Pod whose logs to show, or empty for all. */
    readonly pod: string;
}

/**
 * Returns what `load` returns. Other dependencies, or a closed page, end its requests. With `keeps`, the previous answer stays until the
 * next one.
 */
export function useLoaded<T>(
    load: (signal: AbortSignal) => Promise<T>,
    dependencies: readonly unknown[],
    keeps: boolean,
): Answer<T> {
    const {useEffect, useState} = react();
    const [answer, setAnswer] = useState<Answer<T>>({state: 'loading'});
    useEffect(() => {
        const controller = new AbortController();
        const set = (next: Answer<T>): void => void (controller.signal.aborted || setAnswer(next));
        setAnswer(current => (keeps && current.state === 'ready' ? current : {state: 'loading'}));
        load(controller.signal).then(
            value => set({state: 'ready', value}),
            error => set({state: 'failed', error}),
        );
        return () => controller.abort();
    }, dependencies);
    return answer;
}

/** Returns the answer of an endpoint, and a function that asks again. */
function useAnswer<T>(path: string, application: Fields, read: (answer: unknown) => T): [Answer<T>, () => void] {
    const [round, setRound] = react().useState(0);
    const load = async (signal: AbortSignal): Promise<T> =>
        read(await request(path, liveHeaders(application), signal, (response): Promise<unknown> => response.json()));
    return [useLoaded(load, [path, round], false), () => setRound(current => current + 1)];
}

/** Shows the content of a tab. */
export function LivePane(props: Props): Element {
    switch (props.tab) {
        case 'Live':
            return c(ObjectTab, props);
        case 'Diff':
            return c(DiffTab, props);
        case 'Pods':
            return c(PodsTab, props);
        case 'Events':
            return c(EventsTab, props);
        case 'Logs':
            return c(LogsTab, props);
    }
}

function ObjectTab({target, application}: Props): Element {
    const [answer, again] = useAnswer(livePath('object', target), application, liveObject);
    return answered(answer, again, ({live}: LiveObject) => {
        if (live === undefined) return placeholder('The object is not on the cluster.');
        const text = yaml(masked(withoutManagedFields(live)));
        return h('pre', {className: 'ocm-yaml', tabIndex: 0, 'aria-label': 'YAML of the live object'}, text);
    });
}

function withoutManagedFields(object: Fields): Fields {
    const {managedFields: _, ...metadata} = (object['metadata'] ?? {}) as Record<string, unknown>;
    return {...object, metadata};
}

function DiffTab({target, application}: Props): Element {
    const [answer, again] = useAnswer(livePath('object', target), application, liveObject);
    const value = (value: unknown): Child => {
        if (value === undefined || value === null) return '–';
        return h('pre', {className: 'ocm-value'}, isSecret(target) ? MASK : yaml(masked(value)).trimEnd());
    };
    const row = ({path, sent, live}: Difference): Child[] => [h('code', null, path), value(sent), value(live)];
    return answered(answer, again, ({live, differences}: LiveObject) => {
        if (live === undefined) return placeholder('The object is not on the cluster.');
        if (differences.length === 0) return placeholder('The live object has all values that the work sets.');
        return table(['Field', 'In the work', 'On the cluster'], differences.map(row));
    });
}

function PodsTab({target, application, now, onLogs}: Props): Element {
    const [answer, again] = useAnswer(livePath('tree', target), application, tree);
    const row = (node: TreeNode): Child[] => [
        h('span', {style: {paddingLeft: `${Math.min(node.depth, 8) * 16}px`}}, `${node.kind} ${node.name}`),
        node.status,
        node.ready === '' ? '–' : node.ready,
        ageLabel(node.created, now),
        node.message,
        node.kind === 'Pod' &&
            h(
                'button',
                {
                    type: 'button',
                    className: 'ocm-chip',
                    'aria-label': `Logs of ${node.name}`,
                    onClick: () => onLogs(node.name),
                },
                'Logs',
            ),
    ];
    return answered(answer, again, ({nodes, truncated}: Tree) => {
        if (nodes.length === 0) return placeholder('The object is not on the cluster.');
        return h(
            'div',
            null,
            truncated && cut('objects'),
            table(['Object', 'Status', 'Ready', 'Age', 'Message', ''], nodes.map(row)),
        );
    });
}

function EventsTab({target, application, now}: Props): Element {
    const [answer, again] = useAnswer(livePath('events', target), application, events);
    return answered(answer, again, ({events, truncated}: Events) => {
        if (events.length === 0) return placeholder('The cluster has no Events of the object and what it owns.');
        return h(
            'div',
            null,
            truncated && cut('Events'),
            table(
                ['Type', 'Reason', 'Object', 'Message', 'Count', 'Last'],
                events.map(event => [
                    event.type === 'Warning'
                        ? h(
                              'span',
                              null,
                              h('i', {
                                  className: 'fa fa-exclamation-triangle ocm-icon ocm-warning',
                                  'aria-hidden': true,
                              }),
                              event.type,
                          )
                        : event.type,
                    event.reason,
                    event.object,
                    event.message,
                    event.count,
                    ageLabel(event.last, now),
                ]),
            ),
        );
    });
}

function LogsTab({target, application, pod}: Props): Element {
    const [answer, again] = useAnswer(livePath('tree', target), application, tree);
    const show = ({nodes}: Tree): Child => {
        const pods = nodes.filter(({kind}) => kind === 'Pod');
        if (pods.length === 0) return placeholder('The object has no Pods.');
        return c(Logs, {target, application, pods, pod});
    };
    // The logs have their own button.
    return answered(answer, again, show, false);
}

function cut(noun: string): Element {
    return note('fa-info-circle', '#6D7F8B', `There are more ${noun} than are shown here.`);
}

/** Shows an answer, its error, or that it is awaited. */
function answered<T>(answer: Answer<T>, again: () => void, show: (value: T) => Child, hasBar = true): Element {
    const refresh = h('button', {type: 'button', className: 'ocm-chip', onClick: again}, 'Refresh');
    if (answer.state === 'loading') return h('div', {role: 'status'}, placeholder('Asking the cluster…'));
    if (answer.state === 'failed') return h('div', null, failureNote(answer.error), refresh);
    return h('div', null, hasBar && h('div', {className: 'ocm-live__bar'}, refresh), show(answer.value));
}

export function failureNote(error: unknown): Element {
    if (error instanceof NotInstalled)
        return note(
            'fa-info-circle',
            '#6D7F8B',
            'This hub does not have the feature ',
            h('code', null, 'live'),
            ', which reads objects on managed clusters. An administrator can install it.',
        );
    const message = error instanceof Error ? error.message : String(error);
    return h('div', {role: 'alert'}, note('fa-exclamation-triangle', '#f4c030', message));
}

function table(titles: readonly string[], rows: readonly (readonly Child[])[]): Element {
    return h(
        'table',
        {className: 'ocm-table'},
        tableHead(titles),
        h(
            'tbody',
            null,
            rows.map((cells, at) =>
                h(
                    'tr',
                    {key: at},
                    cells.map((cell, column) => h('td', {key: column}, cell)),
                ),
            ),
        ),
    );
}
