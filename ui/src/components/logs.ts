// Shows the logs of the Pods of an object.

import {Fields} from '../fields';
import {Target, TreeNode, liveHeaders, livePath, request} from '../live';
import {LogLines, NO_LINES, appended, matches, plain} from '../loglines';
import {Element, h, react} from '../react';
import {failureNote} from './live';
import {choice} from './parts';

interface Props {
    readonly target: Target;
    readonly application: Fields;
    readonly pods: readonly TreeNode[];
    /** The Pod to show first, or empty for all. */
    readonly pod: string;
}

/** The lines to ask for. */
const TAILS = [100, 1000, 10_000] as const;
/** The maximum number of lines on the page. */
const MAX_SHOWN = 2_000;
/** The time between two updates of the page. */
const UPDATE_MS = 100;

interface Stream {
    readonly log: LogLines;
    readonly state: 'open' | 'ended';
    readonly error?: unknown;
}

/** Returns the log lines of a path, as they arrive. Another path ends the stream. */
function useStream(path: string, application: Fields, round: number): Stream {
    const {useEffect, useState} = react();
    const [stream, setStream] = useState<Stream>({log: NO_LINES, state: 'open'});
    useEffect(() => {
        const controller = new AbortController();
        let log = NO_LINES;
        let timer: ReturnType<typeof setTimeout> | undefined;
        const show = (state: Stream['state'], error?: unknown): void => {
            clearTimeout(timer);
            timer = undefined;
            if (!controller.signal.aborted) setStream({log, state, error});
        };
        show('open');
        const read = async (): Promise<void> => {
            const response = await request(path, liveHeaders(application), controller.signal, response => response);
            const reader = response.body?.getReader();
            const decoder = new TextDecoder();
            for (;;) {
                const part = await reader?.read();
                if (part === undefined || part.done) break;
                log = appended(log, decoder.decode(part.value, {stream: true}));
                timer ??= setTimeout(() => show('open'), UPDATE_MS);
            }
            if (log.rest !== '') log = appended(log, '\n');
        };
        read().then(
            () => show('ended'),
            error => show('ended', error),
        );
        return () => {
            clearTimeout(timer);
            controller.abort();
        };
    }, [path, round]);
    return stream;
}

export function Logs({target, application, pods, pod: first}: Props): Element {
    const {useEffect, useRef, useState} = react();
    const [pod, setPod] = useState(first);
    const [container, setContainer] = useState('');
    const [tail, setTail] = useState<number>(TAILS[0]);
    const [previous, setPrevious] = useState(false);
    const [follow, setFollow] = useState(false);
    const [wrap, setWrap] = useState(true);
    const [words, setWords] = useState('');
    const [round, setRound] = useState(0);
    const path = livePath('logs', target, {pod, container, tail, previous, follow});
    const {log, state, error} = useStream(path, application, round);
    const found = words === '' ? log.lines : log.lines.filter(line => matches(plain(line), words).length > 1);
    const shown = found.slice(-MAX_SHOWN);

    const pane = useRef<HTMLElement | null>(null);
    const atEnd = useRef(true);
    useEffect(() => {
        if (pane.current !== null && atEnd.current) pane.current.scrollTop = pane.current.scrollHeight;
    }, [log, words, wrap]);
    const onScroll = (event: {target: HTMLElement}): void => {
        const {scrollTop, clientHeight, scrollHeight} = event.target;
        atEnd.current = scrollTop + clientHeight >= scrollHeight - 24;
    };

    const ofPods = pod === '' ? pods : pods.filter(({name}) => name === pod);
    const containers = [...new Set(ofPods.flatMap(node => node.containers))];
    const download = (): void => {
        const url = URL.createObjectURL(new Blob([log.lines.map(line => `${line}\n`).join('')], {type: 'text/plain'}));
        const link = document.createElement('a');
        link.href = url;
        link.download = `${pod === '' ? target.name : pod}.log`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(url), 1000);
    };
    const status = [
        words === '' ? `${log.lines.length} lines` : `${found.length} of ${log.lines.length} lines`,
        log.dropped > 0 && `${log.dropped} earlier lines are gone`,
        shown.length < found.length && `showing the last ${shown.length}`,
        state === 'open' ? (follow ? 'following' : 'loading') : follow && 'the stream has ended',
    ];
    return h(
        'div',
        null,
        h(
            'div',
            {className: 'ocm-bar'},
            h('input', {
                type: 'search',
                className: 'argo-field ocm-bar__filter',
                placeholder: 'Search the lines',
                'aria-label': 'Search the lines',
                value: words,
                onChange: (event: {target: {value: string}}) => setWords(event.target.value),
            }),
            choice('Pod', pod, [['', 'All Pods'], ...pods.map(({name}) => [name, name] as const)], next => {
                setPod(next);
                setContainer('');
            }),
            choice(
                'Container',
                container,
                [['', 'All containers'], ...containers.map(name => [name, name] as const)],
                setContainer,
            ),
            choice(
                'Lines',
                String(tail),
                TAILS.map(lines => [String(lines), `Last ${lines}`] as const),
                next => setTail(Number(next)),
            ),
            toggle('Follow', follow, () => {
                atEnd.current = true;
                setFollow(!follow);
            }),
            toggle('Previous', previous, () => setPrevious(!previous)),
            toggle('Wrap', wrap, () => setWrap(!wrap)),
            h(
                'button',
                {type: 'button', className: 'ocm-chip', onClick: () => setRound(current => current + 1)},
                'Reload',
            ),
            h('button', {type: 'button', className: 'ocm-chip', onClick: download}, 'Download'),
            h('span', {className: 'ocm-bar__count', role: 'status'}, status.filter(Boolean).join(', ')),
        ),
        error !== undefined && failureNote(error),
        h(
            'pre',
            {
                ref: pane,
                className: `ocm-yaml ocm-log${wrap ? ' ocm-log--wrap' : ''}`,
                tabIndex: 0,
                'aria-label': `Logs of ${target.kind} ${target.name}`,
                onScroll,
            },
            shown.map((line, at) =>
                h(
                    'div',
                    {key: at},
                    matches(plain(line), words).map((part, place) =>
                        place % 2 === 0 ? part : h('mark', {key: place}, part),
                    ),
                ),
            ),
        ),
    );
}

function toggle(name: string, pressed: boolean, onClick: () => void): Element {
    const className = `ocm-chip${pressed ? ' ocm-chip--pressed' : ''}`;
    return h('button', {type: 'button', className, 'aria-pressed': pressed, onClick}, name);
}
