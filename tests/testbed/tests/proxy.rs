//! Tests of the faults that the proxy in front of an API server injects: without them, tests of faults would prove nothing.

use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use serde_json::json;
use testbed::proxy::{Fault, Proxy, RecordedRequest, Times};
use testbed::{Hub, ObjectRef};
use tokio::sync::OnceCell;
use tokio::time::timeout;

const DEADLINE: Duration = testbed::wait::DEADLINE;

/// A proxy for one test, and a namespace for its requests.
struct Bench {
    proxy: Proxy,
    config_maps: Api<ConfigMap>,
}

impl Bench {
    /// Creates the proxy and the namespace.
    async fn new(namespace: &str) -> anyhow::Result<Self> {
        let hub = hub().await?;
        hub.create_namespace(namespace).await?;
        let proxy = Proxy::start(hub).await?;
        let client = client(&proxy, hub.kubeconfig_path()).await?;
        let config_maps = Api::namespaced(client, namespace);
        Ok(Self { proxy, config_maps })
    }

    async fn create(&self, name: &str) -> kube::Result<ConfigMap> {
        let config_map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        self.config_maps.create(&PostParams::default(), &config_map).await
    }

    async fn watch(&self) -> kube::Result<Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<ConfigMap>>>>>> {
        let version = self
            .config_maps
            .list(&ListParams::default())
            .await?
            .metadata
            .resource_version;
        let events = self
            .config_maps
            .watch(&WatchParams::default(), &version.unwrap_or_default())
            .await?;
        Ok(events.boxed_local())
    }
}

async fn hub() -> anyhow::Result<&'static Hub> {
    static HUB: OnceCell<Hub> = OnceCell::const_new();
    HUB.get_or_try_init(Hub::start).await
}

/// Creates a client without retries.
async fn client(proxy: &Proxy, kubeconfig: &std::path::Path) -> anyhow::Result<Client> {
    let kubeconfig = Kubeconfig::read_from(proxy.kubeconfig(kubeconfig)?)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

fn code<T>(answer: kube::Result<T>) -> u16 {
    match answer {
        Err(Error::Api(status)) => status.code,
        Err(other) => panic!("no answer of an API server: {other}"),
        Ok(_) => 200,
    }
}

fn added(event: Option<kube::Result<WatchEvent<ConfigMap>>>) -> String {
    match event {
        Some(Ok(WatchEvent::Added(config_map))) => config_map.metadata.name.unwrap_or_default(),
        other => panic!("not an object that was added: {other:?}"),
    }
}

#[tokio::test]
async fn proxy_refuses_matching_requests_the_given_number_of_times() -> anyhow::Result<()> {
    let bench = Bench::new("refused").await?;
    bench.proxy.fault(Fault::Status(409), Times::Next(2), |request| {
        request.is("create", "configmaps")
    });
    bench
        .proxy
        .fault(Fault::Status(503), Times::Always, RecordedRequest::is_write);
    assert_eq!(code(bench.create("one").await), 409);
    assert_eq!(code(bench.config_maps.list(&ListParams::default()).await), 200);
    assert_eq!(code(bench.create("one").await), 409);
    assert_eq!(code(bench.create("one").await), 503);
    assert_eq!(code(bench.create("one").await), 503);
    bench.proxy.heal();
    assert_eq!(code(bench.create("one").await), 200);
    Ok(())
}

#[tokio::test]
async fn hanging_requests_continue_after_healing_unless_cancelled() -> anyhow::Result<()> {
    let bench = Bench::new("hangs").await?;
    let mut events = bench.watch().await?;
    bench.create("before").await?;
    assert_eq!(added(timeout(DEADLINE, events.next()).await?), "before");

    bench.proxy.fault(Fault::Hang, Times::Always, |_| true);
    {
        let mut given_up = pin!(bench.create("given-up"));
        let arrived = bench.proxy.until("the create arrived", |requests| {
            requests.last().is_some_and(|last| last.is("create", "configmaps"))
        });
        tokio::select! {
            answer = &mut given_up => panic!("the request was answered: {answer:?}"),
            arrived = arrived => arrived?,
        }
    }
    let mut waiting = pin!(bench.create("waiting"));
    let mark = bench.proxy.mark();
    tokio::select! {
        answer = &mut waiting => panic!("the request was answered: {answer:?}"),
        arrived = bench.proxy.until("another create arrived", |requests| requests.len() > mark) => arrived?,
    }
    // A client without the proxy is not affected, but the watch does not deliver its change.
    let hub = hub().await?;
    hub.create(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "hangs", "name": "elsewhere"}}),
    )
    .await?;
    assert!(
        Pin::new(&mut events)
            .poll_next(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    bench.proxy.heal();
    timeout(DEADLINE, waiting).await??;
    assert_eq!(added(timeout(DEADLINE, events.next()).await?), "elsewhere");
    assert_eq!(added(timeout(DEADLINE, events.next()).await?), "waiting");
    assert_eq!(hub.get(&ObjectRef::config_map("hangs", "given-up")).await?, None);
    Ok(())
}

#[tokio::test]
async fn lost_response_follows_a_completed_request() -> anyhow::Result<()> {
    let bench = Bench::new("lost").await?;
    bench
        .proxy
        .fault(Fault::AnswerLost, Times::Next(1), RecordedRequest::is_write);
    let answer = bench.create("one").await;
    assert!(
        matches!(answer, Err(Error::Service(_) | Error::HyperError(_))),
        "{answer:?}"
    );
    assert_eq!(code(bench.create("one").await), 409);
    Ok(())
}

#[tokio::test]
async fn faults_reset_end_and_expire_new_and_open_watches() -> anyhow::Result<()> {
    let bench = Bench::new("watches").await?;
    let proxy = &bench.proxy;
    let is_watch = |request: &RecordedRequest| request.verb == "watch";
    let expired = |event| matches!(event, Some(Ok(WatchEvent::Error(status))) if status.code == 410 && status.reason == "Expired");

    let mut events = bench.watch().await?;
    bench.create("one").await?;
    assert_eq!(added(timeout(DEADLINE, events.next()).await?), "one");
    proxy.fault(Fault::Expired, Times::Next(1), is_watch);
    assert!(expired(timeout(DEADLINE, events.next()).await?));
    assert!(timeout(DEADLINE, events.next()).await?.is_none());

    let mut events = bench.watch().await?;
    proxy.fault(Fault::ResetAfter(Duration::from_millis(1)), Times::Next(1), is_watch);
    let reset = timeout(DEADLINE, events.next()).await?;
    assert!(matches!(reset, Some(Err(Error::ReadEvents(_)))), "{reset:?}");

    proxy.fault(Fault::EndAfter(Duration::from_millis(1)), Times::Next(1), is_watch);
    let mut events = bench.watch().await?;
    assert!(timeout(DEADLINE, events.next()).await?.is_none());

    proxy.fault(Fault::Expired, Times::Next(1), is_watch);
    let mut events = bench.watch().await?;
    assert!(expired(timeout(DEADLINE, events.next()).await?));

    let mut events = bench.watch().await?;
    bench.create("two").await?;
    assert_eq!(added(timeout(DEADLINE, events.next()).await?), "two");
    Ok(())
}
