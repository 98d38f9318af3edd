//! `yard drain` and `yard resume`: a node takes nothing new, or takes jobs again.

use std::io::Write;

use serde_json::json;

use crate::client::{self, Client, ServerArgs};

/// Which node, and why.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard drain node7 --reason 'fan is loud'\n  yard resume node7\n  yard drain --kind t4 --count 4 --evict\n\nRunning jobs keep running; with --evict they save a checkpoint and continue on other nodes."
)]
pub(crate) struct DrainArgs {
    /// Node name, as listed by yard nodes
    #[arg(value_name = "NODE", required_unless_present = "kind")]
    node: Option<String>,
    /// Instead of a node: nodes with devices of this kind, those that are cheapest to empty
    #[arg(long, value_name = "KIND", conflicts_with = "node", requires = "count")]
    kind: Option<String>,
    /// Number of nodes to drain
    #[arg(long, value_name = "N", requires = "kind", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Reason, shown by yard nodes
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Move its running jobs: they save a checkpoint and continue on other nodes
    #[arg(long)]
    evict: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Which node.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  yard resume node7")]
pub(crate) struct ResumeArgs {
    /// Node name, as listed by yard nodes
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn drain(args: &DrainArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let nodes = match &args.node {
        Some(node) => {
            let path = format!("/v1/nodes/{}/drain", client::segment(node));
            client.order(&path, &json!({ "reason": args.reason, "evict": args.evict }))?;
            vec![node.clone()]
        }
        None => drain_some(args, &client)?,
    };
    for node in nodes {
        writeln!(out, "{node} takes no new jobs. Undo: yard resume {node}")?;
    }
    Ok(())
}

/// Has the server choose; the names of its choice.
fn drain_some(args: &DrainArgs, client: &Client) -> anyhow::Result<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct DrainedNodes {
        nodes: Vec<String>,
    }
    let DrainArgs { kind, count, reason, evict, .. } = args;
    let body = json!({ "kind": kind, "count": count, "reason": reason, "evict": evict });
    Ok(client.post::<DrainedNodes>("/v1/nodes/drain", &body)?.nodes)
}

pub(crate) fn resume(args: &ResumeArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let path = format!("/v1/nodes/{}/resume", client::segment(&args.node));
    Client::new(&args.server)?.order(&path, &json!({}))?;
    Ok(writeln!(out, "{} takes jobs again", args.node)?)
}
