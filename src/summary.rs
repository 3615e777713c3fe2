//! The list of generated works, for `generate --summary`.

use crate::list::List;
use crate::table;
use generate::annotations::Phase;
use generate::manifestwork::ManifestWork;
use generate::partition::SyncStep;
use generate::settings::Recipient;
use manifest::text::unique;
use serde_json::{Value, json};

/// The generated works.
#[derive(Debug)]
pub(crate) struct WorkSummary<'w> {
    pub(crate) works: Vec<ManifestWork<'w>>,
    /// The maximum size of a work in OCM, in bytes.
    pub(crate) limit: Option<u64>,
}

impl List for WorkSummary<'_> {
    fn table(&self, wide: bool, _: bool) -> String {
        table(&self.works, self.limit, if wide { 7 } else { 6 })
    }

    fn to_json(&self) -> Value {
        let works = self.works.iter().map(|work| work_to_json(work, self.limit));
        json!({"works": works.collect::<Vec<_>>()})
    }

    fn names(&self) -> Vec<String> {
        let name = |work: &ManifestWork<'_>| match work.recipient {
            Recipient::Cluster { name, .. } => format!("{name}/{}", work.name()),
            Recipient::Placement(placement) => format!("{}/{}", placement.namespace, work.name()),
        };
        self.works.iter().map(name).collect()
    }
}

fn work_to_json(work: &ManifestWork<'_>, limit: Option<u64>) -> Value {
    let target = match work.recipient {
        Recipient::Cluster { .. } => "cluster",
        Recipient::Placement(_) => "placement",
    };
    let SyncStep { phase, wave } = work.template.step;
    let mut fields = json!({
        "name": work.name(),
        target: work.recipient.to_string(),
        "phase": phase.name(),
        "wave": wave,
        "objects": work.template.objects.len(),
        "bytes": work.template.size(),
    });
    if let Some(limit) = limit {
        fields["limit"] = limit.into();
    }
    fields
}

/// Formats the first columns of a line for each work, under a line of headings; empty if there are no works.
fn table(works: &[ManifestWork<'_>], limit: Option<u64>, columns: usize) -> String {
    let Some(first) = works.first() else {
        return String::new();
    };
    let target = match first.recipient {
        Recipient::Cluster { .. } => "CLUSTER",
        Recipient::Placement(_) => "PLACEMENT",
    };
    let headings = ["WORK", target, "WAVE", "OBJECTS", "BYTES", "OF LIMIT", "KINDS"];
    let rows = works.iter().map(|work| row(work, limit));
    let rows = rows.map(|cells| cells.into_iter().take(columns).collect::<Vec<_>>());
    table::lines(&headings[..columns], rows)
}

fn row(work: &ManifestWork<'_>, limit: Option<u64>) -> [String; 7] {
    let bytes = work.template.size();
    let kinds = unique(
        work.template
            .objects
            .iter()
            .map(|object| object.kind().to_string())
            .collect(),
    );
    [
        work.name(),
        work.recipient.to_string(),
        when(work.template.step),
        work.template.objects.len().to_string(),
        bytes.to_string(),
        limit.map_or("-".to_owned(), |limit| share(bytes, limit)),
        kinds.join(","),
    ]
}

/// Formats the size as a share of the limit. A size above zero is not rounded to 0 %, and one over the limit not to 100 %.
fn share(bytes: u64, limit: u64) -> String {
    match bytes.saturating_mul(100) / limit {
        0 if bytes > 0 => "<1%".to_owned(),
        100 if bytes > limit => ">100%".to_owned(),
        percent => format!("{percent}%"),
    }
}

/// Returns when Argo CD applies a work: its phase, and the wave in that.
fn when(SyncStep { phase, wave }: SyncStep) -> String {
    match (phase, wave) {
        (Phase::Sync, wave) => wave.to_string(),
        (phase, 0) => phase.name().to_owned(),
        (phase, wave) => format!("{} {wave}", phase.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_wave_as_in_git() {
        let when = |phase, wave| when(SyncStep { phase, wave });
        assert_eq!(when(Phase::Sync, 0), "0");
        assert_eq!(when(Phase::Sync, -7), "-7");
        assert_eq!(when(Phase::PreSync, 0), "PreSync");
        assert_eq!(when(Phase::PreSync, 3), "PreSync 3");
        assert_eq!(when(Phase::PostSync, -999_999), "PostSync -999999");
        assert_eq!(when(Phase::SyncFail, 0), "SyncFail");
        assert_eq!(when(Phase::PreDelete, 2), "PreDelete 2");
    }

    #[test]
    fn share_never_rounds_to_0_or_100_percent() {
        for (bytes, expected) in [
            (0, "0%"),
            (1, "<1%"),
            (999, "99%"),
            (1000, "100%"),
            (1001, ">100%"),
            (2500, "250%"),
        ] {
            assert_eq!(share(bytes, 1000), expected);
        }
    }
}
