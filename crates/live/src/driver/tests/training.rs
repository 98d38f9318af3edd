//! Jobs that train, from what they say of their steps to another batch.

use super::*;
use crate::board::Board;
use crate::request::{RegimeRequest, TrainingRequest};
use crate::wire::{FromAgent, ToAgent, Trained};

fn trains() -> JobRequest {
    let training = TrainingRequest {
        batch: 32,
        steps: 1000,
        max: Some(512),
        accumulate: true,
        local_max: Some(64),
        ..TrainingRequest::default()
    };
    JobRequest { training: Some(training), ..job(0.0, 0) }
}

#[tokio::test]
async fn a_job_that_says_how_it_trains_is_told_of_a_better_batch() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(trains()).await.id;
    let part = agent.start_running().await;
    let (_, task) = &agent.tasks[&part];
    assert_eq!((task.batch_size, task.accumulation), (Some(32), Some(0)), "as submitted to begin with");
    rig.until_state(id, "running").await;
    let said = Trained { local: 32, grad_s: 0.5, step_s: 0.5, noise: Some((0.01, 10.0)), loss: Some(2.5) };
    for nonsense in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        let said = Trained {
            grad_s: nonsense,
            noise: Some((nonsense, 0.0)),
            loss: Some(nonsense.min(-1.0)),
            ..said
        };
        agent.say(FromAgent::Trained { part, said }).await;
    }
    agent.say(FromAgent::Trained { part, said }).await;
    let batch = loop {
        match agent.receive().await.expect("the link is open") {
            ToAgent::Tune { part: tuned, batch } if tuned == part => break batch,
            _ => continue,
        }
    };
    assert!(batch.global(1) > 64, "nearly all is noise, and half a step's time is fixed: {batch:?}");
    let view = rig.handle.ask(|reply| Ask::View { reply }).await.unwrap();
    let row = view.active().find(|row| view.run(*row).id == JobId(id)).unwrap();
    assert_eq!(view.run(row).batch, Some(batch));
    assert_eq!(view.run(row).losses.points().iter().map(|point| point.1).collect::<Vec<_>>(), [2.5]);
    agent.tell(part, yard_core::part::Told::Progress { step: 7, total: None }).await;
    let losses = |board: &Board| board.paces[&id].points.iter().map(|point| point.loss).collect::<Vec<_>>();
    rig.until("its loss is beside its steps", |board| {
        board.paces.contains_key(&id) && losses(board).contains(&Some(2.5))
    })
    .await;
    assert!(view.speed(row, 0) > 2.0, "at half a second a step it made two a second: {}", view.speed(row, 0));
    // Nothing of the nonsense is in the journal, or it could not be read.
    let rig = Rig::at(rig.stop(&[]).await, |_| ());
    let view = rig.handle.ask(|reply| Ask::View { reply }).await.unwrap();
    let row = view.active().find(|row| view.run(*row).id == JobId(id)).unwrap();
    assert_eq!(view.run(row).batch, Some(batch));
}

#[tokio::test]
async fn a_batch_that_memory_cannot_hold_is_refused_with_the_nearest() {
    let rig = Rig::new();
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let mut request = trains();
    if let Some(training) = &mut request.training {
        (training.batch, training.accumulate) = (100, false);
    }
    let id = rig.submit(request).await.id;
    let view = rig.until_state(id, "rejected").await;
    assert!(view.reason.as_ref().is_some_and(|reason| reason.ends_with("works is 64")), "{:?}", view.reason);
}

#[tokio::test]
async fn a_job_is_in_the_regime_of_the_batch_that_it_reports() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 2)]).await;
    let regime = |batch, step_s| RegimeRequest { batch, step_s };
    let regimes = vec![regime(32, 0.1), regime(64, 0.2)];
    let id =
        rig.submit(JobRequest { regimes, gpus: Some(2), duration_s: Some(600.0), ..job(0.0, 0) }).await.id;
    let part = agent.start_running().await;
    rig.until_state(id, "running").await;
    let look = || async {
        let view = rig.handle.ask(|reply| Ask::View { reply }).await.unwrap();
        let row = view.active().find(|row| view.run(*row).id == JobId(id)).unwrap();
        (view.run(row).regime, view.speed(row, 0))
    };
    let (first, speed) = look().await;
    assert_eq!(first, 0);
    // Half of a batch on each of two devices; a batch that it did not name says nothing.
    for local in [32, 7] {
        let said = Trained { local, grad_s: 0.1, step_s: 0.2, noise: None, loss: None };
        agent.say(FromAgent::Trained { part, said }).await;
    }
    while look().await.0 == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(look().await, (1, speed / 2.0), "steps take twice as long now");
}
