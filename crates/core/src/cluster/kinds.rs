//! The accelerator kinds by name.

use serde::{Deserialize, Serialize};

use crate::ids::KindId;

/// Most kinds; a number of theirs fits in `KindId`, and no cluster has nearly as many.
pub const KINDS_MAX: usize = 1 << 12;

/// The accelerator kinds: their names, and what they cost where that is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kinds {
    names: Vec<String>,
    /// Dollars for one device and hour.
    dollars: Vec<Option<f64>>,
}

impl Kinds {
    /// The kind of this name, new if need be.
    pub fn intern(&mut self, name: &str) -> KindId {
        self.find(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.dollars.push(None);
            KindId(self.names.len() as u16 - 1)
        })
    }

    /// The kind of this name, if it is known.
    pub fn find(&self, name: &str) -> Option<KindId> {
        self.names.iter().position(|known| known == name).map(|at| KindId(at as u16))
    }

    /// A kind's name, if there is such a kind.
    pub fn get(&self, kind: KindId) -> Option<&str> {
        self.names.get(kind.index()).map(String::as_str)
    }

    /// A kind's name; `?` where there is no such kind.
    pub fn name(&self, kind: KindId) -> &str {
        self.get(kind).unwrap_or("?")
    }

    /// How many kinds there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no kind yet.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// All kinds, in order.
    pub fn ids(&self) -> impl Iterator<Item = KindId> + use<> {
        (0..self.names.len()).map(|at| KindId(at as u16))
    }

    /// Says what one device of a kind costs for an hour.
    pub fn set_dollars(&mut self, kind: KindId, dollars: f64) {
        if let Some(known) = self.dollars.get_mut(kind.index()) {
            *known = Some(dollars);
        }
    }

    /// Dollars for one device and hour, where they are known.
    pub fn dollars(&self, kind: KindId) -> Option<f64> {
        self.dollars.get(kind.index()).copied().flatten()
    }
}
