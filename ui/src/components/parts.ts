// Small parts of a page, with the classes and colours that Argo CD has for them.

import {age} from '../age';
import {Child, Element, h} from '../react';
import {Verdict, look} from '../verdict';

export function verdictIcon(verdict: Verdict): Element {
    const {icon, colour} = look(verdict);
    return h('i', {className: `fa ${icon} ocm-icon`, style: {color: colour}, 'aria-hidden': true});
}

/** The word with its icon: no colour says anything alone. */
export function verdictLabel(verdict: Verdict): Element {
    return h(
        'span',
        {className: 'ocm-verdict', title: `${verdict}: ${look(verdict).meaning}`},
        verdictIcon(verdict),
        verdict,
    );
}

export function yesNo(known: boolean | undefined): string {
    return known === undefined ? '–' : known ? 'yes' : 'no';
}

/** How long ago, with the time itself for the pointer. */
export function ageLabel(since: string | undefined, now: number): Element {
    const told = age(since, now);
    return h('span', {title: since}, told ?? '–');
}

/** When something was last written: by those who write only what has changed. */
export function agoLabel(since: string | undefined, now: number): Element {
    const told = age(since, now);
    return h(
        'span',
        {title: `${since ?? 'never'}; it is written only when something changes`},
        told === undefined ? 'never' : `${told} ago`,
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

/** What a grid shows nothing of. */
export function nothing(text: string): Element {
    return h('div', {className: 'ocm-nothing'}, text);
}

/** The titles of a table that is no grid. */
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
