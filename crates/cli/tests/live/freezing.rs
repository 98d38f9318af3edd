//! Jobs that know nothing of the scheduler share a card by turns.

use crate::harness::Cluster;

#[test]
fn jobs_that_do_not_talk_take_turns_frozen_and_lose_nothing_when_their_agent_dies() {
    let mut cluster = Cluster::up("--no-agent --round 1s --lease 30s --policy las");
    cluster.agent("one", "--fake v100:1");
    let count = "i=0; while [ $i -lt 120 ]; do i=$((i+1)); echo step $i; sleep 0.05; done";
    let jobs = [0, 1].map(|_| cluster.submit("--pause freeze", &["sh", "-c", count]));
    let was_frozen = |id: &u64| cluster.job(*id)["preemptions"].as_u64() > Some(0);
    cluster.until("one of them lies frozen", || jobs.iter().any(was_frozen));
    cluster.kill_agent("one");
    cluster.agent("one", "--fake v100:1");
    for id in jobs {
        let job = cluster.wait(id, "succeeded");
        let log = cluster.yard(&format!("logs {id}")).ok();
        let steps: Vec<_> = log.lines().filter(|line| line.starts_with("step")).collect();
        let expected: Vec<_> = (1..=120).map(|step| format!("step {step}")).collect();
        assert_eq!(steps, expected, "each step once, in order: {job:#}\n{log}");
    }
}
