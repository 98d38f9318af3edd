//! Models whose layers are unlike, as `[[layer]]` tables: cut into stages, also over a mix of kinds.

use std::io::Write;
use std::path::Path;

use anyhow::{anyhow, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use yard_planner::chain::{Chain, ChainLayer, ChainMachine, ChainNode, ChainPlan, plan};
use yard_planner::search::MEMORY_FILLED;
use yard_planner::{Accelerator, Flaw};

use super::kinds::Kinds;
use super::{Output, toml_file};
use crate::output;

const GIB: f64 = (1u64 << 30) as f64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainFile {
    name: Option<String>,
    batch: u32,
    #[serde(default = "one")]
    profile_batch: u32,
    /// The kind on which `forward_s` and `backward_s` were measured.
    measured_on: Option<String>,
    #[serde(default = "state_bytes")]
    state_bytes: f64,
    #[serde(default = "grad_bytes")]
    grad_bytes: f64,
    layer: Vec<LayerEntry>,
}

/// A layer: measured times for the profiled batch, or operations of a sample. Bytes are of a sample.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerEntry {
    #[expect(dead_code, reason = "a note for the reader of the file")]
    name: Option<String>,
    forward_s: Option<f64>,
    backward_s: Option<f64>,
    forward_flops: Option<f64>,
    #[serde(default)]
    parameters: f64,
    #[serde(default)]
    kept_bytes: f64,
    #[serde(default)]
    output_bytes: f64,
}

fn one() -> u32 {
    1
}

fn state_bytes() -> f64 {
    18.0
}

fn grad_bytes() -> f64 {
    4.0
}

/// Devices of one or several kinds, on one node or several.
struct Gang {
    /// As `a100-80`, or `a100-80*2+v100-32*2`.
    kind: String,
    devices: u32,
    apart: bool,
    machine: ChainMachine,
    kinds: Vec<Accelerator>,
}

/// A gang on which nothing fits, and the memory of a device, in bytes, that would do.
struct Unfit {
    gang: Gang,
    least: f64,
}

/// A gang with its best stages.
struct Staged {
    gang: Gang,
    plan: ChainPlan,
}

/// Whether a model file has layers of its own.
pub(super) fn is_chain(path: &Path) -> anyhow::Result<bool> {
    Ok(toml_file::read::<toml::Table>(path)?.contains_key("layer"))
}

/// What `yard shapes` was asked for.
pub(super) struct Wanted<'a> {
    pub(super) path: &'a Path,
    pub(super) batch: Option<u32>,
    pub(super) kinds: &'a [String],
    pub(super) most: u32,
    pub(super) shown: Output,
}

pub(super) fn run(wanted: &Wanted<'_>, known: &Kinds, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut file: ChainFile = toml_file::read(wanted.path)?;
    file.batch = wanted.batch.unwrap_or(file.batch);
    let stem = || wanted.path.file_stem().map_or("model".into(), |stem| stem.to_string_lossy().into_owned());
    let name = file.name.clone().unwrap_or_else(stem);
    let (mixes, plain): (Vec<String>, Vec<String>) =
        wanted.kinds.iter().cloned().partition(|kind| kind.contains('*'));
    let mut gangs = Vec::new();
    for mix in &mixes {
        gangs.push(mixed(mix, known)?);
    }
    if mixes.is_empty() || !plain.is_empty() {
        gangs
            .extend(known.listed(&plain, wanted.most)?.iter().flat_map(|(kind, most)| gangs_of(kind, *most)));
    }
    let (mut staged, mut refused) = (Vec::new(), Vec::new());
    for gang in gangs {
        let chain =
            file.on(&gang.kinds, known).map_err(|problem| anyhow!("{}: {problem}", wanted.path.display()))?;
        chain.check().map_err(toml_file::of(wanted.path))?;
        match plan(&chain, &gang.machine) {
            Some(plan) => staged.push(Staged { gang, plan }),
            None => refused.push(Unfit { least: least(&chain, &gang), gang }),
        }
    }
    let cost = |one: &Staged| one.plan.step_s * f64::from(one.gang.devices);
    staged.sort_by(|a, b| cost(a).total_cmp(&cost(b)).then(a.gang.devices.cmp(&b.gang.devices)));
    match wanted.shown {
        Output::Table => table(&name, &file, &staged, &refused, out),
        Output::Csv => csv(&name, file.batch, &staged, out),
        Output::Json => as_json(&file, &staged, &refused, out),
    }
}

impl Gang {
    /// How many of which kinds a stage has.
    fn seated(&self, seats: &[u32]) -> Vec<String> {
        let of_kind = |kind: usize| -> u32 {
            seats
                .iter()
                .zip(&self.machine.nodes)
                .filter(|(_, node)| node.kind == kind)
                .map(|(seats, _)| seats)
                .sum()
        };
        let counts = (0..self.kinds.len()).map(|kind| (of_kind(kind), &self.kinds[kind].name));
        counts.filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect()
    }
}

impl ChainFile {
    /// The chain with its times on these kinds.
    fn on(&self, kinds: &[Accelerator], known: &Kinds) -> anyhow::Result<Chain> {
        let measured = self.measured_on.as_deref().map(|name| known.find(name)).transpose()?;
        let samples = f64::from(self.profile_batch);
        let layer = |(at, entry): (usize, &LayerEntry)| {
            let times = kinds.iter().map(|kind| entry.seconds(at, kind, measured.as_ref(), samples));
            Ok(ChainLayer {
                seconds: times.collect::<Result<_, Flaw>>()?,
                parameter_bytes: entry.parameters * self.grad_bytes,
                state_bytes: entry.parameters * self.state_bytes,
                kept_bytes: entry.kept_bytes * samples,
                cut_bytes: entry.output_bytes * samples,
            })
        };
        let layers: Result<Vec<_>, Flaw> = self.layer.iter().enumerate().map(layer).collect();
        Ok(Chain { layers: layers?, profiled: self.profile_batch, batch: self.batch })
    }
}

impl LayerEntry {
    /// Forward and backward on a kind: measured and scaled by its speed, or from operations, backward twice forward.
    fn seconds(
        &self,
        at: usize,
        kind: &Accelerator,
        measured: Option<&Accelerator>,
        samples: f64,
    ) -> Result<(f64, f64), Flaw> {
        let scale = measured.map_or(1.0, |measured| measured.rate() / kind.rate());
        match (self.forward_s, self.backward_s, self.forward_flops) {
            (Some(forward), backward, None) => {
                Ok((forward * scale, backward.unwrap_or(2.0 * forward) * scale))
            }
            (None, None, Some(flops)) => {
                let bytes = 2.0 * self.parameters + (self.kept_bytes + self.output_bytes) * samples;
                let forward = kind.gemm(flops * samples, bytes);
                Ok((forward, 2.0 * forward))
            }
            _ => Err(Flaw::new(
                format!("layer {}", at + 1),
                "its time is not clear",
                "give either forward_s (and backward_s) or forward_flops",
            )),
        }
    }
}

/// 1, 2, 4 … devices of a node, half and half on two, and whole nodes.
fn gangs_of(kind: &Accelerator, most: u32) -> Vec<Gang> {
    let within =
        (0..31).map(|power| 1u32 << power).take_while(|count| *count < kind.per_node).chain([kind.per_node]);
    let within: Vec<u32> = within.filter(|count| *count <= most).collect();
    let whole = (2..).map(|nodes| nodes * kind.per_node).take_while(|count| *count <= most);
    let gang = |nodes: Vec<u32>, apart| Gang {
        kind: kind.name.clone(),
        devices: nodes.iter().sum(),
        apart,
        machine: machine(
            &nodes.iter().map(|devices| (0, *devices)).collect::<Vec<_>>(),
            std::slice::from_ref(kind),
        ),
        kinds: vec![kind.clone()],
    };
    let together = within.iter().map(|count| gang(vec![*count], false));
    let halves =
        within.iter().filter(|count| **count > 1).map(|count| gang(vec![count - count / 2, count / 2], true));
    let nodes = whole.map(|count| gang(vec![kind.per_node; (count / kind.per_node) as usize], true));
    together.chain(halves).chain(nodes).collect()
}

/// `a100-80*2+v100-32*2`: each kind on nodes of its own.
fn mixed(text: &str, known: &Kinds) -> anyhow::Result<Gang> {
    let (mut kinds, mut nodes) = (Vec::new(), Vec::new());
    for part in text.split('+') {
        let count = part.split_once('*').and_then(|(kind, count)| Some((kind, count.parse::<u32>().ok()?)));
        let Some((name, mut left)) = count.filter(|(_, count)| (1..=1024).contains(count)) else {
            bail!("--kinds {text}: {part:?} is no part of a mix; write KIND*COUNT+KIND*COUNT");
        };
        let kind = known.find(name)?;
        while left > 0 {
            nodes.push((kinds.len(), left.min(kind.per_node)));
            left -= left.min(kind.per_node);
        }
        kinds.push(kind);
    }
    let devices = nodes.iter().map(|(_, devices)| devices).sum();
    Ok(Gang { kind: text.to_owned(), devices, apart: true, machine: machine(&nodes, &kinds), kinds })
}

/// A node's way out is that of all its devices; the narrowest counts for all.
fn machine(nodes: &[(usize, u32)], kinds: &[Accelerator]) -> ChainMachine {
    let nic = |(kind, devices): &(usize, u32)| kinds[*kind].outward() * f64::from(*devices);
    ChainMachine {
        nic: nodes.iter().map(nic).fold(f64::INFINITY, f64::min),
        link: kinds.iter().map(Accelerator::inward).fold(f64::INFINITY, f64::min),
        nodes: nodes.iter().map(|(kind, devices)| ChainNode { kind: *kind, devices: *devices }).collect(),
        memory: kinds.iter().map(|kind| kind.memory * MEMORY_FILLED).collect(),
    }
}

/// Memory of every device with which something fits, to a thousandth: by doubling, then halving.
fn least(chain: &Chain, gang: &Gang) -> f64 {
    let fits = |bytes: f64| {
        let memory = vec![bytes * MEMORY_FILLED; gang.kinds.len()];
        plan(chain, &ChainMachine { memory, ..gang.machine.clone() }).is_some()
    };
    let (mut low, mut high) = (0.0, 1e9);
    while !fits(high) {
        (low, high) = (high, 2.0 * high);
    }
    while high - low > high / 1000.0 {
        let middle = (low + high) / 2.0;
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

fn spread(gang: &Gang) -> &'static str {
    if gang.apart { "any" } else { "node" }
}

/// Samples that the widest stage's replicas compute at once, each.
fn micro_batch(batch: u32, plan: &ChainPlan) -> f64 {
    let widest = plan.replicas.iter().copied().max().unwrap_or(1);
    f64::from(batch) / f64::from(plan.micro_batches) / f64::from(widest)
}

fn table(
    name: &str,
    file: &ChainFile,
    staged: &[Staged],
    refused: &[Unfit],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    writeln!(out, "{}: {} layers; {} samples a step\n", output::plain(name), file.layer.len(), file.batch)?;
    let mut table = output::table(&["kind", "GPUs", "spread", "step", "samples/s", "memory", "stages"], 9);
    for one in staged {
        let (gang, plan) = (&one.gang, &one.plan);
        let stages = (0..plan.layers.len()).map(|stage| match gang.kinds.len() {
            1 => format!("{} layers × {}", plan.layers[stage], plan.replicas[stage]),
            _ => format!("{} layers × {}", plan.layers[stage], gang.seated(&plan.seats[stage]).join(" + ")),
        });
        let stages: Vec<String> = stages.collect();
        table.add_row([
            gang.kind.clone(),
            gang.devices.to_string(),
            spread(gang).to_owned(),
            format!("{:.4} s", plan.step_s),
            format!("{:.3}", f64::from(file.batch) / plan.step_s),
            format!("{:.1} GiB", plan.memory / GIB),
            stages.join(" → "),
        ]);
    }
    writeln!(out, "{table}")?;
    for Unfit { gang, least } in refused {
        let (kind, devices, needed) = (&gang.kind, gang.devices, least / GIB);
        writeln!(out, "{kind}: not enough memory: a device needs {needed:.1} GiB on {devices}.")?;
    }
    Ok(())
}

fn csv(name: &str, batch: u32, staged: &[Staged], out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "kind,model,batch_size,gpus,steps_per_s,spread")?;
    for Staged { gang, plan } in staged {
        writeln!(
            out,
            "{},{name},{batch},{},{:.6},{}",
            gang.kind,
            gang.devices,
            1.0 / plan.step_s,
            spread(gang)
        )?;
    }
    Ok(())
}

fn as_json(
    file: &ChainFile,
    staged: &[Staged],
    refused: &[Unfit],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let shape = |Staged { gang, plan }: &Staged| -> Value {
        json!({
            "kind": gang.kind,
            "gpus": gang.devices,
            "spread": spread(gang),
            "step_s": plan.step_s,
            "memory_gib": plan.memory / GIB,
            "tensor": 1,
            "pipeline": plan.layers.len(),
            "data": plan.replicas.iter().max(),
            "micro_batch": micro_batch(file.batch, plan),
            "interleave": 1,
            "recompute": "none",
            "shard": 0,
            "offload": "none",
            "stages": (0..plan.layers.len()).map(|stage| json!({
                "layers": plan.layers[stage],
                "replicas": plan.replicas[stage],
                "devices": gang.seated(&plan.seats[stage]),
            })).collect::<Vec<_>>(),
        })
    };
    let refusal = |Unfit { gang, least }: &Unfit| json!({ "kind": gang.kind, "gpus": gang.devices, "least_gib": least / GIB });
    let shapes: Vec<Value> = staged.iter().map(shape).collect();
    output::json(
        &json!({ "shapes": shapes, "refused": refused.iter().map(refusal).collect::<Vec<_>>() }),
        out,
    )
}
