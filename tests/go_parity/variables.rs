//! Checks that variables in parameters of charts expand as in Argo CD, by Go's `os.Expand`, over random texts.

use crate::make::Random;
use crate::oracle::Oracle;
use generate::settings::{Arguments, Env, Settings};
use serde_json::{Map, Value, json};

const TEXTS: usize = 100_000;

/// The pieces of texts, between bars.
const PIECES: &str = "$¦$¦$¦{¦}¦a¦_¦1¦9¦-¦?¦!¦#¦*¦@¦.¦ ¦\\¦\n¦ä¦A¦ARGOCD_APP_NAME¦{ARGOCD_APP_NAME}¦${ARGOCD_ENV_COLOUR}¦\
                      $ARGOCD_ENV_EMPTY¦$KUBE_VERSION";

const VARIABLES: [(&str, &str); 4] = [
    ("ARGOCD_APP_NAME", "shop"),
    ("ARGOCD_ENV_COLOUR", "$red}"),
    ("ARGOCD_ENV_EMPTY", ""),
    ("KUBE_VERSION", "1.34.0"),
];

#[test]
fn variables_expand_as_in_argo_cd() {
    let mut oracle = Oracle::start("expand");
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let pieces: Vec<&str> = PIECES.split('¦').collect();
    let texts: Vec<String> = (0..TEXTS).map(|_| random.random_text(&pieces, 8)).collect();
    let parameters: Map<String, Value> = (0..)
        .zip(&texts)
        .map(|(at, text)| (format!("k{at}"), json!(text)))
        .collect();
    let variables = || VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut env = Env::from(variables());
    env.insert("ARGOCD_ENV_TARGET_CLUSTER".to_owned(), "cluster1".to_owned());
    env.insert(
        "ARGOCD_APP_PARAMETERS".to_owned(),
        json!([{"name": "helm-string-parameters", "map": parameters}]).to_string(),
    );
    let settings = Settings::resolve(Arguments::default(), &env).expect("valid settings");
    let ours = &settings.source.helm.string_parameters;
    let inputs: Vec<String> = texts
        .iter()
        .map(|text| {
            let mut input = Env::from(variables());
            input.insert(String::new(), text.clone());
            json!(input).to_string()
        })
        .collect();
    let mut changed = 0;
    for (at, (text, answer)) in texts.iter().zip(oracle.ask(&inputs)).enumerate() {
        let theirs: String = serde_json::from_str(&answer).expect("a text");
        assert_eq!(ours.get(&format!("k{at}")), Some(&theirs), "{text:?}");
        changed += usize::from(theirs != *text);
    }
    assert!(changed > TEXTS / 3, "{changed} have variables: too few to compare");
}
