//! The driver: one thread that owns the engine and its journal. It takes whatever waits, makes it durable in one
//! transaction, and only then steps the engine and answers. If it cannot be made durable, nothing is stepped:
//! clients are refused with the cause, what was heard is kept and tried again, and jobs run on.
//!
//! What is absent: decisions, which are the engine's, and how processes are run, which is a backend's (`exec`).

mod allowance;
mod aside;
mod audience;
mod cards;
mod clients;
pub(crate) mod clock;
mod config;
mod effects;
mod events;
mod explain;
mod hosts;
mod idling;
mod jobs;
mod logs;
pub(crate) mod machines;
mod nodes;
mod publish;
mod recovery;
mod removal;
mod replay;
mod room;
mod running;
mod staging;
mod steering;
mod training;
mod turn;
mod waiting;
mod what_if;
mod widen;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use tokio::sync::{broadcast, mpsc};
use yard_core::forecast::record::Record as Estimates;
use yard_core::ids::JobId;
use yard_core::units::Span;
use yard_core::{Engine, State};

use self::clock::Clock;
pub use self::config::{Config, DriverLimits, Meter, NoMeter};
use self::hosts::Hosts;
use self::idling::Idling;
use self::jobs::Records;
use self::logs::Logs;
use self::staging::{Failing, Staged};
use self::waiting::Waiting;
use crate::board::Board;
use crate::exec::{Backend, HostId};
use crate::forecaster::{Forecaster, MakePlacer};
use crate::handle::{Ask, Handle, Reply};
use crate::planner::{MakePolicy, Planner, PlannerAnswer};
use crate::store::{Derived, Store, StoreError, pack};

/// Asks that may wait before who asks has to.
const ASKS_WAITING_MAX: usize = 16_384;

/// Events that a listener may be behind before it has to read them from the history.
const EVENTS_BEHIND_MAX: usize = 16_384;

/// Owns the engine.
pub struct Driver {
    config: Config,
    store: Store,
    engine: Engine,
    backend: Box<dyn Backend>,
    hosts: Hosts,
    records: Records,
    planner: Planner,
    clock: Clock,
    logs: Logs,
    /// What is to be made durable next.
    staged: Staged,
    /// Who is answered once the board shows what became of its job.
    answers: Vec<(JobId, Vec<String>, Reply<crate::views::JobView>)>,
    /// What followed from what was.
    derived: Derived,
    /// The last input that was stepped.
    seq: u64,
    /// Why nothing can be made durable now.
    failing: Option<Failing>,
    /// What people should see of this turn.
    board: Arc<RwLock<Board>>,
    events: broadcast::Sender<Arc<crate::views::EventView>>,
    changed_jobs: BTreeSet<JobId>,
    changed_hosts: BTreeSet<HostId>,
    /// Nodes that were removed in this turn.
    forgotten: Vec<String>,
    /// Jobs on the board that are over, oldest first.
    ended: VecDeque<u64>,
    prices: Vec<f64>,
    devices_held: u64,
    /// When everything that is due was last looked after.
    looked: Span,
    waiting: Waiting,
    idling: Idling,
    /// The input that the newest snapshot holds, and whether one is being packed.
    snapshot: u64,
    packing: bool,
    packed: mpsc::UnboundedSender<Packed>,
    forecaster: Forecaster,
    /// Inputs of the journal that made the scheduler fail and were set aside.
    set_aside: u64,
    /// Asked to end: when, and who waits for it.
    ending: Option<(Span, Vec<Reply<()>>)>,
}

/// A state made ready to be stored, and how estimates turned out by then.
struct Packed {
    seq: u64,
    bytes: std::io::Result<Vec<u8>>,
    estimates: std::io::Result<Vec<u8>>,
}

impl Packed {
    fn new(seq: u64, state: &State, estimates: &Mutex<Estimates>) -> Packed {
        let estimates = pack(&*estimates.lock().unwrap_or_else(PoisonError::into_inner));
        Packed { seq, bytes: pack(state), estimates }
    }
}

/// What wakes the driver.
struct Sources {
    asks: mpsc::Receiver<Ask>,
    answers: mpsc::UnboundedReceiver<PlannerAnswer>,
    packed: mpsc::UnboundedReceiver<Packed>,
}

impl Driver {
    /// Recovers what was, and starts the thread. It ends after `Ask::Shutdown`, or when the last handle is gone.
    pub fn start(
        mut config: Config,
        make: MakePolicy,
        placer: MakePlacer,
    ) -> Result<(Handle, JoinHandle<()>), StoreError> {
        config.settings.follow(&*make());
        let estimating = config.estimates.take().map(|how| (how, make.clone()));
        let (mut driver, answers, packed_receiver) = aside::recover_all(
            || Store::open(&config.data),
            |store, replaying| {
                let (planner, answers) = Planner::new(make.clone(), config.plan_cap, config.plan_rest);
                let (packed, packed_receiver) = mpsc::unbounded_channel();
                let driver = recovery::recover(config.clone(), store, placer(), planner, packed, replaying)?;
                Ok((driver, answers, packed_receiver))
            },
        )?;
        estimating.into_iter().for_each(|(how, make)| driver.forecaster.begin(how, make));
        driver.begin()?;
        let (asks, asks_receiver) = mpsc::channel(ASKS_WAITING_MAX);
        let handle = Handle { asks, board: driver.board.clone(), events: driver.events.clone() };
        let sources = Sources { asks: asks_receiver, answers, packed: packed_receiver };
        let path = driver.store.path().to_owned();
        let thread = std::thread::Builder::new().name("yard-driver".into());
        let thread = thread.spawn(move || driver.run(sources));
        Ok((handle, thread.map_err(|source| StoreError::Io { path, source })?))
    }
}

#[cfg(test)]
mod tests;
