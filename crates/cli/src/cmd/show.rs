//! `yard show`: all there is to know of one job.

use std::io::Write;

use yard_live::views::JobView;

use super::jobs;
use crate::client::{Client, JobRef, ServerArgs};
use crate::clock;
use crate::output::{self, OutputFormat};

/// Which job.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  yard show 12\n  yard show last\n  yard show last -o json | jq .request")]
pub(crate) struct JobShowArgs {
    /// Job number, or last
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &JobShowArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let job: JobView = client.get(&format!("/v1/jobs/{}", name(args.job)), &[])?;
    if args.output == OutputFormat::Json {
        return output::json(&job, out);
    }
    for (key, value) in facts(&job).into_iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(out, "{key:13} {}", output::plain(&value))?;
    }
    if let Some(end) = &job.log_end {
        writeln!(out, "last lines of its log (whole log: yard logs {}):", job.id)?;
        last_lines(end).try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    Ok(())
}

/// Lines as a terminal would show them: of a progress bar, what it came to.
fn last_lines(text: &str) -> impl Iterator<Item = String> {
    let seen = |line: &str| line.trim_end_matches('\r').rsplit('\r').next().map(output::plain);
    text.lines().filter_map(seen).collect::<Vec<_>>().into_iter()
}

fn name(job: JobRef) -> String {
    match job {
        JobRef::Last => "last".into(),
        JobRef::Id(id) => id.to_string(),
    }
}

fn facts(job: &JobView) -> Vec<(&'static str, String)> {
    let now = clock::seconds_now();
    let moment = |at: Option<f64>| at.map_or_else(String::new, clock::written);
    let command = job.request.as_ref().map(|request| request.command.join(" "));
    let workdir = job.request.as_ref().and_then(|request| request.workdir.as_ref());
    vec![
        ("job", job.id.to_string()),
        ("name", job.name.clone()),
        ("user", job.user.clone()),
        ("tenant", job.tenant.clone().unwrap_or_default()),
        ("state", job.state.clone()),
        ("why", job.reason.clone().unwrap_or_default()),
        ("command", command.unwrap_or_default()),
        ("workdir", workdir.map_or_else(String::new, |dir| dir.display().to_string())),
        ("gpus", job.gpus.to_string()),
        ("where", jobs::place(job)),
        ("progress", jobs::progress(job)),
        ("checkpointed", job.checkpointed.map_or_else(String::new, |step| format!("step {step}"))),
        ("rate", job.rate.map_or_else(String::new, |rate| format!("{rate:.3} steps/s"))),
        ("time", jobs::time(job, now)),
        ("executed", output::human(Some(job.executed_s))),
        ("idle", job.idle_s.map_or_else(String::new, |idle| output::human(Some(idle)))),
        ("priority", job.priority.to_string()),
        ("submitted", clock::written(job.submitted_at)),
        ("started", moment(job.started_at)),
        ("ended", moment(job.ended_at)),
        ("length", job.length.as_ref().map_or_else(String::new, jobs::length)),
        ("will start", jobs::will_start(job, now)),
        ("will end", jobs::will_end(job, now)),
        ("deadline", moment(job.deadline)),
        ("promised by", moment(job.promise)),
        ("due", jobs::stands(job, now)),
        ("earliest deadline", moment(job.earliest)),
        ("starts", counts(job)),
        ("exit code", job.exit_code.map_or_else(String::new, |code| code.to_string())),
    ]
}

fn counts(job: &JobView) -> String {
    let JobView { starts, preemptions, migrations, failures, .. } = job;
    format!(
        "{starts}, {migrations} of them on other devices; preempted {preemptions} times, failed {failures} times"
    )
}
