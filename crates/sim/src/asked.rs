//! How true what-ifs are: just before a job of a run is submitted, it is asked about from the state of the scheduler,
//! and when the run is over it shows what became of it.

use yard_core::forecast::Limits;
use yard_core::forecast::interval::Foretold;
use yard_core::forecast::record::{Record, What};
use yard_core::forecast::what_if::{Asker, Told};
use yard_core::ids::JobId;
use yard_core::job::JobSpec;
use yard_core::message::Input;
use yard_core::{Engine, State, Time};

use crate::estimates::{EstimatesHow, past};
use crate::random::Random;
use crate::record::JobRecord;
use crate::run::{Probe, RunOutcome};

/// What was foretold of a job, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedWhatIf {
    /// When it was asked about.
    pub at: Time,
    /// Jobs that were there.
    pub living: usize,
    /// What was foretold.
    pub told: Told,
    /// When it started and ended.
    pub real: (Option<Time>, Option<Time>),
}

impl AskedWhatIf {
    /// Whether the start is to the instant what was foretold, if nobody else came.
    pub fn exact(&self) -> bool {
        self.told.quiet.start == self.real.0
    }

    /// By how much the end was off, as a part of the time from start to end; none where it was not foretold.
    pub fn end_off(&self) -> Option<f64> {
        let (told, start, end) = (self.told.quiet.end?, self.real.0?, self.real.1?);
        Some((told - end).max(end - told).secs() / (end - start).secs())
    }

    /// The intervals of start and end as a record of earlier questions makes them, with what became of them; the record
    /// then has this one too.
    pub fn turned_out(&self, record: &mut Record) -> Vec<(What, Foretold, Time)> {
        let Some(raw) = self.told.estimate else { return Vec::new() };
        let (told, id) = (record.moves(self.at).moved(self.at, &raw), JobId(0));
        record.note(self.at, [(&id, &raw)]);
        let start = self.real.0.map(|time| (What::Start, told.start, time));
        let all: Vec<_> =
            start.into_iter().chain(self.real.1.map(|time| (What::End, told.end, time))).collect();
        all.iter().for_each(|(what, _, time)| record.happened(*time, id, *what));
        [What::Start, What::End].into_iter().for_each(|what| record.forget(id, what));
        all
    }
}

/// Has a simulation of these jobs run, and asks about one of them before it is submitted. Where jobs like those of the
/// past are expected to come, an interval is made too. None where the run never got so far.
pub fn ask<E>(
    jobs: &[(Time, &JobSpec)],
    at: usize,
    how: &EstimatesHow<'_>,
    seed: u64,
    simulate: impl FnOnce(Probe<'_>) -> Result<RunOutcome, E>,
) -> Result<Option<AskedWhatIf>, E> {
    let mut before: Option<State> = None;
    let outcome = simulate(&mut |engine: &Engine, _: Time, _: &Input| {
        if engine.next_job().index() == at {
            before = Some(engine.state().clone());
        }
    })?;
    Ok(before.map(|state| asked(&state, jobs, at, how, seed, &outcome.record.jobs)))
}

fn asked(
    state: &State,
    jobs: &[(Time, &JobSpec)],
    at: usize,
    how: &EstimatesHow<'_>,
    seed: u64,
    real: &[JobRecord],
) -> AskedWhatIf {
    let (now, spec) = jobs[at];
    let mut random = Random::new(seed ^ 0xa5ced);
    let mut asker = Asker {
        state,
        at: now,
        past: &past(state.now(), &jobs[..at], None, real),
        policy: how.policy,
        placer: how.placer,
        limits: Limits::QUESTION,
        work_left: u64::MAX,
        stop: &|| false,
    };
    let sound = "a state of this version";
    let (mut told, without) = asker.first(spec).expect(sound);
    if how.recurs {
        told.estimate = asker.estimate(spec, 1, &mut |below| random.below(below)).expect(sound);
    }
    let real = (real[at].first_start, real[at].end);
    AskedWhatIf { at: now, living: without.outlooks.len(), told, real }
}
