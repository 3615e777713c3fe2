//! Checks the tables of docs/settings.md, which are generated from the settings.

use crate::generated::compare_parts;
use generate::settings::SETTINGS;
use std::fmt::Write as _;

#[test]
fn page_lists_every_setting() {
    let mut of_applications = "| Setting | Default | Meaning |\n|---|---|---|\n".to_owned();
    let mut of_the_platform = "| Setting | Environment | Default | Meaning |\n|---|---|---|---|\n".to_owned();
    for setting in SETTINGS {
        let (name, default, about) = (setting.name, setting.default, setting.about);
        if setting.parameter {
            writeln!(of_applications, "| `{name}` | {default} | {about} |").expect("writing to a String never fails");
        } else {
            let variables: Vec<String> = setting.variables().map(|variable| format!("`{variable}`")).collect();
            let variables = variables.join(", ");
            writeln!(of_the_platform, "| `{name}` | {variables} | {default} | {about} |")
                .expect("writing to a String never fails");
        }
    }
    compare_parts("docs/settings.md", &[of_applications, of_the_platform]);
}
