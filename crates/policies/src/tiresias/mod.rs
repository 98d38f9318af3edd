//! Discretised two-dimensional least attained service (Gu et al., "Tiresias: A GPU Cluster Manager for
//! Distributed Deep Learning", NSDI 2019), as its simulator orders jobs; its late demotions too with `artifact=true`
//! (`late`).
//!
//! Objective: min Σ_j (end_j − submitted_j) with durations unknown and few preemptions: K queues with
//! thresholds θ_q on A_j = g_j·T_j; order = (queue, place). Places within a queue, first to last:
//! running jobs in the order in which they came to run there; stopped jobs, the last stopped first; new
//! and demoted jobs, in the order in which they came. A running job with A_j ≥ θ_q goes to the tail of
//! the next queue, one queue per plan. With `promote=c` a job that has waited for c times as long as it
//! has run goes back to the tail of the first queue and is counted anew.
//! Reads: states, the ranks in force, attained service, times of start and stop. All of that is in the
//! view, so the policy itself has no memory; only `promote` needs some (what a job had when it was last
//! promoted), and forgets it when the policy is made anew.
//! Cost: O(changed · log jobs) per plan, by an index of when each job is next due to change queues.
//! The paper consolidates a job where one tensor is a large part of its model, above a learned PACKLIMIT whose value is
//! not published, and lets others lie anywhere. What a skewed model suffers when it lies scattered is its speed, and that
//! is believed or measured here: with `consolidate=c` a job that keeps less than c of its speed on one node waits for one.
//! Missing: the skew itself, and the profiler that reads it from the network; without `consolidate` a job says itself how
//! far apart its devices may be.
//! Not to be used where all jobs are long: they end up in the last queue, first come, first served.

mod late;
mod place;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::cluster::Level;
use yard_core::ids::{JobId, JobIdx};
use yard_core::job::{JobRun, JobState, Rank};
use yard_core::policy::{Policy, PolicyError, Priorities};
use yard_core::units::{MICROS, Span, Time};
use yard_core::view::View;

use crate::index::Index;
use crate::{ParamError, Params, PolicyEntry};
use place::{keep_order, running_place, waiting_place};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "tiresias",
    live: "policies::tiresias_stops_a_job_past_its_threshold_for_a_newcomer_and_no_other",
    family: "attained",
    paper: "discretised 2D-LAS, Gu et al., NSDI 2019",
    there: "queues with thresholds, places within them, promotion of who starves; `consolidate`: who loses speed when scattered waits for one node",
    missing: "the skew of a model's tensors, the profiler that reads it and the learned PACKLIMIT: speeds decide instead",
    about: "Queues by attained device time, preemptive between queues; needs no durations",
    params: &[
        ("thresholds", "device-seconds after which a job goes down a queue, a/b/c; 3250/7200"),
        ("promote", "waiting over running time at which a job goes back to the first queue; never"),
        (
            "consolidate",
            "part of its speed on one node below which a job is not scattered over several; none",
        ),
        ("artifact", "demotions when the paper's simulator notices them, see `late`: true or false [false]"),
    ],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[],
    make,
};

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    let thresholds = params.ascending("thresholds")?.unwrap_or_else(|| vec![3250.0, 7200.0]);
    let (promote, consolidate) = (params.positive("promote")?, params.positive("consolidate")?);
    let artifact = params.flag("artifact")?;
    Ok(Box::new(Tiresias { thresholds, promote, consolidate, artifact, ..Tiresias::default() }))
}

/// How long to wait before looking again at a job that takes longer to stop than believed.
const PATIENCE: Span = Span(MICROS);

#[derive(Default)]
struct Tiresias {
    thresholds: Vec<f64>,
    promote: Option<f64>,
    consolidate: Option<f64>,
    artifact: bool,
    /// When each job next changes queues if nothing happens.
    due: Index<Time>,
    /// Jobs that the last plan moved. Whether that was applied, and what follows, the next view tells.
    moved: BTreeSet<JobIdx>,
    /// Whether this plan moved a job to another queue.
    shifted: bool,
    /// When jobs that were told to stop are believed to give their devices to others.
    stopping: Index<Time>,
    /// What jobs had when they were last promoted.
    promoted: BTreeMap<JobIdx, Baseline>,
}

/// What is not counted, because it was before the last promotion.
#[derive(Clone, Copy, Default)]
struct Baseline {
    job: JobId,
    attained: u64,
    executed: Span,
}

impl Policy for Tiresias {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let full = self.due.renew(view) | self.stopping.renew(view);
        self.forget_ended(view);
        let jobs = if full { view.active().collect() } else { self.to_look_at(view) };
        (self.moved, self.shifted) = (BTreeSet::new(), full);
        let share = |job| Share {
            shape: self.consolidate.and_then(|part| on_one_node(view, job, part)),
            ..Share::whole(job, self.look_at(view, job))
        };
        let mut shares: Vec<Share> = jobs.into_iter().map(share).collect();
        keep_order(view, &mut shares, self.artifact);
        let shares = if full { Shares::All(shares) } else { Shares::Changed(shares) };
        Ok(Allocation { replan_at: self.next_look(view), ..Allocation::preemptive(shares) })
    }
}

impl Tiresias {
    fn forget_ended(&mut self, view: &View) {
        for job in &view.changed.ended {
            self.due.set(*job, None);
            self.stopping.set(*job, None);
        }
        let current = |job: &JobIdx, was: &mut Baseline| {
            let run = view.run(*job);
            run.id == was.job && !run.state.is_final()
        };
        if view.changed.all || !view.changed.ended.is_empty() {
            self.promoted.retain(current);
        }
    }

    /// What changed, what the last plan moved, and who is due.
    fn to_look_at(&self, view: &View) -> BTreeSet<JobIdx> {
        let due = self.due.iter().take_while(|(due, _)| *due <= view.now).map(|(_, job)| job);
        let active = |job: &JobIdx| view.run(*job).is_active();
        due.chain(self.moved.iter().copied()).filter(active).chain(view.dirty()).collect()
    }

    /// When the next job is due, or is believed to have started. Who starts follows from this very plan,
    /// and is not in its view: only another look tells when that job will go down.
    fn next_look(&self, view: &View) -> Option<Time> {
        let first = |index: &Index<Time>| index.iter().next().map(|(time, _)| time);
        let (soon, changed) = (view.now + Span(1), &view.changed);
        let news = self.shifted || changed.nodes || !changed.added.is_empty() || !changed.ended.is_empty();
        let given_up = |time: Time| if time < view.now { view.now + PATIENCE } else { time + Span(1) };
        let started = if news { Some(soon) } else { first(&self.stopping).map(given_up) };
        // One queue per plan: who is already due again comes in the next one.
        let due = if self.artifact { late::wakes(self, view) } else { first(&self.due) };
        let due = due.filter(|due| *due < Time::NEVER).map(|due| due.max(soon));
        due.into_iter().chain(started).min()
    }

    /// A job's place from now on.
    fn look_at(&mut self, view: &View, job: JobIdx) -> Rank {
        let run = view.run(job);
        let rank = self.rank(view, job);
        self.due.set(job, self.due_at(job, run, view, rank.0 as usize));
        let stopping = run.state == JobState::Suspending;
        self.stopping.set(job, stopping.then(|| run.since + view.spec(job).costs.save));
        self.shifted |= rank.0 != run.rank.0;
        if rank != run.rank {
            self.moved.insert(job);
        }
        rank
    }

    fn rank(&mut self, view: &View, job: JobIdx) -> Rank {
        let run = view.run(job);
        let queue = self.queue(view, job);
        let due = self.due_at(job, run, view, queue).is_some_and(|due| due <= view.now);
        let place = if view.is_running(job) {
            if due && (!self.artifact || late::notices(view.now)) {
                return Rank((queue + 1) as f64, view.now.secs());
            }
            running_place(run, view.now)
        } else if run.state.is_waiting() {
            if due {
                self.promoted
                    .insert(job, Baseline { job: run.id, attained: run.attained, executed: run.executed });
                return Rank(0.0, view.now.secs());
            }
            waiting_place(run)
        } else {
            run.rank.1
        };
        Rank(queue as f64, place)
    }

    /// The queue a job is in: as it is ranked, or as its service says where another policy ranked it.
    fn queue(&self, view: &View, job: JobIdx) -> usize {
        let ranked = view.run(job).rank.0;
        let below = || self.thresholds.iter().filter(|threshold| **threshold <= view.attained(job)).count();
        (0..=self.thresholds.len()).find(|queue| *queue as f64 == ranked).unwrap_or_else(below)
    }

    /// When a job in this queue goes down or is promoted, if nothing happens before.
    fn due_at(&self, job: JobIdx, run: &JobRun, view: &View, queue: usize) -> Option<Time> {
        let before =
            self.promoted.get(&job).filter(|before| before.job == run.id).copied().unwrap_or_default();
        if view.is_running(job) {
            reaches(run, self.thresholds.get(queue)?, before.attained)
        } else if run.state.is_waiting() && queue > 0 {
            let ran = run.executed.0.saturating_sub(before.executed.0);
            Some(run.last_stop? + Span((self.promote? * ran as f64) as u64))
        } else {
            None
        }
    }
}

/// The shape on one node of a job that would keep less than this part of its speed elsewhere. One that may use several
/// kinds or sizes is left to its own list.
fn on_one_node(view: &View, job: JobIdx, part: f64) -> Option<u16> {
    let spec = view.spec(job);
    let mut usable: Vec<u16> = spec.usable().collect();
    usable.sort_by_key(|shape| spec.shapes[*shape as usize].level() != Level::Node);
    let [one, other] = usable[..] else { return None };
    let (near, far) = (&spec.shapes[one as usize], &spec.shapes[other as usize]);
    let choice = near.level() == Level::Node && far.level() != Level::Node && near.needs == far.needs;
    (choice && view.speed(job, other) < part * view.speed(job, one)).then_some(one)
}

/// When a job that holds devices will have received `threshold` device-seconds beyond `before`.
fn reaches(run: &JobRun, threshold: &f64, before: u64) -> Option<Time> {
    let wanted = before.saturating_add((threshold * MICROS as f64) as u64);
    let missing = wanted.saturating_sub(run.attained);
    match (missing, run.devices) {
        (0, _) => Some(Time::ZERO),
        (_, 0) => None,
        (missing, devices) => Some(run.held_since + Span(missing.div_ceil(u64::from(devices)))),
    }
}
