//! Settings: the one place that knows every name a value can come by, and which one wins.
//!
//! A flag wins over a plugin parameter, that over an environment variable, that over the default. An empty text counts as
//! not given: Argo CD passes `""` for a plugin env whose variable is undefined.

use super::configure::Wanted;
use super::discover::Selection;
use super::glob::Glob;
use super::kinds::GroupKind;
use super::names::{self, ClusterName, WorkName};
use super::object::Object;
use super::policy::{Executor, Rules};
use super::problem::Problems;
use super::strategy::Strategy;
use super::{object, order};
use crate::cli::{GenerateArgs, Output};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

/// The environment, as a value.
pub type Env = BTreeMap<String, String>;

/// Everything `generate` needs to know besides the files.
#[derive(Debug)]
pub struct Settings {
    /// The folder that is wrapped.
    pub folder: PathBuf,
    /// The path of the folder in its repository as Argo CD tells it; empty when unknown.
    pub source_path: String,
    /// Which files of the folder are read.
    pub selection: Selection,
    /// The managed clusters, each once, in the order given; at least one.
    pub clusters: Vec<ClusterName>,
    /// The name of each work.
    pub name: WorkName,
    /// The namespace of namespaced objects that name none.
    pub namespace: Option<String>,
    /// Kinds that have no namespace, besides the built-in ones and those whose CRD is in the folder.
    pub cluster_scoped: Vec<GroupKind>,
    /// The resources of custom kinds, where a regular plural would be wrong.
    pub plurals: Vec<(GroupKind, String)>,
    /// Whether no manifests at all is a result and not an error.
    pub allow_empty: bool,
    /// Whether Secrets are delivered as they are.
    pub allow_secrets: bool,
    /// Whether the namespace of objects that name none is created.
    pub create_namespace: bool,
    /// What all works are to be like, as far as the Application says it.
    asked: Wanted,
    /// The file that says what each project may deliver.
    pub policy: Option<PathBuf>,
    /// The `AppProject`, as Argo CD tells it.
    pub project: Option<String>,
    /// The Application, as Argo CD tells it.
    application: Option<String>,
    /// The most bytes that objects take together in one work, besides one that is larger alone; `None` for no limit.
    pub work_size: Option<u64>,
    /// The most bytes a work may have, as OCM's webhook counts them; `None` for no limit.
    pub manifest_limit: Option<u64>,
    /// How to print.
    pub output: Output,
}

/// One setting: its names. The flag is `--<name>`, but for `clusters`, whose flag is `--cluster`.
#[derive(Debug)]
pub struct Setting {
    /// The flag without its dashes; also the plugin parameter, where there is one.
    pub name: &'static str,
    /// Whether an Application may set it as a plugin parameter.
    pub parameter: bool,
    /// Environment variables, the first that is set wins. A plugin env `X` of an Application arrives as `ARGOCD_ENV_X`.
    pub env: &'static [&'static str],
}

const CLUSTERS: Setting = of_applications("clusters", &["ARGOCD_ENV_TARGET_CLUSTER", "TARGET_CLUSTER"]);
const NAME: Setting = of_applications("name", &["ARGOCD_ENV_NAME", "ARGOCD_APP_NAME"]);
const NAMESPACE: Setting = of_applications("namespace", &["ARGOCD_ENV_NAMESPACE", "ARGOCD_APP_NAMESPACE"]);
const RECURSE: Setting = of_applications("recurse", &["ARGOCD_ENV_RECURSE"]);
const INCLUDE: Setting = of_applications("include", &["ARGOCD_ENV_INCLUDE"]);
const EXCLUDE: Setting = of_applications("exclude", &["ARGOCD_ENV_EXCLUDE"]);
const CLUSTER_SCOPED: Setting = of_applications("cluster-scoped", &["ARGOCD_ENV_CLUSTER_SCOPED"]);
const PLURALS: Setting = of_applications("plurals", &["ARGOCD_ENV_PLURALS"]);
const CREATE_NAMESPACE: Setting = of_applications("create-namespace", &["ARGOCD_ENV_CREATE_NAMESPACE"]);
const DELETE_NAMESPACES: Setting = of_applications("delete-namespaces", &["ARGOCD_ENV_DELETE_NAMESPACES"]);
const DELETE_CRDS: Setting = of_applications("delete-crds", &["ARGOCD_ENV_DELETE_CRDS"]);
const UPDATE_STRATEGY: Setting = of_applications("update-strategy", &["ARGOCD_ENV_UPDATE_STRATEGY"]);
const CONDITION_RULES: Setting = of_applications("condition-rules", &["ARGOCD_ENV_CONDITION_RULES"]);
const EXECUTOR: Setting = of_applications("executor", &["ARGOCD_ENV_EXECUTOR"]);
const ALLOW_SECRETS: Setting = of_applications("allow-secrets", &["ARGOCD_ENV_ALLOW_SECRETS"]);
const ALLOW_EMPTY: Setting = of_applications("allow-empty", &["ARGOCD_ENV_ALLOW_EMPTY"]);
/// Protects the repo-server, under the name that Argo CD has for it.
const MAX_SIZE: Setting = of_the_platform(
    "max-size",
    &["ARGOCD_REPO_SERVER_MAX_COMBINED_DIRECTORY_MANIFESTS_SIZE"],
);
/// Follows the `--manifestLimit` of OCM's webhook.
const MANIFEST_LIMIT: Setting = of_the_platform("manifest-limit", &["OCM_MANIFEST_LIMIT"]);
/// Where works are cut: not an Application's business, because another cut makes other works.
const WORK_SIZE: Setting = of_the_platform("work-size", &["OCM_WORK_SIZE"]);

const fn of_applications(name: &'static str, env: &'static [&'static str]) -> Setting {
    Setting {
        name,
        parameter: true,
        env,
    }
}

/// A setting that Applications cannot reach: their plugin env arrives with a prefix.
const fn of_the_platform(name: &'static str, env: &'static [&'static str]) -> Setting {
    Setting {
        name,
        parameter: false,
        env,
    }
}

/// What projects may deliver, out of reach of those it binds.
const POLICY: Setting = of_the_platform("policy", &["OCM_POLICY_FILE"]);

/// All settings, in the order of the documentation.
pub const SETTINGS: &[&Setting] = &[
    &CLUSTERS,
    &NAME,
    &NAMESPACE,
    &RECURSE,
    &INCLUDE,
    &EXCLUDE,
    &CLUSTER_SCOPED,
    &PLURALS,
    &CREATE_NAMESPACE,
    &DELETE_NAMESPACES,
    &DELETE_CRDS,
    &UPDATE_STRATEGY,
    &CONDITION_RULES,
    &EXECUTOR,
    &ALLOW_SECRETS,
    &ALLOW_EMPTY,
    &MAX_SIZE,
    &MANIFEST_LIMIT,
    &WORK_SIZE,
    &POLICY,
];

/// The default of Argo CD's `--max-combined-directory-manifests-size`.
const DEFAULT_MAX_SIZE: u64 = 10_000_000;

/// The default of `--manifestLimit` of OCM's work webhook: 500 KiB.
const DEFAULT_MANIFEST_LIMIT: u64 = 500 * 1024;

/// Leaves room for what a work says about its objects within what Argo CD can apply client-side, which is 262,144 bytes.
const DEFAULT_WORK_SIZE: u64 = 200_000;

impl Settings {
    /// Merges what was typed with the plugin parameters and the environment.
    ///
    /// # Errors
    /// With every setting that is missing or malformed, each named by where it came from.
    pub fn resolve(args: GenerateArgs, env: &Env) -> Result<Self, Problems> {
        let mut sources = Sources::new(env)?;
        let mut namespace = sources.text(&NAMESPACE, args.namespace, names::namespace);
        if namespace.is_none() && !sources.within_argo_cd() {
            // At a terminal it is kubectl's default. Argo CD has no such default and refuses objects without a namespace.
            namespace = Some("default".to_owned());
        }
        let mut clusters = Vec::new();
        for cluster in sources.list(&CLUSTERS, args.clusters, true, ClusterName::from_str) {
            if !clusters.contains(&cluster) {
                clusters.push(cluster);
            }
        }
        sources.need(
            clusters.is_empty(),
            "no target cluster: set the plugin env TARGET_CLUSTER or the parameter clusters of the Application, \
             or pass --cluster NAME",
        );
        let name = sources.text(&NAME, args.name, WorkName::from_str);
        sources.need(name.is_none(), "no name for the work: pass --name NAME");
        let selection = Selection {
            recurse: sources.flag(&RECURSE, args.recurse, true),
            include: sources.list(&INCLUDE, args.include, false, glob),
            exclude: sources.list(&EXCLUDE, args.exclude, false, glob),
            max_size: sources.limit(&MAX_SIZE, args.max_size, DEFAULT_MAX_SIZE),
        };
        let cluster_scoped = sources.list(&CLUSTER_SCOPED, args.cluster_scoped, true, GroupKind::from_str);
        let plurals = sources.list(&PLURALS, args.plurals, true, plural);
        let create_namespace = sources.flag(&CREATE_NAMESPACE, args.create_namespace, false);
        sources.need(
            create_namespace && namespace.is_none(),
            "create-namespace is set, but the Application has no destination namespace: set spec.destination.namespace",
        );
        let asked = Wanted {
            strategy: sources.text(&UPDATE_STRATEGY, args.update_strategy, Strategy::from_str),
            delete_namespaces: sources.flag(&DELETE_NAMESPACES, args.delete_namespaces, false),
            delete_crds: sources.flag(&DELETE_CRDS, args.delete_crds, false),
            condition_rules: sources.flag(&CONDITION_RULES, args.condition_rules, true),
            executor: sources.text(&EXECUTOR, args.executor, Executor::from_str),
        };
        let allow_secrets = sources.flag(&ALLOW_SECRETS, args.allow_secrets, false);
        let allow_empty = sources.flag(&ALLOW_EMPTY, args.allow_empty, false);
        let manifest_limit = sources.limit(&MANIFEST_LIMIT, args.manifest_limit, DEFAULT_MANIFEST_LIMIT);
        let work_size = sources.limit(&WORK_SIZE, args.work_size, DEFAULT_WORK_SIZE);
        let policy = sources.text(&POLICY, args.policy, |file| Ok::<_, String>(PathBuf::from(file)));
        let problems = std::mem::take(&mut sources.problems);
        let Some(name) = name else {
            return Err(Problems::or(problems, ()).expect_err("a missing name is a problem"));
        };
        Problems::or(
            problems,
            Self {
                folder: args.folder.unwrap_or_else(|| PathBuf::from(".")),
                source_path: env.get("ARGOCD_APP_SOURCE_PATH").cloned().unwrap_or_default(),
                selection,
                clusters,
                name,
                namespace,
                cluster_scoped,
                plurals,
                allow_empty,
                allow_secrets,
                create_namespace,
                asked,
                policy,
                project: env.get("ARGOCD_APP_PROJECT_NAME").cloned(),
                application: env.get("ARGOCD_APP_NAME").filter(|name| !name.is_empty()).cloned(),
                manifest_limit,
                work_size,
                output: args.output,
            },
        )
    }

    /// What all works are to be like.
    ///
    /// # Errors
    /// Under a policy: when the Application asks for another executor than the policy's, or for another name than its own.
    pub fn wanted(&self, rules: Option<Rules<'_>>) -> Result<Wanted, Problems> {
        let mut wanted = self.asked.clone();
        if let Some(rules) = rules {
            self.own_name()?;
            wanted.executor = rules.executor(wanted.executor)?;
        }
        Ok(wanted)
    }

    /// Whether the works are named after the Application. Under any other name they could be those of another project, which
    /// Argo CD would let this Application replace.
    fn own_name(&self) -> Result<(), Problems> {
        let own = self.application.as_deref().map(WorkName::from_str);
        match own {
            Some(Ok(own)) if own != self.name => Err(Problems::one(format!(
                "name {}: under a policy the works of an Application are named after it, here {own}, because others could \
                 belong to another project: leave the setting out",
                self.name
            ))),
            _ => Ok(()),
        }
    }

    /// The most bytes that objects may take together in one work.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let limit = |bytes: Option<u64>| bytes.unwrap_or(u64::MAX);
        limit(self.work_size).min(limit(self.manifest_limit))
    }

    /// The Namespace that is to be created, unless it is among `objects`.
    #[must_use]
    pub fn created_namespace(&self, objects: &[Object]) -> Option<Object> {
        let name = self.namespace.as_deref().filter(|_| self.create_namespace)?;
        let given = |object: &Object| order::is_namespace(object) && &*object.key.name == name;
        (!objects.is_empty() && !objects.iter().any(given)).then(|| object::namespace(name))
    }
}

/// A kind and its resource.
fn plural(text: &str) -> Result<(GroupKind, String), String> {
    match text.split_once('=') {
        Some((kind, plural)) if names::is_dns_subdomain(plural) => Ok((kind.parse()?, plural.to_owned())),
        _ => Err(format!(
            "{text:?} is not a plural: write it like Mouse.example.com=mice"
        )),
    }
}

fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

fn glob(text: &str) -> Result<Glob, String> {
    Glob::new(text).map_err(|error| format!("{text:?} is not a glob: {error}"))
}

/// A number of bytes as a Kubernetes quantity, in the forms people use for sizes: `500k`, `10M`, `20Mi`, `1G`, or plain.
fn quantity(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: Option<u64> = match unit {
        "" => Some(1),
        "k" => Some(1000),
        "Ki" => Some(1 << 10),
        "M" => Some(1_000_000),
        "Mi" => Some(1 << 20),
        "G" => Some(1_000_000_000),
        "Gi" => Some(1 << 30),
        _ => None,
    };
    let number: Option<u64> = number.parse().ok();
    factor
        .zip(number)
        .and_then(|(factor, number)| number.checked_mul(factor))
        .ok_or_else(|| format!("{text:?} is not a size: write it like 500k, 10M or 20Mi"))
}

/// A plugin parameter as Argo CD passes it: which of the three is set depends on how the Application wrote it.
#[derive(Debug, serde::Deserialize)]
struct Parameter {
    name: String,
    string: Option<String>,
    array: Option<Vec<String>>,
    map: Option<BTreeMap<String, String>>,
}

/// Where values come from, and what was found wrong with them so far.
struct Sources<'a> {
    parameters: BTreeMap<String, Parameter>,
    env: &'a Env,
    problems: Vec<String>,
}

impl<'a> Sources<'a> {
    fn new(env: &'a Env) -> Result<Self, Problems> {
        // Unset without a plugin section, `null` without parameters: both mean none.
        let text = env.get("ARGOCD_APP_PARAMETERS").map_or("", |text| text.trim());
        let given: Option<Vec<Parameter>> = if text.is_empty() {
            None
        } else {
            serde_json::from_str(text).map_err(|error| {
                Problems::one(format!(
                    "ARGOCD_APP_PARAMETERS is not a list of plugin parameters: {error}"
                ))
            })?
        };
        let mut sources = Self {
            parameters: BTreeMap::new(),
            env,
            problems: Vec::new(),
        };
        for parameter in given.unwrap_or_default() {
            let known = |setting: &&&Setting| setting.parameter && setting.name == parameter.name;
            if SETTINGS.iter().any(|setting| known(&setting)) {
                sources.parameters.insert(parameter.name.clone(), parameter);
            } else {
                let names: Vec<_> = SETTINGS
                    .iter()
                    .filter(|setting| setting.parameter)
                    .map(|setting| setting.name)
                    .collect();
                sources.problems.push(format!(
                    "parameter {} is not known: the parameters are {}",
                    parameter.name,
                    names.join(", ")
                ));
            }
        }
        Ok(sources)
    }

    /// Whether argocd-cmp-server started us: it always says which Application it is for.
    fn within_argo_cd(&self) -> bool {
        self.env.get("ARGOCD_APP_NAME").is_some_and(|name| !name.is_empty())
    }

    fn need(&mut self, missing: bool, line: &str) {
        // A value that was given and refused is already a problem: that it is missing as well would only confuse.
        if missing && self.problems.is_empty() {
            self.problems.push(line.to_owned());
        }
    }

    /// A setting that has one value.
    fn text<T, E: Display>(
        &mut self,
        setting: &Setting,
        flag: Option<String>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.list(setting, flag.into_iter().collect(), false, parse).pop()
    }

    /// A setting that is true or false.
    fn flag(&mut self, setting: &Setting, flag: Option<String>, default: bool) -> bool {
        self.text(setting, flag, boolean).unwrap_or(default)
    }

    /// A setting that is a number of bytes, of which 0 is no limit.
    fn limit(&mut self, setting: &Setting, flag: Option<String>, default: u64) -> Option<u64> {
        let bytes = self.text(setting, flag, quantity).unwrap_or(default);
        Some(bytes).filter(|&bytes| bytes > 0)
    }

    /// A setting that has several values; `commas` says whether one text can hold several.
    fn list<T, E: Display>(
        &mut self,
        setting: &Setting,
        flags: Vec<String>,
        commas: bool,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let (origin, texts) = self.first_given(setting, flags);
        let mut values = Vec::new();
        for text in &texts {
            let parts: Vec<&str> = if commas {
                text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
            } else {
                vec![text.as_str()]
            };
            for part in parts {
                match parse(part) {
                    Ok(value) => values.push(value),
                    Err(error) => self.problems.push(format!("{origin}: {error}")),
                }
            }
        }
        values
    }

    /// The texts of the source that wins, and what to call it.
    fn first_given(&mut self, setting: &Setting, flags: Vec<String>) -> (String, Vec<String>) {
        let given =
            |texts: Vec<String>| -> Vec<String> { texts.into_iter().filter(|text| !text.trim().is_empty()).collect() };
        let flags = given(flags);
        if !flags.is_empty() {
            return (format!("--{}", setting.flag()), flags);
        }
        if let Some(parameter) = self.parameters.get(setting.name) {
            let origin = format!("parameter {}", setting.name);
            if parameter.map.as_ref().is_some_and(|map| !map.is_empty()) {
                self.problems
                    .push(format!("{origin}: it is a map, give it as string or array"));
                return (origin, Vec::new());
            }
            let texts = parameter.array.clone().unwrap_or_default();
            let texts = given(texts.into_iter().chain(parameter.string.clone()).collect());
            if !texts.is_empty() {
                return (origin, texts);
            }
        }
        for variable in setting.env {
            let texts = given(self.env.get(*variable).cloned().into_iter().collect());
            if !texts.is_empty() {
                // The name the user wrote: argocd-cmp-server adds the prefix.
                let origin = match variable.strip_prefix("ARGOCD_ENV_") {
                    Some(name) => format!("plugin env {name}"),
                    None => format!("env {variable}"),
                };
                return (origin, texts);
            }
        }
        (String::new(), Vec::new())
    }
}

impl Setting {
    /// The flag, without its dashes.
    #[must_use]
    pub fn flag(&self) -> &'static str {
        if self.name == CLUSTERS.name {
            "cluster"
        } else {
            self.name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::policy::Policy;

    fn resolve(args: GenerateArgs, env: &[(&str, &str)]) -> Result<Settings, String> {
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Settings::resolve(args, &env).map_err(|problems| problems.to_string())
    }

    fn clusters(settings: &Settings) -> Vec<String> {
        settings.clusters.iter().map(ToString::to_string).collect()
    }

    const PLUGIN: &[(&str, &str)] = &[
        ("ARGOCD_APP_NAME", "guestbook"),
        ("ARGOCD_APP_NAMESPACE", "shop"),
        ("ARGOCD_ENV_TARGET_CLUSTER", "cluster1, cluster2,cluster1"),
    ];

    fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        PLUGIN.iter().chain(more).copied().collect()
    }

    #[test]
    fn the_plugins_environment_is_enough() {
        let settings = resolve(GenerateArgs::default(), PLUGIN).unwrap();
        assert_eq!(clusters(&settings), ["cluster1", "cluster2"]);
        assert_eq!(settings.name.to_string(), "guestbook");
        assert_eq!(settings.namespace.as_deref(), Some("shop"));
        assert!(settings.selection.recurse);
        assert_eq!(settings.selection.max_size, Some(10_000_000));
        assert_eq!(settings.manifest_limit, Some(512_000));
    }

    #[test]
    fn a_parameter_wins_over_env_and_a_flag_over_both() {
        let env = with(&[(
            "ARGOCD_APP_PARAMETERS",
            r#"[{"name":"clusters","array":["a","b"]},{"name":"recurse","string":"false"}]"#,
        )]);
        let settings = resolve(GenerateArgs::default(), &env).unwrap();
        assert_eq!(clusters(&settings), ["a", "b"]);
        assert!(!settings.selection.recurse);
        let args = GenerateArgs {
            clusters: vec!["c".to_owned()],
            recurse: Some("true".to_owned()),
            ..GenerateArgs::default()
        };
        let settings = resolve(args, &env).unwrap();
        assert_eq!(clusters(&settings), ["c"]);
        assert!(settings.selection.recurse);
    }

    #[test]
    fn parameters_may_be_absent_in_every_way_argo_cd_knows() {
        for none in ["", "null", "[]", r#"[{"name":"include","string":""}]"#] {
            let env = with(&[("ARGOCD_APP_PARAMETERS", none)]);
            let settings = resolve(GenerateArgs::default(), &env).unwrap();
            assert!(settings.selection.include.is_empty(), "{none}");
        }
    }

    #[test]
    fn the_namespace_is_kubectls_default_only_outside_argo_cd() {
        let args = || GenerateArgs {
            clusters: vec!["c".to_owned()],
            name: Some("web".to_owned()),
            ..GenerateArgs::default()
        };
        let settings = resolve(args(), &[]).unwrap();
        assert_eq!(settings.namespace.as_deref(), Some("default"));
        let settings = resolve(args(), &[("ARGOCD_APP_NAME", "web"), ("ARGOCD_APP_NAMESPACE", "")]).unwrap();
        assert_eq!(settings.namespace, None);
    }

    #[test]
    fn everything_wrong_is_told_at_once_by_the_name_the_user_knows() {
        let env = [
            ("ARGOCD_APP_NAME", "guestbook"),
            ("ARGOCD_ENV_TARGET_CLUSTER", "Cluster_1"),
            (
                "ARGOCD_APP_PARAMETERS",
                r#"[{"name":"colour","string":"red"},{"name":"include","string":"[a"},{"name":"recurse","string":"yes"},{"name":"exclude","map":{"a":"b"}}]"#,
            ),
        ];
        let args = GenerateArgs {
            max_size: Some("10MB".to_owned()),
            ..GenerateArgs::default()
        };
        let told = resolve(args, &env).unwrap_err();
        assert_eq!(
            told,
            "error: parameter colour is not known: the parameters are clusters, name, namespace, recurse, include, exclude, cluster-scoped, plurals, create-namespace, delete-namespaces, delete-crds, update-strategy, condition-rules, executor, allow-secrets, allow-empty\n\
             error: plugin env TARGET_CLUSTER: \"Cluster_1\" is not a managed cluster name: use at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit\n\
             error: parameter recurse: \"yes\" is neither true nor false\n\
             error: parameter include: \"[a\" is not a glob: a '[' is not closed by ']'\n\
             error: parameter exclude: it is a map, give it as string or array\n\
             error: --max-size: \"10MB\" is not a size: write it like 500k, 10M or 20Mi\n"
        );
    }

    #[test]
    fn without_a_cluster_the_way_out_is_told() {
        let told = resolve(GenerateArgs::default(), &[("ARGOCD_APP_NAME", "guestbook")]).unwrap_err();
        assert!(
            told.starts_with("error: no target cluster: set the plugin env TARGET_CLUSTER"),
            "{told}"
        );
    }

    #[test]
    fn under_a_policy_works_are_named_after_the_application() {
        let text = "{apiVersion: argocd-ocm-cmp.github.io/v1, kind: Policy, projects: [{names: [shop]}]}";
        let policy = Policy::parse(text, "policy.yaml").unwrap();
        let rules = policy.rules_for(Some("shop")).unwrap();
        let told = |rules, env: &[(&str, &str)]| {
            let wanted = resolve(GenerateArgs::default(), env).unwrap().wanted(rules);
            wanted.map_or_else(|problems| problems.to_string(), |_| String::new())
        };
        let foreign = "error: name other: under a policy the works of an Application are named after it, here guestbook, because \
                       others could belong to another project: leave the setting out\n";
        let parameter = r#"[{"name":"name","string":"other"}]"#;
        for (env, wanted) in [
            (with(&[]), ""),
            (with(&[("ARGOCD_ENV_NAME", "guestbook")]), ""),
            (with(&[("ARGOCD_ENV_NAME", "other")]), foreign),
            (with(&[("ARGOCD_APP_PARAMETERS", parameter)]), foreign),
        ] {
            assert_eq!(told(Some(rules), &env), wanted, "{env:?}");
            assert_eq!(told(None, &env), "", "without a policy: {env:?}");
        }
        // An Application outside Argo CD's namespace has a work name that is made of both.
        let elsewhere = ("ARGOCD_APP_NAME", "team-a_guestbook");
        assert_eq!(told(Some(rules), &with(&[elsewhere])), "");
    }

    #[test]
    fn sizes_are_quantities() {
        assert_eq!(quantity("10M"), Ok(10_000_000));
        assert_eq!(quantity("1Ki"), Ok(1024));
        assert_eq!(quantity("7"), Ok(7));
        for bad in ["", "M", "-1", "1.5M", "99999999999999999999", "99999999999G"] {
            assert!(quantity(bad).is_err(), "{bad}");
        }
    }
}
