//! `yard bench market` from the outside: the keys of the contract, what the figures promise, and mistakes.

mod common;

use common::Dir;
use serde_json::Value;

fn bench(options: &str) -> Value {
    Dir::new().yard(&format!("bench market {options} -o json")).json()
}

fn number(figures: &Value, key: &str) -> f64 {
    figures[key].as_f64().unwrap_or_else(|| panic!("{key} is a number: {figures}"))
}

#[test]
fn figures_have_the_keys_of_the_contract() {
    let plain = bench("--jobs 300 --kinds 3");
    for key in ["jobs", "kinds", "objective", "upper_bound", "gap", "rounds", "wall_s", "peak_rss_mib"] {
        number(&plain, key);
    }
    assert!(plain.get("lp_objective").is_none() && plain.get("warm_wall_s").is_none(), "{plain}");
    assert!(number(&plain, "objective") <= number(&plain, "upper_bound"));
    assert!(number(&plain, "gap") <= 1e-3, "{plain}");
}

#[test]
fn the_optimum_lies_between_the_objective_and_the_bound() {
    for (jobs, kinds) in [(1, 1), (40, 1), (200, 2), (1000, 5)] {
        let figures = bench(&format!("--jobs {jobs} --kinds {kinds} --against lp"));
        let (low, high) = (number(&figures, "objective"), number(&figures, "upper_bound"));
        let optimum = number(&figures, "lp_objective");
        assert!(low <= optimum * (1.0 + 1e-6) && optimum <= high * (1.0 + 1e-6), "{figures}");
        assert!(number(&figures, "lp_wall_s") >= 0.0);
    }
}

#[test]
fn a_smaller_gap_is_reached_where_it_is_asked_for() {
    let figures = bench("--jobs 2000 --kinds 4 --gap 1e-6");
    assert!(number(&figures, "gap") <= 1e-6, "{figures}");
}

#[test]
fn a_market_stays_solved_through_a_change() {
    let figures = bench("--jobs 3000 --kinds 4 --warm");
    assert!(number(&figures, "warm_gap") <= 1e-3, "{figures}");
    assert!(number(&figures, "warm_objective") <= number(&figures, "warm_upper_bound"));
    assert!(figures["warm_solved"].is_boolean());
    assert!(number(&figures, "standing_wall_s") > 0.0 && number(&figures, "warm_wall_s") > 0.0);
}

#[test]
fn a_seed_gives_one_answer() {
    let answer = |seed: u32| {
        let figures = bench(&format!("--jobs 500 --kinds 4 --seed {seed}"));
        ["objective", "upper_bound", "rounds"].map(|key| figures[key].clone())
    };
    assert_eq!(answer(1), answer(1));
    assert_ne!(answer(1), answer(2));
}

#[test]
fn what_is_no_market_is_refused() {
    let refused = |options: &str, wanted: &str| {
        let answer = Dir::new().yard(&format!("bench market {options}"));
        assert!(answer.code == Some(2) && answer.err.contains(wanted), "{answer:?}");
    };
    refused("--jobs 0", "--jobs");
    refused("--kinds 0", "--kinds");
    refused("--gap 0", "--gap");
    refused("--gap nan", "--gap");
    refused("--kinds 70000 --jobs 1", "70000");
}

#[test]
fn people_read_a_table() {
    let table = Dir::new().yard("bench market --jobs 100").quietly();
    assert!(table.contains("upper_bound") && table.contains("peak_rss_mib"), "{table}");
}
