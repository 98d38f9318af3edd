//! Most throughput on mixed kinds (Gavel, Narayanan et al., OSDI 2020, section 4.2): maximise Σ_m speed_m(X),
//! in steps a second as the paper writes it, or each job's relative to its even share (`normalised=true`),
//! which does not favour models with small steps.
//!
//! Objective: that sum. Solved as a market.

use yard_core::allocation::Allocation;
use yard_core::job::Rank;
use yard_core::policy::{Policy, PolicyError};
use yard_core::view::View;
use yard_solver::market::Limits;

use crate::buyers::{Broken, Buyers, Rows, Sight};
use crate::{Entry, ParamError, Params};

pub(crate) const ENTRY: Entry = Entry {
    name: "max-throughput",
    family: "fair shares",
    paper: "Gavel, OSDI 2020",
    about: "the steps a second of all jobs together are as many as can be, on mixed kinds",
    params: &[("normalised", "count each job's speed over that of an even share: true or false [false]")],
    rounds: true,
    make,
};

struct MaxThroughput {
    normalised: bool,
}

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    Ok(Box::new(MaxThroughput { normalised: params.flag("normalised")? }))
}

impl Policy for MaxThroughput {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let buyers = Buyers::new(view, Rows::Alike, Sight::Aware)?;
        let value = if self.normalised { buyers.normal() } else { vec![1.0; buyers.rows.len()] };
        let solved = buyers.market.most(&value, buyers.last_prices().as_deref(), &Limits::default());
        Ok(buyers.allocation(&solved.map_err(Broken)?, |_| Rank::default()))
    }
}
