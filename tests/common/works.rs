//! Shortens printed works to the parts that most tests compare.

/// Returns printed works, as YAML or JSON, with `…` for each list of `manifestConfigs`: it is long, depends only on the kinds and
/// has its own tests.
pub(crate) fn without_configs(works: &str) -> String {
    let mut shortened = String::new();
    let mut within = false;
    for line in works.split_inclusive('\n') {
        let json = line.split_once(r#""manifestConfigs":["#);
        if let Some((before, after)) =
            json.and_then(|(before, rest)| Some((before, rest.split_once(r#"],"workload":{"#)?.1)))
        {
            shortened.extend([before, r#""manifestConfigs":["…"],"workload":{"#, after]);
            continue;
        }
        if line == "  manifestConfigs:\n" {
            within = true;
            shortened.push_str("  manifestConfigs: …\n");
        } else if line == "  workload:\n" {
            within = false;
        }
        if !within {
            shortened.push_str(line);
        }
    }
    shortened
}
