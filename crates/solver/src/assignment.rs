//! Cheapest assignment of rows to columns, where a column may take several rows:
//!
//!   minimise  Σ cost(i, c(i))   with at most `room(c)` rows on column c.
//!
//! Rows are added one by one along shortest augmenting paths over reduced costs (Kuhn 1955; Jonker and
//! Volgenant, Computing 38, 1987; capacities as in Ford and Fulkerson's transportation problem). The dual
//! prices that come out prove the optimum: see `Assignment::bound`. Cost: O(n²m) for n rows and m columns.
//!
//! Many assignments may cost the same. Which one comes out is part of the contract, because plans follow from it:
//! columns are looked at from the last to the first, one with room goes before a full one that is as near, and a
//! column that is done with gives its turn to the one looked at last. That is the order of Crouse ("On
//! Implementing 2D Rectangular Assignment Algorithms", IEEE TAES 52, 2016) as numerical libraries have it, so
//! that results published with those can be had again.

/// Costs of rows on columns, row after row; infinite where a row cannot go.
#[derive(Clone, Debug, PartialEq)]
pub struct CostMatrix {
    rows: usize,
    columns: usize,
    cells: Vec<f64>,
}

impl CostMatrix {
    /// Costs by a formula of row and column.
    pub fn new(rows: usize, columns: usize, cost: impl Fn(usize, usize) -> f64) -> CostMatrix {
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        CostMatrix { rows, columns, cells: cells.map(|(row, column)| cost(row, column)).collect() }
    }

    /// What a row costs on a column.
    pub fn get(&self, row: usize, column: usize) -> f64 {
        self.cells[row * self.columns + column]
    }
}

/// Which row goes where.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The column of each row; none for a row that no path leads out of.
    pub columns: Vec<Option<usize>>,
    /// The sum of the costs of all rows that have a column.
    pub cost: f64,
    /// A lower bound on that sum, from the dual prices: equal to it up to rounding.
    pub bound: f64,
}

/// The cheapest assignment of as many rows as can be had. Where all costs are equal, rows fill the first columns.
pub fn assign(costs: &CostMatrix, room: &[usize]) -> Assignment {
    assert_eq!(costs.columns, room.len(), "each column has room for some number of rows");
    let mut paths = Paths::new(costs, room);
    (0..costs.rows).for_each(|row| paths.add(row));
    paths.finish()
}

struct Paths<'a> {
    costs: &'a CostMatrix,
    room: &'a [usize],
    /// Rows on each column, and each row's column.
    members: Vec<Vec<usize>>,
    columns: Vec<Option<usize>>,
    /// Prices: reduced costs cost − row − column are never negative, and 0 on the assignment.
    row_price: Vec<f64>,
    column_price: Vec<f64>,
}

/// One search: distances to columns, the rows that lead there, and which columns are settled.
struct PathSearch {
    distance: Vec<f64>,
    from: Vec<usize>,
    /// Columns still to be settled, in the order in which they are looked at.
    open: Vec<usize>,
    settled: Vec<usize>,
}

impl PathSearch {
    fn new(row: usize, columns: usize) -> PathSearch {
        PathSearch {
            distance: vec![f64::INFINITY; columns],
            from: vec![row; columns],
            open: (0..columns).rev().collect(),
            settled: Vec::new(),
        }
    }

    /// Settles the nearest open column, if any can be reached; of those as near, the last that has room.
    fn settle(&mut self, has_room: impl Fn(usize) -> bool) -> Option<usize> {
        let (mut at, mut least) = (None, f64::INFINITY);
        for (place, column) in self.open.iter().enumerate() {
            let distance = self.distance[*column];
            if distance < least || (distance == least && has_room(*column)) {
                (at, least) = (Some(place), distance);
            }
        }
        let column = self.open.swap_remove(at.filter(|_| least.is_finite())?);
        self.settled.push(column);
        Some(column)
    }
}

impl<'a> Paths<'a> {
    fn new(costs: &'a CostMatrix, room: &'a [usize]) -> Paths<'a> {
        Paths {
            costs,
            room,
            members: vec![Vec::new(); room.len()],
            columns: vec![None; costs.rows],
            row_price: vec![0.0; costs.rows],
            column_price: vec![0.0; room.len()],
        }
    }

    /// Assigns one more row, moving others where that is cheaper; leaves all as it was where it cannot.
    fn add(&mut self, row: usize) {
        let mut search = PathSearch::new(row, self.room.len());
        self.relax(row, 0.0, &mut search);
        while let Some(column) = search.settle(|column| self.has_room(column)) {
            if self.has_room(column) {
                self.reprice(row, column, &search);
                return self.augment(row, column, &search);
            }
            for at in 0..self.members[column].len() {
                self.relax(self.members[column][at], search.distance[column], &mut search);
            }
        }
    }

    fn has_room(&self, column: usize) -> bool {
        self.members[column].len() < self.room[column]
    }

    /// Looks from a row at all open columns.
    fn relax(&self, row: usize, so_far: f64, search: &mut PathSearch) {
        for column in search.open.iter().copied() {
            // In this order of additions, so that what is equal elsewhere is equal here.
            let distance =
                so_far + self.costs.get(row, column) - self.row_price[row] - self.column_price[column];
            if distance < search.distance[column] {
                (search.distance[column], search.from[column]) = (distance, row);
            }
        }
    }

    /// Moves prices so that the path costs nothing and no reduced cost falls below 0.
    fn reprice(&mut self, row: usize, end: usize, search: &PathSearch) {
        let length = search.distance[end];
        self.row_price[row] += length;
        for column in search.settled.iter().copied() {
            let ahead = length - search.distance[column];
            self.column_price[column] -= ahead;
            for member in &self.members[column] {
                self.row_price[*member] += ahead;
            }
        }
    }

    /// Moves every row of the path one column on.
    fn augment(&mut self, row: usize, end: usize, search: &PathSearch) {
        let mut column = end;
        loop {
            let mover = search.from[column];
            self.members[column].push(mover);
            let Some(left) = self.columns[mover].replace(column) else { return };
            assert!(mover != row, "the new row had no column before");
            self.members[left].retain(|member| *member != mover);
            column = left;
        }
    }

    fn finish(self) -> Assignment {
        let placed = self.columns.iter().enumerate().filter_map(|(row, column)| Some((row, (*column)?)));
        let cost = placed.clone().map(|(row, column)| self.costs.get(row, column)).sum();
        let rows: f64 = placed.map(|(row, _)| self.row_price[row]).sum();
        // A column with room to spare has price 0, all others at most that.
        let columns = self.column_price.iter().zip(self.room).map(|(price, room)| price * *room as f64);
        Assignment { cost, bound: rows + columns.sum::<f64>(), columns: self.columns }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The least cost over all assignments, by trying them all.
    fn brute(costs: &CostMatrix, room: &mut Vec<usize>, row: usize) -> f64 {
        if row == costs.rows {
            return 0.0;
        }
        let mut least = f64::INFINITY;
        for column in 0..room.len() {
            if room[column] > 0 && costs.get(row, column).is_finite() {
                room[column] -= 1;
                least = least.min(costs.get(row, column) + brute(costs, room, row + 1));
                room[column] += 1;
            }
        }
        least
    }

    fn table() -> impl Strategy<Value = (CostMatrix, Vec<usize>)> {
        (1usize..6, 1usize..5).prop_flat_map(|(rows, columns)| {
            let cell =
                prop_oneof![6 => (0u32..20).prop_map(f64::from), 3 => -9.0..9.0f64, 1 => Just(f64::INFINITY)];
            let cells = prop::collection::vec(cell, rows * columns);
            (cells, prop::collection::vec(0usize..4, columns))
                .prop_map(move |(cells, room)| (CostMatrix { rows, columns, cells }, room))
        })
    }

    proptest! {
        #[test]
        fn nothing_is_cheaper((costs, mut room) in table()) {
            let found = assign(&costs, &room);
            let least = brute(&costs, &mut room, 0);
            for (column, room) in room.iter().enumerate() {
                let here = found.columns.iter().filter(|to| **to == Some(column)).count();
                prop_assert!(here <= *room);
            }
            if least.is_finite() {
                prop_assert!(found.columns.iter().all(Option::is_some), "{found:?}");
                prop_assert!((found.cost - least).abs() < 1e-9, "{found:?} where {least} can be had");
                prop_assert!((found.cost - found.bound).abs() < 1e-9, "{found:?}");
            } else {
                prop_assert!(found.columns.iter().any(Option::is_none), "{found:?}");
            }
        }

        /// A column with room for several is as many columns of one: what `allox` builds on.
        #[test]
        fn like_columns_may_be_one(
            cells in prop::collection::vec(0.5..9.0f64, 3..24), machines in prop::collection::vec(1usize..4, 3),
        ) {
            let jobs = cells.len() / 3;
            let seconds = |job: usize, kind: usize| cells[job * 3 + kind];
            // All machines and all positions, one column each.
            let of_machine: Vec<usize> = (0..3).flat_map(|kind| vec![kind; machines[kind]]).collect();
            let n = of_machine.len();
            let full = CostMatrix::new(jobs, n * jobs, |job, column| {
                (column / n + 1) as f64 * seconds(job, of_machine[column % n])
            });
            // Kinds and positions, as far as a kind fills up to.
            let places: Vec<(usize, usize)> =
                (0..3).flat_map(|kind| (1..=jobs.div_ceil(machines[kind])).map(move |at| (kind, at))).collect();
            let room: Vec<usize> = places.iter().map(|(kind, _)| machines[*kind]).collect();
            let small = CostMatrix::new(jobs, places.len(), |job, column| {
                let (kind, position) = places[column];
                position as f64 * seconds(job, kind)
            });
            let (full, small) = (assign(&full, &vec![1; n * jobs]), assign(&small, &room));
            prop_assert!((full.cost - small.cost).abs() < 1e-9 * full.cost, "{} {}", full.cost, small.cost);
        }
    }

    /// Where many assignments cost the same; the expected ones are those of scipy 1.17.
    #[test]
    fn ties_fall_as_in_crouse() {
        let columns = |rows, columns, cost: fn(usize, usize) -> f64| {
            let found = assign(&CostMatrix::new(rows, columns, cost), &vec![1; columns]).columns;
            found.into_iter().map(|column| column.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(columns(4, 6, |_, _| 1.0), [0, 1, 2, 3]);
        assert_eq!(columns(5, 15, |row, column| ((column / 3 + 1) * (5 - row)) as f64), [0, 1, 2, 3, 4]);
        assert_eq!(
            columns(6, 12, |row, column| ((column / 2 + 1) * (row % 3 + 1)) as f64),
            [5, 2, 0, 4, 3, 1]
        );
        assert_eq!(columns(7, 9, |row, column| ((row * 5 + column * 3) % 4) as f64), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_row_that_can_go_nowhere_stays_out() {
        let costs = CostMatrix::new(3, 1, |row, _| if row == 1 { f64::INFINITY } else { 1.0 });
        assert_eq!(assign(&costs, &[2]).columns, [Some(0), None, Some(0)]);
        assert_eq!(assign(&costs, &[1]).columns, [Some(0), None, None]);
        assert_eq!(assign(&CostMatrix::new(0, 2, |_, _| 0.0), &[1, 1]).columns, []);
        assert_eq!(assign(&CostMatrix::new(2, 0, |_, _| 0.0), &[]).columns, [None, None]);
    }
}
