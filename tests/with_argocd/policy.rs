//! Tests that a platform's policy applies to every Application of a project, regardless of the settings of the Application and its folder.

use crate::delivery::works_of;
use crate::stage::{PLUGIN_WITH_POLICY, Stage, application, shipped_object, stage};
use anyhow::{Context, Result};
use ocm::names::WorkName;
use serde_json::{Value, json};
use testbed::{GitRepository, ObjectRef, is_applied, is_synced};

/// The policy of the stage's second plugin.
pub(crate) const POLICY: &str = "\
apiVersion: argocd-ocm-cmp.github.io/v1alpha1
kind: Policy
projects:
- names: [team-a]
  clusters: [cluster1]
  namespaces: [team-a]
  deniedKinds: [LimitRange]
  executor: {namespace: team-a, name: deployer}
- names: [names-refused]
  executor: {namespace: names-refused, name: nobody}
";

/// The project of these tests, and its namespace on the cluster.
pub(crate) const PROJECT: &str = "team-a";

const GOOD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\ndata:\n  colour: green\n";

/// Returns an Application of project team-a, whose plugin has the policy.
pub(crate) fn in_project(name: &str, git: &GitRepository) -> Result<Value> {
    let mut app = application(name, git)?;
    app["spec"]["project"] = json!("team-a");
    app["spec"]["source"]["plugin"]["name"] = json!(PLUGIN_WITH_POLICY);
    app["spec"]["destination"]["namespace"] = json!("team-a");
    Ok(app)
}

/// Creates the project, with all permissions that Argo CD can grant, and the executor that the policy names.
pub(crate) async fn make_project(stage: &Stage) -> Result<()> {
    let mut project = shipped_object("proj.yaml")?;
    project["metadata"]["name"] = json!("team-a");
    stage.hub.apply(&project).await?;
    stage.cluster1.create_namespace("team-a").await?;
    stage.cluster1.apply(&binding(PROJECT, "deployer")).await.map(drop)
}

/// Returns the binding of the usual permissions in a namespace on the cluster to a ServiceAccount.
pub(crate) fn binding(namespace: &str, account: &str) -> Value {
    ObjectRef::namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", namespace, account).with(json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }))
}

/// Delivers a ConfigMap that the policy permits, and returns the work as the agent has applied it.
async fn delivered(stage: &Stage, name: &str, git: &GitRepository) -> Result<Value> {
    let hub = &stage.hub;
    make_project(stage).await?;
    git.commit(&[(&format!("{name}/config.yaml"), &GOOD.replace("NAME", name))])?;
    hub.create_application(&in_project(name, git)?).await?;
    hub.wait_for(&ObjectRef::application(name), is_synced).await?;
    let config_map = ObjectRef::config_map("team-a", name);
    stage.cluster1.wait_for(&config_map, |_| true).await?;
    let work = name.parse::<WorkName>()?.under_policy().to_string();
    hub.wait_for(&ObjectRef::manifest_work("cluster1", &work), is_applied)
        .await
}

/// Returns the desired state of an Application's works in all namespaces.
pub(crate) async fn desired_works(stage: &Stage, application: &str) -> Result<Vec<(Value, Value)>> {
    let works = works_of(&stage.hub, application).await?;
    Ok(works
        .iter()
        .map(|work| (work["metadata"]["uid"].clone(), work["metadata"]["generation"].clone()))
        .collect())
}

/// Returns the message of the error that Argo CD shows when it cannot render the source.
pub(crate) fn comparison_error(application: &Value) -> Option<String> {
    let conditions = application["status"]["conditions"].as_array()?;
    let error = conditions
        .iter()
        .find(|condition| condition["type"] == "ComparisonError")?;
    error["message"].as_str().map(str::to_owned)
}

/// Refreshes the Application, and returns Argo CD's errors without its own prefix.
pub(crate) async fn messages(stage: &Stage, application: &str) -> Result<Vec<String>> {
    let app = stage.hub.refresh_application(application, "hard").await?;
    let conditions = app["status"]["conditions"].as_array().context("conditions")?;
    let errors = conditions
        .iter()
        .filter(|condition| condition["type"] == "ComparisonError")
        .count();
    assert_eq!(errors, 1, "{conditions:#?}");
    let error = comparison_error(&app).context("a ComparisonError")?;
    let (_, lines) = error
        .split_once("exit status 1: error: ")
        .context("lines of this program's")?;
    Ok(lines.split("\nerror: ").map(|line| line.trim().to_owned()).collect())
}

#[tokio::test]
async fn one_error_lists_every_violation_and_nothing_changes() -> Result<()> {
    let stage = stage().await?;
    let name = "policy-violated";
    let git = GitRepository::new()?;
    delivered(stage, name, &git).await?;
    let before = desired_works(stage, name).await?;
    assert_eq!(before.len(), 1);

    let object = |kind: &str, namespace: &str| {
        format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: {namespace}\n")
    };
    git.commit(&[
        (&format!("{name}/b.yaml"), &object("ConfigMap", "kube-system")),
        (&format!("{name}/c.yaml"), &object("LimitRange", "team-a")),
        // The policy permits this object, but no object is delivered after an error.
        (
            &format!("{name}/config.yaml"),
            &GOOD.replace("NAME", name).replace("green", "red"),
        ),
    ])?;
    let clusters =
        json!({"spec": {"source": {"plugin": {"env": [{"name": "TARGET_CLUSTER", "value": "cluster1,cluster9"}]}}}});
    stage.hub.patch(&ObjectRef::application(name), &clusters).await?;
    let refused = "the policy lets project team-a deliver";
    let expected = [
        format!(
            "cluster cluster9: {refused} nothing to it, only to cluster1: to allow it, add `cluster9` to \
             `projects[0].clusters`"
        ),
        format!(
            "b.yaml:1: document 1: ConfigMap kube-system/{name}: {refused} nothing in namespace kube-system, only in team-a: \
             to allow it, add `kube-system` to `projects[0].namespaces`"
        ),
        format!(
            "c.yaml:1: document 1: LimitRange team-a/{name}: {refused} no objects of this kind: to allow it, remove \
             `LimitRange` from `projects[0].deniedKinds`"
        ),
    ];
    assert_eq!(messages(stage, name).await?, expected);
    assert_eq!(messages(stage, name).await?, expected, "every refresh reports the same");
    assert_eq!(desired_works(stage, name).await?, before, "no work was written");
    let live = stage.cluster1.get(&ObjectRef::config_map("team-a", name)).await?;
    assert_eq!(live.context("it stays")?["data"]["colour"], "green");
    stage.hub.delete(&ObjectRef::application(name)).await
}

#[tokio::test]
async fn an_application_cannot_influence_the_policy() -> Result<()> {
    let stage = stage().await?;
    let name = "policy-evaded";
    let git = GitRepository::new()?;
    let work = delivered(stage, name, &git).await?;
    let executor = json!({"type": "ServiceAccount", "serviceAccount": {"namespace": "team-a", "name": "deployer"}});
    assert_eq!(work["spec"]["executor"]["subject"], executor);
    // Setting the same values as the policy is permitted.
    let parameters = json!([{"name": "executor", "string": "team-a/deployer"}, {"name": "name", "string": name}]);
    let patch = json!({"spec": {"source": {"plugin": {"parameters": parameters}}}});
    stage.hub.patch(&ObjectRef::application(name), &patch).await?;
    let app = stage.hub.refresh_application(name, "hard").await?;
    assert!(
        is_synced(&app) && comparison_error(&app).is_none(),
        "{:#}",
        app["status"]
    );
    let before = desired_works(stage, name).await?;
    let foreign = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: policy-evaded\n  namespace: kube-system\n";
    git.commit(&[(&format!("{name}/foreign.yaml"), foreign)])?;
    let refused = "foreign.yaml:1: document 1: ConfigMap kube-system/policy-evaded: the policy lets project team-a deliver nothing in \
                   namespace kube-system, only in team-a: to allow it, add `kube-system` to `projects[0].namespaces`";
    let another = "executor team-a/admin: the policy sets the executor of project team-a to team-a/deployer: leave the setting out";
    let unknown = "unknown parameter policy: the parameters are ";

    let file = "/dev/null";
    let env = |name: &str, value: &str| json!([{"name": name, "value": value}]);
    let parameter = |name: &str, value: &str| json!([{"name": name, "string": value}]);
    let none = || json!([]);
    let attempts = [
        (env("POLICY", file), none(), refused),
        (env("ARGOCD_OCM_CMP_POLICY_FILE", file), none(), refused),
        (env("ARGOCD_APP_PROJECT_NAME", "platform"), none(), refused),
        (env("ARGOCD_APP_NAME", "policy-kept"), none(), refused),
        (none(), parameter("policy", file), unknown),
        (none(), parameter("executor", "team-a/admin"), another),
        (env("EXECUTOR", "team-a/admin"), none(), another),
        // Works of that name would still be this Application's: they contain a hash of it.
        (none(), parameter("name", "policy-kept"), refused),
        (env("NAME", "policy-kept"), none(), refused),
    ];
    let in_folder = format!("{name}/.argocd-source.yaml");
    for (more, parameters, expected) in &attempts {
        let mut env = vec![json!({"name": "TARGET_CLUSTER", "value": "cluster1"})];
        env.extend(more.as_array().into_iter().flatten().cloned());
        let plugin = json!({"plugin": {"env": env, "parameters": parameters}});
        // In the Application, and in its folder, from which Argo CD merges it into the Application.
        for of_the_folder in [false, true] {
            let (in_application, of_folder) = if of_the_folder {
                (
                    json!({"plugin": {"env": [env[0]], "parameters": none()}}),
                    plugin.to_string(),
                )
            } else {
                (plugin.clone(), "{}".to_owned())
            };
            git.commit(&[(&in_folder, &of_folder)])?;
            let patch = json!({"spec": {"source": in_application}});
            stage.hub.patch(&ObjectRef::application(name), &patch).await?;
            let messages = messages(stage, name).await?;
            assert!(
                messages.len() == 1 && messages[0].starts_with(expected),
                "{plugin}, in the folder: {of_the_folder}: {messages:?}"
            );
        }
    }
    // The folder can name another cluster and consent to Secrets, but only within the policy.
    let plain = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: plain\n";
    let env = json!([{"name": "TARGET_CLUSTER", "value": "cluster2"}, {"name": "ALLOW_SECRETS", "value": "true"}]);
    let overrides = json!({"plugin": {"env": env}}).to_string();
    let secret = format!("{name}/secret.yaml");
    git.commit(&[(&in_folder, &overrides), (&secret, plain)])?;
    let in_application =
        json!({"spec": {"source": {"plugin": {"env": [{"name": "TARGET_CLUSTER", "value": "cluster1"}]}}}});
    stage.hub.patch(&ObjectRef::application(name), &in_application).await?;
    let refused_to = messages(stage, name).await?;
    for start in [
        "cluster cluster2: the policy lets project team-a deliver nothing to it",
        "secret.yaml:1: document 1: Secret team-a/plain: the policy",
    ] {
        assert!(
            refused_to.iter().any(|message| message.starts_with(start)),
            "{start}: {refused_to:?}"
        );
    }
    git.commit(&[(&secret, "")])?;
    // The folder cannot remove the plugin, which would make Argo CD apply its content directly.
    git.commit(&[(&in_folder, "plugin: null\n")])?;
    let messages = messages(stage, name).await?;
    assert!(messages.len() == 1 && messages[0] == refused, "{messages:?}");
    assert_eq!(desired_works(stage, name).await?, before, "no work was written");
    stage.hub.delete(&ObjectRef::application(name)).await
}
