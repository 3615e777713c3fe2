// Checks that deploy/deploy_ui.yaml mounts the extension where argocd-server looks for it. build.mjs checks that it is up to date.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

const [configMap = '', deployment = ''] = readFileSync('../deploy/deploy_ui.yaml', 'utf8').split('\n---\n');
const field = (text: string, name: string): string =>
    new RegExp(`^ *(?:- )?${name}: (.*)$`, 'm').exec(text)?.[1] ?? assert.fail(name);

test('mounts a file that argocd-server loads as an extension', () => {
    const path = field(deployment, 'mountPath');
    assert.match(path, /^\/tmp\/extensions\/extension[^/]*\.js$/);
    assert.equal(
        path.split('/').pop(),
        field(deployment, 'subPath'),
        'a folder would contain a symbolic link, which it ignores',
    );
    assert(configMap.includes(`\n  ${field(deployment, 'subPath')}: |\n`));
});

test('mounts the volume of the ConfigMap, and sets nothing else in the Deployment', () => {
    const name = /^metadata:\n {2}name: (.*)$/m.exec(configMap)?.[1];
    assert.equal(/^ {8}configMap:\n {10}name: (.*)$/m.exec(deployment)?.[1], name);
    assert.equal(
        field(deployment.slice(deployment.indexOf('volumeMounts')), 'name'),
        /^ {6}- name: (.*)\n {8}configMap:/m.exec(deployment)?.[1],
    );
    for (const left of ['image', 'replicas', 'selector', 'command', 'args', 'resources'])
        assert(!new RegExp(`^ *${left}:`, 'm').test(deployment), left);
});

test('the script sends requests in one place, and contains no React', () => {
    for (const call of [
        'require(',
        'import(',
        'import ',
        'XMLHttpRequest',
        'eval(',
        'innerHTML',
        'dangerouslySetInnerHTML',
        'react.production',
    ]) {
        assert(!configMap.includes(call), call);
    }
    assert.equal(configMap.split('fetch(').length, 2);
    assert(configMap.length < 100_000, `${configMap.length} bytes: each page of Argo CD loads it`);
});
