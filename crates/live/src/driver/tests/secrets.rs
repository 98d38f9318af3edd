//! Secrets on their way to a job: to the agent that runs it, and nowhere else.

use yard_core::part::{How, Order};

use super::*;
use crate::secrets::Secrets;
use crate::wire::{Handed, SecretValue};

const VALUE: &str = "hf_0c3b1f-unlike-anything-else";

fn with_secret() -> JobRequest {
    let secrets = [("HF_TOKEN".to_owned(), Handed::Env), ("hf-token".to_owned(), Handed::File)].into();
    JobRequest { secrets, max_restarts: Some(0), ..job(0.0, 0) }
}

fn keep(secrets: &Secrets, name: &str, value: &str) {
    secrets.set("ann", name, &SecretValue(value.into())).unwrap();
}

/// Whether a value is in any file under a folder.
fn is_in(folder: &Path, value: &str) -> bool {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return is_in(&path, value);
        }
        let bytes = std::fs::read(&path).unwrap();
        bytes.windows(value.len()).any(|window| window == value.as_bytes())
    })
}

#[tokio::test]
async fn a_job_is_given_the_value_of_the_moment_and_nothing_else_holds_it() {
    let rig = Rig::with(|config| config.snapshot_every = 1);
    let secrets = Secrets::open(rig.dir.path()).unwrap();
    keep(&secrets, "HF_TOKEN", "an older value");
    keep(&secrets, "hf-token", VALUE);
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let blocks = rig.submit(wide(1)).await.id;
    let first = agent.start().await;
    let id = rig.submit(with_secret()).await.id;
    keep(&secrets, "HF_TOKEN", VALUE);
    agent.end(first, How::Finished, Some(0)).await;
    agent.forget_of(first).await;
    let part = agent.start().await;
    assert_eq!(part.job, JobId(id));
    let given: Vec<_> = agent.tasks[&part]
        .1
        .secrets
        .iter()
        .map(|one| (one.name.as_str(), one.handed, one.value.0.as_str()))
        .collect();
    assert_eq!(given, [("HF_TOKEN", Handed::Env, VALUE), ("hf-token", Handed::File, VALUE)]);
    assert!(
        agent.tasks[&agent.tasks.keys().next().copied().unwrap()].1.secrets.is_empty(),
        "who asks for none"
    );
    assert!(!format!("{:?}", agent.tasks).contains(VALUE), "it is not shown by accident");
    agent.end(part, How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    rig.until_state(id, "succeeded").await;
    rig.events_of(id, "ended").await;
    let told = serde_json::to_string(&(rig.job(id), rig.history().request(JobId(id)).unwrap())).unwrap();
    assert!(told.contains("HF_TOKEN") && !told.contains(VALUE));
    assert!(rig.job(blocks).is_some());
    let dir = rig.stop(&[]).await;
    assert!(is_in(dir.path(), "HF_TOKEN"), "the files are those that would hold it");
    assert!(!is_in(dir.path(), VALUE), "in no file: neither journal nor snapshot nor history");
}

#[tokio::test]
async fn a_job_whose_secret_was_removed_does_not_start_and_says_why() {
    let rig = Rig::new();
    let secrets = Secrets::open(rig.dir.path()).unwrap();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(with_secret()).await.id;
    let failed = rig.until_state(id, "failed").await;
    let reason = failed.reason.unwrap();
    assert!(
        reason.contains("ann has no secret HF_TOKEN; set it first: yard secret set HF_TOKEN"),
        "{reason}"
    );
    let order = agent.order().await;
    assert!(matches!(order, Order::Forget { .. }), "it was never told to start: {order:?}");
    // The node is none the worse for it.
    keep(&secrets, "HF_TOKEN", VALUE);
    keep(&secrets, "hf-token", VALUE);
    let again = rig.submit(with_secret()).await.id;
    let part = agent.start_running().await;
    assert_eq!(part.job, JobId(again));
    agent.end(part, How::Finished, Some(0)).await;
    rig.until_state(again, "succeeded").await;
}

#[tokio::test]
async fn a_gang_whose_secret_was_removed_fails_as_a_whole_and_frees_its_nodes() {
    let rig = Rig::new();
    let one = tokio::spawn(Agent::join(&rig.handle, "n1", &[("a100", 2)]).await.run());
    let two = tokio::spawn(Agent::join(&rig.handle, "n2", &[("a100", 2)]).await.run());
    let id = rig.submit(JobRequest { gpus: Some(4), ..with_secret() }).await.id;
    let failed = rig.until_state(id, "failed").await;
    assert!(failed.reason.unwrap().contains("no secret HF_TOKEN"));
    let next = rig.submit(wide(4)).await.id;
    rig.until_state(next, "succeeded").await;
    one.abort();
    two.abort();
}

#[tokio::test]
async fn another_users_secret_is_none() {
    let rig = Rig::new();
    let secrets = Secrets::open(rig.dir.path()).unwrap();
    keep(&secrets, "HF_TOKEN", VALUE);
    keep(&secrets, "hf-token", VALUE);
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.try_submit("bob", with_secret(), None).await.unwrap().id;
    let failed = rig.until_state(id, "failed").await;
    assert!(failed.reason.unwrap().contains("bob has no secret HF_TOKEN"));
}
