//! A list that stays short however much goes in: enough for a chart, and the same on every machine.

/// Entries kept at most.
const KEPT_MAX: usize = 4096;

/// A list of which every second entry goes when it is full, and then only one in two, four, … comes in.
#[derive(Clone, Debug, PartialEq)]
pub struct Thin<T> {
    kept: Vec<T>,
    stride: u64,
    seen: u64,
}

impl<T> Default for Thin<T> {
    fn default() -> Thin<T> {
        Thin { kept: Vec::new(), stride: 1, seen: 0 }
    }
}

impl<T> Thin<T> {
    /// Takes an entry in, or lets it pass.
    pub fn push(&mut self, entry: T) {
        if self.seen.is_multiple_of(self.stride) {
            self.kept.push(entry);
        }
        self.seen += 1;
        if self.kept.len() == KEPT_MAX {
            let mut odd = true;
            self.kept.retain(|_| {
                odd = !odd;
                !odd
            });
            self.stride *= 2;
        }
    }

    /// What was kept, in order.
    pub fn kept(&self) -> &[T] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_lies_evenly() {
        let mut thin = Thin::default();
        (0..100_000u32).for_each(|entry| thin.push(entry));
        assert!((KEPT_MAX / 2..KEPT_MAX).contains(&thin.kept().len()), "{}", thin.kept().len());
        assert!(thin.kept().windows(2).all(|pair| pair[1] - pair[0] == 32));
        assert_eq!(thin.kept()[0], 0);
    }
}
