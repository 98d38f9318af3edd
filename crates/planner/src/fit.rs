//! A kind's constants from measured steps: the part of the peak that matrix products reach, the time that starting one takes,
//! and, where wanted, the speed of fused attention. The mean error is made small, so that one odd step does not decide. A
//! step's time is linear in the starting time, so for each value of the others that one is a weighted median; the others are
//! found by looking at many values and narrowing around the best.

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

/// Values of the speed of fused attention that are looked at, relative to matrix products.
const FLASH: (f64, f64) = (0.1, 2.0);

/// Values of each at which the search looks first.
const LOOKS: u32 = 100;

/// Halvings around the best of them.
const HALVINGS: u32 = 30;

/// The mean error of predictions, as a fraction of what was measured.
pub fn mean_error(device: &Accelerator, steps: &[MeasuredStep]) -> f64 {
    let errors =
        steps.iter().map(|step| (evaluate(&step.model, device, &step.plan).step_s / step.step_s - 1.0).abs());
    errors.sum::<f64>() / steps.len().max(1) as f64
}

/// The same kind with the efficiency and the starting time that fit best.
pub fn fit(device: &Accelerator, steps: &[MeasuredStep]) -> Accelerator {
    let at = |efficiency| with(&Accelerator { efficiency, ..device.clone() }, steps);
    at(narrowed(EFFICIENCY, |efficiency| mean_error(&at(efficiency), steps)))
}

/// The same with the speed of fused attention as a third.
pub fn fit_with_flash(device: &Accelerator, steps: &[MeasuredStep]) -> Accelerator {
    let at = |flash| fit(&Accelerator { flash, ..device.clone() }, steps);
    at(narrowed(FLASH, |flash| mean_error(&at(flash), steps)))
}

/// The argument in an interval where a function is smallest, as far as looks and halvings tell.
fn narrowed((low, high): (f64, f64), of: impl Fn(f64) -> f64) -> f64 {
    let better = |a: (f64, f64), b: (f64, f64)| if b.1 < a.1 { b } else { a };
    let look = |at: f64| (at, of(at));
    let steps = f64::from(LOOKS);
    let looks = (0..=LOOKS).map(|at| look(low + (high - low) * f64::from(at) / steps));
    let mut best = looks.fold((low, f64::INFINITY), better);
    let mut width = (high - low) / steps;
    for _ in 0..HALVINGS {
        width /= 2.0;
        let near = [best.0 - width, best.0 + width].into_iter().filter(|at| (low..=high).contains(at));
        best = near.map(look).fold(best, better);
    }
    best.0
}

/// The kind with the starting time that fits best: the weighted median of those that fit each step alone.
fn with(device: &Accelerator, steps: &[MeasuredStep]) -> Accelerator {
    let at = |overhead_s| Accelerator { overhead_s, ..device.clone() };
    let (none, one) = (at(0.0), at(1.0));
    let alone = |step: &MeasuredStep| {
        let base = evaluate(&step.model, &none, &step.plan).step_s;
        let slope = evaluate(&step.model, &one, &step.plan).step_s - base;
        ((step.step_s - base) / slope, slope / step.step_s)
    };
    let mut each: Vec<(f64, f64)> = steps.iter().map(alone).collect();
    each.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = each.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut passed = 0.0;
    let median = each.iter().find(|(_, weight)| {
        passed += weight;
        passed >= half
    });
    at(median.map_or(0.0, |(overhead_s, _)| overhead_s.max(0.0)))
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

    #[test]
    fn a_fit_is_never_worse_than_where_it_starts() {
        let start = known("h200").unwrap();
        let step = |micro_batch, factor: f64| {
            let (model, plan) = (
                Transformer::gpt(2048, 24, 16, micro_batch),
                ParallelPlan { micro_batch, ..ParallelPlan::WHOLE },
            );
            let step_s = evaluate(&model, &start, &plan).step_s * factor;
            MeasuredStep { model, plan, step_s }
        };
        let steps = [step(1, 1.4), step(4, 0.93), step(8, 1.02)];
        let (two, three) = (fit(&start, &steps), fit_with_flash(&start, &steps));
        assert!(mean_error(&two, &steps) <= mean_error(&start, &steps));
        assert!(mean_error(&three, &steps) <= mean_error(&two, &steps) + 1e-3);
    }
}
