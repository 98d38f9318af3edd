//! Proportional fairness on mixed kinds: maximise Σ_m weight_m · log(speed_m(X) / even_m), the Nash social
//! welfare (Gavel's `max_min_fairness_strategy_proof`, Narayanan et al., OSDI 2020; the mechanism is that of
//! Cole, Gkatzelis and Goel, EC 2013).
//!
//! `strategy-proof=true` makes telling the truth the best any job can do: job i receives only the part
//! Π_k (speed_k with i / speed_k without i)^(weight_k / weight_i) of its shares, the harm that its presence does
//! to the others. What is held back stays idle (`Mode::Capped`): given out after all, it would undo the mechanism.
//! Executed time follows to half a round for each share. Costs one more solve for each distinct job.
//! The mechanism is for the jobs of one plan: it does not mind who comes, goes or splits a job in two. Under
//! `--compat gavel` rounds are those of Gavel's simulator, which give out what is held back.
//!
//! Objective: the weighted geometric mean of normalised throughputs. Solved as a market.

use yard_core::allocation::Allocation;
use yard_core::job::Rank;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::market::{Market, MarketError, MarketWork, Solution};

use crate::buyers::{BrokenRow, BuyerRows, Buyers, Sight};
use crate::{ParamError, Params, PolicyEntry, WEIGHT};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "nash",
    live: "",
    family: "fair shares",
    paper: "Cole et al., EC 2013; Gavel, OSDI 2020",
    there: "proportional fairness; `strategy-proof=true` with the withheld parts left idle",
    missing: "`strategy-proof` under `--compat gavel`, whose rounds give them out, and against who splits a job or comes and goes",
    about: "proportional fairness: the geometric mean of all normalised throughputs is as large as can be",
    params: &[
        crate::params::AGNOSTIC,
        (
            "strategy-proof",
            "hold back what a job's presence costs the others, so that lying cannot pay: true or false [false]",
        ),
    ],
    rounds: true,
    priority: Priorities::Refused(WEIGHT),
    needs: &[Knowledge::Speeds],
    make,
};

/// Distances of the logarithms' mean.
const LIMITS: MarketWork = MarketWork { passes: 300, gap: 1e-6 };

struct NashPolicy {
    sight: Sight,
    strategy_proof: bool,
}

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    Ok(Box::new(NashPolicy { sight: params.sight()?, strategy_proof: params.flag("strategy-proof")? }))
}

impl Policy for NashPolicy {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let buyers = Buyers::new(view, BuyerRows::Alike, self.sight)?;
        let weight = buyers.column(|row| row.weight);
        let prices = buyers.last_prices();
        let mut solution = buyers.market.nash(&weight, prices.as_deref(), &LIMITS).map_err(BrokenRow)?;
        geometric(&buyers, &weight, &mut solution);
        if !self.strategy_proof {
            return Ok(buyers.allocation(&solution, |_| Rank::default()));
        }
        hold_back(&buyers, &weight, &mut solution).map_err(BrokenRow)?;
        Ok(buyers.limits(&solution))
    }

    fn agnostic(&self) -> bool {
        self.sight == Sight::Agnostic
    }
}

/// From the sum of logarithms of speeds to the mean of normalised ones; prices to everything costing 1.
fn geometric(buyers: &Buyers<'_>, weight: &[f64], solution: &mut Solution) {
    let market = &buyers.market;
    let budget = |row: usize| weight[row] * market.count(row);
    let all: f64 = (0..market.rows()).map(budget).sum();
    let even: f64 = (0..market.rows()).map(|row| budget(row) * libm::log(buyers.rows[row].even)).sum();
    let mean = |logs: f64| if all > 0.0 { libm::exp((logs - even) / all) } else { 0.0 };
    (solution.objective, solution.bound) = (mean(solution.objective), mean(solution.bound));
    let cost: f64 =
        solution.prices.iter().zip(market.capacity()).map(|(price, devices)| price * devices).sum();
    solution.prices.iter_mut().for_each(|price| *price /= cost.max(f64::MIN_POSITIVE));
}

/// Scales each row's shares by what its presence leaves of the others' welfare.
fn hold_back(buyers: &Buyers<'_>, weight: &[f64], solution: &mut Solution) -> Result<(), MarketError> {
    let market = &buyers.market;
    let reached: Vec<f64> = (0..market.rows()).map(|row| market.reached(row, &solution.shares)).collect();
    let mut kept = vec![1.0; market.rows()];
    for (row, kept) in kept.iter_mut().enumerate() {
        let (others, rows) = without(market, row)?;
        if rows.is_empty() {
            continue;
        }
        let weights: Vec<f64> = rows.iter().map(|other| weight[*other]).collect();
        let alone = others.nash(&weights, Some(&solution.prices), &LIMITS)?;
        let harm = |(at, other): (usize, &usize)| {
            let free = others.reached(at, &alone.shares);
            weight[*other] * others.count(at) * libm::log(reached[*other] / free)
        };
        let logs: f64 = rows.iter().enumerate().map(harm).sum();
        *kept = libm::exp(logs / weight[row]).min(1.0);
    }
    for (row, kept) in kept.iter().enumerate() {
        solution.shares[market.options_of(row)].iter_mut().for_each(|share| *share *= kept);
    }
    Ok(())
}

/// The market with one buyer of a row less, and which rows are left in it.
fn without(market: &Market, gone: usize) -> Result<(Market, Vec<usize>), MarketError> {
    let mut others = Market::new(market.capacity().to_vec())?;
    let mut rows = Vec::new();
    for row in 0..market.rows() {
        let count = market.count(row) - if row == gone { 1.0 } else { 0.0 };
        if count < 0.5 {
            continue;
        }
        others.row(count)?;
        rows.push(row);
        for option in market.options_of(row) {
            let uses: Vec<(u16, f64)> =
                market.uses(option).map(|(kind, devices)| (kind as u16, devices)).collect();
            others.option(market.speed(option), &uses)?;
        }
    }
    Ok((others, rows))
}

#[cfg(test)]
mod tests {
    use crate::testing::{mixed, policy, speeds_of};

    #[test]
    fn equal_jobs_get_equal_parts_and_weights_count() {
        let mut view = mixed(&[2], &[(1, &[1.0]), (1, &[1.0]), (1, &[1.0])], &[9.0, 9.0, 9.0]);
        let even = speeds_of(&view, &policy("nash").allocate(&view).unwrap());
        assert!(even.iter().all(|speed| (speed - 2.0 / 3.0).abs() < 1e-4), "{even:?}");
        // Spending in proportion to weight: 3/5 · 2 is above what one job can use, so it has all of its time.
        let mut specs = (*view.specs).clone();
        std::sync::Arc::make_mut(&mut specs[0]).weight = 3.0;
        view.specs = std::sync::Arc::new(specs);
        let weighted = speeds_of(&view, &policy("nash").allocate(&view).unwrap());
        assert!((weighted[0] - 1.0).abs() < 1e-3 && (weighted[1] - 0.5).abs() < 1e-3, "{weighted:?}");
    }

    /// Two jobs on one device: each would have all of it without the other, and half with it. What i does to k is
    /// a half, so that each receives a half of its half.
    #[test]
    fn what_a_job_costs_others_is_held_back() {
        let view = mixed(&[1], &[(1, &[1.0]), (1, &[1.0])], &[9.0, 9.0]);
        let speeds = speeds_of(&view, &policy("nash:strategy-proof=true").allocate(&view).unwrap());
        assert!(speeds.iter().all(|speed| (speed - 0.25).abs() < 1e-4), "{speeds:?}");
    }

    /// Saying that one is faster on a kind than one is gains nothing, whatever is said.
    #[test]
    fn lying_does_not_pay() {
        let truth: [&[f64]; 3] = [&[3.0, 1.0], &[2.0, 2.0], &[1.0, 1.5]];
        let gain = |said: &[f64]| {
            let jobs: [(u32, &[f64]); 3] = [(1, said), (1, truth[1]), (1, truth[2])];
            let view = mixed(&[1, 1], &jobs, &[9.0, 9.0, 9.0]);
            let allocation = policy("nash:strategy-proof=true").allocate(&view).unwrap();
            let yard_core::allocation::Shares::All(shares) = &allocation.shares else { panic!("all shares") };
            let own = shares.iter().filter(|share| share.jobs[0].0 == 0 && share.fraction > 1e-6);
            let kind = |share: &yard_core::allocation::Share| {
                view.spec(share.jobs[0]).shapes[share.shape.unwrap() as usize].needs[0].kind.index()
            };
            own.map(|share| share.fraction * truth[0][kind(share)]).sum::<f64>()
        };
        let honest = gain(truth[0]);
        for said in [[3.0, 3.0], [1.0, 1.0], [9.0, 1.0], [3.0, 0.1], [1.0, 3.0]] {
            assert!(gain(&said) <= honest * (1.0 + 1e-3), "{said:?}: {} above {honest}", gain(&said));
        }
    }
}
