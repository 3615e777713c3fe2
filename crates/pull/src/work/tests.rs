//! Tests of the desired work and of the fingerprint.

use super::*;
use crate::tests::as_stored;
use hub_state::pull::fingerprint::Fingerprint;
use hub_state::pull::work_name::{NAME_MAX, is_name, may_be_work_of, name, names, stem, stem_of};
use hub_state::testing::pull::{UID, application, read_work};
use testing::merge;

fn hash(work: &Value) -> Fingerprint {
    fingerprint(&borrowed(work))
}

const CLUSTER: (&str, &str) = ("eu1", "shop-0a1b2");

fn desired(application: &Application, settings: &Settings) -> Desired {
    let project = json!({"metadata": {"name": "shops", "namespace": "argocd"}, "spec": {"sourceRepos": ["*"]}});
    held(application, settings, next_retention(settings, None), &project)
}

fn held(application: &Application, settings: &Settings, retention: Retention, project: &Value) -> Desired {
    Desired::build(
        application,
        CLUSTER,
        settings,
        &Requests::default(),
        OfHub {
            project: Some(project),
            ..OfHub::default()
        },
        retention,
    )
}

fn acm() -> Settings {
    Settings {
        dialect: Dialect::Acm,
        ..all()
    }
}

/// Returns settings that deliver everything.
fn all() -> Settings {
    Settings {
        namespace: true,
        project: true,
        ..Settings::default()
    }
}

fn of_set() -> Application {
    application(|object| {
        let owner = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "appset-1"});
        object["metadata"]["ownerReferences"] = json!([owner]);
    })
}

#[test]
fn work_name_is_valid_for_names_and_uids_of_any_length() {
    let named = |name: &str, uid: &str| {
        application(|object| {
            object["metadata"]["name"] = json!(name);
            object["metadata"]["uid"] = json!(uid);
        })
    };
    for length in [182, 183, 240, 253] {
        let name = name(&named(&"a".repeat(length), UID));
        assert!(name.len() <= 188, "{length}: {name}");
        assert_eq!(name.ends_with("-0a1b2"), length <= 182, "{length}: {name}");
    }
    let dotted = name(&named(&format!("{}.{}", "a".repeat(176), "b".repeat(60)), UID));
    assert!(!dotted.contains(".-"), "{dotted}");
    for uid in ["", "a"] {
        let name = name(&named("shop", uid));
        assert!(name.starts_with("shop-") && name.len() == "shop-".len() + 10, "{name}");
    }
}

#[test]
fn work_has_the_peers_labels_and_annotations() {
    let work = desired(&application(|_| ()), &Settings::default()).object;
    let pull = json!({
        "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
        "argocd-ocm-cmp.github.io/application": "shop",
        "apps.open-cluster-management.io/pull-to-ocm-managed-cluster": "true",
    });
    assert_eq!(work["metadata"]["labels"], pull);
    let annotations = json!({
        "apps.open-cluster-management.io/hub-application-namespace": "argocd",
        "apps.open-cluster-management.io/hub-application-name": "shop",
        "argocd-ocm-cmp.github.io/application-uid": "0a1b2c3d-0000-4000-8000-000000000001",
    });
    assert_eq!(work["metadata"]["annotations"], annotations);
    assert_eq!(
        (&work["metadata"]["namespace"], &work["metadata"]["name"]),
        (&json!("eu1"), &json!("shop-0a1b2"))
    );
    let work = desired(&of_set(), &Settings::default()).object;
    assert_eq!(work["metadata"]["labels"][names::PULL], "true");
    assert_eq!(work["metadata"]["labels"][names::OF_SET], "true");
    assert_eq!(work["metadata"]["annotations"][names::SET], "argocd/appset-1");
}

#[test]
fn work_of_a_set_has_acms_set_hash() {
    let work = desired(&of_set(), &acm()).object;
    let labels = json!({
        "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
        "argocd-ocm-cmp.github.io/application": "shop",
        "apps.open-cluster-management.io/application-set": "true",
        "apps.open-cluster-management.io/application-set-hash": "b208dbecfe0a5f65581d608faac0e95c9a302b34",
    });
    assert_eq!(work["metadata"]["labels"], labels);
    let work = desired(&application(|_| ()), &acm()).object;
    let labels = json!({works::MANAGED_BY: works::OURS, works::APPLICATION_LABEL: "shop", names::PULL: "true"});
    assert_eq!(work["metadata"]["labels"], labels);
    let elsewhere = application(|object| object["metadata"]["namespace"] = json!("team-a"));
    let work = desired(&elsewhere, &Settings::default()).object;
    assert_eq!(work["metadata"]["labels"][works::APPLICATION_LABEL], "team-a_shop");
}

#[test]
fn work_configures_the_application_like_the_peers() {
    let work = desired(&application(|_| ()), &Settings::default()).object;
    let config = &work["spec"]["manifestConfigs"][0];
    let which = json!({"group": "argoproj.io", "resource": "applications", "namespace": "argocd", "name": "shop"});
    assert_eq!(config["resourceIdentifier"], which);
    let strategy = json!({"type": "ServerSideApply", "serverSideApply": {"force": true, "ignoreFields": [{
        "condition": "OnSpokeChange",
        "jsonPaths": [
            ".operation",
            r#".metadata.annotations["argocd.argoproj.io/refresh"]"#,
            r#".metadata.annotations["argocd.argoproj.io/hydrate"]"#,
        ],
    }]}});
    assert_eq!(config["updateStrategy"], strategy);
    assert_eq!(config["feedbackRules"].as_array().map(Vec::len), Some(6));
    assert_eq!(config["feedbackScrapeType"], "Watch");
    assert_eq!(work["spec"].get("deleteOption"), None);
}

#[test]
fn namespace_and_project_are_orphaned_with_the_work() {
    let work = desired(&application(|_| ()), &all()).object;
    let kinds = [0, 1, 2].map(|number: usize| &work["spec"]["workload"]["manifests"][number]["kind"]);
    assert_eq!(kinds, ["Namespace", "AppProject", "Application"]);
    let option = json!({"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": [
        {"group": "", "resource": "namespaces", "name": "argocd"},
        {"group": "argoproj.io", "resource": "appprojects", "namespace": "argocd", "name": "shops"},
    ]}});
    assert_eq!(work["spec"]["deleteOption"], option);
}

#[test]
fn read_only_works_change_nothing_but_keep_their_payload() {
    let thawed = desired(&application(|_| ()), &all()).object;
    let frozen = Settings {
        read_only: true,
        ..all()
    };
    let frozen = desired(&application(|_| ()), &frozen).object;
    let configs = frozen["spec"]["manifestConfigs"].as_array().expect("a list");
    assert_eq!(configs.len(), 3, "of every object");
    assert!(
        configs
            .iter()
            .all(|config| config["updateStrategy"] == json!({"type": "ReadOnly"}))
    );
    assert_eq!(frozen["spec"]["workload"], thawed["spec"]["workload"]);
    assert_eq!(frozen["spec"]["deleteOption"], json!({"propagationPolicy": "Orphan"}));
    assert_eq!(frozen["metadata"], thawed["metadata"]);
    assert_eq!(
        configs[2]["feedbackRules"],
        thawed["spec"]["manifestConfigs"][1]["feedbackRules"]
    );
}

#[test]
fn fingerprint_ignores_fields_of_the_api_server_and_others() {
    for settings in [Settings::default(), all(), acm()] {
        let desired = desired(&of_set(), &settings);
        let mut stored = as_stored(&desired.object);
        assert_eq!(hash(&stored), hash(&desired.object));
        let option = stored["spec"].as_object_mut().expect("a map").entry("deleteOption");
        option.or_insert_with(|| json!({"propagationPolicy": "Foreground"}));
        stored["metadata"]["labels"]["example.com/mine"] = json!("x");
        stored["metadata"]["annotations"]["example.com/mine"] = json!("x");
        stored["spec"]["executor"] = json!({"subject": {"type": "ServiceAccount"}});
        assert_eq!(hash(&stored), hash(&desired.object));
    }
}

#[test]
fn feedback_mode_is_written_only_where_the_api_server_stores_it() {
    let of = |feedback| {
        let settings = Settings { feedback, ..all() };
        desired(&application(|_| ()), &settings)
    };
    let [poll, watch] = [FeedbackMode::Poll, FeedbackMode::Watch].map(of);
    let mut stored = as_stored(&poll.object);
    assert!(poll.is_stored(&read_work(&stored)));
    assert!(!watch.is_stored(&read_work(&stored)), "the mode has changed");
    merge(&mut stored, &watch.patch("41"));
    let mut stored = as_stored(&stored);
    assert!(watch.is_stored(&read_work(&stored)));
    assert!(!poll.is_stored(&read_work(&stored)), "the mode has changed back");
    // OCM before 1.2.
    for config in stored["spec"]["manifestConfigs"].as_array_mut().expect("a list") {
        config.as_object_mut().expect("a map").remove("feedbackScrapeType");
    }
    assert!(
        watch.is_stored(&read_work(&stored)) && poll.is_stored(&read_work(&stored)),
        "it would be written forever"
    );
}

#[test]
fn one_patch_repairs_a_work_and_keeps_foreign_fields() {
    let expected = desired(&application(|_| ()), &Settings::default());
    let changed = |path: &str, value: Value| {
        let mut work = as_stored(&expected.object);
        let (parent, key) = path.rsplit_once('/').expect("a path");
        work.pointer_mut(parent).expect("a parent")[key.replace("~1", "/")] = value;
        work
    };
    let pull = "/metadata/labels/apps.open-cluster-management.io~1pull-to-ocm-managed-cluster";
    let name = "/metadata/annotations/apps.open-cluster-management.io~1hub-application-name";
    let ttl = json!({"propagationPolicy": "Foreground", "ttlSecondsAfterFinished": 1});
    for mut work in [
        as_stored(&desired(&of_set(), &acm()).object),
        changed(pull, json!("false")),
        changed(name, json!("x")),
        changed("/spec/workload/manifests/0/spec/project", json!("other")),
        changed("/spec/manifestConfigs/0/updateStrategy", json!({"type": "Update"})),
        changed("/spec/deleteOption", json!({"propagationPolicy": "Orphan"})),
        changed("/spec/deleteOption", ttl),
    ] {
        work["metadata"]["labels"]["example.com/mine"] = json!("x");
        work["spec"]["executor"] = json!({"subject": {"type": "ServiceAccount"}});
        assert_ne!(hash(&work), hash(&expected.object), "{work}");
        let patch = expected.patch("41");
        assert_eq!(patch["metadata"]["resourceVersion"], "41");
        merge(&mut work, &patch);
        assert_eq!(hash(&work), hash(&expected.object), "{work}");
        assert_eq!(work["metadata"]["labels"]["example.com/mine"], "x");
        assert!(work["spec"]["executor"].is_object());
    }
}

#[test]
fn one_patch_switches_between_any_two_holds() {
    let project = json!({"metadata": {"name": "shops", "namespace": "argocd"}, "spec": {"sourceRepos": ["*"]}});
    let form = |retention| held(&of_set(), &acm(), retention, &project);
    let steps = [
        Retention::Owned,
        Retention::Orphaning,
        Retention::Released,
        Retention::Owned,
        Retention::Released,
        Retention::Orphaning,
    ];
    let mut work = as_stored(&form(Retention::Owned).object);
    for retention in steps {
        merge(&mut work, &form(retention).patch("41"));
        work = as_stored(&work);
        assert_eq!(
            (hash(&work), Retention::from_work(&borrowed(&work))),
            (hash(&form(retention).object), retention)
        );
    }
}

#[test]
fn name_decides_whether_a_work_may_carry_an_application() {
    for (work, expected) in [
        ("shop-0a1b2", true),
        ("shop-0a1b2c3d4e", true),
        ("shop-0a1b", false),
        ("shop-klust", false),
        ("shop-0A1B2", false),
        ("my-shop-0a1b2", false),
        ("shops-0a1b2", false),
        ("shop", false),
        ("", false),
    ] {
        assert_eq!(may_be_work_of(work, "shop"), expected, "{work}");
    }
    let long = "x".repeat(250);
    let application = application(|object| object["metadata"]["name"] = json!(long));
    for name in names(&application) {
        assert!(name.len() <= NAME_MAX && may_be_work_of(&name, &long), "{name}");
        assert!(!may_be_work_of(&name, "x"), "{name}");
    }
}

#[test]
fn names_of_works_have_the_stem_of_their_application() {
    let long = [1, 176, 177, 178, 182, 183, 253].map(|length| "a".repeat(length));
    let dotted = format!("{}.{}", "a".repeat(176), "b".repeat(60));
    for name in long
        .into_iter()
        .chain([dotted, "shop-eu".to_owned(), "a.b-c".to_owned()])
    {
        let application = application(|object| object["metadata"]["name"] = json!(name));
        for work in names(&application) {
            assert_eq!(stem(&work), stem_of(&name), "{work}");
            assert!(is_name(&work, &application), "{work}");
        }
        for other in [format!("{name}-0a1b3"), format!("{name}-0a1b2c3d4e"), name] {
            assert!(!is_name(&other, &application), "{other}");
        }
    }
}
