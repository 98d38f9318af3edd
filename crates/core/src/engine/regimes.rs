//! Jobs that go from one way of making their steps to another by themselves. How long each lasted is kept for
//! policies that guess what comes; the others see a job that is as fast as it is now.

use super::Engine;
use crate::ids::JobIdx;
use crate::job::JobRun;
use crate::training::Regime;
use crate::units::Time;

impl Engine {
    /// A job is in this regime from now on; one that it does not have is no news.
    pub(super) fn turn(&mut self, job: JobIdx, steps: f64, regime: u16) {
        let regimes = self.state.specs[job.index()].regimes.clone();
        let Some(regimes) = regimes.filter(|regimes| (regime as usize) < regimes.len() && steps.is_finite())
        else {
            return;
        };
        let run = self.state.run_mut(job);
        run.leave_regime(regimes.len(), steps);
        let before = std::mem::replace(&mut run.regime, regime);
        let faster = ratio(&regimes, before, regime);
        if before != regime {
            self.state.change_spec(job, |spec| {
                spec.speeds = spec.speeds.iter().map(|speed| speed * faster).collect();
            });
            self.state.changed.touched.push(job);
            self.state.dirty = true;
        }
        self.progress(job, steps);
    }
}

/// How much faster steps are in one regime than in another; what is no time changes nothing.
fn ratio(regimes: &[Regime], before: u16, after: u16) -> f64 {
    let seconds = |at: u16| regimes.get(at as usize).map_or(1.0, |regime| regime.seconds);
    let ratio = seconds(before) / seconds(after);
    if ratio.is_finite() && ratio > 0.0 { ratio } else { 1.0 }
}

impl JobRun {
    /// Counts the steps since the last turn for the regime that it is in.
    fn leave_regime(&mut self, regimes: usize, steps: f64) {
        if self.seen.len() != regimes {
            self.seen = vec![0.0; regimes].into();
        }
        let counted: f64 = self.seen.iter().sum();
        if let Some(here) = self.seen.get_mut(self.regime as usize) {
            // A job that lost steps may have lost some of an earlier regime too.
            *here = (*here + steps - counted).max(0.0);
        }
    }

    /// Steps done in each of so many regimes by `now`, as believed.
    pub fn steps_by_regime(&self, now: Time, regimes: usize) -> Vec<f64> {
        let mut seen = self.seen.to_vec();
        seen.resize(regimes, 0.0);
        let counted: f64 = seen.iter().sum();
        if let Some(here) = seen.get_mut(self.regime as usize) {
            *here = (*here + self.done_at(now) - counted).max(0.0);
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::JobId;

    #[test]
    fn steps_count_for_the_regime_they_were_made_in() {
        let mut run = JobRun::new(JobId(0), Time::ZERO);
        run.leave_regime(3, 4.0);
        run.regime = 2;
        run.done = 5.5;
        assert_eq!(run.steps_by_regime(Time::ZERO, 3), [4.0, 0.0, 1.5]);
        run.leave_regime(3, 6.0);
        run.regime = 0;
        run.done = 7.0;
        assert_eq!(run.steps_by_regime(Time::ZERO, 3), [5.0, 0.0, 2.0]);
    }

    #[test]
    fn times_that_make_no_sense_change_no_speed() {
        let regimes = [1.0, 4.0, 0.0, f64::NAN].map(|seconds| Regime { batch: 1, seconds });
        assert_eq!((ratio(&regimes, 0, 1), ratio(&regimes, 1, 0)), (0.25, 4.0));
        assert_eq!((ratio(&regimes, 0, 2), ratio(&regimes, 3, 0)), (1.0, 1.0));
    }
}
