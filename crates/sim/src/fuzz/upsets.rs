//! What a live cluster adds to a trace and its faults: jobs that wait for a time or may not be stopped, failures
//! after which a job is held back, devices that go out of service, kinds that are named late, and drivers that
//! begin anew, with other settings.

use yard_core::cluster::Mask;
use yard_core::ids::NodeId;
use yard_core::job::JobSpec;
use yard_core::message::{Input, NodeChange};
use yard_core::{Settings, Span, Time};

use crate::cluster::ClusterSpec;
use crate::random::Random;

/// What one seed has in store. Nothing of it keeps a job out for good.
#[derive(Clone, Debug)]
pub(super) struct Upsets {
    pub(super) backoff: Span,
    /// When drivers begin, and what decides the settings they bring.
    pub(super) begins: Vec<(Time, Random)>,
}

impl Upsets {
    /// Also binds some of the jobs, and says what happens to nodes and kinds.
    pub(super) fn new(
        seed: u64,
        cluster: &ClusterSpec,
        jobs: &mut [(Time, JobSpec)],
    ) -> (Upsets, Vec<(Time, Input)>) {
        let mut random = Random::new(seed ^ 0x0011_fec1);
        bind(&mut random, jobs);
        let backoff =
            if random.chance(0.5) { Span::from_secs(1.0 + random.unit() * 100.0) } else { Span::ZERO };
        let mut script = health(&mut random, cluster);
        if random.chance(0.3) {
            let name = format!("kind{}", random.below(5));
            script.push((instant(&mut random), Input::Kind(name)));
        }
        let begins = (0..random.below(4)).map(|_| (instant(&mut random), Random::new(random.below(1 << 32))));
        (Upsets { backoff, begins: begins.collect() }, script)
    }

    /// Nothing that happens to drivers.
    pub(super) fn calm_down(&mut self) {
        self.begins.clear();
    }

    /// The drivers that begin, each with settings of its own.
    pub(super) fn begins(&self, settings: &Settings) -> Vec<(Time, Input)> {
        let begin = |random: &Random| Input::Begin(Box::new(changed(&mut random.clone(), settings)));
        self.begins.iter().map(|(time, random)| (*time, begin(random))).collect()
    }
}

fn instant(random: &mut Random) -> Time {
    Time::from_secs((random.unit() * 4_000.0).floor())
}

/// Some jobs may not be stopped for others, some may not start at once.
fn bind(random: &mut Random, jobs: &mut [(Time, JobSpec)]) {
    let (bound, late) = (*random.pick(&[0.0, 0.1, 0.4]), *random.pick(&[0.0, 0.2]));
    for (submitted, spec) in jobs {
        spec.pausable = !random.chance(bound);
        let after = Span::from_secs((random.unit() * 3_000.0).floor());
        spec.not_before = random.chance(late).then(|| *submitted + after);
    }
}

/// Devices go out of service and come back.
fn health(random: &mut Random, cluster: &ClusterSpec) -> Vec<(Time, Input)> {
    let mut script = Vec::new();
    for _ in 0..random.below(5) {
        let node = NodeId(random.below(cluster.nodes.len() as u64) as u32);
        let change = |bad: Mask| Input::Node(NodeChange::Health { node, bad });
        let from = instant(random);
        script.push((from, change(random.below(256).into())));
        script.push((from + Span::from_secs(random.unit() * 1_000.0), change(0)));
    }
    // The last word on each node is that it is well.
    let well = |node| Input::Node(NodeChange::Health { node: NodeId(node as u32), bad: 0 });
    script.extend((0..cluster.nodes.len()).map(|node| (Time::from_secs(5_000.0), well(node))));
    script
}

/// Settings as another configuration might have them. Rounds do not get shorter, nor do they come or go: some
/// policies need them, and plans would be too long in coming.
fn changed(random: &mut Random, settings: &Settings) -> Settings {
    let longer = Span::from_secs(settings.round.secs() * (1.0 + random.unit()));
    let lease = *random.pick(&[Span::from_whole_secs(100), Span::from_whole_secs(1_000), Span(u64::MAX)]);
    Settings {
        round: if random.chance(0.5) { longer } else { settings.round },
        fill: random.chance(0.5),
        turns: if random.chance(0.5) { super::turns(random) } else { settings.turns },
        backoff: Span::from_secs(random.unit() * 20.0),
        lease,
        ..settings.clone()
    }
}
