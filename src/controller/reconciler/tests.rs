//! The loop in front of an API server that is played, by a clock that is.

use super::*;
use crate::controller::action::{Event, Involved, Write};
use crate::controller::index::{Noticed, Sort};
use crate::controller::lease::played;
use crate::controller::resources::{APPLICATIONS, CLUSTERS};
use crate::controller::{Options, Shards, lease};
use http::{Method, Request, Response};
use k8s_openapi::jiff::Timestamp;
use kube::client::Body;
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use tokio::sync::watch;
use tokio::time::sleep;

thread_local! {
    /// What is written already, of which nothing is to be done.
    static WRITTEN: RefCell<HashSet<String>> = RefCell::default();
    /// The requests, in order.
    static REQUESTS: RefCell<Vec<String>> = RefCell::default();
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

fn requests(part: &str) -> usize {
    REQUESTS.with_borrow(|all| all.iter().filter(|it| it.contains(part)).count())
}

/// An API server: what is called `hang…` is never answered, nor are lists; all else is accepted.
fn client() -> Client {
    let service = tower::service_fn(|request: Request<Body>| async move {
        let path = request.uri().path().to_owned();
        REQUESTS.with_borrow_mut(|all| all.push(format!("{} {path}", request.method())));
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if *request.method() == Method::GET || name.starts_with("hang") {
            future::pending::<()>().await;
        }
        WRITTEN.with_borrow_mut(|written| written.insert(name));
        Ok::<_, kube::Error>(Response::new(Body::from(b"{}".to_vec())))
    });
    Client::new(service, "default")
}

/// Everything is to be written once, and told of.
fn write_once(_: &Index, place: &Place, _: &Moment<'_>) -> Option<Action> {
    LOOKS.set(LOOKS.get() + 1);
    assert_ne!(&*place.name, "defect", "it cannot be looked at");
    let resource = if place.namespace.is_empty() {
        &CLUSTERS
    } else {
        &APPLICATIONS
    };
    let is_written = WRITTEN.with_borrow(|written| written.contains(&*place.name));
    (!is_written).then(|| Action {
        of: Involved {
            resource,
            place: place.clone(),
            uid: "uid".into(),
        },
        writes: vec![Write::Patch {
            resource,
            place: place.clone(),
            body: json!({}),
        }],
        refresh: false,
        events: vec![Event {
            warning: false,
            reason: "Written",
            message: place.to_string(),
        }],
    })
}

/// Nothing is ever to be written, and to see that takes a millisecond.
fn write_nothing(_: &Index, _: &Place, _: &Moment<'_>) -> Option<Action> {
    LOOKS.set(LOOKS.get() + 1);
    None
}

const fn promise(name: &'static str, of: Sort, desired: fn(&Index, &Place, &Moment<'_>) -> Option<Action>) -> Promise {
    Promise {
        name,
        about: "",
        of,
        needs: &[Kind::Clusters],
        pause: Duration::ZERO,
        desired,
        again: |_, _, _| None,
    }
}

static APPLICATION: Promise = promise("applications", Sort::Application, write_once);
static CLUSTER: Promise = promise("clusters", Sort::Cluster, write_once);
static IDLE: Promise = promise("idle", Sort::Application, write_nothing);

fn time() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

/// The clock of the runtime, which tests let pass.
const CLOCKS: Clocks = Clocks {
    time,
    elapsed: || tokio::time::Instant::now().into_std(),
};

/// Returns a loop with these controllers, whose caches are synced.
fn reconciler(promises: &[&'static Promise], clocks: Clocks) -> Reconciler {
    let options = Options {
        hub: crate::cli::HubArgs::default(),
        promises: promises.to_vec(),
        settings: Settings::default(),
        lease_namespace: None,
        shards: 1,
        identity: "us".to_owned(),
        address: ([127, 0, 0, 1], 0).into(),
        dry_run: false,
        concurrent_writes: 48,
    };
    let ready = Arc::new(Readiness::new(options.needs()));
    ready.synced(Kind::Clusters);
    let (client, shards) = (client(), Shards::alone());
    Reconciler::new(&options, &client, &shards, ready, Metrics::new(), clocks)
}

fn touch(reconciler: &mut Reconciler, sort: Sort, places: impl IntoIterator<Item = Place>) {
    let touched = places.into_iter().map(|place| Touched {
        sort,
        place,
        noticed: Noticed::Nothing,
    });
    reconciler.touch(touched.collect());
}

fn applications(namespace: &str, name: &str, count: usize) -> Vec<Place> {
    (0..count)
        .map(|number| Place::new(namespace, &format!("{name}-{number}")))
        .collect()
}

fn metric(reconciler: &Reconciler, start: &str) -> u64 {
    let text = reconciler.metrics.render();
    let samples = text.lines().filter(|line| line.starts_with(start));
    samples
        .map(|line| {
            line.rsplit(' ')
                .next()
                .and_then(|it| it.parse::<u64>().ok())
                .unwrap_or(0)
        })
        .sum()
}

/// Lets the loop go on for so long.
async fn run(reconciler: &mut Reconciler, seconds: u64) {
    tokio::select! {
        () = reconciler.run() => panic!("it ended"),
        () = sleep(Duration::from_secs(seconds)) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_writes_delay_neither_other_controllers_nor_tenants_nor_events() {
    let mut reconciler = reconciler(&[&APPLICATION, &CLUSTER], CLOCKS);
    touch(&mut reconciler, Sort::Application, applications("hostile", "hang", 200));
    run(&mut reconciler, 1).await;
    assert_eq!(requests("PATCH"), 30, "three quarters of what the controller has");
    // Another kind of object, and another tenant, have slots of their own.
    touch(&mut reconciler, Sort::Cluster, [Place::new("", "cluster")]);
    touch(&mut reconciler, Sort::Application, applications("tenant", "fine", 20));
    run(&mut reconciler, 1).await;
    assert_eq!((requests("/managedclusters/cluster"), requests("/fine-")), (1, 20));
    assert_eq!(requests("POST"), 21, "and their Events are written");
    // The same tenant has a slot as soon as it is seen that the others hang.
    touch(&mut reconciler, Sort::Application, applications("hostile", "own", 1));
    run(&mut reconciler, 25).await;
    assert_eq!(requests("/own-0"), 1);
    assert!(requests("/hang-") >= 200, "each was tried");
    // And so it stays.
    for round in 0..20 {
        let all = applications("hostile", &format!("own-{round}"), 30);
        touch(&mut reconciler, Sort::Application, all);
        run(&mut reconciler, 5).await;
        assert_eq!(
            requests(&format!(
                "PATCH /apis/argoproj.io/v1alpha1/namespaces/hostile/applications/own-{round}-"
            )),
            30
        );
    }
    assert!(
        reconciler.writes.len() <= 12,
        "a quarter of the slots: {}",
        reconciler.writes.len()
    );
}

#[tokio::test(start_paused = true)]
async fn events_are_written_while_writes_never_cease() {
    let mut reconciler = reconciler(&[&APPLICATION], CLOCKS);
    touch(&mut reconciler, Sort::Application, applications("a", "hang", 300));
    touch(&mut reconciler, Sort::Application, applications("b", "fine", 3));
    run(&mut reconciler, 1).await;
    assert!(
        reconciler.lanes[0].queue.is_due(false, (CLOCKS.elapsed)()),
        "more is to be written"
    );
    assert_eq!(requests("POST"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_panic_concerns_one_object_and_is_tried_again_later_and_later() {
    let mut reconciler = reconciler(&[&APPLICATION], CLOCKS);
    touch(&mut reconciler, Sort::Application, [Place::new("argocd", "defect")]);
    touch(&mut reconciler, Sort::Application, applications("argocd", "fine", 5));
    run(&mut reconciler, 60).await;
    assert_eq!(requests("PATCH"), 5);
    let panics = metric(&reconciler, "argocd_ocm_cmp_panics_total{promise=\"applications\"}");
    assert!((5..10).contains(&panics), "{panics}");
    assert_eq!(metric(&reconciler, "argocd_ocm_cmp_failing"), 1);

    // A write that panics.
    let due = Due {
        place: Place::new("argocd", "written"),
        share: crate::controller::turns::Share::of(&"argocd".into()),
        slow: false,
        stale: false,
    };
    let task = reconciler.writes.spawn(async { panic!("it cannot be written") });
    let id = task.id();
    let involved = Involved {
        resource: &APPLICATIONS,
        place: due.place.clone(),
        uid: "uid".into(),
    };
    let running = Running {
        of: Some((0, due, involved)),
        task,
        is_given_up: false,
    };
    reconciler.running.insert(id, running);
    run(&mut reconciler, 1).await;
    assert!(metric(&reconciler, "argocd_ocm_cmp_panics_total{promise=\"applications\"}") > panics);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_index_lists_the_kind_again_later_and_later() {
    let mut reconciler = reconciler(&[&APPLICATION], CLOCKS);
    run(&mut reconciler, 1).await;
    for (lists, wait) in [(2, 2), (3, 3), (4, 5)] {
        assert!(!reconciler.apply(Kind::Clusters, Change::Panic));
        run(&mut reconciler, wait).await;
        assert_eq!(requests("managedclusters"), lists);
    }
    assert_eq!(metric(&reconciler, "argocd_ocm_cmp_panics_total{promise=\"index\"}"), 3);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_during_a_backlog_of_100_000_objects() {
    const OBJECTS: u64 = 100_000;
    thread_local! {
        static START: std::time::Instant = (CLOCKS.elapsed)();
    }
    /// Each look takes a millisecond.
    const BUSY: Clocks = Clocks {
        time,
        elapsed: || START.with(|start| *start) + Duration::from_millis(LOOKS.get()),
    };
    let mut reconciler = reconciler(&[&IDLE], BUSY);
    let places = (0..OBJECTS).map(|number| Place::new("argocd", &format!("{number}")));
    touch(&mut reconciler, Sort::Application, places);
    // What is touched is looked at 200 ms later.
    LOOKS.set(200);
    let hub = played::Hub::default();
    let (sender, mut held) = watch::channel(Held::at_first(1));
    let seat = lease::Seat::Terms;
    let _election = lease::Election::start(hub.client().0, "argocd", "lease", "us".to_owned(), seat, sender, 1);
    let (mut renewals, mut longest) = (0, 0);
    let passing = async {
        // The time of the Lease goes as the loop uses it up.
        let (start, mut before) = (tokio::time::Instant::now(), LOOKS.get());
        while LOOKS.get() < OBJECTS + 200 {
            let passed = Duration::from_millis(LOOKS.get());
            tokio::time::advance(passed.saturating_sub(start.elapsed())).await;
            longest = longest.max(LOOKS.get() - before);
            before = LOOKS.get();
            renewals = hub.writes();
            task::yield_now().await;
        }
    };
    tokio::select! {
        () = reconciler.run() => panic!("it ended"),
        () = passing => {}
    }
    assert!(longest <= 100, "it computed for {longest} ms without a pause");
    assert!(renewals >= 30, "the Lease was renewed {renewals} times in 100 s");
    assert!(held.borrow_and_update().has(0), "it is held");
}

#[tokio::test(start_paused = true)]
async fn a_standby_forgets_what_another_replica_has_done() {
    let mut reconciler = reconciler(&[&APPLICATION], CLOCKS);
    let (sender, held) = watch::channel(Held::at_first(1));
    reconciler.held = held;
    touch(&mut reconciler, Sort::Application, applications("argocd", "done", 1000));
    touch(&mut reconciler, Sort::Application, applications("argocd", "open", 3));
    WRITTEN.with_borrow_mut(|written| written.extend((0..1000).map(|number| format!("done-{number}"))));
    run(&mut reconciler, 30).await;
    assert_eq!(reconciler.lanes[0].queue.len(), 1003, "the other replica has its time");
    run(&mut reconciler, 120).await;
    assert_eq!((reconciler.lanes[0].queue.len(), requests("PATCH")), (3, 0));
    sender.send_modify(|held| {
        held.agree(true);
    });
    run(&mut reconciler, 1).await;
    assert_eq!(requests("PATCH"), 3, "what is left is written by who takes over");
}
