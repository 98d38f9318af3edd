//! A server finds what the version before it left, and goes on. In `version8/` is what a server of that version wrote with one
//! agent of two kinds, which were two nodes then: a journal with promises and jobs that run, and a snapshot.

use yard_core::part::Held;

use super::*;

/// A data folder with such a database, changed by some SQL.
fn folder(database: &str, change: &str) -> Arc<Scratch> {
    let dir = Arc::new(Scratch::new());
    let db = rusqlite::Connection::open(dir.path().join("yard.db")).expect("a database can be made");
    db.execute_batch(database).expect("it was written by `.dump`");
    db.execute_batch(change).expect("a change of it");
    dir
}

const JOURNAL: &str = include_str!("version8/journal.sql");
const SNAPSHOT: &str = include_str!("version8/snapshot.sql");

#[tokio::test]
async fn a_journal_of_the_version_before_is_replayed_and_its_jobs_run_on() {
    let rig = Rig::at(folder(JOURNAL, ""), |_| ());
    let running = rig.until_state(2, "running").await;
    assert_eq!(running.nodes, ["n1/v100[0,1]"], "it holds what it held");
    assert!(running.promise.is_some(), "and was promised what it was");
    let mut agent = Agent::new("n1", &[("h100", 2), ("v100", 4)]);
    agent.connect(&rig.handle).await.unwrap();
    rig.until_node("n1", "up").await;
    // The agent knows of no parts: what ran there is gone, and the jobs start again where there is room.
    let part = agent.start_running().await;
    let (start, _) = &agent.tasks[&part];
    assert!(start.devices.iter().all(|Held { group, .. }| *group < 2), "{start:?}");
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_snapshot_of_the_version_before_is_read_and_its_agent_becomes_one_node() {
    let rig = Rig::at(folder(SNAPSHOT, ""), |_| ());
    let waiting = |id| rig.job(id).map(|job| job.state);
    assert_eq!((waiting(0).as_deref(), waiting(1).as_deref()), (Some("suspended"), Some("suspended")));
    let mut agent = Agent::new("n1", &[("h100", 2), ("v100", 4)]);
    agent.connect(&rig.handle).await.unwrap();
    let mut devices = Vec::new();
    for _ in 0..2 {
        let part = agent.start_running().await;
        devices.extend(agent.tasks[&part].0.devices.iter().copied());
    }
    assert_eq!(devices, [Held { group: 0, mask: 0b01 }, Held { group: 0, mask: 0b10 }]);
    let view = rig.handle.ask(|reply| Ask::View { reply }).await.expect("the driver answers");
    let (_, node) = view.nodes.iter().last().expect("it joined once more");
    assert_eq!((node.spec.name.as_str(), node.spec.pools.len()), ("n1", 2));
    rig.stop(&[]).await;
}

#[test]
fn what_a_later_version_wrote_is_refused() {
    for later in ["UPDATE snapshots SET version = 99", "UPDATE journal SET version = 99"] {
        let dir = folder(if later.contains("journal") { JOURNAL } else { SNAPSHOT }, later);
        let refused = Driver::start(config(dir.path()), policy("fifo-fit"), packs()).err();
        let said = refused.map(|error| format!("{error:#}")).unwrap_or_default();
        assert!(said.contains("99"), "{said}");
    }
}
