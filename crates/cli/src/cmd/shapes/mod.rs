//! `yard shapes`: every way to run a model that fits in memory, and the best split for each kind and count.

mod chain;
pub(crate) mod graph;
pub(crate) mod kinds;
mod model;
mod show;
mod toml_file;

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use yard_planner::search::SplitSearchLimits;
use yard_planner::{Transformer, list};

use self::chain::WantedChain;
use self::kinds::ShapeKinds;

const HELP: &str = "Examples:
  yard shapes examples/models/gpt-6.7b.toml --kinds a100-80,h200
  yard shapes examples/models/llama-3-8b.toml --cluster h100:4x8 -o csv > speeds.csv
  yard sim --trace jobs.csv --cluster h100:4x8 --throughputs speeds.csv --policy market

Predictions use the model's sizes and each kind's peak performance and efficiencies; docs/shapes.md says how, and how
accurate they are. Counts that are no faster than a smaller one of the same kind and spread are omitted.";

/// What to list.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct ShapesArgs {
    /// Model file (TOML)
    #[arg(value_name = "MODEL.toml", required_unless_present = "graph")]
    model: Option<PathBuf>,
    /// Instead of a model: split a graph of operators, from a JSON file that also gives the number of devices
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "kinds", "cluster", "max", "batch"])]
    graph: Option<PathBuf>,
    /// Kinds of devices [default: all known ones]
    #[arg(long, value_name = "K[,K]", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Take kinds, counts and nodes from this cluster: kind:NODESxGPUS[,…] or a TOML file
    #[arg(long, value_name = "SPEC", conflicts_with = "kinds")]
    cluster: Option<String>,
    /// Kinds of your own: a TOML file with a table `kind` for each
    #[arg(long, value_name = "FILE")]
    kind_file: Option<PathBuf>,
    /// Largest number of devices
    #[arg(long, value_name = "N")]
    max: Option<u32>,
    /// Samples per step, instead of the file's
    #[arg(long, value_name = "N")]
    batch: Option<u32>,
    /// Only this tensor parallelism (devices per layer)
    #[arg(long, value_name = "N")]
    tensor: Option<u32>,
    /// Only this number of pipeline stages
    #[arg(long, value_name = "N")]
    pipeline: Option<u32>,
    /// Offload to host memory if nothing else fits
    #[arg(long)]
    offload: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ShapesOutput,
}

/// How to print shapes.
#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum ShapesOutput {
    /// A table for people.
    #[default]
    Table,
    /// A throughput table that `yard sim --throughputs` reads.
    Csv,
    /// JSON for programs.
    Json,
}

/// Most devices of a kind where nobody says.
const MOST: u32 = 64;

/// The same for models with layers of their own, of which far more splits are tried.
const CHAIN_MOST: u32 = 16;

pub(crate) fn run(args: &ShapesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let path = match (&args.graph, &args.model) {
        (Some(graph), _) => return graph::run(graph, args.output, out),
        (None, Some(model)) => model,
        (None, None) => bail!("give a MODEL.toml, or a graph of operators (--graph)"),
    };
    let known = ShapeKinds::read(args.kind_file.as_deref())?;
    if chain::is_chain(path)? {
        if args.cluster.is_some() {
            bail!("--cluster: a model with [[layer]] tables takes --kinds instead");
        }
        let (most, shown) = (args.max.unwrap_or(CHAIN_MOST), args.output);
        return chain::run(
            &WantedChain { path, batch: args.batch, kinds: &args.kinds, most, shown },
            &known,
            out,
        );
    }
    let named = model::read(path, args.batch)?;
    let kinds = match &args.cluster {
        Some(spec) => known.of_cluster(spec, args.max.unwrap_or(kinds::DEVICES_MAX))?,
        None => known.listed(&args.kinds, args.max.unwrap_or(MOST))?,
    };
    let shapes = list(&named.model, &kinds, &args.limits(&named.model)?);
    match args.output {
        ShapesOutput::Table => show::table(&named, &kinds, &shapes, out),
        ShapesOutput::Csv => show::csv(&named, &shapes, out),
        ShapesOutput::Json => show::json(&shapes, out),
    }
}

impl ShapesArgs {
    fn limits(&self, model: &Transformer) -> anyhow::Result<SplitSearchLimits> {
        let parts = [
            ("--tensor", self.tensor, "heads", model.heads),
            ("--pipeline", self.pipeline, "layers", model.layers),
        ];
        for (flag, parts, what, whole) in parts {
            if let Some(parts) = parts.filter(|parts| *parts == 0 || !whole.is_multiple_of(*parts)) {
                let allowed: Vec<_> =
                    (1..=whole).filter(|one| whole.is_multiple_of(*one)).map(|one| one.to_string()).collect();
                bail!(
                    "{flag} {parts}: {whole} {what} cannot be divided by it; give one of {}",
                    allowed.join(", ")
                );
            }
        }
        Ok(SplitSearchLimits {
            tensor: self.tensor,
            pipeline: self.pipeline,
            offload: self.offload,
            ..SplitSearchLimits::default()
        })
    }
}
