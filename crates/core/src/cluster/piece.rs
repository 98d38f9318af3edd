//! Devices of a node by how many they are, where it does not matter which.

use serde::{Deserialize, Serialize};

use crate::amounts::Amounts;
use crate::ids::{KindId, NodeId};

/// So many devices of a kind on a node, and what comes with them of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "SavedPiece")]
pub struct Piece {
    /// The node.
    pub node: NodeId,
    /// The kind.
    pub kind: KindId,
    /// How many devices.
    pub count: u32,
    /// How much of the host.
    #[serde(skip_serializing_if = "Amounts::is_none")]
    pub host: Amounts,
}

/// What was saved: a piece as it is, or as it was when a node had one kind.
#[derive(Deserialize)]
#[serde(untagged)]
enum SavedPiece {
    OfKind {
        node: NodeId,
        kind: KindId,
        count: u32,
        #[serde(default)]
        host: Amounts,
    },
    OfNode(NodeId, u32),
}

impl From<SavedPiece> for Piece {
    fn from(saved: SavedPiece) -> Piece {
        match saved {
            SavedPiece::OfKind { node, kind, count, host } => Piece { node, kind, count, host },
            // The kind is that of the node, which is not known here: `State::upgraded` fills it in.
            SavedPiece::OfNode(node, count) => {
                Piece { node, kind: KindId::default(), count, host: Amounts::NONE }
            }
        }
    }
}
