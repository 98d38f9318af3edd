//! The TOML form of a cluster: `[[nodes]]`, each a number of equal nodes.

use std::collections::BTreeMap;

use serde::Deserialize;
use yard_core::cluster::{Amounts, Level, NODE_DEVICES_MAX, NodeSpec, Pool, ResourceId, Resources};

use super::ClusterParts;
use super::places::{DomainName, Places};
use crate::memory;

/// The most that a device or a host may be said to have.
const GIB_MAX: f64 = 100_000.0;
const CORES_MAX: f64 = 100_000.0;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterFile {
    pub(super) nodes: Vec<NodeGroup>,
}

/// Equal nodes: devices of one kind, or several pools, and what their hosts have.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeGroup {
    kind: Option<String>,
    gpus: Option<u32>,
    #[serde(default)]
    pools: Vec<GroupDevices>,
    #[serde(default = "one")]
    nodes: u32,
    clique: Option<DomainName>,
    rack: Option<DomainName>,
    block: Option<DomainName>,
    zone: Option<DomainName>,
    nodes_per_clique: Option<u32>,
    nodes_per_rack: Option<u32>,
    nodes_per_block: Option<u32>,
    price_per_hour: Option<f64>,
    memory_gib: Option<f64>,
    cores: Option<f64>,
    host_memory_gib: Option<f64>,
    /// Whatever else is counted.
    #[serde(default)]
    resources: BTreeMap<String, u32>,
}

/// Devices of one kind of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupDevices {
    kind: String,
    gpus: u32,
    memory_gib: Option<f64>,
    price_per_hour: Option<f64>,
    /// What of the host belongs to each of them.
    cores: Option<f64>,
    host_memory_gib: Option<f64>,
}

fn one() -> u32 {
    1
}

impl NodeGroup {
    /// Nodes with devices of one kind.
    pub(super) fn of(kind: &str, nodes: u32, gpus: u32) -> NodeGroup {
        NodeGroup { kind: Some(kind.to_owned()), gpus: Some(gpus), nodes, ..NodeGroup::default() }
    }

    /// Adds its nodes to a cluster.
    pub(super) fn add(&self, nodes_max: usize, parts: &mut ClusterParts) -> Result<(), String> {
        let devices = self.devices()?;
        self.check(&devices)?;
        if parts.nodes.len() + self.nodes as usize > nodes_max {
            return Err(format!("more than {nodes_max} nodes"));
        }
        let model = self.model(&devices, parts)?;
        let first = model.pools[0].kind;
        let named = |node: &&NodeSpec| node.pools[0].kind == first;
        let before = parts.nodes.iter().filter(named).count() as u32;
        let places = self.places().of_nodes(self.nodes, &mut parts.numbers);
        for (at, domains) in (before..).zip(places) {
            let name = format!("{}-{at}", devices[0].kind);
            parts.nodes.push(NodeSpec { name, domains, ..model.clone() });
        }
        Ok(())
    }

    /// Where its nodes are: what is said of each level, and how many nodes one domain has where that is said.
    fn places(&self) -> Places {
        Places([
            (Level::Clique, self.clique.clone(), self.nodes_per_clique),
            (Level::Rack, self.rack.clone(), self.nodes_per_rack),
            (Level::Block, self.block.clone(), self.nodes_per_block),
            (Level::Zone, self.zone.clone(), None),
        ])
    }

    /// Its devices, kind by kind.
    fn devices(&self) -> Result<Vec<GroupDevices>, String> {
        let (memory_gib, price_per_hour) = (self.memory_gib, self.price_per_hour);
        match (&self.kind, self.gpus, &self.pools[..]) {
            (Some(kind), Some(gpus), []) => {
                let kind = kind.clone();
                Ok(vec![GroupDevices { kind, gpus, memory_gib, price_per_hour, ..GroupDevices::default() }])
            }
            (Some(kind), None, []) => Err(format!("{kind}: gpus is missing: how many each node has")),
            (None, _, []) => Err("kind is missing: what the devices of these nodes are".into()),
            (None, None, pools) if memory_gib.is_none() && price_per_hour.is_none() => Ok(pools.to_vec()),
            (None, None, _) => {
                Err("with pools, memory_gib and price_per_hour are said of each of them".into())
            }
            _ => Err("nodes have either kind and gpus, or pools".into()),
        }
    }

    fn check(&self, devices: &[GroupDevices]) -> Result<(), String> {
        let sound =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
        if let Some(GroupDevices { kind, .. }) = devices.iter().find(|devices| !sound(&devices.kind)) {
            return Err(format!("{kind:?} is no name for a kind; use letters, digits, - _ and ."));
        }
        let kind = &devices[0].kind;
        if (1..devices.len()).any(|at| devices[..at].iter().any(|other| other.kind == devices[at].kind)) {
            return Err(format!("{kind}: a node names a kind twice; put its devices into one pool"));
        }
        self.places().check(kind)?;
        let all = devices.iter().fold(0, |sum: u32, devices| sum.saturating_add(devices.gpus));
        if self.nodes == 0 || devices.iter().any(|devices| devices.gpus == 0) || all > NODE_DEVICES_MAX {
            return Err(format!(
                "{kind}: {} nodes of {all} devices; a node has 1 to {NODE_DEVICES_MAX}, and there is at least one",
                self.nodes
            ));
        }
        Ok(())
    }

    /// One of its nodes.
    fn model(&self, devices: &[GroupDevices], parts: &mut ClusterParts) -> Result<NodeSpec, String> {
        let host = self.host(&devices[0].kind, &mut parts.resources)?;
        let pools = devices.iter().map(|devices| devices.pool(parts)).collect::<Result<_, _>>()?;
        let node = NodeSpec::of_pools("", pools).with_host(host);
        let each = |pool: &Pool| pool.part.times(pool.devices);
        let wanted = node.pools.iter().map(each).fold(Amounts::NONE, |sum, part| sum.plus(&part));
        if let Some(short) = host.short_of(&wanted) {
            let name = if short == ResourceId::CORES { "cores" } else { "GiB of memory" };
            let unit = if short == ResourceId::CORES { 1000.0 } else { 1024.0 };
            let amount = |amounts: &Amounts| f64::from(amounts.get(short)) / unit;
            let (wanted, there) = (amount(&wanted), amount(&host));
            return Err(format!("a node says {wanted} {name} for its devices, and has {there}"));
        }
        Ok(node)
    }

    /// What there is of each host.
    fn host(&self, kind: &str, resources: &mut Resources) -> Result<Amounts, String> {
        let mut host = shared(kind, self.cores, self.host_memory_gib)?;
        for (name, count) in &self.resources {
            if ["cores", "memory"].contains(&name.as_str()) {
                return Err(format!(
                    "{kind}: resources cannot have {name}; say cores = N or host_memory_gib = N"
                ));
            }
            let resource = resources.intern(name);
            let resource =
                resource.ok_or_else(|| format!("{kind}: {name} is one resource too many to count"))?;
            host = host.with(resource, *count);
        }
        Ok(host)
    }
}

impl GroupDevices {
    fn pool(&self, parts: &mut ClusterParts) -> Result<Pool, String> {
        let kind = parts.kinds.intern(&self.kind);
        if let Some(price) = self.price_per_hour {
            if !(0.0..=1e9).contains(&price) {
                return Err(format!("price_per_hour = {price} is not a number from 0 to 1e9"));
            }
            parts.prices.resize(parts.prices.len().max(kind.index() + 1), 0.0);
            parts.prices[kind.index()] = price;
            parts.kinds.set_dollars(kind, price);
        }
        let part = shared(&self.kind, self.cores, self.host_memory_gib)?;
        Ok(Pool { kind, devices: self.gpus, memory_mib: self.memory_mib()?, part })
    }

    /// Memory of each device: as the file says, else as the kind's name does.
    fn memory_mib(&self) -> Result<Option<u32>, String> {
        let Some(gib) = self.memory_gib else { return Ok(memory::of_kind(&self.kind)) };
        Ok(Some(amount(&self.kind, "memory_gib", gib, GIB_MAX, 1024.0)?))
    }
}

/// Cores and memory.
fn shared(kind: &str, cores: Option<f64>, gib: Option<f64>) -> Result<Amounts, String> {
    let mut amounts = Amounts::NONE;
    if let Some(cores) = cores {
        amounts = amounts.with(ResourceId::CORES, amount(kind, "cores", cores, CORES_MAX, 1000.0)?);
    }
    if let Some(gib) = gib {
        amounts = amounts.with(ResourceId::MEMORY, amount(kind, "host_memory_gib", gib, GIB_MAX, 1024.0)?);
    }
    Ok(amounts)
}

fn amount(kind: &str, name: &str, value: f64, most: f64, unit: f64) -> Result<u32, String> {
    if !(value > 0.0 && value <= most) {
        return Err(format!("{kind}: {name} = {value} is not a number above 0 and up to {most}"));
    }
    Ok((value * unit).round().max(1.0) as u32)
}
