//! The sizes of elastic jobs, and devices given out step by step: what AFS, Optimus and their kin have in common.
//! The sizes of a job on one kind are a ladder, each faster than the one before; a job begins at the foot of one of
//! its ladders, climbs it, and where it cannot climb goes over to another that is faster. Counting only: ranks put the largest first, so that what fits by count also finds
//! devices that lie together where sizes are those of whole nodes and halves of them.

use std::ops::Range;

use smallvec::smallvec;
use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::{JobIdx, KindId};
use yard_core::job::{Rank, Shape};
use yard_core::view::View;

use crate::counts::KindCounts;
use crate::ranked::{class, classes};

/// One size of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) shape: u16,
    pub(crate) devices: u32,
    pub(crate) speed: f64,
}

impl Size {
    fn per_device(&self) -> f64 {
        self.speed / f64::from(self.devices.max(1))
    }
}

/// The size whose devices each do more; of equals the first.
fn better(best: Size, next: Size) -> Size {
    if next.per_device() > best.per_device() { next } else { best }
}

/// The usable sizes of a job, one ladder for each kind: more devices from rung to rung, and more speed. A size that
/// is no faster than a smaller one is left out.
pub(crate) fn ladders(view: &View, job: JobIdx) -> Vec<Vec<Size>> {
    let spec = view.spec(job);
    let size = |shape: u16| Size {
        shape,
        devices: spec.shapes[shape as usize].devices(),
        speed: view.speed(job, shape),
    };
    let mut sizes: Vec<Size> = spec.usable().map(size).filter(|size| size.speed.is_finite()).collect();
    sizes.sort_by(|a, b| a.devices.cmp(&b.devices).then(b.speed.total_cmp(&a.speed)));
    let mut ladders: Vec<Vec<Size>> = Vec::new();
    for size in sizes {
        let same =
            |ladder: &Vec<Size>| same_kinds(shape(view, job, ladder[0].shape), shape(view, job, size.shape));
        match ladders.iter_mut().find(|ladder| same(ladder)) {
            Some(ladder) if ladder.iter().any(|below| below.speed >= size.speed) => {}
            Some(ladder) => ladder.push(size),
            None => ladders.push(vec![size]),
        }
    }
    ladders
}

fn shape(view: &View, job: JobIdx, shape: u16) -> &Shape {
    &view.spec(job).shapes[shape as usize]
}

fn same_kinds(a: &Shape, b: &Shape) -> bool {
    a.needs.iter().map(|need| need.kind).eq(b.needs.iter().map(|need| need.kind))
}

/// The shape a job keeps whatever a policy thinks: it may not be stopped.
pub(crate) fn pinned(view: &View, job: JobIdx) -> Option<u16> {
    let run = view.run(job);
    (run.lease.is_some() && (!view.spec(job).pausable || run.stuck)).then_some(run.shape)
}

/// A job and how far up it is.
#[derive(Clone, Debug)]
pub(crate) struct SizeRow {
    pub(crate) job: JobIdx,
    ladders: Vec<Vec<Size>>,
    /// Ladder and rung.
    at: Option<(usize, usize)>,
    pinned: Option<u16>,
}

impl SizeRow {
    /// What it was given so far.
    pub(crate) fn size(&self) -> Option<Size> {
        self.at.map(|(ladder, rung)| self.ladders[ladder][rung])
    }

    /// All its sizes.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = &Size> {
        self.ladders.iter().flatten()
    }

    /// The smallest size of the ladder whose devices do most for it.
    pub(crate) fn base(&self) -> Option<Size> {
        self.ladders.iter().map(|ladder| ladder[0]).reduce(better)
    }

    /// The sizes that are faster than the one it was given.
    pub(crate) fn faster(&self) -> impl Iterator<Item = Size> {
        let speed = self.speed();
        self.sizes().copied().filter(move |size| size.speed > speed)
    }

    /// Its speed in the best of its sizes.
    pub(crate) fn best_speed(&self) -> f64 {
        self.sizes().map(|size| size.speed).fold(0.0, f64::max)
    }

    /// Whether it keeps what it has.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned.is_some()
    }

    /// Its speed there; 0 where it has nothing.
    pub(crate) fn speed(&self) -> f64 {
        self.size().map_or(0.0, |size| size.speed)
    }
}

/// One size up: which, and how many devices that takes in addition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) size: Size,
    pub(crate) extra: f64,
    at: (usize, usize),
}

/// Devices given out step by step, none to begin with but what cannot be taken away.
pub(crate) struct Growth<'a> {
    view: &'a View,
    /// By priority, then by submission.
    pub(crate) rows: Vec<SizeRow>,
    free: KindCounts,
}

impl<'a> Growth<'a> {
    pub(crate) fn new(view: &'a View) -> Growth<'a> {
        let row = |job| SizeRow { job, ladders: ladders(view, job), at: None, pinned: pinned(view, job) };
        let mut rows: Vec<SizeRow> = view.active().map(row).collect();
        rows.sort_by_key(|row| (class(view, row.job), view.run(row.job).submitted, view.run(row.job).id));
        let mut free = KindCounts::up(view);
        for row in &rows {
            row.pinned.iter().for_each(|at| free.take(shape(view, row.job, *at)));
        }
        Growth { view, rows, free }
    }

    /// The rows of each class, the largest priority first. Devices go to one class after the other: its jobs fare as if
    /// those of smaller priority were not there.
    pub(crate) fn classes(&self) -> Vec<Range<usize>> {
        classes(&self.rows, |row| class(self.view, row.job))
    }

    /// The next step of a row for which there are devices: the foot of the ladder whose devices do most for it; then
    /// the next rung of the one it is on, or, where there is none, the first rung of another that is faster.
    pub(crate) fn step(&self, row: usize) -> Option<Step> {
        let own = &self.rows[row];
        let Some((ladder, rung)) = own.at else {
            let feet = (0..own.ladders.len()).filter_map(|ladder| self.change(row, (ladder, 0)));
            return feet.reduce(
                |best, next| if next.size.per_device() > best.size.per_device() { next } else { best },
            );
        };
        self.change(row, (ladder, rung + 1)).or_else(|| self.elsewhere(row, ladder))
    }

    /// The step to another ladder that gains most for each device it takes there.
    fn elsewhere(&self, row: usize, from: usize) -> Option<Step> {
        let (own, speed) = (&self.rows[row], self.rows[row].speed());
        let first = |ladder: usize| {
            let rung = own.ladders[ladder].iter().position(|size| size.speed > speed)?;
            self.change(row, (ladder, rung))
        };
        let steps = (0..own.ladders.len()).filter(|ladder| *ladder != from).filter_map(first);
        let gain = |step: &Step| (step.size.speed - speed) / step.extra;
        steps.reduce(|best, next| if gain(&next) > gain(&best) { next } else { best })
    }

    /// The step to this rung, if there are devices for it once it gives back what it has.
    fn change(&self, row: usize, at: (usize, usize)) -> Option<Step> {
        let own = &self.rows[row];
        let size = *own.ladders.get(at.0)?.get(at.1)?;
        let needs = self.needs(row, size);
        let fits =
            own.pinned.is_none() && needs.iter().all(|(kind, more)| *more <= self.free.of(KindId(*kind)));
        let extra = needs.iter().map(|(_, more)| f64::from(*more)).sum::<f64>().max(1.0);
        fits.then_some(Step { size, extra, at })
    }

    /// Devices by kind that a size takes beyond what the row has.
    pub(crate) fn needs(&self, row: usize, size: Size) -> Vec<(u16, u32)> {
        let own = &self.rows[row];
        let mut needs: Vec<(u16, u32)> = Vec::new();
        for need in &shape(self.view, own.job, size.shape).needs {
            match needs.iter_mut().find(|(kind, _)| *kind == need.kind.0) {
                Some((_, devices)) => *devices += need.devices,
                None => needs.push((need.kind.0, need.devices)),
            }
        }
        let held = own.size().map_or(&[][..], |held| &shape(self.view, own.job, held.shape).needs);
        for need in held {
            let same = needs.iter_mut().filter(|(kind, _)| *kind == need.kind.0);
            same.for_each(|(_, devices)| *devices = devices.saturating_sub(need.devices));
        }
        needs
    }

    /// Takes a step.
    pub(crate) fn take(&mut self, row: usize, step: Step) {
        let own = &mut self.rows[row];
        if let Some((ladder, rung)) = own.at {
            self.free.give(shape(self.view, own.job, own.ladders[ladder][rung].shape));
        }
        self.free.take(shape(self.view, own.job, step.size.shape));
        own.at = Some(step.at);
    }

    /// Gives a row exactly this of its usable shapes, if there are devices for it.
    pub(crate) fn set(&mut self, row: usize, wanted: u16) -> bool {
        let ladders = self.rows[row].ladders.iter().enumerate();
        let rung = |ladder: &[Size]| ladder.iter().position(|size| size.shape == wanted);
        let at = ladders.filter_map(|(at, ladder)| Some((at, rung(ladder)?))).next();
        let step = at.and_then(|at| self.change(row, at));
        step.map(|step| self.take(row, step)).is_some()
    }

    /// Devices that nobody was given.
    pub(crate) fn free(&self) -> &KindCounts {
        &self.free
    }

    /// The sizes that were given out. Who has none may use, in its smallest size, what falls free before the next
    /// plan.
    pub(crate) fn allocation(self) -> Allocation {
        let shares = self.rows.iter().filter_map(|row| share(self.view, row)).collect();
        Allocation::preemptive(Shares::All(shares))
    }
}

fn share(view: &View, row: &SizeRow) -> Option<Share> {
    let given = row.pinned.or(row.size().map(|size| size.shape));
    match given {
        Some(shape) => Some(chosen(view, row.job, shape)),
        None => Some(behind(view, row.job, row.base()?.shape)),
    }
}

/// All of the time in this shape, the largest first: they are the hardest to place.
pub(crate) fn chosen(view: &View, job: JobIdx, shape: u16) -> Share {
    let devices = f64::from(view.spec(job).shapes[shape as usize].devices());
    named(view, job, shape, Rank(-devices, view.run(job).submitted.secs()))
}

/// This shape behind all that were chosen, the oldest first.
pub(crate) fn behind(view: &View, job: JobIdx, shape: u16) -> Share {
    named(view, job, shape, Rank(1.0, view.run(job).submitted.secs()))
}

/// Where there is no other shape, none is named, as by every other policy.
fn named(view: &View, job: JobIdx, shape: u16, rank: Rank) -> Share {
    let named = (view.spec(job).shapes.len() > 1).then_some(shape);
    Share { jobs: smallvec![job], shape: named, fraction: 1.0, rank }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::ids::LeaseId;

    use super::*;
    use crate::testing::elastic;

    fn speeds(ladder: &[Size]) -> Vec<(u32, f64)> {
        ladder.iter().map(|size| (size.devices, size.speed)).collect()
    }

    #[test]
    fn a_ladder_has_only_sizes_that_are_worth_it() {
        let view =
            elastic(&[8, 8], &[(&[(0, 4, 2.0), (0, 1, 1.0), (0, 2, 1.0), (1, 2, 5.0), (0, 8, 0.0)], 10.0)]);
        let all = ladders(&view, JobIdx(0));
        assert_eq!(speeds(&all[0]), [(1, 1.0), (4, 2.0)]);
        assert_eq!(speeds(&all[1]), [(2, 5.0)]);
    }

    #[test]
    fn steps_are_taken_while_there_are_devices() {
        let sizes = [(0, 1, 1.0), (0, 2, 1.5), (0, 8, 9.0), (1, 1, 3.0)];
        let view = elastic(&[4, 1], &[(&sizes, 10.0), (&sizes, 10.0)]);
        let mut growth = Growth::new(&view);
        let first = growth.step(0).unwrap();
        assert_eq!((first.size.shape, first.extra), (3, 1.0), "the faster kind");
        growth.take(0, first);
        assert_eq!(growth.step(0), None, "no larger size there");
        let second = growth.step(1).unwrap();
        assert_eq!(second.size.shape, 0, "what is left");
        growth.take(1, second);
        let third = growth.step(1).unwrap();
        assert_eq!((third.size.devices, third.extra), (2, 1.0));
        growth.take(1, third);
        assert_eq!(growth.step(1), None, "eight are more than there are");
        assert_eq!((growth.free().of(KindId(0)), growth.free().of(KindId(1))), (2, 0));
    }

    #[test]
    fn who_cannot_climb_goes_over_to_a_faster_ladder() {
        let sizes = [(0, 1, 3.0), (1, 1, 1.0), (1, 2, 2.0), (1, 4, 4.0)];
        let view = elastic(&[1, 6], &[(&sizes, 10.0)]);
        let mut growth = Growth::new(&view);
        let first = growth.step(0).unwrap();
        growth.take(0, first);
        let over = growth.step(0).unwrap();
        assert_eq!((first.size.shape, over.size.shape, over.extra), (0, 3, 4.0));
        growth.take(0, over);
        assert_eq!(
            (growth.free().of(KindId(0)), growth.free().of(KindId(1))),
            (1, 2),
            "it gave back what it had"
        );
        assert_eq!(growth.step(0), None);
    }

    #[test]
    fn who_may_not_be_stopped_keeps_what_it_has() {
        let sizes = [(0, 1, 1.0), (0, 2, 2.0)];
        let mut view = elastic(&[4], &[(&sizes, 10.0), (&sizes, 10.0), (&sizes, 10.0)]);
        Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[1]).pausable = false;
        let run = &mut Arc::make_mut(&mut view.runs)[1];
        (run.lease, run.shape) = (Some(LeaseId(1)), 1);
        let mut growth = Growth::new(&view);
        assert_eq!(growth.step(1), None);
        assert!(growth.set(0, 1) && !growth.set(2, 0), "two of four devices are taken already");
        let Shares::All(shares) = growth.allocation().shares else { panic!("all of them") };
        let told: Vec<_> = shares.iter().map(|share| (share.shape, share.rank.0 < 0.0)).collect();
        assert_eq!(told, [(Some(1), true), (Some(1), true), (Some(0), false)]);
    }
}
