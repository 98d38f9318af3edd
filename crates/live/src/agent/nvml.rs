//! NVIDIA cards, through the driver's own library, which is loaded at run time: where there is no driver, there are
//! no cards. What a card cannot tell is left out; only one that is lost does not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{
    EccCounter, MemoryError, Sampling, TemperatureSensor, TopologyLevel,
};
use nvml_wrapper::enums::device::{SampleValue, UsedGpuMemory};
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::NVML_FI_DEV_REMAPPED_PENDING;
use nvml_wrapper::{Device as Handle, EventSet, Nvml};

use super::cards::{CardPlace, OfJob, Reading, SPLIT, Sensor, job_of};
use super::device_files::CardAddress;
use crate::wire::Device;

/// More links than any card has.
const NVLINKS_MAX: u32 = 36;

/// How cards may be linked, nearest first.
const NEAREST: [&str; 4] = ["nvlink", "pcie", "numa", "system"];

/// Events taken at one look.
const EVENTS_MAX: usize = 64;

/// The library. It is loaded once and stays: threads that hang in the driver may still be using it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NvmlCards(&'static Nvml);

/// A card.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NvmlCard {
    /// Its maker's name for it.
    pub(crate) name: String,
    /// Its unique number, which CUDA knows too.
    pub(crate) uuid: String,
    /// Its memory.
    pub(crate) memory_mib: Option<u64>,
    /// Whether it is split into instances.
    pub(crate) split: bool,
    /// How it is linked to others, by their unique numbers.
    pub(crate) peers: Vec<(String, &'static str)>,
}

impl NvmlCards {
    /// The library, where it is there and has cards.
    pub(crate) fn open() -> Option<NvmlCards> {
        let nvml = Nvml::init().inspect_err(|error| tracing::debug!(%error, "no NVIDIA driver")).ok()?;
        let has_cards = nvml.device_count().is_ok_and(|count| count > 0);
        has_cards.then(|| NvmlCards(Box::leak(Box::new(nvml))))
    }

    /// All cards that answer, in the driver's order.
    pub(crate) fn list(&self) -> Vec<NvmlCard> {
        let count = self.0.device_count().unwrap_or(0);
        (0..count).filter_map(|index| self.card(index, count)).collect()
    }

    fn card(&self, index: u32, count: u32) -> Option<NvmlCard> {
        let handle = self.0.device_by_index(index).ok()?;
        let memory_mib = handle.memory_info().ok().map(|memory| memory.total >> 20);
        let others = (0..count).filter(|other| *other != index);
        let peers = others.filter_map(|other| link(&handle, self.0.device_by_index(other).ok()?)).collect();
        let (name, uuid, split) = (handle.name().ok()?, handle.uuid().ok()?, is_split(&handle));
        Some(NvmlCard { name, uuid, memory_mib, split, peers })
    }

    /// Where a card is, for its files.
    pub(crate) fn address(&self, uuid: &str) -> Option<CardAddress> {
        let handle = self.0.device_by_uuid(uuid).ok()?;
        Some(CardAddress {
            minor: handle.minor_number().ok()?,
            pci: bus_name(&handle.pci_info().ok()?.bus_id),
        })
    }

    /// What reads one of them.
    pub(crate) fn sensor(&self, place: CardPlace, uuid: &str) -> Box<dyn Sensor> {
        let uuid = uuid.to_owned();
        Box::new(OneCard { nvml: self.0, place, uuid, handle: None, events: None, card_at: 0, jobs_at: 0 })
    }
}

/// A place on the bus as the kernel writes it: the driver's domain has more digits.
fn bus_name(driver: &str) -> String {
    let (domain, rest) = driver.split_once(':').unwrap_or(("0", driver));
    let domain = u32::from_str_radix(domain, 16).unwrap_or(0);
    format!("{domain:04x}:{}", rest.to_ascii_lowercase())
}

fn is_split(handle: &Handle<'_>) -> bool {
    handle.mig_mode().is_ok_and(|mode| mode.current == 1)
}

/// The other card's unique number, and how the two are linked.
fn link(one: &Handle<'static>, other: Handle<'static>) -> Option<(String, &'static str)> {
    let (uuid, mine, theirs) = (other.uuid().ok()?, nvlinks(one), nvlinks(&other));
    let (here, there) = (one.pci_info().ok()?.bus_id, other.pci_info().ok()?.bus_id);
    // Cards that have a switch in common do not name each other.
    if mine.contains(&there) || theirs.contains(&here) || !mine.is_disjoint(&theirs) {
        return Some((uuid, "nvlink"));
    }
    Some((uuid, distance(one.topology_common_ancestor(other).ok()?)))
}

/// What is at the other ends of a card's NVLinks.
fn nvlinks(handle: &Handle<'_>) -> BTreeSet<String> {
    let links = (0..NVLINKS_MAX).map(|number| handle.link_wrapper_for(number));
    let active = links.filter(|link| link.is_active().unwrap_or(false));
    active.filter_map(|link| Some(link.remote_pci_info().ok()?.bus_id)).collect()
}

fn distance(level: TopologyLevel) -> &'static str {
    match level {
        TopologyLevel::Internal | TopologyLevel::Single | TopologyLevel::Multiple => "pcie",
        TopologyLevel::HostBridge | TopologyLevel::Node => "numa",
        TopologyLevel::System => "system",
    }
}

impl NvmlCard {
    /// As the server is told of it; `numbers` are those of the cards of its group.
    pub(crate) fn device(self, numbers: &BTreeMap<String, u32>) -> Device {
        let number = |(uuid, link): &(String, &str)| Some((*numbers.get(uuid)?, (*link).to_owned()));
        let mut links: Vec<_> = self.peers.iter().filter_map(number).collect();
        links.sort_by_key(|(_, link)| NEAREST.iter().position(|known| known == link));
        Device {
            links,
            name: self.name,
            uuid: Some(self.uuid),
            memory_mib: self.memory_mib,
            problem: self.split.then(|| SPLIT.to_owned()),
            split: self.split,
        }
    }
}

/// Reads one card.
struct OneCard {
    nvml: &'static Nvml,
    place: CardPlace,
    uuid: String,
    /// The card, while it answers. It is not looked up each time: that touches other cards, which may hang.
    handle: Option<Handle<'static>>,
    /// Where the driver reports critical errors; made at the first look.
    events: Option<EventSet<'static>>,
    /// The newest sample taken in of the card, and of its processes.
    card_at: u64,
    jobs_at: u64,
}

impl Sensor for OneCard {
    fn read(&mut self) -> BTreeMap<CardPlace, Reading> {
        self.look().map(|reading| (self.place, reading)).into_iter().collect()
    }
}

impl OneCard {
    /// How it is doing; nothing where it is lost.
    fn look(&mut self) -> Option<Reading> {
        let found = || self.nvml.device_by_uuid(self.uuid.as_str()).ok();
        let handle = self.handle.take().or_else(found)?;
        let memory = handle.memory_info();
        if matches!(memory, Err(NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::Unknown)) {
            return None;
        }
        let mut reading = Reading {
            busy: self.busy(&handle),
            memory_used_mib: memory.ok().map(|memory| memory.used >> 20),
            temperature_c: handle.temperature(TemperatureSensor::Gpu).ok(),
            power_w: handle.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1000.0),
            throttled: handle.current_throttle_reasons().ok().and_then(throttled),
            ecc: ecc(&handle),
            xids: self.xids(&handle),
            remap_pending: remap_pending(&handle),
            split: is_split(&handle),
            ..Reading::default()
        };
        self.processes(&handle, &mut reading);
        self.handle = Some(handle);
        Some(reading)
    }

    /// The mean of what the driver sampled since the last look.
    fn busy(&mut self, handle: &Handle<'static>) -> Option<f64> {
        let samples = handle.samples(Sampling::GpuUtilization, self.card_at).unwrap_or_default();
        let values: Vec<f64> = samples.iter().filter_map(|sample| percent(&sample.value)).collect();
        self.card_at = samples.iter().map(|sample| sample.timestamp).max().unwrap_or(self.card_at);
        if values.is_empty() {
            return handle.utilization_rates().ok().map(|rates| f64::from(rates.gpu) / 100.0);
        }
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    fn xids(&mut self, handle: &Handle<'static>) -> Vec<u64> {
        if self.events.is_none() {
            let set = self.nvml.create_event_set().ok();
            self.events =
                set.and_then(|set| handle.register_events(EventTypes::CRITICAL_XID_ERROR, set).ok());
        }
        let Some(events) = &self.events else { return Vec::new() };
        let next = || events.wait(0).ok();
        let all = std::iter::from_fn(next).take(EVENTS_MAX);
        all.filter_map(
            |event| if let Some(XidError::Value(xid)) = event.event_data { Some(xid) } else { None },
        )
        .collect()
    }

    /// What processes do, by the jobs they are of.
    fn processes(&mut self, handle: &Handle<'static>, reading: &mut Reading) {
        let busy = self.busy_processes(handle);
        for (process, Process { memory_mib, plain }) in processes(handle) {
            let Some(job) = job_of(Path::new("/proc"), process) else {
                reading.others_mib += memory_mib;
                continue;
            };
            let OfJob { busy: sum, memory_mib: total } = reading.jobs.entry(job).or_default();
            *total += memory_mib;
            // Only those that did something are listed, and clients of MPS never are.
            let nothing = busy.as_ref().filter(|_| plain).map(|_| 0.0);
            if let Some(busy) = busy.as_ref().and_then(|busy| busy.get(&process).copied()).or(nothing) {
                *sum = Some(sum.unwrap_or(0.0) + busy);
            }
        }
    }

    /// How busy each process kept the card since the last look, where the driver can say.
    fn busy_processes(&mut self, handle: &Handle<'static>) -> Option<BTreeMap<u32, f64>> {
        let samples = match handle.process_utilization_stats(self.jobs_at) {
            Ok(samples) => samples,
            Err(NvmlError::NotFound) => Vec::new(), // Nobody did anything.
            Err(_) => return None,
        };
        self.jobs_at = samples.iter().map(|sample| sample.timestamp).max().unwrap_or(self.jobs_at);
        let mut all: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for sample in samples.iter().filter(|sample| sample.sm_util <= 100) {
            all.entry(sample.pid).or_default().push(f64::from(sample.sm_util) / 100.0);
        }
        let mean = |busy: Vec<f64>| busy.iter().sum::<f64>() / busy.len() as f64;
        Some(all.into_iter().map(|(process, busy)| (process, mean(busy))).collect())
    }
}

/// A process on a card.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    memory_mib: u64,
    /// Whether it is known to use the card by itself, rather than through MPS.
    plain: bool,
}

fn processes(handle: &Handle<'_>) -> BTreeMap<u32, Process> {
    let under_mps = handle.mps_running_compute_processes();
    let can_tell = under_mps.is_ok();
    let plain = handle.running_compute_processes().unwrap_or_default().into_iter();
    let plain = plain.map(|process| (process, can_tell));
    let under_mps = under_mps.unwrap_or_default().into_iter().map(|process| (process, false));
    let mut all: BTreeMap<u32, Process> = BTreeMap::new();
    for (process, plain) in plain.chain(under_mps) {
        let memory_mib = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => bytes >> 20,
            UsedGpuMemory::Unavailable => 0,
        };
        // Who is in both lists is a client of MPS.
        let known = all.entry(process.pid).or_insert(Process { memory_mib, plain });
        *known = Process { memory_mib: memory_mib.max(known.memory_mib), plain: plain && known.plain };
    }
    all
}

fn percent(value: &SampleValue) -> Option<f64> {
    let value = match value {
        SampleValue::F64(value) => *value,
        SampleValue::U32(value) => f64::from(*value),
        SampleValue::U64(value) => *value as f64,
        SampleValue::I64(value) => *value as f64,
    };
    (0.0..=100.0).contains(&value).then_some(value / 100.0)
}

fn ecc(handle: &Handle<'_>) -> Option<(u64, u64)> {
    let count = |kind| handle.total_ecc_errors(kind, EccCounter::Volatile).ok();
    Some((count(MemoryError::Corrected)?, count(MemoryError::Uncorrected)?))
}

fn remap_pending(handle: &Handle<'_>) -> bool {
    let fields = handle.field_values_for(&[FieldId(NVML_FI_DEV_REMAPPED_PENDING)]).unwrap_or_default();
    let value = fields.into_iter().next().and_then(Result::ok).and_then(|field| field.value.ok());
    value.is_some_and(|value| matches!(value, SampleValue::U32(1..) | SampleValue::U64(1..)))
}

/// Why clocks are held back, where that is a matter of heat or of power that does not come; what an operator set is not.
fn throttled(reasons: ThrottleReasons) -> Option<String> {
    let words = [
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, "overheating"),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, "too hot"),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "the power supply is overloaded"),
    ];
    let found: Vec<_> =
        words.iter().filter(|(flag, _)| reasons.contains(*flag)).map(|(_, word)| *word).collect();
    match found.as_slice() {
        [] if reasons.contains(ThrottleReasons::HW_SLOWDOWN) => Some("thermal or power limit".into()),
        [] => None,
        found => Some(found.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_heat_and_power_hold_a_card_back() {
        let idle = ThrottleReasons::GPU_IDLE | ThrottleReasons::SW_POWER_CAP;
        assert_eq!(throttled(ThrottleReasons::NONE), None);
        assert_eq!(throttled(idle | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING), None);
        assert_eq!(throttled(idle | ThrottleReasons::HW_SLOWDOWN).as_deref(), Some("thermal or power limit"));
        let hot = ThrottleReasons::HW_SLOWDOWN | ThrottleReasons::SW_THERMAL_SLOWDOWN;
        assert_eq!(throttled(hot).as_deref(), Some("too hot"));
        let brake = hot | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN;
        assert_eq!(throttled(brake).as_deref(), Some("too hot, the power supply is overloaded"));
    }

    #[test]
    fn the_kernel_finds_a_card_by_its_place_on_the_bus() {
        assert_eq!(bus_name("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(bus_name("00010001:00:00.0"), "10001:00:00.0");
    }

    #[test]
    fn a_card_is_told_with_its_links_and_out_of_service_if_split() {
        let numbers = ["GPU-a", "GPU-b", "GPU-c"].iter().map(|uuid| (*uuid).to_owned()).zip(0..).collect();
        let peers = [("GPU-b", "numa"), ("GPU-of-another-kind", "pcie"), ("GPU-c", "nvlink")];
        let peers = peers.iter().map(|(uuid, link)| ((*uuid).to_owned(), *link)).collect();
        let card =
            NvmlCard { name: "H200".into(), uuid: "GPU-a".into(), memory_mib: Some(9), split: false, peers };
        let device = card.clone().device(&numbers);
        assert_eq!(
            (device.links, device.problem),
            (vec![(2, "nvlink".to_owned()), (1, "numa".to_owned())], None)
        );
        let split = NvmlCard { split: true, ..card }.device(&numbers);
        assert!(split.split && split.problem.unwrap().contains("MIG"));
    }
}
