//! Clusters of several kinds, and the cases that were solved by Gavel's own code.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::cluster::{Kinds, NodeSpec, Nodes};
use yard_core::ids::{JobId, KindId};
use yard_core::job::{JobRun, JobSpec, Shape};
use yard_core::units::{Span, Time};
use yard_core::view::{Changed, View};

use super::{job, policy};

/// So many devices of each kind; jobs as (devices, speed on each kind; 0: it cannot run there); their steps.
pub(crate) fn mixed(devices: &[u32], jobs: &[(u32, &[f64])], steps: &[f64]) -> View {
    let (mut kinds, mut nodes) = (Kinds::default(), Nodes::default());
    for (at, devices) in devices.iter().enumerate() {
        let kind = kinds.intern(&format!("kind{at}"));
        for _ in 0..*devices {
            nodes.add(NodeSpec::of("n", kind, 1));
        }
    }
    let specs = jobs.iter().zip(steps).map(|(job, steps)| Arc::new(spec(job.0, job.1, *steps)));
    let runs = (0..jobs.len() as u64).map(|id| JobRun::new(JobId(id), Time::ZERO));
    View {
        now: Time::ZERO,
        round: Span::from_secs(360.0),
        specs: Arc::new(specs.collect()),
        runs: Arc::new(runs.collect()),
        nodes: Arc::new(nodes),
        kinds: Arc::new(kinds),
        belief: Arc::default(),
        prices: Arc::default(),
        lengths: None,
        changed: Changed { all: true, ..Changed::default() },
    }
}

/// Kind, devices and speed.
type OneSize = (u16, u32, f64);

/// The same with jobs of several sizes: the sizes of each, and its steps.
pub(crate) fn elastic(devices: &[u32], jobs: &[(&[OneSize], f64)]) -> View {
    let plain: Vec<(u32, &[f64])> = jobs.iter().map(|_| (1, &[1.0][..])).collect();
    let steps: Vec<f64> = jobs.iter().map(|(_, steps)| *steps).collect();
    let mut view = mixed(devices, &plain, &steps);
    for (spec, (sizes, _)) in Arc::make_mut(&mut view.specs).iter_mut().zip(jobs) {
        let spec = Arc::make_mut(spec);
        spec.shapes = sizes.iter().map(|(kind, devices, _)| Shape::of(KindId(*kind), *devices)).collect();
        spec.speeds = sizes.iter().map(|(_, _, speed)| *speed).collect();
    }
    view
}

/// The speed that an allocation gives each job of a view, leftovers aside.
pub(crate) fn speeds_of(view: &View, allocation: &Allocation) -> Vec<f64> {
    let (Shares::All(shares) | Shares::Changed(shares)) = &allocation.shares;
    let mut speeds = vec![0.0; view.runs.len()];
    for share in shares.iter().filter(|share| share.fraction > 1e-6) {
        let job = share.jobs[0];
        speeds[job.index()] += share.fraction * view.speed(job, share.shape.expect("a market names shapes"));
    }
    speeds
}

/// Only the shapes that can run, as a trace with a throughput table makes them.
fn spec(devices: u32, speeds: &[f64], steps: f64) -> JobSpec {
    let ways = (0..).zip(speeds).filter(|(_, speed)| **speed > 0.0);
    let (shapes, speeds): (Vec<_>, Vec<_>) =
        ways.map(|(kind, speed)| (Shape::of(KindId(kind), devices), *speed)).unzip();
    JobSpec { shapes: shapes.into(), speeds: speeds.into(), steps, ..job(devices, steps) }
}

/// Kinds in the order in which the traces' cluster names them.
const KINDS: [&str; 3] = ["v100", "p100", "k80"];

/// Compares a policy's shares with those of the artifact's, by job and kind, in all stored cases of a name.
pub(crate) fn cases(theirs: &str, ours: &str, within: f64) {
    let all = stored(theirs);
    for case in &all {
        let view = crate::cases::view(case);
        let got = policy(ours).allocate(&view).expect("an answer");
        let got = by_kind(&view, &got);
        for (row, speeds) in (0..).zip(rows(case)) {
            for (kind, name) in KINDS.iter().enumerate().filter(|(kind, _)| speeds[*kind] > 0.0) {
                let want = case["allocation"][row.to_string()][name].as_f64().expect("a share");
                let got = got.get(&(row, kind)).copied().unwrap_or(0.0);
                assert!(
                    (got - want).abs() <= within,
                    "{}: job {row} on {name}: {got}, not {want}",
                    case["case"]
                );
            }
        }
    }
}

/// The stored cases of one of the artifact's policies; none, loudly, where they are not beside the project.
pub(crate) fn stored(theirs: &str) -> Vec<Value> {
    let Some(text) = yard_needs::shared_text("gavel/policy_cases.json") else { return Vec::new() };
    // Python writes numbers that JSON does not have.
    let text = text.replace("-Infinity", "null").replace("Infinity", "null").replace("NaN", "null");
    let all: Vec<Value> = serde_json::from_str(&text).expect("a list of cases");
    let found: Vec<Value> = all.into_iter().filter(|case| case["policy"] == theirs).collect();
    assert!(!found.is_empty(), "there is no case of {theirs}");
    found
}

fn rows(case: &Value) -> Vec<[f64; 3]> {
    let table = case["throughputs"].as_object().expect("speeds by job");
    let row = |job: usize| KINDS.map(|kind| table[&job.to_string()][kind].as_f64().expect("a speed"));
    (0..table.len()).map(row).collect()
}

/// Fractions by job and kind, leftovers aside.
fn by_kind(view: &View, allocation: &Allocation) -> BTreeMap<(usize, usize), f64> {
    let (Shares::All(shares) | Shares::Changed(shares)) = &allocation.shares;
    let real = shares.iter().filter(|share| share.fraction > Share::LEFTOVER);
    let place = |share: &Share| {
        let shape = &view.spec(share.jobs[0]).shapes[share.shape.unwrap_or(0) as usize];
        ((share.jobs[0].index(), shape.needs[0].kind.index()), share.fraction)
    };
    real.map(place).collect()
}
