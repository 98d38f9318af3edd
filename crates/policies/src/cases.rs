//! Policies against the stored answers of Gavel's artifact (`policy_cases.json`, beside the project; without it
//! these tests say so and pass). Optima need not be unique, so objectives are compared, and speeds where the
//! optimum determines them.

use std::sync::Arc;

use serde_json::Value;
use yard_core::allocation::Allocation;
use yard_core::belief::Belief;
use yard_core::cluster::{Kinds, NodeSpec, Nodes};
use yard_core::ids::{JobId, ProfileId};
use yard_core::job::{JobRun, Shape};
use yard_core::view::{Changed, View};
use yard_core::{Span, Time};

use crate::testing::{self, speeds_of, stored};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Jobs in order of their numbers, which are texts in the file. Pairs are not singles.
fn jobs(case: &Value) -> Vec<(u64, &Value)> {
    let all = case["throughputs"].as_object().unwrap();
    let mut jobs: Vec<(u64, &Value)> =
        all.iter().filter_map(|(id, speeds)| Some((id.parse().ok()?, speeds))).collect();
    jobs.sort_by_key(|(id, _)| *id);
    jobs
}

/// The case as a view: kinds in the order v100, p100, k80, one device a node.
pub(crate) fn view(case: &Value) -> View {
    let mut kinds = Kinds::default();
    let mut nodes = Nodes::default();
    for name in ["v100", "p100", "k80"] {
        let kind = kinds.intern(name);
        for at in 0..case["cluster"][name].as_u64().unwrap_or(0) {
            nodes.add(NodeSpec::of(format!("{name}-{at}"), kind, 1));
        }
    }
    let (mut specs, mut runs) = (Vec::new(), Vec::new());
    for (id, speeds) in jobs(case) {
        let key = id.to_string();
        let size = case["scale_factors"][&key].as_u64().unwrap() as u32;
        let ways: Vec<(Shape, f64)> = kinds
            .ids()
            .map(|kind| (Shape::of(kind, size), number(&speeds[kinds.name(kind)])))
            .filter(|(_, speed)| *speed > 0.0)
            .collect();
        let steps = case["steps_remaining"][&key].as_f64().unwrap_or(1.0);
        let mut spec = testing::job(size, steps);
        (spec.shapes, spec.speeds) = (
            ways.iter().map(|(shape, _)| shape.clone()).collect(),
            ways.iter().map(|(_, speed)| *speed).collect(),
        );
        spec.weight = case["priority"][&key].as_f64().unwrap_or(1.0);
        // The one case with entities has four jobs in each, in order.
        spec.tenant = Some(format!("e{}", id / 4).into());
        spec.profile = ProfileId(id as u32 + 1);
        specs.push(Arc::new(spec));
        let elapsed = case["times_since_start"][&key].as_f64().unwrap_or(0.0);
        runs.push(JobRun::new(JobId(id), Time::from_secs(1e6 - elapsed)));
    }
    View {
        now: Time::from_secs(1e6),
        round: Span::from_secs(360.0),
        specs: Arc::new(specs),
        runs: Arc::new(runs),
        nodes: Arc::new(nodes),
        belief: Arc::new(belief(case, &kinds)),
        kinds: Arc::new(kinds),
        prices: Arc::default(),
        lengths: None,
        changed: Changed { all: true, ..Changed::default() },
    }
}

/// What the pairs of a case, written "(0, 1)", keep of the speeds that each has alone.
fn belief(case: &Value, kinds: &Kinds) -> Belief {
    let (table, mut belief) = (case["throughputs"].as_object().unwrap(), Belief::default());
    for (pair, speeds) in table.iter().filter_map(|(key, speeds)| Some((pair(key)?, speeds))) {
        for (at, (job, other)) in [pair, (pair.1, pair.0)].into_iter().enumerate() {
            for kind in kinds.ids() {
                let (name, alone) = (kinds.name(kind), &table[&job.to_string()]);
                let kept = number(&speeds[name][at]) / number(&alone[name]);
                belief.set_beside(ProfileId(job + 1), ProfileId(other + 1), kind, kept);
            }
        }
    }
    belief
}

fn pair(key: &str) -> Option<(u32, u32)> {
    let (a, b) = key.strip_prefix('(')?.strip_suffix(')')?.split_once(", ")?;
    Some((a.parse().ok()?, b.parse().ok()?))
}

fn allocate(policy: &str, view: &View) -> Allocation {
    let (_, mut policy) = crate::make(policy, Arc::from([])).unwrap();
    policy.allocate(view).unwrap()
}

fn close(what: &str, found: f64, wanted: f64, tolerance: f64) {
    assert!((found - wanted).abs() <= tolerance * wanted.abs(), "{what}: {found} instead of {wanted}");
}

/// Compares the objective.
fn same_objective(artifact: &str, policy: &str, tolerance: f64) {
    for case in stored(artifact) {
        let Some(wanted) = case["last_cvxpy_objective"].as_f64().filter(|value| *value != 0.0) else {
            continue;
        };
        let allocation = allocate(policy, &view(&case));
        let certificate = allocation.certificate.unwrap();
        let what = format!("{} {policy}", case["case"]);
        close(&what, certificate.objective, wanted, tolerance);
        assert!(certificate.gap() <= 1e-5, "{what}: gap {}", certificate.gap());
    }
}

/// Compares every job's speed.
fn same_speeds(case: &Value, policy: &str, tolerance: f64) {
    let view = view(case);
    let found = speeds_of(&view, &allocate(policy, &view));
    for (at, (id, _)) in jobs(case).iter().enumerate() {
        let wanted = number(&case["effective_throughput"][id.to_string()]);
        close(&format!("{} {policy} job {id}", case["case"]), found[at], wanted, tolerance);
    }
}

#[test]
fn max_min() {
    same_objective("max_min_fairness_perf", "max-min", 1e-5);
    same_objective("max_min_fairness", "max-min:agnostic=true", 1e-5);
    same_objective("max_min_fairness_packed", "max-min:packed=true", 1e-5);
    same_objective("max_min_fairness_packed", "water-filling:packed=true", 1e-5);
}

#[test]
fn finish_time() {
    same_objective("finish_time_fairness_perf", "finish-time", 1e-4);
    same_objective("finish_time_fairness", "finish-time:agnostic=true", 1e-4);
    same_objective("finish_time_fairness_packed", "finish-time:packed=true", 1e-5);
}

#[test]
fn most_throughput() {
    same_objective("max_sum_throughput_perf", "max-throughput", 1e-5);
    let dollars = "dollars=v100*3.1/p100*2.0/k80*0.8";
    same_objective(
        "max_sum_throughput_normalized_by_cost_perf",
        &format!("cost:artifact=true:{dollars}"),
        1e-5,
    );
}

#[test]
fn water_filling_and_hierarchies_reach_the_same_speeds() {
    for case in stored("max_min_fairness_water_filling_perf") {
        let plain = case["extra"].as_object().is_none_or(|extra| extra.is_empty());
        let policy = if plain { "water-filling" } else { "hierarchical:weights=e0*1/e1*2/e2*3" };
        same_speeds(&case, policy, 2e-4);
    }
}

/// The artifact stops within 5 % of the least makespan, and anywhere in there; ours is the least.
#[test]
fn makespan() {
    least_makespan("min_total_duration_perf", "makespan");
    least_makespan("min_total_duration_packed", "makespan:packed=true");
}

fn least_makespan(artifact: &str, policy: &str) {
    for case in stored(artifact) {
        let certificate = allocate(policy, &view(&case)).certificate.unwrap();
        let time = |(id, _): &(u64, &Value)| {
            number(&case["steps_remaining"][id.to_string()])
                / number(&case["effective_throughput"][id.to_string()])
        };
        let theirs = jobs(&case).iter().map(time).fold(0.0, f64::max);
        let what = format!("{}: {} against {theirs}", case["case"], certificate.objective);
        assert!(certificate.objective <= theirs * (1.0 + 1e-6), "{what}");
        assert!(certificate.objective >= theirs / 1.06, "{what}");
        assert!(certificate.gap() <= 1e-5, "{what}");
    }
}
