//! A map for what is numbered as it comes and lives for a while, as leases do: each entry lies where its number says,
//! or a little behind where another one lies there. Nothing is searched for, which counts where a million leases
//! come and go and each is looked up twenty times. Numbers are scattered over the slots: those that stay for long often
//! follow each other, and in one row all that come later would have to walk past them.

use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::LeaseId;

/// The map. Slots are a power of two and at least twice as many as entries.
#[derive(Clone, Debug)]
pub struct Table<V> {
    slots: Vec<Option<(LeaseId, V)>>,
    len: usize,
}

/// 2⁶⁴ over the golden ratio: multiples of it lie far apart (Knuth, The Art of Computer Programming 3, 6.4).
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

impl<V> Default for Table<V> {
    fn default() -> Table<V> {
        Table { slots: Vec::new(), len: 0 }
    }
}

impl<V> Table<V> {
    /// An empty map.
    pub fn new() -> Table<V> {
        Table::default()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &LeaseId) -> Option<&V> {
        let at = self.find(*key)?;
        self.slots[at].as_ref().map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: &LeaseId) -> Option<&mut V> {
        let at = self.find(*key)?;
        self.slots[at].as_mut().map(|(_, value)| value)
    }

    /// Whether a key is there.
    pub fn contains_key(&self, key: &LeaseId) -> bool {
        self.find(*key).is_some()
    }

    /// Adds an entry; returns the one that it replaces.
    pub fn insert(&mut self, key: LeaseId, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(&key) {
            return Some(std::mem::replace(known, value));
        }
        if self.slots.len() < 2 * (self.len + 1) {
            self.grow();
        }
        self.put(key, value);
        self.len += 1;
        None
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &LeaseId) -> Option<V> {
        let mut gap = self.find(*key)?;
        let (_, value) = self.slots[gap].take()?;
        self.len -= 1;
        // Whoever had to make way for it, or for one who did, moves up: there are no gaps on the way to anybody.
        let mut at = self.after(gap);
        while let Some((other, _)) = &self.slots[at] {
            let way = at.wrapping_sub(self.home(*other)) & (self.slots.len() - 1);
            if way >= at.wrapping_sub(gap) & (self.slots.len() - 1) {
                self.slots.swap(gap, at);
                gap = at;
            }
            at = self.after(at);
        }
        Some(value)
    }

    /// All entries in the order of their numbers.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&LeaseId, &V)> + Clone {
        let mut all: Vec<(&LeaseId, &V)> =
            self.slots.iter().flatten().map(|(key, value)| (key, value)).collect();
        all.sort_unstable_by_key(|(key, _)| **key);
        all.into_iter()
    }

    fn home(&self, key: LeaseId) -> usize {
        (key.0.wrapping_mul(SCATTER) >> 32) as usize & (self.slots.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    #[inline]
    fn find(&self, key: LeaseId) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(key);
        loop {
            match &self.slots[at] {
                Some((other, _)) if *other == key => return Some(at),
                Some(_) => at = self.after(at),
                None => return None,
            }
        }
    }

    fn put(&mut self, key: LeaseId, value: V) {
        let mut at = self.home(key);
        while self.slots[at].is_some() {
            at = self.after(at);
        }
        self.slots[at] = Some((key, value));
    }

    fn grow(&mut self) {
        let more = (2 * self.slots.len()).max(16);
        let before = std::mem::take(&mut self.slots);
        self.slots.resize_with(more, || None);
        before.into_iter().flatten().for_each(|(key, value)| self.put(key, value));
    }
}

impl<V> Index<&LeaseId> for Table<V> {
    type Output = V;
    fn index(&self, key: &LeaseId) -> &V {
        self.get(key).expect("the key is there")
    }
}

impl<V> FromIterator<(LeaseId, V)> for Table<V> {
    fn from_iter<T: IntoIterator<Item = (LeaseId, V)>>(entries: T) -> Table<V> {
        let mut table = Table::new();
        entries.into_iter().for_each(|(key, value)| _ = table.insert(key, value));
        table
    }
}

impl<V: PartialEq> PartialEq for Table<V> {
    fn eq(&self, other: &Table<V>) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

/// As any map.
impl<V: Serialize> Serialize for Table<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Table<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Table<V>, D::Error> {
        Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Slots from where a key would lie to where it lies.
    fn way(table: &Table<()>, key: u64) -> usize {
        let at = table.find(LeaseId(key)).expect("it is there");
        at.wrapping_sub(table.home(LeaseId(key))) & (table.slots.len() - 1)
    }

    #[test]
    fn nobody_walks_past_all_who_stay_for_long() {
        let mut table: Table<()> = (0..50_000).map(|key| (LeaseId(key), ())).collect();
        let mut most = 0;
        for key in 50_000..250_000 {
            table.insert(LeaseId(key), ());
            most = most.max(way(&table, key));
            table.remove(&LeaseId(key));
        }
        assert!(most < 64 && (0..50_000).all(|key| way(&table, key) < 64), "{most}");
    }

    proptest! {
        /// Whatever is added, replaced and removed, in whatever order: the same as in a tree, and saved the same.
        #[test]
        fn it_holds_what_a_tree_holds(steps in prop::collection::vec((0u64..40, 0u8..3), 0..400)) {
            let (mut table, mut tree) = (Table::new(), BTreeMap::new());
            for (at, (key, what)) in steps.into_iter().enumerate() {
                // Many keys in few slots: some have to make way for another.
                let key = LeaseId(key % 5 * 64 + key / 5);
                if what == 0 {
                    prop_assert_eq!(table.remove(&key), tree.remove(&key));
                } else {
                    // Every third key is a new one.
                    let key = if what == 1 { key } else { LeaseId(1_000 + at as u64) };
                    prop_assert_eq!(table.insert(key, at), tree.insert(key, at));
                }
                prop_assert!(table.iter().eq(tree.iter()) && table.len() == tree.len());
                prop_assert!(tree.iter().all(|(key, value)| table.get(key) == Some(value)));
                prop_assert_eq!((table.get(&key), table.is_empty()), (tree.get(&key), tree.is_empty()));
            }
            let text = serde_json::to_string(&table).unwrap();
            prop_assert_eq!(&text, &serde_json::to_string(&tree).unwrap());
            prop_assert_eq!(serde_json::from_str::<Table<usize>>(&text).unwrap(), table);
        }
    }
}
