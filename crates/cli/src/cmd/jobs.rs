//! `yard jobs`: who runs where, and who waits for what.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use yard_live::views::{IntervalView, JobList, JobView, LengthView, UnknownView};

use crate::client::{Client, ServerArgs, WhichJobs};
use crate::clock;
use crate::output::{self, Listing};

const EXAMPLES: &str = "Examples:
  yard jobs
  yard jobs --mine --watch
  yard jobs --all -o wide
  yard jobs --state pending -o json | jq '.jobs[].id'
  yard jobs --all --user me --name 'sweep*' --limit 5000

States: pending, starting, running, suspending, suspended, succeeded, failed, cancelled, rejected.";

/// Seconds from one look to the next.
const WATCH: Duration = Duration::from_secs(2);

/// Jobs that are shown where those that are over are asked for and no limit is given.
const PAST_SHOWN: u64 = 1_000;

/// The states of jobs.
pub(super) const STATES: [&str; 9] = [
    "pending",
    "starting",
    "running",
    "suspending",
    "suspended",
    "succeeded",
    "failed",
    "cancelled",
    "rejected",
];

/// Those of jobs that are over.
const OVER: [&str; 4] = ["succeeded", "failed", "cancelled", "rejected"];

/// Which jobs.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JobsArgs {
    /// Only your own jobs
    #[arg(long)]
    mine: bool,
    /// Also jobs that are over
    #[arg(short, long)]
    all: bool,
    /// Only jobs in this state
    #[arg(long, value_name = "STATE", value_parser = STATES)]
    state: Option<String>,
    /// Only jobs of this user; me is you
    #[arg(long, value_name = "NAME", conflicts_with = "mine")]
    user: Option<String>,
    /// Only jobs with a matching name: * matches any characters, ? one
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,
    /// At most N jobs, the newest [default: all jobs that are not over; 1000 with --all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only jobs with a lower number
    #[arg(long, value_name = "ID")]
    before: Option<u64>,
    /// Refresh every two seconds
    #[arg(short, long)]
    watch: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Listing,
    /// Do not print the header
    #[arg(long)]
    no_header: bool,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &JobsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let which = which(args);
    loop {
        let list = client.jobs(&which)?;
        if args.watch && std::io::stdout().is_terminal() {
            write!(out, "\u{1b}[H\u{1b}[2J")?;
        }
        print(args, &list, out)?;
        if !args.watch {
            return Ok(());
        }
        out.flush()?;
        std::thread::sleep(WATCH);
    }
}

fn which(args: &JobsArgs) -> WhichJobs {
    let over = args.state.as_ref().is_some_and(|state| OVER.contains(&state.as_str()));
    let limit = args.limit.or((args.all || over).then_some(PAST_SHOWN));
    let (state, name) = (args.state.clone(), args.name.clone());
    let which =
        WhichJobs { mine: args.mine, all: args.all, state, name, before: args.before, limit, user: None };
    if args.mine { which } else { which.of_user(args.user.as_deref()) }
}

fn print(args: &JobsArgs, list: &JobList, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.output == Listing::Json {
        older(list).iter().for_each(|said| output::note(said));
        return output::json(list, out);
    }
    let wide = args.output == Listing::Wide;
    let due = list.jobs.iter().any(|job| job.deadline.is_some());
    let columns = COLUMNS.len() + 1 + MORE_COLUMNS.len();
    let mut table = output::table(&header(wide, due, args.no_header), columns);
    let now = clock::seconds_now();
    for job in &list.jobs {
        table.add_row(row(job, wide, due, now));
    }
    writeln!(out, "{table}")?;
    if list.jobs.is_empty() && !args.watch {
        output::note(&nothing(args, list.hidden));
    }
    let mine = args.mine || args.user.is_some();
    let others = of_others(list.hidden).filter(|_| !mine && !args.watch);
    older(list).iter().chain(&others).for_each(|said| output::note(said));
    Ok(())
}

/// Why there is nothing to show.
fn nothing(args: &JobsArgs, hidden: u64) -> String {
    let filtered = args.state.is_some() || args.user.is_some() || args.name.is_some();
    let what = if filtered { "no such jobs" } else { "no jobs" };
    let what = if hidden > 0 { format!("{what} of yours") } else { what.to_owned() };
    let more = if args.all { "" } else { "to see past jobs: yard jobs --all; " };
    format!("{what}; {more}to submit one: yard submit --help")
}

/// Where older jobs are left out, how to see them.
fn older(list: &JobList) -> Option<String> {
    let oldest = list.jobs.first().filter(|_| list.more)?;
    let (count, id) = (list.jobs.len(), oldest.id);
    Some(format!(
        "only the newest {count} jobs are shown; for older ones: --before {id}, or a larger --limit"
    ))
}

/// Jobs that may not be seen.
fn of_others(hidden: u64) -> Option<String> {
    let (jobs, run) =
        if hidden == 1 { ("job", "is running or waiting") } else { ("jobs", "are running or waiting") };
    (hidden > 0).then(|| format!("only your own jobs are shown; {hidden} {jobs} of other users {run}"))
}

const COLUMNS: [&str; 9] = ["job", "name", "user", "state", "gpus", "where", "progress", "time", "why"];

const MORE_COLUMNS: [&str; 10] = [
    "tenant",
    "priority",
    "submitted",
    "deadline",
    "will start",
    "will end",
    "starts",
    "preempted",
    "moved",
    "failures",
];

/// Where jobs stand with their deadlines; only where one has one.
const DUE: &str = "due";

fn header(wide: bool, due: bool, none: bool) -> Vec<&'static str> {
    let due = due.then_some(DUE);
    let more = if wide { MORE_COLUMNS.as_slice() } else { &[] };
    let all = COLUMNS.iter().copied().chain(due).chain(more.iter().copied());
    if none { Vec::new() } else { all.collect() }
}

fn row(job: &JobView, wide: bool, due: bool, now: f64) -> Vec<String> {
    let mut row = vec![
        job.id.to_string(),
        output::plain(&job.name),
        output::plain(&job.user),
        job.state.clone(),
        job.gpus.to_string(),
        place(job),
        progress(job),
        time(job, now),
        output::plain(job.reason.as_deref().unwrap_or_default()),
    ];
    row.extend(due.then(|| stands(job, now)));
    if wide {
        row.extend([
            output::plain(job.tenant.as_deref().unwrap_or_default()),
            job.priority.to_string(),
            clock::written(job.submitted_at),
            job.deadline.map_or_else(String::new, clock::written),
            will_start(job, now),
            will_end(job, now),
            job.starts.to_string(),
            job.preemptions.to_string(),
            job.migrations.to_string(),
            job.failures.to_string(),
        ]);
    }
    row
}

/// Where a job stands with its deadline, and how long there is until then.
pub(super) fn stands(job: &JobView, now: f64) -> String {
    let Some(by) = job.promise.or(job.deadline) else { return String::new() };
    match (job.ended_at, job.promise, job.state.as_str()) {
        (Some(end), _, "succeeded") => if end <= by { "kept" } else { "missed" }.into(),
        (Some(_), ..) => String::new(),
        _ if by < now => format!("late {}", output::brief(now - by)),
        (_, Some(_), _) if job.at_risk => format!("at risk {}", output::brief(by - now)),
        (_, Some(_), _) => format!("promised {}", output::brief(by - now)),
        _ => format!("best effort {}", output::brief(by - now)),
    }
}

/// When a job that waits will probably start.
pub(super) fn will_start(job: &JobView, now: f64) -> String {
    let waits = job.started_at.is_none() && job.ended_at.is_none();
    let told = job.estimate.filter(|_| waits);
    told.map_or_else(String::new, |told| about(told.start, start_unknown(told.start_unknown), now))
}

/// When a job that is not over will probably be.
pub(super) fn will_end(job: &JobView, now: f64) -> String {
    let lives = job.ended_at.is_none();
    let told = job.estimate.filter(|_| lives);
    told.map_or_else(String::new, |told| about(told.end, unknown(told.end_unknown), now))
}

/// How long a job is of which nobody said so, and by what that is known.
pub(super) fn length(length: &LengthView) -> String {
    let Some(seconds) = length.seconds else { return "unknown; set it with --duration".into() };
    let (jobs, n) = (if length.jobs == 1 { "job" } else { "jobs" }, length.jobs);
    let alike = match length.alike.as_str() {
        "name" => " of the same user, name and size",
        "user" => " of the same user and size",
        "size" => " of the same size",
        _ => "",
    };
    format!("not stated; about {}, from {n} past {jobs}{alike}", output::brief(seconds))
}

/// What is said of a time that was expected by now.
const DUE_NOW: &str = "at any moment";

/// Whether a time is so near, or so long past, that no span says anything.
fn is_due(time: f64, now: f64) -> bool {
    time - now < 1.0
}

/// The same from now on: `in about 12min (4min to 40min, 90 %)`.
pub(super) fn within(when: Option<IntervalView>, why: &str, now: f64) -> String {
    let Some(IntervalView { low, mid, high }) = when else { return why.into() };
    let left = |time: f64| output::brief((time - now).max(0.0));
    if is_due(mid, now) {
        return match high.filter(|high| !is_due(*high, now)) {
            Some(high) => format!("at any moment, within {} (90 %)", left(high)),
            None => DUE_NOW.into(),
        };
    }
    if high.is_some_and(|high| high - low < 1.0) {
        return format!("in {}", left(mid));
    }
    let high = high.map_or_else(|| "unknown".to_owned(), left);
    format!("in about {} ({} to {high}, 90 %)", left(mid), left(low))
}

/// An estimate, and between which times it lies nine times in ten.
fn about(when: Option<IntervalView>, why: &str, now: f64) -> String {
    let Some(IntervalView { low, mid, high }) = when else { return why.into() };
    match (is_due(mid, now), high) {
        (true, Some(high)) if !is_due(high, now) => format!("{DUE_NOW}, by {}", clock::written(high)),
        (true, _) => DUE_NOW.into(),
        (false, high) => {
            let high = high.map_or_else(|| "…".to_owned(), clock::written);
            format!("{} ({} – {high})", clock::written(mid), clock::written(low.max(now)))
        }
    }
}

/// Why nothing is said.
pub(super) fn unknown(why: Option<UnknownView>) -> &'static str {
    why.unwrap_or(UnknownView::Beyond).text()
}

/// Why nothing is said of a start: where a length is unknown, it is that of a job that has the devices.
pub(super) fn start_unknown(why: Option<UnknownView>) -> &'static str {
    match why {
        Some(UnknownView::Length) => "no estimate: the lengths of the running jobs are unknown",
        why => unknown(why),
    }
}

/// Where a job runs.
pub(super) fn place(job: &JobView) -> String {
    let nodes = output::plain(&job.nodes.join(" "));
    match &job.kind {
        Some(kind) if !nodes.is_empty() => format!("{nodes} {}", output::plain(kind)),
        _ => nodes,
    }
}

/// How far a job has come.
pub(super) fn progress(job: &JobView) -> String {
    match (job.step, job.steps) {
        (Some(step), Some(steps)) if steps > 0 => format!("{} {step}/{steps}", percent(job)),
        (Some(step), _) => format!("step {step}"),
        _ => String::new(),
    }
}

/// The same in a few letters; nothing where it is not known how much there is to do.
pub(super) fn percent(job: &JobView) -> String {
    match (job.step, job.steps) {
        (Some(step), Some(steps)) if steps > 0 => format!("{:.0}%", 100.0 * step as f64 / steps as f64),
        _ => String::new(),
    }
}

/// How long a job has waited, has run, or took.
pub(super) fn time(job: &JobView, now: f64) -> String {
    match (job.state.as_str(), job.ended_at) {
        ("pending" | "suspended", _) => {
            format!("waits {}", output::brief(now - job.submitted_at - job.executed_s))
        }
        (_, Some(end)) => format!("took {}", output::brief(end - job.started_at.unwrap_or(end))),
        _ => format!("runs {}", output::brief(job.executed_s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(low: f64, mid: f64, high: Option<f64>) -> Option<IntervalView> {
        Some(IntervalView { low, mid, high })
    }

    /// Between two rounds a start that was expected by now is still to come.
    #[test]
    fn a_time_that_has_passed_is_at_any_moment_and_never_in_no_time() {
        for passed in
            [between(80.0, 90.0, Some(95.0)), between(90.0, 90.0, Some(90.0)), between(99.5, 100.4, None)]
        {
            assert_eq!(within(passed, "", 100.0), "at any moment");
            assert_eq!(about(passed, "", 100.0), DUE_NOW);
        }
        let soon = about(between(80.0, 90.0, Some(160.0)), "", 100.0);
        assert_eq!(soon, format!("{DUE_NOW}, by {}", clock::written(160.0)));
        let then = about(between(80.0, 190.0, Some(260.0)), "", 100.0);
        let [now, mid, high] = [100.0, 190.0, 260.0].map(clock::written);
        assert_eq!(then, format!("{mid} ({now} – {high})"));
        assert_eq!(within(between(80.0, 90.0, Some(160.0)), "", 100.0), "at any moment, within 1m (90 %)");
        assert_eq!(within(between(100.0, 160.0, Some(220.0)), "", 100.0), "in about 1m (0s to 2m, 90 %)");
        assert_eq!(within(None, "not within weeks", 100.0), "not within weeks");
    }
}
