//! What has been, and what may therefore be: scenarios drawn from the jobs that came and from how far they were from
//! what they said. Who draws numbers is handed in.
//!
//! Who comes is drawn in stretches of the past, one after another, so that what came in bursts does again (the moving
//! block bootstrap: Künsch, Annals of Statistics, 1989). A scenario has a few of them, which it repeats: how often jobs come
//! is known no better than that, and so each scenario is busier or quieter than the past. Nor is it known how long they go on
//! coming: in each scenario for a part of the time that they have come so far, any part as likely. Without that, a busy hour
//! is taken for busy weeks, in which who is served last never ends.
//!
//! How long a job takes is drawn from how far jobs that are over were from what they said, rather so that it becomes as long
//! as many are: who says much has rather said too much and who says little too little. How many are how long is known from
//! those that are over and from those that are not, which have taken at least so long: long jobs are the last to be over, and
//! a past without them would have short ones only.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Scenario;
use crate::ids::JobIdx;
use crate::job::{JobSpec, Length};
use crate::lengths::{Rates, STEPS, Sums, anybodys, place};
use crate::state::State;
use crate::units::{Span, Time};

/// Most jobs that come in one scenario: where more comes than can be done, a forecast would have no end.
const ARRIVALS_MAX: usize = 2_000;

/// Stretches that the past is made of, and most stretches of one scenario.
const BLOCKS: u64 = 16;
const BLOCKS_MAX: usize = 1_000;

/// Jobs of the same owner, or of the same owner and size, that say enough of the next one; with fewer all jobs do.
const ALIKE_MIN: usize = 20;

/// With fewer that could be true of a job that runs, all jobs are asked, not only those like it.
const POSSIBLE_MIN: usize = 5;

/// While fewer jobs are over than are enough, lengths may be off by up to so many times as far as anybody knows.
const USUAL: f64 = 4.0;

/// What a job that is over had to do, as a multiple of what it said.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    like: (Option<Arc<str>>, u32),
    said: f64,
    ratio: f64,
}

impl Ratio {
    /// Of this job, which had so many times as much to do as it says.
    pub fn of(spec: &JobSpec, ratio: f64) -> Ratio {
        Ratio { like: (spec.user.clone(), size(spec)), said: said(spec), ratio }
    }
}

/// Jobs within a factor of two are of one size.
fn size(spec: &JobSpec) -> u32 {
    spec.shapes.first().map_or(0, |shape| shape.devices().max(1).ilog2())
}

/// How long a job says it takes, in seconds.
fn said(spec: &JobSpec) -> f64 {
    spec.speeds.first().filter(|speed| **speed > 0.0).map_or(0.0, |speed| spec.steps / speed)
}

/// Jobs that came, and how they turned out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    /// When jobs came and as what, in order of time.
    pub arrivals: Vec<(Time, Arc<JobSpec>)>,
    /// How jobs that are over turned out; none: all jobs take as long as they say, for certain.
    pub ratios: Option<Vec<Ratio>>,
}

/// Jobs that have something in common.
#[derive(Default)]
struct Alike {
    /// What those that are over said, and how far they were from it, in steps of lengths.
    over: Vec<(f64, f64)>,
    lengths: Sums,
    /// How much likelier a job is to end in one step than in another, for all that it says.
    parts: Vec<f64>,
}

impl Alike {
    fn add(&mut self, ratio: &Ratio, over: bool) {
        let point = over.then(|| (step_of(ratio.said.max(1.0)), step_of(ratio.ratio)));
        self.over.extend(point);
        self.lengths.add(ratio.said * ratio.ratio, over);
    }

    fn settle(&mut self, wider: impl Fn(usize) -> f64) -> Rates {
        let rates = self.lengths.rates(wider);
        let chance = self.chance();
        self.parts = rates.parts().into_iter().map(|part| libm::pow(part, chance)).collect();
        rates
    }

    /// What part of how far jobs were off is chance, which strikes long ones as it does short ones: then who says much has
    /// rather said too much. The rest goes with how long jobs are, as where all say the same, and is no reason to doubt it.
    fn chance(&self) -> f64 {
        let count = self.over.len().max(1) as f64;
        let (x, y) = self.over.iter().fold((0.0, 0.0), |sum, (said, off)| (sum.0 + said, sum.1 + off));
        let (x, y) = (x / count, y / count);
        let (mut both, mut spread) = (0.0, 0.0);
        for (said, off) in &self.over {
            both += (said - x) * (off - y);
            spread += (off - y) * (off - y);
        }
        if spread > 0.0 { (-both / spread).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// How many times as long as it said a job takes that takes more than `least` times as long: as one of these, each
    /// the likelier the more jobs are as long as that. None where too few of them were so far off.
    fn times(&self, said: f64, least: f64, draw: Draw<'_>) -> Option<f64> {
        let (said, least) = (step_of(said.max(1.0)), if least > 0.0 { step_of(least) } else { f64::MIN });
        let possible = || self.over.iter().map(|(_, off)| *off).filter(|off| *off > least);
        if possible().count() < POSSIBLE_MIN.min(self.over.len()) {
            return None;
        }
        let part = |off: f64| self.parts[place(said + off)];
        let mut left = unit(draw) * possible().map(part).sum::<f64>();
        let found = possible().find(|off| {
            left -= part(*off);
            left < 0.0
        });
        found.or(possible().next_back()).map(|off| libm::exp2(off / STEPS))
    }
}

/// How far jobs were from what they said: all, those of an owner, and those of an owner and a size.
#[derive(Default)]
struct Ratios {
    all: Alike,
    owners: BTreeMap<Option<Arc<str>>, Alike>,
    alike: BTreeMap<(Option<Arc<str>>, u32), Alike>,
    /// To which side lengths lean of which nothing is known, from -1 to 1.
    lean: f64,
}

impl Ratios {
    /// As many as there are, each drawn anew: another past would have had others. Of jobs that are not over it is known
    /// that they are longer than what they have done.
    fn drawn_from(past: &[Ratio], state: &State, draw: Draw<'_>) -> Ratios {
        let mut ratios = Ratios { lean: 2.0 * unit(draw) - 1.0, ..Ratios::default() };
        let (over, open) = (past.iter().map(|ratio| (ratio, true)), open(state));
        let mut jobs: Vec<_> = over.chain(open.iter().map(|ratio| (ratio, false))).collect();
        jobs.retain(|(ratio, _)| ratio.ratio > 0.0 && ratio.ratio.is_finite());
        for _ in 0..jobs.len() {
            let (ratio, over) = jobs[draw(jobs.len() as u64) as usize];
            let Ratios { all, owners, alike, .. } = &mut ratios;
            let (owner, alike) = (owners.entry(ratio.like.0.clone()), alike.entry(ratio.like.clone()));
            for list in [all, owner.or_default(), alike.or_default()] {
                list.add(ratio, over);
            }
        }
        let wider = ratios.all.settle(anybodys);
        let lists = ratios.owners.values_mut().chain(ratios.alike.values_mut());
        lists
            .filter(|list| list.over.len() >= ALIKE_MIN)
            .for_each(|list| _ = list.settle(|at| wider.rate(at)));
        ratios
    }

    /// Those of the jobs that are most like this one, where they are enough.
    fn like(&self, spec: &JobSpec) -> &Alike {
        let alike = self.alike.get(&(spec.user.clone(), size(spec)));
        let lists = [alike, self.owners.get(&spec.user)];
        lists.into_iter().flatten().find(|list| list.over.len() >= ALIKE_MIN).unwrap_or(&self.all)
    }

    /// What a job has to do in all that has done `done`, as one of the past of which that could be true.
    fn steps(&self, spec: &JobSpec, done: f64, draw: Draw<'_>) -> f64 {
        let (list, least) = (self.like(spec), done / spec.steps);
        let known = draw(ALIKE_MIN as u64) < list.over.len() as u64;
        let like = |list: &Alike, draw: Draw<'_>| list.times(said(spec), least, draw);
        let ratio = if known { like(list, draw).or_else(|| like(&self.all, draw)) } else { None };
        spec.steps * ratio.unwrap_or_else(|| self.usual(least, draw))
    }

    /// How far a job may be from what it said of which nothing is known but that it has done the part `least` of it. One
    /// that has done more than any may have as much left as it has done.
    fn usual(&self, least: f64, draw: Draw<'_>) -> f64 {
        let ratio = libm::pow(USUAL, (self.lean + 2.0 * unit(draw) - 1.0) / 2.0);
        if ratio > least { ratio } else { least * (1.0 + unit(draw)) }
    }
}

/// Jobs that have begun and are not over: what they have done, beside what they said.
fn open(state: &State) -> Vec<Ratio> {
    let of = |row: &JobIdx| {
        let spec = &state.specs[row.index()];
        let stated = spec.length == Length::Stated || !state.settings.learns_lengths;
        stated.then(|| Ratio::of(spec, state.run(*row).done_at(state.now) / spec.steps))
    };
    state.rows.values().filter_map(of).collect()
}

/// How many steps of lengths a factor is.
fn step_of(factor: f64) -> f64 {
    STEPS * libm::log2(factor)
}

/// A number from 0 to 1.
fn unit(draw: Draw<'_>) -> f64 {
    draw(1_000) as f64 / 1_000.0
}

/// A number below this one, which is above zero.
pub type Draw<'a> = &'a mut dyn FnMut(u64) -> u64;

impl Past {
    /// One way in which things may go on from a state. Jobs that are here have as much to do as jobs like them had
    /// (none has less than it has done); stretches of the past come once more.
    /// In the first of several nobody comes: that may always be.
    pub fn scenario(&self, nth: usize, state: &State, horizon: Span, draw: Draw<'_>) -> Scenario {
        let ratios = self.ratios.as_deref().map(|past| Ratios::drawn_from(past, state, draw));
        let mut steps = BTreeMap::new();
        if let Some(ratios) = &ratios {
            for (job, row) in state.rows.iter() {
                let done = state.run(*row).done_at(state.now);
                steps.insert(*job, ratios.steps(&state.specs[row.index()], done, draw));
            }
        }
        let quiet = nth == 0;
        let arrivals =
            if quiet { Vec::new() } else { self.arrivals(state.now, horizon, ratios.as_ref(), draw) };
        let mut scenario = Scenario { steps, arrivals, ..Scenario::default() };
        state.draw_lengths(&mut scenario, draw);
        scenario
    }

    /// What a job that is asked about may have to do.
    pub fn steps_of(&self, spec: &JobSpec, state: &State, draw: Draw<'_>) -> f64 {
        let past = self.ratios.as_deref();
        past.map_or(spec.steps, |past| Ratios::drawn_from(past, state, draw).steps(spec, 0.0, draw))
    }

    fn arrivals(
        &self,
        now: Time,
        horizon: Span,
        ratios: Option<&Ratios>,
        draw: Draw<'_>,
    ) -> Vec<(Time, JobSpec, f64)> {
        let first = self.arrivals.first().map_or(now, |(time, _)| *time);
        let known = now - first;
        let block = Span(known.0 / BLOCKS);
        if block == Span::ZERO {
            return Vec::new();
        }
        let last = now + horizon.min(Span(draw(known.0 + 1)));
        let (mut at, mut coming, mut stretches) = (now, Vec::new(), Vec::new());
        for nth in 0..BLOCKS_MAX {
            if at > last || coming.len() >= ARRIVALS_MAX {
                break;
            }
            if (nth as u64).is_multiple_of(BLOCKS) {
                stretches = (0..BLOCKS).map(|_| first + Span(draw(known.0 - block.0 + 1))).collect();
            }
            let since: Time = stretches[draw(BLOCKS) as usize];
            for (time, spec) in self.came(since, since + block) {
                let spec = moved(spec, at - since);
                let steps = ratios.map_or(spec.steps, |ratios| ratios.steps(&spec, 0.0, draw));
                coming.push((at + (*time - since), spec, steps));
            }
            at = at + block;
        }
        coming.truncate(ARRIVALS_MAX);
        coming.retain(|(time, ..)| *time <= last);
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
