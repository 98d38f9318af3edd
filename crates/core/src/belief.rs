//! What the scheduler thinks of speed: how much of its speed alone a job keeps beside another on the same
//! devices. Speeds alone stand in the job's spec, one for each shape.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{KindId, ProfileId};

/// What is believed of jobs that share devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Belief {
    /// The part of its speed alone that the first keeps beside the second, by kind; 0: it cannot run so.
    beside: BTreeMap<(ProfileId, ProfileId, KindId), f64>,
}

impl Belief {
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
}
