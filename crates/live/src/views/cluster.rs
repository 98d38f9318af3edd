//! Nodes, devices, and the whole at a glance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::JobView;

/// A node as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// `up, draining, unreachable` or `down`.
    pub state: String,
    /// Why it is in this state, where there is something to say.
    pub reason: Option<String>,
    /// Where ranks meet.
    pub address: String,
    /// Its devices.
    pub devices: Vec<DeviceView>,
    /// What there is of its host beside them, where that is counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceView>,
    /// The domains it is in, by level: `clique`, `rack`, `block`, `zone`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, String>,
    /// Seconds since it was last heard of.
    pub heard_s: Option<f64>,
}

/// Something that is counted of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceView {
    /// Its name: `cores`, `memory` (in MiB), or what the agent calls it.
    pub name: String,
    /// How much there is.
    pub total: f64,
    /// How much of it is reserved for jobs.
    pub reserved: f64,
}

/// A device as people see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeviceView {
    /// Its kind.
    pub kind: String,
    /// Its number among those of its kind.
    pub index: u32,
    /// What it is.
    pub name: String,
    /// Its unique number.
    pub uuid: Option<String>,
    /// Its memory.
    pub memory_mib: Option<u64>,
    /// The jobs that hold it.
    pub jobs: Vec<u64>,
    /// Why it is out of service, where it is.
    pub problem: Option<String>,
    /// The part of the time in which it computed of late, from 0 to 1. This and what follows is not known of a device
    /// that is no card, or whose node cannot be reached.
    #[serde(default)]
    pub busy: Option<f64>,
    /// Memory in use.
    #[serde(default)]
    pub memory_used_mib: Option<u64>,
    /// Degrees Celsius.
    #[serde(default)]
    pub temperature_c: Option<u32>,
    /// Power drawn.
    #[serde(default)]
    pub power_w: Option<f64>,
    /// Why its clocks are held back, where they are.
    #[serde(default)]
    pub throttled: Option<String>,
    /// Memory errors that were corrected, and those that were not, since the driver was loaded.
    #[serde(default)]
    pub ecc: Option<(u64, u64)>,
    /// Whether it is split into instances (MIG), which are not offered.
    #[serde(default)]
    pub split: bool,
    /// How it is linked to other devices of its kind on this node, by their numbers: `nvlink`, `pcie`, `numa` or
    /// `system`.
    #[serde(default)]
    pub links: Vec<(u32, String)>,
    /// Those of its jobs that have not used it for a while.
    #[serde(default)]
    pub idle_jobs: Vec<u64>,
}

/// All nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    /// The nodes.
    pub nodes: Vec<NodeView>,
}

/// The whole at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    /// The program's version.
    pub version: String,
    /// Who decides.
    pub policy: String,
    /// Seconds from one decision to the next.
    pub round_s: f64,
    /// Jobs that wait, by state.
    pub pending: u64,
    /// Jobs that hold devices.
    pub running: u64,
    /// Jobs that are over.
    pub ended: u64,
    /// Nodes that take jobs.
    pub nodes_up: u64,
    /// Devices on them.
    pub devices: u64,
    /// Devices that somebody holds.
    pub devices_held: u64,
    /// What devices cost in the allocation in force, by kind.
    pub prices: std::collections::BTreeMap<String, f64>,
    /// Rounds so far.
    pub rounds: u64,
    /// Plans so far.
    pub plans: u64,
    /// Inputs that made the scheduler fail and were set aside; `yard repair` shows them.
    #[serde(default)]
    pub set_aside: u64,
}

/// What changed on the board, or all that is on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeView {
    /// Its number, for going on later.
    pub revision: u64,
    /// The server's clock: seconds since 1970, UTC.
    pub time: f64,
    /// Whether everything known before is to be forgotten: a look at everything begins. It may go on in further
    /// pieces, which are not whole; the last piece of a revision carries its number as the event's id.
    pub whole: bool,
    /// Jobs that changed, without what was submitted.
    pub jobs: Vec<JobView>,
    /// Nodes that changed.
    pub nodes: Vec<NodeView>,
    /// The whole at a glance.
    pub status: Option<StatusView>,
}
