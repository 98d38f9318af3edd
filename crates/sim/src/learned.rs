//! What a scheduler that does not know the truth believes at first (after Narayanan et al., "Heterogeneity-aware
//! cluster scheduling policies", OSDI 2020, section 6, and Gavel's estimator).
//!
//! A few profiles of the table are references: all is known of them. Of any other profile, what it keeps beside a
//! reference on a kind is measured with some probability; the gaps are filled by low-rank completion over the
//! references' rows and its own. The row is its fingerprint, and what it keeps beside others is taken to be what
//! the nearest reference (by angle) keeps beside theirs. Its speed alone is guessed as the references' mean; the
//! engine corrects that as soon as a job of it has run anywhere.

use std::sync::Arc;

use yard_core::belief::Belief;
use yard_core::cluster::Level;
use yard_core::ids::ProfileId;
use yard_core::job::{JobSpec, Shape};

use crate::cluster::ClusterSpec;
use crate::random::Random;
use crate::run::RunLearned;
use crate::throughput::{Profile, Throughputs};
use crate::workload::Workload;

/// References for each size of gang.
const REFERENCES: usize = 8;

/// Measurements that each profile has at least.
const MEASURED_MIN: usize = 2;

/// Fills the gaps of a matrix, given its rows, its columns and the known (row, column, value).
pub type Complete = fn(usize, usize, &[(usize, usize, f64)]) -> Vec<f64>;

/// How the first belief comes about.
#[derive(Clone, Copy, Debug)]
pub struct Profiling {
    /// The seed of what is measured.
    pub seed: u64,
    /// The probability with which an entry is measured.
    pub chance: f64,
    /// How the others are filled in.
    pub complete: Complete,
}

/// What is believed of the jobs of a workload before any has run. The jobs' shapes are put in the order of the
/// guesses: that of the true speeds would give the truth away.
pub fn believe(
    workload: &mut Workload,
    table: &Throughputs,
    cluster: &ClusterSpec,
    how: Profiling,
) -> RunLearned {
    let known = LearnedSpeeds { table, cluster, references: references(table) };
    let mut lists: Vec<Guessed> = Vec::new();
    let mut speeds = Vec::with_capacity(workload.specs.len());
    for spec in &mut workload.specs {
        let same = |list: &&Guessed| list.profile == spec.profile && Arc::ptr_eq(&list.truth, &spec.speeds);
        let at = lists.iter().position(|list| same(&list)).unwrap_or_else(|| {
            let guess = known.guess(spec, workload.profiles[spec.profile.index()].as_ref());
            lists.push(Guessed::new(spec, &guess, &lists));
            lists.len() - 1
        });
        let list = &lists[at];
        (spec.shapes, spec.speeds) = (list.shapes.clone(), list.speeds.clone());
        speeds.push(list.guess.clone());
    }
    RunLearned { belief: known.pairs(workload, how), speeds }
}

/// The shapes of like jobs in the order of their guessed speeds, with these and with the true ones.
#[derive(Clone)]
struct Guessed {
    profile: ProfileId,
    truth: Arc<[f64]>,
    shapes: Arc<[Shape]>,
    speeds: Arc<[f64]>,
    guess: Arc<[f64]>,
}

impl Guessed {
    fn new(spec: &JobSpec, guess: &[f64], others: &[Guessed]) -> Guessed {
        let mut order: Vec<usize> = (0..guess.len()).collect();
        order.sort_by(|a, b| {
            guess[*b].total_cmp(&guess[*a]).then_with(|| spec.shapes[*a].cmp(&spec.shapes[*b]))
        });
        let shapes: Vec<Shape> = order.iter().map(|at| spec.shapes[*at].clone()).collect();
        // Equal shapes stay one list: the engine groups jobs by it.
        let like = others.iter().find(|other| *other.shapes == *shapes).map(|other| other.shapes.clone());
        let sorted = |speeds: &[f64]| order.iter().map(|at| speeds[*at]).collect();
        Guessed {
            profile: spec.profile,
            truth: spec.speeds.clone(),
            shapes: like.unwrap_or_else(|| shapes.into()),
            speeds: sorted(&spec.speeds),
            guess: sorted(guess),
        }
    }
}

/// The references, evenly over the table's profiles of each size of gang.
fn references(table: &Throughputs) -> Vec<Profile> {
    let mut all: Vec<Profile> = table.profiles().into_iter().collect();
    all.sort_by_key(|profile| profile.gpus);
    let of_size = |same: &[Profile]| {
        let n = same.len().min(REFERENCES);
        (0..n).map(|at| same[at * same.len() / n].clone()).collect::<Vec<_>>()
    };
    all.chunk_by(|a, b| a.gpus == b.gpus).flat_map(of_size).collect()
}

/// All that is known before anything has run.
struct LearnedSpeeds<'a> {
    table: &'a Throughputs,
    cluster: &'a ClusterSpec,
    references: Vec<Profile>,
}

impl LearnedSpeeds<'_> {
    fn like(&self, gpus: u32) -> impl Iterator<Item = &Profile> {
        self.references.iter().filter(move |profile| profile.gpus == gpus)
    }

    /// Speeds alone: of a reference the true ones, of others the references' geometric mean. Seconds of work
    /// pass at one a second, and everybody knows.
    fn guess(&self, spec: &JobSpec, profile: Option<&Profile>) -> Arc<[f64]> {
        let Some(profile) = profile.filter(|one| !self.references.contains(one)) else {
            return spec.speeds.clone();
        };
        let has_speed = |shape: &Shape| self.speed(profile, shape).is_some();
        if !spec.shapes.iter().any(has_speed) {
            return spec.speeds.clone();
        }
        let mean = |shape: &Shape| {
            let speeds = self.like(profile.gpus).filter_map(|one| self.speed(one, shape));
            let logs: Vec<f64> = speeds.filter(|speed| *speed > 0.0).map(libm::log).collect();
            if logs.is_empty() { 1.0 } else { libm::exp(logs.iter().sum::<f64>() / logs.len() as f64) }
        };
        spec.shapes.iter().map(mean).collect()
    }

    /// What the table says of a profile in a shape.
    fn speed(&self, profile: &Profile, shape: &Shape) -> Option<f64> {
        let (Profile { model, batch_size, .. }, gpus) = (profile, &shape.devices());
        let name = |need: &yard_core::job::Need| self.cluster.kinds.name(need.kind);
        let [need] = &shape.needs[..] else {
            let mut parts: Vec<_> = shape.needs.iter().map(|need| (name(need), need.devices)).collect();
            parts.sort_unstable();
            let mix = parts.iter().map(|(kind, n)| format!("{kind}*{n}")).collect::<Vec<_>>().join("+");
            return self.table.speed(&mix, model, *batch_size, *gpus);
        };
        let spread = || self.table.speed_spread(name(need), model, *batch_size, *gpus);
        let apart = if shape.level() == Level::Any && *gpus > 1 { spread() } else { None };
        apart.or_else(|| self.table.speed(name(need), model, *batch_size, *gpus))
    }

    /// What jobs keep beside each other: each like its nearest reference, but for what was measured.
    fn pairs(&self, workload: &Workload, how: Profiling) -> Belief {
        let mut random = Random::new(how.seed ^ 0x0be1_1ef5);
        let profiles = workload.profiles.iter().enumerate();
        let numbered: Vec<(ProfileId, &Profile)> =
            profiles.filter_map(|(at, one)| Some((ProfileId(at as u32), one.as_ref()?))).collect();
        let mut measured = Vec::new();
        let mut nearest = Vec::new();
        for (_, profile) in &numbered {
            nearest.push(self.nearest(profile, how, &mut random, &mut measured));
        }
        let mut belief = Belief::default();
        for kind in self.cluster.kinds.ids() {
            let name = self.cluster.kinds.name(kind);
            for ((a, one), like_a) in numbered.iter().zip(&nearest) {
                for ((b, other), like_b) in
                    numbered.iter().zip(&nearest).filter(|((_, other), _)| other.gpus == one.gpus)
                {
                    let known = measured.contains(&(name, (*one).clone(), (*other).clone()));
                    let (x, y) = if known { (Some(*one), Some(*other)) } else { (*like_a, *like_b) };
                    if let Some(kept) = x.zip(y).and_then(|(x, y)| self.table.kept(name, x, y)) {
                        belief.set_beside(*a, *b, kind, kept);
                    }
                }
            }
        }
        belief
    }

    /// The reference that is most like a profile, by what it keeps beside references; some of that is measured.
    fn nearest<'p>(
        &'p self,
        profile: &'p Profile,
        how: Profiling,
        random: &mut Random,
        measured: &mut Vec<(&'p str, Profile, Profile)>,
    ) -> Option<&'p Profile> {
        let references: Vec<&Profile> = self.like(profile.gpus).collect();
        if let Some(own) = references.iter().find(|one| **one == profile) {
            return Some(own);
        }
        let kinds: Vec<&str> = self.cluster.kinds.ids().map(|kind| self.cluster.kinds.name(kind)).collect();
        let columns: Vec<_> =
            kinds.iter().flat_map(|kind| references.iter().map(move |one| (*kind, *one))).collect();
        let row = |one: &Profile| -> Vec<Option<f64>> {
            columns.iter().map(|(kind, other)| self.table.kept(kind, one, other)).collect()
        };
        let last = references.len();
        let mut known: Vec<(usize, usize, f64)> = Vec::new();
        for (at, reference) in references.iter().enumerate() {
            known.extend(row(reference).into_iter().enumerate().filter_map(|(c, kept)| Some((at, c, kept?))));
        }
        let truth = row(profile);
        let mut left = MEASURED_MIN;
        for (at, kept) in truth.iter().enumerate() {
            if let Some(kept) = kept.filter(|_| random.chance(how.chance) || left >= truth.len() - at) {
                left = left.saturating_sub(1);
                known.push((last, at, kept));
                measured.push((columns[at].0, profile.clone(), columns[at].1.clone()));
            }
        }
        let whole = (how.complete)(last + 1, columns.len(), &known);
        let mut rows: Vec<Vec<f64>> = whole.chunks(columns.len().max(1)).map(<[f64]>::to_vec).collect();
        rows.iter_mut().flatten().for_each(|kept| *kept = kept.clamp(0.0, 1.0));
        let own = rows.pop()?;
        let angle = |at: &usize| cosine(&own, &rows[*at]);
        (0..last).max_by(|a, b| angle(a).total_cmp(&angle(b)).then(b.cmp(a))).map(|at| references[at])
    }
}

/// The cosine of the angle between two rows; 0 where one is nothing.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { dot(a, b) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests;
