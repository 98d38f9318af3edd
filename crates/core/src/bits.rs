//! A set of small numbers, as rows of nodes and shares are: one bit each, and one for each word that is not empty, so
//! that the first is found at a glance among thousands. It is saved as a list.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    /// Which words are not empty.
    full: Vec<u64>,
    len: usize,
}

impl Bits {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        let (word, bit) = place(number);
        self.words.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Adds a number; whether it is new.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = place(number);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
            self.full.resize(word / 64 + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.full[word / 64] |= 1 << (word % 64);
        self.len += usize::from(new);
        new
    }

    /// Takes a number out; whether it was there.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let (word, bit) = place(number);
        let Some(bits) = self.words.get_mut(word).filter(|bits| **bits & bit != 0) else { return false };
        *bits &= !bit;
        if *bits == 0 {
            self.full[word / 64] &= !(1 << (word % 64));
        }
        self.len -= 1;
        true
    }

    /// All numbers, rising.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        let words = self.full.iter().enumerate().flat_map(|(at, full)| ones(at, *full));
        words.flat_map(|word| ones(word as usize, self.words[word as usize]))
    }
}

fn place(number: u32) -> (usize, u64) {
    (number as usize / 64, 1 << (number % 64))
}

/// The numbers of the bits that are set in a word, which is the `at`-th.
fn ones(at: usize, mut word: u64) -> impl Iterator<Item = u32> + Clone {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(at as u32 * 64 + bit)
    })
}

impl PartialEq for Bits {
    fn eq(&self, other: &Bits) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl FromIterator<u32> for Bits {
    fn from_iter<T: IntoIterator<Item = u32>>(numbers: T) -> Bits {
        let mut bits = Bits::default();
        numbers.into_iter().for_each(|number| _ = bits.insert(number));
        bits
    }
}

impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bits, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is added and removed: the same as in a tree, in the same order, and saved the same.
        #[test]
        fn it_holds_what_a_tree_holds(steps in prop::collection::vec((0u32..9_000, any::<bool>()), 0..300)) {
            let (mut bits, mut tree) = (Bits::default(), BTreeSet::new());
            for (number, add) in steps {
                // Few numbers, spread far, so that words fall empty again.
                let number = number / 90 * 90;
                let (ours, theirs) = if add {
                    (bits.insert(number), tree.insert(number))
                } else {
                    (bits.remove(number), tree.remove(&number))
                };
                prop_assert_eq!(ours, theirs);
                prop_assert!(bits.contains(number) == tree.contains(&number) && !bits.contains(number + 1));
                prop_assert!(bits.iter().eq(tree.iter().copied()) && bits.is_empty() == tree.is_empty());
            }
            let text = serde_json::to_string(&bits).unwrap();
            prop_assert_eq!(&text, &serde_json::to_string(&tree).unwrap());
            prop_assert_eq!(serde_json::from_str::<Bits>(&text).unwrap(), bits);
        }
    }
}
