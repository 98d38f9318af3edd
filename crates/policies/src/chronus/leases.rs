//! The choice of leases: which deadline each job keeps, and who has the lease that begins.

use std::collections::BTreeMap;

use yard_core::Time;
use yard_core::ids::{JobId, JobIdx};

use super::program;

/// A job with deadlines.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) job: JobIdx,
    /// Who came first is guaranteed first.
    pub(super) order: (Time, JobId),
    /// Whether it was guaranteed by the program, which keeps what packing may not be able to.
    pub(super) kept: bool,
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
pub(super) struct ChosenLeases {
    /// Whether it has the lease that begins.
    pub(super) now: bool,
}

/// Leases further away than this are not planned.
const HORIZON: usize = 4096;

/// Jobs beyond those that fit at once for which all are packed anew.
const REPACKS_MAX: usize = 64;

/// Free devices by kind and lease, and who has which leases.
#[derive(Clone, Debug, Default)]
pub(super) struct LeaseTable {
    pub(super) free: Vec<Vec<u32>>,
    pub(super) rows: BTreeMap<usize, LeaseRow>,
}

/// The leases of one job, and the deadline they keep.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeaseRow {
    pub(super) leases: Vec<usize>,
    pub(super) end: usize,
}

/// How well leases are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// Well enough to know who is guaranteed.
    Packed,
    /// Soft deadlines are exchanged too.
    Traded,
    /// By the integer program, as far as that can be solved.
    Exact,
}

/// The choice: who is guaranteed, and, where the program was solved, what it is worth and what no other choice beats.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LeaseChoice {
    pub(super) chosen: BTreeMap<JobIdx, ChosenLeases>,
    pub(super) proof: Option<(f64, f64)>,
}

/// Who is guaranteed, and who of those has the lease that begins: as few as must where `others` could use the devices.
/// With `effort` beyond the packing.
pub(super) fn choose(wishes: &[Wish], capacity: &[u32], others: bool, effort: Effort) -> LeaseChoice {
    let last = wishes.iter().flat_map(|wish| &wish.ends).map(|end| end.0).max().unwrap_or(0);
    let empty = capacity.iter().map(|count| vec![*count; last.min(HORIZON)]).collect();
    let mut table = LeaseTable { free: empty, rows: BTreeMap::new() };
    let devices = f64::from(capacity.iter().sum::<u32>().max(1));
    let (kept, rest): (Vec<usize>, Vec<usize>) = (0..wishes.len()).partition(|at| wishes[*at].kept);
    let mut left_out = table.admit_all(wishes, kept);
    if effort == Effort::Exact {
        // Before anybody new: who is guaranteed stays so.
        table.readmit(wishes, capacity, -1.0 / devices);
    }
    // Nor has anybody the room of those whom packing lost: between the beginnings of leases the program is not asked.
    left_out |= table.lost(wishes).next().is_some() || table.admit_all(wishes, rest);
    let at_once = !left_out && !others;
    let now = if at_once { 1.0 } else { -1.0 } / devices;
    if effort != Effort::Packed {
        table.improve(wishes);
    }
    if at_once {
        table.pull_forward(wishes);
    }
    let proof = if effort == Effort::Exact { table.solve(wishes, capacity, now) } else { None };
    let chosen =
        |(at, row): (&usize, &LeaseRow)| (wishes[*at].job, ChosenLeases { now: row.leases.contains(&0) });
    // Within a lease nobody loses the guarantee that the program gave it.
    let kept = wishes.iter().filter(|wish| effort == Effort::Packed && wish.kept && !wish.ends.is_empty());
    let kept = kept.map(|wish| (wish.job, ChosenLeases { now: false }));
    LeaseChoice { chosen: kept.chain(table.rows.iter().map(chosen)).collect(), proof }
}

impl LeaseTable {
    /// Guarantees as many of these as can be, who came first before the others. Whether somebody was left out.
    fn admit_all(&mut self, wishes: &[Wish], mut order: Vec<usize>) -> bool {
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

    /// Who was guaranteed by the program and has no leases.
    fn lost(&self, wishes: &[Wish]) -> impl Iterator<Item = usize> {
        let lost =
            |at: &usize| wishes[*at].kept && !wishes[*at].ends.is_empty() && !self.rows.contains_key(at);
        (0..wishes.len()).filter(lost)
    }

    /// Guarantees those once more that the program had found room for and packing did not.
    fn readmit(&mut self, wishes: &[Wish], capacity: &[u32], now: f64) {
        let mut lost: Vec<usize> = self.lost(wishes).collect();
        lost.sort_by_key(|at| wishes[*at].order);
        for at in lost {
            let mut rows = self.rows.clone();
            rows.insert(at, LeaseRow { leases: Vec::new(), end: 0 });
            if let Some((rows, _)) = program::solve(wishes, &rows, capacity, now) {
                self.set(wishes, rows);
            }
        }
    }

    /// Has these leases instead of those it has.
    fn set(&mut self, wishes: &[Wish], rows: BTreeMap<usize, LeaseRow>) {
        for (at, row) in &self.rows {
            row.leases.iter().for_each(|lease| self.free[wishes[*at].kind][*lease] += wishes[*at].size);
        }
        for (at, row) in &rows {
            row.leases.iter().for_each(|lease| self.free[wishes[*at].kind][*lease] -= wishes[*at].size);
        }
        self.rows = rows;
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
        self.rows.insert(at, LeaseRow { leases, end });
        true
    }

    /// The best leases for everybody in it, with their worth and what none can beat.
    fn solve(&mut self, wishes: &[Wish], capacity: &[u32], now: f64) -> Option<(f64, f64)> {
        let (rows, bound) = program::solve(wishes, &self.rows, capacity, now)?;
        let (greedy, solved) = (worth(wishes, &self.rows, now), worth(wishes, &rows, now));
        if solved > greedy {
            self.set(wishes, rows);
        }
        Some((solved.max(greedy), bound.max(solved).max(greedy)))
    }

    /// Packs everybody anew together with one more: the largest first, then those with the least time to spare.
    fn repack(&mut self, wishes: &[Wish], more: usize, end: usize) -> bool {
        let mut all: Vec<(usize, usize)> = self.rows.iter().map(|(at, row)| (*at, row.end)).collect();
        all.push((more, end));
        self.fit_all(wishes, all).map(|table| *self = table).is_some()
    }

    /// All of these jobs with these deadlines, packed in one order or another.
    pub(super) fn fit_all(&self, wishes: &[Wish], all: Vec<(usize, usize)>) -> Option<LeaseTable> {
        let by_size = |(at, end): &(usize, usize)| {
            let wish = &wishes[*at];
            (std::cmp::Reverse(wish.size), end - wish.leases.min(*end), std::cmp::Reverse(*end))
        };
        let mut orders = [all.clone(), all];
        orders[0].sort_by_key(by_size);
        orders[1].sort_by_key(|(at, end)| (*end, std::cmp::Reverse(wishes[*at].size)));
        orders.iter().find_map(|order| self.packed(wishes, order))
    }

    /// What the deadlines kept are worth.
    pub(super) fn worth(&self, wishes: &[Wish]) -> f64 {
        worth(wishes, &self.rows, 0.0)
    }

    fn packed(&self, wishes: &[Wish], order: &[(usize, usize)]) -> Option<LeaseTable> {
        let mut table = LeaseTable { free: self.free.clone(), rows: BTreeMap::new() };
        for (at, row) in &self.rows {
            row.leases.iter().for_each(|lease| table.free[wishes[*at].kind][*lease] += wishes[*at].size);
        }
        order.iter().all(|(at, end)| table.put(*at, &wishes[*at], *end)).then_some(table)
    }

    /// Has as many devices as can be work for guaranteed jobs at once: they give a later lease for the first one.
    fn pull_forward(&mut self, wishes: &[Wish]) {
        let spare = |at: usize, row: &LeaseRow| row.end - wishes[at].leases.min(row.end);
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

/// What the deadlines kept are worth, and the devices that work for them at once.
fn worth(wishes: &[Wish], rows: &BTreeMap<usize, LeaseRow>, now: f64) -> f64 {
    let one = |(at, row): (&usize, &LeaseRow)| {
        let ends = wishes[*at].ends.iter();
        let kept = ends.filter(|end| end.0 == row.end).map(|end| end.1).fold(0.0, f64::max);
        kept + if row.leases.contains(&0) { now * f64::from(wishes[*at].size) } else { 0.0 }
    };
    rows.iter().map(one).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wish(at: u32, size: u32, leases: usize, ends: &[(usize, f64)]) -> Wish {
        let order = (Time(u64::from(at)), JobId(u64::from(at)));
        Wish { job: JobIdx(at), order, kept: false, kind: 0, size, leases, ends: ends.to_vec() }
    }

    /// How many can be guaranteed, who came first before the others, if every way to pack them is tried.
    fn first_come(wishes: &[Wish], free: &[u32]) -> usize {
        let mut kept: Vec<Wish> = Vec::new();
        for wish in wishes {
            kept.push(wish.clone());
            if all_best(&kept, free, 0.0).is_none() {
                kept.pop();
            }
        }
        kept.len()
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
            let mut table = LeaseTable { free: vec![vec![4; last]], rows: BTreeMap::new() };
            table.admit_all(&wishes, (0..wishes.len()).collect());
            let mut used = vec![0; last];
            for (at, row) in &table.rows {
                prop_assert_eq!(row.leases.len(), wishes[*at].leases);
                prop_assert!(row.leases.iter().all(|lease| *lease < row.end));
                row.leases.iter().for_each(|lease| used[*lease] += wishes[*at].size);
            }
            prop_assert!(used.iter().all(|used| *used <= 4));
            // Not against the most that any choice is worth: who came first may shut out any number of smaller jobs.
            let (ours, all) = (table.rows.len(), first_come(&wishes, &vec![4; last]));
            prop_assert!(2 * ours >= all, "{ours} where {all} can be guaranteed");
        }
    }

    /// The most that any leases of all these jobs are worth, each with a deadline kept; none where they do not fit.
    fn all_best(wishes: &[Wish], free: &[u32], now: f64) -> Option<f64> {
        let Some((first, rest)) = wishes.split_first() else { return Some(0.0) };
        let mut top: Option<f64> = None;
        for (end, worth) in &first.ends {
            for mask in 0u32..1 << end.min(&free.len()) {
                let open = (0..free.len()).all(|at| mask >> at & 1 == 0 || free[at] >= first.size);
                if mask.count_ones() as usize == first.leases && open {
                    let taken = |(at, free): (usize, &u32)| free - (mask >> at & 1) * first.size;
                    let left: Vec<u32> = free.iter().enumerate().map(taken).collect();
                    let own = worth + f64::from(mask & 1) * now * f64::from(first.size);
                    top = all_best(rest, &left, now)
                        .map(|rest| rest + own)
                        .into_iter()
                        .chain(top)
                        .reduce(f64::max);
                }
            }
        }
        top
    }

    /// Deadlines one after another, each worth less.
    fn soft(at: u32, size: u32, leases: usize, spare: usize) -> Wish {
        let ends: Vec<(usize, f64)> = [10.0, 6.0, 3.0]
            .into_iter()
            .enumerate()
            .map(|(more, worth)| (leases + spare + more, worth))
            .collect();
        wish(at, 1 << (size - 1), leases, &ends)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn the_program_finds_the_best_and_the_packing_comes_near(
            jobs in prop::collection::vec((1u32..4, 1usize..3, 0usize..3), 1..5), at_once in any::<bool>(),
        ) {
            let wishes: Vec<Wish> =
                (0..).zip(&jobs).map(|(at, (size, leases, spare))| soft(at, *size, *leases, *spare)).collect();
            let last = wishes.iter().flat_map(|wish| &wish.ends).map(|end| end.0).max().unwrap_or(0);
            let mut table = LeaseTable { free: vec![vec![4; last]], rows: BTreeMap::new() };
            table.admit_all(&wishes, (0..wishes.len()).collect());
            table.improve(&wishes);
            if at_once {
                table.pull_forward(&wishes);
            }
            let admitted: Vec<Wish> = table.rows.keys().map(|at| wishes[*at].clone()).collect();
            let now = if at_once { 0.25 } else { -0.25 };
            let greedy = worth(&wishes, &table.rows, now);
            let best = all_best(&admitted, &vec![4; last], now).expect("they were packed");
            let (solved, bound) = table.solve(&wishes, &[4], now).expect("a small case is solved");
            prop_assert!((solved - best).abs() < 1e-6 && bound >= best - 1e-6, "{solved} of {best}, bound {bound}");
            prop_assert!((worth(&wishes, &table.rows, now) - solved).abs() < 1e-9, "it says what it chose");
            let mut used = vec![0; last];
            for (at, row) in &table.rows {
                prop_assert!(row.leases.len() == wishes[*at].leases && row.leases.iter().all(|lease| *lease < row.end));
                row.leases.iter().for_each(|lease| used[*lease] += wishes[*at].size);
            }
            prop_assert!(used.iter().all(|used| *used <= 4));
            prop_assert!(greedy >= NEAR * best, "{greedy} of {best}");
        }
    }

    /// The part of the best worth that packing has at least: 0.558 is the least of all 222 300 cases like these.
    const NEAR: f64 = 0.558;

    #[test]
    fn nobody_loses_a_guarantee_to_who_comes_later() {
        let early = wish(0, 4, 2, &[(2, 10.0)]);
        let late = wish(1, 4, 2, &[(2, 10.0), (3, 5.0), (4, 2.0)]);
        let chosen = choose(&[early, late], &[4], false, Effort::Packed).chosen;
        assert_eq!(chosen[&JobIdx(0)], ChosenLeases { now: true });
        assert_eq!(chosen[&JobIdx(1)], ChosenLeases { now: false }, "it keeps its last deadline");
    }

    #[test]
    fn all_are_packed_anew_where_that_makes_room() {
        let wishes = [wish(0, 1, 1, &[(2, 1.0)]), wish(1, 1, 1, &[(2, 1.0)]), wish(2, 2, 1, &[(1, 1.0)])];
        assert_eq!(choose(&wishes, &[2], false, Effort::Exact).chosen.len(), 3);
    }
}
