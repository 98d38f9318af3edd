//! Jobs that know nothing of the scheduler share cards by turns.

use crate::harness::Cluster;

/// So many steps, of which each leaves a line.
fn count(steps: u32) -> String {
    format!("i=0; while [ $i -lt {steps} ]; do i=$((i+1)); echo step $i; sleep 0.05; done")
}

fn each_step_once(cluster: &Cluster, id: u64, steps: u32) {
    let job = cluster.wait(id, "succeeded");
    let log = cluster.yard(&format!("logs {id}")).ok();
    let done: Vec<_> = log.lines().filter(|line| line.starts_with("step")).collect();
    let expected: Vec<_> = (1..=steps).map(|step| format!("step {step}")).collect();
    assert_eq!(done, expected, "each step once, in order: {job:#}\n{log}");
}

fn was_frozen(cluster: &Cluster, id: u64) -> bool {
    cluster.job(id)["preemptions"].as_u64() > Some(0)
}

#[test]
fn jobs_that_do_not_talk_take_turns_frozen_and_lose_nothing_when_their_agent_dies() {
    let mut cluster = Cluster::up("--no-agent --round 1s --lease 30s --policy las");
    cluster.agent("one", "--fake v100:1");
    let jobs = [0, 1].map(|_| cluster.submit("--pause freeze", &["sh", "-c", &count(120)]));
    cluster.until("one of them lies frozen", || jobs.iter().any(|id| was_frozen(&cluster, *id)));
    cluster.kill_agent("one");
    cluster.agent("one", "--fake v100:1");
    jobs.into_iter().for_each(|id| each_step_once(&cluster, id, 120));
}

#[test]
fn on_several_cards_each_goes_on_where_it_lies() {
    let cluster = Cluster::up("--fake v100:2 --round 1s --policy round-robin");
    let jobs = [0; 5].map(|_| cluster.submit("--pause freeze", &["sh", "-c", &count(80)]));
    jobs.into_iter().for_each(|id| each_step_once(&cluster, id, 80));
    assert!(jobs.iter().any(|id| was_frozen(&cluster, *id)), "five jobs on two cards take turns");
}
