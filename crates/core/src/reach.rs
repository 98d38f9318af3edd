//! What nodes in service could hold, were all their devices free and nothing of their hosts given out: by counting, and for
//! shapes whose devices must lie together, or that ask for amounts of hosts, node by node.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::cluster::{Node, Nodes};
use crate::ids::KindId;
use crate::job::{Need, Shape, Spread};

/// What nodes that are up could hold.
pub struct Reach<'a> {
    nodes: &'a Nodes,
    /// Counted where it is asked for: mostly all nodes are up, or devices may lie anywhere.
    together: OnceCell<Together>,
}

impl<'a> Reach<'a> {
    /// Of these nodes.
    pub fn of(nodes: &'a Nodes) -> Reach<'a> {
        Reach { nodes, together: OnceCell::new() }
    }

    /// Whether they have the devices for a shape in service, as close as it must have them.
    pub fn holds(&self, shape: &Shape) -> bool {
        let beside = shape.needs.len() == 1 || shape.spread == Spread::Any;
        shape.needs.iter().all(|need| self.has(need, shape)) && (beside || self.has_beside(shape))
    }

    fn has(&self, need: &Need, shape: &Shape) -> bool {
        let whole = self.nodes.up(need.kind) == self.nodes.total(need.kind);
        match shape.spread {
            _ if shape.host.is_some() => self.has_with_host(need, shape),
            Spread::Any => self.nodes.up(need.kind) >= need.devices,
            Spread::Node if whole => self.nodes.largest(need.kind) >= need.devices,
            Spread::Node | Spread::Rack => {
                let together = self.together.get_or_init(|| Together::of(self.nodes));
                together.most(need.kind, shape.spread) >= need.devices
            }
        }
    }

    /// The same for one that asks for amounts of its hosts.
    fn has_with_host(&self, need: &Need, shape: &Shape) -> bool {
        let mut rooms = self.nodes.iter().map(|(_, node)| node.room_up(need.kind, shape.host.as_deref()));
        match shape.spread {
            Spread::Any => rooms.sum::<u32>() >= need.devices,
            Spread::Node => rooms.any(|room| room >= need.devices),
            Spread::Rack => self.in_one_place(shape).any(|place| most(&place, need, shape) >= need.devices),
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
        let mut places: BTreeMap<u32, Vec<&Node>> = BTreeMap::new();
        for (id, node) in self.nodes.iter() {
            let place = match shape.spread {
                Spread::Any => 0,
                Spread::Rack => node.spec.rack,
                Spread::Node => id.0,
            };
            places.entry(place).or_default().push(node);
        }
        places.into_values()
    }
}

/// The most devices of a kind that nodes have for a shape together.
fn most(nodes: &[&Node], need: &Need, shape: &Shape) -> u32 {
    nodes.iter().map(|node| node.room_up(need.kind, shape.host.as_deref())).sum()
}

/// The most devices in service that lie together, by kind: on a node, and under each rack's switch.
#[derive(Default)]
struct Together {
    on_node: BTreeMap<KindId, u32>,
    in_rack: BTreeMap<(KindId, u32), u32>,
}

impl Together {
    fn of(nodes: &Nodes) -> Together {
        let mut together = Together::default();
        nodes.iter().for_each(|(_, node)| together.add(node));
        together
    }

    fn add(&mut self, node: &Node) {
        for kind in node.spec.pools.iter().map(|pool| pool.kind) {
            let devices = node.up_count(kind);
            let most = self.on_node.entry(kind).or_default();
            *most = devices.max(*most);
            *self.in_rack.entry((kind, node.spec.rack)).or_default() += devices;
        }
    }

    fn most(&self, kind: KindId, spread: Spread) -> u32 {
        match spread {
            Spread::Node => self.on_node.get(&kind).copied().unwrap_or(0),
            Spread::Rack | Spread::Any => {
                let racks = self.in_rack.range((kind, 0)..=(kind, u32::MAX));
                racks.map(|(_, devices)| *devices).max().unwrap_or(0)
            }
        }
    }
}
