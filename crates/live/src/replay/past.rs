//! The jobs of a window of time as they were recorded, and what part each takes in a replay. Those that ran and are
//! over count. Those from before that were still there, and those that are not over yet, take their devices and do not
//! count: of these it is not known how it began or how it ends.

use std::collections::BTreeMap;

use yard_core::units::{Span, Time};

use crate::handle::Who;
use crate::store::JobRow;
use crate::views::JobView;

/// What part a job takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastPart {
    /// It counts.
    Counted,
    /// It came before the window.
    Carried,
    /// It is not over.
    Open,
}

/// A job as it was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The job as it was stored.
    pub row: JobRow,
    /// How it looked when it was over, or looks now.
    pub view: JobView,
    /// Its part in the replay.
    pub part: PastPart,
    /// When it comes in the replay.
    pub submit: Time,
    /// Seconds for which it held devices since it came there.
    pub held: Span,
    /// Seconds for which it holds devices in all from then on, where it ran and as it ran.
    pub seconds: f64,
}

/// All of them, in the order in which they come.
#[derive(Debug, Default)]
pub(crate) struct ReplayPast {
    pub(crate) jobs: Vec<Recorded>,
    pub(crate) left_out: usize,
}

impl ReplayPast {
    pub(crate) fn new(
        rows: Vec<JobRow>,
        living: &BTreeMap<u64, JobView>,
        (from, now): (Time, Time),
    ) -> ReplayPast {
        let mut past = ReplayPast::default();
        for row in rows {
            let (id, inside) = (row.id.0, row.submitted >= from);
            let view = row.summary.clone().or_else(|| living.get(&id).cloned());
            match view.and_then(|view| recorded(row, view, from, now)) {
                Some(job) => past.jobs.push(job),
                None => past.left_out += usize::from(inside),
            }
        }
        // Who had devices when the window began comes first, so that it has them again.
        let had =
            |job: &Recorded| job.part == PastPart::Counted || started(&job.view).is_none_or(|at| at >= from);
        past.jobs.sort_by_key(|job| (job.submit, had(job), job.row.submitted, job.row.id));
        past
    }

    pub(crate) fn count(&self, part: PastPart) -> usize {
        self.jobs.iter().filter(|job| job.part == part).count()
    }

    /// All jobs that count; then by team, those that somebody may see: their own, and everybody's for admins.
    pub(crate) fn groups(&self, who: &Who) -> (Vec<String>, Vec<Vec<usize>>) {
        let counted = self.jobs.iter().enumerate().filter(|(_, job)| job.part == PastPart::Counted);
        let mut teams: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, job) in counted.clone().filter(|(_, job)| who.admin || job.row.user == who.user) {
            teams.entry(job.team()).or_default().push(at);
        }
        let names = teams.keys().map(|team| (*team).to_owned()).collect();
        let all = counted.map(|(at, _)| at).collect();
        (names, std::iter::once(all).chain(teams.into_values()).collect())
    }
}

impl Recorded {
    /// The tenant it counts for, or its user.
    pub fn team(&self) -> &str {
        self.row.request.tenant.as_deref().unwrap_or(&self.row.user)
    }

    /// When it first got devices.
    pub fn started(&self) -> Option<Time> {
        started(&self.view)
    }

    /// When it was over.
    pub fn ended(&self) -> Option<Time> {
        self.view.ended_at.map(Time::from_secs)
    }
}

fn started(view: &JobView) -> Option<Time> {
    view.started_at.map(Time::from_secs)
}

/// A job that takes part; none where it never ran, or where nobody knows how long it takes.
fn recorded(row: JobRow, view: JobView, from: Time, now: Time) -> Option<Recorded> {
    let ended = view.ended_at.map(Time::from_secs);
    let part = match (ended, row.submitted < from) {
        (None, _) => PastPart::Open,
        (Some(_), true) => PastPart::Carried,
        (Some(_), false) => PastPart::Counted,
    };
    let before = before(&view, from, ended.unwrap_or(now));
    let total = if ended.is_some() { view.executed_s } else { expected(&row, &view) };
    let (held, seconds) = (Span::from_secs((view.executed_s - before).max(0.0)), total - before);
    let submit = row.submitted.max(from);
    (seconds > 0.0).then_some(Recorded { row, view, part, submit, held, seconds })
}

/// Seconds for which it had devices before an instant, taken evenly over its time from its start until its end.
fn before(view: &JobView, from: Time, end: Time) -> f64 {
    let Some(start) = started(view).filter(|start| *start < from && end > *start) else { return 0.0 };
    view.executed_s * ((from.min(end) - start).secs() / (end - start).secs())
}

/// How long a job that is not over will have had devices: by how far it says it is, else by the length it was
/// submitted with, else no longer than until now.
fn expected(row: &JobRow, view: &JobView) -> f64 {
    let told = view.step.zip(view.steps).filter(|(step, _)| *step > 0);
    let told = told.map(|(step, steps)| view.executed_s * (steps as f64 / step as f64));
    let said = row.request.duration_s.or(row.request.time_limit_s);
    told.or(said).unwrap_or(0.0).max(view.executed_s)
}

#[cfg(test)]
mod tests {
    use yard_core::ids::JobId;

    use super::*;
    use crate::request::JobRequest;
    use crate::store::Facts;

    fn seen(id: u64, user: &str, state: &str) -> JobView {
        let view = serde_json::json!({
            "id": id, "name": "job", "user": user, "state": state, "gpus": 1, "nodes": [], "priority": 0,
            "submitted_at": 0.0, "executed_s": 0.0, "starts": 1, "preemptions": 0, "migrations": 0, "failures": 0,
        });
        serde_json::from_value(view).unwrap()
    }

    /// A job that came, started and ended then.
    fn row(id: u64, user: &str, submitted: f64, ran: Option<(f64, f64)>) -> JobRow {
        let view = JobView {
            started_at: ran.map(|(start, _)| start),
            ended_at: Some(ran.map_or(submitted + 1.0, |(_, end)| end)),
            executed_s: ran.map_or(0.0, |(start, end)| end - start),
            ..seen(id, user, "succeeded")
        };
        let (id, user, submitted) = (JobId(id), user.to_owned(), Time::from_secs(submitted));
        let (request, facts) = (JobRequest::default(), Facts::default());
        JobRow { id, user, submitted, request, facts, summary: Some(view) }
    }

    #[test]
    fn who_was_there_before_takes_part_with_what_was_left() {
        let waited = row(1, "ann", 40.0, Some((150.0, 160.0)));
        let ran = row(2, "ann", 50.0, Some((60.0, 140.0)));
        let inside = row(3, "bob", 110.0, Some((120.0, 150.0)));
        let never = row(4, "bob", 111.0, None);
        let gone = row(5, "bob", 10.0, Some((20.0, 90.0)));
        let window = (Time::from_secs(100.0), Time::from_secs(200.0));
        let past = ReplayPast::new(vec![waited, ran, inside, never, gone], &BTreeMap::new(), window);
        let told: Vec<_> = past.jobs.iter().map(|job| (job.row.id.0, job.part, job.seconds)).collect();
        let expected =
            [(2, PastPart::Carried, 40.0), (1, PastPart::Carried, 10.0), (3, PastPart::Counted, 30.0)];
        assert_eq!((told, past.left_out), (expected.to_vec(), 1));
        assert!(past.jobs[..2].iter().all(|job| job.submit == window.0));
    }

    #[test]
    fn who_is_not_over_takes_part_with_the_length_that_is_expected() {
        let open = |id, request: JobRequest| JobRow { summary: None, request, ..row(id, "ann", 100.0, None) };
        let view = |id, step: Option<u64>, ran: f64| JobView {
            started_at: (ran > 0.0).then_some(100.0),
            executed_s: ran,
            step,
            steps: step.map(|_| 100),
            ..seen(id, "ann", "running")
        };
        let said = |seconds| JobRequest { duration_s: Some(seconds), ..JobRequest::default() };
        let rows = vec![
            open(1, said(500.0)),
            open(2, said(50.0)),
            open(3, said(500.0)),
            open(4, JobRequest::default()),
            open(5, JobRequest::default()),
        ];
        let living = [(1, None, 60.0), (2, None, 60.0), (3, Some(20), 60.0), (4, None, 60.0), (5, None, 0.0)];
        let living = living.map(|(id, step, ran)| (id, view(id, step, ran)));
        let past = ReplayPast::new(rows, &BTreeMap::from(living), (Time::ZERO, Time::from_secs(160.0)));
        let told: Vec<_> = past.jobs.iter().map(|job| job.seconds).collect();
        assert_eq!((told, past.left_out), (vec![500.0, 60.0, 300.0, 60.0], 1), "nobody knows of the fifth");
        assert_eq!((past.count(PastPart::Open), past.jobs[0].held), (4, Span::from_secs(60.0)));
    }

    #[test]
    fn teams_are_tenants_and_who_is_no_admin_sees_their_own_jobs() {
        let mut rows: Vec<_> = [(1, "ann"), (2, "bob"), (3, "ann")]
            .map(|(id, user)| row(id, user, 1.0, Some((1.0, 2.0))))
            .into();
        rows[2].request.tenant = Some("vision".into());
        let past = ReplayPast::new(rows, &BTreeMap::new(), (Time::ZERO, Time::from_secs(9.0)));
        let who = |user: &str, admin| Who { user: user.into(), admin };
        let (teams, groups) = past.groups(&who("root", true));
        assert_eq!(
            (teams.join(" "), groups),
            ("ann bob vision".into(), vec![vec![0, 1, 2], vec![0], vec![1], vec![2]])
        );
        let (teams, groups) = past.groups(&who("bob", false));
        assert_eq!((teams.join(" "), groups), ("bob".into(), vec![vec![0, 1, 2], vec![1]]));
    }

    proptest::proptest! {
        /// Whatever the store says, even of clocks that went wrong: jobs come within the window, in order, with work.
        #[test]
        fn whatever_was_recorded_takes_part_soundly(
            rows in proptest::collection::vec((0.0..200.0, 0.0..300.0, proptest::option::of(0.0..300.0), 0.0..500.0), 0..20),
            from in 0.0..200.0,
        ) {
            let made = |(id, (submitted, started, ended, executed_s)): (u64, (f64, f64, Option<f64>, f64))| {
                let view = JobView { started_at: Some(started), ended_at: ended, executed_s, ..seen(id, "ann", "any") };
                JobRow { summary: Some(view), ..row(id, "ann", submitted, None) }
            };
            let (count, from) = (rows.len(), Time::from_secs(from));
            let past = ReplayPast::new((0..).zip(rows).map(made).collect(), &BTreeMap::new(), (from, Time::from_secs(400.0)));
            proptest::prop_assert!(past.jobs.len() + past.left_out <= count);
            proptest::prop_assert!(past.jobs.iter().all(|job| job.submit >= from && job.seconds > 0.0));
            proptest::prop_assert!(past.jobs.is_sorted_by_key(|job| job.submit));
            let counted = past.jobs.iter().filter(|job| job.part == PastPart::Counted);
            proptest::prop_assert!(counted.clone().all(|job| job.row.submitted >= from && job.ended().is_some()));
        }
    }
}
