//! Most throughput on mixed kinds (Gavel, Narayanan et al., OSDI 2020, section 4.2): maximise Σ_m speed_m(X),
//! in steps a second as the paper writes it, or each job's relative to its even share (`normalised=true`),
//! which does not favour models with small steps.
//!
//! Objective: that sum. Solved as a market. With `packed=true` pairs of jobs may share devices: see `packs`.

use yard_core::allocation::Allocation;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::market::MarketWork;

use crate::buyers::{BrokenRow, BuyerRows, Buyers, Sight};
use crate::packs::Packs;
use crate::{OTHER, ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "max-throughput",
    live: "",
    family: "fair shares",
    paper: "Gavel, OSDI 2020",
    there: "all of it, with pairs (`packed=true`)",
    missing: "nothing",
    about: "the steps a second of all jobs together are as many as can be, on mixed kinds",
    params: &[
        ("normalised", "count each job's speed over that of an even share: true or false [false]"),
        crate::params::PACKED,
    ],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Speeds],
    make,
};

struct MaxThroughput {
    normalised: bool,
    packed: bool,
}

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    Ok(Box::new(MaxThroughput { normalised: params.flag("normalised")?, packed: params.packed()? }))
}

impl Policy for MaxThroughput {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        if self.packed {
            return Packs::new(view)?.most(self.normalised);
        }
        let buyers = Buyers::new(view, BuyerRows::Alike, Sight::Aware)?;
        let value = if self.normalised { buyers.normal() } else { vec![1.0; buyers.rows.len()] };
        let solved = buyers.market.most(&value, buyers.last_prices().as_deref(), &MarketWork::default());
        Ok(buyers.allocation_by_value(&solved.map_err(BrokenRow)?, &value))
    }
}
