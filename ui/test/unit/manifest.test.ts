// deploy/deploy_ui.yaml delivers the extension to where argocd-server looks for it. That it carries what ui/src builds to, build.mjs checks.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

const [configMap = '', deployment = ''] = readFileSync('../deploy/deploy_ui.yaml', 'utf8').split('\n---\n');
const field = (text: string, name: string): string =>
    new RegExp(`^ *(?:- )?${name}: (.*)$`, 'm').exec(text)?.[1] ?? assert.fail(name);

test('the file is one that argocd-server takes for an extension', () => {
    const path = field(deployment, 'mountPath');
    assert.match(path, /^\/tmp\/extensions\/extension[^/]*\.js$/);
    assert.equal(
        path.split('/').pop(),
        field(deployment, 'subPath'),
        'a folder would hold a symbolic link, which it passes over',
    );
    assert(configMap.includes(`\n  ${field(deployment, 'subPath')}: |\n`));
});

test('the volume is that of the ConfigMap, and all else of the Deployment is left to Argo CD', () => {
    const name = /^metadata:\n {2}name: (.*)$/m.exec(configMap)?.[1];
    assert.equal(/^ {8}configMap:\n {10}name: (.*)$/m.exec(deployment)?.[1], name);
    assert.equal(
        field(deployment.slice(deployment.indexOf('volumeMounts')), 'name'),
        /^ {6}- name: (.*)\n {8}configMap:/m.exec(deployment)?.[1],
    );
    for (const left of ['image', 'replicas', 'selector', 'command', 'args', 'resources'])
        assert(!new RegExp(`^ *${left}:`, 'm').test(deployment), left);
});

test('the script asks for nothing and brings no React', () => {
    for (const call of [
        'require(',
        'import(',
        'import ',
        'fetch(',
        'XMLHttpRequest',
        'eval(',
        'innerHTML',
        'dangerouslySetInnerHTML',
        'react.production',
    ]) {
        assert(!configMap.includes(call), call);
    }
    assert(configMap.length < 100_000, `${configMap.length} bytes: each page of Argo CD loads them`);
});
