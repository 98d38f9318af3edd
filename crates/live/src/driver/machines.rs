//! What a host offers becomes a node of the engine: a pool for each kind of devices, and what there is of the host, of
//! which a part belongs to each device.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use yard_core::cluster::{
    AMOUNTS_MAX, Amounts, DomainPath, Kinds, NodeSpec, Nodes, Placement, Pool, ResourceId, Slice,
};
use yard_core::cluster::{Mask, Resources};
use yard_core::ids::NodeId;
use yard_core::message::{Input, NodeChange};

use super::Driver;
use crate::exec::{GroupOnWire, HostOffer};
use crate::translate::CPU;
use crate::views::ResourceView;

/// What a processor slot beside cards comes with, in thousandths of a core.
const SLOT: u32 = 1000;

impl Driver {
    /// Refuses a host that counts more things than can be counted.
    pub(super) fn check_resources(&self, offer: &HostOffer) -> Result<(), String> {
        let mut known = self.resources().clone();
        match offer.resources.keys().find(|name| known.intern(name).is_none()) {
            None => Ok(()),
            Some(name) => Err(format!(
                "node {} counts {name}, and {AMOUNTS_MAX} resources are counted already, cores and memory among them; \
                 leave it out (--resource)",
                offer.name
            )),
        }
    }

    /// A new host joins as one node.
    pub(super) fn join_machine(&mut self, offer: &HostOffer) -> Vec<NodeId> {
        let known = self.kinds().len();
        let host = self.amounts(&offer.resources);
        let pools = offer.groups.iter().map(|group| self.pool(group)).collect();
        let plain = NodeSpec { domains: self.domains(offer), ..NodeSpec::of_pools(&offer.name, pools) };
        let spec = with_parts(plain, host, self.kinds());
        let node = self.join(spec);
        if self.kinds().len() > known {
            self.believe();
            self.offer_new_kinds();
        }
        vec![node]
    }

    /// Where a host is: as the topology file says, else as it does itself.
    fn domains(&self, offer: &HostOffer) -> DomainPath {
        self.config.topology.of(&offer.name).unwrap_or(&offer.domains).clone()
    }

    /// Tells the engine where a host is now.
    pub(super) fn tell_domains(&mut self, nodes: &[NodeId], offer: &HostOffer) {
        let domains = self.domains(offer);
        for node in nodes {
            self.staged.keep(Input::Node(NodeChange::Moved { node: *node, domains: domains.clone() }));
        }
    }

    /// The domains that these nodes are in, by level.
    pub(super) fn domains_of(&self, nodes: &[NodeId]) -> BTreeMap<String, String> {
        let first = nodes.first().map(|node| &self.engine.nodes().get(*node).spec.domains);
        let named = first.into_iter().flat_map(DomainPath::iter);
        named.map(|(level, name)| (level.name().to_owned(), name.to_owned())).collect()
    }

    /// Tells the engine what there is of a host now. Of one that is still several nodes nothing is counted.
    pub(super) fn tell_resources(&mut self, nodes: &[NodeId], offer: &HostOffer) {
        let [node] = *nodes else { return };
        let host = self.amounts(&offer.resources);
        let pools = offer.groups.iter().map(|group| self.pool(group)).collect();
        let plain = NodeSpec::of_pools(&offer.name, pools);
        let parts: SmallVec<[Amounts; 1]> =
            with_parts(plain, host, self.kinds()).pools.iter().map(|pool| pool.part).collect();
        self.staged.keep(Input::Node(NodeChange::Counted { node, host, parts }));
    }

    fn pool(&mut self, group: &GroupOnWire) -> Pool {
        let memory = group.devices.iter().map(|device| device.memory_mib).min().flatten();
        let memory_mib = memory.map(|mib| u32::try_from(mib).unwrap_or(u32::MAX));
        let (kind, devices) = (self.kind(&group.kind), group.devices.len() as u32);
        Pool { kind, devices, memory_mib, part: Amounts::NONE }
    }

    fn amounts(&mut self, named: &BTreeMap<String, u32>) -> Amounts {
        let mut amounts = Amounts::NONE;
        for (name, amount) in named {
            if let Some(resource) = self.resource(name) {
                amounts = amounts.with(resource, *amount);
            }
        }
        amounts
    }

    fn resource(&mut self, name: &str) -> Option<ResourceId> {
        if let Some(known) = self.resources().find(name) {
            return Some(known);
        }
        self.staged.keep(Input::Resource(name.to_owned()));
        self.staged.resources.get_or_insert_with(|| self.engine.resources().clone()).intern(name)
    }

    /// What there is of the hosts of these nodes, and what of it is reserved.
    pub(super) fn counted(&self, nodes: &[NodeId]) -> Vec<ResourceView> {
        let none = (Amounts::NONE, Amounts::NONE);
        let (host, free) = nodes
            .iter()
            .map(|node| self.engine.nodes().get(*node))
            .fold(none, |sum, node| (sum.0.plus(&node.spec.host), sum.1.plus(&node.host_free())));
        let view = |(resource, name): (ResourceId, &str)| {
            let unit = if resource == ResourceId::CORES { 1000.0 } else { 1.0 };
            // Whole numbers first, or a tenth of a core would be shown with sixteen digits.
            let (all, taken) = (host.get(resource), host.minus(&free).get(resource));
            ResourceView {
                name: name.to_owned(),
                total: f64::from(all) / unit,
                reserved: f64::from(taken) / unit,
            }
        };
        self.engine.resources().iter().map(view).filter(|view| view.total > 0.0).collect()
    }

    /// What is counted once everything staged is stepped.
    pub(super) fn resources(&self) -> &Resources {
        self.staged.resources.as_ref().unwrap_or_else(|| self.engine.resources())
    }
}

/// Processor slots beside cards come with a core each, and its part of the memory; all else belongs to the cards in equal
/// parts. Where there are only slots, it belongs to those.
fn with_parts(mut node: NodeSpec, host: Amounts, kinds: &Kinds) -> NodeSpec {
    let (cores, memory) = (host.get(ResourceId::CORES), host.get(ResourceId::MEMORY));
    let has_cards = node.pools.iter().any(|pool| kinds.name(pool.kind) != CPU);
    let slots = node.pools.iter_mut().filter(|pool| has_cards && kinds.name(pool.kind) == CPU);
    for pool in slots {
        let each = SLOT.min(cores / pool.devices.max(1));
        let beside = u64::from(memory) * u64::from(each) / u64::from(cores.max(1));
        pool.part = Amounts::NONE.with(ResourceId::CORES, each).with(ResourceId::MEMORY, beside as u32);
    }
    node.with_host(host)
}

/// What people call the node of a slice, and its devices as they number them: those of each kind from 0.
pub(crate) fn named(nodes: &Nodes, kinds: &Kinds, slice: &Slice) -> (String, Mask) {
    let spec = &nodes.get(slice.node).spec;
    let kind = spec.kind_of(slice.mask.trailing_zeros());
    match kind.and_then(|kind| Some((kind, spec.pool(kind)?.1))) {
        Some((kind, first)) if spec.pools.len() > 1 => {
            (format!("{}/{}", spec.name, kinds.name(kind)), slice.mask >> first)
        }
        _ => (spec.name.clone(), slice.mask),
    }
}

/// The kind of a placement's first devices.
pub(crate) fn kind_of<'a>(nodes: &Nodes, kinds: &'a Kinds, placement: &Placement) -> Option<&'a str> {
    let first = placement.0.first()?;
    let kind = nodes.get(first.node).spec.kind_of(first.mask.trailing_zeros())?;
    Some(kinds.name(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_beside_cards_have_a_core_each_and_cards_the_rest() {
        let mut kinds = Kinds::default();
        let (card, cpu) = (kinds.intern("h100"), kinds.intern(CPU));
        let pool = |kind, devices| Pool { kind, devices, memory_mib: None, part: Amounts::NONE };
        let host = Amounts::NONE.with(ResourceId::CORES, 64_000).with(ResourceId::MEMORY, 64_000);
        let node =
            |pools: Vec<Pool>| NodeSpec { pools: SmallVec::from_vec(pools), ..NodeSpec::of("n", card, 1) };
        let parts = |pools| {
            let node = with_parts(node(pools), host, &kinds);
            let part = |pool: &Pool| (pool.part.get(ResourceId::CORES), pool.part.get(ResourceId::MEMORY));
            node.pools.iter().map(part).collect::<Vec<_>>()
        };
        assert_eq!(parts(vec![pool(card, 8), pool(cpu, 16)]), [(6_000, 6_000), (1_000, 1_000)]);
        assert_eq!(parts(vec![pool(card, 8)]), [(8_000, 8_000)]);
        assert_eq!(parts(vec![pool(cpu, 128)]), [(500, 500)]);
        assert_eq!(parts(vec![pool(card, 1), pool(cpu, 100)]), [(0, 0), (640, 640)]);
    }
}
