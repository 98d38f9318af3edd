//! How often intervals held, and how sure that is. Estimates that were made together are right or wrong together, so
//! that a thousand of twenty instants say little more than twenty: the error of the share is reckoned over groups
//! (a ratio estimate with its variance over clusters; Cochran, "Sampling techniques", 1977, section 6.3).

use yard_core::Time;
use yard_core::forecast::interval::Interval;

use crate::estimates::holds;

/// How often intervals held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// For each group, how many there were and how many held.
    groups: Vec<(f64, f64)>,
    /// Sums of the intervals' lengths, and of the true time to go, where there was an upper limit.
    width: f64,
    left: f64,
}

impl Held {
    /// What is noted from now on was foretold together.
    pub fn begin(&mut self) {
        self.groups.push((0.0, 0.0));
    }

    /// An estimate that was made at `now`, and what came of it.
    pub fn note(&mut self, now: Time, interval: Option<Interval>, real: Time) {
        if self.groups.is_empty() {
            self.begin();
        }
        let group = self.groups.last_mut().expect("one was begun");
        group.0 += 1.0;
        group.1 += f64::from(u8::from(holds(interval, real)));
        if let Some(interval) = interval.filter(|interval| interval.high < Time::NEVER) {
            self.width += (interval.high - interval.low).secs();
            self.left += (real - now).secs();
        }
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.groups.iter().map(|(all, _)| *all).sum::<f64>() as usize
    }

    /// The part that held.
    pub fn part(&self) -> f64 {
        let held: f64 = self.groups.iter().map(|(_, held)| *held).sum();
        held / (self.count() as f64).max(1.0)
    }

    /// How far from the truth that part may be: two standard errors, and no less than as many independent ones.
    pub fn error(&self) -> f64 {
        let (all, part) = ((self.count() as f64).max(1.0), self.part());
        let groups = self.groups.iter().filter(|(count, _)| *count > 0.0);
        let spread: f64 =
            groups.clone().map(|(count, held)| (held - part * count) * (held - part * count)).sum();
        let number = groups.count() as f64;
        let together = spread / (all * all) * number / (number - 1.0).max(1.0);
        // With two more that held and two that did not: of a few that all held little is known (Agresti and Coull, 1998).
        let likely = (part * all + 2.0) / (all + 4.0);
        let apart = likely * (1.0 - likely) / (all + 4.0);
        2.0 * libm::sqrt(together.max(apart))
    }

    /// The mean length of the intervals, as a part of the mean time that was left.
    pub fn width(&self) -> f64 {
        self.width / self.left.max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many groups of ten, `held` of which hold whole and the others not at all.
    fn groups(number: usize, held: usize, size: usize) -> Held {
        let mut all = Held::default();
        let at = Time::from_secs;
        let interval = Interval { low: at(90.0), mid: at(100.0), high: at(110.0) };
        for group in 0..number {
            all.begin();
            let real = if group < held { 100.0 } else { 200.0 };
            (0..size).for_each(|_| all.note(at(0.0), Some(interval), at(real)));
        }
        all
    }

    #[test]
    fn what_is_right_or_wrong_together_says_less() {
        let (alone, together) = (groups(100, 90, 1), groups(10, 9, 10));
        assert_eq!((alone.count(), together.count()), (100, 100));
        assert_eq!((alone.part(), together.part()), (0.9, 0.9));
        assert!((alone.error() - 0.0627).abs() < 0.001, "{}", alone.error());
        assert!(groups(40, 40, 1).error() > 0.05, "a few that all held are no proof");
        assert!((together.error() - 0.2).abs() < 0.001, "{}", together.error());
        assert!((alone.width() - 20.0 / 110.0).abs() < 1e-9, "{}", alone.width());
    }

    #[test]
    fn nothing_is_known_of_none() {
        let none = Held::default();
        assert_eq!((none.count(), none.part(), none.width()), (0, 0.0, 0.0));
        assert!(none.error().is_finite());
    }
}
