//! An input that makes the scheduler fail does not keep the server from starting, and a driver that dies is not
//! taken for one that lives.

use rusqlite::Connection;
use yard_core::Settings;
use yard_core::message::Input;

use super::*;
use crate::driver::Meter;
use crate::store::{Store, list_aside};

/// As a crash leaves it: an end in good order would make a snapshot.
fn crash(rig: &Rig) -> Arc<Scratch> {
    let copy = Arc::new(Scratch::new());
    let db = Connection::open(rig.dir.path().join("yard.db")).unwrap();
    db.execute("VACUUM INTO ?1", [copy.path().join("yard.db").to_str().unwrap()]).unwrap();
    copy
}

/// Adds an input that the engine cannot take to the end of a journal; its number.
fn poison(dir: &Scratch, input: &Input) -> u64 {
    let db = Connection::open(dir.path().join("yard.db")).unwrap();
    let text = serde_json::to_string(input).unwrap();
    let insert = "INSERT INTO journal SELECT max(seq) + 1, max(time_us), max(version), ?1 FROM journal";
    db.execute(insert, [text]).unwrap();
    db.last_insert_rowid() as u64
}

fn senseless() -> Input {
    Input::Begin(Box::new(Settings { lease: Span::ZERO, ..Settings::default() }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_that_makes_the_engine_assert_is_set_aside_and_all_else_goes_on() {
    let rig = Rig::new();
    let agent = Agent::join(&rig.handle, "n1", &[("v100", 1)]).await;
    let (first, second) = (rig.submit(job(0.0, 0)).await.id, rig.submit(job(0.0, 0)).await.id);
    drop(agent);
    let dir = crash(&rig);
    let seq = poison(&dir, &senseless());
    let again = Rig::at(dir.clone(), |_| ());
    assert_eq!(again.look(|board| board.status.as_ref().unwrap().set_aside), 1);
    let aside = list_aside(dir.path()).unwrap();
    assert_eq!((aside.len(), aside[0].seq, aside[0].in_journal), (1, seq, true));
    assert!(aside[0].reason.contains("a lease lasts longer"), "{}", aside[0].reason);
    let third = again.submit(job(0.0, 0)).await.id;
    assert_eq!(third, second + 1, "numbers go on as they were");
    tokio::spawn(Agent::join(&again.handle, "n1", &[("v100", 1)]).await.run());
    for id in [first, second, third] {
        again.until_state(id, "succeeded").await;
    }
    let dir = again.stop(&[]).await;
    let later = Rig::at(dir, |_| ());
    assert_eq!(later.look(|board| board.status.as_ref().unwrap().set_aside), 1, "it is set aside once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_set_aside_can_be_tried_again() {
    let rig = Rig::new();
    let dir = crash(&rig);
    let seq = poison(&dir, &Input::Tick);
    Store::open(dir.path()).unwrap().set_aside(seq, "an older version failed on it").unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    assert_eq!((store.retry_aside(Some(seq + 1)).unwrap(), store.retry_aside(Some(seq)).unwrap()), (0, 1));
    drop(store);
    let again = Rig::at(dir, |_| ());
    assert_eq!(again.look(|board| board.status.as_ref().unwrap().set_aside), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_even_a_stand_in_fails_the_inputs_before_it_are_set_aside() {
    let rig = Rig::new();
    let dir = crash(&rig);
    let cause = poison(&dir, &Input::Tick);
    // Whatever comes after it happens before it, which the engine does not take, not even as a tick.
    let db = Connection::open(dir.path().join("yard.db")).unwrap();
    db.execute("UPDATE journal SET time_us = time_us + 1000000000000 WHERE seq = ?1", [cause as i64])
        .unwrap();
    let text = serde_json::to_string(&Input::Tick).unwrap();
    let insert = "INSERT INTO journal SELECT max(seq) + 1, min(time_us), max(version), ?1 FROM journal";
    db.execute(insert, [text]).unwrap();
    drop(db);
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Rig::at(dir.clone(), |_| ())));
    let aside: Vec<u64> = list_aside(dir.path()).unwrap().iter().map(|input| input.seq).collect();
    assert!(aside.contains(&(cause + 1)) && aside.contains(&cause), "{aside:?}");
    assert!(aside.len() <= 64, "it does not go on for ever");
    drop(again);
}

/// Breaks the driver down as soon as a job is submitted.
struct Fatal;

impl Meter for Fatal {
    fn submitted(&self, jobs: u64) {
        assert_eq!(jobs, 0, "this meter takes no jobs");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_dies_is_known_to_be_dead() {
    let mut rig = Rig::with(|config| config.meter = Arc::new(Fatal));
    assert!(rig.handle.is_alive());
    let _agent = Agent::join(&rig.handle, "n1", &[("v100", 1)]).await;
    let answer = rig.try_submit("ann", job(0.0, 0), None).await;
    assert!(matches!(answer, Err(Refusal::Unavailable(_))), "{answer:?}");
    assert!(rig.thread.take().unwrap().join().is_err());
    assert!(!rig.handle.is_alive());
}
