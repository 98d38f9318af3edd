//! Models whose layers are unlike, as `[[layer]]` tables: cut into stages, also over a mix of kinds.

mod file;
mod gang;
mod show;

use std::io::Write;
use std::path::Path;

use anyhow::anyhow;
use yard_planner::chain::{Chain, ChainMachine, ChainPlan, plan};
use yard_planner::search::MEMORY_FILLED;

use self::file::ChainFile;
use self::gang::{ChainGang, gangs_of, mixed};
use super::kinds::ShapeKinds;
use super::{ShapesOutput, model, toml_file};

/// A gang on which nothing fits, and the memory of a device, in bytes, that would do.
struct Unfit {
    gang: ChainGang,
    least: f64,
}

/// A gang with its best stages.
struct StagedChain {
    gang: ChainGang,
    plan: ChainPlan,
}

/// Whether a model file has layers of its own.
pub(super) fn is_chain(path: &Path) -> anyhow::Result<bool> {
    Ok(toml_file::read::<toml::Table>(path)?.contains_key("layer"))
}

/// What `yard shapes` was asked for.
pub(super) struct WantedChain<'a> {
    pub(super) path: &'a Path,
    pub(super) batch: Option<u32>,
    pub(super) kinds: &'a [String],
    pub(super) most: u32,
    pub(super) shown: ShapesOutput,
}

pub(super) fn run(wanted: &WantedChain<'_>, known: &ShapeKinds, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut file: ChainFile = toml_file::read(wanted.path)?;
    file.batch = wanted.batch.unwrap_or(file.batch);
    let stem = || wanted.path.file_stem().map_or("model".into(), |stem| stem.to_string_lossy().into_owned());
    let name = file.name.clone().unwrap_or_else(stem);
    model::check_name(&name).map_err(toml_file::of(wanted.path))?;
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
            Some(plan) => staged.push(StagedChain { gang, plan }),
            None => refused.push(Unfit { least: least(&chain, &gang), gang }),
        }
    }
    let cost = |one: &StagedChain| one.plan.step_s * f64::from(one.gang.devices);
    staged.sort_by(|a, b| cost(a).total_cmp(&cost(b)).then(a.gang.devices.cmp(&b.gang.devices)));
    match wanted.shown {
        ShapesOutput::Table => show::table(&name, &file, &staged, &refused, out),
        ShapesOutput::Csv => show::csv(&name, file.batch, &staged, out),
        ShapesOutput::Json => show::as_json(&file, &staged, &refused, out),
    }
}

/// Memory of every device with which something fits, to a thousandth: by doubling, then halving.
fn least(chain: &Chain, gang: &ChainGang) -> f64 {
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
