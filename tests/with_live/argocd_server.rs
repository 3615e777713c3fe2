//! The way from a user of Argo CD to a cluster, through the real argocd-server, which takes the user of an extension from the cookie.

use crate::stage::{OF_SHOP, Stage, WEB, stage};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use testbed::wait::{self, DEADLINE};

/// Sends a request to argocd-server, and returns the status and the body.
fn ask(stage: &Stage, request: &str, headers: &[(&str, &str)], body: &str) -> Result<(String, String)> {
    let mut server = TcpStream::connect(stage.hub.argocd_server().context("argocd-server runs")?)?;
    let headers: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let headers = headers.concat();
    write!(
        server,
        "{request} HTTP/1.0\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an HTTP answer")?;
    let status = head.split(' ').nth(1).context("a status")?;
    Ok((status.to_owned(), body.to_owned()))
}

/// Sends a request for a view until the cluster, which all tests ask, has answered it.
async fn view(stage: &Stage, request: &str, headers: &[(&str, &str)]) -> Result<(String, String)> {
    wait::eventually("the request has its turn", DEADLINE, async || {
        let answered = ask(stage, request, headers, "");
        let is_busy = answered
            .as_ref()
            .is_ok_and(|(status, _)| ["429", "504"].contains(&&**status));
        (!is_busy).then_some(answered)
    })
    .await?
}

fn field(answer: &str, name: &str) -> Result<String> {
    let answer: Value = serde_json::from_str(answer)?;
    Ok(answer[name]
        .as_str()
        .with_context(|| format!("no {name}: {answer}"))?
        .to_owned())
}

/// Returns the token of a user of Argo CD, which an administrator issues.
async fn token_of(stage: &Stage, user: &str) -> Result<String> {
    let password = stage.hub.admin_password().await?;
    let login = json!({"username": "admin", "password": password}).to_string();
    let json = ("Content-Type", "application/json");
    let (_, session) = ask(stage, "POST /api/v1/session", &[json], &login)?;
    let admin = format!("Bearer {}", field(&session, "token")?);
    let (_, issued) = ask(
        stage,
        &format!("POST /api/v1/account/{user}/token"),
        &[json, ("Authorization", &admin)],
        &json!({"name": user}).to_string(),
    )?;
    field(&issued, "token")
}

#[tokio::test]
async fn users_with_the_permission_see_objects_and_others_do_not() -> Result<()> {
    let stage = stage().await?;
    let request = format!("GET /extensions/live/api/v1/object?{WEB}");
    let of_shop = &OF_SHOP[..2];
    let viewer = format!("argocd.token={}", token_of(stage, "viewer").await?);
    let viewer = &[of_shop, &[("Cookie", &*viewer)]].concat();
    let shown = wait::eventually("the object is shown", DEADLINE, async || {
        let (status, body) = ask(stage, &request, viewer, "").ok()?;
        (status == "200").then_some(body)
    })
    .await?;
    let shown: Value = serde_json::from_str(&shown)?;
    ensure!(shown["live"]["metadata"]["name"] == "web", "{shown}");

    let logs = format!("GET /extensions/live/api/v1/logs?{WEB}");
    let (status, body) = view(stage, &logs, viewer).await?;
    ensure!(
        status == "200" && body.contains("web] listening on :8080"),
        "{status}: {body}"
    );

    let forged = [
        viewer,
        &[("Argocd-Username", "admin"), ("Argocd-Ocm-Cmp-Live-Token", "x")][..],
    ]
    .concat();
    let (status, body) = view(stage, &request, &forged).await?;
    ensure!(
        status == "200",
        "argocd-server replaces these headers: {status}: {body}"
    );

    // One may not use the extension, one only Applications of another project, and one is unknown.
    let mut refused = vec![of_shop.to_vec()];
    let tokens = [token_of(stage, "other").await?, token_of(stage, "stranger").await?];
    let cookies = tokens.map(|token| format!("argocd.token={token}"));
    refused.extend(
        cookies
            .iter()
            .map(|cookie| [of_shop, &[("Cookie", &**cookie)]].concat()),
    );
    for refused in &refused {
        let (status, body) = view(stage, &request, refused).await?;
        ensure!(["400", "401", "403"].contains(&&*status), "{status}: {body}");
    }
    let wrong = [viewer[0], ("Argocd-Project-Name", "default"), viewer[2]];
    let (status, body) = view(stage, &request, &wrong).await?;
    ensure!(status != "200" && !body.contains("metadata"), "{status}: {body}");
    Ok(())
}
