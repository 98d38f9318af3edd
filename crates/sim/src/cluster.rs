//! What a simulated cluster is made of: `kind:NODESxGPUS`, a TOML file, or a list of nodes as CSV.

use std::path::Path;

use serde::Deserialize;
use thiserror::Error;
use yard_core::cluster::{Kinds, NODE_DEVICES_MAX, NodeSpec};

use crate::{memory, trace};

/// Most nodes a specification may make; beyond it is a typing error.
const NODES_MAX: usize = 10_000_000;

/// The most memory that a device may be said to have.
const MEMORY_GIB_MAX: f64 = 100_000.0;

/// Nodes and kinds, and what a device-hour costs where somebody said so.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSpec {
    /// As the user wrote it.
    pub text: String,
    /// The kinds.
    pub kinds: Kinds,
    /// The nodes, in order.
    pub nodes: Vec<NodeSpec>,
    /// Price of a device-hour by kind; empty where none is known.
    pub prices: Vec<f64>,
}

/// What is wrong with a cluster specification.
#[derive(Debug, Error)]
#[error("cluster {text:?}: {problem}")]
pub struct ClusterError {
    text: String,
    problem: String,
}

impl ClusterSpec {
    /// Devices in all.
    pub fn devices(&self) -> u32 {
        self.nodes.iter().map(|node| node.devices).sum()
    }

    /// Devices of each kind.
    pub fn totals(&self) -> Vec<u32> {
        let mut totals = vec![0; self.kinds.ids().count()];
        self.nodes.iter().for_each(|node| totals[node.kind.index()] += node.devices);
        totals
    }

    /// Reads a specification: a file if one of that name exists, else `kind:NODESxGPUS[,…]`.
    pub fn parse(text: &str) -> Result<ClusterSpec, ClusterError> {
        let path = Path::new(text);
        ClusterSpec::made(text, if path.is_file() { from_file(path) } else { from_text(text, NODES_MAX) })
    }

    /// Reads `kind:NODESxGPUS[,…]` with at most so many nodes and nothing else: for who may name no file here.
    pub fn short(text: &str, nodes_max: usize) -> Result<ClusterSpec, ClusterError> {
        ClusterSpec::made(text, from_text(text, nodes_max))
    }

    fn made(text: &str, parsed: Result<Parts, String>) -> Result<ClusterSpec, ClusterError> {
        let spec = parsed.and_then(|(kinds, nodes, prices)| {
            let spec = ClusterSpec { text: text.to_owned(), kinds, nodes, prices };
            if spec.nodes.is_empty() { Err("it has no nodes".to_owned()) } else { Ok(spec) }
        });
        spec.map_err(|problem| ClusterError { text: text.to_owned(), problem })
    }
}

type Parts = (Kinds, Vec<NodeSpec>, Vec<f64>);

fn from_text(text: &str, nodes_max: usize) -> Result<Parts, String> {
    let (mut kinds, mut nodes) = (Kinds::default(), Vec::new());
    for part in text.split(',') {
        let (kind, size) = part.split_once(':').ok_or_else(|| {
            format!("{part:?} is neither a file nor `kind:NODESxGPUS`, as in v100:9x4,p100:9x4 or gpu:8x8")
        })?;
        let (count, devices) = size.split_once('x').unwrap_or((size, "1"));
        let group = Group {
            kind: kind.trim().to_owned(),
            nodes: number(count, part)?,
            gpus: number(devices, part)?,
            rack: None,
            nodes_per_rack: None,
            price_per_hour: None,
            memory_gib: None,
        };
        group.add(nodes_max, &mut kinds, &mut nodes)?;
    }
    Ok((kinds, nodes, Vec::new()))
}

fn number(text: &str, part: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("{text:?} in {part:?} is not a whole number above 0"))
}

/// The TOML form: `[[nodes]]` with kind, nodes, gpus and, if wanted, rack, nodes_per_rack, price and memory.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    nodes: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    kind: String,
    #[serde(default = "one")]
    nodes: u32,
    gpus: u32,
    rack: Option<u32>,
    nodes_per_rack: Option<u32>,
    price_per_hour: Option<f64>,
    memory_gib: Option<f64>,
}

fn one() -> u32 {
    1
}

impl Group {
    fn add(&self, nodes_max: usize, kinds: &mut Kinds, nodes: &mut Vec<NodeSpec>) -> Result<(), String> {
        if self.kind.is_empty() || !self.kind.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
            return Err(format!("{:?} is no name for a kind; use letters, digits, - _ and .", self.kind));
        }
        if self.nodes_per_rack == Some(0) {
            return Err(format!("{}: nodes_per_rack is 0; a rack has at least one node", self.kind));
        }
        if self.nodes == 0 || self.gpus == 0 || self.gpus > NODE_DEVICES_MAX {
            return Err(format!(
                "{}: {} nodes of {} devices; a node has 1 to {NODE_DEVICES_MAX}, and there is at least one",
                self.kind, self.nodes, self.gpus
            ));
        }
        if nodes.len() + self.nodes as usize > nodes_max {
            return Err(format!("more than {nodes_max} nodes"));
        }
        let memory_mib = self.memory_mib()?;
        let kind = kinds.intern(&self.kind);
        let before = nodes.iter().filter(|node| node.kind == kind).count() as u32;
        let next_rack = nodes.iter().map(|node: &NodeSpec| node.rack.saturating_add(1)).max().unwrap_or(0);
        for at in 0..self.nodes {
            let rack = match (self.rack, self.nodes_per_rack) {
                (Some(rack), _) => rack,
                (None, Some(size)) => next_rack.saturating_add(at / size.max(1)),
                (None, None) => 0,
            };
            nodes.push(NodeSpec {
                name: format!("{}-{}", self.kind, before + at),
                kind,
                devices: self.gpus,
                rack,
                memory_mib,
            });
        }
        Ok(())
    }

    /// Memory of each device: as the file says, else as the kind's name does.
    fn memory_mib(&self) -> Result<Option<u32>, String> {
        let Some(gib) = self.memory_gib else { return Ok(memory::of_kind(&self.kind)) };
        if !(gib > 0.0 && gib <= MEMORY_GIB_MAX) {
            return Err(format!(
                "{}: memory_gib = {gib} is not a number above 0 and up to {MEMORY_GIB_MAX}",
                self.kind
            ));
        }
        Ok(Some((gib * 1024.0).round().max(1.0) as u32))
    }
}

fn from_file(path: &Path) -> Result<Parts, String> {
    if path.extension().is_some_and(|end| end == "csv" || end == "gz") {
        return from_node_list(path);
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let file: File = toml::from_str(&text).map_err(|error| toml_problem(&error, &text))?;
    let (mut kinds, mut nodes) = (Kinds::default(), Vec::new());
    let mut prices = Vec::new();
    for group in &file.nodes {
        group.add(NODES_MAX, &mut kinds, &mut nodes)?;
        if let Some(price) = group.price_per_hour {
            if !(0.0..=1e9).contains(&price) {
                return Err(format!("price_per_hour = {price} is not a number from 0 to 1e9"));
            }
            let kind = kinds.intern(&group.kind);
            prices.resize(prices.len().max(kind.index() + 1), 0.0);
            prices[kind.index()] = price;
            kinds.set_dollars(kind, price);
        }
    }
    Ok((kinds, nodes, prices))
}

/// What is wrong with a TOML file and where, as a sentence.
pub(crate) fn toml_problem(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let problem = error.message().replace('\n', " ");
    line.map_or(problem.clone(), |line| format!("line {line}: {problem}"))
}

/// Alibaba's node list: one row a node.
fn from_node_list(path: &Path) -> Result<Parts, String> {
    let (mut kinds, mut nodes) = (Kinds::default(), Vec::new());
    for (name, kind, devices) in trace::open_nodes(path).map_err(|error| error.to_string())? {
        if devices > NODE_DEVICES_MAX {
            return Err(format!("node {name} has {devices} devices; at most {NODE_DEVICES_MAX} are allowed"));
        }
        let memory_mib = memory::of_kind(&kind);
        nodes.push(NodeSpec { name, kind: kinds.intern(&kind), devices, rack: 0, memory_mib });
    }
    Ok((kinds, nodes, Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_makes_nodes_of_each_kind() {
        let spec = ClusterSpec::parse("v100:2x4,p100:3").unwrap();
        let sizes: Vec<_> =
            spec.nodes.iter().map(|node| (spec.kinds.name(node.kind), node.devices)).collect();
        assert_eq!(sizes, [("v100", 4), ("v100", 4), ("p100", 1), ("p100", 1), ("p100", 1)]);
        assert_eq!(spec.devices(), 11);
        assert_eq!(ClusterSpec::short("v100:2x4,p100:3", 5).unwrap(), spec);
        let refused = |text, most| ClusterSpec::short(text, most).unwrap_err().to_string();
        assert!(refused("Cargo.toml", 5).contains("NODESxGPUS"));
        assert!(refused("v100:4000000000x4", 5).contains("more than 5 nodes"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("v100", "NODESxGPUS"),
            ("v100:0x4", "at least one"),
            ("a:1x9x", "whole number"),
            ("a b:1", "no name"),
            ("a:1x129", "1 to 128"),
        ] {
            let error = ClusterSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_file_form_has_racks_and_prices() {
        let dir = std::env::temp_dir().join(format!("yard-cluster-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("c.toml");
        std::fs::write(
            &path,
            "[[nodes]]\nkind = 'a100'\nnodes = 4\ngpus = 8\nnodes_per_rack = 2\nprice_per_hour = 2.5\n",
        )
        .unwrap();
        let spec = ClusterSpec::parse(path.to_str().unwrap()).unwrap();
        assert_eq!(spec.nodes.iter().map(|node| node.rack).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_eq!(spec.prices, [2.5]);
        assert_eq!(spec.nodes[0].memory_mib, Some(40 * 1024), "as its name says");
        std::fs::write(&path, "[[nodes]]\nkind = 'a100'\ngpus = 8\nmemory_gib = 80\n").unwrap();
        assert_eq!(ClusterSpec::parse(path.to_str().unwrap()).unwrap().nodes[0].memory_mib, Some(81_920));
        std::fs::write(&path, "[[nodes]]\nkind = 'a100'\ngpus = 8\nmemory_gib = 0\n").unwrap();
        let error = ClusterSpec::parse(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("memory_gib = 0"), "{error}");
        std::fs::write(&path, "[[nodes]]\nkind = 'a100'\ngpu = 8\n").unwrap();
        assert!(ClusterSpec::parse(path.to_str().unwrap()).unwrap_err().to_string().contains("gpu"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
