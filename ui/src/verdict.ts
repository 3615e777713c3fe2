// Health, in the words of `argocd-ocm-cmp status`, with Argo CD's colours and icons.

/** Every verdict, the worst first. */
export const VERDICTS = ['Degraded', 'Missing', 'Unknown', 'Waiting', 'Progressing', 'Suspended', 'Healthy'] as const;

export type Verdict = (typeof VERDICTS)[number];

/** Returns the rank of a verdict; the worst is 0. */
export function rank(verdict: Verdict): number {
    return VERDICTS.indexOf(verdict);
}

/** Returns the worst verdict, or `none` without any. */
export function worst(verdicts: Iterable<Verdict>, none: Verdict): Verdict {
    let found: Verdict | undefined;
    for (const verdict of verdicts) {
        if (found === undefined || rank(verdict) < rank(found)) found = verdict;
    }
    return found ?? none;
}

/** Converts a health status of Argo CD; a missing or other one is Unknown. */
export function ofArgoCd(health: string | undefined): Verdict {
    return VERDICTS.find(verdict => verdict === health) ?? 'Unknown';
}

const LOOKS: Readonly<Record<Verdict, {readonly icon: string; readonly colour: string; readonly meaning: string}>> = {
    Degraded: {
        icon: 'fa-heart-broken',
        colour: '#E96D76',
        meaning: 'it failed, or the agent could not apply it for a minute',
    },
    Missing: {icon: 'fa-ghost', colour: '#f4c030', meaning: 'it was applied, but is not on the cluster'},
    Unknown: {
        icon: 'fa-question-circle',
        colour: '#8FA4B1',
        meaning: 'its health is not known, or its status cannot be parsed',
    },
    Waiting: {icon: 'fa-clock', colour: '#8FA4B1', meaning: 'the agent has not processed its latest version yet'},
    Progressing: {icon: 'fa-circle-notch', colour: '#0DADEA', meaning: 'it is not in the desired state yet'},
    Suspended: {icon: 'fa-pause-circle', colour: '#766f94', meaning: 'it is paused'},
    Healthy: {icon: 'fa-heart', colour: '#18BE94', meaning: 'it is in the desired state'},
};

export function look(verdict: Verdict): {readonly icon: string; readonly colour: string; readonly meaning: string} {
    return LOOKS[verdict];
}
