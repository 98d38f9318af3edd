//! Shares that no node could serve. A policy counts devices by kind; whether those in service lie together as a shape
//! must have them, and where a job lies frozen, it does not look. A job whose shares are all in shapes that nobody could
//! give it now, were the cluster empty, is given one that somebody could: it would wait beside devices that it may use.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::allocation::{Share, Shares};
use crate::cluster::Nodes;
use crate::ids::JobIdx;
use crate::job::{JobRun, JobSpec};
use crate::reach::Reach;

/// Puts other shapes into shares that no node could serve. Groups stay as they are: their jobs agreed on the shape.
pub(super) fn make_room(shares: &mut Shares, nodes: &Nodes, specs: &[Arc<JobSpec>], runs: &[JobRun]) {
    let (Shares::All(shares) | Shares::Changed(shares)) = shares;
    let room = Room { reach: Reach::of(nodes), specs, runs };
    let mut stuck: BTreeSet<JobIdx> =
        shares.iter().filter(|share| !room.serves(share)).map(|share| share.jobs[0]).collect();
    if stuck.is_empty() {
        return;
    }
    for share in shares.iter().filter(|share| room.serves(share)) {
        share.jobs.iter().for_each(|job| _ = stuck.remove(job));
    }
    for share in shares.iter_mut().filter(|share| share.jobs.len() == 1) {
        // One share of each will do.
        if stuck.remove(&share.jobs[0]) {
            share.shape = room.best(share.jobs[0]).or(share.shape);
        }
    }
}

struct Room<'a> {
    reach: Reach<'a>,
    specs: &'a [Arc<JobSpec>],
    runs: &'a [JobRun],
}

impl Room<'_> {
    /// Whether somebody could serve a share, were the cluster empty. What a job holds, it may keep: nodes that drain go
    /// on with what they run. One that lies frozen has one shape to go on in.
    fn serves(&self, share: &Share) -> bool {
        let Some(shape) = share.shape else { return true };
        let (run, shapes) = (&self.runs[share.jobs[0].index()], &self.specs[share.jobs[0].index()].shapes);
        let (own, asked) = (&shapes[run.shape as usize], &shapes[shape as usize]);
        match &run.home {
            Some(_) => own.takes_same(asked),
            None => run.holds() && run.shape == shape || self.reach.holds(asked),
        }
    }

    /// The fastest shape of a job in which somebody could serve it; that of its devices, where it lies frozen.
    fn best(&self, job: JobIdx) -> Option<u16> {
        let (run, spec) = (&self.runs[job.index()], &self.specs[job.index()]);
        if run.home.is_some() {
            return Some(run.shape);
        }
        let held = spec.usable().filter(|shape| self.reach.holds(&spec.shapes[*shape as usize]));
        let speed = |shape: u16| spec.speeds[shape as usize];
        held.reduce(|best, shape| if speed(shape) > speed(best) { shape } else { best })
    }
}
