//! The two kinds of policies that are an order of jobs: those whose ranks stay as they are, and those
//! whose ranks move while a job holds devices.

use std::cmp::Reverse;
use std::ops::Range;

use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Policy, PolicyError};
use yard_core::view::View;

use crate::index::{Index, moving};

/// Behind every real number of seconds: ranks are finite.
pub(crate) const LAST: f64 = 1e18;

/// A number fit for a rank: what is not a number, or beyond all numbers, goes last.
pub(crate) fn finite(value: f64) -> f64 {
    if value < LAST { value.max(-LAST) } else { LAST }
}

/// Where the rows of each class lie among rows that are in order of their classes.
pub(crate) fn classes<T>(rows: &[T], class: impl Fn(&T) -> Reverse<i32>) -> Vec<Range<usize>> {
    let mut begin = 0;
    let mut range = |rows: &[T]| {
        begin += rows.len();
        begin - rows.len()..begin
    };
    rows.chunk_by(|a, b| class(a) == class(b)).map(&mut range).collect()
}

/// The class of a job: those of larger priority come before all others, whatever else a policy goes by.
pub(crate) fn class(view: &View, job: JobIdx) -> Reverse<i32> {
    Reverse(view.spec(job).priority)
}

/// First come, first served.
pub(crate) fn by_submission(view: &View, job: JobIdx) -> Rank {
    Rank(view.run(job).submitted.secs(), 0.0)
}

/// Devices of the shape it likes best. Not of the one it holds: a rank that changed with every start
/// would have a job stopped for having been started.
pub(crate) fn demand(view: &View, job: JobIdx) -> f64 {
    view.spec(job).shapes.first().map_or(0.0, |shape| f64::from(shape.devices()))
}

/// All of the time in this shape. Where there is no other, none is named, as by every other policy.
pub(crate) fn in_shape(view: &View, job: JobIdx, shape: u16) -> Share {
    let named = (view.spec(job).shapes.len() > 1).then_some(shape);
    Share { shape: named, ..Share::whole(job, by_submission(view, job)) }
}

/// An order in which each job has one place for life: only arrivals are ranked.
pub(crate) struct Fixed {
    pub(crate) mode: Mode,
    pub(crate) rank: fn(&View, JobIdx) -> Rank,
}

impl Policy for Fixed {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let share = |job| Share::whole(job, (self.rank)(view, job));
        let shares = if view.changed.all {
            Shares::All(view.active().map(share).collect())
        } else {
            let added = view.changed.added.iter().copied();
            Shares::Changed(added.filter(|job| view.run(*job).is_active()).map(share).collect())
        };
        Ok(Allocation { mode: self.mode, shares, replan_at: None, certificate: None })
    }
}

/// A preemptive order in which jobs that hold devices move: arrivals, jobs that started or stopped and
/// jobs that hold devices are ranked anew in each plan.
pub(crate) struct Moving<F> {
    rank: F,
    cadence: Cadence,
    running: Index<()>,
}

impl<F: FnMut(&View, JobIdx) -> Rank> Moving<F> {
    pub(crate) fn new(cadence: Cadence, rank: F) -> Moving<F> {
        Moving { rank, cadence, running: Index::default() }
    }
}

impl<F: FnMut(&View, JobIdx) -> Rank + Send> Policy for Moving<F> {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let full = self.running.follow(view, |job| moving(view, job));
        let share = |job| Share::whole(job, (self.rank)(view, job));
        let shares = if full {
            Shares::All(view.active().map(share).collect())
        } else {
            let mut jobs = view.dirty();
            jobs.retain(|job| moving(view, *job).is_none());
            Shares::Changed(jobs.into_iter().chain(self.running.rows()).map(share).collect())
        };
        // Whose length is not sure may fall behind while nothing else happens.
        let doubts = view.doubts_at(self.running.rows()).filter(|_| self.cadence == Cadence::OnChange);
        Ok(Allocation { replan_at: doubts, ..Allocation::preemptive(shares) })
    }

    fn cadence(&self) -> Cadence {
        self.cadence
    }
}

/// A policy whose ranks say all: priorities count in what it chooses, or not at all.
pub(crate) struct Unclassed(pub(crate) Box<dyn Policy>);

impl Policy for Unclassed {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut allocation = self.0.allocate(view)?;
        if let Mode::Ordered { classes, .. } = &mut allocation.mode {
            *classes = false;
        }
        Ok(allocation)
    }

    fn cadence(&self) -> Cadence {
        self.0.cadence()
    }

    fn agnostic(&self) -> bool {
        self.0.agnostic()
    }

    fn keeps_apart(&self) -> bool {
        self.0.keeps_apart()
    }

    fn blocking(&self) -> bool {
        self.0.blocking()
    }
}

/// Whole shares by rank, stopping jobs for better ones and passing what does not fit.
pub(crate) const PREEMPTIVE: Mode = Mode::Ordered { preempt: true, skip: true, classes: true };
