//! Jobs of one class with different needs: least makespan, and the fairest finish times.
//!
//! A class is not split into its jobs. Whether its time can meet the needs r_1 ≥ r_2 ≥ … at level λ is a set
//! of conditions on class totals (`profile`), each of them linear in the times T_g and in λ:
//!
//!   λ·(r_1 + … + r_k) ≤ θ·k + Σ over options of c of y_o · max(a_o − θ, 0)   for all k and θ.
//!
//! Only those with θ equal to one of the class's speeds matter, so at most C·(3C + 1) rows for pairs on three
//! kinds, however many jobs; and only a few of them bind. They are added as they are missed: solve, look for
//! the condition missed by most in each class, add it, repeat. Every program on the way gives a valid bound.
//! One round costs a pass over all jobs and a simplex; ten rounds or so are the rule.
//!
//! One thing the totals do not see: where a class has less than one whole unit of time paired with itself, no
//! single job may take all of it, for it cannot be its own partner. The level is then an upper estimate, by
//! less than one job's time, and handing back spreads that time; give such jobs classes of their own where
//! there are few. Without groups of a class with itself everything is exact.

use super::profile::{self, ProfileCut, Segment};
use super::solve::Rows;
use super::{
    LiveColumns, Needs, PackedError, PackedPart, PackedProblem, PackedSolution, Ready, length, number,
};
use crate::packed::PackedWork;
use crate::reference::Progress;

/// How closely a condition must be kept.
const CLOSE: f64 = 1e-9;

/// min T with Thr_j ≥ steps_j / T, steps by class and job; among the best the one with the largest Σ Thr.
pub fn makespan(
    packed: &PackedProblem,
    steps: &[Vec<f64>],
    limits: &PackedWork,
) -> Result<PackedSolution, PackedError> {
    let ready = Ready::new(packed)?;
    sizes(packed, steps)?;
    let mut search = NeedsSearch::new(&ready, limits);
    let needs = Sorted::new(&ready, steps);
    let found = search.level(&needs)?;
    let solution = found.solution;
    let level = solution.objective;
    let needs = Needs::Each(steps.to_vec());
    Ok(PackedSolution { objective: 1.0 / level, bound: 1.0 / found.bound, needs, ..solution })
}

/// min ρ with (elapsed_j + steps_j / Thr_j) / isolated_j ≤ ρ.
///
/// At a given ρ job j needs steps_j / (ρ·isolated_j − elapsed_j), and ρ can be had if the level for these
/// needs is one. From below: where it is less, the multipliers of the program give weights β with
/// Σ β_j·need_j(ρ) ≤ level for whatever can be had, and the next ρ is the least that keeps this. That is
/// Newton's method on a convex function, so ρ rises to the answer in a few steps and never passes it: it is
/// at every step a proven bound.
pub fn finish_time(
    packed: &PackedProblem,
    jobs: &[Vec<Progress>],
    limits: &PackedWork,
) -> Result<PackedSolution, PackedError> {
    let ready = Ready::new(packed)?;
    sizes(packed, jobs)?;
    check(jobs)?;
    let mut search = NeedsSearch::new(&ready, limits);
    let mut rho = alone(&ready, jobs);
    let (needs, found) = loop {
        let needs = wanted(&ready, jobs, rho);
        let found = search.level(&Sorted::new(&ready, &needs))?;
        let next = raise(jobs, &found, rho);
        if found.bound >= 1.0 - CLOSE || next <= rho * (1.0 + 1e-13) {
            break (needs, found);
        }
        rho = next;
    };
    let objective = reached(&ready, jobs, &needs, &found.solution);
    let needs = Needs::Each(needs);
    Ok(PackedSolution { objective, bound: rho.min(objective), needs, ..found.solution })
}

/// One list for each class, one entry for each of its jobs.
fn sizes<T>(packed: &PackedProblem, lists: &[Vec<T>]) -> Result<(), PackedError> {
    length("classes with needs", lists.len(), packed.classes.len())?;
    let pairs = lists.iter().zip(&packed.classes);
    pairs
        .into_iter()
        .try_for_each(|(list, class)| length("needs of a class", list.len(), class.jobs as usize))
}

fn check(jobs: &[Vec<Progress>]) -> Result<(), PackedError> {
    for (at, job) in jobs.iter().flatten().enumerate() {
        number("steps of job", at, job.steps)?;
        number("elapsed time of job", at, job.elapsed)?;
        number("isolated time of job", at, job.isolated)?;
        if job.isolated <= 0.0 {
            return Err(PackedError::Number {
                what: "isolated time (must be above zero) of job",
                at,
                value: job.isolated,
            });
        }
    }
    Ok(())
}

/// What each class's jobs need, largest first, with sums.
struct Sorted {
    /// By class; empty where the class is left out.
    needs: Vec<Vec<f64>>,
    /// Whose need it is.
    order: Vec<Vec<u32>>,
    sums: Vec<Vec<f64>>,
}

impl Sorted {
    fn new(ready: &Ready, needs: &[Vec<f64>]) -> Sorted {
        let mut sorted = Sorted { needs: Vec::new(), order: Vec::new(), sums: Vec::new() };
        for (class, needs) in needs.iter().enumerate() {
            let mut order: Vec<u32> = (0..needs.len() as u32).collect();
            order.sort_by(|left, right| needs[*right as usize].total_cmp(&needs[*left as usize]));
            if ready.best[class] == 0.0 {
                order.clear();
            }
            let list: Vec<f64> = order.iter().map(|at| needs[*at as usize]).collect();
            let sums = list.iter().scan(0.0, |sum, need| {
                *sum += need;
                Some(*sum)
            });
            sorted.sums.push(sums.collect());
            sorted.needs.push(list);
            sorted.order.push(order);
        }
        sorted
    }
}

/// A level that was found, with what proves it.
struct Found {
    solution: PackedSolution,
    bound: f64,
    /// By class and job: Σ weights · needs ≤ bound for whatever can be had.
    weights: Vec<Vec<f64>>,
}

/// The conditions known so far; they stay useful when the needs change.
struct NeedsSearch<'a> {
    ready: &'a Ready<'a>,
    limits: PackedWork,
    cuts: Vec<(usize, ProfileCut)>,
    programs: usize,
    pivots: usize,
}

impl<'a> NeedsSearch<'a> {
    fn new(ready: &'a Ready<'a>, limits: &PackedWork) -> NeedsSearch<'a> {
        // To begin with, all work of a class against all it needs.
        let classes = || (0..ready.packed.classes.len()).filter(|class| ready.best[*class] > 0.0);
        let all = classes()
            .map(|class| (class, ProfileCut { jobs: ready.packed.classes[class].jobs as usize, speed: 0.0 }));
        let cuts: Vec<_> = all.filter(|(_, cut)| cut.jobs > 0).collect();
        NeedsSearch { ready, limits: *limits, cuts, programs: 0, pivots: 0 }
    }

    /// max λ such that every job gets λ times its need.
    fn level(&mut self, needs: &Sorted) -> Result<Found, PackedError> {
        for (at, need) in needs.needs.iter().flatten().enumerate() {
            number("need of job", at, *need)?;
        }
        let unit = self.reach(needs)?;
        loop {
            let mut found = self.solve(needs, unit)?;
            self.programs += 1;
            let level = self.measure(needs, &mut found.solution);
            found.solution.objective = level;
            found.bound = found.bound.max(level);
            found.solution.pivots = self.pivots;
            let close = level >= found.bound * (1.0 - CLOSE);
            if close || self.programs >= self.limits.programs_max || !self.learn(needs, &found) {
                return Ok(found);
            }
        }
    }

    /// The level none can pass even alone; that of the neediest becomes a condition.
    fn reach(&mut self, needs: &Sorted) -> Result<f64, PackedError> {
        let needing = |class: &usize| needs.needs[*class].first().is_some_and(|need| *need > 0.0);
        let alone = |class: &usize| self.ready.best[*class] / needs.needs[*class][0];
        let classes = (0..self.ready.best.len()).filter(needing);
        let first = classes.min_by(|left, right| alone(left).total_cmp(&alone(right)));
        let first = first.ok_or(PackedError::Nobody)?;
        let reach = alone(&first);
        let cut = (first, ProfileCut { jobs: 1, speed: self.ready.best[first] });
        if !self.cuts.contains(&cut) {
            self.cuts.push(cut);
        }
        Ok(reach)
    }

    fn solve(&mut self, needs: &Sorted, unit: f64) -> Result<Found, PackedError> {
        let ready = self.ready;
        let base = (ready.packed.capacity.len() + ready.packed.classes.len()) as u32;
        let cuts = &self.cuts;
        let scale = |(class, cut): &(usize, ProfileCut)| 1.0 / (ready.best[*class] * cut.jobs as f64);
        let right = cuts.iter().map(|cut| cut.1.speed / ready.best[cut.0]).collect();
        let mut of_class: Vec<Vec<usize>> = vec![Vec::new(); ready.packed.classes.len()];
        cuts.iter().enumerate().for_each(|(at, (class, _))| of_class[*class].push(at));
        let entries = |live: &LiveColumns| {
            let of_part = |part: &PackedPart| {
                let (class, speed, time) = (part.class, part.speed, part.jobs * live.most);
                let above = of_class[class].iter().filter(move |at| cuts[**at].1.speed < speed);
                above.map(move |at| {
                    (base + *at as u32, -(speed - cuts[*at].1.speed) * time * scale(&cuts[*at]))
                })
            };
            live.parts.iter().flat_map(of_part).collect()
        };
        let mut rows = Rows::with(ready, right, entries)?;
        let demand = |(at, cut): (usize, &(usize, ProfileCut))| {
            (base + at as u32, unit * needs.sums[cut.0][cut.1.jobs - 1] * scale(cut))
        };
        let level = rows.simplex.column(cuts.iter().enumerate().map(demand).collect())?;
        let goal = |at| f64::from(u8::from(at == level));
        let dual = rows.simplex.maximise(&goal, self.limits.pivots_max)?;
        let bound = unit * rows.simplex.bound(&goal, &dual);
        let prices = rows.prices(&dual, unit);
        rows.most_speed(&self.limits)?;
        self.pivots += rows.simplex.pivots();
        let weights = self.weights(needs, &dual[base as usize..]);
        Ok(Found { solution: PackedSolution { prices, ..rows.solution() }, bound, weights })
    }

    /// β from the conditions' multipliers, so that Σ β·need is one at the needs solved for.
    fn weights(&self, needs: &Sorted, dual: &[f64]) -> Vec<Vec<f64>> {
        let classes = &self.ready.packed.classes;
        let mut weights: Vec<Vec<f64>> = classes.iter().map(|class| vec![0.0; class.jobs as usize]).collect();
        let mut total = 0.0;
        for ((class, cut), dual) in self.cuts.iter().zip(dual) {
            let weight = dual.max(0.0) / (self.ready.best[*class] * cut.jobs as f64);
            total += weight * needs.sums[*class][cut.jobs - 1];
            for at in &needs.order[*class][..cut.jobs] {
                weights[*class][*at as usize] += weight;
            }
        }
        if total > 0.0 {
            weights.iter_mut().flatten().for_each(|weight| *weight /= total);
        }
        weights
    }

    /// The time of each class by speed.
    fn segments(&self, class: usize, solution: &PackedSolution) -> Vec<Segment> {
        segments(self.ready, class, solution)
    }

    /// The level that each class's time gives its jobs, and the least of them.
    fn measure(&self, needs: &Sorted, solution: &mut PackedSolution) -> f64 {
        let mut least = f64::INFINITY;
        for (class, sums) in needs.sums.iter().enumerate() {
            let work = profile::work(&self.segments(class, solution), sums.len());
            let ratios = sums.iter().zip(&work[1..]).filter(|(sum, _)| **sum > 0.0);
            let level = ratios.map(|(sum, work)| work.0 / sum).fold(f64::INFINITY, f64::min);
            solution.levels[class] = if level.is_finite() { level } else { 0.0 };
            least = least.min(level);
        }
        least
    }

    /// Adds what was missed at the proven level; false where nothing new was.
    fn learn(&mut self, needs: &Sorted, found: &Found) -> bool {
        let before = self.cuts.len();
        for (class, needs) in needs.needs.iter().enumerate() {
            let demands = needs.iter().map(|need| need * found.bound);
            let missed = profile::missed(&self.segments(class, &found.solution), demands);
            if let Some((cut, _)) =
                missed.filter(|(cut, by)| *by > CLOSE / 2.0 && !self.cuts.contains(&(class, *cut)))
            {
                self.cuts.push((class, cut));
            }
        }
        self.cuts.len() > before
    }
}

/// The time that a class has been given, by speed, fastest first; options are groups.
pub(super) fn segments(ready: &Ready, class: usize, solution: &PackedSolution) -> Vec<Segment> {
    let mut segments = Vec::new();
    for live in ready.live.iter().filter(|live| solution.time[live.group] > 0.0) {
        for part in live.parts.iter().filter(|part| part.class == class) {
            let amount = part.jobs * solution.time[live.group];
            segments.push(Segment { speed: part.speed, amount, option: live.group });
        }
    }
    profile::sort(&mut segments);
    segments
}

/// The ratio that the unluckiest job has even if it always runs at its best.
fn alone(ready: &Ready, jobs: &[Vec<Progress>]) -> f64 {
    let mut rho = 0.0f64;
    for (jobs, best) in jobs.iter().zip(&ready.best).filter(|(_, best)| **best > 0.0) {
        for job in jobs {
            rho = rho.max((job.elapsed + job.steps / best) / job.isolated);
        }
    }
    rho
}

fn wanted(ready: &Ready, jobs: &[Vec<Progress>], rho: f64) -> Vec<Vec<f64>> {
    let need = |job: &Progress, best: f64| match job.steps > 0.0 {
        // Rounding may leave a job that sets ρ alone with a touch less time than it needs.
        true => need(job, rho).min(best),
        false => 0.0,
    };
    let of_class = |(jobs, best): (&Vec<Progress>, &f64)| jobs.iter().map(|job| need(job, *best)).collect();
    jobs.iter().zip(&ready.best).map(of_class).collect()
}

fn need(job: &Progress, rho: f64) -> f64 {
    let left = rho * job.isolated - job.elapsed;
    if left > 0.0 { job.steps / left } else { f64::INFINITY }
}

/// The least ρ that the weights do not exclude, not below the present one.
fn raise(jobs: &[Vec<Progress>], found: &Found, rho: f64) -> f64 {
    let all =
        || jobs.iter().flatten().zip(found.weights.iter().flatten()).filter(|(_, weight)| **weight > 0.0);
    let excluded = |rho: f64| all().map(|(job, weight)| weight * need(job, rho)).sum::<f64>() > found.bound;
    let mut high = rho;
    while excluded(high) && high.is_finite() {
        high *= 2.0;
    }
    let mut low = rho;
    while high - low > 1e-14 * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if excluded(middle) { low = middle } else { high = middle }
    }
    low
}

/// The worst ratio under the times found.
fn reached(ready: &Ready, jobs: &[Vec<Progress>], needs: &[Vec<f64>], solution: &PackedSolution) -> f64 {
    let sorted = Sorted::new(ready, needs);
    let mut rho = 0.0f64;
    for (class, order) in sorted.order.iter().enumerate() {
        let targets = profile::targets(&segments(ready, class, solution), &sorted.needs[class]);
        for (at, target) in order.iter().zip(targets) {
            let job = jobs[class][*at as usize];
            if job.steps > 0.0 {
                rho = rho.max((job.elapsed + job.steps / target) / job.isolated);
            }
        }
    }
    rho
}
