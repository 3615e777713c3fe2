//! Checks the table of built-in kinds against a real API server.

use crate::stage::stage;
use anyhow::{Context, Result};
use manifest::kinds::{BUILT_IN, GroupKind, Scope};

#[tokio::test]
async fn built_in_kinds_match_the_api_server() -> Result<()> {
    let stage = stage().await?;
    let cluster1 = &stage.cluster1;
    let table = cluster1.kubectl("api-resources --no-headers")?;
    let mut kinds = 0;
    for line in table.lines() {
        // NAME [SHORTNAMES] APIVERSION NAMESPACED KIND
        let words: Vec<&str> = line.split_whitespace().collect();
        let [plural, .., api_version, namespaced, kind] = words.as_slice() else {
            panic!("{line}");
        };
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if group.ends_with("open-cluster-management.io")
            || group.ends_with("argoproj.io")
            || group.ends_with("example.com")
        {
            continue;
        }
        let kind = GroupKind {
            group: group.into(),
            kind: (*kind).into(),
        };
        let known = kind.built_in().with_context(|| format!("{kind} is not in the table"))?;
        let scope = if *namespaced == "true" {
            Scope::Namespaced
        } else {
            Scope::Cluster
        };
        assert_eq!((known.plural, known.scope), (*plural, scope), "{kind}");
        kinds += 1;
    }
    assert!(kinds > 50, "{kinds} kinds");
    let served = cluster1.kubectl("api-versions")?;
    let served: Vec<&str> = served.lines().collect();
    for known in BUILT_IN {
        for version in known.always_served {
            let version = if known.group.is_empty() {
                (*version).to_owned()
            } else {
                format!("{}/{version}", known.group)
            };
            assert!(served.contains(&version.as_str()), "{version} of {}", known.kind);
        }
    }
    Ok(())
}
