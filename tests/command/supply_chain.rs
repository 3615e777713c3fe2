//! Checks that the workflows and the image build run only pinned code, and that each job has only its own rights.

use crate::shipped_files::{read_document, read_file, root};
use serde_json::Value;
use std::fs;

/// Returns the name, the text and the content of each workflow.
fn workflows() -> Vec<(String, String, Value)> {
    let folder = root().join(".github/workflows");
    let files = fs::read_dir(folder).expect("a folder").map(|entry| {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let path = format!(".github/workflows/{name}");
        (name, read_file(&path), read_document(&path))
    });
    files.collect()
}

/// Returns the jobs of a workflow.
fn jobs(workflow: &Value) -> impl Iterator<Item = (&String, &Value)> {
    workflow["jobs"].as_object().expect("jobs").iter()
}

/// Returns the actions that a job uses.
fn actions(job: &Value) -> impl Iterator<Item = &str> {
    let steps = job["steps"].as_array().expect("steps").iter();
    steps.filter_map(|step| step["uses"].as_str())
}

/// Returns true if the permissions are all `read`, or if there are none.
fn only_read(permissions: &Value) -> bool {
    let permissions = permissions.as_object();
    permissions.is_some_and(|all| all.values().all(|value| value == "read"))
}

#[test]
fn actions_are_pinned_by_commit() {
    let mut pinned = 0;
    for (name, text, workflow) in workflows() {
        for action in jobs(&workflow).flat_map(|(_, job)| actions(job)) {
            let commit = action.split_once('@').map_or("", |(_, commit)| commit);
            let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_commit, "{name}: {action} can be moved: name its commit");
            let has_version = |line: &str| line.contains(&format!("{action} # v"));
            assert!(
                text.lines().any(has_version),
                "{name}: {action} has no version behind it"
            );
            pinned += 1;
        }
    }
    assert!(pinned > 5, "{pinned}");
}

#[test]
fn jobs_have_the_least_rights() {
    for (name, _, workflow) in workflows() {
        assert!(
            only_read(&workflow["permissions"]),
            "{name}: the default must not write"
        );
        let jobs: Vec<_> = jobs(&workflow).collect();
        for (job, content) in &jobs {
            let permissions = &content["permissions"];
            let writes = !permissions.is_null() && !only_read(permissions);
            let inherits = permissions.is_null() && workflow["permissions"] == serde_json::json!({});
            assert!(!inherits, "{name}: {job} names no rights");
            // Code of the repository, of its dependencies or of others never runs with the identity of the workflow.
            if permissions["id-token"] == "write" {
                assert!(permissions["contents"].is_null(), "{name}: {job}");
                for action in actions(content) {
                    assert!(
                        action.starts_with("actions/deploy-pages@"),
                        "{name}: {job} runs {action} with the identity of the workflow"
                    );
                }
            }
            assert!(!writes || name != "ci.yaml", "{name}: {job} runs code of pull requests");
        }
    }
}

#[test]
fn image_is_built_from_pinned_images() {
    let dockerfile = read_file("Dockerfile");
    let bases: Vec<&str> = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("FROM ")?.split(' ').next())
        .filter(|base| *base != "scratch" && !base.starts_with("${"))
        .collect();
    assert!(!bases.is_empty());
    for base in bases {
        assert!(base.contains("@sha256:"), "{base} can be moved: name its digest");
    }
}

/// Returns the lines of the shipped files, each with its file.
fn shipped_lines() -> Vec<(String, String)> {
    let mut files = vec!["deploy_cmp.yaml".to_owned()];
    let deploy = fs::read_dir(root().join("deploy")).expect("a folder");
    // The folder in it has placeholders for the images.
    let entries = deploy.map(|entry| entry.expect("an entry"));
    let names = entries
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().into_string().expect("UTF-8"));
    files.extend(
        names
            .filter(|name| name != "deploy_ui.yaml")
            .map(|name| format!("deploy/{name}")),
    );
    let lines = files.iter().flat_map(|file| {
        let lines: Vec<_> = read_file(file)
            .lines()
            .map(|line| (file.clone(), line.trim().to_owned()))
            .collect();
        lines
    });
    lines.collect()
}

// Digests would be safer. But a digest names one registry's copy of an image, and Argo CD's own images must be those of the hub.
#[test]
fn shipped_images_have_a_complete_version() {
    let mut images = 0;
    for (file, line) in shipped_lines() {
        let Some(image) = line.strip_prefix("image: ") else {
            continue;
        };
        let (_, tag) = image.rsplit_once(':').expect("a tag");
        let version = tag.trim_start_matches('v').split('-').next().unwrap_or_default();
        let is_complete = version.split('.').count() == 3 && version.split('.').all(|part| part.parse::<u32>().is_ok());
        assert!(
            is_complete || image.contains("@sha256:"),
            "{file}: {image} can be moved"
        );
        images += 1;
    }
    assert!(images > 6, "{images}");
}

#[test]
fn containers_on_the_hub_have_a_memory_limit() {
    let lines: Vec<_> = shipped_lines()
        .into_iter()
        .filter(|(file, _)| file != "deploy/argocd_addon.yaml")
        .collect();
    let containers = lines.iter().filter(|(_, line)| line.starts_with("image: ")).count();
    let limits = lines
        .windows(4)
        .filter(|window| window[0].1 == "limits:" && window[1..].iter().any(|(_, line)| line.starts_with("memory: ")));
    assert_eq!(limits.count(), containers);
    assert!(containers > 3, "{containers}");
}
