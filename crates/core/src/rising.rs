//! A map for keys that are given out in rising order, as the numbers of jobs and leases are: a column of keys and one
//! of values. What is new goes to the end. What is gone leaves a gap until gaps are half of all. Of numbers it is known
//! how many there can be from one to the last, so that what is young is found at the first guess and what is old after
//! a few. A tree does the same at several times the price, which counts where a million leases come and go. Any other
//! order of keys is kept too, but costs a move of all that lies behind.

use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::{JobId, LeaseId};
use crate::units::Time;

/// A key.
pub trait Key: Copy + Ord {
    /// How many keys there can be from this one up to a later one, that one not counted.
    fn up_to(self, later: Self) -> usize;
}

impl Key for JobId {
    fn up_to(self, later: JobId) -> usize {
        later.0.saturating_sub(self.0) as usize
    }
}

impl Key for LeaseId {
    fn up_to(self, later: LeaseId) -> usize {
        later.0.saturating_sub(self.0) as usize
    }
}

impl Key for (Time, LeaseId) {
    fn up_to(self, _: (Time, LeaseId)) -> usize {
        usize::MAX
    }
}

/// Gaps that are left alone however few entries there are.
const GAPS_MIN: usize = 16;

/// The first step from a guess: among so few, halving finds a key sooner.
const STEP: usize = 64;

/// The map.
#[derive(Clone, Debug)]
pub struct Rising<K, V> {
    keys: Vec<K>,
    /// None where the entry is gone; never at the end.
    values: Vec<Option<V>>,
    /// Where the first entry is.
    start: usize,
    gaps: usize,
}

impl<K, V> Default for Rising<K, V> {
    fn default() -> Rising<K, V> {
        Rising { keys: Vec::new(), values: Vec::new(), start: 0, gaps: 0 }
    }
}

impl<K: Key, V> Rising<K, V> {
    /// An empty map.
    pub fn new() -> Rising<K, V> {
        Rising::default()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.keys.len() - self.gaps
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.values[self.find(key)?].as_ref()
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.find(key)?;
        self.values[at].as_mut()
    }

    /// Whether a key is there.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Adds an entry; returns the one that it replaces.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if self.keys.last().is_none_or(|last| *last < key) {
            self.keys.push(key);
            self.values.push(Some(value));
            return None;
        }
        let place = self.keys.binary_search(&key);
        self.start = self.start.min(place.unwrap_or_else(|at| at));
        match place {
            Ok(at) => {
                let before = self.values[at].replace(value);
                self.gaps -= usize::from(before.is_none());
                before
            }
            Err(at) => {
                self.keys.insert(at, key);
                self.values.insert(at, Some(value));
                None
            }
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.find(key)?;
        let value = self.values[at].take()?;
        self.gaps += 1;
        while let Some(None) = self.values.last() {
            self.keys.pop();
            self.values.pop();
            self.gaps -= 1;
        }
        while let Some(None) = self.values.get(self.start) {
            self.start += 1;
        }
        self.start = self.start.min(self.keys.len());
        if self.gaps > GAPS_MIN && 2 * self.gaps > self.keys.len() {
            self.close_gaps();
        }
        Some(value)
    }

    /// The first entry.
    pub fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> + Clone {
        let entries = self.keys[self.start..].iter().zip(&self.values[self.start..]);
        entries.filter_map(|(key, value)| Some((key, value.as_ref()?)))
    }

    /// All keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// All values in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.values.iter().flatten()
    }

    fn find(&self, key: &K) -> Option<usize> {
        let last = *self.keys.last()?;
        // It is at the first guess or behind it, so the steps from there are twice as long each time.
        let guess = (self.keys.len() - 1).saturating_sub(key.up_to(last));
        let (mut from, mut step) = (guess.max(self.start), STEP);
        while self.keys.get(from + step).is_some_and(|at| at <= key) {
            (from, step) = (from + step, 2 * step);
        }
        let to = self.keys.len().min(from + step);
        self.keys.get(from..to)?.binary_search(key).ok().map(|at| from + at)
    }

    fn close_gaps(&mut self) {
        let mut values = self.values.iter();
        self.keys.retain(|_| values.next().is_some_and(Option::is_some));
        self.values.retain(Option::is_some);
        (self.start, self.gaps) = (0, 0);
    }
}

impl<K: Key, V> Index<&K> for Rising<K, V> {
    type Output = V;
    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the key is there")
    }
}

impl<K: Key, V> FromIterator<(K, V)> for Rising<K, V> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Rising<K, V> {
        let mut map = Rising::new();
        entries.into_iter().for_each(|(key, value)| _ = map.insert(key, value));
        map
    }
}

impl<K: Key, V: PartialEq> PartialEq for Rising<K, V> {
    fn eq(&self, other: &Rising<K, V>) -> bool {
        self.iter().eq(other.iter())
    }
}

/// As any map.
impl<K: Key + Serialize, V: Serialize> Serialize for Rising<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, K: Key + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Rising<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rising<K, V>, D::Error> {
        Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
    }
}

/// A map without values, as a set.
pub(crate) mod as_set {
    use std::collections::BTreeSet;

    use super::*;

    pub(crate) fn serialize<K: Key + Serialize, S: Serializer>(
        map: &Rising<K, ()>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map.keys())
    }

    pub(crate) fn deserialize<'de, K: Key + Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Rising<K, ()>, D::Error> {
        Ok(BTreeSet::deserialize(deserializer)?.into_iter().map(|key| (key, ())).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is added, replaced and removed, in whatever order: the same as in a tree.
        #[test]
        fn it_holds_what_a_tree_holds(steps in prop::collection::vec((0u64..40, 0u8..3), 0..400)) {
            let (mut map, mut tree) = (Rising::new(), BTreeMap::new());
            for (at, (key, what)) in steps.into_iter().enumerate() {
                let key = LeaseId(key);
                if what == 0 {
                    prop_assert_eq!(map.remove(&key), tree.remove(&key));
                } else {
                    // Every third key is a new one at the end.
                    let key = if what == 1 { key } else { LeaseId(40 + at as u64) };
                    prop_assert_eq!(map.insert(key, at), tree.insert(key, at));
                }
                prop_assert!(map.iter().eq(tree.iter()) && map.len() == tree.len());
                prop_assert_eq!((map.get(&key), map.is_empty()), (tree.get(&key), tree.is_empty()));
                prop_assert_eq!(map.first(), tree.first_key_value());
            }
            let text = serde_json::to_string(&map).unwrap();
            prop_assert_eq!(&text, &serde_json::to_string(&tree).unwrap());
            prop_assert_eq!(serde_json::from_str::<Rising<LeaseId, usize>>(&text).unwrap(), map);
        }
    }
}
