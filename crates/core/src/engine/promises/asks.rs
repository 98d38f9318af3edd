//! From jobs and leases to what `promise` plans with.

use std::collections::BTreeMap;

use crate::gate::{left, starting};
use crate::ids::{JobIdx, KindId, LeaseId, NodeId};
use crate::job::{JobSpec, JobState};
use crate::leases::{Lease, LeaseState};
use crate::promise::{Ask, Grid, Ground, Plan, Room, Timeline, earliest, satisfy, spot_of};
use crate::state::State;
use crate::units::{Span, Time};

/// Ends that are tried where a plan that ends by the deadline finds no place.
const ENDS: u64 = 4;

/// What is free of some plans: by counting, and node by node. The first finds times, the second places.
#[derive(Clone)]
pub(super) struct Free {
    pub(super) timeline: Timeline,
    pub(super) ground: Ground,
}

impl Free {
    /// A plan has its place in it.
    pub(super) fn take(&mut self, job: Option<JobIdx>, ask: &Ask, plan: &Plan, grid: &Grid) {
        self.timeline.take_plan(ask, &plan.stretches, grid);
        self.ground.claim_plan(job, plan);
    }
}

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

    /// All that is up, less what is in hands that keep it.
    pub(super) fn open(&self, room: &Room, grid: &Grid) -> Free {
        Free { timeline: self.open_timeline(room, grid), ground: self.open_ground() }
    }

    fn open_timeline(&self, room: &Room, grid: &Grid) -> Timeline {
        let mut timeline = Timeline::new(grid.now, room.free());
        let mut bound: BTreeMap<(NodeId, KindId), (u32, Time)> = BTreeMap::new();
        for (_, lease, until) in self.bound_leases() {
            for piece in spot_of(&self.nodes, &lease.placement) {
                let on_node = bound.entry((piece.node, piece.kind)).or_default();
                *on_node = (on_node.0 + piece.count, on_node.1.max(until));
            }
        }
        for (pool, (kept, end)) in bound {
            timeline.take(&room.lost(&self.nodes, pool, kept), grid.now, grid.after(end));
        }
        timeline
    }

    fn open_ground(&self) -> Ground {
        let mut ground = Ground::default();
        for (_, lease, until) in self.bound_leases() {
            let owner = lease.jobs.first().copied().filter(|_| lease.jobs.len() == 1);
            ground.hold(owner, &spot_of(&self.nodes, &lease.placement), until);
        }
        ground
    }

    /// All that is spoken for.
    pub(super) fn ground(&self) -> Ground {
        let mut ground = self.open_ground();
        for (job, promise) in &self.promises.kept {
            ground.claim_plan(Some(*job), &promise.plan);
        }
        ground
    }

    /// Leases whose devices cannot be had back before a time. What ends early was told to by its user or node.
    fn bound_leases(&self) -> impl Iterator<Item = (LeaseId, &Lease, Time)> {
        let known = self.promises.bound.iter().filter_map(|(id, until)| {
            let lease = self.leases.get(*id)?;
            Some((*id, lease, *until))
        });
        known.filter(|(_, lease, _)| lease.state != LeaseState::Ending)
    }

    /// Whether a job that is not stopped again began before it had to: its lease, and no plan, says what it has.
    pub(super) fn began_early(&self, job: JobIdx) -> bool {
        let Some(promise) = self.promises.kept.get(&job) else { return false };
        let bound = |lease: Option<LeaseId>| lease.is_some_and(|id| self.promises.bound.contains_key(&id));
        let leases = self.book.shares_of(job).iter().map(|share| self.book.entry(*share).lease);
        promise.plan.stretches.is_empty() && leases.chain([self.run(job).lease]).any(bound)
    }

    /// Whether a job that has devices keeps them, or takes longer to give them back than plans reckon with.
    pub(in crate::engine) fn is_binding(&self, job: JobIdx) -> bool {
        self.binds_with(&self.specs[job.index()])
    }

    fn binds_with(&self, spec: &JobSpec) -> bool {
        !spec.pausable || spec.costs.save > self.promises.settle
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
        // Others, or the job itself elsewhere, give their devices back; then it starts and loads.
        Ask {
            by,
            from: spec.not_before.unwrap_or(self.now),
            left: spec.steps,
            ways: room.ways(spec),
            overhead: self.promises.settle + spec.costs.start + spec.costs.load,
            whole: self.binds_with(spec),
        }
    }

    /// What a job that holds the devices it was promised needs to go on: no more than the rest of its start.
    pub(super) fn ask_on(&self, job: JobIdx, ask: &Ask) -> Option<(u16, Ask)> {
        let run = self.run(job);
        let lease = run.lease.and_then(|lease| self.leases.get(lease))?;
        let alone = lease.state == LeaseState::Granted && lease.jobs.len() == 1;
        let overhead = starting(&self.specs[job.index()], run, self.now);
        let works = matches!(run.state, JobState::Running | JobState::Starting);
        (alone && works).then(|| (run.shape, Ask { overhead, ..ask.clone() }))
    }

    /// A plan for a job on what is free, as late as may be. What is free by count may lie scattered just before the
    /// deadline, so earlier ends are tried too.
    pub(super) fn fit(&self, spec: &JobSpec, ask: &Ask, free: &Free, grid: &Grid) -> Option<Plan> {
        let fit = |by: Time| self.fit_by(spec, &Ask { by, ..ask.clone() }, free, grid);
        fit(ask.by).or_else(|| {
            let (soonest, _) = earliest(ask, &free.timeline, grid)?;
            let part = ask.by.0.saturating_sub(soonest.0) / ENDS;
            let ends = (0..ENDS).rev().map(|parts| grid.after(soonest + Span(parts * part)));
            ends.filter(|end| *end < ask.by).find_map(fit)
        })
    }

    /// A plan that ends by the deadline: with the least device time wherever that is, or else all on one node.
    pub(super) fn fit_by(&self, spec: &JobSpec, ask: &Ask, free: &Free, grid: &Grid) -> Option<Plan> {
        let wherever = satisfy(ask, &free.timeline, grid).and_then(|stretches| {
            let spots = free.ground.place(&self.nodes, &spec.shapes, &stretches)?;
            Some(Plan { stretches, spots })
        });
        wherever.or_else(|| free.ground.on_one_node(&self.nodes, spec, ask, grid))
    }
}
