use super::*;

/// Deterministic noise from 0 to 1.
fn random(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 11) as f64 / (1u64 << 53) as f64
}

fn timing(model: &Model, nodes: u32, devices: u32, local: u32) -> Timing {
    let grad_s = model.grad_s(local);
    Timing { nodes, devices, local, grad_s, step_s: model.step_s(grad_s, model.sync_s(nodes, devices)) }
}

const TRUTH: Model = Model {
    grad: Line { base: 0.05, each: 0.002 },
    across: Line { base: 0.2, each: 0.01 },
    within: Line { base: 0.04, each: 0.004 },
    overlap: 1.4,
};

fn everywhere(model: &Model) -> Vec<Timing> {
    let places = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 2), (2, 16), (4, 32)];
    let sizes = [8, 32, 128];
    places.iter().flat_map(|place| sizes.map(|local| timing(model, place.0, place.1, local))).collect()
}

#[test]
fn what_a_model_made_is_found_again() {
    let points = everywhere(&TRUTH);
    let found = fit(&points, None);
    for (point, seen) in everywhere(&found).iter().zip(&points) {
        assert!((point.step_s / seen.step_s - 1.0).abs() < 0.03, "{point:?} for {seen:?}: {found:?}");
        assert!((point.grad_s / seen.grad_s - 1.0).abs() < 0.01, "{point:?} for {seen:?}");
    }
}

#[test]
fn what_was_never_seen_costs_nothing() {
    let one = [timing(&TRUTH, 1, 1, 32)];
    let found = fit(&one, None);
    assert!((found.grad.base - one[0].grad_s / 2.0).abs() < 1e-12, "half of it is taken for fixed");
    assert!((found.grad_s(32) / one[0].grad_s - 1.0).abs() < 1e-3);
    assert!(found.sync_s(1, 8) < 1e-6 && found.sync_s(4, 32) < 1e-5, "{found:?}");
    let two = [timing(&TRUTH, 1, 1, 32), timing(&TRUTH, 1, 2, 32)];
    let found = fit(&two, Some(&found));
    let step_s = timing(&found, 1, 2, 32).step_s;
    assert!((step_s / two[1].step_s - 1.0).abs() < 1e-3, "{step_s} for {:?}", two[1]);
    assert!(found.within.each <= LEAST, "no third device was seen");
    assert!(
        (found.across.base - 1.1 * found.within.base).abs() < 1e-12,
        "across nodes it takes more at least"
    );
}

/// No place near the one found is better, nor any of many far away.
#[test]
fn nothing_that_chance_finds_is_better() {
    let mut seed = 7;
    for case in 0..20 {
        let mut points = everywhere(&TRUTH);
        points.retain(|_| random(&mut seed) < 0.6);
        points.push(timing(&TRUTH, 1, 1, 64));
        for point in &mut points {
            point.grad_s *= 0.8 + 0.4 * random(&mut seed);
            point.step_s = (point.step_s * (0.8 + 0.4 * random(&mut seed))).max(point.grad_s);
        }
        let priors = Priors::of(&points);
        let errors = Errors::new(&points);
        let found = search(&errors, &priors, priors.start(&points, None));
        let value = errors.value(&found);
        for trial in 0..3000 {
            let wide = if trial % 2 == 0 { 0.01 } else { 3.0 };
            let other: [f64; N] = std::array::from_fn(|at| match priors.fixed[at] {
                Some(fixed) => fixed,
                None => (found[at] * libm::exp(wide * (random(&mut seed) - 0.5))).clamp(LOW[at], HIGH[at]),
            });
            let there = errors.value(&other);
            assert!(
                there > value * (1.0 - 1e-3),
                "case {case}: {there} at {other:?} beats {value} at {found:?}"
            );
        }
    }
}

#[test]
fn a_start_from_the_last_model_ends_as_well() {
    let mut seed = 3;
    let mut points = everywhere(&TRUTH);
    points.iter_mut().for_each(|point| point.step_s *= 1.0 + 0.2 * random(&mut seed));
    let cold = fit(&points, None);
    points[5].step_s *= 1.05;
    let (again, warm) = (fit(&points, None), fit(&points, Some(&cold)));
    assert!(misfit(&points, &warm) <= misfit(&points, &again) * 1.001);
}

#[test]
fn extreme_times_give_a_model_all_the_same() {
    for (grad_s, step_s) in [(1e-300, 1e-300), (1e300, 1e300), (1e-9, 1e9), (5.0, 1e-5)] {
        for (nodes, devices) in [(1, 1), (1, 2), (7, 100), (u32::MAX, u32::MAX)] {
            let odd = Timing { nodes, devices, local: u32::MAX, grad_s, step_s };
            let found = fit(&[odd, timing(&TRUTH, 1, 1, 1)], None);
            assert!(found.numbers().iter().all(|number| number.is_finite() && *number >= LEAST), "{found:?}");
        }
    }
}
