//! Most throughput for the money with deadlines kept (Gavel, Narayanan et al., OSDI 2020, section 4.2): the
//! ratio of `cost`, with each job that has a deadline at least as fast as it must be from now on:
//! speed_m(X) ≥ steps_m / (deadline_m − now).
//!
//! Where not all deadlines can be met, the artifact drops them all, and those that have passed silently. Here
//! a job that cannot be met even alone is named and asks for nothing more; of the others as many as can be are
//! kept, those that are cheapest to keep at the market's prices first, and the rest is named too.
//!
//! Objective: steps per second for a dollar per hour. Solved as a market; a logarithm of solves to find who stays.

use yard_core::allocation::Allocation;
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::market::{MarketWork, Solution};

use crate::buyers::{BrokenRow, BuyerRows, Buyers, Sight};
use crate::dollars::{DOLLARS, Dollars};
use crate::{OTHER, ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "cost-slo",
    live: "",
    family: "fair shares",
    paper: "Gavel, OSDI 2020",
    there: "the ratio with deadlines as floors on speeds",
    missing: "nothing; where not all can be met, as many as can be, where the artifact drops all",
    about: "deadlines are met where they can be, and beyond them steps for each dollar are as many as can be",
    params: &[DOLLARS],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make,
};

struct CostSlo {
    dollars: Dollars,
}

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    Ok(Box::new(CostSlo { dollars: Dollars::read(params)? }))
}

impl Policy for CostSlo {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let buyers = Buyers::new(view, BuyerRows::Single, Sight::Aware)?;
        let dollars = self.dollars.of(&buyers)?;
        let mut floor = buyers.column(|row| pace(view, row.jobs[0]));
        let mut unmet = drop_hopeless(&buyers, &mut floor);
        unmet.extend(drop_dearest(&buyers, &mut floor)?);
        unmet.sort_unstable();
        let solution = solve(&buyers, &dollars, &floor)?;
        let mut allocation = buyers.allocation(&solution, |_| Rank::default());
        if let Some(certificate) = &mut allocation.certificate {
            certificate.unmet = unmet;
        }
        Ok(allocation)
    }
}

fn solve(buyers: &Buyers<'_>, dollars: &[f64], floor: &[f64]) -> Result<Solution, PolicyError> {
    let ones = vec![1.0; buyers.rows.len()];
    let solved =
        buyers.market.best_ratio(&ones, dollars, floor, &MarketWork::default()).map_err(BrokenRow)?;
    solved.map_err(|level| PolicyError(format!("only {level} of the deadlines' needs fit, after all")))
}

/// The speed that a job needs from now on; infinite where its deadline has passed, zero where it has none.
fn pace(view: &View, job: JobIdx) -> f64 {
    let Some(deadline) = view.spec(job).deadline else { return 0.0 };
    let left = view.steps_left(job);
    if left == 0.0 { 0.0 } else { left / (deadline.max(view.now) - view.now).secs() }
}

/// Takes out those that cannot be met even alone.
fn drop_hopeless(buyers: &Buyers<'_>, floor: &mut [f64]) -> Vec<JobIdx> {
    let mut unmet = Vec::new();
    for (row, floor) in floor.iter_mut().enumerate() {
        if *floor > buyers.market.best(row) {
            *floor = 0.0;
            unmet.push(buyers.rows[row].jobs[0]);
        }
    }
    unmet
}

/// Takes out the dearest until the others fit: those whose floors, at their cheapest, need most of the cluster.
fn drop_dearest(buyers: &Buyers<'_>, floor: &mut [f64]) -> Result<Vec<JobIdx>, PolicyError> {
    if fits(buyers, floor)? {
        return Ok(Vec::new());
    }
    let mut order: Vec<usize> = (0..floor.len()).filter(|row| floor[*row] > 0.0).collect();
    order.sort_by(|a, b| {
        burden(buyers, *a, floor[*a]).total_cmp(&burden(buyers, *b, floor[*b])).then(a.cmp(b))
    });
    let (mut from, mut to) = (0, order.len());
    while from < to {
        let middle = (from + to).div_ceil(2);
        let mut kept = vec![0.0; floor.len()];
        order[..middle].iter().for_each(|row| kept[*row] = floor[*row]);
        if fits(buyers, &kept)? { from = middle } else { to = middle - 1 }
    }
    let job = |row: &usize| buyers.rows[*row].jobs[0];
    order[from..].iter().for_each(|row| floor[*row] = 0.0);
    Ok(order[from..].iter().map(job).collect())
}

fn fits(buyers: &Buyers<'_>, floor: &[f64]) -> Result<bool, PolicyError> {
    let kept = buyers.market.max_min(floor, None, &MarketWork::default()).map_err(BrokenRow)?;
    Ok(kept.objective >= 1.0 || floor.iter().all(|floor| *floor == 0.0))
}

/// The part of the whole cluster's devices that a floor takes at its cheapest.
fn burden(buyers: &Buyers<'_>, row: usize, floor: f64) -> f64 {
    let market = &buyers.market;
    let part = |option: usize| -> f64 {
        let load = market.uses(option).map(|(kind, devices)| devices / market.capacity()[kind]);
        load.sum::<f64>() / market.speed(option)
    };
    market.options_of(row).map(part).fold(f64::INFINITY, f64::min) * floor
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::Time;

    use super::*;
    use crate::testing::{mixed, policy, speeds_of};

    /// Jobs on two kinds with deadlines in seconds; 0: none.
    fn view(jobs: &[(u32, &[f64])], steps: &[f64], deadlines: &[f64]) -> View {
        let mut view = mixed(&[1, 1], jobs, steps);
        let specs = view.specs.iter().zip(deadlines).map(|(spec, deadline)| {
            let mut spec = (**spec).clone();
            spec.deadline = (*deadline > 0.0).then(|| Time::from_secs(*deadline));
            Arc::new(spec)
        });
        view.specs = Arc::new(specs.collect());
        view
    }

    fn answer(view: &View) -> (Vec<f64>, Vec<u32>) {
        let allocation = policy("cost-slo:dollars=kind0*2/kind1*1").allocate(view).unwrap();
        let unmet = allocation.certificate.as_ref().unwrap().unmet.iter().map(|job| job.0).collect();
        (speeds_of(view, &allocation), unmet)
    }

    #[test]
    fn deadlines_that_fit_are_met_before_money_counts() {
        // The second job is the better value on both kinds, and yet the first gets its pace.
        let view = view(&[(1, &[2.0, 1.0]), (1, &[9.0, 9.0])], &[150.0, 900.0], &[100.0, 0.0]);
        let (speeds, unmet) = answer(&view);
        assert!(unmet.is_empty() && speeds[0] >= 1.5 - 1e-6, "{speeds:?} {unmet:?}");
    }

    #[test]
    fn one_that_cannot_be_met_is_named_and_costs_the_others_nothing() {
        let jobs: [(u32, &[f64]); 3] = [(1, &[2.0, 1.0]), (1, &[2.0, 1.0]), (1, &[1.0, 1.0])];
        let (speeds, unmet) = answer(&view(&jobs, &[1e6, 100.0, 50.0], &[100.0, 100.0, 100.0]));
        assert_eq!(unmet, [0]);
        assert!(speeds[1] >= 1.0 - 1e-6 && speeds[2] >= 0.5 - 1e-6, "{speeds:?}");
    }

    #[test]
    fn where_not_all_fit_together_as_many_as_can_be_are_kept() {
        // Each alone could be met; on two devices one of the three cannot, and it is the one that needs most.
        let jobs: [(u32, &[f64]); 3] = [(1, &[1.0, 1.0]), (1, &[1.0, 1.0]), (1, &[1.0, 1.0])];
        let (speeds, unmet) = answer(&view(&jobs, &[90.0, 95.0, 80.0], &[100.0, 100.0, 100.0]));
        assert_eq!(unmet, [1]);
        assert!(speeds[0] >= 0.9 - 1e-6 && speeds[2] >= 0.8 - 1e-6, "{speeds:?}");
    }

    #[test]
    fn a_deadline_that_has_passed_is_named_too() {
        let mut view = view(&[(1, &[1.0, 1.0])], &[10.0], &[5.0]);
        view.now = Time::from_secs(6.0);
        assert_eq!(answer(&view).1, [0]);
    }
}
