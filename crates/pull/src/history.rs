//! Keeps the deployment history of an Application, which Argo CD uses for rollbacks. The cluster's own history cannot be fed back
//! because it is a list, so the controller records completed operations as the hub's Argo CD would have recorded them.

use hub_state::pull::application::Application;
use hub_state::pull::feedback::Feedback;
use hub_state::pull::forwarded::OperationRequest;
use hub_state::pull::mirrored_status::Deployment;
use primitives::timestamp::format_time;
use serde_json::{Value, json};

/// The maximum number of entries if the Application sets no `revisionHistoryLimit`.
const LIMIT: usize = 10;

/// The maximum size of all entries, in bytes. Each has a copy of the source, and etcd refuses objects of more than 1.5 MiB.
const SIZE_MAX: usize = 500_000;

/// Returns the history with the last reported operation added, if that is new and deployed something. The feedback does not
/// contain the deployed revision of each source of several. `forwarded` is that operation, if the hub requested it: a rollback
/// has the source of an earlier deployment.
pub(super) fn after(
    application: &Application,
    before: &[Deployment],
    feedback: &Feedback,
    forwarded: Option<&OperationRequest>,
) -> Vec<Deployment> {
    let mut history = before.to_vec();
    let operation = feedback.reported.operation.as_ref();
    // Argo CD records neither dry runs nor syncs of selected resources.
    let Some(operation) = operation.filter(|operation| &*operation.phase == "Succeeded" && !feedback.is_partial) else {
        return history;
    };
    let is_it = |entry: &Deployment| entry.started == Some(operation.started_at);
    let (Some(revision), Some(finished)) = (&operation.revision, operation.finished_at) else {
        return history;
    };
    if before.iter().any(is_it) {
        return history;
    }
    let spec = application.spec();
    let Some(source) = spec.get("source") else {
        return history;
    };
    let forwarded = forwarded.map(OperationRequest::to_json).unwrap_or_default();
    let source = forwarded.pointer("/sync/source").unwrap_or(source);
    let id = before.last().map_or(0, |last| last.id.saturating_add(1));
    let entry = json!({
        "id": id,
        "revision": revision,
        "source": source,
        "deployStartedAt": format_time(operation.started_at),
        "deployedAt": format_time(finished),
    });
    history.push(Deployment {
        id,
        started: Some(operation.started_at),
        text: entry.to_string().into(),
    });
    let limit = spec.get("revisionHistoryLimit").and_then(Value::as_u64);
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(LIMIT);
    let newest = history.iter().rev().take(limit);
    let sizes = newest.scan(0_usize, |size, entry| {
        *size = size.saturating_add(entry.text.len());
        Some(*size)
    });
    let count = sizes.take_while(|size| *size <= SIZE_MAX).count();
    history.drain(..history.len().saturating_sub(count));
    history
}

#[cfg(test)]
mod tests {
    use super::*;
    use hub_state::json::borrowed;
    use hub_state::pull::mirrored_status::{MirroredStatus, OperationState};
    use hub_state::pull::text::time;
    use hub_state::testing::pull::application;

    fn operation(second: u32, phase: &str) -> Feedback {
        let operation = OperationState {
            phase: phase.into(),
            started_at: time(&format!("2026-06-01T12:00:{second:02}Z")).expect("a time"),
            finished_at: time(&format!("2026-06-01T12:01:{second:02}Z")),
            message: None,
            retries: None,
            revision: Some(format!("revision-{second}").into()),
            revisions: Vec::new(),
            request: None,
        };
        Feedback {
            reported: MirroredStatus {
                operation: Some(operation),
                ..MirroredStatus::default()
            },
            ..Feedback::default()
        }
    }

    #[test]
    fn records_successful_deployments_in_the_history() {
        let shop = application(|_| ());
        let first = after(&shop, &[], &operation(1, "Succeeded"), None);
        let partial = Feedback {
            is_partial: true,
            ..operation(2, "Succeeded")
        };
        for ignored in [
            &operation(1, "Succeeded"),
            &operation(2, "Failed"),
            &partial,
            &Feedback::default(),
        ] {
            assert_eq!(after(&shop, &first, ignored, None), first, "{ignored:?}");
        }
        let rollback = OperationRequest {
            id: "1".into(),
            value: r#"{"sync":{"source":{"repoURL":"https://example.com/shop","path":"earlier"}}}"#.into(),
        };
        let second = after(&shop, &first, &operation(2, "Succeeded"), Some(&rollback));
        let entries: Vec<_> = second.iter().map(Deployment::to_json).collect();
        let entry = json!({
            "id": 1,
            "revision": "revision-2",
            "source": {"repoURL": "https://example.com/shop", "path": "earlier"},
            "deployStartedAt": "2026-06-01T12:00:02Z",
            "deployedAt": "2026-06-01T12:01:02Z",
        });
        assert_eq!((entries.len(), &entries[1]), (2, &entry));
        assert_eq!(
            Deployment::read_history(&borrowed(&json!({"history": entries}))),
            second,
            "it is read as it was written"
        );
    }

    #[test]
    fn history_leaves_room_for_the_application() {
        let lengths = |values: usize| {
            let shop = application(|object| object["spec"]["source"]["helm"] = json!({"values": "x".repeat(values)}));
            let mut history = Vec::new();
            let lengths = (0..5).map(|second| {
                history = after(&shop, &history, &operation(second, "Succeeded"), None);
                history.len()
            });
            lengths.collect::<Vec<_>>()
        };
        assert_eq!(lengths(200_000), [1, 2, 2, 2, 2]);
        assert_eq!(lengths(600_000), [0; 5]);
    }

    #[test]
    fn history_is_limited_by_the_application() {
        let short = application(|object| object["spec"]["revisionHistoryLimit"] = json!(2));
        for (shop, length) in [(application(|_| ()), LIMIT), (short, 2)] {
            let operations = (0..30).map(|second| operation(second, "Succeeded"));
            let history = operations.fold(Vec::new(), |before, operation| after(&shop, &before, &operation, None));
            let ids: Vec<_> = history.iter().map(|entry| entry.id).collect();
            assert_eq!((ids.len(), ids.last()), (length, Some(&29)));
        }
    }
}
