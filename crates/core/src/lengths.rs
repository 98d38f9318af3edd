//! How long jobs are of which nobody said so: as jobs like them were. Jobs are alike by user, name and size, else by
//! user and size, else by size; else all are.
//!
//! What is known of them is a distribution and not a number, by the rate at which they end: of the jobs that have had
//! so many seconds of work, ends over seconds, in steps of √2 (`Rates`). So jobs that are not over count too: they
//! have not ended yet, and a past of ended jobs alone would have short ones only. Each list of jobs like one begins
//! with a few of the next wider one, and the widest with a few of which nothing is known but that they end at a rate
//! of one over the time had: those have as much left again as they have had, as likely as not. There are no thresholds
//! then at which one list gives way to another.
//!
//! What policies and forecasts are told changes in steps (`Lengths::note`), so that an order made of it holds for a
//! while: each time the past has grown by an eighth, all jobs are to be ranked anew.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::job::{JobRun, JobSpec, Length};
use crate::units::Time;

/// Jobs that are remembered; older ones are forgotten.
const PAST_MAX: usize = 2_000;

/// The past is told anew when so many parts of what was told before have come on top.
const NEWS: usize = 8;

/// Jobs that have something in common and are fewer are not a list of their own.
const ALIKE_MIN: u32 = 3;

/// Jobs of the next wider list that a list begins with.
const PRIOR: f64 = 3.0;

/// A job over its stated length is taken to need so many times what it is over, up to as much again as it has had:
/// a little over may be rounding, or a speed believed too high.
const OVERRUN: f64 = 10.0;

/// What a job has left that is over its stated length, in any unit.
pub fn overrun(stated: f64, had: f64) -> f64 {
    (OVERRUN * (had - stated)).min(had)
}

/// By what jobs are alike, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Alike {
    /// The same user, name and size.
    Name,
    /// The same user and size.
    User,
    /// The same size.
    Size,
    /// All jobs.
    All,
}

const NEAREST_FIRST: [Alike; 4] = [Alike::Name, Alike::User, Alike::Size, Alike::All];

/// A job, over or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    /// What it has in common with others, nearest first.
    marks: [u64; 4],
    /// Seconds of work, in the way in which it is slowest.
    seconds: f64,
    /// Device-seconds received.
    service: f64,
}

impl Job {
    fn of(now: Time, spec: &JobSpec, run: &JobRun) -> Option<Job> {
        let seconds = run.done_at(now) / spec.slowest()?.0;
        let sound = seconds >= 0.0 && seconds.is_finite();
        sound.then(|| Job { marks: marks(spec), seconds, service: run.attained_at(now) })
    }
}

/// Jobs that are over, and what of them is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Kept", into = "Kept")]
pub struct Lengths {
    kept: Kept,
    told: Arc<Told>,
}

/// The part from which all else follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Kept {
    /// Jobs that are over, the oldest first.
    ended: VecDeque<Job>,
    /// The last of them that are not told yet.
    fresh: usize,
    /// Jobs that were not over when they were told.
    open: Vec<Job>,
}

impl From<Kept> for Lengths {
    fn from(kept: Kept) -> Lengths {
        let told = Arc::new(Told::of(&kept));
        Lengths { kept, told }
    }
}

impl From<Lengths> for Kept {
    fn from(lengths: Lengths) -> Kept {
        lengths.kept
    }
}

impl Lengths {
    /// A job is done. True where it is time to tell.
    pub(crate) fn note(&mut self, now: Time, spec: &JobSpec, run: &JobRun) -> bool {
        let Some(job) = Job::of(now, spec, run) else { return false };
        self.kept.ended.push_back(job);
        self.kept.fresh += 1;
        self.kept.fresh * NEWS >= self.kept.ended.len() - self.kept.fresh
    }

    /// Tells all that is known, with the jobs that are not over.
    pub(crate) fn tell<'a>(&mut self, now: Time, open: impl Iterator<Item = (&'a JobSpec, &'a JobRun)>) {
        let ended = &mut self.kept.ended;
        ended.drain(..ended.len().saturating_sub(PAST_MAX));
        self.kept.fresh = 0;
        self.kept.open = open.filter_map(|(spec, run)| Job::of(now, spec, run)).collect();
        self.told = Arc::new(Told::of(&self.kept));
    }

    /// What is told.
    pub fn told(&self) -> &Arc<Told> {
        &self.told
    }
}

/// What is told of how long jobs are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// By the number of what they have in common.
    alike: BTreeMap<u64, Rates>,
    /// Device-seconds that each that is over received.
    service: Vec<f64>,
}

/// Seconds at which rates change: √2 apart, up to four years.
static EDGES: LazyLock<[f64; BINS + 1]> =
    LazyLock::new(|| std::array::from_fn(|at| if at == 0 { 0.0 } else { libm::exp2(at as f64 / STEPS) }));
/// Steps in which lengths double.
pub(crate) const STEPS: f64 = 2.0;
const BINS: usize = 54;

/// The rate at which jobs end, by the seconds of work they have had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Jobs behind them that are over.
    pub ended: u32,
    /// One for each step; above zero.
    rates: Vec<f64>,
}

/// Ends and seconds of work by the seconds had before.
#[derive(Clone)]
pub(crate) struct Sums {
    ended: u32,
    sums: [(f64, f64); BINS],
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { ended: 0, sums: [(0.0, 0.0); BINS] }
    }
}

impl Sums {
    pub(crate) fn add(&mut self, seconds: f64, ended: bool) {
        self.ended += u32::from(ended);
        let last = bin(seconds);
        for at in 0..=last {
            let until = if at == last { seconds } else { EDGES[at + 1] };
            self.sums[at].1 += until - EDGES[at];
        }
        self.sums[last].0 += f64::from(u8::from(ended));
    }

    /// The rates, with a few jobs of a wider list.
    pub(crate) fn rates(&self, wider: impl Fn(usize) -> f64) -> Rates {
        let rate = |(at, (ends, seconds)): (usize, &(f64, f64))| {
            let rate = wider(at);
            let ending = PRIOR * -libm::expm1(-rate * (EDGES[at + 1] - EDGES[at]));
            (ends + ending) / (seconds + ending / rate)
        };
        Rates { ended: self.ended, rates: self.sums.iter().enumerate().map(rate).collect() }
    }
}

/// Which step so many seconds are in.
fn bin(seconds: f64) -> usize {
    EDGES.partition_point(|edge| *edge <= seconds).clamp(1, BINS) - 1
}

/// The number of the step that begins so many steps after one second.
pub(crate) fn place(steps: f64) -> usize {
    (steps.max(0.0) as usize).min(BINS - 1)
}

/// One over the time had, in the middle of a step.
pub(crate) fn anybodys(at: usize) -> f64 {
    1.0 / (0.5 * (EDGES[at] + EDGES[at + 1]))
}

impl Rates {
    pub(crate) fn rate(&self, at: usize) -> f64 {
        self.rates.get(at).copied().unwrap_or_else(|| anybodys(at))
    }

    /// What part of jobs ends in each step.
    pub(crate) fn parts(&self) -> Vec<f64> {
        let mut lives = 1.0;
        let ends = |at: usize| {
            let ends = lives * -libm::expm1(-self.rate(at) * (EDGES[at + 1] - EDGES[at]));
            lives -= ends;
            ends
        };
        (0..BINS).map(ends).collect()
    }

    /// Seconds left of a job that has had so many, of which this part of such jobs have more.
    pub fn left(&self, had: f64, part: f64) -> f64 {
        let (mut from, mut hazard) = (had, -libm::log(part));
        for at in bin(had)..BINS {
            let (rate, until) = (self.rate(at), EDGES[at + 1]);
            let here = rate * (until - from).max(0.0);
            if here >= hazard || at + 1 == BINS {
                return from + hazard / rate - had;
            }
            (from, hazard) = (from.max(until), hazard - here);
        }
        unreachable!("it returns in the last step")
    }

    /// One over Gittins' index of a job that has had so many seconds: inf over Δ of E[min(S − a, Δ) | S > a] over
    /// P(S − a ≤ Δ | S > a), the seconds that it costs to have such a job done where it is given the time that pays
    /// best. Of a job whose length is known that is what it has left.
    pub fn cost(&self, had: f64) -> f64 {
        let (mut from, mut lives, mut spent, mut best) = (had, 1.0, 0.0, f64::INFINITY);
        for at in bin(had)..BINS {
            let (rate, until) = (self.rate(at), EDGES[at + 1]);
            let ends = lives * -libm::expm1(-rate * (until - from).max(0.0));
            (spent, lives, from) = (spent + ends / rate, lives - ends, from.max(until));
            best = f64::min(best, spent / (1.0 - lives));
            if lives < 1e-3 {
                break;
            }
        }
        best
    }
}

/// How long a job is, of which nobody said so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Seconds in all in the way it likes best, as likely more as less; none where no job is over yet.
    pub seconds: Option<f64>,
    /// What the jobs have in common with it by which it is predicted.
    pub alike: Alike,
    /// How many of them are over.
    pub ended: u32,
}

impl Told {
    fn of(kept: &Kept) -> Told {
        let known = kept.ended.len().saturating_sub(kept.fresh);
        if known == 0 {
            return Told::default();
        }
        let ended = || kept.ended.iter().take(known);
        let mut lists = BTreeMap::new();
        ended().for_each(|job| count(&mut lists, job));
        lists.retain(|_, (count, _)| *count >= ALIKE_MIN);
        lists.insert(ALL, (known as u32, ALL));
        let mut sums: BTreeMap<u64, Sums> = lists.keys().map(|mark| (*mark, Sums::default())).collect();
        let all = ended().map(|job| (job, true)).chain(kept.open.iter().map(|job| (job, false)));
        for (job, is_over) in all {
            for mark in job.marks {
                sums.entry(mark).and_modify(|own| own.add(job.seconds, is_over));
            }
        }
        let mut told = Told { alike: BTreeMap::new(), service: ended().map(|job| job.service).collect() };
        told.alike.insert(ALL, sums[&ALL].rates(anybodys));
        // The wider lists are ready before those that begin with them.
        for level in (0..3).rev() {
            let own = lists.iter().filter(|(mark, _)| level_of(**mark) == level);
            for (mark, (_, wider)) in own {
                let rates = sums[mark].rates(|at| told.alike[wider].rate(at));
                told.alike.insert(*mark, rates);
            }
        }
        told
    }

    /// Device-seconds that jobs received that are over.
    pub fn service(&self) -> &[f64] {
        &self.service
    }

    /// How jobs like this one end, and what they have in common with it.
    pub fn of_job(&self, spec: &JobSpec) -> (&Rates, Alike) {
        static NONE: Rates = Rates { ended: 0, rates: Vec::new() };
        let near = |(mark, alike): (&u64, Alike)| self.alike.get(mark).map(|rates| (rates, alike));
        let marks = marks(spec);
        let mut nearest = marks.iter().zip(NEAREST_FIRST);
        match spec.length {
            Length::Predicted => nearest.find_map(near),
            Length::Unknown | Length::Stated => nearest.next_back().and_then(near),
        }
        .unwrap_or((&NONE, Alike::All))
    }

    /// How long a job is that has done so many steps.
    pub(crate) fn predicted(&self, spec: &JobSpec, done: f64) -> Predicted {
        let (rates, alike) = self.of_job(spec);
        let (slow, best) = (spec.slowest(), spec.usable().next().map(|way| spec.speeds[way as usize]));
        let steps = slow.map(|(speed, _)| done + rates.left(done / speed, 0.5) * speed);
        let seconds = steps.zip(best).map(|(steps, best)| steps / best).filter(|_| rates.ended > 0);
        Predicted { seconds, alike, ended: rates.ended }
    }

    /// Steps of a job that has done so many and has no stated length, of which this part of such jobs have more.
    pub(crate) fn drawn(&self, spec: &JobSpec, done: f64, part: f64) -> f64 {
        let speed = spec.slowest().map_or(1.0, |(speed, _)| speed);
        done + self.of_job(spec).0.left(done / speed, part) * speed
    }

    /// Steps of a job that begins and of which no length was stated; what it says where nothing is known of others.
    pub(crate) fn steps(&self, spec: &JobSpec) -> f64 {
        let (rates, _) = self.of_job(spec);
        let speed = spec.slowest().map(|(speed, _)| speed).filter(|_| rates.ended > 0);
        speed.map_or(spec.steps, |speed| rates.left(0.0, 0.5) * speed)
    }
}

/// Counts a job in each list it belongs to, with the next wider list.
fn count(lists: &mut BTreeMap<u64, (u32, u64)>, job: &Job) {
    for pair in job.marks.windows(2) {
        lists.entry(pair[0]).or_insert((0, pair[1])).0 += 1;
    }
}

/// What all jobs have in common.
const ALL: u64 = 3;

/// Numbers of what a job has in common with others, nearest first. Two that are equal by chance only make strangers
/// alike.
fn marks(spec: &JobSpec) -> [u64; 4] {
    let size = spec.shapes.first().map_or(0, |shape| shape.devices().max(1).ilog2());
    let user = spec.user.as_deref().unwrap_or_default();
    [mark(&[user, &spec.name], size, 0), mark(&[user], size, 1), mark(&[], size, 2), ALL]
}

/// FNV-1a, which is fixed for ever: the numbers are in snapshots. The last two bits say what is in common.
fn mark(words: &[&str], size: u32, level: u64) -> u64 {
    let words = words.iter().flat_map(|word| word.bytes().chain([0]));
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    words.chain(size.to_le_bytes()).fold(0xCBF2_9CE4_8422_2325, step) << 2 | level
}

fn level_of(mark: u64) -> u64 {
    mark & 3
}

#[cfg(test)]
mod tests;
