//! When jobs should be done, and which of their shapes they must have now for it. Jobs with a deadline are planned by
//! their minimum satisfactory shares (`yard_core::promise`), those that were promised it first, then by deadline: who
//! must begin now to be in time has a budget, who need not has no claim yet.
//!
//! What was promised the engine keeps, whatever is planned here; what the market adds is room for promises to come. So it
//! works ahead on promised jobs, and there each *device* that a job needs counts the same, more for those whose share
//! must begin first. Were each job to count the same, as where not all deadlines can be kept, large ones would be put off
//! until they are only in time in sizes that waste devices, and then take the whole cluster from all who come.

use yard_core::ids::JobIdx;
use yard_core::promise::{Ask, Grid, Room, Stretch, Timeline, satisfy};
use yard_core::units::{Span, Time};
use yard_core::view::View;

use super::devices;
use crate::ranked::finite;

/// The step of plans where decisions follow events.
const STEP: Span = Span::from_whole_secs(60);

/// How much more a device counts for the promised job whose share must begin first, beside the one that may begin last.
const FIRST: f64 = 4.0;

/// A deadline that can still be kept.
pub(super) struct Due {
    by: Time,
    /// What that is worth, beside the best that ever could be had.
    part: f64,
    need: DueNeed,
    /// When its share begins, where it has one.
    from: Time,
    /// How much it counts to work ahead, where it was promised.
    ahead: Option<f64>,
}

/// What a deadline asks for now.
enum DueNeed {
    /// This speed at least: its share begins.
    Speed(f64),
    /// Nothing yet.
    Nothing,
    /// A shape in which it is done in time from now on: it does not fit with those that go before it, or was promised.
    Shape,
}

impl Due {
    /// The best that a job can still have of its promise, its rewards or its deadline.
    fn new(view: &View, job: JobIdx) -> Option<Due> {
        let spec = view.spec(job);
        let rewards = spec.rewards.as_deref().unwrap_or_default();
        let hard = wanted(view, job).map(|by| (by, 1.0));
        if hard.is_none() && rewards.is_empty() {
            return None;
        }
        let soonest = spec.usable().map(|shape| finish(view, job, shape)).min()?;
        let first = rewards.first().map_or(1.0, |first| first.worth);
        let soft = rewards.iter().map(|reward| (reward.by, reward.worth / first));
        let able = hard.into_iter().chain(soft).filter(|(by, _)| soonest <= *by);
        let (by, part) = able.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
        Some(Due { by, part, need: DueNeed::Shape, from: Time::NEVER, ahead: None })
    }

    /// How much it counts that it is kept, for a job before which this part of all jobs comes: the shorter the more.
    pub(super) fn counts(&self, place: f64) -> f64 {
        self.part * self.ahead.unwrap_or(1.0 + place)
    }

    /// Whether a shape is what it asks for.
    pub(super) fn is_kept(&self, view: &View, job: JobIdx, shape: u16) -> bool {
        match self.need {
            DueNeed::Speed(least) => view.speed(job, shape) >= least,
            DueNeed::Nothing => false,
            DueNeed::Shape => finish(view, job, shape) <= self.by,
        }
    }

    /// The fewest devices that it asks for.
    pub(super) fn least(&self, view: &View, job: JobIdx) -> Option<f64> {
        let kept = view.spec(job).usable().filter(|shape| self.is_kept(view, job, *shape));
        kept.map(|shape| devices(view, job, shape)).reduce(f64::min)
    }

    fn ask(&self, view: &View, room: &Room, job: JobIdx) -> Ask {
        let spec = view.spec(job);
        // Who runs and goes on loses nothing; who then has to change is planned anew, with the devices it has.
        let overhead = if view.is_running(job) { Span::ZERO } else { spec.costs.restart() };
        let (ways, left) = (room.ways(spec), view.steps_left(job));
        Ask { by: self.by, from: view.now, left, ways, overhead, whole: !spec.pausable }
    }
}

/// The deadlines of all jobs that can keep theirs, by row.
pub(super) fn dues(view: &View) -> Vec<Option<Due>> {
    let mut dues: Vec<Option<Due>> = view.runs.iter().map(|_| None).collect();
    view.active().for_each(|job| dues[job.index()] = Due::new(view, job));
    let mut jobs: Vec<JobIdx> = view.active().filter(|job| dues[job.index()].is_some()).collect();
    jobs.sort_by_key(|job| {
        let run = view.run(*job);
        (run.promise.is_none(), dues[job.index()].as_ref().map(|due| due.by), run.submitted, run.id)
    });
    if !jobs.is_empty() {
        plan(view, &jobs, &mut dues);
    }
    dues
}

/// Plans jobs one after the other. What was promised is kept by the engine, whatever is planned here.
fn plan(view: &View, jobs: &[JobIdx], dues: &mut [Option<Due>]) {
    let grid = Grid::new(view.now, if view.round > Span::ZERO { view.round } else { STEP });
    let room = Room::of(&view.nodes, view.kinds.len());
    let mut timeline = Timeline::new(grid.now, room.free());
    for job in jobs {
        let Some(due) = &mut dues[job.index()] else { continue };
        let ask = due.ask(view, &room, *job);
        let Some(plan) = satisfy(&ask, &timeline, &grid) else { continue };
        timeline.take_plan(&ask, &plan, &grid);
        due.from = plan.first().map_or(Time::NEVER, |first| first.from);
        if view.run(*job).promise.is_none() {
            let now = |first: &&Stretch| first.from <= grid.now;
            let first = plan.first().filter(now).map(|first| view.speed(*job, first.shape));
            due.need = first.map_or(DueNeed::Nothing, DueNeed::Speed);
        }
    }
    work_ahead(view, jobs, dues);
}

/// What working ahead counts for each promised job.
fn work_ahead(view: &View, jobs: &[JobIdx], dues: &mut [Option<Due>]) {
    let promised = jobs.iter().copied().filter(|job| view.run(*job).promise.is_some());
    let of = |job: JobIdx| {
        let due = dues[job.index()].as_ref()?;
        Some((due.from, due.by, job, due.least(view, job).unwrap_or(1.0)))
    };
    let mut order: Vec<(Time, Time, JobIdx, f64)> = promised.filter_map(of).collect();
    order.sort_by_key(|(from, by, ..)| (*from, *by));
    let most = order.iter().map(|(.., least)| *least).fold(1.0, f64::max);
    let n = order.len();
    for (at, (_, _, job, least)) in order.into_iter().enumerate() {
        if let Some(due) = &mut dues[job.index()] {
            due.ahead = Some(least / most * (1.0 + FIRST * (n - at) as f64 / n as f64));
        }
    }
}

/// By when a job should be done: as promised, or as it asked for.
fn wanted(view: &View, job: JobIdx) -> Option<Time> {
    view.run(job).promise.or(view.spec(job).deadline)
}

/// When it would be done in a shape from now on.
fn finish(view: &View, job: JobIdx, shape: u16) -> Time {
    let run = view.run(job);
    let stays = run.lease.is_some() && run.shape == shape;
    let begin = if stays { 0.0 } else { view.spec(job).costs.restart().secs() };
    Time::from_secs(finite(view.now.secs() + begin + view.steps_left(job) / view.speed(job, shape)))
}

/// Whether a job has a deadline that it cannot keep any more.
pub(super) fn is_late(view: &View, job: JobIdx) -> bool {
    let soonest = || view.spec(job).usable().map(|shape| finish(view, job, shape)).min();
    wanted(view, job).is_some_and(|by| soonest().is_none_or(|soonest| soonest > by))
}
