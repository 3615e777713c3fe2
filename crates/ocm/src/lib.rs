//! The objects of Open Cluster Management and Argo CD that the program reads and writes on a hub.
//!
//! This crate contains values and rules only and never calls an API server. [`work`] is a `ManifestWork` or
//! `ManifestWorkReplicaSet`, [`health`] evaluates its status, with the rules of [`verdicts`], [`names`] derives the
//! names of an Application's works, and [`tracking`], [`ownership`] and [`application_works`] find the Application that
//! a work belongs to. [`ownership`] reads the names that sources set with [`source_plugin`]. [`gitops_cluster`] is the
//! resource that requests argocd-agent on clusters, with its CRD; [`argocd_agent`] and [`pull_model`] hold the labels,
//! annotations and names of the two integrations. [`resources`] lists the API resources. [`hold`] is what keeps a cluster's works
//! unchanged. [`glob`], [`global_projects`], [`boolean`] and [`image`] are the rules of Argo CD and of images that several crates share;
//! [`zeros`] are fields without a value.

pub mod application_set_report;
pub mod application_works;
pub mod argocd_agent;
pub mod boolean;
pub mod duration;
pub mod gitops_cluster;
pub mod glob;
pub mod global_projects;
pub mod health;
pub mod hold;
pub mod image;
pub mod management_addon;
pub mod merge_patch;
pub mod names;
pub mod ownership;
pub mod pull_model;
pub mod resources;
pub mod source_plugin;
pub mod tracking;
pub mod verdicts;
pub mod work;
pub mod zeros;
