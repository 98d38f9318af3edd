//! Jobs that go through regimes of their own, in every third scenario, and nodes that are lent and wanted again, in
//! every fourth: the speeds that jobs come with are then true for a while only, and which nodes go is the engine's choice.

use std::sync::Arc;

use yard_core::Time;
use yard_core::ids::NodeId;
use yard_core::job::JobSpec;
use yard_core::message::{Input, NodeChange};
use yard_core::training::Regime;

use super::Scenario;
use crate::cluster::ClusterSpec;
use crate::course::{Course, CourseWay, Stretch};
use crate::random::Random;

/// Lets some jobs change as they go; their true courses, one for each job. A stream of its own: what else a seed makes
/// stays as it is. Jobs that train have other speeds already.
pub(super) fn add(seed: u64, jobs: &mut [(Time, JobSpec)]) -> Vec<Option<Arc<Course>>> {
    let mut random = Random::new(seed ^ 0x0c00_125e);
    if !random.chance(0.33) {
        return Vec::new();
    }
    let mut course = |(_, spec): &mut (Time, JobSpec)| {
        (spec.training.is_none() && random.chance(0.5)).then(|| changing(&mut random, spec))
    };
    jobs.iter_mut().map(&mut course).collect()
}

fn changing(random: &mut Random, spec: &mut JobSpec) -> Arc<Course> {
    let regimes: Arc<[Regime]> = (0..2 + random.below(3))
        .map(|at| Regime { batch: 8 << at, seconds: 0.2 + 3.0 * random.unit() })
        .collect();
    let mut cuts: Vec<f64> = (0..random.below(5)).map(|_| random.unit() * spec.steps).collect();
    cuts.sort_by(f64::total_cmp);
    cuts.push(spec.steps);
    let mut stretch = |(at, end): (usize, f64)| {
        // It begins in the first, as jobs do; the truth is near what is known of a regime, not equal to it.
        let regime = if at == 0 { 0 } else { random.below(regimes.len() as u64) as usize };
        let near = if regime == 0 { 1.0 } else { 0.8 + 0.4 * random.unit() };
        Stretch { regime: regime as u16, end, pace: near * regimes[0].seconds / regimes[regime].seconds }
    };
    let stretches = cuts.into_iter().enumerate().map(&mut stretch).collect();
    let fastest = spec.speeds.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    spec.regimes = Some(regimes);
    Arc::new(Course { way: CourseWay::Regimes(stretches), costs: spec.costs, ideal_s: spec.steps / fastest })
}

/// Where nothing happens that nobody could plan for, jobs go at their own speeds after all.
pub(super) fn settle(scenario: &mut Scenario) {
    if scenario.promises.calm {
        scenario.jobs.iter_mut().for_each(|(_, spec)| spec.regimes = None);
        scenario.courses.clear();
    }
}

/// Fewer and more of some nodes, and in the end all of them: nobody is kept out for good.
pub(super) fn lent(seed: u64, cluster: &ClusterSpec) -> Vec<(Time, Input)> {
    let mut random = Random::new(seed ^ 0x1e27_ba5e);
    if !random.chance(0.25) {
        return Vec::new();
    }
    let among: Vec<NodeId> =
        (0..cluster.nodes.len() as u32).map(NodeId).filter(|_| random.chance(0.7)).collect();
    let all = among.len() as u64;
    let lend = |at: f64, nodes: u64| {
        (Time::from_secs(at), Input::Node(NodeChange::Lent { among: among.clone(), nodes: nodes as u32 }))
    };
    let mut script: Vec<_> = (0..random.below(6))
        .map(|_| lend((random.unit() * 4_000.0).floor(), random.below(all + 1)))
        .collect();
    script.push(lend(5_000.0, all));
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_scenarios_have_jobs_that_change_and_some_have_lent_nodes() {
        let scenarios: Vec<Scenario> = (0..60).map(Scenario::new).collect();
        let change = |scenario: &&Scenario| scenario.courses.iter().any(Option::is_some);
        let lent = |(_, input): &(Time, Input)| matches!(input, Input::Node(NodeChange::Lent { .. }));
        let lends = |scenario: &&Scenario| scenario.script.iter().any(lent);
        let (changing, lending) =
            (scenarios.iter().filter(change).count(), scenarios.iter().filter(lends).count());
        assert!((5..40).contains(&changing) && (3..30).contains(&lending), "{changing} and {lending} of 60");
        let calm = (0..60).map(Scenario::calm).find(|scenario| change(&scenario));
        assert!(calm.is_none(), "nothing goes wrong there");
    }
}
