//! Requests that must be answered in time: the 95th percentile of the response time of one server, and how many it takes.
//!
//! Requests come at random (Poisson) and each takes the same time t. At utilisation ρ the waiting time falls off as
//! e^(−θ·wait/t), where θ > 0 solves ρ(e^θ − 1) = θ, so that R95 = t (1 + max(0, ln(20 (1 − ρ)/(ρ e^θ − 1)))/θ).

use libm::{exp, log};

/// Part of the requests that may take longer: one in twenty.
const LATE: f64 = 20.0;

/// Halvings of the interval in which θ lies: all digits of a number.
const HALVINGS: u32 = 100;

/// The time within which 95 % of the requests are answered, as a multiple of the time of one; infinite where they come
/// faster than they are served.
pub fn r95(utilisation: f64) -> f64 {
    if utilisation <= 0.0 {
        return 1.0;
    }
    if utilisation >= 1.0 {
        return f64::INFINITY;
    }
    let theta = decay(utilisation);
    let tail = LATE * (1.0 - utilisation) / (utilisation * exp(theta) - 1.0);
    1.0 + log(tail).max(0.0) / theta
}

/// θ > 0 with ρ(e^θ − 1) = θ, by halving.
fn decay(utilisation: f64) -> f64 {
    let above = |theta: f64| utilisation * (exp(theta) - 1.0) > theta;
    let mut high = 1.0;
    while !above(high) {
        high *= 2.0;
    }
    // Below the minimum of the left side less the right one, where ρ e^θ = 1, there is only the root 0.
    let mut low = -log(utilisation);
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        if above(middle) { high = middle } else { low = middle }
    }
    high
}

/// The fewest servers that answer `rate` requests a second, of `seconds` each, so that 95 % take at most `target` seconds;
/// none where even one request alone takes longer, or no whole number of servers would do.
pub fn replicas(rate: f64, seconds: f64, target: f64) -> Option<u32> {
    let each = |count: u32| seconds * r95(rate * seconds / f64::from(count));
    if !(seconds > 0.0 && seconds <= target && rate.is_finite()) {
        return None;
    }
    let mut enough = 1u32;
    while each(enough) > target {
        enough = enough.checked_mul(2)?;
    }
    let mut few = enough / 2;
    while enough - few > 1 {
        let middle = few + (enough - few) / 2;
        if each(middle) <= target { enough = middle } else { few = middle }
    }
    Some(enough)
}

/// The longest time of a request with which a server at `rate` requests a second still keeps `target`; so much may those who
/// share its device slow it.
pub fn slowest(rate: f64, target: f64) -> f64 {
    let (mut low, mut high) = (0.0, target);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if middle * r95(rate * middle) <= target { low = middle } else { high = middle }
    }
    low
}

/// The part of the time that is left where servers take turns.
const TURNS_KEPT: f64 = 0.98;

/// The time of a request where so many take turns on a device, each for a quantum: as Olympian (Middleware 2018) has it.
pub fn by_turns(seconds: f64, sharers: u32, quantum: f64) -> f64 {
    match sharers {
        0 | 1 => seconds,
        _ => f64::from(sharers) * seconds / TURNS_KEPT + f64::from(sharers - 1) * quantum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 95th percentile over many requests, simulated, from a seed.
    fn simulated(utilisation: f64, requests: usize) -> f64 {
        let mut seed = 7u64;
        let mut uniform = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        let mut wait = 0.0f64;
        let mut responses: Vec<f64> = (0..requests)
            .map(|_| {
                let response = wait + 1.0;
                wait = (response + log(uniform()) / utilisation).max(0.0);
                response
            })
            .collect();
        responses.sort_by(f64::total_cmp);
        responses[requests * 95 / 100]
    }

    #[test]
    fn it_is_within_five_per_cent_of_simulation() {
        for utilisation in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9] {
            let (formula, truth) = (r95(utilisation), simulated(utilisation, 2_000_000));
            assert!((formula / truth - 1.0).abs() <= 0.05, "{utilisation}: {formula} for {truth}");
        }
    }

    #[test]
    fn it_grows_from_one_request_without_end() {
        assert_eq!((r95(0.0), r95(1.0)), (1.0, f64::INFINITY));
        let values: Vec<f64> = (1..100).map(|percent| r95(f64::from(percent) / 100.0)).collect();
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "{values:?}");
    }

    #[test]
    fn the_fewest_replicas_keep_the_target_and_one_less_does_not() {
        for (rate, seconds, target) in
            [(100.0, 0.02, 0.05), (7.0, 0.3, 0.9), (0.1, 0.5, 0.6), (5000.0, 0.01, 0.011)]
        {
            let count = replicas(rate, seconds, target).unwrap();
            let late = |count: u32| seconds * r95(rate * seconds / f64::from(count)) > target;
            assert!(!late(count) && (count == 1 || late(count - 1)), "{rate}: {count}");
        }
        assert_eq!(replicas(1.0, 0.2, 0.1), None, "one request alone is too slow");
    }

    #[test]
    fn turns_cost_their_quanta() {
        assert_eq!(by_turns(0.01, 1, 0.002), 0.01);
        assert!((by_turns(0.0098, 3, 0.002) - 0.034).abs() < 1e-12);
    }

    #[test]
    fn the_slowest_request_just_keeps_the_target() {
        let slow = slowest(20.0, 0.1);
        assert!((slow * r95(20.0 * slow) / 0.1 - 1.0).abs() < 1e-6, "{slow}");
    }
}
