//! The settings of the pull model.

use clap::ValueEnum;

/// The integration whose conventions apply where the two differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// Conventions of open-cluster-management-io/argocd-pull-integration.
    #[default]
    ArgocdPullIntegration,
    /// Conventions of stolostron/multicloud-integrations, a part of Red Hat ACM.
    Acm,
}

/// The way in which agents notice that an Application has changed on its cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FeedbackMode {
    /// The agent reads it periodically: every 10 to 19 seconds, in small klusterlets every 60 to 114.
    Poll,
    /// The agent watches it, with one informer for all Applications of a namespace. Needs OCM 1.2; an older agent, or one that may not
    /// watch Applications, polls.
    #[default]
    Watch,
}

impl FeedbackMode {
    /// Returns OCM's name of the mode.
    pub const fn scrape_type(self) -> &'static str {
        match self {
            Self::Poll => "Poll",
            Self::Watch => "Watch",
        }
    }

    pub(super) fn of_scrape_type(name: &str) -> Self {
        if name == Self::Watch.scrape_type() {
            Self::Watch
        } else {
            Self::Poll
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub struct Settings {
    pub dialect: Dialect,
    /// True if works include the namespace of the Application.
    pub namespace: bool,
    /// True if works include the AppProject of the Application.
    pub project: bool,
    /// True if a namespace may use a managed cluster only if a Placement in it selects the cluster.
    pub placement: bool,
    pub feedback: FeedbackMode,
    /// True if agents only observe and change nothing, while another component adopts the delivered objects.
    pub read_only: bool,
    /// The namespace of Argo CD, on the hub and on the managed clusters.
    pub argocd: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            namespace: false,
            project: false,
            placement: false,
            feedback: FeedbackMode::default(),
            read_only: false,
            argocd: "argocd".to_owned(),
        }
    }
}
