//! Fair shares at two levels (Gavel, Narayanan et al., OSDI 2020, section 4.3): entities, which are tenants or
//! else users, share the cluster by their weights, and inside an entity its jobs share by theirs or go first
//! come, first served. Water filling with weights that are worked out anew whenever somebody can rise no
//! further: what a finished or satisfied job leaves goes to its own entity first.
//!
//! Objective: the first level, the smallest normalised throughput over weight. Solved as a market, once for
//! each level at which somebody stops.

use std::collections::BTreeMap;

use yard_core::allocation::Allocation;
use yard_core::job::{JobSpec, Rank};
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::market::{MarketWork, Weights};

use crate::buyers::{BrokenRow, BuyerRows, Buyers, Sight};
use crate::params::bad;
use crate::{ParamError, Params, PolicyEntry, WEIGHT};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "hierarchical",
    live: "",
    family: "fair shares",
    paper: "Gavel, OSDI 2020",
    there: "two levels, by shares or first come, first served inside an entity",
    missing: "deeper trees",
    about: "tenants share by weight, and inside a tenant its jobs share or go first come, first served",
    params: &[
        (
            "weights",
            "weights of tenants (or users, where jobs name none), written team-a*2/team-b*1 [1 each]",
        ),
        ("inside", "inside a tenant: fair or fifo [fair]"),
        crate::params::AGNOSTIC,
    ],
    rounds: true,
    priority: Priorities::Refused(WEIGHT),
    needs: &[Knowledge::Speeds],
    make,
};

/// What happens inside an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Fair,
    Fifo,
}

struct Hierarchical {
    weights: BTreeMap<String, f64>,
    inside: Inside,
    sight: Sight,
}

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    let inside = match params.text("inside") {
        None | Some("fair") => Inside::Fair,
        Some("fifo") => Inside::Fifo,
        Some(text) => return Err(bad("inside", text, "fair or fifo")),
    };
    Ok(Box::new(Hierarchical { weights: params.weights("weights")?, inside, sight: params.sight()? }))
}

impl Policy for Hierarchical {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let buyers = Buyers::new(view, BuyerRows::Single, self.sight)?;
        let entities = self.entities(&buyers);
        let weigh = |frozen: &[bool]| self.weigh(&buyers, &entities, frozen);
        let prices = buyers.last_prices();
        let filled =
            buyers.market.water_fill(&Weights::Shared(&weigh), prices.as_deref(), &MarketWork::default());
        Ok(buyers.allocation(&filled.map_err(BrokenRow)?, |_| Rank::default()))
    }

    fn agnostic(&self) -> bool {
        self.sight == Sight::Agnostic
    }
}

/// An entity: its weight and its rows, oldest job first.
struct Entity {
    weight: f64,
    rows: Vec<usize>,
}

impl Hierarchical {
    fn entities(&self, buyers: &Buyers<'_>) -> Vec<Entity> {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (row, buyer) in buyers.rows.iter().enumerate() {
            by_name.entry(name(buyers.view.spec(buyer.jobs[0]))).or_default().push(row);
        }
        let entity = |(name, mut rows): (&str, Vec<usize>)| {
            rows.sort_by_key(|row| buyers.view.run(buyers.rows[*row].jobs[0]).id);
            Entity { weight: self.weights.get(name).copied().unwrap_or(1.0), rows }
        };
        by_name.into_iter().map(entity).collect()
    }

    /// What the next level means to each row, given who is frozen.
    fn weigh(&self, buyers: &Buyers<'_>, entities: &[Entity], frozen: &[bool]) -> Vec<f64> {
        let mut weights = vec![0.0; frozen.len()];
        for entity in entities {
            let rising: Vec<usize> = entity.rows.iter().copied().filter(|row| !frozen[*row]).collect();
            let rising =
                if self.inside == Inside::Fifo { &rising[..rising.len().min(1)] } else { &rising[..] };
            let all: f64 = rising.iter().map(|row| buyers.rows[*row].weight).sum();
            for row in rising {
                let buyer = &buyers.rows[*row];
                weights[*row] = entity.weight * buyer.weight / all * buyer.even / buyer.size;
            }
        }
        weights
    }
}

/// The entity that a job counts for.
fn name(spec: &JobSpec) -> &str {
    spec.tenant.as_deref().or(spec.user.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::testing::{mixed, policy, speeds_of};

    fn speeds(spec: &str) -> Vec<f64> {
        let mut view = mixed(&[2], &[(1, &[1.0]), (1, &[1.0]), (1, &[1.0]), (1, &[1.0])], &[9.0; 4]);
        let tenants = ["a", "a", "a", "b"];
        let named = view.specs.iter().zip(tenants).map(|(spec, tenant)| {
            let mut spec = (**spec).clone();
            spec.tenant = Some(tenant.into());
            Arc::new(spec)
        });
        view.specs = Arc::new(named.collect());
        let allocation = policy(spec).allocate(&view).unwrap();
        speeds_of(&view, &allocation)
    }

    fn about(found: &[f64], wanted: &[f64]) {
        assert!(
            found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4),
            "{found:?} instead of {wanted:?}"
        );
    }

    #[test]
    fn tenants_share_first_and_their_jobs_after() {
        about(&speeds("hierarchical"), &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0]);
        about(&speeds("hierarchical:weights=a*9/b*1"), &[0.6, 0.6, 0.6, 0.2]);
    }

    #[test]
    fn inside_a_tenant_the_first_may_come_first() {
        about(&speeds("hierarchical:inside=fifo"), &[1.0, 0.0, 0.0, 1.0]);
    }
}
