//! From the store to a driver that goes on: the newest snapshot, and every input after it, stepped again. What those
//! wanted done is dropped: the backend finds out what runs, and is told what the engine believes. Facts
//! that were not written before the server went down are made again on the way.

use std::sync::{Arc, RwLock};

use tokio::sync::{broadcast, mpsc};
use yard_core::Engine;
use yard_core::cluster::{Kinds, NodeState};
use yard_core::ids::NodeId;
use yard_core::job::{JobSpec, Shape};
use yard_core::message::Input;
use yard_core::policy::Placer;
use yard_core::units::Time;

use super::aside::Replaying;
use super::clock::Clock;
use super::hosts::{Host, former_name};
use super::jobs::JobPapers;
use super::{Config, Driver, EVENTS_BEHIND_MAX, Packed};
use crate::forecaster::PAST_MAX;
use crate::planner::Planner;
use crate::store::{Derived, NodeRow, Store, StoreError};
use crate::translate::translate;
use crate::views::JobView;

/// A driver as the last one was, which has not begun yet.
pub(super) fn recover(
    config: Config,
    store: Store,
    placer: Box<dyn Placer>,
    planner: Planner,
    packed: mpsc::UnboundedSender<Packed>,
    replaying: &Replaying,
) -> Result<Driver, StoreError> {
    let (seq, engine) = restore(&config, &store, placer)?;
    let backend = (config.backend.make)(&config)?;
    let derived = Derived { seq: store.derived()?, ..Derived::default() };
    let mut driver = Driver {
        config,
        engine,
        backend,
        hosts: Default::default(),
        records: Default::default(),
        planner,
        clock: Clock::new(Time::ZERO),
        logs: Default::default(),
        staged: Default::default(),
        answers: Vec::new(),
        derived,
        seq,
        failing: None,
        board: Arc::new(RwLock::default()),
        events: broadcast::channel(EVENTS_BEHIND_MAX).0,
        changed_jobs: Default::default(),
        changed_hosts: Default::default(),
        forgotten: Vec::new(),
        ended: Default::default(),
        prices: Vec::new(),
        devices_held: 0,
        looked: Default::default(),
        waiting: Default::default(),
        idling: Default::default(),
        snapshot: seq,
        packing: false,
        forecaster: Default::default(),
        packed,
        set_aside: replaying.count() as u64,
        ending: None,
        store,
    };
    driver.load_jobs()?;
    driver.replay(replaying)?;
    driver.load_hosts()?;
    driver.load_past()?;
    driver.load_estimates()?;
    Ok(driver)
}

fn restore(config: &Config, store: &Store, placer: Box<dyn Placer>) -> Result<(u64, Engine), StoreError> {
    let Some((seq, state)) = store.snapshot()? else {
        return Ok((0, Engine::new(config.settings.clone(), Kinds::default(), placer)));
    };
    let engine = Engine::restore(state, placer).map_err(|error| StoreError::Damaged {
        path: store.path().to_owned(),
        what: format!("the snapshot at input {seq}"),
        reason: error.to_string(),
    })?;
    Ok((seq, engine))
}

impl Driver {
    /// The first inputs of every start. No host can be reached yet, so no node may be given anything.
    pub(super) fn begin(&mut self) -> Result<(), StoreError> {
        self.staged.keep(Input::Begin(Box::new(self.config.settings.clone())));
        self.believe();
        self.hosts.ids().for_each(|host| self.settle(host));
        let now = self.clock.now();
        self.commit_after(None, now);
        if let Some(failing) = self.failing.take() {
            return Err(failing.error);
        }
        self.show(now);
        Ok(())
    }

    /// Tells the engine what the catalog knows of jobs that share devices.
    pub(super) fn believe(&mut self) {
        let belief = self.config.catalog.belief(self.kinds());
        let belief = match self.config.learn {
            true => Some(belief.unwrap_or_default().learning()),
            false => belief,
        };
        if let Some(belief) = belief {
            self.staged.keep(Input::Believe(Box::new(belief)));
        }
    }

    fn load_jobs(&mut self) -> Result<(), StoreError> {
        for row in self.store.open_jobs()? {
            self.records.insert(row.id, JobPapers::restore(row));
        }
        Ok(())
    }

    /// Steps the journal behind the snapshot.
    fn replay(&mut self, replaying: &Replaying) -> Result<(), StoreError> {
        let written = self.derived.seq;
        let mut entries = Vec::new();
        self.store.replay(self.seq, |entry| entries.push(entry))?;
        let mut last = Time::ZERO;
        for entry in entries {
            last = entry.time;
            let input = replaying.input(entry.seq, entry.input);
            if entry.seq > written {
                let ended = self.derived.ended.len();
                self.step_engine(entry.time, input);
                replaying.explain(entry.seq, &mut self.derived.ended[ended..]);
            } else {
                self.seq = entry.seq;
                self.engine.step(entry.time, input, &mut Vec::new());
            }
        }
        replaying.done();
        self.clock = Clock::new(last.max(self.engine.view().now));
        Ok(())
    }

    /// The hosts that ever joined, none of them within reach; and who holds their devices.
    fn load_hosts(&mut self) -> Result<(), StoreError> {
        let now = self.clock.elapsed();
        for row in self.store.nodes()? {
            let nodes = self.nodes_of(&row);
            let mut host = Host::new(row, nodes);
            let down = |node: &NodeId| self.engine.nodes().get(*node).state == NodeState::Down;
            host.state = if host.nodes.iter().all(down) { NodeState::Down } else { NodeState::Up };
            let id = self.hosts.add(host);
            self.changed_hosts.insert(id);
        }
        self.retire_former();
        self.devices_held = 0;
        let held: Vec<_> = self.engine.leases().collect();
        for held in held {
            self.devices_held += held.placement.devices() as u64;
            held.jobs.iter().for_each(|job| self.take_up(job.job, held.lease, &held.placement));
        }
        self.changed_jobs.extend(self.records.all.keys());
        let survived = self.survived();
        self.backend.restore(now, survived);
        Ok(())
    }

    /// Who came and how long they took, for forecasts. Jobs that no kind of today could serve say nothing.
    fn load_past(&mut self) -> Result<(), StoreError> {
        self.forecaster.forget();
        let offers = self.offers();
        for row in self.store.newest_jobs(PAST_MAX)? {
            let spec = translate(&row.user, &row.request, self.kinds(), &*self.config.catalog, &offers);
            let Ok(spec) = spec else { continue };
            self.forecaster.came(row.submitted, &spec);
            if let Some(view) = row.summary.filter(|view| view.state == "succeeded") {
                self.forecaster.took(&spec, self.work_of(&spec, &view));
            }
        }
        Ok(())
    }

    /// How estimates turned out.
    fn load_estimates(&mut self) -> Result<(), StoreError> {
        if let Some(record) = self.store.estimates()? {
            self.forecaster.remember(record, |job| self.engine.job(job).is_some());
        }
        Ok(())
    }

    /// How much a job did that is over: what it says, or its time at the speed it was believed to have there.
    fn work_of(&self, spec: &JobSpec, view: &JobView) -> f64 {
        let kind = view.kind.as_deref().and_then(|kind| self.kinds().find(kind));
        let there = |shape: &Shape| {
            shape.devices() == view.gpus && shape.needs.iter().any(|need| Some(need.kind) == kind)
        };
        let at = spec.shapes.iter().position(there);
        let speed = at.map_or(1.0, |at| spec.speeds[at]);
        view.step.filter(|_| spec.training.is_some()).map_or(view.executed_s * speed, |step| step as f64)
    }

    /// The newest node of the host's name with all its kinds, else of each group's name.
    fn nodes_of(&self, row: &NodeRow) -> Vec<NodeId> {
        let newest = |name: String| {
            let named = self.engine.nodes().iter().filter(|(_, node)| node.spec.name == name);
            named.last().map(|(node, _)| node)
        };
        let whole = newest(row.name.clone());
        if let Some(node) =
            whole.filter(|node| self.engine.nodes().get(*node).spec.pools.len() == row.groups.len())
        {
            return vec![node];
        }
        (0..row.groups.len()).filter_map(|at| newest(former_name(&row.name, &row.groups, at))).collect()
    }

    /// Nodes that hosts were before their devices changed, and that jobs still hold.
    fn retire_former(&mut self) {
        let held: Vec<_> = self.engine.leases().flat_map(|held| held.placement.0).collect();
        for node in held.into_iter().map(|slice| slice.node) {
            if self.hosts.of_node(node).is_some() {
                continue;
            }
            let name = &self.engine.nodes().get(node).spec.name;
            let owner = self.hosts.named(name.split('/').next().unwrap_or(name));
            if let Some(owner) = owner {
                self.hosts.retire(owner, node);
            }
        }
    }
}
