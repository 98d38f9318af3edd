//! Finish-time fairness on mixed kinds (Themis' measure, Mahajan et al., NSDI 2020, as the policy of Gavel,
//! Narayanan et al., OSDI 2020, section 4.2): minimise the largest ρ_m = (elapsed_m + steps_m / speed_m(X)) /
//! alone_m. alone_m is what the whole job would take on a 1/n share of the cluster: the time that the share of
//! each moment would have needed for the progress made, and for the steps left the share of now.
//!
//! Objective: the largest ρ, less is better. Solved as a market with a convex need. With `packed=true` pairs of
//! jobs may share devices (see `packs`); the share alone is still that of a job by itself.

use yard_core::allocation::Allocation;
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::market::{Finish, MarketWork};
use yard_solver::reference::Progress;

use crate::buyers::{BrokenRow, BuyerRow, BuyerRows, Buyers, BuyersRest, Sight};
use crate::packs::Packs;
use crate::{OTHER, ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "finish-time",
    live: "",
    family: "fair shares",
    paper: "Gavel, OSDI 2020; Themis, NSDI 2020",
    there: "Gavel's form of it, with pairs (`packed=true`)",
    missing: "nothing of Gavel's; of Themis the auction: see `themis`",
    about: "the largest finish time over that on a 1/n share alone is as small as can be, on mixed kinds",
    params: &[crate::params::AGNOSTIC, crate::params::REST, crate::params::PACKED],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make,
};

struct FinishTime {
    sight: Sight,
    rest: BuyersRest,
    packed: bool,
}

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    let (sight, rest, packed) = (params.sight()?, params.rest()?, params.packed()?);
    Ok(Box::new(FinishTime { sight, rest, packed }))
}

impl Policy for FinishTime {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        if self.packed {
            return packed(view);
        }
        let buyers = Buyers::new(view, BuyerRows::Single, self.sight)?;
        let n = buyers.rows.len();
        let job = |row: &BuyerRow| row.jobs[0];
        let ranks: Vec<Rank> = (0..n).map(|row| history(&buyers, row, job(&buyers.rows[row]), n)).collect();
        let steps = buyers.column(|row| steps_left(view, job(row)));
        let elapsed = buyers.column(|row| elapsed(view, job(row)));
        let alone: Vec<f64> = ranks.iter().map(|rank| rank.0).collect();
        let finish = Finish { steps: &steps, alone: &alone, elapsed: &elapsed };
        let prices = buyers.last_prices();
        let solved = buyers.market.finish_time(&finish, prices.as_deref(), &MarketWork::default());
        let mut solution = solved.map_err(BrokenRow)?;
        // Who can no longer be done by then, however fast, keeps what it has.
        let floor = |row| finish.speed(row, solution.objective).min(f64::MAX);
        let floor: Vec<f64> = (0..steps.len()).map(floor).collect();
        buyers.give_rest(&mut solution, &floor, self.rest)?;
        Ok(buyers.allocation(&solution, |row| ranks[row]))
    }

    fn agnostic(&self) -> bool {
        self.sight == Sight::Agnostic
    }
}

/// The same where jobs may share devices.
fn packed(view: &View) -> Result<Allocation, PolicyError> {
    let packs = Packs::new(view)?;
    let n = packs.jobs();
    let rank = |row: usize, job: JobIdx| history(&packs.buyers, row, job, n);
    let progress = |row: usize, job: JobIdx| Progress {
        steps: steps_left(view, job),
        isolated: rank(row, job).0,
        elapsed: elapsed(view, job),
    };
    packs.finish_time(progress, rank)
}

fn elapsed(view: &View, job: JobIdx) -> f64 {
    (view.now - view.run(job).submitted).secs()
}

/// A job that is believed done, and has not said so, still has a little to do.
pub(crate) fn steps_left(view: &View, job: JobIdx) -> f64 {
    view.steps_left(job).max(1e-9 * view.spec(job).steps)
}

/// Seconds that the whole job takes on its 1/n share, and the speed of that share now. With both from the last
/// plan, progress since then is accounted at the speed of then, and nothing else need be remembered.
fn history(buyers: &Buyers<'_>, row: usize, job: JobIdx, n: usize) -> Rank {
    let view = buyers.view;
    let (steps, share) = (steps_left(view, job), share_speed(buyers, row, n));
    let Rank(alone, speed) = view.run(job).rank;
    let worked = if speed > 0.0 { (alone - steps / speed).max(0.0) } else { 0.0 };
    Rank(worked + steps / share, share)
}

/// Speed of a job on a 1/n share of every kind, within its own time.
fn share_speed(buyers: &Buyers<'_>, row: usize, n: usize) -> f64 {
    let BuyerRow { size, even, .. } = &buyers.rows[row];
    let devices: f64 = buyers.kinds.iter().map(|kind| buyers.view.capacity(*kind) as f64).sum();
    let time = devices / n as f64 / size;
    even * time.min(1.0)
}
