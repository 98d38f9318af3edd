//! Where a lease lies: exact devices, and what it has of their hosts.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::amounts::Amounts;
use crate::ids::NodeId;

/// A set of devices of one node, bit by bit: first those of its first pool.
pub type Mask = u128;

/// Some devices of one kind of one node, and what comes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// The node.
    pub node: NodeId,
    /// Which of its devices.
    pub mask: Mask,
    /// How much of its host.
    #[serde(default, skip_serializing_if = "Amounts::is_none")]
    pub host: Amounts,
}

impl Slice {
    /// Devices alone. What they have of the host is worked out by `Nodes::furnish`.
    pub fn of(node: NodeId, mask: Mask) -> Slice {
        Slice { node, mask, host: Amounts::NONE }
    }

    /// How many devices.
    pub fn devices(&self) -> u32 {
        self.mask.count_ones()
    }
}

/// The exact devices of a lease.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement(pub SmallVec<[Slice; 1]>);

/// As a whole: slice by slice takes several times as long.
impl Clone for Placement {
    fn clone(&self) -> Placement {
        Placement(SmallVec::from_slice(&self.0))
    }
}

impl Placement {
    /// How many devices.
    pub fn devices(&self) -> u32 {
        self.0.iter().map(Slice::devices).sum()
    }

    /// Whether it is on more nodes than one.
    pub fn spans_nodes(&self) -> bool {
        self.0.iter().any(|slice| slice.node != self.0[0].node)
    }

    /// What it has of the host of a node.
    pub fn host_on(&self, node: NodeId) -> Amounts {
        let here = self.0.iter().filter(|slice| slice.node == node);
        here.fold(Amounts::NONE, |sum, slice| sum.plus(&slice.host))
    }
}
