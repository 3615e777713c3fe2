//! Whose an object on the hub is, by the marks of Argo CD: a pure rule of a few texts.
//!
//! Mirrors Argo CD's `util/argo/resource_tracking.go` (`GetAppName`) and `isSelfReferencedObj` in its `controller/state.go`.

/// The ConfigMap, in Argo CD's namespace, that says how it tracks what it applies.
pub const CONFIG_MAP: &str = "argocd-cm";

/// The annotation that Argo CD writes by default: `APPLICATION:GROUP/KIND:NAMESPACE/NAME`.
pub const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";

/// The annotation that tells the Argo CDs of one hub apart.
pub const INSTALLATION_ID: &str = "argocd.argoproj.io/installation-id";

/// The label that Argo CD writes where it is told to track by labels, and not by which one.
pub const INSTANCE: &str = "app.kubernetes.io/instance";

/// How an Argo CD tells what it has applied from all else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracking {
    method: Method,
    label: String,
    /// Its own, which is empty unless it was given one; nothing where that is not known.
    installation: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// By the annotation, whether or not the label is written as well: it may have been cut to its allowed length.
    Annotation,
    Label,
    Unknown,
}

/// What stands on an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim<'a> {
    /// Its annotation [`TRACKING_ID`].
    pub tracking_id: Option<&'a str>,
    /// Its annotation [`INSTALLATION_ID`].
    pub installation_id: Option<&'a str>,
    /// Its label [`Tracking::label`].
    pub label: Option<&'a str>,
}

/// What the object is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Itself<'a> {
    /// Its API group.
    pub group: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace; empty for none.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// Whose an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<'a> {
    /// That of this Application, as Argo CD calls it: `NAME`, or `NAMESPACE_NAME` outside Argo CD's own namespace.
    Application(&'a str),
    /// That of this Application, if the label is one of Argo CD's: where it is not known how that tracks.
    Perhaps(&'a str),
    /// That of an Application of another Argo CD.
    OtherArgoCd,
    /// Argo CD has not marked it.
    Nobody,
}

impl Tracking {
    /// As the `data` of [`CONFIG_MAP`] says, by its keys.
    #[must_use]
    pub fn configured<'a>(data: impl Fn(&str) -> Option<&'a str>) -> Self {
        let text = |key| data(key).filter(|text| !text.is_empty());
        Self {
            // What Argo CD does not know is for it the default as well.
            method: match text("application.resourceTrackingMethod") {
                Some("label") => Method::Label,
                _ => Method::Annotation,
            },
            label: text("application.instanceLabelKey").unwrap_or(INSTANCE).to_owned(),
            installation: Some(text("installationID").unwrap_or_default().to_owned()),
        }
    }

    /// Where [`CONFIG_MAP`] cannot be read: every mark counts that an Argo CD may have made.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            method: Method::Unknown,
            label: INSTANCE.to_owned(),
            installation: None,
        }
    }

    /// The key of the label by which Argo CD may track.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whose the object is on which this stands.
    #[must_use]
    pub fn owner<'a>(&self, claim: &Claim<'a>, itself: &Itself<'_>) -> Owner<'a> {
        let label = claim.label.filter(|label| !label.is_empty());
        match (self.method, self.by_annotation(claim, itself)) {
            (Method::Label, _) => label.map_or(Owner::Nobody, Owner::Application),
            (Method::Unknown, Owner::Nobody) => label.map_or(Owner::Nobody, Owner::Perhaps),
            (_, by_annotation) => by_annotation,
        }
    }

    /// The Application whose the object is, if it is one of this Argo CD.
    #[must_use]
    pub fn application<'a>(&self, claim: &Claim<'a>, itself: &Itself<'_>) -> Option<&'a str> {
        match self.owner(claim, itself) {
            Owner::Application(name) => Some(name),
            Owner::Perhaps(_) | Owner::OtherArgoCd | Owner::Nobody => None,
        }
    }

    fn by_annotation<'a>(&self, claim: &Claim<'a>, itself: &Itself<'_>) -> Owner<'a> {
        let Some(application) = claim.tracking_id.and_then(|id| tracked(id, itself)) else {
            return Owner::Nobody;
        };
        match &self.installation {
            Some(own) if own != claim.installation_id.unwrap_or_default() => Owner::OtherArgoCd,
            _ => Owner::Application(application),
        }
    }
}

/// The Application that a tracking id names. One that is about another object was copied with the rest of that object, and says
/// nothing. For what has no namespace it has the one of the Application's destination.
fn tracked<'a>(id: &'a str, itself: &Itself<'_>) -> Option<&'a str> {
    let mut parts = id.splitn(3, ':');
    let (application, kind, place) = (parts.next()?, parts.next()?, parts.next()?);
    let (namespace, name) = place.split_once('/')?;
    let is_itself = kind.split_once('/') == Some((itself.group, itself.kind))
        && name == itself.name
        && (itself.namespace.is_empty() || namespace == itself.namespace);
    (is_itself && !application.is_empty()).then_some(application)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "team_shop:work.open-cluster-management.io/ManifestWork:eu1/shop";

    const WORK: Itself<'_> = Itself {
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

    fn annotated(id: &str) -> Claim<'_> {
        Claim {
            tracking_id: Some(id),
            ..Claim::default()
        }
    }

    fn labelled(label: &str) -> Claim<'_> {
        Claim {
            label: Some(label),
            ..Claim::default()
        }
    }

    #[test]
    fn the_annotation_counts_unless_only_labels_are_written() {
        let both = Claim {
            label: Some("team_sh"),
            ..annotated(ID)
        };
        let methods = ["", "annotation", "annotation+label", "no-such-method", "Label"];
        for tracking in methods.map(|method| configured(&[("application.resourceTrackingMethod", method)])) {
            assert_eq!(tracking.owner(&annotated(ID), &WORK), Owner::Application("team_shop"));
            // Beside the annotation, the label may have been cut.
            assert_eq!(tracking.owner(&both, &WORK), Owner::Application("team_shop"));
            assert_eq!(tracking.owner(&labelled("team_shop"), &WORK), Owner::Nobody);
        }
        assert_eq!(by_label().owner(&both, &WORK), Owner::Application("team_sh"));
        assert_eq!(by_label().owner(&annotated(ID), &WORK), Owner::Nobody);
        assert_eq!(by_label().owner(&labelled(""), &WORK), Owner::Nobody);
        assert_eq!(configured(&[]).application(&annotated(ID), &WORK), Some("team_shop"));
        assert_eq!(by_label().application(&annotated(ID), &WORK), None);
    }

    #[test]
    fn a_tracking_id_counts_on_what_it_names() {
        let owner = |id: &str, itself: &Itself<'_>| configured(&[]).application(&annotated(id), itself).is_some();
        assert!(owner(ID, &WORK));
        for (group, kind, namespace, name) in [
            ("apps", WORK.kind, "eu1", "shop"),
            (WORK.group, "ManifestWorkReplicaSet", "eu1", "shop"),
            (WORK.group, WORK.kind, "eu2", "shop"),
            (WORK.group, WORK.kind, "eu1", "copy"),
        ] {
            let other = Itself {
                group,
                kind,
                namespace,
                name,
            };
            assert!(!owner(ID, &other), "{other:?}");
        }
        let cluster = Itself {
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
    fn each_argo_cd_has_its_own() {
        let with = |installation_id| Claim {
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
        // A copy is nobody's, whoever made what it was copied from.
        let copy = Itself { name: "copy", ..WORK };
        assert_eq!(east.owner(&with(Some("west")), &copy), Owner::Nobody);
        // Labels do not tell whose they are.
        let marked = Claim {
            installation_id: Some("west"),
            ..labelled("shop")
        };
        assert_eq!(by_label().owner(&marked, &WORK), Owner::Application("shop"));
    }

    #[test]
    fn the_label_may_be_another() {
        assert_eq!(by_label().label(), "app.kubernetes.io/instance");
        let key = ("application.instanceLabelKey", "argocd.argoproj.io/instance");
        assert_eq!(configured(&[key]).label(), "argocd.argoproj.io/instance");
        assert_eq!(
            configured(&[("application.instanceLabelKey", "")]).label(),
            by_label().label()
        );
    }

    #[test]
    fn where_nothing_is_known_of_argo_cd_each_mark_counts() {
        let unknown = Tracking::unknown();
        let marked = Claim {
            installation_id: Some("west"),
            label: Some("other"),
            ..annotated(ID)
        };
        assert_eq!(unknown.owner(&marked, &WORK), Owner::Application("team_shop"));
        let copy = Itself { name: "copy", ..WORK };
        assert_eq!(unknown.owner(&marked, &copy), Owner::Perhaps("other"));
        assert_eq!(unknown.owner(&labelled("shop"), &WORK), Owner::Perhaps("shop"));
        assert_eq!(unknown.application(&labelled("shop"), &WORK), None);
        assert_eq!(unknown.owner(&Claim::default(), &WORK), Owner::Nobody);
    }
}
