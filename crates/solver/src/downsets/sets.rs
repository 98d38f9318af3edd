//! All down-closed sets of units: with each unit, all that it needs.

use std::collections::BTreeSet;

use super::contract::Units;

/// Sets of units as bits, the smaller first.
pub(super) struct Sets {
    words: usize,
    bits: Vec<u64>,
}

impl Sets {
    /// Lists them; none where there are more than so many.
    pub(super) fn new(units: &Units, most: usize) -> Option<Sets> {
        let words = units.len().div_ceil(64).max(1);
        let needs: Vec<Vec<u64>> = units.needs.iter().map(|needs| mask(words, needs)).collect();
        let mut all = Sets { words, bits: vec![0; words] };
        let mut size: BTreeSet<Vec<u64>> = BTreeSet::from([vec![0; words]]);
        while !size.is_empty() {
            let mut larger = BTreeSet::new();
            for set in &size {
                for (unit, needs) in needs.iter().enumerate() {
                    if !holds(set, unit) && is_within(needs, set) {
                        let mut with = set.clone();
                        with[unit / 64] |= 1 << (unit % 64);
                        larger.insert(with);
                    }
                }
                if all.len() + larger.len() > most {
                    return None;
                }
            }
            larger.iter().for_each(|set| all.bits.extend(set));
            size = larger;
        }
        Some(all)
    }

    /// The sets that a list of units makes as it grows, when each comes after all that it needs.
    pub(super) fn prefixes(order: &[usize]) -> Sets {
        let words = order.len().div_ceil(64).max(1);
        let (mut set, mut bits) = (vec![0; words], vec![0; words]);
        for unit in order {
            set[unit / 64] |= 1 << (unit % 64);
            bits.extend(&set);
        }
        Sets { words, bits }
    }

    pub(super) fn len(&self) -> usize {
        self.bits.len() / self.words
    }

    pub(super) fn get(&self, at: usize) -> &[u64] {
        &self.bits[at * self.words..(at + 1) * self.words]
    }

    /// Bits of units.
    pub(super) fn mask(&self, units: &[usize]) -> Vec<u64> {
        mask(self.words, units)
    }
}

fn mask(words: usize, units: &[usize]) -> Vec<u64> {
    let mut bits = vec![0; words];
    units.iter().for_each(|unit| bits[unit / 64] |= 1 << (unit % 64));
    bits
}

pub(super) fn holds(set: &[u64], unit: usize) -> bool {
    set[unit / 64] >> (unit % 64) & 1 == 1
}

pub(super) fn is_within(small: &[u64], large: &[u64]) -> bool {
    small.iter().zip(large).all(|(small, large)| small & !large == 0)
}
