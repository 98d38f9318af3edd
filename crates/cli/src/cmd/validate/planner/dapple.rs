//! DAPPLE's plans (PPoPP 2021), from its profiles. Demanded are those that hang neither on the overlap of gradients nor on
//! memory, which its artifact does not record.

use std::path::Path;

use anyhow::{Context, bail};
use yard_planner::chain::{Chain, ChainLayer, ChainMachine, ChainNode, ChainPlan, plan};

use super::super::Check;
use super::super::sheet::Sheet;

const SUITE: &str = "dapple";

/// Model and machine of the plans that are demanded.
const DEMANDED: [(&str, &str); 6] =
    [("vgg", "C"), ("gnmt", "A"), ("bert", "A"), ("bert", "B"), ("bert", "C"), ("amoeba", "A")];

/// Bytes a second between the V100 of a node.
const NVLINK: f64 = 100e9;

/// Reads the profiles from the folder `dapple_profiles` beside the file.
pub(in super::super) fn of(file: &Path) -> anyhow::Result<Vec<Check>> {
    let folder = file.parent().context("the file is in a folder")?.join("dapple_profiles");
    let (sheet, mut checks) = (Sheet::read(file)?, Vec::new());
    for row in sheet.records() {
        let (profile, config) = (row.text("profile")?, row.text("config")?);
        let layers = layers(&folder.join(format!("{profile}.csv")))?;
        let chain =
            Chain { layers, profiled: row.count("profile_batch")?, batch: row.count("global_batch")? };
        let planned = plan(&chain, &machine(config)?).context("memory is not limited")?;
        let (ours, published) = (form(&planned), row.text("plan")?);
        let case = format!("{profile} on {config}: {published}; ours {ours}");
        let equal = f64::from(u8::from(ours == published));
        let is_demanded = DEMANDED.iter().any(|(model, on)| profile.starts_with(model) && *on == config);
        checks.push(match is_demanded {
            true => Check::new(SUITE, &case, "published form", 1.0, equal, 0.0),
            false => Check::unjudged(SUITE, &case, "published form", 1.0, equal),
        });
    }
    Ok(checks)
}

fn layers(path: &Path) -> anyhow::Result<Vec<ChainLayer>> {
    let sheet = Sheet::read(path)?;
    let layer = |row: super::SheetRecord<'_>| {
        Ok(ChainLayer {
            seconds: vec![(row.number("forward_s")?, row.number("backward_s")?)],
            parameter_bytes: row.number("param_bytes")?,
            state_bytes: 0.0,
            kept_bytes: 0.0,
            cut_bytes: row.number("cut_bytes_after")?,
        })
    };
    sheet.records().map(layer).collect()
}

/// Sixteen V100: A, two nodes of eight at 25 Gbit/s; B, sixteen nodes at 25; C, at 10.
fn machine(config: &str) -> anyhow::Result<ChainMachine> {
    let (nodes, devices, gbit) = match config {
        "A" => (2, 8, 25.0),
        "B" => (16, 1, 25.0),
        "C" => (16, 1, 10.0),
        _ => bail!("config: {config:?} is none of A, B, C"),
    };
    let nodes = vec![ChainNode { kind: 0, devices }; nodes];
    Ok(ChainMachine { nodes, link: NVLINK, nic: gbit * 1e9 / 8.0, memory: vec![f64::INFINITY] })
}

/// A plan as the paper writes it: replicas of the stages.
fn form(plan: &ChainPlan) -> String {
    match &plan.replicas[..] {
        [_] => "DP".into(),
        replicas if replicas.iter().all(|replicas| *replicas == 1) => "straight".into(),
        replicas => replicas.iter().map(u32::to_string).collect::<Vec<_>>().join(":"),
    }
}
