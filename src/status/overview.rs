//! The Applications of a hub, or those on some of its managed clusters: `status --all` and `status --clusters`.

use super::table::{Row, format_rows};
use crate::list::List;
use crate::table::{Table, bold, clean};
use application_status::Totals;
use manifest::text::count;
use ocm::health::{HealthStatus, WorkStatus};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// An Application in Argo CD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overviewed {
    /// `NAME`, or `NAMESPACE/NAME` outside Argo CD's namespace, as `status` accepts it.
    pub(crate) name: String,
    pub(crate) project: String,
    /// Its sync status; empty before the first comparison.
    pub(crate) sync: String,
    /// Its health in Argo CD; empty before the first comparison.
    pub(crate) health: String,
    /// The totals over its clusters, as the controller writes them: `applied on 2 of 2 clusters, healthy on 1; …`.
    pub(crate) totals: Option<String>,
    /// The first reason why it is not healthy or not delivered; may be empty.
    pub(crate) message: String,
    /// True if it has a condition that is an error: what is in Git now is not delivered.
    pub(crate) has_error: bool,
}

impl Overviewed {
    /// Returns its health: Degraded for a healthy one with an error, because only an earlier version is healthy. An unknown text of
    /// another version of Argo CD is Unknown.
    pub(crate) fn health(&self) -> HealthStatus {
        let known = HealthStatus::ALL
            .into_iter()
            .find(|health| health.name() == self.health);
        match known {
            Some(HealthStatus::Healthy) if self.has_error => HealthStatus::Degraded,
            known => known.unwrap_or(HealthStatus::Unknown),
        }
    }

    /// Returns the text of its health, as Argo CD writes it if it is not known; empty before the first comparison.
    fn health_text(&self) -> &str {
        match self.health() {
            HealthStatus::Unknown => &self.health,
            known => known.name(),
        }
    }
}

/// The works of an Application on a managed cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnCluster {
    /// The managed cluster.
    pub(crate) cluster: String,
    pub(crate) application: Overviewed,
    /// The least healthy of its works there.
    pub(crate) health: HealthStatus,
    /// The names of its works there.
    pub(crate) works: Vec<String>,
    /// The number of its objects there.
    pub(crate) objects: usize,
    /// The reason for the health.
    pub(crate) message: String,
}

impl OnCluster {
    /// Returns the Applications on managed clusters, from the works there with their Applications.
    pub(crate) fn all(works: impl IntoIterator<Item = (Overviewed, WorkStatus)>) -> Vec<Self> {
        let mut all = BTreeMap::<_, Self>::new();
        for (application, work) in works {
            let key = (work.namespace.clone(), application.name.clone());
            let on_cluster = all.entry(key).or_insert_with(|| Self {
                cluster: work.namespace.clone(),
                health: HealthStatus::Healthy,
                message: String::new(),
                application,
                works: Vec::new(),
                objects: 0,
            });
            if work.health < on_cluster.health {
                on_cluster.message = work.summary();
                on_cluster.health = work.health;
            }
            on_cluster.objects = on_cluster.objects.saturating_add(work.objects.len());
            on_cluster.works.push(work.name);
        }
        let mut all: Vec<Self> = all.into_values().collect();
        for on_cluster in &mut all {
            if on_cluster.health == HealthStatus::Healthy && on_cluster.application.has_error {
                on_cluster.health = HealthStatus::Degraded;
                on_cluster.message = on_cluster.application.message.clone();
            }
        }
        all
    }
}

/// The Applications of a hub.
#[derive(Debug)]
pub(crate) enum Overview {
    /// Those in Argo CD.
    All(Vec<Overviewed>),
    /// Those on some managed clusters.
    OnClusters(Vec<OnCluster>),
}

impl Overview {
    /// Keeps those with one of these health values and of one of these AppProjects; an empty list keeps all.
    ///
    /// # Errors
    /// One line, if no Application belongs to one of the projects: nothing would be shown as healthy for a misspelled name.
    pub(crate) fn keep(&mut self, health: &[HealthStatus], projects: &[String]) -> Result<(), String> {
        if let Self::All(all) = &*self {
            let known: BTreeSet<&str> = all.iter().map(|application| &*application.project).collect();
            if let Some(unknown) = projects.iter().find(|project| !known.contains(&***project)) {
                let known: Vec<_> = known.into_iter().collect();
                return Err(format!(
                    "no Application belongs to AppProject {unknown}: correct its name: the AppProjects of Applications are: {}",
                    known.join(", ")
                ));
            }
        }
        let keeps = |application: &Overviewed, of: HealthStatus| {
            (health.is_empty() || health.contains(&of))
                && (projects.is_empty() || projects.contains(&application.project))
        };
        match self {
            Self::All(all) => all.retain(|application| keeps(application, application.health())),
            Self::OnClusters(all) => all.retain(|cluster| keeps(&cluster.application, cluster.health)),
        }
        Ok(())
    }

    /// Returns the worst health.
    pub(crate) fn health(&self) -> HealthStatus {
        let worst = match self {
            Self::All(all) => all.iter().map(Overviewed::health).min(),
            Self::OnClusters(all) => all.iter().map(|cluster| cluster.health).min(),
        };
        worst.unwrap_or(HealthStatus::Healthy)
    }

    /// Returns the headings and the rows, the worst first.
    fn rows(&self) -> ([&'static str; 8], Vec<Row>) {
        let (headings, mut rows): (_, Vec<_>) = match self {
            Self::All(all) => (OF_HUB, all.iter().map(row).collect()),
            Self::OnClusters(all) => (OF_CLUSTERS, all.iter().map(row_on).collect()),
        };
        rows.sort_by_cached_key(|row| (row.health, row.cells[0].clone(), row.cells[1].clone()));
        (headings, rows)
    }
}

const OF_HUB: [&str; 8] = [
    "APPLICATION",
    "PROJECT",
    "SYNC",
    "HEALTH",
    "HEALTHY ON",
    "OBJECTS",
    "WORKS",
    "MESSAGE",
];
const OF_CLUSTERS: [&str; 8] = [
    "CLUSTER",
    "APPLICATION",
    "PROJECT",
    "HEALTH",
    "OBJECTS",
    "SYNC",
    "WORKS",
    "MESSAGE",
];

fn row(application: &Overviewed) -> Row {
    let totals = application.totals.as_deref().and_then(Totals::parse);
    let healthy_on = totals.map_or(String::new(), |totals| {
        format!("{} of {}", totals.healthy, totals.clusters)
    });
    let size = totals.and_then(|totals| totals.size);
    let [objects, works] = size.map_or([String::new(), String::new()], |size| size.map(|size| size.to_string()));
    let texts = [
        application.name.as_str(),
        &application.project,
        &application.sync,
        application.health_text(),
        &healthy_on,
        &objects,
        &works,
        &application.message,
    ];
    Row {
        health: application.health(),
        cells: texts.map(clean).into(),
    }
}

fn row_on(on_cluster: &OnCluster) -> Row {
    let Overviewed {
        name, project, sync, ..
    } = &on_cluster.application;
    let (health, objects, works) = (
        on_cluster.health.name(),
        on_cluster.objects.to_string(),
        on_cluster.works.join(","),
    );
    let texts = [
        &on_cluster.cluster,
        name,
        project,
        health,
        &objects,
        sync,
        &works,
        &on_cluster.message,
    ];
    Row {
        health: on_cluster.health,
        cells: texts.map(clean).into(),
    }
}

/// Formats the number of Applications by health on one line.
fn totals(all: impl Iterator<Item = HealthStatus>) -> String {
    let mut counts = BTreeMap::<HealthStatus, usize>::new();
    for health in all {
        let number = counts.entry(health).or_default();
        *number = number.saturating_add(1);
    }
    let number = counts.values().sum();
    let counts = counts.iter().map(|(health, number)| format!("{number} {health}"));
    let texts: Vec<_> = [count(number, "Application")].into_iter().chain(counts).collect();
    texts.join(", ").replacen(", ", ": ", 1)
}

impl List for Overview {
    fn table(&self, wide: bool, colours: bool) -> String {
        let (headings, rows) = self.rows();
        let total = bold(&totals(rows.iter().map(|row| row.health)), colours);
        let table = Table {
            headings: &headings,
            state: 3,
            wide: &[5, 6],
        };
        format!("{}{total}\n", format_rows(&table, rows, wide, colours))
    }

    fn to_json(&self) -> Value {
        let items: Vec<_> = match self {
            Self::All(all) => all.iter().map(to_json).collect(),
            Self::OnClusters(all) => all.iter().map(on_cluster_to_json).collect(),
        };
        json!({"items": items})
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::All(all) => all.iter().map(|application| clean(&application.name)).collect(),
            Self::OnClusters(all) => all
                .iter()
                .map(|cluster| clean(&format!("{}/{}", cluster.cluster, cluster.application.name)))
                .collect(),
        }
    }
}

fn to_json(application: &Overviewed) -> Value {
    json!({
        "application": application.name,
        "project": application.project,
        "sync": application.sync,
        "health": application.health_text(),
        "totals": application.totals,
        "message": application.message,
    })
}

fn on_cluster_to_json(on_cluster: &OnCluster) -> Value {
    json!({
        "cluster": on_cluster.cluster,
        "application": on_cluster.application.name,
        "project": on_cluster.application.project,
        "sync": on_cluster.application.sync,
        "health": on_cluster.health,
        "objects": on_cluster.objects,
        "works": on_cluster.works,
        "message": on_cluster.message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ListFormat;
    use crate::list;

    fn application(name: &str, project: &str, health: &str, message: &str) -> Overviewed {
        Overviewed {
            name: name.to_owned(),
            project: project.to_owned(),
            sync: "Synced".to_owned(),
            health: health.to_owned(),
            totals: Some("applied on 3 of 3 clusters, healthy on 2, 1 degraded; 12 objects in 3 works".to_owned()),
            message: message.to_owned(),
            has_error: false,
        }
    }

    fn work(cluster: &str, name: &str, health: HealthStatus, message: &str) -> WorkStatus {
        WorkStatus::whole("ManifestWork", cluster, name, health, message.to_owned())
    }

    fn format_overview(overview: &Overview, format: ListFormat) -> String {
        list::format_list(overview, format).expect("a text")
    }

    fn all() -> Overview {
        let waiting = Overviewed {
            totals: None,
            ..application("new", "web", "", "")
        };
        Overview::All(vec![
            application("shop", "web", "Healthy", ""),
            application(
                "team-a/db",
                "data",
                "Degraded",
                "eu1: Deployment db/db:\n\u{1b}[31mcrashes",
            ),
            waiting,
        ])
    }

    #[test]
    fn applications_of_a_hub_are_listed_worst_first() {
        let table = "APPLICATION   PROJECT   SYNC     HEALTH     HEALTHY ON   MESSAGE\n\
                     team-a/db     data      Synced   Degraded   2 of 3       eu1: Deployment db/db: \u{fffd}[31mcrashes\n\
                     new           web       Synced\n\
                     shop          web       Synced   Healthy    2 of 3\n\n\
                     3 Applications: 1 Degraded, 1 Unknown, 1 Healthy\n";
        assert_eq!(format_overview(&all(), ListFormat::Table), table);
        assert!(format_overview(&all(), ListFormat::Wide).contains("Degraded   2 of 3       12        3       eu1: "));
        assert_eq!(format_overview(&all(), ListFormat::Name), "shop\nteam-a/db\nnew\n");
        assert_eq!(all().health(), HealthStatus::Degraded);
    }

    #[test]
    fn healthy_application_with_an_error_is_degraded() {
        let refused = Overviewed {
            has_error: true,
            ..application("shop", "web", "Healthy", "the policy refuses it")
        };
        let on_cluster = OnCluster::all([(refused.clone(), work("eu1", "shop", HealthStatus::Healthy, ""))]);
        for mut overview in [Overview::All(vec![refused]), Overview::OnClusters(on_cluster)] {
            overview.keep(&[HealthStatus::Degraded], &[]).expect("no project");
            assert_eq!(overview.health(), HealthStatus::Degraded);
            let json = format_overview(&overview, ListFormat::Json);
            assert!(
                json.contains("Degraded") && json.contains("the policy refuses it"),
                "{json}"
            );
        }
    }

    #[test]
    fn unknown_project_is_an_error() {
        let error = all().keep(&[], &["web".to_owned(), "dta".to_owned()]).unwrap_err();
        assert_eq!(
            error,
            "no Application belongs to AppProject dta: correct its name: the AppProjects of Applications are: data, web"
        );
    }

    #[test]
    fn lists_are_filtered_by_health_and_project() {
        let listing = |health: &[HealthStatus], projects: &[&str]| {
            let mut overview = all();
            let projects: Vec<_> = projects.iter().map(|project| (*project).to_owned()).collect();
            overview.keep(health, &projects).expect("known projects");
            (format_overview(&overview, ListFormat::Name), overview.health())
        };
        assert_eq!(listing(&[], &["web"]).0, "shop\nnew\n");
        assert_eq!(
            listing(&[HealthStatus::Healthy], &[]),
            ("shop\n".to_owned(), HealthStatus::Healthy)
        );
        assert_eq!(listing(&[HealthStatus::Missing], &["web"]).0, "");
        let mut none = all();
        none.keep(&[HealthStatus::Missing], &[]).expect("no project");
        assert_eq!(format_overview(&none, ListFormat::Table), "0 Applications\n");
    }

    #[test]
    fn works_on_a_cluster_add_up_by_application() {
        let shop = application("shop", "web", "Progressing", "");
        let works = [
            (shop.clone(), work("eu1", "shop", HealthStatus::Healthy, "")),
            (
                shop.clone(),
                work("eu1", "shop.part-2", HealthStatus::Degraded, "it crashes"),
            ),
            (shop, work("eu2", "shop", HealthStatus::Healthy, "")),
        ];
        let overview = Overview::OnClusters(OnCluster::all(works));
        let wide = "CLUSTER   APPLICATION   PROJECT   HEALTH     OBJECTS   SYNC     WORKS              MESSAGE\n\
                    eu1       shop          web       Degraded   0         Synced   shop,shop.part-2   it crashes\n\
                    eu2       shop          web       Healthy    0         Synced   shop\n\n\
                    2 Applications: 1 Degraded, 1 Healthy\n";
        assert_eq!(format_overview(&overview, ListFormat::Wide), wide);
        assert_eq!(format_overview(&overview, ListFormat::Name), "eu1/shop\neu2/shop\n");
    }
}
