//! Which devices are spoken for, node by node and over time. A job that was promised devices was promised them on certain
//! nodes: then nobody ever has to move for another, and what fits when it is promised fits for ever. Which devices of a
//! node does not matter, only how many.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{Ask, Grid, Stretch, Timeline, Way, satisfy};
use crate::cluster::{Amounts, HostNeed, Level, Node, NodeState, Nodes, Piece, Placement};
use crate::ids::{DomainId, JobIdx, KindId, NodeId};
use crate::job::{JobSpec, Need, Shape};
use crate::units::Time;

/// Where a job is, or will be: which devices of a node does not matter, only how many.
pub type Spot = SmallVec<[Piece; 1]>;

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
pub fn spot_of(nodes: &Nodes, placement: &Placement) -> Spot {
    let piece = |node, kind, count, host| Piece { node, kind, count, host };
    let mut spot: Spot = placement
        .0
        .iter()
        .filter_map(|slice| {
            let kind = nodes.get(slice.node).spec.kind_of(slice.mask.trailing_zeros())?;
            Some(piece(slice.node, kind, slice.devices(), slice.host))
        })
        .collect();
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
    kind: KindId,
    count: u32,
    host: Amounts,
    /// Whether it is of a plan, and not in anybody's hands yet.
    planned: bool,
}

impl Ground {
    /// Speaks for devices that are in somebody's hands until an instant.
    pub fn hold(&mut self, owner: Option<JobIdx>, spot: &Spot, until: Time) {
        self.claim(owner, spot, (Time::ZERO, until), false);
    }

    /// Speaks for what a plan has.
    pub fn claim_plan(&mut self, owner: Option<JobIdx>, plan: &Plan) {
        for (stretch, spot) in plan.iter().filter(|(stretch, _)| stretch.from < stretch.until) {
            self.claim(owner, spot, (stretch.from, stretch.until), true);
        }
    }

    fn claim(&mut self, owner: Option<JobIdx>, spot: &Spot, (from, until): (Time, Time), planned: bool) {
        for Piece { node, kind, count, host } in spot.iter().copied() {
            let claim = Claim { owner, from, until, kind, count, host, planned };
            self.0.entry(node).or_default().push(claim);
        }
    }

    /// Gives up what these jobs had.
    pub fn drop_all(&mut self, owners: &[JobIdx]) {
        let stays = |claim: &Claim| claim.owner.is_none_or(|owner| !owners.contains(&owner));
        self.0.values_mut().for_each(|claims| claims.retain(stays));
    }

    /// The claims on a node between two instants, but for those of these jobs: what begins and what ends, by time. At one
    /// instant what ends makes room for what begins.
    fn changes<'a>(
        &'a self,
        node: NodeId,
        (from, until): (Time, Time),
        but: &[JobIdx],
    ) -> Vec<(Time, bool, &'a Claim)> {
        let counts = |claim: &&Claim| {
            claim.from < until && from < claim.until && claim.owner.is_none_or(|owner| !but.contains(&owner))
        };
        let claims = self.0.get(&node).into_iter().flatten().filter(counts);
        let both = |claim: &'a Claim| [(claim.from.max(from), true, claim), (claim.until, false, claim)];
        let mut changes: Vec<_> = claims.flat_map(both).collect();
        changes.sort_by_key(|(time, begins, _)| (*time, *begins));
        changes
    }

    /// The most devices of a kind, and the most of each amount, that are spoken for at once.
    fn peak(&self, node: NodeId, kind: KindId, span: (Time, Time), but: &[JobIdx]) -> (u32, Amounts) {
        let (mut now, mut most) = ((0, Amounts::NONE), (0, Amounts::NONE));
        for (_, begins, claim) in self.changes(node, span, but) {
            let count = if claim.kind == kind { claim.count } else { 0 };
            now = match begins {
                true => (now.0 + count, now.1.plus(&claim.host)),
                false => (now.0 - count, now.1.minus(&claim.host)),
            };
            most = (most.0.max(now.0), most.1.at_least(&now.1));
        }
        most
    }

    /// Devices of a kind that a job could have on a node from one instant to another.
    fn free(
        &self,
        (id, node): (NodeId, &Node),
        kind: KindId,
        host: Option<&HostNeed>,
        span: (Time, Time),
    ) -> u32 {
        let (devices, amounts) = self.peak(id, kind, span, &[]);
        let left = node.up_count(kind).saturating_sub(devices);
        node.room_in(kind, left, &node.spec.host.minus(&amounts), host)
    }

    /// The nodes of a spot that have too little for it from one instant to another.
    pub fn lacking(
        &self,
        nodes: &Nodes,
        spot: &Spot,
        span: (Time, Time),
        but: &[JobIdx],
    ) -> SmallVec<[NodeId; 4]> {
        let lacks = |piece: &&Piece| {
            let node = nodes.get(piece.node);
            let (devices, amounts) = self.peak(piece.node, piece.kind, span, but);
            let enough = node.spec.host.minus(&amounts).covers(&host_on(spot, piece.node));
            node.up_count(piece.kind).saturating_sub(devices) < piece.count || !enough
        };
        let mut lacking: SmallVec<[NodeId; 4]> = spot.iter().filter(lacks).map(|piece| piece.node).collect();
        // Pieces of one node lie side by side.
        lacking.dedup();
        lacking
    }

    /// Whether nowhere more is spoken for than there is from an instant on, and nothing by plans on nodes that take no
    /// jobs.
    pub fn is_sound(&self, nodes: &Nodes, from: Time) -> bool {
        self.0.iter().all(|(id, claims)| {
            let node = nodes.get(*id);
            let holds = |kind| {
                let (devices, amounts) = self.peak(*id, kind, (from, Time::NEVER), &[]);
                devices <= node.up_count(kind) && node.spec.host.covers(&amounts)
            };
            let mut open = claims.iter().filter(|claim| claim.until > from);
            match node.state {
                NodeState::Up => node.spec.pools.iter().all(|pool| holds(pool.kind)),
                NodeState::Draining | NodeState::Down => open.all(|claim| !claim.planned),
            }
        })
    }

    /// A place for a shape from one instant to another; what is left over is as little as may be.
    pub fn find(&self, nodes: &Nodes, shape: &Shape, from: Time, until: Time) -> Option<Spot> {
        if shape.nodes.is_some() || (shape.level() != Level::Any && shape.needs.len() > 1) {
            return None;
        }
        let mut spot = Spot::new();
        for need in &shape.needs {
            spot.extend(self.find_for(nodes, need, shape, (from, until))?);
        }
        spot.sort_unstable();
        // Each need was looked at by itself; on one node they also share what its host has.
        let fits = shape.needs.len() == 1 || self.lacking(nodes, &spot, (from, until), &[]).is_empty();
        fits.then_some(spot)
    }

    fn find_for(&self, nodes: &Nodes, need: &Need, shape: &Shape, span: (Time, Time)) -> Option<Spot> {
        let host = shape.host.as_deref();
        let of_kind = nodes.iter().filter(|(_, node)| node.up_count(need.kind) > 0);
        let mut free: Vec<(u32, NodeId)> =
            of_kind.map(|(id, node)| (self.free((id, node), need.kind, host, span), id)).collect();
        free.retain(|(count, _)| *count > 0);
        let piece = |count, node| nodes.piece(node, need.kind, count, host);
        if let Some((_, id)) = free.iter().filter(|(count, _)| *count >= need.devices).min() {
            return Some(Spot::from_iter([piece(need.devices, *id)]));
        }
        free.sort_unstable_by(|a, b| b.cmp(a));
        let taken = match shape.level() {
            Level::Node => None,
            Level::Any => gather(&free, need.devices),
            level => {
                let domain = |id: NodeId| nodes.domain(id, level);
                let domains: BTreeSet<DomainId> = free.iter().map(|(_, id)| domain(*id)).collect();
                domains.into_iter().find_map(|one| {
                    let within: Vec<_> = free.iter().copied().filter(|(_, id)| domain(*id) == one).collect();
                    gather(&within, need.devices)
                })
            }
        };
        Some(taken?.into_iter().map(|(count, id)| piece(count, id)).collect())
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
        let claims = |id: &NodeId| self.0.get(id).map_or(0, Vec::len);
        let mut tried: Vec<(usize, NodeId, KindId)> = Vec::new();
        for (id, node) in nodes.iter() {
            for kind in node.spec.pools.iter().map(|pool| pool.kind).filter(|kind| node.up_count(*kind) > 0) {
                if claims(&id) > 0 || alike.insert((kind, node.up_count(kind), node.spec.host)) {
                    tried.push((claims(&id), id, kind));
                }
            }
        }
        tried.sort_unstable();
        let plans = tried.into_iter().take(NODES_MAX);
        let plans = plans.filter_map(|(_, id, kind)| self.on_node((nodes, id, kind), spec, ask, grid));
        plans.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, plan)| plan)
    }

    /// The cheapest plan on devices of one kind of one node, and what it costs.
    fn on_node(
        &self,
        (nodes, id, kind): (&Nodes, NodeId, KindId),
        spec: &JobSpec,
        ask: &Ask,
        grid: &Grid,
    ) -> Option<(f64, Plan)> {
        let ask = only_on(ask, spec, nodes.get(id), kind);
        let stretches = satisfy(&ask, &self.line(nodes, id, kind, grid), grid)?;
        let spot = |stretch: &Stretch| {
            let shape = &spec.shapes[stretch.shape as usize];
            Spot::from_iter([nodes.piece(id, kind, shape.devices(), shape.host.as_deref())])
        };
        let spots: Vec<Spot> = stretches.iter().map(spot).collect();
        // The line counts devices; whether the host has room as well is seen here.
        let has_room = |(stretch, spot): (&Stretch, &Spot)| {
            self.lacking(nodes, spot, (stretch.from, stretch.until), &[]).is_empty()
        };
        let counted = !nodes.get(id).spec.host.is_none();
        let fits = !counted || stretches.iter().zip(&spots).all(has_room);
        fits.then(|| (ask.cost(&stretches), Plan { stretches, spots }))
    }

    /// What is free of one kind on one node, over time.
    fn line(&self, nodes: &Nodes, id: NodeId, kind: KindId, grid: &Grid) -> Timeline {
        let mut line = Timeline::new(grid.now, &[nodes.get(id).up_count(kind)]);
        for claim in self.0.get(&id).into_iter().flatten().filter(|claim| claim.kind == kind) {
            line.take(&[(0, claim.count)], claim.from, grid.after(claim.until));
        }
        line
    }
}

/// What a spot has of the host of a node.
pub(crate) fn host_on(spot: &Spot, node: NodeId) -> Amounts {
    let here = spot.iter().filter(|piece| piece.node == node);
    here.fold(Amounts::NONE, |sum, piece| sum.plus(&piece.host))
}

/// So many devices of the first of these.
fn gather(free: &[(u32, NodeId)], mut devices: u32) -> Option<SmallVec<[(u32, NodeId); 4]>> {
    let mut taken = SmallVec::new();
    for (count, id) in free {
        let some = devices.min(*count);
        if some > 0 {
            taken.push((some, *id));
        }
        devices -= some;
    }
    (devices == 0).then_some(taken)
}

/// The same job, of the shapes that fit on one node.
fn only_on(ask: &Ask, spec: &JobSpec, node: &Node, kind: KindId) -> Ask {
    let fits = |way: &&Way| {
        let needs = &spec.shapes[way.shape as usize].needs;
        needs.len() == 1 && needs[0].kind == kind && needs[0].devices <= node.up_count(kind)
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
            nodes.add(NodeSpec::of("n", KindId(0), *devices));
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
                let shape = Shape::of(KindId(0), devices).within(if anywhere { Level::Any } else { Level::Node });
                let span = from as usize..(from + long) as usize;
                let free = |at: usize| [4, 2, 4][at] - span.clone().map(|second| used[at][second]).max().unwrap_or(0);
                let found = ground.find(&nodes, &shape, Time(from), Time(from + long));
                let fits = if anywhere { (0..3).map(free).sum::<u32>() >= devices } else { (0..3).any(|at| free(at) >= devices) };
                prop_assert_eq!(found.is_some(), fits);
                let Some(spot) = found else { continue };
                let stretch = Stretch { from: Time(from), until: Time(from + long), shape: 0 };
                for piece in &spot {
                    span.clone().for_each(|second| used[piece.node.index()][second] += piece.count);
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
        let piece = Piece { node: NodeId(0), kind: KindId(0), count: 2, host: Amounts::NONE };
        let spot = Spot::from_slice(&[piece]);
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
