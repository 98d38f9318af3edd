//! An agent that is a script. It remembers its parts over connections and servers, as a real one does.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use yard_core::ids::JobId;
use yard_core::part::{Ending, How, Order, PartId, Start, Told};

use super::PATIENCE;
use crate::driver::clock::Stopwatch;
use crate::exec::agents::AgentCall;
use crate::handle::{Handle, Refusal};
use crate::wire::{FromAgent, Hello, Task, ToAgent, WIRE_VERSION, WireAbilities};

pub(super) struct Agent {
    pub(super) hello: Hello,
    pub(super) parts: BTreeMap<PartId, Told>,
    handle: Option<Handle>,
    connection: u64,
    inbox: Option<mpsc::Receiver<ToAgent>>,
    /// What came with the orders to start.
    pub(super) tasks: BTreeMap<PartId, (Start, Task)>,
    /// When parts that run will be done, for `run`.
    due: BTreeMap<PartId, (Stopwatch, Duration, i32)>,
}

impl Agent {
    pub(super) fn new(name: &str, groups: &[(&str, usize)]) -> Agent {
        let hello = Hello {
            version: WIRE_VERSION,
            name: name.into(),
            address: format!("{name}.test"),
            groups: crate::exec::host::groups(groups),
            parts: vec![],
            paused: vec![],
            abilities: WireAbilities::default(),
            host: String::new(),
            resources: std::collections::BTreeMap::new(),
            domains: yard_core::cluster::DomainPath::default(),
        };
        let (parts, tasks, due) = Default::default();
        Agent { hello, parts, handle: None, connection: 0, inbox: None, tasks, due }
    }

    /// One that is connected already.
    pub(super) async fn join(handle: &Handle, name: &str, groups: &[(&str, usize)]) -> Agent {
        let mut agent = Agent::new(name, groups);
        agent.connect(handle).await.unwrap();
        agent
    }

    pub(super) async fn connect(&mut self, handle: &Handle) -> Result<(), Refusal> {
        let (link, inbox) = mpsc::channel(crate::wire::ORDERS_MAX);
        let parts = self.parts.iter().map(|(part, told)| (*part, told.clone())).collect();
        let hello = Box::new(Hello { parts, ..self.hello.clone() });
        self.connection = handle.ask(|reply| AgentCall::Connect { hello, link, reply }.into()).await?;
        (self.handle, self.inbox) = (Some(handle.clone()), Some(inbox));
        assert!(matches!(self.receive().await, Some(ToAgent::Welcome { .. })));
        Ok(())
    }

    pub(super) async fn disconnect(&mut self) {
        let ask = AgentCall::Disconnect { connection: self.connection }.into();
        self.inbox = None;
        let _ = self.handle.take().unwrap().asks.send(ask).await;
    }

    pub(super) async fn say(&self, message: FromAgent) {
        let ask = AgentCall::From { connection: self.connection, message, room: None }.into();
        let _ = self.handle.as_ref().unwrap().asks.send(ask).await;
    }

    pub(super) async fn tell(&mut self, part: PartId, told: Told) {
        if !matches!(told, Told::Progress { .. } | Told::Checkpointed { .. } | Told::Boundary { .. }) {
            self.parts.insert(part, told.clone());
        }
        self.say(FromAgent::Told { part, told }).await;
    }

    pub(super) async fn end(&mut self, part: PartId, how: How, code: Option<i32>) {
        let ending = Ending { how, step: None, code, signal: None, message: None };
        self.tell(part, Told::Ended(ending)).await;
    }

    /// The next that the server says; none once it closed the link.
    pub(super) async fn receive(&mut self) -> Option<ToAgent> {
        let message = self.inbox.as_mut()?.recv();
        tokio::time::timeout(PATIENCE, message).await.expect("the server says something")
    }

    /// The next order; parts to be forgotten are.
    pub(super) async fn order(&mut self) -> Order {
        loop {
            match self.receive().await.expect("the link is open") {
                ToAgent::Order { order, task } => {
                    self.heed(&order, task);
                    return order;
                }
                _ => continue,
            }
        }
    }

    fn heed(&mut self, order: &Order, task: Option<Box<Task>>) {
        match (order, task) {
            (Order::Start(start), Some(task)) => {
                self.tasks.insert(start.part, (start.clone(), *task));
            }
            (Order::Forget { part }, _) => {
                self.parts.remove(part);
            }
            _ => {}
        }
    }

    /// The next order must be to start a job.
    pub(super) async fn start(&mut self) -> PartId {
        match self.order().await {
            Order::Start(start) => {
                self.tell(start.part, Told::Accepted).await;
                start.part
            }
            other => panic!("{other:?}"),
        }
    }

    /// Starts a job, whose processes run.
    pub(super) async fn start_running(&mut self) -> PartId {
        let part = self.start().await;
        self.tell(part, Told::Started).await;
        part
    }

    /// The next order must be to stop this part.
    pub(super) async fn stop_of(&mut self, wanted: PartId) {
        match self.order().await {
            Order::Stop { part, .. } if part == wanted => {}
            other => panic!("{other:?}"),
        }
    }

    /// The next order must be to forget this part.
    pub(super) async fn forget_of(&mut self, wanted: PartId) {
        match self.order().await {
            Order::Forget { part } if part == wanted => {}
            other => panic!("{other:?}"),
        }
    }

    /// Runs jobs as their commands say until the server is gone. Stopped ones are `Saved`.
    pub(super) async fn run(mut self) -> Agent {
        let mut beats = tokio::time::interval(Duration::from_millis(100));
        let mut seq = 0;
        loop {
            let soon = self.due.values().map(|(since, length, _)| length.saturating_sub(since.took())).min();
            let soon = soon.unwrap_or(PATIENCE);
            let Some(inbox) = self.inbox.as_mut() else { return self };
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(ToAgent::Order { order, task }) => {
                        self.heed(&order, task);
                        self.obey(order).await;
                    }
                    Some(_) => {}
                    None => return self,
                },
                _ = beats.tick() => {
                    seq += 1;
                    self.say(FromAgent::Beat { seq }).await;
                }
                () = tokio::time::sleep(soon) => {}
            }
            self.end_due().await;
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Start(start) if self.parts.contains_key(&start.part) => {}
            Order::Start(start) if start.is_gang() => self.tell(start.part, Told::Ready { port: 1 }).await,
            Order::Start(start) => self.begin(start.part).await,
            Order::Go { part, .. } => self.begin(part).await,
            Order::Stop { part, .. } if self.parts.get(&part).is_some_and(|told| !is_end(told)) => {
                self.due.remove(&part);
                self.end(part, How::Saved, Some(0)).await;
            }
            Order::Stop { .. } | Order::StopAt { .. } | Order::Forget { .. } | Order::Discard { .. } => {}
        }
    }

    async fn begin(&mut self, part: PartId) {
        let Some((_, task)) = self.tasks.get(&part) else { return };
        let seconds = Duration::from_secs_f64(task.command[1].parse().unwrap());
        let code = task.command[2].parse().unwrap();
        self.tell(part, Told::Started).await;
        self.due.insert(part, (Stopwatch::start(), seconds, code));
    }

    async fn end_due(&mut self) {
        let over = |(since, length, _): &(Stopwatch, Duration, i32)| since.took() >= *length;
        let done: Vec<_> =
            self.due.iter().filter(|(_, due)| over(due)).map(|(part, due)| (*part, due.2)).collect();
        for (part, code) in done {
            self.due.remove(&part);
            let how = if code == 0 { How::Finished } else { How::Crashed };
            self.end(part, how, Some(code)).await;
        }
    }

    /// The part of a job that it knows.
    pub(super) fn part_of(&self, job: u64) -> Option<PartId> {
        self.parts.keys().copied().find(|part| part.job == JobId(job))
    }
}

fn is_end(told: &Told) -> bool {
    matches!(told, Told::Ended(_))
}
