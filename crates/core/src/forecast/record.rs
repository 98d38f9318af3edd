//! How estimates turned out, and what follows for the next ones. Runs that draw the future from the past know nothing
//! of a future that is unlike it; what happened to earlier estimates does. Where an outcome was is counted in lengths of its
//! own interval: 0 is the middle, 1 and -1 are the limits (on the logarithm of the time to go). Limits are then put where
//! nine in ten outcomes of late would have been inside (split conformal prediction: Vovk et al., "Algorithmic learning in
//! a random world", 2005; in the scale of each prediction: Lei et al., "Distribution-free predictive inference for
//! regression", JASA 2018): further out where jobs came too early or too late, further in where the interval held too
//! often. So an interval grows with what its own runs say, and a job that ends in a minute is not judged by those of weeks.
//! Of all limits that would have held so often, an interval gets those that make it shortest.
//! Rejected, tried on traces of seeds that nothing else uses: limits between the 5 % and 95 % quantiles where most runs agree (better
//! interval scores where jobs come in bursts, worse ones and longer intervals elsewhere), and a claim to be exact only after 99
//! of 100 that were right (no fewer claims were wrong: a busy hour ends them all at once).
//!
//! Starts and ends are apart, and so are those of which all runs agreed, those of which most did, and the others. Where all
//! or most agreed the middle is what is expected, until outcomes say otherwise. Where all did, it claims to be exact if
//! enough such points were. Memory is bounded, and the same estimates and outcomes give the same limits.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::interval::{Estimate, Foretold, Interval, SURE};
use crate::ids::JobId;
use crate::units::{Span, Time};

/// Outcomes that are kept of each class.
const KEPT_MAX: usize = 300;
/// Estimates that wait for their outcome.
const OPEN_MAX: usize = 50_000;
/// The part of outcomes that should be inside; and how much more where limits are chosen on both sides: the shortest of
/// several ranges that held so often will hold a little less often.
const INSIDE: f64 = 0.9;
const CHOSEN: f64 = 0.01;
/// The runs count for so many outcomes: as if their limits had held as often as they should.
const PRIOR: usize = 20;
/// Where outcomes outside the limits of the runs would be.
const PRIOR_OUTSIDE: f64 = 1.25;
/// Of so many of which all runs agreed, this part has to be right for the next to claim to be exact.
const EXACT_MIN: usize = 50;
const EXACT: f64 = 0.98;
/// Half an interval counts for this much at least, on the logarithm: where runs agree there is no other scale.
const NARROWEST: f64 = 0.05;
/// And the upper half for this much at most, some three times the middle: one run that never ends is no scale.
const WIDEST: f64 = 1.2;
/// Limits are moved out to so many times their distance from the middle at most; the upper one no further than `WIDEST`,
/// unless the runs put it there: a few that are late, all because of one long job, say little of the next.
const MOVE_MAX: f64 = 4.0;
/// Added to each time to go, in seconds: below it, factors mean nothing.
const FLOOR: f64 = 10.0;
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

/// Estimates that are alike. A job counts once in each distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Class {
    what: What,
    agreed: Agreed,
    distance: u32,
}

/// Which of the runs agreed about the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Agreed {
    Few,
    All,
    Most,
}

impl Agreed {
    fn of(interval: &Interval) -> Agreed {
        match (interval.exact, interval.settled) {
            (true, _) => Agreed::All,
            (false, true) => Agreed::Most,
            (false, false) => Agreed::Few,
        }
    }
}

impl Class {
    fn of(now: Time, what: What, interval: &Interval) -> Class {
        Class { what, agreed: Agreed::of(interval), distance: distance(interval.mid - now) }
    }
}

/// How estimates turned out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The first estimate of a job in each class, until it turns out.
    #[serde(with = "crate::belief::rows")]
    open: BTreeMap<(JobId, Class), Told>,
    #[serde(with = "crate::belief::rows")]
    closed: BTreeMap<Class, VecDeque<Turned>>,
}

/// An estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Told {
    at: Time,
    scale: Scale,
}

/// The middle of an interval and how far its limits are from it, as logarithms of the time to go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Scale {
    below: f64,
    mid: f64,
    above: f64,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Turned {
    /// Where it was: 0 is the middle, 1 and -1 are the limits.
    place: f64,
    /// Whether it was the middle itself.
    right: bool,
}

impl Scale {
    fn of(now: Time, interval: &Interval) -> Scale {
        let mid = log(interval.mid - now);
        let above = (log(interval.high - now) - mid).clamp(NARROWEST, WIDEST);
        Scale { below: (mid - log(interval.low - now)).max(NARROWEST), mid, above }
    }

    fn place(&self, left: Span) -> f64 {
        let off = log(left) - self.mid;
        off / if off < 0.0 { self.below } else { self.above }
    }

    fn left(&self, place: f64) -> Span {
        unlog(self.mid + place * if place < 0.0 { self.below } else { self.above })
    }
}

impl Told {
    fn turned(&self, time: Time) -> Turned {
        let (left, mid) = (time - self.at, unlog(self.scale.mid));
        Turned { place: self.scale.place(left), right: left.0.abs_diff(mid.0) <= SURE.0 }
    }

    /// Whether its upper limit has passed.
    fn is_late(&self, now: Time) -> bool {
        now > self.at + self.scale.left(1.0) + SURE
    }
}

impl Record {
    /// Estimates were made, as the runs gave them. A job counts once in each class.
    pub fn note<'a>(&mut self, now: Time, told: impl IntoIterator<Item = (&'a JobId, &'a Estimate)>) {
        for (job, estimate) in told {
            // Who has begun waits for no start.
            let start = estimate.start.ok().filter(|start| start.high > now);
            if start.is_none() {
                self.forget(*job, What::Start);
            }
            for (what, interval) in [(What::Start, start), (What::End, estimate.end.ok())] {
                interval.into_iter().for_each(|interval| self.open(now, *job, what, interval));
            }
        }
    }

    fn open(&mut self, now: Time, job: JobId, what: What, interval: Interval) {
        if self.open.len() < OPEN_MAX {
            let told = Told { at: now, scale: Scale::of(now, &interval) };
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
            kept.push_back(told.turned(now));
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
        let first = Class { what, agreed: Agreed::Few, distance: 0 };
        let last = Class { what, agreed: Agreed::Most, distance: DISTANCES };
        let found = self.open.range((job, first)..(job, last));
        let found: Vec<_> = found.map(|((_, class), told)| (*class, *told)).collect();
        found.iter().for_each(|(class, _)| _ = self.open.remove(&(job, *class)));
        found
    }

    /// Where limits are to be put now.
    pub fn moves(&self, now: Time) -> Moves {
        let mut turned: BTreeMap<(What, Agreed), Vec<Turned>> = BTreeMap::new();
        for (class, closed) in &self.closed {
            turned.entry((class.what, class.agreed)).or_default().extend(closed);
        }
        // What has not happened by its upper limit is known to be late already.
        for ((_, class), told) in self.open.iter().filter(|(_, told)| told.is_late(now)) {
            turned.entry((class.what, class.agreed)).or_default().push(told.turned(now));
        }
        // Who comes later matters to both or to none: starts and ends that runs agree about are right or wrong together.
        let all = turned.iter().filter(|((_, agreed), _)| *agreed == Agreed::All);
        let exact = is_exact(all.flat_map(|(_, turned)| turned));
        let kinds = [What::Start, What::End]
            .into_iter()
            .flat_map(|what| [Agreed::Few, Agreed::All, Agreed::Most].map(|agreed| (what, agreed)));
        let windows = |kind: (What, Agreed)| {
            let of_it = turned.get(&kind).map_or(&[][..], Vec::as_slice);
            (kind, windows(kind.1, of_it))
        };
        Moves { exact, windows: kinds.map(windows).collect() }
    }
}

/// Where limits are put, for starts and ends, by how far runs agree; without any they stay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moves {
    /// Whether those of which all runs agree are exact.
    exact: bool,
    windows: BTreeMap<(What, Agreed), Vec<Window>>,
}

/// Two places between which nine in ten outcomes were.
type Window = (f64, f64);

impl Moves {
    /// An estimate whose limits should hold.
    pub fn moved(&self, now: Time, estimate: &Estimate) -> Estimate {
        let start = estimate.start.and_then(|interval| self.interval(now, What::Start, interval));
        Estimate { start, end: estimate.end.and_then(|interval| self.interval(now, What::End, interval)) }
    }

    fn interval(&self, now: Time, what: What, interval: Interval) -> Foretold {
        let agreed = Agreed::of(&interval);
        let windows = self.windows.get(&(what, agreed)).map_or(&[][..], Vec::as_slice);
        if interval.high <= now || self.exact && agreed == Agreed::All {
            return interval.useful(now);
        }
        let scale = Scale::of(now, &interval);
        let length = |(low, high): &&Window| scale.left(*high).0 - scale.left(*low).0;
        let Some((low, high)) = windows.iter().min_by_key(length) else {
            return interval.useful(now);
        };
        // A limit at the middle is the middle, to the last bit.
        let at = |place: f64| if place == 0.0 { interval.mid } else { now + scale.left(place) };
        let most = interval.high.max(at(WIDEST / scale.above));
        let high = at(high.min(MOVE_MAX)).min(most);
        let high = if interval.high < Time::NEVER { high } else { Time::NEVER };
        Interval { low: at(low.max(-MOVE_MAX)), high, exact: false, ..interval }.useful(now)
    }
}

/// Between which places nine in ten of the next outcomes are: the next one is as likely to be in any place among the earlier
/// ones, and those that the runs count for.
fn windows(agreed: Agreed, turned: &[Turned]) -> Vec<Window> {
    let mut places: Vec<f64> = turned.iter().map(|turned| turned.place).chain(prior(agreed)).collect();
    places.sort_by(f64::total_cmp);
    let part = if agreed == Agreed::Few { INSIDE + CHOSEN } else { INSIDE };
    let inside = (libm::ceil(part * (places.len() + 1) as f64) as usize).min(places.len());
    let window = |places: &[f64]| (places[0].min(0.0), places[inside - 1].max(0.0));
    let mut windows: Vec<Window> = places.windows(inside).map(window).collect();
    windows.dedup();
    windows
}

/// Whether enough of those that all runs agreed about were right.
fn is_exact<'a>(agreed: impl Iterator<Item = &'a Turned>) -> bool {
    let (right, all) = agreed.fold((0, 0), |(right, all), one| (right + usize::from(one.right), all + 1));
    all >= EXACT_MIN && right as f64 >= EXACT * all as f64
}

/// Outcomes as the runs have them: all in the middle where most agree, else one outside of each limit.
fn prior(agreed: Agreed) -> impl Iterator<Item = f64> {
    let steps = (PRIOR - 2) as f64 - 1.0;
    (0..PRIOR).map(move |nth| match nth {
        _ if agreed != Agreed::Few => 0.0,
        0 => -PRIOR_OUTSIDE,
        1 => PRIOR_OUTSIDE,
        nth => 2.0 * (nth - 2) as f64 / steps - 1.0,
    })
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
    use crate::forecast::interval::Unknown;

    fn at(seconds: f64) -> Time {
        Time::from_secs(seconds)
    }

    fn told(now: f64, low: f64, mid: f64, high: f64) -> Estimate {
        let exact = low == high;
        let (low, mid, high) = (at(now + low), at(now + mid), at(now + high));
        let end = Interval { low, mid, high, exact, settled: exact };
        Estimate { start: Err(Unknown::Beyond), end: Ok(end) }
    }

    /// A hundred jobs, one after another, each foretold as this.
    fn after(low: f64, high: f64, outcome: impl Fn(u64) -> f64) -> (Record, f64) {
        let (mut record, mut now) = (Record::default(), 0.0);
        for job in 0..100 {
            record.note(at(now), [(&JobId(job), &told(now, low, 1000.0, high))]);
            record.happened(at(now + outcome(job)), JobId(job), What::End);
            now += 10_000.0;
        }
        (record, now)
    }

    fn next(record: &Record, now: f64, told: Estimate) -> (f64, f64, bool) {
        let end = record.moves(at(now)).moved(at(now), &told).end.expect("one");
        (end.low.secs() - now, end.high.secs() - now, end.exact)
    }

    #[test]
    fn limits_follow_how_things_turned_out() {
        // From half to twice as long, evenly.
        let (record, now) = after(900.0, 1100.0, |job| 500.0 + 15.0 * ((job * 37) % 100) as f64);
        let (low, high, _) = next(&record, now, told(now, 900.0, 1000.0, 1100.0));
        assert!(
            (600.0..700.0).contains(&low) && (1400.0..1500.0).contains(&high),
            "{low} to {high}: four times"
        );
        // Always as the middle says: what the runs say counts for less and less.
        let (record, now) = after(500.0, 2000.0, |_| 1000.0);
        let (low, high, _) = next(&record, now, told(now, 500.0, 1000.0, 2000.0));
        assert!((400.0..=1000.0).contains(&low) && (1000.0..=1200.0).contains(&high), "{low} to {high}");
    }

    #[test]
    fn what_is_never_too_early_may_be_late_once_in_ten() {
        // At its lower limit, but for one in five, which are up to four times as late.
        let late = |job: u64| if job.is_multiple_of(5) { 1000.0 + 30.0 * job as f64 } else { 1000.0 };
        let (record, now) = after(1000.0, 2000.0, late);
        let (low, high, _) = next(&record, now, told(now, 1000.0, 1000.0, 2000.0));
        assert!((900.0..=1000.0).contains(&low) && (2200.0..2900.0).contains(&high), "{low} to {high}");
    }

    #[test]
    fn of_limits_that_held_as_often_the_shortest_are_taken() {
        let (mut record, mut now) = (Record::default(), 0.0);
        for job in 0..300 {
            record.note(at(now), [(&JobId(job), &told(now, 250.0, 1000.0, 4000.0))]);
            // Four in a hundred much too early, the others as the middle says.
            let early = job.is_multiple_of(25);
            record.happened(at(now + if early { 250.0 } else { 1000.0 }), JobId(job), What::End);
            now += 10_000.0;
        }
        let (low, high, _) = next(&record, now, told(now, 250.0, 1000.0, 4000.0));
        assert!(low > 400.0 && high < 1500.0, "{low} to {high}");
    }

    #[test]
    fn where_most_runs_agree_the_middle_is_expected_until_outcomes_say_otherwise() {
        let settled = |now: f64| {
            let mut told = told(now, 1000.0, 1000.0, 3000.0);
            told.end.iter_mut().for_each(|end| end.settled = true);
            told
        };
        assert_eq!(next(&Record::default(), 0.0, settled(0.0)), (1000.0, 1000.0, false));
        let (mut record, mut now) = (Record::default(), 0.0);
        for job in 0..100 {
            record.note(at(now), [(&JobId(job), &settled(now))]);
            let late = job.is_multiple_of(3);
            record.happened(at(now + if late { 2500.0 } else { 1000.0 }), JobId(job), What::End);
            now += 10_000.0;
        }
        let (low, high, exact) = next(&record, now, settled(now));
        assert!(low == 1000.0 && (2400.0..2600.0).contains(&high) && !exact, "{low} to {high}");
    }

    #[test]
    fn few_late_ones_do_not_put_limits_out_of_reach() {
        // All so late that four times the distance of the limit would be a factor of sixteen.
        let (record, now) = after(500.0, 2000.0, |_| 9_000.0);
        let (_, high, _) = next(&record, now, told(now, 500.0, 1000.0, 2000.0));
        assert!((3_000.0..3_500.0).contains(&high), "{high}");
        let (_, high, _) = next(&record, now, told(now, 500.0, 1000.0, 6000.0));
        assert!((5_900.0..6_100.0).contains(&high), "where runs saw it so late it may be: {high}");
    }

    #[test]
    fn a_point_is_exact_as_long_as_points_are() {
        let point = |now| told(now, 1000.0, 1000.0, 1000.0);
        let (record, now) = after(1000.0, 1000.0, |_| 1000.0);
        assert_eq!(next(&record, now, point(now)), (1000.0, 1000.0, true));
        assert!(!next(&Record::default(), now, point(now)).2, "nothing is known yet");
        let (record, now) = after(1000.0, 1000.0, |job| if job.is_multiple_of(5) { 1200.0 } else { 1000.0 });
        let (low, high, exact) = next(&record, now, point(now));
        assert!(!exact && low == 1000.0 && (1150.0..=1210.0).contains(&high), "{low} to {high}");
    }

    #[test]
    fn near_jobs_are_not_judged_by_far_ones_in_seconds() {
        // Hours late, at a distance of a day; the next ends within the minute.
        let (mut record, mut now) = (Record::default(), 0.0);
        for job in 0..50 {
            record.note(at(now), [(&JobId(job), &told(now, 80_000.0, 90_000.0, 100_000.0))]);
            record.happened(at(now + 110_000.0), JobId(job), What::End);
            now += 200_000.0;
        }
        let (low, high, _) = next(&record, now, told(now, 40.0, 45.0, 50.0));
        assert!(low >= 30.0 && high < 70.0, "{low} to {high}");
    }

    #[test]
    fn what_is_overdue_counts_before_it_happens() {
        let mut record = Record::default();
        for job in 0..100 {
            record.note(at(0.0), [(&JobId(job), &told(0.0, 900.0, 1000.0, 1100.0))]);
        }
        let before = next(&record, 1000.0, told(1000.0, 900.0, 1000.0, 1100.0));
        assert!(before.1 < 1150.0, "{before:?}");
        assert!(next(&record, 3000.0, told(3000.0, 900.0, 1000.0, 1100.0)).1 > 1400.0);
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
        let waits = Estimate { start, end: Err(Unknown::Beyond) };
        record.note(at(0.0), [(&JobId(1), &waits)]);
        assert_eq!(record.open.len(), 1);
        record.note(at(100.0), [(&JobId(1), &waits)]);
        assert_eq!(record.open.len(), 0);
    }
}
