//! The genetic algorithm of Pollux' artifact, as the reference: an allocation is a table of devices by job and node;
//! 100 of them live through 100 generations of crossover, mutation and repair. Where the artifact keeps the front of two
//! objectives (NSGA-II), this keeps the best by the first alone, which can only help that one; and only jobs that hold
//! devices are ever set back to what they hold, so that none is set back to nothing.

use yard_sim::random::Random;

use super::instance::{NODE, Placed, PolluxInstance};

const POPULATION: usize = 100;
const GENERATIONS: usize = 100;

/// Chance of a job's row to be set back to what it holds, of a job to lose devices, and of each of its entries then.
const RESET: f64 = 0.1;
const SHRINK: f64 = 0.1;

/// Devices by job and node, job after job.
type GeneticTable = Vec<u8>;

struct GeneticSearch<'a> {
    instance: &'a PolluxInstance,
    /// What jobs hold now.
    held: GeneticTable,
    random: Random,
}

/// The best allocation found.
pub(super) fn search(instance: &PolluxInstance, seed: u64) -> Vec<Placed> {
    let mut search = GeneticSearch { instance, held: hold(instance), random: Random::new(seed ^ u64::MAX) };
    let mut first = vec![search.held.clone()];
    first.extend((1..POPULATION).map(|_| search.child(&search.held.clone())));
    let mut living: Vec<(f64, GeneticTable)> =
        first.into_iter().map(|table| (search.fitness(&table), table)).collect();
    for _ in 0..GENERATIONS {
        for _ in 0..POPULATION / 2 {
            for table in search.pair(&living) {
                let child = search.child(&table);
                living.push((search.fitness(&child), child));
            }
        }
        living.sort_by(|a, b| b.0.total_cmp(&a.0));
        living.truncate(POPULATION);
    }
    search.placed(&living[0].1)
}

/// What jobs hold, each on the first node with room.
fn hold(instance: &PolluxInstance) -> GeneticTable {
    let mut table = vec![0; instance.jobs.len() * instance.nodes];
    let mut free = vec![NODE; instance.nodes];
    for (job, own) in instance.jobs.iter().enumerate().filter(|(_, own)| own.held.devices > 0) {
        if let Some(node) = free.iter().position(|free| *free >= own.held.devices) {
            free[node] -= own.held.devices;
            table[job * instance.nodes + node] = own.held.devices as u8;
        }
    }
    table
}

impl GeneticSearch<'_> {
    fn row<'t>(&self, table: &'t [u8], job: usize) -> &'t [u8] {
        &table[job * self.instance.nodes..(job + 1) * self.instance.nodes]
    }

    fn placed(&self, table: &[u8]) -> Vec<Placed> {
        let placed = |job: usize| {
            let row = self.row(table, job);
            let devices = row.iter().map(|devices| u32::from(*devices)).sum();
            Placed { devices, across: row.iter().filter(|devices| **devices > 0).count() > 1 }
        };
        (0..self.instance.jobs.len()).map(placed).collect()
    }

    fn fitness(&self, table: &[u8]) -> f64 {
        self.instance.fitness(&self.placed(table))
    }

    /// Two parents, each the better of two, with their rows swapped from one job on.
    fn pair(&mut self, living: &[(f64, GeneticTable)]) -> [GeneticTable; 2] {
        let mut parent = || {
            let many = living.len().min(POPULATION) as u64;
            let (a, b) = (self.random.below(many) as usize, self.random.below(many) as usize);
            &living[if living[a].0 >= living[b].0 { a } else { b }].1
        };
        let (a, b) = (parent(), parent());
        let cut = self.random.below(self.instance.jobs.len() as u64 + 1) as usize * self.instance.nodes;
        let join = |head: &GeneticTable, tail: &GeneticTable| [&head[..cut], &tail[cut..]].concat();
        [join(a, b), join(b, a)]
    }

    fn child(&mut self, table: &GeneticTable) -> GeneticTable {
        let mut child = table.clone();
        self.shrink(&mut child);
        self.grow(&mut child);
        self.repair(&mut child);
        child
    }

    fn shrink(&mut self, table: &mut GeneticTable) {
        let nodes = self.instance.nodes;
        for job in 0..self.instance.jobs.len() {
            let row = job * nodes..(job + 1) * nodes;
            let holds = self.instance.jobs[job].held.devices > 0;
            if holds && self.random.chance(RESET) {
                table[row.clone()].copy_from_slice(&self.held[row.clone()]);
            }
            if self.random.chance(SHRINK) {
                row.for_each(|at| table[at] = if self.random.chance(SHRINK) { 0 } else { table[at] });
            }
        }
    }

    /// Entries on nodes with free devices grow, about as many as there are such nodes; those of jobs that are there
    /// already twice as often.
    fn grow(&mut self, table: &mut GeneticTable) {
        let (jobs, nodes) = (self.instance.jobs.len(), self.instance.nodes);
        for node in 0..nodes {
            let used: u32 = (0..jobs).map(|job| u32::from(table[job * nodes + node])).sum();
            if used >= NODE {
                continue;
            }
            for job in 0..jobs {
                let entry = table[job * nodes + node];
                let times = if entry > 0 { 2.0 } else { 1.0 };
                if self.random.chance(times / jobs as f64) {
                    let room = u64::from(NODE as u8 - entry.min(NODE as u8));
                    table[job * nodes + node] = entry + self.random.below(room + 1) as u8;
                }
            }
        }
    }

    /// At most one job across nodes on any node, and no more devices than there are: later rows lose.
    fn repair(&self, table: &mut GeneticTable) {
        let (jobs, nodes) = (self.instance.jobs.len(), self.instance.nodes);
        let mut taken = vec![false; nodes];
        for job in 0..jobs {
            let across = self.row(table, job).iter().filter(|devices| **devices > 0).count() > 1;
            for (node, entry) in table[job * nodes..(job + 1) * nodes].iter_mut().enumerate() {
                if across && *entry > 0 && std::mem::replace(&mut taken[node], true) {
                    *entry = 0;
                }
            }
        }
        for node in 0..nodes {
            let mut left = NODE as u8;
            for job in 0..jobs {
                let entry = &mut table[job * nodes + node];
                *entry = (*entry).min(left);
                left -= *entry;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_finds_can_be_had_and_is_better_than_what_there_was() {
        let instance = PolluxInstance::new(4, 8, 3);
        let found = search(&instance, 3);
        assert!(found.iter().map(|placed| placed.devices).sum::<u32>() <= 16);
        let held: Vec<Placed> = instance.jobs.iter().map(|job| job.held).collect();
        assert!(instance.fitness(&found) > instance.fitness(&held));
    }
}
