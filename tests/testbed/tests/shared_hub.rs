//! Tests of one hub for several tests, each of which has its own runtime.

use testbed::{Hub, ObjectRef};
use tokio::sync::OnceCell;

/// Never dropped: its processes end with this program.
static HUB: OnceCell<Hub> = OnceCell::const_new();

async fn use_the_hub(namespace: &str) -> anyhow::Result<()> {
    let hub = HUB.get_or_try_init(Hub::start).await?;
    hub.create_namespace(namespace).await?;
    hub.wait_for(&ObjectRef::namespace(namespace), |it| it["status"]["phase"] == "Active")
        .await?;
    hub.delete(&ObjectRef::namespace(namespace)).await?;
    hub.wait_gone(&ObjectRef::namespace(namespace)).await
}

#[tokio::test]
async fn first_test_uses_the_shared_hub() -> anyhow::Result<()> {
    use_the_hub("one").await
}

#[tokio::test]
async fn second_test_uses_the_shared_hub() -> anyhow::Result<()> {
    use_the_hub("another").await
}
