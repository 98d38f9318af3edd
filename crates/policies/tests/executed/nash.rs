//! `nash:strategy-proof=true`: what is held back is not given out after all.

use yard_core::ids::JobId;
use yard_core::job::JobSpec;

use super::{HOUR, ROUND, Scene, Times, held, on_kinds, rigid};

const PROOF: &str = "nash:strategy-proof=true";
const UNTIL: f64 = 8.0 * HOUR;

/// Each job has, on each kind, what the plan meant it to have, to a round.
fn follows(scene: &Scene<'_>) -> (Times, Times) {
    let (meant, held) = (scene.meant(PROOF), held(&scene.run(PROOF), UNTIL));
    for key in meant.keys().chain(held.keys()) {
        let of = |times: &Times| times.get(key).copied().unwrap_or(0.0);
        let (meant, got) = (of(&meant) * UNTIL, of(&held));
        assert!((meant - got).abs() <= ROUND, "{key:?}: {got} s of {meant} s");
    }
    (meant, held)
}

#[test]
fn executed_time_follows_the_withheld_shares() {
    let jobs: Vec<JobSpec> = [[3.0, 1.0], [2.0, 2.0], [1.0, 1.5]].iter().map(|own| on_kinds(own)).collect();
    let scene = Scene::new("a:1x1,b:1x1", &jobs);
    let (_, held) = follows(&scene);
    let all: f64 = held.values().sum();
    assert!(all < 0.75 * 2.0 * UNTIL, "what is withheld stays idle: {all} s");
    let plain: f64 = super::held(&scene.run("nash"), UNTIL).values().sum();
    assert!((plain - 2.0 * UNTIL).abs() < 1.0, "nothing idles without: {plain} s");
}

#[test]
fn shares_are_limits_where_nobody_waits_too() {
    // Each has a kind to itself, and pays for what it keeps the other from.
    let jobs = [on_kinds(&[10.0, 1.0]), on_kinds(&[2.0, 1.9])];
    let (meant, _) = follows(&Scene::new("a:1x1,b:1x1", &jobs));
    assert!(meant.values().sum::<f64>() < 1.99, "{meant:?}");
}

#[test]
fn lying_does_not_pay() {
    let truth = [3.0, 1.0];
    let gained = |said: &[f64]| {
        let jobs = [on_kinds(said), on_kinds(&[2.0, 2.0]), on_kinds(&[1.0, 1.5])];
        let held = held(&Scene::new("a:1x1,b:1x1", &jobs).run(PROOF), UNTIL);
        let own = held.iter().filter(|((job, _), _)| *job == JobId(0));
        own.map(|((_, kind), seconds)| seconds * truth[*kind as usize]).sum::<f64>()
    };
    // Beats can add a round on each kind.
    let honest = gained(&truth) + ROUND * (truth[0] + truth[1]);
    for said in [[3.0, 3.0], [1.0, 1.0], [9.0, 1.0], [3.0, 0.1], [1.0, 3.0]] {
        let lied = gained(&said);
        assert!(lied <= honest, "{said:?}: {lied} steps, {honest} with the truth");
    }
}

#[test]
fn whoever_is_withheld_from_ends_nevertheless() {
    let jobs: Vec<JobSpec> = (1..6).map(|at| rigid(1, 1000.0 * f64::from(at))).collect();
    let outcome = Scene::new("a:1x2", &jobs).run(PROOF);
    assert!(outcome.record.jobs.iter().all(|job| job.end.is_some()), "{:?}", outcome.record.jobs);
}
