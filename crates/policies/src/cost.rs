//! Most throughput for the money (Gavel, Narayanan et al., OSDI 2020, section 4.2): maximise
//! Σ_m speed_m(X) / Σ_m cost_m(X), the ratio that the paper writes. Its optimum serves only what is best value;
//! everything else runs on devices that would idle. `artifact=true` maximises the sum of each job's own ratio
//! Σ_m Σ_j speed_mj X_mj / cost_j instead, as the paper's artifact does.
//!
//! Objective: steps per second for a dollar per hour. Solved as a market: a handful of sums (Dinkelbach).

use yard_core::allocation::Allocation;
use yard_core::job::Rank;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::market::{Market, MarketError, MarketWork, Solution};

use crate::buyers::{BrokenRow, BuyerRows, Buyers, Sight};
use crate::dollars::{DOLLARS, Dollars};
use crate::{OTHER, ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "cost",
    live: "",
    family: "fair shares",
    paper: "Gavel, OSDI 2020",
    there: "all of it, and the artifact's own sum (`artifact=true`)",
    missing: "nothing",
    about: "steps a second for each dollar are as many as can be; the rest runs on devices that would idle",
    params: &[DOLLARS, ARTIFACT],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Speeds],
    make,
};

const ARTIFACT: (&str, &str) =
    ("artifact", "sum up the jobs' own ratios, as the paper's artifact does: true or false [false]");

struct Cost {
    dollars: Dollars,
    artifact: bool,
}

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    Ok(Box::new(Cost { dollars: Dollars::read(params)?, artifact: params.flag("artifact")? }))
}

impl Policy for Cost {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let buyers = Buyers::new(view, BuyerRows::Alike, Sight::Aware)?;
        let dollars = self.dollars.of(&buyers)?;
        let solution = if self.artifact { sum(&buyers, &dollars)? } else { ratio(&buyers, &dollars)? };
        Ok(buyers.allocation(&solution, |_| Rank::default()))
    }
}

fn ratio(buyers: &Buyers<'_>, dollars: &[f64]) -> Result<Solution, PolicyError> {
    let (ones, floor) = (vec![1.0; buyers.rows.len()], vec![0.0; buyers.rows.len()]);
    let solved =
        buyers.market.best_ratio(&ones, dollars, &floor, &MarketWork::default()).map_err(BrokenRow)?;
    solved.map_err(|_| PolicyError("there are no floors to keep, and yet they are not kept".into()))
}

fn sum(buyers: &Buyers<'_>, dollars: &[f64]) -> Result<Solution, PolicyError> {
    let market = per_dollar(&buyers.market, dollars).map_err(BrokenRow)?;
    let ones = vec![1.0; buyers.rows.len()];
    let prices = buyers.last_prices();
    Ok(market.most(&ones, prices.as_deref(), &MarketWork::default()).map_err(BrokenRow)?)
}

/// The same market with each option's speed over what its kinds cost.
fn per_dollar(market: &Market, dollars: &[f64]) -> Result<Market, MarketError> {
    let mut cheap = Market::new(market.capacity().to_vec())?;
    for row in 0..market.rows() {
        cheap.row(market.count(row))?;
        for option in market.options_of(row) {
            let uses: Vec<(u16, f64)> =
                market.uses(option).map(|(kind, devices)| (kind as u16, devices)).collect();
            let devices: f64 = uses.iter().map(|(_, devices)| devices).sum();
            let cost: f64 = uses.iter().map(|(kind, devices)| devices * dollars[*kind as usize]).sum();
            cheap.option(market.speed(option) * devices / cost, &uses)?;
        }
    }
    Ok(cheap)
}

#[cfg(test)]
mod tests {
    use crate::testing::{mixed, policy, speeds_of};

    #[test]
    fn only_the_best_value_has_a_share_and_the_ratio_is_its_own() {
        let view = mixed(&[1, 1], &[(1, &[4.0, 3.0]), (1, &[1.0, 1.0])], &[9.0, 9.0]);
        let allocation = policy("cost:dollars=kind0*2/kind1*1").allocate(&view).unwrap();
        let certificate = allocation.certificate.as_ref().unwrap();
        // Three steps for a dollar on the cheap kind against two on the dear one.
        assert!((certificate.objective - 3.0).abs() < 1e-6 && certificate.gap() < 1e-6, "{certificate:?}");
        assert!(speeds_of(&view, &allocation)[1] == 0.0);
    }

    #[test]
    fn a_kind_whose_price_nobody_knows_is_named() {
        let view = mixed(&[1, 1], &[(1, &[1.0, 1.0])], &[9.0]);
        let said = policy("cost:dollars=kind0*2").allocate(&view).unwrap_err().to_string();
        assert!(said.contains("what kind1 costs") && said.contains("price_per_hour"), "{said}");
    }
}
