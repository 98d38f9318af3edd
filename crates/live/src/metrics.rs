//! What can be measured, for Prometheus. The driver records what it does through a handle that is cheap to clone;
//! how many jobs, nodes and devices there are is read off the board when somebody asks. No metric has a label whose
//! values grow with the jobs.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::board::Glance;
use crate::clock::seconds;
use crate::driver::Meter;
use crate::views::DeviceView;

/// The states of jobs that are not over: shown also when there are none, so that a graph has no holes.
const OPEN: [&str; 5] = ["pending", "starting", "running", "suspending", "suspended"];
const NODE_STATES: [&str; 4] = ["up", "draining", "unreachable", "down"];

/// Records. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<MetricsInner>);

#[derive(Debug)]
struct MetricsInner {
    registry: Registry,
    /// One reader at a time: the gauges are counted anew for each.
    reading: Mutex<()>,
    jobs: Family<StateLabels, Gauge>,
    nodes: Family<StateLabels, Gauge>,
    cards: CardGauges,
    idle: Gauge<f64, AtomicU64>,
    set_aside: Gauge,
    wasted: Gauge<f64, AtomicU64>,
    submissions: Counter,
    preemptions: Counter,
    ended: Family<StateLabels, Counter>,
    rounds: Histogram,
    plans: Histogram,
    commits: Histogram,
    requests: Family<RequestLabels, Histogram, fn() -> Histogram>,
}

/// How devices are doing.
#[derive(Debug, Default)]
struct CardGauges {
    devices: Family<UseLabels, Gauge>,
    idle_held: Gauge,
    busy: Family<OfDevice, Gauge<f64, AtomicU64>>,
    memory: Family<OfDevice, Gauge>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    state: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct UseLabels {
    kind: String,
    state: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfDevice {
    node: String,
    device: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    code: u16,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Meter for Metrics {
    fn submitted(&self, jobs: u64) {
        self.0.submissions.inc_by(jobs);
    }

    fn preempted(&self, jobs: u64) {
        self.0.preemptions.inc_by(jobs);
    }

    fn ended(&self, state: &str) {
        self.0.ended.get_or_create(&StateLabels { state: state.to_owned() }).inc();
    }

    fn round(&self, took: Duration) {
        self.0.rounds.observe(took.as_secs_f64());
    }

    fn plan(&self, took: Duration) {
        self.0.plans.observe(took.as_secs_f64());
    }

    fn wasted(&self, time: Duration) {
        self.0.wasted.set(time.as_secs_f64());
    }

    fn commit(&self, took: Duration) {
        self.0.commits.observe(took.as_secs_f64());
    }
}

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Metrics {
        let mut inner = MetricsInner {
            registry: Registry::with_prefix("yard"),
            reading: Mutex::default(),
            jobs: Family::default(),
            nodes: Family::default(),
            cards: CardGauges::default(),
            idle: Gauge::default(),
            set_aside: Gauge::default(),
            wasted: Gauge::default(),
            submissions: Counter::default(),
            preemptions: Counter::default(),
            ended: Family::default(),
            rounds: times(),
            plans: times(),
            commits: times(),
            requests: Family::new_with_constructor(times),
        };
        inner.register();
        Metrics(Arc::new(inner))
    }

    /// A request was answered.
    pub fn request(&self, method: &str, route: &str, code: u16, took: Duration) {
        let request = RequestLabels { method: method.to_owned(), route: route.to_owned(), code };
        self.0.requests.get_or_create(&request).observe(took.as_secs_f64());
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self, board: &Glance, now_us: u64) -> String {
        let _one = self.0.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.read(board, now_us);
        let mut text = String::new();
        encode(&mut text, &self.0.registry).expect("a string takes what is written");
        text
    }
}

impl MetricsInner {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("jobs", "Jobs that are not over", self.jobs.clone());
        registry.register("nodes", "Nodes", self.nodes.clone());
        registry.register("devices", "Devices by kind: held, free or broken", self.cards.devices.clone());
        let help = "Devices that jobs hold and have not used for a while";
        registry.register("devices_idle_held", help, self.cards.idle_held.clone());
        let help = "For so long no device has been held though a job that could run waits";
        registry.register_with_unit("idle_cluster", help, Unit::Seconds, self.wasted.clone());
        let help = "The part of the time in which a device computed of late";
        registry.register("device_busy_ratio", help, self.cards.busy.clone());
        registry.register("device_memory_used_bytes", "Memory of a device in use", self.cards.memory.clone());
        let help = "Since the scheduling loop last went round";
        registry.register("seconds_since_last_cycle", help, self.idle.clone());
        let help = "Inputs that made the scheduler fail and were set aside; see yard repair";
        registry.register("inputs_set_aside", help, self.set_aside.clone());
        registry.register("submissions", "Jobs accepted", self.submissions.clone());
        registry.register("preemptions", "Times a job was stopped for another", self.preemptions.clone());
        registry.register("jobs_ended", "Jobs that are over", self.ended.clone());
        registry.register_with_unit("round", "To decide a round", Unit::Seconds, self.rounds.clone());
        registry.register_with_unit("plan", "For the policy to answer", Unit::Seconds, self.plans.clone());
        registry.register_with_unit(
            "journal_commit",
            "To make inputs durable",
            Unit::Seconds,
            self.commits.clone(),
        );
        registry.register_with_unit("http_request", "To answer", Unit::Seconds, self.requests.clone());
    }

    fn read(&self, board: &Glance, now_us: u64) {
        self.idle.set(seconds(now_us.saturating_sub(board.alive)));
        self.set_aside.set(i64::try_from(board.set_aside).unwrap_or(i64::MAX));
        let open = board.jobs.iter().map(|job| job.state.as_str()).filter(|state| OPEN.contains(state));
        count(&self.jobs, &OPEN, open);
        count(&self.nodes, &NODE_STATES, board.nodes.iter().map(|node| node.state.as_str()));
        self.cards.devices.clear();
        for device in board.nodes.iter().flat_map(|node| &node.devices) {
            let state = use_of(device).to_owned();
            self.cards.devices.get_or_create(&UseLabels { kind: device.kind.clone(), state }).inc();
        }
        self.read_cards(board);
    }

    /// How cards are doing, as far as that is known.
    fn read_cards(&self, board: &Glance) {
        self.cards.busy.clear();
        self.cards.memory.clear();
        let nodes = board.nodes.iter();
        let all = nodes.flat_map(|node| node.devices.iter().map(move |device| (&node.name, device)));
        let mut idle = 0;
        for (node, device) in all {
            let name = format!("{}:{}", device.kind, device.index);
            let of = OfDevice { node: node.clone(), device: name };
            idle += i64::from(!device.jobs.is_empty() && device.idle_jobs.len() == device.jobs.len());
            if let Some(busy) = device.busy {
                self.cards.busy.get_or_create(&of).set(busy);
            }
            if let Some(mib) = device.memory_used_mib {
                self.cards
                    .memory
                    .get_or_create(&of)
                    .set(i64::try_from(mib.saturating_mul(1 << 20)).unwrap_or(i64::MAX));
            }
        }
        self.cards.idle_held.set(idle);
    }
}

fn count<'a>(family: &Family<StateLabels, Gauge>, always: &[&str], states: impl Iterator<Item = &'a str>) {
    family.clear();
    for state in always {
        family.get_or_create(&StateLabels { state: (*state).to_owned() }).set(0);
    }
    for state in states {
        family.get_or_create(&StateLabels { state: state.to_owned() }).inc();
    }
}

fn use_of(device: &DeviceView) -> &'static str {
    match (device.jobs.is_empty(), &device.problem) {
        (false, _) => "held",
        (true, Some(_)) => "broken",
        (true, None) => "free",
    }
}

/// From a tenth of a millisecond to almost two minutes.
fn times() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 2.0, 21))
}
