//! Which nodes to give back: servers that were lent are wanted again, so many of them, and it does not matter which (Li et
//! al., "Lyra: Elastic Scheduling for Deep Learning Clusters", EuroSys 2023). Those go whose jobs cost least to stop,
//! min Σ_{a stopped} weight_a, where a job is stopped once however many of its nodes go. That is a hard problem (the
//! smallest union of so many sets): the paper's greedy choice, each time the node with the least Σ weight_a / |nodes of a|
//! over jobs not yet stopped, is made better by exchanges, and by a search through all choices where its budget suffices.
//! Numbers only; the engine gives back by it (`engine/nodes`).

use std::collections::BTreeSet;

/// Steps of the search through all choices, at most: past them what was found stays.
const STEPS_MAX: u32 = 20_000;

/// Exchanges tried at most; each is one pass over the nodes that stay.
const EXCHANGES_MAX: u32 = 64;

/// The nodes that may go: for each the jobs on it, and what it costs to stop each job.
#[derive(Clone, Debug)]
pub struct Servers {
    /// Jobs on each node, without repetition.
    pub jobs: Vec<Vec<usize>>,
    /// By job.
    pub weights: Vec<f64>,
}

/// The `count` nodes whose jobs cost least to stop, in order.
pub fn cheapest(servers: &Servers, count: usize) -> Vec<usize> {
    let count = count.min(servers.jobs.len());
    let mut chosen = servers.greedy(count);
    servers.exchange(&mut chosen);
    let mut search = Search {
        servers,
        count,
        best: servers.cost(&chosen),
        found: chosen,
        steps: 0,
        order: servers.order(),
    };
    search.visit(0, &mut Vec::new(), &mut vec![0; servers.weights.len()], 0.0);
    let mut found = search.found;
    found.sort_unstable();
    found
}

impl Servers {
    fn cost(&self, chosen: &[usize]) -> f64 {
        let stopped: BTreeSet<usize> = chosen.iter().flat_map(|node| &self.jobs[*node]).copied().collect();
        stopped.iter().map(|job| self.weights[*job]).sum()
    }

    /// The nodes of each job.
    fn spans(&self) -> Vec<f64> {
        let mut spans = vec![0.0; self.weights.len()];
        self.jobs.iter().flatten().for_each(|job| spans[*job] += 1.0);
        spans
    }

    fn greedy(&self, count: usize) -> Vec<usize> {
        let (spans, mut stopped) = (self.spans(), BTreeSet::new());
        let mut chosen: Vec<usize> = Vec::new();
        for _ in 0..count {
            let cost = |node: &usize| -> f64 {
                let hit = self.jobs[*node].iter().filter(|job| !stopped.contains(*job));
                hit.map(|job| self.weights[*job] / spans[*job]).sum()
            };
            let left = (0..self.jobs.len()).filter(|node| !chosen.contains(node));
            let costs = left.map(|node| (cost(&node), node));
            let Some((_, next)) = costs.reduce(|best, next| if next.0 < best.0 { next } else { best }) else {
                break;
            };
            stopped.extend(self.jobs[next].iter().copied());
            chosen.push(next);
        }
        chosen
    }

    /// One node for another while that costs less.
    fn exchange(&self, chosen: &mut [usize]) {
        let mut tries = 0;
        while tries < EXCHANGES_MAX {
            tries += 1;
            let cost = self.cost(chosen);
            let Some((at, node)) = self.better(chosen, cost) else { return };
            chosen[at] = node;
        }
    }

    fn better(&self, chosen: &[usize], cost: f64) -> Option<(usize, usize)> {
        let others: Vec<usize> = (0..self.jobs.len()).filter(|node| !chosen.contains(node)).collect();
        let mut trial = chosen.to_vec();
        for at in 0..chosen.len() {
            for node in &others {
                trial[at] = *node;
                if self.cost(&trial) < cost - 1e-9 {
                    return Some((at, *node));
                }
            }
            trial[at] = chosen[at];
        }
        None
    }

    /// The cheapest by themselves first: good choices are found early, and bad ones cut off.
    fn order(&self) -> Vec<usize> {
        let alone = |node: &usize| self.cost(&[*node]);
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by(|a, b| alone(a).total_cmp(&alone(b)).then(a.cmp(b)));
        order
    }
}

struct Search<'a> {
    servers: &'a Servers,
    count: usize,
    best: f64,
    found: Vec<usize>,
    steps: u32,
    order: Vec<usize>,
}

impl Search<'_> {
    /// Decides on the nodes from `at` on; `hits` counts the chosen nodes of each job.
    fn visit(&mut self, at: usize, chosen: &mut Vec<usize>, hits: &mut Vec<u32>, cost: f64) {
        self.steps += 1;
        if cost >= self.best - 1e-9 || self.steps > STEPS_MAX {
            return;
        }
        if chosen.len() == self.count {
            (self.best, self.found) = (cost, chosen.clone());
            return;
        }
        if self.order.len() - at < self.count - chosen.len() {
            return;
        }
        let node = self.order[at];
        let jobs = &self.servers.jobs[node];
        let more: f64 =
            jobs.iter().filter(|job| hits[**job] == 0).map(|job| self.servers.weights[*job]).sum();
        jobs.iter().for_each(|job| hits[*job] += 1);
        chosen.push(node);
        self.visit(at + 1, chosen, hits, cost + more);
        chosen.pop();
        jobs.iter().for_each(|job| hits[*job] -= 1);
        self.visit(at + 1, chosen, hits, cost);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn brute(servers: &Servers, count: usize) -> f64 {
        let sets = (0u32..1 << servers.jobs.len()).filter(|set| set.count_ones() as usize == count);
        let nodes =
            |set: u32| (0..servers.jobs.len()).filter(move |node| set >> node & 1 == 1).collect::<Vec<_>>();
        sets.map(|set| servers.cost(&nodes(set))).fold(f64::INFINITY, f64::min)
    }

    fn servers() -> impl Strategy<Value = Servers> {
        let jobs = prop::collection::vec(prop::collection::btree_set(0usize..8, 0..4), 1..9);
        (jobs, prop::collection::vec(1u32..4, 8)).prop_map(|(jobs, weights)| Servers {
            jobs: jobs.into_iter().map(|on| on.into_iter().collect()).collect(),
            weights: weights.into_iter().map(f64::from).collect(),
        })
    }

    proptest! {
        #[test]
        fn nothing_costs_less(servers in servers(), count in 0usize..9) {
            let count = count.min(servers.jobs.len());
            let chosen = cheapest(&servers, count);
            prop_assert_eq!(chosen.iter().collect::<BTreeSet<_>>().len(), count);
            prop_assert!((servers.cost(&chosen) - brute(&servers, count)).abs() < 1e-9, "{:?}", chosen);
        }

        /// Without the search through all, where it would take too long: never worse than the paper's greedy choice.
        #[test]
        fn exchanges_only_help(servers in servers(), count in 1usize..6) {
            let greedy = servers.greedy(count.min(servers.jobs.len()));
            let mut chosen = greedy.clone();
            servers.exchange(&mut chosen);
            prop_assert!(servers.cost(&chosen) <= servers.cost(&greedy) + 1e-9);
        }
    }

    #[test]
    fn who_is_stopped_already_costs_nothing_elsewhere() {
        // Two nodes of one wide job cost one stop; any other two cost two.
        let servers = Servers { jobs: vec![vec![0], vec![1], vec![2], vec![1]], weights: vec![1.0; 3] };
        assert_eq!(cheapest(&servers, 2), [1, 3]);
        let free = Servers { jobs: vec![vec![0], vec![], vec![1]], weights: vec![1.0; 2] };
        assert_eq!((cheapest(&free, 1), cheapest(&free, 9).len()), (vec![1], 3));
    }

    #[test]
    fn many_nodes_are_chosen_in_bounded_work() {
        let jobs = (0..500).map(|node| vec![node % 90, 90 + node % 77]).collect();
        let servers = Servers { jobs, weights: vec![1.0; 167] };
        let chosen = cheapest(&servers, 20);
        assert!(chosen.len() == 20 && servers.cost(&chosen) < 40.0);
    }
}
