//! Fair shares where several jobs may run on the same devices at once, solved over classes.
//!
//! Jobs that have equal speeds everywhere and equal weight are interchangeable: averaging an answer over
//! them keeps it feasible and makes it no less fair, so only how long each *group of classes* runs on each
//! kind matters. With C classes, K kinds and pairs there are at most K·C·(C+3)/2 columns and 2C + K rows,
//! for any number of jobs; 26 models on 3 kinds: 1131 and 55.
//!
//!   time of group g:  T_g ≥ 0
//!   each class:       Σ_g (members of c in g) · T_g ≤ jobs of c
//!   each kind:        Σ_g devices_g · T_g ≤ capacity
//!   Thr of class c:   Σ_g (speeds of c in g) · T_g
//!
//! [`max_min`], [`water_filling`], [`weighted_sum`] treat the jobs of a class alike. [`makespan`] and
//! [`finish_time`] take a need for each job (see `needs`), still without a column for each job.
//! [`hand_back`] turns the times of groups of classes into shares of groups of jobs, about two for each job.
//!
//! All answers carry a bound from weak duality in plain arithmetic. Complexity of a solve: some hundreds of
//! pivots of [`crate::simplex`], each (2C + K)² + columns. When not to use it: where nearly every job is a
//! class of its own, pairs are many again; then offer fewer groups.

mod hand_back;
mod needs;
mod profile;
mod solve;

use smallvec::SmallVec;
use thiserror::Error;

pub use hand_back::{JobGroup, hand_back};
pub use needs::{finish_time, makespan};
pub use solve::{max_min, water_filling, weighted_sum};

use crate::error::SolveError;

/// Jobs that are interchangeable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobClass {
    /// How many jobs.
    pub jobs: u32,
    /// What one unit of level asks of each; zero leaves the class out of the fairness.
    pub weight: f64,
}

/// One place in a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Role {
    /// Whose job takes it.
    pub class: u32,
    /// How fast that job runs there. Where a group has several jobs of one class, they swap places, and the
    /// mean of their speeds counts.
    pub speed: f64,
}

/// Devices of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KindUse {
    /// The kind.
    pub kind: u32,
    /// How many.
    pub devices: f64,
}

/// Jobs of certain classes together on certain devices: one for a job alone, two or more when packed.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedGroup {
    /// The jobs.
    pub roles: SmallVec<[Role; 2]>,
    /// The devices they share; usually of one kind.
    pub uses: SmallVec<[KindUse; 1]>,
}

impl PackedGroup {
    /// A group on devices of one kind, from (class, speed) pairs.
    pub fn new(kind: u32, devices: f64, roles: &[(u32, f64)]) -> PackedGroup {
        let roles = roles.iter().map(|(class, speed)| Role { class: *class, speed: *speed }).collect();
        PackedGroup { roles, uses: SmallVec::from_elem(KindUse { kind, devices }, 1) }
    }
}

/// The problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PackedProblem {
    /// Devices of each kind.
    pub capacity: Vec<f64>,
    /// The classes.
    pub classes: Vec<JobClass>,
    /// What may run together; a group on two kinds is two entries.
    pub groups: Vec<PackedGroup>,
}

/// How much work a solve may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedWork {
    /// Pivots of each linear program.
    pub pivots_max: usize,
    /// Linear programs, where one solve needs several.
    pub programs_max: usize,
}

impl Default for PackedWork {
    fn default() -> PackedWork {
        PackedWork { pivots_max: 100_000, programs_max: 400 }
    }
}

/// What each job of each class needs for one unit of level.
#[derive(Clone, Debug, PartialEq)]
pub enum Needs {
    /// All jobs of a class alike.
    Equal,
    /// One number a job, by class and in the caller's order.
    Each(Vec<Vec<f64>>),
}

/// An answer over classes.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedSolution {
    /// How long each group runs, in units of the whole time; above one where several copies run at once.
    pub time: Vec<f64>,
    /// The objective, measured on `time`: level, value, makespan or worst finish-time ratio.
    pub objective: f64,
    /// No answer can be better than this: above the objective where more is better, below it where less is.
    pub bound: f64,
    /// What the objective would gain by one more device of each kind. For finish time and makespan: the
    /// level at the optimum, not the time.
    pub prices: Vec<f64>,
    /// What each class reaches, Thr / (jobs · weight); for needs, how often each job's need is met.
    pub levels: Vec<f64>,
    /// What the jobs need, for handing back.
    pub needs: Needs,
    /// Classes that had to be left out: they can run nowhere, or their floor cannot be kept.
    pub unmet: Vec<u32>,
    /// Pivots used.
    pub pivots: usize,
}

impl PackedSolution {
    /// The proven relative distance from the optimum.
    pub fn gap(&self) -> f64 {
        (self.bound - self.objective).abs() / self.objective.abs().max(f64::MIN_POSITIVE)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PackedError {
    /// A number is negative, infinite or not a number.
    #[error("{what} {at}: {value} must be finite and not negative")]
    Number {
        /// What holds it.
        what: &'static str,
        /// Which of them.
        at: usize,
        /// The number.
        value: f64,
    },
    /// A group names a class that does not exist.
    #[error("group {group}: there is no class {class}")]
    Class {
        /// The group.
        group: usize,
        /// The class it names.
        class: u32,
    },
    /// A group names a kind that does not exist.
    #[error("group {group}: there is no kind {kind}")]
    Kind {
        /// The group.
        group: usize,
        /// The kind it names.
        kind: u32,
    },
    /// A group has no role or uses no device, and could run for ever.
    #[error("group {group}: has no job or no device")]
    Empty {
        /// The group.
        group: usize,
    },
    /// No class has a weight and can run: there is nothing to be fair about.
    #[error("no class has a weight above zero and a group it can run in")]
    Nobody,
    /// A list does not fit the classes or the groups.
    #[error("{what}: {is} entries where {wanted} are wanted")]
    Length {
        /// Which list.
        what: &'static str,
        /// Its length.
        is: usize,
        /// The length wanted.
        wanted: usize,
    },
    /// The linear program has no answer.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

/// The jobs of one class in a group.
#[derive(Clone, Copy, Debug)]
struct PackedPart {
    class: usize,
    /// How many.
    jobs: f64,
    /// The speed of each.
    speed: f64,
}

/// A group that can run, checked and summed.
#[derive(Clone, Debug)]
struct LiveColumns {
    /// Its place in the problem.
    group: usize,
    /// The longest it can run.
    most: f64,
    parts: SmallVec<[PackedPart; 2]>,
}

/// The problem, checked.
#[derive(Clone, Debug)]
struct Ready<'a> {
    packed: &'a PackedProblem,
    live: Vec<LiveColumns>,
    /// The best speed of each class; zero where it can run nowhere.
    best: Vec<f64>,
}

impl<'a> Ready<'a> {
    fn new(packed: &'a PackedProblem) -> Result<Ready<'a>, PackedError> {
        check(packed)?;
        let live: Vec<LiveColumns> =
            packed.groups.iter().enumerate().filter_map(|(at, group)| live(packed, at, group)).collect();
        let mut best = vec![0.0f64; packed.classes.len()];
        for part in live.iter().flat_map(|live| &live.parts) {
            best[part.class] = best[part.class].max(part.speed);
        }
        Ok(Ready { packed, live, best })
    }

    fn jobs(&self, class: usize) -> f64 {
        f64::from(self.packed.classes[class].jobs)
    }

    /// Classes with jobs and weight that can run nowhere.
    fn stranded(&self) -> Vec<u32> {
        let classes = self.packed.classes.iter().enumerate();
        let stranded =
            classes.filter(|(at, class)| class.jobs > 0 && class.weight > 0.0 && self.best[*at] == 0.0);
        stranded.map(|(at, _)| at as u32).collect()
    }
}

/// A group that can run: enough jobs, enough devices, and somebody moves.
fn live(packed: &PackedProblem, at: usize, group: &PackedGroup) -> Option<LiveColumns> {
    let parts = parts(group);
    let devices = group.uses.iter().map(|used| packed.capacity[used.kind as usize] / used.devices);
    let enough = parts.iter().all(|part| f64::from(packed.classes[part.class].jobs) >= part.jobs);
    let jobs = parts.iter().map(|part| f64::from(packed.classes[part.class].jobs) / part.jobs);
    let most = devices.chain(jobs).fold(f64::INFINITY, f64::min);
    let moves = parts.iter().any(|part| part.speed > 0.0);
    (enough && moves && most > 0.0).then_some(LiveColumns { group: at, most, parts })
}

/// Roles of one class become one part with the mean speed.
fn parts(group: &PackedGroup) -> SmallVec<[PackedPart; 2]> {
    let mut parts: SmallVec<[PackedPart; 2]> = SmallVec::new();
    for role in &group.roles {
        match parts.iter_mut().find(|part| part.class == role.class as usize) {
            Some(part) => {
                part.speed = (part.speed * part.jobs + role.speed) / (part.jobs + 1.0);
                part.jobs += 1.0;
            }
            None => parts.push(PackedPart { class: role.class as usize, jobs: 1.0, speed: role.speed }),
        }
    }
    parts
}

fn check(packed: &PackedProblem) -> Result<(), PackedError> {
    for (at, capacity) in packed.capacity.iter().enumerate() {
        number("capacity of kind", at, *capacity)?;
    }
    for (at, class) in packed.classes.iter().enumerate() {
        number("weight of class", at, class.weight)?;
    }
    packed.groups.iter().enumerate().try_for_each(|(at, group)| check_group(packed, at, group))
}

fn check_group(packed: &PackedProblem, at: usize, group: &PackedGroup) -> Result<(), PackedError> {
    for role in &group.roles {
        number("speed in group", at, role.speed)?;
        if role.class as usize >= packed.classes.len() {
            return Err(PackedError::Class { group: at, class: role.class });
        }
    }
    for used in &group.uses {
        number("devices of group", at, used.devices)?;
        if used.kind as usize >= packed.capacity.len() {
            return Err(PackedError::Kind { group: at, kind: used.kind });
        }
    }
    let idle = group.uses.iter().all(|used| used.devices == 0.0);
    match group.roles.is_empty() || idle {
        true => Err(PackedError::Empty { group: at }),
        false => Ok(()),
    }
}

fn number(what: &'static str, at: usize, value: f64) -> Result<(), PackedError> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(()),
        false => Err(PackedError::Number { what, at, value }),
    }
}

fn length(what: &'static str, is: usize, wanted: usize) -> Result<(), PackedError> {
    match is == wanted {
        true => Ok(()),
        false => Err(PackedError::Length { what, is, wanted }),
    }
}
