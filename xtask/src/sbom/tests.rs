use super::*;

const TARGET: &str = "x86_64-unknown-linux-gnu";

#[test]
fn lists_every_linked_package_once_with_its_licence_and_dependencies() {
    let bill = build_sbom(TARGET).unwrap();
    assert_eq!(
        bill.to_string(),
        build_sbom(TARGET).unwrap().to_string(),
        "it is reproducible"
    );
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

    let program = as_text(&bill["metadata"]["component"]["purl"]);
    assert!(program.starts_with("pkg:cargo/argocd-ocm-cmp@"), "{program}");
    for (is_listed, name) in [
        (true, "kube-client"),
        (true, "aws-lc-sys"),
        (false, "insta"),
        (false, "syn"),
        (false, "cc"),
    ] {
        let name = format!("pkg:cargo/{name}@");
        assert_eq!(purls.iter().any(|purl| purl.starts_with(&name)), is_listed, "{name}");
    }

    purls.insert(program);
    let edges = list(&bill["dependencies"]);
    let dependents: BTreeSet<&str> = edges.iter().map(|edge| as_text(&edge["ref"])).collect();
    assert_eq!((edges.len(), &dependents), (purls.len(), &purls));
    for edge in edges {
        for needed in list(&edge["dependsOn"]) {
            assert!(purls.contains(as_text(needed)), "{edge}");
        }
    }
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

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
