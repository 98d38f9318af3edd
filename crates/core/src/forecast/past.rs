//! What has been, and what may therefore be: scenarios drawn from the jobs that came and from how far they were from
//! what they said. Who draws numbers is handed in.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Scenario;
use crate::job::JobSpec;
use crate::state::State;
use crate::units::{Span, Time};

/// Most jobs that come in one scenario, and never more than came: where more comes than can be done, a forecast would
/// have no end.
const ARRIVALS_MAX: usize = 2_000;

/// Jobs that came, and how they turned out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    /// When jobs came and as what, in order of time.
    pub arrivals: Vec<(Time, Arc<JobSpec>)>,
    /// What jobs that are over had to do, as a multiple of what they said.
    pub ratios: Vec<f64>,
}

/// A number below this one, which is above zero.
pub type Draw<'a> = &'a mut dyn FnMut(u64) -> u64;

impl Past {
    /// One way in which things may go on from a state. Jobs that are here have as much to do as jobs like them had
    /// (none has less than it has done); a stretch of the past comes once more, so that what came in bursts does again.
    pub fn scenario(&self, state: &State, horizon: Span, draw: Draw<'_>) -> Scenario {
        let mut ratios: Vec<f64> = self.ratios.iter().copied().filter(|ratio| *ratio > 0.0).collect();
        ratios.sort_by(f64::total_cmp);
        let mut steps = BTreeMap::new();
        for (job, row) in state.rows.iter().filter(|_| !ratios.is_empty()) {
            let said = state.specs[row.index()].steps;
            let done = state.run(*row).done_at(state.now);
            steps.insert(*job, drawn(&ratios, said, done, draw));
        }
        Scenario { steps, arrivals: self.arrivals(state.now, horizon, &ratios, draw) }
    }

    fn arrivals(
        &self,
        now: Time,
        horizon: Span,
        ratios: &[f64],
        draw: Draw<'_>,
    ) -> Vec<(Time, JobSpec, f64)> {
        let first = self.arrivals.first().map_or(now, |(time, _)| *time);
        let known = now - first;
        if known == Span::ZERO {
            return Vec::new();
        }
        let since = first + Span(draw(known.0));
        let begin = self.arrivals.partition_point(|(time, _)| *time <= since);
        let mut coming = Vec::new();
        for at in begin..begin + ARRIVALS_MAX.min(self.arrivals.len()) {
            // Where the past ends it begins again.
            let (time, spec) = &self.arrivals[at % self.arrivals.len()];
            let turns = (at / self.arrivals.len()) as u64;
            let shift = Span((now - since).0.saturating_add(known.0.saturating_mul(turns)));
            let time = *time + shift;
            if time > now + horizon {
                break;
            }
            let spec = moved(spec, shift);
            let steps = if ratios.is_empty() { spec.steps } else { drawn(ratios, spec.steps, 0.0, draw) };
            coming.push((time, spec, steps));
        }
        coming
    }
}

/// The job at another time. Whom it came after is long over.
fn moved(spec: &JobSpec, shift: Span) -> JobSpec {
    let later = |time: Option<Time>| time.map(|time| time + shift);
    let (deadline, not_before) = (later(spec.deadline), later(spec.not_before));
    JobSpec { deadline, not_before, after: Box::default(), ..spec.clone() }
}

/// What a job has to do in all that said `said` and has done `done`, as one of the past of which that could be true.
/// One that has done more than any of them has as much left as they were off at most.
fn drawn(ratios: &[f64], said: f64, done: f64, draw: Draw<'_>) -> f64 {
    let possible = ratios.partition_point(|ratio| ratio * said <= done);
    match ratios.len() - possible {
        0 => done * (1.0 + draw(1_000) as f64 / 1_000.0),
        left => said * ratios[possible + draw(left as u64) as usize],
    }
}
