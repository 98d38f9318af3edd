//! The machines that a backend runs jobs on, as it and the driver speak of them.

use std::collections::BTreeMap;

use yard_core::cluster::DomainPath;

use super::abilities::HostAbilities;
pub use crate::wire::{Audience, Device, GroupOnWire};

/// A host by the number that the driver gave it. Numbers are not given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub u32);

impl HostId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A host that wants to be used, for the first time or again.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOffer {
    /// Its name.
    pub name: String,
    /// Where other hosts' ranks reach its ranks.
    pub address: String,
    /// Its devices, one group for each kind.
    pub groups: Vec<GroupOnWire>,
    /// What else is counted there, by name.
    pub resources: BTreeMap<String, u32>,
    /// Where it is, as it says itself.
    pub domains: DomainPath,
    /// What can be done there.
    pub abilities: HostAbilities,
    /// Whose jobs it runs.
    pub audience: Audience,
}

/// Whether a host can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostReach {
    /// It can.
    Here,
    /// It should have said something by now: why it is thought to be out of reach.
    Silent(&'static str),
    /// It cannot, and nothing that it said of itself is sure to hold when it is back.
    Away,
}

/// Devices of so many groups, for tests.
#[cfg(test)]
pub(crate) fn groups(groups: &[(&str, usize)]) -> Vec<GroupOnWire> {
    let device = |at: usize| Device {
        name: format!("d{at}"),
        uuid: None,
        memory_mib: None,
        problem: None,
        split: false,
        links: Vec::new(),
    };
    let group = |(kind, count): &(&str, usize)| GroupOnWire {
        kind: (*kind).to_owned(),
        devices: (0..*count).map(device).collect(),
    };
    groups.iter().map(group).collect()
}
