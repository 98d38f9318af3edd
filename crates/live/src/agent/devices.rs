//! What a node offers: pretend devices where the operator says so, NVIDIA cards where there are any, otherwise
//! processor slots. Devices of one kind are a group; the order of groups and devices is kept over restarts, because
//! leases name them by number.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use yard_core::cluster::NODE_DEVICES_MAX;

use super::cards::{self, CardPlace, Sensor};
use super::device_files::DeviceFiles;
use super::nvml::{NvmlCard, NvmlCards};
use crate::wire::{Device, GroupOnWire};

/// The kind of processor slots.
pub(crate) const CPU: &str = "cpu";

/// Memory of a pretend card.
const FAKE_MEMORY_MIB: u64 = 80 << 10;

/// What the operator wants offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceOffer {
    /// NVIDIA cards where there are any.
    #[default]
    Found,
    /// Pretend devices.
    Fake(FakeDevices),
    /// No cards, though there may be some.
    NoCards,
}

/// Pretend devices, written `h100:8,v100:4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeDevices(pub Vec<(String, u32)>);

impl FromStr for FakeDevices {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<FakeDevices> {
        let mut groups: Vec<(String, u32)> = Vec::new();
        for item in text.split(',') {
            let (kind, count) =
                item.split_once(':').with_context(|| format!("{item:?} is not KIND:COUNT"))?;
            ensure!(is_kind(kind), "{kind:?} is not a kind: use lower-case letters, digits, dots and dashes");
            let count = count.parse().with_context(|| format!("{count:?} is not a number of devices"))?;
            ensure!(
                (1..=NODE_DEVICES_MAX).contains(&count),
                "{item}: a group has 1 to {NODE_DEVICES_MAX} devices"
            );
            if groups.iter().any(|(known, _)| known == kind) {
                bail!("{kind} is given twice");
            }
            groups.push((kind.to_owned(), count));
        }
        Ok(FakeDevices(groups))
    }
}

fn is_kind(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    !text.is_empty() && text.len() <= 64 && text.chars().all(allowed)
}

/// The devices of this node.
#[derive(Debug)]
pub(crate) struct Devices {
    groups: Vec<GroupOnWire>,
    /// What CUDA calls each device; nothing where the group's devices are no cards.
    names: Vec<Vec<String>>,
    cards: Option<NvmlCards>,
    /// Whether they only pretend to be there.
    fake: bool,
}

impl Devices {
    /// Finds what is offered: cards, and processor slots, of which there is one for each core where there are no cards
    /// and nobody says how many. Groups keep the order that `before` had.
    pub(crate) fn find(offer: &DeviceOffer, slots: Option<u32>, before: &[String]) -> Devices {
        let cards = if *offer == DeviceOffer::Found { NvmlCards::open() } else { None };
        let mut devices = match (offer, &cards) {
            (DeviceOffer::Fake(fakes), _) => Devices::fake(fakes),
            (DeviceOffer::Found, Some(cards)) => Devices::of(cards.list()),
            (DeviceOffer::Found | DeviceOffer::NoCards, _) => Devices::none(),
        };
        let least = u32::from(devices.groups.is_empty());
        let slots = slots.unwrap_or(least * cores()).clamp(least, NODE_DEVICES_MAX);
        devices.add_slots(slots);
        devices.order(before);
        Devices { cards, ..devices }
    }

    fn none() -> Devices {
        Devices { groups: Vec::new(), names: Vec::new(), cards: None, fake: false }
    }

    fn fake(FakeDevices(fakes): &FakeDevices) -> Devices {
        let mut devices = Devices { fake: true, ..Devices::none() };
        for (kind, count) in fakes {
            let card = Device { memory_mib: Some(FAKE_MEMORY_MIB), ..device(&format!("pretend {kind}")) };
            devices.add(kind, vec![card; *count as usize]);
            devices.names.push((0..*count).map(|number| number.to_string()).collect());
        }
        devices
    }

    fn add_slots(&mut self, count: u32) {
        if count > 0 {
            self.names.push(Vec::new());
            self.add(CPU, (0..count).map(|_| device("processor slot")).collect());
        }
    }

    fn of(cards: Vec<NvmlCard>) -> Devices {
        let mut kinds: BTreeMap<String, Vec<NvmlCard>> = BTreeMap::new();
        for card in cards {
            kinds.entry(kind(&card.name)).or_default().push(card);
        }
        let mut devices = Devices::none();
        for (kind, mut cards) in kinds {
            cards.truncate(NODE_DEVICES_MAX as usize);
            let numbers = cards.iter().map(|card| card.uuid.clone()).zip(0..).collect();
            devices.names.push(cards.iter().map(|card| card.uuid.clone()).collect());
            devices.add(&kind, cards.into_iter().map(|card| card.device(&numbers)).collect());
        }
        devices
    }

    fn add(&mut self, kind: &str, devices: Vec<Device>) {
        self.groups.push(GroupOnWire { kind: kind.to_owned(), devices });
    }

    /// Known kinds first, in the order known.
    fn order(&mut self, before: &[String]) {
        let place = |kind: &str| before.iter().position(|known| known == kind).unwrap_or(usize::MAX);
        let mut both: Vec<_> = self.groups.drain(..).zip(self.names.drain(..)).collect();
        both.sort_by_key(|(group, _)| place(&group.kind));
        (self.groups, self.names) = both.into_iter().unzip();
    }

    /// What is offered, for `Hello`.
    pub(crate) fn groups(&self) -> &[GroupOnWire] {
        &self.groups
    }

    /// What CUDA calls the devices of a part, or nothing where they are no cards.
    pub(crate) fn visible(&self, held: &[yard_core::part::Held]) -> Vec<String> {
        let names = |group: u32| self.names.get(group as usize).into_iter().flatten().enumerate();
        let of = |held: &yard_core::part::Held| {
            let mask = held.mask;
            names(held.group).filter(move |(bit, _)| mask >> bit & 1 == 1).map(|(_, name)| name.clone())
        };
        held.iter().flat_map(of).collect()
    }

    /// The files of this machine's cards, whether they are offered or not.
    pub(crate) fn files(&self) -> Result<DeviceFiles, String> {
        let mut addresses = Vec::new();
        if let Some(cards) = self.cards {
            for (place, uuid) in self.places() {
                let address =
                    cards.address(uuid).ok_or_else(|| format!("the driver has no number for GPU {uuid}"))?;
                addresses.push((place, address));
            }
        }
        DeviceFiles::find(Path::new("/dev"), Path::new("/sys"), &addresses)
    }

    /// What reads the cards: a sensor for each, so that one that hangs keeps no other from being read; one for all
    /// where they only pretend. `file` is where it is said how pretend cards are doing.
    pub(crate) fn sensors(&self, file: &Path) -> Vec<(Vec<CardPlace>, Box<dyn Sensor>)> {
        if self.fake {
            let name = |(group, number): CardPlace| format!("{}:{number}", self.groups[group as usize].kind);
            let cards: Vec<_> = self.places().map(|(place, _)| (place, name(place))).collect();
            let places = cards.iter().map(|(place, _)| *place).collect();
            return vec![(places, Box::new(cards::Fakes { cards, path: file.to_owned() }))];
        }
        let Some(cards) = self.cards else { return Vec::new() };
        self.places().map(|(place, uuid)| (vec![place], cards.sensor(place, uuid))).collect()
    }

    /// All cards, and what CUDA calls them.
    fn places(&self) -> impl Iterator<Item = (CardPlace, &str)> {
        let groups = self.names.iter().zip(0..);
        groups.flat_map(|(names, group)| {
            names.iter().zip(0..).map(move |(name, at)| ((group, at), name.as_str()))
        })
    }

    /// Notes what is wrong with a device; whether that is news.
    pub(crate) fn set_problem(&mut self, group: u32, device: u32, problem: Option<String>) -> bool {
        let group = self.groups.get_mut(group as usize);
        let Some(device) = group.and_then(|group| group.devices.get_mut(device as usize)) else {
            return false;
        };
        let news = device.problem != problem;
        device.problem = problem;
        news
    }
}

fn device(name: &str) -> Device {
    Device {
        name: name.to_owned(),
        uuid: None,
        memory_mib: None,
        problem: None,
        split: false,
        links: Vec::new(),
    }
}

pub(super) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// The kind of a card, from the name its maker gives it: `NVIDIA A100-SXM4-80GB` is an `a100`.
fn kind(name: &str) -> String {
    let makers = ["nvidia", "tesla", "geforce", "quadro", "graphics", "device", "laptop", "gpu"];
    let lower = name.to_ascii_lowercase();
    let words = lower.split([' ', '-', '_']).filter(|word| !word.is_empty() && !makers.contains(word));
    let mut model = String::new();
    for word in words {
        let number = word.chars().any(|c| c.is_ascii_digit());
        model.extend(word.chars().filter(|c| c.is_ascii_alphanumeric()));
        if number {
            break;
        }
    }
    if model.is_empty() { "gpu".into() } else { model }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;
    use yard_core::part::Held;

    use super::*;

    #[test]
    fn kinds_come_from_the_makers_names() {
        let names = [
            ("NVIDIA H200", "h200"),
            ("NVIDIA H100 80GB HBM3", "h100"),
            ("NVIDIA A100-SXM4-80GB", "a100"),
            ("A100-PCIE-40GB", "a100"),
            ("Tesla V100-SXM2-16GB", "v100"),
            ("Tesla P100-PCIE-16GB", "p100"),
            ("Tesla K80", "k80"),
            ("NVIDIA L40S", "l40s"),
            ("NVIDIA GeForce RTX 4090", "rtx4090"),
            ("NVIDIA RTX A6000", "rtxa6000"),
            ("Quadro RTX 6000", "rtx6000"),
            ("NVIDIA GH200 480GB", "gh200"),
            ("NVIDIA", "gpu"),
        ];
        for (name, expected) in names {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn pretend_devices_are_read_or_refused() {
        let fakes: FakeDevices = "h100:8,v100:4".parse().unwrap();
        let devices = Devices::find(&DeviceOffer::Fake(fakes), None, &[]);
        let sizes: Vec<_> =
            devices.groups().iter().map(|group| (group.kind.as_str(), group.devices.len())).collect();
        assert_eq!(sizes, [("h100", 8), ("v100", 4)]);
        assert_eq!(devices.groups()[0].devices[0].memory_mib, Some(81_920));
        for wrong in ["", "h100", "h100:0", "h100:129", "h100:x", "h100:8,h100:1", "H100:1", "a/b:1"] {
            assert!(wrong.parse::<FakeDevices>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_order_of_groups_is_kept() {
        let fakes = |text: &str| DeviceOffer::Fake(text.parse().unwrap());
        let before = ["v100".to_owned(), "h100".to_owned()];
        let devices = Devices::find(&fakes("a100:1,h100:2,v100:3"), None, &before);
        let kinds: Vec<_> = devices.groups().iter().map(|group| group.kind.as_str()).collect();
        assert_eq!(kinds, ["v100", "h100", "a100"]);
        let held: SmallVec<[Held; 1]> = SmallVec::from_slice(&[Held { group: 0, mask: 0b101 }]);
        assert_eq!(devices.visible(&held), ["0", "2"]);
    }

    #[test]
    fn cards_know_their_links_by_number() {
        let card = |uuid: &str, name: &str, peers: &[(&str, &'static str)]| NvmlCard {
            name: name.into(),
            uuid: uuid.into(),
            memory_mib: Some(1),
            split: uuid == "b",
            peers: peers.iter().map(|(peer, link)| ((*peer).to_owned(), *link)).collect(),
        };
        let cards = vec![
            card("z", "A100", &[("a", "system"), ("b", "system")]),
            card("a", "H200", &[("z", "system"), ("b", "nvlink")]),
            card("b", "H200", &[("z", "system"), ("a", "nvlink")]),
        ];
        let devices = Devices::of(cards);
        let links = |group: usize, at: usize| devices.groups()[group].devices[at].links.clone();
        assert_eq!((links(0, 0), links(1, 0)), (vec![], vec![(1, "nvlink".to_owned())]));
        assert_eq!(links(1, 1), [(0, "nvlink".to_owned())]);
        assert!(devices.groups()[1].devices[1].problem.is_some() && devices.groups()[1].devices[1].split);
    }

    #[test]
    fn processor_slots_lie_beside_cards() {
        let offer = DeviceOffer::Fake("h100:2".parse().unwrap());
        let sizes = |slots| {
            let devices = Devices::find(&offer, slots, &[]);
            devices.groups().iter().map(|group| (group.kind.clone(), group.devices.len())).collect::<Vec<_>>()
        };
        assert_eq!(sizes(None), [("h100".into(), 2)]);
        assert_eq!(sizes(Some(3)), [("h100".into(), 2), (CPU.into(), 3)]);
        assert!(!Devices::find(&DeviceOffer::NoCards, None, &[]).groups()[0].devices.is_empty());
    }

    #[test]
    fn processor_slots_are_no_cards() {
        let mut devices = Devices::find(&DeviceOffer::NoCards, Some(4), &[]);
        assert_eq!(devices.groups()[0].kind, CPU);
        assert_eq!(devices.visible(&[Held { group: 0, mask: 0b11 }]), Vec::<String>::new());
        assert!(devices.sensors(Path::new("/nowhere")).is_empty());
        assert!(devices.set_problem(0, 3, Some("hot".into())));
        assert!(!devices.set_problem(0, 3, Some("hot".into())));
        assert!(!devices.set_problem(0, 4, Some("hot".into())));
    }
}
