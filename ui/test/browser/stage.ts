// Starts a Chromium with a page that contains the extension, for the tests of a file.

import {after, before} from 'node:test';
import {Chromium, start} from './driver';
import {Page, React, serve} from './page';

export const WORK = 'registered.ManifestWork.component';
export const SET = 'registered.ManifestWorkReplicaSet.component';
export const PANEL = 'registered.panel.component';
export const FLYOUT = 'registered.panel.flyout';
export const PAGE = 'registered.page.component';

let page: Page;
/** Initialized before the tests run. */
export let chromium: Chromium;

before(async () => {
    page = await serve('dist/extension-argocd-ocm-cmp.js');
    chromium = await start();
    await chromium.size(1400, 1000);
});

after(async () => {
    await chromium?.close();
    page?.close();
});

export async function open(react: React = '18', theme = 'light', more = ''): Promise<void> {
    await chromium.open(`${page.address}/?react=${react}&theme=${theme}${more}`);
    await chromium.until('return window.registered && registered.panel !== undefined');
}

/** Renders the component with this expression in the page, in an element of the class `frame`, and waits until it is there. */
export async function show(component: string, props: unknown, frame = 'sheet'): Promise<void> {
    await chromium.run(`show(${component}, arguments[0], arguments[1])`, props, frame);
    await chromium.until('return document.querySelector("#app > div") !== null');
}

export const texts = (selector: string): Promise<string[]> =>
    chromium.run('return [...document.querySelectorAll(arguments[0])].map(element => element.textContent)', selector);
export const count = async (selector: string): Promise<number> => (await texts(selector)).length;
export const click = (selector: string): Promise<unknown> =>
    chromium.run('document.querySelector(arguments[0]).click()', selector);
export const focused = (): Promise<string> =>
    chromium.run(
        'return document.activeElement.dataset.cell || document.activeElement.className || document.activeElement.tagName',
    );
/** Returns the texts of a column, from top to bottom. */
export const column = (at: number): Promise<string[]> =>
    chromium.run(
        `return [...document.querySelectorAll('.ocm-grid__row')].sort((one, other) => one.offsetTop - other.offsetTop).map(row => row.children[arguments[0]].textContent)`,
        at,
    );
export const becomes = async (selector: string, text: string): Promise<void> =>
    chromium.until(
        'return [...document.querySelectorAll(arguments[0])].some(element => element.textContent === arguments[1])',
        selector,
        text,
    );
