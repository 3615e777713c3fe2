//! Determines the owner of an object on the hub from Argo CD's tracking marks, as a pure function.
//!
//! Mirrors Argo CD's `util/argo/resource_tracking.go` (`GetAppName`) and `isSelfReferencedObj` in its `controller/state.go`.

/// The ConfigMap in Argo CD's namespace that configures the tracking method.
pub const CONFIG_MAP: &str = "argocd-cm";

/// The annotation that Argo CD writes by default: `APPLICATION:GROUP/KIND:NAMESPACE/NAME`.
pub const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";

/// The annotation that distinguishes the Argo CDs of one hub.
pub const INSTALLATION_ID: &str = "argocd.argoproj.io/installation-id";

/// The label that Argo CD writes by default if it tracks by labels.
pub const INSTANCE: &str = "app.kubernetes.io/instance";

/// The tracking method of an Argo CD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracking {
    method: Method,
    label: String,
    /// The installation ID, empty by default; `None` if unknown.
    installation: Option<String>,
}

impl Default for Tracking {
    fn default() -> Self {
        Self::configured(|_| None)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// By the annotation, even if the label is written as well: the label may be truncated.
    Annotation,
    Label,
    Unknown,
}

/// The tracking marks on an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackingMarks<'a> {
    /// The annotation [`TRACKING_ID`].
    pub tracking_id: Option<&'a str>,
    /// The annotation [`INSTALLATION_ID`].
    pub installation_id: Option<&'a str>,
    /// The label [`Tracking::label`].
    pub label: Option<&'a str>,
}

/// The identity of the object with the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectIdentity<'a> {
    /// The API group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

/// The owner of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<'a> {
    /// An Application, by its name in Argo CD: `NAME`, or `NAMESPACE_NAME` outside Argo CD's own namespace.
    Application(&'a str),
    /// An Application, if the label is Argo CD's: the tracking method is unknown.
    PossibleApplication(&'a str),
    /// An Application of another Argo CD.
    OtherArgoCd,
    /// No Application: Argo CD has not marked the object.
    None,
}

impl Tracking {
    /// Reads the tracking method from the `data` of [`CONFIG_MAP`].
    pub fn configured<'a>(data: impl Fn(&str) -> Option<&'a str>) -> Self {
        let text = |key| data(key).filter(|text| !text.is_empty());
        Self {
            // Argo CD uses the default for an unknown method as well.
            method: match text("application.resourceTrackingMethod") {
                Some("label") => Method::Label,
                _ => Method::Annotation,
            },
            label: text("application.instanceLabelKey").unwrap_or(INSTANCE).to_owned(),
            installation: Some(text("installationID").unwrap_or_default().to_owned()),
        }
    }

    /// Returns the tracking method if [`CONFIG_MAP`] cannot be read: every possible mark of an Argo CD counts.
    pub fn unknown() -> Self {
        Self {
            method: Method::Unknown,
            label: INSTANCE.to_owned(),
            installation: None,
        }
    }

    /// Returns the key of the label with which Argo CD may track.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the key of the label if it alone makes an object a part of an Application, in every Argo CD with these settings.
    pub fn only_label(&self) -> Option<&str> {
        (self.method == Method::Label).then_some(&self.label)
    }

    /// Returns the owner of the object with these marks.
    pub fn owner<'a>(&self, marks: &TrackingMarks<'a>, identity: &ObjectIdentity<'_>) -> Owner<'a> {
        let label = marks.label.filter(|label| !label.is_empty());
        match (self.method, self.by_annotation(marks, identity)) {
            (Method::Label, _) => label.map_or(Owner::None, Owner::Application),
            (Method::Unknown, Owner::None) => label.map_or(Owner::None, Owner::PossibleApplication),
            (_, by_annotation) => by_annotation,
        }
    }

    /// Returns the owning Application, if it is one of this Argo CD.
    pub fn application<'a>(&self, marks: &TrackingMarks<'a>, identity: &ObjectIdentity<'_>) -> Option<&'a str> {
        match self.owner(marks, identity) {
            Owner::Application(name) => Some(name),
            Owner::PossibleApplication(_) | Owner::OtherArgoCd | Owner::None => None,
        }
    }

    fn by_annotation<'a>(&self, marks: &TrackingMarks<'a>, identity: &ObjectIdentity<'_>) -> Owner<'a> {
        let Some(application) = marks.tracking_id.and_then(|id| tracked(id, identity)) else {
            return Owner::None;
        };
        match &self.installation {
            Some(installation_id) if installation_id != marks.installation_id.unwrap_or_default() => Owner::OtherArgoCd,
            _ => Owner::Application(application),
        }
    }
}

/// Returns the Application that a tracking ID names. An ID that names another object was copied with that object and is ignored.
/// For a cluster-scoped object, the ID contains the namespace of the Application's destination.
fn tracked<'a>(id: &'a str, identity: &ObjectIdentity<'_>) -> Option<&'a str> {
    let mut parts = id.splitn(3, ':');
    let (application, kind, object) = (parts.next()?, parts.next()?, parts.next()?);
    let (namespace, name) = object.split_once('/')?;
    let is_itself = kind.split_once('/') == Some((identity.group, identity.kind))
        && name == identity.name
        && (identity.namespace.is_empty() || namespace == identity.namespace);
    (is_itself && !application.is_empty()).then_some(application)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "team_shop:work.open-cluster-management.io/ManifestWork:eu1/shop";

    const WORK: ObjectIdentity<'_> = ObjectIdentity {
        group: "work.open-cluster-management.io",
        kind: "ManifestWork",
        namespace: "eu1",
        name: "shop",
    };

    type Config = &'static [(&'static str, &'static str)];

    const BY_LABEL: Config = &[("application.resourceTrackingMethod", "label")];
    const BY_BOTH: Config = &[("application.resourceTrackingMethod", "annotation+label")];
    /// The name of no method.
    const BY_NONE: Config = &[("application.resourceTrackingMethod", "Label")];
    const EAST: Config = &[("installationID", "east")];

    fn configured(data: Config) -> Tracking {
        Tracking::configured(|key| data.iter().find(|entry| entry.0 == key).map(|entry| entry.1))
    }

    fn marks([tracking_id, installation_id, label]: [Option<&str>; 3]) -> TrackingMarks<'_> {
        TrackingMarks {
            tracking_id,
            installation_id,
            label,
        }
    }

    #[test]
    fn annotation_label_and_installation_id_decide_on_the_owner() {
        let shop = Owner::Application("team_shop");
        let id = Some(ID);
        for (data, given, expected) in [
            (&[][..], [id, None, None], shop),
            (&[], [None, None, Some("team_shop")], Owner::None),
            // With the annotation, the label may be truncated.
            (BY_BOTH, [id, None, Some("team_sh")], shop),
            (BY_NONE, [id, None, Some("team_sh")], shop),
            (BY_NONE, [None, None, Some("team_shop")], Owner::None),
            (BY_LABEL, [id, None, Some("team_sh")], Owner::Application("team_sh")),
            (BY_LABEL, [id, None, None], Owner::None),
            (BY_LABEL, [None, None, Some("")], Owner::None),
            // Labels do not identify the Argo CD.
            (BY_LABEL, [None, Some("west"), Some("shop")], Owner::Application("shop")),
            (EAST, [id, Some("east"), None], shop),
            (EAST, [id, Some("west"), None], Owner::OtherArgoCd),
            (EAST, [id, None, None], Owner::OtherArgoCd),
            (&[], [id, Some(""), None], shop),
            (&[], [id, Some("west"), None], Owner::OtherArgoCd),
        ] {
            assert_eq!(
                configured(data).owner(&marks(given), &WORK),
                expected,
                "{data:?} {given:?}"
            );
        }
        // A copy has no owner, regardless of the owner of the original.
        let copy = ObjectIdentity { name: "copy", ..WORK };
        assert_eq!(
            configured(EAST).owner(&marks([id, Some("west"), None]), &copy),
            Owner::None
        );
    }

    #[test]
    fn tracking_id_counts_only_on_the_object_it_names() {
        let owner = |id: &str, identity: &ObjectIdentity<'_>| {
            let application = configured(&[]).application(&marks([Some(id), None, None]), identity);
            application.is_some()
        };
        assert!(owner(ID, &WORK));
        for (group, kind, namespace, name) in [
            ("apps", WORK.kind, "eu1", "shop"),
            (WORK.group, "ManifestWorkReplicaSet", "eu1", "shop"),
            (WORK.group, WORK.kind, "eu2", "shop"),
            (WORK.group, WORK.kind, "eu1", "copy"),
        ] {
            let other = ObjectIdentity {
                group,
                kind,
                namespace,
                name,
            };
            assert!(!owner(ID, &other), "{other:?}");
        }
        let cluster = ObjectIdentity {
            group: "cluster.open-cluster-management.io",
            kind: "ManagedCluster",
            namespace: "",
            name: "eu1",
        };
        assert!(owner(
            "shop:cluster.open-cluster-management.io/ManagedCluster:anywhere/eu1",
            &cluster
        ));
        for broken in [
            "",
            ":",
            "shop",
            "shop:",
            "shop::",
            "shop:work.open-cluster-management.io/ManifestWork",
            "shop:ManifestWork:eu1/shop",
            "shop:work.open-cluster-management.io/ManifestWork:shop",
            "shop:work.open-cluster-management.io/ManifestWork/more:eu1/shop",
            "shop:work.open-cluster-management.io/ManifestWork:eu1/shop/more",
            ":work.open-cluster-management.io/ManifestWork:eu1/shop",
        ] {
            assert!(!owner(broken, &WORK), "{broken}");
        }
    }

    #[test]
    fn label_key_is_configurable() {
        let default = configured(&[("application.instanceLabelKey", "")]);
        assert_eq!(default.label(), "app.kubernetes.io/instance");
        let other = configured(&[("application.instanceLabelKey", "argocd.argoproj.io/instance")]);
        assert_eq!(other.label(), "argocd.argoproj.io/instance");
        assert_eq!((other.only_label(), configured(BY_BOTH).only_label()), (None, None));
        assert_eq!(configured(BY_LABEL).only_label(), Some(INSTANCE));
    }

    #[test]
    fn unknown_tracking_accepts_every_mark() {
        let owner = |given, identity| Tracking::unknown().owner(&marks(given), identity);
        let given = [Some(ID), Some("west"), Some("other")];
        assert_eq!(owner(given, &WORK), Owner::Application("team_shop"));
        let copy = ObjectIdentity { name: "copy", ..WORK };
        assert_eq!(owner(given, &copy), Owner::PossibleApplication("other"));
        assert_eq!(
            owner([None, None, Some("shop")], &WORK),
            Owner::PossibleApplication("shop")
        );
        assert_eq!(owner([None; 3], &WORK), Owner::None);
        let possible = marks([None, None, Some("shop")]);
        assert_eq!(Tracking::unknown().application(&possible, &WORK), None);
    }
}
