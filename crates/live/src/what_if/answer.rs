//! An answer as people see it: names instead of numbers, and of others' jobs only how many.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::forecast::what_if::{Hit, Told};
use yard_core::units::{Span, Time};

use super::WhatIfQuestion;
use crate::forecaster::seen;
use crate::handle::Who;
use crate::views::{DelayView, JobView, WhatIfRow, WhatIfView};

/// Delayed jobs that are named, those first that lose most.
const NAMED_MAX: usize = 20;

/// The jobs on the board.
type JobsAnswer = BTreeMap<u64, Arc<JobView>>;

/// What somebody may see of an answer.
pub(crate) fn view(question: &WhatIfQuestion, told: &[Told], who: &Who, jobs: &JobsAnswer) -> WhatIfView {
    let rows = question.ways.iter().zip(told);
    let mut rows: Vec<WhatIfRow> = rows
        .map(|(way, told)| {
            let place = told.place.as_ref().map(|place| (place.devices(), question.place(place)));
            let (gpus, (nodes, kind)) = place.map_or_else(Default::default, |(n, place)| (Some(n), place));
            let deadline = way.spec().and_then(|spec| spec.deadline);
            let row = row(told, deadline, who, jobs);
            // A job whose estimate is missing is one for which there was no work left.
            let told_all =
                !question.intervals || question.quick || way.spec().is_none() || told.estimate.is_some();
            let untold = !told_all && told.refused.is_none();
            {
                let (label, alone) = (way.label.clone(), question.quick && way.spec().is_some());
                WhatIfRow { label, gpus, nodes, kind, alone, cut: row.cut || untold, ..row }
            }
        })
        .collect();
    if let Some(best) = best(&rows) {
        rows[best].best = true;
    }
    WhatIfView { made_at: question.at.secs(), cut: rows.iter().any(|row| row.cut), rows }
}

fn row(told: &Told, deadline: Option<Time>, who: &Who, jobs: &JobsAnswer) -> WhatIfRow {
    let delay = |hit: &Hit| {
        let job = jobs.get(&hit.job.0).filter(|job| who.admin || job.user == who.user)?;
        let (job, name) = (job.id, job.name.clone());
        let delay_s = hit.delay.map(Span::secs);
        Some(DelayView { job, name, delay_s, stops: hit.stops, late: hit.late })
    };
    let estimate = told.estimate.map(|estimate| seen(Time::ZERO, &estimate));
    let (refused, earliest) = told.refused.clone().map_or((None, None), |(why, by)| (Some(why), by));
    WhatIfRow {
        start: told.quiet.start.map(Time::secs),
        end: told.quiet.end.map(Time::secs),
        start_interval: estimate.and_then(|estimate| estimate.start),
        end_interval: estimate.and_then(|estimate| estimate.end),
        start_unknown: estimate.and_then(|estimate| estimate.start_unknown),
        end_unknown: estimate.and_then(|estimate| estimate.end_unknown),
        in_time: deadline.map(|deadline| told.quiet.end.is_some_and(|end| end <= deadline)),
        refused,
        earliest: earliest.map(Time::secs),
        delayed: told.hits.iter().filter(|hit| hit.delay != Some(Span::ZERO)).count(),
        delayed_s: told.hits.iter().filter_map(|hit| hit.delay).fold(0.0, |sum, delay| sum + delay.secs()),
        stranded: told.hits.iter().filter(|hit| hit.delay.is_none()).count(),
        late: told.hits.iter().filter(|hit| hit.late).count(),
        stopped: told.hits.iter().filter(|hit| hit.stops > 0).count(),
        delays: told.hits.iter().filter_map(delay).take(NAMED_MAX).collect(),
        cut: told.cut,
        rough: told.is_rough(told.quiet.start),
        rough_end: told.is_rough(told.quiet.end),
        not_before: told.not_before.map(Time::secs),
        ..WhatIfRow::default()
    }
}

/// The way that is done first; where a deadline matters, of those that keep it; of equal ones, that which costs
/// others least.
fn best(rows: &[WhatIfRow]) -> Option<usize> {
    let possible = rows.iter().enumerate().filter(|(_, row)| row.refused.is_none() && row.end.is_some());
    let rank = |row: &WhatIfRow| (row.in_time == Some(false), row.end.unwrap_or(f64::MAX), row.delayed_s);
    let first = |a: &WhatIfRow, b: &WhatIfRow| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
    };
    possible.min_by(|(_, a), (_, b)| first(a, b)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_way_keeps_its_deadline_and_ends_first() {
        let row = |end: f64, in_time, delayed_s| WhatIfRow {
            end: Some(end),
            in_time,
            delayed_s,
            ..WhatIfRow::default()
        };
        let refused = WhatIfRow { refused: Some("no".into()), ..row(1.0, None, 0.0) };
        assert_eq!(best(&[row(9.0, None, 0.0), refused.clone(), row(8.0, None, 5.0)]), Some(2));
        assert_eq!(best(&[row(9.0, None, 5.0), row(9.0, None, 4.0)]), Some(1));
        assert_eq!(best(&[row(3.0, Some(false), 0.0), row(9.0, Some(true), 0.0)]), Some(1));
        assert_eq!(best(&[refused, WhatIfRow::default()]), None);
    }
}
