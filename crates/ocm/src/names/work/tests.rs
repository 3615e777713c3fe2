//! Tests that every work name belongs to one Application, for any Application names.

use super::*;
use std::collections::HashMap;

fn name(application: &str) -> WorkName {
    application.parse().expect(application)
}

/// Returns the work without a policy.
fn work(application: &str) -> String {
    name(application).to_string()
}

/// Returns the work under a policy.
fn policy_work(application: &str) -> String {
    name(application).under_policy().to_string()
}

#[test]
fn an_application_of_argo_cds_namespace_keeps_its_name() {
    assert_eq!(work("guestbook"), "guestbook");
    assert_eq!(work("team-a.guestbook"), "team-a.guestbook");
}

#[test]
fn application_in_another_namespace_gets_a_derived_name() {
    let derived = work("team-a_guestbook");
    assert_eq!(derived, "team-a.guestbook.x27ba1e1fd0836c3a0ee1");
    assert_ne!(derived, work("team-a.guestbook"));
    assert_ne!(work("a_b.c"), work("a-b_c"));
    assert_ne!(
        work(&derived),
        derived,
        "no Application has a derived name as its own base"
    );
}

#[test]
fn policy_names_end_in_a_hash_of_the_application() {
    assert_eq!(policy_work("guestbook"), "guestbook.pdnnfbjcwvnzqwcclvar5wypkubmxhlit");
    assert_eq!(
        policy_work("team-a_guestbook"),
        "team-a.guestbook.pt3ndzu6mj7zuo5gtap47oycz7o6iydpc"
    );
    let shop = name("shop").under_policy();
    assert!(shop.is_under_policy() && shop.application() == "shop");
    assert_eq!(shop.part("wave5"), format!("{shop}.part-wave5"));
    for length in [1, 60, 63, 85, 86, 87, 118, 166, 188, 189, 253] {
        for application in ["a".repeat(length), "a.".repeat(length / 2) + "a"] {
            let name = name(&application).under_policy();
            assert!(name.to_string().len() <= POLICY_BASE_MAX);
            let cut = POLICY_BASE_MAX - POLICY_MARK.len() - POLICY_DIGITS - 1;
            assert!(name.to_string().starts_with(&application[..application.len().min(cut)]));
            for suffix in ["", "wave5", "presync-migrate-5f3a9c1e07", &"long.".repeat(40), "Ä"] {
                let part = name.part(suffix);
                assert!(is_dns_subdomain(&part) && part.len() <= WORK_NAME_MAX, "{part}");
                assert!(name.is_of(&part) && name.is_of_under_policy(&part), "{part}");
            }
        }
    }
}

#[test]
fn sources_of_an_application_have_separate_names_under_a_policy() {
    let shop = name("team-a_shop");
    let [front, back] = ["front", "back"].map(|source| shop.of_source(source).expect(source));
    let base = front.to_string();
    assert!(
        base.starts_with("team-a.shop.front.p") && base.len() == 18 + POLICY_DIGITS + 1,
        "{base}"
    );
    assert!(front.is_under_policy() && front.application() == "team-a_shop");
    for suffix in ["", "wave5", "thing.-example_com"] {
        let (work, set) = (front.part(suffix), front.set_part(suffix, "argocd/eu", 56));
        assert!(
            shop.is_of(&work) && front.is_of(&work) && front.is_of_under_policy(&work),
            "{work}"
        );
        assert!(!back.is_of(&work) && is_dns_subdomain(&work), "{work}");
        assert!(set.starts_with("team-a-shop-front-") && !set.contains('.'), "{set}");
        assert!(
            front.is_of_set(&set, "argocd", None) && shop.may_be_set_of_source(&set),
            "{set}"
        );
        assert!(
            !shop.is_of_set(&set, "argocd", None) && !back.is_of_set(&set, "argocd", None),
            "{set}"
        );
        // Other Applications with names like these.
        for other in [
            "team-a.shop.front",
            "team-a_shop.front",
            "team-a.shop",
            "front",
            &base,
            &set,
        ] {
            let other = name(other);
            let policy = other.clone().under_policy();
            assert!(!other.is_of(&work) && !policy.is_of(&work), "{other}");
            for of_other in [other.part(suffix), policy.part(suffix)] {
                assert!(of_other != work && !front.is_of(&of_other), "{of_other}");
            }
            assert_ne!(other.set_part(suffix, "argocd/eu", 56), set);
        }
    }
    assert_ne!(name("team-a.shop").of_source("front"), shop.of_source("front"));
    assert_ne!(
        name("a").of_source("b.c").map(|name| name.to_string()),
        name("a.b").of_source("c").map(|name| name.to_string())
    );
    assert!(!shop.is_of(&(shop.of_source("front").expect("a name").to_string() + "x")));
    assert_eq!(shop.of_source(&"a".repeat(80)), None, "too long to be recognized");
    let of_agents = name("argocd-agent-cr-foo").of_source("front").expect("a name");
    assert!(
        of_agents.to_string().starts_with("argocd-agent-cr.foo.front.p"),
        "{of_agents}"
    );
}

/// The hash has 160 bits, and the encoding loses no digit.
#[test]
fn base32_matches_rfc_4648() {
    assert_eq!(base32(b"fooba"), "mzxw6ytb");
    assert_eq!(base32(&[0xff; 20]), "7".repeat(POLICY_DIGITS));
    assert_eq!(base32(&[0, 0, 0, 0, 1]), "aaaaaaab");
}

/// Returns names of Applications that an attacker could create to capture the works of others: equal to their works, their parts,
/// works of OCM, of add-ons, of the controller and of the pull model, and derived again from each of these.
fn hostile() -> Vec<String> {
    let long = "a".repeat(165);
    let mut all: Vec<String> = [
        "shop",
        "shop.part-wave5",
        "shop-part-wave5",
        "team-a_shop",
        "team-a.shop",
        "team_a-shop",
        "team-a-shop",
        CA_WORK,
        "eu-1-klusterlet",
        "eu-1-klusterlet-crds",
        "addon-application-manager-deploy-0",
        "addon-x-pre-delete",
        "payments-1a2b3",
        "payments-0123456789",
        "argocd-agent-cr-argocd-fleet",
        "argocd-agent-cr.argocd-fleet",
        "argocd-agent-cr_argocd-fleet",
        &long,
        &format!("{long}b"),
        &format!("{long}.part-wave5-of-many"),
        &format!("{long}-part-wave5-of-many"),
        &"a".repeat(200),
        &("a".repeat(200) + ".part-wave5"),
        &("a".repeat(200) + "-part-wave5"),
    ]
    .map(str::to_owned)
    .to_vec();
    for _ in 0..2 {
        let names: Vec<WorkName> = all.iter().map(|application| name(application)).collect();
        for name in names {
            let policy = name.clone().under_policy();
            for suffix in ["", "wave5", "wave5-of-many", "thing.-example_com"] {
                all.extend([
                    name.part(suffix),
                    policy.part(suffix),
                    name.set_part(suffix, "argocd/eu", 56),
                ]);
            }
        }
        all.retain(|application| application.parse::<WorkName>().is_ok());
        all.sort_unstable();
        all.dedup();
    }
    all
}

#[test]
fn no_two_applications_share_a_work_name() {
    let applications = hostile();
    assert!(applications.len() > 500, "{}", applications.len());
    let suffixes = [
        "",
        "wave5",
        "wave5-of-many",
        "thing.-example_com",
        "b0.x0123456789abcdef0123",
    ];
    let mut owners: HashMap<String, &String> = HashMap::new();
    for application in &applications {
        let plain = name(application);
        let policy = plain.clone().under_policy();
        for suffix in suffixes {
            for work in [plain.part(suffix), policy.part(suffix)] {
                assert!(is_dns_subdomain(&work) && work.len() <= WORK_NAME_MAX, "{work}");
                assert!(plain.is_of(&work) && policy.is_of(&work), "{application}: {work}");
                let owner = owners.entry(work).or_insert(application);
                assert_eq!(*owner, application);
            }
        }
        let policy = policy.to_string();
        // Names of other works have a '-' after the last '.', if any, or another prefix.
        let (_, end) = policy.rsplit_once('.').expect("a hash");
        assert!(end.len() == 33 && !end.contains('-') && policy != CA_WORK, "{policy}");
        assert!(!policy.starts_with(ARGOCD_WORK), "{policy}");
        assert_ne!(plain.to_string(), policy);
    }
    // A name is recognized only for the Application from which it was derived.
    let works: Vec<&String> = owners.keys().step_by(101).collect();
    for application in applications.iter().step_by(41) {
        let name = name(application);
        for work in &works {
            assert_eq!(name.is_of(work), owners[*work] == application, "{application}: {work}");
        }
    }
}

#[test]
fn derives_names_that_ocm_add_ons_or_the_controller_use() {
    for application in [
        "eu-1-klusterlet",
        "eu-1-klusterlet-crds",
        "addon-application-manager-deploy-0",
        "addon-x-deploy-hosting-eu-1-0",
        "addon-x-pre-delete",
        CA_WORK,
        &crate::argocd_agent::argocd_work("argocd", "fleet"),
        &crate::argocd_agent::argocd_work("argocd", &"n".repeat(50)),
        "payments-1a2b3",
        "payments-faced",
        "payments-0123456789",
    ] {
        let derived = work(application);
        assert!(is_reserved(application), "{application}");
        assert!(derived.starts_with(&format!("{application}.x")), "{derived}");
        let name = name(application);
        assert!(
            !name.is_of(application),
            "{application} does not own the work of another Application"
        );
        assert!(name.is_of(&derived) && name.is_of(&name.part("wave5")));
        let policy = name.under_policy();
        assert!(!policy.is_of(application) && policy.is_of(&policy.part("wave5")));
    }
    for ordinary in [
        "klusterlet",
        "addon-shop",
        "argocd-agent",
        "shop-eu1",
        "shop-2024",
        "shop-1a2g3",
    ] {
        assert_eq!(work(ordinary), ordinary);
    }
}

/// A GitOpsCluster's name is the end of a work's name, so that the work's prefix must distinguish it from an Application's.
#[test]
fn gitopscluster_name_cannot_collide_with_an_applications_work() {
    let of_application = policy_work("argocd-agent-cr-a-b");
    let gitops_cluster = of_application.replace("argocd-agent-cr.a-", "");
    assert_ne!(crate::argocd_agent::argocd_work("a", &gitops_cluster), of_application);
    assert!(of_application.starts_with("argocd-agent-cr.a-b.p"), "{of_application}");
}

#[test]
fn truncates_long_names_to_ocms_limit() {
    let long = "a".repeat(240);
    let one = work(&format!("{long}b"));
    let other = work(&format!("{long}c"));
    assert_eq!(one.len(), WORK_NAME_MAX);
    assert_ne!(one, other);
    let cut_at_dot = format!("{}{}", "a.".repeat(83), "b".repeat(60));
    assert!(is_dns_subdomain(&work(&cut_at_dot)));
    assert_eq!(work(&"a".repeat(WORK_NAME_MAX)), "a".repeat(WORK_NAME_MAX));
}

#[test]
fn recognizes_parts_of_long_names() {
    let long = |length: usize, last: &str| "a".repeat(length - 1) + last;
    for length in (150..=253).step_by(3) {
        let (one, other) = (name(&long(length, "b")), name(&long(length, "c")));
        for suffix in ["", "wave5", "certificate.cert-manager.io", &"long.".repeat(40)] {
            let part = one.part(suffix);
            assert!(part.len() <= WORK_NAME_MAX && one.is_of(&part), "{length}: {part}");
            assert!(!other.is_of(&part), "{length}: {part}");
        }
    }
    let base = "a".repeat(PLAIN_BASE_MAX);
    let part = name(&base).part(&"long.".repeat(40));
    assert!(part.starts_with(&format!("{base}.part-l.x")), "{part}");
}

#[test]
fn part_names_have_a_suffix_and_match_no_application() {
    let work = name("shop");
    assert_eq!(work.part(""), "shop");
    assert_eq!(work.part("wave-5-b01"), "shop.part-wave-5-b01");
    assert_eq!(
        work.part("certificate.cert-manager.io"),
        "shop.part-certificate.cert-manager.io"
    );
    assert_eq!(
        work.part("thing.-example_com"),
        "shop.part-thing.example-com.x0c94dc002cc780a5c35f"
    );
    let application = name("shop.part-b01");
    assert_ne!(application.to_string(), "shop.part-b01");
    assert!(application.to_string().starts_with("shop-part-b01.x"), "{application}");
    for awkward in ["thing.-example_com", &"long.".repeat(60), "..", "Ä", "-.-"] {
        let name = work.part(awkward);
        assert!(is_dns_subdomain(&name) && name.len() <= WORK_NAME_MAX, "{name}");
        assert!(work.is_of(&name), "{name}");
        assert_ne!(name, work.part(&format!("{awkward}x")));
    }
}

#[test]
fn set_names_have_no_dots_and_are_unique() {
    let set = |application: &str, suffix: &str, placement: &str| {
        let set = name(application).set_part(suffix, placement, 52);
        assert!(set.len() <= 52 && is_dns_label(&set), "{set}");
        assert_eq!(name(application).under_policy().set_part(suffix, placement, 52), set);
        set
    };
    let shop = set("shop", "", "argocd/eu");
    assert_eq!(shop, "shop-x6ce2c7527a7650990904");
    assert_ne!(work(&shop), shop, "no Application has a derived name as its own base");
    assert_ne!(shop, set("shop", "", "other/eu"));
    assert_ne!(
        shop,
        set("shop", "", "argocd/us"),
        "OCM would delete the works of both Placements"
    );
    assert!(set("shop.eu", "", "argocd/eu").starts_with("shop-eu-x"));
    assert_ne!(set("shop.eu", "", "argocd/eu"), set("shop-eu", "", "argocd/eu"));
    assert!(set("shop", "wave5", "argocd/eu").starts_with("shop-part-wave5-x"));
    assert!(set("team-a_shop", "", "argocd/eu").starts_with("team-a-shop-x"));
    assert_eq!(set(&"a".repeat(100), "", "argocd/eu").len(), 52);
    set("shop", &"certificate.".repeat(10), "argocd/eu");
}

#[test]
fn recognizes_sets_by_name_of_any_length() {
    for namespace in ["argocd", "a-namespace-of-thirty-letters"] {
        let max = set_name_max(namespace);
        for length in 1..=60 {
            let application = name(&"shop.eu-".repeat(10)[..length].replace(['.', '-'], "x"));
            for suffix in ["", "wave5", "presync-migrate-5f3a9c1e07", "certificate.cert-manager.io"] {
                let set = application.set_part(suffix, &format!("{namespace}/eu"), max);
                assert!(application.is_of_set(&set, namespace, None), "{set}");
                assert!(!application.is_of(&set), "{set}");
            }
        }
    }
    let shop = name("shop");
    for other in ["shop-eu", "shops", "ashop"] {
        assert!(
            !shop.is_of_set(&name(other).set_part("", "argocd/eu", 56), "argocd", None),
            "{other}"
        );
    }
    let set = shop.set_part("", "argocd/eu", 56);
    for (namespace, placement, expected) in [("argocd", "eu", true), ("argocd", "us", false), ("fleet", "eu", false)] {
        assert_eq!(
            shop.is_of_set(&set, namespace, Some(placement)),
            expected,
            "{namespace}/{placement}"
        );
    }
    assert!(!shop.is_of_set("shop", "argocd", None));
}

#[test]
fn recognizes_only_its_own_works() {
    let shop = name("shop");
    assert!(!shop.is_of_set("shop.part-wave5", "argocd", None) && !shop.is_of_under_policy("shop.part-wave5"));
    for other in ["shop2", "shop.eu", "shop-part-b0", "ashop", "team-a_shop"] {
        assert!(!shop.is_of(&work(other)) && !shop.is_of(&policy_work(other)), "{other}");
    }
    for other in [
        "shop.p",
        "shop.partial",
        "shop.pdnnfbjcwvnzqwcclvar5wypkubmxhlit",
        "shop-1a2b3",
        "",
    ] {
        assert!(!shop.is_of(other), "{other}");
    }
}

#[test]
fn refuses_invalid_work_names() {
    for invalid in ["", "Guestbook", "a_b_c", "a b", "-a", "a.", "_a", "A_b", "a..b"] {
        assert!(invalid.parse::<WorkName>().is_err(), "{invalid:?}");
    }
}
