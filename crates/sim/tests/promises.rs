//! What was promised is kept, whatever the policy does and whatever is submitted later.

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::cluster::{Level, Nodes, Placement, Slice};
use yard_core::ids::JobIdx;
use yard_core::job::{Rank, Shape};
use yard_core::policy::{Cadence, Placer, Policy, PolicyError};
use yard_core::view::View;
use yard_sim::chaos::Chaos;
use yard_sim::fuzz::{IdleSense, Scenario};

/// Seeds for each order.
const SEEDS: u64 = 60;

/// The first free devices that will do, or the last.
struct Plain {
    last: bool,
}

impl Placer for Plain {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        let mut placement = Placement::default();
        for need in &shape.needs {
            let least = if shape.level() == Level::Node { need.devices } else { 1 };
            let able = nodes.iter().filter(|(_, node)| node.free_count(need.kind) >= least);
            let mut able: Vec<_> = able.collect();
            if self.last {
                able.reverse();
            }
            let mut left = need.devices;
            for (node, state) in able {
                let take = left.min(state.free_count(need.kind));
                if take > 0 {
                    placement.0.push(Slice::of(node, state.take(need.kind, take)));
                }
                left -= take;
            }
            if left > 0 {
                return None;
            }
        }
        Some(placement)
    }
}

/// How jobs are ordered.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// First come, first served; nobody is stopped.
    Queue,
    /// The shortest first, and others stop for it.
    Shortest,
    /// Who had least first, every round anew.
    Least,
    /// All take turns.
    Turns,
}

impl Policy for Order {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let ranked = |rank: fn(&View, JobIdx) -> f64| {
            let share = |job| Share::whole(job, Rank(rank(view, job), 0.0));
            Shares::All(view.active().map(share).collect())
        };
        Ok(match self {
            Order::Queue => Allocation::queue(ranked(|view, job| view.run(job).submitted.secs()), false),
            Order::Shortest => Allocation::preemptive(ranked(|view, job| {
                view.spec(job).steps - view.run(job).done_at(view.now)
            })),
            Order::Least => Allocation::preemptive(ranked(|view, job| view.run(job).attained_at(view.now))),
            Order::Turns => Allocation::fractions(view.active().map(|job| Share::part(job, 0.5)).collect()),
        })
    }

    fn cadence(&self) -> Cadence {
        if matches!(self, Order::Least) { Cadence::EveryRound } else { Cadence::OnChange }
    }
}

/// Runs calm scenarios, in which every promise must be kept. How many were made.
fn promised(make: &dyn Fn(u64) -> Box<dyn Policy>, sense: bool) -> usize {
    let one = |seed: u64| {
        let placer = || Box::new(Plain { last: seed % 2 == 1 }) as Box<dyn Placer>;
        let tally = Scenario::calm(seed).check(&mut *make(seed), sense.then(IdleSense::default), &placer);
        tally.unwrap_or_else(|broken| panic!("seed {seed}: {broken}")).promised
    };
    (0..SEEDS).map(one).sum()
}

#[test]
fn in_a_queue() {
    assert!(promised(&|_| Box::new(Order::Queue), true) > 100);
}

#[test]
fn where_the_shortest_goes_first() {
    assert!(promised(&|_| Box::new(Order::Shortest), true) > 100);
}

#[test]
fn where_who_had_least_goes_first() {
    assert!(promised(&|_| Box::new(Order::Least), true) > 100);
}

#[test]
fn where_all_take_turns() {
    assert!(promised(&|_| Box::new(Order::Turns), true) > 100);
}

#[test]
fn where_nothing_makes_sense() {
    assert!(promised(&|seed| Box::new(Chaos::new(seed)), false) > 100);
}

#[test]
fn where_things_go_wrong_it_is_said_before_a_promise_is_broken() {
    for seed in 0..SEEDS {
        let placer = || Box::new(Plain { last: seed % 2 == 1 }) as Box<dyn Placer>;
        let kept = Scenario::rough(seed).check(&mut Order::Shortest, Some(IdleSense::default()), &placer);
        kept.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    }
}
