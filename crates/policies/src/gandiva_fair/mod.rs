//! Users share the cluster by tickets and trade kinds of devices (Chaudhary et al., "Balancing Efficiency and
//! Fairness in Heterogeneous GPU Clusters for Deep Learning", EuroSys 2020).
//!
//! Objective: user u with tickets t_u is worth t_u / Σ t of each kind, or all it can use; then, for each pair
//! of kinds, the user with the highest speedup buys fast devices with slow ones from the user with the lowest,
//! at the second highest speedup, while both gain; what nobody holds then replaces slower devices. Hence Σ_k a_uk E_uk ≥ that of its ticket share, for all u.
//! A user's tickets are the mean weight of her jobs, divided over them by weight; a job without a user is a
//! user of its own. Stride scheduling charges a gang g / tickets for a quantum and runs the least charged: with
//! E_j devices for job j that is the part E_j / g of the time, and the rounds' accounts are the passes.
//! Reads: users, weights, speeds by shape, the devices of each kind. Cost: O(jobs · kinds + kinds² · users ·
//! log users) per plan in which jobs or nodes came or went, else O(1).
//! A job that runs on several kinds at once is entitled to no part of any: it has what is left over.
//! Missing: the paper splits the stride scheduler, one for each server and one for jobs that span servers, balances
//! tickets between servers and migrates jobs for it, because its schedulers are local. Here one account over the whole
//! cluster gives the same shares, and a job may move at any beat; speeds on a kind are the belief's, not those of
//! profiling runs.
//! Not to be used where one user owns all jobs: she has nobody to trade with.

mod trade;

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::ids::{JobId, JobIdx, KindId};
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;

use self::trade::{Holding, trade};
use crate::{PolicyEntry, WEIGHT};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "gandiva-fair",
    live: "policies::gandiva_fair_divides_time_by_users_tickets_whoever_has_more_jobs",
    family: "fair shares",
    paper: "Gandiva_fair, Chaudhary et al., EuroSys 2020",
    there: "tickets by user, trades of kinds at the second price, stride scheduling by the rounds' accounts over the whole cluster",
    missing: "the split into a stride scheduler for each server, balancing of tickets between servers, migration for it, and the profiling runs",
    about: "Each user her tickets' worth of every kind, then trades of kinds that leave nobody worse off",
    params: &[],
    rounds: true,
    priority: Priorities::Refused(WEIGHT),
    needs: &[Knowledge::Speeds],
    make: |_| Ok(Box::new(GandivaFair)),
};

/// A permission to use what is left over, too small to be a claim.
const LEFTOVER: f64 = 1e-9;

/// Speedups are kept finite: a kind on which a job cannot run is this much slower than the others.
const SPEEDUP_MAX: f64 = 1e6;

struct GandivaFair;

impl Policy for GandivaFair {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let changed = &view.changed;
        if !changed.all && !changed.nodes && changed.added.is_empty() && changed.ended.is_empty() {
            let shares = Shares::Changed(Vec::new());
            return Ok(Allocation { mode: Mode::Fractions, shares, replan_at: None, certificate: None });
        }
        let capacity: Vec<f64> = view.kinds.ids().map(|kind| f64::from(view.capacity(kind))).collect();
        let users = users(view, &capacity);
        let mut held = entitled(&users, &capacity);
        trade_kinds(&users, &mut held);
        upgrade(&users, &mut held, &capacity);
        let shares = users.iter().zip(&held).flat_map(|(user, held)| user.shares(held));
        let spanning = users.iter().flat_map(|user| &user.jobs).filter(|job| job.spans_kinds());
        let left = spanning.flat_map(|job| leftovers(view, job.row));
        Ok(Allocation::fractions(shares.chain(left).collect()))
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

/// One way in which a job may run: its fastest on one kind.
#[derive(Clone, Copy, Debug)]
struct TradeWay {
    shape: u16,
    devices: f64,
    /// Steps per second and device.
    speed: f64,
}

#[derive(Debug)]
struct TradedJob {
    row: JobIdx,
    weight: f64,
    /// By kind; none where it cannot run.
    ways: Vec<Option<TradeWay>>,
}

#[derive(Debug)]
struct User {
    tickets: f64,
    jobs: Vec<TradedJob>,
}

/// Who owns the job: its user, or the job itself.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TicketOwner {
    User(Arc<str>),
    Job(JobId),
}

fn users(view: &View, capacity: &[f64]) -> Vec<User> {
    let mut owned: BTreeMap<TicketOwner, Vec<TradedJob>> = BTreeMap::new();
    for row in view.active() {
        let (spec, run) = (view.spec(row), view.run(row));
        let owner = spec.user.clone().map_or(TicketOwner::Job(run.id), TicketOwner::User);
        let job = TradedJob { row, weight: spec.weight, ways: ways(view, row, capacity) };
        owned.entry(owner).or_default().push(job);
    }
    let mean = |jobs: &[TradedJob]| jobs.iter().map(|job| job.weight).sum::<f64>() / jobs.len() as f64;
    owned.into_values().map(|jobs| User { tickets: mean(&jobs), jobs }).collect()
}

/// The fastest shape on each kind that has room for it.
fn ways(view: &View, job: JobIdx, capacity: &[f64]) -> Vec<Option<TradeWay>> {
    let mut ways: Vec<Option<TradeWay>> = vec![None; capacity.len()];
    for (at, shape) in view.spec(job).shapes.iter().enumerate() {
        let [need] = shape.needs[..] else { continue };
        let (devices, speed) = (f64::from(need.devices), view.speed(job, at as u16));
        let fits = capacity.get(need.kind.index()).is_some_and(|most| devices <= *most) && speed > 0.0;
        let way = TradeWay { shape: at as u16, devices, speed: speed / devices };
        if fits && ways[need.kind.index()].is_none_or(|known| way.speed > known.speed) {
            ways[need.kind.index()] = Some(way);
        }
    }
    ways
}

/// What is left over, in any of a job's shapes.
fn leftovers(view: &View, job: JobIdx) -> impl Iterator<Item = Share> {
    view.spec(job).usable().map(move |shape| Share::leftover(job, shape, Rank::default()))
}

impl TradedJob {
    /// Whether no kind by itself has room for it now: there is no part of any that it could be entitled to.
    fn spans_kinds(&self) -> bool {
        self.ways.iter().all(Option::is_none)
    }

    /// The most devices it can hold at once.
    fn demand(&self) -> f64 {
        self.ways.iter().flatten().map(|way| way.devices).fold(0.0, f64::max)
    }

    fn speed(&self, kind: usize) -> f64 {
        self.ways[kind].map_or(0.0, |way| way.speed)
    }
}

impl User {
    fn demand(&self) -> f64 {
        self.jobs.iter().map(TradedJob::demand).sum()
    }

    /// How much faster her jobs are on one kind than on another, on average.
    fn speedup(&self, fast: usize, slow: usize) -> f64 {
        let one = |job: &TradedJob| match (job.speed(fast), job.speed(slow)) {
            (0.0, 0.0) => 1.0,
            (fast, slow) => (fast / slow).min(SPEEDUP_MAX),
        };
        self.jobs.iter().map(one).sum::<f64>() / self.jobs.len() as f64
    }

    /// Her devices over her jobs by weight, of each kind the same part where all can use it.
    fn shares(&self, held: &[f64]) -> Vec<Share> {
        let weights: Vec<(f64, f64)> = self.jobs.iter().map(|job| (job.weight, job.demand())).collect();
        let devices = fill(&weights, held.iter().sum());
        let mut parts: Vec<Vec<f64>> = vec![vec![0.0; held.len()]; self.jobs.len()];
        for (kind, held) in held.iter().enumerate() {
            let able = |at: &usize| self.jobs[*at].ways[kind].is_some();
            let sum: f64 = (0..self.jobs.len()).filter(able).map(|at| devices[at]).sum();
            for at in (0..self.jobs.len()).filter(able).filter(|_| sum > 0.0) {
                parts[at][kind] =
                    held * devices[at] / sum / self.jobs[at].ways[kind].map_or(1.0, |way| way.devices);
            }
        }
        self.jobs.iter().zip(parts).flat_map(|(job, parts)| job.shares(&parts)).collect()
    }
}

impl TradedJob {
    /// Parts of the time, together at most all of it. Who has less may also use any kind that is left over; who
    /// has all may not, or it would stay on a kind that it was not given.
    fn shares(&self, parts: &[f64]) -> Vec<Share> {
        let sum: f64 = parts.iter().sum();
        let least = if sum < 1.0 - 1e-6 { LEFTOVER } else { 0.0 };
        let scale = 1.0 / sum.max(1.0);
        let share = |(way, part): (&Option<TradeWay>, &f64)| {
            let (shape, fraction) = (way.as_ref()?.shape, (part * scale).max(least));
            (fraction > 0.0).then(|| Share { shape: Some(shape), ..Share::part(self.row, fraction) })
        };
        self.ways.iter().zip(parts).filter_map(share).collect()
    }
}

/// Parts of `total` by weight, none above its most: what one cannot use, the others get.
fn fill(claims: &[(f64, f64)], total: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..claims.len()).collect();
    // Whoever is satisfied at the lowest level first.
    order.sort_by(|a, b| {
        (claims[*a].1 / claims[*a].0).total_cmp(&(claims[*b].1 / claims[*b].0)).then(a.cmp(b))
    });
    let mut weights: f64 = claims.iter().map(|claim| claim.0).sum();
    let (mut left, mut parts) = (total, vec![0.0; claims.len()]);
    for at in order {
        let (weight, most) = claims[at];
        parts[at] = (left * weight / weights).min(most);
        (left, weights) = (left - parts[at], weights - weight);
    }
    parts
}

/// Each user's devices of each kind before trades: the same part of every kind.
fn entitled(users: &[User], capacity: &[f64]) -> Vec<Vec<f64>> {
    let total: f64 = capacity.iter().sum();
    let claims: Vec<(f64, f64)> = users.iter().map(|user| (user.tickets, user.demand())).collect();
    let parts = fill(&claims, total);
    let part = |devices: &f64| capacity.iter().map(|most| most * devices / total.max(1.0)).collect();
    parts.iter().map(part).collect()
}

/// Trades between each two kinds, the fastest on average first.
fn trade_kinds(users: &[User], held: &mut [Vec<f64>]) {
    let kinds = held.first().map_or(0, Vec::len);
    for (fast, slow) in pairs(users, kinds) {
        let holding = |(user, held): (&User, &Vec<f64>)| Holding {
            speedup: user.speedup(fast.index(), slow.index()),
            fast: held[fast.index()],
            slow: held[slow.index()],
            most: user.demand() - held.iter().sum::<f64>() + held[fast.index()] + held[slow.index()],
        };
        let mut holdings: Vec<Holding> = users.iter().zip(held.iter()).map(holding).collect();
        trade(&mut holdings);
        for (held, after) in held.iter_mut().zip(holdings) {
            (held[fast.index()], held[slow.index()]) = (after.fast.max(0.0), after.slow.max(0.0));
        }
    }
}

/// Devices that nobody holds go, against slower ones, to whoever is faster on them: first who gains most.
fn upgrade(users: &[User], held: &mut [Vec<f64>], capacity: &[f64]) {
    let held_of = |held: &[Vec<f64>], kind: usize| held.iter().map(|held| held[kind]).sum::<f64>();
    let pairs = pairs(users, capacity.len()).into_iter();
    for (fast, slow) in pairs.flat_map(|(fast, slow)| [(fast, slow), (slow, fast)]) {
        let (fast, slow) = (fast.index(), slow.index());
        let mut spare = (capacity[fast] - held_of(held, fast)).max(0.0);
        let gain = |user: &usize| users[*user].speedup(fast, slow);
        let mut order: Vec<usize> = (0..users.len()).filter(|user| gain(user) > 1.0).collect();
        order.sort_by(|a, b| gain(b).total_cmp(&gain(a)).then(a.cmp(b)));
        for user in order {
            let moved = held[user][slow].min(spare);
            held[user][slow] -= moved;
            held[user][fast] += moved;
            spare -= moved;
        }
    }
}

/// Each two kinds, the one on which most is gained over the mean of all kinds first.
fn pairs(users: &[User], kinds: usize) -> Vec<(KindId, KindId)> {
    let mut order: Vec<usize> = (0..kinds).collect();
    let gain = |kind: usize| -> f64 {
        let jobs = users.iter().flat_map(|user| &user.jobs);
        let against = |job: &TradedJob| {
            job.speed(kind) / (0..kinds).map(|other| job.speed(other)).sum::<f64>().max(f64::MIN_POSITIVE)
        };
        jobs.map(against).sum()
    };
    let gains: Vec<f64> = (0..kinds).map(gain).collect();
    order.sort_by(|a, b| gains[*b].total_cmp(&gains[*a]).then(a.cmp(b)));
    let pair = |at: usize, other: usize| (KindId(order[at] as u16), KindId(order[other] as u16));
    (0..kinds)
        .flat_map(|at| (at + 1..kinds).map(move |other| (at, other)))
        .map(|(at, other)| pair(at, other))
        .collect()
}

#[cfg(test)]
mod tests;
