//! Checks the tables of docs/settings.md, which are generated from the settings.

use crate::generated::compare_parts;
use generate::settings::SETTINGS;

#[test]
fn page_lists_every_setting() {
    let mut of_applications = "| Setting | Default | Meaning |\n|---|---|---|\n".to_owned();
    let mut of_the_platform = "| Setting | Environment | Default | Meaning |\n|---|---|---|---|\n".to_owned();
    for setting in SETTINGS {
        let (name, default, about) = (setting.name, setting.default, setting.about);
        if setting.parameter {
            of_applications += &format!("| `{name}` | {default} | {about} |\n");
        } else {
            let variables: Vec<String> = setting.variables().map(|it| format!("`{it}`")).collect();
            let variables = variables.join(", ");
            of_the_platform += &format!("| `{name}` | {variables} | {default} | {about} |\n");
        }
    }
    compare_parts("docs/settings.md", &[of_applications, of_the_platform]);
}
