//! A policy that lets a job wait on an idle cluster is found out, even where every job ends at last.

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::cluster::{Level, Nodes, Placement, Slice};
use yard_core::job::{Rank, Shape};
use yard_core::policy::{Placer, Policy, PolicyError};
use yard_core::view::View;
use yard_core::{Span, Time};
use yard_sim::fuzz::{IdleSense, Scenario};

/// The first free devices, on one node where that is wanted.
struct First;

impl Placer for First {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        let mut placement = Placement::default();
        for need in &shape.needs {
            let mut left = need.devices;
            for (node, of) in nodes.iter() {
                let free = of.free_count(need.kind);
                let near = shape.level() == Level::Any || free >= need.devices;
                let count = if near { left.min(free) } else { 0 };
                if count > 0 {
                    placement.0.push(Slice::of(node, of.take(need.kind, count)));
                }
                left -= count;
            }
            if left > 0 {
                return None;
            }
        }
        Some(placement)
    }
}

/// First come, first served; nobody at all until some time.
struct Sleeps {
    until: Time,
}

impl Policy for Sleeps {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let wakes = view.now >= self.until;
        let jobs = view.active().filter(|_| wakes).map(|job| Share::whole(job, Rank(0.0, 0.0)));
        let answer = Allocation::queue(Shares::All(jobs.collect()), true);
        Ok(Allocation { replan_at: (!wakes).then_some(self.until), ..answer })
    }
}

#[test]
fn who_sleeps_on_an_idle_cluster_is_found_out_unless_it_may() {
    let until = Time::from_secs(40_000.0);
    let check = |seed: u64, patience: Span| {
        let sense = IdleSense { patience, ..IdleSense::default() };
        Scenario::new(seed).check(&mut Sleeps { until }, Some(sense), &|| Box::new(First))
    };
    let mut found = 0;
    for seed in 0..20 {
        let said = check(seed, Span::ZERO).err().unwrap_or_default();
        found += usize::from(said.contains("on an idle cluster"));
        let said = check(seed, Span::from_secs(40_000.0)).err().unwrap_or_default();
        assert!(!said.contains("on an idle cluster"), "seed {seed}: {said}");
    }
    assert!(found > 10, "found in {found} of 20 scenarios");
}
