//! A node: a host, whole, with pools of devices of one or more kinds and what else can be counted of it.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::amounts::{Amounts, HostNeed, ResourceId};
use crate::domains::{DomainPath, Level, Located};
use crate::ids::KindId;
use crate::placement::Mask;

/// Most devices one node may have.
pub const NODE_DEVICES_MAX: u32 = Mask::BITS;

/// Whether a node takes jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeState {
    /// It does.
    Up,
    /// It keeps what it runs and takes nothing new.
    Draining,
    /// It is gone, for now or for good.
    Down,
}

/// Devices of one kind in a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Their kind.
    pub kind: KindId,
    /// How many.
    pub devices: u32,
    /// Memory of each, where it is known.
    pub memory_mib: Option<u32>,
    /// What a job that names no amounts has of the host with each of these devices.
    #[serde(default, skip_serializing_if = "Amounts::is_none")]
    pub part: Amounts,
}

/// What a node brings when it joins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Read")]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Its devices, kind by kind; no kind twice.
    pub pools: SmallVec<[Pool; 1]>,
    /// What there is of the host; nothing where nobody counts it.
    #[serde(skip_serializing_if = "Amounts::is_none")]
    pub host: Amounts,
    /// Where it is.
    #[serde(skip_serializing_if = "DomainPath::is_empty")]
    pub domains: DomainPath,
}

impl NodeSpec {
    /// A node with devices of one kind, of whose host nothing is known.
    pub fn of(name: impl Into<String>, kind: KindId, devices: u32) -> NodeSpec {
        let pool = Pool { kind, devices, memory_mib: None, part: Amounts::NONE };
        NodeSpec::of_pools(name, SmallVec::from_iter([pool]))
    }

    /// A node with these devices, of which nothing else is known.
    pub fn of_pools(name: impl Into<String>, pools: SmallVec<[Pool; 1]>) -> NodeSpec {
        NodeSpec { name: name.into(), pools, host: Amounts::NONE, domains: DomainPath::default() }
    }

    /// The same in a domain of this level.
    pub fn within(self, level: Level, name: &str) -> NodeSpec {
        NodeSpec { domains: self.domains.with(level, name), ..self }
    }

    /// The same with so much memory on each device.
    pub fn with_memory(mut self, memory_mib: Option<u32>) -> NodeSpec {
        self.pools.iter_mut().for_each(|pool| pool.memory_mib = memory_mib);
        self
    }

    /// The same with these amounts. Of the cores and the memory that no pool has taken for its devices, an equal part
    /// belongs to each of the others; what else is counted goes to jobs that ask for it.
    pub fn with_host(mut self, host: Amounts) -> NodeSpec {
        let (mut left, mut devices) = (host, 0);
        for pool in &self.pools {
            left = left.minus(&pool.part.times(pool.devices));
            devices += if pool.part.is_none() { pool.devices } else { 0 };
        }
        let part = left.part_of(devices);
        let shared = [ResourceId::CORES, ResourceId::MEMORY].into_iter();
        let part = shared.fold(Amounts::NONE, |all, resource| all.with(resource, part.get(resource)));
        self.pools.iter_mut().filter(|pool| pool.part.is_none()).for_each(|pool| pool.part = part);
        NodeSpec { host, ..self }
    }

    /// Devices of all kinds.
    pub fn devices(&self) -> u32 {
        self.pools.iter().fold(0, |sum, pool| sum.saturating_add(pool.devices))
    }

    /// The pool of a kind, and the number of its first device.
    pub fn pool(&self, kind: KindId) -> Option<(&Pool, u32)> {
        let mut first = 0;
        for pool in &self.pools {
            if pool.kind == kind {
                return Some((pool, first));
            }
            first += pool.devices;
        }
        None
    }

    /// The kind of a device.
    pub fn kind_of(&self, device: u32) -> Option<KindId> {
        kind_of(&self.pools, device)
    }

    /// Whether it can join: not too many devices, and no kind twice.
    pub(crate) fn is_sound(&self) -> bool {
        let once = |at: usize| self.pools[..at].iter().all(|pool| pool.kind != self.pools[at].kind);
        self.devices() <= NODE_DEVICES_MAX && (0..self.pools.len()).all(once)
    }
}

/// The kind of a device of these pools.
pub fn kind_of(pools: &[Pool], device: u32) -> Option<KindId> {
    let mut end = 0;
    let pool = pools.iter().find(|pool| {
        end += pool.devices;
        device < end
    });
    pool.map(|pool| pool.kind)
}

/// What was saved: nodes as they are, or as they were when they had one kind. Their racks had numbers then, and 0 was that
/// of all whose rack nobody knew.
#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Now {
        name: String,
        pools: SmallVec<[Pool; 1]>,
        #[serde(default)]
        host: Amounts,
        #[serde(default)]
        domains: DomainPath,
        #[serde(default)]
        rack: u32,
    },
    OneKind {
        name: String,
        kind: KindId,
        devices: u32,
        rack: u32,
        memory_mib: Option<u32>,
    },
}

impl From<Read> for NodeSpec {
    fn from(read: Read) -> NodeSpec {
        match read {
            Read::Now { name, pools, host, domains, rack } => {
                in_rack(NodeSpec { name, pools, host, domains }, rack)
            }
            Read::OneKind { name, kind, devices, rack, memory_mib } => {
                in_rack(NodeSpec::of(name, kind, devices).with_memory(memory_mib), rack)
            }
        }
    }
}

/// A node of which a rack's number was saved.
fn in_rack(spec: NodeSpec, rack: u32) -> NodeSpec {
    if rack == 0 { spec } else { spec.within(Level::Rack, &rack.to_string()) }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// What it brought.
    pub spec: NodeSpec,
    /// Whether it takes jobs.
    pub state: NodeState,
    /// Devices promised to nobody.
    pub free: Mask,
    /// Devices held by nobody.
    pub idle: Mask,
    /// Devices out of service: nobody may have them.
    pub bad: Mask,
    /// What of its host is promised, and what is held.
    #[serde(default, skip_serializing_if = "Amounts::is_none")]
    pub(super) promised: Amounts,
    #[serde(default, skip_serializing_if = "Amounts::is_none")]
    pub(super) held: Amounts,
    /// The domains it is in.
    #[serde(default)]
    pub(super) located: Located,
}

impl Node {
    pub(super) fn new(spec: NodeSpec, located: Located) -> Node {
        let all = low_bits(spec.devices());
        let (promised, held) = (Amounts::NONE, Amounts::NONE);
        Node { spec, state: NodeState::Down, free: all, idle: all, bad: 0, promised, held, located }
    }

    /// All its devices.
    pub fn all(&self) -> Mask {
        low_bits(self.spec.devices())
    }

    /// Those of one kind.
    pub fn of_kind(&self, kind: KindId) -> Mask {
        self.spec.pool(kind).map_or(0, |(pool, first)| of_pool(pool, first))
    }

    /// How many devices of a kind a new job could have here.
    pub fn free_count(&self, kind: KindId) -> u32 {
        if self.state == NodeState::Up { (self.takeable() & self.of_kind(kind)).count_ones() } else { 0 }
    }

    /// How many of its devices of a kind are in service, free or not.
    pub fn up_count(&self, kind: KindId) -> u32 {
        if self.state == NodeState::Up { (self.of_kind(kind) & !self.bad).count_ones() } else { 0 }
    }

    /// Devices promised to nobody and in service.
    fn takeable(&self) -> Mask {
        self.free & !self.bad
    }

    /// Its first `count` free devices of a kind.
    pub fn take(&self, kind: KindId, count: u32) -> Mask {
        first_of(self.takeable() & self.of_kind(kind), count)
    }

    /// All its free devices.
    pub(crate) fn take_all(&self) -> Mask {
        if self.state == NodeState::Up { self.takeable() } else { 0 }
    }

    /// What of its host is promised to nobody.
    pub fn host_free(&self) -> Amounts {
        self.spec.host.minus(&self.promised)
    }

    /// What of its host is held by nobody.
    pub fn host_idle(&self) -> Amounts {
        self.spec.host.minus(&self.held)
    }

    /// The most devices of a kind that a new job could have here, its part of the host counted.
    pub fn room(&self, kind: KindId, host: Option<&HostNeed>) -> u32 {
        self.room_in(kind, self.free_count(kind), &self.host_free(), host)
    }

    /// For how many devices of a kind it would do if so many were free, and so much of the host.
    pub(crate) fn room_in(&self, kind: KindId, free: u32, amounts: &Amounts, host: Option<&HostNeed>) -> u32 {
        if free == 0 || self.spec.host.is_none() {
            return free;
        }
        let part = self.spec.pool(kind).map(|(pool, _)| pool.part).unwrap_or_default();
        free.min(within(amounts, &part, host))
    }

    /// What a job has of the host with so many devices of a kind, its `first` ones here or others beside them.
    pub(super) fn charge(&self, kind: KindId, devices: u32, host: Option<&HostNeed>, first: bool) -> Amounts {
        let Some((pool, _)) = self.spec.pool(kind).filter(|_| !self.spec.host.is_none()) else {
            return Amounts::NONE;
        };
        let each = host.map_or(pool.part, |host| host.each(&pool.part));
        each.times(devices).plus(&host.filter(|_| first).map(HostNeed::once).unwrap_or_default())
    }

    /// The most devices of a kind that a job could have here as it is in service, were nothing promised.
    pub(crate) fn room_up(&self, kind: KindId, host: Option<&HostNeed>) -> u32 {
        self.room_in(kind, self.up_count(kind), &self.spec.host, host)
    }

    /// The most devices of a kind that a job could have here, were nothing promised.
    pub(super) fn room_empty(&self, kind: KindId, host: Option<&HostNeed>) -> u32 {
        let devices = self.spec.pool(kind).map_or(0, |(pool, _)| pool.devices);
        self.room_in(kind, devices, &self.spec.host, host)
    }

    /// Whether amounts are so short that free devices cannot all have their part.
    pub(super) fn is_strained(&self) -> bool {
        !self.spec.host.is_none()
            && self.spec.pools.iter().any(|pool| self.room(pool.kind, None) < self.free_count(pool.kind))
    }
}

/// For how many devices these amounts do.
fn within(amounts: &Amounts, part: &Amounts, host: Option<&HostNeed>) -> u32 {
    let (each, once) = host.map_or((*part, Amounts::NONE), |host| (host.each(part), host.once()));
    if !amounts.covers(&once) {
        return 0;
    }
    amounts.minus(&once).holds(&each).unwrap_or(u32::MAX)
}

fn of_pool(pool: &Pool, first: u32) -> Mask {
    low_bits(pool.devices).checked_shl(first).unwrap_or(0)
}

/// The first `count` of these devices.
fn first_of(devices: Mask, count: u32) -> Mask {
    let mut left = devices;
    for _ in 0..count {
        left &= left.wrapping_sub(1);
    }
    devices & !left
}

fn low_bits(count: u32) -> Mask {
    if count >= Mask::BITS { Mask::MAX } else { (1 << count) - 1 }
}
