// Creates works and Applications of a hub in every state that the extension distinguishes.

import {Fields} from '../src/fields';

export const NOW = Date.parse('2026-06-01T12:00:00Z');
const LONG_AGO = '2026-06-01T10:55:00Z';
/** Returns the time some seconds before NOW. */
export const before = (seconds: number): string => `${new Date(NOW - seconds * 1000).toISOString().slice(0, 19)}Z`;

const GENERATION = 4;

interface Sample {
    readonly manifest: Fields;
    readonly resource: string;
    readonly conditions: readonly Fields[];
    readonly values?: Readonly<Record<string, string | number | boolean>>;
}

export function condition(type: string, status: string, message = '', more: Fields = {}): Fields {
    const rule = type === 'Healthy' || type === 'Progressing' || type === 'Complete';
    const reason = rule
        ? 'ConditionRuleEvaluated'
        : type === 'Applied'
          ? 'AppliedManifestComplete'
          : 'ResourceAvailable';
    const generation = rule || type === 'Applied' ? {observedGeneration: GENERATION} : {};
    return {type, status, message, reason, lastTransitionTime: LONG_AGO, ...generation, ...more};
}

export const availableConditions = (
    healthy: Fields = condition('Healthy', 'True'),
    progressing: Fields = condition('Progressing', 'False'),
): Fields[] => [
    condition('Applied', 'True', 'Apply manifest complete'),
    condition('Available', 'True', 'Resource is available'),
    condition('StatusFeedbackSynced', 'True', '', {reason: 'StatusFeedbackSynced'}),
    healthy,
    progressing,
];

export function object(apiVersion: string, kind: string, name: string, namespace = 'shop', more: Fields = {}): Fields {
    return {apiVersion, kind, metadata: namespace === '' ? {name} : {name, namespace}, ...more};
}

function deployment(name: string, replicas: number, image: string): Fields {
    return object('apps/v1', 'Deployment', name, 'shop', {
        spec: {
            replicas,
            selector: {matchLabels: {app: name}},
            template: {
                metadata: {labels: {app: name}},
                spec: {containers: [{name, image, ports: [{containerPort: 8080}]}]},
            },
        },
    });
}

export const PASSWORD = 'correct horse battery staple';
export const TOKEN = 'dG9rZW4tb2YtdGhlLXNob3A=';

export const SECRET = object('v1', 'Secret', 'credentials', 'shop', {
    type: 'Opaque',
    stringData: {password: PASSWORD},
    data: {token: TOKEN},
});

const SAMPLES: readonly Sample[] = [
    {
        manifest: object('v1', 'Service', 'web', 'shop', {spec: {type: 'LoadBalancer', ports: [{port: 80}]}}),
        resource: 'services',
        conditions: availableConditions(),
        values: {Type: 'LoadBalancer', Address: '203.0.113.7'},
    },
    {
        manifest: deployment('web', 3, 'registry.example.com/shop/web:2.4.1'),
        resource: 'deployments',
        values: {ReadyReplicas: 2, Replicas: 3, Image: 'registry.example.com/shop/web:2.4.1'},
        conditions: availableConditions(
            condition(
                'Healthy',
                'False',
                'ProgressDeadlineExceeded: ReplicaSet "web-7d4b9c" has timed out progressing.',
                {lastTransitionTime: before(540)},
            ),
            condition('Progressing', 'True', 'waiting for rollout to finish: 1 of 3 updated replicas are available', {
                lastTransitionTime: before(1140),
            }),
        ),
    },
    {
        manifest: deployment('api', 5, 'registry.example.com/shop/api:1.9.0'),
        resource: 'deployments',
        values: {ReadyReplicas: 4, Replicas: 5},
        conditions: availableConditions(
            condition('Healthy', 'True'),
            condition('Progressing', 'True', 'waiting for rollout to finish: 4 of 5 updated replicas are available', {
                lastTransitionTime: before(75),
            }),
        ),
    },
    {
        manifest: deployment('reports', 1, 'registry.example.com/shop/reports:0.3.0'),
        resource: 'deployments',
        values: {ReadyReplicas: 1, Replicas: 1, Suspended: true},
        conditions: availableConditions(condition('Healthy', 'True'), condition('Progressing', 'True', 'it is paused')),
    },
    {
        manifest: object('storage.k8s.io/v1', 'StorageClass', 'fast', '', {provisioner: 'example.com/disk'}),
        resource: 'storageclasses',
        conditions: [
            condition(
                'Applied',
                'False',
                'Failed to apply manifest: storageclasses.storage.k8s.io "fast" is forbidden: User "system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa" cannot create resource "storageclasses"',
                {reason: 'AppliedManifestFailed'},
            ),
        ],
    },
    {
        manifest: object('v1', 'ConfigMap', 'settings', 'shop', {
            data: {'shop.properties': 'colour=green\ncurrency=EUR\n', greeting: 'yes'},
        }),
        resource: 'configmaps',
        conditions: [
            condition('Applied', 'True'),
            condition('Available', 'False', 'Resource is not available', {
                reason: 'ResourceNotAvailable',
                lastTransitionTime: before(200),
            }),
        ],
    },
    {
        manifest: SECRET,
        resource: 'secrets',
        conditions: availableConditions().slice(0, 3),
        values: {Password: PASSWORD},
    },
    {
        manifest: object('networking.k8s.io/v1', 'Ingress', 'web', 'shop', {
            spec: {rules: [{host: 'shop.example.com'}]},
        }),
        resource: 'ingresses',
        conditions: availableConditions(),
        values: {Address: '203.0.113.8'},
    },
    {
        manifest: object('v1', 'Namespace', 'shop', ''),
        resource: 'namespaces',
        conditions: availableConditions().slice(0, 3),
    },
];

/** Returns an entry of the status, as an agent writes it. */
export function manifestStatus(at: number, sample: Sample): Fields {
    const {apiVersion, kind, metadata} = sample.manifest as {apiVersion: string; kind: string; metadata: Fields};
    const group = apiVersion.includes('/') ? apiVersion.split('/')[0] : '';
    const values = Object.entries(sample.values ?? {}).map(([name, value]) => ({
        name,
        fieldValue:
            typeof value === 'string'
                ? {type: 'String', string: value}
                : typeof value === 'number'
                  ? {type: 'Integer', integer: value}
                  : {type: 'Boolean', boolean: value},
    }));
    return {
        resourceMeta: {
            ordinal: at,
            group,
            version: 'v1',
            kind,
            resource: sample.resource,
            namespace: metadata['namespace'] ?? '',
            name: metadata['name'],
        },
        conditions: sample.conditions,
        statusFeedback: {values},
    };
}

export function work(
    cluster: string,
    samples: readonly Sample[],
    applied: Fields = condition('Applied', 'True'),
    more: Fields = {},
): Fields {
    return {
        apiVersion: 'work.open-cluster-management.io/v1',
        kind: 'ManifestWork',
        metadata: {
            name: 'shop',
            namespace: cluster,
            generation: GENERATION,
            annotations: {'argocd.argoproj.io/sync-wave': '2'},
            managedFields: [
                {manager: 'work', operation: 'Update', subresource: 'status', time: before(42)},
                {manager: 'argocd-controller', operation: 'Update', time: before(5)},
            ],
        },
        spec: {workload: {manifests: samples.map(({manifest}) => manifest)}},
        status: {
            conditions: [applied, condition('Available', 'True')],
            resourceStatus: {manifests: samples.map((sample, at) => manifestStatus(at, sample))},
        },
        ...more,
    };
}

/** Returns a work with objects of nearly every health status. */
export function mixedWork(cluster = 'cluster2'): Fields {
    return work(
        cluster,
        SAMPLES,
        condition('Applied', 'False', 'Failed to apply manifest work', {reason: 'AppliedManifestWorkFailed'}),
    );
}

/** Returns a healthy work. */
export function healthyWork(cluster = 'cluster1'): Fields {
    return work(
        cluster,
        SAMPLES.filter(({manifest}) =>
            ['Service', 'Ingress', 'Secret', 'Namespace'].includes(String(manifest['kind'])),
        ),
    );
}

/** Returns a work that the agent has not processed. */
export function newWork(cluster = 'cluster3'): Fields {
    return {...work(cluster, SAMPLES), status: {}};
}

/** Returns a work with this number of objects, one of which is degraded. */
export function largeWork(objects: number): Fields {
    const samples = Array.from(
        {length: objects},
        (_, at): Sample => ({
            manifest: object('v1', 'ConfigMap', `settings-${at}`, 'shop', {data: {key: 'value'}}),
            resource: 'configmaps',
            conditions:
                at === objects - 7
                    ? availableConditions(condition('Healthy', 'False', 'it is broken'))
                    : availableConditions(),
            values: {Version: at},
        }),
    );
    return work('cluster1', samples);
}

/** Returns a ManifestWorkReplicaSet on twenty clusters. */
export function set(): Fields {
    return {
        apiVersion: 'work.open-cluster-management.io/v1alpha1',
        kind: 'ManifestWorkReplicaSet',
        metadata: {
            name: 'shop',
            namespace: 'shops',
            generation: 2,
            annotations: {'argocd.argoproj.io/sync-wave': '-2000000'},
        },
        spec: {
            manifestWorkTemplate: {workload: {manifests: SAMPLES.map(({manifest}) => manifest)}},
            placementRefs: [{name: 'all-shops'}],
        },
        status: {
            summary: {total: 20, applied: 20, available: 19, progressing: 1, degraded: 1},
            placementSummary: [
                {name: 'all-shops', availableDecisionGroups: '1 (20 / 20 clusters applied)', summary: {total: 20}},
            ],
            conditions: [
                condition('PlacementVerified', 'True', '', {reason: 'AsExpected'}),
                condition('PlacementRolledOut', 'False', '', {reason: 'Progressing'}),
                condition('ManifestworkApplied', 'True', '', {reason: 'AsExpected'}),
            ],
        },
    };
}

export const SET_HEALTH = {
    status: 'Degraded',
    message: '20 of 20 clusters applied, 1 progressing, 1 degraded, 1 without all objects',
};

export function setTree(): Fields {
    return {
        nodes: [
            {
                group: 'work.open-cluster-management.io',
                kind: 'ManifestWorkReplicaSet',
                namespace: 'shops',
                name: 'shop',
                health: SET_HEALTH,
            },
        ],
    };
}

export function resource(cluster: string, status: string | undefined, message = '', more: Fields = {}): Fields {
    const health = status === undefined ? {} : {health: {status, message}};
    return {
        group: 'work.open-cluster-management.io',
        version: 'v1',
        kind: 'ManifestWork',
        namespace: cluster,
        name: 'shop',
        status: 'Synced',
        ...health,
        ...more,
    };
}

export function application(
    resources: readonly Fields[],
    conditions: readonly Fields[] = [],
    name = 'shop',
    project = 'default',
): Fields {
    return {
        apiVersion: 'argoproj.io/v1alpha1',
        kind: 'Application',
        metadata: {name, namespace: 'argocd'},
        spec: {
            project,
            destination: {server: 'https://kubernetes.default.svc', namespace: 'cluster1'},
            source: {repoURL: 'https://example.com/shop.git', path: '.'},
        },
        status: {sync: {status: 'Synced'}, health: {status: 'Degraded'}, resources, conditions},
    };
}

const BROKEN = 'Deployment shop/web: ProgressDeadlineExceeded: ReplicaSet "web-7d4b9c" has timed out progressing.';
const ROLLING_OUT = 'Deployment shop/api: waiting for rollout to finish: 4 of 5 updated replicas are available';

/** Returns an Application on many clusters: of each hundred, three are degraded and five progressing; one of all is unreachable. */
export function fleet(clusters: number): Fields {
    const resources = Array.from({length: clusters}, (_, at) => {
        const cluster = `cluster${at + 1}`;
        if (at % 100 === 1 || at % 100 === 42 || at % 100 === 77) return resource(cluster, 'Degraded', BROKEN);
        if (at % 20 === 6)
            return resource(cluster, 'Progressing', ROLLING_OUT, at % 40 === 6 ? {status: 'OutOfSync'} : {});
        if (at % 500 === 99) return resource(cluster, 'Suspended', 'Deployment shop/reports: it is paused');
        return resource(cluster, 'Healthy', `9 objects are healthy on managed cluster ${cluster}`);
    });
    const unreachable = {
        type: 'ManagedClusterUnreachableWarning',
        message: 'cluster12: its agent does not report to the hub; showing the last reported state',
    };
    return application(resources, clusters >= 12 ? [unreachable] : []);
}

const HELD = {
    type: 'ManagedClusterOnHoldWarning',
    message: 'cluster2: on hold until 2026-06-02T06:00:00Z: storage migration',
};

/** Returns the Applications of a hub: `shop` on all clusters, one for each team on `cluster2`, and some of other kinds. */
export function hubApplications(clusters = 20): Fields[] {
    const everywhere = fleet(clusters);
    const {resources, conditions} = everywhere['status'] as {resources: Fields[]; conditions: Fields[]};
    const work = (name: string, status: string, message = '', more: Fields = {}): Fields =>
        resource('cluster2', status, message, {name, ...more});
    const teams = ['billing', 'catalogue', 'identity', 'payments', 'search'].map((name, at) => {
        const works =
            at === 3
                ? [work(name, 'Progressing', ROLLING_OUT, {status: 'OutOfSync'}), work(`${name}.part-wave2`, 'Healthy')]
                : [work(name, 'Healthy')];
        return application(works, [], name, at % 2 === 0 ? 'web' : 'data');
    });
    const pulled: Fields = {
        metadata: {
            name: 'edge',
            namespace: 'argocd',
            labels: {'apps.open-cluster-management.io/pull-to-ocm-managed-cluster': 'True'},
            annotations: {'apps.open-cluster-management.io/ocm-managed-cluster': 'cluster2'},
        },
        spec: {project: 'edge'},
        status: {sync: {status: 'OutOfSync'}, health: {status: 'Suspended', message: 'it is paused'}},
    };
    const plugin = {name: 'argocd-ocm-cmp', parameters: [{name: 'clusters', array: ['cluster2', 'cluster3']}]};
    const refused: Fields = {
        metadata: {name: 'refused', namespace: 'argocd'},
        spec: {project: 'web', source: {repoURL: 'https://example.com/refused.git', path: '.', plugin}},
        status: {
            sync: {status: 'Unknown'},
            conditions: [{type: 'ComparisonError', message: 'the policy does not allow Deployments'}],
        },
    };
    const placed = application([{...resource('fleet', 'Healthy'), kind: 'ManifestWorkReplicaSet'}], [], 'placed');
    return [{...everywhere, status: {resources, conditions: [...conditions, HELD]}}, ...teams, pulled, refused, placed];
}
