//! What there is to see, kept by the driver for whoever looks: reading it never waits for a decision.

use std::collections::BTreeMap;

use crate::changes::Changes;
use crate::views::{JobView, NodeView, StatusView};

/// The read model.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// Jobs that are not over, and those that ended since the start, up to a limit; older ones are in the history.
    pub jobs: BTreeMap<u64, JobView>,
    /// All nodes by name.
    pub nodes: BTreeMap<String, NodeView>,
    /// The whole at a glance.
    pub status: Option<StatusView>,
    /// When the driver's loop last went round: microseconds since 1970.
    pub alive: u64,
    /// What of it changed of late.
    pub changes: Changes,
}
