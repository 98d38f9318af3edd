//! A policy that lets a job wait though no device is held: the metric says so, until the job runs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use yard_core::allocation::{Allocation, Shares};
use yard_core::policy::{Policy, PolicyError};
use yard_core::view::View;

use super::*;
use crate::driver::Meter;

/// The longest that was said, and what was said last.
#[derive(Default)]
struct Said(Mutex<(Duration, Duration)>);

impl Meter for Said {
    fn wasted(&self, time: Duration) {
        let mut said = self.0.lock().unwrap();
        *said = (said.0.max(time), time);
    }
}

/// Names nobody until it is woken.
struct Sleeps(Arc<AtomicBool>);

impl Policy for Sleeps {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        if self.0.load(Ordering::Relaxed) {
            return policy("fifo-fit")().allocate(view);
        }
        Ok(Allocation::queue(Shares::All(Vec::new()), true))
    }
}

#[tokio::test]
async fn a_job_that_could_run_and_does_not_is_counted_until_it_does() {
    let (said, awake) = (Arc::new(Said::default()), Arc::new(AtomicBool::new(false)));
    let dir = Arc::new(Scratch::new());
    let mut config = config(dir.path());
    config.meter = said.clone();
    let sleeper = awake.clone();
    let rig = Rig::run(dir, config, Arc::new(move || Box::new(Sleeps(sleeper.clone()))));
    let agent = tokio::spawn(Agent::join(&rig.handle, "n1", &[("a100", 1)]).await.run());
    let first = rig.submit(job(0.0, 0)).await.id;
    rig.until("a job is counted as waiting", |_| said.0.lock().unwrap().1 > Duration::ZERO).await;
    awake.store(true, Ordering::Relaxed);
    // Another one makes the engine ask again.
    rig.submit(job(0.0, 0)).await;
    rig.until_state(first, "succeeded").await;
    rig.until("nobody is counted any more", |_| said.0.lock().unwrap().1 == Duration::ZERO).await;
    assert!(said.0.lock().unwrap().0 > Duration::ZERO);
    rig.stop(&[]).await;
    agent.await.unwrap();
}
