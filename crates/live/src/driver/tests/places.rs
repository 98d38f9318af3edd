//! Where machines are, and jobs that say on how many of them they run and how close together.

use yard_core::cluster::{DomainPath, Level};
use yard_core::ids::JobId;

use super::*;
use crate::topology::Topology;

/// Two GPUs in a rack.
async fn machine(rig: &Rig, name: &str, rack: &str) -> Agent {
    let mut agent = Agent::new(name, &[("h100", 2)]);
    agent.hello.domains = DomainPath::default().with(Level::Rack, rack);
    agent.connect(&rig.handle).await.unwrap();
    rig.until_node(name, "up").await;
    agent
}

#[tokio::test]
async fn a_job_has_exactly_the_nodes_and_processes_it_names() {
    let rig = Rig::new();
    let mut agents = [machine(&rig, "n1", "a").await, machine(&rig, "n2", "a").await];
    let two = JobRequest { gpus: Some(2), nodes: Some(2), tasks_per_node: Some(3), ..job(0.0, 0) };
    rig.submit(two).await;
    for (at, agent) in agents.iter_mut().enumerate() {
        let part = agent.start().await;
        let start = &agent.tasks[&part].0;
        assert_eq!(
            (start.devices.len(), start.devices[0].mask),
            (1, 0b1),
            "one device, though there are two"
        );
        assert_eq!((start.ranks.first, start.ranks.count, start.ranks.world), (3 * at as u32, 3, 6));
    }
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_gang_lies_in_one_rack_and_one_too_large_for_any_is_refused() {
    let rig = Rig::new();
    let mut agents = Vec::new();
    for (name, rack) in [("n1", "a"), ("n2", "b"), ("n3", "b")] {
        agents.push(machine(&rig, name, rack).await);
    }
    let close = |gpus| JobRequest { gpus: Some(gpus), close: Some(Level::Rack), ..job(0.0, 0) };
    let placed = rig.submit(close(3)).await.id;
    rig.until("placed", |board| board.jobs[&placed].nodes.len() == 2).await;
    let nodes = rig.job(placed).expect("it is there").nodes;
    assert!(nodes[0].starts_with("n2") && nodes[1].starts_with("n3"), "{nodes:?}");
    let refused = rig.submit(close(5)).await.reason.unwrap_or_default();
    assert_eq!(refused, "it asks for 5 devices of h100, and no rack has more than 4");
    let segments = JobRequest { gpus: Some(6), nodes: Some(3), segment: Some(1), ..close(6) };
    assert_eq!(rig.submit(segments).await.state, "pending", "each by itself is in one rack");
    rig.stop(&[]).await;
}

#[tokio::test]
async fn the_topology_file_comes_before_what_an_agent_says() {
    let file = "[[nodes]]\nnames = ['n1']\nrack = 'r7'\nblock = 'b1'\n";
    let rig = Rig::with(|config| config.topology = Topology::parse(file).expect("it is sound"));
    let mut first = machine(&rig, "n1", "lies").await;
    let mut second = machine(&rig, "n2", "own").await;
    let there = &rig;
    let place = |name: &'static str, path: &'static [(&str, &str)]| {
        let path: std::collections::BTreeMap<String, String> =
            path.iter().map(|(level, name)| ((*level).to_owned(), (*name).to_owned())).collect();
        async move {
            there.until(&format!("{name} in its place"), |board| board.nodes[name].domains == path).await;
        }
    };
    place("n1", &[("rack", "r7"), ("block", "b1")]).await;
    place("n2", &[("rack", "own")]).await;
    // One that is restarted elsewhere is where it says it is, unless the file knows better.
    first.hello.domains = DomainPath::default().with(Level::Zone, "z");
    first.connect(&rig.handle).await.unwrap();
    second.hello.domains = DomainPath::default().with(Level::Rack, "new");
    second.connect(&rig.handle).await.unwrap();
    place("n2", &[("rack", "new")]).await;
    place("n1", &[("rack", "r7"), ("block", "b1")]).await;
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_kind_that_joins_later_is_offered_to_jobs_that_wait_and_named_none() {
    let rig = Rig::new();
    let mut first = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    rig.submit(job(0.0, 0)).await;
    first.start_running().await;
    let open = rig.submit(job(0.0, 0)).await.id;
    let named = rig.submit(JobRequest { kinds: vec!["a100".into()], ..job(0.0, 0) }).await.id;
    let mut second = Agent::join(&rig.handle, "n2", &[("h100", 2)]).await;
    let part = second.start_running().await;
    assert_eq!(part.job, JobId(open));
    assert_eq!(rig.until_state(open, "running").await.kind.as_deref(), Some("h100"));
    assert_eq!(rig.job(named).expect("it is there").state, "pending");
    rig.stop(&[]).await;
}
