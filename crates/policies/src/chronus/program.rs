//! Chronus' integer program for the jobs that are guaranteed: which deadline each of them keeps and who has the lease that
//! begins, at most worth. Branch and bound (`yard_solver::milp`) under a number of nodes; what the greedy packing found
//! stays where that is not enough, as in the paper's program, or where the problem is too large to begin with.
//!
//! One 0/1 variable S for each job and deadline and x for each job and lease before its last deadline:
//! Σ_p S_jp = 1, Σ_i x_ji = n_j, x_ji ≤ Σ_{p: L_jp > i} S_jp, Σ_j ĝ_j·x_ji ≤ G_i of the kind.

use std::collections::BTreeMap;

use yard_solver::lp::{Lp, LpGoal, Sense};
use yard_solver::milp::{self, BranchSearch};

use super::leases::{LeaseRow, Wish};

/// Variables beyond which branch and bound is not tried.
const VARIABLES_MAX: usize = 3000;

/// The search's limits: the nodes are few, because each is a linear program.
const SEARCH: BranchSearch = BranchSearch { nodes_max: 200, gap: 1e-6 };

/// The variables of one job.
struct ProgramColumns {
    at: usize,
    ends: Vec<usize>,
    leases: Vec<usize>,
}

/// The leases of the jobs in `rows` that are worth most together, and what no others beat; none where the search found
/// nothing in time. `now` is what a device is worth that works for them in the lease that begins.
pub(super) fn solve(
    wishes: &[Wish],
    rows: &BTreeMap<usize, LeaseRow>,
    capacity: &[u32],
    now: f64,
) -> Option<(BTreeMap<usize, LeaseRow>, f64)> {
    let last = |at: &usize| wishes[*at].ends.iter().map(|end| end.0).max().unwrap_or(0);
    let variables: usize = rows.keys().map(|at| wishes[*at].ends.len() + last(at)).sum();
    if variables == 0 || variables > VARIABLES_MAX {
        return None;
    }
    let mut lp = Lp::new(LpGoal::Maximise);
    let columns: Vec<ProgramColumns> =
        rows.keys().map(|at| job(&mut lp, *at, &wishes[*at], last(at), now)).collect();
    fit(&mut lp, wishes, &columns, capacity);
    let whole: Vec<usize> = (0..variables).collect();
    let answer = milp::solve(&lp, &whole, &SEARCH).ok()?;
    let kept = columns.iter().map(|columns| (columns.at, kept(&wishes[columns.at], columns, &answer.x)));
    Some((kept.collect(), answer.bound))
}

/// One deadline, as many leases as it needs, all of them before it.
fn job(lp: &mut Lp, at: usize, wish: &Wish, last: usize, now: f64) -> ProgramColumns {
    let ends: Vec<usize> = wish.ends.iter().map(|end| lp.bounded(end.1, 0.0, 1.0)).collect();
    let first = |lease: usize| if lease == 0 { now * f64::from(wish.size) } else { 0.0 };
    let leases: Vec<usize> = (0..last).map(|lease| lp.bounded(first(lease), 0.0, 1.0)).collect();
    lp.row(ends.iter().map(|end| (*end, 1.0)).collect::<Vec<_>>(), Sense::Eq, 1.0);
    lp.row(leases.iter().map(|lease| (*lease, 1.0)).collect::<Vec<_>>(), Sense::Eq, wish.leases as f64);
    let earliest = wish.ends.iter().map(|end| end.0).min().unwrap_or(0);
    for (lease, column) in leases.iter().enumerate().skip(earliest) {
        let open = wish.ends.iter().zip(&ends).filter(|(end, _)| end.0 > lease);
        let terms: Vec<_> = open.map(|(_, at)| (*at, -1.0)).chain([(*column, 1.0)]).collect();
        lp.row(terms, Sense::Le, 0.0);
    }
    ProgramColumns { at, ends, leases }
}

/// No lease has more devices of a kind than there are.
fn fit(lp: &mut Lp, wishes: &[Wish], columns: &[ProgramColumns], capacity: &[u32]) {
    let last = columns.iter().map(|columns| columns.leases.len()).max().unwrap_or(0);
    for (kind, devices) in capacity.iter().enumerate() {
        for lease in 0..last {
            let of_kind = columns.iter().filter(|columns| wishes[columns.at].kind == kind);
            let term = |columns: &ProgramColumns| {
                Some((*columns.leases.get(lease)?, f64::from(wishes[columns.at].size)))
            };
            let terms: Vec<(usize, f64)> = of_kind.filter_map(term).collect();
            if terms.iter().map(|term| term.1).sum::<f64>() > f64::from(*devices) {
                lp.row(terms, Sense::Le, f64::from(*devices));
            }
        }
    }
}

fn kept(wish: &Wish, columns: &ProgramColumns, x: &[f64]) -> LeaseRow {
    let chosen = columns.ends.iter().position(|end| x[*end] > 0.5).unwrap_or(0);
    let leases = (0..columns.leases.len()).rev().filter(|lease| x[columns.leases[*lease]] > 0.5);
    LeaseRow { leases: leases.collect(), end: wish.ends[chosen].0 }
}
