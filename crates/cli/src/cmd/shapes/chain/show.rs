//! Stages as a table for people, as a throughput table, and as JSON.

use std::io::Write;

use serde_json::{Value, json};
use yard_planner::chain::ChainPlan;

use super::file::ChainFile;
use super::{StagedChain, Unfit};
use crate::output;

const GIB: f64 = (1u64 << 30) as f64;

/// Samples that the widest stage's replicas compute at once, each.
fn micro_batch(batch: u32, plan: &ChainPlan) -> f64 {
    let widest = plan.replicas.iter().copied().max().unwrap_or(1);
    f64::from(batch) / f64::from(plan.micro_batches) / f64::from(widest)
}

pub(super) fn table(
    name: &str,
    file: &ChainFile,
    staged: &[StagedChain],
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
            gang.spread().to_owned(),
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

pub(super) fn csv(name: &str, batch: u32, staged: &[StagedChain], out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "kind,model,batch_size,gpus,steps_per_s,spread")?;
    for StagedChain { gang, plan } in staged {
        writeln!(
            out,
            "{},{name},{batch},{},{:.6},{}",
            gang.kind,
            gang.devices,
            1.0 / plan.step_s,
            gang.spread()
        )?;
    }
    Ok(())
}

pub(super) fn as_json(
    file: &ChainFile,
    staged: &[StagedChain],
    refused: &[Unfit],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let shape = |StagedChain { gang, plan }: &StagedChain| -> Value {
        json!({
            "kind": gang.kind,
            "gpus": gang.devices,
            "spread": gang.spread(),
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
