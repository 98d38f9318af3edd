//! The store by itself.

use yard_core::Engine;
use yard_core::Settings;
use yard_core::cluster::Kinds;
use yard_core::ids::JobId;
use yard_core::message::Input;
use yard_core::units::Time;

use super::*;
use crate::scratch::Scratch;

fn write(store: &mut Store, first: u64, inputs: &[&str]) {
    store.write(&Write { first, time: Time(7), inputs, ..Write::default() }, &Derived::default()).unwrap();
}

fn tick() -> String {
    serde_json::to_string(&Input::Tick).unwrap()
}

fn state() -> Vec<u8> {
    let placer = yard_policies::placers::placer("pack").unwrap();
    pack(Engine::new(Settings::default(), Kinds::default(), placer).state()).unwrap()
}

#[test]
fn a_newer_file_is_refused_and_an_older_one_is_brought_up_to_date() {
    let dir = Scratch::new();
    let store = Store::open(dir.path()).unwrap();
    store.db.pragma_update(None, "user_version", 99).unwrap();
    drop(store);
    let error = Store::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("yard.db") && error.contains("version 99"), "{error}");
    let old = Scratch::new();
    Connection::open(old.path().join("yard.db")).unwrap().execute_batch("VACUUM").unwrap();
    Store::open(old.path()).unwrap().nodes().unwrap();
}

#[test]
fn something_else_than_a_database_is_named() {
    let dir = Scratch::new();
    std::fs::write(dir.path().join("yard.db"), "x".repeat(4096)).unwrap();
    let error = Store::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("yard.db") && error.contains("backup"), "{error}");
}

#[test]
fn a_gap_in_the_journal_is_found() {
    let dir = Scratch::new();
    let mut store = Store::open(dir.path()).unwrap();
    write(&mut store, 1, &[&tick(), &tick(), &tick()]);
    let mut seen = Vec::new();
    store.replay(1, |entry| seen.push(entry.seq)).unwrap();
    assert_eq!(seen, [2, 3]);
    store.db.execute("DELETE FROM journal WHERE seq = 2", []).unwrap();
    let error = store.replay(0, |_| ()).unwrap_err().to_string();
    assert!(error.contains("input 2 of the journal"), "{error}");
    store.db.execute("UPDATE journal SET seq = 2, input = '{' WHERE seq = 3", []).unwrap();
    assert!(matches!(store.replay(0, |_| ()), Err(StoreError::Damaged { .. })));
    store.db.execute("UPDATE journal SET version = 1", []).unwrap();
    assert!(matches!(store.replay(0, |_| ()), Err(StoreError::OtherScheduler { found: 1, .. })));
}

#[test]
fn two_snapshots_are_kept_with_the_journal_behind_the_older() {
    let dir = Scratch::new();
    let mut store = Store::open(dir.path()).unwrap();
    let ticks = vec![tick(); 9];
    write(&mut store, 1, &ticks.iter().map(String::as_str).collect::<Vec<_>>());
    for seq in [2, 4, 6] {
        store.write_snapshot(seq, &state(), 10).unwrap();
    }
    assert_eq!(store.snapshot().unwrap().unwrap().0, 6);
    let mut seen = Vec::new();
    store.replay(4, |entry| seen.push(entry.seq)).unwrap();
    assert_eq!(seen, [5, 6, 7, 8, 9]);
    assert!(store.replay(2, |_| ()).is_err(), "what the older one holds is gone");
    store.db.execute("UPDATE snapshots SET state = x'00' WHERE seq = 6", []).unwrap();
    assert_eq!(store.snapshot().unwrap().unwrap().0, 4, "the older one will do");
    store.db.execute("UPDATE snapshots SET state = x'00'", []).unwrap();
    assert!(matches!(store.snapshot(), Err(StoreError::Damaged { .. })));
}

#[test]
fn how_estimates_turned_out_is_kept_and_may_be_lost() {
    use yard_core::forecast::interval::{Estimate, Interval, Unknown};
    use yard_core::forecast::record::{Record, What};
    let dir = Scratch::new();
    let mut store = Store::open(dir.path()).unwrap();
    assert_eq!(store.estimates().unwrap(), None);
    let at = Time::from_secs;
    let mut record = Record::default();
    for job in 0..30 {
        let end = Ok(Interval { low: at(90.0), mid: at(100.0), high: at(110.0), ..Interval::default() });
        record.note(at(0.0), [(&JobId(job), &Estimate { start: Err(Unknown::Beyond), end })]);
        if job < 20 {
            record.happened(at(150.0), JobId(job), What::End);
        }
    }
    for record in [Record::default(), record] {
        store.write_estimates(&pack(&record).unwrap()).unwrap();
        assert_eq!(store.estimates().unwrap(), Some(record));
    }
    store.db.execute("UPDATE estimates SET record = x'00'", []).unwrap();
    assert_eq!(store.estimates().unwrap(), None);
}

#[test]
fn nodes_of_an_older_file_have_no_audience_and_new_rows_keep_theirs() {
    let dir = Scratch::new();
    let db = Connection::open(dir.path().join("yard.db")).unwrap();
    db.execute_batch(
        "CREATE TABLE nodes(
             name TEXT PRIMARY KEY, address TEXT NOT NULL, groups TEXT NOT NULL, drain_reason TEXT, drain_user TEXT)
             WITHOUT ROWID;
         INSERT INTO nodes VALUES('n1', 'a', '[]', NULL, NULL);
         CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
         PRAGMA user_version = 3;",
    )
    .unwrap();
    schema::migrate(&mut { db }, dir.path()).unwrap();
    let db = Connection::open(dir.path().join("yard.db")).unwrap();
    let audience: Option<String> =
        db.query_row("SELECT audience FROM nodes WHERE name = 'n1'", [], |row| row.get(0)).unwrap();
    assert_eq!(audience, None);

    let dir = Scratch::new();
    let mut store = Store::open(dir.path()).unwrap();
    let only = crate::wire::OnlyUser { name: "ada".into(), why: "it is hers".into() };
    let row = |name: &str, audience| NodeRow {
        name: name.into(),
        address: "a".into(),
        groups: vec![],
        drain: Some(("root".into(), None)),
        audience,
    };
    use crate::wire::Audience;
    let nodes = [row("n1", None), row("n2", Some(Audience::Everybody)), row("n3", Some(Audience::One(only)))];
    store.write(&Write { first: 1, nodes: &nodes, ..Write::default() }, &Derived::default()).unwrap();
    assert_eq!(store.nodes().unwrap(), nodes);
}
