//! What has been, and what may therefore be: scenarios drawn from the jobs that came and from how far they were from
//! what they said. Who draws numbers is handed in.
//!
//! Who comes is drawn in stretches of the past, one after another, so that what came in bursts does again (the moving
//! block bootstrap: Künsch, Annals of Statistics, 1989). All stretches of one scenario are of the same half of the
//! past: how often jobs come is not known any better than halves of the past agree about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Scenario;
use crate::job::JobSpec;
use crate::state::State;
use crate::units::{Span, Time};

/// Most jobs that come in one scenario: where more comes than can be done, a forecast would have no end.
const ARRIVALS_MAX: usize = 2_000;

/// Stretches that half of the past is made of, and most stretches of one scenario.
const BLOCKS: u64 = 8;
const BLOCKS_MAX: usize = 1_000;

/// Jobs of the same owner, or of the same owner and size, that say enough of the next one; with fewer all jobs do.
const ALIKE_MIN: usize = 20;

/// What a job that is over had to do, as a multiple of what it said.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    like: (Option<Arc<str>>, u32),
    ratio: f64,
}

impl Ratio {
    /// Of this job.
    pub fn of(spec: &JobSpec, ratio: f64) -> Ratio {
        Ratio { like: (spec.user.clone(), size(spec)), ratio }
    }
}

/// Jobs within a factor of two are of one size.
fn size(spec: &JobSpec) -> u32 {
    spec.shapes.first().map_or(0, |shape| shape.devices().max(1).ilog2())
}

/// Jobs that came, and how they turned out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    /// When jobs came and as what, in order of time.
    pub arrivals: Vec<(Time, Arc<JobSpec>)>,
    /// How jobs that are over turned out.
    pub ratios: Vec<Ratio>,
}

/// How far jobs were from what they said, ascending: all, those of an owner, and those of an owner and a size.
#[derive(Default)]
struct Ratios {
    all: Vec<f64>,
    owners: BTreeMap<Option<Arc<str>>, Vec<f64>>,
    alike: BTreeMap<(Option<Arc<str>>, u32), Vec<f64>>,
}

impl Ratios {
    fn new(past: &[Ratio]) -> Ratios {
        let mut ratios = Ratios::default();
        for Ratio { like, ratio } in past.iter().filter(|ratio| ratio.ratio > 0.0) {
            ratios.all.push(*ratio);
            ratios.owners.entry(like.0.clone()).or_default().push(*ratio);
            ratios.alike.entry(like.clone()).or_default().push(*ratio);
        }
        let lists = ratios.owners.values_mut().chain(ratios.alike.values_mut());
        lists.chain([&mut ratios.all]).for_each(|list| list.sort_by(f64::total_cmp));
        ratios
    }

    /// Those of the jobs that are most like this one, where they are enough.
    fn like(&self, spec: &JobSpec) -> &[f64] {
        let alike = self.alike.get(&(spec.user.clone(), size(spec)));
        let lists = [alike, self.owners.get(&spec.user)];
        lists.into_iter().flatten().find(|list| list.len() >= ALIKE_MIN).unwrap_or(&self.all)
    }

    /// What a job has to do in all that has done `done`, as one of the past of which that could be true. One that has
    /// done more than any of them has as much left as they were off at most.
    fn drawn(&self, spec: &JobSpec, done: f64, draw: Draw<'_>) -> f64 {
        let (ratios, said) = (self.like(spec), spec.steps);
        if ratios.is_empty() {
            return said;
        }
        let possible = ratios.partition_point(|ratio| ratio * said <= done);
        match ratios.len() - possible {
            0 => done * (1.0 + draw(1_000) as f64 / 1_000.0),
            left => said * ratios[possible + draw(left as u64) as usize],
        }
    }
}

/// A number below this one, which is above zero.
pub type Draw<'a> = &'a mut dyn FnMut(u64) -> u64;

impl Past {
    /// One way in which things may go on from a state. Jobs that are here have as much to do as jobs like them had
    /// (none has less than it has done); stretches of the past come once more.
    /// In the first of several nobody comes: that may always be.
    pub fn scenario(&self, nth: usize, state: &State, horizon: Span, draw: Draw<'_>) -> Scenario {
        let ratios = Ratios::new(&self.ratios);
        let mut steps = BTreeMap::new();
        for (job, row) in state.rows.iter().filter(|_| !ratios.all.is_empty()) {
            let done = state.run(*row).done_at(state.now);
            steps.insert(*job, ratios.drawn(&state.specs[row.index()], done, draw));
        }
        let quiet = nth == 0;
        let arrivals = if quiet { Vec::new() } else { self.arrivals(state.now, horizon, &ratios, draw) };
        Scenario { steps, arrivals, ..Scenario::default() }
    }

    /// What a job that is asked about may have to do.
    pub fn steps_of(&self, spec: &JobSpec, draw: Draw<'_>) -> f64 {
        Ratios::new(&self.ratios).drawn(spec, 0.0, draw)
    }

    fn arrivals(
        &self,
        now: Time,
        horizon: Span,
        ratios: &Ratios,
        draw: Draw<'_>,
    ) -> Vec<(Time, JobSpec, f64)> {
        let first = self.arrivals.first().map_or(now, |(time, _)| *time);
        let known = now - first;
        let half = Span(known.0 / 2);
        let block = Span(half.0 / BLOCKS);
        if block == Span::ZERO {
            return Vec::new();
        }
        let (from, mut at, mut coming) = (first + Span(draw(known.0 - half.0 + 1)), now, Vec::new());
        for _ in 0..BLOCKS_MAX {
            if at > now + horizon || coming.len() >= ARRIVALS_MAX {
                break;
            }
            let since = from + Span(draw(half.0 - block.0 + 1));
            for (time, spec) in self.came(since, since + block) {
                let spec = moved(spec, at - since);
                let steps = ratios.drawn(&spec, 0.0, draw);
                coming.push((at + (*time - since), spec, steps));
            }
            at = at + block;
        }
        coming.truncate(ARRIVALS_MAX);
        coming.retain(|(time, ..)| *time <= now + horizon);
        coming
    }

    /// Who came after one instant, up to another.
    fn came(&self, after: Time, until: Time) -> &[(Time, Arc<JobSpec>)] {
        let place = |time: Time| self.arrivals.partition_point(|(came, _)| *came <= time);
        &self.arrivals[place(after)..place(until)]
    }
}

/// The job at another time. Whom it came after is long over.
fn moved(spec: &JobSpec, shift: Span) -> JobSpec {
    let later = |time: Option<Time>| time.map(|time| time + shift);
    let (deadline, not_before) = (later(spec.deadline), later(spec.not_before));
    JobSpec { deadline, not_before, after: Box::default(), ..spec.clone() }
}
