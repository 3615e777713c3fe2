//! Names and watches that the controllers of GitOpsClusters share.

use assignment::mappers;
use assignment::secret_mappers;
use hub_state::model::Kind;
use hub_state::reconcile::Watch;

pub(super) const NAME: &str = "gitopscluster";
pub(super) const ABOUT: &str =
    "Argo CD cluster Secrets for the clusters that a GitOpsCluster's Placement selects, and the GitOpsCluster's status";
pub(super) const WATCHES: &[Watch] = &[
    Watch::new(Kind::GitOpsClusters, mappers::gitops_cluster),
    Watch::new(Kind::Placements, mappers::placement),
    Watch::new(Kind::Decisions, mappers::decision),
    Watch::new(Kind::Clusters, mappers::cluster),
    Watch::new(Kind::Secrets, mappers::secret),
    Watch::new(Kind::Namespace, mappers::namespace),
    Watch::new(Kind::Config, secret_mappers::tracking),
];
