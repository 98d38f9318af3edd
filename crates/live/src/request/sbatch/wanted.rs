//! What the flags of a script add up to. Several flags decide one field (nodes, tasks and GPUs the shape, partition
//! and constraint the kinds), so they are collected first and put together at the end.

use super::super::{JobRequest, Ranks};
use super::Script;

/// What was read so far.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) request: JobRequest,
    pub(super) nodes: Option<u32>,
    pub(super) tasks: Option<u32>,
    pub(super) tasks_per_node: Option<u32>,
    pub(super) cpus_per_task: Option<u32>,
    pub(super) gpus: Option<u32>,
    pub(super) gpus_per_node: Option<u32>,
    pub(super) array: Option<Vec<u32>>,
}

impl Wanted {
    /// Of all kinds that were allowed so far, only these.
    pub(super) fn only_kinds(&mut self, kinds: Vec<String>) -> Result<(), String> {
        let before = std::mem::take(&mut self.request.kinds);
        let both = |kind: &String| before.is_empty() || before.contains(kind);
        let left: Vec<_> = kinds.iter().filter(|kind| both(kind)).cloned().collect();
        if left.is_empty() {
            return Err(format!("{} contradicts {} above", kinds.join("|"), before.join("|")));
        }
        self.request.kinds = left;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Script, String> {
        let gpus = self.total_gpus()?;
        self.request.gpus = Some(gpus);
        self.request.nodes = self.nodes;
        (self.request.ranks, self.request.tasks_per_node) = self.ranks(gpus)?;
        self.request.cpus = self.cpus_per_task.map(|cpus| f64::from(cpus) * f64::from(self.tasks_here(gpus)));
        let files = [&self.request.output, &self.request.error];
        if self.array.is_none() && files.into_iter().flatten().any(|file| file.contains("%a")) {
            return Err("%a in a file's name is the number in an array, and there is no --array".into());
        }
        Ok(Script { request: self.request, array: self.array })
    }

    /// As with Slurm, a script that asks for no GPU gets none.
    fn total_gpus(&self) -> Result<u32, String> {
        let by_node = self.gpus_per_node.map(|gpus| gpus.saturating_mul(self.nodes.unwrap_or(1)));
        match (self.gpus, by_node) {
            (Some(total), Some(by_node)) if total != by_node => Err(format!(
                "--gpus requests {total} GPUs in total, but the GPUs per node add up to {by_node}"
            )),
            (total, by_node) => Ok(total.or(by_node).unwrap_or(0)),
        }
    }

    /// Processes on each node, where that was said.
    fn tasks_each(&self) -> Result<Option<u32>, String> {
        let nodes = self.nodes.unwrap_or(1);
        let divided = self.tasks.map(|tasks| if tasks % nodes == 0 { Ok(tasks / nodes) } else { Err(tasks) });
        let divided = divided
            .transpose()
            .map_err(|tasks| format!("{tasks} tasks cannot be divided evenly over {nodes} nodes"))?;
        match (self.tasks_per_node, divided) {
            (Some(each), Some(divided)) if each != divided => {
                Err(format!("--ntasks-per-node {each} and --ntasks contradict each other on {nodes} nodes"))
            }
            (each, divided) => Ok(each.or(divided)),
        }
    }

    /// One process on each node, one for each of its GPUs, or so many.
    fn ranks(&self, gpus: u32) -> Result<(Ranks, Option<u32>), String> {
        let nodes = self.nodes.unwrap_or(1);
        Ok(match self.tasks_each()? {
            None | Some(1) => (Ranks::Node, None),
            Some(each) if each.saturating_mul(nodes) == gpus => (Ranks::Device, None),
            Some(each) => (Ranks::Node, Some(each)),
        })
    }

    fn tasks_here(&self, gpus: u32) -> u32 {
        let per_device = self.request.ranks == Ranks::Device;
        let devices = gpus / self.nodes.unwrap_or(1).max(1);
        self.request.tasks_per_node.unwrap_or(if per_device { devices } else { 1 })
    }
}
