//! The master problem: mix recorded answers so that the mix fits the capacities and is worth most. One row a
//! kind, one that makes the mix a mix; solved by the revised simplex method, started where it last stopped.
//! Its duals are the next prices.

/// Reduced costs and pivots below this count as zero; rows are scaled to capacity 1.
const TINY: f64 = 1e-12;

/// Pivots after which the rule that cannot cycle takes over.
const CAREFUL: usize = 200;

/// Pivots at most, per solve.
const PIVOTS_MAX: usize = 2_000;

/// Recorded answers and the best mix of them.
#[derive(Clone, Debug)]
pub(crate) struct MasterProblem {
    /// Kinds and one.
    rows: usize,
    /// Column by column; the first `rows - 1` are the slacks of the kinds.
    columns: Vec<Vec<f64>>,
    worth: Vec<f64>,
    basis: Vec<usize>,
    inverse: Vec<f64>,
    /// Where the inverse is worked out.
    wide: Vec<f64>,
    mix: Vec<f64>,
    duals: Vec<f64>,
}

impl MasterProblem {
    /// Begins with one answer that fits.
    pub(crate) fn new(load: &[f64], worth: f64) -> MasterProblem {
        let rows = load.len() + 1;
        let unit = |row: usize| (0..rows).map(|at| if at == row { 1.0 } else { 0.0 }).collect();
        let columns: Vec<Vec<f64>> = (0..rows - 1).map(unit).collect();
        let mut master = MasterProblem {
            rows,
            columns,
            worth: vec![0.0; rows - 1],
            basis: (0..rows).collect(),
            inverse: vec![0.0; rows * rows],
            wide: vec![0.0; rows * 2 * rows],
            mix: vec![0.0; rows],
            duals: vec![0.0; rows],
        };
        master.add(load, worth);
        master.refresh();
        master
    }

    /// Records an answer.
    pub(crate) fn add(&mut self, load: &[f64], worth: f64) {
        let column = load.iter().copied().chain([1.0]).collect();
        self.columns.push(column);
        self.worth.push(worth);
    }

    /// The answers in the best mix with their parts.
    pub(crate) fn mix(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let slacks = self.rows - 1;
        let parts = self.basis.iter().zip(&self.mix);
        parts
            .filter(move |(column, _)| **column >= slacks)
            .map(move |(column, part)| (column - slacks, *part))
    }

    /// What an answer takes of each kind.
    pub(crate) fn load(&self, answer: usize) -> &[f64] {
        &self.columns[answer + self.rows - 1][..self.rows - 1]
    }

    /// What the mix is worth.
    pub(crate) fn value(&self) -> f64 {
        self.basis.iter().zip(&self.mix).map(|(column, part)| self.worth[*column] * part).sum()
    }

    /// The prices of the kinds that go with it, each for its whole capacity.
    pub(crate) fn prices(&self) -> &[f64] {
        &self.duals[..self.rows - 1]
    }

    /// By how much an answer is worth more than it costs at the master's prices: whether it would help.
    pub(crate) fn gain(&self, load: &[f64], worth: f64) -> f64 {
        let cost: f64 = load.iter().zip(&self.duals).map(|(load, price)| load * price).sum();
        worth - cost - self.duals[self.rows - 1]
    }

    /// Finds the best mix.
    pub(crate) fn solve(&mut self) {
        self.refresh();
        for pivot in 0..PIVOTS_MAX {
            let Some(enter) = self.entering(pivot > CAREFUL) else { return };
            let direction = self.times_inverse(&self.columns[enter]);
            let Some(leave) = self.leaving(&direction, pivot > CAREFUL) else { return };
            let left = std::mem::replace(&mut self.basis[leave], enter);
            if !self.refresh() {
                // Too close to singular to go on: what was found so far is a mix all the same.
                self.basis[leave] = left;
                self.refresh();
                return;
            }
        }
    }

    fn reduced(&self, column: usize) -> f64 {
        let cost: f64 = self.columns[column].iter().zip(&self.duals).map(|(load, price)| load * price).sum();
        self.worth[column] - cost
    }

    fn entering(&self, careful: bool) -> Option<usize> {
        let scale = self.worth.iter().fold(TINY, |most, worth| most.max(worth.abs()));
        let mut best = (None, TINY * scale);
        for column in (0..self.columns.len()).filter(|column| !self.basis.contains(column)) {
            let gain = self.reduced(column);
            if gain > best.1 {
                best = (Some(column), gain);
                if careful {
                    break;
                }
            }
        }
        best.0
    }

    fn leaving(&self, direction: &[f64], careful: bool) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for row in (0..self.rows).filter(|row| direction[*row] > 1e-11) {
            let ratio = self.mix[row].max(0.0) / direction[row];
            let better = best.is_none_or(|(other, least)| {
                let tie = ratio <= least + TINY;
                ratio < least - TINY
                    || (tie && careful && self.basis[row] < self.basis[other])
                    || (tie && !careful && direction[row] > direction[other])
            });
            if better {
                best = Some((row, ratio));
            }
        }
        best.map(|(row, _)| row)
    }

    fn times_inverse(&self, column: &[f64]) -> Vec<f64> {
        let row = |row: usize| &self.inverse[row * self.rows..(row + 1) * self.rows];
        (0..self.rows).map(|at| row(at).iter().zip(column).map(|(a, b)| a * b).sum()).collect()
    }

    /// Works inverse, mix and duals out from the basis: a few rows, so always afresh and never stale.
    fn refresh(&mut self) -> bool {
        if !self.invert() {
            return false;
        }
        for at in 0..self.rows {
            self.mix[at] = self.inverse[at * self.rows..(at + 1) * self.rows].iter().sum();
            self.duals[at] = (0..self.rows)
                .map(|row| self.worth[self.basis[row]] * self.inverse[row * self.rows + at])
                .sum();
        }
        true
    }

    fn invert(&mut self) -> bool {
        let (n, wide) = (self.rows, &mut self.wide);
        wide.fill(0.0);
        for row in 0..n {
            for at in 0..n {
                wide[row * 2 * n + at] = self.columns[self.basis[at]][row];
            }
            wide[row * 2 * n + n + row] = 1.0;
        }
        for at in 0..n {
            let size = |row: &usize| wide[*row * 2 * n + at].abs();
            let pivot = (at..n).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(at);
            if wide[pivot * 2 * n + at].abs() < 1e-14 {
                return false;
            }
            eliminate(wide, n, at, pivot);
        }
        for row in 0..n {
            let from = row * 2 * n + n;
            self.inverse[row * n..(row + 1) * n].copy_from_slice(&wide[from..from + n]);
        }
        true
    }
}

/// Makes column `at` a unit vector, with the row `pivot` brought to its place.
fn eliminate(wide: &mut [f64], n: usize, at: usize, pivot: usize) {
    let width = 2 * n;
    if pivot != at {
        (0..width).for_each(|column| wide.swap(pivot * width + column, at * width + column));
    }
    let scale = 1.0 / wide[at * width + at];
    wide[at * width..(at + 1) * width].iter_mut().for_each(|value| *value *= scale);
    let (before, rest) = wide.split_at_mut(at * width);
    let (line, after) = rest.split_at_mut(width);
    for target in before.chunks_exact_mut(width).chain(after.chunks_exact_mut(width)) {
        let factor = target[at];
        if factor != 0.0 {
            target.iter_mut().zip(&*line).for_each(|(value, other)| *value -= factor * other);
        }
    }
}
