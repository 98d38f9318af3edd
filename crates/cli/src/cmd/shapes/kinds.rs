//! The kinds that `--kinds` or `--cluster` name: known ones, and those of `--kind-file`.

use std::path::Path;

use anyhow::{anyhow, bail};
use serde::Deserialize;
use yard_planner::{Accelerator, Flaw, catalogue};
use yard_sim::cluster::ClusterSpec;

use super::toml_file;

/// What is listed where nobody says which kinds.
const USUAL: [&str; 6] = ["v100-16", "v100-32", "a100-40", "a100-80", "h100-80", "h200-141"];

/// Most devices of a kind that are considered.
pub(super) const DEVICES_MAX: u32 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KindFile {
    kind: Vec<KindEntry>,
}

/// A `[[kind]]`: what is left out is as in `like`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KindEntry {
    name: String,
    like: Option<String>,
    tflops: Option<f64>,
    memory_gb: Option<f64>,
    hbm_gb_s: Option<f64>,
    per_node: Option<u32>,
    link_in_gb_s: Option<f64>,
    link_out_gb_s: Option<f64>,
    latency_in_us: Option<f64>,
    latency_out_us: Option<f64>,
    host_link_gb_s: Option<f64>,
    host_memory_gb_s: Option<f64>,
    efficiency: Option<f64>,
    overhead_us: Option<f64>,
    flash: Option<f64>,
    hbm_efficiency: Option<f64>,
    link_in_efficiency: Option<f64>,
    link_out_efficiency: Option<f64>,
}

impl KindEntry {
    fn accelerator(self) -> Result<Accelerator, Flaw> {
        let like = self.like.as_deref().unwrap_or(&self.name);
        let base = catalogue::known(like).ok_or_else(|| {
            let known = catalogue::names().collect::<Vec<_>>().join(", ");
            Flaw::new(
                format!("kind {}", self.name),
                "has no known kind to start from",
                format!("set like to one of {known}"),
            )
        })?;
        let pick = |value: Option<f64>, unit: f64, usual: f64| value.map_or(usual, |value| value * unit);
        let kind = Accelerator {
            flops: pick(self.tflops, 1e12, base.flops),
            memory: pick(self.memory_gb, 1e9, base.memory),
            hbm: pick(self.hbm_gb_s, 1e9, base.hbm),
            per_node: self.per_node.unwrap_or(base.per_node),
            link_in: pick(self.link_in_gb_s, 1e9, base.link_in),
            link_out: pick(self.link_out_gb_s, 1e9, base.link_out),
            latency_in: pick(self.latency_in_us, 1e-6, base.latency_in),
            latency_out: pick(self.latency_out_us, 1e-6, base.latency_out),
            host_link: pick(self.host_link_gb_s, 1e9, base.host_link),
            host_memory: pick(self.host_memory_gb_s, 1e9, base.host_memory),
            efficiency: pick(self.efficiency, 1.0, base.efficiency),
            overhead_s: pick(self.overhead_us, 1e-6, base.overhead_s),
            flash: pick(self.flash, 1.0, base.flash),
            hbm_efficiency: pick(self.hbm_efficiency, 1.0, base.hbm_efficiency),
            link_in_efficiency: pick(self.link_in_efficiency, 1.0, base.link_in_efficiency),
            link_out_efficiency: pick(self.link_out_efficiency, 1.0, base.link_out_efficiency),
            name: self.name,
        };
        let named = |flaw: Flaw| Flaw { field: format!("kind {}, {}", kind.name, flaw.field), ..flaw };
        kind.check().map_err(named)?;
        Ok(kind)
    }
}

/// The kinds that can be named.
pub(crate) struct ShapeKinds {
    own: Vec<Accelerator>,
}

impl ShapeKinds {
    /// The known ones, and those of a file, which come first.
    pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<ShapeKinds> {
        let Some(path) = file else { return Ok(ShapeKinds { own: Vec::new() }) };
        let entries: KindFile = toml_file::read(path)?;
        let own: Result<Vec<_>, Flaw> = entries.kind.into_iter().map(KindEntry::accelerator).collect();
        Ok(ShapeKinds { own: own.map_err(toml_file::of(path))? })
    }

    /// The kind of this name.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<Accelerator> {
        let own = self.own.iter().find(|kind| kind.name == name).cloned();
        own.or_else(|| catalogue::known(name)).ok_or_else(|| {
            let own = self.own.iter().map(|kind| kind.name.clone());
            let known = own.chain(catalogue::names().map(str::to_owned)).collect::<Vec<_>>().join(", ");
            anyhow!("kind {name:?} is not known; give one of {known}, or describe it with --kind-file")
        })
    }

    /// The kinds of a list, or the usual ones, with how many of each at most.
    pub(super) fn listed(&self, names: &[String], most: u32) -> anyhow::Result<Vec<(Accelerator, u32)>> {
        check_most(most)?;
        let usual = || {
            USUAL.iter().map(|name| (*name).to_owned()).chain(self.own.iter().map(|kind| kind.name.clone()))
        };
        let names: Vec<String> = if names.is_empty() { usual().collect() } else { names.to_vec() };
        let mut kinds: Vec<(Accelerator, u32)> = Vec::new();
        for name in names {
            if kinds.iter().all(|(kind, _)| kind.name != name) {
                kinds.push((self.find(&name)?, most));
            }
        }
        Ok(kinds)
    }

    /// The kinds of a cluster: as many devices as it has, in nodes as large as its largest.
    pub(super) fn of_cluster(&self, spec: &str, most: u32) -> anyhow::Result<Vec<(Accelerator, u32)>> {
        check_most(most)?;
        let cluster = ClusterSpec::parse(spec)?;
        let totals = cluster.totals();
        let kinds = cluster.kinds.ids().map(|id| {
            let pools = cluster.nodes.iter().flat_map(|node| &node.pools);
            let largest = pools.filter(|pool| pool.kind == id).map(|pool| pool.devices).max();
            let known = self.find(cluster.kinds.name(id))?;
            Ok((known.in_nodes_of(largest.unwrap_or(1)), totals[id.index()].min(most)))
        });
        kinds.collect()
    }
}

fn check_most(most: u32) -> anyhow::Result<()> {
    if !(1..=DEVICES_MAX).contains(&most) {
        bail!("--max {most}: give a whole number from 1 to {DEVICES_MAX}");
    }
    Ok(())
}
