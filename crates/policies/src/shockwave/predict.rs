//! How long a job will still take that goes from regime to regime (section 5 of the paper, the restatement rule): of
//! its steps each of its B regimes is expected to have as many as a Dirichlet prior of steps/B each and what was seen
//! say; those seen are taken off, and what remains is scaled to the steps that remain. Which regimes there are is known,
//! and how their speeds compare; when they come is not.

use yard_core::ids::JobIdx;
use yard_core::view::View;

/// Where a job is and what is to come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PredictedCourse {
    /// The part of its steps that is done.
    pub(super) done: f64,
    /// Parts of its steps a second, at the mean pace so far.
    pub(super) rate: f64,
    /// Seconds that what is done takes alone, and what is left.
    pub(super) spent: f64,
    pub(super) left: f64,
}

impl PredictedCourse {
    /// The course of a job that now does so many steps a second.
    pub(super) fn predict(view: &View, job: JobIdx, speed: f64) -> PredictedCourse {
        let (spec, run) = (view.spec(job), view.run(job));
        let regimes = spec.regimes.as_deref().unwrap_or(&[]);
        let Some(current) = regimes.get(run.regime as usize).filter(|own| own.seconds > 0.0) else {
            let steps = view.steps_in_all(job);
            return PredictedCourse::of(steps, &[(steps - view.steps_left(job), 1.0 / speed)], 0);
        };
        let seen = run.steps_by_regime(view.now, regimes.len());
        let pace = |seconds: f64| if seconds > 0.0 { seconds / current.seconds / speed } else { 1.0 / speed };
        let paces = regimes.iter().map(|regime| pace(regime.seconds));
        PredictedCourse::of(spec.steps, &seen.into_iter().zip(paces).collect::<Vec<_>>(), run.regime as usize)
    }

    /// From steps seen and seconds a step, by regime.
    fn of(steps: f64, regimes: &[(f64, f64)], current: usize) -> PredictedCourse {
        let done: f64 = regimes.iter().map(|(seen, _)| seen).sum::<f64>().min(steps);
        let spent: f64 = regimes.iter().map(|(seen, pace)| seen * pace).sum();
        let pace = if done > 0.0 { spent / done } else { regimes[current].1 };
        let prior = steps / regimes.len() as f64;
        // All concentrations add up to the prior steps and those seen.
        let expected = |seen: f64| (steps * (prior + seen) / (steps + done) - seen).max(0.0);
        let (mut many, mut seconds) = (0.0, 0.0);
        for (seen, pace) in regimes {
            many += expected(*seen);
            seconds += expected(*seen) * pace;
        }
        let mean = if many > 0.0 { seconds / many } else { regimes[current].1 };
        let left = (steps - done).max(0.0) * mean;
        PredictedCourse { done: (done / steps).clamp(0.0, 1.0), rate: 1.0 / (pace * steps), spent, left }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::training::Regime;

    use super::*;
    use crate::testing::mixed;

    #[test]
    fn one_regime_is_as_it_seems() {
        let view = mixed(&[1], &[(1, &[2.0])], &[100.0]);
        let course = PredictedCourse::predict(&view, JobIdx(0), 2.0);
        assert_eq!(course, PredictedCourse { done: 0.0, rate: 0.02, spent: 0.0, left: 50.0 });
    }

    #[test]
    fn nothing_seen_means_as_much_of_each() {
        let course = PredictedCourse::of(100.0, &[(0.0, 1.0), (0.0, 3.0)], 0);
        assert_eq!((course.left, course.rate), (200.0, 0.01));
    }

    #[test]
    fn what_was_seen_is_expected_to_go_on() {
        // Of 100 steps 60 in the first: (50 + 60) / 160 and 50 / 160 of them, 8.75 and 31.25 to come.
        let course = PredictedCourse::of(100.0, &[(60.0, 1.0), (0.0, 3.0)], 0);
        assert_eq!((course.done, course.spent), (0.6, 60.0));
        assert!((course.left - (8.75 + 31.25 * 3.0)).abs() < 1e-9, "{}", course.left);
    }

    #[test]
    fn more_than_was_expected_leaves_the_other_regime() {
        let course = PredictedCourse::of(100.0, &[(99.0, 1.0), (0.0, 3.0)], 0);
        assert!((course.left - 3.0).abs() < 1e-9, "{}", course.left);
    }

    #[test]
    fn speeds_are_those_of_the_regime_it_is_in() {
        let mut view = mixed(&[1], &[(1, &[2.0])], &[10.0]);
        let regimes = [Regime { batch: 1, seconds: 4.0 }, Regime { batch: 2, seconds: 2.0 }];
        Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[0]).regimes = Some(Arc::from(regimes));
        Arc::make_mut(&mut view.runs)[0].regime = 1;
        let course = PredictedCourse::predict(&view, JobIdx(0), 2.0);
        assert_eq!(course.left, 5.0 * 1.0 + 5.0 * 0.5);
    }
}
