//! `yard jobs`: who runs where, and who waits for what.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use yard_live::views::{IntervalView, JobList, JobView, LengthView, UnknownView};

use crate::client::{Client, ServerArgs};
use crate::clock;
use crate::output::{self, Listing};

const EXAMPLES: &str = "Examples:
  yard jobs
  yard jobs --mine --watch
  yard jobs --all -o wide
  yard jobs --state pending -o json | jq '.jobs[].id'

States: pending, starting, running, suspending, suspended, succeeded, failed, cancelled, rejected.";

/// Seconds from one look to the next.
const WATCH: Duration = Duration::from_secs(2);

const STATES: [&str; 9] = [
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

/// Which jobs.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JobsArgs {
    /// Only those that this user submitted
    #[arg(long)]
    mine: bool,
    /// Also those that are over
    #[arg(short, long)]
    all: bool,
    /// Only those in this state
    #[arg(long, value_name = "STATE", value_parser = STATES)]
    state: Option<String>,
    /// Only those of this user
    #[arg(long, value_name = "NAME", conflicts_with = "mine")]
    user: Option<String>,
    /// At most so many, the newest
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Look again every two seconds
    #[arg(short, long)]
    watch: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Listing,
    /// Print no header
    #[arg(long)]
    no_header: bool,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &JobsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let query = query(args);
    loop {
        let list: JobList = client.get("/v1/jobs", &query)?;
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

fn query(args: &JobsArgs) -> Vec<(&'static str, String)> {
    let yes = |name, given: bool| given.then(|| (name, "true".to_owned()));
    let state = args.state.clone().map(|state| ("state", state));
    let user = args.user.clone().map(|user| ("user", user));
    let limit = args.limit.map(|limit| ("limit", limit.to_string()));
    [yes("mine", args.mine), yes("all", args.all), state, user, limit].into_iter().flatten().collect()
}

fn print(args: &JobsArgs, list: &JobList, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.output == Listing::Json {
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
        output::note(
            "no jobs; yard jobs --all shows those that are over, and yard submit --help how to submit one",
        );
    }
    Ok(())
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
            will_start(job),
            will_end(job),
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
        _ => format!("wished {}", output::brief(by - now)),
    }
}

/// When a job that waits will probably start.
pub(super) fn will_start(job: &JobView) -> String {
    let waits = job.started_at.is_none() && job.ended_at.is_none();
    job.estimate.filter(|_| waits).map_or_else(String::new, |told| about(told.start, told.start_unknown))
}

/// When a job that is not over will probably be.
pub(super) fn will_end(job: &JobView) -> String {
    let lives = job.ended_at.is_none();
    job.estimate.filter(|_| lives).map_or_else(String::new, |told| about(told.end, told.end_unknown))
}

/// How long a job is of which nobody said so, and by what that is known.
pub(super) fn length(length: &LengthView) -> String {
    let Some(seconds) = length.seconds else { return "unknown; state it with --duration".into() };
    let (jobs, n) = (if length.jobs == 1 { "job" } else { "jobs" }, length.jobs);
    let alike = match length.alike.as_str() {
        "name" => " of the same user, name and size",
        "user" => " of the same user and size",
        "size" => " of the same size",
        _ => "",
    };
    format!("not stated; about {} by {n} past {jobs}{alike}", output::brief(seconds))
}

/// The same from now on: `in about 12min (4min to 40min, 90 %)`.
pub(super) fn within(when: Option<IntervalView>, why: Option<UnknownView>, now: f64) -> String {
    let Some(IntervalView { low, mid, high }) = when else { return unknown(why).into() };
    let left = |time: f64| output::brief((time - now).max(0.0));
    if high.is_some_and(|high| high - low < 1.0) {
        return format!("in {}", left(mid));
    }
    let high = high.map_or_else(|| "no known end".to_owned(), left);
    format!("in about {} ({} to {high}, 90 %)", left(mid), left(low))
}

/// An estimate, and between which times it lies nine times in ten.
fn about(when: Option<IntervalView>, why: Option<UnknownView>) -> String {
    let Some(IntervalView { low, mid, high }) = when else { return unknown(why).into() };
    let high = high.map_or_else(|| "…".to_owned(), clock::written);
    format!("{} ({} – {high})", clock::written(mid), clock::written(low))
}

/// Why nothing is said.
pub(super) fn unknown(why: Option<UnknownView>) -> &'static str {
    why.unwrap_or(UnknownView::Beyond).text()
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
