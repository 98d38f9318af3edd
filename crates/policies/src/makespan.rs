//! Least makespan on mixed kinds (Gavel, Narayanan et al., OSDI 2020, section 4.2): minimise the time in which
//! all jobs present would be done, max_m steps_m / speed_m(X); one level search over 1 / T rather than the
//! bisection of the paper, and exact. Of all optima, the one with the largest total normalised throughput.
//!
//! Objective: seconds until all are done, less is better. Solved as a market. With `packed=true` pairs of jobs may share
//! devices: see `packs`.

use yard_core::allocation::Allocation;
use yard_core::job::Rank;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::market::MarketWork;

use crate::buyers::{BrokenRow, BuyerRows, Buyers, BuyersRest, Sight};
use crate::packs::Packs;
use crate::{OTHER, ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "makespan",
    live: "",
    family: "fair shares",
    paper: "Gavel, OSDI 2020",
    there: "all of it, with pairs (`packed=true`)",
    missing: "nothing",
    about: "all jobs present are done as early as can be, on mixed kinds",
    params: &[crate::params::AGNOSTIC, crate::params::REST, crate::params::PACKED],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make,
};

struct Makespan {
    sight: Sight,
    rest: BuyersRest,
    packed: bool,
}

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    let (sight, rest, packed) = (params.sight()?, params.rest()?, params.packed()?);
    Ok(Box::new(Makespan { sight, rest, packed }))
}

impl Policy for Makespan {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        if self.packed {
            return Packs::new(view)?.makespan();
        }
        let buyers = Buyers::new(view, BuyerRows::Single, self.sight)?;
        let steps = buyers.column(|row| view.steps_left(row.jobs[0]));
        let prices = buyers.last_prices();
        let solved = buyers.market.max_min(&steps, prices.as_deref(), &MarketWork::default());
        let mut solution = solved.map_err(BrokenRow)?;
        let floor: Vec<f64> = steps.iter().map(|steps| steps * solution.objective).collect();
        buyers.give_rest(&mut solution, &floor, self.rest)?;
        if solution.objective > 0.0 {
            (solution.objective, solution.bound) = (1.0 / solution.objective, 1.0 / solution.bound);
        }
        Ok(buyers.allocation(&solution, |_| Rank::default()))
    }

    fn agnostic(&self) -> bool {
        self.sight == Sight::Agnostic
    }
}
