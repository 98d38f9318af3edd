//! How fast, for who asks: `cargo test -p yard-live --release speed -- --ignored --nocapture`.

use super::*;
use crate::driver::clock::Stopwatch;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures and asserts nothing about them"]
async fn durable_submissions_per_second_from_16_clients() {
    let rig = Rig::new();
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 8)]).await;
    let (clients, each) = (16, 500);
    let watch = Stopwatch::start();
    let tasks = (0..clients).map(|_| {
        let handle = rig.handle.clone();
        tokio::spawn(async move {
            for _ in 0..each {
                let (who, request) = (who("ann"), Box::new(job(0.0, 0)));
                handle.ask(|reply| Ask::Submit { who, request, key: None, room: None, reply }).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    println!("{:.0} submissions a second", (clients * each) as f64 / watch.took().as_secs_f64());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures and asserts nothing about them"]
async fn trivial_jobs_per_second_on_eight_slots() {
    let rig = Rig::new();
    let agent = tokio::spawn(Agent::join(&rig.handle, "n1", &[("cpu", 8)]).await.run());
    let jobs = 5_000;
    let watch = Stopwatch::start();
    for _ in 0..jobs {
        let (who, request) = (who("ann"), Box::new(job(0.0, 0)));
        let (reply, _) = tokio::sync::oneshot::channel();
        rig.handle.asks.send(Ask::Submit { who, request, key: None, room: None, reply }).await.unwrap();
    }
    rig.until("all over", |board| board.status.as_ref().is_some_and(|status| status.ended == jobs)).await;
    println!("{:.0} jobs a second", jobs as f64 / watch.took().as_secs_f64());
    rig.stop(&[]).await;
    agent.await.unwrap();
}
