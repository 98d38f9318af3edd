//! What was seen of a job's steps on one kind: a mean for each number of nodes, devices and examples on a device, and
//! the model that suits them. The model is fitted anew only where something new was seen.

use serde::{Deserialize, Serialize};

use super::fit::fit;
use super::model::Model;
use crate::training::Timing;

/// Points that are kept. A fit costs a pass over them for each trial.
const POINTS_MAX: usize = 128;

/// What a measurement counts for at least: a mean follows what changes for good.
const WEIGHT_MIN: f64 = 1.0 / 32.0;

/// How far a mean may go from where it was fitted before the model is fitted anew.
const DRIFT_MAX: f64 = 0.02;

/// Times that are taken for measurements, in seconds.
const SECONDS: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

impl Timing {
    /// Whether it can have been measured, as it may come from outside.
    pub fn is_sound(&self) -> bool {
        let some = self.nodes > 0 && self.devices >= self.nodes && self.local > 0;
        some && SECONDS.contains(&self.grad_s) && SECONDS.contains(&self.step_s)
    }
}

/// What was seen on one kind, with the model that suits it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Points {
    /// Least recently seen first.
    points: Vec<Point>,
    model: Model,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Point {
    mean: Timing,
    count: u32,
    /// The mean's seconds when the model was last fitted.
    fitted: Option<[f64; 2]>,
}

impl Point {
    fn new(timing: Timing) -> Point {
        Point { mean: timing, count: 1, fitted: None }
    }

    fn is_of(&self, timing: &Timing) -> bool {
        let key = |timing: &Timing| (timing.nodes, timing.devices, timing.local);
        key(&self.mean) == key(timing)
    }

    fn add(&mut self, timing: &Timing) {
        self.count = self.count.saturating_add(1);
        let weight = (1.0 / f64::from(self.count)).max(WEIGHT_MIN);
        let towards = |mean: f64, seen: f64| mean + weight * (seen - mean);
        self.mean.grad_s = towards(self.mean.grad_s, timing.grad_s);
        self.mean.step_s = towards(self.mean.step_s, timing.step_s);
    }

    fn has_moved(&self) -> bool {
        let far = |now: f64, then: f64| (now - then).abs() > DRIFT_MAX * then;
        self.fitted
            .is_none_or(|[grad_s, step_s]| far(self.mean.grad_s, grad_s) || far(self.mean.step_s, step_s))
    }
}

impl Points {
    /// From first measurements; none where there is none.
    pub(super) fn of(timings: impl Iterator<Item = Timing>) -> Option<Points> {
        let mut points = Vec::new();
        timings.for_each(|timing| note(&mut points, &timing));
        let means: Vec<Timing> = points.iter().map(|point: &Point| point.mean).collect();
        let model = (!means.is_empty()).then(|| fit(&means, None))?;
        points.iter_mut().for_each(|point| point.fitted = Some([point.mean.grad_s, point.mean.step_s]));
        Some(Points { points, model })
    }

    /// Takes a measurement. Whether the model is another one now.
    pub(super) fn see(&mut self, timing: &Timing) -> bool {
        note(&mut self.points, timing);
        let moved = self.points.last().is_some_and(Point::has_moved);
        if moved {
            let means: Vec<Timing> = self.points.iter().map(|point| point.mean).collect();
            self.model = fit(&means, Some(&self.model));
            self.points
                .iter_mut()
                .for_each(|point| point.fitted = Some([point.mean.grad_s, point.mean.step_s]));
        }
        moved
    }

    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    /// The most devices at once.
    pub(super) fn most(&self) -> u32 {
        self.points.iter().map(|point| point.mean.devices).max().unwrap_or(0)
    }
}

/// Adds a measurement, which then comes last. Where there are too many, the oldest goes of those devices of which
/// most is known.
fn note(points: &mut Vec<Point>, timing: &Timing) {
    let timing = Timing { step_s: timing.step_s.max(timing.grad_s), ..*timing };
    let at = points.iter().position(|point| point.is_of(&timing));
    let point = match at.map(|at| points.remove(at)) {
        Some(mut point) => {
            point.add(&timing);
            point
        }
        None => Point::new(timing),
    };
    if points.len() >= POINTS_MAX {
        let alike = |point: &Point| {
            let place = |point: &Point| (point.mean.nodes, point.mean.devices);
            points.iter().filter(|other| place(other) == place(point)).count()
        };
        let counts: Vec<usize> = points.iter().map(alike).collect();
        let most = counts.iter().max().copied();
        let oldest = counts.iter().position(|count| Some(*count) == most).unwrap_or(0);
        points.remove(oldest);
    }
    points.push(point);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(devices: u32, local: u32, grad_s: f64) -> Timing {
        Timing { nodes: 1, devices, local, grad_s, step_s: grad_s + 0.1 }
    }

    #[test]
    fn only_what_is_new_is_fitted() {
        let mut points = Points::of([timing(1, 8, 1.0), timing(1, 16, 1.5)].into_iter()).expect("two points");
        let first = *points.model();
        assert!((first.grad_s(16) / 1.5 - 1.0).abs() < 0.05, "{first:?}");
        assert!(!points.see(&timing(1, 8, 1.01)), "the mean hardly moved");
        assert_eq!(*points.model(), first);
        assert!(points.see(&timing(1, 8, 1.2)));
        assert!(points.see(&timing(2, 8, 1.0)), "a new place");
        assert_eq!((points.points.len(), points.most()), (3, 2));
        assert_eq!(Points::of(std::iter::empty()), None);
    }

    #[test]
    fn a_mean_follows_what_changes_for_good() {
        let mut points = Points::of([timing(1, 8, 1.0)].into_iter()).expect("a point");
        (0..100).for_each(|_| _ = points.see(&timing(1, 8, 1.0)));
        (0..200).for_each(|_| _ = points.see(&timing(1, 8, 2.0)));
        assert!((points.model().grad_s(8) / 2.0 - 1.0).abs() < 0.03, "{:?}", points.model());
    }

    #[test]
    fn old_points_go_where_most_is_known() {
        let mut points = Points::of([timing(1, 1, 1.0), timing(4, 1, 1.0)].into_iter()).expect("two points");
        (2..1000).for_each(|local| _ = points.see(&timing(2, local, f64::from(local))));
        assert_eq!(points.points.len(), POINTS_MAX);
        assert_eq!(points.most(), 4, "what little is known of others is kept");
        assert_eq!(points.points.last().map(|point| point.mean.local), Some(999));
    }

    #[test]
    fn what_cannot_have_been_measured_is_told() {
        let good = timing(2, 8, 1.0);
        assert!(good.is_sound());
        for bad in [
            Timing { nodes: 0, ..good },
            Timing { nodes: 3, ..good },
            Timing { local: 0, ..good },
            Timing { grad_s: f64::NAN, ..good },
            Timing { step_s: f64::INFINITY, ..good },
            Timing { grad_s: 0.0, ..good },
            Timing { step_s: -1.0, ..good },
        ] {
            assert!(!bad.is_sound(), "{bad:?}");
        }
    }
}
