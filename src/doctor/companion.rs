//! What the companion has been told to do, as its Deployment says.

use super::seen::{CONTROLLER, Seen, containers, items};
use crate::controller::promises::{PROMISES, Promise};
use serde_json::Value;

/// The companion as it is installed.
#[derive(Debug)]
pub struct Companion {
    /// Its ServiceAccount.
    pub account: String,
    /// What it does. One that is about several kinds is here as often.
    pub promises: Vec<&'static Promise>,
    /// What it was told to do, and does not know.
    pub unknown: Vec<String>,
    /// Among how many Leases its work is divided.
    pub shards: usize,
    /// Whether it works only with a Lease.
    pub elects: bool,
    /// Its image.
    pub image: String,
}

impl Companion {
    /// Reads its Deployment and the ConfigMap with its settings; nothing where it is not installed.
    #[must_use]
    pub fn of(seen: &Seen) -> Option<Self> {
        let deployment = seen.controller()?;
        let pod = &deployment["spec"]["template"]["spec"];
        let container = containers(deployment).iter().find(|it| it["name"] == "controller");
        let container = container.or(containers(deployment).first())?;
        let setting = |flag: &str, variable: &str| setting(seen, container, flag, variable);
        let named = setting("controllers", "OCM_CONTROLLERS").unwrap_or_else(|| "application-status".to_owned());
        let mut promises: Vec<&'static Promise> = Vec::new();
        let mut unknown = Vec::new();
        for name in named.split(',').map(str::trim) {
            let mut of_it = PROMISES.iter().filter(|it| name == "*" || it.name == name).peekable();
            if of_it.peek().is_none() {
                unknown.push(name.to_owned());
            }
            for promise in of_it {
                if promises.iter().all(|other| !std::ptr::eq(*other, promise)) {
                    promises.push(promise);
                }
            }
        }
        Some(Self {
            account: pod["serviceAccountName"].as_str().unwrap_or("default").to_owned(),
            promises,
            unknown,
            shards: setting("shards", "OCM_SHARDS")
                .and_then(|it| it.parse().ok())
                .unwrap_or(1),
            elects: setting("leader-elect", "OCM_LEADER_ELECT").as_deref() != Some("false"),
            image: container["image"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// What it does, each once.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.promises.iter().map(|promise| promise.name).collect();
        names.dedup();
        names
    }

    /// Whether this is among what it does.
    pub(super) fn does(&self, name: &str) -> bool {
        self.promises.iter().any(|promise| promise.name == name)
    }
}

/// A setting, from where the program takes it: a flag, a variable of the container, or one of the ConfigMap.
fn setting(seen: &Seen, container: &Value, flag: &str, variable: &str) -> Option<String> {
    let words = items(&container["command"]).iter().chain(items(&container["args"]));
    let mut words = words.filter_map(Value::as_str);
    let flag = format!("--{flag}");
    while let Some(word) = words.next() {
        match word.strip_prefix(&flag) {
            Some("") => return words.next().map(str::to_owned),
            Some(rest) if rest.starts_with('=') => return Some(rest[1..].to_owned()),
            _ => {}
        }
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(of_container) = items(&container["env"]).iter().find(|it| it["name"] == variable) {
        return text(&of_container["value"]);
    }
    let takes_settings = |source: &Value| source["configMapRef"]["name"] == CONTROLLER;
    items(&container["envFrom"]).iter().find(|it| takes_settings(it))?;
    text(&seen.settings.there()?["data"][variable])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Look;
    use crate::doctor::shipped::{self, objects};
    use serde_json::json;

    fn companion(change: impl FnOnce(&mut Value), settings: Look<Value>) -> Companion {
        let mut deployment = objects(shipped::CONTROLLER.text).remove(0);
        change(&mut deployment["spec"]["template"]["spec"]["containers"][0]);
        let seen = Seen {
            deployments: Look::There(vec![deployment]),
            settings,
            ..Seen::default()
        };
        Companion::of(&seen).expect("it is installed")
    }

    #[test]
    fn it_does_what_it_is_told_where_it_is_told_first() {
        let shipped = companion(|_| (), Look::Absent);
        assert_eq!(shipped.names(), ["application-status"]);
        assert_eq!((shipped.shards, shipped.elects), (1, true));
        assert_eq!(shipped.account, "argocd-ocm-cmp-controller");

        let settings = || Look::There(objects(shipped::PULL.text).remove(0));
        let all = ["application-status", "pull", "application-set-report"];
        assert_eq!(companion(|_| (), settings()).names(), all);

        let env = json!([{"name": "OCM_CONTROLLERS", "value": "pull, more"}, {"name": "OCM_SHARDS", "value": "3"}]);
        let told = companion(|it| it["env"] = env.clone(), settings());
        assert_eq!(
            (told.names(), told.unknown, told.shards),
            (vec!["pull"], vec!["more".to_owned()], 3)
        );

        let words = json!(["--leader-elect=false", "--controllers", "gitopscluster"]);
        let told = companion(
            |it| {
                it["env"] = env;
                it["args"] = words;
            },
            settings(),
        );
        assert_eq!((told.names(), told.elects), (vec!["gitopscluster"], false));
    }
}
