//! Jobs cannot make themselves unstoppable: grace has a limit, a claim about checkpoints does not lengthen it, and
//! whoever may cancel a job may kill it.

use yard_core::message::Why;
use yard_core::part::{How, Order, Told};
use yard_core::units::Span;

use super::*;
use crate::request::Checkpoint;

fn with_grace(seconds: f64) -> JobRequest {
    let checkpoint = Checkpoint { grace_s: Some(seconds), ..Checkpoint::default() };
    JobRequest { checkpoint, max_restarts: Some(9), ..job(0.0, 0) }
}

async fn next_stop(agent: &mut Agent) -> Why {
    match agent.order().await {
        Order::Stop { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn more_grace_than_the_server_allows_is_refused() {
    let rig = Rig::with(|config| config.grace_max = Span::from_whole_secs(600));
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let refused = rig.try_submit("eve", with_grace(86_400.0), None).await.unwrap_err();
    let Refusal::Invalid { field, message } = refused else { panic!("{refused:?}") };
    assert_eq!(field.as_deref(), Some("checkpoint"));
    assert!(message.contains("600s") && message.contains("--grace-max"), "{message}");
    assert!(rig.try_submit("eve", with_grace(600.0), None).await.is_ok());
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_job_that_says_its_checkpoint_took_a_day_gets_no_more_grace_than_any() {
    let rig = Rig::with(|config| config.grace_max = Span::from_whole_secs(600));
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(with_grace(5.0)).await.id;
    let first = agent.start_running().await;
    assert_eq!(agent.tasks[&first].0.grace, Span::from_whole_secs(5));
    let took = Span::from_whole_secs(86_400);
    agent.tell(first, Told::Checkpointed { step: 1, took }).await;
    rig.until("the checkpoint is known", |board| board.jobs[&id].checkpointed == Some(1)).await;
    agent.end(first, How::Crashed, Some(1)).await;
    agent.forget_of(first).await;
    let second = agent.start_running().await;
    assert_eq!(agent.tasks[&second].0.grace, Span::from_whole_secs(600));
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_job_that_is_being_stopped_can_be_killed_also_by_the_next_server() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(with_grace(600.0)).await.id;
    let part = agent.start_running().await;
    rig.until_state(id, "running").await;
    rig.cancel("ann", id).await.unwrap();
    assert_eq!(next_stop(&mut agent).await, Why::Cancelled);
    assert!(rig.kill("eve", id).await.is_err(), "it is not hers");
    // The order is lost with the connection, and the server with it.
    agent.disconnect().await;
    rig.kill("ann", id).await.unwrap();
    let dir = rig.stop(&[]).await;
    let rig = Rig::at(dir, |_| ());
    agent.connect(&rig.handle).await.unwrap();
    assert_eq!(next_stop(&mut agent).await, Why::Killed);
    agent.end(part, How::Saved, None).await;
    let job = rig.until_state(id, "cancelled").await;
    assert_eq!(job.reason.as_deref(), Some("cancelled by ann"));
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_silent_node_is_given_up_in_time_whatever_grace_its_jobs_have() {
    let rig = Rig::with(|config| {
        config.terms = terms(300_000, 40_000, 50_000);
    });
    let mut dying = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(with_grace(600.0)).await.id;
    dying.start_running().await;
    rig.until_state(id, "running").await;
    // Lease, 30 s and margin are well within the patience of `until`; ten minutes are not.
    rig.until_node("n1", "down").await;
    rig.until_state(id, "pending").await;
    rig.stop(&[]).await;
}
