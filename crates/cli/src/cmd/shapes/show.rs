//! Shapes as a table for people, as a throughput table, and as JSON.

use std::fmt::Write as _;
use std::io::Write;

use serde_json::{Value, json};
use yard_planner::list::{KindRefusal, ModelShape, ShapeList};
use yard_planner::{Accelerator, Offload, ParallelPlan, Recompute, Sharding};

use super::model::NamedModel;
use crate::output;

const GIB: f64 = (1u64 << 30) as f64;

/// Counts of one reason that are named before the rest is only counted.
const COUNTS_SHOWN: usize = 6;

/// The table for people.
pub(super) fn table(
    named: &NamedModel,
    kinds: &[(Accelerator, u32)],
    shapes: &ShapeList,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let model = &named.model;
    let billions = model.parameters() / 1e9;
    writeln!(
        out,
        "{}: {billions:.2} billion parameters; {} samples of {} tokens a step\n",
        output::plain(&named.name),
        model.batch,
        model.seq
    )?;
    let mut table =
        output::table(&["kind", "GPUs", "spread", "step", "samples/s", "memory", "of", "plan"], 9);
    for shape in shapes.useful() {
        let found = &shape.candidate;
        let capacity =
            kinds.iter().find(|(kind, _)| kind.name == shape.kind).map_or(0.0, |(kind, _)| kind.memory);
        table.add_row([
            shape.kind.clone(),
            shape.devices.to_string(),
            spread(shape).to_owned(),
            seconds(found.step_s),
            format!("{:.3}", f64::from(model.batch) / found.step_s),
            gib(found.memory),
            format!("{} ({:.0} %)", gib(capacity), 100.0 * found.memory / capacity),
            plan(&found.plan),
        ]);
    }
    if shapes.shapes.is_empty() {
        writeln!(out, "Found no way to run this model.")?;
    } else {
        writeln!(out, "{table}")?;
    }
    for (kind, _) in kinds {
        let refused: Vec<_> = shapes.refused.iter().filter(|refusal| refusal.kind == kind.name).collect();
        write!(out, "{}", refusals(kind, &refused))?;
    }
    Ok(())
}

fn spread(shape: &ModelShape) -> &'static str {
    if shape.apart { "any" } else { "node" }
}

/// Four digits, and the unit that suits.
fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.2} s"),
        s => format!("{s:.0} s"),
    }
}

fn gib(bytes: f64) -> String {
    format!("{:.1} GiB", bytes / GIB)
}

/// A split in words: only what is not 1 or none.
fn plan(plan: &ParallelPlan) -> String {
    let mut parts = Vec::new();
    let degrees = [("tensor", plan.tensor), ("pipeline", plan.pipeline), ("data", plan.data)];
    parts.extend(
        degrees.iter().filter(|(_, degree)| *degree > 1).map(|(name, degree)| format!("{name} {degree}")),
    );
    if parts.is_empty() {
        parts.push("whole".into());
    }
    parts.push(format!("micro-batch {}", plan.micro_batch));
    if plan.interleave > 1 {
        parts.push(format!("interleave {}", plan.interleave));
    }
    if plan.recompute != Recompute::None {
        parts.push(format!("{} recompute", plan.recompute.name()));
    }
    match plan.sharding {
        Sharding::Nothing => {}
        Sharding::Optimizer => parts.push("optimizer sharded".into()),
        Sharding::Everything => parts.push("fully sharded".into()),
    }
    match plan.offload {
        Offload::Nothing => {}
        Offload::Optimizer => parts.push("optimizer on the host (rough)".into()),
        Offload::Activations => parts.push("optimizer and activations on the host (rough)".into()),
    }
    parts.join(", ")
}

/// Why a kind does not run it on some counts.
fn refusals(kind: &Accelerator, refused: &[&KindRefusal]) -> String {
    let (short, odd): (Vec<&KindRefusal>, Vec<_>) =
        refused.iter().partition(|refusal| refusal.least.is_some());
    let mut text = String::new();
    if !short.is_empty() {
        let needs =
            |refusal: &&KindRefusal| format!("{} on {}", gib(refusal.least.unwrap_or(0.0)), refusal.devices);
        let _ = writeln!(
            text,
            "{}: not enough memory: a device needs {}; it has {}.",
            kind.name,
            some(short.iter().map(needs)),
            gib(kind.memory)
        );
    }
    if !odd.is_empty() {
        let counts = some(odd.iter().map(|refusal| refusal.devices.to_string()));
        let _ = writeln!(text, "{}: heads, layers and batch cannot be divided over {counts}.", kind.name);
    }
    text
}

/// The first of a list, and how many more there are.
fn some(names: impl ExactSizeIterator<Item = String>) -> String {
    let rest = names.len().saturating_sub(COUNTS_SHOWN);
    let named: Vec<String> = names.take(COUNTS_SHOWN).collect();
    match rest {
        0 => named.join(", "),
        _ => format!("{} and {rest} more", named.join(", ")),
    }
}

/// The native throughput table. A gang that is listed on one node also has its speed on several, or 0.
pub(super) fn csv(named: &NamedModel, shapes: &ShapeList, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "kind,model,batch_size,gpus,steps_per_s,spread")?;
    let mut row = |kind: &str, devices: u32, speed: f64, spread: &str| {
        writeln!(out, "{kind},{},{},{devices},{speed:.6},{spread}", named.name, named.model.batch)
    };
    for shape in shapes.useful() {
        row(&shape.kind, shape.devices, 1.0 / shape.candidate.step_s, spread(shape))?;
    }
    for shape in shapes.useful().filter(|shape| !shape.apart && shape.devices > 1) {
        let other =
            |other: &&ModelShape| other.apart && (&other.kind, other.devices) == (&shape.kind, shape.devices);
        match shapes.shapes.iter().find(other) {
            Some(other) if !other.is_idle => {}
            Some(other) => row(&shape.kind, shape.devices, 1.0 / other.candidate.step_s, "any")?,
            None => row(&shape.kind, shape.devices, 0.0, "any")?,
        }
    }
    Ok(())
}

/// JSON for programs.
pub(super) fn json(shapes: &ShapeList, out: &mut dyn Write) -> anyhow::Result<()> {
    let all: Vec<Value> = shapes.useful().map(shape_json).collect();
    let refused: Vec<Value> = shapes.refused.iter().map(refusal_json).collect();
    output::json(&json!({ "shapes": all, "refused": refused }), out)
}

fn shape_json(shape: &ModelShape) -> Value {
    let (found, plan) = (&shape.candidate, &shape.candidate.plan);
    json!({
        "kind": shape.kind,
        "gpus": shape.devices,
        "spread": spread(shape),
        "step_s": found.step_s,
        "memory_gib": found.memory / GIB,
        "tensor": plan.tensor,
        "pipeline": plan.pipeline,
        "data": plan.data,
        "micro_batch": plan.micro_batch,
        "interleave": plan.interleave,
        "recompute": plan.recompute.name(),
        "shard": plan.sharding.stage(),
        "offload": plan.offload.name(),
    })
}

fn refusal_json(refusal: &KindRefusal) -> Value {
    json!({ "kind": refusal.kind, "gpus": refusal.devices, "least_gib": refusal.least.map(|bytes| bytes / GIB) })
}
