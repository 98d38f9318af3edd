//! How tightly an administrator holds jobs in, and what that comes to for one part.

use std::fs;

use super::freezer::bytes_of;
use crate::wire::Task;

/// Processes and threads that any part may have, and more for each device: data loaders have many.
const PIDS: u64 = 4_096;
const PIDS_PER_DEVICE: u64 = 512;

/// The least that a job gets which does not say how much memory it needs.
const MEMORY_MIN: u64 = 1 << 30;

/// What an administrator says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Most processes and threads of a job on this node; by its devices where nothing is said.
    pub pids_max: Option<u64>,
    /// Memory of a job that does not say how much it needs.
    pub job_memory: JobMemory,
    /// Whether nothing runs here where jobs cannot be kept from each other's devices.
    pub devices_required: bool,
}

/// Memory of a job that does not say how much it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobMemory {
    /// As much of the node's as it has of the node's devices.
    #[default]
    Share,
    /// So many MiB.
    Mib(u64),
    /// As much as there is.
    Unlimited,
}

/// What there is to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeSize {
    /// Its memory in bytes.
    pub(crate) memory: u64,
    /// Its devices, of all kinds.
    pub(crate) devices: u32,
}

impl NodeSize {
    /// This machine, with so many devices.
    pub(crate) fn here(devices: u32) -> NodeSize {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        NodeSize { memory: bytes_of(&meminfo, "MemTotal:").unwrap_or(0), devices }
    }
}

impl Confinement {
    /// How many processes and threads a part with so many devices may have.
    pub(crate) fn pids(&self, devices: u32) -> u64 {
        self.pids_max.unwrap_or(PIDS + PIDS_PER_DEVICE * u64::from(devices))
    }

    /// How much memory a part with so many devices may use, in bytes.
    pub(crate) fn memory(&self, task: &Task, devices: u32, node: NodeSize) -> Option<u64> {
        let share = || {
            let part = u128::from(node.memory) * u128::from(devices) / u128::from(node.devices.max(1));
            (part as u64).max(MEMORY_MIN)
        };
        let mib = |mib: u64| mib.saturating_mul(1 << 20);
        match (task.memory_mib, self.job_memory) {
            (Some(said), _) => Some(mib(said)),
            (None, JobMemory::Share) if task.memory_part_mib.is_some() => {
                task.memory_part_mib.map(|part| mib(part).max(MEMORY_MIN))
            }
            (None, JobMemory::Share) => (node.memory > 0).then(share),
            (None, JobMemory::Mib(default)) => Some(mib(default)),
            (None, JobMemory::Unlimited) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::testing::task;

    #[test]
    fn a_job_that_says_nothing_gets_its_share_of_the_memory() {
        let node = NodeSize { memory: 64 << 30, devices: 8 };
        let (plain, default) = (task(&["true"]), Confinement::default());
        assert_eq!(default.memory(&plain, 2, node), Some(16 << 30));
        assert_eq!(default.memory(&plain, 0, node), Some(1 << 30));
        let said = Task { memory_mib: Some(512), ..plain.clone() };
        assert_eq!(default.memory(&said, 2, node), Some(512 << 20));
        let with = |job_memory| Confinement { job_memory, ..Confinement::default() }.memory(&plain, 2, node);
        assert_eq!((with(JobMemory::Mib(100)), with(JobMemory::Unlimited)), (Some(100 << 20), None));
    }

    #[test]
    fn more_devices_may_have_more_processes() {
        assert_eq!(Confinement::default().pids(0), 4_096);
        assert_eq!(Confinement::default().pids(8), 8_192);
        assert_eq!(Confinement { pids_max: Some(7), ..Confinement::default() }.pids(8), 7);
    }
}
