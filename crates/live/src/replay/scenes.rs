//! What is to be simulated: the cluster, the settings and the policy as they are, with a change.

use std::collections::BTreeMap;

use yard_core::Settings;
use yard_core::cluster::{Kinds, NodeSpec, Nodes};
use yard_core::job::JobSpec;
use yard_core::policy::{Cadence, Priorities};
use yard_core::units::{Span, Time};

use super::jobs::ReplaySite;
use super::past::ReplayPast;
use super::{NODES_MAX, Present, ReplayChange, Replayer, Scene, SceneJob, invalid};
use crate::handle::Refusal;
use crate::planner::MakePolicy;
use crate::translate::CPU;

/// Names that an error lists at most.
const NAMED_MAX: usize = 5;

/// A scene as people call it.
pub(super) struct NamedScene {
    pub(super) label: String,
    pub(super) policy: String,
    pub(super) change: ReplayChange,
    pub(super) scene: Scene,
    /// What to keep in mind.
    pub(super) notes: Vec<String>,
}

/// What all scenes of a question have in common.
pub(super) struct Maker<'a> {
    pub(super) present: &'a Present,
    pub(super) past: &'a ReplayPast,
    pub(super) replayer: &'a dyn Replayer,
    pub(super) prices: &'a BTreeMap<String, f64>,
    numbers: BTreeMap<u64, usize>,
    base: Time,
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        present: &'a Present,
        past: &'a ReplayPast,
        replayer: &'a dyn Replayer,
        prices: &'a BTreeMap<String, f64>,
    ) -> Maker<'a> {
        let numbers = past.jobs.iter().enumerate().map(|(at, job)| (job.row.id.0, at)).collect();
        // Rounds fall on multiples of their length: they are then at the same instants as they were.
        let (first, round) = (past.jobs.first().map_or(0, |job| job.submit.0), present.settings.round.0);
        let base = Time(first - first.checked_rem(round).unwrap_or(0));
        Maker { present, past, replayer, prices, numbers, base }
    }

    /// Things as they are but for a change.
    pub(super) fn scene(&self, change: &ReplayChange) -> Result<NamedScene, Refusal> {
        let mut settings = self.settings(change)?;
        let (policy, make) = self.policy(change, &settings)?;
        settings.follow(&*make());
        let (mut kinds, mut nodes) = (self.present.kinds.clone(), self.left(change)?);
        self.add(change, &mut kinds, &mut nodes)?;
        let prices = self.prices(&mut kinds);
        let (mut jobs, mut notes) = self.jobs(&kinds, &mut nodes);
        notes.extend(self.priorities(&policy, &mut jobs));
        let stuck = jobs.iter().filter(|job| job.spec.is_none()).count();
        if stuck > 0 {
            notes.push(format!("{stuck} jobs cannot run on any of its nodes"));
        }
        let scene = Scene {
            base: self.base,
            resources: self.present.offers.resources().clone(),
            kinds,
            nodes,
            prices,
            settings,
            make,
            placer: self.present.placer.clone(),
            belief: self.present.belief.clone(),
            jobs,
        };
        Ok(NamedScene { label: label(change), policy, change: change.clone(), scene, notes })
    }

    /// Takes priorities out of all jobs where the policy does not honour them, and says so.
    fn priorities(&self, policy: &str, jobs: &mut [SceneJob]) -> Option<String> {
        let urgent = jobs.iter_mut().filter_map(|job| job.spec.as_mut()).filter(|spec| spec.priority != 0);
        let urgent: Vec<&mut JobSpec> = urgent.collect();
        if urgent.is_empty() || !matches!(self.replayer.priorities(policy), Priorities::Refused(_)) {
            return None;
        }
        let note = format!("policy {policy} ignores priorities, and {} jobs have one", urgent.len());
        urgent.into_iter().for_each(|spec| spec.priority = 0);
        Some(note)
    }

    fn settings(&self, change: &ReplayChange) -> Result<Settings, Refusal> {
        let round = match change.round_s {
            Some(round) if !(0.0..=1e9).contains(&round) => {
                return Err(invalid("round_s", "round_s is a number of seconds from 0 to 1e9".into()));
            }
            Some(round) => Span::from_secs(round),
            None => self.present.settings.round,
        };
        Ok(Settings { round, ..self.present.settings.clone() })
    }

    fn policy(&self, change: &ReplayChange, settings: &Settings) -> Result<(String, MakePolicy), Refusal> {
        let Some(policy) = &change.policy else {
            return Ok((self.present.policy.clone(), self.present.make.clone()));
        };
        let make = self.replayer.policy(policy).map_err(|wrong| invalid("policy", wrong))?;
        if make().cadence() == Cadence::EveryRound && settings.round == Span::ZERO {
            let message =
                format!("policy {policy:?} needs rounds: give round_s a length above 0, such as 360");
            return Err(invalid("round_s", message));
        }
        Ok((policy.clone(), make))
    }

    /// The nodes that are there now and stay.
    fn left(&self, change: &ReplayChange) -> Result<Vec<NodeSpec>, Refusal> {
        let known = |name: &String| self.present.nodes.iter().any(|(known, ..)| known == name);
        if let Some(name) = change.remove.iter().find(|name| !known(name)) {
            let message = format!("there is no node {name:?} to remove; {}", self.nearest(name));
            return Err(invalid("remove", message));
        }
        let stays = |(name, _, down): &&(String, NodeSpec, bool)| !down && !change.remove.contains(name);
        let nodes = self.present.nodes.iter().filter(stays).map(|(_, spec, _)| spec.clone());
        let nodes: Vec<NodeSpec> = nodes.collect();
        if nodes.is_empty() && change.add.is_empty() {
            let message = "no node would be left; keep one, or add some".to_owned();
            return Err(invalid("remove", message));
        }
        Ok(nodes)
    }

    /// The names that begin most like one.
    fn nearest(&self, name: &str) -> String {
        let alike = |other: &str| name.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        let mut names: Vec<&str> = self.present.nodes.iter().map(|(name, ..)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.sort_by_key(|other| std::cmp::Reverse(alike(other)));
        let more = if names.len() > NAMED_MAX { ", …" } else { "" };
        names.truncate(NAMED_MAX);
        format!("there are: {}{more}", names.join(", "))
    }

    fn add(
        &self,
        change: &ReplayChange,
        kinds: &mut Kinds,
        nodes: &mut Vec<NodeSpec>,
    ) -> Result<(), Refusal> {
        for text in &change.add {
            for (kind, devices) in self.replayer.nodes(text).map_err(|wrong| invalid("add", wrong))? {
                if nodes.len() >= NODES_MAX + self.present.nodes.len() {
                    return Err(invalid("add", format!("more than {NODES_MAX} nodes are too many")));
                }
                let (name, kind) = (format!("added-{}", nodes.len()), kinds.intern(&kind));
                nodes.push(NodeSpec::of(name, kind, devices));
            }
        }
        Ok(())
    }

    /// By kind; empty where nobody says.
    fn prices(&self, kinds: &mut Kinds) -> Vec<f64> {
        let mut prices = vec![0.0; if self.prices.is_empty() { 0 } else { kinds.len() }];
        for (name, price) in self.prices {
            if let Some(kind) = kinds.find(name) {
                prices[kind.index()] = *price;
                kinds.set_dollars(kind, *price);
            }
        }
        prices
    }

    /// The jobs on these nodes, and what there is to say of them. Processor slots are no part of a cluster whose jobs
    /// use none: what is idle would be mostly those.
    fn jobs(&self, kinds: &Kinds, nodes: &mut Vec<NodeSpec>) -> (Vec<SceneJob>, Vec<String>) {
        let mut all = Nodes::default();
        nodes.iter().for_each(|node| _ = all.add(node.clone()));
        let site = ReplaySite {
            present: self.present,
            kinds,
            nodes: &all,
            base: self.base,
            costs: self.replayer.costs(),
            numbers: &self.numbers,
        };
        let (jobs, unknown): (Vec<_>, Vec<_>) = self.past.jobs.iter().map(|job| site.job(job)).unzip();
        let uses = |job: &SceneJob, cpu| {
            let shapes = job.spec.iter().flat_map(|spec| spec.shapes.iter());
            shapes.flat_map(|shape| &shape.needs).any(|need| need.kind == cpu)
        };
        if let Some(cpu) = kinds.find(CPU).filter(|cpu| !jobs.iter().any(|job| uses(job, *cpu))) {
            nodes.iter_mut().for_each(|node| node.pools.retain(|pool| pool.kind != cpu));
            nodes.retain(|node| !node.pools.is_empty());
        }
        let unknown = unknown.into_iter().filter(|unknown| *unknown).count();
        let new = kinds.ids().skip(self.present.kinds.len()).map(|kind| kinds.name(kind).to_owned());
        let new: Vec<String> = new.collect();
        let note = format!(
            "the speed of {unknown} jobs on {} is unknown: they are assumed to take as long as where they ran",
            new.join(" and ")
        );
        (jobs, if unknown > 0 { vec![note] } else { Vec::new() })
    }
}

/// A change in a few words.
fn label(change: &ReplayChange) -> String {
    let policy = change.policy.clone();
    let round = change.round_s.map(|seconds| match seconds {
        0.0 => "deciding at each event".to_owned(),
        seconds => format!("rounds of {seconds} s"),
    });
    let with = (!change.add.is_empty()).then(|| format!("with {}", change.add.join(" and ")));
    let without = (!change.remove.is_empty()).then(|| format!("without {}", change.remove.join(" and ")));
    let parts: Vec<String> = [policy, round, with, without].into_iter().flatten().collect();
    if parts.is_empty() { "as it is".into() } else { parts.join(", ") }
}

/// The cluster as `kind:NODESxGPUS,…`, like nodes together.
pub(super) fn cluster(scene: &Scene) -> String {
    let mut groups: Vec<(u16, u32, usize)> = Vec::new();
    for pool in scene.nodes.iter().flat_map(|node| &node.pools) {
        let like =
            groups.iter_mut().find(|(kind, devices, _)| (*kind, *devices) == (pool.kind.0, pool.devices));
        match like {
            Some((_, _, count)) => *count += 1,
            None => groups.push((pool.kind.0, pool.devices, 1)),
        }
    }
    let text = |(kind, devices, count): &(u16, u32, usize)| {
        let kind = scene.kinds.get(yard_core::ids::KindId(*kind)).unwrap_or_default();
        format!("{kind}:{count}x{devices}")
    };
    groups.iter().map(text).collect::<Vec<_>>().join(",")
}
