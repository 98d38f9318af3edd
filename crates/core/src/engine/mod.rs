//! The engine: `step` is the only way in, effects are the only way out, `deadline` says when it next
//! wants a tick. It has no clock, no policy and no IO, so it cannot fail; what is wrong inside it is a
//! bug and stops it (`invariants`). Recovery is a snapshot plus `step` over the journal, effects dropped.

mod after;
mod beginning;
mod believing;
mod delays;
mod fallback;
mod held;
mod holding;
mod idling;
mod jobs;
mod leasing;
mod nodes;
mod planning;
mod promises;
mod regimes;
mod reports;
mod takers;
mod training;

pub use held::{Held, HeldJob};

use crate::cluster::{Kinds, Nodes, Resources};
use crate::ids::{JobId, JobIdx};
use crate::invariants;
use crate::job::{JobRun, JobSpec, Length};
use crate::lengths::Predicted;
use crate::message::{Effect, Input, Why};
use crate::policy::Placer;
use crate::settings::Settings;
use crate::state::{Ledger, RestoreError, State};
use crate::units::Time;

/// The scheduler.
pub struct Engine {
    pub(crate) state: State,
    placer: Box<dyn Placer>,
    /// Steps since all invariants were last checked; see `check_now_and_then`.
    unchecked: usize,
}

impl Engine {
    /// Whether a job may not start now, because others were promised its devices before it could give them back.
    pub(crate) fn is_barred(&self, job: JobIdx) -> bool {
        self.state.gate().concerns(&[job])
    }

    /// An engine without nodes or jobs.
    pub fn new(settings: Settings, kinds: Kinds, placer: Box<dyn Placer>) -> Engine {
        settings.assert_sound();
        Engine { state: State::new(settings, kinds), placer, unchecked: 0 }
    }

    /// An engine that goes on from a saved state, to which the rest of the journal is then applied.
    pub fn restore(state: State, placer: Box<dyn Placer>) -> Result<Engine, RestoreError> {
        let mut engine = Engine { state: state.upgraded()?, placer, unchecked: 0 };
        engine.state.book.line_up();
        check(&engine.state);
        Ok(engine)
    }

    /// Everything it knows, to be saved or compared.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Everything it knew at its end.
    pub fn into_state(self) -> State {
        self.state
    }

    /// The instant of its last step.
    pub fn now(&self) -> Time {
        self.state.now
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

    /// What is counted of hosts.
    pub fn resources(&self) -> &Resources {
        &self.state.resources
    }

    /// How it is run.
    pub fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// What a living job was submitted as, with the speeds believed since.
    pub fn job_spec(&self, id: JobId) -> Option<&JobSpec> {
        self.state.rows.get(&id).map(|row| &*self.state.specs[row.index()])
    }

    /// A living job's row.
    pub fn job(&self, id: JobId) -> Option<&JobRun> {
        self.state.rows.get(&id).map(|row| self.state.run(*row))
    }

    /// How long a living job is believed to be; none where it was stated.
    pub fn length(&self, id: JobId) -> Option<Predicted> {
        let row = self.state.rows.get(&id).copied()?;
        let (spec, done) = (&self.state.specs[row.index()], self.state.run(row).done_at(self.state.now));
        (spec.length != Length::Stated).then(|| self.state.lengths.told().predicted(spec, done))
    }

    /// Whether a job was promised to be done by a time and may not be.
    pub fn is_at_risk(&self, id: JobId) -> bool {
        let promise = self.state.rows.get(&id).and_then(|row| self.state.promises.kept.get(row));
        promise.is_some_and(|promise| promise.at_risk)
    }

    /// The number that the next submitted job will have.
    pub fn next_job(&self) -> JobId {
        JobId(self.state.ledger.submitted)
    }

    pub(crate) fn placer(&self) -> &dyn Placer {
        &*self.placer
    }

    /// Checks every invariant. Cheap ones are asserted on the way, always.
    pub fn check(&self) {
        check(&self.state);
    }

    /// When it next wants `Input::Tick`, if nothing else happens before.
    pub fn deadline(&self) -> Option<Time> {
        let state = &self.state;
        let lapse = state.leases.next_lapse().map(|time| Time(time.0.saturating_sub(self.slack().0)));
        let fill = state.fills().then_some(state.now);
        let wishes = self.next_round().into_iter().chain(lapse).chain(fill).chain(self.next_entry());
        let wishes = wishes.chain(state.next_promise());
        wishes.min().map(|time| time.max(state.now))
    }

    /// Takes one input at `now` and appends what it wants done.
    pub fn step(&mut self, now: Time, input: Input, out: &mut Vec<Effect>) {
        assert!(now >= self.state.now, "time went back from {} to {now}", self.state.now);
        self.state.now = now;
        self.state.say_broken(out);
        match input {
            Input::Begin(settings) => self.begin(*settings),
            Input::Kind(name) => self.kind(&name),
            Input::Resource(name) => _ = self.state.resources.intern(&name),
            Input::Submit(spec) => self.submit(*spec, out),
            Input::Cancel(job) => self.cancel(job, Why::Cancelled, out),
            Input::Kill(job) => self.cancel(job, Why::Killed, out),
            Input::Hold(job) => self.hold(job, out),
            Input::Release(job) => self.release_held(job, out),
            Input::Requeue(job) => self.requeue(job, out),
            Input::Edit(edit) => self.edit(*edit, out),
            Input::Widen(widen) => self.widen(*widen),
            Input::Node(change) => self.node(change, out),
            Input::Report(report) => self.report(report, out),
            Input::Planned { plan, answer } => self.planned(plan, answer, out),
            Input::Believe(belief) => self.believe(*belief),
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
            check(&self.state);
        }
    }
}

/// Checks everything that can be read off a state, promises among it.
fn check(state: &State) {
    invariants::check(state);
    promises::check(state);
}
