//! Soft deadlines exchanged between jobs: who came first took its best one, which may have cost others more than it gained.
//! A climb in the worth of all deadlines kept, by one job falling back to its next deadline and others rising, each time
//! with everybody packed anew; nobody loses its guarantee by it.

use super::leases::{LeaseTable, Wish};

/// Times that all are packed anew, at most, in search of better deadlines; and jobs × leases in all of them.
const TRIES_MAX: usize = 200;
const WORK_MAX: usize = 20_000_000;

impl LeaseTable {
    /// Better deadlines for some at the price of a later one for another, while all together are worth more.
    pub(super) fn improve(&mut self, wishes: &[Wish]) {
        let soft: Vec<usize> = self.rows.keys().copied().filter(|at| wishes[*at].ends.len() > 1).collect();
        let leases = self.free.iter().map(Vec::len).max().unwrap_or(0);
        let (mut tries, mut better) = ((WORK_MAX / (self.rows.len() * leases).max(1)).min(TRIES_MAX), true);
        while better && tries > 0 {
            better = self.climb(wishes, &soft, None, &mut tries);
            for at in &soft {
                if tries == 0 {
                    break;
                }
                let mut trial = self.clone();
                let fell = trial.fall(wishes, *at, &mut tries);
                if fell
                    && trial.climb(wishes, &soft, Some(*at), &mut tries)
                    && trial.worth(wishes) > self.worth(wishes)
                {
                    (*self, better) = (trial, true);
                }
            }
        }
    }

    /// One job keeps its next deadline instead of the one it has.
    fn fall(&mut self, wishes: &[Wish], at: usize, tries: &mut usize) -> bool {
        let now = self.rows.get(&at).map_or(0, |row| row.end);
        let later = wishes[at].ends.iter().map(|end| end.0).filter(|end| *end > now).min();
        later.is_some_and(|end| self.try_end(wishes, at, end, tries))
    }

    /// Better deadlines, one job after the other, for whoever can have them beside all others. Whether anybody could.
    fn climb(&mut self, wishes: &[Wish], soft: &[usize], but: Option<usize>, tries: &mut usize) -> bool {
        let mut any = false;
        for at in soft.iter().filter(|at| Some(**at) != but) {
            let now = self.rows.get(at).map_or(0, |row| row.end);
            let mut sooner = wishes[*at].ends.iter().map(|end| end.0).filter(|end| *end < now);
            any |= sooner.any(|end| self.try_end(wishes, *at, end, tries));
        }
        any
    }

    /// Everybody packed anew with another deadline for one job, as long as tries are left.
    fn try_end(&mut self, wishes: &[Wish], at: usize, end: usize, tries: &mut usize) -> bool {
        if *tries == 0 {
            return false;
        }
        *tries -= 1;
        let ends = self.rows.iter().map(|(row, own)| (*row, if *row == at { end } else { own.end }));
        self.fit_all(wishes, ends.collect()).map(|table| *self = table).is_some()
    }
}
