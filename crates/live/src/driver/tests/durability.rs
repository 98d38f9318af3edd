//! When nothing can be written: nothing is lost, nothing is pretended, and all goes on by itself once it can.

use tokio::sync::{mpsc, oneshot};
use yard_core::part::{How, Order, PartId, Told};

use super::*;
use crate::driver::{Sources, recovery};
use crate::exec::agents::AgentCall;
use crate::planner::Planner;
use crate::store::Store;
use crate::views::JobView;
use crate::wire::{FromAgent, Hello, ToAgent, WIRE_VERSION, WireAbilities};

/// A driver that is turned by hand, so that its file can be broken in between.
struct Hand {
    driver: Driver,
    sources: Sources,
    _asks: mpsc::Sender<Ask>,
    inbox: mpsc::Receiver<ToAgent>,
    connection: u64,
}

impl Hand {
    fn new(dir: &Scratch) -> Hand {
        let config = config(dir.path());
        let store = Store::open(dir.path()).unwrap();
        let (planner, answers) = Planner::new(policy("fifo-fit"), config.plan_cap, config.plan_rest);
        let (packed_sender, packed) = mpsc::unbounded_channel();
        let placer = yard_policies::placers::placer("pack").unwrap();
        let mut driver =
            recovery::recover(config, store, placer, planner, packed_sender, &Default::default()).unwrap();
        driver.begin().unwrap();
        let (asks_sender, asks) = mpsc::channel(1);
        let (_, inbox) = mpsc::channel(100);
        let sources = Sources { asks, answers, packed };
        Hand { driver, sources, _asks: asks_sender, inbox, connection: 0 }
    }

    /// One turn, with these asks.
    fn turn(&mut self, asks: Vec<Ask>) {
        while let Ok(answer) = self.sources.answers.try_recv() {
            self.driver.take_answer(answer);
        }
        let mut asks = asks;
        self.driver.turn(&mut asks, false);
    }

    /// Turns until something is so.
    fn until(&mut self, mut done: impl FnMut(&mut Hand) -> bool) {
        for _ in 0..10_000 {
            if done(self) {
                return;
            }
            self.turn(vec![]);
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("it never came: {:?}", self.driver.board.read().unwrap());
    }

    fn connect(&mut self) {
        let (link, inbox) = mpsc::channel(100);
        let (reply, mut answer) = oneshot::channel();
        let hello = Hello {
            version: WIRE_VERSION,
            name: "n1".into(),
            address: String::new(),
            groups: crate::exec::host::groups(&[("a100", 1)]),
            parts: vec![],
            paused: vec![],
            abilities: WireAbilities::default(),
            host: String::new(),
            resources: std::collections::BTreeMap::new(),
            domains: yard_core::cluster::DomainPath::default(),
        };
        self.inbox = inbox;
        self.turn(vec![AgentCall::Connect { hello: Box::new(hello), link, reply }.into()]);
        let mut connection = None;
        self.until(|_| {
            connection = answer.try_recv().ok();
            connection.is_some()
        });
        self.connection = connection.unwrap().unwrap();
    }

    fn submit(&mut self, key: Option<&str>) -> Result<JobView, Refusal> {
        let (reply, mut answer) = oneshot::channel();
        let (request, key) = (Box::new(job(0.0, 0)), key.map(str::to_owned));
        self.turn(vec![Ask::Submit { who: who("ann"), request, key, room: None, reply }]);
        answer.try_recv().expect("a client is answered in the same turn")
    }

    fn tell(&mut self, part: PartId, told: Told) {
        self.turn(vec![
            AgentCall::From {
                connection: self.connection,
                message: FromAgent::Told { part, told },
                room: None,
            }
            .into(),
        ]);
    }

    fn started(&mut self) -> PartId {
        let mut part = None;
        self.until(|hand| {
            while let Ok(message) = hand.inbox.try_recv() {
                if let ToAgent::Order { order: Order::Start(start), .. } = message {
                    part = Some(start.part);
                }
            }
            part.is_some()
        });
        part.unwrap()
    }

    fn forgotten(&mut self) -> bool {
        let mut all = std::iter::from_fn(|| self.inbox.try_recv().ok());
        all.any(|message| matches!(message, ToAgent::Order { order: Order::Forget { .. }, .. }))
    }

    /// As if the disk were full.
    fn fill_disk(&self, full: bool) {
        let db = self.driver.store.connection();
        let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        let most = if full { pages } else { 1 << 30 };
        db.pragma_update_and_check(None, "max_page_count", most, |_| Ok(())).unwrap();
    }

    fn state(&self, id: u64) -> String {
        self.driver.board.read().unwrap().jobs[&id].state.clone()
    }
}

fn ended() -> Told {
    let (step, signal, message) = (None, None, None);
    Told::Ended(yard_core::part::Ending { how: How::Finished, step, code: Some(0), signal, message })
}

/// Breaks the file in a way, checks what is promised, mends it.
fn breaks(break_it: impl Fn(&Hand), mend: impl Fn(&Hand), cause: &str) {
    let dir = Scratch::new();
    let mut hand = Hand::new(&dir);
    hand.connect();
    let first = hand.submit(None).unwrap().id;
    let part = hand.started();
    hand.tell(part, Told::Started);
    hand.until(|hand| hand.state(first) == "running");
    let stepped = hand.driver.seq;
    break_it(&hand);
    // A full disk shows once the pages at hand are used up.
    let mut refused = None;
    let mut accepted = 0;
    while refused.is_none() {
        match hand.submit(Some(&format!("key{accepted}"))) {
            Ok(_) => accepted += 1,
            Err(refusal) => refused = Some(refusal),
        }
    }
    let Some(Refusal::Unavailable(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains("yard.db") && message.contains(cause), "{message}");
    let broken_at = hand.driver.seq;
    assert!(broken_at >= stepped);
    hand.tell(part, ended());
    for _ in 0..5 {
        hand.turn(vec![]);
        assert!(hand.submit(None).is_err());
    }
    assert!(!hand.forgotten(), "the agent must keep what is not durable");
    assert_eq!((hand.state(first).as_str(), hand.driver.seq), ("running", broken_at), "nothing was stepped");
    mend(&hand);
    hand.until(|hand| hand.state(first) == "succeeded");
    hand.until(Hand::forgotten);
    let again = hand.submit(Some(&format!("key{accepted}"))).expect("what was refused may be tried again");
    assert_eq!(again.id, first + 1 + accepted, "no number was used up");
    let (jobs, seq) = (hand.driver.records.all.len(), hand.driver.seq);
    drop(hand);
    let hand = Hand::new(&dir);
    assert_eq!(hand.driver.records.all.len(), jobs);
    assert!(hand.driver.seq > seq);
}

#[test]
fn a_full_disk_refuses_clients_keeps_news_and_heals() {
    breaks(|hand| hand.fill_disk(true), |hand| hand.fill_disk(false), "full");
}

#[test]
fn a_read_only_file_refuses_clients_keeps_news_and_heals() {
    let read_only = |hand: &Hand, on: bool| {
        hand.driver.store.connection().pragma_update(None, "query_only", on).unwrap();
    };
    breaks(|hand| read_only(hand, true), |hand| read_only(hand, false), "readonly");
}

#[test]
fn an_agent_that_comes_while_nothing_can_be_written_waits() {
    let dir = Scratch::new();
    let mut hand = Hand::new(&dir);
    hand.driver.store.connection().pragma_update(None, "query_only", true).unwrap();
    let (link, _inbox) = mpsc::channel(100);
    let (reply, mut answer) = oneshot::channel();
    let hello = Hello {
        version: WIRE_VERSION,
        name: "n1".into(),
        address: String::new(),
        groups: crate::exec::host::groups(&[("a100", 1)]),
        parts: vec![],
        paused: vec![],
        abilities: WireAbilities::default(),
        host: String::new(),
        resources: std::collections::BTreeMap::new(),
        domains: yard_core::cluster::DomainPath::default(),
    };
    hand.turn(vec![AgentCall::Connect { hello: Box::new(hello), link, reply }.into()]);
    assert!(answer.try_recv().is_err());
    hand.driver.store.connection().pragma_update(None, "query_only", false).unwrap();
    hand.until(|_| answer.try_recv().is_ok());
    assert_eq!(hand.driver.engine.nodes().len(), 1);
}
