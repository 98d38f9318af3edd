//! Linear programs, written row by row:
//!
//!   maximise or minimise  c·x   subject to   a·x ≤, ≥ or = b,   0 ≤ x (or another lower bound) ≤ u.
//!
//! Solved through [`crate::conic`] by clarabel. An interior point method ends near the middle of the
//! optimal face, so a program with several best points must say in its objective which one it wants.
//! Complexity: see there.

use crate::conic::{Accuracy, AffineForm, Cone, ConicProgram, Status};
use crate::error::SolveError;

/// Up or down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LpGoal {
    /// The largest value.
    #[default]
    Maximise,
    /// The smallest value.
    Minimise,
}

/// How a row's sum compares with its right-hand side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// At most.
    Le,
    /// At least.
    Ge,
    /// Equal.
    Eq,
}

/// A variable: its value in the objective and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LpColumn {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A row as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LpRow {
    pub(crate) terms: Vec<(usize, f64)>,
    pub(crate) sense: Sense,
    pub(crate) right: f64,
}

/// A linear program being written.
#[derive(Clone, Debug, Default)]
pub struct Lp {
    goal: LpGoal,
    pub(crate) columns: Vec<LpColumn>,
    pub(crate) rows: Vec<LpRow>,
}

/// The best point.
#[derive(Clone, Debug, PartialEq)]
pub struct LpAnswer {
    /// One value a variable.
    pub x: Vec<f64>,
    /// By how much the objective rises for each unit added to a row's right-hand side.
    pub dual: Vec<f64>,
    /// c·x.
    pub objective: f64,
    /// What the answer is worth.
    pub status: Status,
    /// Iterations used.
    pub iterations: u32,
}

impl Lp {
    /// An empty program.
    pub fn new(goal: LpGoal) -> Lp {
        Lp { goal, ..Lp::default() }
    }

    /// The direction.
    pub fn goal(&self) -> LpGoal {
        self.goal
    }

    /// Adds a variable x ≥ 0 and returns its column.
    pub fn variable(&mut self, value: f64) -> usize {
        self.bounded(value, 0.0, f64::INFINITY)
    }

    /// Adds a variable with bounds, either of which may be infinite.
    pub fn bounded(&mut self, value: f64, low: f64, high: f64) -> usize {
        self.columns.push(LpColumn { value, low, high });
        self.columns.len() - 1
    }

    /// Adds a row and returns its place.
    pub fn row(&mut self, terms: impl Into<Vec<(usize, f64)>>, sense: Sense, right: f64) -> usize {
        self.rows.push(LpRow { terms: terms.into(), sense, right });
        self.rows.len() - 1
    }

    /// Replaces the objective, for a second goal on the same rows.
    pub fn aim(&mut self, goal: LpGoal, value: impl Fn(usize) -> f64) {
        self.goal = goal;
        for (at, column) in self.columns.iter_mut().enumerate() {
            column.value = value(at);
        }
    }

    /// Solves.
    pub fn solve(&self, accuracy: &Accuracy) -> Result<LpAnswer, SolveError> {
        let answer = self.program().solve(accuracy)?;
        let sign = self.sign();
        // The program's multipliers say how the cost falls as the row's expression is loosened.
        let dual = |(row, dual): (&LpRow, &f64)| match row.sense {
            Sense::Le | Sense::Eq => -sign * dual,
            Sense::Ge => sign * dual,
        };
        Ok(LpAnswer {
            dual: self.rows.iter().zip(&answer.dual).map(dual).collect(),
            objective: sign * answer.objective,
            x: answer.x,
            status: answer.status,
            iterations: answer.iterations,
        })
    }

    fn sign(&self) -> f64 {
        match self.goal {
            LpGoal::Maximise => -1.0,
            LpGoal::Minimise => 1.0,
        }
    }

    /// Rows first and in order, one cone for each run of equal kind; then the bounds.
    fn program(&self) -> ConicProgram {
        let mut program = ConicProgram::default();
        for column in &self.columns {
            program.variable(self.sign() * column.value);
        }
        for run in self.rows.chunk_by(|left, right| cone(left.sense) == cone(right.sense)) {
            program.demand(cone(run[0].sense), run.iter().map(slack));
        }
        let low = |(at, column): (usize, &LpColumn)| {
            (column.low > f64::NEG_INFINITY).then(|| AffineForm::of([(at, 1.0)]).plus(-column.low))
        };
        let high = |(at, column): (usize, &LpColumn)| {
            (column.high < f64::INFINITY).then(|| AffineForm::of([(at, -1.0)]).plus(column.high))
        };
        program.demand(Cone::NotNegative, self.columns.iter().enumerate().filter_map(low));
        program.demand(Cone::NotNegative, self.columns.iter().enumerate().filter_map(high));
        program
    }
}

fn cone(sense: Sense) -> Cone {
    match sense {
        Sense::Eq => Cone::Zero,
        Sense::Le | Sense::Ge => Cone::NotNegative,
    }
}

/// What is left of a row: not negative where it holds.
fn slack(row: &LpRow) -> AffineForm {
    match row.sense {
        Sense::Ge => AffineForm::of(row.terms.clone()).plus(-row.right),
        Sense::Le | Sense::Eq => {
            let terms: Vec<_> = row.terms.iter().map(|(column, value)| (*column, -value)).collect();
            AffineForm::of(terms).plus(row.right)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// max 3u + 2v with u + v ≤ 4, u + 3v ≤ 7, u ≤ 3: 11 at (3, 1), prices 2, 0 and 1.
    fn textbook() -> Lp {
        let mut lp = Lp::new(LpGoal::Maximise);
        let (u, v) = (lp.variable(3.0), lp.variable(2.0));
        lp.row([(u, 1.0), (v, 1.0)], Sense::Le, 4.0);
        lp.row([(u, 1.0), (v, 3.0)], Sense::Le, 7.0);
        lp.row([(u, -1.0)], Sense::Ge, -3.0);
        lp
    }

    #[test]
    fn value_point_and_prices() {
        let answer = textbook().solve(&Accuracy::default()).unwrap();
        let near = |left: &[f64], right: &[f64]| left.iter().zip(right).all(|(l, r)| (l - r).abs() < 1e-6);
        assert!((answer.objective - 11.0).abs() < 1e-7, "{answer:?}");
        assert!(near(&answer.x, &[3.0, 1.0]), "{answer:?}");
        assert!(near(&answer.dual, &[2.0, 0.0, -1.0]), "{answer:?}");
    }

    #[test]
    fn equalities_bounds_and_the_other_direction() {
        let mut lp = Lp::new(LpGoal::Minimise);
        let (u, v) = (lp.bounded(1.0, -2.0, 5.0), lp.bounded(3.0, 0.5, 2.0));
        lp.row([(u, 1.0), (v, 1.0)], Sense::Eq, 4.0);
        let answer = lp.solve(&Accuracy::default()).unwrap();
        assert!((answer.objective - 5.0).abs() < 1e-6, "3.5 + 3 · 0.5: {answer:?}");
        assert!((answer.dual[0] - 1.0).abs() < 1e-6, "one more costs one u: {answer:?}");
    }

    #[test]
    fn no_point_and_no_end_are_told_apart() {
        let mut lp = textbook();
        lp.row([(0, 1.0)], Sense::Ge, 9.0);
        assert_eq!(lp.solve(&Accuracy::default()), Err(SolveError::Infeasible));
        let mut lp = Lp::new(LpGoal::Maximise);
        lp.variable(1.0);
        assert_eq!(lp.solve(&Accuracy::default()), Err(SolveError::Unbounded));
    }

    #[test]
    fn equal_input_gives_equal_bits() {
        let accuracy = Accuracy::default();
        assert_eq!(textbook().solve(&accuracy), textbook().solve(&accuracy));
    }
}
