// Shows an object of a work: the state that the agent reports, and its manifest.

import {isSecret, masked} from '../masked';
import {ObjectRow, qualifiedName, shortName} from '../objects';
import {Child, Element, c, h, react} from '../react';
import {yaml} from '../yaml';
import {Details, facts} from './details';
import {ageLabel, healthLabel, tableHead, yesNo} from './parts';

interface Props {
    readonly row: ObjectRow;
    readonly wave: string;
    readonly now: number;
    /** True if an agent reports the object; false in a ManifestWorkReplicaSet. */
    readonly hasState: boolean;
    readonly onClose: () => void;
}

export function ObjectDetails({row, wave, now, hasState, onClose}: Props): Element {
    const state: (readonly [string, Child])[] = [
        ['Health', healthLabel(row.health)],
        ['Applied', yesNo(row.applied)],
        ['Available', yesNo(row.available)],
        ['Last change', ageLabel(row.since, now)],
        ...row.feedback.map(({name, value}) => [name, value] as const),
    ];
    const body = h(
        'div',
        {className: 'ocm-details__body'},
        row.message !== '' && h('p', {className: 'ocm-message'}, row.message),
        facts([['Wave', wave], ...(hasState ? state : [])]),
        row.conditions.length > 0 &&
            h(
                'table',
                {className: 'ocm-table'},
                tableHead(['Condition', 'Status', 'Reason', 'Since', 'Message']),
                h(
                    'tbody',
                    null,
                    row.conditions.map(condition =>
                        h(
                            'tr',
                            {key: condition.type},
                            h('td', null, condition.type),
                            h('td', null, condition.status),
                            h('td', null, condition.reason),
                            h('td', null, ageLabel(condition.since, now)),
                            h('td', null, condition.message),
                        ),
                    ),
                ),
            ),
        c(Manifest, {row}),
    );
    return c(Details, {title: shortName(row), onClose, body});
}

function Manifest({row}: {readonly row: ObjectRow}): Element {
    const {useMemo, useState} = react();
    const text = useMemo(() => (row.manifest === undefined ? undefined : yaml(masked(row.manifest))), [row.manifest]);
    const [copied, setCopied] = useState(false);
    if (text === undefined) return h('p', {className: 'ocm-placeholder'}, 'The work no longer contains this object.');
    const copy = (): void =>
        void navigator.clipboard?.writeText(text).then(
            () => setCopied(true),
            () => setCopied(false),
        );
    return h(
        'div',
        null,
        h(
            'div',
            {className: 'ocm-details__head'},
            h('h4', null, `Manifest in the work${isSecret(row) ? ', with hidden values' : ''}`),
            h('button', {type: 'button', className: 'ocm-chip', onClick: copy}, copied ? 'Copied' : 'Copy'),
        ),
        h('pre', {className: 'ocm-yaml', tabIndex: 0, 'aria-label': `YAML of ${qualifiedName(row)}`}, text),
    );
}
