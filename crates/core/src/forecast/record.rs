//! How estimates turned out, and what follows for the next ones. Runs that draw the future from the past know nothing
//! of a future that is unlike it; what happened to earlier estimates does. Each limit of an interval is moved by what
//! would have made it hold 19 times in 20 of late (split conformal prediction: Vovk et al., "Algorithmic learning in a
//! random world", 2005; of both limits as in Romano et al., "Conformalized quantile regression", NeurIPS 2019; on the
//! logarithm of the time to go, so that a factor is learned): wider where jobs came too early or too late, narrower
//! where the interval held too often.
//!
//! Outcomes are compared with their like (`Class`): starts and ends are apart, near ones and far ones (an estimate for
//! the next minute says nothing of one for the next day), and those that were sure, a point rather than an interval,
//! from the others: they are right as long as jobs take as long as they say, which says nothing of those that may
//! wait for who comes. Memory is bounded, and the same estimates and outcomes give the same limits.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::interval::{Estimate, Interval};
use crate::ids::JobId;
use crate::units::{Span, Time};

/// Outcomes that are kept of each class.
const KEPT_MAX: usize = 300;
/// Estimates that wait for their outcome.
const OPEN_MAX: usize = 50_000;
/// With so many outcomes the worst of them is the limit that holds 19 times in 20; with fewer no limit moves inwards.
const ENOUGH: usize = 19;
/// With fewer than so many nothing is moved.
const LEAST: usize = 5;
/// The part of outcomes that each limit should hold, where they can be missed on both sides.
const HELD: f64 = 0.95;
/// Added to each time to go, in seconds: below it, factors mean nothing.
const FLOOR: f64 = 10.0;
/// A limit is moved by e^5 at most, some 150 times.
const MOVE_MAX: f64 = 5.0;
/// Distances: below one minute, and each four times as far as the one before.
const DISTANCES: u32 = 8;

/// What is foretold of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum What {
    /// When it first gets devices.
    Start,
    /// When it is over.
    End,
}

/// Estimates that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Class {
    what: What,
    /// Whether it was a point.
    sure: bool,
    distance: u32,
}

impl Class {
    fn of(now: Time, what: What, interval: &Interval) -> Class {
        Class { what, sure: interval.is_sure(), distance: distance(interval.mid - now) }
    }

    /// Whether they differ in distance at most.
    fn is_near(&self, other: &Class) -> bool {
        (self.what, self.sure) == (other.what, other.sure)
    }
}

/// How estimates turned out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The first estimate of a job in each class, until it turns out.
    #[serde(with = "crate::belief::rows")]
    open: BTreeMap<(JobId, Class), Told>,
    #[serde(with = "crate::belief::rows")]
    closed: BTreeMap<Class, VecDeque<Off>>,
}

/// An estimate, as logarithms of the time to go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Told {
    at: Time,
    low: f64,
    /// None: no forecast went so far.
    high: Option<f64>,
}

/// By how much an outcome was outside of each limit; below zero: inside.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Off {
    early: f64,
    late: Option<f64>,
}

impl Told {
    fn off(&self, time: Time) -> Off {
        let gone = log(time - self.at);
        Off { early: self.low - gone, late: self.high.map(|high| gone - high) }
    }
}

impl Record {
    /// Estimates were made, as the runs gave them. A job counts once in each class.
    pub fn note<'a>(&mut self, now: Time, told: impl IntoIterator<Item = (&'a JobId, &'a Estimate)>) {
        for (job, estimate) in told {
            // Who has begun waits for no start.
            let start = estimate.start.filter(|start| start.high > now);
            if start.is_none() {
                self.forget(*job, What::Start);
            }
            for (what, interval) in [(What::Start, start), (What::End, estimate.end)] {
                interval.into_iter().for_each(|interval| self.open(now, *job, what, interval));
            }
        }
    }

    fn open(&mut self, now: Time, job: JobId, what: What, interval: Interval) {
        if self.open.len() < OPEN_MAX {
            let high = (interval.high < Time::NEVER).then(|| log(interval.high - now));
            let told = Told { at: now, low: log(interval.low - now), high };
            self.open.entry((job, Class::of(now, what, &interval))).or_insert(told);
        }
    }

    /// What was foretold happened.
    pub fn happened(&mut self, now: Time, job: JobId, what: What) {
        for (class, told) in self.take(job, what) {
            let kept = self.closed.entry(class).or_default();
            if kept.len() == KEPT_MAX {
                kept.pop_front();
            }
            kept.push_back(told.off(now));
        }
    }

    /// A job will not get so far, or did unseen.
    pub fn forget(&mut self, job: JobId, what: What) {
        self.take(job, what);
    }

    /// Waits only for what becomes of these jobs.
    pub fn retain(&mut self, wanted: impl Fn(JobId) -> bool) {
        self.open.retain(|(job, _), _| wanted(*job));
    }

    fn take(&mut self, job: JobId, what: What) -> Vec<(Class, Told)> {
        let first = Class { what, sure: false, distance: 0 };
        let last = Class { what, sure: true, distance: DISTANCES };
        let found = self.open.range((job, first)..(job, last));
        let found: Vec<_> = found.map(|((_, class), told)| (*class, *told)).collect();
        found.iter().for_each(|(class, _)| _ = self.open.remove(&(job, *class)));
        found
    }

    /// By how much to move limits now.
    pub fn moves(&self, now: Time) -> Moves {
        let mut offs: BTreeMap<Class, Vec<Off>> = BTreeMap::new();
        for (class, closed) in &self.closed {
            offs.entry(*class).or_default().extend(closed);
        }
        // What has not happened by its upper limit is known to be late already.
        for ((_, class), told) in &self.open {
            let off = told.off(now);
            if off.late.is_some_and(|late| late > 0.0) {
                offs.entry(*class).or_default().push(off);
            }
        }
        let all = |class: &Class| {
            let alike = offs.iter().filter(|(other, _)| other.is_near(class));
            shift(&alike.flat_map(|(_, offs)| offs.iter().copied()).collect::<Vec<_>>())
        };
        let kinds = [What::Start, What::End].into_iter().flat_map(|what| [(what, false), (what, true)]);
        let kinds = kinds.map(|(what, sure)| Class { what, sure, distance: 0 });
        let all = kinds.map(|class| ((class.what, class.sure), all(&class)));
        let near = offs.iter().filter(|(_, offs)| offs.len() >= ENOUGH);
        Moves { all: all.collect(), near: near.map(|(class, offs)| (*class, shift(offs))).collect() }
    }
}

/// By how much limits are moved, for each class of which enough is known, and for those of all distances together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moves {
    near: BTreeMap<Class, (f64, f64)>,
    all: BTreeMap<(What, bool), (f64, f64)>,
}

impl Moves {
    /// An estimate whose limits should hold.
    pub fn moved(&self, now: Time, estimate: &Estimate) -> Estimate {
        let start = estimate.start.map(|interval| self.interval(now, What::Start, interval));
        Estimate { start, end: estimate.end.map(|interval| self.interval(now, What::End, interval)) }
    }

    fn interval(&self, now: Time, what: What, interval: Interval) -> Interval {
        if interval.high <= now {
            return interval;
        }
        let class = Class::of(now, what, &interval);
        let known = self.near.get(&class).or_else(|| self.all.get(&(class.what, class.sure)));
        let (early, late) = known.copied().unwrap_or_default();
        // A limit that is not moved stays as it was, to the last bit.
        let by = |time: Time, by: f64| if by == 0.0 { time } else { now + unlog(log(time - now) + by) };
        let low = by(interval.low, -early).min(interval.mid);
        let high = if interval.high == Time::NEVER { Time::NEVER } else { by(interval.high, late) };
        Interval { low, high: high.max(interval.mid), ..interval }
    }
}

/// How far limits have to be moved so that both hold nine times in ten. What cannot be earlier than its lower limit never
/// is: then the upper one alone need not hold more often than that.
fn shift(offs: &[Off]) -> (f64, f64) {
    let early = quantile(HELD, offs.iter().map(|off| off.early).collect());
    // The next one is as likely to be in any place among them: before the first of those that were too early, say.
    let sooner = offs.iter().filter(|off| off.early > early).count();
    let sooner = (sooner + 1) as f64 / (offs.len() + 1) as f64;
    let held = (HELD - (1.0 - HELD) + sooner).min(HELD);
    (early, quantile(held, offs.iter().filter_map(|off| off.late).collect()))
}

/// What so many of the next ones are at most: the (n + 1) · 0.95-th of n for 0.95, between two of them in proportion;
/// the next one is as likely to be in any place among them. Of few, the largest, and none inwards.
fn quantile(held: f64, mut offs: Vec<f64>) -> f64 {
    if offs.len() < LEAST {
        return 0.0;
    }
    offs.sort_by(f64::total_cmp);
    let place = (offs.len() + 1) as f64 * held - 1.0;
    let last = offs.len() - 1;
    let (at, part) = (libm::floor(place) as usize, place - libm::floor(place));
    let (below, above) = (offs[at.min(last)], offs[(at + 1).min(last)]);
    let off = (below + part * (above - below)).clamp(-MOVE_MAX, MOVE_MAX);
    if offs.len() < ENOUGH { off.max(0.0) } else { off }
}

fn distance(left: Span) -> u32 {
    let minutes = left.secs() as u64 / 60;
    minutes.checked_ilog2().map_or(0, |log| (1 + log / 2).min(DISTANCES - 1))
}

fn log(left: Span) -> f64 {
    libm::log(left.secs() + FLOOR)
}

fn unlog(log: f64) -> Span {
    Span::from_secs((libm::exp(log) - FLOOR).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_secs(seconds)
    }

    fn told(now: f64, low: f64, mid: f64, high: f64) -> Estimate {
        let interval = Interval { low: at(now + low), mid: at(now + mid), high: at(now + high) };
        Estimate { start: None, end: Some(interval) }
    }

    /// A hundred jobs, one after another, each said to take 900 to 1100 s.
    fn after(outcome: impl Fn(u64) -> f64) -> (Record, f64) {
        let (mut record, mut now) = (Record::default(), 0.0);
        for job in 0..100 {
            record.note(at(now), [(&JobId(job), &told(now, 900.0, 1000.0, 1100.0))]);
            record.happened(at(now + outcome(job)), JobId(job), What::End);
            now += 10_000.0;
        }
        (record, now)
    }

    fn next(record: &Record, now: f64) -> (f64, f64) {
        let end = record.moves(at(now)).moved(at(now), &told(now, 900.0, 1000.0, 1100.0)).end.expect("one");
        (end.low.secs() - now, end.high.secs() - now)
    }

    #[test]
    fn limits_follow_how_things_turned_out() {
        // From half to twice as long, evenly.
        let (record, now) = after(|job| 500.0 + 15.0 * ((job * 37) % 100) as f64);
        let (low, high) = next(&record, now);
        assert!((510.0..580.0).contains(&low) && (1900.0..1990.0).contains(&high), "{low} to {high}");
        // Always as the middle says: hardly anything is left of the interval.
        let (record, now) = after(|_| 1000.0);
        let (low, high) = next(&record, now);
        assert!((999.0..=1000.0).contains(&low) && (1000.0..=1001.0).contains(&high), "{low} to {high}");
    }

    #[test]
    fn what_is_never_too_early_may_be_late_once_in_ten() {
        // At its lower limit, but for one in five, which are up to ten times as late.
        let (record, now) = after(|job| if job % 5 == 0 { 900.0 + 90.0 * job as f64 } else { 900.0 });
        let (low, high) = next(&record, now);
        assert!((899.0..901.0).contains(&low) && (4900.0..5900.0).contains(&high), "{low} to {high}");
    }

    #[test]
    fn what_is_overdue_counts_before_it_happens() {
        let mut record = Record::default();
        for job in 0..30 {
            record.note(at(0.0), [(&JobId(job), &told(0.0, 900.0, 1000.0, 1100.0))]);
        }
        assert_eq!(next(&record, 1000.0), (900.0, 1100.0));
        assert!(next(&record, 3000.0).1 > 2900.0);
    }

    #[test]
    fn little_is_no_record_and_other_distances_are_asked_then() {
        let mut record = Record::default();
        for job in 0..4 {
            record.note(at(0.0), [(&JobId(job), &told(0.0, 900.0, 1000.0, 1100.0))]);
            record.happened(at(5000.0), JobId(job), What::End);
        }
        assert_eq!(next(&record, 5000.0), (900.0, 1100.0));
        let (record, now) = after(|_| 2200.0);
        let far = told(now, 90_000.0, 100_000.0, 110_000.0);
        let far = record.moves(at(now)).moved(at(now), &far).end.expect("one");
        assert!((far.high.secs() - now - 220_000.0).abs() < 2_000.0, "{far:?}");
    }

    #[test]
    fn a_job_counts_once_a_distance_and_memory_is_bounded() {
        let mut record = Record::default();
        for job in 0..10_000 {
            record.note(at(0.0), [(&JobId(job), &told(0.0, 900.0, 1000.0, 1100.0))]);
            record.note(at(1.0), [(&JobId(job), &told(1.0, 900.0, 1000.0, 1100.0))]);
            record.happened(at(1000.0), JobId(job), What::End);
        }
        assert_eq!(record.open.len(), 0);
        assert_eq!(record.closed.values().map(VecDeque::len).sum::<usize>(), KEPT_MAX);
    }

    #[test]
    fn who_began_unseen_is_not_waited_for() {
        let mut record = Record::default();
        let start = told(0.0, 10.0, 20.0, 30.0).end;
        record.note(at(0.0), [(&JobId(1), &Estimate { start, end: None })]);
        assert_eq!(record.open.len(), 1);
        record.note(at(100.0), [(&JobId(1), &Estimate { start, end: None })]);
        assert_eq!(record.open.len(), 0);
    }
}
