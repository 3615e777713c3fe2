//! Works as a table, for `generate --summary`.

use crate::table;
use generate::annotations::Phase;
use generate::partition;
use manifest::json;
use manifest::value::Value;
use ocm::work::{Target, Work};

/// Formats a line for each work, under a line of headings; empty if there are no works. `limit` is the maximum size of a work in
/// OCM, in bytes.
#[must_use]
pub fn table(works: &[Work<'_>], limit: Option<u64>) -> String {
    let Some(first) = works.first() else {
        return String::new();
    };
    let target = match first.target {
        Target::Cluster(_) => "CLUSTER",
        Target::Placement(_) => "PLACEMENT",
    };
    let headings = ["WORK", target, "WAVE", "OBJECTS", "BYTES", "OF LIMIT"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(headings)
        .chain(works.iter().map(|work| row(work, limit)))
        .collect();
    let widths = table::widths(rows.iter());
    rows.iter().map(|row| table::line(row, &widths, None) + "\n").collect()
}

fn row(work: &Work<'_>, limit: Option<u64>) -> [String; 6] {
    let bytes: usize = work.manifests().iter().map(size).sum();
    [
        work.name.clone(),
        work.target.to_string(),
        when(work),
        work.manifests().len().to_string(),
        bytes.to_string(),
        limit.map_or("-".to_owned(), |limit| share(bytes as u64, limit)),
    ]
}

/// Returns the size of a manifest in bytes as OCM's webhook counts them.
fn size(manifest: &Value<'_>) -> usize {
    let mut text = String::new();
    json::write(manifest, &mut text).expect("it has been written before");
    json::webhook_size(json::passage(&text).length)
}

/// Formats the size as a share of the limit. A size above zero is not rounded to 0 %, and one over the limit not to 100 %.
fn share(bytes: u64, limit: u64) -> String {
    match bytes.saturating_mul(100) / limit {
        0 if bytes > 0 => "<1%".to_owned(),
        100 if bytes > limit => ">100%".to_owned(),
        percent => format!("{percent}%"),
    }
}

/// Returns when Argo CD applies a work: its hook or its phase, and the wave in that.
fn when(work: &Work<'_>) -> String {
    let wave = work.wave();
    let (phase, wave) = match work.annotation("argocd.argoproj.io/hook") {
        Some(hook) => (hook, wave),
        None => match partition::phase_of(wave) {
            (Phase::Sync, wave) => return wave.to_string(),
            (phase, wave) => (phase.name(), wave),
        },
    };
    if wave == 0 {
        phase.to_owned()
    } else {
        format!("{phase} {wave}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::yaml;

    fn work(yaml: &str) -> Work<'_> {
        let document = yaml::documents(yaml).next().expect("a document").expect("YAML");
        Work::new(document.value).expect("a work")
    }

    fn of_wave(annotations: &str) -> String {
        let yaml = format!(
            "{{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, \
              metadata: {{name: a, namespace: c, annotations: {{{annotations}}}}}}}"
        );
        when(&work(&yaml))
    }

    #[test]
    fn the_wave_is_told_as_git_has_it() {
        let wave = |wave: i32| of_wave(&format!("argocd.argoproj.io/sync-wave: '{wave}'"));
        assert_eq!(of_wave(""), "0");
        assert_eq!(wave(-7), "-7");
        assert_eq!(wave(-2_000_000), "PreSync");
        assert_eq!(wave(-1_999_997), "PreSync 3");
        assert_eq!(wave(1_000_001), "PostSync -999999");
        assert_eq!(of_wave("argocd.argoproj.io/hook: SyncFail"), "SyncFail");
        assert_eq!(
            of_wave("argocd.argoproj.io/hook: PreDelete, argocd.argoproj.io/sync-wave: '2'"),
            "PreDelete 2"
        );
    }

    #[test]
    fn a_share_is_never_shown_as_less_than_it_is() {
        for (bytes, wanted) in [
            (0, "0%"),
            (1, "<1%"),
            (999, "99%"),
            (1000, "100%"),
            (1001, ">100%"),
            (2500, "250%"),
        ] {
            assert_eq!(share(bytes, 1000), wanted);
        }
    }

    #[test]
    fn a_replica_set_is_for_a_placement() {
        let yaml = "{apiVersion: work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSet, \
                    metadata: {name: shop, namespace: fleet}, spec: {placementRefs: [{name: all}], \
                    manifestWorkTemplate: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap}]}}}}";
        assert_eq!(
            table(&[work(yaml)], None),
            "WORK   PLACEMENT   WAVE   OBJECTS   BYTES   OF LIMIT\n\
             shop   fleet/all   0      1         40      -\n"
        );
    }
}
