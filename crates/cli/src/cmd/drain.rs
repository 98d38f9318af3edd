//! `yard drain` and `yard resume`: a node takes nothing new, or takes jobs again.

use std::io::Write;

use serde_json::json;

use crate::client::{self, Client, ServerArgs};

/// Which node, and why.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard drain node7 --reason 'fan is loud'\n  yard resume node7\n\nJobs that run there run on; with --evict they are asked to save and go on elsewhere."
)]
pub(crate) struct DrainArgs {
    /// The node, as in yard nodes
    #[arg(value_name = "NODE")]
    node: String,
    /// What for; yard nodes shows it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Ask what runs there to save and go on elsewhere
    #[arg(long)]
    evict: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Which node.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  yard resume node7")]
pub(crate) struct ResumeArgs {
    /// The node, as in yard nodes
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn drain(args: &DrainArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let path = format!("/v1/nodes/{}/drain", client::segment(&args.node));
    Client::new(&args.server)?.order(&path, &json!({ "reason": args.reason, "evict": args.evict }))?;
    Ok(writeln!(out, "{} takes no new jobs; let it with: yard resume {}", args.node, args.node)?)
}

pub(crate) fn resume(args: &ResumeArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let path = format!("/v1/nodes/{}/resume", client::segment(&args.node));
    Client::new(&args.server)?.order(&path, &json!({}))?;
    Ok(writeln!(out, "{} takes jobs again", args.node)?)
}
