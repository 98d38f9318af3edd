//! Auctions of devices for leases, with hidden payments (Mahajan et al., "Themis: Fair and Efficient GPU Cluster
//! Scheduling", NSDI 2020).
//!
//! Objective: of finish-time fairness ρ_j = T_sh / T_id, the worst is brought down. T_id is the time on an own
//! 1/n of each kind, n the jobs there are now; T_sh the time since submission plus the rest at the speed bid for.
//! Whenever leases are over, what they held is offered to the part 1 − f of the other jobs that has the largest
//! ρ. They bid V = 1/ρ for each of their shapes; winners maximise Π V, by trying all where that is cheap and
//! greedily else (only the first is proof against false bids); what is left goes by ρ to those not asked.
//! A gang cannot be cut, so the hidden payment is taken in time: a winner holds its devices for the part c of a
//! lease, to the nearest round, and has nothing for the rest of it. Who was not asked may use idle devices and gives
//! way to any lease; who lost an auction waits for the next one, at the latest a lease from now. Were losers and those
//! that pay given what is idle, bidding the truth would no longer be best.
//! Reads: speeds, steps, costs, submission, devices by kind; a lease is known by the rank it was given with: minus the
//! part of it that may be held, and the end of all of it.
//! Cost: O(jobs · shapes) per round, and bidders² · shapes · log for payments, bidders at most 64.
//! Not to be used for the least mean completion time: long and short jobs bid alike.

mod auction;

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::{Rank, Shape};
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::reach::Reach;
use yard_core::units::Time;
use yard_core::view::View;

use self::auction::{Bid, Bidder};
use crate::sizes::pinned;
use crate::{OTHER, ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "themis",
    live: "",
    family: "fair shares",
    paper: "Themis, Mahajan et al., NSDI 2020",
    there: "finish-time fairness, auctions with hidden payments taken in time, leftovers for who was not asked",
    missing: "several jobs in one app, bids by placement (only shapes are bid for), a random choice of who has leftovers; with many bidders winners are greedy and the payments no proof",
    about: "Leases auctioned among the jobs that are furthest behind their own 1/n of the cluster",
    params: &[
        ("lease", "seconds for which devices are won (1200)"),
        ("f", "part of the jobs that an auction leaves out, from 0 to below 1 (0.8)"),
    ],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make: |params| {
        let (lease, fairness) = (params.positive("lease")?.unwrap_or(1200.0), fairness(params)?);
        Ok(Box::new(Themis { lease, fairness }))
    },
};

/// Bidders in one auction; with more, the payments of each would cost more than they are worth.
const BIDDERS_MAX: usize = 64;

/// The rank's first part of jobs that were not asked. With a lease it is minus the part of it that they may hold.
const LOOSE: f64 = 1.0;

/// ρ is kept within these: a job without steps, or without a place to run, has none.
const RHO_MIN: f64 = 1e-12;
const RHO_MAX: f64 = 1e12;

struct Themis {
    lease: f64,
    fairness: f64,
}

fn fairness(params: &Params) -> Result<f64, ParamError> {
    let Some(text) = params.text("f") else { return Ok(0.8) };
    let number = text.parse().ok().filter(|number: &f64| (0.0..1.0).contains(number));
    let bad =
        || ParamError::Value { key: "f", value: text.to_owned(), allowed: "a number from 0 to below 1" };
    number.ok_or_else(bad)
}

impl Policy for Themis {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let (mut shares, mut free) = (Vec::new(), capacity(view));
        let mut jobs: Vec<Candidate> = Vec::new();
        let cluster = Cluster::new(view);
        let mut paid: Vec<f64> = Vec::new();
        for job in view.active() {
            match self.standing(view, job) {
                BidStanding::Holds => shares.push(keep(view, job, &mut free)),
                BidStanding::Pays { until } => paid.push(until),
                BidStanding::Wants => jobs.push(cluster.candidate(view, job, self.lease)),
            }
        }
        jobs.sort_by(|a, b| b.rho.total_cmp(&a.rho).then(view.run(a.job).id.cmp(&view.run(b.job).id)));
        let asked =
            (((1.0 - self.fairness) * jobs.len() as f64).ceil() as usize).min(BIDDERS_MAX).min(jobs.len());
        let others = jobs.split_off(asked);
        shares.extend(self.auction(view, &jobs, &mut free));
        shares.extend(self.leftovers(view, &others, &mut free));
        let replan_at = view.active().next().map(|_| self.next_auction(view, &shares, &paid));
        Ok(Allocation { replan_at, ..Allocation::preemptive(Shares::All(shares)) })
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

impl Themis {
    /// What the last lease of a job means now. Beats are a round apart, so its end is taken to the nearest. Who may not be
    /// stopped holds its devices whatever it paid.
    fn standing(&self, view: &View, job: JobIdx) -> BidStanding {
        let (Rank(part, end), now) = (view.run(job).rank, view.now.secs());
        if pinned(view, job).is_some() {
            return BidStanding::Holds;
        }
        if part >= 0.0 || end <= now || end > now + self.lease {
            return BidStanding::Wants;
        }
        match view.is_running(job) {
            true if self.held_until(view, Rank(part, end)) > now => BidStanding::Holds,
            false if self.held_until(view, Rank(part, end)) > now => BidStanding::Wants,
            _ if part <= -1.0 => BidStanding::Wants,
            _ => BidStanding::Pays { until: end },
        }
    }

    /// When the part of a lease that may be held is over, less half a round.
    fn held_until(&self, view: &View, Rank(part, end): Rank) -> f64 {
        end - self.lease * (1.0 + part) - view.round.secs() / 2.0
    }

    /// When devices or bidders come back, if nothing happens before.
    fn next_auction(&self, view: &View, shares: &[Share], paid: &[f64]) -> Time {
        let leased = shares.iter().filter(|share| share.rank.0 < 0.0);
        let ends = leased.map(|share| self.held_until(view, share.rank)).chain(paid.iter().copied());
        let now = view.now.secs();
        Time::from_secs(ends.fold(now + self.lease, f64::min).max(now + 1e-6))
    }

    /// Winners get a lease and hold the part of it that they keep; losers get nothing.
    fn auction(&self, view: &View, jobs: &[Candidate], free: &mut [u32]) -> Vec<Share> {
        let bidders: Vec<Bidder> = jobs.iter().map(|job| job.bidder.clone()).collect();
        let won = auction::hold(free, &bidders);
        let share = |(job, won): (&Candidate, auction::Won)| {
            let bid = won.bid?;
            auction::take(free, &job.bidder.bids[bid]);
            Some(job.leased(job.shapes[bid], Rank(-won.keeps, view.now.secs() + self.lease)))
        };
        jobs.iter().zip(won).filter_map(share).collect()
    }

    /// Whole leases for those that were not asked, by ρ, each in the best of its shapes that is left.
    fn leftovers(&self, view: &View, jobs: &[Candidate], free: &mut [u32]) -> Vec<Share> {
        let share = |job: &Candidate| {
            let fitting = (0..job.shapes.len()).filter(|bid| auction::fits(free, &job.bidder.bids[*bid]));
            let value = |bid: &usize| job.bidder.bids[*bid].value;
            let best = fitting.max_by(|a, b| value(a).total_cmp(&value(b)).then(b.cmp(a)));
            let Some(bid) = best else { return job.loose() };
            auction::take(free, &job.bidder.bids[bid]);
            job.leased(job.shapes[bid], Rank(-1.0, view.now.secs() + self.lease))
        };
        jobs.iter().map(share).collect()
    }
}

/// What the last lease of a job means, in seconds of the clock.
enum BidStanding {
    /// It holds its devices.
    Holds,
    /// It gave them back early, as its payment, and is not asked before the lease is over.
    Pays { until: f64 },
    /// It has none.
    Wants,
}

/// A job with its lease, in the shape it holds; its devices are not free.
fn keep(view: &View, job: JobIdx, free: &mut [u32]) -> Share {
    let (shape, rank) = (view.run(job).shape, view.run(job).rank);
    let needs = needs(&view.spec(job).shapes[shape as usize], free.len());
    free.iter_mut().zip(needs).for_each(|(free, need)| *free = free.saturating_sub(need));
    Share { shape: Some(shape), ..Share::whole(job, rank) }
}

/// Devices by kind.
fn needs(shape: &Shape, kinds: usize) -> Vec<u32> {
    let mut needs = vec![0; kinds];
    for need in shape.needs.iter().filter(|need| need.kind.index() < kinds) {
        needs[need.kind.index()] += need.devices;
    }
    needs
}

fn capacity(view: &View) -> Vec<u32> {
    view.kinds.ids().map(|kind| view.capacity(kind)).collect()
}

/// A job without a lease.
#[derive(Clone, Debug)]
struct Candidate {
    job: JobIdx,
    /// Its ρ if it gets nothing now.
    rho: f64,
    bidder: Bidder,
    /// The shape of each bid.
    shapes: Vec<u16>,
}

impl Candidate {
    fn leased(&self, shape: u16, rank: Rank) -> Share {
        Share { shape: Some(shape), ..Share::whole(self.job, rank) }
    }

    /// Any shape that is idle, behind all leases, the furthest behind first.
    fn loose(&self) -> Share {
        Share::whole(self.job, Rank(LOOSE, -self.rho))
    }
}

/// What an own part of the cluster is.
struct Cluster<'v> {
    capacity: Vec<u32>,
    reach: Reach<'v>,
    jobs: f64,
}

impl<'v> Cluster<'v> {
    fn new(view: &'v View) -> Cluster<'v> {
        let (reach, jobs) = (Reach::of(&view.nodes), view.active().count() as f64);
        Cluster { capacity: capacity(view), reach, jobs }
    }

    /// Steps per second on an own 1/n of each kind: the part of the time for which it holds a gang there, if nodes that are
    /// up could hold it at all.
    fn own_speed(&self, view: &View, job: JobIdx) -> f64 {
        let shapes = view.spec(job).shapes.iter().enumerate();
        let part = |shape: &Shape| {
            let parts = shape.needs.iter().map(|need| {
                let most = self.capacity.get(need.kind.index()).copied().unwrap_or(0);
                f64::from(most) / self.jobs / f64::from(need.devices.max(1))
            });
            if self.reach.holds(shape) { parts.fold(f64::INFINITY, f64::min) } else { 0.0 }
        };
        let parts: Vec<(f64, f64)> =
            shapes.map(|(at, shape)| (part(shape), view.speed(job, at as u16))).collect();
        let sum: f64 = parts.iter().map(|(part, _)| part).sum();
        parts.iter().map(|(part, speed)| part / sum.max(1.0) * speed).sum()
    }

    /// What a job would bid.
    fn candidate(&self, view: &View, job: JobIdx, lease: f64) -> Candidate {
        let (spec, run) = (view.spec(job), view.run(job));
        let own = self.own_speed(view, job);
        let (left, since) = (view.steps_left(job), (view.now - run.submitted).secs());
        let rho = |seconds: f64| {
            let rho = (since + seconds) * own / spec.steps;
            if rho.is_nan() { RHO_MAX } else { rho.clamp(RHO_MIN, RHO_MAX) }
        };
        // Who gets nothing waits for a lease and then goes on at its own pace; one that waits already has to start then, as
        // it would now.
        let again = if run.holds() { 0.0 } else { spec.costs.restart().secs() };
        let nothing = rho(lease + again + left / own);
        let restart = |shape: u16| {
            let stays = run.holds() && run.shape == shape;
            if stays { 0.0 } else { spec.costs.restart().secs() }
        };
        let able = |shape: &u16| view.speed(job, *shape) > 0.0;
        let shapes: Vec<u16> = (0..spec.shapes.len() as u16).filter(able).collect();
        let bid = |shape: &u16| Bid {
            value: -libm::log(rho(restart(*shape) + left / view.speed(job, *shape))),
            needs: needs(&spec.shapes[*shape as usize], self.capacity.len()),
        };
        let bids = shapes.iter().map(bid).collect();
        Candidate { job, rho: nothing, bidder: Bidder { nothing: -libm::log(nothing), bids }, shapes }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::Span;
    use yard_core::job::{Costs, Rank};

    use crate::testing::{World, policy};

    #[test]
    fn the_job_furthest_behind_is_served_first() {
        let mut world = World::new(&[2]);
        world.submit_all(&[(2, 10_000.0)]);
        let mut themis = policy("themis:lease=100");
        world.plan(&mut *themis);
        assert_eq!(world.running(), [0]);
        world.advance(10.0);
        world.submit_all(&[(2, 50.0)]);
        world.plan(&mut *themis);
        assert_eq!(world.running(), [0], "a lease is kept");
        world.advance(95.0);
        world.plan(&mut *themis);
        assert_eq!(world.running(), [1], "the lease is over, and the short job is further behind");
    }

    #[test]
    fn a_job_that_takes_longer_to_start_than_a_lease_lasts_is_not_left_out_for_that() {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 1000.0)]);
        let start = Span::from_secs(10_000.0);
        Arc::make_mut(&mut Arc::make_mut(&mut world.view.specs)[0]).costs =
            Costs { start, ..Costs::default() };
        world.plan(&mut *policy("themis:lease=100:f=0"));
        assert_eq!(world.running(), [0]);
    }

    #[test]
    fn a_shape_that_no_node_could_hold_is_nothing_to_wait_for() {
        let mut world = World::new(&[1]);
        world.submit_sizes(&[(1, 1.0), (8, 1000.0)], 1e6);
        world.plan(&mut *policy("themis:lease=100:f=0"));
        assert_eq!(world.running(), [0]);
    }

    #[test]
    fn a_winner_pays_in_time_and_an_unrivalled_one_pays_nothing() {
        let mut alone = World::new(&[1]);
        alone.submit_all(&[(1, 1000.0)]);
        alone.plan(&mut *policy("themis:lease=100:f=0"));
        assert_eq!(alone.shares.values().next().map(|share| share.rank), Some(Rank(-1.0, 100.0)));
        let mut rivals = World::new(&[1]);
        rivals.submit_all(&[(1, 1000.0), (1, 1000.0)]);
        rivals.plan(&mut *policy("themis:lease=100:f=0"));
        let winner = rivals.shares.values().next().unwrap();
        assert!(winner.rank.0 > -1.0 && winner.rank.0 < 0.0, "{:?}", winner.rank);
        assert_eq!(rivals.shares.len(), 1, "who lost gets nothing");
    }

    #[test]
    fn what_an_auction_leaves_goes_to_the_others() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(1, 1000.0); 5]);
        world.plan(&mut *policy("themis:f=0.8"));
        let leased = world.shares.values().filter(|share| share.rank.0 < 0.0).count();
        assert_eq!((leased, world.running().len()), (4, 4));
    }

    #[test]
    fn parameters_are_checked() {
        for spec in ["themis:f=1", "themis:f=x", "themis:lease=0"] {
            assert!(crate::make(spec, std::sync::Arc::from([])).is_err(), "{spec}");
        }
    }
}
