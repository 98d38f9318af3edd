//! Salus (Yu and Chowdhury, "Salus: Fine-Grained GPU Sharing Primitives for Deep Learning Applications", MLSys 2020):
//! as many jobs are resident on a device as its memory holds, and it switches between them by the iteration.
//!
//! Objective: in the order `order`, each job becomes resident where memory is safe: with the persistent memory P_i of
//! all residents and the ephemeral peak E_i of one at a time in each lane l, Σ_i P_i + Σ_l max_{i in l} E_i ≤ C.
//! Lanes are merged when iterations end, so jobs are safe together iff they are in one lane: Σ_i P_i + max_i E_i ≤ C.
//! `order`: fifo (by arrival), pack (least memory first: most jobs resident), srtf (least time left first, others make
//! room), fair (least device time first, every round anew). A job takes free devices first, then those least busy.
//!
//! Nobody says which part of a job's memory is ephemeral; `ephemeral` is taken of it. Where frameworks keep what they
//! once allocated, as most do unless told otherwise, 0 is the safe choice. `load` bounds what residents ask of a device
//! together, because here jobs come to many devices and not to one: without it, those of large memory are crowded
//! while others idle. Residents run at once and the driver switches
//! between them: there is no lane to wait for. Jobs and devices of unknown memory are not shared.
//!
//! Reads: memory, usage, leases, time left or attained. Cost: O(jobs · groups).
//! Not to be used where jobs fill their devices: residents only slow each other down.

use std::collections::BTreeMap;

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::{Rank, Shape};
use yard_core::policy::{Cadence, Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::params::{ParamError, Params, bad};
use crate::ranked::class;
use crate::seats::{Seats, busy};
use crate::together::{Room, memory_mib};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "salus",
    live: "policies::salus_keeps_as_many_jobs_resident_as_memory_holds",
    family: "sharing",
    paper: "Salus, Yu and Chowdhury, MLSys 2020",
    there: "the rule by which memory is safe, its four orders",
    missing: "lanes and switching by the iteration: residents run at once and the driver switches",
    about: "As many jobs resident on each device as its memory holds, by arrival, size, time left or fairly",
    params: &[
        ("order", "who becomes resident first: fifo, pack, srtf or fair [fifo]"),
        ("load", "devices' worth of computing that residents of one device may ask for together [2]"),
        ("ephemeral", "part of a job's memory that it needs only while it computes, from 0 to below 1 [0.3]"),
    ],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[],
    make: |params| Ok(Box::new(Salus::new(params)?)),
};

#[derive(Clone, Copy, PartialEq)]
enum SalusOrder {
    Fifo,
    Pack,
    Srtf,
    Fair,
}

struct Salus {
    order: SalusOrder,
    load: f64,
    ephemeral: f64,
}

impl Salus {
    fn new(params: &Params) -> Result<Salus, ParamError> {
        let order = match params.text("order") {
            None | Some("fifo") => SalusOrder::Fifo,
            Some("pack") => SalusOrder::Pack,
            Some("srtf") => SalusOrder::Srtf,
            Some("fair") => SalusOrder::Fair,
            Some(text) => return Err(bad("order", text, "fifo, pack, srtf or fair")),
        };
        let text = params.text("ephemeral").unwrap_or("0.3");
        let part = text.parse().ok().filter(|part| (0.0..1.0).contains(part));
        let ephemeral = part.ok_or_else(|| bad("ephemeral", text, "a number from 0 to below 1"))?;
        Ok(Salus { order, load: params.positive("load")?.unwrap_or(2.0), ephemeral })
    }

    /// Whether residents make room for jobs before them.
    fn preempts(&self) -> bool {
        matches!(self.order, SalusOrder::Srtf | SalusOrder::Fair)
    }

    /// All jobs in the order in which they become resident.
    fn jobs(&self, view: &View) -> Vec<JobIdx> {
        let value = |job: &JobIdx| match self.order {
            SalusOrder::Fifo => 0.0,
            SalusOrder::Pack => memory_mib(view, *job).map_or(f64::INFINITY, f64::from),
            SalusOrder::Srtf => view.seconds_left(*job),
            SalusOrder::Fair => view.attained(*job),
        };
        let stays = |job: &JobIdx| view.is_running(*job) && !self.preempts();
        let mut jobs: Vec<_> =
            view.active().map(|job| ((!stays(&job), class(view, job)), value(&job), job)).collect();
        let id = |job: JobIdx| view.run(job).id;
        jobs.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(id(a.2).cmp(&id(b.2))));
        jobs.into_iter().map(|(.., job)| job).collect()
    }
}

impl Policy for Salus {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut lanes = Lanes::new(self, view);
        for job in self.jobs(view) {
            lanes.admit(job);
        }
        let shares = Shares::All(lanes.shares());
        Ok(if self.preempts() { Allocation::preemptive(shares) } else { Allocation::queue(shares, true) })
    }

    fn cadence(&self) -> Cadence {
        if self.order == SalusOrder::Fair { Cadence::EveryRound } else { Cadence::OnChange }
    }
}

/// Who is resident where.
struct Lanes<'v> {
    policy: &'v Salus,
    seats: Seats<'v>,
    /// Residents that are not admitted again yet, by seat; and the seats of all who were resident.
    pending: Vec<Vec<JobIdx>>,
    homes: BTreeMap<JobIdx, usize>,
    /// The place of each seat in the order: that of the first job admitted there.
    places: Vec<usize>,
    admitted: usize,
}

impl<'v> Lanes<'v> {
    fn new(policy: &'v Salus, view: &'v View) -> Lanes<'v> {
        let mut seats = Seats::new(view);
        seats.waiting.clear();
        let pending: Vec<Vec<JobIdx>> =
            seats.list.iter_mut().map(|seat| std::mem::take(&mut seat.jobs)).collect();
        let at =
            |(at, jobs): (usize, &Vec<JobIdx>)| jobs.iter().map(move |job| (*job, at)).collect::<Vec<_>>();
        let homes = pending.iter().enumerate().flat_map(at).collect();
        let places = vec![usize::MAX; seats.list.len()];
        Lanes { policy, seats, pending, homes, places, admitted: 0 }
    }

    /// Gives a job its devices: its own, free ones, those on which it fits beside all, or, where residents make room
    /// for it, beside those that were before it.
    fn admit(&mut self, job: JobIdx) {
        let home = self.homes.get(&job).copied();
        home.into_iter().for_each(|at| self.pending[at].retain(|other| *other != job));
        let own = home.filter(|at| !self.policy.preempts() || self.fits(*at, job, &[]));
        let own = own.or_else(|| self.seats.free_shape(job).is_none().then(|| self.best(job)).flatten());
        match own {
            Some(at) => self.seats.list[at].jobs.push(job),
            None => self.open(job),
        }
        let at = own.unwrap_or(self.seats.list.len() - 1);
        self.places[at] = self.places[at].min(self.admitted);
        self.admitted += 1;
    }

    fn open(&mut self, job: JobIdx) {
        self.seats.open(job);
        self.pending.resize_with(self.seats.list.len(), Vec::new);
        self.places.resize(self.seats.list.len(), usize::MAX);
    }

    fn best(&self, job: JobIdx) -> Option<usize> {
        let beside_all = self.idlest(|at| self.fits(at, job, &self.pending[at]));
        let making_room = || self.idlest(|at| self.fits(at, job, &[]));
        beside_all.or_else(|| self.policy.preempts().then(making_room).flatten())
    }

    fn idlest(&self, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let placed = (0..self.seats.list.len()).filter(|at| self.seats.list[*at].placed && fits(*at));
        placed.min_by(|a, b| {
            self.seats.busy(&self.seats.list[*a]).total_cmp(&self.seats.busy(&self.seats.list[*b]))
        })
    }

    /// Whether a job is safe on a seat beside those admitted there and these.
    fn fits(&self, at: usize, job: JobIdx, pending: &[JobIdx]) -> bool {
        let (seat, view) = (&self.seats.list[at], self.seats.view);
        let jobs: Vec<JobIdx> = seat.jobs.iter().chain(pending).copied().chain([job]).collect();
        let load: f64 = jobs.iter().map(|job| busy(view, *job)).sum();
        let light = jobs.len() < 2 || load <= self.policy.load;
        light
            && self.runs_so(job, seat.shape)
            && safe(&self.seats.room, &jobs, seat.shape, self.policy.ephemeral)
    }

    fn runs_so(&self, job: JobIdx, shape: &Shape) -> bool {
        self.seats.room.may_share(&[job], shape) || self.homes.contains_key(&job)
    }

    fn shares(&self) -> Vec<Share> {
        let share = |(at, seat)| self.seats.share(seat, Rank(self.places[at] as f64, 0.0));
        self.seats.list.iter().enumerate().filter_map(share).collect()
    }
}

/// What the sums of parts of whole MiB may be off by: jobs that fill a device to the last MiB are safe in any order.
const ROUNDING_MIB: f64 = 1e-6;

/// Whether jobs may be resident together: all that is persistent, and the most that is ephemeral.
fn safe(room: &Room<'_>, jobs: &[JobIdx], shape: &Shape, ephemeral: f64) -> bool {
    if jobs.len() < 2 {
        return true;
    }
    let memory: Option<Vec<f64>> =
        jobs.iter().map(|job| memory_mib(room.view, *job).map(f64::from)).collect();
    let devices = shape.needs.iter().map(|need| room.memory_of(need.kind)).min().flatten();
    let (Some(memory), Some(devices)) = (memory, devices) else { return false };
    let persistent: f64 = memory.iter().map(|memory| memory * (1.0 - ephemeral)).sum();
    let most = memory.iter().map(|memory| memory * ephemeral).fold(0.0, f64::max);
    persistent + most <= f64::from(devices) + ROUNDING_MIB && room.may_share(jobs, shape)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use yard_core::job::Sharing;

    use super::*;
    use crate::testing::{World, policy};

    fn of(memory_mib: u32) -> Sharing {
        Sharing { memory_mib: Some(memory_mib), ..Sharing::PLAIN }
    }

    fn world(jobs: &[(f64, u32)], policy: &mut dyn Policy) -> World {
        let mut world = World::with_memory(&[1], 100);
        for (seconds, memory) in jobs {
            world.submit_sharing(1, *seconds, of(*memory));
        }
        world.plan(policy);
        world
    }

    #[test]
    fn only_one_at_a_time_needs_its_ephemeral_memory() {
        let resident = |spec: &str| world(&[(9.0, 40), (9.0, 40), (9.0, 40)], &mut *policy(spec)).running();
        // Persistent 3 · 28, ephemeral 12.
        assert_eq!(resident("salus:load=9"), [0, 1, 2]);
        assert_eq!(resident("salus:load=9:ephemeral=0"), [0, 1]);
        assert_eq!(resident("salus"), [0, 1], "three that are always busy are too much");
    }

    #[test]
    fn the_order_says_who_becomes_resident() {
        let jobs = [(50.0, 60), (5.0, 90), (9.0, 30)];
        let resident = |spec: &str| world(&jobs, &mut *policy(spec)).running();
        assert_eq!(resident("salus:ephemeral=0"), [0, 2]);
        assert_eq!(resident("salus:ephemeral=0:order=pack"), [0, 2]);
        assert_eq!(resident("salus:ephemeral=0:order=srtf"), [1]);
    }

    #[test]
    fn residents_make_room_for_shorter_jobs_only_where_they_must() {
        let mut policy = policy("salus:ephemeral=0:load=9:order=srtf");
        let mut world = world(&[(50.0, 60), (40.0, 30)], &mut *policy);
        world.submit_sharing(1, 5.0, of(10));
        world.plan(&mut *policy);
        assert_eq!(world.running(), [0, 1, 2]);
        world.submit_sharing(1, 1.0, of(50));
        world.plan(&mut *policy);
        assert_eq!(world.running(), [1, 2, 3], "the longest makes room");
    }

    #[test]
    fn jobs_that_fill_a_device_to_the_last_mib_are_resident() {
        let jobs = [(9.0, 55), (9.0, 42), (9.0, 26), (9.0, 33), (9.0, 49)];
        let resident = world(&jobs, &mut *policy("salus:load=9:ephemeral=0.7")).running();
        assert_eq!(resident, [0, 1, 2, 3, 4], "persistent 205 · 0.3, ephemeral 55 · 0.7: 100 of 100");
    }

    /// Every way to put jobs into lanes.
    fn safe_in_some_lanes(jobs: &[(f64, f64)], capacity: f64) -> bool {
        fn go(jobs: &[(f64, f64)], lanes: &[f64], left: f64) -> bool {
            let Some(((persistent, ephemeral), rest)) = jobs.split_first() else { return left >= -1e-9 };
            for at in 0..=lanes.len() {
                let mut wider = lanes.to_vec();
                wider.resize(wider.len().max(at + 1), 0.0);
                let grown = (ephemeral - wider[at]).max(0.0);
                wider[at] += grown;
                if go(rest, &wider, left - persistent - grown) {
                    return true;
                }
            }
            false
        }
        go(jobs, &[], capacity)
    }

    proptest! {
        #[test]
        fn safe_is_safe_in_some_lanes(memory in prop::collection::vec(1u32..80, 2..6), tenths in 0u32..10) {
            let ephemeral = f64::from(tenths) / 10.0;
            let mut world = World::with_memory(&[1], 100);
            for memory in &memory {
                world.submit_sharing(1, 9.0, of(*memory));
            }
            let jobs: Vec<JobIdx> = world.view.active().collect();
            let shape = &world.view.specs[0].shapes[0];
            let parts: Vec<_> = memory
                .iter()
                .map(|memory| (f64::from(*memory) * (1.0 - ephemeral), f64::from(*memory) * ephemeral))
                .collect();
            let found = safe(&Room::new(&world.view), &jobs, shape, ephemeral);
            prop_assert_eq!(found, safe_in_some_lanes(&parts, 100.0));
        }

        #[test]
        fn memory_is_safe_all_the_time(
            jobs in prop::collection::vec((1u32..3, 1.0..100.0f64, 1u32..100, 0.0..40.0f64), 1..24),
            order in prop::sample::select(vec!["fifo", "pack", "srtf", "fair"]),
        ) {
            let mut world = World::with_memory(&[2, 1], 100);
            let mut policy = policy(&format!("salus:load=9:order={order}"));
            for (devices, seconds, memory, pause) in jobs {
                world.submit_sharing(devices, seconds, of(memory));
                world.plan(&mut *policy);
                let room = Room::new(&world.view);
                for share in world.shares.values() {
                    let shape = &world.view.specs[share.jobs[0].index()].shapes[0];
                    prop_assert!(safe(&room, &share.jobs, shape, 0.3), "{share:?}");
                }
                world.advance(pause);
            }
        }
    }
}
