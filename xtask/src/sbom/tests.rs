use super::*;

const TARGET: &str = "x86_64-unknown-linux-gnu";

#[test]
fn lists_every_linked_package_once_with_its_licence() {
    let bill = build_sbom(TARGET).unwrap();
    let mut purls = BTreeSet::new();
    for component in list(&bill["components"]) {
        let purl = as_text(&component["purl"]);
        assert!(purls.insert(purl), "{purl} is listed twice");
        assert_eq!(component["bom-ref"], component["purl"]);
        assert!(!as_text(&component["name"]).is_empty() && !as_text(&component["version"]).is_empty());
        let licence = as_text(&component["licenses"][0]["expression"]);
        assert!(!licence.is_empty() && !licence.contains('/'), "{purl}: {licence:?}");
        let checksum = as_text(&component["hashes"][0]["content"]);
        assert_eq!(
            checksum.len() == 64,
            purl.starts_with("pkg:cargo/"),
            "{purl}: {checksum:?}"
        );
    }
    let ours = |purl: &&&str| purl.starts_with("pkg:generic/argocd-ocm-cmp/");
    // All but `testing`.
    let crates = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")).unwrap();
    assert_eq!(purls.iter().filter(ours).count(), crates.count() - 1);
    let added = |purl: &str| purl.starts_with("pkg:generic/") && !purl.contains("/argocd-ocm-cmp/");
    assert_eq!(purls.iter().filter(|purl| added(purl)).count(), 3);

    // By another query of cargo, which also lists optional packages that a feature names and does not enable.
    let program = as_text(&bill["metadata"]["component"]["purl"]);
    assert!(program.starts_with("pkg:cargo/argocd-ocm-cmp@"), "{program}");
    let listed: BTreeSet<String> = purls
        .iter()
        .filter(|purl| !added(purl))
        .map(|&purl| purl.to_owned())
        .collect();
    let resolved = reachable(&metadata());
    let unknown: Vec<_> = listed.iter().filter(|purl| !resolved.contains_key(*purl)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for (purl, needed_by) in resolved {
        let by_all_means = needed_by.iter().find(|by| listed.contains(*by) || *by == program);
        assert!(
            by_all_means.is_none() || listed.contains(&purl),
            "{purl} is missing: {by_all_means:?} needs it"
        );
    }
    for (is_listed, name) in [
        (true, "kube-client"),
        (true, "aws-lc-sys"),
        (false, "insta"),
        (false, "syn"),
        (false, "cc"),
    ] {
        let name = format!("pkg:cargo/{name}@");
        assert_eq!(listed.iter().any(|purl| purl.starts_with(&name)), is_listed, "{name}");
    }
}

#[test]
fn dependencies_name_only_listed_packages() {
    let bill = build_sbom(TARGET).unwrap();
    let components = list(&bill["components"]).iter().chain([&bill["metadata"]["component"]]);
    let listed: BTreeSet<&str> = components.map(|component| as_text(&component["bom-ref"])).collect();
    let edges = list(&bill["dependencies"]);
    let listed_by_bill: BTreeSet<&str> = edges.iter().map(|edge| as_text(&edge["ref"])).collect();
    assert_eq!((edges.len(), &listed_by_bill), (listed.len(), &listed));
    for edge in edges {
        for needed in list(&edge["dependsOn"]) {
            assert!(listed.contains(as_text(needed)), "{edge}");
        }
    }
}

#[test]
fn bill_is_reproducible() {
    assert_eq!(
        build_sbom(TARGET).unwrap().to_string(),
        build_sbom(TARGET).unwrap().to_string()
    );
}

#[test]
fn a_package_without_a_licence_is_an_error() {
    let package = |name: &str| Package {
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        is_local: true,
    };
    let (root, nameless) = (package("root"), package("nameless"));
    let tree = |licence: &str| tree::PackageTree {
        root: root.clone(),
        needs: BTreeMap::from([
            (root.clone(), BTreeSet::from([nameless.clone()])),
            (nameless.clone(), BTreeSet::new()),
        ]),
        licences: BTreeMap::from([
            (root.clone(), "MIT/Apache-2.0".to_owned()),
            (nameless.clone(), licence.to_owned()),
        ]),
    };
    let listed_by_bill = bill(&tree("MIT"), &BTreeMap::new(), &[]).unwrap();
    assert_eq!(
        listed_by_bill["metadata"]["component"]["licenses"][0]["expression"],
        "MIT OR Apache-2.0"
    );
    let error = bill(&tree(""), &BTreeMap::new(), &[]).unwrap_err();
    assert_eq!(error.to_string(), "nameless 1.0.0 has no licence");
}

/// Returns the output of `cargo metadata` for the workspace and all its possible dependencies on the target.
fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "metadata",
        "--locked",
        "--format-version=1",
        "--filter-platform",
        TARGET,
    ]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the packages that can be reached from the program without dev-dependencies, build scripts and macros, each with the
/// packages that always need it.
fn reachable(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let by_id = |entries| -> BTreeMap<&str, &Value> {
        list(entries)
            .iter()
            .map(|value| (as_text(&value["id"]), value))
            .collect()
    };
    let (packages, nodes) = (by_id(&metadata["packages"]), by_id(&metadata["resolve"]["nodes"]));
    let purl = |id: &str| {
        purl(&Package {
            name: as_text(&packages[id]["name"]).to_owned(),
            version: as_text(&packages[id]["version"]).to_owned(),
            is_local: packages[id]["source"].is_null(),
        })
    };
    let is_macro = |id: &str| packages[id]["targets"].to_string().contains("\"proc-macro\"");
    let is_linked = |edge: &&Value| list(&edge["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
    let is_optional = |from: &str, to: &str| {
        let mut dependencies = list(&packages[from]["dependencies"]).iter();
        dependencies.any(|dependency| {
            dependency["name"] == packages[to]["name"] && dependency["kind"].is_null() && dependency["optional"] == true
        })
    };
    let program = packages.iter().find(|(_, package)| package["name"] == PROGRAM);
    let (mut open, mut purls) = (vec![*program.unwrap().0], BTreeMap::<String, BTreeSet<String>>::new());
    let mut done = BTreeSet::new();
    while let Some(id) = open.pop() {
        purls.entry(purl(id)).or_default();
        if !done.insert(id) {
            continue;
        }
        for needed in list(&nodes[id]["deps"])
            .iter()
            .filter(is_linked)
            .map(|edge| as_text(&edge["pkg"]))
        {
            if is_macro(needed) {
                continue;
            }
            open.push(needed);
            if !is_optional(id, needed) {
                purls.entry(purl(needed)).or_default().insert(purl(id));
            }
        }
    }
    purls
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
