//! When jobs should be done, and which of their shapes still make it.

use yard_core::ids::JobIdx;
use yard_core::units::Time;
use yard_core::view::View;

use super::devices;
use crate::ranked::finite;

/// A deadline that can still be kept.
pub(super) struct Due {
    by: Time,
    /// What that is worth, beside the best that ever could be had.
    pub(super) part: f64,
    /// Seconds that it may idle and keep it, where waiting costs nothing else.
    idle: f64,
}

impl Due {
    /// The best that a job can still have of its promise, its rewards or its deadline.
    pub(super) fn new(view: &View, job: JobIdx, reserve: f64) -> Option<Due> {
        let spec = view.spec(job);
        let soonest = spec.usable().map(|shape| finish(view, job, shape)).min()?;
        let rewards = spec.rewards.as_deref().unwrap_or_default();
        let first = rewards.first().map_or(1.0, |first| first.worth);
        let soft = rewards.iter().map(|reward| (reward.by, reward.worth / first));
        let hard = wanted(view, job).map(|by| (by, 1.0));
        let able = hard.into_iter().chain(soft).filter(|(by, _)| soonest <= *by);
        let (by, part) = able.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
        // Small sizes do most for each device, so who grows begins at once; who runs would only have to come back.
        let waits = view.run(job).lease.is_none() && !grows(view, job);
        let idle = if waits { reserve * (by - view.now).secs() } else { f64::INFINITY };
        Some(Due { by, part, idle })
    }

    /// Whether it is kept in a shape, and only if that is decided now.
    pub(super) fn is_kept(&self, view: &View, job: JobIdx, shape: u16) -> bool {
        let end = finish(view, job, shape);
        end <= self.by && (self.by - end).secs() <= self.idle
    }

    /// The fewest devices that keep it.
    pub(super) fn least(&self, view: &View, job: JobIdx) -> Option<f64> {
        let kept = view.spec(job).usable().filter(|shape| self.is_kept(view, job, *shape));
        kept.map(|shape| devices(view, job, shape)).reduce(f64::min)
    }
}

/// By when a job should be done: as promised, or as it asked for.
fn wanted(view: &View, job: JobIdx) -> Option<Time> {
    view.run(job).promise.or(view.spec(job).deadline)
}

/// Whether it has sizes to choose from.
fn grows(view: &View, job: JobIdx) -> bool {
    let mut sizes = view.spec(job).usable().map(|shape| devices(view, job, shape));
    let first = sizes.next();
    sizes.any(|size| Some(size) != first)
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
    let soonest = view.spec(job).usable().map(|shape| finish(view, job, shape)).min();
    wanted(view, job).is_some_and(|by| soonest.is_none_or(|soonest| soonest > by))
}
