//! `yard cancel`: cancel jobs, and kill those that do not stop.

use std::io::Write;

use serde_json::json;
use yard_live::views::JobView;

use super::chosen::JobsChosen;

const EXAMPLES: &str = "Examples:
  yard cancel last
  yard cancel 12 13 14 --reason 'wrong learning rate'
  yard cancel --force 12
  yard cancel --state pending --user me --name 'sweep*'      # shows them and asks first
  yard cancel --user me --yes";

/// Which jobs, and why.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    which: JobsChosen,
    /// Reason, kept with the job
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Kill them now, without time to save a checkpoint
    #[arg(long)]
    force: bool,
}

/// Cancels all that can be cancelled, and tells of the others.
pub(crate) fn run(args: &CancelArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut body = json!({ "reason": args.reason });
    if args.force {
        body["force"] = true.into();
    }
    let still = |job: &JobView| {
        let still = if job.state == "cancelled" { "" } else { "; it is being stopped" };
        format!("{}{still}", job.state)
    };
    let cancel =
        |client: &crate::client::Client, id| client.post_patiently(&format!("/v1/jobs/{id}/cancel"), &body);
    args.which.each("Cancel", cancel, still, out)
}
