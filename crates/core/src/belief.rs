//! What the scheduler thinks of speed: how much of its speed alone a job keeps beside another on the same
//! devices. Speeds alone stand in the job's spec, one for each shape.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{KindId, ProfileId};
use crate::job::Need;

/// What a job keeps beside another of which nothing is known: half, as if the two took turns.
pub const UNKNOWN_KEPT: f64 = 0.5;

/// What is believed of jobs that share devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Belief {
    /// The part of its speed alone that the first keeps beside the second, by kind; 0: it cannot run so.
    #[serde(with = "rows")]
    beside: BTreeMap<(ProfileId, ProfileId, KindId), f64>,
}

impl Belief {
    /// Whether nothing is believed.
    pub fn is_empty(&self) -> bool {
        self.beside.is_empty()
    }

    /// Sets what `profile` keeps of its speed beside `other` on devices of `kind`.
    pub fn set_beside(&mut self, profile: ProfileId, other: ProfileId, kind: KindId, kept: f64) {
        self.beside.insert((profile, other, kind), kept);
    }

    /// What `profile` keeps of its speed beside `other`; none where nothing is known.
    pub fn beside(&self, profile: ProfileId, other: ProfileId, kind: KindId) -> Option<f64> {
        self.beside.get(&(profile, other, kind)).copied()
    }

    /// What each of two keeps on shared devices of `kind`; none where it is not known or either cannot run.
    pub fn pair(&self, a: ProfileId, b: ProfileId, kind: KindId) -> Option<[f64; 2]> {
        let kept = [self.beside(a, b, kind)?, self.beside(b, a, kind)?];
        (kept[0] > 0.0 && kept[1] > 0.0).then_some(kept)
    }

    /// What `profile` keeps on devices of all these kinds beside `others`: each of them takes its part of what the
    /// ones before have left, and a gang goes at the pace of its slowest kind.
    pub fn kept(&self, profile: ProfileId, others: impl Iterator<Item = ProfileId>, needs: &[Need]) -> f64 {
        let beside = |other: ProfileId| {
            let known = |need: &Need| self.beside(profile, other, need.kind).unwrap_or(UNKNOWN_KEPT);
            needs.iter().map(known).reduce(f64::min).unwrap_or(UNKNOWN_KEPT)
        };
        others.map(beside).product()
    }

    /// The same without what is no number, as it may come from outside.
    pub(crate) fn sound(mut self) -> Belief {
        self.beside.retain(|_, kept| *kept >= 0.0 && kept.is_finite());
        self
    }
}

/// Maps with keys of several parts, as lists: JSON has no other keys than text.
mod rows {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_take_their_parts_one_after_another() {
        let mut belief = Belief::default();
        let [a, b, c] = [1, 2, 3].map(ProfileId);
        let needs = [KindId(0), KindId(1)].map(|kind| Need { kind, devices: 1 });
        belief.set_beside(a, b, KindId(0), 0.8);
        belief.set_beside(a, b, KindId(1), 0.6);
        assert_eq!(belief.kept(a, [].into_iter(), &needs), 1.0);
        assert_eq!(belief.kept(a, [b].into_iter(), &needs[..1]), 0.8);
        assert_eq!(belief.kept(a, [b].into_iter(), &needs), 0.6);
        assert_eq!(belief.kept(a, [b, c].into_iter(), &needs), 0.3);
    }
}
