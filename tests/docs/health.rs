//! Checks that docs/concepts.md names the kinds that have health rules.

use crate::page::pages;
use generate::health_rules::{find_kind_health, kinds};

#[test]
fn concepts_name_every_kind_with_rules() {
    let page = pages().into_iter().find(|page| page.path == "docs/concepts.md");
    let text = page.expect("a page").lines.join(" ");
    let custom = find_kind_health("example.com", "Thing", true).map(|kind_health| kind_health.rules);
    for (group, kind) in kinds() {
        let has_own_rules = find_kind_health(group, kind, false).map(|kind_health| kind_health.rules) != custom;
        let name = if kind == "CustomResourceDefinition" {
            "CRD"
        } else {
            kind
        };
        let is_named = [format!("{name}s"), format!("{name}es")]
            .iter()
            .any(|word| text.contains(word));
        assert!(!has_own_rules || is_named, "docs/concepts.md does not name {kind}");
    }
}
