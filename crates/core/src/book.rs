//! The shares in force, kept in order. Finding who goes first costs a logarithm, because waiting shares
//! lie sorted in one set for each distinct demand (`Class`): where the first of a class does not fit, no
//! later one of that class does either, so a round looks at the heads of a few classes, not at all jobs.
//! Where jobs take turns the order is new in each round (`turns`), so that none is kept.

mod accounts;
mod heirs;
mod key;
mod order;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

pub(crate) use self::accounts::Jobs;
pub(crate) use self::key::Key;
use crate::allocation::{Allocation, Mode, Share, Shares};
use crate::bits::Bits;
use crate::ids::{JobId, JobIdx, LeaseId, ShareId};
use crate::job::{JobRun, JobSpec, Rank, Shape};
use crate::leases::own_way;
use crate::turns::Turns;
use crate::units::{Span, Time};

/// A demand's row in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClassId(pub(crate) u32);

/// One share in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) jobs: SmallVec<[JobIdx; 1]>,
    pub(crate) shape: Option<u16>,
    pub(crate) fraction: f64,
    pub(crate) class: ClassId,
    /// Its newest lease, promised or granted; none while it waits.
    pub(crate) lease: Option<LeaseId>,
    /// The lease taken from it in the round that is being decided.
    #[serde(skip)]
    pub(crate) stopped: Option<LeaseId>,
    pub(crate) key: Key,
    held: u16,
    /// Seconds it was promised and seconds it received, up to `accounted` (where shares are parts of the time); a share that
    /// waits receives nothing, so that its account may be left behind. See `Turns` for what a new plan does to it.
    promised: f64,
    pub(crate) received: f64,
    accounted: Time,
    /// What it costs to stop its jobs and start them again, the most of them.
    pub(crate) restart: Span,
    /// Seconds promised and not received under earlier plans (`Turns::Gavel`).
    pub(crate) deficit: f64,
    /// The allocation that named it last; 0: none has yet.
    stamp: u64,
    alive: bool,
}

/// All shares that ask for the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Class {
    pub(crate) shapes: Arc<[Shape]>,
    /// The rows of `shapes` that will do, best liked first.
    pub(crate) options: SmallVec<[u16; 1]>,
    only: Option<u16>,
    waiting: BTreeSet<Key>,
}

/// The shares in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Book {
    pub(crate) mode: Mode,
    entries: Vec<Entry>,
    vacant: Vec<ShareId>,
    of_job: Vec<SmallVec<[ShareId; 1]>>,
    classes: Vec<Class>,
    /// Those that have a lease, in order; none where jobs take turns.
    chosen: BTreeSet<Key>,
    /// The rows of those that have a lease.
    #[serde(default)]
    holding: Bits,
    waiting: usize,
    stamp: u64,
}

impl Default for Book {
    fn default() -> Book {
        Book {
            mode: Mode::Ordered { preempt: false, skip: true, classes: true },
            entries: Vec::new(),
            vacant: Vec::new(),
            of_job: Vec::new(),
            classes: Vec::new(),
            chosen: BTreeSet::new(),
            holding: Bits::default(),
            waiting: 0,
            stamp: 0,
        }
    }
}

impl Entry {
    /// Whether it is this share: the same jobs, in the same shape or in one that suits the shape it holds.
    fn is(&self, share: &Share) -> bool {
        let suits = || self.lease.is_some() && share.shape.is_none_or(|shape| shape == self.held);
        self.jobs == share.jobs && (self.shape == share.shape || suits())
    }

    /// Whether it may only have what nobody else wants.
    pub(crate) fn is_leftover(&self) -> bool {
        self.fraction <= Share::LEFTOVER
    }

    /// Whether no plan has named it yet.
    pub(crate) fn is_newcomer(&self) -> bool {
        self.stamp == 0
    }

    /// The shape it holds, while it has a lease.
    pub(crate) fn held(&self) -> u16 {
        self.held
    }

    /// The number of its first job.
    pub(crate) fn lead(&self) -> JobId {
        self.key.lead
    }
}

/// Jobs that have devices, by row.
pub(crate) struct Served(Vec<bool>);

impl Served {
    /// Whether one of these is among them.
    pub(crate) fn has_any(&self, jobs: &[JobIdx]) -> bool {
        jobs.iter().any(|job| self.0[job.index()])
    }
}

/// What the book must know of leases.
#[derive(Clone, Copy)]
pub(crate) struct Held<'a> {
    /// Whether a lease is never stopped for others.
    pub(crate) fixed: &'a dyn Fn(LeaseId) -> bool,
    /// Whether its jobs hold the devices and keep them.
    pub(crate) granted: &'a dyn Fn(LeaseId) -> bool,
}

/// Leases that a new allocation changes.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Those that it no longer wants.
    pub(crate) ended: Vec<LeaseId>,
    /// Those that go on with other jobs.
    pub(crate) regrouped: Vec<LeaseId>,
}

impl Book {
    pub(crate) fn entry(&self, share: ShareId) -> &Entry {
        &self.entries[share.0 as usize]
    }

    pub(crate) fn entry_mut(&mut self, share: ShareId) -> &mut Entry {
        &mut self.entries[share.0 as usize]
    }

    pub(crate) fn class(&self, class: ClassId) -> &Class {
        &self.classes[class.0 as usize]
    }

    /// All distinct demands, by row.
    pub(crate) fn classes(&self) -> impl Iterator<Item = &Class> {
        self.classes.iter()
    }

    /// Rows for shares, in use or not.
    pub(crate) fn n_shares(&self) -> usize {
        self.entries.len()
    }

    /// Rows of jobs that ever had a share.
    pub(crate) fn n_jobs(&self) -> usize {
        self.of_job.len()
    }

    /// How many distinct demands were ever seen.
    pub(crate) fn n_classes(&self) -> usize {
        self.classes.len()
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Whether somebody waits for its turn, or will have had it.
    pub(crate) fn has_turns(&self) -> bool {
        self.has_waiting() || (self.mode == Mode::Capped && !self.holding.is_empty())
    }

    pub(crate) fn shares_of(&self, job: JobIdx) -> &[ShareId] {
        self.of_job.get(job.index()).map_or(&[], |shares| shares)
    }

    /// Every share in force, waiting or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ShareId, &Entry)> {
        let rows = self.entries.iter().enumerate().map(|(at, entry)| (ShareId(at as u32), entry));
        rows.filter(|(_, entry)| entry.alive)
    }

    /// Which jobs have devices, or were promised some.
    pub(crate) fn served(&self) -> Served {
        let mut served = Served(vec![false; self.n_jobs()]);
        let jobs = self.chosen().flat_map(|share| &self.entry(share).jobs);
        jobs.for_each(|job| served.0[job.index()] = true);
        served
    }

    /// Whether one of the jobs of a share has devices, through this one or another: `served` for a few.
    pub(crate) fn is_served(&self, entry: &Entry) -> bool {
        let mut others = entry.jobs.iter().flat_map(|job| self.shares_of(*job));
        others.any(|other| self.entry(*other).lease.is_some())
    }

    /// Whether one of its jobs already has devices through another share.
    pub(crate) fn taken_elsewhere(&self, share: ShareId) -> bool {
        let others = self.entry(share).jobs.iter().flat_map(|job| self.shares_of(*job));
        others.into_iter().any(|other| *other != share && self.entry(*other).lease.is_some())
    }

    /// Moves a waiting share to the chosen ones.
    pub(crate) fn choose(&mut self, share: ShareId, lease: LeaseId, shape: u16) {
        let entry = &mut self.entries[share.0 as usize];
        assert!(entry.alive && entry.lease.is_none(), "share {share:?} chosen twice");
        (entry.lease, entry.held) = (Some(lease), shape);
        self.waiting -= 1;
        self.holding.insert(share.0);
        if !self.mode.takes_turns() {
            let waiting = &mut self.classes[entry.class.0 as usize].waiting;
            assert!(waiting.remove(&entry.key), "{share:?} was not waiting");
            self.chosen.insert(entry.key);
        }
    }

    /// Moves a chosen share back to the waiting ones; its lease is the caller's to end.
    pub(crate) fn unchoose(&mut self, share: ShareId) -> Option<LeaseId> {
        let entry = &mut self.entries[share.0 as usize];
        let lease = entry.lease.take()?;
        assert!(self.holding.remove(share.0), "{share:?} was not chosen");
        self.waiting += 1;
        if !self.mode.takes_turns() {
            assert!(self.chosen.remove(&entry.key), "{share:?} was not chosen");
            self.classes[entry.class.0 as usize].waiting.insert(entry.key);
        }
        Some(lease)
    }

    /// Takes a job that is over, or that asks for nothing more, out of its shares. A group that holds
    /// devices goes on without it; other groups fall away.
    pub(crate) fn remove_job(&mut self, job: JobIdx, specs: &[Arc<JobSpec>]) {
        for share in self.of_job.get_mut(job.index()).map(std::mem::take).unwrap_or_default() {
            let entry = &mut self.entries[share.0 as usize];
            if entry.lease.is_some() && entry.jobs.len() > 1 {
                self.go_on_without(share, job, specs);
            } else {
                self.drop_share(share);
            }
        }
    }

    /// Takes a job that stopped by itself out of a group that goes on without it.
    pub(crate) fn leave(&mut self, share: ShareId, job: JobIdx, specs: &[Arc<JobSpec>]) {
        self.go_on_without(share, job, specs);
        self.of_job[job.index()].retain(|other| *other != share);
    }

    /// A group that holds devices loses a job. Shapes are named by the list of who is first.
    fn go_on_without(&mut self, share: ShareId, job: JobIdx, specs: &[Arc<JobSpec>]) {
        let entry = &mut self.entries[share.0 as usize];
        let led = entry.jobs.first() == Some(&job);
        entry.jobs.retain(|member| *member != job);
        let Some(lead) = entry.jobs.first().copied().filter(|_| led) else { return };
        entry.held = own_way(specs, job, lead, entry.held);
        entry.shape = entry.shape.map(|shape| own_way(specs, job, lead, shape));
        let shape = entry.shape;
        self.entries[share.0 as usize].class = self.intern(&specs[lead.index()].shapes, shape);
    }

    /// Removes a share that has no lease any more.
    fn drop_share(&mut self, share: ShareId) {
        let entry = &mut self.entries[share.0 as usize];
        assert!(entry.lease.is_none(), "{share:?} removed with its lease");
        entry.alive = false;
        let (jobs, class, key) = (std::mem::take(&mut entry.jobs), entry.class, entry.key);
        if !self.mode.takes_turns() {
            assert!(self.classes[class.0 as usize].waiting.remove(&key), "{share:?} was not waiting");
        }
        self.waiting -= 1;
        for job in jobs {
            self.of_job[job.index()].retain(|other| *other != share);
        }
        self.vacant.push(share);
    }

    /// Puts a new allocation in force. A group that holds devices and has other jobs from now on keeps them, and those
    /// of its jobs that stay do not notice. Leases that end are never fixed ones: who holds those keeps them,
    /// whatever the allocation says.
    pub(crate) fn apply(
        &mut self,
        allocation: Allocation,
        now: Time,
        turns: Turns,
        specs: &[Arc<JobSpec>],
        runs: &mut [JobRun],
        held: Held<'_>,
    ) -> Applied {
        if turns.is_gavel() {
            self.settle(&Jobs { now, turns, specs, runs });
        }
        self.stamp += 1;
        self.set_mode(allocation.mode);
        let (full, shares) = match allocation.shares {
            Shares::All(shares) => (true, shares),
            Shares::Changed(shares) => (false, shares),
        };
        let keep = matches!(self.mode, Mode::Ordered { preempt: false, .. });
        // A job that ended or was held back while the plan was made is nobody's concern any more.
        let active = |job: &JobIdx| runs[job.index()].is_active();
        let shares: Vec<Share> =
            shares.into_iter().filter_map(|share| retain(share, specs, active)).collect();
        let heirs = if turns.is_gavel() { Vec::new() } else { self.heirs(&shares, specs, keep, held) };
        let bound = self.fixed_rows(full, &shares, held);
        let mut named: Vec<JobIdx> = Vec::new();
        let mut applied = Applied::default();
        for (at, share) in shares.into_iter().enumerate() {
            let heir = heirs.get(at).copied().flatten();
            // Where nothing is preempted, a job that runs in another share runs on there.
            if keep && self.runs_otherwise(&share, heir) {
                continue;
            }
            if let Some(share) = self.without_fixed(share, heir, specs, &bound) {
                if !full {
                    named.extend(&share.jobs);
                }
                let row = self.upsert(share, heir, now, (turns, specs), runs);
                applied.regrouped.extend(self.entry(row).lease.filter(|_| heir == Some(row)));
            }
        }
        let mut unwanted: Vec<ShareId> = if full {
            self.iter().filter(|(_, entry)| entry.stamp != self.stamp).map(|(share, _)| share).collect()
        } else {
            let rows = named.iter().flat_map(|job| self.shares_of(*job)).copied();
            rows.filter(|share| self.entry(*share).stamp != self.stamp).collect()
        };
        unwanted.sort_unstable();
        unwanted.dedup();
        let ended = unwanted.into_iter();
        applied.ended =
            ended.filter_map(|share| self.forget(share, keep || bound.contains(share.0))).collect();
        applied
    }

    /// Whether a job of `share` has devices through a share that is not the same and does not pass to it.
    fn runs_otherwise(&self, share: &Share, heir: Option<ShareId>) -> bool {
        let rows = share.jobs.iter().flat_map(|job| self.shares_of(*job));
        let rows = rows.filter(|row| Some(**row) != heir).map(|row| self.entry(*row));
        rows.into_iter().any(|entry| entry.lease.is_some() && !entry.is(share))
    }

    /// The rows whose leases are never stopped for others: all of them, or those of the jobs that are named.
    fn fixed_rows(&self, full: bool, shares: &[Share], held: Held<'_>) -> Bits {
        let fixed = |row: &ShareId| self.entry(*row).lease.is_some_and(held.fixed);
        if full {
            return self.chosen().filter(fixed).map(|row| row.0).collect();
        }
        let rows = shares.iter().flat_map(|share| &share.jobs).flat_map(|job| self.shares_of(*job));
        rows.copied().filter(fixed).map(|row| row.0).collect()
    }

    /// The share for those of its jobs that are not bound to another one by a lease that is fixed.
    fn without_fixed(
        &self,
        share: Share,
        heir: Option<ShareId>,
        specs: &[Arc<JobSpec>],
        fixed: &Bits,
    ) -> Option<Share> {
        if fixed.is_empty() {
            return Some(share);
        }
        let bound =
            |row: &ShareId| Some(*row) != heir && fixed.contains(row.0) && !self.entry(*row).is(&share);
        let free = |job: &JobIdx| !self.shares_of(*job).iter().any(bound);
        if share.jobs.iter().all(free) {
            return Some(share);
        }
        let free: SmallVec<[JobIdx; 1]> = share.jobs.iter().copied().filter(free).collect();
        retain(share, specs, |job| free.contains(job))
    }

    /// Drops a share the allocation no longer names; one that runs is kept where nothing is preempted.
    fn forget(&mut self, share: ShareId, keep: bool) -> Option<LeaseId> {
        if keep && self.entry(share).lease.is_some() {
            return None;
        }
        let lease = self.unchoose(share);
        self.drop_share(share);
        lease
    }

    /// Puts a share in force: as what it was, in the place of one that passes to it, or anew.
    fn upsert(
        &mut self,
        mut share: Share,
        heir: Option<ShareId>,
        now: Time,
        (turns, specs): (Turns, &[Arc<JobSpec>]),
        runs: &mut [JobRun],
    ) -> ShareId {
        share.rank = share.rank.finite();
        for job in &share.jobs {
            runs[job.index()].rank = share.rank;
        }
        let row = match (heir, self.known(&share)) {
            // What is left of a group without those who are bound elsewhere may be a share that waits beside the one
            // that holds the devices.
            (Some(row), _) => {
                share = self.pass_on(row, share, specs);
                row
            }
            (None, Some(row)) => row,
            (None, None) => self.insert(&share, now, specs, runs),
        };
        if self.entry(row).shape != share.shape {
            let class = self.intern(&specs[share.jobs[0].index()].shapes, share.shape);
            (self.entry_mut(row).shape, self.entry_mut(row).class) = (share.shape, class);
        }
        let stamp = self.stamp;
        let entry = self.entry_mut(row);
        entry.account(&Jobs { now, turns, specs, runs });
        (entry.stamp, entry.fraction) = (stamp, share.fraction);
        let lead = runs[share.jobs[0].index()].id;
        self.rekey(row, Key::new(&share, lead, row, self.priority(&share.jobs, specs)));
        row
    }

    /// The row of a share that is in force already.
    fn known(&self, share: &Share) -> Option<ShareId> {
        self.shares_of(share.jobs[0]).iter().copied().find(|row| self.entry(*row).is(share))
    }

    /// Lets a job that no policy has ranked yet wait behind all others of its priority.
    pub(crate) fn append(&mut self, job: JobIdx, now: Time, specs: &[Arc<JobSpec>], runs: &[JobRun]) {
        if !self.shares_of(job).is_empty() {
            return;
        }
        if !self.mode.takes_turns() {
            let row = self.insert(&Share::whole(job, Rank(f64::MAX, f64::MAX)), now, specs, runs);
            self.entry_mut(row).stamp = 0;
            return;
        }
        for shape in specs[job.index()].usable() {
            let row = self.insert(&Share::leftover(job, shape, Rank::default()), now, specs, runs);
            self.entry_mut(row).stamp = 0;
        }
    }

    /// A share before all others, of a job that has none: what it was promised.
    pub(crate) fn put_first(
        &mut self,
        job: JobIdx,
        shape: u16,
        now: Time,
        specs: &[Arc<JobSpec>],
        runs: &[JobRun],
    ) -> ShareId {
        let share = Share { shape: Some(shape), ..Share::whole(job, Rank(f64::MIN, f64::MIN)) };
        let row = self.insert(&share, now, specs, runs);
        self.rekey(row, self.entry(row).key.before_all());
        row
    }

    fn insert(&mut self, share: &Share, now: Time, specs: &[Arc<JobSpec>], runs: &[JobRun]) -> ShareId {
        let class = self.intern(&specs[share.jobs[0].index()].shapes, share.shape);
        let row = self.vacant.pop().unwrap_or(ShareId(self.entries.len() as u32));
        let key = Key::new(share, runs[share.jobs[0].index()].id, row, self.priority(&share.jobs, specs));
        let entry = Entry {
            jobs: share.jobs.clone(),
            shape: share.shape,
            fraction: share.fraction,
            class,
            lease: None,
            stopped: None,
            key,
            held: 0,
            promised: 0.0,
            received: 0.0,
            accounted: now,
            restart: share
                .jobs
                .iter()
                .map(|job| specs[job.index()].costs.restart())
                .max()
                .unwrap_or_default(),
            deficit: 0.0,
            stamp: self.stamp,
            alive: true,
        };
        match self.entries.get_mut(row.0 as usize) {
            Some(slot) => *slot = entry,
            None => self.entries.push(entry),
        }
        share.jobs.iter().for_each(|job| self.add_row_of(*job, row));
        if !self.mode.takes_turns() {
            self.classes[class.0 as usize].waiting.insert(key);
        }
        self.waiting += 1;
        row
    }

    /// What counts before the rank of a share: the largest priority of its jobs, where priorities count.
    fn priority(&self, jobs: &[JobIdx], specs: &[Arc<JobSpec>]) -> i32 {
        let of = jobs.iter().map(|job| specs[job.index()].priority);
        of.max().filter(|_| self.mode.has_classes()).unwrap_or_default()
    }

    fn add_row_of(&mut self, job: JobIdx, row: ShareId) {
        if self.of_job.len() <= job.index() {
            self.of_job.resize_with(job.index() + 1, SmallVec::new);
        }
        self.of_job[job.index()].push(row);
    }

    /// The row of a demand, new if need be. Like jobs share their shapes, so mostly pointers compare.
    fn intern(&mut self, shapes: &Arc<[Shape]>, only: Option<u16>) -> ClassId {
        let same = |class: &Class| class.only == only && Arc::ptr_eq(&class.shapes, shapes);
        let like = |class: &Class| class.only == only && class.shapes == *shapes;
        let known = self.classes.iter().position(same).or_else(|| self.classes.iter().position(like));
        let at = known.unwrap_or_else(|| {
            let options =
                only.map_or_else(|| (0..shapes.len() as u16).collect(), |one| [one].into_iter().collect());
            self.classes.push(Class { shapes: shapes.clone(), options, only, waiting: BTreeSet::new() });
            self.classes.len() - 1
        });
        ClassId(at as u32)
    }

    fn rekey(&mut self, share: ShareId, key: Key) {
        let entry = &mut self.entries[share.0 as usize];
        let old = std::mem::replace(&mut entry.key, key);
        if old == key || self.mode.takes_turns() {
            return;
        }
        let set = if entry.lease.is_some() {
            &mut self.chosen
        } else {
            &mut self.classes[entry.class.0 as usize].waiting
        };
        assert!(set.remove(&old), "{share:?} was not where it should be");
        set.insert(key);
    }

    /// What it costs to stop a job and start it again, from now on.
    pub(crate) fn set_restart(&mut self, job: JobIdx, restart: Span) {
        for share in self.of_job.get(job.index()).cloned().unwrap_or_default() {
            self.entry_mut(share).restart = restart;
        }
    }
}

/// The share for some of its jobs only, if there are any. Shapes are named by the list of who is first.
fn retain(mut share: Share, specs: &[Arc<JobSpec>], stays: impl Fn(&JobIdx) -> bool) -> Option<Share> {
    if share.jobs.iter().all(&stays) {
        return Some(share);
    }
    let led = share.jobs[0];
    share.jobs.retain(|job| stays(job));
    let leads = *share.jobs.first()?;
    share.shape = share.shape.map(|shape| own_way(specs, led, leads, shape));
    Some(share)
}
