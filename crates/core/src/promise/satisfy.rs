//! The minimum satisfactory share of one job: the smallest size, and the latest start, with which it is done in time on
//! what others leave. ElasticFlow walks the slots backwards from the deadline, in each the largest size up to a bound
//! that fits, until the work is done; the first bound with which that succeeds is the share. Here each change of size
//! also costs a restart, kinds are tried one after the other, and the plan of the least device time is taken.

use super::{Ask, Grid, Stretch, Timeline, Way};
use crate::units::{Span, Time};

/// A plan with which a job is done in time, as late as it may be and as small; none where there is none.
pub fn satisfy(ask: &Ask, timeline: &Timeline, grid: &Grid) -> Option<Vec<Stretch>> {
    let mut ways: Vec<&Way> = ask.ways.iter().collect();
    ways.sort_by(|a, b| (a.family, a.devices).cmp(&(b.family, b.devices)).then(a.speed.total_cmp(&b.speed)));
    let families = ways.chunk_by(|a, b| a.family == b.family);
    let plans = families.filter_map(|family| smallest(ask, &worthwhile(family), timeline, grid));
    plans.map(|plan| (ask.cost(&plan), plan)).min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, plan)| plan)
}

/// Who holds devices in this shape goes on with it from now on, if that is in time; no start is lost on it.
pub fn hold_on(ask: &Ask, shape: u16, now: Time) -> Option<Stretch> {
    let until = now + ask.overhead + span(ask.left / ask.way(shape)?.speed);
    (until <= ask.by).then_some(Stretch { from: now, until, shape })
}

/// When a stretch must begin to have done so much by its end; none: before the beginning of time.
pub(super) fn start(until: Time, ask: &Ask, shape: u16, left: f64) -> Option<Time> {
    let needed = span(left / ask.way(shape)?.speed) + ask.overhead;
    until.0.checked_sub(needed.0).map(Time)
}

/// Seconds, and a little more than rounding may cost over many starts: also where nothing but that is left to do.
fn span(seconds: f64) -> Span {
    Span::from_secs(seconds.max(0.0) * (1.0 + 1e-9) + super::SLIP_S)
}

/// Those that are faster than all smaller ones.
fn worthwhile<'a>(family: &[&'a Way]) -> Vec<&'a Way> {
    let mut best: Vec<&Way> = Vec::new();
    for way in family {
        if best.last().is_none_or(|last| way.speed > last.speed) {
            best.push(way);
        }
    }
    best
}

fn smallest(ask: &Ask, ways: &[&Way], timeline: &Timeline, grid: &Grid) -> Option<Vec<Stretch>> {
    let window = (ask.by - ask.from.max(grid.now)).secs() - ask.overhead.secs();
    let enough = |most: &usize| ways[*most].speed * window >= ask.left;
    let sizes = (0..ways.len()).filter(enough);
    sizes.into_iter().find_map(|most| Walk::new(ask, &ways[..=most], grid).back(timeline))
}

/// The way back from the deadline.
struct Walk<'a> {
    ask: &'a Ask,
    ways: &'a [&'a Way],
    grid: &'a Grid,
    /// Nothing begins before.
    begin: Time,
    /// Stretches behind, last first, and the steps they make.
    plan: Vec<Stretch>,
    done: f64,
    /// The one that may go on further back.
    open: Option<Stretch>,
}

impl<'a> Walk<'a> {
    fn new(ask: &'a Ask, ways: &'a [&'a Way], grid: &'a Grid) -> Walk<'a> {
        let begin = if ask.from <= grid.now { grid.now } else { grid.after(ask.from) };
        Walk { ask, ways, grid, begin, plan: Vec::new(), done: 0.0, open: None }
    }

    fn back(mut self, timeline: &Timeline) -> Option<Vec<Stretch>> {
        let last = timeline.at(Time(self.ask.by.0.saturating_sub(1)));
        // One that runs as a whole has one size.
        let least = if self.ask.whole { self.ways.len() - 1 } else { 0 };
        for at in (0..=last).rev() {
            let (from, until) = timeline.step(at);
            let (from, until) = (from.max(self.begin), until.min(self.ask.by));
            if from >= until {
                break;
            }
            match self.ways[least..].iter().rev().find(|way| timeline.fits(at, way)) {
                None => self.close(),
                Some(way) if self.is_done(way.shape, from, until) => return Some(self.finish()),
                Some(_) => {}
            }
        }
        None
    }

    /// Goes through one step in this shape. Whether the work is done then.
    fn is_done(&mut self, shape: u16, from: Time, until: Time) -> bool {
        if self.open.is_none_or(|open| open.shape != shape) {
            self.close();
        }
        let open = self.open.get_or_insert(Stretch { from: until, until, shape });
        let start =
            start(open.until, self.ask, shape, self.ask.left - self.done).filter(|start| *start >= from);
        open.from = start.map_or(from, |start| self.grid.before(start).max(from));
        start.is_some()
    }

    /// The open stretch goes no further back.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let work = self.ask.work(&open);
        if !self.ask.whole && work > 0.0 {
            self.done += work;
            self.plan.push(open);
        }
    }

    fn finish(mut self) -> Vec<Stretch> {
        self.plan.extend(self.open);
        self.plan.reverse();
        self.plan
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smallvec::smallvec;

    use super::*;

    fn secs(seconds: u64) -> Time {
        Time::from_secs(seconds as f64)
    }

    fn ask(by: u64, left: f64, speeds: &[(u32, f64)]) -> Ask {
        let way = |(shape, (devices, speed)): (u16, &(u32, f64))| Way {
            shape,
            speed: *speed,
            devices: *devices,
            takes: smallvec![(0, *devices)],
            family: 0,
        };
        let ways = (0..).zip(speeds).map(way).collect();
        Ask { by: secs(by), from: Time::ZERO, left, ways, overhead: Span::ZERO, whole: false }
    }

    fn round() -> Grid {
        Grid::new(Time::ZERO, Span::from_secs(1.0))
    }

    #[test]
    fn the_smallest_size_that_is_in_time_and_as_late_as_may_be() {
        let line = Timeline::new(Time::ZERO, &[4]);
        let job = ask(10, 8.0, &[(1, 1.0), (2, 1.9), (4, 3.0)]);
        let plan = satisfy(&job, &line, &round()).unwrap();
        assert_eq!(plan, [Stretch { from: secs(1), until: secs(10), shape: 0 }]);
        let tighter = Ask { by: secs(5), ..job };
        let plan = satisfy(&tighter, &line, &round()).unwrap();
        assert_eq!(plan, [Stretch { from: secs(0), until: secs(5), shape: 1 }]);
    }

    #[test]
    fn what_others_took_is_walked_around() {
        let mut line = Timeline::new(Time::ZERO, &[4]);
        line.take(&[(0, 3)], secs(4), secs(8));
        let job = ask(10, 8.0, &[(2, 1.0)]);
        assert_eq!(satisfy(&job, &line, &round()), None, "only six seconds have room for two");
        let both = ask(10, 8.0, &[(1, 0.7), (2, 1.0)]);
        let plan = satisfy(&both, &line, &round()).unwrap();
        let shapes: Vec<u16> = plan.iter().map(|stretch| stretch.shape).collect();
        assert_eq!(shapes, [1, 0, 1]);
        let whole = Ask { whole: true, ..ask(10, 3.0, &[(2, 1.0)]) };
        let plan = satisfy(&whole, &line, &round()).unwrap();
        assert!(plan.len() == 1 && plan[0].until <= secs(4), "{plan:?}");
    }

    #[test]
    fn what_is_done_but_for_rounding_takes_a_stretch_that_lasts() {
        let mut line = Timeline::new(Time::ZERO, &[2]);
        line.take(&[(0, 1)], secs(0), secs(9));
        // The last second in the larger size is enough but for the allowance, and in the smaller one more than that.
        let job = Ask { from: secs(8), ..ask(10, 1.9985, &[(1, 0.5), (2, 2.0)]) };
        let plan = satisfy(&job, &line, &round()).unwrap();
        let stretch = |from, until, shape| Stretch { from: secs(from), until: secs(until), shape };
        assert_eq!(plan, [stretch(8, 9, 0), stretch(9, 10, 1)]);
    }

    /// Whether any way of choosing a size for each second does the work; every change loses a second.
    fn possible(free: &[u32], left: f64, speeds: &[(u32, f64)], before: Option<usize>) -> bool {
        if left <= 1e-9 {
            return true;
        }
        let Some((now, rest)) = free.split_first() else { return false };
        let go = |(at, (devices, speed)): (usize, &(u32, f64))| {
            let pays = if before == Some(at) { *speed } else { 0.0 };
            devices <= now && possible(rest, left - pays, speeds, Some(at))
        };
        possible(rest, left, speeds, None) || speeds.iter().enumerate().any(go)
    }

    proptest! {
        #[test]
        fn a_plan_keeps_its_word(
            taken in prop::collection::vec(0u32..5, 8),
            left in 1u32..20,
            overhead in 0u64..2,
            whole in any::<bool>(),
        ) {
            let mut line = Timeline::new(Time::ZERO, &[4]);
            for (at, taken) in (0..).zip(&taken) {
                line.take(&[(0, *taken)], secs(at), secs(at + 1));
            }
            let speeds = [(1, 1.0), (2, 1.8), (4, 3.0)];
            let plain = ask(8, f64::from(left), &speeds);
            let job = Ask { overhead: Span::from_whole_secs(overhead), whole, ..plain };
            let free: Vec<u32> = taken.iter().map(|taken| 4 - taken).collect();
            match satisfy(&job, &line, &round()) {
                Some(plan) => {
                    let work: f64 = plan.iter().map(|stretch| job.work(stretch)).sum();
                    prop_assert!(work >= job.left - 1e-6, "{plan:?}");
                    prop_assert!(plan.is_sorted_by(|a, b| a.until <= b.from) && plan[plan.len() - 1].until <= job.by);
                    prop_assert!(!whole || plan.len() == 1);
                    line.take_plan(&job, &plan, &round());
                    prop_assert!(line.is_sound(), "{plan:?}");
                }
                // Without costs of changing, the greedy walk is the best there is.
                None if overhead == 0 && !whole => {
                    let work: f64 = free.iter().map(|free| match free { 4 => 3.0, 2 | 3 => 1.8, 1 => 1.0, _ => 0.0 }).sum();
                    prop_assert!(work < job.left + 1e-6, "{free:?}");
                }
                None if whole => {}
                // With them it may miss some, but never where one size fits all the time.
                None => prop_assert!(!(possible(&free, job.left, &speeds, None) && free.iter().all(|free| *free == 4))),
            }
        }
    }
}
