// Reads the sync wave of a work. Waves on the hub include the phase; phases are two million apart, as in
// crates/generate/src/order.rs.

import {Fields, map, text} from './fields';

/** The distance between the waves of two phases. */
const PHASE = 2_000_000;

/** Returns the sync wave of a work on the hub, by default 0. */
export function waveOf(metadata: Fields): number {
    const wave = text(map(metadata, 'annotations'), 'argocd.argoproj.io/sync-wave');
    return wave !== undefined && /^[+-]?\d+$/.test(wave) ? Number(wave) : 0;
}

/** Returns the name of the wave, such as `3`, `PreSync` or `PostSync 2`. */
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
