//! Finds an object in the works of an Application, and the path that a cluster serves it under. A path is built from the work alone.

use crate::refusal::HttpRefusal;
use crate::request::{LiveRequest, ObjectId, segment};
use manifest::yaml;
use ocm::application_works::ApplicationName;
use ocm::ownership::{ListedWork, Ownership, listed_works};
use ocm::tracking::Tracking;
use ocm::work::{KIND, SET_KIND};
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};

/// An object as a work sends it to a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct SentObject {
    /// The manifest in the work.
    pub manifest: Value,
    /// The path of the object in the API of the cluster.
    pub path: String,
    /// The works of which one must own the live object; `None` for any owner.
    owners: Option<Vec<String>>,
}

impl SentObject {
    /// Returns true if the live object may be shown. A work with an executor may name any object, and only the agent checks whether the
    /// executor may write it: the agent then makes the work its owner. The conditions in the work prove nothing, because its own rules
    /// may set them.
    pub(crate) fn may_show(&self, live: &Value) -> bool {
        let Some(works) = &self.owners else { return true };
        let references = live["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let mut agents = references.filter(|owner| owner["kind"] == "AppliedManifestWork");
        agents.any(|owner| {
            let name = owner["name"].as_str().unwrap_or_default();
            let work = name.split_at_checked(HUB_HASH).map(|(_, work)| work);
            work.and_then(|work| work.strip_prefix('-'))
                .is_some_and(|work| works.iter().any(|name| name == work))
        })
    }
}

/// The number of digits of the hash of the hub, with which the name of an AppliedManifestWork begins. A dash and the name of the work
/// follow.
const HUB_HASH: usize = 64;

/// The works that Argo CD lists for an Application.
#[derive(Debug)]
pub struct ListedWorks {
    listed: HashSet<ListedWork>,
    ownership: Ownership,
}

impl ListedWorks {
    /// Reads the list in the status of an Application.
    pub fn from_application(name: &ApplicationName, tracking: Tracking, application: &Value) -> Self {
        let listed = listed_works(&name.works, application);
        Self {
            ownership: Ownership::of_listed(&name.works, tracking, listed.clone()),
            listed,
        }
    }

    /// Returns the managed clusters of the works, possibly repeatedly.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        self.of_kind(KIND).map(|(cluster, _)| cluster)
    }

    /// Returns the names of the works for a managed cluster, sorted.
    pub fn for_cluster(&self, cluster: &str) -> Vec<&str> {
        let of_cluster = self.of_kind(KIND).filter(|(namespace, _)| *namespace == cluster);
        let mut names: Vec<_> = of_cluster.map(|(_, name)| name).collect();
        names.sort_unstable();
        names
    }

    /// Returns the namespaces and names of the ManifestWorkReplicaSets, sorted.
    pub fn sets(&self) -> Vec<(&str, &str)> {
        let mut sets: Vec<_> = self.of_kind(SET_KIND).collect();
        sets.sort_unstable();
        sets
    }

    /// Returns the namespaces and names of the works of this kind.
    fn of_kind(&self, kind: &str) -> impl Iterator<Item = (&str, &str)> {
        let works = self.listed.iter().filter(move |work| work.0 == kind);
        works.map(|(_, namespace, name)| (&**namespace, &**name))
    }

    /// Returns true if Argo CD has marked the work or set as the Application's. A list alone is no proof: two Applications that share
    /// a work both list it.
    pub fn owns(&self, kind: &str, work: &Value) -> bool {
        let metadata = work["metadata"].to_string();
        let metadata = yaml::json(&metadata).ok();
        let metadata = metadata.as_ref().and_then(|metadata| metadata.as_map());
        metadata.is_some_and(|metadata| self.ownership.has(kind, metadata))
    }
}

/// Checks that an Application is in the project that argocd-server has checked, if it has checked one.
///
/// # Errors
/// Returns an error if it is in another one.
pub fn check_project(
    application: &ApplicationName,
    checked_project: Option<&str>,
    object: &Value,
) -> Result<(), HttpRefusal> {
    let Some(checked) = checked_project else { return Ok(()) };
    let project = object["spec"]["project"].as_str().filter(|project| !project.is_empty());
    if project.unwrap_or("default") == checked {
        return Ok(());
    }
    Err(HttpRefusal::new(
        http::StatusCode::FORBIDDEN,
        format!(
            "Application {} is not in the project {checked}: reload the page",
            application.instance
        ),
    ))
}

/// Finds an object in the works of an Application on a cluster.
///
/// # Errors
/// Returns an error if no work has the object, or if its identity in the work cannot be a path.
pub fn find(works: &[Value], request: &LiveRequest) -> Result<SentObject, HttpRefusal> {
    let find_manifest = |work: &Value| {
        let manifests = work["spec"]["workload"]["manifests"].as_array()?;
        let is_it = |manifest: &&Value| ObjectId::of(manifest).as_ref() == Some(&request.object);
        manifests.iter().find(is_it).cloned()
    };
    let sent = works.iter().filter_map(|work| Some((work, find_manifest(work)?)));
    let sent: Vec<_> = sent.collect();
    // A cluster decides itself what it shows to a user's own identity.
    let needs_owner = |work: &Value| request.project.is_some() && !work["spec"]["executor"].is_null();
    let name = |work: &Value| work["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let owner = |work: &Value| needs_owner(work).then(|| name(work));
    let owners = sent.iter().map(|(work, _)| owner(work)).collect();
    let Some((work, manifest)) = sent.into_iter().next() else {
        return Err(HttpRefusal::not_found(format!(
            "{} is not in the works of Application {} on cluster {}: only what the Application delivers can be shown",
            request.object, request.application.instance, request.cluster
        )));
    };
    Ok(SentObject {
        path: path_of(&manifest, work, &request.object)?,
        manifest,
        owners,
    })
}

/// Returns the identities of the objects in works, sorted and without repetitions.
pub fn objects(works: &[Value]) -> Vec<ObjectId> {
    let manifests = works
        .iter()
        .filter_map(|work| work["spec"]["workload"]["manifests"].as_array());
    let identities: BTreeSet<_> = manifests.flatten().filter_map(ObjectId::of).collect();
    identities.into_iter().collect()
}

fn path_of(manifest: &Value, work: &Value, object: &ObjectId) -> Result<String, HttpRefusal> {
    let api_version = manifest["apiVersion"].as_str().unwrap_or_default();
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let plural = match object.kind.built_in() {
        Some(known) => known.plural.to_owned(),
        None => match reported_plural(work, object) {
            Some(plural) => plural,
            None => object.kind.plurals().swap_remove(0).into_owned(),
        },
    };
    let collection = collection_path(&object.kind.group, version, &object.namespace, &plural)?;
    Ok(format!("{collection}/{}", segment("name", &object.name)?))
}

/// Returns the plural that the agent of the cluster reports.
fn reported_plural(work: &Value, object: &ObjectId) -> Option<String> {
    let manifests = work["status"]["resourceStatus"]["manifests"].as_array()?;
    let is_it = |meta: &&Value| {
        meta["kind"] == *object.kind.kind
            && meta["group"].as_str().unwrap_or_default() == &*object.kind.group
            && meta["namespace"].as_str().unwrap_or_default() == object.namespace
            && meta["name"] == *object.name
    };
    let meta = manifests.iter().map(|manifest| &manifest["resourceMeta"]).find(is_it)?;
    let plural = meta["resource"].as_str()?;
    let is_plural = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (!plural.is_empty() && plural.bytes().all(is_plural)).then(|| plural.to_owned())
}

/// Returns the path of the objects of a kind in a namespace, or of cluster-scoped ones.
///
/// # Errors
/// Returns an error if a part cannot be a segment of a path.
pub fn collection_path(group: &str, version: &str, namespace: &str, plural: &str) -> Result<String, HttpRefusal> {
    let mut path = if group.is_empty() {
        "/api/".to_owned()
    } else {
        format!("/apis/{}/", segment("group", group)?)
    };
    path += &segment("version", version)?;
    if !namespace.is_empty() {
        path.push_str("/namespaces/");
        path.push_str(&segment("namespace", namespace)?);
    }
    Ok(format!("{path}/{}", segment("resource", plural)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::View;
    use manifest::kinds::GroupKind;
    use ocm::application_works::ApplicationName;
    use ocm::work::GROUP;
    use serde_json::json;

    fn request(kind: &str, group: &str, namespace: &str, name: &str) -> LiveRequest {
        LiveRequest {
            application: ApplicationName::named("shop", "argocd").expect("a name"),
            project: Some("team".to_owned()),
            user: String::new(),
            cluster: "eu1".to_owned(),
            object: ObjectId {
                kind: GroupKind {
                    group: group.into(),
                    kind: kind.into(),
                },
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            },
            view: View::Object,
        }
    }

    fn work(manifests: &Value, status: &Value) -> Value {
        json!({"metadata": {"name": "shop", "namespace": "eu1"}, "spec": {"workload": {"manifests": manifests}}, "status": status})
    }

    #[test]
    fn builds_the_path_from_the_work() {
        // The apiVersion, kind and namespace in the manifest, the resource that the agent reports, and the path.
        for row in [
            "apps/v1 Deployment a - /apis/apps/v1/namespaces/a/deployments/web",
            "v1 Service a - /api/v1/namespaces/a/services/web",
            "v1 Service a secrets /api/v1/namespaces/a/services/web",
            "v1 Namespace - - /api/v1/namespaces/web",
            "example.com/v2 Proxy a - /apis/example.com/v2/namespaces/a/proxies/web",
            "example.com/v2 Proxy a proxyz /apis/example.com/v2/namespaces/a/proxyz/web",
            "example.com/v2 Proxy a ../../secrets /apis/example.com/v2/namespaces/a/proxies/web",
        ] {
            let cells: Vec<&str> = row.split(' ').collect();
            let [api_version, kind, namespace, resource, path] = cells[..] else {
                panic!("five cells")
            };
            let namespace = namespace.trim_start_matches('-');
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let metadata = json!({"name": "web", "namespace": namespace});
            let manifest = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
            let meta =
                json!({"group": group, "kind": kind, "namespace": namespace, "name": "web", "resource": resource});
            let reported =
                (resource != "-").then(|| json!({"resourceStatus": {"manifests": [{"resourceMeta": meta}]}}));
            let works = [
                work(&json!([]), &Value::Null),
                work(&json!([manifest]), &reported.unwrap_or_default()),
            ];
            let sent = find(&works, &request(kind, group, namespace, "web")).expect(path);
            assert_eq!(sent.path, path);
        }
    }

    #[test]
    fn refuses_objects_that_are_in_no_work() {
        let manifest =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"}});
        let works = [work(&json!([manifest]), &Value::Null)];
        for (kind, group, namespace, name) in [
            ("Deployment", "apps", "a", "other"),
            ("Deployment", "apps", "b", "web"),
            ("Deployment", "apps", "", "web"),
            ("Deployment", "", "a", "web"),
            ("deployment", "apps", "a", "web"),
            ("Secret", "", "a", "web"),
        ] {
            let refused = find(&works, &request(kind, group, namespace, name)).expect_err(name);
            assert_eq!(refused.status, http::StatusCode::NOT_FOUND, "{refused:?}");
        }
        assert!(find(&[Value::Null, json!([])], &request("Secret", "", "a", "web")).is_err());
        let odd =
            json!({"apiVersion": "apps/v1?x", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"}});
        assert!(
            find(
                &[work(&json!([odd]), &Value::Null)],
                &request("Deployment", "apps", "a", "web")
            )
            .is_err()
        );
    }

    /// Otherwise a tenant could name an object of another one in a work.
    #[test]
    fn under_an_executor_only_owned_objects_may_be_shown() {
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "b"}});
        let may_show = |executors: &[&Value], project: Option<&str>, owner: &str| {
            let works = executors.iter().zip(["shop", "shop.part-a"]).map(|(executor, name)| {
                let mut work = work(&json!([manifest]), &Value::Null);
                (work["metadata"]["name"], work["spec"]["executor"]) = (name.into(), (*executor).clone());
                work
            });
            let mut request = request("ConfigMap", "", "b", "web");
            request.project = project.map(str::to_owned);
            let owners = json!([{"kind": "ConfigMap", "name": "x"}, {"kind": "AppliedManifestWork", "name": owner}]);
            let live = json!({"metadata": {"ownerReferences": owners}});
            find(&works.collect::<Vec<_>>(), &request)
                .expect("an object")
                .may_show(&live)
        };
        let executor =
            json!({"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "deployer"}}});
        let [own, part] = ["shop", "shop.part-a"].map(|name| format!("{}-{name}", "0".repeat(HUB_HASH)));
        for (owner, expected) in [
            (own.as_str(), true),
            (&own.replace("shop", "web-shop"), false),
            (&own[1..], false),
            ("shop", false),
            ("", false),
        ] {
            assert_eq!(may_show(&[&executor], Some("team"), owner), expected, "{owner}");
            assert!(may_show(&[&executor], None, owner), "the identity of the user");
            assert!(may_show(&[&Value::Null], Some("team"), owner), "no executor");
            assert!(may_show(&[&executor, &Value::Null], Some("team"), owner));
        }
        assert!(may_show(&[&executor, &executor], Some("team"), &part));
    }

    #[test]
    fn application_owns_only_works_that_argo_cd_has_marked() {
        let id = |application: &str, name: &str| {
            let id = format!("{application}:{GROUP}/{KIND}:eu1/{name}");
            json!({"argocd.argoproj.io/tracking-id": id})
        };
        let listed = |name: &str| json!({"group": GROUP, "kind": KIND, "namespace": "eu1", "name": name});
        let application =
            json!({"status": {"resources": [listed("shop"), listed("own-name"), {"group": "", "kind": "Secret"}]}});
        let shop = request("Secret", "", "a", "web").application;
        let works = ListedWorks::from_application(&shop, Tracking::configured(|_| None), &application);
        assert_eq!(works.for_cluster("eu1"), ["own-name", "shop"]);
        assert_eq!(works.for_cluster("eu2"), [""; 0]);
        let owns = |name: &str, annotations: &Value| {
            let work = json!({"metadata": {"name": name, "namespace": "eu1", "annotations": annotations}});
            works.owns(KIND, &work)
        };
        assert!(owns("own-name", &id("shop", "own-name")));
        assert!(!owns("shop", &Value::Null), "Argo CD has not marked it");
        assert!(!owns("unlisted", &id("shop", "unlisted")), "Argo CD does not list it");
    }

    #[test]
    fn refuses_the_application_of_another_project() {
        let application = request("Secret", "", "a", "web").application;
        let check = |checked, spec: Value| check_project(&application, checked, &json!({"spec": spec}));
        assert_eq!(check(Some("team"), json!({"project": "team"})), Ok(()));
        assert_eq!(check(None, json!({"project": "other"})), Ok(()));
        for spec in [
            json!({"project": "other"}),
            json!({}),
            json!({"project": ""}),
            json!({"project": ["team"]}),
        ] {
            let refused = check(Some("team"), spec).expect_err("another project");
            assert_eq!(refused.status, http::StatusCode::FORBIDDEN);
        }
    }
}
