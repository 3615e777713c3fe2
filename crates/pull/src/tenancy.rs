//! Applies Argo CD's tenancy rules to Applications of the pull model.
//!
//! Argo CD on the hub does not reconcile these Applications, so it does not check them either. The rules are those of its
//! `util/security` (`IsNamespaceEnabled`) and of its `AppProject` (`IsAppNamespacePermitted`, `IsDestinationPermitted`), with one
//! difference: the destination is the managed cluster, and not `spec.destination`, which is for the Argo CD there.

use super::patterns::{permits_text, servers};
use super::payload;
use hub_state::pull::namespaces::{CONFIG_MAP, NAMESPACES, NamespacePattern, Namespaces};
use hub_state::pull::{Application, Settings};
use ocm::pull_model as names;
use serde_json::Value;

/// Checks that Applications are allowed in this namespace.
pub fn check_namespace(namespace: &str, settings: &Settings, enabled: &Namespaces) -> Result<(), String> {
    let argocd = &settings.argocd;
    if namespace == argocd || enabled.has(namespace) {
        return Ok(());
    }
    Err(format!(
        "Argo CD does not serve Applications in Namespace {namespace}: add it to `{NAMESPACES}` of ConfigMap \
         {argocd}/{CONFIG_MAP}"
    ))
}

/// Checks that an Application may run on this managed cluster. `project` is its AppProject on the hub, if there is one.
pub fn check_project(
    application: &Application,
    cluster: &str,
    settings: &Settings,
    project: Option<&Value>,
) -> Result<(), String> {
    let argocd = &settings.argocd;
    let is_outside = *application.namespace != **argocd;
    let name = application.project_name();
    let namespace = payload::namespace(application, settings);
    if is_outside && namespace != &*application.namespace {
        return Err(format!(
            "the annotation {} is only for Applications in Namespace {argocd}: remove it",
            names::CLUSTER_NAMESPACE
        ));
    }
    let Some(project) = project else {
        // Argo CD creates the default project when it starts and permits everything in it. A hub may have no running Argo CD.
        if name == names::DEFAULT_PROJECT && !is_outside {
            return Ok(());
        }
        return Err(format!("AppProject {argocd}/{name} does not exist"));
    };
    let sources = project["spec"]["sourceNamespaces"].as_array().into_iter().flatten();
    let mut sources = sources.filter_map(|source| NamespacePattern::new(source.as_str()?));
    // Where the project may deliver any object, it may deliver an Application, too.
    let may_create = || !is_outside && permits(project, cluster, namespace);
    if namespace != argocd && !sources.any(|pattern| pattern.matches(namespace)) && !may_create() {
        return Err(format!(
            "AppProject {argocd}/{name} does not permit Applications in Namespace {namespace}: add it to `sourceNamespaces`"
        ));
    }
    // Argo CD permits the clusters whose cluster Secrets name the project; this controller may read no Secrets.
    if project["spec"]["permitOnlyProjectScopedClusters"] == true {
        return Err(format!(
            "AppProject {argocd}/{name} permits only project-scoped clusters, and the pull model reads no cluster Secrets: \
             remove `permitOnlyProjectScopedClusters`"
        ));
    }
    let spec = application.spec();
    let target = spec["destination"]["namespace"].as_str();
    let target = payload::destination_namespace(target, namespace, settings).unwrap_or_default();
    if permits(project, cluster, target) {
        return Ok(());
    }
    Err(format!(
        "AppProject {argocd}/{name} does not permit ManagedCluster {cluster} with namespace {target:?}: add `name: {cluster}` \
         and that namespace to `destinations`"
    ))
}

/// Returns true if an AppProject permits this namespace on this managed cluster. The project names the cluster by `name`, or by
/// `server` as a cluster Secret of the pull model has it. At least one destination must match, and no deny rule may match.
fn permits(project: &Value, cluster: &str, namespace: &str) -> bool {
    let servers = servers(cluster);
    let mut is_permitted = false;
    for destination in project["spec"]["destinations"].as_array().into_iter().flatten() {
        let pattern = |key: &str| destination.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, server, target) = (pattern("name"), pattern("server"), pattern("namespace"));
        let has_name = permits_text(name, &[cluster]);
        let has_server = permits_text(server, &servers.each_ref().map(String::as_str));
        let has_namespace = permits_text(target, &[namespace]);
        let denies = |pattern: &str, has: bool| pattern.starts_with('!') && !has;
        let is_cluster = has_name || has_server;
        if is_cluster && has_namespace {
            is_permitted = true;
        } else if has_namespace && (denies(name, has_name) || denies(server, has_server))
            || is_cluster && denies(target, has_namespace)
        {
            return false;
        }
    }
    is_permitted
}

#[cfg(test)]
mod tests {
    use super::*;
    use hub_state::pull::Dialect;
    use hub_state::testing::pull::annotate;
    use serde_json::json;

    fn application(namespace: &str, change: impl FnOnce(&mut Value)) -> Application {
        hub_state::testing::pull::application(|object| {
            object["metadata"]["namespace"] = json!(namespace);
            change(object);
        })
    }

    fn project(spec: &Value) -> Value {
        json!({"metadata": {"name": "default", "namespace": "argocd"}, "spec": spec})
    }

    fn check(application: &Application, project: Option<&Value>) -> Result<(), String> {
        check_project(application, "eu1", &Settings::default(), project)
    }

    #[test]
    fn counts_only_argo_cds_namespace_unless_others_are_configured() {
        let has = |list: &str, namespace: &str| {
            check_namespace(namespace, &Settings::default(), &Namespaces::configured(list)).is_ok()
        };
        assert!(has("", "argocd") && !has("", "team-a") && !has(" , ", ""));
        for (list, namespace, desired) in [
            ("team-a", "team-a", true),
            ("team-a", "team-ab", false),
            ("x, team-*", "team-b", true),
            ("*", "evil", true),
            ("team-[ab]", "team-c", false),
            ("team-[", "team-[", false),
            ("/^team-[0-9]+$/", "team-42", true),
            ("/^team-[0-9]+$/", "team-x", false),
            ("/(/", "(", false),
            ("//", "evil", false),
        ] {
            assert_eq!(has(list, namespace), desired, "{list} {namespace}");
        }
    }

    #[test]
    fn an_application_elsewhere_may_not_choose_another_namespace() {
        let all = project(&json!({"destinations": [{"name": "*", "namespace": "*"}], "sourceNamespaces": ["*"]}));
        let to = |namespace: &str, other: &str| {
            let application = application(namespace, |object| annotate(object, names::CLUSTER_NAMESPACE, other));
            check(&application, Some(&all))
        };
        let why = format!(
            "the annotation {} is only for Applications in Namespace argocd: remove it",
            names::CLUSTER_NAMESPACE
        );
        assert_eq!(to("evil", "argocd"), Err(why));
        assert_eq!(to("evil", "evil"), Ok(()));
        assert_eq!(to("argocd", "team-a"), Ok(()));
    }

    #[test]
    fn annotation_leads_only_where_the_project_permits_applications() {
        let to = |namespace: &str, spec: Value| {
            let application = application("argocd", |object| annotate(object, names::CLUSTER_NAMESPACE, namespace));
            check(&application, Some(&project(&spec)))
        };
        let destinations = json!([{"name": "*", "namespace": "guest*"}]);
        let why = "AppProject argocd/default does not permit Applications in Namespace kube-system: add it to \
                   `sourceNamespaces`";
        let spec = json!({"destinations": destinations});
        assert_eq!(to("kube-system", spec.clone()), Err(why.to_owned()));
        assert_eq!(to("argocd", spec.clone()), Ok(()));
        assert_eq!(to("guests", spec), Ok(()), "it may deliver Applications there");
        let sources = json!({"destinations": destinations, "sourceNamespaces": ["kube-*"]});
        assert_eq!(to("kube-system", sources), Ok(()));
        let other =
            json!({"destinations": [{"name": "eu1", "namespace": "guestbook"}, {"name": "eu2", "namespace": "*"}]});
        assert_eq!(to("kube-system", other), Err(why.to_owned()));
    }

    #[test]
    fn checks_the_namespace_that_acm_fills_in() {
        let settings = Settings {
            dialect: Dialect::Acm,
            ..Settings::default()
        };
        let application = application("argocd", |object| {
            object["spec"]["destination"]["namespace"] = json!("");
        });
        let destinations = json!([{"name": "*", "namespace": "!argo*"}]);
        let checked = check_project(
            &application,
            "eu1",
            &settings,
            Some(&project(&json!({"destinations": destinations}))),
        );
        let why = "AppProject argocd/default does not permit ManagedCluster eu1 with namespace \"argocd\": add `name: eu1` \
                   and that namespace to `destinations`";
        assert_eq!(checked, Err(why.to_owned()));
    }

    #[test]
    fn a_project_permits_clusters_by_its_destinations() {
        let application = application("argocd", |_| ());
        let permits =
            |destinations: Value| check(&application, Some(&project(&json!({"destinations": destinations})))).is_ok();
        let destination = |text: &&str| {
            let (cluster, namespace) = text.split_once(' ').expect("a cluster and a namespace");
            let key = if cluster.contains("https:") { "server" } else { "name" };
            json!({key: cluster, "namespace": namespace})
        };
        for (destinations, desired) in [
            (&["https://* *"][..], true),
            (&["eu1 guestbook"], true),
            (&["eu* guest*"], true),
            (&["https://eu1-control-plane:6443 *"], true),
            (&["https://eu1-control-plane *"], true),
            (&["eu1 other"], false),
            (&["eu2 *"], false),
            // A destination of others denies nothing.
            (&["eu2 *", "eu1 *"], true),
            // The Application's own destination does not apply to the hub.
            (&["https://kubernetes.default.svc *"], false),
            (&[" *"], false),
            (&[], false),
            (&["* *", "!eu1 *"], false),
            (&["!eu1 *", "* *"], false),
            (&["!eu2 *"], true),
            (&["* *", "* !guestbook"], false),
            (&["* !kube-*"], true),
            (&["* *", "!https://eu1-control-plane:6443 *"], false),
            // Denials for other namespaces, or other clusters, do not apply.
            (&["* *", "!eu1 kube-system"], true),
            (&["* *", "!https://eu1-control-plane kube-*"], true),
            (&["eu1 *", "eu2 !guestbook"], true),
        ] {
            assert_eq!(
                permits(destinations.iter().map(destination).collect()),
                desired,
                "{destinations:?}"
            );
        }
        assert!(!permits(Value::Null));
    }

    #[test]
    fn a_project_for_project_scoped_clusters_permits_no_managed_cluster() {
        let with = |only: Value| {
            let destinations = json!([{"name": "*", "namespace": "*"}]);
            project(&json!({"destinations": destinations, "permitOnlyProjectScopedClusters": only}))
        };
        let application = application("argocd", |_| ());
        let why = "AppProject argocd/default permits only project-scoped clusters, and the pull model reads no cluster \
                   Secrets: remove `permitOnlyProjectScopedClusters`";
        assert_eq!(check(&application, Some(&with(json!(true)))), Err(why.to_owned()));
        assert_eq!(check(&application, Some(&with(json!(false)))), Ok(()));
    }

    #[test]
    fn missing_project_is_refused_except_default() {
        assert_eq!(check(&application("argocd", |_| ()), None), Ok(()));
        let of = |name: &'static str| application("argocd", move |object| object["spec"]["project"] = json!(name));
        assert_eq!(check(&of(""), None), Ok(()));
        let why = "AppProject argocd/team does not exist";
        assert_eq!(check(&of("team"), None), Err(why.to_owned()));
        assert!(check(&application("team-a", |_| ()), None).is_err());
    }
}
