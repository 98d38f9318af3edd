//! A kind's two constants from measured steps: the part of the peak that matrix products reach, and the time that starting
//! one takes. The time of a step is linear in the latter, so for each value of the first the second is known in one
//! formula; the first is found by narrowing an interval.

use crate::accelerator::Accelerator;
use crate::plan::ParallelPlan;
use crate::step::evaluate;
use crate::transformer::Transformer;

/// A step that was measured on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredStep {
    /// What trained.
    pub model: Transformer,
    /// How it was split.
    pub plan: ParallelPlan,
    /// How long a step took.
    pub step_s: f64,
}

/// Values of the efficiency that are looked at.
const EFFICIENCY: (f64, f64) = (0.02, 1.0);

/// Values of the efficiency at which the search looks first.
const LOOKS: u32 = 200;

/// Halvings around the best of them.
const HALVINGS: u32 = 40;

/// The mean error of predictions, as a fraction of what was measured.
pub fn mean_error(device: &Accelerator, steps: &[MeasuredStep]) -> f64 {
    let errors =
        steps.iter().map(|step| (evaluate(&step.model, device, &step.plan).step_s / step.step_s - 1.0).abs());
    errors.sum::<f64>() / steps.len().max(1) as f64
}

/// The same kind with the two constants that fit best: least squares of relative errors.
pub fn fit(device: &Accelerator, steps: &[MeasuredStep]) -> Accelerator {
    let (low, high) = EFFICIENCY;
    let look = |at: u32| low + (high - low) * f64::from(at) / f64::from(LOOKS);
    let misfit_at = |efficiency: f64| misfit(&with(device, efficiency, steps), steps);
    let best = (0..=LOOKS).map(look).min_by(|a, b| misfit_at(*a).total_cmp(&misfit_at(*b))).unwrap_or(high);
    let (mut center, mut width) = (best, (high - low) / f64::from(LOOKS));
    for _ in 0..HALVINGS {
        let near =
            [center - width, center, center + width].into_iter().filter(|one| (low..=high).contains(one));
        center = near.min_by(|a, b| misfit_at(*a).total_cmp(&misfit_at(*b))).unwrap_or(center);
        width /= 2.0;
    }
    with(device, center, steps)
}

/// The kind at an efficiency, with the overhead that then fits best.
fn with(device: &Accelerator, efficiency: f64, steps: &[MeasuredStep]) -> Accelerator {
    let at = |overhead_s| Accelerator { efficiency, overhead_s, ..device.clone() };
    let (none, one) = (at(0.0), at(1.0));
    let (mut up, mut down) = (0.0, 0.0);
    for step in steps {
        let base = evaluate(&step.model, &none, &step.plan).step_s;
        let slope = (evaluate(&step.model, &one, &step.plan).step_s - base) / step.step_s;
        up += slope * (1.0 - base / step.step_s);
        down += slope * slope;
    }
    at(if down > 0.0 { (up / down).max(0.0) } else { 0.0 })
}

fn misfit(device: &Accelerator, steps: &[MeasuredStep]) -> f64 {
    let errors =
        steps.iter().map(|step| evaluate(&step.model, device, &step.plan).step_s / step.step_s - 1.0);
    errors.map(|error| error * error).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::known;

    #[test]
    fn constants_that_made_the_steps_are_found_again() {
        let truth = Accelerator { efficiency: 0.63, overhead_s: 45e-6, ..known("h200").unwrap() };
        let models = [(1024, 24, 16), (2048, 24, 16), (4096, 32, 32)];
        let steps: Vec<MeasuredStep> = (models.iter().flat_map(|size| [1, 4, 8].map(|micro| (*size, micro))))
            .map(|((hidden, layers, heads), micro_batch)| {
                let model = Transformer::gpt(hidden, layers, heads, micro_batch);
                let plan = ParallelPlan { micro_batch, ..ParallelPlan::WHOLE };
                let step_s = evaluate(&model, &truth, &plan).step_s;
                MeasuredStep { model, plan, step_s }
            })
            .collect();
        let start = known("h200").unwrap();
        let found = fit(&start, &steps);
        assert!(
            (found.efficiency - 0.63).abs() < 1e-4 && (found.overhead_s - 45e-6).abs() < 1e-8,
            "{found:?}"
        );
        assert!(mean_error(&found, &steps) < 1e-4 && mean_error(&start, &steps) > 0.05);
    }
}
