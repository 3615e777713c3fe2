//! Parsers for the values of settings.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::settings::Env;
use manifest::kinds::GroupKind;
use manifest::quantity;
use ocm::glob::Glob;
use ocm::names;

/// Parses a kind and its resource name.
pub(super) fn plural(text: &str) -> Result<(GroupKind, String), String> {
    let (kind, plural) = text
        .split_once('=')
        .filter(|(_, plural)| names::is_dns_subdomain(plural))
        .ok_or_else(|| format!("{text:?} is not a plural: write it like Mouse.example.com=mice"))?;
    let kind: GroupKind = kind.parse()?;
    match kind.built_in() {
        Some(built_in) if built_in.plural != plural => Err(format!(
            "the resource name of {kind} is {}, because it is a kind of Kubernetes: leave {text} out",
            built_in.plural
        )),
        _ => Ok((kind, plural.to_owned())),
    }
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

/// Parses `allow` or `refuse`; true for the second.
pub(super) fn refuses(mode: &str) -> Result<bool, String> {
    match mode {
        "allow" => Ok(false),
        "refuse" => Ok(true),
        _ => Err(format!("{mode:?} is not a mode: use allow or refuse")),
    }
}

pub(super) fn glob(text: &str) -> Result<Glob, String> {
    Glob::new(text).map_err(|error| format!("{text:?} is not a glob: {error}"))
}

/// Parses a number of bytes as Argo CD and Kubernetes parse a quantity: `500k`, `10M`, `20Mi`, `0.5Gi`, `1e9`. A fraction of a byte
/// counts as a byte.
pub(super) fn quantity(text: &str) -> Result<u64, String> {
    parsed_quantity(text).ok_or_else(|| format!("{text:?} is not a size: write it like 500k, 10M or 20Mi"))
}

fn parsed_quantity(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (number, suffix) = text.split_at(text.bytes().take_while(|byte| b"0123456789.".contains(byte)).count());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{}", fraction.trim_end_matches('0'));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let number: u128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let (factor, exponent) = quantity::suffix(suffix)?;
    let decimals = i32::try_from(fraction.trim_end_matches('0').len()).ok()?;
    let number = number.checked_mul(factor)?;
    let exponent = exponent.checked_sub(decimals)?;
    let power = |exponent: u32| 10_u128.checked_pow(exponent);
    let bytes = if exponent >= 0 {
        number.checked_mul(power(exponent.unsigned_abs())?)?
    } else {
        number.div_ceil(power(exponent.unsigned_abs())?)
    };
    u64::try_from(bytes).ok()
}

/// Replaces `$NAME` and `${NAME}` by Argo CD's variables of the Application and by its plugin environment variables, and `$$` by
/// `$`; unknown variables are empty. Mirrors Argo CD's handling of Helm parameters and the paths of value files, which is Go's
/// `os.Expand`: `$1` and `$-` are variables, and of `${}` and an open `${` nothing is left.
pub(super) fn expanded(text: &str, env: &Env) -> String {
    expanded_with(text, |name| {
        let value = env.get(name).filter(|_| is_of_argo_cd(name));
        value.map_or("", String::as_str)
    })
}

/// Returns the variables of Argo CD that [`expanded`] replaces in the text, and that are not set.
pub(super) fn unset_variables(text: &str, env: &Env) -> Vec<String> {
    let mut unset = Vec::new();
    expanded_with(text, |name| {
        if is_of_argo_cd(name) && !env.contains_key(name) {
            unset.push(name.to_owned());
        }
        ""
    });
    unset
}

fn is_of_argo_cd(variable: &str) -> bool {
    let prefixes = ["ARGOCD_APP_", "ARGOCD_ENV_", "KUBE_"];
    prefixes.iter().any(|prefix| variable.starts_with(prefix)) && variable != "ARGOCD_APP_PARAMETERS"
}

fn expanded_with<'v>(text: &str, mut value_of: impl FnMut(&str) -> &'v str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        whole.push_str(before);
        let (name, after) = shell_name(behind);
        match name {
            Some("$") => whole.push('$'),
            Some(name) => whole.push_str(value_of(name)),
            None if after.len() == behind.len() => whole.push('$'),
            None => {}
        }
        rest = after;
    }
    whole.push_str(rest);
    whole
}

/// Returns the name of the variable behind a `$`, and the text behind it. Without a name, the text lacks what Go skips as malformed.
fn shell_name(text: &str) -> (Option<&str>, &str) {
    if let Some(braced) = text.strip_prefix('{') {
        return match braced.split_once('}') {
            Some(("", after)) => (None, after),
            Some((name, after)) => (Some(name), after),
            None => (None, braced),
        };
    }
    let is_special = |byte: &u8| b"*#$@!?-0123456789".contains(byte);
    let length = if text.as_bytes().first().is_some_and(is_special) {
        1
    } else {
        let is_of_name = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric();
        text.bytes().take_while(is_of_name).count()
    };
    let (name, after) = text.split_at(length);
    ((!name.is_empty()).then_some(name), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_sizes_as_quantities() {
        assert_eq!(quantity("10M"), Ok(10_000_000));
        assert_eq!(quantity("1Ki"), Ok(1024));
        assert_eq!(quantity("7"), Ok(7));
        assert_eq!(quantity("0.5Gi"), Ok(1 << 29));
        assert_eq!(quantity("+1.50e3"), Ok(1500));
        assert_eq!(quantity(".1"), Ok(1), "rounded up");
        assert_eq!(quantity("1."), Ok(1));
        assert_eq!(quantity("1500m"), Ok(2));
        assert_eq!(quantity("16E"), Ok(16_000_000_000_000_000_000));
        for bad in "¦.¦M¦-1¦1.5.M¦1 M¦1mi¦1e¦99999999999999999999¦99999999999G¦1e999999999".split('¦') {
            assert!(quantity(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn expands_argo_cds_build_variables() {
        let env = [
            ("ARGOCD_APP_NAME", "shop"),
            ("PATH", "/bin"),
            ("ARGOCD_APP_PARAMETERS", "[]"),
            ("ARGOCD_ENV_REGION", "eu"),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for (text, expected) in [
            ("values-${ARGOCD_APP_NAME}.yaml", "values-shop.yaml"),
            ("$ARGOCD_APP_NAME/$ARGOCD_APP_NAME.yaml", "shop/shop.yaml"),
            ("$PATH${PATH}$ARGOCD_APP_PARAMETERS$NONE", ""),
            ("100$", "100$"),
            ("$$ARGOCD_APP_NAME", "$ARGOCD_APP_NAME"),
            ("${$}ARGOCD_APP_NAME", "$ARGOCD_APP_NAME"),
            ("${ARGOCD_ENV_REGION}", "eu"),
            ("pa$1word", "paword"),
            ("p$!x", "px"),
            ("a$-b", "ab"),
            ("a${}b${", "ab"),
            ("a$.b$é", "a$.b$é"),
            ("plain", "plain"),
        ] {
            assert_eq!(expanded(text, &env), expected, "{text}");
        }
    }
}
