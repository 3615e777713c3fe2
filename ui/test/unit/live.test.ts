import assert from 'node:assert/strict';
import {test} from 'node:test';
import {NotInstalled, events, failure, liveHeaders, liveObject, livePath, request, tree} from '../../src/live';
import {MAX_LINES, NO_LINES, appended, matches, plain} from '../../src/loglines';

test('names of objects cannot change a request', () => {
    const target = {cluster: 'c1', group: '', kind: 'Pod&x=1', namespace: '../..', name: 'a b?#'};
    assert.equal(
        livePath('object', target),
        'extensions/live/api/v1/object?cluster=c1&group=&kind=Pod%26x%3D1&namespace=..%2F..&name=a+b%3F%23',
    );
    const logs = {pod: 'web-1', container: 'web', tail: 100, previous: true, follow: true};
    assert.match(livePath('logs', target, logs), /&pod=web-1&container=web&tail=100&previous=true&follow=true$/);
    assert.deepEqual(liveHeaders({metadata: {namespace: 'team', name: 'shop'}, spec: {project: 'shops'}}), {
        'Argocd-Application-Name': 'team:shop',
        'Argocd-Project-Name': 'shops',
    });
});

test('errors are one line for the user', () => {
    assert.equal(failure(504, '{"error": "cluster1 is unreachable"}').message, 'cluster1 is unreachable');
    assert(failure(404, '404 page not found') instanceof NotInstalled);
    assert(!(failure(404, '{"error": "not in a work of the Application"}') instanceof NotInstalled));
    assert.match(failure(403, 'permission denied').message, /extensions, invoke, live/);
    assert.match(failure(401, 'Unauthorized extension request').message, /extensions, invoke, live/);
    assert.match(failure(401, '{"error": ""}').message, /log in again/);
    assert.equal(failure(502, '<html>').message, 'Argo CD answers with status 502');
});

test('a request without an answer ends', async () => {
    const fetchWithoutAnswer = (_: URL, {signal}: {signal: AbortSignal}): Promise<never> =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    Object.assign(globalThis, {document: {baseURI: 'http://host/'}, fetch: fetchWithoutAnswer});
    const sent = request('x', {}, new AbortController().signal, response => response, 10);
    await assert.rejects(sent, /^Error: no answer from Argo CD within 0.01 seconds$/);
});

test('a tree has each object below its owner, whatever the answer', () => {
    const node = (uid: string, owner: string | null): unknown => ({kind: 'Pod', name: uid, uid, owner});
    const shown = (nodes: unknown[]): unknown => tree({nodes}).nodes.map(({uid, depth}) => [uid, depth]);
    assert.deepEqual(shown([node('c', 'b'), node('b', 'a'), node('a', null), node('d', 'gone')]), [
        ['a', 0],
        ['b', 1],
        ['c', 2],
        ['d', 0],
    ]);
    assert.deepEqual(shown([node('a', 'b'), node('b', 'a')]), [
        ['a', 0],
        ['b', 1],
    ]);
    assert.deepEqual(shown([node('a', 'a'), node('', null)]), [
        ['', 0],
        ['a', 0],
    ]);
    for (const answer of [undefined, null, 7, 'x', [], {nodes: 3, events: 3, difference: 3, live: []}]) {
        assert.deepEqual(tree(answer).nodes, []);
        assert.deepEqual(events(answer).events, []);
        assert.deepEqual(liveObject(answer), {live: undefined, differences: []});
    }
});

test('events are shown newest first', () => {
    const all = events({
        events: [
            {reason: 'a', first: '2026-01-01T00:00:00Z'},
            {reason: 'b', last: '2026-01-02T00:00:00Z'},
        ],
    });
    assert.deepEqual(
        all.events.map(({reason, count}) => [reason, count]),
        [
            ['b', 1],
            ['a', 1],
        ],
    );
});

test('log lines are complete however the stream is divided, and limited', () => {
    const stream = 'one\ntwo\r\n\nfour';
    for (let size = 1; size <= stream.length; size++) {
        let log = NO_LINES;
        for (let at = 0; at < stream.length; at += size) log = appended(log, stream.slice(at, at + size));
        assert.deepEqual([log.lines, log.rest], [['one', 'two\r', ''], 'four']);
    }
    const many = appended(NO_LINES, 'x\n'.repeat(MAX_LINES + 5));
    assert.deepEqual([many.lines.length, many.dropped], [MAX_LINES, 5]);
    let long = NO_LINES;
    for (let part = 0; part < 100; part++) long = appended(long, 'x'.repeat(1000));
    assert(long.lines.every(line => line.length <= 16_384) && long.rest.length <= 16_384);
    assert.equal(long.lines.join('').length + long.rest.length, 100_000);
});

test('escape sequences are left out', () => {
    assert.equal(plain('\x1b[31mred\x1b[0m \x1b]0;title\x07a\tb\x1b[2J\x1b[1;1Hc\r'), 'red a\tbc');
    assert.equal(plain('\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\ \x9b31m\u202edesrever\u202c'), 'link 31mdesrever');
    assert.equal(plain('\x1b]unfinished'), '');
    assert.equal(plain('plain [1m] 日本'), 'plain [1m] 日本');
});

test('search divides a text at its matches', () => {
    assert.deepEqual(matches('an Error, no error', 'error'), ['an ', 'Error', ', no ', 'error', '']);
    assert.deepEqual(matches('nothing', 'error'), ['nothing']);
    assert.deepEqual(matches('anything', ''), ['anything']);
    assert.deepEqual(matches('(.*)', '.*'), ['(', '.*', ')']);
});
