//! From several forecasts to one estimate for each job: the middle, and an interval that should hold nine times in
//! ten. With n runs a tenth lies outside the (n + 1)/20-th and the one as far from the other end, so that 19 runs
//! give their smallest and their largest. Where several runs have the same smallest, as those in which a job starts at
//! once, nothing is to be expected below it: the tenth is taken from the other end then.
//!
//! Where runs say nothing that would be of use, there is no interval, and a reason instead (`Unknown`).

use std::collections::BTreeMap;

use super::{Forecast, Outlook};
use crate::ids::JobId;
use crate::units::{Span, Time};

/// Runs that make an estimate unless said otherwise.
pub const RUNS: usize = 19;

/// When something happens, probably.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Hardly earlier.
    pub low: Time,
    /// As likely before as after.
    pub mid: Time,
    /// Hardly later; `Time::NEVER`: no forecast went so far.
    pub high: Time,
    /// Whether it is a point that claims to be exact: no run saw it otherwise.
    pub exact: bool,
    /// Whether most runs agree about the middle, so that it is likely to the second.
    pub settled: bool,
}

/// Why there is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// Forecasts did not go so far: it is weeks away, or never happens.
    Beyond,
    /// They differ so much that an interval would be of no use: who comes later, or how long others take, decides.
    Scattered,
}

/// An interval, or why there is none.
pub type Foretold = Result<Interval, Unknown>;

/// Runs that differ by no more agree: beats and rounding move things by as much.
pub(super) const SURE: Span = Span::from_whole_secs(2);

/// So many twentieths of the runs that have the same smallest are no chance.
const SEVERAL: usize = 4;

/// An interval is of no use if it is so many times as long as the time to its middle, which counts for a minute at least.
const WIDEST: u64 = 10;
const NEAR: Span = Span::from_whole_secs(60);

impl Interval {
    /// Whether it holds an instant.
    pub fn holds(&self, time: Time) -> bool {
        (self.low..=self.high).contains(&time)
    }

    /// Itself where it is of use.
    pub fn useful(self, now: Time) -> Foretold {
        let far = (self.mid - now).max(NEAR);
        match self.high {
            Time::NEVER => Err(Unknown::Beyond),
            high if high - self.low > Span(far.0.saturating_mul(WIDEST)) => Err(Unknown::Scattered),
            _ => Ok(self),
        }
    }
}

/// When a job starts and ends, probably.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// When it first gets devices.
    pub start: Foretold,
    /// When it is over.
    pub end: Foretold,
}

/// An estimate for each job of the runs, which are of the same jobs.
pub fn estimates(runs: &[Forecast]) -> BTreeMap<JobId, Estimate> {
    let jobs = runs.first().into_iter().flat_map(|run| run.outlooks.keys());
    let of = |job: &JobId, pick: fn(&Outlook) -> Option<Time>| {
        let known = |run: &Forecast| run.outlooks.get(job).and_then(pick).unwrap_or(Time::NEVER);
        interval(runs.iter().map(known).collect())
    };
    let estimate = |job: &JobId| Estimate { start: of(job, |one| one.start), end: of(job, |one| one.end) };
    jobs.map(|job| (*job, estimate(job))).collect()
}

fn interval(mut times: Vec<Time>) -> Foretold {
    times.sort_unstable();
    let last = times.len().checked_sub(1).ok_or(Unknown::Beyond)?;
    // Counted from 0: the (n + 1)/20-th from either end.
    let place = |twentieths: usize| (twentieths * (times.len() + 1) / 20).saturating_sub(1).min(last);
    let apart = |at: usize| times[at] - times[0] > SURE;
    let bounded = place(SEVERAL) > 0 && !apart(place(SEVERAL));
    // Where all but one agree, that one is what may happen otherwise.
    let inner = Some(last - place(2)).filter(|inner| bounded && apart(*inner));
    let high = times[inner.unwrap_or(last - place(1))];
    let mid = times[last / 2];
    let agree = times.iter().filter(|time| time.0.abs_diff(mid.0) <= SURE.0).count();
    let settled = agree > times.len() / 2;
    let found = Interval { low: times[place(1)], mid, high, exact: !apart(last), settled };
    (found.mid < Time::NEVER).then_some(found).ok_or(Unknown::Beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(seconds: impl IntoIterator<Item = u64>) -> Option<(f64, f64, f64)> {
        let times = seconds.into_iter().map(|at| Time::ZERO + Span::from_whole_secs(10 * at));
        interval(times.collect())
            .ok()
            .map(|i| (i.low.secs() / 10.0, i.mid.secs() / 10.0, i.high.secs() / 10.0))
    }

    #[test]
    fn a_tenth_lies_outside() {
        assert_eq!(of([7]), Some((7.0, 7.0, 7.0)));
        assert_eq!(of((1..=19).rev()), Some((1.0, 10.0, 19.0)));
        assert_eq!(of(1..=39), Some((2.0, 20.0, 38.0)));
        assert_eq!(of([]), None);
    }

    #[test]
    fn what_cannot_be_sooner_has_the_tenth_above_it() {
        let at_once = |runs: u64| (1..=19).map(move |at: u64| if at <= runs { 1 } else { at });
        assert_eq!(of(at_once(3)), Some((1.0, 10.0, 19.0)));
        assert_eq!(of(at_once(4)), Some((1.0, 10.0, 18.0)));
        assert_eq!(of(at_once(18)), Some((1.0, 1.0, 19.0)), "one that differs is no point");
        assert_eq!(of(at_once(19)), Some((1.0, 1.0, 1.0)));
    }

    #[test]
    fn a_middle_is_settled_where_most_runs_agree() {
        let settled = |agree: u64| {
            let times = (0..19)
                .map(|run: u64| Time::ZERO + Span::from_whole_secs(if run < agree { 9 } else { 100 * run }));
            interval(times.collect()).expect("one").settled
        };
        assert_eq!([9, 10, 19].map(settled), [false, true, true]);
    }

    #[test]
    fn what_no_forecast_reached_is_not_known() {
        let of = |times: &[Time]| interval(times.to_vec());
        let [one, two, never] = [Time(1), Time(2), Time::NEVER];
        let found = Interval { low: one, mid: two, high: never, exact: false, settled: true };
        assert_eq!(of(&[one, two, two, never]), Ok(found));
        assert_eq!(found.useful(Time::ZERO), Err(Unknown::Beyond));
        assert_eq!(of(&[one, never, never]), Err(Unknown::Beyond));
    }

    #[test]
    fn what_is_ten_times_as_long_as_the_time_left_is_of_no_use() {
        let at = Time::from_secs;
        let from = |mid: f64, high: f64| Interval {
            low: at(100.0),
            mid: at(mid),
            high: at(high),
            ..Interval::default()
        };
        assert!(from(200.0, 1_100.0).useful(at(100.0)).is_ok());
        assert_eq!(from(200.0, 1_101.0).useful(at(100.0)), Err(Unknown::Scattered));
        assert!(from(101.0, 700.0).useful(at(100.0)).is_ok(), "a second counts for a minute");
    }
}
