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
    self, Class, Group, JobGroup, Limits, Packed, PackedError, Role, Solution, Use, hand_back,
};
use yard_solver::reference::Progress;

use crate::buyers::{Buyers, Row, Rows, SHARE_MIN, Sight};
use crate::finish_time::steps_left;
use crate::leftovers::with_leftovers;

/// Jobs as classes, alone and together.
pub(crate) struct Packs<'v> {
    pub(crate) buyers: Buyers<'v>,
    packed: Packed,
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
        let buyers = Buyers::new(view, Rows::Alike, Sight::Aware)?;
        let capacity = buyers.kinds.iter().map(|kind| f64::from(view.capacity(*kind))).collect();
        let class = |row: &Row| Class { jobs: row.jobs.len() as u32, weight: row.weight };
        let classes = buyers.rows.iter().map(class).collect();
        let packed = Packed { capacity, classes, groups: Vec::new() };
        let mut packs = Packs { buyers, packed, shapes: Vec::new() };
        for row in 0..packs.buyers.rows.len() {
            packs.add_alone(row);
        }
        for one in 0..packs.buyers.rows.len() {
            (one..packs.buyers.rows.len()).for_each(|other| packs.add_pair(one, other));
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
    fn add_pair(&mut self, one: usize, other: usize) {
        let (view, rows) = (self.buyers.view, &self.buyers.rows);
        let (a, b) =
            (rows[one].jobs[0], rows[other].jobs[usize::from(one == other).min(rows[other].jobs.len() - 1)]);
        let unknown = |job| view.spec(job).profile == ProfileId::default();
        if a == b || unknown(a) || unknown(b) {
            return;
        }
        for option in self.buyers.market.options_of(one) {
            if let Some([fast, slow]) = pays(view, a, b, self.buyers.shape(option)) {
                let first = Role { class: one as u32, speed: fast * self.unit(one) };
                let second = Role { class: other as u32, speed: slow * self.unit(other) };
                self.add(option, smallvec![first, second]);
            }
        }
    }

    /// A group on the devices of an option of its first class.
    fn add(&mut self, option: usize, roles: SmallVec<[Role; 2]>) {
        let uses = self.buyers.market.uses(option);
        let uses = uses.map(|(kind, devices)| Use { kind: kind as u32, devices }).collect();
        self.packed.groups.push(Group { roles, uses });
        self.shapes.push(self.buyers.shape(option));
    }

    /// The fairest levels, by one of the solves that treat the jobs of a class alike.
    pub(crate) fn level(
        &self,
        solve: fn(&Packed, &Limits) -> Result<Solution, PackedError>,
    ) -> Result<Allocation, PolicyError> {
        let weight = |row: usize, speed: f64| speed / self.buyers.rows[row].weight;
        let least = |found: &Found| {
            found.speeds().map(|(row, _, speed)| weight(row, speed)).fold(f64::INFINITY, f64::min)
        };
        self.answer(|| solve(&self.packed, &Limits::default()), least, |_, _| Rank::default())
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
        let solve = || packed::weighted_sum(&self.packed, &values, &floors, &Limits::default());
        self.answer(solve, |found| found.solution.objective, |_, _| Rank::default())
    }

    /// The least time until all jobs are done.
    pub(crate) fn makespan(&self) -> Result<Allocation, PolicyError> {
        let need = |row: usize, job: JobIdx| steps_left(self.buyers.view, job) * self.unit(row);
        let needs = self.each(need);
        let last = |found: &Found| {
            found.speeds().map(|(row, job, speed)| need(row, job) / speed).fold(0.0, f64::max)
        };
        self.answer(
            || packed::makespan(&self.packed, &needs, &Limits::default()),
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
        let worst = |found: &Found| found.speeds().map(ratio).fold(0.0, f64::max);
        self.answer(|| packed::finish_time(&self.packed, &jobs, &Limits::default()), worst, rank)
    }

    fn each<T>(&self, of: impl Fn(usize, JobIdx) -> T) -> Vec<Vec<T>> {
        let row = |(at, row): (usize, &Row)| row.jobs.iter().map(|job| of(at, *job)).collect();
        self.buyers.rows.iter().enumerate().map(row).collect()
    }

    /// Solves, hands back, and certifies what was handed back rather than what was solved: a class with little time
    /// to spend with itself may get less than the solve thought.
    fn answer(
        &self,
        solve: impl FnOnce() -> Result<Solution, PackedError>,
        objective: impl FnOnce(&Found) -> f64,
        rank: impl Fn(usize, JobIdx) -> Rank,
    ) -> Result<Allocation, PolicyError> {
        if self.buyers.rows.is_empty() {
            return Ok(self.certified(Vec::new(), 0.0, 0.0, &[]));
        }
        let solution = solve().map_err(broken)?;
        let members = self.each(|_, job| job.0);
        let slices: Vec<&[u32]> = members.iter().map(|members| &members[..]).collect();
        let groups = hand_back(&self.packed, &solution, &slices).map_err(broken)?;
        let found = Found { packs: self, solution: &solution, groups: &groups };
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
fn pays(view: &View, a: JobIdx, b: JobIdx, shape: u16) -> Option<[f64; 2]> {
    let speeds = view.packed(a, b, shape)?;
    let own = view.spec(b).way(&view.spec(a).shapes[shape as usize])?;
    let kept = speeds[0] / view.speed(a, shape) + speeds[1] / view.speed(b, own);
    (kept > 1.0).then_some(speeds)
}

/// What was solved and handed back.
struct Found<'a> {
    packs: &'a Packs<'a>,
    solution: &'a Solution,
    groups: &'a [JobGroup],
}

impl Found<'_> {
    /// Row, job and speed of each job, in units of its row.
    fn speeds(&self) -> impl Iterator<Item = (usize, JobIdx, f64)> {
        let mut speeds = vec![0.0; self.packs.buyers.view.runs.len()];
        for group in self.groups {
            let roles = &self.packs.packed.groups[group.group as usize].roles;
            for (role, job) in roles.iter().zip(&group.members) {
                speeds[*job as usize] += role.speed * group.fraction;
            }
        }
        let of_row = move |(row, jobs): (usize, &Row)| -> Vec<(usize, JobIdx, f64)> {
            jobs.jobs.iter().map(|job| (row, *job, speeds[job.index()])).collect()
        };
        self.packs.buyers.rows.iter().enumerate().flat_map(of_row)
    }
}
