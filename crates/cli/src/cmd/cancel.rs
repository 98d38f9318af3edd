//! `yard cancel`: cancel jobs, and kill those that do not stop.

use std::io::Write;

use serde_json::json;
use yard_live::views::JobView;

use crate::client::{Client, JobRef, ServerArgs};
use crate::output::{self, Format};

/// Which jobs, and why.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard cancel last\n  yard cancel 12 13 14 --reason 'wrong learning rate'\n  yard cancel --force 12"
)]
pub(crate) struct CancelArgs {
    /// The jobs: their numbers, or last
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<JobRef>,
    /// What for; it is kept with the job
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Kill them now, without time to save
    #[arg(long)]
    force: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    server: ServerArgs,
}

/// Cancels all that can be cancelled, and tells of the others.
pub(crate) fn run(args: &CancelArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let mut failed = Vec::new();
    let mut cancelled = Vec::new();
    for &job in &args.jobs {
        match cancel(&client, job, args) {
            Ok(job) => cancelled.push(job),
            Err(failure) => failed.push(failure.to_string()),
        }
    }
    print(args.output, &cancelled, out)?;
    anyhow::ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(())
}

fn cancel(client: &Client, job: JobRef, args: &CancelArgs) -> crate::client::Answer<JobView> {
    let id = client.job_id(job)?;
    let mut body = json!({ "reason": args.reason });
    if args.force {
        body["force"] = true.into();
    }
    client.post(&format!("/v1/jobs/{id}/cancel"), &body)
}

fn print(format: Format, jobs: &[JobView], out: &mut dyn Write) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(&json!({ "jobs": jobs }), out);
    }
    for job in jobs {
        let still = if job.state == "cancelled" { "" } else { "; it is being stopped" };
        writeln!(out, "job {}  {}{still}", job.id, job.state)?;
    }
    Ok(())
}
