//! Measures the controllers `gitopscluster` and `argocd-agent` on the hub of a fleet: a real API server, one GitOpsCluster in
//! agent mode that selects all managed clusters, and simulated OCM controllers and agents.
//!
//! ```text
//! cargo bench --bench agents                      # 1,000 managed clusters
//! cargo bench --bench agents -- 300               # this number of managed clusters
//! cargo bench --bench agents -- 5 --peer PROGRAM  # also argocd-pull-integration, which needs 30 s for each cluster
//! ```
//!
//! Has the prerequisites of the testbed. Of argocd-pull-integration, only the objects of the GitOpsCluster are measured: it leaves
//! the certificates to OCM's add-on manager.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

mod fleet;

use anyhow::{Result, ensure};
use fleet::{Load, Metrics, Program, Requests, Size, Stage, Table, WORKS, now, request, seconds, timed, writes};
use http::Request;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use testbed::ObjectRef;

/// The numbers of units of work and of managed clusters: one unit for each cluster.
const SIZES: [Size; 1] = [(1000, 1000)];

/// The arguments. Without our image nothing would restart agents after a renewal, and the GitOpsCluster would not be ready.
const ARGUMENTS: &[&str] = &[
    "--controllers=gitopscluster,argocd-agent",
    "--agent-supervisor-image=example.com/argocd-ocm-cmp:1",
];

/// The path of the ClusterManagementAddOn.
const MANAGEMENT: &str = "/apis/addon.open-cluster-management.io/v1alpha1/clustermanagementaddons/argocd-agent-addon";

const GITOPS_CLUSTERS: &str = "/apis/apps.open-cluster-management.io/v1alpha1/namespaces/argocd/gitopsclusters";
const ADDONS: &str = "/apis/addon.open-cluster-management.io/v1alpha1/namespaces";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const ADDON: &str = "argocd-agent-addon";

/// The group of all registration agents.
const AGENTS: &str = "system:open-cluster-management:managed-clusters";

/// The kinds that are written, with their names in the table.
const KINDS: [(&str, &str); 4] = [
    ("secrets", "  writes of Secrets for each cluster"),
    ("manifestworks", "  writes of works"),
    ("certificatesigningrequests", "  writes of certificate requests"),
    ("gitopsclusters", "  writes of the GitOpsCluster, total"),
];

/// The time in which argocd-pull-integration must have created all add-ons.
const PEER_DEADLINE: Duration = Duration::from_secs(3600);

#[tokio::main]
async fn main() -> Result<()> {
    let mut programs = vec![Program::Ours(ARGUMENTS)];
    programs.extend(Program::peer("controller")?);
    fleet::run(&SIZES, &programs, measure).await
}

async fn measure(program: &Program, size: Size, table: &mut Table) -> Result<()> {
    let stage = Stage::start(program, size).await?;
    let load = stage.load();
    install(load).await?;
    load.create_clusters().await?;
    let clusters: Vec<_> = (0..size.1).map(|at| load.cluster(at)).collect();
    stage.hub().select("fleet", &clusters).await?;
    let requests: Result<Vec<_>> = clusters.iter().map(|cluster| certificate_request(cluster)).collect();
    let requests = requests?;
    let controller = stage.controller("first").await?;

    let requests_before = Requests::fetch(load.client()).await?;
    let create = request("POST", GITOPS_CLUSTERS, &gitops_cluster());
    let created = timed(async { load.client().request_text(create).await.map(drop).map_err(Into::into) }).await?;
    let quiet = if program.is_ours() {
        // A Secret and a work for each, and the shared objects.
        controller.quiet(written, 2.0 * load.applications()).await?
    } else {
        // It creates the add-ons last, one after the other.
        let addons = "/apis/addon.open-cluster-management.io/v1alpha1/managedclusteraddons";
        let started = Instant::now();
        while load.list_objects(addons, |_| ()).await?.len() < clusters.len() {
            ensure!(
                started.elapsed() < PEER_DEADLINE,
                "the peer has not created all add-ons"
            );
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        controller.quiet(|metrics| program.written(metrics), 0.0).await?
    };
    table.note(
        "all objects of a GitOpsCluster are written, s",
        seconds(quiet.since(&created)),
    );
    let done = Requests::fetch(load.client()).await?.since(&requests_before);
    // Without the creation of the GitOpsCluster.
    let created = |kind: &str| u64::from(kind == "gitopsclusters");
    note(table, load, |kind| (done.writes_of(kind) - created(kind)) as f64);
    if !program.is_ours() {
        return Ok(());
    }

    let before = quiet.metrics;
    let known: Value = load.client().request(get(MANAGEMENT)?).await?;
    let template = &known["spec"]["installStrategy"]["placements"][0]["configs"][0]["name"];
    let installed = timed(load.of_each(|at| addon(&clusters[at], template))).await?;
    let quiet = controller.quiet(written, written(&before)).await?;
    table.note("OCM installs the add-on, s", seconds(installed.took));
    table.note(
        "  the status counts all after that, s",
        seconds(quiet.since(&installed)),
    );
    note(table, load, |kind| writes(&quiet.metrics, kind) - writes(&before, kind));
    let status: Value = load.client().request(get(&format!("{GITOPS_CLUSTERS}/fleet"))?).await?;
    ensure!(status["status"]["phase"] == "successful", "{:#}", status["status"]);

    let before = quiet.metrics;
    let ask = |at: usize| vec![of_agent(&clusters[at], &requests[at])];
    let requested = timed(load.of_each(ask)).await?;
    let expected = written(&before) + 2.0 * load.applications();
    let quiet = controller.quiet(written, expected).await?;
    let has_certificate = |status: &Value| status["certificate"].is_string();
    load.all_have(REQUESTS, "a certificate", has_certificate).await?;
    table.note("agents request certificates, s", seconds(requested.took));
    table.note(
        "  all certificates are issued after that, s",
        seconds(quiet.since(&requested)),
    );
    note(table, load, |kind| writes(&quiet.metrics, kind) - writes(&before, kind));
    stage
        .measure_idle_and_restarts(controller, load.applications(), table)
        .await
}

/// Adds the writes of a phase to the table; `written` returns those of a kind.
fn note(table: &mut Table, load: &Load, written: impl Fn(&str) -> f64) {
    for (kind, name) in KINDS {
        let all = if kind == "gitopsclusters" {
            1.0
        } else {
            load.applications()
        };
        table.note(name, format!("{:.2}", written(kind) / all));
    }
}

fn get(path: &str) -> Result<Request<Vec<u8>>> {
    Ok(Request::get(path).body(Vec::new())?)
}

/// Installs the CRD, and grants registration agents their permission, as OCM's operator does.
async fn install(load: &Load) -> Result<()> {
    load.install(
        "deploy/gitopscluster_crd.yaml",
        "gitopsclusters.apps.open-cluster-management.io",
    )
    .await?;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = ObjectRef::cluster_role("agents").with(json!({
        "rules": [{"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create"]}],
    }));
    let binding = ObjectRef::cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "agents").with(json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "agents"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": AGENTS}],
    }));
    for (kind, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let create = request("POST", &format!("{rbac}/{kind}"), &object);
        load.client().request_text(create).await?;
    }
    Ok(())
}

/// Returns the number of writes.
fn written(metrics: &Metrics) -> f64 {
    metrics.sum("writes_total", &[])
}

fn gitops_cluster() -> Value {
    ObjectRef::cluster("apps.open-cluster-management.io/v1alpha1", "GitOpsCluster", "fleet").with(json!({"spec": {
        "placementRef": {"kind": "Placement", "name": "fleet"},
        "argoCDAgentAddon": {"principalServerAddress": "principal.example.com", "principalServerPort": "443"},
    }}))
}

/// Returns the add-on of a cluster, with this template, and the statuses that OCM and the agents there write for it and for the
/// work.
fn addon(cluster: &str, template: &Value) -> Vec<Request<Vec<u8>>> {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1,
            "lastTransitionTime": now(),
        })
    };
    let status = |kinds: &[&str]| {
        let conditions: Vec<_> = kinds.iter().map(|kind| condition(kind)).collect();
        json!({"status": {"conditions": conditions}})
    };
    let form = json!({"name": template, "specHash": "1"});
    let mut available = status(&["ManifestApplied", "Available"]);
    available["status"]["configReferences"] = json!([{
        "group": "addon.open-cluster-management.io",
        "resource": "addontemplates",
        "name": template,
        "lastObservedGeneration": 1,
        "desiredConfig": form,
        "lastAppliedConfig": form,
    }]);
    let addon = ObjectRef::cluster(
        "addon.open-cluster-management.io/v1alpha1",
        "ManagedClusterAddOn",
        ADDON,
    )
    .with(json!({"spec": {}}));
    let addons = format!("{ADDONS}/{cluster}/managedclusteraddons");
    let work = format!("{WORKS}/namespaces/{cluster}/manifestworks/argocd-agent-ca-mw/status");
    vec![
        request("POST", &addons, &addon),
        request("PATCH", &work, &status(&["Applied", "Available"])),
        request(
            "PATCH",
            &format!("{addons}/{ADDON}/status"),
            &status(&["ManifestApplied"]),
        ),
        request("PATCH", &format!("{addons}/{ADDON}/status"), &available),
    ]
}

/// Returns the request of a cluster's agent.
fn certificate_request(cluster: &str) -> Result<Value> {
    let user = format!("system:open-cluster-management:cluster:{cluster}:addon:{ADDON}:agent:{ADDON}-agent");
    let labels = json!({
        "open-cluster-management.io/addon-name": ADDON,
        "open-cluster-management.io/cluster-name": cluster,
    });
    Ok(ObjectRef::cluster(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        &format!("addon-{cluster}-{ADDON}"),
    )
    .with(json!({
        "metadata": {"labels": labels},
        "spec": {
            "request": ByteString(testbed::certificate_request(&user)?.into_bytes()),
            "signerName": format!("open-cluster-management.io/{ADDON}"),
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    })))
}

/// Returns the creation of the request by the registration agent of a cluster.
fn of_agent(cluster: &str, object: &Value) -> Request<Vec<u8>> {
    let mut request = request("POST", REQUESTS, object);
    let headers = request.headers_mut();
    let value = |text: String| text.parse().expect("a name is a header");
    let user = format!("system:open-cluster-management:{cluster}");
    headers.insert("impersonate-user", value(format!("{user}:agent")));
    for group in [&user, AGENTS, "system:authenticated"] {
        headers.append("impersonate-group", value(group.to_owned()));
    }
    request
}
