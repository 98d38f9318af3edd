//! The problems that treat the jobs of a class alike, as one simplex with goals in order.
//!
//! Scaling: a group's time is counted in units of the longest it can run, a class's rows in units of what
//! its jobs could do at best, the level in units of what the neediest class could reach alone. All entries
//! are then at most about one, whatever the weights and the number of jobs.

use super::{Needs, PackedError, PackedProblem, PackedSolution, Ready, length, number};
use crate::packed::PackedWork;
use crate::simplex::Simplex;

/// A class whose part of the price is below this is free to rise. Light classes beside heavy ones have true
/// prices of a millionth and less, and one that is missed would rise at the cost of the level just reached.
const FREE: f64 = 1e-12;

/// max λ with Thr_c ≥ λ · weight_c · jobs_c; among the best answers the one with the largest Σ Thr.
pub fn max_min(packed: &PackedProblem, limits: &PackedWork) -> Result<PackedSolution, PackedError> {
    rise(packed, limits, false)
}

/// Lexicographic max-min: the smallest level as high as it goes, then the next, to the end. A class whose
/// row has a price cannot rise in any best answer, so it is fixed; every round fixes at least one.
pub fn water_filling(packed: &PackedProblem, limits: &PackedWork) -> Result<PackedSolution, PackedError> {
    rise(packed, limits, true)
}

fn rise(
    packed: &PackedProblem,
    limits: &PackedWork,
    to_the_end: bool,
) -> Result<PackedSolution, PackedError> {
    let ready = Ready::new(packed)?;
    let mut rising: Vec<usize> = (0..packed.classes.len()).filter(|class| counts(&ready, *class)).collect();
    if rising.is_empty() {
        return Err(PackedError::Nobody);
    }
    let all = rising.clone();
    let mut rows = Rows::new(&ready)?;
    let mut first = None;
    while !rising.is_empty() && (to_the_end || first.is_none()) {
        let unit = reach(&ready, &rising);
        let share =
            |class: &usize| (rows.level(*class), unit * packed.classes[*class].weight / ready.best[*class]);
        let column = rows.simplex.column(rising.iter().map(share).collect())?;
        let goal = |at| f64::from(u8::from(at == column));
        let dual = rows.simplex.maximise(&goal, limits.pivots_max)?;
        if first.is_none() {
            first = Some((unit * rows.simplex.bound(&goal, &dual), rows.prices(&dual, unit)));
        }
        rising.retain(|class| {
            let price = dual[rows.level(*class) as usize] * unit * packed.classes[*class].weight;
            price <= FREE * ready.best[*class]
        });
    }
    let (bound, prices) = first.unwrap_or_default();
    rows.most_speed(limits)?;
    let mut solution = rows.solution();
    solution.objective = all.iter().map(|class| solution.levels[*class]).fold(f64::INFINITY, f64::min);
    // Measured and proven to the same rounding: a proof is never below what was reached.
    Ok(PackedSolution { bound: bound.max(solution.objective), prices, ..solution })
}

/// Whether a class takes part in the fairness.
fn counts(ready: &Ready, class: usize) -> bool {
    let about = ready.packed.classes[class];
    about.jobs > 0 && about.weight > 0.0 && ready.best[class] > 0.0
}

/// The level that none of these can pass even alone.
fn reach(ready: &Ready, classes: &[usize]) -> f64 {
    let alone = |class: &usize| ready.best[*class] / ready.packed.classes[*class].weight;
    classes.iter().map(alone).fold(f64::INFINITY, f64::min)
}

/// max Σ values_g · T_g with Thr_c ≥ floor_c · jobs_c. Where the floors cannot all be kept, those that are
/// dearest are given up one by one and named in `unmet`; the rest is kept.
pub fn weighted_sum(
    packed: &PackedProblem,
    values: &[f64],
    floors: &[f64],
    limits: &PackedWork,
) -> Result<PackedSolution, PackedError> {
    length("values", values.len(), packed.groups.len())?;
    length("floors", floors.len(), packed.classes.len())?;
    for (at, floor) in floors.iter().enumerate() {
        number("floor of class", at, *floor)?;
    }
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(PackedError::Number { what: "value of group", at, value: values[at] });
    }
    let ready = Ready::new(packed)?;
    let asks = |class: &usize| floors[*class] > 0.0 && packed.classes[*class].jobs > 0;
    let (mut kept, mut unmet): (Vec<usize>, Vec<usize>) =
        (0..packed.classes.len()).filter(asks).partition(|class| ready.best[*class] >= floors[*class]);
    loop {
        match with_floors(&ready, values, floors, &kept, limits)? {
            Ok(mut solution) => {
                unmet.sort_unstable();
                solution.unmet = unmet.iter().map(|class| *class as u32).collect();
                return Ok(solution);
            }
            Err(dearest) => {
                kept.retain(|class| *class != dearest);
                unmet.push(dearest);
            }
        }
    }
}

/// The answer, or the class whose floor costs most of what is too little.
fn with_floors(
    ready: &Ready,
    values: &[f64],
    floors: &[f64],
    kept: &[usize],
    limits: &PackedWork,
) -> Result<Result<PackedSolution, usize>, PackedError> {
    let mut rows = Rows::new(ready)?;
    let share = |class: &usize| (rows.level(*class), floors[*class] / ready.best[*class]);
    let mut entries: Vec<(u32, f64)> = kept.iter().map(share).collect();
    entries.push((rows.whole(), 1.0));
    let kept_part = rows.simplex.column(entries)?;
    let floor_goal = |at| f64::from(u8::from(at == kept_part));
    let floor_dual = rows.simplex.maximise(&floor_goal, limits.pivots_max)?;
    if rows.simplex.x()[kept_part] < 1.0 - 1e-9 {
        let price =
            |class: &usize| floor_dual[rows.level(*class) as usize] * floors[*class] / ready.best[*class];
        let dearest = kept.iter().copied().max_by(|left, right| price(left).total_cmp(&price(right)));
        return Ok(Err(dearest.unwrap_or_default()));
    }
    let worth = |live: &super::LiveColumns| values[live.group] * live.most;
    let unit = ready.live.iter().map(|live| worth(live).abs()).fold(0.0, f64::max);
    let costs: Vec<f64> =
        ready.live.iter().map(|live| if unit > 0.0 { worth(live) / unit } else { 0.0 }).collect();
    let goal = |at: usize| costs.get(at).copied().unwrap_or(0.0);
    let dual = rows.simplex.maximise(&goal, limits.pivots_max)?;
    let (bound, dual) = rows.bound_in_order((&floor_goal, &floor_dual), (&goal, &dual));
    let prices = rows.prices(&dual, unit);
    let solution = rows.solution();
    let objective = values.iter().zip(&solution.time).map(|(value, time)| value * time).sum::<f64>();
    Ok(Ok(PackedSolution { objective, bound: (unit * bound).max(objective), prices, ..solution }))
}

type PackedGoal<'a> = &'a dyn Fn(usize) -> f64;

/// The simplex with its rows by name: kinds, then time of classes, then level of classes, then one that
/// limits a column to one. The live groups are its first columns.
pub(super) struct Rows<'a> {
    pub(super) ready: &'a Ready<'a>,
    pub(super) simplex: Simplex,
}

impl<'a> Rows<'a> {
    fn new(ready: &'a Ready<'a>) -> Result<Rows<'a>, PackedError> {
        let (kinds, classes) = (ready.packed.capacity.len(), ready.packed.classes.len());
        let mut right = vec![1.0; kinds + classes];
        right.extend(vec![0.0; classes]);
        right.push(1.0);
        let mut rows = Rows { ready, simplex: Simplex::new(right)? };
        for live in &ready.live {
            let mut entries = rows.common(live);
            for part in &live.parts {
                let speed =
                    part.jobs * part.speed * live.most / (ready.best[part.class] * ready.jobs(part.class));
                if speed > 0.0 {
                    entries.push((rows.level(part.class), -speed));
                }
            }
            rows.simplex.column(entries)?;
        }
        Ok(rows)
    }

    /// Rows for kinds and time, then rows of the caller's; the live groups' columns with the caller's entries.
    pub(super) fn with(
        ready: &'a Ready<'a>,
        more: Vec<f64>,
        entries: impl Fn(&super::LiveColumns) -> Vec<(u32, f64)>,
    ) -> Result<Rows<'a>, PackedError> {
        let mut right = vec![1.0; ready.packed.capacity.len() + ready.packed.classes.len()];
        right.extend(more);
        let mut rows = Rows { ready, simplex: Simplex::new(right)? };
        for live in &ready.live {
            let mut column = rows.common(live);
            column.extend(entries(live));
            rows.simplex.column(column)?;
        }
        Ok(rows)
    }

    /// A group's entries in the rows of kinds and of time.
    fn common(&self, live: &super::LiveColumns) -> Vec<(u32, f64)> {
        let kinds = self.ready.packed.capacity.len();
        let group = &self.ready.packed.groups[live.group];
        let used = group.uses.iter().filter(|used| used.devices > 0.0);
        let used = used.map(|used| {
            (used.kind, used.devices * live.most / self.ready.packed.capacity[used.kind as usize])
        });
        let time = live
            .parts
            .iter()
            .map(|part| ((kinds + part.class) as u32, part.jobs * live.most / self.ready.jobs(part.class)));
        used.chain(time).collect()
    }

    fn level(&self, class: usize) -> u32 {
        (self.ready.packed.capacity.len() + self.ready.packed.classes.len() + class) as u32
    }

    fn whole(&self) -> u32 {
        self.level(self.ready.packed.classes.len())
    }

    /// Prices for one device, from multipliers of scaled rows.
    pub(super) fn prices(&self, dual: &[f64], unit: f64) -> Vec<f64> {
        let price = |(capacity, dual): (&f64, &f64)| match *capacity > 0.0 {
            true => unit * dual.max(0.0) / capacity,
            false => 0.0,
        };
        self.ready.packed.capacity.iter().zip(dual).map(price).collect()
    }

    /// The tie-break: the largest sum of speeds.
    pub(super) fn most_speed(&mut self, limits: &PackedWork) -> Result<(), PackedError> {
        let speed = |live: &super::LiveColumns| {
            live.most * live.parts.iter().map(|part| part.jobs * part.speed).sum::<f64>()
        };
        let speeds: Vec<f64> = self.ready.live.iter().map(speed).collect();
        let unit = speeds.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let goal = |at: usize| speeds.get(at).map_or(0.0, |speed| speed / unit);
        self.simplex.maximise(&goal, limits.pivots_max)?;
        Ok(())
    }

    /// A bound on the second of two goals where the first has its largest value, one: with m large enough
    /// m·first + second bars everything, and the second is at most what that sum is, less m.
    fn bound_in_order(&self, first: (PackedGoal, &[f64]), second: (PackedGoal, &[f64])) -> (f64, Vec<f64>) {
        let one: Vec<f64> = first.1.iter().map(|dual| dual.max(0.0)).collect();
        let two = second.1;
        let of_column = |at| match self.simplex.gain(at, first.0, &one) {
            low if low < -1e-11 => self.simplex.gain(at, second.0, two).max(0.0) / -low,
            _ => 0.0,
        };
        let of_row = |(one, two): (&f64, &f64)| if *one > 1e-11 { (-two).max(0.0) / one } else { 0.0 };
        let rows = one.iter().zip(two).map(of_row);
        let much = (0..self.simplex.x().len()).map(of_column).chain(rows).fold(0.0, f64::max);
        let dual: Vec<f64> = one.iter().zip(two).map(|(one, two)| much * one + two).collect();
        let goal = |at| much * first.0(at) + second.0(at);
        (self.simplex.bound(&goal, &dual) - much, dual)
    }

    /// The times at the present vertex, shrunk where rounding made them a touch too long, and what each
    /// class gets from them. The objective and its bound are the caller's.
    pub(super) fn solution(&self) -> PackedSolution {
        let packed = self.ready.packed;
        let mut time = vec![0.0; packed.groups.len()];
        for (live, part) in self.ready.live.iter().zip(self.simplex.x()) {
            time[live.group] = live.most * part.min(1.0);
        }
        let excess = self.excess(&time);
        time.iter_mut().for_each(|time| *time /= excess);
        let mut speeds = vec![0.0; packed.classes.len()];
        for live in &self.ready.live {
            for part in &live.parts {
                speeds[part.class] += part.jobs * part.speed * time[live.group];
            }
        }
        let level = |(class, speed): (&super::JobClass, &f64)| match class.jobs > 0 && class.weight > 0.0 {
            true => speed / (f64::from(class.jobs) * class.weight),
            false => 0.0,
        };
        PackedSolution {
            levels: packed.classes.iter().zip(&speeds).map(level).collect(),
            time,
            objective: 0.0,
            bound: 0.0,
            prices: Vec::new(),
            needs: Needs::Equal,
            unmet: self.ready.stranded(),
            pivots: self.simplex.pivots(),
        }
    }

    /// By how much the fullest row is over, at least one.
    fn excess(&self, time: &[f64]) -> f64 {
        let packed = self.ready.packed;
        let mut devices = vec![0.0; packed.capacity.len()];
        let mut busy = vec![0.0; packed.classes.len()];
        for live in &self.ready.live {
            for used in &packed.groups[live.group].uses {
                devices[used.kind as usize] += used.devices * time[live.group];
            }
            for part in &live.parts {
                busy[part.class] += part.jobs * time[live.group];
            }
        }
        let devices = devices.iter().zip(&packed.capacity).map(|(used, capacity)| (*used, *capacity));
        let busy = busy.iter().zip(&packed.classes).map(|(busy, class)| (*busy, f64::from(class.jobs)));
        devices
            .chain(busy)
            .filter(|(_, room)| *room > 0.0)
            .map(|(used, room)| used / room)
            .fold(1.0, f64::max)
    }
}
