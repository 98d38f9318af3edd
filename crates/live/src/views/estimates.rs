//! When jobs will probably start and end.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// When a job will probably start and end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EstimateView {
    /// When it was foretold.
    pub made_at: f64,
    /// When it first gets devices; none where that cannot be said.
    pub start: Option<IntervalView>,
    /// When it is over; none where that cannot be said.
    pub end: Option<IntervalView>,
    /// Why there is no `start`.
    #[serde(default)]
    pub start_unknown: Option<UnknownView>,
    /// Why there is no `end`.
    #[serde(default)]
    pub end_unknown: Option<UnknownView>,
}

impl EstimateView {
    /// Whether a newer one says something else to who reads it: by five seconds, or a fiftieth of what is left.
    pub(crate) fn moved(&self, newer: &EstimateView) -> bool {
        let apart = |was: f64, is: f64| (was - is).abs() > ((is - newer.made_at) / 50.0).max(5.0);
        let changed = |was: Option<IntervalView>, is: Option<IntervalView>| match (was, is) {
            (Some(was), Some(is)) => {
                let ends = was.high.zip(is.high).map(|(was, is)| apart(was, is));
                let ends = ends.unwrap_or(was.high.is_some() != is.high.is_some());
                apart(was.low, is.low) || apart(was.mid, is.mid) || ends
            }
            (was, is) => was.is_some() != is.is_some(),
        };
        let why = |one: &EstimateView| (one.start_unknown, one.end_unknown);
        changed(self.start, newer.start) || changed(self.end, newer.end) || why(self) != why(newer)
    }
}

/// Why there is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownView {
    /// No forecast reaches that far: it is weeks away, or never happens.
    Beyond,
    /// Forecasts differ too much: it depends on which jobs come, and how long others take.
    Scattered,
    /// Nobody said how long the job takes, and no job is over that would tell.
    Length,
}

impl UnknownView {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            UnknownView::Beyond => "not within weeks",
            UnknownView::Scattered => "no estimate: it depends on which jobs arrive and how long others take",
            UnknownView::Length => "length unknown",
        }
    }
}

/// An instant that is not known exactly: nine times in ten it is within. Where its limits are one, it is exact as far as
/// anything is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IntervalView {
    /// Hardly earlier.
    pub low: f64,
    /// As likely before as after.
    pub mid: f64,
    /// Hardly later; none where some forecasts went on without end.
    pub high: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_told_again_only_when_it_says_something_else() {
        let at = |mid: f64, high| Some(IntervalView { low: mid - 10.0, mid, high });
        let told =
            |end| EstimateView { made_at: 0.0, start: None, end, start_unknown: None, end_unknown: None };
        let first = told(at(1_000.0, Some(1_100.0)));
        assert!(!first.moved(&told(at(1_010.0, Some(1_110.0)))), "a hundredth of what is left is nothing");
        assert!(first.moved(&told(at(1_040.0, Some(1_140.0)))));
        assert!(first.moved(&told(at(1_000.0, None))) && first.moved(&told(None)));
        assert!(told(None).moved(&first) && !told(None).moved(&told(None)));
        let scattered = EstimateView { end_unknown: Some(UnknownView::Scattered), ..told(None) };
        assert!(told(None).moved(&scattered), "another reason is news");
        let soon = told(at(20.0, Some(25.0)));
        assert!(!soon.moved(&told(at(24.0, Some(29.0)))) && soon.moved(&told(at(26.0, Some(31.0)))));
    }
}
