//! Parses requests. Argo CD's headers name the Application; the path names the view, and the query a cluster and one object.

use crate::limits::{TAIL, TAIL_MAX};
use crate::refusal::HttpRefusal;
use http::{HeaderMap, StatusCode};
use manifest::kinds::GroupKind;
use ocm::application_works::ApplicationName;
use ocm::names::ClusterName;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// The prefix of every path.
const PREFIX: &str = "/api/v1/";

/// The header with the namespace and name of the Application, which argocd-server sets after it has checked the user's access.
pub const APPLICATION: &str = "argocd-application-name";

/// The header with the project of the Application.
pub const PROJECT: &str = "argocd-project-name";

/// The header with the user.
pub const USER: &str = "argocd-username";

/// The parameters of all views, and further ones of logs, which may also have several `pod`.
const OF_OBJECTS: [&str; 5] = ["cluster", "group", "kind", "namespace", "name"];
const OF_LOGS: [&str; 5] = ["container", "tail", "since", "previous", "follow"];

/// The maximum length of a name in Kubernetes.
const NAME_MAX: usize = 253;

/// A request for something of one object on one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveRequest {
    /// The Application.
    pub application: ApplicationName,
    /// The project in which argocd-server has checked the user's access; `None` for a user who reads the hub with another identity.
    pub project: Option<String>,
    /// The user, as a name for limits and the log only.
    pub user: String,
    /// The managed cluster.
    pub cluster: String,
    /// The object in a work.
    pub object: ObjectId,
    /// The requested view.
    pub view: View,
}

/// A view of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The object and its difference from what was sent.
    Object,
    /// The objects that it owns.
    Tree,
    /// The Events of these.
    Events,
    /// The logs of the Pods among these.
    Logs(LogOptions),
}

/// The options of logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// The names of Pods; all if empty.
    pub pods: Vec<String>,
    /// The container; all if not set.
    pub container: Option<String>,
    /// The number of last lines.
    pub tail: u32,
    /// The age of the oldest line, in seconds.
    pub since: Option<u32>,
    /// True for the log of the container before its last restart.
    pub previous: bool,
    /// True to continue with new lines.
    pub follow: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            pods: Vec::new(),
            container: None,
            tail: TAIL,
            since: None,
            previous: false,
            follow: false,
        }
    }
}

/// The identity of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId {
    /// The kind.
    pub kind: GroupKind,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectId {
    /// Returns the identity of an object; `None` if it has no kind or no name.
    pub fn of(object: &Value) -> Option<Self> {
        let (api_version, metadata) = (object["apiVersion"].as_str().unwrap_or_default(), &object["metadata"]);
        Some(Self {
            kind: GroupKind::from_api_version(api_version, object["kind"].as_str()?),
            namespace: metadata["namespace"].as_str().unwrap_or_default().to_owned(),
            name: metadata["name"].as_str()?.to_owned(),
        })
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// Parses a request that argocd-server has sent; `argo_cd` is Argo CD's namespace.
///
/// # Errors
/// Returns the first problem.
pub fn parse(path: &str, query: &str, headers: &HeaderMap, argo_cd: &str) -> Result<LiveRequest, HttpRefusal> {
    let mut view = match path.strip_prefix(PREFIX) {
        Some("object") => View::Object,
        Some("tree") => View::Tree,
        Some("events") => View::Events,
        Some("logs") => View::Logs(LogOptions::default()),
        _ => {
            return Err(HttpRefusal::not_found(
                "unknown path: use /api/v1/object, tree, events or logs",
            ));
        }
    };
    let application = header(headers, APPLICATION)?;
    // argocd-server checks that there is one colon.
    let application =
        ApplicationName::named(&application.replacen(':', "/", 1), argo_cd).map_err(HttpRefusal::invalid)?;
    let project = Some(header(headers, PROJECT)?.to_owned());
    let user = header(headers, USER).unwrap_or_default().to_owned();
    let mut values: HashMap<&str, String> = HashMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value).ok_or_else(|| HttpRefusal::invalid(format!("{key} is not UTF-8")))?;
        match &mut view {
            View::Logs(options) if key == "pod" => {
                options.pods.push(segment("pod", &value)?);
                continue;
            }
            View::Logs(_) if OF_LOGS.contains(&key) => {}
            _ if OF_OBJECTS.contains(&key) => {}
            _ => return Err(HttpRefusal::invalid(format!("unknown parameter {key:?}: remove it"))),
        }
        if values.insert(key, value).is_some() {
            return Err(HttpRefusal::invalid(format!("{key} is set twice: set it once")));
        }
    }
    let mut take = |key: &str| values.remove(key);
    let required = |key: &str, value: Option<String>| {
        let value = value.filter(|value| !value.is_empty());
        value.ok_or_else(|| HttpRefusal::invalid(format!("{key} is not set: set it in the query")))
    };
    let cluster = required("cluster", take("cluster"))?;
    cluster
        .parse::<ClusterName>()
        .map_err(|error| HttpRefusal::invalid(error.to_string()))?;
    let optional = |key: &str, value: Option<String>| match value.filter(|value| !value.is_empty()) {
        Some(value) => segment(key, &value),
        None => Ok(String::new()),
    };
    if let View::Logs(options) = &mut view {
        options.container = take("container")
            .map(|container| segment("container", &container))
            .transpose()?;
        options.tail = number("tail", take("tail"))?.unwrap_or(TAIL).min(TAIL_MAX);
        options.since = number("since", take("since"))?;
        options.previous = is_true("previous", take("previous").as_deref())?;
        options.follow = is_true("follow", take("follow").as_deref())?;
    }
    Ok(LiveRequest {
        application,
        project,
        user,
        cluster,
        object: ObjectId {
            kind: GroupKind {
                group: optional("group", take("group"))?.into(),
                kind: segment("kind", &required("kind", take("kind"))?)?.into(),
            },
            namespace: optional("namespace", take("namespace"))?,
            name: segment("name", &required("name", take("name"))?)?,
        },
        view,
    })
}

/// Returns the value of a header that must be sent once.
fn header<'h>(headers: &'h HeaderMap, name: &str) -> Result<&'h str, HttpRefusal> {
    let mut all = headers.get_all(name).iter();
    match (all.next().and_then(|value| value.to_str().ok()), all.next()) {
        (Some(value), None) if !value.is_empty() => Ok(value),
        _ => Err(HttpRefusal::new(
            StatusCode::UNAUTHORIZED,
            format!("the header {name} is missing or repeated: send requests through argocd-server"),
        )),
    }
}

/// Returns a text that can be a segment of a path.
///
/// # Errors
/// Returns an error for a text that could be read as another path: OCM's user-server escapes what is escaped again.
pub fn segment(key: &str, text: &str) -> Result<String, HttpRefusal> {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~@".contains(&byte);
    if text.is_empty() || text.len() > NAME_MAX || text.starts_with("..") || text == "." || !text.bytes().all(is_safe) {
        return Err(HttpRefusal::invalid(format!(
            "{key} {text:?} is not supported: use letters, digits, '-', '.', '_' and ':'"
        )));
    }
    Ok(text.to_owned())
}

fn number(key: &str, value: Option<String>) -> Result<Option<u32>, HttpRefusal> {
    let parsed = value.map(|value| value.parse());
    parsed
        .transpose()
        .map_err(|_| HttpRefusal::invalid(format!("{key} is not a number: set it to a whole number")))
}

fn is_true(key: &str, value: Option<&str>) -> Result<bool, HttpRefusal> {
    match value {
        Some("true") => Ok(true),
        None | Some("false") => Ok(false),
        Some(_) => Err(HttpRefusal::invalid(format!("{key} is neither true nor false"))),
    }
}

/// Decodes the value of a parameter in a query.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    const OF_ARGO_CD: &[(&str, &str)] = &[(APPLICATION, "argocd:shop"), (PROJECT, "team"), (USER, "ann")];

    const OBJECT: &str = "cluster=eu1&group=apps&kind=Deployment&namespace=shop&name=web";

    fn parsed(path: &str, query: &str) -> Result<LiveRequest, HttpRefusal> {
        parse(path, query, &headers(OF_ARGO_CD), "argocd")
    }

    #[test]
    fn names_application_cluster_and_object() {
        let request = parsed("/api/v1/object", OBJECT).expect("a request");
        assert_eq!(request.application.instance, "shop");
        assert_eq!(
            (
                request.project.as_deref().unwrap_or_default(),
                &*request.user,
                &*request.cluster
            ),
            ("team", "ann", "eu1")
        );
        assert_eq!(request.object.to_string(), "Deployment.apps shop/web");
        assert_eq!(request.view, View::Object);
        let cluster_scoped = parsed(
            "/api/v1/tree",
            "cluster=eu1&group=&kind=Namespace&namespace=&name=a%3Ab",
        )
        .expect("a request");
        assert_eq!(cluster_scoped.object.to_string(), "Namespace a:b");
    }

    #[test]
    fn limits_the_options_of_logs() {
        let logs = |query: &str| parsed("/api/v1/logs", &format!("{OBJECT}{query}")).map(|request| request.view);
        assert_eq!(logs(""), Ok(View::Logs(LogOptions::default())));
        let expected = LogOptions {
            pods: vec!["a".to_owned(), "b".to_owned()],
            container: Some("web".to_owned()),
            tail: TAIL_MAX,
            since: Some(60),
            previous: true,
            follow: true,
        };
        let query = "&pod=a&pod=b&container=web&tail=99999999&since=60&previous=true&follow=true";
        assert_eq!(logs(query), Ok(View::Logs(expected)));
        for query in "&tail=-1 &tail=x &follow=1 &since= &pod= &pod=a/b &container=..".split(' ') {
            assert_eq!(logs(query).expect_err(query).status, StatusCode::BAD_REQUEST, "{query}");
        }
    }

    #[test]
    fn refuses_what_could_change_a_path_or_a_selector() {
        let names = "name=../secrets/a name=a%2Fb name=a%252Fb name=.. name=%2e%2e name=a%3Fb name=a%23b name=a%0Ab name=%C3%A9 name= \
                     name=%zz";
        let others = "namespace=a/b namespace=. kind=Pod/log kind= group=apps/v1 cluster=eu1/api cluster=EU1 cluster=";
        let unknown = "labelSelector=a=b path=/api/v1/secrets pod=a";
        for parameter in [names, others, unknown].into_iter().flat_map(|texts| texts.split(' ')) {
            let (key, _) = parameter.split_once('=').expect("a value");
            let others = OBJECT.split('&').filter(|pair| !pair.starts_with(&format!("{key}=")));
            let query: Vec<_> = others.chain([parameter]).collect();
            let refused = parsed("/api/v1/object", &query.join("&")).expect_err(parameter);
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{parameter}: {refused:?}");
        }
        let twice = parsed("/api/v1/object", &format!("{OBJECT}&name=other")).expect_err("two names");
        assert_eq!(twice.line, "name is set twice: set it once");
        for path in [
            "/",
            "/api/v1/",
            "/api/v1/object/",
            "/api/v1/../object",
            "/api/v1/exec",
            "/healthz",
        ] {
            assert_eq!(
                parsed(path, OBJECT).expect_err(path).status,
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    }

    #[test]
    fn refuses_missing_or_repeated_headers() {
        for pairs in [
            &[(PROJECT, "team")][..],
            &[(APPLICATION, "argocd:shop")],
            &[(APPLICATION, ""), (PROJECT, "team")],
            &[
                (APPLICATION, "argocd:shop"),
                (APPLICATION, "argocd:other"),
                (PROJECT, "team"),
            ],
            &[(APPLICATION, "argocd:shop"), (PROJECT, "team"), (PROJECT, "other")],
        ] {
            let refused = parse("/api/v1/object", OBJECT, &headers(pairs), "argocd").expect_err("headers");
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{pairs:?}");
        }
        let odd = headers(&[(APPLICATION, "argocd:a/b"), (PROJECT, "team")]);
        assert_eq!(
            parse("/api/v1/object", OBJECT, &odd, "argocd")
                .expect_err("a name")
                .status,
            StatusCode::BAD_REQUEST
        );
    }
}
