//! Prices over time, and what was asked against what was received, cut to what a chart can show.

use serde::Serialize;

use super::number::Num;
use super::{ReportPlanSample, ReportRun};

/// Points of a line, and of a scatter plot.
const POINTS: usize = 1200;

/// Prices as a step function, one line for each kind.
#[derive(Debug, Serialize)]
pub(super) struct ReportMarket<'a> {
    kinds: &'a [String],
    /// Not `Num`s: late times rounded to five digits would fall together.
    t: Vec<f64>,
    /// When the last price ends.
    end: f64,
    /// By kind, then by time.
    prices: Vec<Vec<Num>>,
    objective: Vec<Num>,
    gap: Vec<Num>,
}

impl<'a> ReportMarket<'a> {
    /// None where no plan had prices.
    pub(super) fn new(run: &'a ReportRun, end: f64) -> Option<Self> {
        let priced = |plan: &&ReportPlanSample| plan.prices.len() == run.kinds.len() && !run.kinds.is_empty();
        let plans: Vec<&ReportPlanSample> = run.plans.iter().filter(priced).collect();
        let step = plans.len().div_ceil(POINTS).max(1);
        let plans: Vec<&ReportPlanSample> = plans.into_iter().step_by(step).collect();
        let last = plans.last()?.t;
        let line = |kind: usize| plans.iter().map(|plan| Num(plan.prices[kind])).collect();
        Some(ReportMarket {
            kinds: &run.kinds,
            t: plans.iter().map(|plan| plan.t).collect(),
            end: last.max(end),
            prices: (0..run.kinds.len()).map(line).collect(),
            objective: plans.iter().map(|plan| Num(plan.objective)).collect(),
            gap: plans.iter().map(|plan| Num(plan.gap)).collect(),
        })
    }
}

/// Asked and received, evenly thinned.
pub(super) fn points(followed: &[(f64, f64)]) -> Vec<[Num; 2]> {
    let step = followed.len().div_ceil(POINTS).max(1);
    followed.iter().step_by(step).map(|(asked, received)| [Num(*asked), Num(*received)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(plans: u32) -> ReportRun {
        let plan = |at: u32| ReportPlanSample {
            t: f64::from(at),
            prices: vec![f64::from(at), 0.5],
            objective: 1.0,
            gap: 0.0,
        };
        ReportRun {
            kinds: vec!["a".into(), "b".into()],
            plans: (0..plans).map(plan).collect(),
            ..ReportRun::default()
        }
    }

    #[test]
    fn prices_are_one_line_a_kind() {
        let run = run(3);
        let market = ReportMarket::new(&run, 9.0).unwrap();
        assert_eq!((market.t.as_slice(), market.end), (&[0.0, 1.0, 2.0][..], 9.0));
        assert_eq!(market.prices, [vec![Num(0.0), Num(1.0), Num(2.0)], vec![Num(0.5); 3]]);
    }

    #[test]
    fn many_plans_are_thinned_and_none_is_no_market() {
        let many = run(100_000);
        assert!(ReportMarket::new(&many, 0.0).unwrap().t.len() <= POINTS);
        assert!(points(&vec![(0.5, 0.5); 9999]).len() <= POINTS);
        assert!(ReportMarket::new(&run(0), 5.0).is_none() && points(&[]).is_empty());
        let bare = ReportRun { plans: vec![ReportPlanSample::default()], ..run(0) };
        assert!(ReportMarket::new(&bare, 5.0).is_none(), "a certificate without prices");
    }
}
