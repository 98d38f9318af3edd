//! Countable things of a host beside its devices: cores, memory, and whatever else an administrator names, such as
//! scratch space or licences. They are numbers by resource, few enough to be copied like one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Most resources that are counted. With so many a slice of a placement is three quarters of a cache line.
pub const AMOUNTS_MAX: usize = 7;

/// A resource, in the order in which resources were first named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ResourceId(pub u8);

impl ResourceId {
    /// Processor time, in thousandths of a core.
    pub const CORES: ResourceId = ResourceId(0);
    /// Memory of the host, in MiB.
    pub const MEMORY: ResourceId = ResourceId(1);

    /// As a position among amounts.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The resources by name. Every cluster has the first two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resources(Vec<Arc<str>>);

impl Default for Resources {
    fn default() -> Resources {
        Resources(vec!["cores".into(), "memory".into()])
    }
}

impl Resources {
    /// The resource of this name, new if need be; none where there are as many as can be counted.
    pub fn intern(&mut self, name: &str) -> Option<ResourceId> {
        if let Some(known) = self.find(name) {
            return Some(known);
        }
        (self.0.len() < AMOUNTS_MAX).then(|| {
            self.0.push(name.into());
            ResourceId(self.0.len() as u8 - 1)
        })
    }

    /// The resource of this name, if it is known.
    pub fn find(&self, name: &str) -> Option<ResourceId> {
        self.0.iter().position(|known| **known == *name).map(|at| ResourceId(at as u8))
    }

    /// A resource's name; `?` where there is no such.
    pub fn name(&self, resource: ResourceId) -> &str {
        self.0.get(resource.index()).map_or("?", |name| name)
    }

    /// All of them in order, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, &str)> {
        (0..).map(ResourceId).zip(self.0.iter().map(|name| &**name))
    }
}

/// So much of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Vec<u32>", into = "Vec<u32>")]
pub struct Amounts([u32; AMOUNTS_MAX]);

impl From<Vec<u32>> for Amounts {
    fn from(list: Vec<u32>) -> Amounts {
        let mut amounts = Amounts::NONE;
        amounts.0.iter_mut().zip(list).for_each(|(amount, listed)| *amount = listed);
        amounts
    }
}

impl From<Amounts> for Vec<u32> {
    /// Without the zeros at the end.
    fn from(amounts: Amounts) -> Vec<u32> {
        let used = AMOUNTS_MAX - amounts.0.iter().rev().take_while(|amount| **amount == 0).count();
        amounts.0[..used].to_vec()
    }
}

impl Amounts {
    /// Nothing of anything.
    pub const NONE: Amounts = Amounts([0; AMOUNTS_MAX]);

    /// Whether it is nothing of anything.
    pub fn is_none(&self) -> bool {
        *self == Amounts::NONE
    }

    /// How much of one resource.
    pub fn get(&self, resource: ResourceId) -> u32 {
        self.0.get(resource.index()).copied().unwrap_or(0)
    }

    /// The same with so much of one resource.
    pub fn with(mut self, resource: ResourceId, amount: u32) -> Amounts {
        if let Some(known) = self.0.get_mut(resource.index()) {
            *known = amount;
        }
        self
    }

    /// Whether there is at least as much of everything here.
    pub fn covers(&self, other: &Amounts) -> bool {
        self.0.iter().zip(&other.0).all(|(here, there)| here >= there)
    }

    /// Both together.
    pub fn plus(&self, other: &Amounts) -> Amounts {
        self.each(other, u32::saturating_add)
    }

    /// What is left without the other, of nothing less than nothing.
    pub fn minus(&self, other: &Amounts) -> Amounts {
        self.each(other, u32::saturating_sub)
    }

    /// The larger of both, each by itself.
    pub fn at_least(&self, other: &Amounts) -> Amounts {
        self.each(other, Ord::max)
    }

    /// So many times as much.
    pub fn times(&self, count: u32) -> Amounts {
        Amounts(self.0.map(|amount| amount.saturating_mul(count)))
    }

    /// One of so many equal parts; what does not divide is left over.
    pub fn part_of(&self, parts: u32) -> Amounts {
        Amounts(self.0.map(|amount| amount.checked_div(parts).unwrap_or(0)))
    }

    /// How many times the other is in here; nothing where it is no limit.
    pub fn holds(&self, other: &Amounts) -> Option<u32> {
        self.0.iter().zip(&other.0).filter_map(|(here, there)| here.checked_div(*there)).min()
    }

    /// The first resource of which there is less here.
    pub fn short_of(&self, other: &Amounts) -> Option<ResourceId> {
        let short = self.0.iter().zip(&other.0).position(|(here, there)| here < there);
        short.map(|at| ResourceId(at as u8))
    }

    fn each(&self, other: &Amounts, of: impl Fn(u32, u32) -> u32) -> Amounts {
        let mut both = *self;
        both.0.iter_mut().zip(&other.0).for_each(|(here, there)| *here = of(*here, *there));
        both
    }
}

/// What a shape asks of the hosts that its devices are in. Of a resource that it does not name it has what belongs to its
/// devices (`Pool::part`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostNeed {
    /// Resources that are named, as bits.
    named: u8,
    per_device: Amounts,
    per_node: Amounts,
}

impl HostNeed {
    /// The same and so much of a resource for each device.
    pub fn per_device(mut self, resource: ResourceId, amount: u32) -> HostNeed {
        self.named |= 1 << resource.0;
        self.per_device = self.per_device.with(resource, amount);
        self
    }

    /// The same and so much of a resource on each node, however many devices it has there.
    pub fn per_node(mut self, resource: ResourceId, amount: u32) -> HostNeed {
        self.named |= 1 << resource.0;
        self.per_node = self.per_node.with(resource, amount);
        self
    }

    /// What it names, and the least of it on a node.
    pub fn named(&self) -> impl Iterator<Item = (ResourceId, u32)> + '_ {
        let least = |at: usize| self.per_device.0[at].saturating_add(self.per_node.0[at]);
        let named = (0..AMOUNTS_MAX).filter(|at| self.named >> at & 1 == 1);
        named.map(move |at| (ResourceId(at as u8), least(at)))
    }

    /// What it takes for each device whose own part is `part`.
    pub(super) fn each(&self, part: &Amounts) -> Amounts {
        let mut each = self.per_device;
        for (at, amount) in each.0.iter_mut().enumerate() {
            if self.named >> at & 1 == 0 {
                *amount = part.0[at];
            }
        }
        each
    }

    /// What it takes on each node beside that.
    pub(super) fn once(&self) -> Amounts {
        self.per_node
    }
}

/// Something of which no host with free devices has enough for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// What.
    pub resource: ResourceId,
    /// How much the job needs of it on a node.
    pub needed: u32,
    /// The most that is left on a node with free devices.
    pub free: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: ResourceId = ResourceId(2);

    fn amounts(list: &[u32]) -> Amounts {
        Amounts::from(list.to_vec())
    }

    #[test]
    fn resources_have_names_as_long_as_there_is_room() {
        let mut resources = Resources::default();
        assert_eq!((resources.intern("memory"), resources.find("disk")), (Some(ResourceId::MEMORY), None));
        assert_eq!((resources.intern("disk"), resources.intern("disk")), (Some(DISK), Some(DISK)));
        (3..AMOUNTS_MAX).for_each(|at| _ = resources.intern(&at.to_string()));
        assert_eq!(resources.intern("one too many"), None);
    }

    #[test]
    fn amounts_are_compared_resource_by_resource() {
        let (all, some) = (amounts(&[8, 64]), amounts(&[3, 16]));
        assert!(all.covers(&some) && !some.covers(&all));
        assert_eq!((all.holds(&some), some.holds(&all), all.holds(&Amounts::NONE)), (Some(2), Some(0), None));
        assert_eq!(all.minus(&amounts(&[9, 4])), amounts(&[0, 60]));
        assert_eq!(all.short_of(&amounts(&[8, 65])), Some(ResourceId::MEMORY));
        assert_eq!(serde_json::to_string(&all).unwrap(), "[8,64]");
        assert_eq!(serde_json::from_str::<Amounts>("[8,64]").unwrap(), all);
    }

    #[test]
    fn what_is_not_named_comes_with_the_devices() {
        let need = HostNeed::default().per_device(ResourceId::CORES, 4).per_node(DISK, 100);
        assert_eq!(
            (need.each(&amounts(&[2, 16, 7])), need.once()),
            (amounts(&[4, 16]), amounts(&[0, 0, 100]))
        );
    }
}
