//! `yard shapes --graph`: a graph of operators from a JSON file, split exactly over accelerators and processors.
//!
//! The format is that of Tarnawski et al.'s artifact, whose names are read beside plainer ones.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use yard_solver::downsets::{GraphPart, GraphSplit, OperatorGraph, OperatorNode, SplitError, SplitLimits};

use super::ShapesOutput;
use super::toml_file::text;
use crate::output;

/// Most down-closed sets: the split takes the square of their number.
const SETS_MAX: usize = 20_000;

/// Nodes of a part that the table names.
const NAMES_SHOWN: usize = 4;

const GIB: f64 = (1u64 << 30) as f64;

#[derive(Deserialize)]
struct GraphFile {
    #[serde(alias = "maxSizePerFPGA")]
    memory_bytes: f64,
    #[serde(alias = "maxFPGAs")]
    accelerators: usize,
    #[serde(alias = "maxCPUs", default)]
    processors: usize,
    nodes: Vec<NodeEntry>,
    edges: Vec<EdgeEntry>,
}

#[derive(Deserialize)]
struct NodeEntry {
    id: u64,
    name: Option<String>,
    #[serde(alias = "fpgaLatency")]
    accelerator_time: f64,
    #[serde(alias = "cpuLatency")]
    processor_time: Option<f64>,
    #[serde(alias = "size", default)]
    bytes: f64,
    #[serde(alias = "supportedOnFpga", default = "yes")]
    on_accelerators: Flag,
    #[serde(alias = "isBackwardNode", default = "no")]
    backward: Flag,
    #[serde(alias = "colorClass")]
    class: Option<u64>,
}

#[derive(Deserialize)]
struct EdgeEntry {
    #[serde(alias = "sourceId")]
    from: u64,
    #[serde(alias = "destId")]
    to: u64,
    #[serde(alias = "cost")]
    transfer_time: f64,
}

/// True or false, also as 1 or 0.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Flag {
    Said(bool),
    Number(u8),
}

impl Flag {
    fn is_set(self) -> bool {
        matches!(self, Flag::Said(true) | Flag::Number(1..))
    }
}

fn yes() -> Flag {
    Flag::Said(true)
}

fn no() -> Flag {
    Flag::Said(false)
}

/// A graph with the names of its operators, and what there is to split it over.
pub(crate) struct NamedGraph {
    names: Vec<String>,
    graph: OperatorGraph,
    limits: SplitLimits,
}

impl NamedGraph {
    pub(crate) fn read(path: &Path) -> anyhow::Result<NamedGraph> {
        let text = text(path)?;
        let file: GraphFile = serde_json::from_str(&text)
            .with_context(|| format!("{}: not a graph of operators", path.display()))?;
        NamedGraph::of(file).with_context(|| path.display().to_string())
    }

    fn of(file: GraphFile) -> anyhow::Result<NamedGraph> {
        ensure!(file.accelerators > 0, "accelerators: 0 of them hold nothing; give 1 or more");
        ensure!(
            file.memory_bytes > 0.0,
            "memory_bytes: {} hold nothing; give a number above 0",
            file.memory_bytes
        );
        ensure!(!file.nodes.is_empty(), "nodes: there is none; give one or more");
        let mut places = BTreeMap::new();
        for (at, node) in file.nodes.iter().enumerate() {
            ensure!(
                places.insert(node.id, at).is_none(),
                "nodes: id {} is there twice; give each its own",
                node.id
            );
            let numbers = [node.accelerator_time, node.processor_time.unwrap_or(0.0), node.bytes];
            let fine = numbers.iter().all(|number| *number >= 0.0);
            ensure!(fine, "nodes: node {} has a number below 0; give times and bytes from 0 up", node.id);
        }
        let mut nodes: Vec<OperatorNode> = file.nodes.iter().map(NodeEntry::operator).collect();
        let mut edges = Vec::new();
        for edge in &file.edges {
            let place = |id: u64| {
                places
                    .get(&id)
                    .copied()
                    .with_context(|| format!("edges: there is no node {id}; name one of nodes"))
            };
            let (from, to) = (place(edge.from)?, place(edge.to)?);
            // A result is sent once, whoever needs it.
            nodes[from].transfer = nodes[from].transfer.max(edge.transfer_time);
            edges.push((from, to));
        }
        let named = |node: &NodeEntry| node.name.clone().unwrap_or_else(|| format!("node {}", node.id));
        let limits = SplitLimits {
            accelerators: file.accelerators,
            processors: file.processors,
            memory: file.memory_bytes,
            sets: SETS_MAX,
        };
        Ok(NamedGraph {
            names: file.nodes.iter().map(named).collect(),
            graph: OperatorGraph { nodes, edges },
            limits,
        })
    }

    /// The best split; what is wrong with the graph is said with the names of its operators.
    pub(crate) fn split(&self) -> anyhow::Result<GraphSplit> {
        let name = |node: usize| output::plain(&self.names[node]);
        self.graph.split(&self.limits).map_err(|error| match error {
            SplitError::Cycle(node) => {
                anyhow::anyhow!(
                    "edges: {:?} needs its own result over a cycle; take out one of the cycle's edges",
                    name(node)
                )
            }
            SplitError::Alone(node) => {
                anyhow::anyhow!(
                    "nodes: backward node {:?} has no forward node of its class; give it the class of one",
                    name(node)
                )
            }
            SplitError::NoFit => {
                anyhow::anyhow!(
                    "memory_bytes: no split fits in {}; give more memory or more accelerators",
                    self.limits.memory
                )
            }
            other => anyhow::anyhow!("{other}"),
        })
    }
}

impl NodeEntry {
    fn operator(&self) -> OperatorNode {
        OperatorNode {
            accelerator: if self.on_accelerators.is_set() { self.accelerator_time } else { f64::INFINITY },
            processor: self.processor_time.unwrap_or(f64::INFINITY),
            memory: self.bytes,
            transfer: 0.0,
            backward: self.backward.is_set(),
            class: self.class,
        }
    }
}

pub(super) fn run(path: &Path, shown: ShapesOutput, out: &mut dyn Write) -> anyhow::Result<()> {
    let named = NamedGraph::read(path)?;
    let split = named.split().with_context(|| path.display().to_string())?;
    match shown {
        ShapesOutput::Table => table(&named, &split, out),
        ShapesOutput::Json => output::json(&as_json(&named, &split), out),
        ShapesOutput::Csv => bail!("-o csv: a split of a graph is no table of speeds; use table or json"),
    }
}

fn table(named: &NamedGraph, split: &GraphSplit, out: &mut dyn Write) -> anyhow::Result<()> {
    let quality =
        if split.is_exact { "no split is better" } else { "chains were merged: a better one may exist" };
    writeln!(out, "Greatest load {:.4} over {} devices; {quality}.\n", split.load, split.parts.len())?;
    let mut table = output::table(&["device", "load", "memory", "operators", ""], 9);
    for part in &split.parts {
        let names: Vec<_> =
            part.nodes.iter().take(NAMES_SHOWN).map(|node| output::plain(&named.names[*node])).collect();
        let rest = if part.nodes.len() > NAMES_SHOWN { ", …" } else { "" };
        table.add_row([
            device(part).to_owned(),
            format!("{:.4}", part.load),
            format!("{:.2} GiB", part.memory / GIB),
            part.nodes.len().to_string(),
            format!("{}{rest}", names.join(", ")),
        ]);
    }
    Ok(writeln!(out, "{table}")?)
}

fn device(part: &GraphPart) -> &'static str {
    if part.on_accelerator { "accelerator" } else { "processor" }
}

fn as_json(named: &NamedGraph, split: &GraphSplit) -> Value {
    let part = |part: &GraphPart| {
        let names: Vec<&String> = part.nodes.iter().map(|node| &named.names[*node]).collect();
        json!({ "device": device(part), "load": part.load, "memory_gib": part.memory / GIB, "operators": names })
    };
    json!({
        "load": split.load,
        "exact": split.is_exact,
        "sets": split.sets,
        "parts": split.parts.iter().map(part).collect::<Vec<_>>(),
    })
}
