// A fake of Argo CD's API of Applications. The parameter `api` of the page makes it fail, or have none.

import {IncomingMessage, ServerResponse} from 'node:http';
import {Fields, map, textOf} from '../src/fields';
import {hubApplications} from './samples';

/** Returns an Application in a list with selected fields: without conditions, and without the health of works. */
function listed(application: Fields): Fields {
    const {health: _, conditions: __, ...status} = map(application, 'status');
    const resources = (status['resources'] as Fields[] | undefined)?.map(({health: _, ...resource}) => resource);
    return {...application, status: {...status, resources}};
}

export function answerApplications(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://host');
    const mode = new URL(request.headers.referer ?? 'http://host').searchParams.get('api');
    const name = url.pathname.split('/')[4];
    const found = hubApplications().find(application => textOf(map(application, 'metadata'), 'name') === name);
    const send = (status: number, body: unknown): void => {
        response.writeHead(status, {'content-type': 'application/json'});
        response.end(JSON.stringify(body));
    };
    if (mode === 'failed') send(503, {error: 'the cache is not synced', code: 14});
    else if (mode === 'empty') send(200, {metadata: {}, items: null});
    else if (name === undefined) send(200, {items: hubApplications().map(listed)});
    else if (mode === 'refused' && name === 'search') send(403, {error: 'permission denied', code: 7});
    else if (found !== undefined && url.searchParams.get('appNamespace') === 'argocd') send(200, found);
    else send(404, {error: 'not found', code: 5});
}
