//! Priorities and what policies need, as who submits meets them.

use yard_core::part::How;
use yard_core::policy::{Knowledge, Priorities};

use super::*;

fn urgent(priority: i32) -> JobRequest {
    JobRequest { priority, ..job(0.0, 0) }
}

#[tokio::test]
async fn a_policy_that_cannot_honour_a_priority_refuses_it_and_nothing_is_kept() {
    let rig = Rig::with(|config| {
        (config.policy, config.priorities) =
            ("max-min".into(), Priorities::Refused("give it a larger weight"));
    });
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    for priority in [1, -1, i32::MAX, i32::MIN] {
        let refused = rig.try_submit("ann", urgent(priority), None).await.unwrap_err();
        let Refusal::Invalid { field, message } = refused else { panic!("{refused:?}") };
        assert_eq!(field.as_deref(), Some("priority"));
        let said = "priority: policy max-min does not honour priorities: leave the job's priority at 0, or give it a larger weight";
        assert_eq!(message, said);
    }
    assert_eq!(rig.submit(urgent(0)).await.id, 0, "the first job there is");
}

#[tokio::test]
async fn the_more_urgent_job_starts_first_after_a_restart_too() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    rig.submit(job(0.0, 0)).await;
    let first = agent.start_running().await;
    let later = rig.submit(urgent(0)).await.id;
    let sooner = rig.submit(urgent(i32::MAX)).await.id;
    let rig = Rig::at(rig.stop(&[]).await, |_| ());
    agent.connect(&rig.handle).await.unwrap();
    agent.end(first, How::Finished, Some(0)).await;
    let next = loop {
        if let yard_core::part::Order::Start(start) = agent.order().await {
            break start.part.job;
        }
    };
    assert_eq!((next, later), (JobId(sooner), sooner - 1));
}

#[tokio::test]
async fn what_the_policy_needs_and_the_job_does_not_say_is_a_warning() {
    const NEEDS: &[Knowledge] =
        &[Knowledge::Durations, Knowledge::Speeds, Knowledge::Regimes, Knowledge::Losses];
    let rig = Rig::with(|config| config.needs = NEEDS);
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 4)]).await;
    let plain = JobRequest { max_gpus: Some(4), ..job(0.0, 0) };
    let warned = rig.submit(plain.clone()).await.warnings;
    assert_eq!(warned.len(), 3, "{warned:#?}");
    let all = ["--duration", "--model", "regimes"];
    assert!(warned.iter().zip(all).all(|(said, remedy)| said.contains(remedy)), "{warned:#?}");
    let told = JobRequest { duration_s: Some(60.0), max_gpus: None, ..plain };
    let warned = rig.submit(told).await.warnings;
    assert!(matches!(&warned[..], [only] if only.contains("regimes")), "{warned:#?}");
    assert!(rig.job(0).unwrap().warnings.is_empty(), "said once");
    let spread = JobRequest { nodes: Some(2), gpus: Some(4), ..job(0.0, 0) };
    let refused = rig.submit(spread).await.reason.unwrap_or_default();
    assert_eq!(refused, "it asks for 2 nodes with 2 devices of a100 each, and there are 1");
}
