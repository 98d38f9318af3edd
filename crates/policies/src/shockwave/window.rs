//! Rounds for each job of a window: max 1/(J·R) Σ w log̃ U(n) − k · max (left − n · round), within the devices of all
//! rounds together. A level of the last term is a floor under each job's rounds; above the floors the first term is a
//! sum of concave functions, so rounds go one by one where each device gains most. What the best level is worth falls on
//! both sides, so it is found by thirds. In which round a job runs is not decided here. `bound` says what no plan beats.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What is planned for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanWindow {
    /// Rounds, and seconds of each.
    pub(super) rounds: u32,
    pub(super) seconds: f64,
    /// What a second costs that the last job is late.
    pub(super) k: f64,
    pub(super) devices: u32,
}

impl PlanWindow {
    pub(super) fn length(&self) -> f64 {
        f64::from(self.rounds) * self.seconds
    }

    /// Devices of all rounds.
    pub(super) fn room(&self) -> u64 {
        u64::from(self.devices) * u64::from(self.rounds)
    }

    /// Rounds that a job with so many seconds left can use.
    pub(super) fn most(&self, left: f64) -> u32 {
        (left / self.seconds - 1e-9).ceil().clamp(1.0, f64::from(self.rounds)) as u32
    }
}

/// A job in the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowRow {
    pub(super) devices: u32,
    pub(super) weight: f64,
    /// The part of it that is done, and what each second adds.
    pub(super) done: f64,
    pub(super) rate: f64,
    /// Seconds left.
    pub(super) left: f64,
    /// Rounds it must have.
    pub(super) floor: u32,
}

impl WindowRow {
    pub(super) fn floor_use(&self) -> u64 {
        u64::from(self.floor) * u64::from(self.devices)
    }

    pub(super) fn utility(&self, rounds: u32, window: &PlanWindow) -> f64 {
        let seconds = (f64::from(rounds) * window.seconds).min(self.left);
        self.weight * log(self.done + seconds * self.rate)
    }

    /// What one round more gains for each device.
    pub(super) fn gain(&self, rounds: u32, window: &PlanWindow) -> f64 {
        (self.utility(rounds + 1, window) - self.utility(rounds, window)) / f64::from(self.devices.max(1))
    }

    pub(super) fn late(&self, rounds: u32, window: &PlanWindow) -> f64 {
        (self.left - f64::from(rounds) * window.seconds).max(0.0)
    }

    /// The rounds it must have to be at most so late; none where the window is too short.
    fn at_least(&self, late: f64, window: &PlanWindow) -> Option<u32> {
        let rounds = ((self.left - late) / window.seconds - 1e-9).ceil().max(0.0);
        (rounds <= f64::from(window.rounds)).then(|| (rounds as u32).max(self.floor))
    }
}

/// Logarithms of a millionth, for nothing, and of 0.2, 0.4, 0.6, 0.8 and 1.
const LOGS: [f64; 6] = [
    -13.815_510_557_964_274,
    -1.609_437_912_434_100_3,
    -0.916_290_731_874_155,
    -0.510_825_623_765_990_7,
    -0.223_143_551_314_209_7,
    0.0,
];

/// The artifact's logarithm: straight between these parts.
fn log(part: f64) -> f64 {
    let steps = part.clamp(0.0, 1.0) * 5.0;
    let below = (steps as usize).min(4);
    LOGS[below] + (LOGS[below + 1] - LOGS[below]) * (steps - below as f64)
}

/// A candidate for one more round: the largest gain first, then the first row.
#[derive(PartialEq)]
struct Next(f64, usize);

impl Eq for Next {}

impl Ord for Next {
    fn cmp(&self, other: &Next) -> Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Next) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Rounds for each row. Floors must fit.
pub(super) fn plan(rows: &[WindowRow], window: &PlanWindow) -> Vec<u32> {
    let longest = rows.iter().map(|row| row.left).fold(0.0, f64::max);
    let all = (longest / window.seconds).ceil().min(1e9) as u64;
    let level = |at: u64| at as f64 * window.seconds;
    // The least level that can be kept: the rest is fair game.
    let (mut low, mut high) = (0, all);
    while low < high {
        let middle = (low + high) / 2;
        if floors(rows, level(middle), window).is_some() { high = middle } else { low = middle + 1 }
    }
    let worth = |at: u64| at_level(rows, level(at), window).map_or(f64::NEG_INFINITY, |(worth, _)| worth);
    let mut high = all;
    while high - low > 3 {
        let (left, right) = (low + (high - low) / 3, high - (high - low) / 3);
        if worth(left) >= worth(right) { high = right } else { low = left }
    }
    let best = (low..=high).filter_map(|at| at_level(rows, level(at), window));
    let best = best.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map_or_else(|| rows.iter().map(|row| row.floor).collect(), |(_, rounds)| rounds)
}

/// The rounds that a level asks for; none where they are more than there are.
fn floors(rows: &[WindowRow], late: f64, window: &PlanWindow) -> Option<Vec<u32>> {
    let rounds: Option<Vec<u32>> = rows.iter().map(|row| row.at_least(late, window)).collect();
    rounds.filter(|rounds| used(rows, rounds) <= window.room())
}

/// Devices over all rounds.
fn used(rows: &[WindowRow], rounds: &[u32]) -> u64 {
    rows.iter().zip(rounds).map(|(row, rounds)| u64::from(row.devices) * u64::from(*rounds)).sum()
}

/// The best rounds with nobody later than this, and what they are worth.
fn at_level(rows: &[WindowRow], late: f64, window: &PlanWindow) -> Option<(f64, Vec<u32>)> {
    let mut rounds = floors(rows, late, window)?;
    let mut left = window.room() - used(rows, &rounds);
    let next = |at: usize, rounds: &[u32]| {
        let open = rounds[at] < window.most(rows[at].left);
        open.then(|| Next(rows[at].gain(rounds[at], window), at))
    };
    let mut heap: BinaryHeap<Next> = (0..rows.len()).filter_map(|at| next(at, &rounds)).collect();
    while let Some(Next(gain, at)) = heap.pop().filter(|_| left > 0) {
        let devices = u64::from(rows[at].devices);
        if devices <= left && gain > 0.0 {
            rounds[at] += 1;
            left -= devices;
            heap.extend(next(at, &rounds));
        }
    }
    Some((worth(rows, &rounds, window), rounds))
}

/// Rounds that a plan takes if no device idles.
pub(super) fn length(rows: &[WindowRow], rounds: &[u32], window: &PlanWindow) -> u32 {
    used(rows, rounds).div_ceil(u64::from(window.devices.max(1))).min(u64::from(window.rounds)) as u32
}

/// The objective.
pub(super) fn worth(rows: &[WindowRow], rounds: &[u32], window: &PlanWindow) -> f64 {
    let pairs = || rows.iter().zip(rounds);
    let welfare: f64 = pairs().map(|(row, n)| row.utility(*n, window)).sum();
    let late = pairs().map(|(row, n)| row.late(*n, window)).fold(0.0, f64::max);
    welfare / (rows.len() as f64 * f64::from(window.rounds)) - window.k * late
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::bound::bound;
    use super::*;

    #[test]
    fn the_logarithm_goes_through_its_points() {
        for part in [0.2, 0.4, 0.6, 0.8, 1.0] {
            assert!((log(part) - libm::log(part)).abs() < 1e-9, "{part}");
        }
        assert!((log(0.0) - libm::log(1e-6)).abs() < 1e-9 && log(2.0) == log(1.0));
    }

    /// The best of all ways to give each row some rounds.
    fn best(rows: &[WindowRow], window: &PlanWindow) -> f64 {
        let mut found = f64::NEG_INFINITY;
        let most: Vec<u32> = rows.iter().map(|row| window.most(row.left)).collect();
        let ways: u32 = most.iter().map(|most| most + 1).product();
        for way in 0..ways {
            let (mut rounds, mut rest) = (Vec::new(), way);
            for most in &most {
                rounds.push(rest % (most + 1));
                rest /= most + 1;
            }
            if used(rows, &rounds) <= window.room() {
                found = found.max(worth(rows, &rounds, window));
            }
        }
        found
    }

    fn row() -> impl Strategy<Value = WindowRow> {
        (1u32..3, 0.0..0.9f64, 20.0..900.0f64).prop_map(|(devices, done, left)| WindowRow {
            devices,
            weight: 1.0,
            done,
            rate: (1.0 - done) / left,
            left,
            floor: 0,
        })
    }

    proptest! {
        #[test]
        fn no_plan_is_worth_more(rows in prop::collection::vec(row(), 1..5), devices in 1u32..4, k in 1e-6..1e-2f64) {
            let window = PlanWindow { rounds: 4, seconds: 100.0, k, devices };
            let rows: Vec<WindowRow> = rows.into_iter().filter(|row| row.devices <= devices).collect();
            prop_assume!(!rows.is_empty());
            let planned = plan(&rows, &window);
            prop_assert!(used(&rows, &planned) <= window.room());
            let (ours, best) = (worth(&rows, &planned, &window), best(&rows, &window));
            // Levels are whole rounds, and the last device of a window may not fit the gang that gains most.
            let step = window.k * window.seconds + 13.9 / (rows.len() as f64 * 4.0);
            let single = rows.iter().all(|row| row.devices == 1);
            let allowed = if single { window.k * window.seconds } else { step };
            prop_assert!(ours >= best - allowed - 1e-9 && ours <= best + 1e-9, "{ours} where {best} can be had");
        }

        #[test]
        fn no_plan_is_worth_more_than_the_bound(
            rows in prop::collection::vec(row(), 1..5), devices in 1u32..4, k in 1e-6..1e-2f64, weight in 0.5..50.0f64,
        ) {
            let window = PlanWindow { rounds: 4, seconds: 100.0, k, devices };
            let mut rows: Vec<WindowRow> = rows.into_iter().filter(|row| row.devices <= devices).collect();
            prop_assume!(!rows.is_empty());
            rows[0].weight = weight;
            let (bound, best) = (bound(&rows, &window), best(&rows, &window));
            prop_assert!(bound >= best - 1e-9, "{best} is above {bound}");
            // What is between them is what a relaxation gains: parts of rounds, of one job at most for each constraint.
            let most = rows.iter().map(|row| row.gain(0, &window) * f64::from(row.devices)).fold(0.0, f64::max);
            let slack = 2.0 * most / (rows.len() as f64 * 4.0) + window.k * window.seconds;
            prop_assert!(bound <= best + slack, "{bound} is far above {best}");
        }

        #[test]
        fn floors_are_in_the_bound(rows in prop::collection::vec(row(), 1..4), floor in 0u32..3) {
            let window = PlanWindow { rounds: 4, seconds: 100.0, k: 1e-3, devices: 6 };
            let rows: Vec<WindowRow> =
                rows.iter().map(|row| WindowRow { floor: floor.min(window.most(row.left)), ..*row }).collect();
            let planned = plan(&rows, &window);
            prop_assert!(worth(&rows, &planned, &window) <= bound(&rows, &window) + 1e-9);
        }
    }
}
