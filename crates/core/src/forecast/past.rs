//! What has been, and what may therefore be: scenarios drawn from the jobs that came and from how far they were from
//! what they said. Who draws numbers is handed in.
//!
//! Who comes is drawn in stretches of the past, one after another, so that what came in bursts does again (the moving
//! block bootstrap: Künsch, Annals of Statistics, 1989). A scenario has a few of them, which it repeats for as long as the
//! past was: how often jobs come is known no better than that, and so each scenario is busier or quieter than the past.
//!
//! How long a job takes is drawn from those that said nearly the same. Who says much has rather said too much and who says
//! little too little, which decides how much work is expected: what is left of that trend among them is taken out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Scenario;
use crate::job::JobSpec;
use crate::state::State;
use crate::units::{Span, Time};

/// Most jobs that come in one scenario: where more comes than can be done, a forecast would have no end.
const ARRIVALS_MAX: usize = 2_000;

/// Stretches that the past is made of, and most stretches of one scenario.
const BLOCKS: u64 = 16;
const BLOCKS_MAX: usize = 1_000;

/// Jobs of the same owner, or of the same owner and size, that say enough of the next one; with fewer all jobs do.
const ALIKE_MIN: usize = 20;

/// Of those, the nearest in what they said are drawn from: so many, or this part of them.
const NEAREST_MIN: usize = 20;
const NEAREST_PART: usize = 5;
/// With fewer that could be true of a job that runs, those of a wider range are asked.
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

/// What a job said and how far it was from that, as logarithms.
type Point = (f64, f64);

/// How far jobs were from what they said, ascending in what they said: all, those of an owner, and those of an owner and
/// a size.
#[derive(Default)]
struct Ratios {
    all: Vec<Point>,
    owners: BTreeMap<Option<Arc<str>>, Vec<Point>>,
    alike: BTreeMap<(Option<Arc<str>>, u32), Vec<Point>>,
    /// To which side lengths lean of which nothing is known, from -1 to 1.
    lean: f64,
}

impl Ratios {
    /// As many as there are, each drawn anew: another past would have had others.
    fn drawn_from(past: &[Ratio], draw: Draw<'_>) -> Ratios {
        let mut ratios = Ratios { lean: 2.0 * unit(draw) - 1.0, ..Ratios::default() };
        for _ in past {
            let Ratio { like, said, ratio } = &past[draw(past.len() as u64) as usize];
            if *ratio <= 0.0 {
                continue;
            }
            let point = (libm::log(said.max(1.0)), libm::log(*ratio));
            ratios.all.push(point);
            ratios.owners.entry(like.0.clone()).or_default().push(point);
            ratios.alike.entry(like.clone()).or_default().push(point);
        }
        let lists = ratios.owners.values_mut().chain(ratios.alike.values_mut());
        lists.chain([&mut ratios.all]).for_each(|list| list.sort_by(|a, b| a.0.total_cmp(&b.0)));
        ratios
    }

    /// Those of the jobs that are most like this one, where they are enough.
    fn like(&self, spec: &JobSpec) -> &[Point] {
        let alike = self.alike.get(&(spec.user.clone(), size(spec)));
        let lists = [alike, self.owners.get(&spec.user)];
        lists.into_iter().flatten().find(|list| list.len() >= ALIKE_MIN).unwrap_or(&self.all)
    }

    /// What a job has to do in all that has done `done`, as one of the past of which that could be true.
    fn steps(&self, spec: &JobSpec, done: f64, draw: Draw<'_>) -> f64 {
        let (ratios, least) = (self.like(spec), done / spec.steps);
        let known = draw(ALIKE_MIN as u64) < ratios.len() as u64;
        let ratio =
            if known { like_those(ratios, libm::log(said(spec).max(1.0)), least, draw) } else { None };
        spec.steps * ratio.unwrap_or_else(|| self.usual(least, draw))
    }

    /// How far a job may be from what it said of which nothing is known but that it has done the part `least` of it. One
    /// that has done more than any may have as much left as it has done.
    fn usual(&self, least: f64, draw: Draw<'_>) -> f64 {
        let ratio = libm::pow(USUAL, (self.lean + 2.0 * unit(draw) - 1.0) / 2.0);
        if ratio > least { ratio } else { least * (1.0 + unit(draw)) }
    }
}

/// How far a job was from what it said that said nearly as much, and was off by more than `least`.
fn like_those(ratios: &[Point], said: f64, least: f64, draw: Draw<'_>) -> Option<f64> {
    let mut wanted = NEAREST_MIN.max(ratios.len() / NEAREST_PART);
    loop {
        let near = nearest(ratios, said, wanted);
        let slope = slope(near);
        let moved = |(other, ratio): &Point| libm::exp(ratio + slope * (said - other));
        if least <= 0.0 {
            return Some(moved(&near[draw(near.len() as u64) as usize]));
        }
        let possible: Vec<f64> = near.iter().map(moved).filter(|ratio| *ratio > least).collect();
        if possible.len() >= POSSIBLE_MIN || wanted >= ratios.len() {
            return (!possible.is_empty()).then(|| possible[draw(possible.len() as u64) as usize]);
        }
        wanted *= 2;
    }
}

/// So many of them around one that said as much.
fn nearest(ratios: &[Point], said: f64, wanted: usize) -> &[Point] {
    let wanted = wanted.min(ratios.len());
    let middle = ratios.partition_point(|(other, _)| *other < said);
    let from = middle.saturating_sub(wanted / 2).min(ratios.len() - wanted);
    &ratios[from..from + wanted]
}

/// How ratios fall with what jobs said: who says more takes longer, but not more than in proportion.
fn slope(near: &[Point]) -> f64 {
    let count = near.len() as f64;
    let (x, y) =
        near.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / count, sum.1 + point.1 / count));
    let (mut both, mut spread) = (0.0, 0.0);
    for (said, ratio) in near {
        both += (said - x) * (ratio - y);
        spread += (said - x) * (said - x);
    }
    if spread > 0.0 { (both / spread).clamp(-1.0, 0.0) } else { 0.0 }
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
        let ratios = self.ratios.as_deref().map(|past| Ratios::drawn_from(past, draw));
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
    pub fn steps_of(&self, spec: &JobSpec, draw: Draw<'_>) -> f64 {
        let past = self.ratios.as_deref();
        past.map_or(spec.steps, |past| Ratios::drawn_from(past, draw).steps(spec, 0.0, draw))
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
        let (mut at, mut coming, mut stretches) = (now, Vec::new(), Vec::new());
        for nth in 0..BLOCKS_MAX {
            if at > now + horizon || coming.len() >= ARRIVALS_MAX {
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
