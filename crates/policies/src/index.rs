//! Rows of the view in an order of the policy's choosing, kept in step with what changed, so that a
//! plan costs as much as the change. An index is only ever for speed: it can be rebuilt from any view.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use yard_core::ids::{JobId, JobIdx};
use yard_core::job::Shape;
use yard_core::units::{Span, Time};
use yard_core::view::{Changed, View};

use crate::ranked::class;

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
            let active = view.run(job).is_active();
            self.set(job, if active { key(job) } else { None });
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

/// A place in the queue: the largest priority first, then the oldest.
pub(crate) type IndexPlace = (Reverse<i32>, Time, JobId, JobIdx);

/// Where a waiting row is: its line, its place and its length.
type IndexRow = (Arc<[Shape]>, IndexPlace, Span);

/// Waiting rows, one line for each distinct demand, so that all who ask for too much are passed at once,
/// and in each line also by length, so that all who take too long are.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    ready: bool,
    rows: Vec<Option<IndexRow>>,
    lines: BTreeMap<Arc<[Shape]>, IndexLine>,
}

#[derive(Debug, Default)]
struct IndexLine {
    places: BTreeSet<IndexPlace>,
    lengths: BTreeSet<(Span, IndexPlace)>,
}

impl Lines {
    /// Brings the rows that changed in step with the view; `length` must stand still while a job waits.
    pub(crate) fn follow(&mut self, view: &View, length: impl Fn(JobIdx) -> Span) {
        let full = view.changed.all || !self.ready;
        if full {
            *self = Lines { ready: true, ..Lines::default() };
            return view.active().for_each(|job| self.set(view, job, &length));
        }
        let changed = &view.changed;
        for job in changed.ended.iter().chain(&changed.added).chain(&changed.touched) {
            self.set(view, *job, &length);
        }
    }

    /// Takes a row out, and puts it in its line if it waits.
    fn set(&mut self, view: &View, job: JobIdx, length: impl Fn(JobIdx) -> Span) {
        if self.rows.len() <= job.index() {
            self.rows.resize_with(job.index() + 1, || None);
        }
        if let Some((shapes, place, length)) = self.rows[job.index()].take() {
            self.remove(&shapes, place, length);
        }
        if let Some((submitted, id)) = waiting(view, job) {
            let (shapes, length) = (&view.spec(job).shapes, length(job));
            let place = (class(view, job), submitted, id, job);
            let line = self.lines.entry(shapes.clone()).or_default();
            line.places.insert(place);
            line.lengths.insert((length, place));
            self.rows[job.index()] = Some((shapes.clone(), place, length));
        }
    }

    fn remove(&mut self, shapes: &Arc<[Shape]>, place: IndexPlace, length: Span) {
        let line = self.lines.get_mut(shapes).expect("a row in a line has that line");
        line.places.remove(&place);
        line.lengths.remove(&(length, place));
        if line.places.is_empty() {
            self.lines.remove(shapes);
        }
    }

    /// The first place after `after` among rows no longer than `longest` allows for what they ask.
    pub(crate) fn next(
        &self,
        after: Option<IndexPlace>,
        longest: impl Fn(&[Shape]) -> Option<Span>,
    ) -> Option<IndexPlace> {
        let first = |(shapes, line): (&Arc<[Shape]>, &IndexLine)| line.next(after, longest(shapes)?);
        self.lines.iter().filter_map(first).min()
    }
}

impl IndexLine {
    fn next(&self, after: Option<IndexPlace>, longest: Span) -> Option<IndexPlace> {
        if longest == Span(u64::MAX) {
            return self.places.range((after.map_or(Unbounded, Excluded), Unbounded)).next().copied();
        }
        let short = self.lengths.iter().take_while(|(length, _)| *length <= longest);
        short.map(|(_, place)| *place).filter(|place| Some(*place) > after).min()
    }
}

/// Waiting rows that earlier answers let start, for policies that name only who may start and stop nobody.
/// Whoever runs, runs on and needs no renewal; but where one of these may not start any more, only an
/// answer in full takes its permission back.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    /// Whose permission may be in force, if the last answer was never applied.
    held: BTreeSet<JobIdx>,
    /// Whom the last answer let start, whether it was in full, and what it answered.
    given: BTreeSet<JobIdx>,
    full: bool,
    answered: Changed,
}

impl Permits {
    /// Takes note of who may start now. True where somebody else still might: the answer is then in full.
    pub(crate) fn follow(&mut self, view: &View, started: BTreeSet<JobIdx>) -> bool {
        let changed = &view.changed;
        if self.full && !repeats(changed, &self.answered) {
            self.held.clear();
        }
        self.held.append(&mut self.given);
        // Who came since the last answer in force has no permission; who stopped since then may have kept it.
        self.held.extend(&changed.touched);
        let new: BTreeSet<_> = changed.ended.iter().chain(&changed.added).collect();
        self.held.retain(|job| !changed.all && !new.contains(job) && view.run(*job).is_waiting());
        (self.given, self.answered) = (started, changed.clone());
        self.full = changed.all || changed.nodes || !self.held.is_subset(&self.given);
        self.full
    }
}

/// Whether all of `old` is told again, as it is when the answer to it was not applied.
fn repeats(new: &Changed, old: &Changed) -> bool {
    let flags = new.all >= old.all && new.nodes >= old.nodes;
    let pairs = [(&new.ended, &old.ended), (&new.added, &old.added), (&new.touched, &old.touched)];
    flags && pairs.iter().all(|(new, old)| new.len() >= old.len() && old.iter().all(|job| new.contains(job)))
}

/// The key of rows that have devices or were promised some, and were not told to stop.
pub(crate) fn running(view: &View, job: JobIdx) -> Option<()> {
    view.is_running(job).then_some(())
}

/// The key of rows that wait, oldest first.
pub(crate) fn waiting(view: &View, job: JobIdx) -> Option<(Time, JobId)> {
    let run = view.run(job);
    run.is_waiting().then_some((run.submitted, run.id))
}

/// The key of rows that hold devices or were promised some: what changes while nothing happens.
pub(crate) fn moving(view: &View, job: JobIdx) -> Option<()> {
    (view.is_running(job) || view.run(job).holds()).then_some(())
}
