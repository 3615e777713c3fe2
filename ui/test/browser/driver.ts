// Controls Chromium with the WebDriver protocol of chromedriver, without a library.

import {ChildProcess, spawn} from 'node:child_process';
import {writeFileSync} from 'node:fs';

export interface Chromium {
    open(url: string): Promise<void>;
    /** Runs a function's body in the page with JSON arguments, and returns its result. */
    run<T = unknown>(script: string, ...values: unknown[]): Promise<T>;
    /** Presses keys one after the other. A key is a character or a name in KEYS. */
    press(...keys: string[]): Promise<void>;
    /** Waits up to 30 seconds until a script returns a truthy value. */
    until(script: string, ...values: unknown[]): Promise<void>;
    size(width: number, height: number): Promise<void>;
    /** Takes a picture of the page, or of the element that a selector finds. */
    screenshot(file: string, selector?: string): Promise<void>;
    close(): Promise<void>;
}

const KEYS: Readonly<Record<string, string>> = {
    Tab: '\ue004',
    Enter: '\ue007',
    Escape: '\ue00c',
    Space: ' ',
    PageUp: '\ue00e',
    PageDown: '\ue00f',
    End: '\ue010',
    Home: '\ue011',
    ArrowLeft: '\ue012',
    ArrowUp: '\ue013',
    ArrowRight: '\ue014',
    ArrowDown: '\ue015',
    Control: '\ue009',
    Shift: '\ue008',
};

const DEADLINE_MS = 30_000;

export async function start(): Promise<Chromium> {
    const {child, port} = await chromedriver();
    const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
        const response = await fetch(
            `http://127.0.0.1:${port}${path}`,
            body === undefined ? {method} : {method, body: JSON.stringify(body)},
        );
        const {value} = (await response.json()) as {value: unknown};
        if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(value).slice(0, 500)}`);
        return value;
    };
    const args = [
        '--headless=new',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--force-color-profile=srgb',
    ];
    const capabilities = {
        alwaysMatch: {browserName: 'chrome', 'goog:chromeOptions': {args, excludeSwitches: ['hide-scrollbars']}},
    };
    const {sessionId, capabilities: actual} = (await call('POST', '/session', {capabilities})) as {
        sessionId: string;
        capabilities: {'goog:processID'?: number};
    };
    // Chromium outlives chromedriver, for example after a failed test.
    process.once('exit', () => end(actual['goog:processID']));
    const session = `/session/${sessionId}`;
    const run = async <T>(script: string, ...values: unknown[]): Promise<T> =>
        (await call('POST', `${session}/execute/sync`, {script, args: values})) as T;
    return {
        run,
        open: async url => void (await call('POST', `${session}/url`, {url})),
        press: async (...keys) => {
            const actions = keys.flatMap(key => {
                const all = key.split('+').map(name => KEYS[name] ?? name);
                return [
                    ...all.map(value => ({type: 'keyDown', value})),
                    ...all.reverse().map(value => ({type: 'keyUp', value})),
                ];
            });
            await call('POST', `${session}/actions`, {actions: [{type: 'key', id: 'keyboard', actions}]});
        },
        until: async (script, ...values) => {
            const deadline = Date.now() + DEADLINE_MS;
            while (!(await run(script, ...values))) {
                if (Date.now() > deadline) throw new Error(`timed out waiting for: ${script}`);
                await new Promise(done => setTimeout(done, 20));
            }
        },
        size: async (width, height) => void (await call('POST', `${session}/window/rect`, {width, height})),
        screenshot: async (file, selector) => {
            let path = session;
            if (selector !== undefined) {
                const using = {using: 'css selector', value: selector};
                const element = (await call('POST', `${session}/element`, using)) as Record<string, string>;
                path = `${session}/element/${Object.values(element)[0]}`;
            }
            writeFileSync(file, Buffer.from((await call('GET', `${path}/screenshot`)) as string, 'base64'));
        },
        close: async () => {
            await call('DELETE', session).catch(() => undefined);
            end(child.pid);
        },
    };
}

/** Starts chromedriver, which selects a port and prints it. */
async function chromedriver(): Promise<{child: ChildProcess; port: number}> {
    const child = spawn('chromedriver', ['--port=0'], {stdio: ['ignore', 'pipe', 'inherit']});
    process.once('exit', () => end(child.pid));
    const port = await new Promise<number>((done, fail) => {
        let output = '';
        child.stdout.on('data', (text: Buffer) => {
            output += text.toString();
            const match = /started successfully on port (\d+)/.exec(output);
            if (match !== null) done(Number(match[1]));
        });
        child.on('error', fail);
        child.on('exit', code => fail(new Error(`chromedriver ended with ${code}: ${output}`)));
    });
    return {child, port};
}

/** Ends a process by its id, unless it has already ended. */
function end(id: number | undefined): void {
    try {
        if (id !== undefined) process.kill(id);
    } catch {
        // It has ended.
    }
}
