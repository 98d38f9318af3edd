//! What `count`, `pack` and `spread` have in common: kinds are placed one by one; a gang bound to one
//! node or one domain gets the one that the strategy likes best.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use yard_core::cluster::{Level, Nodes, Placement};
use yard_core::ids::{DomainId, NodeId};
use yard_core::job::{Need, Shape};

use super::evenly;
use super::pool::{PlacerPool, Slices};

/// What a placer prefers.
pub(crate) trait Strategy {
    /// A node with at least `need` devices free.
    fn node(&self, pool: &PlacerPool, need: u32) -> Option<NodeId>;
    /// How bad a domain with so many free devices is; the first of the least is taken.
    fn badness(&self, free: u32) -> u32;
    /// Takes `need` devices from a pool that has as many free.
    fn fill(&self, pool: &PlacerPool, need: u32, out: &mut Slices);
}

/// Free devices for the whole shape.
pub(crate) fn place(strategy: &impl Strategy, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
    let needs = merged(shape);
    if let (Some(_), [need]) = (shape.nodes, &needs[..]) {
        let (choose, badness) =
            (|pool: &PlacerPool, need| strategy.node(pool, need), |free| strategy.badness(free));
        return evenly::place(nodes, shape, need, choose, badness);
    }
    let mut out = Slices::new();
    match (shape.level(), &needs[..]) {
        (_, []) => {}
        (Level::Node, [need]) => {
            let pool = PlacerPool::all(nodes, need.kind, shape);
            out.push(pool.slice(strategy.node(&pool, need.devices)?, need.devices));
        }
        (Level::Node, _) => {
            on_one_node(nodes, shape, &needs, |pool, need| strategy.node(pool, need), &mut out)?;
        }
        (Level::Any, _) => {
            let pools = needs.iter().map(|need| PlacerPool::all(nodes, need.kind, shape)).collect();
            fill(strategy, &pools, &needs, &mut out)?;
        }
        (..) => fill(strategy, &best_domain(strategy, nodes, shape, &needs)?, &needs, &mut out)?,
    }
    Some(Placement(out))
}

/// The needs of a shape, one for each kind, none of them empty.
pub(crate) fn merged(shape: &Shape) -> SmallVec<[Need; 2]> {
    let mut needs: SmallVec<[Need; 2]> = SmallVec::new();
    for need in shape.needs.iter().filter(|need| need.devices > 0) {
        match needs.iter_mut().find(|known| known.kind == need.kind) {
            Some(known) => known.devices = known.devices.saturating_add(need.devices),
            None => needs.push(*need),
        }
    }
    needs
}

/// One pool for each need.
pub(crate) type Pools<'a> = SmallVec<[PlacerPool<'a>; 1]>;

fn fill(strategy: &impl Strategy, pools: &Pools, needs: &[Need], out: &mut Slices) -> Option<()> {
    if !enough(pools, needs) {
        return None;
    }
    for (pool, need) in pools.iter().zip(needs) {
        strategy.fill(pool, need.devices, out);
    }
    Some(())
}

fn enough(pools: &Pools, needs: &[Need]) -> bool {
    pools.iter().zip(needs).all(|(pool, need)| pool.free() >= need.devices)
}

/// Devices of several kinds on one node: the one that is chosen for the first of them, among those with the others.
pub(crate) fn on_one_node(
    nodes: &Nodes,
    shape: &Shape,
    needs: &[Need],
    choose: impl Fn(&PlacerPool, u32) -> Option<NodeId>,
    out: &mut Slices,
) -> Option<()> {
    let room = |node, need: &Need| nodes.room(node, need.kind, shape.host.as_deref());
    let all = PlacerPool::all(nodes, needs[0].kind, shape);
    let able = all.only(|node| needs.iter().all(|need| room(node, need) >= need.devices));
    let node = choose(&able, needs[0].devices)?;
    out.extend(needs.iter().map(|need| PlacerPool::all(nodes, need.kind, shape).slice(node, need.devices)));
    Some(())
}

/// The domains of a level that have free devices of every kind that is needed, in order.
pub(crate) fn domains<'a>(
    nodes: &'a Nodes,
    shape: &Shape,
    needs: &[Need],
    level: Level,
) -> BTreeMap<DomainId, Pools<'a>> {
    let mut domains: BTreeMap<DomainId, Pools> = BTreeMap::new();
    for need in needs {
        for (domain, pool) in PlacerPool::by_domain(nodes, need.kind, shape, level) {
            domains.entry(domain).or_default().push(pool);
        }
    }
    domains.retain(|_, pools| pools.len() == needs.len());
    domains
}

fn best_domain<'a>(
    strategy: &impl Strategy,
    nodes: &'a Nodes,
    shape: &Shape,
    needs: &[Need],
) -> Option<Pools<'a>> {
    let all = domains(nodes, shape, needs, shape.level());
    let able = all.into_values().filter(|pools| enough(pools, needs));
    able.min_by_key(|pools| strategy.badness(pools.iter().map(PlacerPool::free).sum()))
}
