// Small elements with the classes and colours of Argo CD.

import {age} from '../age';
import {Child, Element, h} from '../react';
import {Verdict, look} from '../verdict';

export function verdictIcon(verdict: Verdict): Element {
    const {icon, colour} = look(verdict);
    return h('i', {className: `fa ${icon} ocm-icon`, style: {color: colour}, 'aria-hidden': true});
}

/** Shows the verdict with its icon, so that the meaning does not depend on the colour. */
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

/** Shows an age, with the time as the tooltip. */
export function ageLabel(since: string | undefined, now: number): Element {
    const told = age(since, now);
    return h('span', {title: since}, told ?? '–');
}

/** Shows the age of the last write of a status, which is written only when it changes. */
export function agoLabel(since: string | undefined, now: number): Element {
    const told = age(since, now);
    return h(
        'span',
        {title: `${since ?? 'never'}; the status is written only when it changes`},
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

/** Shows a text instead of an empty grid. */
export function nothing(text: string): Element {
    return h('div', {className: 'ocm-nothing'}, text);
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
