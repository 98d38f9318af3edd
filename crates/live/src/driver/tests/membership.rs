//! Who may be a node: two machines under one name, nodes that are cut off, and nodes that are removed.

use yard_core::part::How;

use super::*;

fn machine(name: &str, host: &str) -> Agent {
    let mut agent = Agent::new(name, &[("a100", 1)]);
    agent.hello.host = host.into();
    agent
}

fn quick(config: &mut Config) {
    config.terms = terms(300_000, 40_000, 50_000);
}

#[tokio::test]
async fn a_second_machine_of_a_name_is_refused_and_learns_nothing_of_its_jobs() {
    let rig = Rig::new();
    let mut first = machine("n1", "boot-1");
    first.connect(&rig.handle).await.unwrap();
    let secret = JobRequest { env: [("KEY".into(), "hunter2".into())].into(), ..job(0.0, 0) };
    let id = rig.submit(secret.clone()).await.id;
    let part = first.start_running().await;
    rig.until_state(id, "running").await;

    let mut copy = machine("n1", "boot-2");
    let refused = copy.connect(&rig.handle).await.unwrap_err().to_string();
    assert!(refused.contains("connected from another machine (n1.test)"), "{refused}");
    assert!(refused.contains("--name"), "{refused}");
    assert!(copy.receive().await.is_none() && copy.tasks.is_empty(), "nothing was sent to it");
    first.end(part, How::Finished, Some(0)).await;
    let job = rig.until_state(id, "succeeded").await;
    assert_eq!(job.starts, 1, "the first machine was not displaced");

    // The same machine takes its own place; one that does not say which machine it is does not.
    let mut again = machine("n1", "boot-1");
    again.connect(&rig.handle).await.unwrap();
    while first.receive().await.is_some() {}
    let nameless = machine("n1", "").connect(&rig.handle).await.unwrap_err().to_string();
    assert!(nameless.contains("connected from another machine"), "{nameless}");
    machine("n1", "boot-1").connect(&rig.handle).await.unwrap();
    rig.stop(&[]).await;
}

#[tokio::test]
async fn two_machines_that_come_at_once_are_not_both_let_in() {
    let rig = Rig::new();
    let (mut one, mut other) = (machine("n1", "boot-1"), machine("n1", "boot-2"));
    let (a, b) = tokio::join!(one.connect(&rig.handle), other.connect(&rig.handle));
    assert_eq!(a.is_ok() as u32 + b.is_ok() as u32, 1, "{a:?} {b:?}");
    // Once the one that is there has gone, the other may come: it may be a reboot.
    let (there, waits) = if a.is_ok() { (&mut one, &mut other) } else { (&mut other, &mut one) };
    there.disconnect().await;
    waits.connect(&rig.handle).await.unwrap();
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_node_that_is_cut_off_loses_its_jobs_after_its_lease() {
    let rig = Rig::with(quick);
    let mut agent = machine("n1", "boot-1");
    agent.connect(&rig.handle).await.unwrap();
    let checkpoint = crate::request::Checkpoint { grace_s: Some(0.1), ..Default::default() };
    let id = rig.submit(JobRequest { checkpoint, ..job(0.0, 0) }).await.id;
    agent.start_running().await;
    rig.until_state(id, "running").await;
    rig.sever("n1").await;
    while agent.receive().await.is_some() {}
    assert_eq!(rig.job(id).unwrap().state, "running", "it may still run there");
    rig.until_node("n1", "down").await;
    rig.until_state(id, "pending").await;
    rig.sever("nobody").await;
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_removed_node_goes_once_nothing_runs_there_and_its_name_is_free() {
    let rig = Rig::with(quick);
    let idle = machine("n2", "boot-2");
    let mut busy = machine("n1", "boot-1");
    busy.connect(&rig.handle).await.unwrap();
    let checkpoint = crate::request::Checkpoint { grace_s: Some(0.1), ..Default::default() };
    let id = rig.submit(JobRequest { checkpoint, ..job(0.0, 0) }).await.id;
    busy.start_running().await;
    rig.until_state(id, "running").await;
    let mut idle = idle;
    idle.connect(&rig.handle).await.unwrap();
    rig.remove("n2").await.unwrap();
    rig.until("n2 gone", |board| !board.nodes.contains_key("n2")).await;

    rig.remove("n1").await.unwrap();
    assert!(rig.look(|board| board.nodes.contains_key("n1")), "its job may still run");
    let early = machine("n1", "boot-3").connect(&rig.handle).await.unwrap_err().to_string();
    assert!(early.contains("is being removed"), "{early}");
    rig.until("n1 gone", |board| !board.nodes.contains_key("n1")).await;
    rig.until_state(id, "pending").await;
    assert!(matches!(rig.remove("n1").await, Err(Refusal::NotFound(_))));

    // Over a restart too; then another machine has the name.
    let dir = rig.stop(&[]).await;
    let rig = Rig::at(dir, quick);
    assert!(rig.look(|board| board.nodes.is_empty()), "nothing of them is left");
    let mut next = machine("n1", "boot-3");
    next.connect(&rig.handle).await.unwrap();
    next.start_running().await;
    rig.until_state(id, "running").await;
    rig.stop(&[]).await;
}
