//! Checks that the kernel confines helm and kustomize. Only the plugin can test that; it logs missing confinement. Beforehand, the
//! versions of the nodes' kernels tell whether they have Landlock.

use crate::doctor::hub_state::{HubNode, HubState, Lookup};
use crate::doctor::message::{Finding, check, list_names};
use jiff::Timestamp;
use manifest::text::count;

check! {
    "confinement"
    warning UNCONFINED "confinement-missing":
        "charts and kustomizations are refused in {pods}, because the kernel does not confine helm and kustomize, which could reach {reached}",
        "see the reason with `kubectl exec` of `argocd-ocm-cmp confinement` in container argocd-ocm-cmp, and run these Pods where the kernel \
         has Landlock or user namespaces";
    warning OLD_KERNELS "confinement-old-kernels":
        "nodes without Landlock, which needs Linux 5.13: {nodes} ({kernels}): charts and kustomizations are refused there, unless the Pod's \
         seccomp profile allows user namespaces",
        "run the repo-server on nodes with Landlock, or with a seccomp profile that allows `unshare` and `mount`";
    warning UNKNOWN_KERNELS "confinement-unknown-kernels":
        "nodes whose distribution may disable Landlock: {nodes} ({systems})",
        "once the plugin runs there, see the state with `kubectl exec` of `argocd-ocm-cmp confinement` in container argocd-ocm-cmp";
    ok KERNELS "confinement-kernels":
        "{nodes} with Landlock in the kernel, which confines helm and kustomize: {kernels}";
}

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    if !hub_state.expects_plugin() {
        return Vec::new();
    }
    let mut findings = match &hub_state.unconfined {
        // Without the plugin, there is no log to read.
        unconfined @ Lookup::Refused(_) if hub_state.sidecar().is_some() => {
            unconfined.refusal(&format!("the logs of Pods in namespace {}", hub_state.namespace))
        }
        Lookup::Found(pods) if !pods.is_empty() => {
            vec![UNCONFINED.finding(&[
                ("pods", &list_names(pods.keys())),
                ("reached", &list_names(pods.values())),
            ])]
        }
        _ => Vec::new(),
    };
    findings.extend(hub_state.nodes.refusal("the Nodes"));
    findings.extend(about_nodes(hub_state.nodes.items()));
    findings
}

/// Returns what the kernels of nodes mean for the confinement of helm and kustomize.
pub(crate) fn about_nodes(nodes: &[HubNode]) -> Vec<Finding> {
    let names = |nodes: &[&HubNode]| list_names(nodes.iter().map(|node| &node.name));
    let kernels = |nodes: &[&HubNode]| list_names(nodes.iter().map(|node| format!("Linux {}", node.kernel)));
    let nodes: Vec<&HubNode> = nodes.iter().filter(|node| node.is_linux).collect();
    let of = |landlock: Landlock| -> Vec<&HubNode> {
        let nodes = nodes.iter().copied();
        nodes.filter(|node| Landlock::from_node(node) == landlock).collect()
    };
    let (old, unknown) = (of(Landlock::No), of(Landlock::Unknown));
    let mut findings = Vec::new();
    if !old.is_empty() {
        findings.push(OLD_KERNELS.finding(&[("nodes", &names(&old)), ("kernels", &kernels(&old))]));
    }
    if !unknown.is_empty() {
        let systems = list_names(
            unknown
                .iter()
                .map(|node| format!("{} with Linux {}", node.system, node.kernel)),
        );
        findings.push(UNKNOWN_KERNELS.finding(&[("nodes", &names(&unknown)), ("systems", &systems)]));
    }
    if findings.is_empty() && !nodes.is_empty() {
        findings.push(KERNELS.finding(&[("nodes", &count(nodes.len(), "node")), ("kernels", &kernels(&nodes))]));
    }
    findings
}

/// The presence of Landlock in the kernel of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Landlock {
    Yes,
    No,
    Unknown,
}

impl Landlock {
    fn from_node(node: &HubNode) -> Self {
        let mut numbers = node.kernel.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
            return Self::Unknown;
        };
        if (major, minor) < (5, 13) {
            Self::No
        } else if node.kernel.contains(".el9") || node.system.contains("Talos") {
            Self::Unknown
        } else {
            Self::Yes
        }
    }
}
