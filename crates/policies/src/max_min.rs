//! Max-min fairness on mixed kinds, also called heterogeneity-aware LAS (Gavel, Narayanan et al., OSDI 2020,
//! section 4.1): maximise the smallest normalised throughput, min_m size_m · speed_m(X) / (weight_m · even_m),
//! where even_m is the job's speed on an even share of all kinds. Of all optima, the one with the largest
//! total normalised throughput.
//!
//! Objective: that minimum. Solved as a market (`yard_solver::market`): tens of passes over the distinct jobs.
//! With `packed=true` (section 4.4) pairs of jobs may share devices: see `packs`.

use yard_core::allocation::Allocation;
use yard_core::job::Rank;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::market::MarketWork;
use yard_solver::packed;

use crate::buyers::{BrokenRow, BuyerRows, Buyers, BuyersRest, Sight};
use crate::packs::Packs;
use crate::{ParamError, Params, PolicyEntry, WEIGHT};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "max-min",
    live: "sharing::two_jobs_share_one_device_where_the_table_says_they_go_well_together",
    family: "fair shares",
    paper: "Gavel, OSDI 2020",
    there: "all of it, with pairs (`packed=true`)",
    missing: "nothing",
    about: "the smallest normalised throughput of all jobs is as large as can be, on mixed kinds",
    params: &[crate::params::AGNOSTIC, crate::params::REST, crate::params::PACKED],
    rounds: true,
    priority: Priorities::Refused(WEIGHT),
    needs: &[Knowledge::Speeds],
    make,
};

struct MaxMin {
    sight: Sight,
    rest: BuyersRest,
    packed: bool,
}

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    let (sight, rest, packed) = (params.sight()?, params.rest()?, params.packed()?);
    Ok(Box::new(MaxMin { sight, rest, packed }))
}

impl Policy for MaxMin {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        if self.packed {
            return Packs::new(view)?.level(packed::max_min);
        }
        let buyers = Buyers::new(view, BuyerRows::Alike, self.sight)?;
        let (fair, prices) = (buyers.fair(), buyers.last_prices());
        let solved = buyers.market.max_min(&fair, prices.as_deref(), &MarketWork::default());
        let mut solution = solved.map_err(BrokenRow)?;
        let floor: Vec<f64> = fair.iter().map(|speed| speed * solution.objective).collect();
        buyers.give_rest(&mut solution, &floor, self.rest)?;
        Ok(buyers.allocation(&solution, |_| Rank::default()))
    }

    fn agnostic(&self) -> bool {
        self.sight == Sight::Agnostic
    }
}
