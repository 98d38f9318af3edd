//! From jobs and leases to what `promise` plans with.

use std::collections::BTreeMap;

use crate::ids::{JobIdx, NodeId};
use crate::job::{JobRun, JobSpec, JobState};
use crate::leases::{Lease, LeaseState, own_way};
use crate::promise::{Ask, Grid, Room, Timeline};
use crate::state::State;
use crate::units::{Span, Time};

impl State {
    /// The grid of decisions from now on.
    pub(super) fn grid(&self) -> Grid {
        let round = self.settings.round;
        let beat = self.now.round_up(round);
        let taken = round > Span::ZERO && self.last_round == Some(beat);
        Grid::new(if taken { beat + round } else { self.now }, round)
    }

    pub(super) fn room(&self) -> Room {
        Room::of(&self.nodes, self.kinds.len())
    }

    /// What can be planned with: all that is up, less what is in hands that keep it.
    pub(super) fn open_timeline(&self, room: &Room, grid: &Grid) -> Timeline {
        let mut timeline = Timeline::new(grid.now, room.free());
        let mut bound: BTreeMap<NodeId, (u32, Time)> = BTreeMap::new();
        for (_, lease) in self.leases.iter().filter(|(_, lease)| self.binds(lease)) {
            let end = self.believed_end(lease);
            for slice in &lease.placement.0 {
                let on_node = bound.entry(slice.node).or_default();
                *on_node = (on_node.0 + slice.mask.count_ones(), on_node.1.max(end));
            }
        }
        for (node, (kept, end)) in bound {
            timeline.take(&room.lost(&self.nodes, node, kept), grid.now, grid.after(end));
        }
        timeline
    }

    /// Whether a lease's devices cannot be had before its jobs are done. Those that must have them now are planned for.
    fn binds(&self, lease: &Lease) -> bool {
        lease.state != LeaseState::Ending
            && lease.jobs.iter().any(|job| self.is_binding(*job) && !self.promises.due.contains_key(job))
    }

    /// Whether a job may not be stopped and began before it had to: its lease, and no plan, says what it has.
    pub(super) fn began_early(&self, job: JobIdx) -> bool {
        let bound = !self.specs[job.index()].pausable && self.run(job).lease.is_some();
        bound && !self.promises.due.contains_key(&job)
    }

    /// Whether a job that has devices keeps them, or takes longer to give them back than plans reckon with.
    pub(super) fn is_binding(&self, job: JobIdx) -> bool {
        let spec = &self.specs[job.index()];
        !spec.pausable || spec.costs.save > self.promises.settle
    }

    /// When a lease's jobs are done, as believed.
    fn believed_end(&self, lease: &Lease) -> Time {
        let end = |job: &JobIdx| {
            let (spec, run) = (&self.specs[job.index()], self.run(*job));
            let shape =
                if run.holds() { run.shape } else { own_way(&self.specs, lease.jobs[0], *job, lease.shape) };
            let speed = if run.speed > 0.0 { run.speed } else { spec.speeds[shape as usize] };
            self.now + self.starting(spec, run) + Span::from_secs(left(spec, run, self.now) / speed)
        };
        lease.jobs.iter().map(end).max().unwrap_or(self.now)
    }

    /// What a job that has devices still needs before its next step.
    fn starting(&self, spec: &JobSpec, run: &JobRun) -> Span {
        let whole = spec.costs.start + spec.costs.load;
        match run.state {
            JobState::Running => Span::ZERO,
            _ if !run.holds() => whole,
            _ => Span(whole.0.saturating_sub((self.now - run.held_since).0)),
        }
    }

    /// What a job needs that was promised to be done by `by`.
    pub(super) fn ask(&self, job: JobIdx, by: Time, room: &Room) -> Ask {
        let (spec, run) = (&self.specs[job.index()], self.run(job));
        let waits = run.held_until == Some(Time::NEVER);
        let from = if waits { self.ready(spec) } else { run.held_until }.unwrap_or(self.now);
        Ask { left: left(spec, run, self.now), from, ..self.first_ask(spec, by, room) }
    }

    /// What a job needs that is not there yet.
    pub(super) fn first_ask(&self, spec: &JobSpec, by: Time, room: &Room) -> Ask {
        let ways = room.ways(spec);
        let own = spec.costs.start + spec.costs.load;
        // It may have to make room once for one that must lie together.
        let moved = if spec.pausable { own + self.promises.settle } else { Span::ZERO };
        Ask {
            by,
            from: spec.not_before.unwrap_or(self.now),
            left: spec.steps,
            ways,
            overhead: own + self.promises.settle + moved,
            whole: !spec.pausable,
        }
    }

    /// What a job that holds the devices it was promised needs to go on: no more than the rest of its start.
    pub(super) fn ask_on(&self, job: JobIdx, ask: &Ask) -> Option<(u16, Ask)> {
        let run = self.run(job);
        let lease = run.lease.and_then(|lease| self.leases.get(lease))?;
        let alone = lease.state == LeaseState::Granted && lease.jobs.len() == 1;
        let overhead = self.starting(&self.specs[job.index()], run);
        let works = matches!(run.state, JobState::Running | JobState::Starting);
        (alone && works).then(|| (run.shape, Ask { overhead, ..ask.clone() }))
    }
}

/// Steps left, as believed.
fn left(spec: &JobSpec, run: &JobRun, now: Time) -> f64 {
    (spec.steps - run.done_at(now)).max(0.0)
}
