//! A policy that breaks down stops nobody for long.

use std::sync::atomic::{AtomicU32, Ordering};

use yard_core::allocation::Allocation;
use yard_core::policy::{Policy, PolicyError};
use yard_core::view::View;

use super::*;

struct Broken(fn() -> Allocation);

impl Policy for Broken {
    fn allocate(&mut self, _: &View) -> Result<Allocation, PolicyError> {
        Ok((self.0)())
    }
}

/// A server whose first policy does this, and whose next one is a good one.
fn rig(cap: Span, first: fn() -> Allocation) -> Rig {
    let dir = Arc::new(Scratch::new());
    let mut config = config(dir.path());
    (config.plan_cap, config.plan_rest) = (cap, Span(50_000));
    // One is made to see how often it wants to be asked, the next one to be asked.
    let made = AtomicU32::new(0);
    let make: MakePolicy = Arc::new(move || match made.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Box::new(Broken(first)),
        _ => policy("fifo-fit")(),
    });
    Rig::run(dir, config, make)
}

async fn recovers(rig: Rig, said: &str) {
    let agent = tokio::spawn(Agent::join(&rig.handle, "n1", &[("a100", 1)]).await.run());
    let first = rig.submit(job(0.0, 0)).await.id;
    loop {
        // Each new job makes the engine ask again.
        rig.submit(job(0.0, 0)).await;
        let events = rig
            .history()
            .events(&EventFilter { after: Some(0), limit: 10_000, ..EventFilter::default() })
            .unwrap();
        let failed =
            |event: &EventView| event.event == "plan_failed" && event.detail.to_string().contains(said);
        if events.iter().any(failed) && rig.job(first).unwrap().state == "succeeded" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    rig.until("all over", |board| board.status.as_ref().is_some_and(|s| s.pending + s.running == 0)).await;
    rig.stop(&[]).await;
    agent.await.unwrap();
}

#[tokio::test]
async fn one_that_panics_is_replaced() {
    // Writing down where it panicked may take a while.
    let cap = Span::from_whole_secs(60);
    recovers(rig(cap, || panic!("out of ideas")), "out of ideas").await;
}

#[tokio::test]
async fn one_that_hangs_is_replaced() {
    let hang = || loop {
        std::thread::park();
    };
    recovers(rig(Span(200_000), hang), "longer than 0.2s").await;
}
