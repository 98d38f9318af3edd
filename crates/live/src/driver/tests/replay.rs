use super::*;
use crate::replay::testing::{Still, WAIT_S};
use crate::replay::{Replay, ReplayAsked, ReplayChange, ReplayWatch};
use yard_core::units::Time;

/// A question about the last hour, as the API would put it together.
async fn asked(rig: &Rig, alternatives: Vec<ReplayChange>) -> ReplayAsked {
    let present = rig.handle.ask(|reply| Ask::Present { reply }).await.unwrap();
    let replay = Replay { history_s: Some(3_600.0), alternatives, ..Replay::default() };
    let window @ (from, to) = replay.window(present.at).unwrap();
    let rows = rig.history().recorded(from, to, 100).unwrap().unwrap();
    let living = rig.look(|board| board.jobs.iter().map(|(id, job)| (*id, JobView::clone(job))).collect());
    ReplayAsked { who: Who { user: "root".into(), admin: true }, replay, present, rows, living, window }
}

#[tokio::test]
async fn what_was_recorded_can_be_run_again_as_things_are_and_otherwise() {
    let placer: crate::MakePlacer = Arc::new(|| yard_policies::placers::placer("pack").unwrap());
    let rig = Rig::with(|config| config.estimates = Some(crate::Estimating { every: Span(1_000), placer }));
    for (name, devices) in [("n1", 2), ("n2", 4)] {
        tokio::spawn(Agent::join(&rig.handle, name, &[("a100", devices)]).await.run());
    }
    let first = rig.submit(job(0.05, 0)).await.id;
    rig.until_state(first, "succeeded").await;
    let second = rig.submit(JobRequest { duration_s: Some(900.0), ..job(600.0, 0) }).await.id;
    rig.until_state(second, "running").await;
    rig.events_of(first, "ended").await;

    let less = ReplayChange { remove: vec!["n2".into()], ..ReplayChange::default() };
    let told = asked(&rig, vec![less]).await.answer(&Still, &ReplayWatch::default()).unwrap();
    let window = &told.window;
    assert_eq!((window.jobs, window.open, window.carried, window.left_out), (1, 1, 0, 0));
    assert_eq!(
        (told.baseline.run.policy.as_str(), told.baseline.run.cluster.as_str()),
        ("fifo-fit", "a100:1x2,a100:1x4")
    );
    assert_eq!(told.alternatives[0].run.cluster, "a100:1x2");
    assert_eq!(told.alternatives[0].run.figures.avg_queue_s, Some(WAIT_S / 2.0));
    assert_eq!((told.recorded.teams[0].team.as_str(), told.recorded.teams[0].figures.jobs), ("ann", 1));
    let gone = ReplayChange { remove: vec!["n3".into()], ..ReplayChange::default() };
    let refused = asked(&rig, vec![gone]).await.answer(&Still, &ReplayWatch::default()).unwrap_err();
    assert!(refused.to_string().contains("there are: n1, n2"), "{refused}");
}

#[tokio::test]
async fn the_history_knows_who_was_there() {
    let rig = Rig::new();
    tokio::spawn(Agent::join(&rig.handle, "n1", &[("a100", 1)]).await.run());
    let job = rig.submit(job(0.05, 0)).await;
    let ended = rig.until_state(job.id, "succeeded").await.ended_at.unwrap();
    rig.events_of(job.id, "ended").await;
    let (submitted, ended) = (Time::from_secs(job.submitted_at), Time::from_secs(ended));
    let later = |time: Time| Time(time.0 + 1_000);
    let there = |from, to| rig.history().recorded(from, to, 10).unwrap().unwrap().len();
    assert_eq!(there(Time::ZERO, Time::NEVER), 1);
    assert_eq!(there(later(submitted).min(ended), Time::NEVER), 1, "it was still there");
    assert_eq!(there(later(ended), Time::NEVER), 0, "it was over");
    assert_eq!(there(Time::ZERO, submitted), 0, "it came later");
}
