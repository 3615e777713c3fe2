//! Sources of setting values, in order of precedence: flag, plugin parameter, environment variable, default. An empty text counts
//! as unset: Argo CD passes `""` for a plugin environment variable whose variable is undefined.

use super::parameter_announcements::Shape;
use super::table::{SETTINGS, Setting, ValueType};
use super::values;
use super::{Env, FlagValues};
use crate::similar::similar;
use crate::source::FolderKind;
use manifest::problem::Problems;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr as _;

/// A plugin parameter as Argo CD passes it; the Application determines which of the three fields is set.
#[derive(Debug, serde::Deserialize)]
struct PluginParameter {
    name: String,
    string: Option<String>,
    array: Option<Vec<String>>,
    map: Option<BTreeMap<String, String>>,
}

/// All given values, and the problems found so far.
pub(super) struct Sources<'a> {
    flags: &'a FlagValues,
    parameters: BTreeMap<String, PluginParameter>,
    env: &'a Env,
    pub(super) problems: Vec<String>,
}

/// The kinds of sources, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SourceKind {
    Flag,
    /// A plugin parameter of the Application.
    Parameter,
    /// A plugin environment variable of the Application.
    PluginEnv,
    /// A variable of the sidecar, which is the same for all Applications.
    Env,
    Default,
}

struct GivenValue {
    kind: SourceKind,
    /// The name of the source, for messages.
    origin: String,
    /// The texts, one or several; none is blank.
    texts: Vec<String>,
    /// True if each text is one map entry, whatever it contains.
    entries: bool,
}

impl<'a> Sources<'a> {
    /// Collects the given values, and parses the plugin parameters.
    pub(super) fn new(flags: &'a FlagValues, env: &'a Env) -> Result<Self, Problems> {
        // Unset without a plugin section, `null` without parameters: both mean none.
        let text = env.get("ARGOCD_APP_PARAMETERS").map_or("", |text| text.trim());
        let given: Option<Vec<PluginParameter>> = if text.is_empty() {
            None
        } else {
            serde_json::from_str(text).map_err(|error| {
                Problems::one(format!(
                    "ARGOCD_APP_PARAMETERS is not a list of plugin parameters: {error}"
                ))
            })?
        };
        let mut sources = Self {
            flags,
            parameters: BTreeMap::new(),
            env,
            problems: Vec::new(),
        };
        let names = SETTINGS.iter().filter(|setting| setting.parameter);
        let names: Vec<_> = names.map(|setting| setting.name).collect();
        for parameter in given.unwrap_or_default() {
            if names.contains(&parameter.name.as_str()) {
                let name = parameter.name.clone();
                if sources.parameters.insert(name.clone(), parameter).is_some() {
                    let line = format!("parameter {name} is given twice: keep one");
                    sources.problems.push(line);
                }
            } else {
                let meant = similar(&parameter.name, names.iter().copied())
                    .map_or_else(String::new, |meant| format!("did you mean {meant}? "));
                sources.problems.push(format!(
                    "unknown parameter {}: {meant}the parameters are {}",
                    parameter.name,
                    names.join(", ")
                ));
            }
        }
        Ok(sources)
    }

    /// Returns true if argocd-cmp-server started this process: it always passes the name of the Application.
    pub(super) fn within_argo_cd(&self) -> bool {
        self.env.get("ARGOCD_APP_NAME").is_some_and(|name| !name.is_empty())
    }

    /// Reports a missing setting. A malformed value of it is already reported, and is not missing.
    pub(super) fn need(&mut self, setting: &Setting, missing: bool, line: &str) {
        if missing && self.origin(setting).is_none() {
            self.problems.push(line.to_owned());
        }
    }

    /// Returns the name of the source of a setting; `None` if the setting is unset.
    pub(super) fn origin(&mut self, setting: &Setting) -> Option<String> {
        self.first_given(setting).map(|given| given.origin)
    }

    /// Returns the name of the source of the first setting of a group that the Application sets, or the command line.
    pub(super) fn origin_of_group(&mut self, is_in_group: impl Fn(&Setting) -> bool) -> Option<String> {
        let group = SETTINGS
            .iter()
            .filter(|setting| setting.parameter && is_in_group(setting));
        let mut given = group.filter_map(|setting| self.first_given(setting));
        let given = given.find(|given| given.kind < SourceKind::Env);
        given.map(|given| given.origin)
    }

    /// Returns the name of the source of the first setting that applies only to folders of this type.
    pub(super) fn origin_for_folders(&mut self, kind: FolderKind) -> Option<String> {
        self.origin_of_group(|setting| setting.folder_kind() == Some(kind))
    }

    pub(super) fn kind(&mut self, setting: &Setting) -> SourceKind {
        self.first_given(setting)
            .map_or(SourceKind::Default, |given| given.kind)
    }

    /// Returns the name of the source that sets a setting to an empty text.
    pub(super) fn set_but_empty(&self, setting: &Setting) -> Option<String> {
        let is_blank = |text: &String| text.trim().is_empty();
        if self.flags.get(setting).iter().any(is_blank) {
            return Some(format!("--{}", setting.name));
        }
        let mut variables = setting.variables();
        let variable = variables.find(|variable| self.env.get(&**variable).is_some_and(is_blank))?;
        Some(format!("env {variable}"))
    }

    pub(super) fn texts(&mut self, setting: &Setting) -> Vec<String> {
        self.first_given(setting).map_or_else(Vec::new, |given| given.texts)
    }

    /// Returns the shapes in which the Application wrote a parameter, without empty ones.
    pub(super) fn shapes(&self, setting: &Setting) -> Vec<Shape> {
        let Some(PluginParameter { string, array, map, .. }) = self.parameters.get(setting.name) else {
            return Vec::new();
        };
        let text = string.as_ref().filter(|text| !text.trim().is_empty());
        let list = array.as_ref().filter(|list| !list.is_empty());
        let map = map.as_ref().filter(|map| !map.is_empty());
        let shapes = [
            text.map(|_| Shape::Text),
            list.map(|_| Shape::List),
            map.map(|_| Shape::Map),
        ];
        shapes.into_iter().flatten().collect()
    }

    pub(super) fn read_optional<T, E: Display>(
        &mut self,
        setting: &Setting,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.list(setting, false, parse).pop()
    }

    /// Returns a setting with one arbitrary text.
    pub(super) fn any_text(&mut self, setting: &Setting) -> Option<String> {
        self.read_optional(setting, String::from_str)
    }

    /// Returns a setting with one value, or the default that the table has for it.
    pub(super) fn read_or_default<T, E: Display>(
        &mut self,
        setting: &Setting,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> T {
        let default = || parse(setting.default_value()?).ok();
        let given = self.read_optional(setting, &parse);
        given.or_else(default).expect("the default in the table is a value")
    }

    pub(super) fn flag(&mut self, setting: &Setting) -> bool {
        self.read_or_default(setting, values::boolean)
    }

    /// Returns a setting in bytes; 0 means no limit.
    pub(super) fn limit(&mut self, setting: &Setting) -> Option<u64> {
        Some(self.read_or_default(setting, values::quantity)).filter(|&bytes| bytes > 0)
    }

    /// Returns a setting with several values; with `commas`, one text may contain several.
    pub(super) fn list<T, E: Display>(
        &mut self,
        setting: &Setting,
        commas: bool,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let mut values = Vec::new();
        let Some(GivenValue { origin, texts, .. }) = self.first_given(setting) else {
            return values;
        };
        for part in texts.iter().flat_map(|text| parts(text, commas)) {
            match parse(part) {
                Ok(value) => values.push(value),
                Err(error) => self.problems.push(format!("{origin}: {error}")),
            }
        }
        values
    }

    /// Returns a setting with several values by key, in the order of the keys. Each line of a text may contain one, and with `commas`
    /// several.
    pub(super) fn map<K: Ord, E: Display>(
        &mut self,
        setting: &Setting,
        commas: bool,
        parse_key: impl Fn(&str) -> Result<K, E>,
    ) -> BTreeMap<K, String> {
        let mut values = BTreeMap::new();
        let Some(GivenValue {
            origin, texts, entries, ..
        }) = self.first_given(setting)
        else {
            return values;
        };
        let texts = texts.iter().flat_map(|text| {
            if entries {
                vec![text.as_str()]
            } else if commas {
                text.lines().flat_map(|line| parts(line, true)).collect()
            } else {
                text.lines().collect()
            }
        });
        for text in texts {
            let Some((key, value)) = text.split_once('=') else {
                self.problems
                    .push(format!("{origin}: {text:?} is not of the form KEY=VALUE"));
                continue;
            };
            match parse_key(key.trim()) {
                Ok(parsed) => {
                    if values.insert(parsed, value.to_owned()).is_some() {
                        let line = format!("{origin}: {} is given twice: keep one", key.trim());
                        self.problems.push(line);
                    }
                }
                Err(error) => self.problems.push(format!("{origin}: {error}")),
            }
        }
        values
    }

    /// Returns the texts from the source that wins, and its name.
    fn first_given(&mut self, setting: &Setting) -> Option<GivenValue> {
        let given = |kind: SourceKind, origin: String, texts: Vec<String>| -> Option<GivenValue> {
            let texts: Vec<String> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
            (!texts.is_empty()).then_some(GivenValue {
                kind,
                origin,
                texts,
                entries: false,
            })
        };
        let flags = self.flags.get(setting).to_vec();
        let flag = given(SourceKind::Flag, format!("--{}", setting.name), flags);
        if flag.is_some() {
            return flag;
        }
        if let Some(parameter) = self.parameters.get(setting.name) {
            let origin = format!("parameter {}", setting.name);
            let map = parameter.map.iter().flatten();
            let mut texts: Vec<String> = map.map(|(key, value)| format!("{key}={value}")).collect();
            let entries = !texts.is_empty();
            if !texts.is_empty() && !matches!(setting.value_type, ValueType::Map(_)) {
                let line = format!("{origin}: it is a map: pass a string or an array");
                if !self.problems.contains(&line) {
                    self.problems.push(line);
                }
                texts.clear();
            }
            texts.extend(parameter.array.iter().flatten().cloned());
            texts.extend(parameter.string.clone());
            if let Some(given) = given(SourceKind::Parameter, origin, texts) {
                return Some(GivenValue { entries, ..given });
            }
        }
        setting.variables().find_map(|variable| {
            // The name without the prefix that argocd-cmp-server adds.
            let (kind, origin) = match variable.strip_prefix("ARGOCD_ENV_") {
                Some(name) => (SourceKind::PluginEnv, format!("plugin env {name}")),
                None => (SourceKind::Env, format!("env {variable}")),
            };
            let value = self.env.get(&*variable).cloned();
            given(kind, origin, value.into_iter().collect())
        })
    }
}

fn parts(text: &str, commas: bool) -> Vec<&str> {
    if commas {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
    } else {
        vec![text]
    }
}
