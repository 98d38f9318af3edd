//! From several forecasts to one estimate for each job: the middle, and an interval that should hold nine times in
//! ten. With n runs a tenth lies outside the (n + 1)/20-th and the one as far from the other end, so that 19 runs
//! give their smallest and their largest.

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
    let low = (times.len() + 1) / 20;
    let low = low.saturating_sub(1).min(last);
    let found = Interval { low: times[low], mid: times[last / 2], high: times[last - low] };
    (found.mid < Time::NEVER).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl IntoIterator<Item = u64>) -> Option<(u64, u64, u64)> {
        interval(times.into_iter().map(Time).collect()).map(|i| (i.low.0, i.mid.0, i.high.0))
    }

    #[test]
    fn a_tenth_lies_outside() {
        assert_eq!(of([7]), Some((7, 7, 7)));
        assert_eq!(of((1..=19).rev()), Some((1, 10, 19)));
        assert_eq!(of(1..=39), Some((2, 20, 38)));
        assert_eq!(of([]), None);
    }

    #[test]
    fn what_no_forecast_reached_is_not_known() {
        let never = u64::MAX;
        assert_eq!(of([3, 4, 5, never]), Some((3, 4, never)));
        assert_eq!(of([3, never, never]), None);
    }
}
