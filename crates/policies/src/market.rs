//! One priced problem each round over all jobs and all their shapes: sizes, kinds, deadlines, weights and the cost of
//! moving in one measure. The policy for whoever does not know which one to take.
//!
//! Objective: max Σ_j w_j · G_j(shape) · left_j(shape), with one shape for each job, or none, within the devices of
//! each kind. G is speed in devices of the job's slowest way (as in Sia, SOSP 2023), and what differs from Sia is:
//! * Who is nearly done goes first. w = (i/n)^`short`, where i counts the jobs with as much work left or more: the
//!   shorter, the more jobs have its devices afterwards. With sizes that pay by a power `short`, this is heSRPT's
//!   optimum for the mean completion time (Berg et al., "heSRPT", Performance 2020); with rigid jobs it is shortest
//!   remaining service first.
//! * Moving costs what it loses: left = 1 − S/H for a restart of S seconds whose gain lasts H, the time the job has
//!   left in that shape or `horizon`, whichever is less; and who stops must start again later.
//! * Nobody waits for ever: w grows with a job's weight and with the time it waited, twice as much after `patience`.
//! * A deadline is a budget. Shapes that still make it are worth more than any other use of their devices, as soon as
//!   a job that grows has one, and for one that does not once waiting `reserve` of the time left would miss it. Of a
//!   soft one the next reward that can be had counts, by what it is worth beside the first.
//!
//! Reads: speeds, steps left, deadlines and rewards, weights, time waited, costs. Cost: as `sia`.
//! Not to be used where shares must be equal whatever comes of it: see `max-min`.

use yard_core::allocation::Allocation;
use yard_core::ids::JobIdx;
use yard_core::policy::{Cadence, Policy, PolicyError};
use yard_core::units::Time;
use yard_core::view::View;
use yard_solver::choice::Limits;

use crate::choosing::{Choosing, unit};
use crate::ranked::finite;
use crate::{Entry, ParamError, Params};

pub(crate) const ENTRY: Entry = Entry {
    name: "market",
    family: "elastic",
    paper: "Switchyard; after Sia, SOSP 2023, and heSRPT, Berg et al., Performance 2020",
    about: "All jobs and shapes in one priced problem: short jobs first, deadlines kept, moves only where they pay",
    params: &[
        ("short", "how much being nearly done counts; near 0: not at all [default: 0.5]"),
        ("horizon", "seconds for which a move must pay at most [default: 900]"),
        ("patience", "seconds of waiting after which a job counts twice [default: 43200]"),
        ("reserve", "part of the time to a deadline that is not counted on [default: 0.2]"),
    ],
    rounds: true,
    make: |params| Ok(Box::new(Market::new(params)?)),
};

/// What a kept deadline is worth, over the most that its devices could be worth to others.
const KEPT: f64 = 2.0;

struct Market {
    short: f64,
    horizon: f64,
    patience: f64,
    reserve: f64,
}

/// A job as this policy sees it.
struct Worth {
    /// What a device of its slowest way is worth to it.
    weight: f64,
    /// Its speed for each of those devices.
    unit: f64,
    /// By when it should be done, and what that is worth to a job with a deadline.
    due: Option<(Time, f64)>,
}

/// What a job with a deadline adds to the shapes that keep it.
struct Bonus {
    due: Time,
    value: f64,
}

impl Market {
    fn new(params: &Params) -> Result<Market, ParamError> {
        let of = |key, unless: f64| params.positive(key).map(|given| given.unwrap_or(unless));
        Ok(Market {
            short: of("short", 0.5)?,
            horizon: of("horizon", 900.0)?,
            patience: of("patience", 43_200.0)?,
            reserve: of("reserve", 0.2)?,
        })
    }

    /// What each job is worth, by row; vacant rows have no weight.
    fn worths(&self, view: &View) -> Vec<Worth> {
        let mut order: Vec<(f64, JobIdx)> =
            view.active().map(|job| (finite(view.steps_left(job) / unit(view, job)), job)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(view.run(b.1).submitted.cmp(&view.run(a.1).submitted)));
        let none = || Worth { weight: 0.0, unit: 1.0, due: None };
        let mut worths: Vec<Worth> = view.runs.iter().map(|_| none()).collect();
        let all = order.len() as f64;
        for (at, (_, job)) in order.into_iter().enumerate() {
            let short = libm::pow((at + 1) as f64 / all, self.short);
            let weight = view.spec(job).weight * short * (1.0 + waited(view, job) / self.patience);
            worths[job.index()] = Worth { weight, unit: unit(view, job), due: due(view, job) };
        }
        worths
    }

    /// What a shape is worth to a job but for its deadline.
    fn value(&self, view: &View, job: JobIdx, shape: u16, worth: &Worth) -> f64 {
        let run = view.run(job);
        let fast = worth.weight * view.speed(job, shape) / worth.unit;
        let seconds = view.steps_left(job) / view.speed(job, shape);
        let lost = view.spec(job).costs.restart().secs() / seconds.min(self.horizon).max(1.0);
        match run.lease {
            None => fast,
            Some(_) if run.shape == shape => fast * (1.0 + lost),
            Some(_) => fast * (1.0 - lost),
        }
    }

    /// What it is worth to keep a job's deadline: more than the fewest devices that do so could be to others.
    fn bonus(&self, view: &View, job: JobIdx, worth: &Worth, dearest: f64) -> Option<Bonus> {
        let (due, part) = worth.due?;
        let keeping = view.spec(job).usable().filter(|shape| self.keeps(view, job, *shape, due));
        let least = keeping.map(|shape| devices(view, job, shape)).reduce(f64::min)?;
        Some(Bonus { due, value: KEPT * part * dearest * least })
    }

    /// Whether a job's deadline is kept in a shape, and only by what is decided now.
    fn keeps(&self, view: &View, job: JobIdx, shape: u16, due: Time) -> bool {
        let spec = view.spec(job);
        let late = |shape: u16| finish(view, job, shape) > due;
        if late(shape) {
            return false;
        }
        let devices = |shape: u16| spec.shapes[shape as usize].devices();
        let grows = spec.usable().any(|other| devices(other) != devices(shape));
        let to_go = (due - view.now).secs();
        let idle = to_go - (finish(view, job, shape) - view.now).secs();
        grows || idle <= self.reserve * to_go
    }
}

/// Seconds since it was submitted in which it had no devices.
fn waited(view: &View, job: JobIdx) -> f64 {
    let run = view.run(job);
    ((view.now - run.submitted).secs() - run.executed_at(view.now).secs()).max(0.0)
}

fn devices(view: &View, job: JobIdx, shape: u16) -> f64 {
    f64::from(view.spec(job).shapes[shape as usize].devices().max(1))
}

/// When it would be done in a shape from now on.
fn finish(view: &View, job: JobIdx, shape: u16) -> Time {
    let run = view.run(job);
    let stays = run.lease.is_some() && run.shape == shape;
    let begin = if stays { 0.0 } else { view.spec(job).costs.restart().secs() };
    Time::from_secs(finite(view.now.secs() + begin + view.steps_left(job) / view.speed(job, shape)))
}

/// The first time by which it can still be done and what that is worth, of its promise, its rewards or its deadline.
fn due(view: &View, job: JobIdx) -> Option<(Time, f64)> {
    let spec = view.spec(job);
    let soonest = spec.usable().map(|shape| finish(view, job, shape)).min()?;
    let first = spec.rewards.as_deref().and_then(|rewards| rewards.first()).map_or(1.0, |first| first.worth);
    let rewards = spec.rewards.as_deref().unwrap_or_default();
    let rewards = rewards.iter().map(|reward| (reward.by, reward.worth / first));
    let dues = view.run(job).promise.or(spec.deadline).map(|by| (by, 1.0)).into_iter().chain(rewards);
    dues.filter(|(by, _)| soonest <= *by).max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
}

impl Policy for Market {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let worths = self.worths(view);
        let plain = |job: JobIdx, shape: u16| self.value(view, job, shape, &worths[job.index()]);
        let each = |(job, shape)| plain(job, shape) / devices(view, job, shape);
        let all = view.active().flat_map(|job| view.spec(job).usable().map(move |shape| (job, shape)));
        let dearest = all.map(each).fold(0.0, f64::max);
        let bonus = |job: JobIdx| (job, self.bonus(view, job, &worths[job.index()], dearest));
        let value = |(job, bonus): &(JobIdx, Option<Bonus>), shape: u16| {
            let kept = bonus.as_ref().filter(|bonus| self.keeps(view, *job, shape, bonus.due));
            plain(*job, shape) + kept.map_or(0.0, |bonus| bonus.value)
        };
        let choosing = Choosing::new(view, bonus, value)?;
        let solved = choosing.solve(&Limits::default());
        let mut allocation = choosing.allocation(&solved, solved.objective, solved.bound);
        if let Some(proof) = &mut allocation.certificate {
            proof.unmet = view.active().filter(|job| late(view, *job, &worths[job.index()])).collect();
        }
        Ok(allocation)
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

/// Whether a job has a deadline that it cannot keep any more.
fn late(view: &View, job: JobIdx, worth: &Worth) -> bool {
    let wants = view.run(job).promise.or(view.spec(job).deadline);
    wants.is_some_and(|by| worth.due.is_none_or(|(due, _)| due > by))
}
