//! Compares the kinds and fields that `generate` knows with those of a real API server.

use crate::documents::{documents, in_json};
use crate::stage::{Stage, stage};
use anyhow::{Context, Result, bail, ensure};
use generate::schema::{self, SchemaFinding};
use http::Request;
use http_body_util::BodyExt;
use kube::client::{Body, Client};
use manifest::kinds::{GroupKind, Scope};
use manifest::yaml;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use testbed::Parts;
use walkdir::WalkDir;

/// The levels of fields in an object that has all of them. Schemas of CRDs contain themselves.
const LEVELS: usize = 12;

/// Objects with a mistake of each sort, and objects that only look wrong.
const INPUTS: &str = include_str!("schema/inputs.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn knows_all_kinds_and_fields_of_the_api_server() -> Result<()> {
    let stage = stage("schema-fields").await?;
    let client = stage.hub.client().await?;
    let (code, document) = send(&client, "GET", "/openapi/v2", None).await?;
    ensure!(code == 200, "{document}");
    let definitions = document["definitions"].as_object().context("definitions")?;
    let mut kinds = 0;
    for definition in definitions.values() {
        for kind in definition["x-kubernetes-group-version-kind"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let [group, version, name] = ["group", "version", "kind"].map(|key| kind[key].as_str().unwrap_or_default());
            let of_others = group.ends_with("open-cluster-management.io")
                || group.ends_with("argoproj.io")
                || group.ends_with("github.io");
            // Lists are split into their items.
            let is_list = definition["properties"]["items"].is_object();
            if matches!(name, "DeleteOptions" | "WatchEvent") || is_list || of_others {
                continue;
            }
            let mut object = complete(definition, definitions, LEVELS);
            object["apiVersion"] = json!(if group.is_empty() {
                version.to_owned()
            } else {
                format!("{group}/{version}")
            });
            object["kind"] = json!(name);
            let refused: Vec<_> = findings(&object)?
                .into_iter()
                .filter(|finding| finding.refused)
                .collect();
            ensure!(refused.is_empty(), "{group}/{version} {name}: {refused:?}");
            kinds += 1;
        }
    }
    ensure!(kinds > 60, "only {kinds} kinds");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_what_the_api_server_refuses() -> Result<()> {
    let stage = stage("schema-answers").await?;
    let mut answers = Answers::new(&stage).await?;
    for object in documents(INPUTS)? {
        answers.compare(object).await?;
    }
    let Answers { refused, accepted, .. } = answers;
    ensure!(refused >= 15 && accepted >= 5, "{refused} refused, {accepted} accepted");

    let mut answers = Answers::new(&stage).await?;
    let manifests = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/manifests")).to_owned();
    let folders = Parts::ensure()?.sources().into_iter().chain([manifests]);
    for folder in folders {
        for file in WalkDir::new(&folder).sort_by_file_name() {
            let file = file?.into_path();
            let extension = file
                .extension()
                .and_then(|extension| extension.to_str())
                .unwrap_or_default();
            if !["yaml", "yml", "json"].contains(&extension) {
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&file) else {
                continue;
            };
            for document in yaml::documents(&text).map_while(Result::ok) {
                // Some files are no manifests.
                if let (Some(_), Ok(object)) = (document.value.as_map(), in_json(&document.value)) {
                    let compared = answers.compare(object).await;
                    compared.with_context(|| file.display().to_string())?;
                }
            }
        }
    }
    println!("{} accepted, {} refused", answers.accepted, answers.refused);
    ensure!(answers.accepted > 300, "only {} accepted", answers.accepted);
    Ok(())
}

/// Returns a value with all fields of a definition.
fn complete(definition: &Value, definitions: &Map<String, Value>, levels: usize) -> Value {
    if let Some(reference) = definition["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return complete(&definitions[name], definitions, levels);
    }
    if levels == 0 {
        return Value::Null;
    }
    let inner = |definition| complete(definition, definitions, levels - 1);
    if let Some(fields) = definition["properties"].as_object() {
        return fields
            .iter()
            .map(|(name, field)| (name.clone(), inner(field)))
            .collect();
    }
    match (definition["type"].as_str(), definition["format"].as_str()) {
        (Some("array"), _) => json!([inner(&definition["items"])]),
        (Some("object"), _) if definition["additionalProperties"].is_object() => {
            json!({"key": inner(&definition["additionalProperties"])})
        }
        (Some("string"), Some("byte")) => json!("aGVsbG8="),
        (Some("string"), _) => json!("text"),
        (Some("integer"), _) => json!(1),
        (Some("number"), _) => json!(1.5),
        (Some("boolean"), _) => json!(true),
        _ => json!({"anything": [1, "text", true]}),
    }
}

fn findings(object: &Value) -> Result<Vec<SchemaFinding>> {
    let text = object.to_string();
    let value = yaml::json(&text)?;
    Ok(schema::check(value.as_map().context("an object")?))
}

/// The answers of the API server, compared with our findings.
struct Answers {
    client: Client,
    asked: BTreeSet<String>,
    accepted: usize,
    refused: usize,
}

impl Answers {
    async fn new(stage: &Stage) -> Result<Self> {
        Ok(Self {
            client: stage.hub.client().await?,
            asked: BTreeSet::new(),
            accepted: 0,
            refused: 0,
        })
    }

    /// Creates an object in a dry run with strict validation. Ignores other objects than those of Kubernetes.
    async fn compare(&mut self, mut object: Value) -> Result<()> {
        if let Some(items) = object["items"].as_array().cloned() {
            for item in items {
                Box::pin(self.compare(item)).await?;
            }
            return Ok(());
        }
        let Some(path) = path(&object) else { return Ok(()) };
        // These are not compared.
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
            fields.insert("metadata".to_owned(), json!({"name": "a"}));
        }
        if !self.asked.insert(object.to_string()) {
            return Ok(());
        }
        let (code, answer) = send(&self.client, "POST", &path, Some(&object)).await?;
        let message = answer["message"].as_str().unwrap_or_default();
        let of_fields = ["unknown field", "cannot unmarshal", "illegal base64"];
        let findings = findings(&object)?;
        let refused = findings.iter().any(|finding| finding.refused);
        match code {
            404 => {}
            400 if of_fields.iter().any(|mark| message.contains(mark)) => {
                ensure!(refused, "only the API server refuses {object}: {message}");
                self.refused += 1;
            }
            400 if refused => self.refused += 1,
            _ if refused => bail!("only we refuse {object}: {findings:?}; the API server says {code}: {message}"),
            _ => self.accepted += 1,
        }
        Ok(())
    }
}

/// Returns the path at which an object of a built-in kind is created.
fn path(object: &Value) -> Option<String> {
    let api_version = object["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupKind {
        group: group.into(),
        kind: object["kind"].as_str()?.into(),
    };
    let known = kind.built_in()?;
    let root = if group.is_empty() {
        "api".to_owned()
    } else {
        format!("apis/{group}")
    };
    let namespace = match known.scope {
        Scope::Namespaced => "/namespaces/default",
        Scope::Cluster => "",
    };
    let query = "dryRun=All&fieldValidation=Strict";
    Some(format!("/{root}/{version}{namespace}/{}?{query}", known.plural))
}

async fn send(client: &Client, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    let request = request.body(Body::from(body.map(Value::to_string).unwrap_or_default().into_bytes()))?;
    let answer = client.send(request).await?;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await?.to_bytes();
    // An API group that is not served has an answer in plain text.
    Ok((code, serde_json::from_slice(&body).unwrap_or_default()))
}
