// How something fares: the words of `argocd-ocm-cmp status`, with Argo CD's colours and icons.

/** Every verdict, the worst first. */
export const VERDICTS = ['Degraded', 'Missing', 'Unknown', 'Waiting', 'Progressing', 'Suspended', 'Healthy'] as const;

export type Verdict = (typeof VERDICTS)[number];

/** Its place among the verdicts: the worst is 0. */
export function rank(verdict: Verdict): number {
    return VERDICTS.indexOf(verdict);
}

/** The worst of them, or what is said where there is none. */
export function worst(verdicts: Iterable<Verdict>, none: Verdict): Verdict {
    let found: Verdict | undefined;
    for (const verdict of verdicts) {
        if (found === undefined || rank(verdict) < rank(found)) found = verdict;
    }
    return found ?? none;
}

/** What Argo CD calls a health; all that it does not say is unknown. */
export function ofArgoCd(health: string | undefined): Verdict {
    return VERDICTS.find(verdict => verdict === health) ?? 'Unknown';
}

const LOOKS: Readonly<Record<Verdict, {readonly icon: string; readonly colour: string; readonly meaning: string}>> = {
    Degraded: {
        icon: 'fa-heart-broken',
        colour: '#E96D76',
        meaning: 'it is broken, or the agent could not apply it for a minute',
    },
    Missing: {icon: 'fa-ghost', colour: '#f4c030', meaning: 'it was applied and is not on the cluster'},
    Unknown: {icon: 'fa-question-circle', colour: '#8FA4B1', meaning: 'what is said of it cannot be understood'},
    Waiting: {icon: 'fa-clock', colour: '#8FA4B1', meaning: 'the agent has not come to it in its present form'},
    Progressing: {icon: 'fa-circle-notch', colour: '#0DADEA', meaning: 'it is on its way'},
    Suspended: {icon: 'fa-pause-circle', colour: '#766f94', meaning: 'it waits for somebody'},
    Healthy: {icon: 'fa-heart', colour: '#18BE94', meaning: 'it is ready'},
};

export function look(verdict: Verdict): {readonly icon: string; readonly colour: string; readonly meaning: string} {
    return LOOKS[verdict];
}
