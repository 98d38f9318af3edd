//! How estimates turned out, and what follows for the next ones. Runs that draw the future from the past know nothing
//! of a future that is unlike it; what happened to earlier estimates does. Each limit of an interval is moved by what
//! would have made it hold 19 times in 20 of late (split conformal prediction: Vovk et al., "Algorithmic learning in a
//! random world", 2005, on the logarithm of the time to go, so that a factor is learned): wider where jobs came too
//! early or too late, narrower where the interval held too often.
//!
//! Starts and ends are apart, and so are near and far ones: an estimate for the next minute says nothing of one for the
//! next day. Memory is bounded, and the same estimates and outcomes give the same limits.

use std::collections::{BTreeMap, VecDeque};

use super::interval::{Estimate, Interval};
use crate::ids::JobId;
use crate::units::{Span, Time};

/// Outcomes that are kept for each kind of estimate and distance.
const KEPT_MAX: usize = 300;
/// Estimates that wait for their outcome.
const OPEN_MAX: usize = 50_000;
/// With so many outcomes the worst of them is the limit that holds 19 times in 20.
const ENOUGH: usize = 19;
/// With fewer than so many nothing is moved.
const LEAST: usize = 5;
/// The part of outcomes that each limit should hold: more than 19 in 20, since jobs are early or late together and a
/// record of many is worth that of fewer.
const HELD: f64 = 0.965;
/// Added to each time to go, in seconds: below it, factors mean nothing.
const FLOOR: f64 = 10.0;
/// A limit is moved by e^5 at most, some 150 times.
const MOVE_MAX: f64 = 5.0;
/// Distances: below one minute, and each four times as far as the one before.
const DISTANCES: u32 = 8;

/// What is foretold of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// When it first gets devices.
    Start,
    /// When it is over.
    End,
}

/// How estimates turned out.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The first estimate of a job for each distance, until it turns out.
    open: BTreeMap<(JobId, What, u32), Told>,
    closed: BTreeMap<(What, u32), VecDeque<Off>>,
}

/// An estimate, as logarithms of the time to go.
#[derive(Clone, Copy, Debug)]
struct Told {
    at: Time,
    low: f64,
    /// None: no forecast went so far.
    high: Option<f64>,
}

/// By how much an outcome was outside of each limit; below zero: inside.
#[derive(Clone, Copy, Debug)]
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
    /// Estimates were made, as the runs gave them. A job counts once for each distance.
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
            self.open.entry((job, what, distance(interval.mid - now))).or_insert(told);
        }
    }

    /// What was foretold happened.
    pub fn happened(&mut self, now: Time, job: JobId, what: What) {
        for (distance, told) in self.take(job, what) {
            let kept = self.closed.entry((what, distance)).or_default();
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

    fn take(&mut self, job: JobId, what: What) -> Vec<(u32, Told)> {
        let found = self.open.range((job, what, 0)..(job, what, DISTANCES));
        let found: Vec<_> = found.map(|((.., distance), told)| (*distance, *told)).collect();
        found.iter().for_each(|(distance, _)| _ = self.open.remove(&(job, what, *distance)));
        found
    }

    /// By how much to move limits now.
    pub fn moves(&self, now: Time) -> Moves {
        let mut offs: BTreeMap<(What, u32), Vec<Off>> = BTreeMap::new();
        for (key, closed) in &self.closed {
            offs.entry(*key).or_default().extend(closed);
        }
        // What has not happened by its upper limit is known to be late already.
        for ((_, what, distance), told) in &self.open {
            let off = told.off(now);
            if off.late.is_some_and(|late| late > 0.0) {
                offs.entry((*what, *distance)).or_default().push(off);
            }
        }
        let of = |what| offs.range((what, 0)..(what, DISTANCES)).flat_map(|(_, offs)| offs.iter().copied());
        let all = [What::Start, What::End].map(|what| (what, shift(&of(what).collect::<Vec<_>>())));
        let near = offs.iter().filter(|(_, offs)| offs.len() >= ENOUGH);
        Moves { near: near.map(|(key, offs)| (*key, shift(offs))).collect(), all: all.into() }
    }
}

/// By how much limits are moved, for each distance of which enough is known, and for all others together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moves {
    near: BTreeMap<(What, u32), (f64, f64)>,
    all: BTreeMap<What, (f64, f64)>,
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
        let known = self.near.get(&(what, distance(interval.mid - now))).or_else(|| self.all.get(&what));
        let (early, late) = known.copied().unwrap_or_default();
        // A limit that is not moved stays as it was, to the last bit.
        let by = |time: Time, by: f64| if by == 0.0 { time } else { now + unlog(log(time - now) + by) };
        let low = by(interval.low, -early).min(interval.mid);
        let high = if interval.high == Time::NEVER { Time::NEVER } else { by(interval.high, late) };
        Interval { low, high: high.max(interval.mid), ..interval }
    }
}

/// How far limits have to be moved so that they hold.
fn shift(offs: &[Off]) -> (f64, f64) {
    let early = quantile(offs.iter().map(|off| off.early).collect());
    (early, quantile(offs.iter().filter_map(|off| off.late).collect()))
}

/// What all but a twentieth are at most; of few, the largest.
fn quantile(mut offs: Vec<f64>) -> f64 {
    if offs.len() < LEAST {
        return 0.0;
    }
    offs.sort_by(f64::total_cmp);
    let rank = libm::ceil((offs.len() + 1) as f64 * HELD) as usize;
    offs[rank.min(offs.len()) - 1].clamp(-MOVE_MAX, MOVE_MAX)
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
