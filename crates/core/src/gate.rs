//! Who may begin though it could not be stopped in time for who was promised the same devices: only where nobody was.
//! Whoever is let in is put on record with the time by which it is done.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::belief::Belief;
use crate::cluster::{Nodes, Placement};
use crate::ids::{JobIdx, LeaseId, NodeId};
use crate::job::{JobRun, JobSpec, JobState, Length};
use crate::leases::own_way;
use crate::promise::{Ground, Spot, spot_of};
use crate::units::{Span, Time};

/// What ends may be off by, because instants are whole microseconds and sums of steps are not exact.
pub(crate) const SLIP: Span = Span(1_000);

/// What can be foretold of jobs that run on without a stop.
pub(crate) struct Outlook {
    pub(crate) now: Time,
    pub(crate) settle: Span,
    pub(crate) specs: Arc<Vec<Arc<JobSpec>>>,
    pub(crate) runs: Arc<Vec<JobRun>>,
    pub(crate) belief: Arc<Belief>,
}

impl Outlook {
    /// When a job of a group is done: in the company of all of it, at the latest from when others gave its devices back.
    pub(crate) fn end(
        &self,
        nodes: &Nodes,
        jobs: &[JobIdx],
        job: JobIdx,
        (shape, placement): (u16, &Placement),
        held: Option<LeaseId>,
    ) -> Time {
        let (spec, run) = (&self.specs[job.index()], &self.runs[job.index()]);
        let shape = own_way(&self.specs, jobs[0], job, shape);
        let at = nodes.lying(&spec.shapes, shape, placement) as usize;
        let others = jobs.iter().filter(|other| **other != job);
        let company = others.map(|other| self.specs[other.index()].profile);
        // Company that makes it faster may leave.
        let kept = self.belief.kept(spec.profile, company, &spec.shapes[at].needs).min(1.0);
        let speed = spec.speeds[at] * kept;
        // Where nobody said how long it takes, it may take for ever.
        if speed <= 0.0 || spec.length != Length::Stated {
            return Time::NEVER;
        }
        let holds = held.is_some() && run.lease == held && run.state != JobState::Suspending;
        let begins = if holds {
            starting(spec, run, self.now)
        } else {
            self.settle + spec.costs.start + spec.costs.load
        };
        self.now + begins + Span::from_secs(left(spec, run, self.now) / speed) + SLIP
    }
}

/// Lets in or not.
#[derive(Default)]
pub(crate) struct Gate {
    /// Those that are not simply let in.
    pub(crate) jobs: BTreeSet<JobIdx>,
    /// Those of them that have a plan, which they give up when they begin, and when they must be done.
    pub(crate) planned: BTreeMap<JobIdx, Time>,
    /// What those who must have devices now were promised: their plans speak for that already.
    pub(crate) seats: BTreeMap<JobIdx, (u16, Spot)>,
    pub(crate) ground: RefCell<Ground>,
    pub(crate) outlook: Option<Outlook>,
}

impl Gate {
    /// Whether it has a word to say on this group.
    pub(crate) fn concerns(&self, jobs: &[JobIdx]) -> bool {
        !self.jobs.is_empty() && jobs.iter().any(|job| self.jobs.contains(job))
    }

    /// Lets a group in, or names the nodes on which it would be in the way: none, where it is not let in anywhere.
    pub(crate) fn enter(
        &self,
        nodes: &Nodes,
        jobs: &[JobIdx],
        shape: u16,
        placement: &Placement,
    ) -> Result<(), SmallVec<[NodeId; 4]>> {
        let Some(outlook) = self.outlook.as_ref().filter(|_| self.concerns(jobs)) else { return Ok(()) };
        let spot = spot_of(nodes, placement);
        if let [job] = jobs
            && self.seats.get(job).is_some_and(|seat| *seat == (shape, spot.clone()))
        {
            return Ok(());
        }
        let mut until = Time::ZERO;
        for job in jobs {
            let end = outlook.end(nodes, jobs, *job, (shape, placement), None);
            // In a slow shape it would break its own promise.
            if self.planned.get(job).is_some_and(|by| end > *by) {
                return Err(SmallVec::new());
            }
            until = until.max(end);
        }
        let planned: SmallVec<[JobIdx; 2]> =
            jobs.iter().copied().filter(|job| self.planned.contains_key(job)).collect();
        let mut ground = self.ground.borrow_mut();
        let lacking = ground.lacking(nodes, &spot, (outlook.now, until), &planned);
        if !lacking.is_empty() {
            return Err(lacking);
        }
        ground.drop_all(&planned);
        ground.hold(None, &spot, until);
        Ok(())
    }
}

/// What a job that holds devices still needs before its next step.
pub(crate) fn starting(spec: &JobSpec, run: &JobRun, now: Time) -> Span {
    let whole = spec.costs.start + spec.costs.load;
    match run.state {
        JobState::Running => Span::ZERO,
        _ if !run.holds() => whole,
        _ => Span(whole.0.saturating_sub((now - run.held_since).0)),
    }
}

/// Steps left, as believed.
pub(crate) fn left(spec: &JobSpec, run: &JobRun, now: Time) -> f64 {
    (spec.steps - run.done_at(now)).max(0.0)
}
