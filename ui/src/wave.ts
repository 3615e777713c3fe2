// When a work comes in a sync. The hub's waves hold the phases too: two million apart, as src/generate/arrange.rs cuts them.

import {Fields, map, text} from './fields';

const PHASE = 2_000_000;

/** The sync wave of a work on the hub; 0 where it names none. */
export function waveOf(metadata: Fields): number {
    const wave = text(map(metadata, 'annotations'), 'argocd.argoproj.io/sync-wave');
    return wave !== undefined && /^[+-]?\d+$/.test(wave) ? Number(wave) : 0;
}

/** What people call it: `3`, `PreSync`, `PostSync 2`. */
export function waveName(metadata: Fields): string {
    const wave = waveOf(metadata);
    const hook = text(map(metadata, 'annotations'), 'argocd.argoproj.io/hook');
    if (hook !== undefined) return named(hook, wave);
    const phases = Math.floor((wave + PHASE / 2) / PHASE);
    if (phases === 0) return String(wave);
    return named(phases < 0 ? 'PreSync' : 'PostSync', wave - phases * PHASE);
}

function named(phase: string, wave: number): string {
    return wave === 0 ? phase : `${phase} ${wave}`;
}
