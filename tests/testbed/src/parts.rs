//! The programs of a testbed, their sources, and their builds.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use anyhow::{Context, Result, bail, ensure};

use crate::go_module::{Digits, GoModule, Replacement, Stamp};

/// A program that a testbed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// etcd, the store below every API server.
    Etcd,
    /// Kubernetes' API server.
    KubeApiserver,
    /// Kubernetes' controllers.
    KubeControllerManager,
    /// Kubernetes' scheduler.
    KubeScheduler,
    /// Kubernetes' command line.
    Kubectl,
    /// OCM's work agent and work manager.
    Work,
    /// OCM's validation of `ManifestWorks`, on a port of our choice.
    WorkWebhook,
    /// OCM's work agent's evaluation of condition rules and feedback rules, which prints the results for an object.
    AgentRules,
    /// OCM's registration agent and controller.
    Registration,
    /// OCM's placement controller.
    Placement,
    /// OCM's add-on manager.
    Addon,
    /// OCM's cluster-proxy: its user-server on the hub, and its service-proxy on a managed cluster.
    ClusterProxy,
    /// The hub's end of cluster-proxy's tunnel.
    ProxyServer,
    /// The managed cluster's end of cluster-proxy's tunnel.
    ProxyAgent,
    /// Kwok: nodes and Pods that become ready without a kubelet.
    Kwok,
    /// Argo CD, which selects its role by its own name.
    ArgoCd,
    /// argocd-operator, which creates an Argo CD and an argocd-agent from an `ArgoCD` resource.
    ArgoCdOperator,
    /// Kustomize, which Argo CD and plugins call.
    Kustomize,
    /// Helm, which Argo CD and plugins call.
    Helm,
    /// Argo CD's reading of sources (directory, kustomize, Helm), which prints the objects of a folder.
    ApplicationSource,
    /// Argo CD's health checks, which print the health of an object.
    ObjectHealth,
    /// A client of Argo CD's repo-server, which prints the details of a source that Argo CD's UI gets.
    AppDetails,
}

/// The programs of the Go modules: one module per project, because their requirements conflict.
const KUBERNETES: &[Part] = &[
    Part::Etcd,
    Part::KubeApiserver,
    Part::KubeControllerManager,
    Part::KubeScheduler,
    Part::Kubectl,
];
const OCM: &[Part] = &[
    Part::Work,
    Part::WorkWebhook,
    Part::AgentRules,
    Part::Registration,
    Part::Placement,
    Part::Addon,
];
const CLUSTER_PROXY: &[Part] = &[Part::ClusterProxy, Part::ProxyServer, Part::ProxyAgent];
const ARGOCD: &[Part] = &[
    Part::ArgoCd,
    Part::ApplicationSource,
    Part::ObjectHealth,
    Part::AppDetails,
];

impl Part {
    /// Returns the file name of the program, and its package in its Go module.
    fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::Etcd => ("etcd", "go.etcd.io/etcd/server/v3"),
            Self::KubeApiserver => ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
            Self::KubeControllerManager => (
                "kube-controller-manager",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
            ),
            Self::KubeScheduler => ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
            Self::Kubectl => ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
            Self::Work => ("work", "open-cluster-management.io/ocm/cmd/work"),
            Self::WorkWebhook => ("work-webhook", "./work-webhook"),
            Self::AgentRules => ("agent-rules", "./agent-rules"),
            Self::Registration => ("registration", "open-cluster-management.io/ocm/cmd/registration"),
            Self::Placement => ("placement", "open-cluster-management.io/ocm/cmd/placement"),
            Self::Addon => ("addon", "open-cluster-management.io/ocm/cmd/addon"),
            Self::ClusterProxy => (
                "cluster-proxy",
                "open-cluster-management.io/cluster-proxy/cmd/cluster-proxy",
            ),
            Self::ProxyServer => ("proxy-server", "sigs.k8s.io/apiserver-network-proxy/cmd/server"),
            Self::ProxyAgent => ("proxy-agent", "sigs.k8s.io/apiserver-network-proxy/cmd/agent"),
            Self::Kwok => ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
            Self::ArgoCd => ("argocd", "github.com/argoproj/argo-cd/v3/cmd"),
            Self::ArgoCdOperator => ("argocd-operator", "github.com/argoproj-labs/argocd-operator/cmd"),
            Self::Kustomize => ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5"),
            Self::Helm => ("helm", "helm.sh/helm/v4/cmd/helm"),
            Self::ApplicationSource => ("application-source", "./application-source"),
            Self::ObjectHealth => ("object-health", "./object-health"),
            Self::AppDetails => ("app-details", "./app-details"),
        }
    }
}

const fn stamp(variable: &'static str, module: &'static str, digits: Digits) -> Stamp {
    Stamp {
        variable,
        module,
        digits,
    }
}

const KUBERNETES_STAMPS: &[Stamp] = &[
    stamp(
        "k8s.io/component-base/version.gitVersion",
        "k8s.io/kubernetes",
        Digits::All,
    ),
    stamp(
        "k8s.io/component-base/version.gitMajor",
        "k8s.io/kubernetes",
        Digits::Major,
    ),
    stamp(
        "k8s.io/component-base/version.gitMinor",
        "k8s.io/kubernetes",
        Digits::Minor,
    ),
];
const KUSTOMIZE_STAMPS: &[Stamp] = &[stamp(
    "sigs.k8s.io/kustomize/api/provenance.version",
    "sigs.k8s.io/kustomize/kustomize/v5",
    Digits::All,
)];
const HELM_STAMPS: &[Stamp] = &[stamp(
    "helm.sh/helm/v4/internal/version.version",
    "helm.sh/helm/v4",
    Digits::All,
)];
const OLDER_HELM_STAMPS: &[Stamp] = &[
    stamp(
        "helm.sh/helm/v3/internal/version.version",
        "helm.sh/helm/v3",
        Digits::All,
    ),
    // The default version of Kubernetes for charts: client-go 0.34 belongs to Kubernetes 1.34.
    stamp(
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor",
        "k8s.io/client-go",
        Digits::Minor,
    ),
];

const SERVICE_PROXY: &str = "pkg/serviceproxy/service_proxy.go";

/// The values that are fixed in the containers of cluster-proxy's Pods, and come from the environment of processes on one machine:
/// addresses to listen on, host aliases, the service account.
const CLUSTER_PROXY_REPLACEMENTS: &[Replacement] = &[
    in_cluster_proxy("pkg/userserver/user_server.go", r#"":8000""#, HEALTH_ADDRESS),
    in_cluster_proxy(SERVICE_PROXY, r#"":8000""#, HEALTH_ADDRESS),
    in_cluster_proxy(
        SERVICE_PROXY,
        r#"fmt.Sprintf(":%d", constant.ServiceProxyPort)"#,
        r#"os.Getenv("SERVICE_PROXY")"#,
    ),
    in_cluster_proxy(
        SERVICE_PROXY,
        "\t\"open-cluster-management.io/cluster-proxy/pkg/constant\"\n",
        "",
    ),
    in_cluster_proxy(
        SERVICE_PROXY,
        "const (\n\t\trootCAFile = \"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt\"\n\t)",
        r#"rootCAFile := os.Getenv("SERVICE_ACCOUNT") + "/ca.crt""#,
    ),
    in_cluster_proxy(
        SERVICE_PROXY,
        r#""/var/run/secrets/kubernetes.io/serviceaccount/token""#,
        r#"os.Getenv("SERVICE_ACCOUNT") + "/token""#,
    ),
    in_cluster_proxy(
        SERVICE_PROXY,
        "rest.InClusterConfig()",
        r#"clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))"#,
    ),
    in_cluster_proxy(SERVICE_PROXY, "\t\"k8s.io/client-go/rest\"\n", ""),
    in_cluster_proxy(
        SERVICE_PROXY,
        "(&net.Dialer{\n\t\t\tTimeout:   30 * time.Second,\n\t\t\tKeepAlive: 30 * time.Second,\n\t\t}).DialContext",
        r#"func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, os.Getenv("API_SERVER"))
		}"#,
    ),
    Replacement {
        module: "sigs.k8s.io/apiserver-network-proxy",
        file: "pkg/agent/client.go",
        from: "net.DialTimeout(dialReq.Protocol, dialReq.Address, dialTimeout)",
        to: r#"net.DialTimeout(dialReq.Protocol, os.Getenv("SERVICE_PROXY"), dialTimeout)"#,
    },
];

const HEALTH_ADDRESS: &str = r#"os.Getenv("HEALTH_ADDRESS")"#;

const fn in_cluster_proxy(file: &'static str, from: &'static str, to: &'static str) -> Replacement {
    Replacement {
        module: "open-cluster-management.io/cluster-proxy",
        file,
        from,
        to,
    }
}

/// All parts, built. See [`Parts::ensure`].
#[derive(Clone, Debug)]
pub struct Parts {
    programs: Vec<(Part, PathBuf)>,
    ocm: PathBuf,
    ocm_api: PathBuf,
    argocd: PathBuf,
    operator: PathBuf,
    kwok: PathBuf,
    tools: PathBuf,
}

impl Parts {
    /// Builds the programs that are not in the cache, which takes 20 minutes once on two cores, and returns their paths.
    ///
    /// May be called concurrently: one caller builds, the others wait.
    pub fn ensure() -> Result<Self> {
        if let Some(missing) = missing() {
            bail!(
                "the real components cannot run, because {missing}: run `cargo xtask setup` with the PATH that it prints, and `cargo run -p \
                 testbed -- build`; `cargo xtask test --quick` runs the tests without components"
            );
        }
        let mut programs = Vec::new();
        // The user's programs come first, and the first match is used.
        if let Some(assets) = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) {
            programs.extend([
                (Part::Etcd, assets.join("etcd")),
                (Part::KubeApiserver, assets.join("kube-apiserver")),
            ]);
            programs.extend(on_path("kubectl", assets.as_os_str()).map(|kubectl| (Part::Kubectl, kubectl)));
        }
        let path = env::var_os("PATH").unwrap_or_default();
        programs.extend(on_path("kubectl", &path).map(|kubectl| (Part::Kubectl, kubectl)));

        let cache = cache()?;
        let build = |module: &GoModule, parts: &[Part], programs: &mut Vec<_>| -> Result<()> {
            for part in parts {
                if !programs.iter().any(|(other, _)| other == part) {
                    let (file, package) = part.source();
                    programs.push((*part, module.build(file, package)?));
                }
            }
            Ok(())
        };
        let kubernetes = kubernetes_module(&cache)?;
        build(&kubernetes, KUBERNETES, &mut programs)?;
        let ocm = Ocm::new(&cache)?;
        build(&ocm.module, OCM, &mut programs)?;
        let cluster_proxy = GoModule::with_replacements("cluster-proxy", &cache, CLUSTER_PROXY_REPLACEMENTS)?;
        build(&cluster_proxy, CLUSTER_PROXY, &mut programs)?;
        let kwok = GoModule::new("kwok", &cache, &[])?;
        build(&kwok, &[Part::Kwok], &mut programs)?;
        let argocd = argocd_module(&cache)?;
        build(&argocd, ARGOCD, &mut programs)?;
        let operator = GoModule::new("operator", &cache, &[])?;
        build(&operator, &[Part::ArgoCdOperator], &mut programs)?;

        let [kustomize, helm] = Tools::selected()?.build(&cache)?;
        let tools = side_by_side(&cache, &[&kustomize, &helm])?;
        programs.extend([(Part::Kustomize, kustomize), (Part::Helm, helm)]);

        Ok(Self {
            tools,
            programs,
            ocm: ocm.source,
            ocm_api: ocm.api,
            argocd: argocd.folder_of("github.com/argoproj/argo-cd/v3")?,
            operator: operator.folder_of("github.com/argoproj-labs/argocd-operator")?,
            kwok: kwok.folder_of("sigs.k8s.io/kwok")?,
        })
    }

    /// Returns the program file of a part.
    ///
    /// # Panics
    /// Never: [`Parts::ensure`] has found every part.
    pub fn program(&self, part: Part) -> &Path {
        let entry = self.programs.iter().find(|(other, _)| *other == part);
        entry
            .map(|(_, program)| program.as_path())
            .expect("every part was found or built")
    }

    /// Returns a folder with only kustomize and Helm, for a `PATH`.
    pub fn tools(&self) -> &Path {
        &self.tools
    }

    /// Builds kustomize and Helm of other versions if they are not in the cache, and returns a folder with only these.
    pub fn tools_of(&self, tools: Tools) -> Result<PathBuf> {
        let cache = cache()?;
        let [kustomize, helm] = tools.build(&cache)?;
        side_by_side(&cache, &[&kustomize, &helm])
    }

    /// Returns the `PATH` of this process with kustomize and Helm in front, and `first` before them.
    pub(crate) fn path_with_tools(&self, first: Option<&Path>) -> Result<OsString> {
        let path = env::var_os("PATH").unwrap_or_default();
        let in_front = first.into_iter().chain([self.tools()]).map(Path::to_owned);
        Ok(env::join_paths(in_front.chain(env::split_paths(&path)))?)
    }

    /// Returns the CRDs of OCM: the files of `folders` (such as `work/v1`) whose name matches `expected`.
    pub(crate) fn ocm_crds(&self, folders: &[&str], expected: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for folder in folders {
            files.extend(yaml_files(&self.ocm_api.join(folder))?);
        }
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".crd.yaml") && expected(&name)
        });
        ensure!(
            !files.is_empty(),
            "no CRDs in {folders:?} of {}",
            self.ocm_api.display()
        );
        Ok(files)
    }

    /// Returns true if OCM's controllers read add-ons as `v1beta1` (since OCM 1.3), to which its webhook converts them. The CRDs with
    /// both versions are in `addon/v1beta1`.
    pub(crate) fn ocm_converts_addons(&self) -> Result<bool> {
        let path = self.ocm.join("pkg/addon/controllers/addonconfiguration/controller.go");
        let source = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        Ok(source.contains("open-cluster-management.io/api/addon/v1beta1"))
    }

    /// Returns the templates of OCM's operator for the permissions of an agent (`work` or `registration`), on the managed cluster
    /// and in the namespace it runs in.
    pub(crate) fn agent_manifests(&self, agent: &str) -> Result<Vec<PathBuf>> {
        let klusterlet = self.ocm.join("manifests/klusterlet");
        let mut files = yaml_files(&klusterlet.join("managed"))?;
        files.extend(yaml_files(&klusterlet.join("management"))?);
        let prefix = format!("klusterlet-{agent}-");
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let of_the_agent = name.starts_with(&prefix) && !name.contains("deployment");
            // Both use the service account of the managed cluster.
            let account_again = name.contains("serviceaccount") && file.parent() != Some(&klusterlet.join("managed"));
            of_the_agent && !account_again || name == "klusterlet-role-extension-apiserver.yaml"
        });
        ensure!(
            !files.is_empty(),
            "no manifests of the {agent} agent in {}",
            klusterlet.display()
        );
        Ok(files)
    }

    /// Returns the templates of OCM's operator for the permissions of the hub's controllers.
    pub(crate) fn hub_controller_manifests(&self) -> Result<Vec<PathBuf>> {
        let hub = self.ocm.join("manifests/cluster-manager/hub");
        let mut files = Vec::new();
        for controller in ["registration", "placement", "addon-manager", "work"] {
            files.extend(yaml_files(&hub.join(controller))?);
        }
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let rights = ["clusterrole.yaml", "clusterrolebinding.yaml", "serviceaccount.yaml"];
            let of_a_webhook = name.starts_with("webhook-");
            // The permissions of add-on agents that join with tokens are created in code.
            let of_an_agent = name.starts_with("token-");
            rights.iter().any(|kind| name.ends_with(kind)) && !of_a_webhook && !of_an_agent
        });
        ensure!(!files.is_empty(), "no manifests of controllers in {}", hub.display());
        Ok(files)
    }

    /// Returns the folders with the sources of Argo CD, OCM's API and kwok, which contain manifests of every kind.
    pub fn sources(&self) -> [PathBuf; 3] {
        [self.argocd.clone(), self.ocm_api.clone(), self.kwok.clone()]
    }

    /// Returns the folder with Argo CD's installation manifests.
    pub fn argocd_manifests(&self) -> PathBuf {
        self.argocd.join("manifests")
    }

    /// Returns the folder with Argo CD's health checks of custom resources and the data of their tests, by group and kind.
    pub fn argocd_health_checks(&self) -> PathBuf {
        self.argocd.join("resource_customizations")
    }

    /// Returns the folder with argocd-operator's templates of Redis' configuration, which its image has in `/var/lib/redis`.
    pub fn argocd_operator_redis(&self) -> PathBuf {
        self.operator.join("build/redis")
    }

    /// Returns the folder with argocd-operator's CRDs.
    pub fn argocd_operator_crds(&self) -> PathBuf {
        self.operator.join("config/crd/bases")
    }

    /// Returns Argo CD's script for the verification of commits, which its image has on the `PATH`.
    pub(crate) fn argocd_git_verify_wrapper(&self) -> PathBuf {
        self.argocd.join("hack/git-verify-wrapper.sh")
    }

    /// Returns kwok's stages of that name, such as `pod/fast`.
    pub(crate) fn kwok_stages(&self, name: &str) -> Result<Vec<PathBuf>> {
        let mut files = yaml_files(&self.kwok.join("kustomize/stage").join(name))?;
        files.retain(|file| !file.ends_with("kustomization.yaml"));
        Ok(files)
    }
}

/// OCM, from its Go module or from the checkout in `TESTBED_OCM`.
struct Ocm {
    module: GoModule,
    source: PathBuf,
    api: PathBuf,
}

impl Ocm {
    fn new(cache: &Path) -> Result<Self> {
        if let Some(checkout) = env::var_os("TESTBED_OCM").map(PathBuf::from) {
            return Ok(Self {
                module: GoModule::checkout("ocm", &checkout, &["agent-rules", "work-webhook"], cache)?,
                // OCM keeps what it requires beside its source.
                api: checkout.join("vendor/open-cluster-management.io/api"),
                source: checkout,
            });
        }
        let module = GoModule::new("ocm", cache, &[])?;
        Ok(Self {
            source: module.folder_of("open-cluster-management.io/ocm")?,
            api: module.folder_of("open-cluster-management.io/api")?,
            module,
        })
    }
}

/// The versions of kustomize and Helm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tools {
    /// Those of the default version of Argo CD.
    Current,
    /// Those before Helm 4.
    Older,
}

impl Tools {
    /// Returns the versions in `TESTBED_TOOLS`, or the current ones.
    fn selected() -> Result<Self> {
        match env::var("TESTBED_TOOLS").as_deref() {
            Err(_) | Ok("current") => Ok(Self::Current),
            Ok("older") => Ok(Self::Older),
            Ok(other) => bail!("TESTBED_TOOLS={other}: set it to current or older"),
        }
    }

    /// Returns the program files of kustomize and Helm, built.
    fn build(self, cache: &Path) -> Result<[PathBuf; 2]> {
        let (kustomize, helm, version) = match self {
            Self::Current => (
                GoModule::new("kustomize", cache, KUSTOMIZE_STAMPS)?,
                GoModule::new("helm", cache, HELM_STAMPS)?,
                "v4",
            ),
            Self::Older => (
                GoModule::of_version("kustomize", "older", cache, KUSTOMIZE_STAMPS)?,
                GoModule::new("helm-older", cache, OLDER_HELM_STAMPS)?,
                "v3",
            ),
        };
        Ok([
            kustomize.build("kustomize", "sigs.k8s.io/kustomize/kustomize/v5")?,
            helm.build("helm", &format!("helm.sh/helm/{version}/cmd/helm"))?,
        ])
    }
}

/// Returns the module of Kubernetes 1.36, or of the version in `TESTBED_KUBERNETES`.
fn kubernetes_module(cache: &Path) -> Result<GoModule> {
    let folder = match env::var("TESTBED_KUBERNETES").as_deref() {
        Err(_) | Ok("1.36") => "kubernetes",
        Ok("1.37") => "kubernetes-1.37",
        Ok(other) => bail!("TESTBED_KUBERNETES={other}: set it to 1.36 or 1.37"),
    };
    GoModule::new(folder, cache, KUBERNETES_STAMPS)
}

/// The default version of Argo CD.
const ARGOCD_VERSION: &str = "3.6";

/// Returns the version of Argo CD, such as `3.6`: the default one, or the one in `TESTBED_ARGOCD`.
pub fn argocd_version() -> String {
    env::var("TESTBED_ARGOCD").unwrap_or_else(|_| ARGOCD_VERSION.to_owned())
}

fn argocd_module(cache: &Path) -> Result<GoModule> {
    match &*argocd_version() {
        ARGOCD_VERSION => GoModule::new("argocd", cache, &[]),
        version @ "3.2" => GoModule::of_version("argocd", version, cache, &[]),
        other => bail!("TESTBED_ARGOCD={other}: set it to {ARGOCD_VERSION} or 3.2"),
    }
}

/// The release of argocd-agent that passed the tests with a checkout. They also pass with later commits.
pub const ARGOCD_AGENT_VERSION: &str = "v0.9.0";

/// Builds argocd-agent from the checkout in `TESTBED_ARGOCD_AGENT`, and returns its path. It is not one of the [`Parts`], because
/// its Go module cannot be required by another.
pub fn argocd_agent() -> Result<PathBuf> {
    Ok(build_checkout("TESTBED_ARGOCD_AGENT", "argocd-agent", "./cmd/argocd-agent")?.0)
}

/// Builds Argo CD Image Updater from the checkout in `TESTBED_IMAGE_UPDATER`, and returns its path and that of its installation
/// manifests.
pub fn image_updater() -> Result<(PathBuf, PathBuf)> {
    let (program, checkout) = build_checkout("TESTBED_IMAGE_UPDATER", "argocd-image-updater", "./cmd")?;
    Ok((program, checkout.join("config/install.yaml")))
}

/// Builds a program from the Git checkout that a variable names, and returns their paths.
fn build_checkout(variable: &str, name: &str, package: &str) -> Result<(PathBuf, PathBuf)> {
    let checkout = env::var_os(variable).map(PathBuf::from);
    let checkout = checkout.with_context(|| format!("{variable} is not set: set it to a Git checkout of {name}"))?;
    let program = GoModule::checkout(name, &checkout, &[], &cache()?)?.build(name, package)?;
    Ok((program, checkout))
}

/// The variable that forbids the real components with the value `none`, so that a test which needs them fails as on a machine without Go.
const COMPONENTS: &str = "TESTBED_COMPONENTS";

/// Returns the prerequisites that this machine lacks for a testbed, in one line.
pub fn missing() -> Option<String> {
    if env::var_os(COMPONENTS).is_some_and(|value| value == "none") {
        return Some(format!("{COMPONENTS} is none"));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let mut missing: Vec<String> = ["go", "git", "redis-server", "setpriv"]
        .into_iter()
        .filter(|tool| on_path(tool, &path).is_none())
        .map(|tool| format!("{tool} is not on the PATH"))
        .collect();
    if let Some(assets) = env::var_os("KUBEBUILDER_ASSETS") {
        for tool in ["etcd", "kube-apiserver"] {
            if on_path(tool, &assets).is_none() {
                missing.push(format!("{tool} is not in $KUBEBUILDER_ASSETS"));
            }
        }
    }
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// Creates a folder in the cache with links to programs of the cache, each under its own name.
fn side_by_side(cache: &Path, programs: &[&Path]) -> Result<PathBuf> {
    // The name of the folder is derived from those of the programs, which are hashes of their sources.
    let built = |program: &Path| {
        Some((
            program.parent()?.file_name()?.to_owned(),
            program.file_name()?.to_owned(),
        ))
    };
    let programs: Vec<_> = programs.iter().copied().filter_map(built).collect();
    let names: Vec<_> = programs.iter().map(|(folder, _)| folder.to_string_lossy()).collect();
    let together = cache.join(names.join("-"));
    fs::create_dir_all(&together).with_context(|| format!("failed to create {}", together.display()))?;
    for (folder, file) in programs {
        match symlink(Path::new("..").join(folder).join(&file), together.join(file)) {
            // Linked earlier, or just now by another process.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked.with_context(|| format!("failed to link programs in {}", together.display()))?,
        }
    }
    Ok(together)
}

/// Returns the first file of that name in a list of folders.
pub(crate) fn on_path(name: &str, folders: &std::ffi::OsStr) -> Option<PathBuf> {
    env::split_paths(folders)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = folder
        .read_dir()
        .with_context(|| format!("failed to read {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}

fn cache() -> Result<PathBuf> {
    if let Some(cache) = env::var_os("TESTBED_CACHE") {
        return Ok(PathBuf::from(cache));
    }
    let user = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .context("neither TESTBED_CACHE nor HOME is set")?;
    Ok(user.join("argocd-ocm-cmp-testbed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the version of a required module in a `go.mod` of the folder `go`, after replacements.
    fn version(folder: &str, module: &str) -> String {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("go")
            .join(folder)
            .join("go.mod");
        let text = fs::read_to_string(file).unwrap();
        let lines = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix(module)?.strip_prefix(' '));
        let lines: Vec<_> = lines.map(|line| line.trim_end_matches(" // indirect")).collect();
        let replaced = lines.iter().find(|line| line.starts_with("=>"));
        let line = replaced
            .or(lines.first())
            .unwrap_or_else(|| panic!("{folder} lacks {module}"));
        line.rsplit(' ').next().unwrap_or_default().to_owned()
    }

    /// Otherwise all packages that depend on these would be compiled again, which takes minutes.
    #[test]
    fn modules_share_compiled_packages() {
        for (folder, earlier) in [
            ("cluster-proxy", "ocm"),
            ("kwok", "kubernetes"),
            ("operator", "ocm"),
            ("helm", "argocd"),
            ("helm-older", "ocm"),
        ] {
            for module in [
                "github.com/google/uuid",
                "golang.org/x/net",
                "google.golang.org/protobuf",
                "k8s.io/client-go",
                "k8s.io/kube-openapi",
                "sigs.k8s.io/structured-merge-diff/v6",
            ] {
                assert_eq!(
                    version(folder, module),
                    version(earlier, module),
                    "{module} of {folder}"
                );
            }
        }
    }
}
