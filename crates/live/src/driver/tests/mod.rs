//! The driver as clients and agents see it: through a handle, with agents that are scripts and links in memory.

mod agent;
mod aside;
mod audience;
mod bounds;
mod cards;
mod crashes;
mod durability;
mod fields;
mod greedy;
mod hostile;
mod idling;
mod lengths;
mod life;
mod machines;
mod membership;
mod nodes;
mod parts;
mod places;
mod policies;
mod priorities;
mod promises;
mod replay;
mod scripted;
mod secrets;
mod steering;
mod stopping;
mod training;
mod upgrade;
mod what_if;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use yard_core::Settings;
use yard_core::ids::JobId;
use yard_core::units::Span;

use self::agent::Agent;
use super::{Config, Driver};
use crate::api::EventFilter;
use crate::board::Board;
use crate::exec::Terms;
use crate::handle::{Ask, Handle, Refusal, Who};
use crate::history::History;
use crate::planner::MakePolicy;
use crate::request::JobRequest;
use crate::scratch::Scratch;
use crate::views::{EventView, JobView};

/// Long enough for a machine that does much else; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server without a network.
struct Rig {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    dir: Arc<Scratch>,
}

fn config(dir: &Path) -> Config {
    let mut config = Config::new(dir);
    config.settings = Settings { round: Span::ZERO, backoff: Span(20_000), ..config.settings };
    config.policy = "fifo-fit".into();
    config.terms = terms(30_000_000, 1_000_000, 100_000);
    (config.progress, config.retry) = (Span::ZERO, Span(20_000));
    config
}

/// How agents are dealt with: lease, beat and margin in microseconds.
fn terms(lease: u64, beat: u64, margin: u64) -> Terms {
    Terms { lease: Span(lease), beat: Span(beat), margin: Span(margin), ..Terms::default() }
}

fn packs() -> crate::MakePlacer {
    Arc::new(|| yard_policies::placers::placer("pack").unwrap())
}

fn policy(name: &'static str) -> MakePolicy {
    Arc::new(move || yard_policies::make(name, Arc::from([])).unwrap().1)
}

impl Rig {
    fn new() -> Rig {
        Rig::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut Config)) -> Rig {
        Rig::at(Arc::new(Scratch::new()), change)
    }

    fn at(dir: Arc<Scratch>, change: impl FnOnce(&mut Config)) -> Rig {
        let mut config = config(dir.path());
        change(&mut config);
        let name = if config.policy == "las" { "las" } else { "fifo-fit" };
        Rig::run(dir, config, policy(name))
    }

    fn run(dir: Arc<Scratch>, config: Config, make: MakePolicy) -> Rig {
        let (handle, thread) = Driver::start(config, make, packs()).unwrap();
        Rig { handle, thread: Some(thread), dir }
    }

    async fn submit(&self, request: JobRequest) -> JobView {
        self.try_submit("ann", request, None).await.unwrap()
    }

    async fn try_submit(
        &self,
        user: &str,
        request: JobRequest,
        key: Option<&str>,
    ) -> Result<JobView, Refusal> {
        let (request, key) = (Box::new(request), key.map(str::to_owned));
        self.handle.ask(|reply| Ask::Submit { who: who(user), request, key, room: None, reply }).await
    }

    async fn cancel(&self, user: &str, job: u64) -> Result<JobView, Refusal> {
        let reason = Some("changed my mind".to_owned());
        self.handle
            .ask(|reply| Ask::Cancel { who: who(user), job: JobId(job), reason, force: false, reply })
            .await
    }

    async fn kill(&self, user: &str, job: u64) -> Result<JobView, Refusal> {
        let (who, job) = (who(user), JobId(job));
        self.handle.ask(|reply| Ask::Cancel { who, job, reason: None, force: true, reply }).await
    }

    async fn sever(&self, node: &str) {
        let node = node.to_owned();
        self.handle.ask(|reply| Ask::Sever { node, reply }).await.unwrap();
    }

    async fn remove(&self, node: &str) -> Result<(), Refusal> {
        let (who, node) = (Who { user: "root".into(), admin: true }, node.to_owned());
        self.handle.ask(|reply| Ask::Remove { who, node, reply }).await
    }

    async fn drain(&self, node: &str, drain: bool) -> Result<(), Refusal> {
        let (who, node) = (Who { user: "root".into(), admin: true }, node.to_owned());
        let reason = Some("new fans".to_owned());
        self.handle.ask(|reply| Ask::Drain { who, node, drain, evict: false, reason, reply }).await
    }

    fn look<T>(&self, look: impl FnOnce(&Board) -> T) -> T {
        look(&self.handle.board.read().unwrap())
    }

    fn job(&self, id: u64) -> Option<JobView> {
        self.look(|board| board.jobs.get(&id).map(|job| JobView::clone(job)))
    }

    /// Waits until the board shows what is wanted.
    async fn until(&self, what: &str, wanted: impl Fn(&Board) -> bool) {
        let all = async {
            while !self.look(&wanted) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            panic!("not {what}: {:#?}", self.look(Board::clone));
        }
    }

    async fn until_state(&self, id: u64, state: &str) -> JobView {
        self.until(&format!("job {id} {state}"), |board| {
            board.jobs.get(&id).is_some_and(|job| job.state == state)
        })
        .await;
        self.job(id).unwrap()
    }

    async fn until_node(&self, name: &str, state: &str) {
        self.until(&format!("node {name} {state}"), |board| {
            board.nodes.get(name).is_some_and(|node| node.state == state)
        })
        .await;
    }

    fn history(&self) -> History {
        History::open(self.dir.path(), Span::from_whole_secs(60)).unwrap()
    }

    /// Names of all events of a job so far, once the last of them is there.
    async fn events_of(&self, job: u64, last: &str) -> Vec<EventView> {
        let history = self.history();
        loop {
            let own = history
                .events(&EventFilter { job: Some(job), limit: 10_000, ..EventFilter::default() })
                .unwrap();
            if own.last().is_some_and(|event| event.event == last) {
                return own;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Ends the driver in good order; what it wrote stays.
    async fn stop(mut self, leave: &[&str]) -> Arc<Scratch> {
        let leave = leave.iter().map(|name| (*name).to_owned()).collect();
        self.handle.ask(|reply| Ask::Shutdown { leave, reply }).await.unwrap();
        self.thread.take().unwrap().join().unwrap();
        self.dir.clone()
    }
}

fn who(user: &str) -> Who {
    Who { user: user.into(), admin: false }
}

/// A job that runs so many seconds and exits with a code, as `Agent::run` does it.
fn job(seconds: f64, code: i32) -> JobRequest {
    let command = vec!["run".into(), seconds.to_string(), code.to_string()];
    JobRequest { command, ..JobRequest::default() }
}

/// The same with so many devices.
fn wide(gpus: u32) -> JobRequest {
    JobRequest { gpus: Some(gpus), ..job(0.0, 0) }
}
