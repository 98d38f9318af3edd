//! Batch sizes and fits as the artifact of Sia has them (`../shared/data/sia/golden`).

use serde_json::Value;
use yard_core::goodput::{Limits, Model, fit};
use yard_core::training::{Noise, Timing};

fn read(name: &str) -> Option<String> {
    yard_needs::shared_text(&format!("sia/{name}"))
}

fn cases(name: &str) -> Vec<Value> {
    read(name).map_or(Vec::new(), |text| serde_json::from_str(&text).expect("golden files are JSON"))
}

fn number(case: &Value, key: &str) -> f64 {
    case[key].as_f64().unwrap_or_else(|| panic!("{key} of {case}"))
}

fn count(case: &Value, key: &str) -> u32 {
    number(case, key) as u32
}

fn model(case: &Value, key: &str) -> Model {
    let numbers = case[key].as_array().expect("seven numbers");
    Model::of(std::array::from_fn(|at| numbers[at].as_f64().expect("a number")))
}

#[test]
fn the_best_batch_is_the_artifacts() {
    for case in cases("golden/goodput_optimize.json") {
        let bound = |at: usize| case["bounds"][at].as_u64().expect("a bound") as u32;
        let limits = Limits {
            batch: count(&case, "init"),
            batch_max: count(&case, "max"),
            local: (bound(0), bound(1)),
            accumulates: case["accum"] == true,
        };
        let noise = Noise { sqr: number(&case, "sqr"), var: number(&case, "var") };
        let (nodes, devices) = (count(&case, "nodes"), count(&case, "replicas"));
        let best = limits.best(&model(&case, "perf"), &noise, nodes, devices).expect("every case has one");
        let off = best.goodput / number(&case, "goodput") - 1.0;
        assert!(off.abs() < 1e-6, "{off} off: {case}");
        assert_eq!(
            (best.batch.local, best.batch.extra),
            (count(&case, "atomic"), count(&case, "steps")),
            "{case}"
        );
        let again = limits.goodput(&model(&case, "perf"), &noise, nodes, devices, best.batch);
        assert!((again / best.goodput - 1.0).abs() < 1e-12);
    }
}

/// The points of a fit: placements on up to two nodes and eight devices, the last of equals.
fn points(app: &str, kind: &str) -> Vec<Timing> {
    let text =
        read(&format!("profiles/{app}/placements-{kind}.csv")).expect("profiles come with the golden files");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|column| *column == name).expect("a column");
    let columns = ["placement", "local_bsz", "step_time", "sync_time"].map(column);
    let mut points: Vec<Timing> = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let [placement, local, step, sync] = columns.map(|at| cells[at]);
        let (nodes, devices) =
            (placement.len() as u32, placement.chars().filter_map(|digit| digit.to_digit(10)).sum());
        let [step_s, sync_s] = [step, sync].map(|cell| cell.parse::<f64>().expect("seconds"));
        let local = local.parse().expect("examples");
        let point = Timing { nodes, devices, local, grad_s: step_s - sync_s, step_s };
        let key = |point: &Timing| (point.nodes, point.devices, point.local);
        points.retain(|other| key(other) != key(&point));
        points.extend((nodes <= 2 && devices <= 8).then_some(point));
    }
    points
}

#[test]
fn fits_are_as_good_as_the_artifacts() {
    for case in cases("golden/fit_perf_params.json") {
        let text = |key: &str| case[key].as_str().expect("a name").to_owned();
        let points = points(&text("app"), &text("gpu"));
        assert_eq!(points.len() as f64, number(&case, "n"), "{case}");
        let theirs = fit::misfit(&points, &model(&case, "params"));
        assert!((theirs / number(&case, "obj") - 1.0).abs() < 1e-4, "the measure is theirs");
        let model = fit(&points, None);
        let ours = fit::misfit(&points, &model);
        eprintln!("{} {}: {ours:.6} for {theirs:.6}", text("gpu"), text("app"));
        assert!(ours <= theirs * 1.01, "{ours} for {theirs}: {model:?} for {case}");
    }
}
