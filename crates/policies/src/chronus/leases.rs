//! The choice of leases: which deadline each job keeps, and who has the lease that begins.

use std::collections::BTreeMap;

use yard_core::Time;
use yard_core::ids::{JobId, JobIdx};

/// A job with deadlines.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) job: JobIdx,
    /// Who came first is guaranteed first.
    pub(super) order: (Time, JobId),
    pub(super) kind: usize,
    /// Devices, rounded up.
    pub(super) size: u32,
    /// Leases it needs.
    pub(super) leases: usize,
    /// Leases before each of its deadlines, and what that one is worth; best first.
    pub(super) ends: Vec<(usize, f64)>,
}

/// A job that is guaranteed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Whether it has the lease that begins.
    pub(super) now: bool,
}

/// Leases further away than this are not planned.
const HORIZON: usize = 4096;

/// Jobs beyond those that fit at once for which all are packed anew.
const REPACKS_MAX: usize = 64;

/// Free devices by kind and lease, and who has which leases.
#[derive(Clone, Debug, Default)]
struct Table {
    free: Vec<Vec<u32>>,
    rows: BTreeMap<usize, Row>,
}

/// The leases of one job, and the deadline they keep.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    leases: Vec<usize>,
    end: usize,
}

/// Who is guaranteed, and who of those has the lease that begins: as few as must where `others` could use the devices.
pub(super) fn choose(wishes: &[Wish], capacity: &[u32], others: bool) -> BTreeMap<JobIdx, Chosen> {
    let last = wishes.iter().flat_map(|wish| &wish.ends).map(|end| end.0).max().unwrap_or(0);
    let empty = capacity.iter().map(|count| vec![*count; last.min(HORIZON)]).collect();
    let mut table = Table { free: empty, rows: BTreeMap::new() };
    let left_out = table.admit_all(wishes);
    if !left_out && !others {
        table.pull_forward(wishes);
    }
    let chosen = |(at, row): (&usize, &Row)| (wishes[*at].job, Chosen { now: row.leases.contains(&0) });
    table.rows.iter().map(chosen).collect()
}

impl Table {
    /// Guarantees as many as can be, who came first before the others. Whether somebody was left out.
    fn admit_all(&mut self, wishes: &[Wish]) -> bool {
        let mut order: Vec<usize> = (0..wishes.len()).collect();
        order.sort_by_key(|at| wishes[*at].order);
        let (mut left_out, mut repacks) = (false, 0);
        for at in order {
            let mut ends = wishes[at].ends.iter().map(|end| end.0);
            let admitted = ends.any(|end| {
                let fits = self.put(at, &wishes[at], end);
                repacks += usize::from(!fits);
                fits || (repacks <= REPACKS_MAX && self.repack(wishes, at, end))
            });
            left_out |= !admitted && !wishes[at].ends.is_empty();
        }
        left_out
    }

    /// Gives a job the last leases before a deadline that are free.
    fn put(&mut self, at: usize, wish: &Wish, end: usize) -> bool {
        let Some(free) = self.free.get_mut(wish.kind) else { return false };
        let open = |lease: &usize| free[*lease] >= wish.size;
        let leases: Vec<usize> = (0..end.min(free.len())).rev().filter(open).take(wish.leases).collect();
        if leases.len() < wish.leases {
            return false;
        }
        leases.iter().for_each(|lease| free[*lease] -= wish.size);
        self.rows.insert(at, Row { leases, end });
        true
    }

    /// Packs everybody anew together with one more: the largest first, then those with the least time to spare.
    fn repack(&mut self, wishes: &[Wish], more: usize, end: usize) -> bool {
        let mut all: Vec<(usize, usize)> = self.rows.iter().map(|(at, row)| (*at, row.end)).collect();
        all.push((more, end));
        let by_size = |(at, end): &(usize, usize)| {
            let wish = &wishes[*at];
            (std::cmp::Reverse(wish.size), end - wish.leases.min(*end), std::cmp::Reverse(*end))
        };
        let mut orders = [all.clone(), all];
        orders[0].sort_by_key(by_size);
        orders[1].sort_by_key(|(at, end)| (*end, std::cmp::Reverse(wishes[*at].size)));
        let packed = orders.iter().find_map(|order| self.packed(wishes, order));
        packed.map(|table| *self = table).is_some()
    }

    fn packed(&self, wishes: &[Wish], order: &[(usize, usize)]) -> Option<Table> {
        let mut table = Table { free: self.free.clone(), rows: BTreeMap::new() };
        for (at, row) in &self.rows {
            row.leases.iter().for_each(|lease| table.free[wishes[*at].kind][*lease] += wishes[*at].size);
        }
        order.iter().all(|(at, end)| table.put(*at, &wishes[*at], *end)).then_some(table)
    }

    /// Has as many devices as can be work for guaranteed jobs at once: they give a later lease for the first one.
    fn pull_forward(&mut self, wishes: &[Wish]) {
        let spare = |at: usize, row: &Row| row.end - wishes[at].leases.min(row.end);
        let mut order: Vec<(usize, usize)> =
            self.rows.iter().map(|(at, row)| (spare(*at, row), *at)).collect();
        order.sort_by_key(|(spare, at)| (*spare, wishes[*at].order));
        for (_, at) in order {
            let (wish, row) = (&wishes[at], self.rows.get_mut(&at));
            let (Some(row), Some(free)) = (row, self.free.get_mut(wish.kind)) else { continue };
            if row.leases.contains(&0) || free.first().is_none_or(|first| *first < wish.size) {
                continue;
            }
            // The last lease is the one to give: it may be needed by others.
            if let Some(last) = row.leases.iter_mut().max() {
                free[*last] += wish.size;
                free[0] -= wish.size;
                *last = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wish(at: u32, size: u32, leases: usize, ends: &[(usize, f64)]) -> Wish {
        let order = (Time(u64::from(at)), JobId(u64::from(at)));
        Wish { job: JobIdx(at), order, kind: 0, size, leases, ends: ends.to_vec() }
    }

    /// The most that any choice of deadlines and leases is worth.
    fn best(wishes: &[Wish], free: &[u32]) -> f64 {
        let Some((first, rest)) = wishes.split_first() else { return 0.0 };
        let mut top = best(rest, free);
        for (end, worth) in &first.ends {
            for mask in 0u32..1 << end.min(&free.len()) {
                let open = (0..free.len()).all(|at| mask >> at & 1 == 0 || free[at] >= first.size);
                if mask.count_ones() as usize == first.leases && open {
                    let taken = |(at, free): (usize, &u32)| free - (mask >> at & 1) * first.size;
                    let left: Vec<u32> = free.iter().enumerate().map(taken).collect();
                    top = top.max(worth + best(rest, &left));
                }
            }
        }
        top
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn who_is_guaranteed_fits_and_little_is_lost(
            jobs in prop::collection::vec((1u32..4, 1usize..4, 1usize..6), 1..5),
        ) {
            let wishes: Vec<Wish> = (0..)
                .zip(&jobs)
                .map(|(at, (size, leases, end))| wish(at, 1 << (size - 1), *leases, &[(*end, 10.0)]))
                .filter(|wish| wish.ends[0].0 >= wish.leases)
                .collect();
            let last = wishes.iter().flat_map(|wish| &wish.ends).map(|end| end.0).max().unwrap_or(0);
            let mut table = Table { free: vec![vec![4; last]], rows: BTreeMap::new() };
            table.admit_all(&wishes);
            let mut used = vec![0; last];
            for (at, row) in &table.rows {
                prop_assert_eq!(row.leases.len(), wishes[*at].leases);
                prop_assert!(row.leases.iter().all(|lease| *lease < row.end));
                row.leases.iter().for_each(|lease| used[*lease] += wishes[*at].size);
            }
            prop_assert!(used.iter().all(|used| *used <= 4));
            let worth = table.rows.len() as f64 * 10.0;
            // Who came first is guaranteed first, which may cost a later pair of jobs their place.
            prop_assert!(worth >= best(&wishes, &vec![4; last]) / 2.0, "{worth}");
        }
    }

    #[test]
    fn nobody_loses_a_guarantee_to_who_comes_later() {
        let early = wish(0, 4, 2, &[(2, 10.0)]);
        let late = wish(1, 4, 2, &[(2, 10.0), (3, 5.0), (4, 2.0)]);
        let chosen = choose(&[early, late], &[4], false);
        assert_eq!(chosen[&JobIdx(0)], Chosen { now: true });
        assert_eq!(chosen[&JobIdx(1)], Chosen { now: false }, "it keeps its last deadline");
    }

    #[test]
    fn all_are_packed_anew_where_that_makes_room() {
        let wishes = [wish(0, 1, 1, &[(2, 1.0)]), wish(1, 1, 1, &[(2, 1.0)]), wish(2, 2, 1, &[(1, 1.0)])];
        assert_eq!(choose(&wishes, &[2], false).len(), 3);
    }
}
