//! Whole machines: several kinds in one node, and hosts of which nothing is reserved twice.

use std::collections::BTreeMap;

use yard_core::ids::JobId;
use yard_core::part::{Held, How};

use super::*;
use crate::views::ResourceView;

/// Two GPUs and so many processor slots on a host of 8 cores, 16 GiB and one licence.
async fn machine(rig: &Rig, name: &str, slots: usize) -> Agent {
    let mut agent = Agent::new(name, &[("h100", 2), ("cpu", slots)]);
    let resources = [("cores", 8_000), ("memory", 16_384), ("licence", 1)];
    agent.hello.resources = resources.map(|(name, amount)| (name.to_owned(), amount)).into();
    agent.connect(&rig.handle).await.unwrap();
    rig.until_node(name, "up").await;
    agent
}

fn asking(gpus: u32, cpus: f64) -> JobRequest {
    JobRequest { gpus: Some(gpus), cpus: Some(cpus), ..job(0.0, 0) }
}

/// Waits until so much of a resource of `n1` is reserved.
async fn until_reserved(rig: &Rig, name: &str, amount: f64) {
    let is = |one: &ResourceView| one.name == name && one.reserved == amount;
    rig.until(&format!("{amount} of {name}"), |board| board.nodes["n1"].resources.iter().any(is)).await;
}

async fn why(rig: &Rig, job: u64) -> (String, String) {
    let told = rig.handle.ask(|reply| Ask::Explain { job: JobId(job), reply }).await.unwrap();
    (told.reason, told.text)
}

#[tokio::test]
async fn one_agent_is_one_node_and_devices_keep_their_numbers() {
    let rig = Rig::new();
    let mut agent = machine(&rig, "n1", 4).await;
    rig.submit(asking(0, 1.0)).await;
    let part = agent.start_running().await;
    assert_eq!(agent.tasks[&part].0.devices[..], [Held { group: 1, mask: 0b1 }], "the first slot");
    let view = rig.until_state(part.job.0, "running").await;
    assert_eq!((view.nodes, view.kind.as_deref()), (vec!["n1/cpu[0]".to_owned()], Some("cpu")));
    rig.submit(asking(1, 1.0)).await;
    let part = agent.start_running().await;
    assert_eq!(agent.tasks[&part].0.devices[..], [Held { group: 0, mask: 0b1 }]);
    assert_eq!(rig.until_state(part.job.0, "running").await.nodes, ["n1/h100[0]"]);
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_host_is_never_oversubscribed_and_who_waits_is_told_why() {
    let rig = Rig::new();
    let mut agent = machine(&rig, "n1", 4).await;
    let mut parts = Vec::new();
    for request in [asking(0, 3.0), asking(1, 3.5)] {
        rig.submit(request).await;
        parts.push(agent.start_running().await);
    }
    let waiting = rig.submit(asking(0, 2.0)).await.id;
    let (reason, text) = why(&rig, waiting).await;
    assert_eq!(reason, "host");
    assert!(
        text.contains("needs 2 cores on a node, and nodes with free devices have at most 1.5 cores free"),
        "{text}"
    );
    until_reserved(&rig, "cores", 6.5).await;
    agent.end(parts.remove(0), How::Finished, Some(0)).await;
    let part = loop {
        match agent.order().await {
            yard_core::part::Order::Start(start) => break start.part,
            _ => continue,
        }
    };
    assert_eq!(part.job.0, waiting);
    until_reserved(&rig, "cores", 5.5).await;
    rig.stop(&[]).await;
}

#[tokio::test]
async fn who_asks_for_nothing_has_what_belongs_to_its_devices() {
    let rig = Rig::new();
    let mut agent = machine(&rig, "n1", 2).await;
    rig.submit(job(0.0, 0)).await;
    let part = agent.start_running().await;
    // Two slots have a core each, and their part of the memory; the GPUs have the rest.
    assert_eq!(agent.tasks[&part].1.memory_part_mib, Some(6_144));
    until_reserved(&rig, "cores", 3.0).await;
    until_reserved(&rig, "memory", 6_144.0).await;
    assert_eq!(agent.tasks[&part].1.cpus, None, "it is not held to that");
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_resource_with_a_name_of_its_own_is_counted_from_end_to_end() {
    let rig = Rig::new();
    let mut agent = machine(&rig, "n1", 4).await;
    let licensed =
        |name: &str| JobRequest { resources: BTreeMap::from([(name.to_owned(), 1)]), ..asking(0, 1.0) };
    let refusal = rig.try_submit("ann", licensed("dongle"), None).await.unwrap_err().to_string();
    assert!(
        refusal.contains("no node has the resource \"dongle\"; besides cores and memory there are: licence"),
        "{refusal}"
    );
    rig.submit(licensed("licence")).await;
    let part = agent.start_running().await;
    let second = rig.submit(licensed("licence")).await.id;
    let (reason, text) = why(&rig, second).await;
    assert!(reason == "host" && text.contains("1 licence"), "{reason}: {text}");
    agent.end(part, How::Finished, Some(0)).await;
    rig.until("the second has it", |board| board.jobs[&second].state == "starting").await;
    rig.stop(&[]).await;
}

#[tokio::test]
async fn more_than_any_host_has_is_refused_with_what_there_is() {
    let rig = Rig::new();
    let _agent = machine(&rig, "n1", 4).await;
    let view = rig.submit(asking(1, 9.0)).await;
    assert_eq!(view.state, "rejected");
    let reason = view.reason.unwrap_or_default();
    assert!(
        reason.contains("it asks for 9 cores on a node, and no node it may use has more than 8 cores"),
        "{reason}"
    );
    rig.stop(&[]).await;
}

#[tokio::test]
async fn what_an_agent_counts_may_change_while_jobs_run() {
    let rig = Rig::new();
    let mut agent = machine(&rig, "n1", 4).await;
    rig.submit(asking(1, 6.0)).await;
    let part = agent.start_running().await;
    agent.disconnect().await;
    agent.hello.resources.insert("cores".into(), 4_000);
    agent.connect(&rig.handle).await.unwrap();
    // What is given out stays so, and nothing more is.
    rig.submit(asking(0, 1.0)).await;
    until_reserved(&rig, "cores", 6.0).await;
    assert_eq!(rig.until_state(part.job.0, "running").await.state, "running");
    rig.stop(&[]).await;
}
