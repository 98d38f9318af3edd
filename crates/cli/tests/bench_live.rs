//! `yard bench live` from the outside, small: every figure is there and can be true. Nothing is asserted about speed.

mod common;

use common::Dir;
use serde_json::Value;

/// Small enough for a test, with more jobs than devices, so that they take turns.
const SMALL: &str =
    "bench live --agents 5 --jobs 50 --clients 4 --trivial 20 --slots 2 --round 1 --rounds 4 -o json";

fn number(figures: &Value, key: &str) -> f64 {
    figures[key].as_f64().unwrap_or_else(|| panic!("{key} is a number: {figures}"))
}

#[test]
fn a_small_cluster_is_measured_whole() {
    let figures = Dir::new().yard(SMALL).json();
    assert_eq!(number(&figures, "devices"), 40.0);
    for rate in ["submissions_per_s", "fsyncs_per_s", "ended_per_s", "trivial_per_s", "commit_mean_ms"] {
        assert!(number(&figures, rate) > 0.0, "{rate}: {figures}");
    }
    assert!(number(&figures, "submit_p50_ms") <= number(&figures, "submit_p99_ms"), "{figures}");
    assert!(number(&figures, "server_rss_mib") <= number(&figures, "server_peak_rss_mib"), "{figures}");
    assert!(number(&figures, "agent_rss_mib") > 1.0 && number(&figures, "keeper_rss_mib") > 1.0, "{figures}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refused = |options: &str, wanted: &str| {
        let answer = Dir::new().yard(&format!("bench live {options}"));
        assert!(answer.code == Some(2) && answer.err.contains(wanted), "{answer:?}");
    };
    refused("--agents 0", "--agents");
    refused("--clients 0", "--clients");
    refused("--dir /dev/null", "cannot make /dev/null/");
    refused("--policy nonsense", "nonsense");
}
