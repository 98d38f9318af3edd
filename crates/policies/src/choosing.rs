//! Which shape each job should have, where each has a value: the living jobs as rows of `yard_solver::choice`, and
//! what is chosen as an allocation. Jobs that may not be stopped, or are just starting, keep what they have.
//! Capacities are counted by kind; ranks put the largest first, so that what fits by count also finds devices that lie
//! together where sizes are those of whole nodes and halves of them.

use smallvec::SmallVec;
use yard_core::allocation::{Allocation, Certificate, Shares};
use yard_core::cluster::Level;
use yard_core::ids::JobIdx;
use yard_core::job::{JobState, Shape};
use yard_core::policy::PolicyError;
use yard_core::view::View;
use yard_solver::SolveError;
use yard_solver::choice::{BuyerChoice, ChoiceWork, Selection};

use crate::sizes::{behind, chosen, pinned};

/// The jobs of a view with the values of their shapes.
pub(crate) struct Choosing<'v> {
    view: &'v View,
    choice: BuyerChoice,
    /// Jobs that have no choice, and the shape each keeps.
    pub(crate) kept: Vec<(JobIdx, u16)>,
    /// Jobs that have, and the shapes behind their options.
    pub(crate) rows: Vec<(JobIdx, SmallVec<[u16; 8]>)>,
}

/// A choice that could not be written down; numbers were checked before, so it is a bug elsewhere.
fn broken(error: SolveError) -> PolicyError {
    PolicyError(format!("the choice of shapes cannot be solved: {error}"))
}

/// The shape that a job keeps whatever it is worth: it may not be stopped, or its start is not over.
pub(crate) fn keeps(view: &View, job: JobIdx) -> Option<u16> {
    let run = view.run(job);
    let starting = run.state == JobState::Starting && run.lease.is_some();
    pinned(view, job).or(starting.then_some(run.shape))
}

/// Speed in the slowest usable shape, and the devices of that one.
pub(crate) fn slowest(view: &View, job: JobIdx) -> Option<(f64, f64)> {
    view.spec(job).slowest()
}

/// The part of its time that a restart would leave a job, as things went so far: (T − R·S)/(T + S) for an age of T, R
/// restarts and S seconds each (Pollux, OSDI 2021); all of it before it is S old.
pub(crate) fn kept(view: &View, job: JobIdx) -> f64 {
    let (run, cost) = (view.run(job), view.spec(job).costs.restart().secs());
    let age = (view.now - run.submitted).secs();
    let restarts = f64::from(run.starts.saturating_sub(1));
    if age <= cost { 1.0 } else { (age - restarts * cost).max(0.0) / (age + cost) }
}

/// Whether nodes that are up could hold a shape.
fn fits(view: &View, shape: &Shape) -> bool {
    let together = shape.level() == Level::Node;
    shape.needs.iter().all(|need| {
        let there = if together { view.nodes.largest(need.kind) } else { view.capacity(need.kind) };
        need.devices <= there
    })
}

impl<'v> Choosing<'v> {
    /// `of` says what counts for all shapes of a job, and `value` what a shape is then worth to it, in any unit that is
    /// the same for all jobs.
    pub(crate) fn new<T>(
        view: &'v View,
        of: impl Fn(JobIdx) -> T,
        value: impl Fn(&T, u16) -> f64,
    ) -> Result<Choosing<'v>, PolicyError> {
        let capacity = view.kinds.ids().map(|kind| view.capacity(kind)).collect();
        let mut choosing =
            Choosing { view, choice: BuyerChoice::new(capacity), kept: Vec::new(), rows: Vec::new() };
        let jobs = || view.active().filter(|job| !view.run(*job).cancelled);
        for job in jobs() {
            if let Some(shape) = keeps(view, job) {
                let worth = value(&of(job), shape);
                choosing.choice.pin(worth, &uses(view, job, shape)).map_err(broken)?;
                choosing.kept.push((job, shape));
            }
        }
        for job in jobs().filter(|job| keeps(view, *job).is_none()) {
            let own = of(job);
            choosing.add(job, |shape| value(&own, shape)).map_err(broken)?;
        }
        Ok(choosing)
    }

    fn add(&mut self, job: JobIdx, value: impl Fn(u16) -> f64) -> Result<(), SolveError> {
        let spec = self.view.spec(job);
        let usable = spec.usable().filter(|shape| fits(self.view, &spec.shapes[*shape as usize]));
        let shapes: SmallVec<[u16; 8]> = usable.collect();
        self.choice.row();
        for shape in &shapes {
            self.choice.option(value(*shape), &uses(self.view, job, *shape))?;
        }
        self.rows.push((job, shapes));
        Ok(())
    }

    /// Chooses.
    pub(crate) fn solve(&self, limits: &ChoiceWork) -> Selection {
        self.choice.solve(limits)
    }

    /// The jobs with the shape chosen for each, those that keep theirs among them.
    pub(crate) fn chosen<'s>(&'s self, selection: &'s Selection) -> impl Iterator<Item = (JobIdx, u16)> + 's {
        let rows = self.rows.iter().zip(&selection.chosen);
        let taken = rows.filter_map(|((job, shapes), option)| Some((*job, shapes[(*option)? as usize])));
        self.kept.iter().copied().chain(taken)
    }

    /// Jobs for which nothing was chosen, with the shape of theirs that gives most for a device.
    pub(crate) fn left<'s>(&'s self, selection: &'s Selection) -> impl Iterator<Item = (JobIdx, u16)> + 's {
        let rows = self.rows.iter().zip(&selection.chosen).filter(|(_, option)| option.is_none());
        let each = |job: JobIdx, shape: u16| {
            self.view.speed(job, shape)
                / f64::from(self.view.spec(job).shapes[shape as usize].devices().max(1))
        };
        let best = move |job: JobIdx, shapes: &[u16]| {
            let smallest =
                shapes.iter().map(|shape| self.view.spec(job).shapes[*shape as usize].devices()).min()?;
            let small = |shape: &&u16| self.view.spec(job).shapes[**shape as usize].devices() == smallest;
            let all = shapes.iter().filter(small).copied();
            all.reduce(|best, next| if each(job, next) > each(job, best) { next } else { best })
        };
        rows.filter_map(move |((job, shapes), _)| Some((*job, best(*job, shapes)?)))
    }

    /// The allocation: what was chosen, and for those without, in their smallest size, what falls free before the
    /// next plan. `objective` and `bound` are in the policy's own measure.
    pub(crate) fn allocation(&self, selection: &Selection, objective: f64, bound: f64) -> Allocation {
        let taken = self.chosen(selection).map(|(job, shape)| chosen(self.view, job, shape));
        let rest = self.left(selection).map(|(job, shape)| behind(self.view, job, shape));
        let mut allocation = Allocation::preemptive(Shares::All(taken.chain(rest).collect()));
        let prices = self.prices(&selection.prices);
        allocation.certificate = Some(Box::new(Certificate { objective, bound, prices, unmet: Vec::new() }));
        allocation
    }

    /// Prices at which all devices together cost 1.
    fn prices(&self, prices: &[f64]) -> Vec<f64> {
        let devices = |kind| f64::from(self.view.capacity(kind));
        let all: f64 = self.view.kinds.ids().zip(prices).map(|(kind, price)| devices(kind) * price).sum();
        prices.iter().map(|price| if all > 0.0 { price / all } else { 0.0 }).collect()
    }
}

/// The devices that a shape takes, each kind once.
fn uses(view: &View, job: JobIdx, shape: u16) -> SmallVec<[(u16, u32); 2]> {
    let mut uses: SmallVec<[(u16, u32); 2]> = SmallVec::new();
    for need in &view.spec(job).shapes[shape as usize].needs {
        match uses.iter_mut().find(|(kind, _)| *kind == need.kind.0) {
            Some((_, devices)) => *devices = devices.saturating_add(need.devices),
            None => uses.push((need.kind.0, need.devices)),
        }
    }
    uses
}
