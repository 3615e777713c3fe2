//! A hub that serves fixed objects over HTTP, for commands that only read it, or whose changes are only recorded.

use crate::program::{UNREACHABLE_KUBECONFIG, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

/// The objects by their paths.
pub(crate) type Objects = BTreeMap<String, Value>;

/// A hub for one test. Its thread ends with the process.
pub(crate) struct FakeHub {
    folder: TempDir,
    changes: Arc<Mutex<Vec<String>>>,
}

impl FakeHub {
    pub(crate) fn start(objects: Objects) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let folder = TempDir::new().expect("a scratch folder");
        let config = UNREACHABLE_KUBECONFIG.replace("127.0.0.1:1", &address);
        std::fs::write(folder.path().join("config"), config).expect("a file");
        let changes = Arc::new(Mutex::new(Vec::new()));
        let hub = Self {
            folder,
            changes: Arc::clone(&changes),
        };
        thread::spawn(move || {
            let objects = Arc::new(objects);
            for stream in listener.incoming().flatten() {
                let (objects, changes) = (Arc::clone(&objects), Arc::clone(&changes));
                // A client that closes its connection is no fault of the hub.
                thread::spawn(move || drop(serve(&stream, &objects, &changes)));
            }
        });
        hub
    }

    /// Runs the program with these words and the kubeconfig of the hub, and formats its output.
    pub(crate) fn run(&self, words: &str) -> String {
        let words = format!("{words} --kubeconfig=config --context=a");
        run(self.folder.path(), &words)
    }

    /// Returns the bodies of all changes.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.changes.lock().expect("no thread has panicked").clone()
    }
}

/// Returns the path of a list of the answers to the first changes of the hub.
pub(crate) fn failures(path: &str) -> String {
    format!("failures of {path}")
}

fn serve(stream: &TcpStream, objects: &Objects, changes: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let header = header.trim().to_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(text) = header.strip_prefix("content-length: ") {
                length = text.parse().unwrap_or_default();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let target = request.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut failure = None;
        if request.starts_with("PATCH ") {
            let mut changes = changes.lock().expect("no thread has panicked");
            failure = objects.get(&failures(path)).and_then(|all| all.get(changes.len()));
            changes.push(String::from_utf8_lossy(&body).into_owned());
        }
        let answer = match failure.or_else(|| objects.get(path)) {
            Some(object) => object.clone(),
            None => list(path, query, objects),
        };
        let status = answer["code"].as_u64().unwrap_or(200);
        let answer = answer.to_string();
        let mut stream = stream;
        write!(
            stream,
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        )?;
    }
}

/// Returns the objects of a collection in one namespace, or in all; NotFound if the path is that of an object.
fn list(path: &str, query: &str, objects: &Objects) -> Value {
    let (parent, last) = path.rsplit_once('/').unwrap_or_default();
    let is_object =
        parent.rsplit('/').next().is_some_and(|name| name.ends_with('s')) && !parent.ends_with("/namespaces");
    if is_object && !parent.ends_with("/apis") {
        return json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "message": "not found", "code": 404});
    }
    let selector = query.split('&').find_map(|part| part.strip_prefix("labelSelector="));
    let selector = selector.unwrap_or_default().replace("%3D", "=").replace("%2F", "/");
    let is_selected = |object: &Value| match selector.split_once('=') {
        Some((name, text)) => object["metadata"]["labels"][name] == text,
        None => selector.is_empty() || object["metadata"]["labels"][&*selector].is_string(),
    };
    let is_item = |key: &str| {
        let (collection, name) = key.rsplit_once('/').unwrap_or_default();
        let in_all = collection
            .strip_prefix(parent)
            .and_then(|rest| rest.strip_prefix("/namespaces/"));
        let in_all = in_all
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(_, plural)| plural == last);
        !name.is_empty() && (collection == path || in_all)
    };
    let items: Vec<_> = objects
        .iter()
        .filter(|(key, object)| is_item(key) && is_selected(object))
        .map(|(_, object)| object)
        .collect();
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

/// The hub of the tests: Argo CD, the managed clusters `eu1` and `eu2`, and for both a work of the Application `shop`, which is healthy.
pub(crate) fn objects() -> Objects {
    let mut objects = Objects::new();
    let config_map = json!({"metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": {}});
    objects.insert("/api/v1/namespaces/argocd/configmaps/argocd-cm".to_owned(), config_map);
    for name in ["eu1", "eu2"] {
        let condition = |kind: &str| json!({"type": kind, "status": "True"});
        let kinds = "HubAcceptedManagedCluster ManagedClusterJoined ManagedClusterConditionAvailable";
        let conditions: Vec<_> = kinds.split(' ').map(condition).collect();
        objects.insert(
            format!("/apis/cluster.open-cluster-management.io/v1/managedclusters/{name}"),
            json!({"metadata": {"name": name}, "spec": {"hubAcceptsClient": true}, "status": {"conditions": conditions}}),
        );
        objects.insert(work_path(name, "shop"), work(name, "shop", "shop"));
    }
    let works = [("ManifestWork", "eu1", "shop"), ("ManifestWork", "eu2", "shop")];
    objects.insert(application_path("shop"), application("shop", &works));
    objects
}

pub(crate) fn application_path(name: &str) -> String {
    format!("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/{name}")
}

pub(crate) fn work_path(cluster: &str, name: &str) -> String {
    format!("/apis/work.open-cluster-management.io/v1/namespaces/{cluster}/manifestworks/{name}")
}

pub(crate) fn set_path(namespace: &str, name: &str) -> String {
    format!("/apis/work.open-cluster-management.io/v1alpha1/namespaces/{namespace}/manifestworkreplicasets/{name}")
}

/// Returns a Synced Application with these works, by kind, namespace and name.
pub(crate) fn application(name: &str, works: &[(&str, &str, &str)]) -> Value {
    let resource = |(kind, namespace, name): &(&str, &str, &str)| {
        json!({
            "group": "work.open-cluster-management.io", "kind": kind, "namespace": namespace, "name": name, "status": "Synced",
        })
    };
    let plugin = json!({"name": "argocd-ocm-cmp", "parameters": []});
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"project": "web", "source": {"repoURL": "https://git/shop", "plugin": plugin}},
        "status": {
            "sync": {"status": "Synced"}, "health": {"status": "Healthy"}, "operationState": {"phase": "Succeeded", "message": "ok"},
            "resources": works.iter().map(resource).collect::<Vec<_>>(),
        },
    })
}

/// Returns a healthy work of an Application, with a ConfigMap.
pub(crate) fn work(cluster: &str, name: &str, application: &str) -> Value {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-06-01T11:00:00Z", "observedGeneration": 1,
        })
    };
    let conditions = ["Applied", "Available"].map(condition);
    let meta = json!({
        "ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps", "namespace": "shop", "name": "settings",
    });
    let id = format!("{application}:work.open-cluster-management.io/ManifestWork:{cluster}/{name}");
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {
            "name": name, "namespace": cluster, "generation": 1, "resourceVersion": "5",
            "labels": {"argocd-ocm-cmp.github.io/application": application},
            "annotations": {"argocd.argoproj.io/tracking-id": id},
        },
        "spec": {
            "manifestConfigs": [{"resourceIdentifier": {"name": "*", "namespace": "*", "resource": "configmaps"}}],
            "workload": {"manifests": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}, "data": {"a": "1"}},
            ]},
        },
        "status": {"conditions": conditions, "resourceStatus": {"manifests": [{"resourceMeta": meta, "conditions": conditions}]}},
    })
}
