//! Convex programs over cones, for what is neither a market nor a linear program:
//!
//!   minimise  c·x   subject to   (affine expressions of x) ∈ cone,  cone by cone.
//!
//! Solved by clarabel's interior point method. It reads no clock here, has one thread and fixed
//! settings, and every tolerance is an argument, so the same program gives the same answer; linear and
//! second-order cones use only additions, products, quotients and square roots and so give the same
//! bits everywhere, while exponential and power cones take logarithms from the platform. A plan that
//! must be equal on every machine therefore uses those two as a reference only.
//!
//! Complexity: ten to fifty iterations, each a sparse factorisation of all rows and columns.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus, SupportedConeT,
};

use crate::error::SolveError;

/// How long and how closely an interior point method may work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Iterations at most.
    pub iterations_max: u32,
    /// Relative and absolute gap, and infeasibility, at which the answer is taken.
    pub tolerance: f64,
}

impl Default for Accuracy {
    fn default() -> Accuracy {
        Accuracy { iterations_max: 200, tolerance: 1e-9 }
    }
}

/// What the answer is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Optimal to the tolerance asked for.
    Optimal,
    /// Optimal to about four digits: the method could get no closer.
    Nearly,
}

/// `constant + Σ coefficient · x[column]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AffineForm {
    /// The part without variables.
    pub constant: f64,
    /// Column and coefficient; a column may come twice and then counts twice.
    pub terms: Vec<(usize, f64)>,
}

impl AffineForm {
    /// Terms without a constant.
    pub fn of(terms: impl Into<Vec<(usize, f64)>>) -> AffineForm {
        AffineForm { constant: 0.0, terms: terms.into() }
    }

    /// The same with a constant.
    pub fn plus(mut self, constant: f64) -> AffineForm {
        self.constant += constant;
        self
    }
}

/// Where a list of expressions must lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cone {
    /// Each is zero.
    Zero,
    /// Each is at least zero.
    NotNegative,
    /// The first is at least the length of the vector of the others.
    SecondOrder,
    /// Three, (u, v, w) with v > 0 and v·exp(u/v) ≤ w; with v = 1, u ≤ log w.
    Exponential,
    /// Three, (u, v, w) with u^α · v^(1−α) ≥ |w|.
    Power(f64),
}

/// A program being written.
#[derive(Clone, Debug, Default)]
pub struct ConicProgram {
    cost: Vec<f64>,
    rows: Vec<AffineForm>,
    cones: Vec<(Cone, usize)>,
}

/// The point found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// One value a variable.
    pub x: Vec<f64>,
    /// One multiplier a row, in the order of adding; for `NotNegative` rows it is not negative and says
    /// by how much the cost falls for each unit that the row's expression is loosened.
    pub dual: Vec<f64>,
    /// c·x.
    pub objective: f64,
    /// What the answer is worth.
    pub status: Status,
    /// Iterations used.
    pub iterations: u32,
}

impl ConicProgram {
    /// Adds a free variable with its cost and returns its column.
    pub fn variable(&mut self, cost: f64) -> usize {
        self.cost.push(cost);
        self.cost.len() - 1
    }

    /// Demands that the expressions lie in the cone.
    pub fn demand(&mut self, cone: Cone, rows: impl IntoIterator<Item = AffineForm>) {
        let before = self.rows.len();
        self.rows.extend(rows);
        self.cones.push((cone, self.rows.len() - before));
    }

    /// Minimises.
    pub fn solve(&self, accuracy: &Accuracy) -> Result<Answer, SolveError> {
        self.check()?;
        let columns = self.cost.len();
        let (mut row, mut column, mut value) = (Vec::new(), Vec::new(), Vec::new());
        for (at, affine) in self.rows.iter().enumerate() {
            for (variable, coefficient) in &affine.terms {
                row.push(at);
                column.push(*variable);
                value.push(-coefficient);
            }
        }
        let matrix = CscMatrix::new_from_triplets(self.rows.len(), columns, row, column, value);
        let right: Vec<f64> = self.rows.iter().map(|affine| affine.constant).collect();
        let quadratic = CscMatrix::zeros((columns, columns));
        let mut solver =
            DefaultSolver::new(&quadratic, &self.cost, &matrix, &right, &self.cones(), settings(accuracy)?)
                .map_err(|error| SolveError::Numerical(error.to_string()))?;
        solver.solve();
        let solution = solver.solution;
        let status = status(solution.status)?;
        let objective = self.cost.iter().zip(&solution.x).map(|(cost, x)| cost * x).sum();
        Ok(Answer { x: solution.x, dual: solution.z, objective, status, iterations: solution.iterations })
    }

    fn cones(&self) -> Vec<SupportedConeT<f64>> {
        let cone = |(cone, size): &(Cone, usize)| match cone {
            Cone::Zero => SupportedConeT::ZeroConeT(*size),
            Cone::NotNegative => SupportedConeT::NonnegativeConeT(*size),
            Cone::SecondOrder => SupportedConeT::SecondOrderConeT(*size),
            Cone::Exponential => SupportedConeT::ExponentialConeT(),
            Cone::Power(alpha) => SupportedConeT::PowerConeT(*alpha),
        };
        self.cones.iter().filter(|(_, size)| *size > 0).map(cone).collect()
    }

    /// clarabel trusts its input: what would make it panic or answer nonsense is refused here.
    fn check(&self) -> Result<(), SolveError> {
        if let Some(at) = self.cost.iter().position(|cost| !cost.is_finite()) {
            return Err(SolveError::NotANumber { what: "cost of variable", at });
        }
        for (at, row) in self.rows.iter().enumerate() {
            let finite = row.constant.is_finite() && row.terms.iter().all(|(_, value)| value.is_finite());
            if !finite {
                return Err(SolveError::NotANumber { what: "row", at });
            }
            if row.terms.iter().any(|(column, _)| *column >= self.cost.len()) {
                return Err(SolveError::NoSuchVariable { row: at });
            }
        }
        for (at, (cone, size)) in self.cones.iter().enumerate() {
            let wanted = match cone {
                Cone::Exponential => *size == 3,
                Cone::Power(alpha) => *size == 3 && *alpha > 0.0 && *alpha < 1.0,
                Cone::SecondOrder => *size >= 2,
                Cone::Zero | Cone::NotNegative => true,
            };
            if !wanted {
                return Err(SolveError::ConeSize { cone: at, size: *size });
            }
        }
        Ok(())
    }
}

fn settings(accuracy: &Accuracy) -> Result<DefaultSettings<f64>, SolveError> {
    DefaultSettingsBuilder::default()
        .verbose(false)
        .max_threads(1)
        .direct_solve_method("qdldl".to_owned())
        .max_iter(accuracy.iterations_max)
        .tol_gap_abs(accuracy.tolerance)
        .tol_gap_rel(accuracy.tolerance)
        .tol_feas(accuracy.tolerance)
        .build()
        .map_err(|error| SolveError::Numerical(error.to_string()))
}

fn status(status: SolverStatus) -> Result<Status, SolveError> {
    match status {
        SolverStatus::Solved => Ok(Status::Optimal),
        SolverStatus::AlmostSolved => Ok(Status::Nearly),
        SolverStatus::PrimalInfeasible | SolverStatus::AlmostPrimalInfeasible => Err(SolveError::Infeasible),
        SolverStatus::DualInfeasible | SolverStatus::AlmostDualInfeasible => Err(SolveError::Unbounded),
        SolverStatus::MaxIterations | SolverStatus::MaxTime => Err(SolveError::Limit),
        other => Err(SolveError::Numerical(format!("{other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_point_of_a_disc() {
        // The smallest u + v on the unit disc lies at −1/√2 each.
        let mut program = ConicProgram::default();
        let (u, v) = (program.variable(1.0), program.variable(1.0));
        let one = AffineForm::default().plus(1.0);
        program.demand(Cone::SecondOrder, [one, AffineForm::of([(u, 1.0)]), AffineForm::of([(v, 1.0)])]);
        let answer = program.solve(&Accuracy::default()).unwrap();
        assert!((answer.objective + 2f64.sqrt()).abs() < 1e-7, "{answer:?}");
    }

    #[test]
    fn a_logarithm_is_an_exponential_cone() {
        // max log w with w ≤ 5: minimise −u with u ≤ log w.
        let mut program = ConicProgram::default();
        let (u, w) = (program.variable(-1.0), program.variable(0.0));
        let one = AffineForm::default().plus(1.0);
        program.demand(Cone::Exponential, [AffineForm::of([(u, 1.0)]), one, AffineForm::of([(w, 1.0)])]);
        program.demand(Cone::NotNegative, [AffineForm::of([(w, -1.0)]).plus(5.0)]);
        let answer = program.solve(&Accuracy::default()).unwrap();
        assert!((answer.x[u] - libm::log(5.0)).abs() < 1e-7, "{answer:?}");
        assert!((answer.dual[3] - 0.2).abs() < 1e-6, "the price of the limit is 1/w: {answer:?}");
    }

    #[test]
    fn a_square_root_is_a_power_cone() {
        let mut program = ConicProgram::default();
        let (u, w) = (program.variable(0.0), program.variable(-1.0));
        let one = AffineForm::default().plus(1.0);
        program.demand(Cone::Power(0.5), [AffineForm::of([(u, 1.0)]), one, AffineForm::of([(w, 1.0)])]);
        program.demand(Cone::NotNegative, [AffineForm::of([(u, -1.0)]).plus(9.0)]);
        assert!((program.solve(&Accuracy::default()).unwrap().x[w] - 3.0).abs() < 1e-6);
    }

    #[test]
    fn what_makes_no_program_is_refused_by_name() {
        let limits = Accuracy::default();
        let mut program = ConicProgram::default();
        program.variable(f64::NAN);
        assert_eq!(program.solve(&limits), Err(SolveError::NotANumber { what: "cost of variable", at: 0 }));
        let mut program = ConicProgram::default();
        program.demand(Cone::NotNegative, [AffineForm::of([(3, 1.0)])]);
        assert_eq!(program.solve(&limits), Err(SolveError::NoSuchVariable { row: 0 }));
        let mut program = ConicProgram::default();
        program.demand(Cone::Exponential, [AffineForm::default()]);
        assert_eq!(program.solve(&limits), Err(SolveError::ConeSize { cone: 0, size: 1 }));
    }

    #[test]
    fn limits_are_kept_and_said() {
        let mut program = ConicProgram::default();
        let u = program.variable(-1.0);
        program
            .demand(Cone::NotNegative, [AffineForm::of([(u, -1.0)]).plus(9.0), AffineForm::of([(u, 1.0)])]);
        let one = Accuracy { iterations_max: 1, ..Accuracy::default() };
        assert_eq!(program.solve(&one), Err(SolveError::Limit));
    }
}
