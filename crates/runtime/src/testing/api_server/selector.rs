//! Label selectors and field selectors.

use serde_json::Value;

/// Returns true if an object matches these label and field selectors: `a=b`, `a!=b` and `a`, separated by commas.
pub fn selects(labels: &str, fields: &str, object: &Value) -> bool {
    let label = |key: &str| object["metadata"]["labels"][key].as_str();
    let field = |path: &str| path.split('.').fold(object, |at, key| &at[key]).as_str();
    holds(labels, label) && holds(fields, field)
}

fn holds<'o>(selector: &str, value: impl Fn(&str) -> Option<&'o str>) -> bool {
    let mut all = selector.split(',').filter(|term| !term.is_empty());
    all.all(|requirement| {
        if let Some((key, unwanted)) = requirement.split_once("!=") {
            return value(key) != Some(unwanted);
        }
        match requirement.split_once('=') {
            Some((key, desired)) => value(key) == Some(desired),
            None => value(requirement).is_some(),
        }
    })
}
