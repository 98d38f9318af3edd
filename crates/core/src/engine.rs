//! The engine: `step` is the only way in, effects are the only way out, `deadline` says when it next
//! wants a tick. It has no clock, no policy and no IO, so it cannot fail; what is wrong inside it is a
//! bug and stops it (`invariants`). Recovery is a snapshot plus `step` over the journal, effects dropped.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::allocation::{Allocation, Mode};
use crate::book;
use crate::cluster::{Kinds, NODE_DEVICES_MAX, NodeState, Nodes, Placement};
use crate::ids::{JobId, JobIdx, LeaseId, NodeId, PlanId};
use crate::invariants;
use crate::job::{JobRun, JobSpec, JobState, Shape, Spread};
use crate::leases::{Lease, LeaseState};
use crate::message::{Command, Effect, Event, Input, News, NodeChange, NodeNews, Outcome, Report, Why};
use crate::policy::Placer;
use crate::rounds;
use crate::state::{Ledger, RestoreError, STATE_VERSION, Settings, State};
use crate::units::{Span, Time};
use crate::view::{Changed, View};

/// Rounds in which a job at the head may be kept waiting by scattered devices before all are placed anew.
const BLOCKED_ROUNDS_MAX: u32 = 3;

/// How long after a failed plan the next one is asked for.
const RETRY: Span = Span::from_whole_secs(10);

/// The scheduler.
pub struct Engine {
    pub(crate) state: State,
    placer: Box<dyn Placer>,
    /// Steps since all invariants were last checked; see `check_now_and_then`.
    unchecked: usize,
}

impl Engine {
    /// An engine without nodes or jobs.
    pub fn new(settings: Settings, kinds: Kinds, placer: Box<dyn Placer>) -> Engine {
        assert!(settings.lease > Span::ZERO, "a lease lasts longer than no time");
        Engine { state: State::new(settings, kinds), placer, unchecked: 0 }
    }

    /// An engine that goes on from a saved state, to which the rest of the journal is then applied.
    pub fn restore(state: State, placer: Box<dyn Placer>) -> Result<Engine, RestoreError> {
        if state.version != STATE_VERSION {
            return Err(RestoreError::Version { found: state.version });
        }
        let engine = Engine { state, placer, unchecked: 0 };
        invariants::check(&engine.state);
        Ok(engine)
    }

    /// Everything it knows, to be saved or compared.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Its sums.
    pub fn ledger(&self) -> &Ledger {
        &self.state.ledger
    }

    /// The nodes as they are.
    pub fn nodes(&self) -> &Nodes {
        &self.state.nodes
    }

    /// The kinds' names.
    pub fn kinds(&self) -> &Kinds {
        &self.state.kinds
    }

    /// A living job's row.
    pub fn job(&self, id: JobId) -> Option<&JobRun> {
        self.state.rows.get(&id).map(|row| self.state.run(*row))
    }

    /// The number that the next submitted job will have.
    pub fn next_job(&self) -> JobId {
        JobId(self.state.ledger.submitted)
    }

    /// Another policy answers from now on, or the same one without its memory: ask it about everything.
    pub fn policy_is_new(&mut self) {
        (self.state.changed.all, self.state.dirty) = (true, true);
    }

    /// Checks every invariant. Cheap ones are asserted on the way, always.
    pub fn check(&self) {
        invariants::check(&self.state);
    }

    /// When it next wants `Input::Tick`, if nothing else happens before.
    pub fn deadline(&self) -> Option<Time> {
        let state = &self.state;
        let lapse = state.leases.next_lapse().map(|time| Time(time.0.saturating_sub(self.slack().0)));
        self.next_round().into_iter().chain(lapse).min().map(|time| time.max(state.now))
    }

    /// Takes one input at `now` and appends what it wants done.
    pub fn step(&mut self, now: Time, input: Input, out: &mut Vec<Effect>) {
        assert!(now >= self.state.now, "time went back from {} to {now}", self.state.now);
        self.state.now = now;
        match input {
            Input::Submit(spec) => self.submit(*spec, out),
            Input::Cancel(job) => self.cancel(job, out),
            Input::Node(change) => self.node(change, out),
            Input::Report(report) => self.report(report, out),
            Input::Planned { plan, answer } => self.planned(plan, answer, out),
            Input::Tick => self.tick(out),
        }
        self.check_now_and_then();
    }

    /// All invariants, often enough to catch a bug near its cause, rarely enough to cost next to nothing:
    /// the check visits all jobs, so it comes after at least as many steps.
    fn check_now_and_then(&mut self) {
        self.unchecked += 1;
        if self.unchecked > 4096.max(4 * (self.state.runs.len() + self.state.nodes.len())) {
            self.unchecked = 0;
            invariants::check(&self.state);
        }
    }

    // Rounds and plans.

    /// How long before it lapses a lease is renewed.
    fn slack(&self) -> Span {
        Span(self.state.settings.lease.0 / 2)
    }

    /// When who-runs should next be decided: at once or at the next beat that has not been.
    pub fn next_round(&self) -> Option<Time> {
        let state = &self.state;
        let wanted = if state.dirty || (state.takes_turns() && state.book.has_waiting()) {
            Some(state.now)
        } else {
            state.replan_at.map(|time| time.max(state.now))
        };
        let beat = wanted?.round_up(state.settings.round);
        let taken = state.last_round == Some(beat) && state.settings.round > Span::ZERO;
        Some(if taken { beat + state.settings.round } else { beat })
    }

    fn tick(&mut self, out: &mut Vec<Effect>) {
        self.renew(out);
        if self.next_round().is_none_or(|time| time > self.state.now) {
            return;
        }
        let state = &self.state;
        let due = state.replan_at.is_some_and(|time| time <= state.now);
        if state.dirty || due || state.settings.every_round { self.ask(out) } else { self.round(out) }
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
        state.ledger.plans += 1;
        let plan = PlanId(state.ledger.plans);
        let news = std::mem::take(&mut state.changed);
        merge(&mut state.asked, news);
        let late = state.plan.replace(plan).is_some();
        (state.dirty, state.replan_at) = (false, None);
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
            changed: state.asked.clone(),
        }
    }

    fn planned(&mut self, plan: PlanId, answer: Result<Allocation, String>, out: &mut Vec<Effect>) {
        if self.state.plan != Some(plan) {
            return; // A newer one was asked for meanwhile.
        }
        let state = &mut self.state;
        state.plan = None;
        let checked = answer.and_then(|plan| book::check(&plan, &state.specs, &state.runs).map(|()| plan));
        match checked {
            Ok(allocation) => self.apply(allocation, out),
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

    fn apply(&mut self, allocation: Allocation, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        state.asked = Changed::default();
        state.replan_at = allocation.replan_at.filter(|time| *time > state.now);
        let runs = Arc::make_mut(&mut state.runs);
        for lease in state.book.apply(allocation, state.now, &state.specs, runs) {
            self.state.release(lease);
            self.end_lease(lease, Why::Preempted, out);
        }
    }

    fn round(&mut self, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        state.ledger.rounds += 1;
        state.last_round = Some(state.now);
        if state.book.mode == Mode::Fractions {
            state.book.rank_by_fractions(state.now, state.settings.round, &state.runs);
        }
        // Where nobody is stopped for another, nobody is moved about either.
        let repack = state.preempts() && (state.settings.repack || state.blocked_rounds > BLOCKED_ROUNDS_MAX);
        let (specs, now, rotates) = (state.specs.clone(), state.now, state.rotates());
        let young = |lease: &Lease| rotates && is_young(lease, &specs, now);
        let decision = rounds::decide(
            rounds::Parts {
                book: &mut state.book,
                nodes: Arc::make_mut(&mut state.nodes),
                leases: &mut state.leases,
                placer: &*self.placer,
                young: &young,
            },
            repack,
        );
        invariants::head_runs(state, &*self.placer, repack);
        state.count_blocked(decision.fragmented, repack);
        for lease in decision.ended {
            let again = self.state.leases.get(lease).is_some_and(|ended| self.state.is_chosen(ended.share));
            self.end_lease(lease, if again { Why::Moved } else { Why::Preempted }, out);
        }
        for lease in decision.promised {
            self.grant_if_idle(lease, out);
        }
    }

    // Leases.

    /// Hands a promise over once its devices are idle and its jobs have nothing else in hand.
    fn grant_if_idle(&mut self, lease: LeaseId, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        let Some(promise) = state.leases.get(lease) else { return };
        let ready = promise.jobs.iter().all(|job| state.runs[job.index()].state.is_waiting());
        if promise.state != LeaseState::Promised || !ready || !state.nodes.are_idle(&promise.placement) {
            return;
        }
        let (jobs, placement, shape) = (promise.jobs.clone(), promise.placement.clone(), promise.shape);
        let until = state.now + state.settings.lease;
        Arc::make_mut(&mut state.nodes).hold(&placement);
        state.leases.grant(lease, state.now, until);
        for job in &jobs {
            state.take_up(*job, lease, shape, placement.devices());
        }
        let jobs: SmallVec<_> = jobs.iter().map(|job| state.run(*job).id).collect();
        out.push(Effect::Publish(Event::Granted { lease, jobs: jobs.clone(), placement: placement.clone() }));
        out.push(Effect::Execute(Command::Grant { lease, jobs, shape, placement, until }));
    }

    /// Ends a lease whose devices are already promised onwards or free.
    fn end_lease(&mut self, lease: LeaseId, why: Why, out: &mut Vec<Effect>) {
        let ended = self.state.leases.get(lease).expect("a lease that ends is on record");
        if ended.state == LeaseState::Promised {
            self.state.leases.remove(lease);
            return;
        }
        let jobs = ended.jobs.clone();
        self.state.leases.end(lease);
        self.stop_jobs(lease, &jobs, why, out);
    }

    fn stop_jobs(&mut self, lease: LeaseId, jobs: &[JobIdx], why: Why, out: &mut Vec<Effect>) {
        let now = self.state.now;
        let mut told = SmallVec::new();
        for job in jobs {
            let run = self.state.run_mut(*job);
            if run.state == JobState::Suspending {
                continue;
            }
            (run.done, run.as_of, run.speed) = (run.done_at(now), now, 0.0);
            run.become_state(now, JobState::Suspending);
            match why {
                Why::Preempted => run.preemptions += 1,
                Why::Moved => run.migrations += 1,
                Why::Cancelled | Why::Drained | Why::Lost => {}
            }
            told.push(run.id);
            self.state.changed.touched.push(*job);
            let run = self.state.run(*job);
            out.push(Effect::Publish(Event::Stopping { job: run.id, why }));
        }
        if !told.is_empty() {
            out.push(Effect::Execute(Command::Revoke { lease, jobs: told, why }));
        }
    }

    // Reports.

    fn report(&mut self, report: Report, out: &mut Vec<Effect>) {
        let Report { lease, job, news } = report;
        let row = self.state.rows.get(&job).copied();
        let Some(row) = row.filter(|row| self.state.run(*row).lease == Some(lease)) else {
            return out.push(Effect::Publish(Event::Stale { lease, job }));
        };
        match news {
            News::Started => self.started(row, out),
            News::Progress { steps } => self.progress(row, steps),
            News::Stopped { steps, outcome } => self.stopped(row, lease, steps, outcome, out),
        }
    }

    fn started(&mut self, job: JobIdx, out: &mut Vec<Effect>) {
        let speeds = self.state.specs[job.index()].speeds.clone();
        let now = self.state.now;
        let run = self.state.run_mut(job);
        if run.state != JobState::Starting {
            return; // It was told to stop meanwhile, or says so twice.
        }
        run.become_state(now, JobState::Running);
        (run.as_of, run.speed) = (now, speeds[run.shape as usize]);
        let id = run.id;
        self.state.changed.touched.push(job);
        out.push(Effect::Publish(Event::Started { job: id }));
    }

    fn progress(&mut self, job: JobIdx, steps: f64) {
        let now = self.state.now;
        let run = self.state.run_mut(job);
        if steps.is_finite() && run.state == JobState::Running {
            (run.done, run.as_of) = (steps, now);
            self.state.changed.touched.push(job);
        }
    }

    fn stopped(&mut self, job: JobIdx, lease: LeaseId, steps: f64, outcome: Outcome, out: &mut Vec<Effect>) {
        let now = self.state.now;
        let freed = self.put_down(job, lease, out);
        let shares = self.state.book.shares_of(job).iter();
        let own: Vec<_> = shares.filter_map(|share| self.state.book.entry(*share).lease).collect();
        let run = self.state.run_mut(job);
        if steps.is_finite() {
            run.done = steps;
        }
        (run.as_of, run.speed) = (now, 0.0);
        run.failures += (outcome == Outcome::Crashed) as u32;
        let (id, given_up) = (run.id, run.failures > self.state.specs[job.index()].failures_max);
        let next = after_stop(self.state.run(job), outcome, given_up);
        if next.is_final() {
            self.end_job(job, next, out);
        } else {
            self.state.run_mut(job).become_state(now, next);
            self.state.changed.touched.push(job);
            self.state.dirty |= outcome == Outcome::Crashed;
            if let Some(group) =
                self.state.leases.get(lease).filter(|group| group.state == LeaseState::Granted)
            {
                self.state.book.leave(group.share, job);
                self.state.dirty = true;
            }
            out.push(Effect::Publish(Event::Stopped { job: id, steps, outcome }));
        }
        // Freed devices may be what a promise waits for; so may be the job itself.
        let mut waiting = freed.map_or_else(Vec::new, |placement| self.state.leases.promised_on(&placement));
        waiting.extend(own);
        for lease in waiting {
            self.grant_if_idle(lease, out);
        }
    }

    /// A job gives its devices back. Returns them once nobody of its group holds them any more.
    fn put_down(&mut self, job: JobIdx, lease: LeaseId, out: &mut Vec<Effect>) -> Option<Placement> {
        let state = &mut self.state;
        let now = state.now;
        let held = state.leases.get_mut(lease).expect("a job's lease is on record");
        held.jobs.retain(|member| *member != job);
        let (empty, span, devices) = (held.jobs.is_empty(), now - held.granted_at, held.placement.devices());
        let (share, ending) = (held.share, held.state == LeaseState::Ending);
        state.ledger.leased += span.0 * devices as u64;
        state.run_mut(job).lay_down(now);
        if !empty {
            return None;
        }
        if !ending {
            state.release(lease);
            let unchosen = state.book.unchoose(share);
            assert!(unchosen == Some(lease), "a lease that ends by itself was in force");
        }
        let placement = state.leases.remove(lease).placement;
        state.nodes_mut().put_down(&placement);
        // Devices that nobody was promised are there for others now.
        state.dirty |= !ending;
        out.push(Effect::Publish(Event::Freed { lease, placement: placement.clone() }));
        Some(placement)
    }

    // Jobs.

    fn submit(&mut self, spec: JobSpec, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        let id = JobId(state.ledger.submitted);
        state.ledger.submitted += 1;
        if let Err(reason) = admit(&spec, &state.nodes, &state.kinds) {
            state.ledger.ended += 1;
            return out.push(Effect::Publish(Event::Rejected { job: id, reason }));
        }
        let row = state.add_row(spec, JobRun::new(id, state.now));
        state.changed.added.push(row);
        state.dirty = true;
        out.push(Effect::Publish(Event::Submitted { job: id }));
    }

    fn cancel(&mut self, job: JobId, out: &mut Vec<Effect>) {
        let Some(row) = self.state.rows.get(&job).copied() else { return };
        let run = self.state.run_mut(row);
        run.cancelled = true;
        let lease = run.lease;
        self.state.changed.touched.push(row);
        match lease {
            None => self.end_job(row, JobState::Cancelled, out),
            Some(lease) => self.stop_jobs(lease, &[row], Why::Cancelled, out),
        }
    }

    /// A job is over: it leaves the book and its row becomes free.
    fn end_job(&mut self, job: JobIdx, end: JobState, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        for share in SmallVec::<[_; 1]>::from_slice(state.book.shares_of(job)) {
            // A promise to a single job falls with it; a group goes on without it.
            let entry = state.book.entry(share);
            let lease = entry.lease.filter(|_| entry.jobs.len() == 1);
            if let Some(lease) = lease {
                state.release(lease);
                state.book.unchoose(share);
                state.leases.remove(lease);
            } else if let Some(lease) = entry.lease.and_then(|lease| state.leases.get_mut(lease)) {
                lease.jobs.retain(|member| *member != job);
            }
        }
        state.book.remove_job(job);
        let now = state.now;
        let run = state.run_mut(job);
        run.become_state(now, end);
        let (id, attained) = (run.id, run.attained);
        state.ledger.ended += 1;
        state.ledger.ended_attained += attained;
        state.rows.remove(&id);
        state.changed.ended.push(job);
        state.dirty = true;
        let rows = if state.plan.is_some() { &mut state.cooling } else { &mut state.vacant };
        rows.push(job);
        out.push(Effect::Publish(Event::Ended { job: id, state: end }));
    }

    // Nodes.

    fn node(&mut self, change: NodeChange, out: &mut Vec<Effect>) {
        if matches!(&change, NodeChange::Join(spec) if spec.devices > NODE_DEVICES_MAX) {
            return;
        }
        let (node, news) = match change {
            NodeChange::Join(spec) => (self.state.nodes_mut().add(spec), NodeNews::Joined),
            NodeChange::Drain(node) => (node, NodeNews::Draining),
            NodeChange::Resume(node) => (node, NodeNews::Resumed),
            NodeChange::Leave(node) => (node, NodeNews::Left),
            NodeChange::Fail(node) => (node, NodeNews::Failed),
        };
        if node.index() >= self.state.nodes.len() {
            return; // Nobody of that number ever joined.
        }
        match news {
            NodeNews::Joined => {}
            NodeNews::Resumed => self.state.nodes_mut().set_state(node, NodeState::Up),
            NodeNews::Draining => self.state.nodes_mut().set_state(node, NodeState::Draining),
            NodeNews::Left => self.clear_node(node, Why::Drained, out),
            NodeNews::Failed => self.clear_node(node, Why::Lost, out),
        }
        (self.state.changed.nodes, self.state.hopeless) = (true, None);
        self.state.dirty = true;
        out.push(Effect::Publish(Event::Node { node, change: news }));
    }

    fn clear_node(&mut self, node: NodeId, why: Why, out: &mut Vec<Effect>) {
        self.state.nodes_mut().set_state(node, NodeState::Down);
        let on_it = |placement: &Placement| placement.0.iter().any(|slice| slice.node == node);
        let hit: Vec<_> =
            self.state.leases.iter().filter(|(_, lease)| on_it(&lease.placement)).map(|(id, _)| id).collect();
        for lease in hit {
            let hit = self.state.leases.get(lease).expect("it was just listed");
            if hit.state != LeaseState::Ending {
                let share = hit.share;
                self.state.release(lease);
                self.state.book.unchoose(share);
                self.end_lease(lease, why, out);
            }
        }
    }
}

impl State {
    /// Takes the promise of a lease's devices back.
    fn release(&mut self, lease: LeaseId) {
        let placement = self.leases.get(lease).expect("a promised lease is on record").placement.clone();
        self.nodes_mut().release(&placement);
    }

    /// Whether who runs changes as time passes, and not only when something happens.
    fn rotates(&self) -> bool {
        self.settings.every_round || self.book.mode == Mode::Fractions
    }

    /// Whether a round is wanted though nothing happened; without a beat there is no time for it.
    fn takes_turns(&self) -> bool {
        self.rotates() && self.settings.round > Span::ZERO
    }

    /// Whether a job may be stopped for another.
    fn preempts(&self) -> bool {
        !matches!(self.book.mode, Mode::Ordered { preempt: false, .. })
    }

    /// Counts the rounds that the head has waited for devices that lie together. One that finds no place even
    /// when everybody is placed anew is not waited for again until another is first or nodes change.
    fn count_blocked(&mut self, fragmented: bool, repacked: bool) {
        let head = invariants::waiting_head(self);
        if head.is_none() || head != self.hopeless {
            self.hopeless = head.filter(|_| repacked);
        }
        let waits = fragmented && head.is_some() && head != self.hopeless;
        self.blocked_rounds = if waits { self.blocked_rounds + 1 } else { 0 };
    }

    fn is_chosen(&self, share: book::ShareId) -> bool {
        self.book.entry(share).lease.is_some()
    }

    /// A job takes up devices.
    fn take_up(&mut self, job: JobIdx, lease: LeaseId, shape: u16, devices: u32) {
        let now = self.now;
        let run = self.run_mut(job);
        run.become_state(now, JobState::Starting);
        (run.lease, run.shape, run.devices, run.held_since) = (Some(lease), shape, devices, now);
        run.first_start.get_or_insert(now);
        run.starts += 1;
        self.changed.touched.push(job);
    }
}

impl JobRun {
    /// The job's own account of a lease that ends.
    fn lay_down(&mut self, now: Time) {
        let span = now - self.held_since;
        self.attained += span.0 * self.devices as u64;
        self.executed += span;
        (self.lease, self.devices, self.last_stop) = (None, 0, Some(now));
    }
}

/// Whether stopping a lease now would waste more than half of its time on starting and saving. Where jobs
/// take turns, rounds shorter than that would move them about without end and get nothing done.
fn is_young(lease: &Lease, specs: &[Arc<JobSpec>], now: Time) -> bool {
    let restart = lease.jobs.iter().map(|job| specs[job.index()].costs.restart()).max().unwrap_or_default();
    lease.state == LeaseState::Granted && now - lease.granted_at < Span(restart.0.saturating_mul(2))
}

/// What becomes of a job that gave its devices back.
fn after_stop(run: &JobRun, outcome: Outcome, given_up: bool) -> JobState {
    match outcome {
        Outcome::Finished => JobState::Succeeded,
        _ if run.cancelled => JobState::Cancelled,
        Outcome::Crashed if given_up => JobState::Failed,
        Outcome::Saved if run.state == JobState::Suspending => JobState::Suspended,
        Outcome::Saved | Outcome::Lost | Outcome::Crashed => JobState::Pending,
    }
}

/// Whether a job can ever run here, and if not, why. An empty cluster takes any.
fn admit(spec: &JobSpec, nodes: &Nodes, kinds: &Kinds) -> Result<(), String> {
    if spec.shapes.is_empty() || spec.speeds.len() != spec.shapes.len() {
        return Err("a job needs at least one shape, and one speed for each".into());
    }
    if spec.speeds.iter().any(|speed| !(*speed >= 0.0 && speed.is_finite())) {
        return Err("a job's speeds must be finite numbers, none below 0".into());
    }
    if !spec.shapes.iter().all(is_sound) {
        return Err(
            "each shape needs devices, at least one of each kind it names, and names a kind once".into()
        );
    }
    if !(spec.steps > 0.0 && spec.steps.is_finite() && spec.weight > 0.0 && spec.weight.is_finite()) {
        return Err("a job's steps and weight must be finite numbers above 0".into());
    }
    let most = |shape: &Shape, kind| match shape.spread {
        Spread::Node => nodes.largest(kind),
        Spread::Any | Spread::Rack => nodes.total(kind),
    };
    let fits = |shape: &Shape| {
        shape.devices() > 0 && shape.needs.iter().all(|need| most(shape, need.kind) >= need.devices)
    };
    if nodes.is_empty() || spec.shapes.iter().any(fits) {
        return Ok(());
    }
    let smallest = spec.shapes.iter().min_by_key(|shape| shape.devices()).expect("it has a shape");
    Err(smallest.needs.first().map_or("it asks for no device".into(), |need| {
        let (kind, have) = (kinds.get(need.kind).unwrap_or("an unknown kind"), most(smallest, need.kind));
        let place = if smallest.spread == Spread::Node { "no node has more than" } else { "the cluster has" };
        format!("it asks for {} devices of {kind}, and {place} {have}", need.devices)
    }))
}

fn is_sound(shape: &Shape) -> bool {
    let once = |at: usize| shape.needs[..at].iter().all(|need| need.kind != shape.needs[at].kind);
    !shape.needs.is_empty() && (0..shape.needs.len()).all(|at| shape.needs[at].devices > 0 && once(at))
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
