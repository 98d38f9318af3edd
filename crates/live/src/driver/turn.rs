//! The loop. A turn takes whatever waits, looks after what is due, makes all of it durable at once, and shows what
//! came of it. Under load more waits while one turn is written, so turns grow and the disk is asked less often.

use std::time::Duration;

use yard_core::cluster::{NodeState, Placement, Slice};
use yard_core::message::{Input, NodeChange};
use yard_core::units::{Span, Time};

use super::hosts::HostStay;
use super::{Driver, Packed, Sources};
use crate::exec::HostId;
use crate::handle::{Ask, Refusal, Reply};
use crate::planner::PlannerAnswer;

/// Asks that one transaction holds at most.
const TURN_MAX: usize = 2_048;

/// The longest that the loop sleeps: the board says when it was last round.
const SLEEP_MAX: Span = Span::from_whole_secs(1);

/// What woke the loop.
enum Woken {
    Asks(usize),
    Answer(PlannerAnswer),
    Packed(Packed),
    Due,
}

impl Driver {
    /// Runs until it is told to end or nobody can ask any more.
    pub(super) fn run(mut self, mut sources: Sources) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let Ok(runtime) = runtime else { return tracing::error!("the driver cannot wait for anything") };
        let mut asks = Vec::with_capacity(TURN_MAX);
        loop {
            let woken = runtime.block_on(self.wait(&mut sources, &mut asks));
            // Whatever woke it, all that waits goes into the same transaction.
            let more = std::iter::from_fn(|| sources.asks.try_recv().ok());
            asks.extend(more.take(TURN_MAX - asks.len()));
            let backlog = asks.len() == TURN_MAX || !sources.asks.is_empty();
            match woken {
                Woken::Asks(0) => self.end_soon(Vec::new(), None),
                Woken::Asks(_) | Woken::Due => {}
                Woken::Answer(answer) => self.take_answer(answer),
                Woken::Packed(packed) => self.keep_snapshot(packed),
            }
            self.turn(&mut asks, backlog);
            if self.is_ended() {
                break;
            }
        }
        self.end(&mut sources);
    }

    async fn wait(&self, sources: &mut Sources, asks: &mut Vec<Ask>) -> Woken {
        let sleep = tokio::time::sleep(self.sleep());
        tokio::select! {
            biased;
            Some(answer) = sources.answers.recv() => Woken::Answer(answer),
            Some(packed) = sources.packed.recv() => Woken::Packed(packed),
            count = sources.asks.recv_many(asks, TURN_MAX), if self.ending.is_none() || !sources.asks.is_closed() => {
                Woken::Asks(count)
            }
            () = sleep => Woken::Due,
        }
    }

    /// How long nothing is due.
    fn sleep(&self) -> Duration {
        let now = self.clock.elapsed();
        let left = |time: Span| Span(time.0.saturating_sub(now.0));
        let planner = self.planner.deadline().map(left);
        let looking = left(self.looked + self.look_every());
        let ending = self.ending.as_ref().map(|(until, _)| left(*until));
        let mut wait = [planner, ending].into_iter().flatten().fold(looking.min(SLEEP_MAX), Span::min);
        let waiting = self.staged.is_waiting().then_some(Span::ZERO);
        let tick = self.engine.deadline().map(|time| time - self.clock.peek());
        if let Some(work) = waiting.into_iter().chain(tick).min() {
            // While nothing can be written, only a new try is worth waking for.
            let retry = self.failing.as_ref().map_or(Span::ZERO, |failing| left(failing.retry_at));
            wait = wait.min(work.max(retry));
        }
        Duration::from_micros(wait.0)
    }

    fn look_every(&self) -> Span {
        self.backend.abilities().look_every.min(SLEEP_MAX)
    }

    pub(super) fn turn(&mut self, asks: &mut Vec<Ask>, backlog: bool) {
        let now = self.clock.now();
        asks.drain(..).for_each(|ask| self.take(now, ask));
        self.look_after(now, backlog);
        if self.engine.deadline().is_some_and(|time| time <= now) {
            self.staged.tick();
        }
        self.commit(now);
        self.show(now);
        self.answer();
        if !backlog && !self.staged.is_waiting() {
            self.flush_derived();
        }
        self.begin_snapshot();
        self.foretell();
    }

    /// Has the jobs foretold, now and then.
    fn foretell(&mut self) {
        let elapsed = self.clock.elapsed();
        if self.forecaster.wants(elapsed, self.seq) {
            self.forecaster.foretell(elapsed, self.seq, self.engine.state().clone(), &self.board);
        }
    }

    fn take(&mut self, now: Time, ask: Ask) {
        match ask {
            Ask::Submit { who, request, key, room, reply } => {
                self.take_submit(&who, *request, key, reply);
                drop(room);
            }
            Ask::Cancel { who, job, reason, force, reply } => {
                self.take_cancel(&who, job, reason, force, reply);
            }
            Ask::Steer { who, job, steering, reply } => self.take_steer(&who, job, steering, reply),
            Ask::Drain { who, node, drain, evict, reason, reply } => {
                self.take_drain(&who, &node, drain.then_some(reason), evict, reply);
            }
            Ask::Cheapest { kind, count, reply } => drop(reply.send(self.cheapest(&kind, count))),
            Ask::Explain { job, reply } => self.take_explain(job, reply),
            Ask::WhatIf { who, asked, reply } => self.take_what_if(&who, &asked, reply),
            Ask::Present { reply } => drop(reply.send(self.present())),
            Ask::View { reply } => drop(reply.send(Ok(self.engine.view()))),
            Ask::Exec(incoming) => {
                let mut notices = Vec::new();
                self.backend.hear(self.clock.elapsed(), incoming, &mut notices);
                self.heed(now, notices);
            }
            Ask::Sever { node, reply } => self.take_sever(now, &node, reply),
            Ask::Remove { who, node, reply } => self.take_remove(&who, &node, reply),
            Ask::Logs { who, log, reply } => self.take_logs(now, &who, log, reply),
            Ask::LogsMore { request, pieces } => self.grant_log(now, request, pieces),
            Ask::Shutdown { leave, reply } => self.end_soon(leave, Some(reply)),
        }
    }

    pub(super) fn take_answer(&mut self, answer: PlannerAnswer) {
        self.config.meter.plan(answer.took);
        let verdict = self.planner.hear(self.clock.elapsed(), answer);
        self.act_on(verdict);
    }

    /// What is due though nobody asked. Silence is judged only once everything that came in was heard.
    fn look_after(&mut self, now: Time, backlog: bool) {
        let elapsed = self.clock.elapsed();
        if let Some(verdict) = self.planner.overdue(elapsed) {
            self.act_on(verdict);
        }
        if self.planner.rested(elapsed) {
            // The next policy knows nothing: it must be told everything.
            self.staged.keep(Input::Begin(Box::new(self.config.settings.clone())));
        }
        if backlog || elapsed < self.looked + self.look_every() {
            return;
        }
        self.looked = elapsed;
        let mut notices = Vec::new();
        self.backend.look(elapsed, &mut notices);
        self.heed(now, notices);
        self.look_for_gone(now);
        self.call_off_logs(now);
        self.show_times(now);
        self.look_for_idle();
        self.look_for_waiting();
        self.look_for_waste();
    }

    /// Packs a snapshot on a thread of its own once enough happened since the last.
    fn begin_snapshot(&mut self) {
        if self.packing || self.seq - self.snapshot < self.config.snapshot_every || self.failing.is_some() {
            return;
        }
        let (seq, state, packed) = (self.seq, self.engine.state().clone(), self.packed.clone());
        let estimates = self.forecaster.keep();
        let thread = std::thread::Builder::new().name("yard-snapshot".into());
        let started = thread.spawn(move || drop(packed.send(Packed::new(seq, &state, &estimates))));
        self.packing = started.is_ok();
    }

    pub(super) fn keep_snapshot(&mut self, packed: Packed) {
        self.packing = false;
        // Tried again after as many inputs, whatever came of it.
        self.snapshot = packed.seq;
        let path = self.store.path().to_owned();
        let io = |source| crate::store::StoreError::Io { path: path.clone(), source };
        let events = self.config.limits.events;
        let bytes = packed.bytes.map_err(io);
        if let Err(error) = bytes.and_then(|bytes| self.store.write_snapshot(packed.seq, &bytes, events)) {
            tracing::warn!(%error, "no snapshot was written; a restart takes longer");
        }
        let estimates = packed.estimates.map_err(io);
        if let Err(error) = estimates.and_then(|record| self.store.write_estimates(&record)) {
            tracing::warn!(%error, "how estimates turned out was not kept; that is learned anew after a restart");
        }
    }

    /// Begins to end: jobs on nodes that go away with this process save first.
    fn end_soon(&mut self, leave: Vec<String>, reply: Option<Reply<()>>) {
        let leaving: Vec<_> = leave.iter().filter_map(|name| self.hosts.named(name)).collect();
        let grace = self.longest_grace(&leaving);
        let room = if leaving.is_empty() { Span::ZERO } else { self.backend.abilities().margin };
        let until = self.clock.elapsed() + grace + room;
        for host in leaving {
            let host = self.hosts.get_mut(host);
            (host.stay, host.state) = (HostStay::Leaves, NodeState::Down);
            let nodes = host.nodes.clone();
            nodes.iter().for_each(|node| self.staged.keep(Input::Node(NodeChange::Leave(*node))));
        }
        let (_, replies) = self.ending.get_or_insert_with(|| (until, Vec::new()));
        replies.extend(reply);
    }

    /// The longest time that a job on these hosts has to save and stop.
    fn longest_grace(&self, hosts: &[HostId]) -> Span {
        let owner = |slice: &Slice| self.hosts.of_node(slice.node);
        let there =
            |placement: &Placement| placement.0.iter().filter_map(owner).any(|host| hosts.contains(&host));
        let holding = self.records.holding.iter().filter_map(|job| self.records.all.get(job));
        let there = holding.filter(|record| record.held.as_ref().is_some_and(|(_, at)| there(at)));
        there.map(|record| record.grace(self.config.grace_max)).max().unwrap_or_default()
    }

    /// Whether nothing is left to wait for.
    fn is_ended(&self) -> bool {
        let Some((until, _)) = &self.ending else { return false };
        let leaves = |host| self.hosts.get(host).stay == HostStay::Leaves;
        let leaving = |node| self.hosts.of_node(node).is_some_and(leaves);
        let held = || self.engine.leases().flat_map(|held| held.placement.0).any(|slice| leaving(slice.node));
        let waits = self.staged.is_waiting() && self.failing.is_none();
        self.clock.elapsed() >= *until || !waits && !held()
    }

    /// The last that is done: everything is on disk, and a restart need not replay the journal.
    fn end(&mut self, sources: &mut Sources) {
        sources.asks.close();
        self.flush_derived();
        self.keep_snapshot(Packed::new(self.seq, self.engine.state(), &self.forecaster.keep()));
        let gone = || Refusal::Unavailable("the scheduler is shutting down; try again in a moment".into());
        let replies = self.ending.take().map(|(_, replies)| replies).unwrap_or_default();
        replies.into_iter().for_each(|reply| drop(reply.send(Ok(()))));
        while let Ok(ask) = sources.asks.try_recv() {
            if let Ask::Submit { reply, .. } | Ask::Cancel { reply, .. } | Ask::Steer { reply, .. } = ask {
                let _ = reply.send(Err(gone()));
            }
        }
    }
}
