//! One step of the search: a small symmetric system, by Cholesky.

use super::N;

/// The way to the least of the damped quadratic in the free numbers; the others do not move. None where there is no
/// such way: nothing is free, or the numbers are out of all proportion.
pub(super) fn step(
    curvature: &[[f64; N]; N],
    gradient: &[f64; N],
    free: &[bool; N],
    damping: f64,
) -> Option<[f64; N]> {
    let mut lower = [[0.0; N]; N];
    for i in (0..N).filter(|i| free[*i]) {
        for j in (0..=i).filter(|j| free[*j]) {
            let done: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            if i == j {
                let pivot = curvature[i][i] * (1.0 + damping) - done;
                if !(pivot > 0.0 && pivot.is_finite()) {
                    return None;
                }
                lower[i][i] = pivot.sqrt();
            } else {
                lower[i][j] = (curvature[i][j] - done) / lower[j][j];
            }
        }
    }
    free.contains(&true).then(|| substitute(&lower, gradient, free))
}

fn substitute(lower: &[[f64; N]; N], gradient: &[f64; N], free: &[bool; N]) -> [f64; N] {
    let mut way = [0.0; N];
    for i in (0..N).filter(|i| free[*i]) {
        let done: f64 = (0..i).map(|k| lower[i][k] * way[k]).sum();
        way[i] = (-gradient[i] - done) / lower[i][i];
    }
    for i in (0..N).rev().filter(|i| free[*i]) {
        let done: f64 = (i + 1..N).map(|k| lower[k][i] * way[k]).sum();
        way[i] = (way[i] - done) / lower[i][i];
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_numbers_go_where_the_slope_ends() {
        let mut curvature = [[0.0; N]; N];
        for (i, row) in curvature.iter_mut().enumerate() {
            row[i] = 3.0 + i as f64;
        }
        (curvature[0][4], curvature[4][0]) = (1.0, 1.0);
        let gradient = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let free = [true, false, true, true, true, false, true];
        let way = step(&curvature, &gradient, &free, 0.0).expect("it is positive");
        for i in 0..N {
            let left: f64 = gradient[i] + (0..N).map(|j| curvature[i][j] * way[j]).sum::<f64>();
            assert!(if free[i] { left.abs() < 1e-12 } else { way[i] == 0.0 }, "{i}: {left} {way:?}");
        }
        assert_eq!(step(&curvature, &gradient, &[false; N], 0.0), None);
        curvature[2][2] = f64::NAN;
        assert_eq!(step(&curvature, &gradient, &free, 0.0), None);
    }
}
