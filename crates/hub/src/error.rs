//! Formats errors of an API server as one line.

use kube::Error;
use manifest::problem::plain;
use std::error::Error as StdError;
use std::io;

/// Returns the HTTP status code with which the API server rejected a request.
pub fn status(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Converts an answer; returns `None` if the object or its kind does not exist.
pub fn optional<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(error) if status(&error) == Some(404) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Returns the reason of an error for users. A missing permission is named by its verb, resource and namespace; an API server also
/// forbids what a quota, a terminating namespace or an admission plugin rejects.
pub fn explain(error: &Error) -> String {
    let reason = reason(error);
    missing_permission(&reason).unwrap_or(reason)
}

/// Parses the message with which an API server reports a missing permission; returns `None` for other messages.
fn missing_permission(message: &str) -> Option<String> {
    let (_, denied) = message.split_once("is forbidden: User \"")?;
    let (user, denied) = denied.split_once("\" cannot ")?;
    let (verb, denied) = denied.split_once(" resource \"")?;
    let (resource, denied) = denied.split_once("\" in API group \"")?;
    let (group, scope) = denied.split_once('"')?;
    let (plural, part) = resource.split_once('/').unwrap_or((resource, ""));
    let after = |separator: char, text: &str| match text {
        "" => String::new(),
        text => format!("{separator}{text}"),
    };
    let (group, part) = (after('.', group), after('/', part));
    let scope = match scope
        .strip_prefix(" in the namespace \"")
        .and_then(|text| text.split_once('"'))
    {
        Some((namespace, _)) => format!("in namespace {namespace}"),
        None => "at the cluster scope".to_owned(),
    };
    Some(format!(
        "user {user} lacks the permission to {verb} {plural}{group}{part} {scope}"
    ))
}

/// Returns the root cause of an error: the outer causes only say that an inner one failed.
pub fn reason(error: &Error) -> String {
    if let Error::Api(status) = error {
        return status.message.clone();
    }
    let cause = root_cause(error);
    match cause.downcast_ref() {
        Some(error) => plain(error),
        None => cause.to_string(),
    }
}

fn root_cause(error: &Error) -> &(dyn StdError + 'static) {
    let mut cause: &(dyn StdError + 'static) = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause
}

/// Returns true if a request was sent, and not answered in time.
pub fn is_unanswered(error: &Error) -> bool {
    root_cause(error)
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// Sends a request once more if it is not answered in time. It must have the same effect when it is sent twice. An API server has
/// left a request unanswered while CRDs were created and deleted.
pub async fn ask_twice<T>(mut ask: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    match ask().await {
        Err(error) if is_unanswered(&error) => ask().await,
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn asks_again_only_without_an_answer() {
        for (kind, asked) in [(io::ErrorKind::TimedOut, 2), (io::ErrorKind::ConnectionRefused, 1)] {
            let mut count = 0;
            let answer: Result<(), _> = ask_twice(async || {
                count += 1;
                Err(Error::Service(Box::new(io::Error::from(kind))))
            })
            .await;
            assert!(answer.is_err());
            assert_eq!(count, asked, "{kind}");
        }
    }

    #[test]
    fn names_missing_permissions_and_nothing_else() {
        let of_works = "manifestworks.work.open-cluster-management.io is forbidden: User \"ann\" cannot list resource \"manifestworks\" in \
                        API group \"work.open-cluster-management.io\"";
        let lacks = |what: &str| Some(format!("user ann lacks the permission to {what}"));
        for (message, expected) in [
            (
                format!("{of_works} at the cluster scope"),
                lacks("list manifestworks.work.open-cluster-management.io at the cluster scope"),
            ),
            (
                format!("{of_works} in the namespace \"eu1\": RBAC: role \"reader\" not found"),
                lacks("list manifestworks.work.open-cluster-management.io in namespace eu1"),
            ),
            (
                "pods \"a\" is forbidden: User \"ann\" cannot get resource \"pods/log\" in API group \"\" in the namespace \"argocd\""
                    .to_owned(),
                lacks("get pods/log in namespace argocd"),
            ),
            ("pods \"a\" is forbidden: exceeded quota: few, requested: pods=1".to_owned(), None),
            (
                "configmaps \"a\" is forbidden: unable to create new content in namespace old because it is being terminated".to_owned(),
                None,
            ),
        ] {
            assert_eq!(missing_permission(&message), expected, "{message}");
        }
    }
}
