//! Which devices the stages have: three rules, each from either end of the nodes.

use super::ChainMachine;

/// How a stage's devices are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// The emptiest node first.
    FreshFirst,
    /// Nodes that have begun to fill first.
    BegunFirst,
    /// One of each node in turn.
    Scattered,
}

/// Devices of each stage on each node.
pub(super) type StageSeats = Vec<Vec<u32>>;

/// All ways in which stages of so many replicas can lie, each once.
pub(super) fn placements(machine: &ChainMachine, replicas: &[u32]) -> Vec<StageSeats> {
    let mut all: Vec<StageSeats> = Vec::new();
    for filling in [Filling::FreshFirst, Filling::BegunFirst, Filling::Scattered] {
        for reversed in [false, true] {
            let seats = place(machine, replicas, filling, reversed);
            if !all.contains(&seats) {
                all.push(seats);
            }
        }
    }
    all
}

fn place(machine: &ChainMachine, replicas: &[u32], filling: Filling, reversed: bool) -> StageSeats {
    let capacity: Vec<u32> = machine.nodes.iter().map(|node| node.devices).collect();
    let mut free = capacity.clone();
    let mut order: Vec<usize> = (0..capacity.len()).collect();
    if reversed {
        order.reverse();
    }
    replicas.iter().map(|wanted| seat(*wanted, &capacity, &mut free, &order, filling)).collect()
}

/// Takes a stage's devices. The sort is stable: nodes that are equal keep their order.
fn seat(wanted: u32, capacity: &[u32], free: &mut [u32], order: &[usize], filling: Filling) -> Vec<u32> {
    let mut seats = vec![0; capacity.len()];
    let mut order = order.to_vec();
    match filling {
        Filling::FreshFirst => order.sort_by_key(|node| std::cmp::Reverse(free[*node])),
        Filling::BegunFirst => order.sort_by_key(|node| (free[*node] == capacity[*node], free[*node])),
        Filling::Scattered => {}
    }
    let each = if filling == Filling::Scattered { 1 } else { u32::MAX };
    let mut left = wanted;
    while left > 0 {
        for node in &order {
            let taken = left.min(free[*node]).min(each);
            seats[*node] += taken;
            free[*node] -= taken;
            left -= taken;
        }
    }
    seats
}

#[cfg(test)]
mod tests {
    use super::super::ChainNode;
    use super::*;

    fn two_of_eight() -> ChainMachine {
        let nodes = vec![ChainNode { kind: 0, devices: 8 }; 2];
        ChainMachine { nodes, link: 1.0, nic: 1.0, memory: vec![1.0] }
    }

    #[test]
    fn stages_lie_whole_or_scattered() {
        let machine = two_of_eight();
        assert_eq!(place(&machine, &[8, 8], Filling::FreshFirst, false), [[8, 0], [0, 8]]);
        assert_eq!(place(&machine, &[8, 8], Filling::Scattered, false), [[4, 4], [4, 4]]);
        assert_eq!(place(&machine, &[4, 4, 8], Filling::BegunFirst, false), [[4, 0], [4, 0], [0, 8]]);
        assert_eq!(place(&machine, &[4, 4, 8], Filling::FreshFirst, false), [[4, 0], [0, 4], [4, 4]]);
        assert_eq!(place(&machine, &[10, 6], Filling::FreshFirst, true), [[2, 8], [6, 0]]);
    }

    #[test]
    fn every_device_has_one_stage() {
        for replicas in [vec![16], vec![5, 11], vec![4; 4], vec![1; 16]] {
            for seats in placements(&two_of_eight(), &replicas) {
                let of_node = |node: usize| seats.iter().map(|stage| stage[node]).sum::<u32>();
                assert_eq!([of_node(0), of_node(1)], [8, 8]);
            }
        }
    }
}
