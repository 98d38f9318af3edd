//! A job's life, as its user sees it.

use yard_core::part::{Ending, How, Order, Told};
use yard_core::units::Span;

use super::*;

#[tokio::test]
async fn a_job_runs_and_everybody_can_see_it() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 2)]).await;
    let view = rig.submit(JobRequest { name: Some("train".into()), ..job(0.0, 0) }).await;
    assert_eq!((view.id, view.name.as_str(), view.user.as_str()), (0, "train", "ann"));
    let part = agent.start().await;
    let (start, task) = &agent.tasks[&part];
    assert_eq!((start.part.instance, start.ranks.world, task.kind.as_str()), (1, 1, "a100"));
    let view = rig.until_state(0, "starting").await;
    assert_eq!((view.nodes, view.kind.as_deref()), (vec!["n1[0]".to_owned()], Some("a100")));
    assert_eq!(rig.look(|board| board.nodes["n1"].devices[0].jobs.clone()), [0]);
    agent.tell(part, Told::Started).await;
    rig.until_state(0, "running").await;
    agent.tell(part, Told::Progress { step: 5, total: Some(20) }).await;
    agent.tell(part, Told::Checkpointed { step: 4, took: Span::from_whole_secs(20) }).await;
    rig.until("progress", |board| board.jobs[&0].checkpointed == Some(4)).await;
    let view = rig.job(0).unwrap();
    assert_eq!((view.step, view.steps), (Some(5), Some(20)));
    let told = rig.look(|board| board.paces[&0].points.clone());
    assert_eq!(told.iter().map(|point| (point.step, point.start)).collect::<Vec<_>>(), [(5, 1)]);
    agent.end(part, How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    let view = rig.until_state(0, "succeeded").await;
    assert_eq!((view.exit_code, view.starts, view.failures, view.step), (Some(0), 1, 0, Some(20)));
    assert!(view.ended_at.unwrap() >= view.started_at.unwrap());
    assert!(rig.look(|board| board.nodes["n1"].devices[0].jobs.is_empty()));
    let (last, step) = rig.look(|board| (board.paces[&0].points.last().copied(), board.jobs[&0].step));
    assert_eq!(last.map(|point| point.step), step, "the end of it stays to be seen");
    let names: Vec<_> = rig.events_of(0, "ended").await.into_iter().map(|event| event.event).collect();
    assert_eq!(names, ["submitted", "granted", "started", "ended"]);
    let status = rig.look(|board| board.status.clone()).unwrap();
    assert_eq!((status.pending, status.running, status.ended, status.devices_held), (0, 0, 1, 0));
    assert_eq!(rig.history().job(JobId(0)).unwrap().unwrap().state, "succeeded");
}

#[tokio::test]
async fn every_job_that_waits_says_for_what_from_its_first_moment() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 2)]).await;
    let two = || JobRequest { gpus: Some(2), ..job(0.0, 0) };
    assert_eq!(rig.submit(two()).await.reason.as_deref(), Some("waits for its turn"));
    let part = agent.start().await;
    let second = rig.submit(two()).await;
    assert_eq!(second.reason.as_deref(), Some("waits for 2 a100"), "the answer to the submission has it");
    let later = rig.submit(JobRequest { begin: Some(4e9), ..job(0.0, 0) }).await;
    assert_eq!(later.reason.as_deref(), Some("waits for its begin time"));
    let after = rig.submit(JobRequest { after: vec![second.id], ..job(0.0, 0) }).await;
    assert!(after.reason.is_some_and(|reason| reason.contains(&format!("job {}", second.id))));
    rig.drain("n1", true).await.unwrap();
    let reason = |board: &Board| board.jobs[&second.id].reason.clone();
    rig.until("the node drains", |board| reason(board).as_deref() == Some("no a100 node is up")).await;
    agent.end(part, How::Finished, Some(0)).await;
    assert!(rig.look(|board| board.jobs.values().all(|job| job.state != "pending" || job.reason.is_some())));
}

#[tokio::test]
async fn a_job_may_be_withdrawn_in_every_state() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    for started in [false, true] {
        let id = rig.submit(job(0.0, 0)).await.id;
        let part = agent.start().await;
        if started {
            agent.tell(part, Told::Started).await;
            rig.until_state(id, "running").await;
        }
        let waiting = rig.submit(job(0.0, 0)).await.id;
        let view = rig.cancel("ann", waiting).await.unwrap();
        assert_eq!((view.state.as_str(), view.exit_code), ("cancelled", None));
        assert_eq!(view.reason.as_deref(), Some("cancelled by ann: changed my mind"));
        assert_eq!(rig.cancel("ann", id).await.unwrap().state, "suspending");
        assert_eq!(rig.cancel("ann", id).await.unwrap().state, "suspending", "twice is once");
        agent.stop_of(part).await;
        agent.end(part, How::Saved, Some(0)).await;
        agent.forget_of(part).await;
        rig.until_state(id, "cancelled").await;
        assert_eq!(rig.cancel("ann", id).await.unwrap().state, "cancelled");
    }
    let done = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start().await;
    agent.end(part, How::Finished, Some(0)).await;
    rig.until_state(done, "succeeded").await;
    assert!(matches!(rig.cancel("ann", done).await, Err(Refusal::Conflict(_))));
    assert!(matches!(rig.cancel("ann", 99).await, Err(Refusal::NotFound(_))));
}

#[tokio::test]
async fn a_frozen_job_says_where_it_lies_until_it_goes_on() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 2)]).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start_running().await;
    assert!(rig.until_state(id, "running").await.frozen.is_empty());
    let (who, node) = (Who { user: "root".into(), admin: true }, "n1".to_owned());
    let ask = |reply| Ask::Drain { who, node, drain: true, evict: true, reason: None, reply };
    rig.handle.ask(ask).await.unwrap();
    agent.stop_of(part).await;
    agent.end(part, How::Paused, None).await;
    let view = rig.until_state(id, "suspended").await;
    assert_eq!((view.frozen, view.nodes.is_empty()), (vec!["n1[0]".to_owned()], true));
    rig.drain("n1", false).await.unwrap();
    agent.forget_of(part).await;
    agent.start().await;
    let view = rig.until_state(id, "starting").await;
    assert_eq!((view.nodes, view.frozen.is_empty()), (vec!["n1[0]".to_owned()], true));
}

#[tokio::test]
async fn a_suspended_job_may_be_withdrawn_and_others_may_not_touch_it() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start_running().await;
    rig.until_state(id, "running").await;
    let problem = Some("it is too hot".to_owned());
    agent.say(crate::wire::FromAgent::Health { group: 0, device: 0, problem }).await;
    agent.stop_of(part).await;
    rig.until_state(id, "suspending").await;
    agent.end(part, How::Saved, Some(0)).await;
    let view = rig.until_state(id, "suspended").await;
    assert_eq!(view.reason.as_deref(), Some("its devices are taken out of service"));
    let shown = rig.look(|board| board.nodes["n1"].devices[0].problem.clone());
    assert_eq!(shown.as_deref(), Some("it is too hot"));
    assert!(matches!(rig.cancel("bob", id).await, Err(Refusal::NotFound(_))));
    assert_eq!(rig.cancel("ann", id).await.unwrap().state, "cancelled");
}

#[tokio::test]
async fn failures_are_counted_explained_and_come_to_an_end() {
    let rig = Rig::with(|config| config.settings.backoff = Span(300_000));
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(JobRequest { max_restarts: Some(1), ..job(0.0, 0) }).await.id;
    let part = agent.start_running().await;
    agent.end(part, How::Crashed, Some(7)).await;
    rig.until("held back", |board| board.jobs[&id].failures == 1).await;
    let reason = rig.job(id).unwrap().reason.unwrap();
    assert_eq!(reason, "waits for 0.3 s after failure 1 of 2: exit code 7");
    agent.forget_of(part).await;
    let part = agent.start_running().await;
    assert_eq!(agent.tasks[&part].0.part.instance, 2);
    agent.end(part, How::Crashed, Some(7)).await;
    let view = rig.until_state(id, "failed").await;
    assert_eq!((view.failures, view.exit_code), (2, Some(7)));
    assert_eq!(view.reason.as_deref(), Some("exit code 7"));
}

#[tokio::test]
async fn a_time_limit_and_a_signal_are_told_apart() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let limited = JobRequest { time_limit_s: Some(60.0), max_restarts: Some(3), ..job(0.0, 0) };
    let id = rig.submit(limited).await.id;
    let part = agent.start_running().await;
    let limit = agent.tasks[&part].0.limit.unwrap();
    assert_eq!(limit, Span::from_whole_secs(60));
    agent.end(part, How::Expired, None).await;
    let view = rig.until_state(id, "failed").await;
    assert_eq!(view.reason.as_deref(), Some("it reached its time limit of 60 s"));
    agent.forget_of(part).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start_running().await;
    let (step, code, message) = (None, None, None);
    let ending = Ending { how: How::Crashed, step, code, signal: Some(11), message };
    agent.tell(part, Told::Ended(ending)).await;
    let view = rig.until_state(id, "failed").await;
    assert_eq!((view.exit_code, view.reason.as_deref()), (Some(139), Some("signal 11")));
}

#[tokio::test]
async fn saving_that_took_long_makes_the_grace_longer() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(JobRequest { max_restarts: Some(1), ..job(0.0, 0) }).await.id;
    let part = agent.start_running().await;
    assert_eq!(agent.tasks[&part].0.grace, Span::from_whole_secs(30));
    agent.tell(part, Told::Progress { step: 10, total: Some(100) }).await;
    agent.tell(part, Told::Checkpointed { step: 10, took: Span::from_whole_secs(40) }).await;
    agent.end(part, How::Crashed, Some(1)).await;
    agent.forget_of(part).await;
    let part = agent.start_running().await;
    assert_eq!(agent.tasks[&part].0.grace, Span::from_whole_secs(80));
    let view = rig.handle.ask(|reply| Ask::View { reply }).await.unwrap();
    let run = view.active().map(|row| view.run(row).clone()).next().unwrap();
    assert_eq!((run.id, run.done), (JobId(id), crate::translate::DURATION_S / 10.0), "what was saved counts");
}

#[tokio::test]
async fn the_same_key_is_the_same_job() {
    let rig = Rig::new();
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let first = rig.try_submit("ann", job(1.0, 0), Some("k")).await.unwrap();
    let [again, twin] =
        [rig.try_submit("ann", job(1.0, 0), Some("k")), rig.try_submit("ann", job(1.0, 0), Some("k"))];
    assert_eq!((again.await.unwrap().id, twin.await.unwrap().id), (first.id, first.id));
    let other = rig.try_submit("ann", job(2.0, 0), Some("k")).await;
    assert!(matches!(other, Err(Refusal::Conflict(_))), "{other:?}");
    assert_ne!(rig.try_submit("bob", job(1.0, 0), Some("k")).await.unwrap().id, first.id);
    // Side by side, so that they may be in one batch.
    let (a, b) = tokio::join!(
        rig.try_submit("ann", job(1.0, 0), Some("both")),
        rig.try_submit("ann", job(1.0, 0), Some("both"))
    );
    assert_eq!(a.unwrap().id, b.unwrap().id);
    let dir = rig.stop(&[]).await;
    let rig = Rig::at(dir, |_| ());
    assert_eq!(rig.try_submit("ann", job(1.0, 0), Some("k")).await.unwrap().id, first.id, "after a restart");
}

#[tokio::test]
async fn too_many_jobs_and_impossible_ones_are_refused() {
    let rig = Rig::with(|config| (config.limits.jobs, config.limits.jobs_per_user) = (3, 2));
    let too_early = rig.try_submit("ann", job(0.0, 0), None).await;
    assert!(matches!(too_early, Err(Refusal::Unavailable(_))), "{too_early:?}");
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 4)]).await;
    let rejected = rig.submit(wide(5)).await;
    assert_eq!(rejected.state, "rejected");
    assert!(rejected.reason.unwrap().contains("5 devices of a100"));
    for _ in 0..2 {
        rig.submit(wide(4)).await;
    }
    let third = rig.try_submit("ann", wide(4), None).await;
    assert!(matches!(&third, Err(Refusal::TooMany(why)) if why.contains("ann has 2")), "{third:?}");
    rig.try_submit("bob", wide(4), None).await.unwrap();
    let full = rig.try_submit("eve", wide(4), None).await;
    assert!(matches!(&full, Err(Refusal::Unavailable(why)) if why.contains("3 jobs")), "{full:?}");
    let unknown = rig.try_submit("ann", JobRequest { kinds: vec!["h9".into()], ..job(0.0, 0) }, None).await;
    assert!(matches!(unknown, Err(Refusal::Unavailable(_))), "there is no room to look at it");
}

#[tokio::test]
async fn a_gang_starts_together_and_ends_together() {
    let rig = Rig::new();
    let mut one = Agent::join(&rig.handle, "n1", &[("a100", 2)]).await;
    let mut two = Agent::join(&rig.handle, "n2", &[("a100", 2)]).await;
    let ranks = crate::request::Ranks::Device;
    let id = rig.submit(JobRequest { ranks, max_restarts: Some(0), ..wide(4) }).await.id;
    let part = one.start().await;
    assert_eq!(two.start().await, part);
    let (a, b) = (&one.tasks[&part].0, &two.tasks[&part].0);
    assert_eq!((a.ranks.world, b.ranks.world, a.ranks.count, b.ranks.count), (4, 4, 2, 2));
    assert_eq!(a.ranks.first + b.ranks.first, 2, "one has ranks 0 and 1, the other 2 and 3");
    let first = if a.ranks.node_rank == 0 { "n1.test" } else { "n2.test" };
    one.tell(part, Told::Ready { port: 29_500 }).await;
    two.tell(part, Told::Ready { port: 29_500 }).await;
    for agent in [&mut one, &mut two] {
        match agent.order().await {
            Order::Go { master, .. } => assert_eq!((master.address.as_str(), master.port), (first, 29_500)),
            other => panic!("{other:?}"),
        }
        agent.tell(part, Told::Started).await;
    }
    rig.until_state(id, "running").await;
    one.end(part, How::Crashed, Some(3)).await;
    two.stop_of(part).await;
    assert_eq!(rig.job(id).unwrap().state, "running", "the other part still holds its devices");
    two.end(part, How::Saved, Some(0)).await;
    let view = rig.until_state(id, "failed").await;
    assert_eq!(view.exit_code, Some(3));
    one.forget_of(part).await;
    two.forget_of(part).await;
}

#[tokio::test]
async fn what_was_recorded_is_a_trace() {
    let rig = Rig::new();
    let agent = Agent::join(&rig.handle, "n1", &[("a100", 2), ("cpu", 1)]).await;
    let agent = tokio::spawn(agent.run());
    let tenant = Some("a,b".to_owned());
    let first = rig.submit(JobRequest { tenant, gpus: Some(2), max_gpus: Some(2), ..job(0.02, 0) }).await;
    let second = rig.submit(JobRequest { gpus: Some(0), priority: 3, ..job(0.01, 0) }).await;
    rig.until_state(first.id, "succeeded").await;
    rig.until_state(second.id, "succeeded").await;
    rig.events_of(second.id, "ended").await;
    rig.events_of(first.id, "ended").await;
    let text = rig.history().trace(yard_core::Time::ZERO, yard_core::Time::NEVER, None).unwrap();
    let trace = yard_sim::trace::read("history", text.as_bytes(), Some("yard")).unwrap().trace;
    let [one, two] = &trace.jobs[..] else { panic!("{text}") };
    assert_eq!((one.gpus, one.tenant.as_deref(), one.max_gpus), (2, Some("a,b"), Some(2)));
    assert_eq!((two.gpus, two.priority, two.kinds.len()), (1, 3, 1));
    assert!(one.submit < yard_core::Time::from_secs(60.0) && two.submit >= one.submit);
    rig.stop(&[]).await;
    agent.await.unwrap();
}

#[tokio::test]
async fn what_freezing_costs_and_whether_it_can_be_is_known_to_the_engine() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    rig.submit(job(0.0, 0)).await;
    let part = agent.start_running().await;
    let seconds = |seconds| Some(Span::from_whole_secs(seconds));
    agent.tell(part, Told::Cost { save: seconds(30), load: seconds(11), bytes: 60 << 30 }).await;
    agent.tell(part, Told::Cost { save: None, load: seconds(12), bytes: 60 << 30 }).await;
    agent.tell(part, Told::Stuck(true)).await;
    let spec = loop {
        let view = rig.handle.ask(|reply| Ask::View { reply }).await.unwrap();
        let row = view.active().next().unwrap();
        if !view.spec(row).pausable {
            break view.spec(row).clone();
        }
    };
    assert_eq!((Some(spec.costs.save), Some(spec.costs.load)), (seconds(30), seconds(12)));
    agent.end(part, How::Finished, Some(0)).await;
    rig.until_state(0, "succeeded").await;
}

#[tokio::test]
async fn a_job_comes_after_others_and_is_given_up_with_them() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 4)]).await;
    let first = rig.submit(job(0.0, 0)).await.id;
    let after = |jobs: &[u64]| JobRequest { after: jobs.to_vec(), ..job(0.0, 0) };
    let second = rig.submit(after(&[first])).await;
    assert_eq!(second.state, "pending");
    assert_eq!(
        second.reason.as_deref(),
        Some("The job depends on other jobs and starts once job 0 succeeds.")
    );
    let part = agent.start_running().await;
    agent.end(part, How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    let part = agent.start_running().await;
    rig.until_state(second.id, "running").await;
    // One that has succeeded counts as done, one that fails takes its followers with it.
    let third = rig.submit(after(&[first, second.id])).await.id;
    let fourth = rig.submit(after(&[third])).await.id;
    agent.end(part, How::Crashed, Some(1)).await;
    rig.until_state(fourth, "cancelled").await;
    let view = rig.until_state(third, "cancelled").await;
    assert_eq!(view.reason.as_deref(), Some("it depends on job 1, which did not succeed"));
    let names: Vec<_> = rig.events_of(third, "ended").await.into_iter().map(|event| event.event).collect();
    assert_eq!(names, ["submitted", "orphaned", "ended"]);
    let refused = |jobs: &'static [u64], user| rig.try_submit(user, after(jobs), None);
    let field = |refusal| match refusal {
        Err(Refusal::Invalid { field, message }) => (field, message),
        other => panic!("{other:?}"),
    };
    let (name, message) = field(refused(&[1], "ann").await);
    assert_eq!(name.as_deref(), Some("after"));
    assert_eq!(message, "after: job 1 has failed, so this job could never start");
    assert!(field(refused(&[99], "ann").await).1.contains("you have no job 99"));
    assert!(field(refused(&[0], "bob").await).1.contains("you have no job 0"));
}

#[tokio::test]
async fn jobs_are_foretold_and_the_estimate_stays_while_they_change() {
    let placer: crate::MakePlacer = Arc::new(|| yard_policies::placers::placer("pack").unwrap());
    let every = Span(1_000);
    let rig = Rig::with(|config| config.estimates = Some(crate::Estimating { every, placer }));
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let long = |seconds| JobRequest { duration_s: Some(seconds), ..job(0.0, 0) };
    let first = rig.submit(long(1_000.0)).await.id;
    let part = agent.start_running().await;
    let second = rig.submit(long(500.0)).await;
    let told = |board: &Board, id: u64| board.jobs.get(&id)?.estimate?.end;
    rig.until("an estimate", |board| told(board, second.id).is_some()).await;
    let estimate = rig.job(second.id).unwrap().estimate.unwrap();
    let (start, end) = (estimate.start.unwrap(), estimate.end.unwrap());
    // The second starts when the first ends, and takes about as long as it says: of that nothing is known yet.
    let before = rig.look(|board| told(board, first)).unwrap();
    assert!((start.mid - before.mid).abs() < 60.0, "{before:?} {start:?}");
    assert!((100.0..2_500.0).contains(&(end.mid - start.mid)), "{start:?} {end:?}");
    assert!(start.low < start.mid && start.high.is_some_and(|high| start.mid < high), "{start:?}");
    agent.end(part, How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    let part = agent.start_running().await;
    rig.until_state(second.id, "running").await;
    assert!(rig.job(second.id).unwrap().estimate.is_some());
    agent.end(part, How::Finished, Some(0)).await;
    assert!(rig.until_state(second.id, "succeeded").await.estimate.is_none());
}

#[tokio::test]
async fn what_forecasts_know_of_the_past_survives_a_restart() {
    let estimates = |config: &mut Config| {
        let placer: crate::MakePlacer = Arc::new(|| yard_policies::placers::placer("pack").unwrap());
        config.estimates = Some(crate::Estimating { every: Span(1_000), placer });
    };
    let rig = Rig::with(estimates);
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    // They say nothing of their length, and take no time at all.
    for _ in 0..20 {
        let short = rig.submit(job(0.0, 0)).await.id;
        let part = agent.start_running().await;
        agent.end(part, How::Finished, Some(0)).await;
        rig.until_state(short, "succeeded").await;
        agent.forget_of(part).await;
    }
    let rig = Rig::at(rig.stop(&[]).await, estimates);
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let next = rig.submit(job(0.0, 0)).await.id;
    rig.until("an estimate", |board| board.jobs.get(&next).is_some_and(|job| job.estimate.is_some())).await;
    let estimate = rig.job(next).unwrap().estimate.unwrap();
    let (start, end) = (estimate.start.unwrap(), estimate.end.unwrap());
    assert!(end.mid - start.mid < 600.0, "{start:?} {end:?}");
}
