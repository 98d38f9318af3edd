//! `yard nodes`: the machines, their devices, and who holds them.

use std::io::Write;

use yard_live::views::{DeviceView, NodeList, NodeView};

use crate::client::{Client, ServerArgs};
use crate::output::{self, Listing};

/// How to list them.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard nodes\n  yard nodes -o wide\n  yard nodes -o json | jq '.nodes[] | select(.state != \"up\")'"
)]
pub(crate) struct NodesArgs {
    /// How to print; wide: one line a device
    #[arg(short, long, value_enum, default_value_t)]
    output: Listing,
    /// Print no header
    #[arg(long)]
    no_header: bool,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &NodesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let list: NodeList = Client::new(&args.server)?.get("/v1/nodes", &[])?;
    let header: &[&str] = match args.output {
        Listing::Json => return output::json(&list, out),
        _ if args.no_header => &[],
        Listing::Table => &["node", "state", "devices", "held", "jobs", "heard", "why"],
        Listing::Wide => &["node", "state", "device", "what", "memory", "jobs", "why"],
    };
    let mut table = output::table(header, 7);
    for node in &list.nodes {
        if args.output == Listing::Wide {
            table.add_rows(node.devices.iter().map(|device| device_row(node, device)));
        } else {
            table.add_row(row(node));
        }
    }
    writeln!(out, "{table}")?;
    if list.nodes.is_empty() {
        output::note("no nodes; yard agent --help says how a machine joins");
    }
    Ok(())
}

fn row(node: &NodeView) -> Vec<String> {
    let held = node.devices.iter().filter(|device| !device.jobs.is_empty()).count();
    let heard = node.heard_s.map_or_else(String::new, |seconds| format!("{} ago", output::brief(seconds)));
    vec![
        output::plain(&node.name),
        node.state.clone(),
        output::plain(&devices(node)),
        format!("{held}/{}", node.devices.len()),
        jobs(node.devices.iter().flat_map(|device| &device.jobs)),
        heard,
        output::plain(&why(node)),
    ]
}

fn device_row(node: &NodeView, device: &DeviceView) -> Vec<String> {
    let memory = device.memory_mib.map_or_else(String::new, |mib| format!("{} GiB", mib / 1024));
    let why = device.problem.as_deref().or(node.reason.as_deref()).unwrap_or_default();
    vec![
        output::plain(&node.name),
        node.state.clone(),
        output::plain(&format!("{}:{}", device.kind, device.index)),
        output::plain(&device.name),
        memory,
        jobs(device.jobs.iter()),
        output::plain(why),
    ]
}

/// `4 h100, 2 cpu`.
fn devices(node: &NodeView) -> String {
    let mut counts = std::collections::BTreeMap::<&str, u32>::new();
    node.devices.iter().for_each(|device| *counts.entry(&device.kind).or_default() += 1);
    let counts: Vec<_> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    counts.join(", ")
}

fn jobs<'a>(ids: impl Iterator<Item = &'a u64>) -> String {
    let ids: std::collections::BTreeSet<_> = ids.collect();
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Why the node is in its state, and what is wrong with its devices.
fn why(node: &NodeView) -> String {
    let device = |device: &DeviceView| {
        device.problem.as_ref().map(|problem| format!("{}:{}: {problem}", device.kind, device.index))
    };
    let all: Vec<_> = node.reason.iter().cloned().chain(node.devices.iter().filter_map(device)).collect();
    all.join("; ")
}
