//! Rows of the view in an order of the policy's choosing, kept in step with what changed, so that a
//! plan costs as much as the change. An index is only ever for speed: it can be rebuilt from any view.

use std::collections::BTreeSet;

use yard_core::ids::{JobId, JobIdx};
use yard_core::units::Time;
use yard_core::view::View;

/// Rows by key, smallest first; rows without a key are left out.
#[derive(Debug)]
pub(crate) struct Index<K> {
    ready: bool,
    keys: Vec<Option<K>>,
    order: BTreeSet<(K, JobIdx)>,
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Index { ready: false, keys: Vec::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> Index<K> {
    /// Brings the rows that changed in step with the view. True where it had to read them all: the
    /// policy then answers in full.
    pub(crate) fn follow(&mut self, view: &View, key: impl Fn(JobIdx) -> Option<K>) -> bool {
        let full = self.renew(view);
        if full {
            view.active().for_each(|job| self.set(job, key(job)));
            return true;
        }
        // A row may have ended and be in use again, so what counts is who is in it now.
        let changed = &view.changed;
        for job in changed.ended.iter().chain(&changed.added).chain(&changed.touched).copied() {
            let alive = !view.run(job).state.is_final();
            self.set(job, if alive { key(job) } else { None });
        }
        false
    }

    /// Empties the index where everything may have changed, and says so.
    pub(crate) fn renew(&mut self, view: &View) -> bool {
        let full = view.changed.all || !self.ready;
        if full {
            *self = Index { ready: true, ..Index::default() };
        }
        full
    }

    /// Puts a row where its key says, or takes it out.
    pub(crate) fn set(&mut self, job: JobIdx, key: Option<K>) {
        if self.keys.len() <= job.index() {
            self.keys.resize_with(job.index() + 1, || None);
        }
        if let Some(old) = std::mem::replace(&mut self.keys[job.index()], key) {
            self.order.remove(&(old, job));
        }
        self.order.extend(key.map(|key| (key, job)));
    }

    /// The rows with their keys, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, JobIdx)> + '_ {
        self.order.iter().copied()
    }

    /// The rows, in order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = JobIdx> + '_ {
        self.order.iter().map(|(_, job)| *job)
    }
}

/// The key of rows that have devices or were promised some, and were not told to stop.
pub(crate) fn running(view: &View, job: JobIdx) -> Option<()> {
    view.is_running(job).then_some(())
}

/// The key of rows that wait, oldest first.
pub(crate) fn waiting(view: &View, job: JobIdx) -> Option<(Time, JobId)> {
    let run = view.run(job);
    run.state.is_waiting().then_some((run.submitted, run.id))
}

/// The key of rows that hold devices or were promised some: what changes while nothing happens.
pub(crate) fn moving(view: &View, job: JobIdx) -> Option<()> {
    (view.is_running(job) || view.run(job).holds()).then_some(())
}
