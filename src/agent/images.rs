//! Which images managed clusters run.

/// The images of [`Images::shipped`].
pub mod shipped {
    /// argocd-agent.
    pub const AGENT: &str = "quay.io/argoprojlabs/argocd-agent:v0.9.0";
    /// Argo CD.
    pub const ARGOCD: &str = "quay.io/argoproj/argocd:v3.2.6";
    /// Redis.
    pub const REDIS: &str = "public.ecr.aws/docker/library/redis:8.2.2-alpine";
    /// argocd-operator, where one is chosen: the release that argocd-pull-integration has.
    pub const OPERATOR: &str = "quay.io/argoprojlabs/argocd-operator:v0.18.0";
}

/// Images, each only where it is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    /// argocd-agent.
    pub agent: Option<Box<str>>,
    /// Argo CD, for the application-controller and the repo-server.
    pub argocd: Option<Box<str>>,
    /// Redis, which both and the agent share.
    pub redis: Option<Box<str>>,
    /// argocd-operator, where one is chosen.
    pub operator: Option<Box<str>>,
    /// This program, which restarts the agent for new certificates and makes the Secrets that Argo CD needs.
    pub ours: Option<Box<str>>,
}

impl Images {
    /// The releases this is tested with, and the Redis that Argo CD's own manifests of that release have. Of this program there is
    /// none: where its image is, only those know who have put it there.
    #[must_use]
    pub fn shipped() -> Self {
        Self {
            agent: Some(shipped::AGENT.into()),
            argocd: Some(shipped::ARGOCD.into()),
            redis: Some(shipped::REDIS.into()),
            operator: Some(shipped::OPERATOR.into()),
            ours: None,
        }
    }

    /// These, and where one is not said the other's. An empty text says nothing.
    #[must_use]
    pub fn or(&self, defaults: &Self) -> Self {
        let said = |image: &Option<Box<str>>| image.clone().filter(|image| !image.is_empty());
        let either = |image, default| said(image).or_else(|| said(default));
        Self {
            agent: either(&self.agent, &defaults.agent),
            argocd: either(&self.argocd, &defaults.argocd),
            redis: either(&self.redis, &defaults.redis),
            operator: either(&self.operator, &defaults.operator),
            ours: either(&self.ours, &defaults.ours),
        }
    }
}
