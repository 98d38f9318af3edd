//! What people see: after each turn the board gets what changed, and nothing else. Events are told once they are in
//! the history, so that who reads it first and listens then misses none.

use std::sync::Arc;

use yard_core::ids::JobId;
use yard_core::units::{Span, Time};

use super::Driver;
use super::hosts::Host;
use crate::exec::HostId;
use crate::store::Derived;
use crate::views::{NodeView, StatusView};

impl Driver {
    /// Puts on the board what this turn changed.
    pub(super) fn show(&mut self, now: Time) {
        let changed = std::mem::take(&mut self.changed_jobs);
        let mut views = Vec::with_capacity(changed.len());
        for job in changed {
            self.refresh(now, job);
            let record = self.records.all.get_mut(&job);
            views.extend(record.map(|record| (record.view.clone(), record.loss.take())));
        }
        let ended: Vec<_> = self.derived.ended.iter().map(|ended| ended.view.clone()).collect();
        let (elapsed, idle) = (self.clock.elapsed(), self.config.idle);
        let hosts = std::mem::take(&mut self.changed_hosts);
        let nodes = hosts.iter().filter(|host| !self.hosts.get(**host).is_gone());
        let view = |host: &HostId| NodeView {
            resources: self.counted(&self.hosts.get(*host).nodes),
            domains: self.domains_of(&self.hosts.get(*host).nodes),
            heard_s: self.heard_s(*host, elapsed),
            ..self.hosts.get(*host).view(elapsed, idle)
        };
        let nodes: Vec<_> = nodes.map(view).collect();
        let status = self.status();
        let mut board = self.board.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        board.changes.begin(now.0);
        for (mut view, loss) in views {
            board.changes.job(view.id);
            board.pace(now, &view, loss);
            // Nobody knows when a job that is held will start.
            let known = board.jobs.get(&view.id).filter(|_| view.held_by.is_none());
            view.estimate = known.and_then(|known| known.estimate);
            board.put_job(view);
        }
        for view in ended {
            board.pace(now, &view, None);
            if board.jobs.get(&view.id).is_none_or(|known| known.ended_at.is_none()) {
                self.ended.push_back(view.id);
            }
            board.changes.job(view.id);
            board.put_job(view);
        }
        while self.ended.len() > self.config.limits.ended {
            let oldest = self.ended.pop_front();
            oldest.and_then(|job| board.jobs.remove(&job));
            oldest.and_then(|job| board.paces.remove(&job));
        }
        for name in self.forgotten.drain(..) {
            board.nodes.remove(&name);
            board.changes.restart();
        }
        for node in nodes {
            board.changes.node(&node.name);
            board.put_node(node);
        }
        (board.status, board.alive) = (Some(status), now.0);
    }

    /// Brings the view of a living job up to date.
    pub(super) fn refresh(&mut self, now: Time, job: JobId) {
        let (known, idle) = (self.engine.job(job).zip(self.engine.job_spec(job)), self.idle(job));
        if let (Some((run, spec)), Some(record)) = (known, self.records.all.get_mut(&job)) {
            record.refresh(&self.engine, run, spec, now);
            record.idles(idle);
        }
    }

    /// Times that go by while nothing happens.
    pub(super) fn show_times(&mut self, now: Time) {
        let elapsed = self.clock.elapsed();
        let mut board = self.board.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        for job in &self.records.holding {
            let run = self.engine.job(*job);
            if let (Some(run), Some(view)) = (run, board.jobs.get_mut(&job.0)) {
                Arc::make_mut(view).executed_s = run.executed_at(now).secs();
            }
        }
        for (id, host) in self.hosts.ids().zip(&self.hosts.list).filter(|(_, host)| !host.is_gone()) {
            if let Some(view) = board.nodes.get_mut(&host.name) {
                Arc::make_mut(view).heard_s = self.heard_s(id, elapsed);
            }
        }
        board.alive = now.0;
    }

    /// How long ago a host was heard of.
    fn heard_s(&self, host: HostId, elapsed: Span) -> Option<f64> {
        self.backend.heard(host).map(|heard| Span(elapsed.0.saturating_sub(heard.0)).secs())
    }

    fn status(&self) -> StatusView {
        let (ledger, nodes, kinds) = (self.engine.ledger(), self.engine.nodes(), self.engine.kinds());
        let up = |host: &&Host| host.state == yard_core::cluster::NodeState::Up;
        let running = self.records.holding.len() as u64;
        let prices = kinds.ids().zip(&self.prices).map(|(kind, price)| (kinds.name(kind).to_owned(), *price));
        StatusView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: self.config.policy.clone(),
            round_s: self.config.settings.round.secs(),
            pending: self.records.all.len() as u64 - running,
            running,
            ended: ledger.ended,
            nodes_up: self.hosts.list.iter().filter(up).count() as u64,
            devices: kinds.ids().map(|kind| nodes.up(kind) as u64).sum(),
            devices_held: self.devices_held,
            prices: prices.collect(),
            rounds: ledger.rounds,
            plans: ledger.plans,
            set_aside: self.set_aside,
        }
    }

    /// Writes what followed from inputs, where nothing else is written soon that could carry it.
    pub(super) fn flush_derived(&mut self) {
        if self.derived.is_empty() || self.failing.is_some() {
            return;
        }
        match self.store.write_derived(&self.derived) {
            Ok(()) => self.tell_derived(),
            Err(error) => tracing::debug!(%error, "events are written later"),
        }
    }

    /// Tells who listens what is in the history now.
    pub(super) fn tell_derived(&mut self) {
        let Derived { seq, events, .. } = std::mem::take(&mut self.derived);
        self.derived.seq = seq;
        for event in events {
            // Nobody may be listening.
            let _ = self.events.send(event);
        }
    }
}
