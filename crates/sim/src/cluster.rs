//! What a simulated cluster is made of: `kind:NODESxGPUS`, a TOML file, or a list of nodes as CSV.

use std::path::Path;

use thiserror::Error;
use yard_core::cluster::{Kinds, NODE_DEVICES_MAX, NodeSpec, Resources};

use self::group::{ClusterFile, NodeGroup};
use self::places::DomainNumbers;
use crate::{memory, trace};

mod group;
mod places;

/// Most nodes a specification may make; beyond it is a typing error.
const NODES_MAX: usize = 10_000_000;

/// Nodes and kinds, and what a device-hour costs where somebody said so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSpec {
    /// As the user wrote it.
    pub text: String,
    /// The kinds.
    pub kinds: Kinds,
    /// What is counted of hosts.
    pub resources: Resources,
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
        self.nodes.iter().map(NodeSpec::devices).sum()
    }

    /// The kinds of a node's devices, as `a100+t4`.
    pub fn kinds_of(&self, node: &NodeSpec) -> String {
        let names: Vec<_> = node.pools.iter().map(|pool| self.kinds.name(pool.kind)).collect();
        names.join("+")
    }

    /// Devices of each kind.
    pub fn totals(&self) -> Vec<u32> {
        let mut totals = vec![0; self.kinds.ids().count()];
        let pools = self.nodes.iter().flat_map(|node| &node.pools);
        pools.for_each(|pool| totals[pool.kind.index()] += pool.devices);
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

    fn made(text: &str, parsed: Result<ClusterParts, String>) -> Result<ClusterSpec, ClusterError> {
        let spec = parsed.and_then(|ClusterParts { kinds, resources, nodes, prices, .. }| {
            let spec = ClusterSpec { text: text.to_owned(), kinds, resources, nodes, prices };
            if spec.nodes.is_empty() { Err("it has no nodes".to_owned()) } else { Ok(spec) }
        });
        spec.map_err(|problem| ClusterError { text: text.to_owned(), problem })
    }
}

/// What a specification says.
#[derive(Default)]
struct ClusterParts {
    kinds: Kinds,
    resources: Resources,
    nodes: Vec<NodeSpec>,
    prices: Vec<f64>,
    numbers: DomainNumbers,
}

fn from_text(text: &str, nodes_max: usize) -> Result<ClusterParts, String> {
    let mut parts = ClusterParts::default();
    for part in text.split(',') {
        let (kind, size) = part.split_once(':').ok_or_else(|| {
            format!("{part:?} is neither a file nor `kind:NODESxGPUS`, as in v100:9x4,p100:9x4 or gpu:8x8")
        })?;
        let (count, devices) = size.split_once('x').unwrap_or((size, "1"));
        let (nodes, gpus) = (number(count, part)?, number(devices, part)?);
        NodeGroup::of(kind.trim(), nodes, gpus).add(nodes_max, &mut parts)?;
    }
    Ok(parts)
}

fn number(text: &str, part: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("{text:?} in {part:?} is not a whole number above 0"))
}

fn from_file(path: &Path) -> Result<ClusterParts, String> {
    if path.extension().is_some_and(|end| end == "csv" || end == "gz") {
        return from_node_list(path);
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let file: ClusterFile = toml::from_str(&text).map_err(|error| toml_problem(&error, &text))?;
    let mut parts = ClusterParts::default();
    for group in &file.nodes {
        group.add(NODES_MAX, &mut parts)?;
    }
    Ok(parts)
}

/// What is wrong with a TOML file and where, as a sentence.
pub(crate) fn toml_problem(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let problem = error.message().replace('\n', " ");
    line.map_or(problem.clone(), |line| format!("line {line}: {problem}"))
}

/// Alibaba's node list: one row a node.
fn from_node_list(path: &Path) -> Result<ClusterParts, String> {
    let mut parts = ClusterParts::default();
    for (name, kind, devices) in trace::open_nodes(path).map_err(|error| error.to_string())? {
        if devices > NODE_DEVICES_MAX {
            return Err(format!("node {name} has {devices} devices; at most {NODE_DEVICES_MAX} are allowed"));
        }
        let memory_mib = memory::of_kind(&kind);
        let kind = parts.kinds.intern(&kind);
        parts.nodes.push(NodeSpec::of(name, kind, devices).with_memory(memory_mib));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use yard_core::cluster::{Level, ResourceId};

    use super::*;

    fn pools(spec: &ClusterSpec) -> Vec<(&str, u32)> {
        let pools = spec.nodes.iter().flat_map(|node| &node.pools);
        pools.map(|pool| (spec.kinds.name(pool.kind), pool.devices)).collect()
    }

    fn domains(spec: &ClusterSpec) -> Vec<String> {
        let one = |(level, name): (Level, &str)| format!("{} {name}", level.name());
        let path = |node: &NodeSpec| node.domains.iter().map(one).collect::<Vec<_>>().join(", ");
        spec.nodes.iter().map(path).collect()
    }

    fn parsed(text: &str) -> Result<ClusterSpec, String> {
        let dir = tempfile(text);
        let spec = ClusterSpec::parse(dir.to_str().unwrap()).map_err(|error| error.to_string());
        std::fs::remove_file(dir).unwrap();
        spec
    }

    fn tempfile(text: &str) -> std::path::PathBuf {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("yard-cluster-{}-{number}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn the_short_form_makes_nodes_of_each_kind() {
        let spec = ClusterSpec::parse("v100:2x4,p100:3").unwrap();
        let sizes: Vec<_> = pools(&spec);
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
        let text =
            "[[nodes]]\nkind = 'a100'\nnodes = 4\ngpus = 8\nnodes_per_rack = 2\nprice_per_hour = 2.5\n";
        let spec = parsed(text).unwrap();
        assert_eq!(domains(&spec), ["rack 0", "rack 0", "rack 1", "rack 1"]);
        assert_eq!(spec.prices, [2.5]);
        assert_eq!(spec.nodes[0].pools[0].memory_mib, Some(40 * 1024), "as its name says");
        let spec = parsed("[[nodes]]\nkind = 'a100'\ngpus = 8\nmemory_gib = 80\n").unwrap();
        assert_eq!(spec.nodes[0].pools[0].memory_mib, Some(81_920));
        let error = parsed("[[nodes]]\nkind = 'a100'\ngpus = 8\nmemory_gib = 0\n").unwrap_err();
        assert!(error.contains("memory_gib = 0"), "{error}");
        assert!(parsed("[[nodes]]\nkind = 'a100'\ngpu = 8\n").unwrap_err().contains("gpu"));
    }

    #[test]
    fn nodes_are_in_domains_that_are_named_or_numbered() {
        let text = "
            [[nodes]]
            kind = 'gb200'
            gpus = 4
            nodes = 4
            nodes_per_clique = 2
            rack = 'r1'
            block = 'b1'
            [[nodes]]
            kind = 'h100'
            gpus = 8
            nodes = 2
            nodes_per_clique = 1
            rack = 7
            [[nodes]]
            kind = 'h100'
            gpus = 8
            nodes_per_rack = 1
            zone = 'hall-2'";
        let expected = [
            "clique 0, rack r1, block b1",
            "clique 0, rack r1, block b1",
            "clique 1, rack r1, block b1",
            "clique 1, rack r1, block b1",
            "clique 2, rack 7",
            "clique 3, rack 7",
            "rack 8, zone hall-2",
        ];
        assert_eq!(domains(&parsed(text).unwrap()), expected);
        for (line, part) in [
            ("rack = 'a b'", "no name for a rack"),
            ("block = ''", "no name for a block"),
            ("rack = 1\nnodes_per_rack = 2", "cannot both be given"),
            ("nodes_per_clique = 0", "at least one node"),
            ("row = 'x'", "unknown field `row`"),
        ] {
            let error = parsed(&format!("[[nodes]]\nkind = 'a'\ngpus = 1\n{line}\n")).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn a_node_has_several_kinds_and_what_its_host_has() {
        let text = "
            [[nodes]]
            cores = 48
            host_memory_gib = 256
            resources = { scratch_gb = 900 }
            pools = [{ kind = 'a100', gpus = 4 }, { kind = 't4', gpus = 2, memory_gib = 16, cores = 4 }]";
        let spec = parsed(text).unwrap();
        assert_eq!(pools(&spec), [("a100", 4), ("t4", 2)]);
        let node = &spec.nodes[0];
        let scratch = spec.resources.find("scratch_gb").unwrap();
        assert_eq!((node.host.get(ResourceId::CORES), node.host.get(scratch)), (48_000, 900));
        let cores = |at: usize| node.pools[at].part.get(ResourceId::CORES);
        assert_eq!((cores(0), cores(1)), (10_000, 4_000), "what is left, in equal parts");
        assert_eq!(
            node.pools[0].part.get(scratch),
            0,
            "what has a name of its own is had by who asks for it"
        );
    }

    #[test]
    fn mistakes_in_a_node_are_named() {
        for (text, part) in [
            ("kind = 'a'", "gpus"),
            ("gpus = 2", "kind"),
            ("kind = 'a'\ngpus = 2\npools = [{ kind = 'b', gpus = 1 }]", "either kind and gpus, or pools"),
            ("pools = [{ kind = 'b', gpus = 1 }, { kind = 'b', gpus = 1 }]", "twice"),
            ("pools = [{ kind = 'b', gpus = 100 }, { kind = 'c', gpus = 100 }]", "1 to 128"),
            ("kind = 'a'\ngpus = 2\ncores = -1", "cores = -1"),
            ("kind = 'a'\ngpus = 2\nresources = { cores = 3 }", "cores"),
            (
                "cores = 4\npools = [{ kind = 'b', gpus = 2, cores = 3 }]",
                "6 cores for its devices, and has 4",
            ),
        ] {
            let error = parsed(&format!("[[nodes]]\n{text}\n")).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
