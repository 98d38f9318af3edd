//! How far a job was when: a few points of all it said, so that people see how fast it went. It is kept in memory only
//! and never in the way: a job that reports each second for a month has as many points as one that ran for two minutes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Points kept of one job.
const POINTS_MAX: usize = 120;

/// How far a job was at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PacePoint {
    /// Seconds since 1970, UTC.
    pub time: f64,
    /// Steps done.
    pub step: u64,
    /// Which of its starts it was: between two of them it did not run.
    pub start: u32,
    /// The training loss that it reported by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}

/// How far a job was when, evenly over the time that is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pace {
    /// In order of time; since the server was started.
    pub points: Vec<PacePoint>,
}

impl Pace {
    /// It says how far it is. What it said last is always there; what it said before, as often as there is room.
    pub(crate) fn tell(&mut self, mut point: PacePoint) {
        let last = self.points.last_mut();
        if let Some(last) = last.filter(|last| (last.step, last.start) == (point.step, point.start)) {
            last.loss = point.loss.or(last.loss);
            return;
        }
        if self.crowded(point) {
            let before = self.points.pop();
            // The loss is reported less often than steps are.
            point.loss = point.loss.or(before.and_then(|before| before.loss));
        }
        self.points.push(point);
        if self.points.len() > POINTS_MAX {
            self.thin();
        }
    }

    /// Whether the newest point is too close to the one before to stay once another comes.
    fn crowded(&self, point: PacePoint) -> bool {
        let [first, .., before, last] = self.points.as_slice() else { return false };
        let gap = (last.time - first.time) / POINTS_MAX as f64;
        (before.start, last.start) == (last.start, point.start) && last.time - before.time < gap
    }

    /// Every other point goes; the first and the last of each start stay, as far as they are few.
    fn thin(&mut self) {
        let points = &self.points;
        let edge = |at: usize| {
            let other = |near: Option<&PacePoint>| near.is_none_or(|near| near.start != points[at].start);
            other(points.get(at + 1)) || other(at.checked_sub(1).and_then(|before| points.get(before)))
        };
        let edges = (0..points.len()).filter(|at| edge(*at)).count();
        let keep = |at: &usize| {
            at.is_multiple_of(2) || *at + 1 == points.len() || (edges < POINTS_MAX / 2 && edge(*at))
        };
        self.points = (0..points.len()).filter(keep).map(|at| points[at]).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(points: impl Iterator<Item = (f64, u64, u32)>) -> Pace {
        let mut pace = Pace::default();
        points.for_each(|(time, step, start)| pace.tell(PacePoint { time, step, start, loss: None }));
        pace
    }

    #[test]
    fn however_much_is_said_points_are_few_and_even() {
        for n in [1_u32, 100, 121, 1_000, 50_000] {
            let pace = told((0..n).map(|at| (f64::from(at), u64::from(at) * 3, 1)));
            let points = &pace.points;
            assert!(points.len() <= POINTS_MAX && points.len() >= (n as usize).min(POINTS_MAX / 2));
            assert_eq!((points[0].time, points[points.len() - 1].time), (0.0, f64::from(n - 1)));
            let widest = points.windows(2).map(|pair| pair[1].time - pair[0].time).fold(0.0, f64::max);
            assert!(widest <= (f64::from(n) / 20.0).max(1.0), "{n}: a gap of {widest}");
        }
    }

    #[test]
    fn a_pause_stays_to_be_seen() {
        let before = (0..500).map(|at| (f64::from(at), u64::from(at as u32), 1));
        let after = (0..500).map(|at| (9_000.0 + f64::from(at), 499 + u64::from(at as u32), 2));
        let pace = told(before.chain(after));
        let first = pace.points.iter().position(|point| point.start == 2).unwrap();
        assert!(pace.points[first - 1].time >= 490.0 && pace.points[first].time <= 9_010.0);
    }

    #[test]
    fn a_loss_that_is_told_seldom_is_not_lost_among_many_steps() {
        let mut pace = Pace::default();
        for at in 0..5_000_u32 {
            let loss = at.is_multiple_of(10).then_some(5_000.0 - f64::from(at));
            pace.tell(PacePoint { time: f64::from(at), step: u64::from(at), start: 1, loss });
        }
        let losses: Vec<f64> = pace.points.iter().filter_map(|point| point.loss).collect();
        assert!(losses.len() > POINTS_MAX / 4, "{} of {} points", losses.len(), pace.points.len());
        assert!(losses.is_sorted_by(|a, b| a > b), "they fall as they were told");
        let mut pace = Pace::default();
        pace.tell(PacePoint { time: 1.0, step: 7, start: 1, loss: None });
        pace.tell(PacePoint { time: 2.0, step: 7, start: 1, loss: Some(2.5) });
        assert_eq!(pace.points[0].loss, Some(2.5), "it is told after the step");
    }

    #[test]
    fn what_says_nothing_new_is_not_kept_and_many_starts_stay_few() {
        assert_eq!(told([(0.0, 5, 1), (1.0, 5, 1), (2.0, 6, 1)].into_iter()).points.len(), 2);
        let starts = told((0..10_000_u32).map(|at| (f64::from(at), u64::from(at), at)));
        assert!(starts.points.len() <= POINTS_MAX);
    }
}
