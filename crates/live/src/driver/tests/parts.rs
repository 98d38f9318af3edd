//! Parts of cards and freezing, as far as the agents that are here can do it: who asks for more is told so, and who
//! asks for what some can do is sent to those.

use expect_test::{Expect, expect};
use yard_core::part::Pause;

use super::*;
use crate::exec::agents::CardSharing;
use crate::wire::Limits as CardLimits;

/// A node with one card of so much memory that can, or cannot, freeze and limit.
async fn node(rig: &Rig, name: &str, kind: &str, memory_mib: u64, able: bool) -> Agent {
    let mut agent = Agent::new(name, &[(kind, 1)]);
    agent.hello.groups[0].devices[0].memory_mib = Some(memory_mib);
    if !able {
        let abilities = &mut agent.hello.abilities;
        abilities.no_freeze = Some(format!("the driver on node {name} is older than 570"));
        abilities.no_limits = Some(format!("nvidia-cuda-mps-control is not installed on node {name}"));
    }
    agent.connect(&rig.handle).await.unwrap();
    rig.until_node(name, "up").await;
    agent
}

async fn refused(rig: &Rig, change: impl FnOnce(&mut JobRequest), sentence: Expect) {
    let mut request = job(0.0, 0);
    change(&mut request);
    let refusal = rig.try_submit("ann", request, None).await.unwrap_err();
    assert!(matches!(refusal, Refusal::Invalid { field: Some(_), .. }), "{refusal:?}");
    sentence.assert_eq(&refusal.to_string());
}

#[tokio::test]
async fn what_no_node_can_do_is_refused_with_the_nodes_own_reason() {
    let rig = Rig::new();
    let _old = node(&rig, "old", "v100", 16_384, false).await;
    refused(
        &rig,
        |job| job.pause = Pause::Freeze,
        expect!["pause: freeze is not available here: the driver on node old is older than 570; use pause: checkpoint with the Python package, or pause: auto"],
    ).await;
    refused(
        &rig,
        |job| job.gpu_fraction = Some(0.5),
        expect!["gpu_fraction: cannot be enforced here: nvidia-cuda-mps-control is not installed on node old; or request a whole GPU with gpus: 1"],
    ).await;
    refused(
        &rig,
        |job| job.gpu_memory_mib = Some(80_000),
        expect!["gpu_memory: no GPU that the job may use has 80000 MiB; the largest is v100 with 16384 MiB"],
    )
    .await;
    rig.submit(job(0.0, 0)).await;
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_job_goes_where_it_can_be_served() {
    let rig = Rig::new();
    let _old = node(&rig, "old", "v100", 16_384, false).await;
    let mut new = node(&rig, "new", "h200", 143_771, true).await;
    rig.submit(JobRequest { gpu_fraction: Some(0.25), gpu_memory_mib: Some(8_192), ..job(0.0, 0) }).await;
    let part = new.start_running().await;
    let task = &new.tasks[&part].1;
    assert_eq!(task.limits, Some(CardLimits { compute: 0.25, memory_mib: Some(8_192) }));
    new.end(part, yard_core::part::How::Finished, Some(0)).await;
    rig.submit(JobRequest { pause: Pause::Freeze, ..job(0.0, 0) }).await;
    new.forget_of(part).await;
    let part = new.start_running().await;
    assert_eq!(new.tasks[&part].1.limits, None);
    let named = JobRequest { kinds: vec!["v100".into()], pause: Pause::Freeze, ..job(0.0, 0) };
    let refusal = rig.try_submit("ann", named, None).await.unwrap_err().to_string();
    assert!(refusal.contains("node old"), "{refusal}");
    rig.stop(&[]).await;
}

#[tokio::test]
async fn nothing_is_refused_of_nodes_that_may_come_back() {
    let rig = Rig::new();
    let old = node(&rig, "old", "v100", 16_384, false).await;
    let freeze = JobRequest { pause: Pause::Freeze, ..job(0.0, 0) };
    assert!(rig.try_submit("ann", freeze.clone(), None).await.is_err());
    let dir = rig.stop(&[]).await;
    drop(old);
    let rig = Rig::at(dir, |_| ());
    rig.submit(freeze).await;
    rig.stop(&[]).await;
}

#[tokio::test]
async fn all_jobs_share_through_mps_where_the_operator_wants_it_and_the_node_can() {
    let rig = Rig::with(|config| config.terms.sharing = CardSharing::Mps);
    let mut agents =
        [node(&rig, "new", "h200", 143_771, true).await, node(&rig, "old", "v100", 16_384, false).await];
    for (agent, kind, limits) in
        [(0, "h200", Some(CardLimits { compute: 1.0, memory_mib: None })), (1, "v100", None)]
    {
        rig.submit(JobRequest { kinds: vec![kind.into()], ..job(0.0, 0) }).await;
        let part = agents[agent].start_running().await;
        assert_eq!(agents[agent].tasks[&part].1.limits, limits);
    }
    rig.stop(&[]).await;
}
