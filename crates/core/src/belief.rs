//! What the scheduler thinks of speed: how much of its speed alone a job keeps beside another on the same
//! devices. Speeds alone stand in the job's spec, one for each shape.
//!
//! A belief that learns (`Belief::learning`) takes the speeds of a spec for guesses. What was measured in a shape
//! replaces the guess, later measurements by halves (Gavel's physical mode: Narayanan et al., OSDI 2020). A shape
//! in which the profile never ran is believed to have its measured speed elsewhere times the typical ratio of the
//! two shapes: the median over the guess's ratio and those of all profiles measured in both.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{KindId, ProfileId};
use crate::job::{Need, Shape, Usage};

/// What a job keeps beside another of which nothing is known: half, as if the two took turns.
pub const UNKNOWN_KEPT: f64 = 0.5;

/// What is believed of jobs that share devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Belief {
    /// The part of its speed alone that the first keeps beside the second, by kind; 0: it cannot run so.
    #[serde(with = "rows")]
    beside: BTreeMap<(ProfileId, ProfileId, KindId), f64>,
    /// What was learned of speeds alone; none where speeds are given and not learned.
    learned: Option<Learned>,
    /// Whether nothing is learned any more; in a forecast, where what is believed is true.
    #[serde(skip)]
    fixed: bool,
}

/// Steps a second alone, by profile and shape: as first guessed, and as measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Learned {
    #[serde(with = "rows")]
    guessed: BTreeMap<(ProfileId, Shape), f64>,
    #[serde(with = "rows")]
    measured: BTreeMap<(ProfileId, Shape), f64>,
    /// Which of what is believed of pairs was measured.
    pairs: BTreeSet<(ProfileId, ProfileId, KindId)>,
    /// What jobs of a profile were last seen to do to their devices, alone there.
    usage: BTreeMap<ProfileId, Usage>,
}

/// How much a new measurement counts against the old one.
const NEWS: f64 = 0.5;

impl Belief {
    /// The same belief, which learns from now on.
    pub fn learning(self) -> Belief {
        Belief { learned: Some(Learned::default()), ..self }
    }

    /// Takes over what an earlier belief had learned, where this one learns as well.
    pub(crate) fn remember(&mut self, before: &Belief) {
        let (Some(own), Some(old)) = (self.learned.as_mut(), &before.learned) else { return };
        own.clone_from(old);
        for pair in &old.pairs {
            self.beside.extend(before.beside.get_key_value(pair));
        }
    }

    /// Whether measurements change it.
    pub fn learns(&self) -> bool {
        self.learned.is_some()
    }

    /// The same belief, which says of new jobs what it knows and learns nothing more.
    pub(crate) fn fixed(self) -> Belief {
        Belief { fixed: true, ..self }
    }

    /// Whether measurements change it now.
    pub(crate) fn measures(&self) -> bool {
        self.learns() && !self.fixed
    }

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

    /// Takes the speeds of a new job for guesses. Returns what is believed of them.
    pub(crate) fn guess(&mut self, profile: ProfileId, shapes: &[Shape], speeds: &[f64]) -> Vec<f64> {
        let Some(learned) = self.learned.as_mut().filter(|_| profile != ProfileId::default()) else {
            return speeds.to_vec();
        };
        for (shape, speed) in shapes.iter().zip(speeds) {
            learned.guessed.entry((profile, shape.clone())).or_insert(*speed);
        }
        self.speeds(profile, shapes)
    }

    /// What is believed of the speeds of a job that would come with these; nothing is kept of it. A shape that nobody
    /// of its profile came with is as much faster or slower than it says as the others are.
    pub fn believed(&self, profile: ProfileId, shapes: &[Shape], speeds: &[f64]) -> Vec<f64> {
        let Some(learned) = self.learned.as_ref().filter(|_| profile != ProfileId::default()) else {
            return speeds.to_vec();
        };
        let known = |shape: &Shape| {
            let key = (profile, shape.clone());
            let seen = learned.guessed.contains_key(&key) || learned.measured.contains_key(&key);
            seen.then(|| learned.speed(profile, shape)).filter(|speed| *speed > 0.0)
        };
        let told: Vec<Option<f64>> = shapes.iter().map(known).collect();
        let ratios = told.iter().zip(speeds).filter_map(|(told, said)| Some((*told)? / said));
        let ratio = median(ratios.filter(|ratio| ratio.is_finite()).collect()).unwrap_or(1.0);
        told.into_iter().zip(speeds).map(|(told, said)| told.unwrap_or(said * ratio)).collect()
    }

    /// What is believed of a profile's speeds alone, where it is learned.
    pub(crate) fn speeds(&self, profile: ProfileId, shapes: &[Shape]) -> Vec<f64> {
        let speed = |shape| self.learned.as_ref().map_or(0.0, |learned| learned.speed(profile, shape));
        shapes.iter().map(speed).collect()
    }

    /// A job of `profile` made so many steps a second, alone or beside `other`. Returns whether this is news: the
    /// first of its sort, or off by more than a tenth.
    pub(crate) fn observe(
        &mut self,
        profile: ProfileId,
        shape: &Shape,
        other: Option<ProfileId>,
        steps_per_s: f64,
    ) -> bool {
        let known = profile != ProfileId::default() && other != Some(ProfileId::default());
        let Some(learned) = self.learned.as_mut().filter(|_| known) else { return false };
        let alone = learned.measured.get(&(profile, shape.clone())).copied();
        match (other, alone) {
            (None, _) if steps_per_s > 0.0 => learned.take(profile, shape, steps_per_s),
            (None, _) => false,
            (Some(other), Some(alone)) => {
                let kept = if alone > 0.0 { steps_per_s / alone } else { 0.0 };
                self.observe_kept(profile, shape, other, kept)
            }
            // Never seen alone: what is believed of the pair tells how fast it would be.
            (Some(other), None) => {
                let kept = self.kept(profile, std::iter::once(other), &shape.needs);
                match self.learned.as_mut().filter(|_| kept > 0.0 && steps_per_s > 0.0) {
                    Some(learned) => learned.take(profile, shape, steps_per_s / kept),
                    None => false,
                }
            }
        }
    }

    /// A job of `profile` was seen to keep this part of its speed beside `other`. Returns whether this is news.
    pub(crate) fn observe_kept(
        &mut self,
        profile: ProfileId,
        shape: &Shape,
        other: ProfileId,
        kept: f64,
    ) -> bool {
        let Some(learned) = self.learned.as_mut() else { return false };
        let mut news = false;
        for need in &shape.needs {
            learned.pairs.insert((profile, other, need.kind));
            let before = self.beside.insert((profile, other, need.kind), kept);
            news |= before.is_none_or(|before| is_off(kept, before));
        }
        news
    }

    /// A job of `profile` was seen to do this to its devices, alone there.
    pub(crate) fn observe_usage(&mut self, profile: ProfileId, usage: Usage) {
        if let Some(learned) = self.learned.as_mut().filter(|_| profile != ProfileId::default()) {
            learned.usage.insert(profile, usage);
        }
    }

    /// What jobs of a profile do to their devices, where one of them was seen.
    pub fn usage(&self, profile: ProfileId) -> Option<Usage> {
        self.learned.as_ref()?.usage.get(&profile).copied()
    }

    /// Whether it is known from measurement how fast a profile is alone in a shape.
    pub(crate) fn is_measured(&self, profile: ProfileId, shape: &Shape) -> bool {
        let known = |learned: &Learned| learned.measured.contains_key(&(profile, shape.clone()));
        self.learned.as_ref().is_some_and(known)
    }

    /// The same without what is no number, as it may come from outside.
    pub(crate) fn sound(mut self) -> Belief {
        self.beside.retain(|_, kept| *kept >= 0.0 && kept.is_finite());
        self
    }
}

impl Learned {
    /// A measurement; whether it is news.
    fn take(&mut self, profile: ProfileId, shape: &Shape, speed: f64) -> bool {
        match self.measured.entry((profile, shape.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(speed);
                true
            }
            Entry::Occupied(mut entry) => {
                let before = *entry.get();
                entry.insert(NEWS * speed + (1.0 - NEWS) * before);
                is_off(speed, before)
            }
        }
    }

    fn speed(&self, profile: ProfileId, shape: &Shape) -> f64 {
        let key = (profile, shape.clone());
        if let Some(measured) = self.measured.get(&key) {
            return *measured;
        }
        let guess = self.guessed.get(&key).copied().unwrap_or(0.0);
        let elsewhere = self.measured.iter().filter(|((other, _), _)| *other == profile);
        let scaled = elsewhere.map(|((_, seen), speed)| speed * self.ratio(profile, seen, shape));
        median(scaled.filter(|speed| *speed > 0.0 && speed.is_finite()).collect()).unwrap_or(guess)
    }

    /// How much faster profiles are in shape `to` than in shape `from`.
    fn ratio(&self, profile: ProfileId, from: &Shape, to: &Shape) -> f64 {
        let guess = |shape: &Shape| self.guessed.get(&(profile, shape.clone()));
        let guessed = guess(to).zip(guess(from)).map(|(to, from)| to / from);
        let seen = self.measured.iter().filter(|((_, shape), _)| shape == from);
        let both =
            seen.filter_map(|((other, _), speed)| Some(self.measured.get(&(*other, to.clone()))? / speed));
        median(both.chain(guessed).filter(|ratio| ratio.is_finite()).collect()).unwrap_or(1.0)
    }
}

fn is_off(speed: f64, before: f64) -> bool {
    (speed - before).abs() > 0.1 * before
}

/// The middle of the values, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some((values[last / 2] + values[last.div_ceil(2)]) / 2.0)
}

/// Maps with keys of several parts, as lists: JSON has no other keys than text.
pub(crate) mod rows {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(crate) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
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

    fn shape(kind: u16) -> Shape {
        Shape::of(KindId(kind), 1)
    }

    #[test]
    fn a_shape_never_tried_goes_by_the_typical_ratio() {
        let shapes = [shape(0), shape(1)];
        let mut belief = Belief::default().learning();
        let [a, b, c] = [1, 2, 3].map(ProfileId);
        for profile in [a, b, c] {
            assert_eq!(belief.guess(profile, &shapes, &[4.0, 2.0]), [4.0, 2.0]);
        }
        assert!(belief.observe(a, &shapes[0], None, 40.0), "a first measurement is news");
        assert_eq!(belief.speeds(a, &shapes), [40.0, 20.0], "by the guesses' ratio");
        // Two others turn out to be a fifth as fast on the second kind.
        for profile in [b, c] {
            belief.observe(profile, &shapes[0], None, 10.0);
            belief.observe(profile, &shapes[1], None, 2.0);
        }
        assert_eq!(belief.speeds(a, &shapes), [40.0, 8.0], "by the median of 1/2, 1/5 and 1/5");
        assert!(belief.observe(a, &shapes[0], None, 20.0));
        assert_eq!(belief.speeds(a, &shapes)[0], 30.0, "old and new by halves");
    }

    #[test]
    fn what_is_believed_of_who_might_come_is_not_kept() {
        let (shapes, a) = ([shape(0), shape(1), shape(2)], ProfileId(1));
        let mut belief = Belief::default().learning();
        belief.guess(a, &shapes[..2], &[4.0, 2.0]);
        belief.observe(a, &shapes[0], None, 40.0);
        let before = belief.clone();
        assert_eq!(
            belief.believed(a, &shapes, &[4.0, 2.0, 3.0]),
            [40.0, 20.0, 30.0],
            "the new one as the others"
        );
        assert_eq!(belief.believed(ProfileId(2), &shapes, &[4.0, 2.0, 3.0]), [4.0, 2.0, 3.0]);
        assert_eq!(belief, before);
        assert_eq!(
            Belief::default().believed(a, &shapes[..1], &[4.0]),
            [4.0],
            "the oracle says what it is told"
        );
    }

    #[test]
    fn a_measured_pair_replaces_what_was_believed() {
        let mut belief = Belief::default();
        let [a, b] = [1, 2].map(ProfileId);
        belief.set_beside(a, b, KindId(0), 0.8);
        assert!(!belief.observe(a, &shape(0), Some(b), 1.0), "the oracle does not learn");
        let mut belief = belief.learning();
        belief.guess(a, &[shape(0)], &[1.0]);
        belief.observe(a, &shape(0), Some(b), 8.0);
        assert_eq!(
            belief.speeds(a, &[shape(0)]),
            [10.0],
            "not seen alone: by what the pair is believed to leave"
        );
        assert!(belief.observe(a, &shape(0), Some(b), 0.0));
        assert_eq!((belief.beside(a, b, KindId(0)), belief.pair(a, b, KindId(0))), (Some(0.0), None));
        assert!(!belief.observe(a, &shape(0), Some(ProfileId(0)), 5.0), "nothing is learned of the unknown");
    }

    #[test]
    fn what_was_learned_outlives_a_new_table() {
        let [a, b] = [1, 2].map(ProfileId);
        let mut old = Belief::default().learning();
        old.set_beside(a, b, KindId(0), 0.1);
        old.guess(a, &[shape(0)], &[3.0]);
        old.observe(a, &shape(0), None, 2.0);
        old.observe(b, &shape(0), None, 2.0);
        old.observe(b, &shape(0), Some(a), 1.0);
        let mut new = Belief::default().learning();
        new.set_beside(a, b, KindId(0), 0.9);
        new.set_beside(b, a, KindId(0), 0.9);
        new.remember(&old);
        assert_eq!((new.beside(a, b, KindId(0)), new.beside(b, a, KindId(0))), (Some(0.9), Some(0.5)));
        assert_eq!(new.speeds(a, &[shape(0)]), [2.0]);
    }

    #[test]
    fn a_belief_survives_saving() {
        let mut belief = Belief::default().learning();
        belief.set_beside(ProfileId(1), ProfileId(2), KindId(0), 0.5);
        belief.guess(ProfileId(1), &[shape(0)], &[3.0]);
        belief.observe(ProfileId(1), &shape(0), None, 2.0);
        let text = serde_json::to_string(&belief).unwrap();
        assert_eq!(serde_json::from_str::<Belief>(&text).unwrap(), belief);
    }

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
