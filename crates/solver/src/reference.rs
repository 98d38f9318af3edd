//! The fair-share problems as general programs: the referee for the faster solvers, and the path for what
//! is not of their form. One column for each option of each job, one row for each job's time and each
//! kind's devices:
//!
//!   x ≥ 0,   Σ over a job's options of x ≤ 1,   Σ devices · x ≤ capacity of each kind.
//!
//! Thr_j = Σ speed · x over the options of j. All are solved by clarabel; complexity see [`crate::conic`].
//! `max_min`, `level`, `makespan` and `weighted_sum` are linear, `finish_time` has a second-order cone for
//! each job, `nash` an exponential cone for each job, `water_filling` is a linear program for each level.

use crate::conic::{Accuracy, AffineForm, Cone, ConicProgram};
use crate::error::SolveError;
use crate::lp::{Lp, LpAnswer, LpGoal, Sense};

/// What jobs can run on, by columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// Devices of each kind.
    pub capacity: Vec<f64>,
    /// Where each job's options begin; one more than there are jobs.
    pub first: Vec<u32>,
    /// Speed of each option.
    pub speed: Vec<f64>,
    /// Kinds and devices of each option.
    pub uses: Vec<Vec<(u32, f64)>>,
}

/// One way a job may run: its speed, and the devices of each kind that it takes.
pub type ReferenceChoice = (f64, Vec<(u32, f64)>);

/// An optimal point.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Fraction of time of each option.
    pub x: Vec<f64>,
    /// The problem's own objective.
    pub objective: f64,
    /// What the objective would gain by one more device of each kind.
    pub prices: Vec<f64>,
}

/// What a job must still do, and what it would need alone on its share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Work left, in units of speed × time.
    pub steps: f64,
    /// Time from arrival to end on a fair share of its own.
    pub isolated: f64,
    /// Time since arrival.
    pub elapsed: f64,
}

impl Instance {
    /// Builds from one list of options for each job.
    pub fn new(capacity: Vec<f64>, jobs: &[Vec<ReferenceChoice>]) -> Instance {
        let mut instance = Instance { capacity, first: vec![0], ..Instance::default() };
        for (speed, uses) in jobs.iter().flatten() {
            instance.speed.push(*speed);
            instance.uses.push(uses.clone());
        }
        let ends = jobs.iter().scan(0, |end, job| {
            *end += job.len() as u32;
            Some(*end)
        });
        instance.first.extend(ends);
        instance
    }

    /// How many jobs.
    pub fn jobs(&self) -> usize {
        self.first.len().saturating_sub(1)
    }

    fn options(&self, job: usize) -> std::ops::Range<usize> {
        self.first[job] as usize..self.first[job + 1] as usize
    }

    fn terms(&self, job: usize) -> Vec<(usize, f64)> {
        self.options(job).map(|option| (option, self.speed[option])).collect()
    }

    /// The speed of each job under `x`.
    pub fn speeds(&self, x: &[f64]) -> Vec<f64> {
        let of = |job| self.options(job).map(|option| self.speed[option] * x[option]).sum();
        (0..self.jobs()).map(of).collect()
    }

    /// Columns of one length and in range, so that nothing below can miss.
    fn check(&self, wanted: &[(&'static str, usize)]) -> Result<(), SolveError> {
        let options = self.first.last().map_or(0, |end| *end as usize);
        let equal = |what, is, wanted| match is == wanted {
            true => Ok(()),
            false => Err(SolveError::Length { what, is, wanted }),
        };
        equal("speed", self.speed.len(), options)?;
        equal("uses", self.uses.len(), options)?;
        equal("first", usize::from(self.first.is_sorted()), 1)?;
        let far = self.uses.iter().flatten().find(|(kind, _)| *kind as usize >= self.capacity.len());
        if let Some((kind, _)) = far {
            return Err(SolveError::Length {
                what: "capacity",
                is: self.capacity.len(),
                wanted: *kind as usize + 1,
            });
        }
        wanted.iter().try_for_each(|(what, is)| equal(what, *is, self.jobs()))
    }

    /// Time and device rows, which every problem has; the kinds' rows come after the jobs'.
    fn rows(&self) -> Vec<(Vec<(usize, f64)>, f64)> {
        let time = |job| (self.options(job).map(|option| (option, 1.0)).collect(), 1.0);
        let mut rows: Vec<_> = (0..self.jobs()).map(time).collect();
        let kinds = rows.len();
        rows.extend(self.capacity.iter().map(|capacity| (Vec::new(), *capacity)));
        for (option, uses) in self.uses.iter().enumerate() {
            uses.iter().for_each(|(kind, devices)| rows[kinds + *kind as usize].0.push((option, *devices)));
        }
        rows
    }

    fn lp(&self, goal: LpGoal) -> Lp {
        let mut lp = Lp::new(goal);
        for _ in &self.speed {
            lp.variable(0.0);
        }
        for (terms, right) in self.rows() {
            lp.row(terms, Sense::Le, right);
        }
        lp
    }

    fn shares(&self, answer: LpAnswer) -> Shares {
        let prices = answer.dual[self.jobs()..self.jobs() + self.capacity.len()].to_vec();
        Shares { x: answer.x[..self.speed.len()].to_vec(), objective: answer.objective, prices }
    }

    /// max λ with Thr_j ≥ λ·weight_j.
    pub fn max_min(&self, weights: &[f64], accuracy: &Accuracy) -> Result<Shares, SolveError> {
        self.level(weights, &vec![0.0; self.jobs()], accuracy)
    }

    /// max λ with Thr_j ≥ λ·weight_j and Thr_j ≥ floor_j. A weight of zero leaves a job to its floor.
    pub fn level(&self, weights: &[f64], floors: &[f64], accuracy: &Accuracy) -> Result<Shares, SolveError> {
        self.check(&[("weights", weights.len()), ("floors", floors.len())])?;
        let mut lp = self.lp(LpGoal::Maximise);
        let level = lp.variable(1.0);
        for (job, (weight, floor)) in weights.iter().zip(floors).enumerate() {
            let mut terms = self.terms(job);
            if *floor > 0.0 {
                lp.row(terms.clone(), Sense::Ge, *floor);
            }
            if *weight > 0.0 {
                terms.push((level, -weight));
                lp.row(terms, Sense::Ge, 0.0);
            }
        }
        Ok(self.shares(lp.solve(accuracy)?))
    }

    /// max Σ value·x over options with Thr_j ≥ floor_j.
    pub fn weighted_sum(
        &self,
        values: &[f64],
        floors: &[f64],
        accuracy: &Accuracy,
    ) -> Result<Shares, SolveError> {
        self.check(&[("floors", floors.len())])?;
        if values.len() != self.speed.len() {
            return Err(SolveError::Length { what: "values", is: values.len(), wanted: self.speed.len() });
        }
        let mut lp = self.lp(LpGoal::Maximise);
        lp.aim(LpGoal::Maximise, |option| values[option]);
        for (job, floor) in floors.iter().enumerate().filter(|(_, floor)| **floor > 0.0) {
            lp.row(self.terms(job), Sense::Ge, *floor);
        }
        Ok(self.shares(lp.solve(accuracy)?))
    }

    /// min T with Thr_j ≥ steps_j / T: one program in λ = 1/T. Prices are those of λ.
    pub fn makespan(&self, steps: &[f64], accuracy: &Accuracy) -> Result<Shares, SolveError> {
        // Scaled to the largest, or λ would be lost among the tolerances.
        let most = steps.iter().fold(0.0, |most: f64, steps| most.max(*steps));
        let scaled: Vec<f64> = steps.iter().map(|steps| steps / most).collect();
        let shares = self.max_min(&scaled, accuracy)?;
        Ok(Shares { objective: most / shares.objective, ..shares })
    }

    /// max Σ weight_j · log Thr_j.
    pub fn nash(&self, weights: &[f64], accuracy: &Accuracy) -> Result<Shares, SolveError> {
        self.check(&[("weights", weights.len())])?;
        let mut program = self.program();
        for (job, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let log = program.variable(-weight);
            let one = AffineForm::default().plus(1.0);
            program.demand(
                Cone::Exponential,
                [AffineForm::of([(log, 1.0)]), one, AffineForm::of(self.terms(job))],
            );
        }
        self.conic(&program, -1.0, accuracy)
    }

    /// min ρ with (elapsed_j + steps_j / Thr_j) / isolated_j ≤ ρ. With u = Thr_j and
    /// v = ρ·isolated_j − elapsed_j that is u·v ≥ steps_j: the cone |(2√steps, u − v)| ≤ u + v, here with
    /// u and v scaled by what the job would have alone, so that both are near one.
    pub fn finish_time(&self, jobs: &[Progress], accuracy: &Accuracy) -> Result<Shares, SolveError> {
        self.check(&[("jobs", jobs.len())])?;
        let mut program = self.program();
        let rho = program.variable(1.0);
        for (job, progress) in jobs.iter().enumerate().filter(|(_, progress)| progress.steps > 0.0) {
            let alone = progress.steps / progress.isolated;
            let speed: Vec<_> =
                self.terms(job).into_iter().map(|(option, speed)| (option, speed / alone)).collect();
            let (mut sum, mut difference) = (speed.clone(), speed);
            sum.push((rho, 1.0));
            difference.push((rho, -1.0));
            let waited = progress.elapsed / progress.isolated;
            let two = AffineForm::default().plus(2.0);
            program.demand(
                Cone::SecondOrder,
                [AffineForm::of(sum).plus(-waited), two, AffineForm::of(difference).plus(waited)],
            );
        }
        self.conic(&program, 1.0, accuracy)
    }

    /// The rows as a conic program, not yet with an objective.
    fn program(&self) -> ConicProgram {
        let mut program = ConicProgram::default();
        for _ in &self.speed {
            program.variable(0.0);
        }
        let slack = |(terms, right): (Vec<(usize, f64)>, f64)| {
            AffineForm::of(terms.into_iter().map(|(at, value)| (at, -value)).collect::<Vec<_>>()).plus(right)
        };
        program.demand(Cone::NotNegative, self.rows().into_iter().map(slack));
        program
            .demand(Cone::NotNegative, (0..self.speed.len()).map(|option| AffineForm::of([(option, 1.0)])));
        program
    }

    fn conic(&self, program: &ConicProgram, sign: f64, accuracy: &Accuracy) -> Result<Shares, SolveError> {
        let answer = program.solve(accuracy)?;
        let prices = answer.dual[self.jobs()..self.jobs() + self.capacity.len()].to_vec();
        Ok(Shares { x: answer.x[..self.speed.len()].to_vec(), objective: sign * answer.objective, prices })
    }

    /// Lexicographic max-min: raise all, fix who cannot rise further, raise the rest, to the end. Returns
    /// the last shares and the level of each job. Who cannot rise: whose best speed, with everyone else
    /// held at the level, is that level; one program for each job in question and round, so for tests.
    pub fn water_filling(
        &self,
        weights: &[f64],
        accuracy: &Accuracy,
    ) -> Result<(Shares, Vec<f64>), SolveError> {
        self.check(&[("weights", weights.len())])?;
        let mut active: Vec<f64> = weights.to_vec();
        let mut levels = vec![0.0; self.jobs()];
        loop {
            let floors: Vec<f64> = floors(weights, &active, &levels);
            let shares = self.level(&active, &floors, accuracy)?;
            let rising: Vec<usize> = (0..self.jobs()).filter(|job| active[*job] > 0.0).collect();
            rising.iter().for_each(|job| levels[*job] = shares.objective);
            let mut stuck = Vec::new();
            for job in &rising {
                if self.best(*job, weights, &levels, accuracy)? <= levels[*job] * (1.0 + 1e-6) + 1e-9 {
                    stuck.push(*job);
                }
            }
            stuck.iter().for_each(|job| active[*job] = 0.0);
            if stuck.is_empty() || active.iter().all(|weight| *weight == 0.0) {
                return Ok((shares, levels));
            }
        }
    }

    /// How far one job could rise with all at their levels.
    fn best(
        &self,
        job: usize,
        weights: &[f64],
        levels: &[f64],
        accuracy: &Accuracy,
    ) -> Result<f64, SolveError> {
        let mut values = vec![0.0; self.speed.len()];
        self.options(job).for_each(|option| values[option] = self.speed[option] / weights[job]);
        let floors = floors(weights, &vec![0.0; weights.len()], levels);
        Ok(self.weighted_sum(&values, &floors, accuracy)?.objective)
    }
}

/// What those no longer rising keep, a touch below, so that rounding leaves a point.
fn floors(weights: &[f64], active: &[f64], levels: &[f64]) -> Vec<f64> {
    let floor = |((weight, active), level): ((&f64, &f64), &f64)| match *active > 0.0 {
        true => 0.0,
        false => weight * level * (1.0 - 1e-8),
    };
    weights.iter().zip(active).zip(levels).map(floor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two jobs, speeds (2, 1, ½) and (3, 2, 1) on three kinds, normalised by the mean over the devices.
    fn two_jobs(capacity: [f64; 3]) -> (Instance, [f64; 2]) {
        let raw = [[2.0, 1.0, 0.5], [3.0, 2.0, 1.0]];
        let devices: f64 = capacity.iter().sum();
        let mean = raw.map(|speeds| speeds.iter().zip(&capacity).map(|(s, c)| s * c).sum::<f64>() / devices);
        let options = |speeds: &[f64; 3]| {
            speeds.iter().enumerate().map(|(kind, speed)| (*speed, vec![(kind as u32, 1.0)])).collect()
        };
        (Instance::new(capacity.to_vec(), &raw.iter().map(options).collect::<Vec<_>>()), mean)
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-6 * right.abs().max(1.0)
    }

    #[test]
    fn closed_forms() {
        let accuracy = Accuracy::default();
        let (one, mean) = two_jobs([1.0, 1.0, 1.0]);
        assert!(near(one.max_min(&mean, &accuracy).unwrap().objective, 24.0 / 19.0));
        let (other, mean) = two_jobs([1.0, 2.0, 3.0]);
        assert!(near(other.max_min(&mean, &accuracy).unwrap().objective, 48.0 / 31.0));
        let sum = one.weighted_sum(&one.speed, &[0.0; 2], &accuracy).unwrap();
        assert!(near(sum.objective, 4.0));
    }

    #[test]
    fn finish_time_is_the_inverse_of_max_min_at_the_start() {
        for (capacity, rho) in [([1.0, 1.0, 1.0], 19.0 / 24.0), ([1.0, 2.0, 3.0], 31.0 / 48.0)] {
            let (instance, mean) = two_jobs(capacity);
            // The share of one of two jobs is half of each kind, cut to one device's time.
            let share = (capacity.iter().sum::<f64>() / 2.0).min(1.0) / capacity.iter().sum::<f64>();
            let job = |steps: f64, mean: f64| {
                let devices: f64 = capacity.iter().sum();
                Progress { steps, isolated: steps / (mean * devices * share), elapsed: 0.0 }
            };
            let jobs = [job(300.0, mean[0]), job(500.0, mean[1])];
            let answer = instance.finish_time(&jobs, &Accuracy::default()).unwrap();
            assert!(near(answer.objective, rho), "{} for {rho}", answer.objective);
        }
    }

    #[test]
    fn nash_gives_equal_jobs_equal_time_and_prices_the_devices() {
        let job = || vec![(2.0, vec![(0, 1.0)])];
        let instance = Instance::new(vec![1.0], &[job(), job()]);
        let answer = instance.nash(&[1.0, 3.0], &Accuracy::default()).unwrap();
        // The objective is flat around its best point: half the digits are what there is to have.
        assert!((answer.x[0] - 0.25).abs() < 1e-4 && (answer.x[1] - 0.75).abs() < 1e-4, "{answer:?}");
        assert!((answer.prices[0] - 4.0).abs() < 1e-3, "Σ weights / capacity: {answer:?}");
    }

    #[test]
    fn makespan_is_the_longest_job_or_the_fullest_kind() {
        let job = |speed| vec![(speed, vec![(0, 1.0)])];
        let instance = Instance::new(vec![1.0], &[job(1.0), job(2.0)]);
        assert!(near(instance.makespan(&[30.0, 100.0], &Accuracy::default()).unwrap().objective, 80.0));
        let instance = Instance::new(vec![9.0], &[job(1.0), job(2.0)]);
        assert!(near(instance.makespan(&[30.0, 100.0], &Accuracy::default()).unwrap().objective, 50.0));
    }

    #[test]
    fn water_rises_where_it_can() {
        // Two jobs share a slow kind; the third alone can use the fast one.
        let job = |kind| vec![(1.0, vec![(kind, 1.0)])];
        let instance = Instance::new(vec![1.0, 1.0], &[job(0), job(0), job(1)]);
        let (_, levels) = instance.water_filling(&[1.0; 3], &Accuracy::default()).unwrap();
        assert!(near(levels[0], 0.5) && near(levels[1], 0.5) && near(levels[2], 1.0), "{levels:?}");
    }

    #[test]
    fn floors_that_cannot_be_met_are_infeasible_and_short_columns_are_named() {
        let instance = Instance::new(vec![1.0], &[vec![(1.0, vec![(0, 1.0)])], vec![(1.0, vec![(0, 1.0)])]]);
        let accuracy = Accuracy::default();
        assert_eq!(instance.level(&[1.0; 2], &[0.7, 0.7], &accuracy), Err(SolveError::Infeasible));
        assert!(matches!(
            instance.max_min(&[1.0], &accuracy),
            Err(SolveError::Length { what: "weights", .. })
        ));
    }
}
