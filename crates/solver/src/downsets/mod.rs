//! The exact split of a graph of operators over accelerators and processors, after Tarnawski et al. (NeurIPS 2020): each
//! device gets the difference of two down-closed sets, and the greatest load is minimised.
//!
//!   best\[J\]\[k\]\[c\] = min over I ⊂ J of max(best\[I\]\[k − 1\]\[c\], load(J ∖ I)), and the same with c − 1 for a processor
//!
//! An accelerator's load is the time of its nodes, and a transfer for each own node with an edge that leaves and each
//! foreign node with an edge in; a processor pays no transfers. In training, backward nodes lie where the forward nodes of
//! their class lie. `contract` makes units of nodes that must stay together, `sets` lists the down-closed sets. The cost is
//! the square of their number: where there are too many, chains are merged first, and the result is no longer exact.

mod contract;
mod dynamic;
mod sets;

use thiserror::Error;

use self::contract::Units;
use self::sets::Sets;

/// An operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorNode {
    /// Time on an accelerator; infinite where it cannot run there.
    pub accelerator: f64,
    /// Time on a processor; infinite where it cannot run there.
    pub processor: f64,
    /// Memory on an accelerator.
    pub memory: f64,
    /// Time to bring its result to or from an accelerator.
    pub transfer: f64,
    /// Whether it is of the backward pass.
    pub backward: bool,
    /// Nodes of one class lie together.
    pub class: Option<u64>,
}

/// Operators, and which need which: an edge goes from a node to one that needs its result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorGraph {
    /// The operators.
    pub nodes: Vec<OperatorNode>,
    /// Edges, as places in `nodes`.
    pub edges: Vec<(usize, usize)>,
}

/// What there is to split over, and how much may be tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitLimits {
    /// How many accelerators.
    pub accelerators: usize,
    /// How many processors.
    pub processors: usize,
    /// Memory of an accelerator.
    pub memory: f64,
    /// Most down-closed sets; 20 000 take seconds.
    pub sets: usize,
}

/// What one device gets.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphPart {
    /// Whether it is an accelerator.
    pub on_accelerator: bool,
    /// Its nodes, as places in the graph, in order.
    pub nodes: Vec<usize>,
    /// Its load.
    pub load: f64,
    /// Memory of its nodes.
    pub memory: f64,
}

/// The best split.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphSplit {
    /// The greatest load.
    pub load: f64,
    /// The devices that get something, in order of the graph.
    pub parts: Vec<GraphPart>,
    /// Whether no split is better; else chains were merged first.
    pub is_exact: bool,
    /// How many down-closed sets there are.
    pub sets: usize,
}

/// Why a graph has no split.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SplitError {
    /// An edge of a node that is not there.
    #[error("an edge names node {0}, which is not there")]
    UnknownNode(usize),
    /// Operators that need each other, of which this is one.
    #[error("node {0} needs its own result: the graph has a cycle")]
    Cycle(usize),
    /// A backward node without a forward node of its class.
    #[error("backward node {0} has no forward node of its class")]
    Alone(usize),
    /// More down-closed sets than allowed, also with chains merged.
    #[error("the graph has more than {0} down-closed sets, also with chains merged")]
    TooWide(usize),
    /// Nothing fits.
    #[error("no split fits the memory of the accelerators")]
    NoFit,
}

impl OperatorGraph {
    /// The split with the smallest greatest load.
    pub fn split(&self, limits: &SplitLimits) -> Result<GraphSplit, SplitError> {
        let units = Units::new(self)?;
        let (units, sets, is_exact) = match Sets::new(&units, limits.sets) {
            Some(sets) => (units, sets, true),
            None => {
                let merged = units.with_chains_merged(self);
                let sets = Sets::new(&merged, limits.sets).ok_or(SplitError::TooWide(limits.sets))?;
                (merged, sets, false)
            }
        };
        let (load, parts) = dynamic::solve(self, &units, &sets, limits).ok_or(SplitError::NoFit)?;
        Ok(GraphSplit { load, parts, is_exact, sets: sets.len() })
    }
}
