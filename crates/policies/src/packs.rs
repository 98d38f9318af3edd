//! Jobs that may share devices (Gavel, Narayanan et al., OSDI 2020, section 3.1), as groups of classes. Jobs alike in
//! profile, weight, shapes and speeds are one class: `yard_solver::packed` says how long each group of classes runs
//! on each kind, and hands that back to jobs, about two shares each.
//!
//! A level is what it is without sharing, size · speed / (weight · even), so speeds count in units of even / size.
//! Offered are all jobs alone, and two jobs in a shape that takes the same devices for both, where the belief knows
//! what they keep of their speeds. Where that adds up to no more than 1 the pair is left out, and nothing is lost:
//! instead of the pair for a time t, one alone for t · kept and then the other alone for t · kept takes no more
//! devices and no more of anybody's time, and both get as far.
//!
//! Cost: O(classes² · kinds) columns, and a simplex over 2 · classes + kinds rows; for any number of jobs.

use smallvec::{SmallVec, smallvec};
use yard_core::allocation::{Allocation, Share};
use yard_core::ids::{JobIdx, ProfileId};
use yard_core::job::Rank;
use yard_core::policy::PolicyError;
use yard_core::view::View;
use yard_solver::packed::{
    self, JobClass, JobGroup, KindUse, PackedError, PackedGroup, PackedProblem, PackedSolution, PackedWork,
    Role, hand_back,
};
use yard_solver::reference::Progress;

use crate::buyers::{BuyerRow, BuyerRows, Buyers, SHARE_MIN, Sight};
use crate::finish_time::steps_left;
use crate::leftovers::with_leftovers;
use crate::together::Room;

/// Jobs as classes, alone and together.
pub(crate) struct Packs<'v> {
    pub(crate) buyers: Buyers<'v>,
    packed: PackedProblem,
    /// By group, which of its first job's shapes.
    shapes: Vec<u16>,
}

/// A problem that could not be built or solved; numbers were checked before, so it is a bug elsewhere.
fn broken(error: PackedError) -> PolicyError {
    PolicyError(format!("the problem of jobs that share devices cannot be solved: {error}"))
}

impl<'v> Packs<'v> {
    /// The jobs of a view that can run now.
    pub(crate) fn new(view: &'v View) -> Result<Packs<'v>, PolicyError> {
        let buyers = Buyers::new(view, BuyerRows::Mates, Sight::Aware)?;
        let capacity = buyers.kinds.iter().map(|kind| f64::from(view.capacity(*kind))).collect();
        let class = |row: &BuyerRow| JobClass { jobs: row.jobs.len() as u32, weight: row.weight };
        let classes = buyers.rows.iter().map(class).collect();
        let packed = PackedProblem { capacity, classes, groups: Vec::new() };
        let room = Room::new(view);
        let mut packs = Packs { buyers, packed, shapes: Vec::new() };
        for row in 0..packs.buyers.rows.len() {
            packs.add_alone(row);
        }
        for one in 0..packs.buyers.rows.len() {
            (one..packs.buyers.rows.len()).for_each(|other| packs.add_pair(&room, one, other));
        }
        Ok(packs)
    }

    /// How many jobs.
    pub(crate) fn jobs(&self) -> usize {
        self.buyers.rows.iter().map(|row| row.jobs.len()).sum()
    }

    /// What a step a second of a row's jobs counts.
    fn unit(&self, row: usize) -> f64 {
        self.buyers.rows[row].size / self.buyers.rows[row].even
    }

    fn add_alone(&mut self, row: usize) {
        for option in self.buyers.market.options_of(row) {
            let speed = self.buyers.market.speed(option) * self.unit(row);
            self.add(option, smallvec![Role { class: row as u32, speed }]);
        }
    }

    /// Two classes, or two jobs of one, in every shape of the first in which they may be together.
    fn add_pair(&mut self, room: &Room<'_>, one: usize, other: usize) {
        let (view, rows) = (self.buyers.view, &self.buyers.rows);
        let (a, b) =
            (rows[one].jobs[0], rows[other].jobs[usize::from(one == other).min(rows[other].jobs.len() - 1)]);
        let unknown = |job| view.spec(job).profile == ProfileId::default();
        if a == b || unknown(a) || unknown(b) {
            return;
        }
        for option in self.buyers.market.options_of(one) {
            if let Some([fast, slow]) = pays(room, a, b, self.buyers.shape(option)) {
                let first = Role { class: one as u32, speed: fast * self.unit(one) };
                let second = Role { class: other as u32, speed: slow * self.unit(other) };
                self.add(option, smallvec![first, second]);
            }
        }
    }

    /// A group on the devices of an option of its first class.
    fn add(&mut self, option: usize, roles: SmallVec<[Role; 2]>) {
        let uses = self.buyers.market.uses(option);
        let uses = uses.map(|(kind, devices)| KindUse { kind: kind as u32, devices }).collect();
        self.packed.groups.push(PackedGroup { roles, uses });
        self.shapes.push(self.buyers.shape(option));
    }

    /// The fairest levels, by one of the solves that treat the jobs of a class alike.
    pub(crate) fn level(
        &self,
        solve: fn(&PackedProblem, &PackedWork) -> Result<PackedSolution, PackedError>,
    ) -> Result<Allocation, PolicyError> {
        let weight = |row: usize, speed: f64| speed / self.buyers.rows[row].weight;
        let least = |found: &FoundPacks| {
            found.speeds().map(|(row, _, speed)| weight(row, speed)).fold(f64::INFINITY, f64::min)
        };
        self.answer(|| solve(&self.packed, &PackedWork::default()), least, |_, _| Rank::default())
    }

    /// The most steps a second, or the most in units of what an even share gives.
    pub(crate) fn most(&self, normalised: bool) -> Result<Allocation, PolicyError> {
        let value = |role: &Role| match normalised {
            true => role.speed,
            false => role.speed / self.unit(role.class as usize),
        };
        let values: Vec<f64> =
            self.packed.groups.iter().map(|group| group.roles.iter().map(value).sum()).collect();
        let floors = vec![0.0; self.packed.classes.len()];
        let solve = || packed::weighted_sum(&self.packed, &values, &floors, &PackedWork::default());
        self.answer(solve, |found| found.solution.objective, |_, _| Rank::default())
    }

    /// The least time until all jobs are done.
    pub(crate) fn makespan(&self) -> Result<Allocation, PolicyError> {
        let need = |row: usize, job: JobIdx| steps_left(self.buyers.view, job) * self.unit(row);
        let needs = self.each(need);
        let last = |found: &FoundPacks| {
            found.speeds().map(|(row, job, speed)| need(row, job) / speed).fold(0.0, f64::max)
        };
        self.answer(
            || packed::makespan(&self.packed, &needs, &PackedWork::default()),
            last,
            |_, _| Rank::default(),
        )
    }

    /// The least ratio of finish times; `progress` is that of a job of a row, and `rank` what it shall find again.
    pub(crate) fn finish_time(
        &self,
        progress: impl Fn(usize, JobIdx) -> Progress,
        rank: impl Fn(usize, JobIdx) -> Rank,
    ) -> Result<Allocation, PolicyError> {
        let scaled = |row: usize, job: JobIdx| {
            let own = progress(row, job);
            Progress { steps: own.steps * self.unit(row), ..own }
        };
        let jobs = self.each(scaled);
        let ratio = |(row, job, speed): (usize, JobIdx, f64)| {
            let own = scaled(row, job);
            (own.elapsed + own.steps / speed) / own.isolated
        };
        let worst = |found: &FoundPacks| found.speeds().map(ratio).fold(0.0, f64::max);
        self.answer(|| packed::finish_time(&self.packed, &jobs, &PackedWork::default()), worst, rank)
    }

    fn each<T>(&self, of: impl Fn(usize, JobIdx) -> T) -> Vec<Vec<T>> {
        let row = |(at, row): (usize, &BuyerRow)| row.jobs.iter().map(|job| of(at, *job)).collect();
        self.buyers.rows.iter().enumerate().map(row).collect()
    }

    /// Solves, hands back, and certifies what was handed back rather than what was solved: a class with little time
    /// to spend with itself may get less than the solve thought.
    fn answer(
        &self,
        solve: impl FnOnce() -> Result<PackedSolution, PackedError>,
        objective: impl FnOnce(&FoundPacks) -> f64,
        rank: impl Fn(usize, JobIdx) -> Rank,
    ) -> Result<Allocation, PolicyError> {
        if self.buyers.rows.is_empty() {
            return Ok(self.certified(Vec::new(), 0.0, 0.0, &[]));
        }
        let solution = solve().map_err(broken)?;
        let members = self.each(|_, job| job.0);
        let slices: Vec<&[u32]> = members.iter().map(|members| &members[..]).collect();
        let groups = hand_back(&self.packed, &solution, &slices).map_err(broken)?;
        let found = FoundPacks { packs: self, solution: &solution, groups: &groups };
        let reached = Some(objective(&found)).filter(|reached| reached.is_finite());
        let reached = reached.unwrap_or(solution.objective);
        Ok(self.certified(self.shares(&groups, rank), reached, solution.bound, &solution.prices))
    }

    fn certified(&self, shares: Vec<Share>, objective: f64, bound: f64, prices: &[f64]) -> Allocation {
        let mut allocation = Allocation::fractions(with_leftovers(self.buyers.view, shares));
        allocation.certificate = Some(Box::new(self.buyers.certificate(objective, bound, prices)));
        allocation
    }

    /// Groups, then jobs alone: the last share of a job says its rank, and that must be its own.
    fn shares(&self, groups: &[JobGroup], rank: impl Fn(usize, JobIdx) -> Rank) -> Vec<Share> {
        let mut shares: Vec<Share> = groups.iter().map(|group| self.share(group)).collect();
        shares.sort_by(|a, b| {
            b.jobs.len().cmp(&a.jobs.len()).then(a.jobs.cmp(&b.jobs)).then(a.shape.cmp(&b.shape))
        });
        shares.dedup_by(|next, kept| {
            let same = next.jobs == kept.jobs && next.shape == kept.shape;
            kept.fraction = if same { (kept.fraction + next.fraction).min(1.0) } else { kept.fraction };
            same
        });
        shares.retain(|share| share.fraction > SHARE_MIN);
        let mut alone = vec![false; self.buyers.view.runs.len()];
        shares
            .iter()
            .filter(|share| share.jobs.len() == 1)
            .for_each(|share| alone[share.jobs[0].index()] = true);
        let mut ranks = vec![Rank::default(); alone.len()];
        for (at, row) in self.buyers.rows.iter().enumerate() {
            let shape =
                self.buyers.market.options_of(at).next().map_or(0, |option| self.buyers.shape(option));
            for job in &row.jobs {
                ranks[job.index()] = rank(at, *job);
                if !alone[job.index()] {
                    shares.push(Share::leftover(*job, shape, Rank::default()));
                }
            }
        }
        shares.iter_mut().for_each(|share| share.rank = ranks[share.jobs[0].index()]);
        shares
    }

    /// One name for a group whatever the order in which like jobs were handed back: who is together already, stays.
    fn share(&self, group: &JobGroup) -> Share {
        let roles = &self.packed.groups[group.group as usize].roles;
        let mut jobs: SmallVec<[JobIdx; 1]> = group.members.iter().map(|job| JobIdx(*job)).collect();
        if roles.iter().all(|role| *role == roles[0]) {
            jobs.sort_unstable();
        }
        let (shape, rank) = (Some(self.shapes[group.group as usize]), Rank::default());
        Share { jobs, shape, fraction: group.fraction.min(1.0), rank }
    }
}

/// Steps a second of two jobs together, where that is more than turns would give.
fn pays(room: &Room<'_>, a: JobIdx, b: JobIdx, shape: u16) -> Option<[f64; 2]> {
    let (view, speeds) = (room.view, room.packed(a, b, shape)?);
    let own = view.spec(b).way(&view.spec(a).shapes[shape as usize])?;
    let kept = speeds[0] / view.speed(a, shape) + speeds[1] / view.speed(b, own);
    (kept > 1.0).then_some(speeds)
}

/// What was solved and handed back.
struct FoundPacks<'a> {
    packs: &'a Packs<'a>,
    solution: &'a PackedSolution,
    groups: &'a [JobGroup],
}

impl FoundPacks<'_> {
    /// Row, job and speed of each job, in units of its row.
    fn speeds(&self) -> impl Iterator<Item = (usize, JobIdx, f64)> {
        let mut speeds = vec![0.0; self.packs.buyers.view.runs.len()];
        for group in self.groups {
            let roles = &self.packs.packed.groups[group.group as usize].roles;
            for (role, job) in roles.iter().zip(&group.members) {
                speeds[*job as usize] += role.speed * group.fraction;
            }
        }
        let of_row = move |(row, jobs): (usize, &BuyerRow)| -> Vec<(usize, JobIdx, f64)> {
            jobs.jobs.iter().map(|job| (row, *job, speeds[job.index()])).collect()
        };
        self.packs.buyers.rows.iter().enumerate().flat_map(of_row)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use yard_core::allocation::Shares;
    use yard_core::belief::Belief;
    use yard_core::ids::KindId;

    use super::*;
    use crate::testing::{mixed, policy};

    /// Jobs as (profile, size, twice the weight, steps), of profiles as (speeds on two kinds).
    #[derive(Clone, Debug)]
    struct PackCase {
        devices: [u32; 2],
        speeds: Vec<[f64; 2]>,
        jobs: Vec<(usize, u32, u32, f64)>,
        /// What a profile keeps beside another, by profile, other and kind; 0 where nothing is known.
        kept: Vec<f64>,
    }

    const PROFILES: usize = 4;

    fn case() -> impl Strategy<Value = PackCase> {
        let speed = prop_oneof![1 => Just(0.0), 9 => 0.2..5.0f64];
        let kept = prop_oneof![1 => Just(0.0), 4 => 0.2..1.0f64, 1 => Just(1.0)];
        (
            [0u32..6, 1u32..6],
            prop::collection::vec([speed.boxed(), (0.2..5.0f64).boxed()], PROFILES),
            prop::collection::vec((0..PROFILES, 1u32..3, 1u32..4, 1.0..100.0f64), 1..14),
            prop::collection::vec(kept, PROFILES * PROFILES * 2),
        )
            .prop_map(|(devices, speeds, jobs, kept)| PackCase { devices, speeds, jobs, kept })
    }

    impl PackCase {
        /// The first profile is the unknown one. Apart: every job has a profile of its own, with the same beliefs.
        fn view(&self, apart: bool) -> View {
            let jobs: Vec<(u32, &[f64])> =
                self.jobs.iter().map(|(profile, size, ..)| (*size, &self.speeds[*profile][..])).collect();
            let steps: Vec<f64> = self.jobs.iter().map(|job| job.3).collect();
            let mut view = mixed(&self.devices, &jobs, &steps);
            let name = |at: usize, profile: usize| match profile {
                0 => ProfileId::default(),
                _ if apart => ProfileId((1 + at * PROFILES + profile) as u32),
                _ => ProfileId(profile as u32),
            };
            let mut belief = Belief::default();
            for (at, job) in self.jobs.iter().enumerate() {
                let spec = Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[at]);
                (spec.profile, spec.weight) = (name(at, job.0), f64::from(job.2) / 2.0);
                for (beside, other) in self.jobs.iter().enumerate() {
                    for kind in 0..2 {
                        let kept = self.kept[(job.0 * PROFILES + other.0) * 2 + kind];
                        if kept > 0.0 {
                            let pair = (name(at, job.0), name(beside, other.0));
                            belief.set_beside(pair.0, pair.1, KindId(kind as u16), kept);
                        }
                    }
                }
            }
            view.belief = Arc::new(belief);
            view
        }
    }

    fn allocate(spec: &str, view: &View) -> (Vec<Share>, f64, f64) {
        let allocation = policy(spec).allocate(view).expect("an answer");
        let Shares::All(shares) = allocation.shares else { panic!("it answers in full") };
        let proof = allocation.certificate.expect("a certificate");
        (shares, proof.objective, proof.bound)
    }

    /// What the engine asks of shares, and that there are devices for them.
    fn acceptable(view: &View, shares: &[Share]) -> Result<(), TestCaseError> {
        let (mut time, mut used) = (vec![0.0; view.runs.len()], [0.0; 2]);
        for share in shares {
            prop_assert!(share.fraction > 0.0 && share.fraction <= 1.0);
            prop_assert!((1..share.jobs.len()).all(|at| !share.jobs[..at].contains(&share.jobs[at])));
            let shape = &view.spec(share.jobs[0]).shapes[share.shape.expect("it names a shape") as usize];
            for job in &share.jobs {
                time[job.index()] += share.fraction;
                prop_assert!(view.spec(*job).way(shape).is_some(), "{:?}", share);
                prop_assert!(share.jobs.len() == 1 || view.spec(*job).profile != ProfileId::default());
            }
            for need in &shape.needs {
                used[need.kind.index()] += share.fraction * f64::from(need.devices);
            }
        }
        prop_assert!(time.iter().all(|time| *time <= 1.0 + 1e-6), "{:?}", time);
        // Leftovers are promised beside the rest: they count for nothing.
        let room = |kind: usize| f64::from(view.capacity(KindId(kind as u16))) + 1e-5;
        prop_assert!((0..2).all(|kind| used[kind] <= room(kind)), "{:?}", used);
        Ok(())
    }

    /// Steps a second that the shares of jobs that can run give them, from the view alone.
    fn speeds(view: &View, shares: &[Share]) -> Vec<f64> {
        let mut speeds = vec![0.0; view.runs.len()];
        for share in shares {
            let shape = share.shape.expect("it names a shape");
            match share.jobs[..] {
                [job] => speeds[job.index()] += share.fraction * view.speed(job, shape),
                [a, b] => {
                    let both = view.packed(a, b, shape).expect("a pair that is known");
                    speeds[a.index()] += share.fraction * both[0];
                    speeds[b.index()] += share.fraction * both[1];
                }
                _ => panic!("more than two"),
            }
        }
        speeds
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-5 * a.abs().max(b.abs())
    }

    proptest! {
        /// Classes lose nothing: with every job a class of its own, the level is the same. It is never below that
        /// without sharing, and proven.
        #[test]
        fn the_level_is_that_of_jobs_by_themselves(case in case()) {
            let (together, apart) = (case.view(false), case.view(true));
            for name in ["max-min", "water-filling", "max-throughput", "max-throughput:normalised=true"] {
                let packed = format!("{name}:packed=true");
                let (shares, level, bound) = allocate(&packed, &together);
                acceptable(&together, &shares)?;
                prop_assert!(near(level, bound), "{}: {} of {}", packed, level, bound);
                prop_assert!(near(level, allocate(&packed, &apart).1), "{}: {}", packed, level);
                prop_assert!(level >= allocate(name, &together).1 * (1.0 - 1e-6), "{}: {}", packed, level);
            }
        }

        /// What is certified is what the shares give. With jobs by themselves it is the optimum; as classes, it may
        /// miss it by what like jobs of different needs cannot spend with themselves, and never proves too much.
        #[test]
        fn times_are_measured_and_proven(case in case()) {
            let (together, apart) = (case.view(false), case.view(true));
            for name in ["makespan", "finish-time"] {
                let packed = format!("{name}:packed=true");
                let (shares, time, bound) = allocate(&packed, &together);
                acceptable(&together, &shares)?;
                let (_, best, proven) = allocate(&packed, &apart);
                prop_assert!(near(best, proven), "{}: {} of {}", packed, best, proven);
                prop_assert!(bound <= best * (1.0 + 1e-6) && time >= best * (1.0 - 1e-6), "{}: {}", packed, best);
                prop_assert!(best <= allocate(name, &together).1 * (1.0 + 1e-6), "{}: {}", packed, best);
                if name == "makespan" {
                    let speeds = speeds(&together, &shares);
                    let ends = case.jobs.iter().zip(&speeds).filter(|(_, speed)| **speed > 1e-6);
                    let last = ends.map(|(job, speed)| job.3 / speed).fold(0.0, f64::max);
                    prop_assert!((last - time).abs() <= 1e-4 * time, "{}: {} for {}", packed, last, time);
                }
            }
        }
    }

    #[test]
    fn sharing_is_refused_where_kinds_are_not_told_apart() {
        for name in ["max-min", "water-filling", "makespan", "finish-time"] {
            let made = crate::make(&format!("{name}:packed=true:agnostic=true"), Arc::from([]));
            let said = made.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.contains("packed=true: must be false where agnostic=true"), "{said}");
        }
    }
}
