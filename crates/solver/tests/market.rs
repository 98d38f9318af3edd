//! The market solver against closed forms and stored optima (`spec/gavel.md` §3 and §7). The stored ones are
//! read from ../shared/data.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::Value;
use yard_solver::market::{Finish, Market, MarketWork, Weights};

/// To the last digits: these markets are tiny.
const EXACT: MarketWork = MarketWork { passes: 1_000, gap: 1e-13 };

fn read(name: &str) -> Option<Value> {
    let text = yard_needs::shared_text(&format!("gavel/{name}"))?;
    Some(serde_json::from_str(&text).unwrap())
}

/// Jobs by their speeds on each kind, one device each.
fn market(capacity: &[f64], speeds: &[Vec<f64>]) -> Market {
    let mut market = Market::new(capacity.to_vec()).unwrap();
    for row in speeds {
        market.row(1.0).unwrap();
        for (kind, speed) in row.iter().enumerate().filter(|(_, speed)| **speed > 0.0) {
            market.option(*speed, &[(kind as u16, 1.0)]).unwrap();
        }
    }
    market
}

/// Mean speed over the devices of the cluster.
fn mean(capacity: &[f64], speeds: &[f64]) -> f64 {
    let devices: f64 = capacity.iter().sum();
    capacity.iter().zip(speeds).map(|(count, speed)| count * speed / devices).sum()
}

fn close(found: f64, wanted: f64, tolerance: f64) {
    assert!((found - wanted).abs() <= tolerance * wanted.abs(), "{found} instead of {wanted}");
}

fn two_jobs() -> Vec<Vec<f64>> {
    vec![vec![2.0, 1.0, 0.5], vec![3.0, 2.0, 1.0]]
}

#[test]
fn two_jobs_on_three_kinds_have_closed_forms() {
    for (capacity, fair, unfair) in
        [([1.0, 1.0, 1.0], 24.0 / 19.0, 19.0 / 24.0), ([1.0, 2.0, 3.0], 48.0 / 31.0, 31.0 / 48.0)]
    {
        let speeds = two_jobs();
        let market = market(&capacity, &speeds);
        let weight: Vec<f64> = speeds.iter().map(|row| mean(&capacity, row)).collect();
        let solution = market.max_min(&weight, None, &EXACT).unwrap();
        close(solution.objective, fair, 1e-9);
        close(solution.bound, fair, 1e-6);
        let steps = [300.0, 500.0];
        let share = |row: usize| {
            let even: Vec<f64> = capacity.iter().map(|count| count / 2.0).collect();
            let time: f64 = even.iter().sum::<f64>().max(1.0);
            even.iter().zip(&speeds[row]).map(|(part, speed)| part / time * speed).sum::<f64>()
        };
        let alone = [steps[0] / share(0), steps[1] / share(1)];
        let finish = Finish { steps: &steps, alone: &alone, elapsed: &[0.0, 0.0] };
        let solution = market.finish_time(&finish, None, &EXACT).unwrap();
        close(solution.objective, unfair, 1e-6);
        assert!(solution.bound <= unfair * (1.0 + 1e-9), "{} is no bound", solution.bound);
    }
}

#[test]
fn shares_of_the_unique_optimum() {
    let speeds = two_jobs();
    let market = market(&[1.0, 1.0, 1.0], &speeds);
    let weight: Vec<f64> = speeds.iter().map(|row| mean(&[1.0; 3], row)).collect();
    let solution = market.max_min(&weight, None, &EXACT).unwrap();
    let wanted = [9.0, 10.0, 0.0, 10.0, 9.0, 0.0].map(|part| part / 19.0);
    for (found, wanted) in solution.shares.iter().zip(wanted) {
        assert!((found - wanted).abs() < 1e-9, "{:?}", solution.shares);
    }
}

#[test]
fn sums_have_closed_forms() {
    let market = market(&[1.0, 1.0, 1.0], &two_jobs());
    close(market.most(&[1.0, 1.0], None, &EXACT).unwrap().objective, 4.0, 1e-9);
    let dollars = [3.1, 2.0, 0.8];
    let per_dollar: Vec<Vec<f64>> = two_jobs()
        .iter()
        .map(|row| row.iter().zip(dollars).map(|(speed, cost)| speed / cost).collect())
        .collect();
    let market = self::market(&[1.0, 1.0, 1.0], &per_dollar);
    let solution = market.most(&[1.0, 1.0], None, &EXACT).unwrap();
    close(solution.objective, 1.895161, 1e-6);
    assert!(solution.shares[0] > 0.999 && solution.shares[5] > 0.999, "{:?}", solution.shares);
}

/// The jobs of a stored instance: speeds by kind, steps, capacities, and the optima.
struct Stored {
    speeds: Vec<Vec<f64>>,
    steps: Vec<f64>,
    capacity: Vec<f64>,
    objective: Value,
}

const KINDS: [&str; 3] = ["k80", "p100", "v100"];

fn stored() -> Option<Vec<(usize, Stored)>> {
    let (instances, table) = (read("solve_instances.json")?, read("simulation_throughputs.json")?);
    let number = |value: &Value| value.as_f64().unwrap();
    let one = |(name, instance): (&String, &Value)| {
        let jobs = instance["jobs_model_batch_steps"].as_array().unwrap();
        let speeds = jobs.iter().map(|job| {
            let batch = job[1].as_u64().map_or(String::new(), |size| format!(" (batch size {size})"));
            let key = format!("('{}{batch}', 1)", job[0].as_str().unwrap());
            KINDS.iter().map(|kind| number(&table[kind][&key]["null"])).collect()
        });
        let capacity = KINDS.iter().map(|kind| number(&instance["cluster"][kind])).collect();
        let stored = Stored {
            speeds: speeds.collect(),
            steps: jobs.iter().map(|job| number(&job[2])).collect(),
            capacity,
            objective: instance["objective"].clone(),
        };
        (name.parse().unwrap(), stored)
    };
    Some(instances.as_object().unwrap().iter().map(one).collect())
}

#[test]
fn stored_optima_of_max_min() {
    for (jobs, stored) in stored().into_iter().flatten() {
        let market = market(&stored.capacity, &stored.speeds);
        let weight: Vec<f64> = stored.speeds.iter().map(|row| mean(&stored.capacity, row)).collect();
        let solution = market.max_min(&weight, None, &MarketWork::default()).unwrap();
        let wanted = stored.objective["max_min_fairness_perf"].as_f64().unwrap();
        println!(
            "{jobs} jobs: {} (stored {wanted}), gap {:e}, {} passes",
            solution.objective,
            solution.gap(),
            solution.passes
        );
        close(solution.objective, wanted, 1e-5);
        assert!(solution.gap() <= 1e-6, "{jobs} jobs: gap {}", solution.gap());
        assert!(solution.bound >= wanted * (1.0 - 1e-6));
        let filled = market.water_fill(&Weights::Fixed(&weight), None, &MarketWork::default()).unwrap();
        close(filled.objective, wanted, 1e-5);
    }
}

#[test]
fn stored_optima_of_finish_time() {
    for (jobs, stored) in stored().into_iter().flatten() {
        let Some(wanted) = stored.objective["finish_time_fairness_perf"].as_f64() else { continue };
        let market = market(&stored.capacity, &stored.speeds);
        let n = stored.steps.len() as f64;
        let time = (stored.capacity.iter().sum::<f64>() / n).max(1.0);
        let even = |row: &Vec<f64>| -> f64 {
            row.iter().zip(&stored.capacity).map(|(speed, count)| speed * count / n / time).sum()
        };
        let alone: Vec<f64> =
            stored.speeds.iter().zip(&stored.steps).map(|(row, steps)| steps / even(row)).collect();
        let elapsed = vec![0.0; stored.steps.len()];
        let finish = Finish { steps: &stored.steps, alone: &alone, elapsed: &elapsed };
        let solution = market.finish_time(&finish, None, &MarketWork::default()).unwrap();
        println!(
            "{jobs} jobs: {} (stored {wanted}), gap {:e}, {} passes",
            solution.objective,
            solution.gap(),
            solution.passes
        );
        close(solution.objective, wanted, 1e-5);
        assert!(solution.gap() <= 1e-6, "{jobs} jobs: gap {}", solution.gap());
    }
}
