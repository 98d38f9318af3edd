//! The server may die at any moment: what it had answered for is still so, and jobs go on.

use std::collections::BTreeSet;

use rusqlite::Connection;
use yard_core::Engine;
use yard_core::cluster::Kinds;
use yard_core::state::State;

use super::*;
use crate::store::{JournalEntry, Store};

/// Numbers below a bound, the same for the same seed (Marsaglia, "Xorshift RNGs", 2003).
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) % below
    }
}

/// The store as it was at some commit: what is left when the server dies.
pub(super) fn copy(from: &Scratch) -> Arc<Scratch> {
    let to = Arc::new(Scratch::new());
    let db = Connection::open(from.path().join("yard.db")).unwrap();
    let file = to.path().join("yard.db");
    db.execute("VACUUM INTO ?1", [file.to_str().unwrap()]).unwrap();
    to
}

fn replay(state: Option<State>, entries: &[JournalEntry]) -> State {
    let placer = yard_policies::placers::placer("pack").unwrap();
    let mut engine = match state {
        Some(state) => Engine::restore(state, placer).unwrap(),
        None => Engine::new(config(Path::new("")).settings, Kinds::default(), placer),
    };
    for entry in entries {
        engine.step(entry.time, entry.input.clone(), &mut Vec::new());
    }
    engine.check();
    engine.state().clone()
}

/// A busy hour in a second: jobs of all sorts on agents that come and go.
async fn bustle(rig: &Rig, seed: u64, jobs: u64) {
    let mut random = random(seed);
    let mut agents = Vec::new();
    for name in ["n1", "n2", "n3"] {
        let agent = Agent::join(&rig.handle, name, &[("a100", 2), ("cpu", 2)]).await;
        agents.push(tokio::spawn(agent.run()));
    }
    for at in 0..jobs {
        let request = JobRequest {
            gpus: Some(random(4) as u32),
            max_restarts: Some(random(3) as u32),
            priority: random(3) as i32,
            ..job(random(20) as f64 / 1e3, (random(5) == 0) as i32)
        };
        let id = rig.submit(request).await.id;
        if random(4) == 0 {
            let _ = rig.cancel("ann", id).await;
        }
        if random(10) == 0 {
            rig.drain("n2", at % 2 == 0).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_and_the_journal_behind_it_are_the_state_at_any_cut() {
    for seed in 1..=3 {
        let rig = Rig::with(|config| config.policy = "las".into());
        bustle(&rig, seed, 60).await;
        let dir = rig.stop(&[]).await;
        let store = Store::open(dir.path()).unwrap();
        let (seq, live) = store.snapshot().unwrap().expect("one is written at the end");
        let mut entries = Vec::new();
        store.replay(0, |entry| entries.push(entry)).unwrap();
        assert_eq!(entries.last().unwrap().seq, seq);
        assert!(entries.len() > 200, "{}", entries.len());
        assert!(replay(None, &entries) == live, "seed {seed}: the whole journal");
        let mut random = random(seed);
        for _ in 0..10 {
            let cut = random(entries.len() as u64) as usize;
            let saved = serde_json::to_string(&replay(None, &entries[..cut])).unwrap();
            let saved = serde_json::from_str(&saved).unwrap();
            assert!(replay(Some(saved), &entries[cut..]) == live, "seed {seed}: cut at {cut}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_was_answered_survives_a_crash_and_comes_to_an_end() {
    let rig = Rig::with(|config| config.snapshot_every = 40);
    let mut copies = Vec::new();
    let acknowledged = std::sync::Mutex::new(BTreeSet::new());
    tokio::spawn(Agent::join(&rig.handle, "n1", &[("a100", 2)]).await.run());
    let submit = async {
        let mut random = random(9);
        for _ in 0..120 {
            let view = rig.submit(job(random(10) as f64 / 1e3, 0)).await;
            acknowledged.lock().unwrap().insert(view.id);
        }
    };
    let crash = async {
        for pause in [3, 20, 40, 60, 80] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let known = acknowledged.lock().unwrap().clone();
            copies.push((known, copy(&rig.dir)));
        }
    };
    tokio::join!(submit, crash);
    for (known, dir) in copies {
        let rig = Rig::at(dir, |config| config.snapshot_every = 40);
        // The agent lost its memory with the server: nothing it ran is known to it.
        let agent = tokio::spawn(Agent::join(&rig.handle, "n1", &[("a100", 2)]).await.run());
        rig.until("all over", |board| board.status.as_ref().is_some_and(|s| s.pending + s.running == 0))
            .await;
        for id in known {
            let ended = rig.job(id).map_or_else(|| rig.history().job(JobId(id)).unwrap(), Some);
            assert_eq!(ended.map(|view| view.state).as_deref(), Some("succeeded"), "job {id}");
        }
        let events = rig
            .history()
            .events(&EventFilter { after: Some(0), limit: 100_000, ..EventFilter::default() })
            .unwrap();
        let submitted = events.iter().filter(|event| event.event == "submitted");
        let jobs: Vec<_> = submitted.map(|event| event.job).collect();
        assert!(jobs.is_sorted_by(|a, b| a < b), "each fact is told once: {jobs:?}");
        rig.stop(&[]).await;
        agent.await.unwrap();
    }
}

#[tokio::test]
async fn a_restarted_server_finds_its_jobs_running() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 2)]).await;
    let [first, second] = [rig.submit(job(0.0, 0)).await.id, rig.submit(job(0.0, 0)).await.id];
    let part = agent.start_running().await;
    agent.start_running().await;
    rig.until_state(first, "running").await;
    rig.until_state(second, "running").await;
    let dead = copy(&rig.dir);
    let rig = Rig::at(dead, |_| ());
    rig.until_node("n1", "unreachable").await;
    assert_eq!(rig.job(first).unwrap().nodes, ["n1[0]"]);
    assert_eq!(rig.look(|board| board.nodes["n1"].devices[1].jobs.clone()), [second]);
    let waiting = rig.submit(wide(2)).await.id;
    agent.connect(&rig.handle).await.unwrap();
    rig.until_node("n1", "up").await;
    agent.end(part, yard_core::part::How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    rig.until_state(first, "succeeded").await;
    assert_eq!(rig.job(waiting).unwrap().state, "pending");
    let other = agent.part_of(second).unwrap();
    agent.end(other, yard_core::part::How::Crashed, Some(2)).await;
    let view = rig.until_state(second, "failed").await;
    assert_eq!((view.exit_code, view.starts), (Some(2), 1));
}

#[test]
fn two_servers_on_one_folder_are_one_too_many() {
    let dir = Scratch::new();
    let first = Store::open(dir.path()).unwrap();
    let second = Store::open(dir.path()).unwrap_err().to_string();
    assert!(second.contains("another server"), "{second}");
    drop(first);
    assert!(Store::open(dir.path()).is_ok());
}
