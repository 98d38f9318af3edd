//! `yard nodes`: the machines, their devices, and who holds them; and how a machine loses its place.

use std::io::Write;

use yard_core::cluster::Level;
use yard_live::views::{DeviceView, NodeList, NodeView, ResourceView};

use crate::client::{self, Client, ServerArgs};
use crate::output::{self, Listing};

/// How to list them.
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  yard nodes\n  yard nodes --devices\n  yard nodes -o json | jq '.nodes[] | select(.state != \"up\")'\n  yard nodes rm gpu-7"
)]
pub(crate) struct NodesArgs {
    #[command(subcommand)]
    command: Option<NodesCommand>,
    /// Output format; wide: one line per device
    #[arg(short, long, value_enum, default_value_t)]
    output: Listing,
    /// One line per device: its state, load, memory, temperature and jobs
    #[arg(long)]
    devices: bool,
    /// Do not print the header
    #[arg(long)]
    no_header: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(clap::Subcommand, Debug)]
enum NodesCommand {
    /// Remove a node and free its name; its jobs restart elsewhere once its lease has expired
    #[command(
        after_help = "Examples:\n  yard nodes rm gpu-7\n  yard nodes rm --force gpu-7    # even if it is up"
    )]
    Rm(RmArgs),
    /// Revoke a node's certificate and disconnect it; its name stays taken
    #[command(
        after_help = "Examples:\n  yard nodes revoke gpu-7\n  yard nodes rm gpu-7            # then, to free its name"
    )]
    Revoke(NodeRevokeArgs),
}

#[derive(clap::Args, Debug)]
struct RmArgs {
    /// The nodes
    #[arg(value_name = "NODE", required = true)]
    nodes: Vec<String>,
    /// Also remove nodes that are up
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(clap::Args, Debug)]
struct NodeRevokeArgs {
    /// The nodes
    #[arg(value_name = "NODE", required = true)]
    nodes: Vec<String>,
    #[command(flatten)]
    server: ServerArgs,
}

const COLUMNS: [&str; 8] = ["node", "state", "devices", "held", "busy", "jobs", "heard", "why"];

/// Where the column about hosts stands, if there is any.
const HOST_COLUMN: usize = 4;

/// The same of the column about where nodes are.
const PLACE_COLUMN: usize = 1;

const DEVICE_COLUMNS: [&str; 9] =
    ["node", "state", "device", "what", "busy", "memory", "heat", "jobs", "why"];

pub(crate) fn run(args: &NodesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.command {
        None => list(args, out),
        Some(NodesCommand::Rm(args)) => remove(args, out),
        Some(NodesCommand::Revoke(args)) => revoke(args, out),
    }
}

fn remove(args: &RmArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    for node in &args.nodes {
        let force = if args.force { "?force=true" } else { "" };
        client.delete(&format!("/v1/nodes/{}{force}", client::segment(node)))?;
        writeln!(
            out,
            "{} is being removed; its name is free once yard nodes no longer lists it",
            output::plain(node)
        )?;
    }
    Ok(())
}

fn revoke(args: &NodeRevokeArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    for node in &args.nodes {
        client.order(&format!("/v1/nodes/{}/revoke", client::segment(node)), &serde_json::json!({}))?;
        let node = output::plain(node);
        writeln!(out, "{node} is revoked and cannot come back. To free its name: yard nodes rm {node}")?;
    }
    Ok(())
}

fn list(args: &NodesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let list: NodeList = Client::new(&args.server)?.get("/v1/nodes", &[])?;
    if args.output == Listing::Json {
        return output::json(&list, out);
    }
    let by_device = args.devices || args.output == Listing::Wide;
    let counted = !by_device && list.nodes.iter().any(|node| !node.resources.is_empty());
    let placed = !by_device && list.nodes.iter().any(|node| !node.domains.is_empty());
    let mut header = if by_device { DEVICE_COLUMNS.to_vec() } else { COLUMNS.to_vec() };
    if counted {
        header.insert(HOST_COLUMN, "host");
    }
    if placed {
        header.insert(PLACE_COLUMN, "place");
    }
    let mut table = output::table(if args.no_header { &[] } else { &header }, header.len());
    for node in &list.nodes {
        if by_device {
            table.add_rows(node.devices.iter().map(|device| device_row(node, device)));
        } else {
            let mut row = row(node);
            if counted {
                row.insert(HOST_COLUMN, output::plain(&host(node)));
            }
            if placed {
                row.insert(PLACE_COLUMN, output::plain(&place(node)));
            }
            table.add_row(row);
        }
    }
    writeln!(out, "{table}")?;
    if list.nodes.is_empty() {
        output::note("no nodes; to add a machine, see yard agent --help");
    }
    Ok(())
}

fn row(node: &NodeView) -> Vec<String> {
    let held = node.devices.iter().filter(|device| !device.jobs.is_empty()).count();
    let heard = node.heard_s.map_or_else(String::new, |seconds| format!("{} ago", output::brief(seconds)));
    let known: Vec<f64> = node.devices.iter().filter_map(|device| device.busy).collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    vec![
        output::plain(&node.name),
        node.state.clone(),
        output::plain(&devices(node)),
        format!("{held}/{}", node.devices.len()),
        if known.is_empty() { String::new() } else { percent(mean) },
        jobs(node.devices.iter().flat_map(|device| &device.jobs)),
        heard,
        output::plain(&why(node)),
    ]
}

/// What is reserved of its host, and what there is.
fn host(node: &NodeView) -> String {
    let of = |resource: &ResourceView| match resource.name.as_str() {
        "memory" => format!("memory {:.0}/{:.0}G", resource.reserved / 1024.0, resource.total / 1024.0),
        name => format!("{name} {}/{}", resource.reserved, resource.total),
    };
    node.resources.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// `rack r1, block b2`: the domains it is in, innermost first.
fn place(node: &NodeView) -> String {
    let names = Level::DOMAINS.into_iter().filter_map(|level| node.domains.get_key_value(level.name()));
    names.map(|(level, name)| format!("{level} {name}")).collect::<Vec<_>>().join(", ")
}

fn device_row(node: &NodeView, device: &DeviceView) -> Vec<String> {
    let why = note(device).or_else(|| node.reason.clone()).unwrap_or_default();
    vec![
        output::plain(&node.name),
        node.state.clone(),
        output::plain(&format!("{}:{}", device.kind, device.index)),
        output::plain(&device.name),
        device.busy.map_or_else(String::new, percent),
        memory(device),
        heat(device),
        jobs(device.jobs.iter()),
        output::plain(&why),
    ]
}

pub(super) fn percent(part: f64) -> String {
    format!("{:.0}%", 100.0 * part)
}

/// `12/80 GiB`: used, where that is known, and all.
pub(super) fn memory(device: &DeviceView) -> String {
    match (device.memory_used_mib, device.memory_mib) {
        (Some(used), Some(all)) if used < 10 << 10 => {
            format!("{:.1}/{} GiB", used as f64 / 1024.0, all / 1024)
        }
        (Some(used), Some(all)) => format!("{}/{} GiB", used / 1024, all / 1024),
        (None, Some(all)) => format!("{} GiB", all / 1024),
        _ => String::new(),
    }
}

/// `61°C 412W`.
pub(super) fn heat(device: &DeviceView) -> String {
    let degrees = device.temperature_c.map(|degrees| format!("{degrees}°C"));
    let power = device.power_w.map(|power| format!("{power:.0}W"));
    degrees.into_iter().chain(power).collect::<Vec<_>>().join(" ")
}

/// What an operator should know of a device: what is wrong with it, what holds it back, who does not use it.
pub(super) fn note(device: &DeviceView) -> Option<String> {
    let throttled = device.throttled.as_ref().map(|reason| format!("slowed down: {reason}"));
    let idle =
        (!device.idle_jobs.is_empty()).then(|| format!("not used by job {}", jobs(device.idle_jobs.iter())));
    let all: Vec<_> = [device.problem.clone(), throttled, idle].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// `4 h100, 2 cpu`.
fn devices(node: &NodeView) -> String {
    let mut counts = std::collections::BTreeMap::<&str, u32>::new();
    node.devices.iter().for_each(|device| *counts.entry(&device.kind).or_default() += 1);
    let counts: Vec<_> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    counts.join(", ")
}

pub(super) fn jobs<'a>(ids: impl Iterator<Item = &'a u64>) -> String {
    let ids: std::collections::BTreeSet<_> = ids.collect();
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Why the node is in its state, and what there is to know of its devices.
fn why(node: &NodeView) -> String {
    let device =
        |device: &DeviceView| note(device).map(|note| format!("{}:{}: {note}", device.kind, device.index));
    let all: Vec<_> = node.reason.iter().cloned().chain(node.devices.iter().filter_map(device)).collect();
    all.join("; ")
}
