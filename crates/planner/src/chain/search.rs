//! Which stages: one; every cut in two with every ratio of devices; equal groups with the most even cut.

use super::placement::{StageSeats, placements};
use super::stages::Stages;
use super::{Chain, ChainMachine};

/// The best stages that were found.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainPlan {
    /// Seconds of a step.
    pub step_s: f64,
    /// Layers of each stage.
    pub layers: Vec<usize>,
    /// Replicas of each stage.
    pub replicas: Vec<u32>,
    /// Devices of each stage on each node.
    pub seats: Vec<Vec<u32>>,
    /// How many micro-batches a step has.
    pub micro_batches: u32,
    /// Bytes on the fullest device.
    pub memory: f64,
}

/// Replicas of each stage, and where the stages begin if that is given.
struct StageGroups {
    replicas: Vec<u32>,
    begins: Option<Vec<usize>>,
}

/// Plans a chain on all devices of a machine; none where nothing fits.
pub fn plan(chain: &Chain, machine: &ChainMachine) -> Option<ChainPlan> {
    let mut candidates = Vec::new();
    for groups in groups(chain, machine.devices()) {
        for seats in placements(machine, &groups.replicas) {
            let begins = groups.begins.clone().unwrap_or_else(|| even_cut(chain, machine, &seats));
            let micro_batches = micro_batches(chain, &groups.replicas);
            let stages = Stages { chain, machine, begins: &begins, seats: &seats, micro_batches };
            let rhythm = stages.rhythm();
            candidates.extend(rhythm.map(|rhythm| (rhythm.bound(), rhythm, begins, seats)));
        }
    }
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best: Option<ChainPlan> = None;
    for (bound, rhythm, begins, seats) in candidates {
        if best.as_ref().is_some_and(|best| bound >= best.step_s) {
            break;
        }
        let step_s = rhythm.simulate();
        if best.as_ref().is_none_or(|best| step_s < best.step_s) {
            let ahead = rhythm.stages.iter().step_by(2).map(|stage| stage.ahead.min(rhythm.micro_batches));
            best = Some(described(chain, step_s, begins, seats, rhythm.micro_batches, ahead));
        }
    }
    best
}

/// One stage; two with every cut and ratio; equal groups.
fn groups(chain: &Chain, devices: u32) -> impl Iterator<Item = StageGroups> {
    let layers = chain.layers.len();
    let one = StageGroups { replicas: vec![devices], begins: Some(vec![0]) };
    let two = move |cut| {
        (1..devices).map(move |first| StageGroups {
            replicas: vec![first, devices - first],
            begins: Some(vec![0, cut]),
        })
    };
    let equal =
        (2..=devices).filter(move |stages| devices.is_multiple_of(*stages) && *stages as usize <= layers);
    let equal = equal
        .map(move |stages| StageGroups { replicas: vec![devices / stages; stages as usize], begins: None });
    std::iter::once(one).chain((1..layers).flat_map(two)).chain(equal)
}

/// Each replica of the widest stage has the profiled batch, as nearly as the step's samples divide.
fn micro_batches(chain: &Chain, replicas: &[u32]) -> u32 {
    let widest = u64::from(replicas.iter().copied().max().unwrap_or(1)) * u64::from(chain.profiled);
    u64::from(chain.batch).div_ceil(widest).max(1) as u32
}

/// The cut after which the busiest stage has least to do, each stage on its own kinds: by dynamic programming.
fn even_cut(chain: &Chain, machine: &ChainMachine, seats: &StageSeats) -> Vec<usize> {
    let (layers, stages) = (chain.layers.len(), seats.len());
    let sums: Vec<Vec<f64>> = seats.iter().map(|seats| times(chain, machine, seats)).collect();
    let mut best = vec![vec![f64::INFINITY; layers + 1]; stages + 1];
    let mut begin = vec![vec![0; layers + 1]; stages + 1];
    best[0][0] = 0.0;
    for stage in 1..=stages {
        for end in stage..=layers {
            for start in stage - 1..end {
                let busiest = best[stage - 1][start].max(sums[stage - 1][end] - sums[stage - 1][start]);
                if busiest < best[stage][end] {
                    (best[stage][end], begin[stage][end]) = (busiest, start);
                }
            }
        }
    }
    let (mut begins, mut end) = (vec![0; stages], layers);
    for stage in (1..=stages).rev() {
        end = begin[stage][end];
        begins[stage - 1] = end;
    }
    begins
}

/// Time of the layers before each, on the slowest kind of a stage.
fn times(chain: &Chain, machine: &ChainMachine, seats: &[u32]) -> Vec<f64> {
    let kinds: Vec<usize> = seats
        .iter()
        .zip(&machine.nodes)
        .filter(|(seats, _)| **seats > 0)
        .map(|(_, node)| node.kind)
        .collect();
    let mut sums = vec![0.0];
    for layer in &chain.layers {
        let slowest =
            kinds.iter().map(|kind| layer.seconds[*kind].0 + layer.seconds[*kind].1).fold(0.0, f64::max);
        sums.push(sums[sums.len() - 1] + slowest);
    }
    sums
}

fn described(
    chain: &Chain,
    step_s: f64,
    begins: Vec<usize>,
    seats: StageSeats,
    micro_batches: u32,
    ahead: impl Iterator<Item = u32>,
) -> ChainPlan {
    let ends = begins.iter().skip(1).copied().chain([chain.layers.len()]);
    let replicas: Vec<u32> = seats.iter().map(|seats| seats.iter().sum()).collect();
    let scale = f64::from(chain.batch) / f64::from(micro_batches) / f64::from(chain.profiled);
    let memory =
        begins.iter().zip(ends.clone()).zip(&replicas).zip(ahead).map(|(((begin, end), replicas), ahead)| {
            let layers = &chain.layers[*begin..end];
            let kept: f64 = layers.iter().map(|layer| layer.kept_bytes).sum();
            let state: f64 = layers.iter().map(|layer| layer.state_bytes).sum();
            state + kept * scale / f64::from(*replicas) * f64::from(ahead)
        });
    let memory = memory.fold(0.0, f64::max);
    let layers = begins.iter().zip(ends).map(|(begin, end)| end - begin).collect();
    ChainPlan { step_s, layers, replicas, seats, micro_batches, memory }
}
