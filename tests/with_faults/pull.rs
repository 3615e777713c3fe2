//! Tests that the work of an Application of the pull model is deleted only when its Application is certainly gone.

use crate::stage::{RETRIES, backs_off, lists, stage, writes};
use anyhow::{Result, ensure};
use testbed::proxy::{Fault, RecordedRequest, Times};

/// Returns true if a request reads an Application, which precedes the deletion of the work of a deleted one.
fn reads_application(request: &RecordedRequest) -> bool {
    request.is("get", "applications")
}

#[tokio::test]
async fn orphaned_work_is_deleted_only_when_certain_without_a_list() -> Result<()> {
    let stage = stage("pull-orphans").await?;
    let hub = &stage.hub;
    let proxy = stage.proxy().await?;
    let first = stage.controller_for("pull", &proxy).await?;
    let (gone, gone_work) = stage.pulled_application("gone").await?;
    let (later, later_work) = stage.pulled_application("later").await?;
    stage.pulled_application("stays").await?;

    // Without a controller: the next one detects it, and reads once more before it deletes.
    first.stop().await?;
    hub.delete_and_wait(&gone).await?;
    let proxy = stage.proxy().await?;
    let _second = stage.controller_for("pull", &proxy).await?;
    hub.wait_gone(&gone_work).await?;
    let requests = proxy.requests();
    let listed = lists(&requests);
    for kind in ["applications", "manifestworks"] {
        let of_kind = listed.iter().filter(|line| line.contains(kind));
        assert_eq!(of_kind.count(), 1, "{listed:#?}");
    }
    assert_eq!(requests.iter().filter(|request| reads_application(request)).count(), 1);

    // With a controller, and an API server that does not answer if it is deleted.
    proxy.fault(Fault::Status(500), Times::Always, reads_application);
    let mark = proxy.mark();
    hub.delete(&later).await?;
    let reads = |requests: &[RecordedRequest]| -> Vec<RecordedRequest> {
        let since = requests[mark..].iter();
        since.filter(|request| reads_application(request)).cloned().collect()
    };
    proxy
        .until("the Application is read several times", |requests| {
            reads(requests).len() >= RETRIES
        })
        .await?;
    let requests = proxy.requests();
    backs_off(&reads(&requests))?;
    let mut changes = writes(&requests[mark..]);
    // After two minutes on a slow machine, conditions of Applications name the agents that do not report.
    changes.retain(|line| !(line.starts_with("patch ") && line.contains("/applications/")));
    assert_eq!(changes, [""; 0], "nothing is deleted without certainty");
    let live = hub.read(&later_work).await?;
    ensure!(
        live["metadata"]["deletionTimestamp"].is_null(),
        "the work is being deleted"
    );
    proxy.heal();
    hub.wait_gone(&later_work).await?;
    let requests = proxy.requests();
    assert_eq!(lists(&requests[mark..]), [""; 0]);
    let deleted = requests.iter().filter(|request| request.is("delete", "manifestworks"));
    assert_eq!(deleted.count(), 2, "{:#?}", writes(&requests));
    Ok(())
}
