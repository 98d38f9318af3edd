//! `yard hold`, `yard release` and `yard requeue`: jobs that are not over get no devices for a while, or start again.

use std::io::Write;

use serde_json::json;
use yard_live::views::JobView;

use super::chosen::JobsChosen;
use crate::client::Client;

/// Which jobs, and why.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard hold 12 --reason 'waits for new data'\n  yard hold --state pending --user me --name 'sweep*'      # shows them and asks first\n  yard release 12\n\nA held job gets no devices until it is released. A running job is paused first: it has its grace time to save a\ncheckpoint and continues from there. Only an administrator can release a job that an administrator holds.\nHolding a job cancels the promise of its deadline."
)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    which: JobsChosen,
    /// Reason, shown by yard jobs
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Which jobs.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  yard release 12\n  yard release --user me --yes")]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    which: JobsChosen,
}

/// Which jobs.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard requeue 12\n  yard requeue --state running --user me --name 'sweep*'      # shows them and asks first\n\nA running job has its grace time to save and stop, and restarts from its last checkpoint when its turn comes. Jobs\nthat are over cannot be requeued: submit them again with yard submit."
)]
pub(crate) struct RequeueArgs {
    #[command(flatten)]
    which: JobsChosen,
}

pub(crate) fn hold(args: &HoldArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let body = json!({ "reason": args.reason });
    let hold = |client: &Client, id| client.post_patiently(&format!("/v1/jobs/{id}/hold"), &body);
    let said = |job: &JobView| match job.state.as_str() {
        "suspending" => "suspending; it is being paused and stays held".to_owned(),
        state => format!("{state}; held. Undo: yard release {}", job.id),
    };
    args.which.each("Hold", hold, said, out)
}

pub(crate) fn release(args: &ReleaseArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let release = |client: &Client, id| client.post_patiently(&format!("/v1/jobs/{id}/release"), &json!({}));
    args.which.each("Release", release, |job| format!("{}; released", job.state), out)
}

pub(crate) fn requeue(args: &RequeueArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let requeue = |client: &Client, id| client.post_patiently(&format!("/v1/jobs/{id}/requeue"), &json!({}));
    let said = |job: &JobView| format!("{}; it restarts from its last checkpoint", job.state);
    args.which.each("Requeue", requeue, said, out)
}
