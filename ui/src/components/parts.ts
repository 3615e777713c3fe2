// Creates small elements with the classes and colours of Argo CD.

import {age} from '../age';
import {HealthStatus, appearance} from '../health';
import {Child, Element, h} from '../react';

export function healthIcon(health: HealthStatus): Element {
    const {icon, colour} = appearance(health);
    return h('i', {className: `fa ${icon} ocm-icon`, style: {color: colour}, 'aria-hidden': true});
}

/** Shows a health status with its icon and its explanation as the tooltip. Its meaning does not depend on the colour. */
export function healthLabel(health: HealthStatus): Element {
    return h(
        'span',
        {className: 'ocm-health', title: `${health}: ${appearance(health).meaning}`},
        healthIcon(health),
        health,
    );
}

export function yesNo(value: boolean | undefined): string {
    return value === undefined ? '–' : value ? 'yes' : 'no';
}

/** Shows an age, with the time as the tooltip. */
export function ageLabel(since: string | undefined, now: number): Element {
    return h('span', {title: since}, age(since, now) ?? '–');
}

/** Shows the age of the last write of a status, which is written only when it changes. */
export function agoLabel(since: string | undefined, now: number): Element {
    const text = age(since, now);
    return h(
        'span',
        {title: `${since ?? 'never'}; the status is written only when it changes`},
        text === undefined ? 'never' : `${text} ago`,
    );
}

export function note(icon: string, colour: string, ...children: Child[]): Element {
    return h(
        'div',
        {className: 'ocm-note', role: 'note'},
        h('i', {className: `fa ${icon} ocm-icon`, style: {color: colour}, 'aria-hidden': true}),
        h('span', null, ...children),
    );
}

/** Shows a text instead of an empty grid. */
export function placeholder(text: string): Element {
    return h('div', {className: 'ocm-placeholder'}, text);
}

/** Creates the header of a table. */
export function tableHead(titles: readonly string[]): Element {
    return h(
        'thead',
        null,
        h(
            'tr',
            null,
            titles.map(title => h('th', {key: title, scope: 'col'}, title)),
        ),
    );
}

/** Creates a link to a page of Argo CD, which does not reload. */
export function pageLink(href: string, text: string): Element {
    const onClick = (event: MouseEvent): void => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button !== 0) return;
        event.preventDefault();
        openPage(href);
    };
    return h('a', {href, className: 'ocm-link', onClick}, text);
}

/** Opens a page of Argo CD without reloading. */
export function openPage(href: string): void {
    window.history.pushState(null, '', new URL(href, document.baseURI).href);
    window.dispatchEvent(new PopStateEvent('popstate', {state: null}));
}

/** Creates a list of values and their texts, of which the user selects one. */
export function choice(
    label: string,
    value: string,
    options: readonly (readonly [string, string])[],
    onChange: (value: string) => void,
): Element {
    return h(
        'select',
        {
            className: 'ocm-select',
            'aria-label': label,
            value,
            onChange: (event: {target: {value: string}}) => onChange(event.target.value),
        },
        options.map(([value, text]) => h('option', {key: value, value}, text)),
    );
}
