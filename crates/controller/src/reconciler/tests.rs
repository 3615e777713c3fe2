//! Tests of the event loop with a fake API server and a fake clock.

use super::*;
use crate::Options;
use crate::metrics::metrics;
use http::{Method, Request, Response};
use hub_state::cache::{Changed, Update};
use hub_state::model::{Cluster, Kind};
use hub_state::reconcile::Watch;
use jiff::Timestamp;
use kube::client::Body;
use kube::core::Status;
use ocm::resources::{APPLICATIONS, CLUSTERS};
use runtime::action::{Event, InvolvedObject, Write};
use runtime::lease;
use runtime::queue::Refresh;
use runtime::testing::leases;
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use tokio::sync::watch;
use tokio::time::sleep;

thread_local! {
    /// The objects that are written already and need no further writes.
    static WRITTEN: RefCell<HashSet<String>> = RefCell::default();
    /// The requests, in order.
    static REQUESTS: RefCell<Vec<String>> = RefCell::default();
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

fn requests(part: &str) -> usize {
    REQUESTS.with_borrow(|all| all.iter().filter(|request| request.contains(part)).count())
}

/// Returns a client of an API server that never answers requests for objects called `hang…` nor lists; it accepts all others, those
/// called `busy…` after 100 ms.
fn client() -> Client {
    let service = tower::service_fn(|request: Request<Body>| async move {
        let path = request.uri().path().to_owned();
        REQUESTS.with_borrow_mut(|all| all.push(format!("{} {path}", request.method())));
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let is_list = *request.method() == Method::GET && path != "/version";
        if is_list || name.starts_with("hang") {
            future::pending::<()>().await;
        }
        if name.starts_with("busy") {
            sleep(Duration::from_millis(100)).await;
        }
        WRITTEN.with_borrow_mut(|written| written.insert(name));
        Ok::<_, kube::Error>(Response::new(Body::from(b"{}".to_vec())))
    });
    Client::new(service, "default")
}

fn action(object_ref: &ObjectRef, writes: Vec<Write>) -> Action {
    Action::new(involved(object_ref), writes, None)
}

fn involved(object_ref: &ObjectRef) -> InvolvedObject {
    let is_cluster = object_ref.namespace.is_empty();
    let resource = if is_cluster { &CLUSTERS } else { &APPLICATIONS };
    InvolvedObject::new(resource, object_ref.clone(), "uid".into())
}

fn patch(object_ref: &ObjectRef) -> Write {
    Write::patch(involved(object_ref).resource, object_ref.clone(), json!({}))
}

/// Requests one write and an Event for each object.
fn write_once(_: &Cache, object_ref: &ObjectRef, _: &Context<'_>) -> Option<Action> {
    LOOKS.set(LOOKS.get() + 1);
    assert_ne!(&*object_ref.name, "defect", "it cannot be looked at");
    let is_written = WRITTEN.with_borrow(|written| written.contains(&*object_ref.name));
    (!is_written).then(|| Action {
        events: vec![Event::normal("Written", object_ref.to_string())],
        ..action(object_ref, vec![patch(object_ref)])
    })
}

/// Requests no writes, and spends a millisecond on each object.
fn write_nothing(_: &Cache, _: &ObjectRef, _: &Context<'_>) -> Option<Action> {
    LOOKS.set(LOOKS.get() + 1);
    None
}

const fn controller(
    name: &'static str,
    kind: Kind,
    reconcile: fn(&Cache, &ObjectRef, &Context<'_>) -> Option<Action>,
) -> Controller {
    Controller {
        name,
        about: "",
        kind,
        watches: const { &[Watch::new(Kind::Clusters, assignment::mappers::cluster_alone)] },
        min_write_interval: Duration::ZERO,
        reconcile,
        requeue_after: |_, _, _| None,
    }
}

static APPLICATION: Controller = controller("applications", Kind::Applications, write_once);
static CLUSTER: Controller = controller("clusters", Kind::Clusters, write_once);
static IDLE: Controller = controller("idle", Kind::Applications, write_nothing);

fn time() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

/// The clock of the runtime, which tests advance.
const CLOCKS: Clocks = Clocks {
    time,
    elapsed: || tokio::time::Instant::now().into_std(),
};

/// Returns an event loop with these controllers, whose caches are synced.
fn reconciler(controllers: &[&'static Controller], clocks: Clocks) -> Reconciler {
    replica(controllers, clocks, watch::channel(true).1)
}

/// Returns the event loop of a replica with these controllers, whose caches are synced.
fn replica(controllers: &[&'static Controller], clocks: Clocks, leads: watch::Receiver<bool>) -> Reconciler {
    let options = Options {
        hub: hub::Connection::default(),
        controllers: controllers.to_vec(),
        settings: Settings::default(),
        lease_namespace: None,
        identity: "us".to_owned(),
        address: ([127, 0, 0, 1], 0).into(),
        dry_run: false,
        concurrent_writes: 48,
    };
    let ready = Arc::new(options.readiness());
    ready.synced(&Kind::Clusters);
    Reconciler::new(&options, &client(), leads, ready, metrics(), clocks)
}

fn enqueue(reconciler: &mut Reconciler, kind: Kind, object_refs: impl IntoIterator<Item = ObjectRef>) {
    let affected = object_refs.into_iter().map(|object_ref| ReconcileRequest {
        kind,
        object_ref,
        refresh: Refresh::Unchanged,
    });
    reconciler.enqueue(affected.collect());
}

fn applications(namespace: &str, name: &str, count: usize) -> Vec<ObjectRef> {
    (0..count)
        .map(|number| ObjectRef::new(namespace, &format!("{name}-{number}")))
        .collect()
}

fn metric(reconciler: &Reconciler, start: &str) -> u64 {
    let text = reconciler.metrics.render();
    let samples = text.lines().filter(|line| line.starts_with(start));
    samples
        .map(|line| {
            line.rsplit(' ')
                .next()
                .and_then(|value| value.parse::<u64>().ok())
                .unwrap_or(0)
        })
        .sum()
}

/// Runs the loop for this time.
async fn run(reconciler: &mut Reconciler, seconds: u64) {
    tokio::select! {
        () = reconciler.run() => panic!("it ended"),
        () = sleep(Duration::from_secs(seconds)) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_writes_delay_no_other_controller_tenant_or_event() {
    let mut reconciler = reconciler(&[&APPLICATION, &CLUSTER], CLOCKS);
    enqueue(
        &mut reconciler,
        Kind::Applications,
        applications("hostile", "hang", 200),
    );
    run(&mut reconciler, 1).await;
    assert_eq!(requests("PATCH"), 30, "three quarters of what the controller has");
    // Objects of another kind and of another tenant have their own slots.
    enqueue(&mut reconciler, Kind::Clusters, [ObjectRef::new("", "cluster")]);
    enqueue(&mut reconciler, Kind::Applications, applications("tenant", "fine", 20));
    run(&mut reconciler, 1).await;
    assert_eq!((requests("/managedclusters/cluster"), requests("/fine-")), (1, 20));
    assert_eq!(requests("POST"), 21, "and their Events are written");
    // The same tenant gets a slot as soon as the other writes turn out to hang.
    enqueue(&mut reconciler, Kind::Applications, applications("hostile", "own", 1));
    run(&mut reconciler, 25).await;
    assert_eq!(requests("/own-0"), 1);
    assert!(requests("/hang-") >= 200, "each was tried");
    // This does not change later.
    for round in 0..20 {
        let all = applications("hostile", &format!("own-{round}"), 30);
        enqueue(&mut reconciler, Kind::Applications, all);
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
async fn writes_events_during_endless_writes() {
    let mut reconciler = reconciler(&[&APPLICATION], CLOCKS);
    enqueue(&mut reconciler, Kind::Applications, applications("a", "hang", 300));
    enqueue(&mut reconciler, Kind::Applications, applications("b", "fine", 3));
    run(&mut reconciler, 1).await;
    assert!(
        reconciler.workqueues[0].queue.is_due(false, (CLOCKS.elapsed)()),
        "more is to be written"
    );
    assert_eq!(requests("POST"), 3);
}

#[tokio::test(start_paused = true)]
async fn all_other_writes_go_before_events() {
    let mut reconciler = reconciler(&[&APPLICATION], CLOCKS);
    let all = applications("a", "busy", 600);
    enqueue(&mut reconciler, Kind::Applications, all);
    run(&mut reconciler, 1).await;
    assert!((100..500).contains(&requests("PATCH")), "{}", requests("PATCH"));
    assert_eq!(requests("POST"), 0);
    run(&mut reconciler, 10).await;
    assert_eq!((requests("PATCH"), requests("POST")), (600, 600));
}

#[tokio::test(start_paused = true)]
async fn events_wait_a_minute_at_most() {
    let mut reconciler = reconciler(&[&APPLICATION], CLOCKS);
    for second in 0..75 {
        let all = applications("a", &format!("busy-{second}"), 500);
        enqueue(&mut reconciler, Kind::Applications, all);
        run(&mut reconciler, 1).await;
        match second {
            0..60 => assert_eq!(requests("POST"), 0, "after {second} s"),
            65.. => assert!(requests("POST") > 100, "after {second} s"),
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn panic_affects_one_object_and_is_retried_with_backoff() {
    let mut reconciler = reconciler(&[&APPLICATION], CLOCKS);
    enqueue(
        &mut reconciler,
        Kind::Applications,
        [ObjectRef::new("argocd", "defect")],
    );
    enqueue(&mut reconciler, Kind::Applications, applications("argocd", "fine", 5));
    run(&mut reconciler, 60).await;
    assert_eq!(requests("PATCH"), 5);
    let panics = metric(&reconciler, "argocd_ocm_cmp_panics_total{controller=\"applications\"}");
    assert!((5..10).contains(&panics), "{panics}");
    assert_eq!(metric(&reconciler, "argocd_ocm_cmp_failing"), 1);

    // A write that panics.
    let due = Due {
        object_ref: ObjectRef::new("argocd", "written"),
        flow: runtime::fair_queue::FlowKey::of_namespace(&"argocd".into()),
        slow: false,
        stale: false,
        attempt: 1,
    };
    let task = reconciler.writes.spawn(async { panic!("it cannot be written") });
    let id = task.id();
    let action = Arc::new(action(&due.object_ref, Vec::new()));
    let running = Running {
        reconciled: Some((0, due, action)),
        task,
        is_aborted: false,
    };
    reconciler.running.insert(id, running);
    run(&mut reconciler, 1).await;
    assert!(metric(&reconciler, "argocd_ocm_cmp_panics_total{controller=\"applications\"}") > panics);
}

#[tokio::test(start_paused = true)]
async fn panic_in_the_index_relists_the_kind_with_backoff() {
    let mut reconciler = reconciler(&[&APPLICATION], CLOCKS);
    run(&mut reconciler, 1).await;
    for (lists, wait) in [(2, 2), (3, 3), (4, 5)] {
        assert!(!reconciler.apply(Kind::Clusters, "", Change::panicking()));
        run(&mut reconciler, wait).await;
        assert_eq!(requests("managedclusters"), lists);
    }
    assert_eq!(
        metric(&reconciler, "argocd_ocm_cmp_panics_total{controller=\"index\"}"),
        3
    );
}

#[tokio::test(start_paused = true)]
async fn object_whose_mapping_panicked_is_reconciled_after_the_next_list() {
    /// Panics for the first change of each cluster.
    fn map(_: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
        let is_known = !WRITTEN.with_borrow_mut(|known| known.insert(format!("{} is known", changed.object_ref)));
        assert!(is_known, "a defect");
        vec![ReconcileRequest::cluster(&changed.object_ref.name)]
    }
    static DEFECT: Controller = Controller {
        watches: const { &[Watch::new(Kind::Clusters, map)] },
        ..controller("clusters", Kind::Clusters, write_once)
    };
    let mut reconciler = reconciler(&[&DEFECT], CLOCKS);
    let text = r#"{"metadata":{"name":"eu1","uid":"u"},"spec":{"hubAcceptsClient":true}}"#;
    let eu1 = || serde_json::from_str(text).expect("an object");
    for event in [
        WatchEvent::Apply(eu1()),
        WatchEvent::Init,
        WatchEvent::InitApply(eu1()),
        WatchEvent::InitDone,
    ] {
        reconciler.handle(Kind::Clusters, Ok(event));
    }
    run(&mut reconciler, 1).await;
    assert_eq!((LOOKS.get(), requests("PATCH")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn kind_that_may_be_forbidden_is_awaited_unless_the_permission_is_missing() {
    static HOLDS: Controller = Controller {
        watches: const { &[Watch::new(Kind::Holds, assignment::mappers::cluster_alone)] },
        ..controller("clusters", Kind::Clusters, write_once)
    };
    let mut reconciler = reconciler(&[&HOLDS], CLOCKS);
    for (code, is_ready) in [(401, false), (500, false), (403, true)] {
        let status = Status::failure("no", "").with_code(code);
        reconciler.handle_failure(Kind::Holds, Some(&Error::Api(status.boxed())));
        assert_eq!(reconciler.ready.check().is_ok(), is_ready, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn reconciles_an_object_that_becomes_due_during_the_loop() {
    thread_local! {
        static STEP: Cell<u64> = const { Cell::new(0) };
        static READINGS: Cell<u64> = const { Cell::new(0) };
    }
    /// The clock of a slow machine: time passes between two readings.
    const SLOW: Clocks = Clocks {
        time,
        elapsed: || {
            READINGS.set(READINGS.get() + 1);
            (CLOCKS.elapsed)() + Duration::from_millis(STEP.get() * READINGS.get())
        },
    };
    // Whatever the step, the object becomes due between two readings.
    for step in 1..200 {
        STEP.set(step);
        READINGS.set(0);
        let mut reconciler = reconciler(&[&APPLICATION], SLOW);
        let late = ObjectRef::new("argocd", &format!("late-{step}"));
        enqueue(&mut reconciler, Kind::Applications, [late]);
        // No watch event wakes the loop.
        run(&mut reconciler, 10).await;
        assert_eq!(
            requests("PATCH"),
            usize::try_from(step).unwrap(),
            "{step} ms between two readings"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn renews_the_lease_during_a_backlog_of_100000_objects() {
    const OBJECTS: u64 = 100_000;
    thread_local! {
        static START: std::time::Instant = (CLOCKS.elapsed)();
    }
    /// A clock that advances by a millisecond for each reconciled object.
    const BUSY: Clocks = Clocks {
        time,
        elapsed: || START.with(|start| *start) + Duration::from_millis(LOOKS.get()),
    };
    let mut reconciler = reconciler(&[&IDLE], BUSY);
    let object_refs = (0..OBJECTS).map(|number| ObjectRef::new("argocd", &format!("{number}")));
    enqueue(&mut reconciler, Kind::Applications, object_refs);
    // Objects are reconciled 200 ms after a change.
    LOOKS.set(200);
    let hub = leases::Hub::default();
    let (sender, mut leads) = watch::channel(false);
    let _election = lease::Election::start(hub.client().0, "argocd", "lease", "us".to_owned(), sender, 1);
    let (mut renewals, mut longest) = (0, 0);
    let passing = async {
        // The loop uses up the time of the Lease.
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
    assert!(*leads.borrow_and_update(), "it leads");
}

/// Reports a new managed cluster.
fn join(reconciler: &mut Reconciler, name: &str) {
    let cluster =
        Cluster::from_json(r#"{"metadata":{"uid":"u"},"spec":{"hubAcceptsClient":true}}"#).expect("a cluster");
    let change = Change::objects(Kind::Clusters, Update::Set(name.into(), cluster));
    assert!(reconciler.apply(Kind::Clusters, name, change));
}

#[tokio::test(start_paused = true)]
async fn new_leader_reconciles_every_object_once() {
    let (sender, leads) = watch::channel(false);
    let mut reconciler = replica(&[&CLUSTER], CLOCKS, leads);
    for number in 0..1000 {
        join(&mut reconciler, &format!("eu{number}"));
    }
    WRITTEN.with_borrow_mut(|written| written.extend((0..997).map(|number| format!("eu{number}"))));
    run(&mut reconciler, 30).await;
    assert_eq!(
        (reconciler.workqueues[0].queue.len(), LOOKS.get()),
        (0, 0),
        "another replica leads"
    );
    sender.send_replace(true);
    run(&mut reconciler, 1).await;
    assert_eq!((LOOKS.get(), requests("PATCH")), (1000, 3));
    sender.send_replace(false);
    run(&mut reconciler, 10).await;
    join(&mut reconciler, "us1");
    sender.send_replace(true);
    run(&mut reconciler, 10).await;
    assert_eq!((LOOKS.get(), requests("PATCH")), (2001, 4), "it takes over again");
}

#[tokio::test(start_paused = true)]
async fn new_leader_forgets_the_writes_that_were_refused_before() {
    let (sender, leads) = watch::channel(true);
    let mut reconciler = replica(&[&CLUSTER], CLOCKS, leads);
    run(&mut reconciler, 1).await;
    let eu1 = ObjectRef::new("", "eu1");
    let refusal = WriteRefusal {
        text: "no".to_owned(),
        is_final: true,
        is_of_status: false,
        kind: "ManagedCluster",
    };
    reconciler.record_refusal(0, &eu1, Some((refusal, involved(&eu1))));
    let refused = (CLUSTER.name, Kind::Clusters, eu1);
    assert_eq!(reconciler.cache.refusals().get(&refused), Some("no"));
    for leads in [false, true] {
        sender.send_replace(leads);
        run(&mut reconciler, 10).await;
    }
    assert_eq!(reconciler.cache.refusals().get(&refused), None);
}

#[tokio::test(start_paused = true)]
async fn take_over_repeats_no_refresh() {
    /// Requests a refresh of each stale object.
    fn refresh(_: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Action> {
        context.stale.then(|| Action {
            refresh: true,
            ..action(object_ref, vec![patch(object_ref)])
        })
    }
    static REFRESH: Controller = controller("applications", Kind::Applications, refresh);
    let (sender, leads) = watch::channel(true);
    let mut reconciler = replica(&[&REFRESH], CLOCKS, leads);
    let stale = |object_ref| ReconcileRequest {
        kind: Kind::Applications,
        object_ref,
        refresh: Refresh::Needed,
    };
    let all = applications("argocd", "busy", 100);
    reconciler.enqueue(all.into_iter().map(stale).collect());
    run(&mut reconciler, 2).await;
    let written = requests("PATCH");
    assert!((1..20).contains(&written), "{written}");
    sender.send_replace(false);
    run(&mut reconciler, 200).await;
    sender.send_replace(true);
    run(&mut reconciler, 60).await;
    assert!(requests("PATCH") <= written + 1, "another replica has led meanwhile");
}

#[tokio::test(start_paused = true)]
async fn lost_lease_stops_an_action_between_its_writes() {
    fn write_three(_: &Cache, object_ref: &ObjectRef, _: &Context<'_>) -> Option<Action> {
        let create = |name: &str| Write::create(&APPLICATIONS, ObjectRef::new(&object_ref.namespace, name), json!({}));
        let writes = || vec![patch(object_ref), create("a"), create("b")];
        (!object_ref.name.is_empty()).then(|| action(object_ref, writes()))
    }
    static THREE: Controller = controller("applications", Kind::Applications, write_three);
    let (sender, leads) = watch::channel(true);
    let mut reconciler = replica(&[&THREE], CLOCKS, leads);
    enqueue(&mut reconciler, Kind::Applications, [ObjectRef::new("argocd", "busy")]);
    tokio::select! {
        () = reconciler.run() => panic!("it ended"),
        () = sleep(Duration::from_millis(250)) => {}
    }
    assert_eq!(
        (requests("PATCH"), requests("POST")),
        (1, 0),
        "the first write is in progress"
    );
    sender.send_replace(false);
    run(&mut reconciler, 10).await;
    assert_eq!((requests("PATCH"), requests("POST")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn restored_hub_is_listed_again_before_any_write() {
    let mut reconciler = reconciler(&[&APPLICATION], CLOCKS);
    let (publisher, restores) = watch::channel(0);
    reconciler.restores = Some(restores);
    run(&mut reconciler, 1).await;
    assert_eq!(requests("managedclusters"), 1);
    publisher.send_replace(1);
    enqueue(&mut reconciler, Kind::Applications, applications("argocd", "fine", 1));
    run(&mut reconciler, 5).await;
    assert_eq!(
        (requests("managedclusters"), requests("PATCH")),
        (2, 0),
        "no list is complete"
    );
    reconciler.mark_synced(Kind::Clusters);
    run(&mut reconciler, 5).await;
    assert_eq!(requests("PATCH"), 1);
}
