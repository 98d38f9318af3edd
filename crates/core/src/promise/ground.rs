//! Which devices are spoken for, node by node and over time. A job that was promised devices was promised them on certain
//! nodes: then nobody ever has to move for another, and what fits when it is promised fits for ever. Which devices of a
//! node does not matter, only how many.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{Ask, Grid, Stretch, Timeline, Way, satisfy};
use crate::cluster::{Node, NodeState, Nodes, Placement};
use crate::ids::{JobIdx, NodeId};
use crate::job::{JobSpec, Need, Shape, Spread};
use crate::units::Time;

/// So many devices of these nodes.
pub type Spot = SmallVec<[(NodeId, u32); 1]>;

/// Most nodes on which one job is tried by itself.
const NODES_MAX: usize = 64;

/// A plan: stretches of time, and where each of them is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// When, in which shape.
    pub stretches: Vec<Stretch>,
    /// Where, one for each.
    pub spots: Vec<Spot>,
}

impl Plan {
    /// What is left of it: as many stretches, the last ones, where they were.
    pub fn keep(&mut self, stretches: Vec<Stretch>) {
        self.spots.drain(..self.spots.len().saturating_sub(stretches.len()));
        self.stretches = stretches;
    }

    /// Each stretch, and where it is.
    pub fn iter(&self) -> impl Iterator<Item = (&Stretch, &Spot)> {
        self.stretches.iter().zip(&self.spots)
    }
}

/// How many devices of which nodes a placement has.
pub fn spot_of(placement: &Placement) -> Spot {
    let mut spot: Spot = placement.0.iter().map(|slice| (slice.node, slice.mask.count_ones())).collect();
    spot.sort_unstable();
    spot
}

/// What is spoken for.
#[derive(Clone, Debug, Default)]
pub struct Ground(BTreeMap<NodeId, Vec<Claim>>);

#[derive(Clone, Copy, Debug)]
struct Claim {
    owner: Option<JobIdx>,
    from: Time,
    until: Time,
    count: u32,
    /// Whether it is of a plan, and not in anybody's hands yet.
    planned: bool,
}

impl Ground {
    /// Speaks for devices that are in somebody's hands until an instant.
    pub fn hold(&mut self, owner: Option<JobIdx>, spot: &Spot, until: Time) {
        for (node, count) in spot {
            let claim = Claim { owner, from: Time::ZERO, until, count: *count, planned: false };
            self.0.entry(*node).or_default().push(claim);
        }
    }

    /// Speaks for what a plan has.
    pub fn claim_plan(&mut self, owner: Option<JobIdx>, plan: &Plan) {
        for (stretch, spot) in plan.iter().filter(|(stretch, _)| stretch.from < stretch.until) {
            let Stretch { from, until, .. } = *stretch;
            for (node, count) in spot {
                let claim = Claim { owner, from, until, count: *count, planned: true };
                self.0.entry(*node).or_default().push(claim);
            }
        }
    }

    /// Gives up what these jobs had.
    pub fn drop_all(&mut self, owners: &[JobIdx]) {
        let stays = |claim: &Claim| claim.owner.is_none_or(|owner| !owners.contains(&owner));
        self.0.values_mut().for_each(|claims| claims.retain(stays));
    }

    /// The most that is spoken for at once from one instant to another, but for what these jobs have.
    fn peak(&self, node: NodeId, from: Time, until: Time, but: &[JobIdx]) -> u32 {
        let counts = |claim: &&Claim| {
            claim.from < until && from < claim.until && claim.owner.is_none_or(|owner| !but.contains(&owner))
        };
        let claims = self.0.get(&node).into_iter().flatten().filter(counts);
        // At one instant what ends makes room for what begins.
        let mut changes: Vec<(Time, bool, u32)> = claims
            .flat_map(|claim| [(claim.from.max(from), true, claim.count), (claim.until, false, claim.count)])
            .collect();
        changes.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, begins, count) in changes {
            now = if begins { now + count } else { now - count };
            most = most.max(now);
        }
        most
    }

    /// Devices of a node that nobody else has from one instant to another.
    fn free(&self, node: (NodeId, &Node), from: Time, until: Time, but: &[JobIdx]) -> u32 {
        node.1.up_count().saturating_sub(self.peak(node.0, from, until, but))
    }

    /// The nodes of a spot that have too little for it from one instant to another.
    pub fn lacking(
        &self,
        nodes: &Nodes,
        spot: &Spot,
        (from, until): (Time, Time),
        but: &[JobIdx],
    ) -> SmallVec<[NodeId; 4]> {
        let lacks =
            |(id, count): &&(NodeId, u32)| self.free((*id, nodes.get(*id)), from, until, but) < *count;
        spot.iter().filter(lacks).map(|(id, _)| *id).collect()
    }

    /// Whether nowhere more is spoken for than there is from an instant on, and nothing by plans on nodes that take no
    /// jobs.
    pub fn is_sound(&self, nodes: &Nodes, from: Time) -> bool {
        self.0.iter().all(|(id, claims)| {
            let node = nodes.get(*id);
            let mut open = claims.iter().filter(|claim| claim.until > from);
            match node.state {
                NodeState::Up => self.peak(*id, from, Time::NEVER, &[]) <= node.up_count(),
                NodeState::Draining | NodeState::Down => open.all(|claim| !claim.planned),
            }
        })
    }

    /// A place for a shape from one instant to another; what is left over is as little as may be.
    pub fn find(&self, nodes: &Nodes, shape: &Shape, from: Time, until: Time) -> Option<Spot> {
        if shape.spread == Spread::Rack && shape.needs.len() > 1 {
            return None;
        }
        let mut spot = Spot::new();
        for need in &shape.needs {
            spot.extend(self.find_for(nodes, need, shape.spread, (from, until))?);
        }
        spot.sort_unstable();
        Some(spot)
    }

    fn find_for(
        &self,
        nodes: &Nodes,
        need: &Need,
        spread: Spread,
        (from, until): (Time, Time),
    ) -> Option<Spot> {
        let of_kind = nodes.iter().filter(|(_, node)| node.spec.kind == need.kind && node.up_count() > 0);
        let mut free: Vec<(u32, NodeId)> =
            of_kind.map(|(id, node)| (self.free((id, node), from, until, &[]), id)).collect();
        free.retain(|(count, _)| *count > 0);
        if let Some((_, id)) = free.iter().filter(|(count, _)| *count >= need.devices).min() {
            return Some(Spot::from_slice(&[(*id, need.devices)]));
        }
        free.sort_unstable_by(|a, b| b.cmp(a));
        match spread {
            Spread::Node => None,
            Spread::Any => gather(&free, need.devices),
            Spread::Rack => {
                let rack = |id: NodeId| nodes.get(id).spec.rack;
                let racks: BTreeSet<u32> = free.iter().map(|(_, id)| rack(*id)).collect();
                racks.into_iter().find_map(|one| {
                    let within: Vec<_> = free.iter().copied().filter(|(_, id)| rack(*id) == one).collect();
                    gather(&within, need.devices)
                })
            }
        }
    }

    /// Where these stretches of one job could be.
    pub fn place(&self, nodes: &Nodes, shapes: &[Shape], stretches: &[Stretch]) -> Option<Vec<Spot>> {
        let one = |stretch: &Stretch| {
            self.find(nodes, &shapes[stretch.shape as usize], stretch.from, stretch.until)
        };
        stretches.iter().map(one).collect()
    }

    /// The cheapest plan for a job that stays on one node all the time. Nodes of which nobody has anything are alike.
    pub fn on_one_node(&self, nodes: &Nodes, spec: &JobSpec, ask: &Ask, grid: &Grid) -> Option<Plan> {
        let mut alike = BTreeSet::new();
        let up = nodes.iter().filter(|(_, node)| node.up_count() > 0);
        let claims = |id: &NodeId| self.0.get(id).map_or(0, Vec::len);
        let mut tried: Vec<(usize, NodeId)> = up
            .filter(|(id, node)| claims(id) > 0 || alike.insert((node.spec.kind, node.up_count())))
            .map(|(id, _)| (claims(&id), id))
            .collect();
        tried.sort_unstable();
        let plans = tried.into_iter().take(NODES_MAX).filter_map(|(_, id)| {
            let ask = on_node(ask, spec, nodes.get(id));
            let stretches = satisfy(&ask, &self.line(nodes, id, grid), grid)?;
            let devices = |stretch: &Stretch| spec.shapes[stretch.shape as usize].devices();
            let spots = stretches.iter().map(|stretch| Spot::from_slice(&[(id, devices(stretch))])).collect();
            Some((ask.cost(&stretches), Plan { stretches, spots }))
        });
        plans.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, plan)| plan)
    }

    /// What is free of one node, over time.
    fn line(&self, nodes: &Nodes, id: NodeId, grid: &Grid) -> Timeline {
        let mut line = Timeline::new(grid.now, &[nodes.get(id).up_count()]);
        for claim in self.0.get(&id).into_iter().flatten() {
            line.take(&[(0, claim.count)], claim.from, grid.after(claim.until));
        }
        line
    }
}

/// So many devices of the first of these.
fn gather(free: &[(u32, NodeId)], mut devices: u32) -> Option<Spot> {
    let mut spot = Spot::new();
    for (count, id) in free {
        let taken = devices.min(*count);
        if taken > 0 {
            spot.push((*id, taken));
        }
        devices -= taken;
    }
    (devices == 0).then_some(spot)
}

/// The same job, of the shapes that fit on one node.
fn on_node(ask: &Ask, spec: &JobSpec, node: &Node) -> Ask {
    let fits = |way: &&Way| {
        let needs = &spec.shapes[way.shape as usize].needs;
        needs.len() == 1 && needs[0].kind == node.spec.kind && needs[0].devices <= node.up_count()
    };
    let one = |way: &Way| Way { takes: SmallVec::from_slice(&[(0, way.devices)]), ..way.clone() };
    Ask { ways: ask.ways.iter().filter(fits).map(one).collect(), ..ask.clone() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cluster::NodeSpec;
    use crate::ids::KindId;

    fn nodes(devices: &[u32]) -> Nodes {
        let mut nodes = Nodes::default();
        for devices in devices {
            nodes.add(NodeSpec {
                name: "n".into(),
                kind: KindId(0),
                devices: *devices,
                rack: 0,
                memory_mib: None,
            });
        }
        nodes
    }

    proptest! {
        /// What is found is free at every instant, and nothing is missed that one node has.
        #[test]
        fn what_is_found_is_free(
            asked in prop::collection::vec((1u32..6, 0u64..20, 1u64..10, any::<bool>()), 1..25),
        ) {
            let nodes = nodes(&[4, 2, 4]);
            let mut ground = Ground::default();
            let mut used = [[0u32; 40]; 3];
            for (devices, from, long, anywhere) in asked {
                let spread = if anywhere { Spread::Any } else { Spread::Node };
                let shape = Shape { needs: vec![Need { kind: KindId(0), devices }], spread, batch_size: None };
                let span = from as usize..(from + long) as usize;
                let free = |at: usize| [4, 2, 4][at] - span.clone().map(|second| used[at][second]).max().unwrap_or(0);
                let found = ground.find(&nodes, &shape, Time(from), Time(from + long));
                let fits = if anywhere { (0..3).map(free).sum::<u32>() >= devices } else { (0..3).any(|at| free(at) >= devices) };
                prop_assert_eq!(found.is_some(), fits);
                let Some(spot) = found else { continue };
                let stretch = Stretch { from: Time(from), until: Time(from + long), shape: 0 };
                for (node, count) in &spot {
                    span.clone().for_each(|second| used[node.index()][second] += *count);
                }
                ground.claim_plan(None, &Plan { stretches: vec![stretch], spots: vec![spot] });
                prop_assert!(ground.is_sound(&nodes, Time::ZERO));
            }
        }
    }

    #[test]
    fn too_much_is_seen_and_so_is_a_plan_where_no_job_may_go() {
        let mut nodes = nodes(&[2]);
        let mut ground = Ground::default();
        let spot = Spot::from_slice(&[(NodeId(0), 2)]);
        ground.hold(Some(JobIdx(0)), &spot, Time(10));
        let later = Plan {
            stretches: vec![Stretch { from: Time(10), until: Time(20), shape: 0 }],
            spots: vec![spot.clone()],
        };
        ground.claim_plan(Some(JobIdx(1)), &later);
        assert!(ground.is_sound(&nodes, Time::ZERO));
        assert_eq!(ground.lacking(&nodes, &spot, (Time(5), Time(8)), &[])[..], [NodeId(0)]);
        assert!(ground.lacking(&nodes, &spot, (Time(5), Time(10)), &[JobIdx(0)]).is_empty());
        nodes.set_state(NodeId(0), NodeState::Draining);
        assert!(!ground.is_sound(&nodes, Time::ZERO) && ground.is_sound(&nodes, Time(20)));
        nodes.set_state(NodeId(0), NodeState::Up);
        ground.hold(None, &spot, Time(11));
        assert!(!ground.is_sound(&nodes, Time::ZERO));
    }
}
