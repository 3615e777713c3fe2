//! Compares the answers of a real API server with the transcripts in `tests/data/conformance`. The unit tests' in-memory hub is
//! compared with the same answers.

use crate::gitopscluster_crd::install;
use crate::stage::stage;
use anyhow::{Result, ensure};
use http_body_util::BodyExt;
use kube::client::Body;
use std::path::Path;
use testbed::Transcript;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/conformance");

#[tokio::test]
async fn the_api_server_answers_as_recorded() -> Result<()> {
    let stage = stage("conformance").await?;
    install(&stage).await?;
    stage.hub.apply_yaml(include_str!("../../deploy/report_crd.yaml"))?;
    stage.hub.wait_for_crds().await?;
    let client = stage.hub.client().await?;
    let rewrite = std::env::var_os("REWRITE").is_some();
    let mut different = Vec::new();
    for mut transcript in Transcript::read_all(Path::new(FOLDER))? {
        while let Some(request) = transcript.next_request()? {
            let answer = client.send(request.map(Body::from)).await?;
            let code = answer.status().as_u16();
            let body = answer.into_body().collect().await?.to_bytes();
            transcript.answered(code, std::str::from_utf8(&body)?)?;
        }
        different.extend(transcript.finish(rewrite).err());
    }
    ensure!(different.is_empty(), "{different:?}");
    Ok(())
}
