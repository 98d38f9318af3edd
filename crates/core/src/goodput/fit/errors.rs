//! How far a model is from what was seen, and how that changes with its numbers.

use super::N;
use crate::training::Timing;

/// Weights of the terms that hold numbers back which the points leave open.
const OVERLAP_WEIGHT: f64 = 1e-3;
const GROWTH_WEIGHT: f64 = 1e-2;

/// Added under the roots: a fit without error has no slope otherwise.
const SMOOTH: f64 = 1e-12;

/// Points, with all that does not depend on the model worked out.
pub(super) struct Errors {
    points: Vec<Point>,
}

struct Point {
    local: f64,
    /// Where the line of its synchronisation begins among the numbers; none on one device.
    sync: Option<usize>,
    /// Devices beyond the second.
    beyond: f64,
    ln_grad: f64,
    ln_step: f64,
}

/// The value and its derivatives at one place.
pub(super) struct Slope {
    pub(super) value: f64,
    pub(super) gradient: [f64; N],
    /// Second derivatives, without those of the model itself; never negative along any way.
    pub(super) curvature: [[f64; N]; N],
}

/// What a point's step is made of: its logarithm, and by how much it grows with that of each part and with γ.
struct Step {
    ln_step: f64,
    by_grad: f64,
    by_sync: f64,
    by_overlap: f64,
}

impl Errors {
    pub(super) fn new(points: &[Timing]) -> Errors {
        let point = |point: &Timing| Point {
            local: f64::from(point.local),
            sync: (point.devices > 1).then_some(if point.nodes > 1 { 2 } else { 4 }),
            beyond: f64::from(point.devices.saturating_sub(2)),
            ln_grad: libm::log(point.grad_s),
            ln_step: libm::log(point.step_s),
        };
        Errors { points: points.iter().map(point).collect() }
    }

    pub(super) fn value(&self, numbers: &[f64; N]) -> f64 {
        let (mut grads, mut steps) = (0.0, 0.0);
        for point in &self.points {
            let (grad, sync) = point.parts(numbers);
            let (grad_off, step_off) = (libm::log(grad) - point.ln_grad, ln_step(grad, sync, numbers[6]));
            grads += grad_off * grad_off;
            steps += (step_off - point.ln_step) * (step_off - point.ln_step);
        }
        let count = self.points.len() as f64;
        (grads / count + SMOOTH).sqrt() + (steps / count + SMOOTH).sqrt() + penalty(numbers)
    }

    pub(super) fn slope(&self, numbers: &[f64; N]) -> Slope {
        let (mut grads, mut steps) = (Squares::default(), Squares::default());
        for point in &self.points {
            let (grad, sync) = point.parts(numbers);
            let by_numbers = [1.0 / grad, point.local / grad];
            grads.add(libm::log(grad) - point.ln_grad, &[(0, by_numbers[0]), (1, by_numbers[1])]);
            let step = Step::of(grad, sync, numbers[6]);
            let off = step.ln_step - point.ln_step;
            let own = [(0, step.by_grad * by_numbers[0]), (1, step.by_grad * by_numbers[1])];
            match point.sync {
                None => steps.add(off, &own),
                Some(line) => {
                    let by_sync = step.by_sync / sync;
                    let shared = [(line, by_sync), (line + 1, by_sync * point.beyond), (6, step.by_overlap)];
                    steps.add(off, &[own[0], own[1], shared[0], shared[1], shared[2]]);
                }
            }
        }
        let mut slope = Slope { value: penalty(numbers), gradient: [0.0; N], curvature: [[0.0; N]; N] };
        slope.add_penalties(numbers);
        slope.add_root(&grads, self.points.len());
        slope.add_root(&steps, self.points.len());
        slope
    }
}

impl Point {
    fn parts(&self, numbers: &[f64; N]) -> (f64, f64) {
        let grad = numbers[0] + numbers[1] * self.local;
        (grad, self.sync.map_or(0.0, |line| numbers[line] + numbers[line + 1] * self.beyond))
    }
}

fn ln_step(grad: f64, sync: f64, overlap: f64) -> f64 {
    if sync <= 0.0 {
        return libm::log(grad);
    }
    let (long, short) = if grad >= sync { (grad, sync) } else { (sync, grad) };
    libm::log(long) + libm::log1p(libm::exp(overlap * libm::log(short / long))) / overlap
}

impl Step {
    fn of(grad: f64, sync: f64, overlap: f64) -> Step {
        if sync <= 0.0 {
            return Step { ln_step: libm::log(grad), by_grad: 1.0, by_sync: 0.0, by_overlap: 0.0 };
        }
        let (long, short) = if grad >= sync { (grad, sync) } else { (sync, grad) };
        let ln_ratio = libm::log(short / long);
        let part = libm::exp(overlap * ln_ratio);
        let (ln_sum, of_short) = (libm::log1p(part), part / (1.0 + part));
        let (by_long, by_short) = (1.0 - of_short, of_short);
        let (by_grad, by_sync) = if grad >= sync { (by_long, by_short) } else { (by_short, by_long) };
        let by_overlap = (of_short * ln_ratio - ln_sum / overlap) / overlap;
        Step { ln_step: libm::log(long) + ln_sum / overlap, by_grad, by_sync, by_overlap }
    }
}

/// The line of each sort of synchronisation begins here among the numbers.
const SYNC_LINES: [usize; 2] = [2, 4];

fn penalty(numbers: &[f64; N]) -> f64 {
    let growth = SYNC_LINES.map(|line| numbers[line + 1] / numbers[line]);
    OVERLAP_WEIGHT * (numbers[6] - 1.0) * (numbers[6] - 1.0)
        + GROWTH_WEIGHT * growth.iter().map(|ratio| ratio * ratio).sum::<f64>()
}

/// A sum of squares as it depends on the numbers: half its first and second derivatives.
#[derive(Default)]
struct Squares {
    sum: f64,
    first: [f64; N],
    second: [[f64; N]; N],
}

impl Squares {
    fn add(&mut self, off: f64, by: &[(usize, f64)]) {
        self.sum += off * off;
        for (at, (i, a)) in by.iter().enumerate() {
            self.first[*i] += off * a;
            for (j, b) in &by[..=at] {
                self.second[*i][*j] += a * b;
            }
        }
    }
}

impl Slope {
    /// Adds the root of a mean of squares, curved like the parabola that touches it here and lies above it: a step
    /// then does not go too far.
    fn add_root(&mut self, squares: &Squares, count: usize) {
        let count = count as f64;
        let root = (squares.sum / count + SMOOTH).sqrt();
        let weight = 1.0 / (count * root);
        self.value += root;
        for i in 0..N {
            self.gradient[i] += squares.first[i] * weight;
            for j in 0..=i {
                self.curvature[i][j] += squares.second[i][j] * weight;
                self.curvature[j][i] = self.curvature[i][j];
            }
        }
    }

    fn add_penalties(&mut self, numbers: &[f64; N]) {
        self.gradient[6] += 2.0 * OVERLAP_WEIGHT * (numbers[6] - 1.0);
        self.curvature[6][6] += 2.0 * OVERLAP_WEIGHT;
        for line in SYNC_LINES {
            let (base, growth) = (numbers[line], numbers[line + 1] / numbers[line]);
            // Of growth² itself: by each number, growth changes by these.
            let by = [-growth / base, 1.0 / base];
            for (i, a) in by.iter().enumerate() {
                self.gradient[line + i] += 2.0 * GROWTH_WEIGHT * growth * a;
                for (j, b) in by.iter().enumerate() {
                    self.curvature[line + i][line + j] += 2.0 * GROWTH_WEIGHT * a * b;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<Timing> {
        let at = |nodes, devices, local: u32| {
            let grad_s = 0.05 + 0.002 * f64::from(local) * (1.0 + 0.01 * f64::from(devices));
            Timing { nodes, devices, local, grad_s, step_s: grad_s * 1.1 + 0.02 * f64::from(nodes * devices) }
        };
        vec![at(1, 1, 8), at(1, 1, 64), at(1, 2, 32), at(1, 8, 16), at(2, 8, 32), at(4, 32, 64)]
    }

    #[test]
    fn the_gradient_is_that_of_the_value() {
        let errors = Errors::new(&points());
        for at in [
            [0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.5],
            [0.02, 0.004, 0.2, 0.03, 0.01, 1e-4, 4.0],
            [3.0, 0.1, 1.0, 1.0, 2.0, 0.5, 1.0],
        ] {
            let slope = errors.slope(&at);
            assert!((slope.value - errors.value(&at)).abs() < 1e-12);
            for i in 0..N {
                let step = 1e-6 * at[i];
                let moved = |by: f64| {
                    let mut there = at;
                    there[i] += by;
                    errors.value(&there)
                };
                let seen = (moved(step) - moved(-step)) / (2.0 * step);
                let scale = slope.gradient[i].abs().max(1e-3 / at[i]);
                assert!((seen - slope.gradient[i]).abs() < 1e-4 * scale, "{i}: {seen} {}", slope.gradient[i]);
            }
        }
    }

    #[test]
    fn curvature_is_never_negative() {
        let slope = Errors::new(&points()).slope(&[0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.5]);
        for seed in 0..200u32 {
            let way: [f64; N] = std::array::from_fn(|i| libm::sin(f64::from(seed * 7 + i as u32)));
            let along: f64 = (0..N)
                .flat_map(|i| (0..N).map(move |j| (i, j)))
                .map(|(i, j)| slope.curvature[i][j] * way[i] * way[j])
                .sum();
            assert!(along > -1e-9, "{along}");
        }
    }
}
