//! Where the value of a setting comes from, and which wins: a flag over a plugin parameter, that over an environment variable,
//! that over the default. An empty text counts as not given: Argo CD passes `""` for a plugin env whose variable is undefined.

use super::announce::Shape;
use super::table::{Form, SETTINGS, Setting};
use super::values;
use super::{Env, Given};
use crate::generate::problem::Problems;
use std::collections::BTreeMap;
use std::fmt::Display;

/// A plugin parameter as Argo CD passes it: which of the three is set depends on how the Application wrote it.
#[derive(Debug, serde::Deserialize)]
struct Parameter {
    name: String,
    string: Option<String>,
    array: Option<Vec<String>>,
    map: Option<BTreeMap<String, String>>,
}

/// Everything that was given, and what was found wrong with it so far.
pub(super) struct Sources<'a> {
    flags: &'a Given,
    parameters: BTreeMap<String, Parameter>,
    env: &'a Env,
    pub(super) problems: Vec<String>,
}

/// What was given for one setting.
struct Found {
    /// Where, in the words of those who gave it.
    origin: String,
    /// One text, or several; none of them blank.
    texts: Vec<String>,
    /// Whether each is one entry of a map, whatever is in it.
    entries: bool,
}

impl<'a> Sources<'a> {
    /// # Errors
    /// When the plugin parameters cannot be read.
    pub(super) fn new(flags: &'a Given, env: &'a Env) -> Result<Self, Problems> {
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
            flags,
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
    pub(super) fn within_argo_cd(&self) -> bool {
        self.env.get("ARGOCD_APP_NAME").is_some_and(|name| !name.is_empty())
    }

    pub(super) fn need(&mut self, missing: bool, line: &str) {
        // A value that was given and refused is already a problem: that it is missing as well would only confuse.
        if missing && self.problems.is_empty() {
            self.problems.push(line.to_owned());
        }
    }

    /// Where a setting comes from that was given; `None` for one that was not.
    pub(super) fn origin(&mut self, setting: &Setting) -> Option<String> {
        let given = self.first_given(setting);
        (!given.texts.is_empty()).then_some(given.origin)
    }

    /// Returns where a setting comes from that was given as an empty text.
    pub(super) fn set_but_empty(&self, setting: &Setting) -> Option<String> {
        let is_blank = |text: &String| text.trim().is_empty();
        if self.flags.of(setting).iter().any(is_blank) {
            return Some(format!("--{}", setting.name));
        }
        let mut variables = setting.variables();
        let variable = variables.find(|variable| self.env.get(&**variable).is_some_and(is_blank))?;
        Some(format!("env {variable}"))
    }

    /// What was given for a setting, as it was written.
    pub(super) fn texts(&mut self, setting: &Setting) -> Vec<String> {
        self.first_given(setting).texts
    }

    /// How the Application has written a parameter, with something in it.
    pub(super) fn shapes(&self, setting: &Setting) -> Vec<Shape> {
        let parameter = self.parameters.get(setting.name);
        let written = parameter.map(|parameter| {
            [
                (
                    parameter.string.as_ref().is_some_and(|text| !text.trim().is_empty()),
                    Shape::Text,
                ),
                (
                    parameter.array.as_ref().is_some_and(|list| !list.is_empty()),
                    Shape::List,
                ),
                (parameter.map.as_ref().is_some_and(|map| !map.is_empty()), Shape::Map),
            ]
        });
        let written = written.into_iter().flatten().filter(|(written, _)| *written);
        written.map(|(_, shape)| shape).collect()
    }

    /// A setting that has one value.
    pub(super) fn text<T, E: Display>(&mut self, setting: &Setting, parse: impl Fn(&str) -> Result<T, E>) -> Option<T> {
        self.list(setting, false, parse).pop()
    }

    /// A setting that has one value, which can be any text.
    pub(super) fn any_text(&mut self, setting: &Setting) -> Option<String> {
        self.text(setting, |text| Ok::<_, String>(text.to_owned()))
    }

    /// A setting that is true or false.
    pub(super) fn flag(&mut self, setting: &Setting, default: bool) -> bool {
        self.text(setting, values::boolean).unwrap_or(default)
    }

    /// A setting that is a number of bytes, of which 0 is no limit.
    pub(super) fn limit(&mut self, setting: &Setting, default: u64) -> Option<u64> {
        let bytes = self.text(setting, values::quantity).unwrap_or(default);
        Some(bytes).filter(|&bytes| bytes > 0)
    }

    /// A setting that has several values; `commas` says whether one text can hold several.
    pub(super) fn list<T, E: Display>(
        &mut self,
        setting: &Setting,
        commas: bool,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let Found { origin, texts, .. } = self.first_given(setting);
        let mut values = Vec::new();
        for part in texts.iter().flat_map(|text| parts(text, commas)) {
            match parse(part) {
                Ok(value) => values.push(value),
                Err(error) => self.problems.push(format!("{origin}: {error}")),
            }
        }
        values
    }

    /// A setting that has several values, each by a key, in the order of the keys. `commas` says whether one text can hold
    /// several; else each line of it can hold one.
    pub(super) fn map<K: Ord, E: Display>(
        &mut self,
        setting: &Setting,
        commas: bool,
        parse_key: impl Fn(&str) -> Result<K, E>,
    ) -> BTreeMap<K, String> {
        let Found { origin, texts, entries } = self.first_given(setting);
        let mut values = BTreeMap::new();
        let texts = texts.iter().flat_map(|text| {
            if entries {
                vec![text.as_str()]
            } else if commas {
                parts(text, true)
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
                Ok(key) => {
                    values.insert(key, value.to_owned());
                }
                Err(error) => self.problems.push(format!("{origin}: {error}")),
            }
        }
        values
    }

    /// The texts of the source that wins, and what to call it.
    fn first_given(&mut self, setting: &Setting) -> Found {
        let given = |origin: String, texts: Vec<String>| -> Option<Found> {
            let texts: Vec<String> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
            (!texts.is_empty()).then_some(Found {
                origin,
                texts,
                entries: false,
            })
        };
        let flags = self.flags.of(setting).to_vec();
        if let Some(given) = given(format!("--{}", setting.name), flags) {
            return given;
        }
        if let Some(parameter) = self.parameters.get(setting.name) {
            let origin = format!("parameter {}", setting.name);
            let map = parameter.map.iter().flatten();
            let mut texts: Vec<String> = map.map(|(key, value)| format!("{key}={value}")).collect();
            let entries = !texts.is_empty();
            if !texts.is_empty() && !matches!(setting.form, Form::Map(_)) {
                let line = format!("{origin}: it is a map, give it as string or array");
                if !self.problems.contains(&line) {
                    self.problems.push(line);
                }
                texts.clear();
            }
            texts.extend(parameter.array.iter().flatten().cloned());
            texts.extend(parameter.string.clone());
            if let Some(given) = given(origin, texts) {
                return Found { entries, ..given };
            }
        }
        for variable in setting.variables() {
            // The name the user wrote: argocd-cmp-server adds the prefix.
            let origin = match variable.strip_prefix("ARGOCD_ENV_") {
                Some(name) => format!("plugin env {name}"),
                None => format!("env {variable}"),
            };
            let value = self.env.get(&*variable).cloned();
            if let Some(given) = given(origin, value.into_iter().collect()) {
                return given;
            }
        }
        Found {
            origin: String::new(),
            texts: Vec::new(),
            entries: false,
        }
    }
}

fn parts(text: &str, commas: bool) -> Vec<&str> {
    if commas {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
    } else {
        vec![text]
    }
}
