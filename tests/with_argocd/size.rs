//! Tests that we count the size of a work as OCM's admission webhook does, to the byte.

use crate::stage::{run, stage};
use anyhow::{Context, Result};
use tempfile::TempDir;

/// Runs the program over `folder` with `limit`, and returns its output, whether it succeeds or not.
fn generate(folder: &TempDir, limit: &str) -> Result<(String, String)> {
    let words =
        format!("generate --cluster=cluster1 --name=large --output=json --work-size=0 --manifest-limit={limit}");
    let (_, stdout, stderr) = run(folder.path(), None, &words)?;
    Ok((stdout, stderr))
}

fn number_before(text: &str, mark: &str) -> Option<u64> {
    text.split(mark).next()?.split_whitespace().last()?.parse().ok()
}

#[tokio::test]
async fn computed_size_matches_the_webhook() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    hub.create_namespace("large").await.ok();
    // Characters that Go escapes and others, small objects and large ones, numbers and nesting.
    let texts = [
        "<a href=\\\"x\\\">&amp;</a>",
        "caf\u{e9} \u{1f600}",
        "\\u2028\\x7f\\x85\\uFEFF\\t\\b\\f\\x01\\\\",
        "plain",
    ];
    let folder = TempDir::new()?;
    for (at, text) in texts.iter().enumerate() {
        let manifest = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c{at}\n  namespace: default\ndata:\n  text: \"{text}\"\n---\n\
             apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: t{at}\n  namespace: default\n\
             spec: {{a: [1, 1.5, 1e21, 1e-7, 0644, null, true, {{}}], b: \"{text}\"}}\n",
            text = text.repeat(120_000 / text.len())
        );
        std::fs::write(folder.path().join(format!("{at}.yaml")), manifest)?;
    }
    let (_, printed) = generate(&folder, "1")?;
    let (works, _) = generate(&folder, "0")?;
    let mut refusals = 0;
    for (work, kind) in works.lines().zip(["ConfigMap", "Thing"]) {
        let of_kind = printed.lines().filter(|line| line.contains(&format!(": {kind}")));
        let ours: Option<u64> = of_kind.map(|line| number_before(line, " bytes, and OCM accepts")).sum();
        let refused = hub
            .kubectl_with_input("create --dry-run=server -f -", work)
            .expect_err("the webhook rejects the work");
        let refused = format!("{refused:#}");
        let theirs = number_before(&refused, " bytes which exceeds").with_context(|| refused.clone())?;
        // The program counts each object, the webhook the complete work.
        assert_eq!(ours, Some(theirs), "{kind}");
        refusals += 1;
    }
    assert_eq!(refusals, 2);
    Ok(())
}
