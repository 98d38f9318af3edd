//! Where a model of unlike layers may run: devices of one kind, or of a mix.

use anyhow::bail;
use yard_planner::Accelerator;
use yard_planner::chain::{ChainMachine, ChainNode};
use yard_planner::search::MEMORY_FILLED;

use crate::cmd::shapes::kinds::ShapeKinds;

/// Devices of one or several kinds, on one node or several.
pub(super) struct ChainGang {
    /// As `a100-80`, or `a100-80*2+v100-32*2`.
    pub(super) kind: String,
    pub(super) devices: u32,
    pub(super) apart: bool,
    pub(super) machine: ChainMachine,
    pub(super) kinds: Vec<Accelerator>,
}

impl ChainGang {
    /// `node` or `any`.
    pub(super) fn spread(&self) -> &'static str {
        if self.apart { "any" } else { "node" }
    }

    /// How many of which kinds a stage has.
    pub(super) fn seated(&self, seats: &[u32]) -> Vec<String> {
        let of_kind = |kind: usize| -> u32 {
            let own = seats.iter().zip(&self.machine.nodes).filter(|(_, node)| node.kind == kind);
            own.map(|(seats, _)| seats).sum()
        };
        let counts = (0..self.kinds.len()).map(|kind| (of_kind(kind), &self.kinds[kind].name));
        counts.filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect()
    }
}

/// 1, 2, 4 … devices of a node, half and half on two, and whole nodes.
pub(super) fn gangs_of(kind: &Accelerator, most: u32) -> Vec<ChainGang> {
    let within =
        (0..31).map(|power| 1u32 << power).take_while(|count| *count < kind.per_node).chain([kind.per_node]);
    let within: Vec<u32> = within.filter(|count| *count <= most).collect();
    let whole = (2..).map(|nodes| nodes * kind.per_node).take_while(|count| *count <= most);
    let gang = |nodes: Vec<u32>, apart| ChainGang {
        kind: kind.name.clone(),
        devices: nodes.iter().sum(),
        apart,
        machine: machine(
            &nodes.iter().map(|devices| (0, *devices)).collect::<Vec<_>>(),
            std::slice::from_ref(kind),
        ),
        kinds: vec![kind.clone()],
    };
    let together = within.iter().map(|count| gang(vec![*count], false));
    let halves =
        within.iter().filter(|count| **count > 1).map(|count| gang(vec![count - count / 2, count / 2], true));
    let nodes = whole.map(|count| gang(vec![kind.per_node; (count / kind.per_node) as usize], true));
    together.chain(halves).chain(nodes).collect()
}

/// `a100-80*2+v100-32*2`: each kind on nodes of its own.
pub(super) fn mixed(text: &str, known: &ShapeKinds) -> anyhow::Result<ChainGang> {
    let (mut kinds, mut nodes) = (Vec::new(), Vec::new());
    for part in text.split('+') {
        let count = part.split_once('*').and_then(|(kind, count)| Some((kind, count.parse::<u32>().ok()?)));
        let Some((name, mut left)) = count.filter(|(_, count)| (1..=1024).contains(count)) else {
            bail!("--kinds {text}: {part:?} is not part of a mix; write KIND*COUNT+KIND*COUNT");
        };
        let kind = known.find(name)?;
        while left > 0 {
            nodes.push((kinds.len(), left.min(kind.per_node)));
            left -= left.min(kind.per_node);
        }
        kinds.push(kind);
    }
    let devices = nodes.iter().map(|(_, devices)| devices).sum();
    Ok(ChainGang { kind: text.to_owned(), devices, apart: true, machine: machine(&nodes, &kinds), kinds })
}

/// A node's way out is that of all its devices; the narrowest counts for all.
fn machine(nodes: &[(usize, u32)], kinds: &[Accelerator]) -> ChainMachine {
    let nic = |(kind, devices): &(usize, u32)| kinds[*kind].outward() * f64::from(*devices);
    ChainMachine {
        nic: nodes.iter().map(nic).fold(f64::INFINITY, f64::min),
        link: kinds.iter().map(Accelerator::inward).fold(f64::INFINITY, f64::min),
        nodes: nodes.iter().map(|(kind, devices)| ChainNode { kind: *kind, devices: *devices }).collect(),
        memory: kinds.iter().map(|kind| kind.memory * MEMORY_FILLED).collect(),
    }
}
