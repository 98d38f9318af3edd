//! The dynamic program over pairs of sets, one within the other.

use super::contract::Units;
use super::sets::{Sets, holds, is_within};
use super::{GraphPart, OperatorGraph, SplitLimits};

/// What the program knows of a graph and its sets.
struct Program<'a> {
    graph: &'a OperatorGraph,
    units: &'a Units,
    sets: &'a Sets,
    limits: &'a SplitLimits,
    sums: Vec<LoadSum>,
    /// Nodes whose results leave their unit: unit, time of a transfer, bits of the units that need it.
    senders: Vec<(usize, f64, Vec<u64>)>,
    /// Greatest load at best, by set, accelerators and processors in use.
    best: Vec<f64>,
    /// The smaller set behind each of `best`, and whether the difference is on an accelerator.
    from: Vec<(usize, bool)>,
    /// No load above this is part of the best split.
    enough: f64,
}

/// What the nodes of a set take.
#[derive(Clone, Copy, Default)]
struct LoadSum {
    /// On an accelerator: time, and how many nodes cannot run there.
    accelerator: (f64, usize),
    /// On a processor, likewise.
    processor: (f64, usize),
    memory: f64,
}

/// The smallest greatest load and its parts; none where nothing fits.
pub(super) fn solve(
    graph: &OperatorGraph,
    units: &Units,
    sets: &Sets,
    limits: &SplitLimits,
) -> Option<(f64, Vec<GraphPart>)> {
    // One order of the units gives a split that is good enough to rule out most pairs of sets.
    let prefixes = Sets::prefixes(&units.order());
    let enough = Program::new(graph, units, &prefixes, limits, f64::INFINITY).run();
    let mut program = Program::new(graph, units, sets, limits, enough);
    let load = program.run();
    load.is_finite().then(|| (load, program.parts()))
}

impl<'a> Program<'a> {
    fn new(
        graph: &'a OperatorGraph,
        units: &'a Units,
        sets: &'a Sets,
        limits: &'a SplitLimits,
        enough: f64,
    ) -> Program<'a> {
        let states = (limits.accelerators + 1) * (limits.processors + 1);
        let sums = (0..sets.len()).map(|at| sum(graph, units, sets.get(at)));
        let mut program = Program {
            graph,
            units,
            sets,
            limits,
            sums: sums.collect(),
            senders: senders(graph, units, sets),
            best: vec![f64::INFINITY; states * sets.len()],
            from: vec![(0, false); states * sets.len()],
            enough,
        };
        program.best[..states].fill(0.0);
        program
    }

    fn at(&self, set: usize, accelerators: usize, processors: usize) -> usize {
        (set * (self.limits.accelerators + 1) + accelerators) * (self.limits.processors + 1) + processors
    }

    /// Fills the table, and answers for the set of all.
    fn run(&mut self) -> f64 {
        for large in 1..self.sets.len() {
            for small in 0..large {
                if is_within(self.sets.get(small), self.sets.get(large)) {
                    self.pair(small, large);
                }
            }
        }
        self.best[self.at(self.sets.len() - 1, self.limits.accelerators, self.limits.processors)]
    }

    /// One more device takes what the larger set has more.
    fn pair(&mut self, small: usize, large: usize) {
        let (less, more) = (self.sums[small], self.sums[large]);
        // Differences of sums may be off by their last digits.
        let slack = 1.0 + 1e-9;
        let time = |of: fn(&LoadSum) -> (f64, usize)| {
            let ((less, banned), (more, all)) = (of(&less), of(&more));
            Some(more - less).filter(|time| all == banned && *time <= self.enough * slack)
        };
        let (accelerator, processor) = (time(|sum| sum.accelerator), time(|sum| sum.processor));
        if let Some(compute) = accelerator.filter(|_| more.memory - less.memory <= self.limits.memory * slack)
        {
            self.offer(small, large, compute + self.transfers(small, large), true);
        }
        if let Some(load) = processor {
            self.offer(small, large, load, false);
        }
    }

    fn offer(&mut self, small: usize, large: usize, load: f64, on_accelerator: bool) {
        if load > self.enough * (1.0 + 1e-9) {
            return;
        }
        let (a, p) = (usize::from(on_accelerator), usize::from(!on_accelerator));
        for accelerators in a..=self.limits.accelerators {
            for processors in p..=self.limits.processors {
                let before = self.best[self.at(small, accelerators - a, processors - p)];
                let place = self.at(large, accelerators, processors);
                if before.max(load) < self.best[place] {
                    self.best[place] = before.max(load);
                    self.from[place] = (small, on_accelerator);
                }
            }
        }
    }

    /// Once for each own node that is needed elsewhere, and each foreign one that is needed here.
    fn transfers(&self, small: usize, large: usize) -> f64 {
        let (small, large) = (self.sets.get(small), self.sets.get(large));
        let own = |word: usize| large[word] & !small[word];
        let crossing = |(unit, _, needed): &&(usize, f64, Vec<u64>)| match own(unit / 64) >> (unit % 64) & 1 {
            1 => needed.iter().enumerate().any(|(word, needed)| needed & !own(word) != 0),
            _ => needed.iter().enumerate().any(|(word, needed)| needed & own(word) != 0),
        };
        self.senders.iter().filter(crossing).map(|(_, transfer, _)| transfer).sum()
    }

    /// The parts of the best split, in order of the graph.
    fn parts(&self) -> Vec<GraphPart> {
        let (mut set, mut parts) = (self.sets.len() - 1, Vec::new());
        let (mut accelerators, mut processors) = (self.limits.accelerators, self.limits.processors);
        while set > 0 {
            let (small, on_accelerator) = self.from[self.at(set, accelerators, processors)];
            parts.push(self.part(small, set, on_accelerator));
            accelerators -= usize::from(on_accelerator);
            processors -= usize::from(!on_accelerator);
            set = small;
        }
        parts.reverse();
        parts
    }

    fn part(&self, small: usize, large: usize, on_accelerator: bool) -> GraphPart {
        let own = |unit: usize| holds(self.sets.get(large), unit) && !holds(self.sets.get(small), unit);
        let nodes: Vec<usize> =
            (0..self.graph.nodes.len()).filter(|node| own(self.units.of[*node])).collect();
        let sum = |of: fn(&super::OperatorNode) -> f64| {
            nodes.iter().map(|node| of(&self.graph.nodes[*node])).sum::<f64>()
        };
        let load = match on_accelerator {
            true => sum(|node| node.accelerator) + self.transfers(small, large),
            false => sum(|node| node.processor),
        };
        let memory = sum(|node| node.memory);
        GraphPart { on_accelerator, load, memory, nodes }
    }
}

fn sum(graph: &OperatorGraph, units: &Units, set: &[u64]) -> LoadSum {
    let mut sum = LoadSum::default();
    for (node, _) in graph.nodes.iter().zip(&units.of).filter(|(_, unit)| holds(set, **unit)) {
        for (time, total) in [(node.accelerator, &mut sum.accelerator), (node.processor, &mut sum.processor)]
        {
            match time.is_finite() {
                true => total.0 += time,
                false => total.1 += 1,
            }
        }
        sum.memory += node.memory;
    }
    sum
}

fn senders(graph: &OperatorGraph, units: &Units, sets: &Sets) -> Vec<(usize, f64, Vec<u64>)> {
    let mut needed: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for (from, to) in graph.edges.iter().filter(|(from, to)| units.of[*from] != units.of[*to]) {
        needed[*from].push(units.of[*to]);
    }
    let crossing = needed.iter().enumerate().filter(|(_, needed)| !needed.is_empty());
    crossing.map(|(node, needed)| (units.of[node], graph.nodes[node].transfer, sets.mask(needed))).collect()
}
