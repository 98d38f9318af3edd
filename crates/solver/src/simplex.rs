//! A simplex method for programs with few rows, kept at a vertex between several goals in order:
//!
//!   maximise c·x   subject to   A·x ≤ b,  x ≥ 0,  with b ≥ 0,
//!
//! then, among the best points, maximise the next c, and so on. b ≥ 0 makes x = 0 a first vertex, so there
//! is no search for one. After a goal is reached, columns that would lower it (reduced cost below zero)
//! are barred for good: what remains is exactly the face of best points, and no tolerance on floors enters.
//!
//! Why not an interior point method: a vertex has at most as many positive entries as rows, so few groups
//! of jobs come out; prices are exact; rows and columns can be added to a solved program; and arithmetic is
//! plain, so every machine gives the same bits.
//!
//! Revised form with an explicit inverse of the basis: a pivot costs m² + entries of A for m rows, and the
//! inverse is recomputed every 100 pivots against drift. Dantzig's rule by blocks of columns; after a run of pivots that gain
//! nothing, Bland's, which cannot cycle. Meant for up to a few hundred rows. Rows and columns are expected to
//! be scaled by the caller to entries around one.

use crate::error::SolveError;

/// Reduced costs and pivots below this are zero; entries are around one.
const ZERO: f64 = 1e-11;
/// Below this part of its largest entry, a direction is rounding.
const NOISE: f64 = 1e-13;
/// By how much a row may be missed for the sake of a larger pivot.
const HAIR: f64 = 1e-13;
/// A pivot below this is worth a fresh inverse first.
const SMALL: f64 = 1e-6;
/// Pivots between two recomputations of the inverse.
const FRESH: usize = 100;
/// The fewest columns searched before the best of them is taken.
const BLOCK: usize = 100;
/// Entries of the inverse whose update takes as long as looking at a column.
const COLUMN: usize = 20;
/// Idle pivots before Bland's rule takes over.
const IDLE: usize = 60;

/// A program and the vertex it is at.
#[derive(Clone, Debug)]
pub struct Simplex {
    rows: usize,
    right: Vec<f64>,
    /// Structural columns, sparse; slacks are not stored.
    columns: Vec<Vec<(u32, f64)>>,
    /// Whether a structural column, then a row's slack, may no longer enter.
    barred: Vec<bool>,
    barred_slack: Vec<bool>,
    basis: Vec<Name>,
    basic: Vec<bool>,
    basic_slack: Vec<bool>,
    /// Inverse of the basis, by rows.
    inverse: Vec<f64>,
    /// Values of the basic columns.
    value: Vec<f64>,
    pivots: usize,
    since_fresh: usize,
    /// Where the search for a column goes on.
    cursor: usize,
}

/// A column: structural, or the slack of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Column(usize),
    Slack(usize),
}

impl Simplex {
    /// At x = 0. Right-hand sides must not be negative.
    pub fn new(right: Vec<f64>) -> Result<Simplex, SolveError> {
        if let Some(at) = right.iter().position(|value| !value.is_finite() || *value < 0.0) {
            return Err(SolveError::NotANumber { what: "right-hand side (must not be negative) of row", at });
        }
        let rows = right.len();
        let mut inverse = vec![0.0; rows * rows];
        (0..rows).for_each(|row| inverse[row * rows + row] = 1.0);
        Ok(Simplex {
            rows,
            value: right.clone(),
            right,
            columns: Vec::new(),
            barred: Vec::new(),
            barred_slack: vec![false; rows],
            basis: (0..rows).map(Name::Slack).collect(),
            basic: Vec::new(),
            basic_slack: vec![true; rows],
            inverse,
            pivots: 0,
            since_fresh: 0,
            cursor: 0,
        })
    }

    /// Adds a column, at zero, and returns its place.
    pub fn column(&mut self, entries: Vec<(u32, f64)>) -> Result<usize, SolveError> {
        let at = self.columns.len();
        if entries.iter().any(|(row, _)| *row as usize >= self.rows) {
            return Err(SolveError::NoSuchVariable { row: self.rows });
        }
        if entries.iter().any(|(_, value)| !value.is_finite()) {
            return Err(SolveError::NotANumber { what: "column", at });
        }
        self.columns.push(entries);
        self.barred.push(false);
        self.basic.push(false);
        Ok(at)
    }

    /// How many pivots so far.
    pub fn pivots(&self) -> usize {
        self.pivots
    }

    /// The value of each column.
    pub fn x(&self) -> Vec<f64> {
        let mut x = vec![0.0; self.columns.len()];
        for (name, value) in self.basis.iter().zip(&self.value) {
            if let Name::Column(at) = name {
                x[*at] = value.max(0.0);
            }
        }
        x
    }

    /// Row multipliers for a goal at the present vertex, before any cleaning of signs.
    pub fn dual(&self, cost: &dyn Fn(usize) -> f64) -> Vec<f64> {
        let mut dual = vec![0.0; self.rows];
        for (row, name) in self.basis.iter().enumerate() {
            let Name::Column(at) = name else { continue };
            let cost = cost(*at);
            if cost != 0.0 {
                let inverse = &self.inverse[row * self.rows..(row + 1) * self.rows];
                dual.iter_mut().zip(inverse).for_each(|(dual, entry)| *dual += cost * entry);
            }
        }
        dual
    }

    /// Moves to a vertex where `cost` is largest within the face that earlier goals left, and bars what
    /// would leave the new one. Returns the row multipliers. `pivots_max` counts from the first goal on.
    pub fn maximise(
        &mut self,
        cost: &dyn Fn(usize) -> f64,
        pivots_max: usize,
    ) -> Result<Vec<f64>, SolveError> {
        let mut idle = 0;
        loop {
            let dual = self.dual(cost);
            let Some(enter) = self.entering(cost, &dual, idle > IDLE) else {
                if self.since_fresh > 0 {
                    self.refresh()?;
                    continue;
                }
                self.bar(cost, &dual);
                return Ok(dual);
            };
            if self.pivots >= pivots_max {
                return Err(SolveError::Limit);
            }
            let direction = self.direction(enter);
            let row = self.leaving(&direction, idle > IDLE).ok_or(SolveError::Unbounded)?;
            if direction[row] < SMALL && self.since_fresh > 0 {
                self.refresh()?;
                continue;
            }
            idle = if self.value[row] > ZERO { 0 } else { idle + 1 };
            self.pivot(enter, row, &direction);
            if self.since_fresh >= FRESH {
                self.refresh()?;
            }
        }
    }

    /// What `cost` can be at most, by weak duality from any multipliers, given that no column exceeds one:
    /// plain sums, so that a proof does not rest on the method that found the multipliers.
    pub fn bound(&self, cost: &dyn Fn(usize) -> f64, dual: &[f64]) -> f64 {
        let clean: Vec<f64> = dual.iter().map(|dual| dual.max(0.0)).collect();
        let priced: f64 = clean.iter().zip(&self.right).map(|(dual, right)| dual * right).sum();
        let gains = (0..self.columns.len()).map(|at| self.reduced(Name::Column(at), cost, &clean).max(0.0));
        priced + gains.sum::<f64>()
    }

    /// The reduced cost of a column under given multipliers.
    pub fn gain(&self, at: usize, cost: &dyn Fn(usize) -> f64, dual: &[f64]) -> f64 {
        self.reduced(Name::Column(at), cost, dual)
    }

    fn reduced(&self, name: Name, cost: &dyn Fn(usize) -> f64, dual: &[f64]) -> f64 {
        match name {
            Name::Slack(row) => -dual[row],
            Name::Column(at) => {
                let priced: f64 =
                    self.columns[at].iter().map(|(row, value)| dual[*row as usize] * value).sum();
                cost(at) - priced
            }
        }
    }

    /// Columns, then slacks, as one list.
    fn name(&self, at: usize) -> Name {
        match at.checked_sub(self.columns.len()) {
            None => Name::Column(at),
            Some(row) => Name::Slack(row),
        }
    }

    /// Whether a column is neither in the basis nor barred.
    fn may_enter(&self, name: Name) -> bool {
        match name {
            Name::Column(at) => !self.basic[at] && !self.barred[at],
            Name::Slack(row) => !self.basic_slack[row] && !self.barred_slack[row],
        }
    }

    /// A column that gains. Blocks of the list are searched in turn, from where the last search ended, and
    /// the best of the first block that has one is taken (the first of equals): looking at all of many
    /// columns costs more than the pivots it saves, so a block is what can be looked at in the time of a pivot.
    /// Bland's rule wants the first of all.
    fn entering(&mut self, cost: &dyn Fn(usize) -> f64, dual: &[f64], first: bool) -> Option<Name> {
        let all = self.columns.len() + self.rows;
        if first {
            let gains = |name: &Name| self.may_enter(*name) && self.reduced(*name, cost, dual) > ZERO;
            return (0..all).map(|at| self.name(at)).find(gains);
        }
        let block = (self.rows * self.rows / COLUMN).max(BLOCK);
        let (mut best, mut most) = (None, ZERO);
        for searched in 0..all {
            if searched % block == 0 && best.is_some() {
                break;
            }
            let name = self.name(self.cursor);
            self.cursor = (self.cursor + 1) % all;
            if self.may_enter(name) {
                let gain = self.reduced(name, cost, dual);
                if gain > most {
                    (best, most) = (Some(name), gain);
                }
            }
        }
        best
    }

    /// Inverse times the entering column.
    fn direction(&self, name: Name) -> Vec<f64> {
        let slack;
        let entries: &[(u32, f64)] = match name {
            Name::Column(at) => &self.columns[at],
            Name::Slack(row) => {
                slack = [(row as u32, 1.0)];
                &slack
            }
        };
        let of = |inverse: &[f64]| entries.iter().map(|(row, value)| inverse[*row as usize] * value).sum();
        self.inverse.chunks_exact(self.rows).map(of).collect()
    }

    /// The row that first reaches zero. Of those that do so within a hair of each other it is the one with
    /// the largest pivot, for the sake of the inverse (Harris), or (Bland) the first by name.
    fn leaving(&self, direction: &[f64], first: bool) -> Option<usize> {
        let most = direction.iter().fold(0.0f64, |most, step| most.max(step.abs()));
        let least = ZERO.max(NOISE * most);
        let rows = || direction.iter().enumerate().filter(|(_, step)| **step > least);
        let value = |row: usize| self.value[row].max(0.0);
        let limit = rows().map(|(row, step)| (value(row) + HAIR) / step).fold(f64::INFINITY, f64::min);
        let ties = rows().filter(|(row, step)| value(*row) / **step <= limit).map(|(row, _)| row);
        match first {
            true => ties.min_by_key(|row| order(self.basis[*row])),
            false => ties.reduce(|best, row| if direction[row] > direction[best] { row } else { best }),
        }
    }

    fn pivot(&mut self, enter: Name, row: usize, direction: &[f64]) {
        let rows = self.rows;
        let step = self.value[row].max(0.0) / direction[row];
        for (value, change) in self.value.iter_mut().zip(direction) {
            *value -= step * change;
        }
        self.value[row] = step;
        let (before, rest) = self.inverse.split_at_mut(row * rows);
        let (pivot, after) = rest.split_at_mut(rows);
        pivot.iter_mut().for_each(|entry| *entry /= direction[row]);
        let others = before.chunks_exact_mut(rows).chain(after.chunks_exact_mut(rows));
        let factors = direction[..row].iter().chain(&direction[row + 1..]);
        for (other, factor) in others.zip(factors).filter(|(_, factor)| **factor != 0.0) {
            other.iter_mut().zip(&*pivot).for_each(|(entry, pivot)| *entry -= factor * pivot);
        }
        self.mark(self.basis[row], false);
        self.mark(enter, true);
        self.basis[row] = enter;
        self.pivots += 1;
        self.since_fresh += 1;
    }

    fn mark(&mut self, name: Name, basic: bool) {
        match name {
            Name::Column(at) => self.basic[at] = basic,
            Name::Slack(row) => self.basic_slack[row] = basic,
        }
    }

    /// Bars what would lower the goal just reached.
    fn bar(&mut self, cost: &dyn Fn(usize) -> f64, dual: &[f64]) {
        for at in 0..self.columns.len() + self.rows {
            let name = self.name(at);
            if self.may_enter(name) && self.reduced(name, cost, dual) < -ZERO {
                match name {
                    Name::Column(at) => self.barred[at] = true,
                    Name::Slack(row) => self.barred_slack[row] = true,
                }
            }
        }
    }

    /// Recomputes the inverse from the columns (Gauss–Jordan with row exchange) and the values from it.
    fn refresh(&mut self) -> Result<(), SolveError> {
        let rows = self.rows;
        let width = 2 * rows;
        let mut work = vec![0.0; rows * width];
        for (at, name) in self.basis.iter().enumerate() {
            match name {
                Name::Slack(row) => work[row * width + at] = 1.0,
                Name::Column(column) => {
                    for (row, value) in &self.columns[*column] {
                        work[*row as usize * width + at] += value;
                    }
                }
            }
            work[at * width + rows + at] = 1.0;
        }
        invert(&mut work, rows)?;
        for row in 0..rows {
            let fresh = &work[row * width + rows..(row + 1) * width];
            self.inverse[row * rows..(row + 1) * rows].copy_from_slice(fresh);
            self.value[row] = fresh.iter().zip(&self.right).map(|(entry, right)| entry * right).sum();
        }
        self.since_fresh = 0;
        Ok(())
    }
}

/// A fixed order of names, for Bland's rule.
fn order(name: Name) -> (bool, usize) {
    match name {
        Name::Column(at) => (false, at),
        Name::Slack(row) => (true, row),
    }
}

/// Turns [B | I] into [I | B⁻¹].
fn invert(work: &mut [f64], rows: usize) -> Result<(), SolveError> {
    let width = 2 * rows;
    for at in 0..rows {
        let size = |row: &usize| work[row * width + at].abs();
        let best = (at..rows).fold(at, |best, row| if size(&row) > size(&best) { row } else { best });
        if size(&best) < 1e-13 {
            return Err(SolveError::Numerical("the basis became singular".to_owned()));
        }
        if best != at {
            let (top, bottom) = work.split_at_mut(best * width);
            top[at * width..(at + 1) * width].swap_with_slice(&mut bottom[..width]);
        }
        let pivot = work[at * width + at];
        work[at * width..(at + 1) * width].iter_mut().for_each(|entry| *entry /= pivot);
        let (before, rest) = work.split_at_mut(at * width);
        let (pivot, after) = rest.split_at_mut(width);
        for row in before.chunks_exact_mut(width).chain(after.chunks_exact_mut(width)) {
            let factor = row[at];
            if factor != 0.0 {
                row[at..].iter_mut().zip(&pivot[at..]).for_each(|(entry, pivot)| *entry -= factor * pivot);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conic::Accuracy;
    use crate::lp::{Lp, LpGoal, Sense};

    fn build(right: &[f64], columns: &[Vec<f64>]) -> Simplex {
        let mut simplex = Simplex::new(right.to_vec()).unwrap();
        for column in columns {
            let entries = column.iter().enumerate().filter(|(_, value)| **value != 0.0);
            simplex.column(entries.map(|(row, value)| (row as u32, *value)).collect()).unwrap();
        }
        simplex
    }

    fn dot(left: &[f64], right: &[f64]) -> f64 {
        left.iter().zip(right).map(|(l, r)| l * r).sum()
    }

    /// A square of side one: the best corner for u + v, and along an edge for u then v.
    #[test]
    fn goals_in_order() {
        let mut simplex = build(&[1.0, 1.0, 1.5], &[vec![1.0, 0.0, 1.0], vec![0.0, 1.0, 1.0]]);
        let dual = simplex.maximise(&|at| [1.0, 0.0][at], 100).unwrap();
        assert_eq!(dual, vec![1.0, 0.0, 0.0]);
        simplex.maximise(&|at| [0.0, 1.0][at], 100).unwrap();
        assert_eq!(simplex.x(), vec![1.0, 0.5]);
    }

    #[test]
    fn no_end_and_no_room_are_said() {
        let mut simplex = build(&[1.0], &[vec![-1.0]]);
        assert_eq!(simplex.maximise(&|_| 1.0, 10), Err(SolveError::Unbounded));
        let mut simplex = build(&[1.0], &[vec![1.0]]);
        assert_eq!(simplex.maximise(&|_| 1.0, 0), Err(SolveError::Limit));
        assert!(Simplex::new(vec![-1.0]).is_err());
        assert!(build(&[1.0], &[]).column(vec![(4, 1.0)]).is_err());
        assert!(build(&[1.0], &[]).column(vec![(0, f64::NAN)]).is_err());
    }

    /// Beale's example cycles for ever under Dantzig's rule with unlucky ties.
    #[test]
    fn idle_pivots_end() {
        let columns =
            [vec![0.25, 0.5, 0.0], vec![-60.0, -90.0, 0.0], vec![-0.04, -0.02, 1.0], vec![9.0, 3.0, 0.0]];
        let mut simplex = build(&[0.0, 0.0, 1.0], &columns);
        simplex.maximise(&|at| [0.75, -150.0, 0.02, -6.0][at], 1000).unwrap();
        assert!((simplex.x()[2] - 1.0).abs() < 1e-9);
    }

    /// Sparse small whole numbers make ties and degenerate corners common.
    fn entry() -> impl Strategy<Value = f64> {
        prop_oneof![3 => Just(0.0), 3 => (1i8..4).prop_map(f64::from), 1 => (-2i8..0).prop_map(f64::from), 2 => 0.1..3.0f64]
    }

    proptest! {
        #[test]
        fn equals_clarabel_and_proves_it(
            right in prop::collection::vec(prop_oneof![Just(0.0), 0.0..5.0f64], 6),
            columns in prop::collection::vec(prop::collection::vec(entry(), 6), 1..14),
            cost in prop::collection::vec(-1.0..3.0f64, 14),
        ) {
            // The box keeps it bounded.
            let (mut right, mut columns) = (right, columns);
            for at in 0..columns.len() {
                right.push(2.0);
                let rows = right.len();
                columns.iter_mut().for_each(|column| column.resize(rows, 0.0));
                columns[at][rows - 1] = 1.0;
            }
            let mut simplex = build(&right, &columns);
            let dual = simplex.maximise(&|at| cost[at], 10_000).unwrap();
            let x = simplex.x();
            let mut lp = Lp::new(LpGoal::Maximise);
            columns.iter().zip(&cost).for_each(|(_, cost)| { lp.variable(*cost); });
            for (row, right) in right.iter().enumerate() {
                let terms: Vec<_> = columns.iter().enumerate().map(|(at, column)| (at, column[row])).collect();
                prop_assert!(terms.iter().map(|(at, value)| x[*at] * value).sum::<f64>() <= right + 1e-8);
                lp.row(terms, Sense::Le, *right);
            }
            let referee = lp.solve(&Accuracy::default()).unwrap().objective;
            prop_assert!((dot(&x, &cost) - referee).abs() < 1e-6, "{} {}", dot(&x, &cost), referee);
            prop_assert!((dot(&dual, &right) - referee).abs() < 1e-6);
        }
    }
}
