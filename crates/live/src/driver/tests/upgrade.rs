//! A server finds what the version before it left, and goes on. In `version8/` is what a server of that version wrote with one
//! agent of two kinds, which were two nodes then: a journal with promises and jobs that run, and a snapshot.

use expect_test::expect;
use yard_core::ids::LeaseId;
use yard_core::message::Why;
use yard_core::part::{Held, How, Order, PartId, Start, Told};

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

#[tokio::test]
async fn jobs_of_the_version_before_go_on_under_its_agent_and_none_is_lost() {
    let rig = Rig::at(folder(JOURNAL, ""), |_| ());
    // Its agent is brought up to date later, and its jobs never stopped: three run and one lies frozen.
    let mut agent = Agent::new("n1", &[("h100", 2), ("v100", 4)]);
    agent.hello.version = crate::wire::WIRE_VERSION - 1;
    let ran = |job| PartId { lease: LeaseId(job), job: JobId(job), instance: 1 };
    agent.parts.extend([0, 2, 3].map(|job| (ran(job), Told::Started)));
    agent.hello.paused = vec![JobId(1)];
    agent.connect(&rig.handle).await.unwrap();
    rig.until_node("n1", "up").await;
    for job in [2, 3] {
        agent.end(ran(job), How::Finished, Some(0)).await;
        rig.until_state(job, "succeeded").await;
    }
    let thawed = start_of(&mut agent, 1).await;
    assert!(thawed.thaw, "its processes lie there");
    agent.tell(thawed.part, Told::Started).await;
    rig.until_state(1, "running").await;
    for part in [thawed.part, ran(0)] {
        agent.end(part, How::Finished, Some(0)).await;
    }
    let last = start_of(&mut agent, 4).await.part;
    agent.tell(last, Told::Started).await;
    agent.end(last, How::Finished, Some(0)).await;
    for (job, starts) in [(0, 1), (1, 2), (2, 1), (3, 1), (4, 1)] {
        let view = rig.until_state(job, "succeeded").await;
        assert_eq!(view.starts, starts, "job {job}");
    }
    rig.stop(&[]).await;
}

/// The next order to start something, which must be this job; others are for parts that are over.
async fn start_of(agent: &mut Agent, job: u64) -> Start {
    loop {
        match agent.order().await {
            Order::Start(start) => {
                assert_eq!(start.part.job, JobId(job), "nothing runs twice");
                return start;
            }
            Order::Forget { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_agent_of_the_version_before_keeps_working() {
    let rig = Rig::new();
    let mut agent = Agent::new("n1", &[("a100", 1)]);
    agent.hello.version = crate::wire::WIRE_VERSION - 1;
    agent.connect(&rig.handle).await.unwrap();
    let id = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start_running().await;
    rig.until_state(id, "running").await;
    // It has no word for a job that is held.
    rig.hold("ann", id).await.unwrap();
    let order = agent.order().await;
    assert!(matches!(order, Order::Stop { why: Why::Preempted, .. }), "{order:?}");
    agent.end(part, How::Saved, Some(0)).await;
    agent.forget_of(part).await;
    let view = rig.until_state(id, "suspended").await;
    assert_eq!(view.reason.as_deref(), Some("held by ann: bad data"), "people are told why");
    rig.release("ann", id).await.unwrap();
    let part = agent.start_running().await;
    agent.end(part, How::Finished, Some(0)).await;
    rig.until_state(id, "succeeded").await;
    rig.stop(&[]).await;
}

/// Starts on a folder, which must fail; what is said without the file, and all that the folder holds afterwards.
fn refused(dir: &Scratch) -> (String, Vec<(String, i64)>) {
    let refused = Driver::start(config(dir.path()), policy("fifo-fit"), packs()).err();
    let said = refused.map(|error| error.to_string()).unwrap_or_default();
    (said.split_once(": ").map(|(_, rest)| rest.to_owned()).unwrap_or(said), contents(dir))
}

/// Rows of each table, and the version of the tables.
fn contents(dir: &Scratch) -> Vec<(String, i64)> {
    let db = rusqlite::Connection::open(dir.path().join("yard.db")).expect("it is a database");
    let number = |text: &str| db.query_row(text, [], |row| row.get(0)).expect("a number");
    let count = |table: &str| (table.to_owned(), number(&format!("SELECT count(*) FROM {table}")));
    let version = ("version".to_owned(), number("PRAGMA user_version"));
    ["journal", "snapshots", "jobs", "events", "nodes"].map(count).into_iter().chain([version]).collect()
}

#[test]
fn a_rollback_is_refused_with_a_sentence_and_changes_nothing() {
    let newer = expect![[
        r#"a newer version of yard wrote this data folder (jobs of version 99; this yard reads versions 8 to 10). Nothing was changed. Start the newer version again, or restore the backup from before the upgrade"#
    ]];
    for (database, later) in
        [(SNAPSHOT, "UPDATE snapshots SET version = 99"), (JOURNAL, "UPDATE journal SET version = 99")]
    {
        let dir = folder(database, later);
        let before = contents(&dir);
        let (said, after) = refused(&dir);
        newer.assert_eq(&said);
        assert_eq!(before, after);
    }
    let dir = folder(JOURNAL, "PRAGMA user_version = 99");
    let before = contents(&dir);
    let (said, after) = refused(&dir);
    expect![[r#"a newer version of yard wrote this data folder (tables of version 99; this yard reads up to 4). Nothing was changed. Start the newer version again, or restore the backup from before the upgrade"#]]
    .assert_eq(&said);
    assert_eq!(before, after);
}

#[test]
fn what_is_two_versions_old_is_refused_too() {
    let (said, _) = refused(&folder(SNAPSHOT, "UPDATE snapshots SET version = 7"));
    assert!(said.contains("Upgrade one version at a time"), "{said}");
}
