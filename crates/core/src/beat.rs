//! How long a round should be. In a round of length R a job waits R/2 for the next decision on average, and while
//! jobs take turns each may be stopped once a round, which loses its restart cost c and so c · L / R over the time
//! L that it has left. The sum over all jobs is least at R = √(2 · mean(c · L)).

use crate::job::JobSpec;
use crate::units::Span;

/// Below this, plans and checkpoints would be most of what happens.
pub const ROUND_MIN: Span = Span::from_whole_secs(30);

/// Above this, nobody would wait for a decision.
pub const ROUND_MAX: Span = Span::from_whole_secs(1800);

/// The length that suits these jobs as they are submitted, in whole seconds; the longest where there are none.
pub fn round_for<'a>(jobs: impl Iterator<Item = &'a JobSpec>) -> Span {
    let (mut sum, mut count) = (0.0, 0.0);
    for job in jobs {
        let seconds = job.steps / job.speeds.iter().copied().fold(0.0, f64::max);
        if seconds.is_finite() {
            sum += job.costs.restart().secs() * seconds;
            count += 1.0;
        }
    }
    if count == 0.0 {
        return ROUND_MAX;
    }
    let seconds = (2.0 * sum / count).sqrt().round();
    Span::from_secs(seconds).clamp(ROUND_MIN, ROUND_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::KindId;
    use crate::job::{Costs, Shape};

    fn job(seconds: f64, restart: f64) -> JobSpec {
        JobSpec {
            costs: Costs { start: Span::from_secs(restart), ..Costs::default() },
            ..JobSpec::new("job", [Shape::of(KindId(0), 1)], [2.0], seconds * 2.0)
        }
    }

    #[test]
    fn the_length_is_the_one_that_loses_least() {
        let jobs = [job(3600.0, 10.0), job(36_000.0, 5.0), job(600.0, 20.0)];
        let chosen = round_for(jobs.iter()).secs();
        let loss = |round: f64| -> f64 {
            jobs.iter().map(|job| round / 2.0 + job.costs.restart().secs() * job.steps / 2.0 / round).sum()
        };
        let best = (30..=1800).map(f64::from).min_by(|a, b| loss(*a).total_cmp(&loss(*b))).unwrap();
        assert!((chosen - best).abs() <= 1.0, "{chosen} is not {best}");
    }

    #[test]
    fn lengths_stay_within_reason() {
        assert_eq!(round_for([job(3600.0, 0.0)].iter()), ROUND_MIN);
        assert_eq!(round_for([job(1e9, 1e4)].iter()), ROUND_MAX);
        assert_eq!(round_for([].iter()), ROUND_MAX);
    }
}
