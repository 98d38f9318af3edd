//! Units: nodes that have to lie together. Those of a class do; and what lies on a cycle once classes are fused.

use std::collections::BTreeMap;

use super::{OperatorGraph, SplitError};

/// Groups of nodes, and which needs which.
pub(super) struct Units {
    /// The unit of each node.
    pub(super) of: Vec<usize>,
    /// The units that each needs directly, in order.
    pub(super) needs: Vec<Vec<usize>>,
}

impl Units {
    pub(super) fn new(graph: &OperatorGraph) -> Result<Units, SplitError> {
        let count = graph.nodes.len();
        let missing = graph.edges.iter().flat_map(|(from, to)| [*from, *to]).find(|node| *node >= count);
        if let Some(node) = missing {
            return Err(SplitError::UnknownNode(node));
        }
        if let Some(node) = on_cycle(count, &graph.edges) {
            return Err(SplitError::Cycle(node));
        }
        let (classes, of) = classes(graph)?;
        Ok(Units::strong(graph, &of, classes))
    }

    /// Fuses units on a cycle of groups.
    fn strong(graph: &OperatorGraph, group: &[usize], groups: usize) -> Units {
        let edges = forward_edges(graph, group);
        let strong = components(groups, &edges);
        let of: Vec<usize> = group.iter().map(|group| strong[*group]).collect();
        let count = strong.iter().max().map_or(0, |last| last + 1);
        let mut needs = vec![Vec::new(); count];
        for (from, to) in forward_edges(graph, &of) {
            needs[to].push(from);
        }
        needs.iter_mut().for_each(|needs| {
            needs.sort_unstable();
            needs.dedup();
        });
        Units { of, needs }
    }

    pub(super) fn len(&self) -> usize {
        self.needs.len()
    }

    /// Fuses each unit with the only one that needs it, where that needs nothing else.
    pub(super) fn with_chains_merged(&self, graph: &OperatorGraph) -> Units {
        let mut needed_by = vec![0usize; self.len()];
        self.needs.iter().flatten().for_each(|unit| needed_by[*unit] += 1);
        let mut head: Vec<usize> = (0..self.len()).collect();
        for unit in self.order() {
            if let [only] = self.needs[unit][..]
                && needed_by[only] == 1
            {
                head[unit] = head[only];
            }
        }
        let group: Vec<usize> = self.of.iter().map(|unit| head[*unit]).collect();
        let group = dense(&group);
        let groups = group.iter().max().map_or(0, |last| last + 1);
        Units::strong(graph, &group, groups)
    }

    /// Units after all that they need.
    pub(super) fn order(&self) -> Vec<usize> {
        let edges =
            self.needs.iter().enumerate().flat_map(|(to, needs)| needs.iter().map(move |from| (*from, to)));
        sorted(self.len(), &edges.collect::<Vec<_>>())
    }
}

/// Numbers in order of first appearance of their values; at most as many as there are values.
fn dense(values: &[usize]) -> Vec<usize> {
    let mut numbers = BTreeMap::new();
    values
        .iter()
        .map(|value| {
            let next = numbers.len();
            *numbers.entry(*value).or_insert(next)
        })
        .collect()
}

/// A number for each class, and for each node without one.
fn classes(graph: &OperatorGraph) -> Result<(usize, Vec<usize>), SplitError> {
    let key = |at: usize| graph.nodes[at].class.map_or((1, at as u64), |class| (0, class));
    let mut forward = BTreeMap::new();
    for at in (0..graph.nodes.len()).filter(|at| !graph.nodes[*at].backward) {
        let next = forward.len();
        forward.entry(key(at)).or_insert(next);
    }
    let number = |at: usize| forward.get(&key(at)).copied().ok_or(SplitError::Alone(at));
    let of = (0..graph.nodes.len()).map(number).collect::<Result<Vec<_>, _>>()?;
    Ok((forward.len(), of))
}

/// Edges of the forward pass between groups.
fn forward_edges(graph: &OperatorGraph, group: &[usize]) -> Vec<(usize, usize)> {
    let forward = |(from, to): &&(usize, usize)| !graph.nodes[*from].backward && !graph.nodes[*to].backward;
    let grouped = graph.edges.iter().filter(forward).map(|(from, to)| (group[*from], group[*to]));
    grouped.filter(|(from, to)| from != to).collect()
}

/// Nodes after all that have an edge to them; those on or behind a cycle are missing. The smallest first.
fn sorted(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let (mut waits, mut next) = (vec![0usize; count], vec![Vec::new(); count]);
    for (from, to) in edges {
        waits[*to] += 1;
        next[*from].push(*to);
    }
    let mut free: std::collections::BTreeSet<usize> = (0..count).filter(|node| waits[*node] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(node) = free.pop_first() {
        order.push(node);
        for to in &next[node] {
            waits[*to] -= 1;
            if waits[*to] == 0 {
                free.insert(*to);
            }
        }
    }
    order
}

/// A node on a cycle, if there is one.
fn on_cycle(count: usize, edges: &[(usize, usize)]) -> Option<usize> {
    let order = sorted(count, edges);
    let mut left = vec![true; count];
    order.iter().for_each(|node| left[*node] = false);
    // Of what is left each node has another before it: going back ends on a cycle.
    let mut node = left.iter().position(|left| *left)?;
    for _ in 0..count {
        node = edges.iter().find(|(from, to)| *to == node && left[*from]).map(|(from, _)| *from)?;
    }
    Some(node)
}

/// The strongly connected component of each node, by two passes in depth; numbers in order of dependence.
fn components(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let (mut next, mut back) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for (from, to) in edges {
        next[*from].push(*to);
        back[*to].push(*from);
    }
    let mut seen = vec![false; count];
    let mut finished = Vec::with_capacity(count);
    for root in 0..count {
        visit(root, &next, &mut seen, &mut finished);
    }
    let (mut seen, mut of, mut number) = (vec![false; count], vec![0; count], 0);
    for root in finished.iter().rev() {
        let mut found = Vec::new();
        visit(*root, &back, &mut seen, &mut found);
        found.iter().for_each(|node| of[*node] = number);
        number += usize::from(!found.is_empty());
    }
    of
}

/// Appends what can be reached from a node and was not yet, each after all that it reaches.
fn visit(root: usize, next: &[Vec<usize>], seen: &mut [bool], finished: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[root], true) {
        return;
    }
    let mut path = vec![(root, 0)];
    while let Some((node, at)) = path.last_mut() {
        match next[*node].get(*at) {
            Some(to) => {
                *at += 1;
                if !std::mem::replace(&mut seen[*to], true) {
                    path.push((*to, 0));
                }
            }
            None => {
                finished.push(*node);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_a_cycle_is_one_component() {
        let of = components(5, &[(0, 1), (1, 2), (2, 1), (2, 3), (4, 3)]);
        assert_eq!(of[1], of[2]);
        assert!(of[0] < of[1] && of[1] < of[3] && of[4] < of[3], "{of:?}");
    }

    #[test]
    fn a_cycle_is_found_and_what_hangs_on_it_is_not_blamed() {
        assert_eq!(on_cycle(3, &[(0, 1), (1, 2)]), None);
        let node = on_cycle(5, &[(0, 1), (1, 2), (2, 1), (2, 3), (3, 4)]);
        assert!(matches!(node, Some(1 | 2)), "{node:?}");
    }
}
