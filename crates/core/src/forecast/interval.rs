//! From several forecasts to one estimate for each job: the middle, and an interval that should hold nine times in
//! ten. With n runs a tenth lies outside the (n + 1)/20-th and the one as far from the other end, so that 19 runs
//! give their smallest and their largest. Where several runs have the same smallest, as those in which a job starts at
//! once, nothing is to be expected below it: the tenth is taken from the other end then.

use std::collections::BTreeMap;

use super::{Forecast, Outlook};
use crate::ids::JobId;
use crate::units::{Span, Time};

/// Runs that make an estimate unless said otherwise.
pub const RUNS: usize = 19;

/// When something happens, probably.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Hardly earlier.
    pub low: Time,
    /// As likely before as after.
    pub mid: Time,
    /// Hardly later; `Time::NEVER`: no forecast went so far.
    pub high: Time,
}

/// Intervals up to this are points: beats and rounding move things by as much.
const SURE: Span = Span::from_whole_secs(2);

/// So many twentieths of the runs that have the same smallest are no chance.
const SEVERAL: usize = 4;

impl Interval {
    /// Whether it is a point, more or less: no run saw it otherwise.
    pub fn is_sure(&self) -> bool {
        self.high < Time::NEVER && self.high - self.low <= SURE
    }

    /// Whether it holds an instant.
    pub fn holds(&self, time: Time) -> bool {
        (self.low..=self.high).contains(&time)
    }
}

/// When a job starts and ends, probably; none where not even the middle is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// When it first gets devices.
    pub start: Option<Interval>,
    /// When it is over.
    pub end: Option<Interval>,
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

fn interval(mut times: Vec<Time>) -> Option<Interval> {
    times.sort_unstable();
    let last = times.len().checked_sub(1)?;
    // Counted from 0: the (n + 1)/20-th from either end.
    let place = |twentieths: usize| (twentieths * (times.len() + 1) / 20).saturating_sub(1).min(last);
    let several = place(SEVERAL);
    let bounded = several > 0 && times[several] - times[0] <= SURE;
    let high = times[last - place(if bounded { 2 } else { 1 })];
    let found = Interval { low: times[place(1)], mid: times[last / 2], high };
    (found.mid < Time::NEVER).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(seconds: impl IntoIterator<Item = u64>) -> Option<(f64, f64, f64)> {
        let times = seconds.into_iter().map(|at| Time::ZERO + Span::from_whole_secs(10 * at));
        interval(times.collect()).map(|i| (i.low.secs() / 10.0, i.mid.secs() / 10.0, i.high.secs() / 10.0))
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
        assert_eq!(of(at_once(18)), Some((1.0, 1.0, 1.0)));
    }

    #[test]
    fn what_no_forecast_reached_is_not_known() {
        let of = |times: &[Time]| interval(times.to_vec());
        let [one, two, never] = [Time(1), Time(2), Time::NEVER];
        assert_eq!(of(&[one, two, two, never]), Some(Interval { low: one, mid: two, high: never }));
        assert_eq!(of(&[one, never, never]), None);
    }
}
