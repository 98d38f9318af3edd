//! A replayer for tests that simulates nothing: with twice the devices jobs wait half as long.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use yard_core::Settings;
use yard_core::cluster::{Kinds, NodeSpec};
use yard_core::ids::KindId;
use yard_core::job::Costs;
use yard_core::units::{Span, Time};
use yard_sim::cluster::ClusterSpec;

use super::view::Figures;
use super::{Groups, NODES_MAX, Present, Recorded, ReplayRan, ReplayWatch, Replayer, Scene};
use crate::planner::MakePolicy;
use crate::translate::Blank;

/// What a driver would say at 10 000 s that has two nodes of two devices, and one that is down.
pub(crate) fn present() -> Present {
    let mut kinds = Kinds::default();
    kinds.intern("h100");
    let node = |name: &str, down| {
        let spec = NodeSpec::of(name, KindId(0), 2);
        (name.to_owned(), spec, down)
    };
    Present {
        at: Time::from_secs(10_000.0),
        kinds,
        nodes: vec![node("node-1", false), node("node-2", false), node("old", true)],
        settings: Settings { round: Span::from_whole_secs(60), ..Settings::default() },
        policy: "fifo".into(),
        make: Arc::new(|| yard_policies::make("fifo", Arc::from([])).unwrap().1),
        placer: Arc::new(|| yard_policies::placers::placer("pack").unwrap()),
        catalog: Arc::new(Blank),
        belief: Arc::default(),
        offers: Default::default(),
    }
}

/// How long each job waits on one device, in seconds.
pub(crate) const WAIT_S: f64 = 1_000.0;

pub(crate) struct Still;

impl Replayer for Still {
    fn costs(&self) -> Costs {
        Costs::default()
    }

    fn priorities(&self, spec: &str) -> yard_core::policy::Priorities {
        yard_policies::find(spec).expect("a policy of the table").priority
    }

    fn policy(&self, spec: &str) -> Result<MakePolicy, String> {
        let made = yard_policies::make(spec, Arc::from([]));
        made.map_err(|error| error.to_string())?;
        let spec = spec.to_owned();
        Ok(Arc::new(move || yard_policies::make(&spec, Arc::from([])).unwrap().1))
    }

    fn nodes(&self, spec: &str) -> Result<Vec<(String, u32)>, String> {
        let parsed = ClusterSpec::short(spec, NODES_MAX).map_err(|error| error.to_string())?;
        let pools = parsed.nodes.iter().flat_map(|node| &node.pools);
        Ok(pools.map(|pool| (parsed.kinds.name(pool.kind).to_owned(), pool.devices)).collect())
    }

    fn recorded(&self, jobs: &[Recorded], _: &Scene, groups: &Groups) -> Vec<Figures> {
        let wait = |at: &usize| (jobs[*at].started().unwrap_or_default() - jobs[*at].submit).secs();
        let mean = |group: &Vec<usize>| group.iter().map(wait).sum::<f64>() / group.len() as f64;
        groups.iter().map(|group| figures(group.len(), mean(group))).collect()
    }

    fn run(&self, scene: &Scene, groups: &Groups, _: bool, _: &ReplayWatch) -> Result<ReplayRan, String> {
        let devices: u32 = scene.nodes.iter().map(NodeSpec::devices).sum();
        let figures = groups.iter().map(|group| figures(group.len(), WAIT_S / f64::from(devices)));
        Ok(ReplayRan { figures: figures.collect(), ..ReplayRan::default() })
    }
}

fn figures(jobs: usize, wait_s: f64) -> Figures {
    Figures { jobs, finished: jobs, avg_queue_s: Some(wait_s), ..Figures::default() }
}

/// One that simulates until nobody waits for it.
pub(crate) struct Endless;

impl Replayer for Endless {
    fn costs(&self) -> Costs {
        Still.costs()
    }

    fn policy(&self, spec: &str) -> Result<MakePolicy, String> {
        Still.policy(spec)
    }

    fn priorities(&self, spec: &str) -> yard_core::policy::Priorities {
        Still.priorities(spec)
    }

    fn nodes(&self, spec: &str) -> Result<Vec<(String, u32)>, String> {
        Still.nodes(spec)
    }

    fn recorded(&self, jobs: &[Recorded], scene: &Scene, groups: &Groups) -> Vec<Figures> {
        Still.recorded(jobs, scene, groups)
    }

    fn run(
        &self,
        scene: &Scene,
        groups: &Groups,
        detail: bool,
        watch: &ReplayWatch,
    ) -> Result<ReplayRan, String> {
        watch.done.store(1, Ordering::Relaxed);
        while !watch.is_stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Still.run(scene, groups, detail, watch)
    }
}
