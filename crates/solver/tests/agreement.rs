//! The market solver against clarabel on random small markets, degenerate ones among them. Whatever it is asked
//! for: the shares fit, the objective and the bound enclose the optimum, and the two meet within the default
//! limits. `PROPTEST_CASES` sets how many markets each property sees.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod cases;

use cases::{Case, case};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use yard_solver::SolveError;
use yard_solver::conic::Accuracy;
use yard_solver::lp::{Lp, LpGoal, Sense};
use yard_solver::market::{Finish, Market, MarketError, MarketWork, Solution, Weights};
use yard_solver::reference::Progress;

/// The gap that the default limits must reach.
const GAP: f64 = 1e-6;

/// How far clarabel's optimum may be from the true one.
const REFEREE: f64 = 1e-5;

/// Tolerances to ask clarabel for: at one it may give up, or stop after four digits, and not at the next.
const TOLERANCES: [f64; 3] = [1e-9, 1e-11, 1e-7];

/// The same markets each time, or as many others as are asked for.
fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    let rng_seed = if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(1) };
    let cases = asked.unwrap_or(cases);
    ProptestConfig {
        cases,
        rng_seed,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    }
}

/// Nobody has more time than there is, nor any kind more devices.
fn fits(market: &Market, shares: &[f64]) -> Result<(), TestCaseError> {
    prop_assert_eq!(shares.len(), market.options());
    prop_assert!(shares.iter().all(|share| *share >= 0.0), "{:?}", shares);
    prop_assert!(market.load(shares).iter().all(|load| *load <= 1.0 + 1e-9), "{:?}", market.load(shares));
    for row in 0..market.rows() {
        let time: f64 = shares[market.options_of(row)].iter().sum();
        prop_assert!(time <= market.count(row) * (1.0 + 1e-9), "row {}: {}", row, time);
    }
    Ok(())
}

/// The certificate of a largest value, gaps being relative to `scale`.
fn certified(market: &Market, solution: &Solution, scale: f64) -> Result<(), TestCaseError> {
    fits(market, &solution.shares)?;
    let distance = solution.bound - solution.objective;
    prop_assert!(distance >= 0.0, "{} above its bound {}", solution.objective, solution.bound);
    prop_assert!(distance <= GAP * scale, "gap {:e}, {} passes", distance / scale, solution.passes);
    Ok(())
}

/// The optimum lies between these, by the referee at one of its tolerances. Where clarabel gives up at all of
/// them there is nothing to compare with: the market does not count.
fn encloses(
    low: f64,
    high: f64,
    slack: f64,
    referee: impl Fn(&Accuracy) -> Result<f64, SolveError>,
) -> Result<(), TestCaseError> {
    let ask = |tolerance| referee(&Accuracy { iterations_max: 200, tolerance });
    let answers: Vec<_> = TOLERANCES.into_iter().map(ask).collect();
    let optima: Vec<f64> = answers.iter().flatten().copied().collect();
    prop_assume!(!optima.is_empty(), "clarabel: {:?}", answers);
    let within = |optimum: &f64| low <= optimum + slack && high >= optimum - slack;
    prop_assert!(optima.iter().any(within), "[{}, {}] has none of {:?}", low, high, optima);
    Ok(())
}

/// The least speed over weight.
fn level(market: &Market, weight: &[f64], shares: &[f64]) -> f64 {
    let rows = (0..market.rows()).filter(|row| weight[*row] > 0.0);
    rows.map(|row| market.reached(row, shares) / weight[row]).fold(f64::INFINITY, f64::min)
}

/// Σ value · speed over all buyers.
fn worth(market: &Market, value: &[f64], shares: &[f64]) -> f64 {
    (0..market.rows()).map(|row| value[row] * market.count(row) * market.reached(row, shares)).sum()
}

/// Floors at a part of the fair level, none above what a row can reach alone.
fn floors(case: &Case, market: &Market, part: f64) -> Vec<f64> {
    let fair = market.max_min(&case.weight, None, &MarketWork::default()).unwrap().objective;
    let floor = |row: usize| (part * fair * case.weight[row]).min(market.best(row));
    (0..market.rows()).map(floor).collect()
}

/// Whether floors at this level of their own are kept is not for rounding to decide.
fn is_clear(level: f64) -> bool {
    (level - 1.0).abs() > 1e-4
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn max_min(case in case(40)) {
        prop_assume!(case.weight.iter().any(|weight| *weight > 0.0));
        let market = case.market();
        let solution = market.max_min(&case.weight, None, &MarketWork::default()).unwrap();
        certified(&market, &solution, solution.bound)?;
        let reached = level(&market, &case.weight, &solution.shares);
        prop_assert!((reached - solution.objective).abs() <= 1e-9 * reached, "{} of {}", reached, solution.objective);
        // In units of what was found, so that the referee works with numbers near one.
        let weight: Vec<f64> = case.each(&case.weight).iter().map(|weight| weight * reached).collect();
        let reference = case.reference();
        encloses(1.0, solution.bound / reached, REFEREE, |accuracy| Ok(reference.max_min(&weight, accuracy)?.objective))?;
    }

    #[test]
    fn most(case in case(40)) {
        let market = case.market();
        let solution = market.most(&case.weight, None, &MarketWork::default()).unwrap();
        certified(&market, &solution, solution.bound)?;
        let reached = worth(&market, &case.weight, &solution.shares);
        prop_assert!((reached - solution.objective).abs() <= 1e-9 * reached);
        let reference = case.reference();
        let none = vec![0.0; reference.jobs()];
        let values = case.values(&case.weight, reached.max(1e-9));
        encloses(reached / reached.max(1e-9), solution.bound / reached.max(1e-9), REFEREE, |accuracy| {
            Ok(reference.weighted_sum(&values, &none, accuracy)?.objective)
        })?;
    }

    #[test]
    fn most_above((case, part) in (case(40), 0.0..1.3_f64)) {
        let market = case.market();
        let floor = floors(&case, &market, part);
        let asks = floor.iter().any(|floor| *floor > 0.0);
        let all = if asks { market.max_min(&floor, None, &MarketWork::default()).unwrap().objective } else { 2.0 };
        prop_assume!(is_clear(all));
        match market.most_above(&case.value, &floor, None, &MarketWork::default()).unwrap() {
            Err(kept) => {
                let each = case.each(&floor);
                let reference = case.reference();
                prop_assert!(kept < 1.0);
                encloses(kept, kept, REFEREE, |accuracy| Ok(reference.max_min(&each, accuracy)?.objective))?;
            }
            Ok(solution) => {
                prop_assert!(all > 1.0);
                certified(&market, &solution, solution.bound)?;
                for (row, floor) in floor.iter().enumerate() {
                    let speed = market.reached(row, &solution.shares);
                    prop_assert!(speed >= floor * (1.0 - 1e-9), "row {}: {} below {}", row, speed, floor);
                }
                let reached = worth(&market, &case.value, &solution.shares);
                let values = case.values(&case.value, reached);
                let (reference, each) = (case.reference(), case.each(&floor));
                encloses(1.0, solution.bound / reached, REFEREE, |accuracy| {
                    Ok(reference.weighted_sum(&values, &each, accuracy)?.objective)
                })?;
            }
        }
    }

    #[test]
    fn nash(case in case(15)) {
        let market = case.market();
        let weight: Vec<f64> = case.weight.iter().map(|weight| weight.max(0.01)).collect();
        let budget: f64 = (0..market.rows()).map(|row| weight[row] * market.count(row)).sum();
        let solution = market.nash(&weight, None, &MarketWork::default()).unwrap();
        certified(&market, &solution, budget)?;
        // Weights that add up to one: the mean logarithm.
        let each: Vec<f64> = case.each(&weight).iter().map(|weight| weight / budget).collect();
        let reference = case.reference();
        encloses(solution.objective / budget, solution.bound / budget, 1e-4, |accuracy| Ok(reference.nash(&each, accuracy)?.objective))?;
    }

    #[test]
    fn finish_time(case in case(15)) {
        let market = case.market();
        let progress = &case.progress;
        let column = |of: fn(&Progress) -> f64| progress.iter().map(of).collect::<Vec<f64>>();
        let (steps, alone, elapsed) = (column(|p| p.steps), column(|p| p.isolated), column(|p| p.elapsed));
        let finish = Finish { steps: &steps, alone: &alone, elapsed: &elapsed };
        let solution = market.finish_time(&finish, None, &MarketWork::default()).unwrap();
        fits(&market, &solution.shares)?;
        prop_assert!(solution.bound <= solution.objective);
        let gap = (solution.objective - solution.bound) / solution.objective;
        prop_assert!(gap <= GAP, "gap {:e}, {} passes", gap, solution.passes);
        let rho = |row: usize| {
            (elapsed[row] + steps[row] / market.reached(row, &solution.shares)) / alone[row]
        };
        let worst = (0..market.rows()).map(rho).fold(0.0, f64::max);
        prop_assert!((worst - solution.objective).abs() <= 1e-9 * worst, "{} of {}", worst, solution.objective);
        // Alone for longer, so that the referee's answer is near one.
        let scaled = |one: &Progress| Progress { isolated: one.isolated * worst, ..*one };
        let each: Vec<Progress> = case.each(progress).iter().map(scaled).collect();
        let reference = case.reference();
        encloses(solution.bound / worst, 1.0, REFEREE, |accuracy| Ok(reference.finish_time(&each, accuracy)?.objective))?;
    }

    #[test]
    fn best_ratio((case, part) in (case(15), 0.2..1.2_f64)) {
        prop_assume!(case.weight.iter().any(|weight| *weight > 0.0));
        let market = case.market();
        let floor = floors(&case, &market, part);
        let all = market.max_min(&floor, None, &MarketWork::default()).unwrap().objective;
        prop_assume!(is_clear(all));
        match market.best_ratio(&case.value, &case.dollars, &floor, &MarketWork::default()).unwrap() {
            Err(kept) => prop_assert!(all < 1.0 && (kept - all).abs() <= GAP),
            Ok(solution) => {
                certified(&market, &solution, solution.bound)?;
                let found = worth(&market, &case.value, &solution.shares) / cost(&market, &case, &solution.shares);
                prop_assert!((found - solution.objective).abs() <= 1e-6 * found, "{} of {}", found, solution.objective);
                encloses(1.0, solution.bound / found, REFEREE, |accuracy| ratio(&market, &case, &floor, found, accuracy))?;
            }
        }
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// Beyond what a referee can follow: from next to nothing to far too much of each kind.
    #[test]
    fn certificates((case, scale) in (case(40), prop::collection::vec(-3.0..4.0_f64, 5))) {
        prop_assume!(case.weight.iter().any(|weight| *weight > 0.0));
        let market = case.scaled(&scale).market();
        let limits = MarketWork::default();
        let solution = market.max_min(&case.weight, None, &limits).unwrap();
        certified(&market, &solution, solution.bound)?;
        let most = market.most(&case.value, None, &limits).unwrap();
        certified(&market, &most, most.bound)?;
        let again = market.max_min(&case.weight, Some(&solution.prices), &limits).unwrap();
        certified(&market, &again, again.bound)?;
        let above = |bound: f64| bound * (1.0 + 1e-9);
        prop_assert!(again.objective <= above(solution.bound) && solution.objective <= above(again.bound));
    }
}

proptest! {
    #![proptest_config(config(40))]

    /// One program a job and level there: small markets only. Who matters a millionth as much as others is
    /// below what clarabel can see. Gangs larger than a kind are left out: where those leave nothing to spare, a
    /// later level may end after 400 passes far below the optimum.
    #[test]
    fn water_filling(case in case(6)) {
        prop_assume!(case.is_even() && !case.is_oversized());
        let market = case.market();
        let solution = market.water_fill(&Weights::Fixed(&case.weight), None, &MarketWork::default()).unwrap();
        certified(&market, &solution, solution.bound)?;
        // In units of the first level.
        let each: Vec<f64> = case.each(&case.weight).iter().map(|weight| weight * solution.objective).collect();
        let answer = case.reference().water_filling(&each, &Accuracy::default());
        prop_assume!(answer.is_ok(), "clarabel: {:?}", answer);
        let (_, wanted) = answer.unwrap();
        let level = |row| market.reached(row, &solution.shares) / case.weight[row] / solution.objective;
        let found = case.each(&(0..market.rows()).map(level).collect::<Vec<f64>>());
        prop_assert!(is_as_high(sorted(found.clone()), sorted(wanted.clone())), "{:?} below {:?}", found, wanted);
    }
}

fn sorted(mut levels: Vec<f64>) -> Vec<f64> {
    levels.sort_by(f64::total_cmp);
    levels
}

/// Whether the first level that differs is the higher one. The levels found fit, and none that fit are higher
/// than the true ones: to be as high is to be equal, and where the referee froze somebody early, we are higher.
fn is_as_high(found: Vec<f64>, wanted: Vec<f64>) -> bool {
    let first = found.iter().zip(&wanted).find(|(found, wanted)| (*found - *wanted).abs() > 1e-3 * *wanted);
    first.is_none_or(|(found, wanted)| found > wanted)
}

fn cost(market: &Market, case: &Case, shares: &[f64]) -> f64 {
    let all = case.dollars.iter().zip(market.capacity());
    market.load(shares).iter().zip(all).map(|(load, (dollars, devices))| load * dollars * devices).sum()
}

/// The best ratio over `unit`, by one program: shares over their own cost, and one variable for the inverse of
/// that cost, which the right-hand sides are multiples of.
fn ratio(
    market: &Market,
    case: &Case,
    floor: &[f64],
    unit: f64,
    accuracy: &Accuracy,
) -> Result<f64, SolveError> {
    let mut lp = Lp::new(LpGoal::Maximise);
    let row_of =
        |option: usize| (0..market.rows()).find(|row| market.options_of(*row).contains(&option)).unwrap();
    for option in 0..market.options() {
        lp.variable(case.value[row_of(option)] * market.speed(option) / unit);
    }
    let inverse = lp.variable(0.0);
    let mut kinds = vec![vec![]; market.kinds()];
    let mut dollars = Vec::new();
    for option in 0..market.options() {
        for (kind, devices) in market.uses(option) {
            kinds[kind].push((option, devices));
            dollars.push((option, devices * case.dollars[kind]));
        }
    }
    for (mut terms, capacity) in kinds.into_iter().zip(market.capacity()) {
        terms.push((inverse, -capacity));
        lp.row(terms, Sense::Le, 0.0);
    }
    for (row, floor) in floor.iter().enumerate() {
        let options = market.options_of(row);
        let with = |of: &dyn Fn(usize) -> f64, right: f64| {
            options.clone().map(|option| (option, of(option))).chain([(inverse, -right)]).collect::<Vec<_>>()
        };
        lp.row(with(&|_| 1.0, market.count(row)), Sense::Le, 0.0);
        lp.row(with(&|option| market.speed(option), floor * market.count(row)), Sense::Ge, 0.0);
    }
    lp.row(dollars, Sense::Eq, 1.0);
    Ok(lp.solve(accuracy)?.objective)
}

#[test]
fn nobody_who_asks_for_anything_is_no_market_to_level() {
    let mut market = Market::new(vec![1.0]).unwrap();
    market.row(1.0).unwrap();
    market.option(1.0, &[(0, 1.0)]).unwrap();
    let solution = market.max_min(&[0.0], None, &MarketWork::default()).unwrap();
    assert_eq!((solution.objective, solution.bound, solution.gap()), (0.0, 0.0, 0.0));
}

#[test]
fn a_floor_above_a_rows_best_names_the_row() {
    let mut market = Market::new(vec![1.0]).unwrap();
    market.row(1.0).unwrap();
    market.option(1.0, &[(0, 1.0)]).unwrap();
    let refused = market.most_above(&[1.0], &[2.0], None, &MarketWork::default());
    assert_eq!(refused, Err(MarketError::Floor { row: 0, needs: 2.0, most: 1.0 }));
}
