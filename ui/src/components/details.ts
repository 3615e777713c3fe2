// Shows the details of a row below a grid.

import {Child, Element, h, react} from '../react';

/** A pane that takes the focus when it opens, and returns it when it closes. */
export function Details(props: {readonly title: string; readonly onClose: () => void; readonly body: Child}): Element {
    const {useEffect, useRef} = react();
    const pane = useRef<HTMLElement | null>(null);
    const close = useRef(props.onClose);
    close.current = props.onClose;
    useEffect(() => {
        const previous = document.activeElement;
        const listener = (event: KeyboardEvent): void => {
            if (event.key !== 'Escape') return;
            // Argo CD would close the whole panel.
            event.stopPropagation();
            close.current();
        };
        const element = pane.current;
        element?.addEventListener('keydown', listener);
        element?.focus({preventScroll: true});
        element?.scrollIntoView?.({block: 'nearest'});
        return () => {
            element?.removeEventListener('keydown', listener);
            const inside = document.activeElement === document.body || element?.contains(document.activeElement);
            if (inside && previous instanceof HTMLElement) previous.focus();
        };
    }, []);
    return h(
        'section',
        {ref: pane, className: 'ocm-details', tabIndex: -1, 'aria-label': props.title},
        h(
            'header',
            {className: 'ocm-details__head'},
            h('h3', null, props.title),
            h(
                'button',
                {type: 'button', className: 'ocm-chip', 'aria-label': 'Close the details', onClick: props.onClose},
                h('i', {className: 'fa fa-times', 'aria-hidden': true}),
                ' Close',
            ),
        ),
        props.body,
    );
}

/** Shows names with their values. */
export function facts(pairs: readonly (readonly [string, Child])[]): Element {
    return h(
        'dl',
        {className: 'ocm-facts'},
        pairs.flatMap(([name, value], at) => [h('dt', {key: `name ${at}`}, name), h('dd', {key: at}, value)]),
    );
}
