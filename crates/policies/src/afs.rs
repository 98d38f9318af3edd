//! Apathetic future share (Hwang et al., "Elastic Resource Sharing for Distributed Deep Learning", NSDI 2021).
//!
//! Objective: min Σ_j end_j, one device at a time. Let a be the job that ends first of two as they stand, p a speed
//! now and p' with one device more. For good to b is better than to a until it ends and then to b, exactly where
//!   (p'_b − p_b) / p'_b > (p'_a − p_a) / p_a.
//! All start with nothing; each device goes to the job that no other beats. Two that have nothing: the shorter.
//! `lengths=unknown` (AFS-P) takes either to be the first to end: the larger p' / p, then least attained service.
//! Where the next size takes several devices, gains are divided by their number. Of several kinds a job begins on the
//! one whose devices do most for it among those that are left, the short ones first; it grows there, or where it cannot,
//! goes over to another kind for a faster size.
//! Reads: sizes and speeds, steps left (known), attained service (unknown).
//! Cost: O(devices · jobs). Not to be used where restarts are dear: it asks nothing of them, and every arrival and
//! every end may change many sizes.

use std::ops::Range;

use yard_core::allocation::Allocation;
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::sizes::{Growth, Step};
use crate::{ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "afs",
    live: "",
    family: "elastic",
    paper: "AFS, Hwang et al., NSDI 2021",
    there: "the rule for each device (AFS-L) and the one without lengths (AFS-P, reconstructed)",
    missing: "its share of CPUs, and CoDDL's way to change sizes without a restart",
    about: "Each device to the job where it shortens the mean completion time most; sizes change at every event",
    params: &[("lengths", "known: AFS-L, by steps left; unknown: AFS-P, by speeds alone [known]")],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make: |params| Ok(Box::new(Afs { known: known(params)? })),
};

struct Afs {
    known: bool,
}

fn known(params: &Params) -> Result<bool, ParamError> {
    match params.text("lengths") {
        None | Some("known") => Ok(true),
        Some("unknown") => Ok(false),
        Some(other) => {
            let (value, allowed) = (other.to_owned(), "known or unknown");
            Err(ParamError::Value { key: "lengths", value, allowed })
        }
    }
}

impl Policy for Afs {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut growth = Growth::new(view);
        let beats = if self.known { ends_sooner } else { gains_more };
        for class in growth.classes() {
            while let Some(top) = top(view, &growth, class.clone(), beats) {
                growth.take(top.row, top.step);
            }
        }
        Ok(growth.allocation())
    }

    /// Who ends first is known from event to event; service received changes all the time.
    fn cadence(&self) -> Cadence {
        if self.known { Cadence::OnChange } else { Cadence::EveryRound }
    }
}

/// A job that could have more devices.
#[derive(Clone, Copy, Debug)]
struct GrowthCandidate {
    row: usize,
    step: Step,
    /// Speed as it stands, and after the step.
    now: f64,
    next: f64,
    /// Devices that the step takes.
    extra: f64,
    /// Steps left, and device-seconds received.
    left: f64,
    attained: f64,
}

/// The job of a class that gets the next devices: nobody looked at after it beats it.
fn top(
    view: &View,
    growth: &Growth<'_>,
    class: Range<usize>,
    beats: fn(&GrowthCandidate, &GrowthCandidate) -> bool,
) -> Option<GrowthCandidate> {
    let candidate = |row: usize| {
        let (step, own) = (growth.step(row)?, &growth.rows[row]);
        let (now, next, extra) = (own.speed(), step.size.speed, step.extra);
        let (left, attained) = (view.steps_left(own.job), view.attained(own.job));
        Some(GrowthCandidate { row, step, now, next, extra, left, attained })
    };
    class.filter_map(candidate).reduce(|best, other| if beats(&other, &best) { other } else { best })
}

/// AFS-L: whether a device is better given to `one` than to `other`.
fn ends_sooner(one: &GrowthCandidate, other: &GrowthCandidate) -> bool {
    if one.now == 0.0 && other.now == 0.0 {
        return one.left / one.next < other.left / other.next;
    }
    if one.left / one.now < other.left / other.now {
        !later_is_better(one, other)
    } else {
        later_is_better(other, one)
    }
}

/// Whether a device for good to the job that ends later is better than to the one that ends first until it does.
fn later_is_better(first: &GrowthCandidate, later: &GrowthCandidate) -> bool {
    let for_later = (later.next - later.now) / later.next / later.extra;
    let for_first = (first.next - first.now) / first.now / first.extra;
    for_later > for_first
}

/// AFS-P: the larger gain in speed for each device; of those that have nothing, who received least.
fn gains_more(one: &GrowthCandidate, other: &GrowthCandidate) -> bool {
    let gain = |job: &GrowthCandidate| {
        if job.now == 0.0 { f64::INFINITY } else { libm::log(job.next / job.now) / job.extra }
    };
    let (mine, theirs) = (gain(one), gain(other));
    mine > theirs || (mine == theirs && one.attained < other.attained)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{World, policy, run};

    /// The sum of the ends if all devices are dealt out anew, in the best of all ways, whenever a job ends.
    fn least(jobs: &[(Vec<f64>, f64)], devices: usize) -> f64 {
        let open: Vec<usize> = (0..jobs.len()).filter(|at| jobs[*at].1 > 1e-9).collect();
        if open.is_empty() {
            return 0.0;
        }
        let mut best = f64::INFINITY;
        for split in splits(open.len(), devices) {
            let speed = |at: usize| split[at].checked_sub(1).map_or(0.0, |more| jobs[open[at]].0[more]);
            let end = |at: usize| jobs[open[at]].1 / speed(at);
            let span = (0..open.len()).map(end).fold(f64::INFINITY, f64::min);
            if !span.is_finite() {
                continue;
            }
            let mut then = jobs.to_vec();
            (0..open.len()).for_each(|at| then[open[at]].1 -= speed(at) * span);
            best = best.min(span * open.len() as f64 + least(&then, devices));
        }
        best
    }

    /// All ways to deal out so many devices.
    fn splits(jobs: usize, devices: usize) -> Vec<Vec<usize>> {
        let Some(rest) = jobs.checked_sub(1) else { return vec![Vec::new()] };
        let with = |own: usize| {
            splits(rest, devices - own).into_iter().map(move |split| [vec![own], split].concat())
        };
        (0..=devices).flat_map(with).collect()
    }

    /// Sizes 1, 2, … with the speeds k^power.
    fn world(jobs: &[(f64, f64)], devices: u32) -> (World, Vec<(Vec<f64>, f64)>) {
        let mut world = World::new(&[devices]);
        let mut told = Vec::new();
        for (power, steps) in jobs {
            let sizes: Vec<(u32, f64)> =
                (1..=devices).map(|k| (k, libm::pow(f64::from(k), *power))).collect();
            world.submit_sizes(&sizes, *steps);
            told.push((sizes.iter().map(|size| size.1).collect(), *steps));
        }
        (world, told)
    }

    proptest! {
        #[test]
        fn the_rule_is_the_better_of_the_two_totals(
            a in (0.1..9.0f64, 0.01..3.0f64, 1.0..99.0f64), b in (0.1..9.0f64, 0.01..3.0f64, 1.0..99.0f64),
        ) {
            let first_is_a = a.2 / a.0 < b.2 / b.0;
            let ((p_a, more_a, w_a), (p_b, more_b, w_b)) = if first_is_a { (a, b) } else { (b, a) };
            let (next_a, next_b) = (p_a + more_a, p_b + more_b);
            // To the first until it ends and then to the other, and to the other for good.
            let until = 2.0 * w_a / next_a + (w_b - p_b * w_a / next_a) / next_b;
            let for_good = w_a / p_a + w_b / next_b;
            prop_assume!((until - for_good).abs() > 1e-9 && w_b * next_a > p_b * w_a && w_a / p_a < w_b / next_b);
            let view = crate::testing::elastic(&[1], &[(&[(0, 1, 1.0)], 1.0)]);
            let step = Growth::new(&view).step(0).unwrap();
            let job = |now, next, left| GrowthCandidate { row: 0, step, now, next, extra: 1.0, left, attained: 0.0 };
            let (first, later) = (job(p_a, next_a, w_a), job(p_b, next_b, w_b));
            prop_assert_eq!(later_is_better(&first, &later), for_good < until);
            prop_assert_eq!(ends_sooner(&first, &later), until <= for_good);
        }

        /// The rule looks one device ahead: two that scale almost linearly each keep one of two devices, where one
        /// after the other on both would end a third sooner. That is the worst there is for two.
        #[test]
        fn two_jobs_end_about_as_soon_as_in_the_best_of_all_ways(
            jobs in prop::collection::vec((0.2..1.0f64, 5.0..100.0f64), 2), devices in 1u32..7
        ) {
            let (mut world, told) = world(&jobs, devices);
            let ours: f64 = run("afs", &mut world).iter().sum();
            let best = least(&told, devices as usize);
            prop_assert!(ours <= best * 1.334 && ours >= best * 0.999, "{ours} where {best} can be had");
        }
    }

    #[test]
    fn on_average_small_cases_end_within_a_few_percent_of_the_best() {
        let (mut ours, mut best) = (0.0, 0.0);
        for seed in 0..40u32 {
            let job = |at: u32| {
                let power = f64::from((seed * 7 + at * 13) % 9 + 1) / 10.0;
                (power, f64::from((seed * 31 + at * 17) % 60 + 5))
            };
            let jobs: Vec<(f64, f64)> = (0..3).map(job).collect();
            let (mut world, told) = world(&jobs, 4);
            ours += run("afs", &mut world).iter().sum::<f64>();
            best += least(&told, 4);
        }
        assert!(ours >= best * 0.999 && ours <= best * 1.05, "{ours} where {best} can be had");
    }

    #[test]
    fn the_short_of_two_that_scale_well_has_everything() {
        let (mut world, _) = world(&[(1.0, 100.0), (1.0, 10.0)], 2);
        assert_eq!(run("afs", &mut world), [55.0, 5.0]);
    }

    #[test]
    fn without_lengths_all_have_a_share_and_the_better_scaling_more() {
        let (mut world, _) = world(&[(0.3, 10.0), (0.9, 1000.0)], 4);
        world.plan(&mut *policy("afs:lengths=unknown"));
        assert_eq!((world.devices(0), world.devices(1)), (1, 3));
    }

    #[test]
    fn without_lengths_who_received_least_is_next() {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 100.0), (1, 100.0)]);
        let mut unknown = policy("afs:lengths=unknown");
        world.plan(&mut *unknown);
        world.advance(5.0);
        world.plan(&mut *unknown);
        assert_eq!(world.running(), [1]);
    }

    #[test]
    fn parameters_are_checked() {
        assert!(crate::make("afs:lengths=guessed", std::sync::Arc::from([])).is_err());
    }
}
