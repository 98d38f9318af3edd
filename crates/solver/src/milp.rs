//! Small integer programs: an [`Lp`] some of whose variables are whole numbers, by branch and bound
//! (microlp). The limit is a number of nodes, never a time, so the same program gives the same answer.
//!
//! Complexity: exponential at worst; meant for tens of integer variables, such as which jobs to admit.
//! Each node is a simplex re-solve.

use microlp::{ComparisonOp, Error, OptimizationDirection, Problem, SolveOptions, Variable};

use crate::error::SolveError;
use crate::lp::{Lp, LpGoal, Sense};

/// How long a search may go on, and how close is close enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BranchSearch {
    /// Nodes at most.
    pub nodes_max: u64,
    /// The relative distance from the best bound at which the search may stop.
    pub gap: f64,
}

impl Default for BranchSearch {
    fn default() -> BranchSearch {
        BranchSearch { nodes_max: 100_000, gap: 0.0 }
    }
}

/// The best point found.
#[derive(Clone, Debug, PartialEq)]
pub struct MilpAnswer {
    /// One value a variable; whole ones are rounded.
    pub x: Vec<f64>,
    /// c·x.
    pub objective: f64,
    /// No point can be better than this; equal to the objective where optimality is proven.
    pub bound: f64,
    /// Nodes searched.
    pub nodes: u64,
}

/// Solves `lp` with the variables in `whole` restricted to whole numbers. These need finite bounds that
/// fit in 32 bits.
pub fn solve(lp: &Lp, whole: &[usize], search: &BranchSearch) -> Result<MilpAnswer, SolveError> {
    let (problem, variables) = problem(lp, whole)?;
    let mut options = SolveOptions::default();
    options.node_limit = Some(search.nodes_max);
    options.mip_gap = search.gap;
    let outcome = problem.solve_with(options).map_err(error)?;
    let stats = outcome.stats();
    let Some(solution) = outcome.solution() else { return Err(SolveError::Limit) };
    let mut x: Vec<f64> = variables.iter().map(|variable| solution.var_value(*variable)).collect();
    whole.iter().for_each(|at| x[*at] = x[*at].round());
    let objective = lp.columns.iter().zip(&x).map(|(column, x)| column.value * x).sum();
    let bound = if outcome.is_optimal() { objective } else { stats.best_bound.unwrap_or(f64::NAN) };
    Ok(MilpAnswer { x, objective, bound, nodes: stats.nodes_solved })
}

fn problem(lp: &Lp, whole: &[usize]) -> Result<(Problem, Vec<Variable>), SolveError> {
    let mut problem = Problem::new(match lp.goal() {
        LpGoal::Maximise => OptimizationDirection::Maximize,
        LpGoal::Minimise => OptimizationDirection::Minimize,
    });
    let mut is_whole = vec![false; lp.columns.len()];
    for at in whole {
        *is_whole.get_mut(*at).ok_or(SolveError::NoSuchVariable { row: *at })? = true;
    }
    let mut variables = Vec::with_capacity(lp.columns.len());
    for (at, column) in lp.columns.iter().enumerate() {
        let variable = match is_whole[at] {
            true => problem.add_integer_var(column.value, bounds(column.low, column.high, at)?),
            false => problem.add_var(column.value, (column.low, column.high)),
        };
        variables.push(variable);
    }
    for (at, row) in lp.rows.iter().enumerate() {
        let term = |(column, value): &(usize, f64)| Some((*variables.get(*column)?, *value));
        let terms: Option<Vec<_>> = row.terms.iter().map(term).collect();
        let terms = terms.ok_or(SolveError::NoSuchVariable { row: at })?;
        problem.add_constraint(&terms[..], compare(row.sense), row.right);
    }
    Ok((problem, variables))
}

fn bounds(low: f64, high: f64, at: usize) -> Result<(i32, i32), SolveError> {
    let fits = |value: f64| value.is_finite() && value.abs() < f64::from(i32::MAX);
    match fits(low) && fits(high) {
        true => Ok((low.ceil() as i32, high.floor() as i32)),
        false => Err(SolveError::NotANumber { what: "bounds of whole variable", at }),
    }
}

fn compare(sense: Sense) -> ComparisonOp {
    match sense {
        Sense::Le => ComparisonOp::Le,
        Sense::Ge => ComparisonOp::Ge,
        Sense::Eq => ComparisonOp::Eq,
    }
}

fn error(error: Error) -> SolveError {
    match error {
        Error::Infeasible => SolveError::Infeasible,
        Error::Unbounded => SolveError::Unbounded,
        other => SolveError::Numerical(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn knapsack(items: &[(u8, u8)], room: u16) -> (Lp, Vec<usize>) {
        let mut lp = Lp::new(LpGoal::Maximise);
        let whole: Vec<usize> =
            items.iter().map(|(_, worth)| lp.bounded(f64::from(*worth), 0.0, 1.0)).collect();
        let sizes: Vec<_> = whole.iter().zip(items).map(|(at, (size, _))| (*at, f64::from(*size))).collect();
        lp.row(sizes, Sense::Le, f64::from(room));
        (lp, whole)
    }

    fn brute(items: &[(u8, u8)], room: u16) -> u16 {
        let of = |set: u32, pick: fn(&(u8, u8)) -> u8| -> u16 {
            items
                .iter()
                .enumerate()
                .filter(|(at, _)| set >> at & 1 == 1)
                .map(|(_, item)| u16::from(pick(item)))
                .sum()
        };
        (0..1 << items.len())
            .filter(|set| of(*set, |i| i.0) <= room)
            .map(|set| of(set, |i| i.1))
            .max()
            .unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_knapsack_equals_trying_all(items in prop::collection::vec((1u8..20, 1u8..20), 1..9), room in 0u16..60) {
            let (lp, whole) = knapsack(&items, room);
            let answer = solve(&lp, &whole, &BranchSearch::default()).unwrap();
            prop_assert!((answer.objective - f64::from(brute(&items, room))).abs() < 1e-6);
            prop_assert!((answer.bound - answer.objective).abs() < 1e-6);
        }
    }

    #[test]
    fn odd_input_is_refused() {
        let mut lp = Lp::new(LpGoal::Maximise);
        let x = lp.variable(1.0);
        assert!(matches!(solve(&lp, &[x], &BranchSearch::default()), Err(SolveError::NotANumber { .. })));
        assert!(matches!(solve(&lp, &[7], &BranchSearch::default()), Err(SolveError::NoSuchVariable { .. })));
        lp.row([(9, 1.0)], Sense::Le, 1.0);
        assert!(matches!(solve(&lp, &[], &BranchSearch::default()), Err(SolveError::NoSuchVariable { .. })));
        let mut lp = Lp::new(LpGoal::Maximise);
        let x = lp.bounded(1.0, 0.0, 9.0);
        lp.row([(x, 1.0)], Sense::Ge, 10.0);
        assert_eq!(solve(&lp, &[x], &BranchSearch::default()), Err(SolveError::Infeasible));
        lp.rows.clear();
        lp.row([(x, f64::NAN)], Sense::Le, 10.0);
        assert!(solve(&lp, &[x], &BranchSearch::default()).is_err());
    }
}
