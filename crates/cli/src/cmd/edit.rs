//! `yard edit`: what may change of a job while it waits.

use std::io::Write;

use anyhow::{anyhow, ensure};
use yard_live::request::edit::JobEdit;
use yard_live::request::times;
use yard_live::views::JobView;

use super::chosen::JobsChosen;
use crate::client::Client;
use crate::clock;

const EXAMPLES: &str = "Examples:
  yard edit 12 --priority -5
  yard edit 12 --deadline 18:00 --duration 3h
  yard edit 12 --deadline none --rename resnet-warmup
  yard edit --state pending --user me --name 'sweep*' --time 4h      # shows them and asks first

Only waiting jobs can be edited; hold a running job first (yard hold). To change anything else, such as the command
or the number of GPUs, cancel the job and submit it again.";

/// What takes a deadline or a length away.
const NONE: &str = "none";

/// Which jobs, and what of them.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    which: JobsChosen,
    /// New name
    #[arg(long, value_name = "NAME", help_heading = "Changes")]
    rename: Option<String>,
    /// Priority; larger numbers are more urgent
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Changes")]
    priority: Option<i32>,
    /// Weight in fair shares
    #[arg(long, value_name = "W", help_heading = "Changes")]
    weight: Option<f64>,
    /// Deadline, such as 18:00, 6h or none; cannot change once it was promised
    #[arg(long, value_name = "WHEN", help_heading = "Changes")]
    deadline: Option<String>,
    /// Expected duration, such as 2h or none; cannot change once the job has started
    #[arg(long, value_name = "LENGTH", help_heading = "Changes")]
    duration: Option<String>,
    /// Time limit, such as 2h or none
    #[arg(long, value_name = "LENGTH", help_heading = "Changes")]
    time: Option<String>,
    /// Time to save a checkpoint and stop, such as 2m
    #[arg(long, value_name = "LENGTH", help_heading = "Changes")]
    grace: Option<String>,
    /// What is asked for now and then, and does not change
    #[arg(long, hide = true, value_name = "VALUE", allow_hyphen_values = true, num_args = 0..=1,
          aliases = ["min-gpus", "max-gpus", "kind", "nodes", "memory", "cpus", "env", "workdir", "after", "begin", "tenant"])]
    gpus: Option<Option<String>>,
}

pub(crate) fn run(args: &EditArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    args.which.one_way("Edit")?;
    ensure!(
        args.gpus.is_none(),
        "only --rename, --priority, --weight, --deadline, --duration, --time and --grace can change; to change \
         what a job \
         runs or needs, cancel it and submit it again"
    );
    let edit = edit(args)?;
    ensure!(!edit.is_empty(), "nothing to change: give a new value, such as yard edit 12 --priority 5");
    let ask = |client: &Client, id| client.post_patiently(&format!("/v1/jobs/{id}/edit"), &edit);
    args.which.each("Edit", ask, |job: &JobView| format!("{}; changed", job.state), out)
}

fn edit(args: &EditArgs) -> anyhow::Result<JobEdit> {
    let now = clock::now();
    let moment = |text: &str| times::moment(text, &now);
    let grace = optional("--grace", args.grace.as_deref(), times::length)?;
    ensure!(grace != Some(None), "--grace none: say how long, such as 30s");
    Ok(JobEdit {
        name: args.rename.clone(),
        priority: args.priority,
        weight: args.weight,
        deadline: optional("--deadline", args.deadline.as_deref(), moment)?,
        duration_s: optional("--duration", args.duration.as_deref(), times::length)?,
        time_limit_s: optional("--time", args.time.as_deref(), times::length)?,
        grace_s: grace.flatten(),
    })
}

/// A value, or that there is none from now on.
fn optional(
    flag: &str,
    text: Option<&str>,
    read: impl Fn(&str) -> Result<f64, String>,
) -> anyhow::Result<Option<Option<f64>>> {
    match text {
        None => Ok(None),
        Some(NONE) => Ok(Some(None)),
        Some(text) => read(text).map(|value| Some(Some(value))).map_err(|wrong| anyhow!("{flag} {wrong}")),
    }
}
