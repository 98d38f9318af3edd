//! Objectives of Gavel's own instances and cases. They are read from ../shared/data.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use serde_json::Value;
use yard_solver::conic::Accuracy;
use yard_solver::lp::{Lp, LpGoal, Sense};
use yard_solver::packed::{
    JobClass, PackedGroup, PackedProblem, PackedSolution, PackedWork, finish_time, hand_back, makespan,
    max_min,
};
use yard_solver::reference::{Instance, Progress};

const KINDS: [&str; 3] = ["k80", "p100", "v100"];

fn read(name: &str) -> Option<Value> {
    let text = yard_needs::shared_text(&format!("gavel/{name}"))?;
    // Python writes infinities into what it calls JSON.
    Some(serde_json::from_str(&text.replace("-Infinity", "null")).unwrap())
}

/// Speeds of models alone and in pairs, by kind.
struct Table(Value);

impl Table {
    fn alone(&self, kind: &str, model: &str) -> f64 {
        self.0[kind][model]["null"].as_f64().unwrap_or(0.0)
    }

    fn pair(&self, kind: &str, one: &str, two: &str) -> (f64, f64) {
        let pair = &self.0[kind][one][two];
        (pair[0].as_f64().unwrap_or(0.0), pair[1].as_f64().unwrap_or(0.0))
    }
}

/// An instance: devices by kind, and each job's model and steps.
struct Jobs {
    capacity: Vec<f64>,
    models: Vec<String>,
    steps: Vec<f64>,
    objective: Value,
}

fn jobs(instance: &Value) -> Jobs {
    let list = instance["jobs_model_batch_steps"].as_array().unwrap();
    let name = |job: &Value| match (job[0].as_str().unwrap(), job[1].as_u64()) {
        (model, None) => format!("('{model}', 1)"),
        (model, Some(batch)) => format!("('{model} (batch size {batch})', 1)"),
    };
    Jobs {
        capacity: KINDS.iter().map(|kind| instance["cluster"][kind].as_f64().unwrap()).collect(),
        models: list.iter().map(name).collect(),
        steps: list.iter().map(|job| job[2].as_f64().unwrap()).collect(),
        objective: instance["objective"].clone(),
    }
}

/// The mean speed over all devices: what a job has on an equal share.
fn mean(table: &Table, capacity: &[f64], model: &str) -> f64 {
    let devices: f64 = capacity.iter().sum();
    KINDS.iter().zip(capacity).map(|(kind, devices)| table.alone(kind, model) * devices).sum::<f64>()
        / devices
}

fn unpacked(table: &Table, jobs: &Jobs) -> Instance {
    let options = |model: &String| {
        let option = |(kind, name): (usize, &&str)| (table.alone(name, model), vec![(kind as u32, 1.0)]);
        KINDS.iter().enumerate().map(option).filter(|(speed, _)| *speed > 0.0).collect::<Vec<_>>()
    };
    Instance::new(jobs.capacity.clone(), &jobs.models.iter().map(options).collect::<Vec<_>>())
}

/// Classes by model, with all pairs; also whose jobs they are. Speeds are divided by `norm`.
fn packed(table: &Table, jobs: &Jobs, norm: impl Fn(&str) -> f64) -> (PackedProblem, Vec<Vec<u32>>) {
    let mut classes: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    jobs.models.iter().enumerate().for_each(|(at, model)| classes.entry(model).or_default().push(at as u32));
    let names: Vec<&str> = classes.keys().copied().collect();
    let mut groups = Vec::new();
    for (kind, kind_name) in KINDS.iter().enumerate() {
        for (one, first) in names.iter().enumerate() {
            groups.push(PackedGroup::new(
                kind as u32,
                1.0,
                &[(one as u32, table.alone(kind_name, first) / norm(first))],
            ));
            for (two, second) in names.iter().enumerate().skip(one) {
                let speeds = table.pair(kind_name, first, second);
                let roles = [(one as u32, speeds.0 / norm(first)), (two as u32, speeds.1 / norm(second))];
                groups.push(PackedGroup::new(kind as u32, 1.0, &roles));
            }
        }
    }
    let members: Vec<Vec<u32>> = classes.into_values().collect();
    let classes = members.iter().map(|jobs| JobClass { jobs: jobs.len() as u32, weight: 1.0 }).collect();
    (PackedProblem { capacity: jobs.capacity.clone(), classes, groups }, members)
}

fn progress(instance: &Instance, jobs: &Jobs) -> Vec<Progress> {
    let n = jobs.models.len() as f64;
    let whole: f64 = jobs.capacity.iter().map(|devices| devices / n).sum::<f64>().max(1.0);
    let x: Vec<f64> =
        instance.uses.iter().map(|uses| jobs.capacity[uses[0].0 as usize] / n / whole).collect();
    let alone = instance.speeds(&x);
    let job =
        |(steps, alone): (&f64, &f64)| Progress { steps: *steps, isolated: steps / alone, elapsed: 0.0 };
    jobs.steps.iter().zip(&alone).map(job).collect()
}

fn near(left: f64, right: f64, tolerance: f64) -> bool {
    (left / right - 1.0).abs() <= tolerance
}

fn load() -> Option<(Table, Value)> {
    Some((Table(read("simulation_throughputs.json")?), read("solve_instances.json")?))
}

#[test]
fn unpacked_objectives_through_the_reference() {
    let Some((table, instances)) = load() else { return };
    for (size, instance) in instances.as_object().unwrap() {
        let jobs = jobs(instance);
        let reference = unpacked(&table, &jobs);
        let weights: Vec<f64> = jobs.models.iter().map(|model| mean(&table, &jobs.capacity, model)).collect();
        let level = reference.max_min(&weights, &Accuracy::default()).unwrap().objective;
        let wanted = jobs.objective["max_min_fairness_perf"].as_f64().unwrap();
        assert!(near(level, wanted, 1e-5), "{size}: {level} {wanted}");
        if let Some(wanted) = jobs.objective["finish_time_fairness_perf"].as_f64() {
            let rho =
                reference.finish_time(&progress(&reference, &jobs), &Accuracy::default()).unwrap().objective;
            assert!(near(rho, wanted, 1e-5), "{size}: {rho} {wanted}");
        }
    }
}

#[test]
fn packed_objectives_over_classes() {
    let Some((table, instances)) = load() else { return };
    for (size, instance) in instances.as_object().unwrap() {
        let jobs = jobs(instance);
        let (packed, members) = packed(&table, &jobs, |model| mean(&table, &jobs.capacity, model));
        let solution = max_min(&packed, &PackedWork::default()).unwrap();
        // The largest has no stored value: the notes' 1.11091289 is of the authors' own 2048 jobs, not of these.
        let wanted =
            jobs.objective["max_min_fairness_packed"].as_f64().unwrap_or_else(|| by_clarabel(&packed));
        assert!(near(solution.objective, wanted, 1e-7), "{size}: {} {wanted}", solution.objective);
        assert!(solution.gap() < 1e-9 && solution.bound >= solution.objective, "{size}: {}", solution.gap());
        kept(&packed, &solution, &members, jobs.models.len());
    }
}

/// The same program by the general solver.
fn by_clarabel(packed: &PackedProblem) -> f64 {
    let mut lp = Lp::new(LpGoal::Maximise);
    for _ in &packed.groups {
        lp.variable(0.0);
    }
    let level = lp.variable(1.0);
    let columns = |of: &dyn Fn(&PackedGroup) -> f64| {
        let terms = packed.groups.iter().map(of).enumerate().filter(|(_, value)| *value != 0.0);
        terms.collect::<Vec<_>>()
    };
    for (kind, capacity) in packed.capacity.iter().enumerate() {
        let used = |group: &PackedGroup| f64::from(u8::from(group.uses[0].kind as usize == kind));
        lp.row(columns(&used), Sense::Le, *capacity);
    }
    for (class, about) in packed.classes.iter().enumerate() {
        let own = |group: &PackedGroup| {
            group.roles.iter().filter(|role| role.class as usize == class).count() as f64
        };
        lp.row(columns(&own), Sense::Le, f64::from(about.jobs));
        let speed = |group: &PackedGroup| {
            group.roles.iter().filter(|role| role.class as usize == class).map(|role| role.speed).sum()
        };
        let mut terms = columns(&speed);
        terms.push((level, -f64::from(about.jobs)));
        lp.row(terms, Sense::Ge, 0.0);
    }
    lp.solve(&Accuracy::default()).unwrap().objective
}

/// Hands back and checks every job's level.
fn kept(packed: &PackedProblem, solution: &PackedSolution, members: &[Vec<u32>], jobs: usize) {
    let slices: Vec<&[u32]> = members.iter().map(|members| &members[..]).collect();
    let shares = hand_back(packed, solution, &slices).unwrap();
    assert!(shares.len() <= 3 * jobs + 200, "{} shares for {jobs} jobs", shares.len());
    let (mut speeds, mut time) = (vec![0.0; jobs], vec![0.0; jobs]);
    let mut devices = vec![0.0; packed.capacity.len()];
    for share in &shares {
        let group = &packed.groups[share.group as usize];
        devices[group.uses[0].kind as usize] += share.fraction;
        let own = group.roles.iter().all(|role| role.class == group.roles[0].class);
        let mean = group.roles.iter().map(|role| role.speed).sum::<f64>() / group.roles.len() as f64;
        for (job, role) in share.members.iter().zip(&group.roles) {
            speeds[*job as usize] += share.fraction * if own { mean } else { role.speed };
            time[*job as usize] += share.fraction;
        }
    }
    assert!(speeds.iter().all(|speed| *speed >= solution.objective - 1e-9));
    assert!(time.iter().all(|time| *time <= 1.0 + 1e-9));
    assert!(devices.iter().zip(&packed.capacity).all(|(used, room)| *used <= room * (1.0 + 1e-9)));
}

/// Finish times with pairs of classes switched off are those of the unpacked problem, and with them better.
#[test]
fn finish_times_over_classes() {
    let Some((table, instances)) = load() else { return };
    for (size, instance) in instances.as_object().unwrap() {
        let jobs = jobs(instance);
        let Some(wanted) = jobs.objective["finish_time_fairness_perf"].as_f64() else { continue };
        let all = progress(&unpacked(&table, &jobs), &jobs);
        let (with, members) = packed(&table, &jobs, |_| 1.0);
        let mut alone = with.clone();
        alone.groups.retain(|group| group.roles.len() == 1);
        let lists: Vec<Vec<Progress>> =
            members.iter().map(|jobs| jobs.iter().map(|job| all[*job as usize]).collect()).collect();
        let solution = finish_time(&alone, &lists, &PackedWork::default()).unwrap();
        assert!(near(solution.objective, wanted, 1e-5), "{size}: {} {wanted}", solution.objective);
        assert!(solution.gap() < 1e-7, "{size}: {}", solution.gap());
        let packed = finish_time(&with, &lists, &PackedWork::default()).unwrap();
        assert!(packed.objective < solution.objective && packed.gap() < 1e-7, "{size}: {packed:?}");
    }
}

/// One class for each job and a group for each row of the case's table; speeds as given.
fn case(case: &Value, norm: impl Fn(usize) -> f64) -> PackedProblem {
    let capacity: Vec<f64> = KINDS.iter().map(|kind| case["cluster"][kind].as_f64().unwrap()).collect();
    let jobs = case["scale_factors"].as_object().unwrap().len();
    let mut groups = Vec::new();
    for (row, speeds) in case["throughputs"].as_object().unwrap() {
        let members: Vec<usize> =
            row.trim_matches(['(', ')']).split(", ").map(|job| job.parse().unwrap()).collect();
        for (kind, name) in KINDS.iter().enumerate() {
            let role = |(at, job): (usize, &usize)| {
                let speed = if members.len() == 1 { &speeds[name] } else { &speeds[name][at] };
                (*job as u32, speed.as_f64().unwrap() / norm(*job))
            };
            groups.push(PackedGroup::new(
                kind as u32,
                1.0,
                &members.iter().enumerate().map(role).collect::<Vec<_>>(),
            ));
        }
    }
    PackedProblem { capacity, classes: vec![JobClass { jobs: 1, weight: 1.0 }; jobs], groups }
}

fn speed_alone(case: &Value, job: usize, share: impl Fn(f64) -> f64) -> f64 {
    let of = |kind: &&str| {
        let devices = case["cluster"][kind].as_f64().unwrap();
        share(devices) * case["throughputs"][job.to_string()][kind].as_f64().unwrap()
    };
    KINDS.iter().map(of).sum()
}

#[test]
fn packed_cases() {
    let Some(cases) = read("policy_cases.json") else { return };
    let mut seen = 0;
    for about in cases.as_array().unwrap() {
        let devices: f64 = KINDS.iter().map(|kind| about["cluster"][kind].as_f64().unwrap_or(0.0)).sum();
        let n = about["scale_factors"].as_object().unwrap().len();
        let steps = |job: usize| about["steps_remaining"][job.to_string()].as_f64().unwrap();
        let wanted = about["last_cvxpy_objective"].as_f64();
        match about["policy"].as_str().unwrap() {
            "max_min_fairness_packed" => {
                let mean = |job| speed_alone(about, job, |of_kind| of_kind / devices);
                let solution = max_min(&case(about, mean), &PackedWork::default()).unwrap();
                assert!(
                    near(solution.objective, wanted.unwrap(), 1e-6),
                    "{}: {wanted:?}",
                    solution.objective
                );
            }
            "finish_time_fairness_packed" => {
                let whole = (devices / n as f64).max(1.0);
                let alone = |job| speed_alone(about, job, |of_kind| of_kind / n as f64 / whole);
                let job =
                    |job| Progress { steps: steps(job), isolated: steps(job) / alone(job), elapsed: 0.0 };
                let jobs: Vec<Vec<Progress>> = (0..n).map(|at| vec![job(at)]).collect();
                let solution = finish_time(&case(about, |_| 1.0), &jobs, &PackedWork::default()).unwrap();
                assert!(
                    near(solution.objective, wanted.unwrap(), 1e-6),
                    "{}: {wanted:?}",
                    solution.objective
                );
            }
            "min_total_duration_packed" => {
                let needs: Vec<Vec<f64>> = (0..n).map(|job| vec![steps(job)]).collect();
                let solution = makespan(&case(about, |_| 1.0), &needs, &PackedWork::default()).unwrap();
                // The original stops within five per cent, so its point bounds ours from one side.
                let theirs = |job: usize| {
                    steps(job) / about["effective_throughput"][job.to_string()].as_f64().unwrap()
                };
                let theirs = (0..n).map(theirs).fold(0.0, f64::max);
                assert!(
                    solution.objective <= theirs && solution.objective > 0.95 * theirs,
                    "{} {theirs}",
                    solution.objective
                );
                assert!(
                    near(solution.objective, 500.0 / 3.0, 1e-9),
                    "the second job alone on the fastest kind"
                );
            }
            _ => continue,
        }
        seen += 1;
    }
    assert_eq!(seen, 5);
}
