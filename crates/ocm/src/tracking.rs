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
    #[must_use]
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
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            method: Method::Unknown,
            label: INSTANCE.to_owned(),
            installation: None,
        }
    }

    /// Returns the key of the label with which Argo CD may track.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the owner of the object with these marks.
    #[must_use]
    pub fn owner<'a>(&self, marks: &TrackingMarks<'a>, identity: &ObjectIdentity<'_>) -> Owner<'a> {
        let label = marks.label.filter(|label| !label.is_empty());
        match (self.method, self.by_annotation(marks, identity)) {
            (Method::Label, _) => label.map_or(Owner::None, Owner::Application),
            (Method::Unknown, Owner::None) => label.map_or(Owner::None, Owner::PossibleApplication),
            (_, by_annotation) => by_annotation,
        }
    }

    /// Returns the owning Application, if it is one of this Argo CD.
    #[must_use]
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

    fn configured(data: &[(&str, &'static str)]) -> Tracking {
        Tracking::configured(|key| data.iter().find(|it| it.0 == key).map(|it| it.1))
    }

    fn by_label() -> Tracking {
        configured(&[("application.resourceTrackingMethod", "label")])
    }

    fn annotated(id: &str) -> TrackingMarks<'_> {
        TrackingMarks {
            tracking_id: Some(id),
            ..TrackingMarks::default()
        }
    }

    fn labelled(label: &str) -> TrackingMarks<'_> {
        TrackingMarks {
            label: Some(label),
            ..TrackingMarks::default()
        }
    }

    #[test]
    fn annotation_counts_unless_tracking_is_by_label() {
        let both = TrackingMarks {
            label: Some("team_sh"),
            ..annotated(ID)
        };
        let methods = ["", "annotation", "annotation+label", "no-such-method", "Label"];
        for tracking in methods.map(|method| configured(&[("application.resourceTrackingMethod", method)])) {
            assert_eq!(tracking.owner(&annotated(ID), &WORK), Owner::Application("team_shop"));
            // With the annotation, the label may be truncated.
            assert_eq!(tracking.owner(&both, &WORK), Owner::Application("team_shop"));
            assert_eq!(tracking.owner(&labelled("team_shop"), &WORK), Owner::None);
        }
        assert_eq!(by_label().owner(&both, &WORK), Owner::Application("team_sh"));
        assert_eq!(by_label().owner(&annotated(ID), &WORK), Owner::None);
        assert_eq!(by_label().owner(&labelled(""), &WORK), Owner::None);
        assert_eq!(configured(&[]).application(&annotated(ID), &WORK), Some("team_shop"));
        assert_eq!(by_label().application(&annotated(ID), &WORK), None);
    }

    #[test]
    fn tracking_id_counts_only_on_the_object_it_names() {
        let owner =
            |id: &str, identity: &ObjectIdentity<'_>| configured(&[]).application(&annotated(id), identity).is_some();
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
    fn installation_id_separates_argo_cds() {
        let with = |installation_id| TrackingMarks {
            installation_id,
            ..annotated(ID)
        };
        let own = Owner::Application("team_shop");
        let east = configured(&[("installationID", "east")]);
        assert_eq!(east.owner(&with(Some("east")), &WORK), own);
        assert_eq!(east.owner(&with(Some("west")), &WORK), Owner::OtherArgoCd);
        assert_eq!(east.owner(&with(None), &WORK), Owner::OtherArgoCd);
        let only = configured(&[]);
        assert_eq!(only.owner(&with(None), &WORK), own);
        assert_eq!(only.owner(&with(Some("")), &WORK), own);
        assert_eq!(only.owner(&with(Some("west")), &WORK), Owner::OtherArgoCd);
        // A copy has no owner, regardless of the owner of the original.
        let copy = ObjectIdentity { name: "copy", ..WORK };
        assert_eq!(east.owner(&with(Some("west")), &copy), Owner::None);
        // Labels do not identify the Argo CD.
        let marked = TrackingMarks {
            installation_id: Some("west"),
            ..labelled("shop")
        };
        assert_eq!(by_label().owner(&marked, &WORK), Owner::Application("shop"));
    }

    #[test]
    fn label_key_is_configurable() {
        assert_eq!(by_label().label(), "app.kubernetes.io/instance");
        let key = ("application.instanceLabelKey", "argocd.argoproj.io/instance");
        assert_eq!(configured(&[key]).label(), "argocd.argoproj.io/instance");
        assert_eq!(
            configured(&[("application.instanceLabelKey", "")]).label(),
            by_label().label()
        );
    }

    #[test]
    fn unknown_tracking_accepts_every_mark() {
        let unknown = Tracking::unknown();
        let marked = TrackingMarks {
            installation_id: Some("west"),
            label: Some("other"),
            ..annotated(ID)
        };
        assert_eq!(unknown.owner(&marked, &WORK), Owner::Application("team_shop"));
        let copy = ObjectIdentity { name: "copy", ..WORK };
        assert_eq!(unknown.owner(&marked, &copy), Owner::PossibleApplication("other"));
        assert_eq!(
            unknown.owner(&labelled("shop"), &WORK),
            Owner::PossibleApplication("shop")
        );
        assert_eq!(unknown.application(&labelled("shop"), &WORK), None);
        assert_eq!(unknown.owner(&TrackingMarks::default(), &WORK), Owner::None);
    }
}
