//! AntMan (Xiao et al., "AntMan: Dynamic Scaling on GPU Clusters for Deep Learning", OSDI 2020): guaranteed jobs have
//! their devices as if alone, within their tenant's quota; opportunistic ones use what those leave.
//!
//! Objective: no guaranteed job loses speed or waits for an opportunistic one; under that, devices idle as little as
//! can be: an opportunistic job j goes to argmin_d u_d among devices d with u_d < `busy`, where u_d is the sum of what
//! the jobs on d do to it, and their memory must fit.
//! Guaranteed jobs go first come, first served. One for which only a part of its demand is free reserves that part:
//! no younger guaranteed job may have it, opportunistic ones may. One that waited `patience`, or whose tenant has no
//! quota left, runs as an opportunistic one where it can, and is guaranteed again as soon as there is room for it.
//! A device has one guaranteed job at most, and only opportunistic jobs are stopped. Jobs of neither class count as
//! opportunistic. A job of which nothing is known counts as always busy, so it shares with nobody until it was seen.
//! Keeping the opportunistic ones from disturbing the others is not decided here: agents measure and pause them.
//!
//! Reads: claims, tenants, usage, memory, leases, the last ranks (who is guaranteed, remains it). Cost: O(jobs · groups).
//! Not to be used where no job is guaranteed: it is then first come, first served with packing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::{Claim, Rank, Shape};
use yard_core::policy::{Policy, PolicyError, Priorities};
use yard_core::units::{Span, Time};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::params::{ParamError, Params};
use crate::seats::{Seat, Seats};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "antman",
    live: "company::an_opportunistic_job_sleeps_while_it_would_slow_a_guaranteed_one",
    family: "sharing",
    paper: "AntMan, Xiao et al., OSDI 2020",
    there: "guaranteed and opportunistic jobs, quotas, reservations, upgrades; agents measure and pause",
    missing: "memory that moves to the host and kernels that are delayed one by one: opportunistic jobs are paused instead",
    about: "Guaranteed jobs as if alone, within quotas; opportunistic ones on the idlest devices beside them",
    params: &[
        (
            "quota",
            "parts of the cluster for guaranteed jobs by tenant, written a*0.5/b*0.3; who is not named has none [no quotas]",
        ),
        ("patience", "seconds after which a waiting guaranteed job runs as an opportunistic one [600]"),
        ("busy", "part of the time devices may be busy when an opportunistic job is added [0.8]"),
    ],
    rounds: false,
    priority: Priorities::Refused("say how firm its claim is (class: guaranteed)"),
    needs: &[],
    make: |params| Ok(Box::new(AntMan::new(params)?)),
};

/// First numbers of ranks. Zero is the rank of jobs that were never given one.
const FIRM: f64 = 1.0;
const SOFT: f64 = 2.0;

struct AntMan {
    /// Parts of the cluster by tenant; empty: no quotas.
    quota: BTreeMap<String, f64>,
    patience: Span,
    busy: f64,
}

impl AntMan {
    fn new(params: &Params) -> Result<AntMan, ParamError> {
        let patience = params.positive("patience")?.unwrap_or(600.0);
        Ok(AntMan {
            quota: params.weights("quota")?,
            patience: Span::from_secs(patience),
            busy: params.positive("busy")?.unwrap_or(0.8),
        })
    }
}

impl Policy for AntMan {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut plan = AntmanPlan::new(self, view);
        plan.seat_guaranteed();
        plan.seat_opportunistic();
        let mut allocation = Allocation::preemptive(Shares::All(plan.shares()));
        allocation.replan_at = plan.replan_at;
        Ok(allocation)
    }
}

struct AntmanPlan<'v> {
    policy: &'v AntMan,
    view: &'v View,
    seats: Seats<'v>,
    /// Jobs that are guaranteed their devices, by row.
    firm: Vec<bool>,
    /// Devices that guaranteed jobs may still have, by kind: those of opportunistic ones are among them.
    left: Vec<u32>,
    /// Devices of guaranteed jobs, by tenant.
    used: BTreeMap<Option<Arc<str>>, u32>,
    /// Guaranteed jobs that wait, and run neither way for now.
    held: Vec<JobIdx>,
    replan_at: Option<Time>,
}

impl<'v> AntmanPlan<'v> {
    fn new(policy: &'v AntMan, view: &'v View) -> AntmanPlan<'v> {
        let mut seats = Seats::new(view);
        let order = |job| (!is_guaranteed(view, job), view.run(job).held_since, view.run(job).id);
        seats.put_out(order, |room, jobs, shape| room.fits_together(jobs, shape));
        let left = view.kinds.ids().map(|kind| view.capacity(kind)).collect();
        let firm = vec![false; view.runs.len()];
        let (used, held) = (BTreeMap::new(), Vec::new());
        AntmanPlan { policy, view, seats, firm, left, used, held, replan_at: None }
    }

    /// Decides who is guaranteed and gives devices to those who have none.
    fn seat_guaranteed(&mut self) {
        let view = self.view;
        let is_firm = |job: &JobIdx| view.is_running(*job) && view.run(*job).rank.0 == FIRM;
        let mut jobs: Vec<JobIdx> = view.active().filter(|job| is_guaranteed(view, *job)).collect();
        jobs.sort_by_key(|job| (!is_firm(job), view.run(*job).submitted, view.run(*job).id));
        for job in jobs {
            let shape = match is_firm(&job) {
                true => Some(&view.spec(job).shapes[view.run(job).shape as usize]),
                false => self.shape_for(job),
            };
            match shape {
                Some(shape) => self.grant(job, shape),
                None => self.held.extend((!view.is_running(job)).then_some(job)),
            }
        }
    }

    /// The shape in which a job can be guaranteed devices now; where it can in none, what is free of the one it
    /// likes best is kept for it.
    fn shape_for(&mut self, job: JobIdx) -> Option<&'v Shape> {
        let (view, spec) = (self.view, self.view.spec(job));
        if view.is_running(job) {
            let held = &spec.shapes[view.run(job).shape as usize];
            return Some(held).filter(|shape| self.has_quota(job, shape) && self.is_left(shape));
        }
        let usable = spec.usable().map(|at| &spec.shapes[at as usize]);
        let able: Vec<&Shape> =
            usable.filter(|shape| self.seats.reach.holds(shape) && self.has_quota(job, shape)).collect();
        let found = able.iter().copied().find(|shape| self.is_left(shape));
        if found.is_none() {
            able.first().into_iter().for_each(|shape| self.take(shape));
        }
        found
    }

    fn is_left(&self, shape: &Shape) -> bool {
        shape.needs.iter().all(|need| self.left[need.kind.index()] >= need.devices)
    }

    fn take(&mut self, shape: &Shape) {
        for need in &shape.needs {
            let left = &mut self.left[need.kind.index()];
            *left = left.saturating_sub(need.devices);
        }
    }

    fn has_quota(&self, job: JobIdx, shape: &Shape) -> bool {
        if self.policy.quota.is_empty() {
            return true;
        }
        let tenant = &self.view.spec(job).tenant;
        let part = tenant.as_deref().and_then(|name| self.policy.quota.get(name)).copied().unwrap_or(0.0);
        let cluster: u32 = self.view.kinds.ids().map(|kind| self.view.capacity(kind)).sum();
        let used = self.used.get(tenant).copied().unwrap_or(0);
        f64::from(used + shape.devices()) <= part * f64::from(cluster) + 1e-9
    }

    fn grant(&mut self, job: JobIdx, shape: &'v Shape) {
        self.firm[job.index()] = true;
        *self.used.entry(self.view.spec(job).tenant.clone()).or_default() += shape.devices();
        self.take(shape);
        if self.seats.waiting.contains(&job) {
            self.seat(job, shape);
        }
    }

    /// Free devices first, then those of opportunistic jobs that can stay beside it, else some of them are stopped.
    fn seat(&mut self, job: JobIdx, shape: &Shape) {
        if self.seats.free_shape(job).is_some_and(|free| free.takes_same(shape)) {
            return self.seats.open(job);
        }
        let beside = |seat: &&Seat<'_>| seat.shape.takes_same(shape);
        match self.idlest(job, beside, f64::INFINITY) {
            Some(at) => self.seats.list[at].jobs.push(job),
            None => self.seats.queue(job),
        }
    }

    /// The seat on devices that are least busy, below `limit`, of those that `wanted` allows and the job may join.
    fn idlest(&self, job: JobIdx, wanted: impl Fn(&&Seat<'v>) -> bool, limit: f64) -> Option<usize> {
        let seats = self.seats.list.iter().enumerate().filter(|(_, seat)| seat.placed && wanted(seat));
        let busy = seats.map(|(at, seat)| (self.seats.busy(seat), at)).filter(|(busy, _)| *busy < limit);
        let able = busy.filter(|(_, at)| self.seats.may_join(&self.seats.list[*at], job));
        able.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, at)| at)
    }

    /// Opportunistic jobs, and guaranteed ones that have waited enough, go to the idlest devices.
    fn seat_opportunistic(&mut self) {
        let mut hopeless = BTreeSet::new();
        for job in std::mem::take(&mut self.seats.waiting) {
            if self.firm[job.index()] || !self.may_be_soft(job) {
                continue;
            }
            let sort = self.seats.sort(job);
            let joins = self.seats.free_shape(job).is_none() && !hopeless.contains(&sort);
            match joins.then(|| self.idlest(job, |seat| !seat.jobs.is_empty(), self.policy.busy)) {
                Some(Some(at)) => self.seats.list[at].jobs.push(job),
                found => {
                    hopeless.extend(found.map(|_| sort));
                    self.seats.open(job);
                }
            }
        }
    }

    /// Whether a job may run as an opportunistic one; if not yet, the policy wants to be asked again.
    fn may_be_soft(&mut self, job: JobIdx) -> bool {
        let due = self.view.run(job).since + self.policy.patience;
        let waits = self.held.contains(&job) && due > self.view.now;
        if waits {
            self.replan_at = Some(self.replan_at.map_or(due, |at| at.min(due)));
        }
        !waits
    }

    fn shares(&self) -> Vec<Share> {
        let share = |seat: &Seat<'_>| {
            let firm = seat.jobs.iter().any(|job| self.firm[job.index()]);
            let oldest = seat.jobs.iter().map(|job| self.view.run(*job).submitted).min()?;
            self.seats.share(seat, Rank(if firm { FIRM } else { SOFT }, oldest.secs()))
        };
        self.seats.list.iter().filter_map(share).collect()
    }
}

fn is_guaranteed(view: &View, job: JobIdx) -> bool {
    view.spec(job).sharing().claim == Claim::Guaranteed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use yard_core::job::{Sharing, Usage};

    use super::*;
    use crate::testing::{World, policy};

    fn said(claim: Claim, busy: f64, memory_mib: u32) -> Sharing {
        Sharing { claim, usage: Some(Usage { busy, memory_mib }), ..Sharing::PLAIN }
    }

    fn groups(world: &World) -> Vec<Vec<u32>> {
        let shares = world.shares.values();
        shares.map(|share| share.jobs.iter().map(|job| job.0).collect()).collect()
    }

    use Claim::{Guaranteed, Opportunistic};

    #[test]
    fn opportunistic_jobs_go_to_the_idlest_devices_with_room() {
        let mut world = World::with_memory(&[2], 100);
        let mut policy = policy("antman");
        world.submit_sharing(1, 100.0, said(Guaranteed, 0.7, 30));
        world.submit_sharing(1, 100.0, said(Guaranteed, 0.4, 60));
        for memory in [50, 30, 30] {
            world.submit_sharing(1, 100.0, said(Opportunistic, 0.3, memory));
        }
        world.plan(&mut *policy);
        // Only beside the first is memory for job 2; job 3 finds the second idler; then both are too busy for more
        // than one: 1.0 and 0.7, and beside the second there is no memory for job 4.
        assert_eq!(groups(&world), [vec![0, 2], vec![1, 3], vec![4]]);
        assert_eq!(world.running(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_guaranteed_job_stops_opportunistic_ones_that_cannot_stay_and_no_others() {
        let mut world = World::with_memory(&[2], 100);
        let mut policy = policy("antman");
        world.submit_sharing(1, 100.0, said(Guaranteed, 0.9, 80));
        world.submit_sharing(1, 100.0, said(Opportunistic, 0.9, 80));
        world.plan(&mut *policy);
        world.submit_sharing(1, 100.0, said(Guaranteed, 0.9, 80));
        world.plan(&mut *policy);
        assert_eq!(world.running(), [0, 2]);
        world.submit_sharing(1, 100.0, said(Guaranteed, 0.9, 10));
        world.plan(&mut *policy);
        assert_eq!(world.running(), [0, 2], "those that are guaranteed stay");
    }

    #[test]
    fn a_guaranteed_job_joins_an_opportunistic_one_that_can_stay() {
        let mut world = World::with_memory(&[1], 100);
        let mut policy = policy("antman");
        world.submit_sharing(1, 100.0, said(Opportunistic, 0.9, 40));
        world.plan(&mut *policy);
        world.submit_sharing(1, 100.0, said(Guaranteed, 0.9, 50));
        world.plan(&mut *policy);
        assert_eq!((groups(&world), world.running()), (vec![vec![0, 1]], vec![0, 1]));
    }

    #[test]
    fn what_is_free_for_a_large_job_is_kept_from_younger_ones_until_they_lose_patience() {
        let mut world = World::new(&[4]);
        let mut policy = policy("antman:patience=50");
        world.submit_sharing(3, 1000.0, said(Guaranteed, 1.0, 1));
        world.plan(&mut *policy);
        world.submit_sharing(2, 100.0, said(Guaranteed, 1.0, 1));
        world.submit_sharing(1, 100.0, said(Guaranteed, 1.0, 1));
        let asked = world.plan(&mut *policy).replan_at;
        assert_eq!((world.running(), asked), (vec![0], Some(Time::from_secs(50.0))));
        world.advance(50.0);
        world.plan(&mut *policy);
        assert_eq!(world.running(), [0, 2], "as an opportunistic one, on what is reserved");
        assert_eq!(world.view.run(JobIdx(2)).rank.0, SOFT);
    }

    #[test]
    fn quotas_bound_what_is_guaranteed() {
        let mut world = World::new(&[4]);
        let mut policy = policy("antman:quota=a*0.5:patience=10");
        for tenant in ["a", "a", "a", "b"] {
            let row = world.submit_sharing(1, 100.0, said(Guaranteed, 1.0, 1));
            let spec = &mut Arc::make_mut(&mut world.view.specs)[row];
            Arc::make_mut(spec).tenant = Some(tenant.into());
        }
        world.plan(&mut *policy);
        assert_eq!(world.running(), [0, 1]);
        world.advance(10.0);
        world.plan(&mut *policy);
        assert_eq!(world.running(), [0, 1, 2, 3]);
        assert_eq!(world.ranks(), [FIRM, FIRM, SOFT, SOFT]);
    }

    #[derive(Clone, Debug)]
    enum Pressure {
        Submit(Claim, u32, f64, u32),
        Pass(u32),
    }

    fn happening() -> impl Strategy<Value = Pressure> {
        let claim = prop_oneof![Just(Guaranteed), Just(Opportunistic), Just(Claim::Ordinary)];
        prop_oneof![
            3 => (claim, 1u32..3, 0.1..1.0f64, 10u32..90)
                .prop_map(|(claim, devices, busy, memory)| Pressure::Submit(claim, devices, busy, memory)),
            2 => (1u32..30).prop_map(Pressure::Pass),
        ]
    }

    proptest! {
        /// No device has two guaranteed jobs or more than its memory; who is guaranteed is never stopped.
        #[test]
        fn guarantees_hold(life in prop::collection::vec(happening(), 1..60)) {
            let mut world = World::with_memory(&[2, 2], 100);
            let mut policy = policy("antman:patience=20");
            for happening in life {
                match happening {
                    Pressure::Submit(claim, devices, busy, memory) => {
                        world.submit_sharing(devices, 40.0, said(claim, busy, memory));
                    }
                    Pressure::Pass(seconds) => world.advance(f64::from(seconds)),
                }
                let firm = |job: &JobIdx| {
                    let view = &world.view;
                    is_guaranteed(view, *job) && view.is_running(*job) && view.run(*job).rank.0 == FIRM
                };
                let before: Vec<JobIdx> = world.view.active().filter(firm).collect();
                world.plan(&mut *policy);
                prop_assert!(before.iter().all(|job| world.view.is_running(*job)), "{before:?}");
                for share in world.shares.values() {
                    let said = share.jobs.iter().map(|job| world.view.spec(*job).sharing());
                    let guaranteed = said.clone().filter(|said| said.claim == Guaranteed).count();
                    let memory: u32 = said.filter_map(|said| said.usage).map(|usage| usage.memory_mib).sum();
                    prop_assert!(guaranteed < 2 && (memory <= 100 || share.jobs.len() == 1), "{share:?}");
                }
            }
        }
    }
}
