//! Parsers for the values of settings.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::settings::Env;
use manifest::kinds::GroupKind;
use ocm::glob::Glob;
use ocm::names;

/// Parses a kind and its resource name.
pub(super) fn plural(text: &str) -> Result<(GroupKind, String), String> {
    match text.split_once('=') {
        Some((kind, plural)) if names::is_dns_subdomain(plural) => Ok((kind.parse()?, plural.to_owned())),
        _ => Err(format!(
            "{text:?} is not a plural: write it like Mouse.example.com=mice"
        )),
    }
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

pub(super) fn glob(text: &str) -> Result<Glob, String> {
    Glob::new(text).map_err(|error| format!("{text:?} is not a glob: {error}"))
}

/// Parses a number of bytes as a Kubernetes quantity in the usual formats for sizes: `500k`, `10M`, `20Mi`, `1G`, or plain.
pub(super) fn quantity(text: &str) -> Result<u64, String> {
    let (number, unit) = number_and_unit(text);
    let factor: Option<u64> = match unit {
        "" => Some(1),
        "k" => Some(1000),
        "Ki" => Some(1 << 10),
        "M" => Some(1_000_000),
        "Mi" => Some(1 << 20),
        "G" => Some(1_000_000_000),
        "Gi" => Some(1 << 30),
        _ => None,
    };
    let number: Option<u64> = number.parse().ok();
    factor
        .zip(number)
        .and_then(|(factor, number)| number.checked_mul(factor))
        .ok_or_else(|| format!("{text:?} is not a size: write it like 500k, 10M or 20Mi"))
}

fn number_and_unit(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Replaces `$NAME` and `${NAME}` by Argo CD's variables of the Application, and `$$` by `$`; unknown variables are empty.
/// Mirrors Argo CD's handling of Helm parameters and the paths of value files.
pub(super) fn expanded(text: &str, env: &Env) -> String {
    let value_of = |name: &str| {
        let is_of_argo_cd = name.starts_with("ARGOCD_APP_") || name.starts_with("KUBE_");
        let value = env
            .get(name)
            .filter(|_| is_of_argo_cd && name != "ARGOCD_APP_PARAMETERS");
        value.map_or("", String::as_str)
    };
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        whole.push_str(before);
        let braced = behind.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let length = behind
            .bytes()
            .take_while(|&byte| byte == b'_' || byte.is_ascii_alphanumeric());
        let (name, after) = braced.unwrap_or_else(|| behind.split_at(length.count()));
        if name.is_empty() {
            whole.push('$');
            rest = behind.strip_prefix('$').unwrap_or(behind);
        } else {
            whole.push_str(value_of(name));
            rest = after;
        }
    }
    whole.push_str(rest);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_sizes_as_quantities() {
        assert_eq!(quantity("10M"), Ok(10_000_000));
        assert_eq!(quantity("1Ki"), Ok(1024));
        assert_eq!(quantity("7"), Ok(7));
        for bad in ["", "M", "-1", "1.5M", "99999999999999999999", "99999999999G"] {
            assert!(quantity(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn expands_argo_cds_build_variables() {
        let env = [
            ("ARGOCD_APP_NAME", "shop"),
            ("PATH", "/bin"),
            ("ARGOCD_APP_PARAMETERS", "[]"),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for (text, expected) in [
            ("values-${ARGOCD_APP_NAME}.yaml", "values-shop.yaml"),
            ("$ARGOCD_APP_NAME/$ARGOCD_APP_NAME.yaml", "shop/shop.yaml"),
            ("$PATH${PATH}$ARGOCD_APP_PARAMETERS$NONE", ""),
            ("100$", "100$"),
            ("$$ARGOCD_APP_NAME", "$ARGOCD_APP_NAME"),
            ("a$-b${", "a$-b${"),
            ("plain", "plain"),
        ] {
            assert_eq!(expanded(text, &env), expected, "{text}");
        }
    }
}
