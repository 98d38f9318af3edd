//! Agents come, go, fall silent and come back, and jobs are where they should be.

use yard_core::part::{How, Order, Told};
use yard_core::units::Span;

use super::*;
use crate::wire::{FromAgent, ToAgent};

#[tokio::test]
async fn an_agent_that_reconnects_keeps_its_jobs() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start_running().await;
    rig.until_state(id, "running").await;
    agent.disconnect().await;
    rig.until_node("n1", "unreachable").await;
    assert_eq!(rig.job(id).unwrap().state, "running");
    agent.connect(&rig.handle).await.unwrap();
    rig.until_node("n1", "up").await;
    // What happened while nobody listened is told with the next hello.
    agent.disconnect().await;
    let ending = yard_core::part::Ending {
        how: How::Finished,
        step: None,
        code: Some(0),
        signal: None,
        message: None,
    };
    agent.parts.insert(part, Told::Ended(ending));
    agent.connect(&rig.handle).await.unwrap();
    agent.forget_of(part).await;
    rig.until_state(id, "succeeded").await;
}

#[tokio::test]
async fn orders_that_got_lost_are_sent_again() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let Order::Start(lost) = agent.order().await else { panic!("it is to start the job") };
    agent.disconnect().await;
    rig.until_node("n1", "unreachable").await;
    agent.connect(&rig.handle).await.unwrap();
    assert_eq!(agent.start().await, lost.part, "the same lease");
    agent.end(lost.part, How::Finished, Some(0)).await;
    rig.until_state(id, "succeeded").await;
}

#[tokio::test]
async fn a_node_that_stays_silent_is_given_up_after_its_lease() {
    let rig = Rig::with(|config| {
        config.terms = terms(300_000, 40_000, 50_000);
    });
    let mut dying = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let request = JobRequest {
        checkpoint: crate::request::Checkpoint { grace_s: Some(0.1), ..Default::default() },
        ..job(0.0, 0)
    };
    let id = rig.submit(request).await.id;
    let old = dying.start_running().await;
    rig.until_state(id, "running").await;
    let healthy = tokio::spawn(Agent::join(&rig.handle, "n2", &[("a100", 1)]).await.run());
    rig.until_node("n1", "unreachable").await;
    assert_eq!(rig.job(id).unwrap().state, "running", "it may still run there");
    rig.until_node("n1", "down").await;
    let view = rig.until_state(id, "succeeded").await;
    assert_eq!((view.starts, view.failures), (2, 0), "not the job's fault");
    // Back from the dead: what it still has there is over, and it may take jobs again.
    while dying.receive().await.is_some() {}
    dying.connect(&rig.handle).await.unwrap();
    dying.stop_of(old).await;
    dying.end(old, How::Saved, Some(0)).await;
    dying.forget_of(old).await;
    rig.until_node("n1", "up").await;
    rig.stop(&[]).await;
    healthy.await.unwrap();
}

#[tokio::test]
async fn a_node_that_is_evicted_while_out_of_reach_is_given_up_as_any_other() {
    for restart in [false, true] {
        let quick = |config: &mut Config| config.terms = terms(300_000, 40_000, 50_000);
        let mut rig = Rig::with(quick);
        let mut dying = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
        let checkpoint = crate::request::Checkpoint { grace_s: Some(0.1), ..Default::default() };
        let id = rig.submit(JobRequest { checkpoint, ..job(0.0, 0) }).await.id;
        dying.start_running().await;
        rig.until_state(id, "running").await;
        dying.disconnect().await;
        rig.until_node("n1", "unreachable").await;
        let (who, node) = (Who { user: "root".into(), admin: true }, "n1".to_owned());
        let ask = |reply| Ask::Drain { who, node, drain: true, evict: true, reason: None, reply };
        rig.handle.ask(ask).await.unwrap();
        rig.until_state(id, "suspending").await;
        if restart {
            rig = Rig::at(crashes::copy(&rig.dir), quick);
        }
        let healthy = tokio::spawn(Agent::join(&rig.handle, "n2", &[("a100", 1)]).await.run());
        let view = rig.until_state(id, "succeeded").await;
        assert_eq!((view.starts, view.failures), (2, 0), "restarted: {restart}");
        rig.stop(&[]).await;
        healthy.await.unwrap();
    }
}

#[tokio::test]
async fn beats_are_answered_and_keep_a_node_alive() {
    let rig = Rig::with(|config| config.terms.beat = Span(300_000));
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    agent.say(FromAgent::Beat { seq: 7 }).await;
    assert_eq!(agent.receive().await, Some(ToAgent::Beat { seq: 7 }));
    rig.until_node("n1", "unreachable").await;
    let agent = tokio::spawn(agent.run());
    rig.until_node("n1", "up").await;
    rig.stop(&[]).await;
    agent.await.unwrap();
}

#[tokio::test]
async fn a_drained_node_takes_nothing_until_it_is_resumed() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 2)]).await;
    let running = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start_running().await;
    rig.drain("n1", true).await.unwrap();
    rig.until_node("n1", "draining").await;
    let reason = rig.look(|board| board.nodes["n1"].reason.clone());
    assert_eq!(reason.as_deref(), Some("drained by root: new fans"));
    let waiting = rig.submit(job(0.0, 0)).await.id;
    agent.end(part, How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    rig.until_state(running, "succeeded").await;
    // Neither a new connection nor a new server makes anybody forget it.
    agent.disconnect().await;
    agent.connect(&rig.handle).await.unwrap();
    rig.until_node("n1", "draining").await;
    let rig = Rig::at(rig.stop(&[]).await, |_| ());
    agent.connect(&rig.handle).await.unwrap();
    rig.until_node("n1", "draining").await;
    assert_eq!(rig.job(waiting).unwrap().state, "pending");
    rig.drain("n1", false).await.unwrap();
    let part = agent.start().await;
    assert_eq!(part.job, JobId(waiting));
    let nobody = rig.handle.ask(|reply| Ask::Drain {
        who: who("ann"),
        node: "n1".into(),
        drain: true,
        evict: false,
        reason: None,
        reply,
    });
    assert!(matches!(nobody.await, Err(Refusal::Forbidden(_))));
    assert!(matches!(rig.drain("n9", true).await, Err(Refusal::NotFound(_))));
}

#[tokio::test]
async fn the_cheapest_nodes_to_do_without_are_those_without_jobs() {
    let rig = Rig::new();
    let mut busy = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    rig.submit(job(0.0, 0)).await;
    busy.start_running().await;
    let _idle = Agent::join(&rig.handle, "n2", &[("a100", 1)]).await;
    rig.until_node("n2", "up").await;
    let cheapest = |kind: &str, count| {
        let kind = kind.to_owned();
        rig.handle.ask(move |reply| Ask::Cheapest { kind, count, reply })
    };
    assert_eq!(cheapest("a100", 1).await.unwrap(), ["n2"]);
    assert_eq!(cheapest("a100", 9).await.unwrap(), ["n1", "n2"]);
    assert!(matches!(cheapest("h100", 1).await, Err(Refusal::NotFound(_))));
}

#[tokio::test]
async fn an_agent_with_two_kinds_is_two_nodes_and_may_change() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1), ("cpu", 2)]).await;
    let id = rig.submit(JobRequest { gpus: Some(0), ..job(0.0, 0) }).await.id;
    let part = agent.start_running().await;
    assert_eq!(agent.tasks[&part].0.devices[0].group, 1);
    let view = rig.until_state(id, "running").await;
    assert_eq!(view.nodes, ["n1/cpu[0]"]);
    // A card more, and no processor slots: the job there has to stop before anything else starts.
    agent.disconnect().await;
    agent.hello.groups = crate::exec::host::groups(&[("a100", 2)]);
    agent.connect(&rig.handle).await.unwrap();
    agent.stop_of(part).await;
    let waiting = rig.submit(wide(2)).await.id;
    rig.until_node("n1", "draining").await;
    agent.end(part, How::Saved, Some(0)).await;
    agent.forget_of(part).await;
    rig.until_state(id, "suspended").await;
    assert_eq!(agent.start().await.job, JobId(waiting));
    rig.until_node("n1", "up").await;
    assert_eq!(rig.look(|board| board.status.as_ref().unwrap().devices), 2);
}

#[tokio::test]
async fn a_strange_agent_is_turned_away() {
    let rig = Rig::new();
    let mut agent = Agent::new("../n1", &[("a100", 1)]);
    assert!(matches!(agent.connect(&rig.handle).await, Err(Refusal::Invalid { .. })));
    agent.hello.name = "n1".into();
    agent.hello.version = 99;
    assert!(agent.connect(&rig.handle).await.is_err());
    assert!(rig.look(|board| board.nodes.is_empty()));
}

#[tokio::test]
async fn logs_come_from_the_agent_that_has_them() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let log = |rank| crate::handle::LogRequest {
        job: JobId(id),
        rank,
        of: crate::handle::LogOf::Stdout,
        tail: None,
        follow: true,
    };
    let part = agent.start().await;
    agent.end(part, How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    rig.until_state(id, "succeeded").await;
    let ask = |user: &str, rank| {
        let (who, log) = (who(user), log(rank));
        rig.handle.ask(|reply| Ask::Logs { who, log, reply })
    };
    assert!(matches!(ask("bob", 0).await, Err(Refusal::NotFound(_))));
    assert!(matches!(ask("ann", 1).await, Err(Refusal::NotFound(_))));
    let mut pieces = ask("ann", 0).await.unwrap().pieces;
    let Some(ToAgent::Logs { request, .. }) = agent.receive().await else { panic!("it is asked for a log") };
    for (text, end) in [("step 1\n", false), ("step 2\n", true)] {
        agent.say(FromAgent::Logs { request, text: text.into(), end, error: None }).await;
    }
    assert_eq!(pieces.recv().await, Some(Ok("step 1\n".into())));
    assert_eq!(pieces.recv().await, Some(Ok("step 2\n".into())));
    assert_eq!(pieces.recv().await, None);
    // Who stops listening is not sent more; who listens when the node goes is told.
    drop(ask("ann", 0).await.unwrap());
    loop {
        match agent.receive().await.unwrap() {
            ToAgent::LogsEnd { .. } => break,
            ToAgent::Logs { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    let mut pieces = ask("ann", 0).await.unwrap().pieces;
    agent.disconnect().await;
    assert_eq!(pieces.recv().await, Some(Err("its node cannot be reached".into())));
    assert!(matches!(ask("ann", 0).await, Err(Refusal::Unavailable(_))));
}

#[tokio::test]
async fn a_server_that_leaves_has_its_own_jobs_saved_first() {
    let rig = Rig::new();
    let agent = tokio::spawn(Agent::join(&rig.handle, "n1", &[("a100", 1)]).await.run());
    let id = rig.submit(job(600.0, 0)).await.id;
    rig.until_state(id, "running").await;
    let dir = rig.stop(&["n1"]).await;
    let mut agent = agent.await.unwrap();
    let rig = Rig::at(dir, |_| ());
    assert_eq!(rig.job(id).unwrap().state, "suspended");
    agent.connect(&rig.handle).await.unwrap();
    let again = agent.start().await;
    assert_eq!((again.job, agent.tasks[&again].0.part.instance), (JobId(id), 2));
}
