//! Co-adaptive allocation (Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning",
//! OSDI 2021).
//!
//! Objective: max (1/J · Σ_j (speedup_j + 10⁻³)^p)^(1/p), p = −1. A speedup is the speed in a size over that on a fair
//! share, ⌈devices / J⌉ devices. Where a job that holds devices would change its size, it is multiplied by
//! max(T − R·δ, 0) / (T + δ): age T, restarts R so far, δ what a restart takes. A job that holds nothing pays nothing:
//! it must be started some day, and the paper's factor would keep one with many restarts away from idle devices. Who
//! holds devices is not stopped for one that would make no more of them.
//! At most one job that spans nodes lies on any node: a plan spans no more nodes than there are, and the engine places
//! by the rule (`Policy::keeps_apart`), stopping who ranks behind where that makes room.
//! The paper searches with a genetic algorithm (100 generations of 100). Each job adds its own term and jobs meet only
//! in the devices, so this is one option for each row under capacities: solved in prices, with a bound.
//! Of several kinds, a fair share is the mean over them by devices; Pollux itself knows no kinds.
//! Reads: sizes and speeds (goodput, with the best batch size), submission, starts, devices of each kind and node.
//! Cost: O(passes · jobs · sizes), and a bounded search to close the gap.
//! Not to be used for the least mean completion time: long and short jobs count alike.

mod fair;

use smallvec::SmallVec;
use yard_core::allocation::{Allocation, Certificate, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::SolveError;
use yard_solver::choice::{BuyerChoice, ChoiceWork, Selection};

use self::fair::FairCluster;
use crate::sizes::{behind, chosen, ladders, pinned};
use crate::{OTHER, ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "pollux",
    live: "",
    family: "elastic",
    paper: "Pollux, Qiao et al., OSDI 2021",
    there: "the power mean of speedups, the restart factor, at most one job that spans nodes on a node",
    missing: "the genetic search (solved in prices with a proof instead), autoscaling of the cluster, at most 16 nodes for a job; what was promised is placed without the rule",
    about: "Sizes for the largest power mean of speedups over a fair share, with a penalty for restarts",
    params: &[
        ("p", "power of the mean: -1 harmonic, 1 the sum, lower is fairer; not 0 [-1]"),
        ("restart", "seconds that a restart is taken to cost [30]"),
    ],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Speeds],
    make: |params| {
        Ok(Box::new(Pollux { power: power(params)?, restart: params.positive("restart")?.unwrap_or(30.0) }))
    },
};

/// Added to each speedup, so that a job without devices is bad but not infinitely so.
const SPEEDUP_MIN: f64 = 1e-3;

/// Terms of jobs without devices are a thousand times those of others, so the distance from the bound must be small
/// against all terms together to be small against the others.
const LIMITS: ChoiceWork = ChoiceWork { passes: 400, gap: 1e-7, states: 300_000 };

struct Pollux {
    power: f64,
    restart: f64,
}

fn power(params: &Params) -> Result<f64, ParamError> {
    let Some(text) = params.text("p") else { return Ok(-1.0) };
    let number = text.parse().ok().filter(|number: &f64| (-10.0..=10.0).contains(number) && *number != 0.0);
    let bad =
        || ParamError::Value { key: "p", value: text.to_owned(), allowed: "a number from -10 to 10, not 0" };
    number.ok_or_else(bad)
}

impl Policy for Pollux {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let cluster = FairCluster::new(view);
        let rows: Vec<PolluxRow> = view.active().map(|job| self.row(view, &cluster, job)).collect();
        let mut selection = solve(&cluster, &rows).map_err(|error| PolicyError(error.to_string()))?;
        stay(&rows, &mut selection);
        let shares =
            rows.iter().zip(&selection.chosen).filter_map(|(row, at)| share(view, row, *at)).collect();
        let mut allocation = Allocation::preemptive(Shares::All(shares));
        allocation.certificate = Some(Box::new(self.certificate(&cluster, &rows, &selection)));
        // Speeds are learned and ages grow, so sizes may change though nothing happens.
        let again = !rows.is_empty() && view.round.0 > 0;
        allocation.replan_at = again.then(|| view.now + view.round);
        Ok(allocation)
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }

    fn keeps_apart(&self) -> bool {
        true
    }
}

/// A job with the sizes it may have.
struct PolluxRow {
    job: JobIdx,
    /// Its term in the sum where it has nothing; it may have that too.
    nothing: f64,
    options: Vec<Opt>,
    /// It keeps what it has.
    pinned: bool,
    /// Whether it holds devices, and the option that it holds, if that is one.
    holds: bool,
    held: Option<u32>,
    /// The shape it may use when devices fall free.
    least: Option<u16>,
}

struct Opt {
    shape: u16,
    term: f64,
    uses: SmallVec<[(u16, u32); 2]>,
}

impl Pollux {
    fn row(&self, view: &View, cluster: &FairCluster, job: JobIdx) -> PolluxRow {
        let (ladders, fair) = (ladders(view, job), cluster.fair_speed(view, job));
        let kept = pinned(view, job);
        let shapes: Vec<u16> = match kept {
            Some(shape) => vec![shape],
            None => ladders.iter().flatten().map(|size| size.shape).collect(),
        };
        let option = |shape: u16| Opt {
            shape,
            term: self.term(view.speed(job, shape) / fair * self.kept(view, job, shape)),
            uses: cluster.uses(&view.spec(job).shapes[shape as usize]),
        };
        let least = ladders.iter().map(|ladder| ladder[0]).min_by_key(|size| size.devices);
        let run = view.run(job);
        let held = shapes.iter().position(|shape| run.lease.is_some() && *shape == run.shape);
        PolluxRow {
            job,
            nothing: self.term(0.0),
            holds: run.lease.is_some(),
            held: held.map(|at| at as u32),
            options: shapes.into_iter().map(option).collect(),
            pinned: kept.is_some(),
            least: least.map(|size| size.shape),
        }
    }

    /// What a change of size leaves of a speedup.
    fn kept(&self, view: &View, job: JobIdx, shape: u16) -> f64 {
        let run = view.run(job);
        if run.lease.is_none() || run.shape == shape {
            return 1.0;
        }
        let (age, restarts) = ((view.now - run.submitted).secs(), f64::from(run.starts.saturating_sub(1)));
        (age - restarts * self.restart).max(0.0) / (age + self.restart)
    }

    /// What a job with this speedup adds to the sum that is to be small.
    fn term(&self, speedup: f64) -> f64 {
        let speedup = if speedup.is_finite() { speedup } else { 0.0 };
        -libm::copysign(1.0, self.power) * libm::pow(speedup + SPEEDUP_MIN, self.power)
    }

    /// The power mean of so many speedups whose terms add up to this.
    fn mean(&self, terms: f64, rows: usize) -> f64 {
        let mean = -libm::copysign(1.0, self.power) * terms / rows.max(1) as f64;
        libm::pow(mean.max(f64::MIN_POSITIVE), 1.0 / self.power)
    }

    fn certificate(&self, cluster: &FairCluster, rows: &[PolluxRow], selection: &Selection) -> Certificate {
        let nothing: f64 = rows.iter().map(|row| row.nothing).sum();
        let kinds = &selection.prices[..cluster.devices.len()];
        let all: f64 =
            kinds.iter().zip(&cluster.devices).map(|(price, devices)| price * f64::from(*devices)).sum();
        let prices = if all > 0.0 { kinds.iter().map(|price| price / all).collect() } else { Vec::new() };
        Certificate {
            objective: self.mean(nothing - selection.objective, rows.len()),
            bound: self.mean(nothing - selection.bound, rows.len()),
            prices,
            unmet: Vec::new(),
        }
    }
}

/// Chosen or behind the chosen.
fn share(view: &View, row: &PolluxRow, at: Option<u32>) -> Option<Share> {
    let at = if row.pinned { Some(0) } else { at };
    match at {
        Some(at) => Some(chosen(view, row.job, row.options[at as usize].shape)),
        None => Some(behind(view, row.job, row.least?)),
    }
}

/// Who is to lose its devices to one that holds none and would make no more of them keeps them. Two that are equal would
/// otherwise take them from each other in every round, and where a start takes longer than that neither would ever run.
fn stay(rows: &[PolluxRow], selection: &mut Selection) {
    let loses = |at: &usize| !rows[*at].pinned && selection.chosen[*at].is_none() && rows[*at].held.is_some();
    let losers: Vec<usize> = (0..rows.len()).filter(loses).collect();
    for loser in losers {
        let taker = (0..rows.len()).find(|at| rows[*at].gains_nothing(selection.chosen[*at], &rows[loser]));
        if let Some(taker) = taker {
            let worth =
                |row: &PolluxRow, at: Option<u32>| at.map_or(0.0, |at| row.worth(&row.options[at as usize]));
            selection.objective += worth(&rows[loser], rows[loser].held);
            selection.objective -= worth(&rows[taker], selection.chosen[taker]);
            selection.bound = selection.bound.max(selection.objective);
            selection.chosen.swap(loser, taker);
            selection.chosen[loser] = rows[loser].held;
        }
    }
}

impl PolluxRow {
    /// What it adds where it has this.
    fn worth(&self, option: &Opt) -> f64 {
        self.nothing - option.term
    }

    /// Whether it holds nothing and is to have what would do as much for a holder of no more than that.
    fn gains_nothing(&self, chosen: Option<u32>, holder: &PolluxRow) -> bool {
        let (Some(chosen), Some(held)) = (chosen.filter(|_| !self.holds), holder.held) else { return false };
        let (own, held) = (&self.options[chosen as usize], &holder.options[held as usize]);
        let enough =
            |(what, count): &(u16, u32)| own.uses.iter().any(|(of, many)| of == what && many >= count);
        holder.worth(held) >= self.worth(own) && held.uses.iter().all(enough)
    }
}

fn solve(cluster: &FairCluster, rows: &[PolluxRow]) -> Result<Selection, SolveError> {
    let capacity: Vec<u32> = cluster.devices.iter().chain(&cluster.nodes).copied().collect();
    let mut choice = BuyerChoice::new(capacity);
    for row in rows.iter().filter(|row| row.pinned) {
        choice.pin(row.worth(&row.options[0]), &row.options[0].uses)?;
    }
    for row in rows {
        choice.row();
        for option in row.options.iter().filter(|_| !row.pinned) {
            choice.option(row.worth(option), &option.uses)?;
        }
    }
    Ok(choice.solve(&LIMITS))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::sync::Arc;
    use yard_core::cluster::Level;
    use yard_core::ids::{KindId, LeaseId};
    use yard_core::job::Shape;
    use yard_core::units::Time;

    use super::*;
    use crate::testing::{elastic, policy};

    const HARMONIC: Pollux = Pollux { power: -1.0, restart: 30.0 };

    type Job = (Vec<(u16, u32, f64)>, f64);

    fn view(devices: &[u32], jobs: &[Job]) -> View {
        let jobs: Vec<_> = jobs.iter().map(|(sizes, steps)| (&sizes[..], *steps)).collect();
        elastic(devices, &jobs)
    }

    /// The least sum of terms, by trying everything.
    fn least(rows: &[PolluxRow], left: &[u32]) -> f64 {
        let Some((row, rest)) = rows.split_first() else { return 0.0 };
        let mut best = row.nothing + least(rest, left);
        for option in &row.options {
            let mut then = left.to_vec();
            let fits = option.uses.iter().all(|(at, many)| {
                let own = &mut then[*at as usize];
                let fits = *own >= *many;
                *own = own.saturating_sub(*many);
                fits
            });
            if fits {
                best = best.min(option.term + least(rest, &then));
            }
        }
        best
    }

    fn job() -> impl Strategy<Value = Job> {
        let sizes = |(power, other, base): (f64, f64, f64)| {
            let of = |kind: u16, base: f64| {
                [1u32, 2, 4].map(|k| (kind, k, base * libm::pow(f64::from(k), power))).to_vec()
            };
            ([of(0, base), of(1, base * other)].concat(), 100.0)
        };
        (0.1..1.0f64, 0.3..3.0f64, 0.1..10.0f64).prop_map(sizes)
    }

    proptest! {
        #[test]
        fn no_allocation_has_a_larger_mean(
            jobs in prop::collection::vec(job(), 1..5), devices in (1u32..7, 0u32..5),
        ) {
            let view = view(&[devices.0, devices.1], &jobs);
            let answer = policy("pollux").allocate(&view).unwrap();
            let cluster = FairCluster::new(&view);
            let rows: Vec<PolluxRow> = view.active().map(|job| HARMONIC.row(&view, &cluster, job)).collect();
            let capacity: Vec<u32> = cluster.devices.iter().chain(&cluster.nodes).copied().collect();
            let best = HARMONIC.mean(least(&rows, &capacity), rows.len());
            let proof = answer.certificate.unwrap();
            prop_assert!(proof.bound >= best * (1.0 - 1e-9), "{} < {best}", proof.bound);
            prop_assert!(proof.objective >= best * 0.999 && proof.objective <= best * 1.000001, "{} {best}", proof.objective);
            let Shares::All(shares) = answer.shares else { panic!("all of them") };
            let speed = |share: &Share| view.speed(share.jobs[0], share.shape.unwrap());
            let speedups = shares.iter().map(|share| {
                let speedup = speed(share) / cluster.fair_speed(&view, share.jobs[0]);
                if share.rank.0 < 0.0 { speedup } else { 0.0 }
            });
            let terms: f64 = speedups.map(|speedup| 1.0 / (speedup + 1e-3)).sum();
            let reached = jobs.len() as f64 / terms;
            prop_assert!((reached / proof.objective - 1.0).abs() < 1e-9, "{reached} is not {}", proof.objective);
        }
    }

    fn running(view: &mut View, row: usize, shape: u16, starts: u32) {
        let run = &mut Arc::make_mut(&mut view.runs)[row];
        (run.lease, run.shape, run.starts) = (Some(LeaseId(row as u64 + 1)), shape, starts);
    }

    #[test]
    fn a_small_gain_is_not_worth_a_restart_and_a_young_job_is_left_alone() {
        let sizes = vec![(0, 1, 1.0), (0, 2, 1.9)];
        let mut view = view(&[2], &[(sizes, 1e6)]);
        running(&mut view, 0, 0, 1);
        let mut shape_at = |seconds: f64| {
            view.now = Time::from_secs(seconds);
            let Shares::All(shares) = policy("pollux").allocate(&view).unwrap().shares else { panic!("all") };
            shares[0].shape
        };
        assert_eq!(shape_at(20.0), Some(0), "20 / 50 of 1.9 is less than 1");
        assert_eq!(shape_at(100.0), Some(1), "100 / 130 of 1.9 is more");
    }

    #[test]
    fn restarts_so_far_make_the_next_one_dearer() {
        let mut view = view(&[2], &[(vec![(0, 1, 1.0), (0, 2, 1.9)], 1e6)]);
        view.now = Time::from_secs(100.0);
        running(&mut view, 0, 0, 3);
        assert_eq!(HARMONIC.kept(&view, JobIdx(0), 1), 40.0 / 130.0);
        assert_eq!(HARMONIC.kept(&view, JobIdx(0), 0), 1.0);
        running(&mut view, 0, 0, 9);
        assert_eq!(HARMONIC.kept(&view, JobIdx(0), 1), 0.0);
    }

    #[test]
    fn of_two_that_are_equal_the_one_that_runs_runs_on() {
        let sizes = vec![(0, 7, 1.0), (0, 9, 1.1)];
        for (holder, slower) in [(0, 1.0), (1, 1.0), (0, 0.5), (1, 0.5)] {
            // A speedup is relative, so that one at half the speed is no less.
            let half = sizes.iter().map(|(kind, devices, speed)| (*kind, *devices, speed * slower)).collect();
            let mut view = view(&[9], &[(sizes.clone(), 1e3), (half, 1e3)]);
            view.now = Time::from_secs(1e4);
            running(&mut view, holder, 1, 300);
            let answer = policy("pollux").allocate(&view).unwrap();
            let Shares::All(shares) = answer.shares else { panic!("all") };
            let first = shares.iter().find(|share| share.rank.0 < 0.0).unwrap();
            assert_eq!((first.jobs[0], first.shape), (JobIdx(holder as u32), Some(1)), "{shares:?}");
        }
    }

    #[test]
    fn jobs_over_several_nodes_do_not_meet_on_one() {
        // Six nodes of one device each, as far as counting goes two jobs of three would fit beside each other.
        let sizes = vec![(0, 1, 1.0), (0, 3, 2.9)];
        let mut view = view(&[6], &[(sizes.clone(), 1.0), (sizes, 1.0)]);
        let cluster = FairCluster::new(&view);
        let span = |devices| cluster.uses(&Shape::of(KindId(0), devices)).to_vec();
        assert_eq!(span(1), [(0, 1)]);
        assert_eq!(span(3), [(0, 3), (1, 3)]);
        let within = Shape::of(KindId(0), 3).within(Level::Node);
        assert_eq!(cluster.uses(&within).to_vec(), [(0, 3)]);
        view.now = Time::from_secs(1.0);
        let Shares::All(shares) = policy("pollux").allocate(&view).unwrap().shares else { panic!("all") };
        assert!(shares.iter().all(|share| share.shape == Some(1)), "{shares:?}");
    }

    #[test]
    fn parameters_are_checked() {
        for spec in ["pollux:p=0", "pollux:p=x", "pollux:restart=0"] {
            assert!(crate::make(spec, Arc::from([])).is_err(), "{spec}");
        }
    }
}
