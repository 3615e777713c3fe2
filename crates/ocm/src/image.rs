//! Names of container images.

/// The maximum length of an image without its tag and digest.
const REPOSITORY_MAX: usize = 255;

/// Checks that the text names an image, by the grammar of container registries: `HOST:PORT/PATH:TAG@DIGEST`, of which only the path is
/// required.
///
/// # Errors
/// Returns one line if kubelets could not read it.
pub fn check(text: &str) -> Result<String, String> {
    let (name, digest) = text
        .split_once('@')
        .map_or((text, None), |(name, digest)| (name, Some(digest)));
    let tag_at = name.rfind(':').filter(|&at| !name[at..].contains('/'));
    let (repository, tag) = tag_at.map_or((name, None), |at| (&name[..at], Some(&name[at + 1..])));
    let (host, path) = match repository.split_once('/') {
        Some((host, path)) if host == "localhost" || host.contains(['.', ':']) => (Some(host), path),
        _ => (None, repository),
    };
    let is_image = repository.len() <= REPOSITORY_MAX
        && path.split('/').all(is_path_component)
        && host.is_none_or(is_host)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    if is_image {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is not an image: write it like registry.example.com/argocd-ocm-cmp:1.2.3"
    ))
}

/// Returns true for lower-case letters and digits, with separators between them.
fn is_path_component(text: &str) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_alphanumeric)
        && bytes.last().is_some_and(is_alphanumeric)
        && bytes.iter().all(|byte| is_alphanumeric(byte) || b"._-".contains(byte))
}

fn is_host(text: &str) -> bool {
    let port_at = text.rfind(':').filter(|_| !text.ends_with(']'));
    let (host, port) = port_at.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])));
    let is_address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|address| {
            !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
        });
    let is_part = |part: &str| {
        let is_inside = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        !part.is_empty() && is_inside && !part.starts_with('-') && !part.ends_with('-')
    };
    (is_address || host.split('.').all(is_part)) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_tag(text: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=128).contains(&text.len()) && !text.starts_with(['.', '-']) && text.bytes().all(is_inside)
}

fn is_digest(text: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b"+._-".contains(&byte);
    text.split_once(':').is_some_and(|(algorithm, digits)| {
        let is_hash = digits.len() >= 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        !algorithm.is_empty() && algorithm.bytes().all(is_inside) && is_hash
    })
}

/// Returns the tag of an image, as in `registry:5000/name:tag@digest`.
pub fn tag(image: &str) -> Option<&str> {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    let (_, tag) = image.rsplit_once(':')?;
    (!tag.contains('/') && !tag.is_empty()).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_images_by_the_grammar_of_registries() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for image in [
            "argocd-ocm-cmp",
            "argocd-ocm-cmp:0.1.0",
            "localhost/a:TAG",
            "localhost:5000/a__b/c-d:v1",
            "registry.example.com/argocd-ocm-cmp",
            "10.0.0.1:5000/team/a:latest",
            "[fd00::1]:5000/a:1",
            &format!("quay.io/argoproj/argocd:v3.6.1@{digest}"),
            &format!("a@{digest}"),
        ] {
            assert_eq!(check(image).as_deref(), Ok(image));
        }
        for text in [
            "",
            " ",
            "a b",
            "x: {y",
            "a\nb",
            "a:",
            "a:b c",
            "A/b:1",
            "a//b",
            "/a",
            "a/",
            "-a",
            "a:-b",
            "https://registry.example.com/a",
            "example.com:port/a",
            "a@sha256:12",
            "a@b",
            &"a".repeat(256),
        ] {
            let error = check(text).expect_err(text);
            assert!(error.contains("is not an image: write it like "), "{error}");
        }
    }
}
