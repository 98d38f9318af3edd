//! An agent that says too much: kinds without end, numbers that no process has, and news that is none.

use yard_core::cluster::KINDS_MAX;
use yard_core::part::{Ending, How, Told};

use super::*;
use crate::wire::{FromAgent, ToAgent};

/// A node of so many kinds that nobody has heard of.
fn exotic(name: &str, kinds: usize) -> Agent {
    let words: Vec<String> = (0..kinds).map(|at| format!("{name}-{at}")).collect();
    let groups: Vec<_> = words.iter().map(|word| (word.as_str(), 1)).collect();
    Agent::new(name, &groups)
}

/// Has the server answer a beat: whatever was said before is dealt with.
async fn in_step(agent: &mut Agent, seq: u64) {
    agent.say(FromAgent::Beat { seq }).await;
    while agent.receive().await != Some(ToAgent::Beat { seq }) {}
}

/// Lines of the journal that speak of devices out of service.
fn health_lines(rig: &Rig) -> i64 {
    let db = rusqlite::Connection::open(rig.dir.path().join("yard.db")).unwrap();
    let text = "SELECT count(*) FROM journal WHERE input LIKE '%Health%'";
    db.query_row(text, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn kinds_without_end_are_refused_and_harm_nobody() {
    let rig = Rig::new();
    for at in 0..KINDS_MAX / 64 - 1 {
        exotic(&format!("x{at}"), 64).connect(&rig.handle).await.unwrap();
    }
    exotic("y", 63).connect(&rig.handle).await.unwrap();
    let refused = exotic("z", 2).connect(&rig.handle).await.unwrap_err().to_string();
    assert!(refused.contains("has 2 new kinds") && refused.contains("4096"), "{refused}");
    assert!(exotic("z", 65).connect(&rig.handle).await.is_err(), "too many at once");
    let mut good = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    assert!(exotic("z", 1).connect(&rig.handle).await.is_err(), "there is no room for one more");
    let request = || JobRequest { kinds: vec!["a100".into()], ..job(0.0, 0) };
    let id = rig.submit(request()).await.id;
    let part = good.start_running().await;
    good.end(part, How::Finished, Some(0)).await;
    rig.until_state(id, "succeeded").await;
    let rig = Rig::at(rig.stop(&[]).await, |_| ());
    Agent::join(&rig.handle, "n2", &[("a100", 1)]).await;
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_signal_that_does_not_exist_is_ignored() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start_running().await;
    let (code, signal) = (None, Some(i32::MAX));
    let ending = Ending { how: How::Crashed, step: None, code, signal, message: None };
    agent.tell(part, Told::Ended(ending)).await;
    let view = rig.until_state(id, "failed").await;
    assert_eq!(view.exit_code, None);
    rig.stop(&[]).await;
}

#[tokio::test]
async fn health_that_is_no_news_is_not_written() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 2), ("cpu", 1)]).await;
    in_step(&mut agent, 1).await;
    let before = health_lines(&rig);
    for seq in 2..22 {
        let problem = Some("it fell off the bus".to_owned());
        agent.say(FromAgent::Health { group: 0, device: 1, problem }).await;
        in_step(&mut agent, seq).await;
    }
    rig.until("out of service", |board| board.nodes["n1"].devices[1].problem.is_some()).await;
    // Another text for the same device is for people, not for the engine.
    let problem = Some("é".repeat(1 << 20));
    agent.say(FromAgent::Health { group: 0, device: 1, problem }).await;
    let is_short =
        |text: &Option<String>| text.as_ref().is_some_and(|text| text.starts_with('é') && text.len() <= 256);
    rig.until("shortened", |board| is_short(&board.nodes["n1"].devices[1].problem)).await;
    let dir = rig.stop(&[]).await;
    let rig = Rig::at(dir, |_| ());
    assert_eq!(health_lines(&rig), before + 1);
    assert!(rig.look(|board| is_short(&board.nodes["n1"].devices[1].problem)), "it was kept");
    rig.stop(&[]).await;
}
