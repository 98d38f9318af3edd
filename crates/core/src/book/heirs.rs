//! Groups that change while they run. A share that a new allocation no longer names may pass its lease to one that has
//! some of its jobs on the same devices: those stay where they are and do not notice, the others leave or join.

use std::collections::BTreeSet;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Book, Entry, Held};
use crate::allocation::Share;
use crate::ids::{JobIdx, ShareId};
use crate::job::JobSpec;
use crate::leases::own_way;

/// What is given away while heirs are found.
struct Taken {
    /// Rows that are some share's already.
    rows: BTreeSet<ShareId>,
    /// Jobs that are to join a group that holds devices.
    joined: BTreeSet<JobIdx>,
}

impl Book {
    /// For each share the row whose lease passes to it. Who is first in a group goes before the others: it is the one
    /// that should not be moved. Where nobody is stopped (`keep`), jobs only join.
    pub(super) fn heirs(
        &self,
        shares: &[Share],
        specs: &[Arc<JobSpec>],
        keep: bool,
        held: Held<'_>,
    ) -> Vec<Option<ShareId>> {
        let shared = |share: &Share| {
            let mut rows = share.jobs.iter().flat_map(|job| self.shares_of(*job));
            share.jobs.len() > 1 || rows.any(|row| self.entry(*row).jobs.len() > 1)
        };
        if !shares.iter().any(shared) {
            return Vec::new();
        }
        let mut heirs = vec![None; shares.len()];
        let rows = shares.iter().filter_map(|share| self.known(share)).collect();
        let mut taken = Taken { rows, joined: BTreeSet::new() };
        for led in [true, false] {
            for (share, heir) in shares.iter().zip(&mut heirs) {
                if heir.is_some() || self.known(share).is_some() {
                    continue;
                }
                let mut rows = share.jobs.iter().flat_map(|job| self.shares_of(*job)).copied();
                let passes = |row: &ShareId| {
                    let entry = self.entry(*row);
                    let leads = !led || share.jobs.contains(&entry.jobs[0]);
                    leads && entry.may_pass_to(share, specs, keep, held) && self.is_open(*row, share, &taken)
                };
                *heir = rows.find(passes);
                if let Some(row) = *heir {
                    taken.rows.insert(row);
                    let joins = |job: &&JobIdx| !self.entry(row).jobs.contains(job);
                    taken.joined.extend(share.jobs.iter().filter(joins));
                }
            }
        }
        heirs
    }

    /// Whether a row may pass to a share without any of its jobs being in two groups that hold devices.
    fn is_open(&self, row: ShareId, share: &Share, taken: &Taken) -> bool {
        let elsewhere = |job: JobIdx| {
            let mut others = self.shares_of(job).iter().filter(|other| **other != row);
            others.any(|other| taken.rows.contains(other) && self.entry(*other).lease.is_some())
        };
        let free = |job: &JobIdx| !taken.joined.contains(job) && !elsewhere(*job);
        !taken.rows.contains(&row) && share.jobs.iter().all(free)
    }

    /// Gives an entry the jobs of the share it passes to, those that stay first. Returns the share in that order.
    pub(super) fn pass_on(&mut self, row: ShareId, share: Share, specs: &[Arc<JobSpec>]) -> Share {
        let before = std::mem::take(&mut self.entry_mut(row).jobs);
        let stay = before.iter().filter(|job| share.jobs.contains(job));
        let join = share.jobs.iter().filter(|job| !before.contains(job));
        let jobs: SmallVec<[JobIdx; 1]> = stay.chain(join).copied().collect();
        for job in before.iter().filter(|job| !jobs.contains(job)) {
            self.of_job[job.index()].retain(|other| *other != row);
        }
        for job in jobs.iter().filter(|job| !before.contains(job)) {
            self.add_row_of(*job, row);
        }
        let shape = share.shape.map(|shape| own_way(specs, share.jobs[0], jobs[0], shape));
        let restart = jobs.iter().map(|job| specs[job.index()].costs.restart()).max().unwrap_or_default();
        let class = self.intern(&specs[jobs[0].index()].shapes, shape);
        let entry = self.entry_mut(row);
        entry.held = own_way(specs, before[0], jobs[0], entry.held);
        (entry.shape, entry.class, entry.restart) = (shape, class, restart);
        entry.jobs.clone_from(&jobs);
        Share { jobs, shape, ..share }
    }
}

impl Entry {
    /// Whether its devices are what a share asks for, and those of its jobs that would leave may be stopped.
    fn may_pass_to(&self, share: &Share, specs: &[Arc<JobSpec>], keep: bool, held: Held<'_>) -> bool {
        let shapes = |job: JobIdx| &specs[job.index()].shapes;
        let own = &shapes(self.jobs[0])[self.held as usize];
        let suits = match share.shape {
            Some(shape) => shapes(share.jobs[0])[shape as usize].takes_same(own),
            None => specs[share.jobs[0].index()].way(own).is_some(),
        };
        let leaves = |job: &JobIdx| !share.jobs.contains(job);
        let may_leave = |job: &JobIdx| !keep && specs[job.index()].pausable;
        let free = self.jobs.iter().filter(|job| leaves(job)).all(may_leave);
        self.lease.is_some_and(held.granted) && suits && free
    }
}
