//! An agent that says well-formed nonsense, and a journal that somebody damaged: the driver goes on, or says what is
//! wrong; it never breaks down.

use proptest::prelude::*;
use yard_core::ids::{JobId, LeaseId};
use yard_core::part::{Ending, How, PartId, Told};
use yard_core::units::Span;

use super::agent::Agent;
use super::*;
use crate::wire::{CardNow, FromAgent, Hello, ToAgent, Trained, WireAbilities};

fn part() -> impl Strategy<Value = PartId> {
    let number = || prop_oneof![0..4_u64, any::<u64>()];
    (number(), number(), 0..4u32).prop_map(|(lease, job, instance)| PartId {
        lease: LeaseId(lease),
        job: JobId(job),
        instance,
    })
}

fn told() -> impl Strategy<Value = Told> {
    let how = prop::sample::select(vec![
        How::Finished,
        How::Saved,
        How::Paused,
        How::Crashed,
        How::Expired,
        How::Refused,
        How::Lost,
    ]);
    let ending = (how, any::<Option<u64>>(), any::<Option<i32>>(), any::<Option<i32>>());
    prop_oneof![
        any::<u16>().prop_map(|port| Told::Ready { port }),
        Just(Told::Started),
        Just(Told::Accepted),
        (any::<u64>(), any::<Option<u64>>()).prop_map(|(step, total)| Told::Progress { step, total }),
        (any::<u64>(), any::<u64>()).prop_map(|(step, took)| Told::Checkpointed { step, took: Span(took) }),
        any::<u64>().prop_map(|step| Told::Boundary { step }),
        any::<bool>().prop_map(Told::Stuck),
        (any::<Option<u64>>(), any::<Option<u64>>(), any::<u64>()).prop_map(|(save, load, bytes)| {
            Told::Cost { save: save.map(Span), load: load.map(Span), bytes }
        }),
        ending.prop_map(|(how, step, code, signal)| {
            Told::Ended(Ending { how, step, code, signal, message: Some("x\u{0}y".into()) })
        }),
    ]
}

fn card() -> impl Strategy<Value = CardNow> {
    let place = prop_oneof![(0..2_u32, 0..3_u32), (any::<u32>(), any::<u32>())];
    let numbers = (any::<Option<f64>>(), any::<Option<u64>>(), any::<Option<u32>>(), any::<Option<f64>>());
    let parts = prop::collection::vec((part(), any::<Option<f64>>(), any::<u64>()), 0..4);
    (place, numbers, any::<Option<String>>(), any::<Option<(u64, u64)>>(), parts).prop_map(
        |((group, device), (busy, memory_used_mib, temperature_c, power_w), throttled, ecc, parts)| CardNow {
            group,
            device,
            busy,
            memory_used_mib,
            temperature_c,
            power_w,
            throttled,
            ecc,
            parts,
        },
    )
}

fn trained() -> impl Strategy<Value = Trained> {
    (any::<u32>(), any::<f64>(), any::<f64>(), any::<Option<(f64, f64)>>(), any::<Option<f64>>())
        .prop_map(|(local, grad_s, step_s, noise, loss)| Trained { local, grad_s, step_s, noise, loss })
}

fn message() -> impl Strategy<Value = FromAgent> {
    prop_oneof![
        4 => (part(), told()).prop_map(|(part, told)| FromAgent::Told { part, told }),
        1 => any::<u64>().prop_map(|seq| FromAgent::Beat { seq }),
        1 => (part(), trained()).prop_map(|(part, said)| FromAgent::Trained { part, said }),
        1 => (part(), any::<bool>()).prop_map(|(part, hushed)| FromAgent::Hushed { part, hushed }),
        1 => (any::<u32>(), any::<u32>(), any::<Option<String>>())
            .prop_map(|(group, device, problem)| FromAgent::Health { group, device, problem }),
        1 => (0..3_u32, 0..5_u32, any::<Option<String>>())
            .prop_map(|(group, device, problem)| FromAgent::Health { group, device, problem }),
        1 => prop::collection::vec(card(), 0..40).prop_map(|cards| FromAgent::Looked { cards }),
        1 => (part(), any::<f64>(), any::<u32>())
            .prop_map(|(part, busy, memory_mib)| FromAgent::Used { part, busy, memory_mib }),
        1 => (any::<u64>(), any::<String>(), any::<bool>(), any::<Option<String>>())
            .prop_map(|(request, text, end, error)| FromAgent::Logs { request, text, end, error }),
        1 => part().prop_map(|part| FromAgent::Hello(Hello {
            version: 7, name: "../x".into(), address: String::new(), groups: vec![],
            parts: vec![(part, Told::Started); 3], paused: vec![part.job], abilities: WireAbilities::default(), host: String::new(), domains: yard_core::cluster::DomainPath::default(), resources: std::collections::BTreeMap::new(),
        })),
    ]
}

/// Says all of it while two jobs want devices, and then behaves: jobs still start and end.
async fn endure(messages: Vec<FromAgent>) {
    let rig = Rig::new();
    let agent = Agent::join(&rig.handle, "n1", &[("v100", 2)]).await;
    let request = |kind: &str| JobRequest {
        command: vec!["true".into()],
        kinds: vec![kind.into()],
        ..JobRequest::default()
    };
    for _ in 0..2 {
        rig.submit(request("v100")).await;
    }
    for message in messages {
        agent.say(message).await;
    }
    let mut good = Agent::join(&rig.handle, "n2", &[("k80", 1)]).await;
    let last = rig.submit(request("k80")).await;
    let part = good.start().await;
    assert_eq!(part.job, JobId(last.id));
    good.tell(part, Told::Started).await;
    good.end(part, How::Finished, Some(0)).await;
    rig.until_state(last.id, "succeeded").await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nonsense_from_an_agent_harms_nobody_else(messages in prop::collection::vec(message(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(endure(messages));
    }

    #[test]
    fn frames_that_are_damaged_are_errors(frame in message(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = serde_json::to_vec(&frame).unwrap();
        prop_assert_eq!(&serde_json::from_slice::<FromAgent>(&bytes).unwrap(), &frame);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        // Whatever they are now: a value or an error.
        let _ = serde_json::from_slice::<FromAgent>(&bytes);
        let _ = serde_json::from_slice::<ToAgent>(&bytes);
    }

    #[test]
    fn a_damaged_journal_is_named(row in any::<prop::sample::Index>(), at in any::<prop::sample::Index>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let rig = Rig::new();
        runtime.block_on(async {
            let _agent = Agent::join(&rig.handle, "n1", &[("v100", 2)]).await;
            let command = vec!["true".into()];
            rig.submit(JobRequest { command, ..JobRequest::default() }).await;
        });
        // As a crash leaves it: an end in good order would make a snapshot.
        let dir = Scratch::new();
        for file in ["yard.db", "yard.db-wal"] {
            std::fs::copy(rig.dir.path().join(file), dir.path().join(file)).unwrap();
        }
        damage(dir.path(), row, at);
        let error = Driver::start(config(dir.path()), policy("fifo-fit"), packs()).err().map(|error| error.to_string());
        prop_assert!(error.as_ref().is_some_and(|error| error.contains("yard.db")), "{error:?}");
    }
}

/// Puts a byte that no JSON has into one input.
fn damage(dir: &Path, row: prop::sample::Index, at: prop::sample::Index) {
    let db = rusqlite::Connection::open(dir.join("yard.db")).unwrap();
    let count: i64 = db.query_row("SELECT count(*) FROM journal", [], |row| row.get(0)).unwrap();
    let seq = row.index(count as usize) as i64 + 1;
    let text: String =
        db.query_row("SELECT input FROM journal WHERE seq = ?1", [seq], |row| row.get(0)).unwrap();
    let mut bytes = text.into_bytes();
    let at = at.index(bytes.len());
    bytes[at] = 1;
    let text = String::from_utf8(bytes).unwrap();
    db.execute("UPDATE journal SET input = ?1 WHERE seq = ?2", rusqlite::params![text, seq]).unwrap();
}
