//! Chronus: leases of time, planned so that deadlines are kept, and spot devices for the rest (Gao et al., "Chronus: A
//! Novel Deadline-aware Scheduler for Deep Learning Training Jobs", SoCC 2021), with the constraints as its program has
//! them, in devices and not in time as the paper prints them.
//!
//! Objective: max Σ_{j,p} r_jp·S_jp ± (1/G)·Σ_j ĝ_j·x_j0 over leases i of length Λ, with Σ_{i<L_jp} x_ji = n_j·S_jp,
//! Σ_j ĝ_j·x_ji ≤ G for every i, Σ_p S_jp = 1 for every job that is guaranteed: each keeps the best of its deadlines
//! that it can. '+' runs guaranteed jobs now; '−', while there are others, without a deadline or without a guarantee, as late as they may.
//! Sizes on one node are rounded up to a power of two (3→4, 5..7→8), so that counts suffice. Solved by the program's own
//! greedy packing, from the back (`leases`): a job is guaranteed if all before it stay so. Then soft deadlines are exchanged
//! while that is worth more (`trade`); with `exact=true` the integer program is solved by branch and bound for those that
//! are guaranteed (`program`), under a number of nodes, with its bound as the certificate; whom the program found room for
//! stays guaranteed by it, also where packing alone would leave it out. Tests compare both with every choice there is on
//! small cases.
//! Placing: the largest leased jobs come first, and of rounded sizes whose sum fits none then lies on more nodes than it
//! must (the paper's proposition, a test here), so that its search over placements has nothing left to find; which
//! devices is the placer's choice, one job at a time, and `pack` takes the fullest node that fits.
//! All other jobs have spot devices, every round: shortest remaining service first, then guaranteed jobs whose lease
//! comes later, then those that are late.
//! Reads: deadlines and rewards, seconds left, sizes, ranks in force (who was chosen when the lease began), restart costs.
//! Cost: O(jobs · leases · log jobs) when a lease begins, O(jobs · log jobs) between.
//! Not to be used with leases that are long against the jobs: what ends within one leaves its devices to spot jobs.

mod leases;
mod program;
mod trade;

use yard_core::Span;
use yard_core::allocation::{Allocation, Certificate, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::units::Time;
use yard_core::view::View;

use self::leases::{ChosenLeases, Effort, Wish};
use crate::PolicyEntry;
use crate::ranked::finite;

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "chronus",
    live: "policies::chronus_has_a_deadline_lease_devices_before_others",
    family: "deadline",
    paper: "Gao et al., SoCC 2021",
    there: "admission, leases by packing or the integer program, soft deadlines, spot devices for the rest",
    missing: "its profiler, and its search over placements (the largest first makes it needless for sizes that are rounded)",
    about: "Leases planned to keep hard and soft deadlines, spot devices by shortest remaining service for the rest",
    params: &[
        ("lease", "seconds of a lease [1200]"),
        (
            "exact",
            "leases by the integer program, where it can be solved, instead of packing: true or false [false]",
        ),
    ],
    rounds: true,
    priority: Priorities::Refused("say what it is worth to be done in time (deadline, rewards)"),
    needs: &[Knowledge::Durations],
    make: |params| {
        let lease = params.positive("lease")?.unwrap_or(1200.0);
        Ok(Box::new(Chronus { lease: Span::from_secs(lease), exact: params.flag("exact")? }))
    },
};

/// The rank of who has the lease.
const LEASED: f64 = -1.0;
/// Of spot jobs.
const SPOT: f64 = 1.0;
/// Of guaranteed jobs whose turn comes later.
const LATER: f64 = 2.0;
/// Of those that are late.
const LATE: f64 = 3.0;

struct Chronus {
    lease: Span,
    exact: bool,
}

impl Policy for Chronus {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let lease = ChronusLease::at(view, self.lease);
        let wishes: Vec<Wish> = view.active().filter_map(|job| lease.wish(view, job, self.exact)).collect();
        let capacity: Vec<u32> = view.kinds.ids().map(|kind| view.capacity(kind)).collect();
        let others = view.active().any(|job| view.spec(job).deadline.is_none());
        // Between the beginnings of leases only who is guaranteed matters, and that is known without the program.
        let effort = match lease.begins {
            true if self.exact => Effort::Exact,
            true => Effort::Traded,
            false => Effort::Packed,
        };
        let choice = leases::choose(&wishes, &capacity, others, effort);
        let share = |job| Share::whole(job, lease.rank(view, job, choice.chosen.get(&job).copied()));
        let shares = Shares::All(view.active().map(share).collect());
        let proof = |(objective, bound)| Box::new(Certificate { objective, bound, ..Certificate::default() });
        Ok(Allocation { certificate: choice.proof.map(proof), ..Allocation::preemptive(shares) })
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

/// The lease that runs.
struct ChronusLease {
    /// Its number, and its length.
    at: u64,
    length: Span,
    /// Whether it begins with this plan.
    begins: bool,
}

impl ChronusLease {
    fn at(view: &View, length: Span) -> ChronusLease {
        let at = |time: Time| time.0 / length.0.max(1);
        let before = Time(view.now.0.saturating_sub(view.round.0.max(1)));
        let begins = view.now == Time::ZERO || at(before) != at(view.now);
        ChronusLease { at: at(view.now) + u64::from(!begins), length, begins }
    }

    /// When the first lease that is planned begins.
    fn next(&self) -> Time {
        Time(self.at.saturating_mul(self.length.0))
    }

    /// What a job with deadlines wants; none where it has no deadline left.
    fn wish(&self, view: &View, job: JobIdx, exact: bool) -> Option<Wish> {
        let (spec, run) = (view.spec(job), view.run(job));
        let hard = spec.deadline.map(|by| (by, 1.0));
        let soft = spec.rewards.iter().flat_map(|all| all.iter()).map(|reward| (reward.by, reward.worth));
        let wanted: Vec<(Time, f64)> =
            if spec.rewards.is_some() { soft.collect() } else { hard.into_iter().collect() };
        let lease = |by: Time| (by.0 / self.length.0.max(1)).saturating_sub(self.at) as usize;
        let shape = if run.lease.is_some() { run.shape } else { spec.usable().next()? };
        let need = spec.shapes[shape as usize].needs.first()?;
        let largest = view.nodes.largest(need.kind);
        let size = if need.devices < largest { need.devices.next_power_of_two() } else { need.devices };
        let (restart, long) = (spec.costs.restart().secs(), self.length.secs());
        let leased = run.rank.0 == LEASED && !self.begins;
        // What it does in the lease that runs it need not do later: else another is guaranteed its room.
        let begun = if exact && leased { (self.next() - view.now).secs() } else { 0.0 };
        let seconds = (view.seconds_left(job) - begun).max(0.0);
        let leases = ((seconds * (1.0 + restart / long) + restart) / long).ceil();
        let within = |(by, _): &&(Time, f64)| f64::from(u32::MAX) > leases && lease(*by) as f64 >= leases;
        let ends: Vec<(usize, f64)> =
            wanted.iter().filter(within).map(|(by, worth)| (lease(*by), *worth)).collect();
        let (submitted, id) = (run.submitted, run.id);
        (!ends.is_empty() || leased).then(|| Wish {
            job,
            order: (submitted, id),
            kept: exact && (run.rank.0 == LEASED || run.rank.0 == LATER),
            kind: need.kind.index(),
            size,
            leases: leases as usize,
            ends,
        })
    }

    fn rank(&self, view: &View, job: JobIdx, chosen: Option<ChosenLeases>) -> Rank {
        let service = finite(view.seconds_left(job) * f64::from(view.devices(job)));
        let held = view.run(job).rank.0 == LEASED && view.is_running(job);
        let leased = if self.begins { matches!(chosen, Some(ChosenLeases { now: true })) } else { held };
        let has_deadline = view.spec(job).deadline.is_some();
        let class = match chosen {
            _ if leased => LEASED,
            Some(_) => LATER,
            None if has_deadline && self.is_late(view, job) => LATE,
            None => SPOT,
        };
        // The largest are placed first: of powers of two none then lies scattered that need not.
        Rank(class, if leased { -f64::from(view.devices(job)) } else { service })
    }

    /// Whether none of its deadlines can be kept any more, whatever it gets.
    fn is_late(&self, view: &View, job: JobIdx) -> bool {
        let spec = view.spec(job);
        let last = spec.rewards.as_ref().and_then(|all| all.last()).map(|reward| reward.by).or(spec.deadline);
        last.is_some_and(|by| view.now.secs() + view.seconds_left(job) > by.secs())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use yard_core::ids::KindId;
    use yard_core::job::Shape;

    use super::{LATER, LEASED, Share};
    use crate::testing::{TestNode, World, nodes, policy, run};

    proptest! {
        /// Rounded sizes, the largest first: each lies on as few nodes as it can.
        #[test]
        fn rounded_sizes_never_lie_scattered(powers in prop::collection::vec(0u32..5, 1..40)) {
            let mut sizes: Vec<u32> = powers.iter().map(|power| 1 << power).collect();
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            let mut free = vec![0xffu64; sizes.iter().sum::<u32>().div_ceil(8) as usize];
            let pack = crate::placer("pack").unwrap();
            for size in sizes {
                let node = |free: &u64| TestNode { kind: 0, devices: 8, rack: 0, up: true, free: *free };
                let cluster = nodes(&free.iter().map(node).collect::<Vec<_>>());
                let placement = pack.place(&cluster, &Shape::of(KindId(0), size)).expect("there is room");
                prop_assert_eq!(placement.0.len() as u32, size.div_ceil(8), "{} on {:?}", size, placement);
                placement.0.iter().for_each(|slice| free[slice.node.index()] &= !(slice.mask as u64));
            }
        }
    }

    #[test]
    fn a_deadline_goes_before_a_shorter_job_only_when_it_must() {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 20.0), (1, 10.0)]);
        world.set_deadline(0, 30.0);
        assert_eq!(run("chronus:lease=5", &mut world), [30.0, 10.0]);
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 20.0), (1, 40.0), (1, 10.0)]);
        world.set_deadline(0, 20.0);
        world.set_deadline(1, 30.0);
        let ends = run("chronus:lease=5", &mut world);
        assert_eq!((ends[0], ends[2]), (20.0, 30.0), "{ends:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn whom_the_program_guarantees_is_done_in_time_and_packing_guarantees_no_more(
            jobs in prop::collection::vec((0u32..3, 1u32..5, 0u32..5), 1..9),
        ) {
            // Jobs as size, leases and leases to spare, on four devices, all there from the beginning. Who is not
            // guaranteed may be lucky under either.
            let by = |(_, leases, spare): &(u32, u32, u32)| f64::from((leases + spare) * 10);
            let guaranteed = |spec: &str| {
                let mut world = World::new(&[4]);
                for (row, job) in jobs.iter().enumerate() {
                    world.submit_all(&[(1 << job.0, f64::from(job.1 * 10))]);
                    world.set_deadline(row, by(job));
                }
                let allocation = world.plan(&mut *policy(spec));
                let chosen = |share: &Share| [LEASED, LATER].contains(&share.rank.0);
                let shares = world.after(&allocation).into_values().filter(chosen);
                shares.map(|share| share.jobs[0].index()).collect::<Vec<_>>()
            };
            let exact = guaranteed("chronus:lease=10:exact=true");
            prop_assert!(exact.len() >= guaranteed("chronus:lease=10").len());
            let mut world = World::new(&[4]);
            jobs.iter().for_each(|job| world.submit_at(0.0, 1 << job.0, f64::from(job.1 * 10)));
            world.deadlines = jobs.iter().map(by).collect();
            let ends = run("chronus:lease=10:exact=true", &mut world);
            for row in exact {
                prop_assert!(ends[row] <= by(&jobs[row]) + 1e-6, "job {row} ends at {}: {ends:?}", ends[row]);
            }
        }
    }

    #[test]
    fn what_cannot_be_kept_comes_last() {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 20.0), (1, 30.0)]);
        world.set_deadline(0, 10.0);
        assert_eq!(run("chronus:lease=5", &mut world), [50.0, 30.0]);
    }
}
