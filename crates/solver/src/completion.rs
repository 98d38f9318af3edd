//! Filling the gaps of a matrix that is close to one of low rank: alternating least squares with ridge (Koren, Bell
//! and Volinsky, "Matrix factorization techniques for recommender systems", IEEE Computer 2009).
//!
//! minimise Σ over known (i, j) of (x_ij − u_i·v_j)² + µ (Σ |u_i|² + Σ |v_j|²), u_i and v_j of `rank` numbers.
//!
//! For fixed v each u_i is a small linear system, and the other way round; a fixed number of rounds and a fixed
//! start give the same answer everywhere. Cost of a round: O(known · rank² + (rows + columns) · rank³).

/// The ridge of the first round, and what is left of it after each: begun at once with a small one, few entries
/// throw the factors far off, and the alternation does not find back.
const FIRST_RIDGE: f64 = 1.0;
const COOLING: f64 = 0.8;

/// How a matrix is completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Completion {
    /// Numbers for each row and column.
    pub rank: usize,
    /// µ: what large numbers cost; above 0.
    pub ridge: f64,
    /// Rounds of the alternation.
    pub rounds: usize,
}

impl Default for Completion {
    fn default() -> Completion {
        Completion { rank: 4, ridge: 1e-2, rounds: 30 }
    }
}

impl Completion {
    /// The whole matrix, row by row, from its known entries (row, column, value). A row or column without a known
    /// entry comes out as zeros.
    pub fn complete(&self, rows: usize, columns: usize, known: &[(usize, usize, f64)]) -> Vec<f64> {
        let rank = self.rank.max(1);
        let by_row = grouped(rows, known.iter().map(|(row, column, value)| (*row, *column, *value)));
        let by_column = grouped(columns, known.iter().map(|(row, column, value)| (*column, *row, *value)));
        let mut left = vec![0.0; rows * rank];
        let mut right = start(columns, rank);
        let mut ridge = FIRST_RIDGE.max(self.ridge);
        for _ in 0..self.rounds {
            fit(&by_row, &right, ridge, &mut left);
            fit(&by_column, &left, ridge, &mut right);
            ridge = (ridge * COOLING).max(self.ridge).max(f64::MIN_POSITIVE);
        }
        let entry =
            |at: usize| dot(&left[at / columns * rank..][..rank], &right[at % columns * rank..][..rank]);
        (0..rows * columns).map(entry).collect()
    }
}

/// The best `out` for a fixed other side.
fn fit(known: &[Vec<(usize, f64)>], fixed: &[f64], ridge: f64, out: &mut [f64]) {
    let rank = out.len() / known.len().max(1);
    if rank == 0 {
        return;
    }
    for (entries, out) in known.iter().zip(out.chunks_mut(rank)) {
        let mut normal = vec![0.0; rank * rank];
        let mut target = vec![0.0; rank];
        (0..rank).for_each(|at| normal[at * rank + at] = ridge);
        for (at, value) in entries {
            let factor = &fixed[at * rank..][..rank];
            for (row, a) in factor.iter().enumerate() {
                target[row] += a * value;
                normal[row * rank..][..rank].iter_mut().zip(factor).for_each(|(sum, b)| *sum += a * b);
            }
        }
        solve(&mut normal, &mut target);
        out.copy_from_slice(&target);
    }
}

fn grouped(n: usize, known: impl Iterator<Item = (usize, usize, f64)>) -> Vec<Vec<(usize, f64)>> {
    let mut groups = vec![Vec::new(); n];
    known.for_each(|(group, at, value)| groups[group].push((at, value)));
    groups
}

/// Where the alternation begins: ones, so that the first factor can be the mean, and numbers that repeat nowhere.
fn start(n: usize, rank: usize) -> Vec<f64> {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let number = |at: usize| if at.is_multiple_of(rank) { 1.0 } else { (at as f64 * GOLDEN).fract() - 0.5 };
    (0..n * rank).map(number).collect()
}

/// Solves a symmetric positive definite system in place, by Cholesky's factors.
fn solve(matrix: &mut [f64], target: &mut [f64]) {
    let n = target.len();
    for row in 0..n {
        for column in 0..=row {
            let (a, b) = (&matrix[row * n..][..column], &matrix[column * n..][..column]);
            let rest = matrix[row * n + column] - dot(a, b);
            matrix[row * n + column] = if row == column {
                rest.max(f64::MIN_POSITIVE).sqrt()
            } else {
                rest / matrix[column * n + column]
            };
        }
    }
    for row in 0..n {
        let before = dot(&matrix[row * n..][..row], &target[..row]);
        target[row] = (target[row] - before) / matrix[row * n + row];
    }
    for row in (0..n).rev() {
        let after: f64 = (row + 1..n).map(|below| matrix[below * n + row] * target[below]).sum();
        target[row] = (target[row] - after) / matrix[row * n + row];
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A matrix of rank 2 and its entries that are kept with probability `part`.
    fn sampled(part: f64, seed: u64) -> (Vec<f64>, Vec<(usize, usize, f64)>) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        let factors: Vec<[f64; 2]> = (0..50).map(|_| [0.3 + unit(), unit() - 0.5]).collect();
        let value = |row: usize, column: usize| dot(&factors[row], &factors[20 + column]);
        let whole = (0..600).map(|at| value(at / 30, at % 30)).collect();
        let cells: Vec<_> = (0..600).map(|at| (at / 30, at % 30)).collect();
        let known = cells.into_iter().filter(|_| unit() < part).map(|(r, c)| (r, c, value(r, c)));
        (whole, known.collect())
    }

    /// Root mean square error over all entries.
    fn error(part: f64, seed: u64, ridge: f64) -> f64 {
        let (whole, known) = sampled(part, seed);
        let filled = Completion { rank: 2, ridge, rounds: 60 }.complete(20, 30, &known);
        let squares: f64 = whole.iter().zip(filled).map(|(a, b)| (a - b) * (a - b)).sum();
        (squares / 600.0).sqrt()
    }

    #[test]
    fn a_matrix_of_low_rank_is_recovered_from_a_sample() {
        for seed in 0..5 {
            let error = error(0.5, seed, 1e-4);
            assert!(error < 1e-3, "seed {seed}: {error}");
        }
    }

    #[test]
    fn more_samples_mean_less_error() {
        let mean = |part: f64| (0..8).map(|seed| error(part, seed, 1e-2)).sum::<f64>() / 8.0;
        let errors = [0.12, 0.25, 0.5].map(mean);
        assert!(errors[0] > errors[1] && errors[1] > errors[2], "{errors:?}");
    }

    #[test]
    fn rows_without_entries_are_zeros() {
        let filled = Completion::default().complete(2, 2, &[(0, 0, 1.0), (0, 1, 2.0)]);
        assert_eq!(&filled[2..], [0.0, 0.0]);
        assert!(Completion::default().complete(0, 0, &[]).is_empty());
    }

    proptest! {
        #[test]
        fn small_systems_are_solved(rows in prop::collection::vec(-2.0f64..2.0, 9), x in prop::collection::vec(-3.0f64..3.0, 3)) {
            let mut matrix = vec![0.0; 9];
            for (at, entry) in matrix.iter_mut().enumerate() {
                let (r, c) = (at / 3, at % 3);
                *entry = (0..3).map(|k| rows[k * 3 + r] * rows[k * 3 + c]).sum::<f64>() + if r == c { 0.5 } else { 0.0 };
            }
            let mut target: Vec<f64> = (0..3).map(|r| dot(&matrix[r * 3..][..3], &x)).collect();
            solve(&mut matrix, &mut target);
            prop_assert!(target.iter().zip(&x).all(|(a, b)| (a - b).abs() < 1e-9), "{target:?} {x:?}");
        }
    }
}
