// Serves a page that loads an extension as Argo CD does: with the script that argocd-server serves, and with the page's React.

import {IncomingMessage, ServerResponse, createServer, request as send} from 'node:http';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {AddressInfo} from 'node:net';
import {build} from 'esbuild';
import {answerApplications} from '../fake_argo_cd';
import {answerLive} from '../fake_live';
import {NOW} from '../samples';

/** The versions of React that Argo CD used, and those between. */
export const REACTS = ['16', '17', '18', '19'] as const;
export type React = (typeof REACTS)[number];

export interface Page {
    readonly address: string;
    /** Ends the server. */
    close(): void;
}

const folder = process.cwd();
const require = createRequire(join(folder, 'package.json'));

/** Answers a request to argocd-server. */
export type Extensions = (request: IncomingMessage, response: ServerResponse) => void;

/** Serves pages such as `/?react=18&theme=dark`, with the extension from a file, and what answers its requests. */
export async function serve(
    extension: string,
    extensions: Extensions = answerLive,
    applications: Extensions = answerApplications,
): Promise<Page> {
    const react19 = await bundle19();
    const icons = dirname(require.resolve('@fortawesome/fontawesome-free/package.json'));
    const server = createServer((request, response) => {
        const url = new URL(request.url ?? '/', 'http://host');
        const send = (type: string, body: string | Buffer): void => {
            response.writeHead(200, {'content-type': type});
            response.end(body);
        };
        if (url.pathname.startsWith('/api/v1/applications')) return applications(request, response);
        // Argo CD answers all other paths with its own page.
        if (url.pathname === '/' || url.pathname === '/managed-clusters')
            return send(
                'text/html; charset=utf-8',
                page(url.searchParams.get('react') ?? '18', url.searchParams.get('theme') ?? 'light'),
            );
        if (url.pathname.startsWith('/extensions/')) return extensions(request, response);
        if (url.pathname === '/extensions.js')
            return send('application/javascript', asArgoCdServes(extension, url.searchParams.has('guarded')));
        if (url.pathname === '/page.css') return send('text/css', readFileSync(join(folder, 'test/browser/page.css')));
        if (url.pathname === '/react-19.js') return send('application/javascript', react19);
        const umd = /^\/(react(?:-dom)?)-(\d+)\.js$/.exec(url.pathname);
        if (umd !== null)
            return send(
                'application/javascript',
                readFileSync(join(folder, `node_modules/${umd[1]}-${umd[2]}/umd/${umd[1]}.development.js`)),
            );
        if (/^\/(?:css|webfonts)\/[\w.-]+$/.test(url.pathname)) {
            const type = url.pathname.endsWith('.css') ? 'text/css' : 'font/woff2';
            return send(type, readFileSync(join(icons, url.pathname)));
        }
        response.writeHead(404);
        response.end();
    });
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
    const {port} = server.address() as AddressInfo;
    return {
        address: `http://127.0.0.1:${port}`,
        close: () => {
            server.close();
            server.closeAllConnections();
        },
    };
}

/** Sends requests to an argocd-server, as a user who has logged in. */
export function throughArgoCd(server: string, token: string): Extensions {
    return (request, response) => {
        const headers = {...request.headers, cookie: `argocd.token=${token}`};
        const upstream = send(`http://${server}${request.url}`, {headers}, answer => {
            response.writeHead(answer.statusCode ?? 502, answer.headers);
            answer.pipe(response);
        });
        upstream.on('error', () => response.destroy());
        response.on('close', () => upstream.destroy());
        upstream.end();
    };
}

/** Returns the script that argocd-server serves for a folder with one extension. Since v3.5 it isolates extensions from each other. */
export function asArgoCdServes(file: string, guarded: boolean): string {
    const path = '/tmp/extensions/extension-argocd-ocm-cmp.js';
    const name = 'extension-argocd-ocm-cmp.js';
    const script = readFileSync(file, 'utf8');
    const source = `// source: ${path}/${name} \n`;
    if (!guarded) return source + script;
    return `${source}try {\n${script}\n} catch(e) { console.error('Extension ${name} failed to load:', e); }\n`;
}

/** React 19 is published only as modules. */
async function bundle19(): Promise<string> {
    const {outputFiles} = await build({
        stdin: {
            contents:
                'import * as React from "react"; import * as Client from "react-dom/client"; window.React = React; window.ReactDOM = Client;',
            resolveDir: folder,
        },
        bundle: true,
        write: false,
        define: {'process.env.NODE_ENV': '"development"'},
        alias: {react: 'react-19', 'react-dom': 'react-dom-19'},
    });
    return outputFiles[0]?.text ?? '';
}

function page(react: string, theme: string): string {
    const scripts = react === '19' ? ['react-19'] : [`react-${react}`, `react-dom-${react}`];
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8"><title>A page with extensions</title><base href="/">
<link rel="icon" href="data:,"><link href="css/all.min.css" rel="stylesheet"><link href="page.css" rel="stylesheet">
</head>
<body><div id="theme" class="theme-${theme}"><div id="app"></div></div></body>
<script>
Date.now = () => ${NOW};
window.errors = [];
for (const level of ['error', 'warn']) {
    const original = console[level];
    console[level] = (...values) => { window.errors.push(values.map(String).join(' ')); original.apply(console, values); };
}
window.addEventListener('error', event => window.errors.push(String(event.message)));
window.registered = {};
window.extensionsAPI = {
    registerResourceExtension: (component, group, kind, title, options) => { registered[kind] = {component, group, title, options}; },
    registerStatusPanelExtension: (component, title, id, flyout) => { registered.panel = {component, title, id, flyout}; },
    registerSystemLevelExtension: (component, title, path, icon) => { registered.page = {component, title, path, icon}; },
};
</script>
${scripts.map(name => `<script defer src="${name}.js"></script>`).join('\n')}
<script defer src="extensions.js${react === '19' ? '?guarded' : ''}"></script>
<script>
let root;
// Renders a component repeatedly with other props, as Argo CD does.
window.show = (component, props, frame) => {
    const inner = React.createElement(component, props);
    const element = React.createElement('div', {className: frame}, inner);
    const target = document.getElementById('app');
    if (ReactDOM.createRoot) (root = root || ReactDOM.createRoot(target)).render(element);
    else ReactDOM.render(element, target);
};
</script>
</html>
`;
}
