//! Free devices over time: steps, each with a count for every column (`Room` says what columns there are).

use super::{Ask, Grid, Stretch, Way};
use crate::units::Time;

/// Free devices from an instant on, for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Where steps begin; the last one does not end.
    cuts: Vec<Time>,
    /// Counts, step by step; below zero where more was taken than there is.
    free: Vec<i64>,
    columns: usize,
}

impl Timeline {
    /// The same from `start` on.
    pub fn new(start: Time, free: &[u32]) -> Timeline {
        let columns = free.len();
        Timeline { cuts: vec![start], free: free.iter().map(|count| i64::from(*count)).collect(), columns }
    }

    /// How many steps it has.
    pub fn len(&self) -> usize {
        self.cuts.len()
    }

    /// Whether it has no column.
    pub fn is_empty(&self) -> bool {
        self.columns == 0
    }

    /// From when to when a step lasts.
    pub fn step(&self, at: usize) -> (Time, Time) {
        (self.cuts[at], self.cuts.get(at + 1).copied().unwrap_or(Time::NEVER))
    }

    /// The step in which an instant lies.
    pub fn at(&self, time: Time) -> usize {
        self.cuts.partition_point(|cut| *cut <= time).saturating_sub(1)
    }

    /// Whether a way fits into a step.
    pub fn fits(&self, at: usize, way: &Way) -> bool {
        let free = &self.free[at * self.columns..][..self.columns];
        way.takes.iter().all(|(column, count)| free[*column as usize] >= i64::from(*count))
    }

    /// Whether a way fits from one instant to another.
    pub fn fits_for(&self, way: &Way, from: Time, until: Time) -> bool {
        let steps = self.at(from)..self.len();
        steps.into_iter().take_while(|at| self.cuts[*at] < until).all(|at| self.fits(at, way))
    }

    /// Takes devices from one instant to another.
    pub fn take(&mut self, takes: &[(u16, u32)], from: Time, until: Time) {
        self.change(takes, from, until, -1);
    }

    /// Gives devices back that were taken from one instant to another.
    pub fn give(&mut self, takes: &[(u16, u32)], from: Time, until: Time) {
        self.change(takes, from, until, 1);
    }

    fn change(&mut self, takes: &[(u16, u32)], from: Time, until: Time, sign: i64) {
        let from = from.max(self.cuts[0]);
        if from >= until {
            return;
        }
        let (first, last) = (self.cut(from), if until < Time::NEVER { self.cut(until) } else { self.len() });
        for step in self.free[first * self.columns..last * self.columns].chunks_mut(self.columns) {
            takes.iter().for_each(|(column, count)| step[*column as usize] += sign * i64::from(*count));
        }
    }

    /// Takes what a plan does, up to the grid's next instant: who follows begins there.
    pub fn take_plan(&mut self, ask: &Ask, plan: &[Stretch], grid: &Grid) {
        for stretch in plan {
            if let Some(way) = ask.way(stretch.shape) {
                self.take(&way.takes, stretch.from, grid.after(stretch.until));
            }
        }
    }

    /// Gives back what a plan took.
    pub fn give_plan(&mut self, ask: &Ask, plan: &[Stretch], grid: &Grid) {
        for stretch in plan {
            if let Some(way) = ask.way(stretch.shape) {
                self.give(&way.takes, stretch.from, grid.after(stretch.until));
            }
        }
    }

    /// Whether nowhere more was taken than there is.
    pub fn is_sound(&self) -> bool {
        self.free.iter().all(|count| *count >= 0)
    }

    /// Begins a step at an instant. Returns which.
    fn cut(&mut self, time: Time) -> usize {
        let at = self.at(time);
        if self.cuts[at] == time {
            return at;
        }
        self.cuts.insert(at + 1, time);
        let row = at * self.columns..(at + 1) * self.columns;
        let copy: Vec<i64> = self.free[row.clone()].to_vec();
        self.free.splice(row.end..row.end, copy);
        at + 1
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn way(count: u32) -> Way {
        Way { shape: 0, speed: 1.0, devices: count, takes: smallvec![(0, count)], family: 0 }
    }

    #[test]
    fn what_is_taken_is_gone_for_that_time_only() {
        let mut line = Timeline::new(Time(10), &[4]);
        line.take(&[(0, 3)], Time(20), Time(30));
        line.take(&[(0, 1)], Time(0), Time(25));
        assert!(line.is_sound() && line.len() == 4);
        let fits = |count, from, until| line.fits_for(&way(count), Time(from), Time(until));
        assert!(fits(3, 10, 20) && !fits(4, 10, 20) && !fits(1, 10, 21));
        assert!(fits(1, 25, 30) && !fits(2, 29, 31) && fits(4, 30, u64::MAX));
    }

    #[test]
    fn taking_too_much_is_seen() {
        let mut line = Timeline::new(Time(0), &[1, 5]);
        line.take(&[(0, 1), (1, 5)], Time(0), Time::NEVER);
        assert!(line.is_sound());
        line.take(&[(0, 1)], Time(7), Time(8));
        assert!(!line.is_sound());
    }
}
