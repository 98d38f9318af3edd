//! The machines, and what is free of them. Two truths are kept per device: `free` (promised to nobody) decides
//! placements; `idle` (held by nobody) decides when a promise can be granted. They differ while a stopped job writes its
//! checkpoint on devices that are already promised to the next. Cores, memory and other amounts of a host are accounted
//! for in the same two ways. Whether something fits is asked of `Nodes` and of nobody else.

mod kinds;
mod node;
mod nodes;
mod piece;

pub use self::kinds::{KINDS_MAX, Kinds};
pub use self::node::{NODE_DEVICES_MAX, Node, NodeSpec, NodeState, Pool, kind_of};
pub use self::nodes::Nodes;
pub use self::piece::Piece;
pub use crate::amounts::{AMOUNTS_MAX, Amounts, HostNeed, ResourceId, Resources, Shortage};
pub use crate::domains::{DomainPath, Level};
pub use crate::placement::{Mask, Placement, Slice};
