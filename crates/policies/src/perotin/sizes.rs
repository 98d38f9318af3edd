//! The first phase: in which way each job should run.
//!
//! min L over x ≥ 0 with Σ_k x_jk = 1:  t_j = Σ_k x_jk t_jk,  C_j ≥ t_j,  C_j ≥ C_i + t_j for i before j,  C_j ≤ L,
//! Σ_jk x_jk a_jk ≤ L. Any schedule takes at least L: it takes the time of its longest path, and that of its work
//! if no device ever idles.

use yard_core::job::Need;
use yard_solver::conic::Accuracy;
use yard_solver::error::SolveError;
use yard_solver::lp::{Lp, LpAnswer, LpGoal, Sense};

use super::PLANNED_MAX;
use super::flow::{Flow, FlowTask, TaskWay};

/// The golden section.
const PHI: f64 = 1.618_033_988_749_895;

/// How far below the program's optimum the bound is given, for the solver's rounding.
const SAFETY: f64 = 1e-6;

/// The way of each task, and what no schedule can beat.
pub(super) struct Sized {
    pub(super) ways: Vec<usize>,
    pub(super) bound: f64,
}

/// The part of a budget's time that the budget is of what is taken: 1/(√(φd) + 1).
fn rho(kinds: usize) -> f64 {
    1.0 / ((PHI * kinds as f64).sqrt() + 1.0)
}

/// The most of a kind that one job gets: ⌈(1 − 1/φ)·P⌉.
fn cap(devices: u32) -> u32 {
    ((1.0 - 1.0 / PHI) * f64::from(devices)).ceil() as u32
}

/// The proven ratio, with so many kinds.
#[cfg(test)]
pub(super) fn ratio(kinds: usize) -> f64 {
    let d = PHI * kinds as f64;
    d + 2.0 * d.sqrt() + 1.0
}

pub(super) fn choose(flow: &Flow) -> Result<Sized, SolveError> {
    let planned = &flow.tasks[..flow.tasks.len().min(PLANNED_MAX)];
    if planned.is_empty() {
        return Ok(Sized { ways: Vec::new(), bound: 0.0 });
    }
    let scale = planned.iter().map(|task| task.ways[0].seconds).fold(f64::MIN_POSITIVE, f64::max);
    let (program, columns) = program(planned, scale);
    let answer = program.solve(&Accuracy::default())?;
    let budget = |task: usize| budget(&answer, &planned[task], columns[task]);
    let mut ways: Vec<usize> = (0..planned.len()).map(|task| round(flow, task, budget(task))).collect();
    ways.extend(flow.tasks[planned.len()..].iter().map(|task| task.ways.len() - 1));
    for (task, way) in ways.iter_mut().enumerate() {
        *way = capped(flow, task, *way);
    }
    Ok(Sized { ways, bound: answer.objective * scale * (1.0 - SAFETY) })
}

/// The program, with times divided by `scale`, and the column of each task's first way.
fn program(tasks: &[FlowTask], scale: f64) -> (Lp, Vec<usize>) {
    let mut lp = Lp::new(LpGoal::Minimise);
    let end = lp.variable(1.0);
    let columns: Vec<usize> = tasks.iter().map(|task| ways(&mut lp, task)).collect();
    let mut work = vec![(end, -1.0)];
    let mut ends = Vec::with_capacity(tasks.len());
    for (task, first) in tasks.iter().zip(&columns) {
        let own = lp.variable(0.0);
        let time: Vec<_> = (*first..).zip(&task.ways).map(|(at, way)| (at, way.seconds / scale)).collect();
        work.extend((*first..).zip(&task.ways).map(|(at, way)| (at, way.area / scale)));
        let starts = task.before.iter().map(|other| Some(ends[*other])).chain([None]);
        for before in starts {
            let mut row = time.clone();
            row.push((own, -1.0));
            row.extend(before.map(|other| (other, 1.0)));
            lp.row(row, Sense::Le, 0.0);
        }
        lp.row([(own, 1.0), (end, -1.0)], Sense::Le, 0.0);
        ends.push(own);
    }
    lp.row(work, Sense::Le, 0.0);
    (lp, columns)
}

/// The columns of a task's ways, one of which it has in the end.
fn ways(lp: &mut Lp, task: &FlowTask) -> usize {
    let columns: Vec<usize> = task.ways.iter().map(|_| lp.variable(0.0)).collect();
    lp.row(columns.iter().map(|column| (*column, 1.0)).collect::<Vec<_>>(), Sense::Eq, 1.0);
    columns[0]
}

/// The time that the program gives to a task.
fn budget(answer: &LpAnswer, task: &FlowTask, first: usize) -> f64 {
    answer.x[first..].iter().zip(&task.ways).map(|(part, way)| part.max(0.0) * way.seconds).sum()
}

/// The way of least work within 1/ρ of the budget. The ways beyond that have less than a part ρ of the mix, or they
/// alone would use the budget up; so the work of the mix is at least 1 − ρ of the least of the others'.
fn round(flow: &Flow, task: usize, budget: f64) -> usize {
    let (ways, most) = (&flow.tasks[task].ways, budget / rho(flow.kinds()) * (1.0 + SAFETY));
    // Slower ways take less work.
    ways.iter().rposition(|way| way.seconds <= most).unwrap_or(0)
}

/// The fastest way that takes at most the cap of each kind, if this one takes more; itself where there is none.
fn capped(flow: &Flow, task: usize, way: usize) -> usize {
    let ways = &flow.tasks[task].ways;
    let small = |way: &TaskWay| {
        way.needs.iter().all(|need: &Need| need.devices <= cap(flow.capacity[need.kind.index()]))
    };
    if small(&ways[way]) {
        return way;
    }
    ways.iter().position(small).unwrap_or(way)
}
