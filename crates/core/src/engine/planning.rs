//! When to ask for a plan, what to do with the answer, and the round that follows.

use std::sync::Arc;

use super::Engine;
use super::fallback;
use super::leasing::Stop;
use super::takers::Takers;
use crate::allocation::{self, Allocation, Mode};
use crate::book::{self, Jobs};
use crate::cluster::{NodeState, Slice};
use crate::ids::{LeaseId, PlanId};
use crate::invariants;
use crate::job::JobSpec;
use crate::leases::{Lease, LeaseState};
use crate::message::{Command, Effect, Event, Why};
use crate::rounds::{self, Decision, Turning};
use crate::settings::Settings;
use crate::state::State;
use crate::turns::{GavelTurns, Turns};
use crate::units::{Span, Time};
use crate::view::{Changed, View};

/// Rounds in which a job at the head may be kept waiting by scattered devices before all are placed anew.
const BLOCKED_ROUNDS_MAX: u32 = 3;

/// How long after a failed plan the next one is asked for.
const RETRY: Span = Span::from_whole_secs(10);

impl Engine {
    /// How long before it lapses a lease is renewed.
    pub(super) fn slack(&self) -> Span {
        Span(self.state.settings.lease.0 / 2)
    }

    /// When who-runs should next be decided: at once or at the next beat that has not been.
    pub fn next_round(&self) -> Option<Time> {
        let state = &self.state;
        // Without beats one plan is made at a time, and what happens meanwhile is the next one's matter: a plan
        // that each event superseded would never be done.
        if state.plan.is_some() && state.settings.round == Span::ZERO {
            return None;
        }
        let wanted = if state.takes_turns() && state.book.has_turns() {
            Some(state.now)
        } else if state.dirty {
            // Beats go on while a plan has to wait for its time; without beats there is nothing to do before.
            Some(if state.settings.round > Span::ZERO { state.now } else { state.plan_time() })
        } else {
            state.replan_at.map(|time| time.max(state.now))
        };
        let beat = wanted?.round_up(state.settings.round);
        let taken = state.last_round == Some(beat) && state.settings.round > Span::ZERO;
        Some(if taken { beat + state.settings.round } else { beat })
    }

    pub(super) fn tick(&mut self, out: &mut Vec<Effect>) {
        self.renew(out);
        self.enter_due();
        if self.state.next_look().is_some_and(|time| time <= self.state.now) {
            // What was promised does not wait for a plan.
            self.state.dirty = true;
            self.keep_promises(out);
        }
        if self.next_round().is_none_or(|time| time > self.state.now) {
            return self.fill(out);
        }
        let state = &self.state;
        let due = state.replan_at.is_some_and(|time| time <= state.now);
        let wanted = (state.dirty || state.settings.every_round) && state.plan_time() <= state.now;
        if due || wanted { self.ask(out) } else { self.round(out) }
    }

    fn renew(&mut self, out: &mut Vec<Effect>) {
        let (now, term) = (self.state.now, self.state.settings.lease);
        let until = now + term;
        for lease in self.state.leases.renew(now + self.slack(), until) {
            out.push(Effect::Execute(Command::Renew { lease, until }));
        }
    }

    /// Asks for a plan; a plan still in the making is superseded. What it was told counts as news again.
    fn ask(&mut self, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        state.believe_anew();
        state.ledger.plans += 1;
        let plan = PlanId(state.ledger.plans);
        let news = std::mem::take(&mut state.changed);
        state.newcomers.clear();
        merge(&mut state.asked, news);
        let late = state.plan.replace(plan).is_some();
        (state.dirty, state.replan_at, state.last_plan) = (false, None, Some(state.now));
        let view = self.view();
        out.push(Effect::Plan { plan, view });
        if late {
            self.round(out);
        }
    }

    /// What a policy would see now.
    pub fn view(&self) -> View {
        let state = &self.state;
        View {
            now: state.now,
            round: state.settings.round,
            specs: state.specs.clone(),
            runs: state.runs.clone(),
            nodes: state.nodes.clone(),
            kinds: state.kinds.clone(),
            belief: state.belief.clone(),
            prices: state.prices.clone(),
            lengths: state.settings.learns_lengths.then(|| state.lengths.told().clone()),
            changed: state.asked.clone(),
        }
    }

    pub(super) fn planned(
        &mut self,
        plan: PlanId,
        answer: Result<Allocation, String>,
        out: &mut Vec<Effect>,
    ) {
        if self.state.plan != Some(plan) {
            return; // A newer one was asked for meanwhile.
        }
        let state = &mut self.state;
        state.plan = None;
        let checked =
            answer.and_then(|plan| allocation::check(&plan, &state.specs, &state.runs).map(|()| plan));
        match checked {
            Ok(mut allocation) => {
                fallback::make_room(&mut allocation.shares, &state.nodes, &state.specs, &state.runs);
                self.apply(plan, allocation, out);
            }
            Err(reason) => {
                // What the plan was about is still to be answered, even if nothing else happens.
                state.replan_at = Some(state.now + RETRY);
                out.push(Effect::Publish(Event::PlanFailed { plan, reason }));
            }
        }
        let state = &mut self.state;
        state.vacant.append(&mut state.cooling);
        self.round(out);
    }

    fn apply(&mut self, plan: PlanId, mut allocation: Allocation, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        let certificate = allocation.certificate.take();
        state.prices = Arc::new(certificate.as_ref().map_or_else(Vec::new, |proof| proof.prices.clone()));
        if let Some(certificate) = certificate {
            let unmet = certificate.unmet.iter().map(|job| state.runs[job.index()].id).collect();
            out.push(Effect::Publish(Event::Planned { plan, certificate, unmet }));
        }
        state.asked = Changed::default();
        state.replan_at = allocation.replan_at.filter(|time| *time > state.now);
        let (runs, specs, leases) = (Arc::make_mut(&mut state.runs), &state.specs, &state.leases);
        let (due, bound) = (&state.promises.due, &state.promises.bound);
        // A node that takes nothing new keeps what it runs: nobody else could have its devices.
        let nodes = &state.nodes;
        let takes = |slice: &Slice| nodes.get(slice.node).state == NodeState::Up;
        let parked =
            |lease: &Lease| lease.state == LeaseState::Granted && !lease.placement.0.iter().any(takes);
        let fixed = |id: LeaseId| {
            let kept = |lease: &Lease| lease.is_fixed(specs) || lease.is_due(due) || parked(lease);
            leases.get(id).is_some_and(kept) || bound.contains_key(&id)
        };
        // Nobody joins who has what it was promised, or is reckoned to be done by a time: it would be slower.
        let granted = |id: LeaseId| {
            let lease = leases.get(id).filter(|lease| lease.state == LeaseState::Granted);
            lease.is_some_and(|lease| !lease.is_due(due)) && !bound.contains_key(&id)
        };
        let held = book::Held { fixed: &fixed, granted: &granted };
        let applied = state.book.apply(allocation, state.now, state.settings.turns, specs, runs, held);
        for lease in applied.ended {
            self.state.release(lease);
            self.end_lease(lease, Why::Preempted, out);
        }
        for lease in applied.regrouped {
            self.regroup(lease, out);
        }
    }

    /// Between rounds: free devices go to whoever waits, in the order in force, newcomers last.
    fn fill(&mut self, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        if !state.fills() {
            return;
        }
        state.loose = false;
        state.admit_newcomers();
        if !state.book.has_waiting() || state.nodes.is_full() {
            return;
        }
        let gate = state.gate();
        let turning = state.turning();
        let promised = rounds::fill(rounds::Parts {
            book: &mut state.book,
            nodes: Arc::make_mut(&mut state.nodes),
            leases: &mut state.leases,
            placer: &*self.placer,
            young: &|_| false,
            fixed: &|_, _| false,
            turning,
            homes: rounds::Homes { resting: &state.resting, runs: &state.runs },
            gate: &gate,
            apart: state.settings.apart,
        });
        drop(gate);
        self.state.note_bound(&promised);
        for lease in promised {
            self.grant_if_idle(lease, out);
        }
    }

    fn round(&mut self, out: &mut Vec<Effect>) {
        self.keep_promises(out);
        let gate = self.state.gate();
        let state = &mut self.state;
        state.ledger.rounds += 1;
        state.loose = false;
        state.last_round = Some(state.now);
        // In Gavel's simulator whoever is there counts in a round, planned for or not.
        if matches!(state.settings.turns, Turns::Gavel(GavelTurns { leftovers: true, .. })) {
            state.admit_newcomers();
        }
        let turning = state.turning();
        // Where nobody is stopped for another, nobody is moved about either.
        let repack = state.preempts() && (state.settings.repack || state.blocked_rounds > BLOCKED_ROUNDS_MAX);
        let (specs, now, rotates) = (state.specs.clone(), state.now, state.rotates());
        let young = |lease: &Lease| rotates && is_young(lease, &specs, now);
        let (due, bound) = (state.promises.due.clone(), state.promises.bound.clone());
        let fixed =
            |id, lease: &Lease| lease.is_fixed(&specs) || lease.is_due(&due) || bound.contains_key(&id);
        let decision = rounds::decide(
            rounds::Parts {
                book: &mut state.book,
                nodes: Arc::make_mut(&mut state.nodes),
                leases: &mut state.leases,
                placer: &*self.placer,
                young: &young,
                fixed: &fixed,
                turning,
                homes: rounds::Homes { resting: &state.resting, runs: &state.runs },
                gate: &gate,
                apart: state.settings.apart,
            },
            repack,
        );
        invariants::head_runs(state, &*self.placer, decision.head, repack, &gate);
        drop(gate);
        state.count_blocked(&decision, repack);
        self.carry_out(decision, out);
    }

    /// Ends and grants what was decided.
    pub(super) fn carry_out(&mut self, decision: Decision, out: &mut Vec<Effect>) {
        let takers = Takers::of(&decision.promised);
        self.state.note_bound(&decision.promised);
        for lease in decision.ended {
            let why = if self.state.goes_on(lease) { Why::Moved } else { Why::Preempted };
            let ended = self.state.leases.get(lease).expect("a lease that ends is on record");
            let to = takers.after(&self.state, ended);
            self.end_lease(lease, Stop { why, to }, out);
        }
        for lease in decision.promised {
            self.grant_if_idle(lease, out);
        }
    }
}

impl State {
    /// Whether who runs changes as time passes, and not only when something happens.
    fn rotates(&self) -> bool {
        self.settings.every_round || self.book.mode.takes_turns()
    }

    /// Whether a round is wanted though nothing happened; without a beat there is no time for it.
    fn takes_turns(&self) -> bool {
        self.rotates() && self.settings.round > Span::ZERO
    }

    /// Whether free devices should be given out now, though no round is due.
    pub(super) fn fills(&self) -> bool {
        self.loose && self.settings.fill && self.settings.round > Span::ZERO
    }

    /// Whether a job may be stopped for another.
    pub(crate) fn preempts(&self) -> bool {
        !matches!(self.book.mode, Mode::Ordered { preempt: false, .. })
    }

    /// Counts the rounds that the head has waited for devices that lie together. One that finds no place even
    /// when everybody is placed anew is not waited for again until another is first or nodes change.
    fn count_blocked(&mut self, decision: &Decision, repacked: bool) {
        let head = invariants::waiting_head(self, decision.head);
        if head.is_none() || head != self.hopeless {
            self.hopeless = head.filter(|_| repacked);
        }
        let waits = decision.fragmented && head.is_some() && head != self.hopeless;
        self.blocked_rounds = if waits { self.blocked_rounds + 1 } else { 0 };
    }

    /// Whether a job of a lease that ends has devices elsewhere already.
    fn goes_on(&self, lease: LeaseId) -> bool {
        let jobs = self.leases.get(lease).into_iter().flat_map(|ended| &ended.jobs);
        let mut shares = jobs.flat_map(|job| self.book.shares_of(*job));
        shares.any(|share| self.book.entry(*share).lease.is_some())
    }

    /// The earliest time for the next plan. The clock of Gavel's simulator takes 0 for "never", so that the plan
    /// after one at 0 need not wait.
    fn plan_time(&self) -> Time {
        let last = self.last_plan.filter(|time| *time > Time::ZERO);
        last.map_or(self.now, |time| time + self.settings.plan_gap)
    }

    /// Jobs that no plan has named yet wait behind all others.
    fn admit_newcomers(&mut self) {
        for job in std::mem::take(&mut self.newcomers) {
            if self.run(job).is_active() {
                self.book.append(job, self.now, &self.specs, &self.runs);
            }
        }
    }

    /// For the order of shares of time, with the accounts it goes by up to date.
    pub(super) fn turning(&mut self) -> Turning {
        let Settings { turns, round, .. } = self.settings;
        if self.book.mode.takes_turns() {
            self.book.account(&Jobs { now: self.now, turns, specs: &self.specs, runs: &self.runs });
        }
        Turning { turns, now: self.now, round }
    }
}

/// Whether stopping a lease now would waste more than half of its time on starting and saving. Where jobs
/// take turns, rounds shorter than that would move them about without end and get nothing done.
fn is_young(lease: &Lease, specs: &[Arc<JobSpec>], now: Time) -> bool {
    let restart = lease.jobs.iter().map(|job| specs[job.index()].costs.restart()).max().unwrap_or_default();
    lease.state == LeaseState::Granted && now - lease.granted_at < Span(restart.0.saturating_mul(2))
}

fn merge(into: &mut Changed, news: Changed) {
    into.all |= news.all;
    into.nodes |= news.nodes;
    let pairs =
        [(&mut into.ended, news.ended), (&mut into.added, news.added), (&mut into.touched, news.touched)];
    for (rows, more) in pairs {
        rows.extend(more);
        // A row may have been used twice between two plans.
        rows.sort_unstable();
        rows.dedup();
    }
}
