//! Sia (Jayaram Subramanya et al., "Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling", SOSP 2023):
//! every round each job gets one of its configurations, a kind and a number of devices of it, or waits.
//!
//! Objective: min Σ_j W_j(its configuration) + λ · (jobs that wait), with W = min((r · G)^p, 3000). G is the goodput,
//! as many times that of the job's slowest configuration as this one has devices; a job that adapts and never ran
//! has the same in the smallest size of each kind. r is the part of its time that a restart would leave it,
//! (T − R·S)/(T + S) for an age of T, R restarts and S seconds each; 1 for what it has, and while T < S.
//! `rounded=true` rounds W to two decimals as the artifact does, which makes many choices equal. A job has no more to
//! win by waiting longer, so it may wait for ever; `ageing` adds so much to its λ for each hour.
//! The paper gives this to an integer solver; here it is `yard_solver::choice`, with the same answer and its proof.
//! Reads: speeds, ages, starts, costs of a restart. Cost: tens of passes over jobs × configurations.
//! Not to be used without devices to spare: with λ near 1 it lets jobs wait though each could have a device.

use yard_core::allocation::Allocation;
use yard_core::ids::JobIdx;
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::choice::ChoiceWork;

use crate::choosing::{Choosing, kept, slowest};
use crate::params::bad;
use crate::{OTHER, ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "sia",
    live: "policies::sia_gives_a_job_the_better_kind_and_more_devices_when_they_fall_free",
    family: "elastic",
    paper: "Sia, Jayaram Subramanya et al., SOSP 2023",
    there: "the program over configurations, restarts, goodput, ageing; solved with a proof",
    missing: "jobs in a pipeline, scale units, bootstrapping from one kind to another but by the belief, its placement rules: the placer packs",
    about: "Each job has the kind and number of devices at which a power mean of all goodputs is best",
    params: &[
        ("p", "the power, below 0 or above it: the lower, the fairer [default: -0.5]"),
        ("lambda", "what a waiting job costs; below 0 where p is above it [default: 1.1]"),
        ("rounded", "costs have two decimals, as in the artifact: true or false [default: false]"),
        ("ageing", "what a job that waits costs more for each hour since it was submitted [default: 0]"),
    ],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Speeds],
    make: |params| Ok(Box::new(Sia::new(params)?)),
};

/// No configuration costs more than this.
const COST_MAX: f64 = 3000.0;

struct Sia {
    p: f64,
    lambda: f64,
    rounded: bool,
    ageing: f64,
}

impl Sia {
    fn new(params: &Params) -> Result<Sia, ParamError> {
        let p = number(params, "p", -0.5, |p| p != 0.0, "a number other than 0")?;
        let right = |lambda: f64| (lambda > 0.0) == (p < 0.0);
        let lambda = if p < 0.0 { 1.1 } else { -1.1 };
        let lambda =
            number(params, "lambda", lambda, right, "above 0 where p is below it, and below 0 else")?;
        let ageing = number(params, "ageing", 0.0, |ageing| ageing >= 0.0, "a number not below 0")?;
        Ok(Sia { p, lambda, rounded: params.flag("rounded")?, ageing })
    }

    /// What a job costs that goes so fast.
    fn cost(&self, goodput: f64) -> f64 {
        let cost = libm::pow(goodput, self.p).min(COST_MAX);
        if self.rounded { libm::round(cost * 100.0) / 100.0 } else { cost }
    }

    /// What a job costs while it waits.
    fn waiting(&self, view: &View, job: JobIdx) -> f64 {
        let hours = (view.now - view.run(job).submitted).secs() / 3600.0;
        self.lambda + self.lambda.signum() * self.ageing * hours
    }

    /// By how much a shape costs a job less than waiting; where p is above 0 costs are gains.
    fn value(&self, view: &View, own: &Own, shape: u16) -> f64 {
        let cost = self.cost(own.kept(shape) * own.goodput(view, shape));
        -self.p.signum() * (self.waiting(view, own.job) - cost)
    }
}

/// A number that may be below zero, or what it is if not given.
fn number(
    params: &Params,
    key: &'static str,
    unless: f64,
    fine: impl Fn(f64) -> bool,
    allowed: &'static str,
) -> Result<f64, ParamError> {
    let Some(text) = params.text(key) else { return Ok(unless) };
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && fine(*number));
    number.ok_or_else(|| bad(key, text, allowed))
}

/// What counts for all shapes of a job.
struct Own {
    job: JobIdx,
    /// Its speed for each device in the slowest of its shapes; none where nothing is known of it yet.
    unit: Option<f64>,
    /// The shape it has, and the part of its time that a restart would leave it, as things went so far.
    has: Option<u16>,
    kept: f64,
}

impl Own {
    fn new(view: &View, job: JobIdx) -> Own {
        let (run, spec) = (view.run(job), view.spec(job));
        let unknown = spec.training.is_some() && run.starts == 0;
        let unit = |(speed, devices): (f64, f64)| speed / devices;
        let unit = slowest(view, job).filter(|_| !unknown).map(unit);
        Own { job, unit, has: run.lease.map(|_| run.shape), kept: kept(view, job) }
    }

    fn kept(&self, shape: u16) -> f64 {
        if self.has.is_none_or(|has| has == shape) { 1.0 } else { self.kept }
    }

    /// In devices of the slowest shape.
    fn goodput(&self, view: &View, shape: u16) -> f64 {
        let devices = || f64::from(view.spec(self.job).shapes[shape as usize].devices());
        self.unit.map_or_else(devices, |unit| view.speed(self.job, shape) / unit)
    }
}

impl Policy for Sia {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let choosing =
            Choosing::new(view, |job| Own::new(view, job), |own, shape| self.value(view, own, shape))?;
        let solved = choosing.solve(&ChoiceWork::default());
        let jobs = choosing.kept.iter().map(|(job, _)| job).chain(choosing.rows.iter().map(|(job, _)| job));
        let queued: f64 = jobs.map(|job| self.waiting(view, *job)).sum();
        let cost = |value: f64| queued + self.p.signum() * value;
        Ok(choosing.allocation(&solved, cost(solved.objective), cost(solved.bound)))
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use yard_core::allocation::{Certificate, Shares};
    use yard_core::ids::LeaseId;
    use yard_core::job::{Costs, JobState};
    use yard_core::units::{Span, Time};

    use super::*;
    use crate::testing::{elastic, policy};

    /// The shapes given to the jobs of a view, leftovers aside, and the proof.
    fn answer(spec: &str, view: &View) -> (Vec<Option<u16>>, Certificate) {
        let allocation = policy(spec).allocate(view).unwrap();
        let Shares::All(shares) = &allocation.shares else { panic!("all of them") };
        let mut given = vec![None; view.runs.len()];
        for share in shares.iter().filter(|share| share.rank.0 < 0.0) {
            given[share.jobs[0].index()] = Some(share.shape.unwrap_or(0));
        }
        (given, *allocation.certificate.unwrap())
    }

    /// The job runs in this shape since it was submitted, so long ago, and was started so often.
    fn running(view: &mut View, row: usize, shape: u16, age: f64, starts: u32) {
        view.now = Time::from_secs(age);
        Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[row]).costs =
            Costs { load: Span::from_secs(30.0), ..Costs::default() };
        let run = &mut Arc::make_mut(&mut view.runs)[row];
        (run.state, run.lease, run.shape, run.starts) = (JobState::Running, Some(LeaseId(1)), shape, starts);
    }

    /// The least cost of all ways to choose, by the formula.
    fn brute(jobs: &[Vec<(u16, u32, f64)>], free: [u32; 2]) -> f64 {
        let Some((sizes, rest)) = jobs.split_first() else { return 0.0 };
        let slowest = sizes.iter().map(|size| size.2).fold(f64::INFINITY, f64::min);
        let devices = sizes.iter().find(|size| size.2 == slowest).map_or(1, |size| size.1);
        let mut best = 1.1 + brute(rest, free);
        for (kind, devices_here, speed) in sizes.iter().filter(|size| size.1 <= free[size.0 as usize]) {
            let mut left = free;
            left[*kind as usize] -= devices_here;
            let goodput = speed / slowest * f64::from(devices);
            best = best.min(libm::pow(goodput, -0.5) + brute(rest, left));
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_choice_costs_less(
            jobs in prop::collection::vec((0.2..1.0f64, 0.5..3.0f64), 1..5), free in (1u32..6, 1u32..6),
        ) {
            let size = |kind, devices: u32, fast: f64, power| (kind, devices, fast * libm::pow(f64::from(devices), power));
            let sizes = |(power, fast): &(f64, f64)| {
                [(0, 1), (0, 2), (0, 4), (1, 1), (1, 2)]
                    .map(|(kind, devices)| size(kind, devices, if kind == 0 { 1.0 } else { *fast }, *power))
                    .to_vec()
            };
            let jobs: Vec<Vec<(u16, u32, f64)>> = jobs.iter().map(sizes).collect();
            let rows: Vec<_> = jobs.iter().map(|sizes| (&sizes[..], 100.0)).collect();
            let view = elastic(&[free.0, free.1], &rows);
            let least = brute(&jobs, [free.0, free.1]);
            let (_, proof) = answer("sia", &view);
            prop_assert!(proof.objective <= least * 1.002 && proof.bound <= least + 1e-9, "{proof:?} {least}");
            prop_assert!(proof.gap() < 0.005, "{proof:?}");
        }
    }

    #[test]
    fn a_restart_must_pay_for_itself() {
        let sizes = [(0, 1, 1.0), (0, 2, 1.05)];
        let mut view = elastic(&[2], &[(&sizes, 1000.0)]);
        assert_eq!(answer("sia", &view).0, [Some(1)]);
        // After ten minutes a restart would leave it (600 - 0)/(600 + 30) of its time: more than the gain.
        running(&mut view, 0, 0, 600.0, 1);
        assert_eq!(answer("sia", &view).0, [Some(0)]);
        running(&mut view, 0, 0, 6000.0, 1);
        assert_eq!(answer("sia", &view).0, [Some(1)], "of a long life it takes little");
        running(&mut view, 0, 0, 6000.0, 40);
        assert_eq!(answer("sia", &view).0, [Some(0)], "restarts so far count");
    }

    #[test]
    fn who_starts_or_may_not_be_stopped_keeps_its_shape() {
        let sizes = [(0, 1, 1.0), (0, 2, 2.0)];
        let mut view = elastic(&[2], &[(&sizes, 1000.0), (&sizes, 1000.0)]);
        running(&mut view, 0, 1, 600.0, 1);
        assert_eq!(answer("sia:lambda=1.5", &view).0, [Some(0), Some(0)]);
        Arc::make_mut(&mut view.runs)[0].state = JobState::Starting;
        assert_eq!(answer("sia:lambda=1.5", &view).0, [Some(1), None]);
        Arc::make_mut(&mut view.runs)[0].state = JobState::Running;
        Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[0]).pausable = false;
        assert_eq!(answer("sia:lambda=1.5", &view).0, [Some(1), None]);
    }

    #[test]
    fn with_ageing_a_job_does_not_wait_for_ever() {
        // Eight devices: what the large job makes of them outweighs the small one's little need to run.
        let (large, small) = ([(0, 8, 8.0)], [(0, 1, 1.0)]);
        let mut view = elastic(&[8], &[(&large, 1e6), (&small, 1e6)]);
        view.now = Time::from_secs(36_000.0);
        assert_eq!(answer("sia", &view).0, [Some(0), None]);
        Arc::make_mut(&mut view.runs)[0].submitted = Time::from_secs(35_000.0);
        assert_eq!(answer("sia:ageing=0.1", &view).0, [None, Some(0)]);
    }

    #[test]
    fn parameters_are_checked() {
        let wrong = |spec: &str| crate::make(spec, Arc::from([])).err().map(|error| error.to_string());
        assert!(crate::make("sia:p=0.5:lambda=-1.1:rounded=true", Arc::from([])).is_ok());
        assert!(wrong("sia:p=0").unwrap().contains("other than 0"));
        assert!(wrong("sia:p=0.5:lambda=1.1").unwrap().contains("below 0"));
        assert!(wrong("sia:ageing=-1").unwrap().contains("not below 0"));
    }

    #[test]
    fn above_zero_the_sum_of_goodputs_is_made_large() {
        let view = elastic(&[3], &[(&[(0, 1, 1.0), (0, 2, 3.0)], 1e3), (&[(0, 1, 1.0), (0, 2, 1.1)], 1e3)]);
        let (given, proof) = answer("sia:p=1:lambda=-1", &view);
        assert_eq!(given, [Some(1), Some(0)]);
        assert!((proof.objective - 4.0).abs() < 1e-9 && proof.bound >= 4.0 - 1e-9, "{proof:?}");
    }
}
