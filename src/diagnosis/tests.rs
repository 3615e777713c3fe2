use super::*;
use testing::{holds, is_plain_line};

/// The beginning of Argo CD's errors about manifests.
const NOT_GENERATED: &str =
    "Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = ";

fn application(kind: &str, message: &str) -> DiagnosedApplication {
    DiagnosedApplication {
        qualified_name: "argocd/shop".to_owned(),
        project: "team".to_owned(),
        plugins: vec![PLUGIN.to_owned()],
        targets: ["cluster1".to_owned()].into(),
        sync: "Unknown".to_owned(),
        health: "Unknown".to_owned(),
        conditions: vec![ApplicationCondition {
            kind: kind.to_owned(),
            message: message.to_owned(),
        }],
        ..DiagnosedApplication::default()
    }
}

fn clusters() -> BTreeMap<String, DiagnosedCluster> {
    let joined = DiagnosedCluster {
        accepted: true,
        joined: true,
        available: Some(true),
        ..DiagnosedCluster::default()
    };
    let all = [
        ("cluster1", joined),
        ("cluster2", DiagnosedCluster::default()),
        (
            "cluster3",
            DiagnosedCluster {
                accepted: true,
                ..DiagnosedCluster::default()
            },
        ),
    ];
    all.map(|(name, cluster)| (name.to_owned(), cluster)).into()
}

/// Returns the causes and the lines of an Application without works, and whether waiting helps.
fn found(application: &DiagnosedApplication) -> Vec<(ProblemCause, String, bool)> {
    let all = absence(application, &[], Some(&clusters())).into_iter();
    all.map(|diagnosis| (diagnosis.cause, diagnosis.line(), diagnosis.permanent))
        .collect()
}

#[test]
fn recognizes_causes_by_the_texts_of_argo_cd() {
    let printed = |errors: &str| {
        format!(
            "{NOT_GENERATED}Manifest generation error (cached): CMP processing failed for application \"shop\": error generating manifests in cmp: rpc error: code = Unknown desc = error \
             generating manifests: `argocd-ocm-cmp generate` failed exit status 1: {errors}"
        )
    };
    for (message, cause, line) in [
        (
            format!(
                "{NOT_GENERATED}could not find cmp-server plugin with name \"argocd-ocm-cpm\" supporting the given repository"
            ),
            ProblemCause::PluginName,
            "no sidecar of Argo CD's repo-server runs a plugin named argocd-ocm-cpm: set spec.source.plugin.name to argocd-ocm-cmp",
        ),
        (
            format!(
                "{NOT_GENERATED}could not find cmp-server plugin with name \"argocd-ocm-cmp\" supporting the given repository"
            ),
            ProblemCause::PluginMissing,
            "no sidecar of Argo CD's repo-server runs the plugin argocd-ocm-cmp: install it with argocd-ocm-cmp install --features \
             plugin, or see why it does not run with argocd-ocm-cmp doctor plugin socket",
        ),
        (
            printed("error: unknown parameter recursive: the parameters are recurse"),
            ProblemCause::Setting,
            "a setting is wrong: unknown parameter recursive: the parameters are recurse",
        ),
        (
            printed("error: web.yaml:6: document 1: a value is missing or cannot start like this"),
            ProblemCause::Manifests,
            "the plugin rejects its source: web.yaml:6: document 1: a value is missing or cannot start like this",
        ),
        (
            printed(
                "error: cluster eu: the policy lets project team deliver nothing to it, only to eu-*: to allow it, add `eu`",
            ),
            ProblemCause::Policy,
            "the plugin's policy rejects it: cluster eu: the policy lets project team deliver nothing to it, only to eu-*: to allow it, \
             add `eu`",
        ),
        (
            format!("{NOT_GENERATED}Manifest generation error (cached): guestbok: app path does not exist"),
            ProblemCause::Path,
            "the path guestbok does not exist in the repository: correct spec.source.path, or commit the folder to the target revision",
        ),
        (
            "Application referencing project team which does not exist".to_owned(),
            ProblemCause::ProjectMissing,
            "AppProject team does not exist: apply it, such as proj.yaml, or set another one in spec.project",
        ),
        (
            "application repo file:///a is not permitted in project 'team'".to_owned(),
            ProblemCause::Project,
            "application repo file:///a is not permitted in project 'team': permit it in the AppProject, as proj.yaml does, or set \
             another one in spec.project",
        ),
        (
            "there are no clusters with this name: cluster1".to_owned(),
            ProblemCause::Destination,
            "there are no clusters with this name: cluster1: set spec.destination.server to https://kubernetes.default.svc, the hub, \
             without spec.destination.name",
        ),
        (
            "Failed to load live state: namespace \"cluster1\" for ManifestWork \"shop\" is not managed".to_owned(),
            ProblemCause::SyncFailed,
            "Failed to load live state: namespace \"cluster1\" for ManifestWork \"shop\" is not managed: let Argo CD manage all \
             namespaces: add its own to ARGOCD_CLUSTER_CONFIG_NAMESPACES of argocd-operator, or without the operator remove namespaces \
             from the cluster Secret of the hub",
        ),
    ] {
        let expected = vec![(cause, line.to_owned(), true)];
        assert_eq!(found(&application("ComparisonError", &message)), expected, "{message}");
        // Argo CD has not compared a corrected spec yet.
        let corrected = DiagnosedApplication {
            stale: true,
            ..application("ComparisonError", &message)
        };
        assert!(
            found(&corrected).iter().all(|(_, _, permanent)| !permanent),
            "{message}"
        );
    }
    let several = found(&application(
        "ComparisonError",
        &printed("error: no target cluster: a\nerror: no name for the work: b"),
    ));
    assert_eq!(several.len(), 2, "{several:?}");
    let other = found(&application("ComparisonError", "connection refused"));
    assert_eq!(
        other,
        [(
            ProblemCause::Other,
            "Argo CD reports ComparisonError: connection refused".to_owned(),
            false
        )]
    );
}

#[test]
fn sync_that_meets_an_unknown_cluster_is_not_waited_for() {
    let syncing = |target: &str, phase: &str| DiagnosedApplication {
        conditions: Vec::new(),
        targets: BTreeSet::new(),
        sync: "OutOfSync".to_owned(),
        operation: Some(SyncOperation {
            phase: phase.to_owned(),
            message: format!(
                "one or more objects failed to apply, reason: namespaces \"{target}\" not found. Retrying attempt #1"
            ),
            failures: Vec::new(),
        }),
        ..application("", "")
    };
    let causes = |target: &str, phase: &str| -> Vec<_> {
        let problems = found(&syncing(target, phase)).into_iter();
        problems.map(|(cause, _, permanent)| (cause, permanent)).collect()
    };
    for phase in ["Running", "Failed"] {
        assert_eq!(causes("cluster9", phase), [(ProblemCause::ClusterUnknown, true)]);
        assert_eq!(causes("cluster2", phase), [(ProblemCause::ClusterNotAccepted, true)]);
        assert_eq!(causes("cluster3", phase), [(ProblemCause::ClusterNotJoined, false)]);
    }
    let mut application = syncing("cluster9", "Failed");
    application.operation = Some(SyncOperation {
        phase: "Failed".to_owned(),
        message: "admission webhook denied the request".to_owned(),
        failures: Vec::new(),
    });
    assert_eq!(found(&application)[0].0, ProblemCause::SyncFailed);
    application.sync = "Synced".to_owned();
    assert_eq!(problems(&application, None), [], "a later sync corrected it");
}

#[test]
fn missing_permission_to_write_works_is_one_problem_of_all_clusters() {
    let denied = |cluster: &str| {
        format!(
            "manifestworks.work.open-cluster-management.io \"shop\" is forbidden: User \"system:serviceaccount:gitops:controller\" cannot \
             get resource \"manifestworks\" in API group \"work.open-cluster-management.io\" in the namespace \"{cluster}\""
        )
    };
    let failed = DiagnosedApplication {
        conditions: Vec::new(),
        sync: "OutOfSync".to_owned(),
        operation: Some(SyncOperation {
            phase: "Failed".to_owned(),
            message: format!("one or more objects failed to apply, reason: {}", denied("cluster1")),
            failures: vec![denied("cluster1"), denied("cluster2")],
        }),
        ..application("", "")
    };
    let expected = "user system:serviceaccount:gitops:controller lacks the permission to write works: grant it as \
                    deploy/argocd_rbac.yaml does, such as with argocd-ocm-cmp install --features argocd-rbac, and sync again";
    assert_eq!(found(&failed), [(ProblemCause::SyncFailed, expected.to_owned(), true)]);
}

#[test]
fn application_without_errors_has_a_reason_too() {
    type Change = fn(&mut DiagnosedApplication);
    let rows: [(ProblemCause, bool, Change); 6] = [
        (ProblemCause::PullModel, true, |application| application.pull = true),
        (ProblemCause::NoPlugin, true, |application| application.plugins.clear()),
        (ProblemCause::NotCompared, false, |application| application.sync.clear()),
        (ProblemCause::NotSynced, false, |application| {
            application.sync = "OutOfSync".to_owned();
        }),
        (ProblemCause::Other, false, |application| {
            application.sync = "Synced".to_owned();
        }),
        (ProblemCause::ClusterNotAccepted, true, |application| {
            application.targets = ["cluster2".to_owned()].into();
        }),
    ];
    for (cause, permanent, change) in rows {
        let mut application = application("", "");
        application.conditions.clear();
        change(&mut application);
        let problems = found(&application);
        assert_eq!(
            (problems.len(), problems[0].0, problems[0].2),
            (1, cause, permanent),
            "{problems:?}"
        );
    }
}

/// Works that are healthy may be those before a change that Argo CD has not delivered.
#[test]
fn works_of_an_earlier_version_have_a_reason() {
    type Change = fn(&mut DiagnosedApplication);
    let rows: [(Option<ProblemCause>, Change); 5] = [
        (None, |_| {}),
        (Some(ProblemCause::NotCompared), |application| application.stale = true),
        (Some(ProblemCause::NotCompared), |application| application.sync.clear()),
        (Some(ProblemCause::NotSynced), |application| {
            application.sync = "OutOfSync".to_owned();
        }),
        // Its message is shown.
        (None, |application| {
            application.stale = true;
            application.operation = Some(SyncOperation {
                phase: "Running".to_owned(),
                ..SyncOperation::default()
            });
        }),
    ];
    for (cause, change) in rows {
        let mut application = application("", "");
        application.conditions.clear();
        application.sync = "Synced".to_owned();
        change(&mut application);
        let problems = problems_of_works(&application, Some(&clusters()));
        let found: Vec<_> = problems
            .iter()
            .map(|problem| (problem.cause, problem.permanent))
            .collect();
        assert_eq!(found, cause.map(|cause| (cause, false)).into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn filter_names_the_clusters_of_the_application() {
    let application = application("", "");
    let lines = |name: &str| -> Vec<String> {
        let problems = absence_on(&[name.to_owned()], &application, Some(&clusters()));
        problems.iter().map(Diagnosis::line).collect()
    };
    assert_eq!(lines("cluster1"), [""; 0]);
    assert_eq!(
        lines("cluster3")[0],
        "managed cluster cluster3 has not joined the hub: check that its registration agent runs"
    );
    assert!(lines("cluster9")[0].starts_with("managed cluster cluster9 is not registered on the hub: correct"));
    let mut elsewhere = DiagnosedApplication {
        targets: ["a".to_owned(), "b".to_owned()].into(),
        ..DiagnosedApplication::default()
    };
    let absent = |application: &_| absence_on(&["cluster1".to_owned()], application, Some(&clusters()));
    assert_eq!(
        absent(&elsewhere)[0].line(),
        "it is not for managed cluster cluster1, but for a, b"
    );
    // A source with a Placement may be for it.
    elsewhere.placement = true;
    assert!(absent(&elsewhere).is_empty());
    let synced = DiagnosedApplication {
        placement: true,
        plugins: vec![PLUGIN.to_owned()],
        sync: "Synced".to_owned(),
        ..DiagnosedApplication::default()
    };
    let not_reached = absence(&synced, &["cluster1".to_owned()], Some(&clusters()));
    assert_eq!(
        not_reached[0].line(),
        "its Placement has no work on cluster1: check that the Placement selects it, and without --clusters, how far the rollout is"
    );
}

#[test]
fn any_message_of_argo_cd_has_a_problem() {
    holds(500, proptest::prelude::any::<String>, |message| {
        for diagnosis in absence(&application("ComparisonError", &message), &[], Some(&clusters())) {
            assert!(is_plain_line(&crate::table::clean(&diagnosis.line())));
        }
    });
}

#[test]
fn names_what_stands_still() {
    let work = |cluster: &str, deleted: &str| {
        let text = format!(
            r#"{{"kind":"ManifestWork","metadata":{{"name":"shop","namespace":"{cluster}","deletionTimestamp":"{deleted}"}}}}"#
        );
        let clock = ocm::health::Clock::at("2026-06-01T12:00:00Z".parse().expect("a time"));
        ocm::health::evaluate(&text, &clock).expect("a work")
    };
    let works = [
        work("cluster1", "2026-06-01T11:00:00Z"),
        work("cluster1", "2026-06-01T11:59:00Z"),
        work("cluster2", "2026-06-01T11:00:00Z"),
    ];
    let placement = serde_json::json!({"status": {"numberOfSelectedClusters": 0, "conditions": [
        {"type": "PlacementSatisfied", "status": "False", "reason": "NoManagedClusterMatched", "message": "No cluster matched"},
    ]}});
    let why = unsatisfied(&placement).expect("it selects none");
    let placements = [("fleet/eu".to_owned(), why)].into();
    let problems = standstill(&works, Some(&clusters()), &placements);
    let lines: Vec<_> = problems.iter().map(Diagnosis::line).collect();
    assert_eq!(
        lines,
        [
            "Placement fleet/eu selects no managed cluster: No cluster matched (NoManagedClusterMatched): correct it, the \
             ManagedClusterSetBindings in its namespace, or the labels and taints of the clusters",
            "cluster1: the agent of managed cluster cluster1 is removing its objects, for more than 2 minutes: check that \
             klusterlet-work-agent runs there, and read its log",
        ],
        "cluster2 is not available, which another problem says"
    );
    assert!(
        problems.iter().all(|diagnosis| !diagnosis.permanent),
        "waiting may help"
    );
}
