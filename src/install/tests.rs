use super::features::Feature;
use super::*;
use clap::ValueEnum as _;
use serde_json::json;

fn expected(features: &[Feature]) -> InstallOptions {
    InstallOptions {
        features: features.iter().copied().collect(),
        ..InstallOptions::everything("argocd")
    }
}

/// Returns an object of all features.
pub(super) fn shipped_object(kind: &str, name: &str) -> ShippedObject {
    find(&objects(&InstallOptions::everything("argocd")), kind, name).clone()
}

pub(super) fn find<'o>(objects: &'o [ShippedObject], kind: &str, name: &str) -> &'o ShippedObject {
    let object = objects
        .iter()
        .find(|object| (object.kind(), object.name()) == (kind, name));
    object.unwrap_or_else(|| panic!("{kind} {name}"))
}

/// Returns the value at a path such as `spec.replicas`; finds items of lists by their names. Null if there is none.
fn at<'v>(object: &'v ShippedObject, path: &str) -> &'v Json {
    path.split('.').fold(&object.value, |value, step| match value {
        Json::Array(items) => items.iter().find(|item| item["name"] == step).unwrap_or(&Json::Null),
        _ => &value[step],
    })
}

/// Returns an environment variable of the controller in its Deployment.
fn setting(expected: &InstallOptions, name: &str) -> Option<String> {
    let objects = objects(expected);
    let deployment = find(&objects, "Deployment", CONTROLLER);
    let variable = at(
        deployment,
        &format!("spec.template.spec.containers.controller.env.{name}"),
    );
    variable["value"].as_str().map(str::to_owned)
}

#[test]
fn features_have_the_names_of_their_controllers_too() {
    for other in ["application-status", "application-set-report"] {
        assert!(Feature::from_str(other, false).is_ok(), "{other}");
    }
}

#[test]
fn feature_implies_its_dependencies() {
    let all = |name: &str| {
        let feature = Feature::from_str(name, false).expect(name);
        let all = with_implied([feature]);
        all.into_iter().map(Feature::name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(all("argocd-agent"), "controller gitopscluster argocd-agent");
    assert_eq!(all("pull"), "controller pull report", "no access to Secrets");
    assert_eq!(all("argocd-addon"), "controller pull argocd-addon report");
    assert_eq!(all("policy"), "plugin policy");
    assert_eq!(all("plugin"), "plugin policy", "closed by default");
}

#[test]
fn every_controller_is_a_feature() {
    let mut names: Vec<_> = controller::controllers::CONTROLLERS
        .iter()
        .map(|controller| controller.name)
        .collect();
    names.dedup();
    let features = Feature::all().iter().filter_map(|feature| feature.controller());
    let mut of_features: Vec<_> = features.collect();
    names.sort_unstable();
    of_features.sort_unstable();
    assert_eq!(names, of_features);
}

#[test]
fn controller_runs_every_requested_feature() {
    let enabled = |features: &[Feature]| setting(&expected(features), "ARGOCD_OCM_CMP_CONTROLLERS");
    assert_eq!(enabled(&[Feature::CONTROLLER]), None, "the default needs no setting");
    assert_eq!(
        enabled(&[Feature::GITOPS_CLUSTER]).as_deref(),
        Some("application-status,gitopscluster")
    );
    let all = "application-status,pull,cluster-secrets,application-set-report,gitopscluster,argocd-agent";
    let requested = [Feature::PULL, Feature::CLUSTER_SECRETS, Feature::ARGOCD_AGENT];
    assert_eq!(enabled(&requested).as_deref(), Some(all));
    let objects = objects(&expected(&requested));
    let config = find(&objects, "ConfigMap", "argocd-ocm-cmp-controller");
    assert_eq!(at(config, "data.ARGOCD_OCM_CMP_CONTROLLERS"), all);
}

#[test]
fn flags_that_are_not_set_keep_the_installation() {
    let mut earlier = expected(&[Feature::PLUGIN, Feature::PULL, Feature::UI, Feature::ARGOCD_AGENT]);
    earlier.pull_dialect = Some(Dialect::Acm);
    earlier.replicas = Some(3);
    let installed = objects(&earlier);
    let deployments = installed.iter().filter(|object| object.kind() == "Deployment");
    let workloads: Vec<Json> = deployments.map(|object| object.value.clone()).collect();
    let text = format_objects(&installed, OutputFormat::Yaml);
    for feature in [
        Feature::UI,
        Feature::PLUGIN,
        Feature::CONTROLLER,
        Feature::PULL,
        Feature::REPORT,
        Feature::ARGOCD_AGENT,
    ] {
        let mut options = expected(&[feature]);
        options.adopt(&workloads, None).expect("every target is known");
        let now = format_objects(&objects(&options), OutputFormat::Yaml);
        assert!(now == text, "{feature:?}: {now}");
    }
}

#[test]
fn agents_run_the_configured_images() {
    let mut expected = expected(&[Feature::ARGOCD_AGENT]);
    for image in [&mut expected.images.controller, &mut expected.images.sidecar] {
        "registry.example.com/ours:2".clone_into(image);
    }
    expected.images.tools = "registry.example.com/argocd:v1".to_owned();
    assert_eq!(
        setting(&expected, "ARGOCD_OCM_CMP_AGENT_SUPERVISOR_IMAGE").as_deref(),
        Some(expected.images.controller.as_str())
    );
    expected.features.insert(Feature::PLUGIN);
    let text = format_objects(&objects(&expected), OutputFormat::Yaml);
    assert!(!text.contains(IMAGE) && !text.contains(ARGOCD_IMAGE));
    assert_eq!(text.matches("image: registry.example.com/ours:2\n").count(), 2);
    assert_eq!(text.matches("image: registry.example.com/argocd:v1\n").count(), 1);
}

#[test]
fn flags_set_replicas_dialect_and_policy() {
    let mut expected = expected(&[Feature::PULL]);
    expected.replicas = Some(4);
    let objects_of = objects(&expected);
    let deployment = find(&objects_of, "Deployment", "argocd-ocm-cmp-controller");
    assert_eq!(*at(deployment, "spec.replicas"), 4);
    assert_eq!(setting(&expected, "ARGOCD_OCM_CMP_PULL_DIALECT"), None);
    expected.pull_dialect = Some(Dialect::Acm);
    assert_eq!(
        setting(&expected, "ARGOCD_OCM_CMP_PULL_DIALECT").as_deref(),
        Some("acm")
    );
    expected.policy = PolicySource::Text("projects: []\n".to_owned());
    let objects = objects(&expected);
    // The flag implies the plugin.
    find(&objects, "Deployment", "argocd-repo-server");
    let policy = find(&objects, "ConfigMap", "argocd-ocm-cmp-policy");
    assert_eq!(policy.value["data"]["policy.yaml"], "projects: []\n");
}

#[test]
fn sidecar_mounts_the_configured_policy() {
    let mounted = |expected: &InstallOptions| {
        let all = objects(expected);
        let repo_server = find(&all, "Deployment", "argocd-repo-server");
        let in_pod = |path: &str| at(repo_server, &format!("spec.template.spec.{path}"));
        let name = in_pod("volumes.argocd-ocm-cmp-policy.configMap.name").as_str();
        let has_variable = !in_pod("containers.argocd-ocm-cmp.env.ARGOCD_OCM_CMP_POLICY_FILE").is_null();
        assert_eq!(name.is_some(), has_variable);
        let is_written = all
            .iter()
            .any(|object| (object.kind(), object.name()) == ("ConfigMap", POLICY));
        (name.map(str::to_owned), is_written)
    };
    let mut expected = expected(&[Feature::PLUGIN]);
    assert_eq!(mounted(&expected), (Some(POLICY.to_owned()), true));
    expected.policy = PolicySource::ConfigMap("theirs".to_owned());
    assert_eq!(
        mounted(&expected),
        (Some("theirs".to_owned()), false),
        "the ConfigMap of another owner is not written"
    );
    expected.policy = PolicySource::None;
    assert_eq!(mounted(&expected), (None, false));
    expected.policy = PolicySource::Sample;
    expected.additions_only = true;
    assert_eq!(mounted(&expected), (Some(POLICY.to_owned()), false));
}

#[test]
fn namespace_is_replaced_everywhere() {
    let shipped = objects(&InstallOptions::everything("argocd"));
    let moved = objects(&InstallOptions::everything("gitops"));
    // The component of a label, the add-on, Argo CD's program and a field have that name too.
    let other_names = [
        r#""app.kubernetes.io/part-of":"argocd""#,
        r#""addonName":"argocd""#,
        r#""command":["argocd""#,
        r#""argocd":"#,
    ];
    let mut labelled = 0;
    for (shipped, moved) in shipped.iter().zip(&moved) {
        assert_eq!(moved.namespace().is_some(), shipped.namespace().is_some());
        assert_ne!(moved.namespace(), Some("argocd"), "{moved}");
        let mut json = moved.json();
        labelled += usize::from(json.contains(other_names[0]));
        for name in other_names {
            json = json.replace(name, "");
        }
        if moved.kind() == "ClusterManagementAddOn" {
            json = json.replacen(r#""name":"argocd""#, "", 1);
        }
        assert!(!json.contains(r#""argocd""#), "{moved}: {json}");
    }
    assert!(labelled > 30, "labels of all objects: {labelled}");
    assert_eq!(
        setting(&InstallOptions::everything("gitops"), "ARGOCD_OCM_CMP_ARGOCD_NAMESPACE").as_deref(),
        Some("gitops")
    );
    let project = find(&moved, "AppProject", PROJECT).json();
    assert!(
        project.contains(r#""!gitops""#) && !project.contains("!argocd"),
        "{project}"
    );
    for policy in moved.iter().filter(|object| object.is_admission_policy()) {
        assert!(policy.name().ends_with(".gitops"), "{policy}");
        let json = policy.json();
        for shipped in [":argocd:", "github.io/argocd'", ".argocd\""] {
            assert!(!json.contains(shipped), "{policy} has {shipped}");
        }
    }
    let role = find(&moved, "ClusterRole", "argocd-ocm-cmp-gitopscluster");
    assert!(
        role.json()
            .contains(r#""resourceNames":["gitops"],"resources":["namespaces"]"#)
    );
}

#[test]
fn principal_of_another_is_limited_only_if_it_maps_by_destination() {
    let theirs = |maps_by_destination| Principal::Theirs { maps_by_destination };
    let ours = Principal::Ours { serves_redis: true };
    for (principal, is_limited) in [(ours, true), (theirs(true), true), (theirs(false), false)] {
        let all = objects(&InstallOptions {
            principal,
            ..InstallOptions::everything("argocd")
        });
        let policies = all
            .iter()
            .filter(|object| object.name().starts_with("argocd-ocm-cmp-principal-"));
        assert_eq!(policies.count(), if is_limited { 4 } else { 0 }, "{principal:?}");
        let is_installed = all.iter().any(|object| object.name() == PRINCIPALS[0]);
        assert_eq!(is_installed, principal == ours, "{principal:?}");
    }
}

#[test]
fn each_admission_policy_matches_the_account_and_is_bound() {
    let all = objects(&InstallOptions::everything("gitops"));
    let (policies, bindings): (Vec<_>, Vec<_>) = all
        .iter()
        .filter(|object| object.is_admission_policy())
        .partition(|object| object.kind() == "ValidatingAdmissionPolicy");
    // Holds with an end have a binding of their own.
    assert_eq!((policies.len(), bindings.len()), (12, 13));
    for policy in &policies {
        let is_of_plugin = policy.name() == "argocd-ocm-cmp-sources.gitops";
        let others = ["argocd-ocm-cmp-clusters.gitops", "argocd-ocm-cmp-holds.gitops"];
        if !is_of_plugin && !others.contains(&policy.name()) {
            let (condition, accounts) = match policy.name() {
                "argocd-ocm-cmp-live.gitops" => ("is-the-view", &["argocd-ocm-cmp-live"][..]),
                name if name.contains("-principal-") => ("is-the-principal", &PRINCIPALS[..]),
                _ => ("is-the-controller", &["argocd-ocm-cmp-controller"][..]),
            };
            let accounts = accounts
                .iter()
                .map(|account| format!("'system:serviceaccount:gitops:{account}'"));
            let accounts: Vec<_> = accounts.collect();
            let expected = match &accounts[..] {
                [account] => format!("request.userInfo.username == {account}"),
                all => format!("request.userInfo.username in [{}]", all.join(", ")),
            };
            let expression = at(policy, &format!("spec.matchConditions.{condition}.expression"));
            assert_eq!(expression, expected.as_str());
        }
        let failure_policy = if is_of_plugin { "Ignore" } else { "Fail" };
        assert_eq!(at(policy, "spec.failurePolicy"), failure_policy);
        let is_bound = bindings
            .iter()
            .any(|binding| at(binding, "spec.policyName") == policy.name());
        assert!(is_bound, "{}", policy.name());
    }
    for binding in &bindings {
        assert!(binding.json().contains(r#""validationActions":["Deny"]"#));
    }
    for (name, expected) in [("a.argocd", true), ("a.gitops", false)] {
        let live = json!({"metadata": {"name": name}});
        assert_eq!(belongs_to_another_argocd(policies[0], &live, "gitops"), expected);
    }
}

#[test]
fn admission_policies_use_the_names_in_the_code() {
    use hub_state::annotations::REFRESH;
    use hub_state::cluster_secret as secrets;
    use ocm::argocd_agent as agents;
    use ocm::pull_model as pull;
    let text = crate::embedded::text("deploy/admission_policy.yaml");
    for name in [
        controller::LEASE,
        pull::PULL,
        pull::OF_SET,
        pull::HUB_NAMESPACE,
        pull::HUB_NAME,
        pull::REFRESH_TIMESTAMP,
        pull::HYDRATE,
        pull::HYDRATE_TIMESTAMP,
        REFRESH,
        secrets::SECRET_TYPE,
        ocm::work::MANAGED_BY,
        ocm::work::OURS,
        secrets::AGENT_NAME,
        agents::ADDON,
        agents::CA_SECRET,
        agents::PRINCIPAL_TLS,
        agents::RESOURCE_PROXY_TLS,
        agents::JWT_SECRET,
        agents::ISSUED_TYPE,
        agents::CA_WORK,
        agents::WORK_LABEL,
        agents::CA_BUNDLE,
        agents::BLOCKLIST,
    ] {
        assert!(text.contains(&format!("'{name}'")), "{name}");
    }
    for start in [agents::issued(""), "argocd-agent-cr-".to_owned()] {
        assert!(text.contains(&format!(".startsWith('{start}')")), "{start}");
    }
    assert!(agents::argocd_work("argocd", "fleet").starts_with("argocd-agent-cr-"));
    for finalizer in pull::CASCADE.iter().chain(&pull::DELETION_HOOKS) {
        assert!(finalizer.contains("-finalizer.argocd.argoproj.io"), "{finalizer}");
    }
}

#[test]
fn only_features_that_write_secrets_may_read_them() {
    for feature in Feature::all() {
        let roles = objects(&expected(&[*feature]));
        let mut roles = roles.iter().filter(|object| object.kind().ends_with("Role"));
        let reads = roles.any(|object| object.json().contains(r#""resources":["secrets"]"#));
        let writes = matches!(
            *feature,
            Feature::CLUSTER_SECRETS | Feature::GITOPS_CLUSTER | Feature::ARGOCD_AGENT
        );
        assert_eq!(reads, writes, "{feature:?}");
    }
}

#[test]
fn view_has_its_identity_before_argocd_server_starts() {
    let mut expected = expected(&[Feature::LIVE]);
    let printed = format_objects(&objects(&expected), OutputFormat::Yaml);
    assert!(!printed.contains("live-certificate") && printed.contains("https://argocd-ocm-cmp-live:8443"));
    expected.live = LiveView {
        authority: Some("authority".to_owned()),
        is_authority_foreign: false,
        identity: Some(json!({"token": "dG9rZW4="})),
        certificate: Some("certificate".to_owned()),
    };
    let restarted = |expected: &InstallOptions| {
        let all = objects(expected);
        let annotation = |name: &str| {
            let annotations = at(find(&all, "Deployment", name), "spec.template.metadata.annotations");
            let hash = annotations["argocd-ocm-cmp.github.io/live-certificate"].as_str();
            hash.expect("a hash").to_owned()
        };
        [LIVE, "argocd-server"].map(annotation)
    };
    let all = objects(&expected);
    let data = |kind, name, key: &str| find(&all, kind, name).value["data"][key].clone();
    assert_eq!(data("Secret", LIVE, "token"), "dG9rZW4=");
    assert_eq!(data("ConfigMap", LIVE, "tls.crt"), "certificate");
    assert_eq!(data("ConfigMap", AUTHORITY, AUTHORITY_KEY), "authority");
    let [service, server] = restarted(&expected);
    expected.live.authority = Some("another".to_owned());
    let [of_authority, unchanged] = restarted(&expected);
    assert!(of_authority != service && unchanged == server);
    expected.live.certificate = Some("another".to_owned());
    let [of_certificate, restarted] = restarted(&expected);
    assert!(of_certificate != of_authority && restarted != server);
    expected.live.is_authority_foreign = true;
    assert!(!objects(&expected).iter().any(|object| object.name() == AUTHORITY));
}

#[test]
fn applies_objects_after_their_dependencies() {
    let all = objects(&InstallOptions::everything("argocd"));
    let kinds: Vec<_> = all.iter().map(ShippedObject::kind).collect();
    let last = |kind| kinds.iter().rposition(|text| *text == kind).expect(kind);
    let first = |kind| kinds.iter().position(|text| *text == kind).expect(kind);
    assert_eq!(last("CustomResourceDefinition"), 1);
    assert!(last("ClusterRole") < first("ClusterRoleBinding") && last("Role") < first("RoleBinding"));
    assert!(last("ConfigMap") < first("Deployment") && last("RoleBinding") < first("Deployment"));
    assert_eq!(last("Deployment"), kinds.len() - 1);
}

#[test]
fn every_object_has_a_path() {
    let all = objects(&InstallOptions::everything("gitops"));
    for (at, object) in all.iter().enumerate() {
        assert!(!all[..at].iter().any(|other| other.is_same(object)), "{object}");
    }
    let mut paths: Vec<_> = all.iter().map(ShippedObject::path).collect();
    paths.sort();
    paths.dedup();
    insta::assert_snapshot!(paths.join("\n"));
    let shown = all.iter().map(|object| object.bare().json()).collect::<Vec<_>>();
    assert_eq!(
        shown.last().map(String::as_str),
        Some(
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"argocd-ocm-cmp-live","namespace":"gitops"}}"#
        )
    );
}

#[test]
fn template_of_the_add_on_has_a_name_for_each_content() {
    let named = |options: &InstallOptions| {
        let objects = objects(options);
        let template = objects.iter().find(|object| object.kind() == "AddOnTemplate");
        let template = template.expect("the add-on has a template").clone();
        let management = find(&objects, "ClusterManagementAddOn", "argocd");
        let default = &management.value["spec"]["supportedConfigs"][0]["defaultConfig"]["name"];
        assert_eq!(default, template.name(), "clusters get it");
        template
    };
    let expected = expected(&[Feature::ARGOCD_ADDON]);
    let shipped = named(&expected);
    assert_eq!(named(&expected), shipped);
    let image = "registry.example.com/argocd:v1";
    let mut options = expected.clone();
    options.images.argocd = image.to_owned();
    let other_image = named(&options);
    let elsewhere = named(&InstallOptions {
        namespace: "gitops".to_owned(),
        ..expected
    });
    assert_ne!(other_image.name(), shipped.name());
    assert_ne!(elsewhere.name(), shipped.name());
    // The init container and the container of the controller, and the repo-server.
    assert_eq!(other_image.json().matches(image).count(), 3);
    assert!(!other_image.json().contains(ARGOCD_IMAGE));
    assert_eq!(elsewhere.json().matches("\"namespace\":\"argocd\"").count(), 0);
}
