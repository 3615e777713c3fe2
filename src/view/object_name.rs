//! Names of objects as kubectl writes them.

use generate::similar::similar;
use live::request::ObjectId;
use manifest::kinds::GroupKind;
use std::str::FromStr;

/// The short names of kinds, as `kubectl api-resources` lists them.
const SHORT: &[(&str, &str)] = &[
    ("cj", "CronJob"),
    ("cm", "ConfigMap"),
    ("crd", "CustomResourceDefinition"),
    ("deploy", "Deployment"),
    ("ds", "DaemonSet"),
    ("ep", "Endpoints"),
    ("hpa", "HorizontalPodAutoscaler"),
    ("ing", "Ingress"),
    ("limits", "LimitRange"),
    ("netpol", "NetworkPolicy"),
    ("ns", "Namespace"),
    ("pc", "PriorityClass"),
    ("pdb", "PodDisruptionBudget"),
    ("po", "Pod"),
    ("pv", "PersistentVolume"),
    ("pvc", "PersistentVolumeClaim"),
    ("quota", "ResourceQuota"),
    ("rc", "ReplicationController"),
    ("rs", "ReplicaSet"),
    ("sa", "ServiceAccount"),
    ("sc", "StorageClass"),
    ("sts", "StatefulSet"),
    ("svc", "Service"),
];

/// The maximum number of objects that an error names.
const NAMED_MAX: usize = 5;

/// The name of an object: `KIND/NAME` or `KIND/NAMESPACE/NAME`, where the kind may also be a plural or a short name, with or without
/// `.GROUP`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    kind: String,
    group: Option<String>,
    namespace: Option<String>,
    name: String,
}

impl FromStr for ObjectName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (kind, namespace, name) = match *parts {
            [kind, name] => (kind, None, name),
            [kind, namespace, name] => (kind, Some(namespace.to_owned()), name),
            _ => ("", None, ""),
        };
        if parts.iter().any(|part| part.is_empty()) || kind.is_empty() {
            return Err("not an object: write KIND/NAME, such as deployment/web, or KIND/NAMESPACE/NAME".to_owned());
        }
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind, Some(group.to_owned())),
            None => (kind, None),
        };
        Ok(Self {
            kind: kind.to_ascii_lowercase(),
            group,
            namespace,
            name: name.to_owned(),
        })
    }
}

impl ObjectName {
    /// Finds the object of this name.
    pub(crate) fn find<'o>(&self, objects: &'o [ObjectId]) -> Result<&'o ObjectId, String> {
        let matches: Vec<&ObjectId> = objects.iter().filter(|object| self.is(object)).collect();
        match *matches {
            [object] => Ok(object),
            [] => {
                let of_kind = || objects.iter().filter(|object| self.names_kind(&object.kind));
                let name = similar(&self.name, of_kind().map(|object| object.name.as_str()));
                let meant = of_kind()
                    .find(|object| name == Some(object.name.as_str()))
                    .map(full_name);
                let remedy = match meant {
                    Some(meant) => format!("did you mean {meant}?"),
                    None if ["pod", "pods", "po"].contains(&&*self.kind) => {
                        "name the object that owns it, such as deployment/NAME".to_owned()
                    }
                    None => "only what the Application delivers can be shown".to_owned(),
                };
                Err(format!("{self} is not in its works: {remedy}"))
            }
            _ => {
                let names: Vec<String> = matches.iter().take(NAMED_MAX).map(|object| full_name(object)).collect();
                Err(format!("{self} is ambiguous: use one of {}", names.join(", ")))
            }
        }
    }

    fn is(&self, object: &ObjectId) -> bool {
        object.name == self.name
            && self
                .namespace
                .as_ref()
                .is_none_or(|namespace| *namespace == object.namespace)
            && self.group.as_ref().is_none_or(|group| **group == *object.kind.group)
            && self.names_kind(&object.kind)
    }

    fn names_kind(&self, kind: &GroupKind) -> bool {
        let is_short = || {
            SHORT
                .iter()
                .any(|(short, full)| *short == self.kind && *full == &*kind.kind)
        };
        kind.kind.eq_ignore_ascii_case(&self.kind)
            || kind.plurals().iter().any(|plural| **plural == self.kind)
            || is_short()
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kind)?;
        for (separator, part) in [(".", &self.group), ("/", &self.namespace)] {
            if let Some(part) = part {
                write!(f, "{separator}{part}")?;
            }
        }
        write!(f, "/{}", self.name)
    }
}

/// Returns the name of an object as kubectl prints it, such as `deployment.apps/web`.
pub(crate) fn kubectl_name(object: &ObjectId) -> String {
    format!("{}/{}", kind_name(&object.kind), object.name)
}

/// Returns the name of an object with its namespace, such as `deployment.apps/shop/web`, which names no other object.
pub(crate) fn full_name(object: &ObjectId) -> String {
    match &*object.namespace {
        "" => kubectl_name(object),
        namespace => format!("{}/{namespace}/{}", kind_name(&object.kind), object.name),
    }
}

/// Returns the name of a kind as kubectl prints it, such as `deployment.apps`.
fn kind_name(kind: &GroupKind) -> String {
    kind.to_string()
        .replacen(&*kind.kind, &kind.kind.to_ascii_lowercase(), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, namespace: &str, name: &str) -> ObjectId {
        ObjectId {
            kind: kind.parse().expect("a kind"),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    fn find(text: &str, objects: &[ObjectId]) -> Result<String, String> {
        let name: ObjectName = text.parse()?;
        name.find(objects).map(full_name)
    }

    #[test]
    fn finds_objects_by_the_names_that_kubectl_accepts() {
        let objects = [
            object("ConfigMap", "shop", "web"),
            object("Deployment.apps", "shop", "web"),
            object("Deployment.apps", "shop", "frontend"),
            object("Namespace", "", "shop"),
            object("Proxy.example.com", "shop", "web"),
        ];
        for (expected, texts) in [
            (
                "deployment.apps/shop/web",
                "deployment/web Deployment/web deploy/web deployments.apps/web deployment/shop/web",
            ),
            ("configmap/shop/web", "cm/web"),
            ("namespace/shop", "ns/shop"),
            ("proxy.example.com/shop/web", "proxies/web proxy.example.com/web"),
        ] {
            for text in texts.split(' ') {
                assert_eq!(find(text, &objects).as_deref(), Ok(expected), "{text}");
            }
        }
        for text in "deployment/other deployment/else/web deployment.example.com/web web/web".split(' ') {
            let error = find(text, &objects).expect_err(text);
            assert!(
                error.starts_with(text) && error.contains("is not in its works"),
                "{error}"
            );
        }
        let error = find("deploy/frontent", &objects).expect_err("a typing error");
        assert!(
            error.ends_with("did you mean deployment.apps/shop/frontend?"),
            "{error}"
        );
    }

    #[test]
    fn refuses_other_and_ambiguous_names() {
        for text in ["", "web", "deployment/", "/web", "a/b/c/d", "deployment//web"] {
            assert!(text.parse::<ObjectName>().is_err(), "{text}");
        }
        let objects = [object("Service", "a", "web"), object("Service", "b", "web")];
        assert_eq!(
            find("svc/web", &objects).expect_err("two"),
            "svc/web is ambiguous: use one of service/a/web, service/b/web"
        );
        assert_eq!(find("svc/b/web", &objects).as_deref(), Ok("service/b/web"));
    }
}
