//! A node that runs nothing. It joins, connects, beats and answers orders as an agent does, but has no keeper and no
//! processes, so that a thousand of them fit in one process: for measuring a server, not for work.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use yard_core::part::{Ending, How, Order, PartId, Told};

use super::clock::since_boot;
use super::link::{Dial, LinkHeard, LinkServer, ServerLink};
use crate::wire::{Device, FromAgent, GroupOnWire, Hello, ToAgent, WIRE_VERSION, WireAbilities};

/// Where the ranks of a gang would meet, if there were any.
const PORT: u16 = 1;

/// An order that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// When: microseconds since this machine was booted.
    pub at_us: u64,
    /// Whether it was to start something; else it was to stop something.
    pub start: bool,
}

/// A node that is connected.
pub struct Pretend {
    link: ServerLink,
    hello: Hello,
    beat: Duration,
    /// What it runs or ran, until it may forget it.
    parts: BTreeMap<PartId, Told>,
}

impl Pretend {
    /// Joins with so many devices of a kind; its certificate is kept in the folder.
    pub async fn join(
        dial: Dial,
        name: &str,
        folder: PathBuf,
        kind: &str,
        devices: u32,
    ) -> anyhow::Result<Pretend> {
        let link = ServerLink::keep(LinkServer::Dial(dial), name.to_owned(), folder);
        let mut node =
            Pretend { link, hello: hello(name, kind, devices), beat: Duration::ZERO, parts: BTreeMap::new() };
        while node.beat.is_zero() {
            match node.link.heard.recv().await.context("the connection is given up")? {
                LinkHeard::Up => node.greet(),
                LinkHeard::Said(said) => node.admitted(&said)?,
                LinkHeard::Barred(reason) => bail!("the server refused {name}: {reason}"),
                LinkHeard::Down => {}
            }
        }
        Ok(node)
    }

    fn admitted(&mut self, said: &ToAgent) -> anyhow::Result<()> {
        match said {
            ToAgent::Welcome { beat_s, .. } => self.beat = Duration::from_secs_f64(beat_s.max(0.01)),
            ToAgent::Refused { reason } => bail!("the server refused {}: {reason}", self.hello.name),
            _ => {}
        }
        Ok(())
    }

    /// Answers orders until its task is ended. Parts run until they are told to stop, or until `finish` is true:
    /// from then on all are done at once.
    pub async fn serve(mut self, seen: mpsc::UnboundedSender<Seen>, mut finish: watch::Receiver<bool>) {
        let mut beats = interval(self.beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seq = 0;
        loop {
            tokio::select! {
                heard = self.link.heard.recv() => match heard {
                    Some(LinkHeard::Up) => self.greet(),
                    Some(LinkHeard::Said(said)) => self.hear(*said, &seen),
                    Some(LinkHeard::Down) => {}
                    Some(LinkHeard::Barred(_)) | None => return,
                },
                _ = beats.tick() => {
                    seq += 1;
                    self.say(FromAgent::Beat { seq });
                }
                Ok(()) = finish.changed() => {}
            }
            if *finish.borrow() {
                self.finish();
            }
        }
    }

    fn greet(&self) {
        let parts = self.parts.iter().map(|(part, told)| (*part, told.clone())).collect();
        self.say(FromAgent::Hello(Hello { parts, ..self.hello.clone() }));
    }

    fn hear(&mut self, said: ToAgent, seen: &mpsc::UnboundedSender<Seen>) {
        let ToAgent::Order { order, .. } = said else { return };
        if let Order::Start(_) | Order::Stop { .. } = order {
            let start = matches!(order, Order::Start(_));
            let _unheard = seen.send(Seen { at_us: since_boot(), start });
        }
        self.obey(order);
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start(start) if self.parts.contains_key(&start.part) => {}
            Order::Start(start) if start.is_gang() => self.tell(start.part, Told::Ready { port: PORT }),
            Order::Start(start) => self.begin(start.part),
            Order::Go { part, .. } => self.begin(part),
            Order::Stop { part, .. } if self.parts.get(&part).is_some_and(|told| !is_end(told)) => {
                self.end(part, How::Saved);
            }
            Order::Forget { part } => {
                self.parts.remove(&part);
            }
            Order::Stop { .. } | Order::StopAt { .. } | Order::Discard { .. } => {}
        }
    }

    fn begin(&mut self, part: PartId) {
        self.tell(part, Told::Accepted);
        self.tell(part, Told::Started);
    }

    fn finish(&mut self) {
        let running = self.parts.iter().filter(|(_, told)| matches!(told, Told::Started));
        let running: Vec<_> = running.map(|(part, _)| *part).collect();
        running.into_iter().for_each(|part| self.end(part, How::Finished));
    }

    fn end(&mut self, part: PartId, how: How) {
        let ending = Ending { how, step: None, code: Some(0), signal: None, message: None };
        self.tell(part, Told::Ended(ending));
    }

    fn tell(&mut self, part: PartId, told: Told) {
        self.parts.insert(part, told.clone());
        self.say(FromAgent::Told { part, told });
    }

    /// While there is no connection nothing is said; the next hello says it all.
    fn say(&self, message: FromAgent) {
        let _unheard = self.link.news.send(message);
    }
}

fn is_end(told: &Told) -> bool {
    matches!(told, Told::Ended(_))
}

fn hello(name: &str, kind: &str, devices: u32) -> Hello {
    let device = |at: u32| Device {
        name: format!("{kind} {at}"),
        uuid: None,
        memory_mib: None,
        problem: None,
        split: false,
        links: Vec::new(),
    };
    let group = GroupOnWire { kind: kind.to_owned(), devices: (0..devices).map(device).collect() };
    Hello {
        version: WIRE_VERSION,
        name: name.to_owned(),
        address: "127.0.0.1".to_owned(),
        groups: vec![group],
        parts: Vec::new(),
        paused: Vec::new(),
        abilities: WireAbilities::default(),
        host: String::new(),
        resources: BTreeMap::new(),
        domains: yard_core::cluster::DomainPath::default(),
    }
}
