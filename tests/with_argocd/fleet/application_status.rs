//! Tests of an Application that is delivered by a Placement: OCM creates its works from its ManifestWorkReplicaSet.

use super::fleet;
use super::placement::{open, prepare};
use crate::app::App;
use crate::controller::{DEGRADED, INFO, health, messages, wait_for_event, web};
use anyhow::Result;
use serde_json::{Value, json};

#[tokio::test]
async fn works_of_a_replica_set_count_for_its_application() -> Result<()> {
    let fleet = fleet().await?;
    let (hub, name) = (&fleet.hub, "controller-set");
    prepare(&fleet, name, &json!({})).await?;
    let [cluster1, second, third] = fleet.clusters();
    for cluster in [cluster1, second] {
        open(cluster, name).await?;
    }
    let settings: [(&str, &[&str]); 1] = [("placement", &["argocd/controller-set"])];
    let file = web("example.com/web:1", &json!({name: "true"}));
    let app = App::start_on(hub, name, &settings, &[("web.json", &file)], false).await?;
    let totals = |app: &Value, start: &str| messages(app, INFO).iter().any(|totals| totals.starts_with(start));
    let start = format!("third: Deployment {name}/web: ");
    let warned = |app: &Value| {
        let warnings = messages(app, DEGRADED);
        let of_third = warnings.len() == 1 && warnings[0].starts_with(&start);
        of_third
            && totals(
                app,
                "applied on 3 of 3 clusters, healthy on 2, 1 degraded; 3 objects in 3 works",
            )
    };
    let application = hub.wait_for(&app.application(), warned).await?;
    wait_for_event(hub, &application, ("Warning", "ManifestWorkDegraded"), 1, &start).await?;

    open(third, name).await?;
    let is_healthy_again = |app: &Value| {
        health(app) == "Healthy"
            && messages(app, DEGRADED).is_empty()
            && totals(app, "applied on 3 of 3 clusters, healthy on 3; 3 objects in 3 works")
    };
    hub.wait_for(&app.application(), is_healthy_again).await?;
    app.end().await
}
