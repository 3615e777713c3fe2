// Health, in the words of `argocd-ocm-cmp status`, with Argo CD's colours and icons.

/** Every health status, the worst first. */
export const HEALTH_STATUSES = [
    'Degraded',
    'Missing',
    'Unknown',
    'Waiting',
    'Progressing',
    'Suspended',
    'Healthy',
] as const;

export type HealthStatus = (typeof HEALTH_STATUSES)[number];

/** Health and its message; the message may be empty. */
export type Evaluated = readonly [HealthStatus, string];

/** Returns the rank of a health status; the worst is 0. */
export function rank(health: HealthStatus): number {
    return HEALTH_STATUSES.indexOf(health);
}

/** Returns the worst health status, or the default if there is none. */
export function worst(statuses: Iterable<HealthStatus>, defaultHealth: HealthStatus): HealthStatus {
    let result: HealthStatus | undefined;
    for (const health of statuses) {
        if (result === undefined || rank(health) < rank(result)) result = health;
    }
    return result ?? defaultHealth;
}

/** Converts a health status of Argo CD; a missing or other one is Unknown. */
export function fromArgoCd(status: string | undefined): HealthStatus {
    return HEALTH_STATUSES.find(health => health === status) ?? 'Unknown';
}

interface Appearance {
    readonly icon: string;
    readonly colour: string;
    /** The explanation in the tooltip. */
    readonly meaning: string;
}

const APPEARANCES: Readonly<Record<HealthStatus, Appearance>> = {
    Degraded: {
        icon: 'fa-heart-broken',
        colour: '#E96D76',
        meaning: 'it failed, or the agent could not apply it for a minute',
    },
    Missing: {icon: 'fa-ghost', colour: '#f4c030', meaning: 'it was applied, but is not on the cluster'},
    Unknown: {
        icon: 'fa-question-circle',
        colour: '#8FA4B1',
        meaning: 'its health is not known, or its status is malformed',
    },
    Waiting: {icon: 'fa-clock', colour: '#8FA4B1', meaning: 'the agent has not processed its latest version yet'},
    Progressing: {icon: 'fa-circle-notch', colour: '#0DADEA', meaning: 'it is not in the desired state yet'},
    Suspended: {icon: 'fa-pause-circle', colour: '#766f94', meaning: 'it is paused'},
    Healthy: {icon: 'fa-heart', colour: '#18BE94', meaning: 'it is in the desired state'},
};

/** Returns the icon, colour and explanation of a health status. */
export function appearance(health: HealthStatus): Appearance {
    return APPEARANCES[health];
}
