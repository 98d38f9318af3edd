//! What nodes in service could hold, were all their devices free and nothing of their hosts given out: by counting, and for
//! shapes whose devices must lie together, or that ask for amounts of hosts, node by node.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::cluster::{Level, Node, Nodes};
use crate::ids::{DomainId, KindId};
use crate::job::{Need, Shape};

/// What nodes that are up could hold.
pub struct Reach<'a> {
    nodes: &'a Nodes,
    /// The most devices in service in one domain, level by level. Counted where it is asked for: mostly all nodes are up,
    /// or devices may lie anywhere.
    together: [OnceCell<BTreeMap<KindId, u32>>; Level::ALL.len()],
}

impl<'a> Reach<'a> {
    /// Of these nodes.
    pub fn of(nodes: &'a Nodes) -> Reach<'a> {
        Reach { nodes, together: Default::default() }
    }

    /// Whether they have the devices for a shape in service, as close as it must have them.
    pub fn holds(&self, shape: &Shape) -> bool {
        let beside = shape.needs.len() == 1 || shape.level() == Level::Any;
        shape.needs.iter().all(|need| self.has(need, shape)) && (beside || self.has_beside(shape))
    }

    fn has(&self, need: &Need, shape: &Shape) -> bool {
        let whole = self.nodes.up(need.kind) == self.nodes.total(need.kind);
        match shape.level() {
            _ if shape.nodes.is_some() => self.has_nodes(need, shape),
            _ if shape.host.is_some() => self.has_with_host(need, shape),
            Level::Any => self.nodes.up(need.kind) >= need.devices,
            Level::Node if whole => self.nodes.largest(need.kind) >= need.devices,
            level => {
                let together = self.together[level as usize].get_or_init(|| together(self.nodes, level));
                together.get(&need.kind).is_some_and(|most| *most >= need.devices)
            }
        }
    }

    /// The same for one that names a number of nodes.
    fn has_nodes(&self, need: &Need, shape: &Shape) -> bool {
        let room = |node: &Node| node.room_up(need.kind, shape.host.as_deref());
        shape.nodes.is_some_and(|nodes| self.nodes.most_nodes(shape, room) >= nodes)
    }

    /// The same for one that asks for amounts of its hosts.
    fn has_with_host(&self, need: &Need, shape: &Shape) -> bool {
        let mut rooms = self.nodes.iter().map(|(_, node)| node.room_up(need.kind, shape.host.as_deref()));
        match shape.level() {
            Level::Any => rooms.sum::<u32>() >= need.devices,
            Level::Node => rooms.any(|room| room >= need.devices),
            _ => self.in_one_place(shape).any(|place| most(&place, need, shape) >= need.devices),
        }
    }

    /// Whether one place has all kinds that a shape needs.
    fn has_beside(&self, shape: &Shape) -> bool {
        let has =
            |place: &Vec<&Node>| shape.needs.iter().all(|need| most(place, need, shape) >= need.devices);
        self.in_one_place(shape).any(|place| has(&place))
    }

    /// The nodes among which a shape must lie, place by place.
    fn in_one_place(&self, shape: &Shape) -> impl Iterator<Item = Vec<&'a Node>> {
        let places = self.nodes.by_domain(shape.level()).into_values();
        places.map(|place| place.into_iter().map(|id| self.nodes.get(id)).collect())
    }
}

/// The most devices of a kind that nodes have for a shape together.
fn most(nodes: &[&Node], need: &Need, shape: &Shape) -> u32 {
    nodes.iter().map(|node| node.room_up(need.kind, shape.host.as_deref())).sum()
}

/// The most devices in service in one domain of a level, by kind.
fn together(nodes: &Nodes, level: Level) -> BTreeMap<KindId, u32> {
    let mut domains: BTreeMap<(KindId, DomainId), u32> = BTreeMap::new();
    for (id, node) in nodes.iter() {
        for kind in node.spec.pools.iter().map(|pool| pool.kind) {
            *domains.entry((kind, nodes.domain(id, level))).or_default() += node.up_count(kind);
        }
    }
    let mut together = BTreeMap::new();
    for ((kind, _), devices) in domains {
        let most = together.entry(kind).or_default();
        *most = devices.max(*most);
    }
    together
}
