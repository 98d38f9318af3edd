//! One priced problem each round over all jobs and all their shapes: sizes, kinds, deadlines, weights and the cost of
//! moving in one measure. The policy for whoever does not know which one to take.
//!
//! Objective: max Σ_j w_j · u_j^`gang` · (λ − (kept_j · G_j)^−½), with one shape for each job or none, within the devices of
//! each kind. G is speed over that in the job's slowest way, and u the devices of that one: of gangs that may not
//! shrink a larger one counts more, though less for each device. So far it is near Sia's (SOSP 2023). What else differs:
//! * Who is nearly done goes first: w = (i/n)^`short`, where i counts the jobs with as much work left or more. The
//!   shorter a job, the more others have its devices afterwards (heSRPT, Berg et al., Performance 2020, where this weight
//!   is optimal for the mean completion time). Rigid jobs of one kind go by their remaining service.
//! * A move must pay before the job is done, gain something, and not eat up what it has done so far:
//!   kept = (1 − S/R) · (T − n·S)/(T + S) / (1 + `gain`) for a restart of S seconds, R seconds left in the new shape, an
//!   age of T and n restarts. Sia has the second part only.
//! * Nobody waits for ever: w grows with a job's weight and with the time it waited: twice as much after `patience`
//!   times what it has left.
//! * Where nobody said how long a job is, what it costs to have such a job done, by how past jobs ended after as much work
//!   (Gittins' index), stands for what it has left; with that i/n counts squared, and waiting as its logarithm.
//! * Priorities: each step doubles all that a job is worth, its deadline included, up to ten steps either way. An urgent
//!   job goes first, but not for any price: one that gains little from devices leaves them to many that gain much.
//! * A deadline is a budget. Jobs are planned by their minimum satisfactory shares (`yard_core::promise`), as late as may
//!   be; the speed that a plan needs now is worth more than any other use of the devices. So is any shape that is in
//!   time from now on for jobs that do not fit into the plan. Where not all can be kept, each counts the same, and the
//!   shorter more. Promised jobs are worked ahead on, first who must begin first, and each device counts the same: that
//!   makes room for promises to come. Of a soft deadline the best reward that can still be had counts, by
//!   what it is worth beside the first.
//!
//! Reads: speeds, steps left, deadlines and rewards, weights, priorities, time waited, costs, ages, starts. Cost: as `sia`, and for
//! jobs with deadlines O(shapes² · steps) each.
//! Not to be used where shares must be equal, or in proportion to weights, whatever comes of it (see `max-min`): weights
//! say here who goes first.

mod due;
mod worth;

use yard_core::allocation::Allocation;
use yard_core::ids::JobIdx;
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::choice::ChoiceWork;

use self::due::Due;
use self::worth::Worth;
use crate::choosing::Choosing;
use crate::{ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "market",
    live: "policies::market_gives_a_job_that_asked_for_one_device_all_that_are_idle",
    family: "elastic",
    paper: "Switchyard; after Sia, SOSP 2023, and heSRPT, Berg et al., Performance 2020",
    there: "our own policy; all that it says",
    missing: "nothing",
    about: "All jobs and shapes in one priced problem: short jobs first, deadlines kept, moves only where they pay",
    params: &[
        ("short", "how much being nearly done counts; near 0: not at all [default: 0.1]"),
        ("lambda", "what it is worth that a job has anything, over what that does at least [default: 1.1]"),
        ("patience", "times what it has left that a job waits until it counts twice [default: 5]"),
        ("gain", "by what part faster a job must be in another shape before it moves [default: 0.05]"),
        (
            "gang",
            "how much the devices of a job that cannot do with fewer count; 1: each the same [default: 0.3]",
        ),
    ],
    rounds: true,
    priority: Priorities::Worth,
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make: |params| Ok(Box::new(MarketPolicy::new(params)?)),
};

/// What a kept deadline is worth, over the most that its devices could be worth to others.
const KEPT: f64 = 2.0;

/// Steps of priority up to which each doubles what a job is worth: 1024 times as much at the most.
const PRIORITY_MAX: i32 = 10;

/// How near the optimum a round must come, and what it may take.
const LIMITS: ChoiceWork = ChoiceWork { passes: 200, gap: 2e-3, states: 100_000 };

struct MarketPolicy {
    short: f64,
    lambda: f64,
    patience: f64,
    gain: f64,
    gang: f64,
}

/// A job with all that counts for its shapes.
struct MarketOwn {
    job: JobIdx,
    worth: Worth,
    due: Option<Due>,
}

impl MarketPolicy {
    fn new(params: &Params) -> Result<MarketPolicy, ParamError> {
        let of = |key, unless: f64| params.positive(key).map(|given| given.unwrap_or(unless));
        Ok(MarketPolicy {
            short: of("short", 0.1)?,
            lambda: of("lambda", 1.1)?,
            patience: of("patience", 5.0)?,
            gain: of("gain", 0.05)?,
            gang: of("gang", 0.3)?,
        })
    }

    /// What counts for each job, by row; none for those that cannot run.
    fn jobs(&self, view: &View) -> Vec<Option<MarketOwn>> {
        let mut jobs: Vec<Option<MarketOwn>> = view.runs.iter().map(|_| None).collect();
        let mut dues = due::dues(view);
        for (job, worth) in self.worths(view) {
            jobs[job.index()] = Some(MarketOwn { job, worth, due: dues[job.index()].take() });
        }
        jobs
    }

    /// What it is worth to keep a deadline, whose ever it is: more than as many devices as any of these jobs needs for
    /// it could be to others.
    fn kept(&self, view: &View, jobs: &[Option<MarketOwn>]) -> f64 {
        let of = |own: &MarketOwn| {
            let shapes = view.spec(own.job).usable();
            let each = |shape| self.value(view, own.job, shape, &own.worth) / devices(view, own.job, shape);
            shapes.map(each).fold(0.0, f64::max)
        };
        let least = jobs.iter().flatten().filter_map(|own| own.due.as_ref()?.least(view, own.job));
        let least = least.fold(0.0, f64::max);
        let needed = if least > 0.0 { jobs } else { &[] };
        KEPT * needed.iter().flatten().map(of).fold(0.0, f64::max) * least
    }
}

/// How many times as much all that a job asks for is worth for its priority.
fn urgency(view: &View, job: JobIdx) -> f64 {
    let steps = view.spec(job).priority.clamp(-PRIORITY_MAX, PRIORITY_MAX);
    libm::ldexp(1.0, steps)
}

fn devices(view: &View, job: JobIdx, shape: u16) -> f64 {
    f64::from(view.spec(job).shapes[shape as usize].devices().max(1))
}

impl Policy for MarketPolicy {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let jobs = self.jobs(view);
        let kept = self.kept(view, &jobs);
        let value = |own: &Option<&MarketOwn>, shape: u16| {
            let Some(own) = own else { return 0.0 };
            let due = own.due.as_ref().filter(|due| due.is_kept(view, own.job, shape));
            let bonus = due.map_or(0.0, |due| kept * due.counts(own.worth.place));
            urgency(view, own.job) * (self.value(view, own.job, shape, &own.worth) + bonus)
        };
        let choosing = Choosing::new(view, |job| jobs[job.index()].as_ref(), value)?;
        let solved = choosing.solve(&LIMITS);
        let mut allocation = choosing.allocation(&solved, solved.objective, solved.bound);
        if let Some(proof) = &mut allocation.certificate {
            proof.unmet = view.active().filter(|job| due::is_late(view, *job)).collect();
        }
        Ok(allocation)
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

#[cfg(test)]
mod tests;
