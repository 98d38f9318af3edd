//! The past as it was and as it would have been, for people: totals, then each team against the baseline.

use yard_live::replay::view::{Difference, Figures, ReplayRow, ReplayView, TeamView, WindowView};

use crate::clock;
use crate::output::{self, human};

pub(super) fn lines(told: &ReplayView) -> Vec<String> {
    let mut lines = vec![window(&told.window), String::new()];
    lines.extend(totals(told));
    lines.extend(how_true(told));
    for row in told.alternatives.iter().filter(|row| !row.teams.is_empty()) {
        lines.extend([String::new(), format!("by team, {} against the baseline", output::plain(&row.label))]);
        lines.extend(teams(row, &told.baseline.teams));
    }
    lines.push(String::new());
    lines.extend(told.notes.iter().map(|note| format!("note: {}", output::plain(note))));
    lines
}

/// Which jobs it is about.
pub(super) fn window(window: &WindowView) -> String {
    let jobs = |n: usize| if n == 1 { "1 job".to_owned() } else { format!("{n} jobs") };
    let (from, to) = (clock::written(window.from), clock::written(window.to));
    let more = [(window.carried, "from before"), (window.open, "not over yet")];
    let more: Vec<String> =
        more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", jobs(*n))).collect();
    let takes = if window.carried + window.open == 1 { "takes part and does" } else { "take part and do" };
    let more = (!more.is_empty()).then(|| format!("; {} {takes} not count", more.join(" and ")));
    let left = (window.left_out > 0).then(|| {
        format!("; {} left out (they never ran, or their length is unknown)", jobs(window.left_out))
    });
    let (more, left) = (more.unwrap_or_default(), left.unwrap_or_default());
    format!("{} submitted from {from} to {to}{more}{left}", jobs(window.jobs))
}

fn totals(told: &ReplayView) -> Vec<String> {
    let header = [
        "",
        "jobs",
        "waiting",
        "p90",
        "completion",
        "p99",
        "makespan",
        "deadlines",
        "preempt",
        "util",
        "ρ",
        "max ρ",
        "cost",
    ];
    let mut table = output::table(&header, 1);
    let baseline = format!("baseline ({})", told.baseline.run.policy);
    let named = [("recorded", &told.recorded), (&baseline, &told.baseline)];
    let others = told.alternatives.iter().map(|row| (row.label.as_str(), row));
    for (label, row) in named.into_iter().chain(others) {
        let figures = &row.run.figures;
        let number = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.2}"));
        table.add_row([
            output::plain(label),
            done(figures),
            human(figures.avg_queue_s),
            human(figures.p90_queue_s),
            human(figures.avg_jct_s),
            human(figures.p99_jct_s),
            human(figures.makespan_s),
            met(figures),
            figures.preemptions.to_string(),
            figures.utilization.map_or("–".into(), |used| format!("{:.1}%", used * 100.0)),
            number(figures.avg_rho),
            number(figures.max_rho),
            number(figures.cost),
        ]);
    }
    printed(&table)
}

/// How far the simulation of how things are is from how it was.
fn how_true(told: &ReplayView) -> Option<String> {
    let (recorded, baseline) = (&told.recorded.run.figures, &told.baseline.run.figures);
    let gap = |really: Option<f64>, simulated: Option<f64>| {
        let (really, simulated) = (really?, simulated?);
        Some(changed(simulated - really, really, &|seconds| human(Some(seconds))))
    };
    let wait = gap(recorded.avg_queue_s, baseline.avg_queue_s)?;
    let end = gap(recorded.avg_jct_s, baseline.avg_jct_s)?;
    Some(format!("simulated compared with recorded: mean waiting {wait}, mean completion {end}"))
}

fn teams(row: &ReplayRow, baseline: &[TeamView]) -> Vec<String> {
    let mut table =
        output::table(&["team", "jobs", "waiting", "completion", "deadlines", "GPU hours", "ρ", "cost"], 1);
    for (team, base) in row.teams.iter().zip(baseline) {
        let Difference { avg_queue_s, avg_jct_s, deadline_met, gpu_hours, avg_rho, cost, .. } =
            team.against_baseline.clone().unwrap_or_default();
        let (now, was) = (&team.figures, &base.figures);
        let time = |seconds: f64| human(Some(seconds));
        let plain = |value: f64| format!("{value:.2}");
        let met_by = if deadline_met != 0 { format!(" {deadline_met:+}") } else { String::new() };
        table.add_row([
            output::plain(&team.team),
            done(now),
            both(now.avg_queue_s, avg_queue_s, was.avg_queue_s, &time),
            both(now.avg_jct_s, avg_jct_s, was.avg_jct_s, &time),
            format!("{}{met_by}", met(now)),
            both(Some(now.gpu_hours), Some(gpu_hours), Some(was.gpu_hours), &plain),
            both(now.avg_rho, avg_rho, was.avg_rho, &plain),
            both(now.cost, cost, was.cost, &plain),
        ]);
    }
    printed(&table)
}

/// A figure, and by how much it differs from what it was.
fn both(now: Option<f64>, by: Option<f64>, was: Option<f64>, write: &dyn Fn(f64) -> String) -> String {
    match (now, by.zip(was)) {
        (Some(now), Some((by, was))) => format!("{}  {}", write(now), changed(by, was, write)),
        (Some(now), None) => write(now),
        (None, _) => "–".into(),
    }
}

/// A difference with its sign, and as a part of what it was.
fn changed(by: f64, was: f64, write: &dyn Fn(f64) -> String) -> String {
    let size = write(by.abs());
    if size == write(0.0) {
        return "same".into();
    }
    let sign = if by < 0.0 { '-' } else { '+' };
    let part = (was.abs() > 0.0).then(|| format!(" ({:+.0}%)", by / was * 100.0));
    format!("{sign}{size}{}", part.unwrap_or_default())
}

/// Jobs that are done, of how many where that is not all.
fn done(figures: &Figures) -> String {
    let Figures { jobs, finished, .. } = figures;
    if finished == jobs { jobs.to_string() } else { format!("{finished}/{jobs}") }
}

fn met(figures: &Figures) -> String {
    match figures.deadline_total {
        0 => "–".into(),
        total => format!("{}/{total}", figures.deadline_met),
    }
}

fn printed(table: &comfy_table::Table) -> Vec<String> {
    table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use yard_live::replay::ReplayChange;
    use yard_live::replay::view::ReplayedRun;

    use super::*;

    fn row(label: &str, wait: f64, finished: usize, base: Option<f64>) -> ReplayRow {
        let figures = Figures {
            jobs: 12,
            finished,
            avg_queue_s: Some(wait),
            p90_queue_s: Some(2.0 * wait),
            avg_jct_s: Some(wait + 600.0),
            p99_jct_s: Some(wait + 900.0),
            makespan_s: Some(7_200.0),
            deadline_total: 2,
            deadline_met: 1,
            gpu_hours: 8.0,
            utilization: Some(0.5),
            avg_rho: Some(0.8),
            ..Figures::default()
        };
        let by = base.map(|base| Difference {
            avg_queue_s: Some(wait - base),
            avg_jct_s: Some(wait - base),
            avg_rho: Some(0.0),
            deadline_met: 1,
            ..Difference::default()
        });
        let team = TeamView { team: "vision".into(), figures: figures.clone(), against_baseline: by.clone() };
        ReplayRow {
            label: label.into(),
            change: ReplayChange::default(),
            run: ReplayedRun {
                policy: "market".into(),
                round_s: 60.0,
                cluster: "h100:1x8".into(),
                devices: 8,
                figures,
            },
            against_baseline: by,
            teams: vec![team],
            detail: None,
        }
    }

    #[test]
    fn totals_stand_side_by_side_and_teams_against_the_baseline() {
        let told = ReplayView {
            window: WindowView { from: 0.0, to: 3_600.0, jobs: 12, carried: 1, open: 2, left_out: 3 },
            recorded: row("recorded", 330.0, 12, Some(300.0)),
            baseline: row("baseline", 300.0, 12, None),
            alternatives: vec![row("srtf, without n1", 240.0, 11, Some(300.0))],
            notes: vec!["mind\nthis".into()],
        };
        let lines = lines(&told);
        assert!(
            lines[0].starts_with("12 jobs submitted from ")
                && lines[0].contains("1 job from before and 2 jobs")
        );
        expect![[r#"
                                 jobs  waiting       p90  completion       p99  makespan  deadlines  preempt   util     ρ  max ρ  cost
             recorded              12  5.5 min  11.0 min    15.5 min  20.5 min    2.00 h        1/2        0  50.0%  0.80      –     –
             baseline (market)     12  5.0 min  10.0 min    15.0 min  20.0 min    2.00 h        1/2        0  50.0%  0.80      –     –
             srtf, without n1   11/12  4.0 min   8.0 min    14.0 min  19.0 min    2.00 h        1/2        0  50.0%  0.80      –     –
            simulated compared with recorded: mean waiting -30.0 s (-9%), mean completion -30.0 s (-3%)

            by team, srtf, without n1 against the baseline
             team     jobs                  waiting               completion  deadlines   GPU hours           ρ  cost
             vision  11/12  4.0 min  -60.0 s (-20%)  14.0 min  -60.0 s (-7%)     1/2 +1  8.00  same  0.80  same     –

            note: mind this"#]].assert_eq(&lines[2..].join("\n"));
    }
}
