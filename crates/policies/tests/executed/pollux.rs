//! `pollux`: at most one job that spans nodes lies on a node, at any time.

use std::collections::{BTreeMap, BTreeSet};

use yard_core::Time;
use yard_core::ids::{JobId, KindId};
use yard_core::job::{JobSpec, Shape};
use yard_sim::RunOutcome;

use super::{Scene, job};

/// A job that gains from up to eight devices, wherever they lie.
fn elastic(power: f64, seconds: f64) -> JobSpec {
    let sizes = [1u32, 2, 3, 5, 6, 8];
    let speeds = sizes.map(|size| libm::pow(f64::from(size), power));
    job(sizes.map(|size| Shape::of(KindId(0), size)).to_vec(), &speeds, seconds)
}

/// Jobs that come one after another, so that sizes and places change all the time.
fn outcome(policy: &str) -> RunOutcome {
    let jobs: Vec<JobSpec> = (0..24u32)
        .map(|at| elastic(0.6 + 0.05 * f64::from(at % 8), 2000.0 + 700.0 * f64::from(at * 7 % 24)))
        .collect();
    let mut scene = Scene::new("a:6x4", &jobs);
    for (at, job) in scene.jobs.iter_mut().enumerate() {
        job.0 = Time::from_secs(400.0 * at as f64);
    }
    scene.run(policy)
}

/// Nodes by job at a time, of jobs that span several.
fn spanning(outcome: &RunOutcome, at: Time) -> BTreeMap<JobId, BTreeSet<u32>> {
    let mut nodes: BTreeMap<JobId, BTreeSet<u32>> = BTreeMap::new();
    for bar in outcome.record.bars.iter().filter(|bar| bar.start <= at && at < bar.end) {
        nodes.entry(bar.job).or_default().insert(bar.node);
    }
    nodes.retain(|_, nodes| nodes.len() > 1);
    nodes
}

/// Times at which two jobs that span nodes meet on one, and times at which there are two that could.
fn meetings(outcome: &RunOutcome) -> (usize, usize) {
    let times: BTreeSet<Time> = outcome.record.bars.iter().map(|bar| bar.start).collect();
    let (mut met, mut could) = (0, 0);
    for time in times {
        let jobs = spanning(outcome, time);
        let nodes: Vec<u32> = jobs.values().flatten().copied().collect();
        let distinct: BTreeSet<u32> = nodes.iter().copied().collect();
        met += usize::from(distinct.len() < nodes.len());
        could += usize::from(jobs.len() > 1);
    }
    (met, could)
}

#[test]
fn jobs_that_span_nodes_never_meet_on_one() {
    let pollux = outcome("pollux");
    assert!(pollux.record.jobs.iter().all(|job| job.end.is_some()), "all end");
    let (met, could) = meetings(&pollux);
    assert!(met == 0 && could > 20, "they met {met} times of {could}");
    let (met, _) = meetings(&outcome("afs"));
    assert!(met > 0, "they would meet without the rule");
}
