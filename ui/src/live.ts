// Requests to Argo CD, and to its proxy extension `live`, which reads objects on managed clusters. Answers may have any content.

import {Fields, fields, isMap, list, map, maps, number, text, textOf} from './fields';

/** An object of a work on a cluster. */
export interface Target {
    readonly cluster: string;
    readonly group: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
}

export interface Difference {
    readonly path: string;
    readonly sent: unknown;
    readonly live: unknown;
}

export interface LiveObject {
    /** Undefined if it is not on the cluster. */
    readonly live: Fields | undefined;
    readonly differences: readonly Difference[];
}

export interface TreeNode {
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
    readonly created: string | undefined;
    readonly status: string;
    readonly message: string;
    readonly ready: string;
    readonly containers: readonly string[];
    /** The number of its owners in the tree. */
    readonly depth: number;
}

export interface Tree {
    /** Each below its owner. */
    readonly nodes: readonly TreeNode[];
    readonly truncated: boolean;
}

export interface LiveEvent {
    readonly type: string;
    readonly reason: string;
    readonly message: string;
    readonly count: number;
    readonly last: string | undefined;
    readonly object: string;
}

export interface Events {
    /** The newest first. */
    readonly events: readonly LiveEvent[];
    readonly truncated: boolean;
}

export interface LogOptions {
    /** The name of a Pod, or empty for all. */
    readonly pod: string;
    /** The name of a container, or empty for all. */
    readonly container: string;
    readonly tail: number;
    readonly previous: boolean;
    readonly follow: boolean;
}

/**
 * The maximum time until the service answers. It gives up earlier: it waits 5 seconds for each request to a cluster, and may need
 * several.
 */
const PATIENCE_MS = 30_000;

/** The maximum time until Argo CD itself answers: a list of thousands of Applications takes seconds. */
const ARGO_CD_PATIENCE_MS = 60_000;

/** The service `live` is not installed on the hub. */
export class NotInstalled extends Error {}

/** Returns the path of a request below Argo CD's address. */
export function livePath(endpoint: string, target: Target, logs?: LogOptions): string {
    const {cluster, group, kind, namespace, name} = target;
    const query = new URLSearchParams({cluster, group, kind, namespace, name});
    if (logs !== undefined) {
        if (logs.pod !== '') query.append('pod', logs.pod);
        if (logs.container !== '') query.append('container', logs.container);
        query.append('tail', String(logs.tail));
        if (logs.previous) query.append('previous', 'true');
        if (logs.follow) query.append('follow', 'true');
    }
    return `extensions/live/api/v1/${endpoint}?${query}`;
}

/** Returns the headers that argocd-server requires: it checks access to the Application. */
export function liveHeaders(application: Fields): Record<string, string> {
    const metadata = map(application, 'metadata');
    return {
        'Argocd-Application-Name': `${textOf(metadata, 'namespace')}:${textOf(metadata, 'name')}`,
        'Argocd-Project-Name': text(map(application, 'spec'), 'project') ?? 'default',
    };
}

/** Reads JSON from the API of Argo CD, which returns only what the user may see. Throws an error with one line for the user. */
export async function argoCd(path: string, signal: AbortSignal): Promise<Fields> {
    try {
        return fields(await request(`api/v1/${path}`, {}, signal, response => response.json(), ARGO_CD_PATIENCE_MS));
    } catch (error) {
        throw error instanceof NotInstalled ? new Error('Argo CD answers with status 404') : error;
    }
}

/**
 * Sends a request, and returns what `read` returns for the answer within the maximum time. Throws an error with one line for the
 * user.
 */
export async function request<T>(
    path: string,
    headers: Record<string, string>,
    signal: AbortSignal,
    read: (response: Response) => T | Promise<T>,
    patience = PATIENCE_MS,
): Promise<T> {
    const ours = new AbortController();
    const abort = (): void => ours.abort();
    signal.addEventListener('abort', abort);
    let late = false;
    const timer = setTimeout(() => {
        late = true;
        abort();
    }, patience);
    try {
        const url = new URL(path, document.baseURI);
        const response = await fetch(url, {headers, signal: ours.signal, credentials: 'same-origin'});
        // Argo CD answers unknown paths with its own page.
        const isPage = (response.headers.get('content-type') ?? '').startsWith('text/html');
        if (!response.ok || isPage) throw failure(response.ok ? 404 : response.status, await response.text());
        return await read(response);
    } catch (error) {
        if (late) {
            const who = patience === PATIENCE_MS ? 'the service live' : 'Argo CD';
            throw new Error(`no answer from ${who} within ${patience / 1000} seconds`);
        }
        if (error instanceof SyntaxError) throw new Error('the answer is not JSON');
        if (error instanceof TypeError) throw new Error('Argo CD does not answer');
        throw error;
    } finally {
        clearTimeout(timer);
    }
}

/** Returns the error that an answer means. */
export function failure(status: number, body: string): Error {
    const message = text(fields(parsed(body)), 'error');
    if (message !== undefined) return new Error(message);
    if (status === 404) return new NotInstalled();
    // Argo CD's answer to a user without the permission has the same status as that without a session.
    if (status === 403 || (status === 401 && body.startsWith('Unauthorized extension request')))
        return new Error('you have no permission: ask an administrator of Argo CD for `extensions, invoke, live`');
    if (status === 401) return new Error('your session has expired: log in again');
    return new Error(`Argo CD answers with status ${status}`);
}

function parsed(body: string): unknown {
    try {
        return JSON.parse(body);
    } catch {
        return undefined;
    }
}

export function liveObject(answer: unknown): LiveObject {
    const live = fields(answer)['live'];
    return {
        live: isMap(live) ? live : undefined,
        differences: maps(fields(answer), 'difference').map(each => ({
            path: textOf(each, 'path'),
            sent: each['sent'],
            live: each['live'],
        })),
    };
}

/** Returns the nodes in the order of a tree. Nodes whose owner is missing, or that own each other, are at the top. */
export function tree(answer: unknown): Tree {
    const nodes = maps(fields(answer), 'nodes');
    const uids = new Set(nodes.map(node => textOf(node, 'uid')));
    const below = new Map<string, Fields[]>();
    for (const node of nodes) {
        const owner = text(node, 'owner') ?? '';
        const key = uids.has(owner) ? owner : '';
        below.set(key, [...(below.get(key) ?? []), node]);
    }
    const ordered: TreeNode[] = [];
    const added = new Set<Fields>();
    const add = (node: Fields, depth: number): void => {
        if (added.has(node)) return;
        added.add(node);
        ordered.push(treeNode(node, depth));
        const uid = textOf(node, 'uid');
        if (uid !== '') for (const child of below.get(uid) ?? []) add(child, depth + 1);
    };
    for (const node of below.get('') ?? []) add(node, 0);
    for (const node of nodes) add(node, 0);
    return {nodes: ordered, truncated: fields(answer)['truncated'] === true};
}

function treeNode(node: Fields, depth: number): TreeNode {
    return {
        kind: textOf(node, 'kind'),
        name: textOf(node, 'name'),
        uid: textOf(node, 'uid'),
        created: text(node, 'created'),
        status: textOf(node, 'status'),
        message: textOf(node, 'message'),
        ready: textOf(node, 'ready'),
        containers: list(node, 'containers').filter((name): name is string => typeof name === 'string'),
        depth,
    };
}

export function events(answer: unknown): Events {
    const events = maps(fields(answer), 'events').map(event => ({
        type: textOf(event, 'type'),
        reason: textOf(event, 'reason'),
        message: textOf(event, 'message'),
        count: number(event, 'count') ?? 1,
        last: text(event, 'last') ?? text(event, 'first'),
        object: `${textOf(event, 'kind')} ${textOf(event, 'name')}`.trim(),
    }));
    events.sort((one, other) => (other.last ?? '').localeCompare(one.last ?? ''));
    return {events, truncated: fields(answer)['truncated'] === true};
}
