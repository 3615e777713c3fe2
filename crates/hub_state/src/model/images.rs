//! The images that managed clusters run.

use ocm::image::tag;

pub mod shipped {
    pub const AGENT: &str = "quay.io/argoprojlabs/argocd-agent:v0.9.0";
    pub const ARGOCD: &str = "quay.io/argoproj/argocd:v3.6.1";
    pub const REDIS: &str = "public.ecr.aws/docker/library/redis:8.10.1-alpine";
    /// argocd-operator, if it is chosen: the release that argocd-pull-integration installs.
    pub const OPERATOR: &str = "quay.io/argoprojlabs/argocd-operator:v0.18.0";
}

/// Image overrides; `None` where no image is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    pub agent: Option<Box<str>>,
    pub argocd: Option<Box<str>>,
    /// Redis, which both and the agent share.
    pub redis: Option<Box<str>>,
    /// argocd-operator, if it is chosen.
    pub operator: Option<Box<str>>,
    /// This program, which restarts the agent for new certificates and creates the Secrets that Argo CD needs.
    pub ours: Option<Box<str>>,
}

/// Returns the version in an image's tag, without a leading `v`. A digest and a tag such as `latest` name no version.
fn version(image: &str) -> Option<&str> {
    let tag = tag(image)?;
    let number = tag.strip_prefix('v').unwrap_or(tag);
    number.starts_with(|char: char| char.is_ascii_digit()).then_some(number)
}

/// Returns true if two images have the same version, and `None` if their names do not show it.
pub fn have_same_version(one: &str, other: &str) -> Option<bool> {
    if one == other {
        return Some(true);
    }
    Some(version(one)? == version(other)?)
}

impl Images {
    /// Returns the releases that we test with, and the Redis of Argo CD's own manifests of that release. Contains no image of
    /// this program, because its registry is only known to the administrator.
    pub fn shipped() -> Self {
        Self {
            agent: Some(shipped::AGENT.into()),
            argocd: Some(shipped::ARGOCD.into()),
            redis: Some(shipped::REDIS.into()),
            operator: Some(shipped::OPERATOR.into()),
            ours: None,
        }
    }

    /// Returns these images, with the given defaults where none is set. An empty string counts as not set.
    pub fn or(&self, defaults: &Self) -> Self {
        let configured = |image: &Option<Box<str>>| image.clone().filter(|image| !image.is_empty());
        let either = |image, default| configured(image).or_else(|| configured(default));
        Self {
            agent: either(&self.agent, &defaults.agent),
            argocd: either(&self.argocd, &defaults.argocd),
            redis: either(&self.redis, &defaults.redis),
            operator: either(&self.operator, &defaults.operator),
            ours: either(&self.ours, &defaults.ours),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_tag_of_the_image() {
        for (image, expected) in [
            ("quay.io/argoprojlabs/argocd-agent:v0.9.0", Some("0.9.0")),
            ("registry.example.com:5000/argocd-agent:v0.9.0@sha256:ab", Some("0.9.0")),
            ("registry.example.com:5000/argocd-agent", None),
            ("registry.example.com:5000/argocd-agent@sha256:ab", None),
            ("argocd-agent:0.9.0", Some("0.9.0")),
            ("argocd-agent:latest", None),
        ] {
            assert_eq!(version(image), expected, "{image}");
        }
        assert_eq!(have_same_version("a/agent:v1", "b/agent:v2"), Some(false));
        assert_eq!(have_same_version("a/agent:v1", "b/agent:v1"), Some(true));
        assert_eq!(have_same_version("a/agent:v1", "a/agent:latest"), None);
        assert_eq!(have_same_version("a/agent:latest", "a/agent:latest"), Some(true));
    }
}
