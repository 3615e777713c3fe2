// Answers as the back end of the feature `live` does. The name of the object selects the answer.

import {IncomingMessage, ServerResponse} from 'node:http';
import {Fields} from '../src/fields';
import {PASSWORD, before} from './samples';

/** The requests that it received, with the Application and the project in their headers. */
export interface Recorded {
    readonly url: string;
    readonly application: string;
    readonly project: string;
}

export const recorded: Recorded[] = [];

const HOSTILE = '<img src=x onerror="window.hacked=1">';

export function answerLive(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://host');
    const header = (name: string): string => String(request.headers[name] ?? '');
    recorded.push({
        url: `${url.pathname}${url.search}`,
        application: header('argocd-application-name'),
        project: header('argocd-project-name'),
    });
    const send = (status: number, type: string, body: string): void => {
        response.writeHead(status, {'content-type': type});
        response.end(body);
    };
    const json = (status: number, body: unknown): void => send(status, 'application/json', JSON.stringify(body));
    const name = url.searchParams.get('name') ?? '';
    switch (name) {
        case 'missing':
            return send(404, 'text/plain', '404 page not found');
        case 'page':
            return send(200, 'text/html; charset=utf-8', '<!DOCTYPE html><title>Argo CD</title>');
        case 'unreachable':
            return json(504, {error: 'managed cluster cluster2 is unreachable: its agent is not connected'});
        case 'forbidden':
            return send(403, 'text/plain', 'permission denied: extensions, invoke, live');
        case 'nonsense':
            return send(200, 'application/json', '{"live": ');
    }
    const endpoint = url.pathname.split('/').pop();
    if (endpoint === 'object') return json(200, object(name));
    if (endpoint === 'tree') return json(200, {nodes: nodes(name), truncated: name === 'shop'});
    if (endpoint === 'events') return json(200, {events: EVENTS, truncated: false});
    if (endpoint === 'logs') return logs(url, response);
    json(400, {error: `unknown endpoint ${url.pathname}`});
}

function object(name: string): unknown {
    if (name === 'credentials') {
        const live = {apiVersion: 'v1', kind: 'Secret', metadata: {name}, data: {password: btoa(PASSWORD)}};
        return {live, sent: live, difference: [{path: 'data.password', sent: PASSWORD, live: btoa(PASSWORD)}]};
    }
    if (name === 'fast') return {live: null, sent: {}, difference: []};
    const live = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: {name, namespace: 'shop', managedFields: [{manager: 'work-agent'}], annotations: {note: HOSTILE}},
        spec: {replicas: 5},
    };
    if (name === 'api') return changed(live);
    return {
        live,
        sent: live,
        difference: [
            {path: 'spec.replicas', sent: 3, live: 5},
            {path: `metadata.annotations["${HOSTILE}"]`, sent: null, live: HOSTILE},
        ],
    };
}

/** Returns the answer of the pictures, without hostile parts. */
function changed(object: Fields): unknown {
    const [sent, image] = ['example.com/api:1.4', 'example.com/api:1.5'];
    const template = {
        spec: {
            containers: [
                {name: 'web', image},
                {name: 'proxy', image: 'example.com/proxy:2.0'},
            ],
        },
    };
    const live = {...object, metadata: {name: 'api', namespace: 'shop'}, spec: {replicas: 5, template}};
    const difference = [
        {path: 'spec.replicas', sent: 3, live: 5},
        {path: 'spec.template.spec.containers[web].image', sent, live: image},
    ];
    return {live, sent: object, difference};
}

function nodes(name: string): unknown[] {
    const pod = (at: number): unknown => ({
        group: '',
        version: 'v1',
        kind: 'Pod',
        namespace: 'shop',
        name: `${name}-7d4b9c-${at}`,
        uid: `pod-${at}`,
        owner: 'set',
        created: before(300),
        status: at === 1 ? 'CrashLoopBackOff' : 'Running',
        message: at === 1 ? 'back-off 5m0s restarting failed container' : null,
        ready: at === 1 ? '1/2' : '2/2',
        containers: ['web', 'proxy'],
    });
    const node = (kind: string, name: string, uid: string, owner: string | null, ready: string | null): unknown => ({
        group: 'apps',
        version: 'v1',
        kind,
        namespace: 'shop',
        name,
        uid,
        owner,
        created: before(7200),
        status: 'Progressing',
        message: null,
        ready,
        containers: [],
    });
    // Children may come before their owners.
    return [
        pod(1),
        pod(2),
        node('ReplicaSet', `${name}-7d4b9c`, 'set', 'top', '1/2'),
        node('Deployment', name, 'top', null, '1/2'),
    ];
}

const EVENTS = [
    {
        type: 'Normal',
        reason: 'ScalingReplicaSet',
        message: 'Scaled up replica set web-7d4b9c to 2',
        count: 1,
        first: before(7200),
        last: before(7200),
        kind: 'Deployment',
        name: 'web',
    },
    {
        type: 'Warning',
        reason: 'BackOff',
        message: `Back-off restarting ${HOSTILE}`,
        count: 12,
        first: before(600),
        last: before(60),
        kind: 'Pod',
        name: 'web-7d4b9c-1',
    },
];

function logs(url: URL, response: ServerResponse): void {
    const [pods, container] = [url.searchParams.getAll('pod'), url.searchParams.get('container')];
    const name = url.searchParams.get('name') ?? '';
    const prefix = pods.length === 1 && container !== null ? '' : `[${name}-7d4b9c-1 web] `;
    const line = (text: string): string => `${prefix}${text}\n`;
    response.writeHead(200, {'content-type': 'text/plain; charset=utf-8'});
    if (url.searchParams.get('previous') === 'true') return void response.end(line('panic: out of memory'));
    if (name !== 'web') {
        const request = (at: number): string => line(`${before(60 - at)} GET /orders/${7 * at} 200 ${at % 5} ms`);
        return void response.end(line('listening on 8080') + Array.from({length: 8}, (_, at) => request(at)).join(''));
    }
    response.write(
        line('listening on 8080') +
            line(`GET ${HOSTILE}`) +
            line('\x1b[31mred\x1b[0m \x1b]0;title\x07and \x1b[2Jcleared') +
            line('café 日本'),
    );
    if (url.searchParams.get('follow') !== 'true') return void response.end(prefix + 'last line');
    let at = 0;
    const timer = setInterval(() => response.write(line(`tick ${++at}`)), 50);
    response.on('close', () => clearInterval(timer));
}
