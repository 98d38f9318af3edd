//! Water filling on mixed kinds (Gavel, Narayanan et al., OSDI 2020, section 4.3): max-min fairness to the end.
//! Once the smallest normalised throughput is as large as can be, the next smallest is raised, and so on: the
//! lexicographic maximum.
//!
//! Objective: the smallest normalised throughput, as for `max-min`. Solved as a market, once for each level at
//! which somebody can rise no further. With `packed=true` pairs of jobs may share devices: see `packs`.

use yard_core::allocation::Allocation;
use yard_core::job::Rank;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::market::{MarketWork, Weights};
use yard_solver::packed;

use crate::buyers::{BrokenRow, BuyerRows, Buyers, Sight};
use crate::packs::Packs;
use crate::{ParamError, Params, PolicyEntry, WEIGHT};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "water-filling",
    live: "",
    family: "fair shares",
    paper: "Gavel, OSDI 2020",
    there: "all of it, with pairs (`packed=true`)",
    missing: "nothing",
    about: "max-min fairness to the end: after the smallest throughput the next smallest is raised, and so on",
    params: &[crate::params::AGNOSTIC, crate::params::PACKED],
    rounds: true,
    priority: Priorities::Refused(WEIGHT),
    needs: &[Knowledge::Speeds],
    make,
};

struct WaterFilling {
    sight: Sight,
    packed: bool,
}

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    Ok(Box::new(WaterFilling { sight: params.sight()?, packed: params.packed()? }))
}

impl Policy for WaterFilling {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        if self.packed {
            return Packs::new(view)?.level(packed::water_filling);
        }
        let buyers = Buyers::new(view, BuyerRows::Alike, self.sight)?;
        let (fair, prices) = (buyers.fair(), buyers.last_prices());
        let filled =
            buyers.market.water_fill(&Weights::Fixed(&fair), prices.as_deref(), &MarketWork::default());
        Ok(buyers.allocation(&filled.map_err(BrokenRow)?, |_| Rank::default()))
    }

    fn agnostic(&self) -> bool {
        self.sight == Sight::Agnostic
    }
}
