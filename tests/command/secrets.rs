//! Tests that no message has a value of a Secret: sources that fail on one with the real kustomize and Helm, and in our own checks.

#![allow(clippy::too_many_lines, reason = "the functions are tables")]

use crate::hostile_sources::Case;
use crate::program::{folder, program_with};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use testbed::Parts;

/// The value: long enough to be wrapped in base64, with characters that each encoding escapes.
const CANARY: &str = "Canary-4711 <bird&song> \"über\" %41+/ tweet;tweet=yellow:feathers#2";

/// The parts of the value that no message may have, in any case.
const PARTS: [&str; 6] = ["canary", "4711", "bird", "song", "feathers", "tweet"];

/// Returns the messages of the program about a source whose files contain `CANARY`. It must fail, or warn.
fn messages(case: &Case, tools: Option<&Parts>) -> Result<String, String> {
    let repository = folder(&case.files);
    let words = ["generate", "--clusters", "cluster1", "--name", "shop"];
    let mut command = program_with(&repository.path().join("app"), words);
    command
        .env("ARGOCD_APP_NAME", "shop")
        .env("ARGOCD_APP_SOURCE_PATH", "app")
        .env("ARGOCD_APP_PARAMETERS", case.parameters(str::to_owned));
    if let Some(tools) = tools {
        command.env("PATH", tools.tools());
    }
    let output = command.output().expect("the program starts");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() == messages.starts_with("warning: ") && !messages.is_empty() {
        Ok(messages)
    } else {
        Err(format!("{}: it has no message: {messages}", case.name))
    }
}

/// Returns the parts of the value in a text, as they are and in base64 at any position.
fn leaks(messages: &str) -> Vec<String> {
    let letters = |text: &str| -> String { text.chars().filter(char::is_ascii_alphanumeric).collect() };
    let messages = letters(messages).to_lowercase();
    let mut leaks: Vec<String> = PARTS
        .iter()
        .filter(|part| messages.contains(*part))
        .map(|&part| part.to_owned())
        .collect();
    for shift in 0..3 {
        let encoded = letters(&BASE64.encode(&CANARY[shift..])).to_lowercase();
        let windows = encoded
            .as_bytes()
            .windows(12)
            .map(|window| String::from_utf8_lossy(window).into_owned());
        leaks.extend(windows.filter(|window| messages.contains(window.as_str())));
    }
    leaks
}

const CHART: &str = "apiVersion: v2\nname: web\nversion: 0.1.0\n";
const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  password: ";

fn values() -> String {
    format!("auth:\n  password: {}\n  list: [{}]\n", json!(CANARY), json!(CANARY))
}

fn chart(action: &str) -> Case {
    Case::new(action, "")
        .file("app/Chart.yaml", CHART)
        .file("app/values.yaml", values())
        .file("app/templates/secret.yaml", format!("{SECRET}{action}\n"))
}

fn kustomization(text: &str) -> Case {
    let secret = format!("{SECRET}{}\n", json!(CANARY));
    Case::new(text, "")
        .file(
            "app/kustomization.yaml",
            text.replace("CANARY", &json!(CANARY).to_string()),
        )
        .file("app/secret.yaml", secret)
}

fn charts() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        "{{ fail .Values.auth.password }}",
        "{{ required .Values.auth.password .Values.none }}",
        "{{ fail (printf \"the password %s is too short\" .Values.auth.password) }}",
        "{{ fail (printf \"the password %q is too short\" .Values.auth.password) }}",
        "{{ fail (.Values.auth.password | b64enc) }}",
        "{{ fail (printf \"admin:%s\" .Values.auth.password | b64enc) }}",
        "{{ fail (printf \"db:%s:x\" .Values.auth.password | b64enc) }}",
        "{{ fail (.Values.auth.password | urlquery) }}",
        "{{ fail (.Values.auth.password | upper) }}",
        "{{ fail (.Values.auth.password | quote) }}",
        "{{ fail (.Values.auth.password | squote) }}",
        "{{ fail (.Values.auth.password | toJson) }}",
        "{{ fail (.Values.auth.password | toJson | toJson) }}",
        "{{ fail (.Values.auth.password | js) }}",
        "{{ fail (.Values.auth.password | wrap 12) }}",
        "{{ fail (.Values.auth.password | nindent 8) }}",
        "{{ fail (.Values.auth.password | replace \" \" \"\\n\") }}",
        "{{ fail (.Values | toYaml) }}",
        "{{ fail (.Values | toToml) }}",
        "{{ fail (.Values | toJson) }}",
        "{{ fail (.Values | toPrettyJson) }}",
        "{{ fail (print .Values) }}",
        "{{ fail (index .Values.auth.list 0) }}",
        "{{ fail (.Files.Get \"values.yaml\" | b64enc) }}",
        "{{ tpl (printf \"%s{{\" .Values.auth.password) . }}",
        "{{ tpl (printf \"{{ %s }}\" .Values.auth.password) . }}",
        "{{ mustRegexMatch (printf \"%s(\" .Values.auth.password) \"x\" }}",
        "{{ mustToDate \"2006\" .Values.auth.password }}",
        "{{ urlParse (printf \":%s\" .Values.auth.password) }}",
        "{{ urlParse (printf \"http://u:%s@h\" .Values.auth.password) }}",
        "{{ include .Values.auth.password . }}",
        "{{ fail (dict \"a\" .Values.auth.password | toYaml | b64enc) }}",
        "{{ genPrivateKey .Values.auth.password }}: x: y",
        "{{ .Values.auth.password }}: {{ .Values.auth.password }}: x",
        "*{{ .Values.auth.password }}",
        "!!int {{ .Values.auth.password | quote }}",
    ]
    .map(chart)
    .into();
    let literal = json!(CANARY);
    cases.extend([
        chart(&format!("{{{{ {literal} | fail }}}}")).parameter("helm-values", json!(format!("x: {literal}"))),
        chart(&format!("{{{{ index {literal} 1 2 }}}}")),
        chart("{{ fail (tpl (.Files.Get \"secret.txt\") .) }}").file("app/secret.txt", CANARY),
        chart("{{ fail (.Files.Get \"secret.txt\" | b64enc) }}")
            .file("app/secret.txt", format!("{CANARY}\n").repeat(20)),
        chart("{{ fail .Values.x }}").parameter("helm-values", json!(format!("x: {literal}"))),
        chart("{{ fail .Values.x }}").parameter("helm-parameters", json!({"x": CANARY})),
        chart("{{ fail .Values.x }}").parameter("helm-string-parameters", json!({"x": CANARY})),
        chart("{{ fail .Values.x }}")
            .parameter("helm-file-parameters", json!({"x": "/shared/secret.txt"}))
            .file("shared/secret.txt", CANARY),
        chart("{{ fail .Values.x }}")
            .parameter("helm-value-files", json!("/shared/eu.yaml"))
            .file("shared/eu.yaml", format!("x: {literal}")),
        chart("{{ fail .Values.x }}").parameter("helm-values", json!(format!("x: |\n  {CANARY}\n  more"))),
        chart("x").parameter("helm-values", json!(format!("x: *{CANARY}"))),
    ]);
    let schemas = [
        json!({"pattern": "^[0-9]+$"}),
        json!({"format": "ipv4"}),
        json!({"type": "integer"}),
    ];
    cases.extend(schemas.map(|password| {
        let auth = json!({"properties": {"password": password}});
        chart("x").file(
            "app/values.schema.json",
            json!({"properties": {"auth": auth}}).to_string(),
        )
    }));
    cases
}

fn kustomizations() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        "secretGenerator:\n- {name: db, literals: [CANARY]}\n",
        "secretGenerator:\n- name: db\n  literals: CANARY\n",
        "secretGenerator:\n- {name: db, files: [a=b=c, CANARY]}\n",
        "generators:\n- |-\n  apiVersion: builtin\n  kind: SecretGenerator\n  metadata: {name: x}\n  literals: [CANARY]\n",
        "resources: [secret.yaml]\npatches:\n- patch: CANARY\n",
        "resources: [secret.yaml]\npatches:\n- {target: {kind: Secret}, patch: CANARY}\n",
        "resources: [secret.yaml]\npatches:\n- patch: |-\n    kind: Secret\n    stringData: {password: CANARY}\n",
        "resources: [secret.yaml]\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: x}\n  patch: CANARY\n",
        "resources: [secret.yaml]\nreplacements:\n- source: {kind: Secret, name: db, fieldPath: stringData.password}\n  \
         targets: [{select: {kind: Secret}, fieldPaths: [stringData.password.x]}]\n",
        "resources: [secret.yaml]\nreplacements:\n- source: {kind: Secret, name: db, fieldPath: stringData.password.x}\n  \
         targets: [{select: {kind: Secret}, fieldPaths: [stringData.password]}]\n",
        "resources: [secret.yaml]\nlabels: [{pairs: {a: b}, fields: [{path: stringData/password/x, create: true}]}]\n",
        "resources: [secret.yaml]\nvars:\n- {name: NONE, objref: {kind: Secret, name: db, apiVersion: v1}, fieldref: {fieldpath: \
         stringData.password}}\n",
        "resources: [secret.yaml]\npatches: [{target: {kind: Secret}, patch: '[{op: test, path: /stringData/password, value: x}]'}]\n",
        "resources: [secret.yaml, secret.yaml]\n",
    ]
    .map(kustomization)
    .into();
    let literal = json!(CANARY);
    let resource = |text: String| {
        Case::new(text.clone(), "")
            .file(
                "app/kustomization.yaml",
                "resources: [a.yaml]\ncommonAnnotations: {a: b}\n",
            )
            .file("app/a.yaml", text)
    };
    cases.extend([
        resource(format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: a, annotations: {literal}}}\n"
        )),
        resource(format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: *{CANARY}\n"
        )),
        resource(format!("apiVersion: v1\nkind: Secret\nstringData: {{a: {literal}}}\n")),
        resource(format!("apiVersion: v1\nkind: Secret\nmetadata: {literal}\n")),
        resource(format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{a: {literal}}}\n x\n"
        )),
        resource(format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {literal}, annotations: [a]}}\n"
        )),
        Case::new("a list that is no list", "")
            .file(
                "app/kustomization.yaml",
                "secretGenerator:\n- {name: a, envs: [a.env, a.env]}\n",
            )
            .file("app/a.env", format!("{CANARY}\nexport {CANARY}\n=x\n")),
    ]);
    let overlays: Vec<Case> = cases.iter().map(overlay).collect();
    cases.extend(overlays);
    cases
}

/// Returns an overlay of a kustomization.
fn overlay(base: &Case) -> Case {
    let case =
        Case::new(format!("an overlay: {}", base.name), "").file("app/kustomization.yaml", "resources: [../base]\n");
    base.files.iter().fold(case, |case, (path, content)| {
        case.file(path.replacen("app/", "base/", 1), content)
    })
}

/// Sources that our own checks refuse.
fn plain() -> Vec<Case> {
    let literal = json!(CANARY);
    let encoded = BASE64.encode(CANARY);
    [
        format!("stringData: {{a: {literal}}}"),
        format!("data: {{a: {literal}}}"),
        format!("data: {{a: {encoded}x}}"),
        format!("data: {encoded}"),
        format!("data: [{literal}]"),
        format!("stringData: {{a: [{literal}]}}"),
        format!("stringData: {literal}"),
        format!("stringData: *{CANARY}"),
        format!("stringData: {{a: !!int {literal}}}"),
        format!("stringData: {{a: !{CANARY} {literal}}}"),
        format!("stringData: {{a: {literal}"),
        format!("stringData: {{a: \"{CANARY}}}"),
        format!("stringData:\n  a: {CANARY}: x\n  b"),
        format!("type: [{literal}]"),
        format!("immutable: {literal}"),
        format!(
            "metadata: {{name: b, annotations: {{kubectl.kubernetes.io/last-applied-configuration: [{literal}]}}}}"
        ),
        format!("metadata: {{name: b, labels: {literal}}}"),
        format!("stringData:\n  a: |\n   {CANARY}\n  {CANARY}\n {CANARY}"),
    ]
    .into_iter()
    .map(|text| {
        Case::new(text.clone(), "").file(
            "app/a.yaml",
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\n{text}\n"),
        )
    })
    .collect()
}

#[test]
fn no_message_of_a_tool_has_a_value_of_a_secret() {
    let parts = Parts::ensure().expect("the tools");
    let cases: Vec<Case> = charts().into_iter().chain(kustomizations()).collect();
    check(&cases, Some(&parts));
    assert!(cases.len() > 60, "only {}", cases.len());
}

#[test]
fn no_message_of_our_checks_has_a_value_of_a_secret() {
    check(&plain(), None);
}

fn check(cases: &[Case], tools: Option<&Parts>) {
    let mut failed = Vec::new();
    for case in cases {
        match messages(case, tools) {
            Ok(messages) => {
                let leaks = leaks(&messages);
                if !leaks.is_empty() {
                    failed.push(format!("{}\n  {messages}  {leaks:?}", case.name));
                }
            }
            Err(why) => failed.push(why),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
