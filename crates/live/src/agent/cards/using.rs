//! What parts do to their devices, and when that is worth telling. Single looks jump about, so what counts is the
//! mean of the last few; and a job that has not touched its devices yet, because it still loads, is not known.

use std::collections::{BTreeMap, VecDeque};

use yard_core::part::PartId;

use crate::wire::CardNow;

/// Looks that are averaged.
const LOOKS: usize = 4;

/// Looks after which something is known.
const LOOKS_MIN: usize = 2;

/// What has moved by less is no news: a part of the time, and a part of the memory.
const NEWS: f64 = 0.1;

/// All parts that run.
#[derive(Debug, Default)]
pub(super) struct Uses(BTreeMap<PartId, Use>);

#[derive(Debug, Default)]
struct Use {
    /// How busy it was, newest last.
    busy: VecDeque<f64>,
    /// What was last told.
    told: Option<(f64, u32)>,
}

/// What a part does on all its devices: the mean of how busy it is where that is known, and the most memory.
pub(super) fn seen(cards: &[CardNow]) -> BTreeMap<PartId, (Option<f64>, u32)> {
    let mut all: BTreeMap<PartId, (Vec<f64>, u32)> = BTreeMap::new();
    for (part, busy, memory) in cards.iter().flat_map(|card| &card.parts) {
        let (looks, most) = all.entry(*part).or_default();
        looks.extend(*busy);
        *most = (*most).max(u32::try_from(*memory).unwrap_or(u32::MAX));
    }
    all.into_iter().map(|(part, (looks, most))| (part, (mean(looks.iter()), most))).collect()
}

fn mean<'a>(values: impl ExactSizeIterator<Item = &'a f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| (values.sum::<f64>() / count as f64).clamp(0.0, 1.0))
}

impl Uses {
    /// Takes in a look; what is news. Parts that were not seen are forgotten.
    pub(super) fn take(&mut self, seen: BTreeMap<PartId, (Option<f64>, u32)>) -> Vec<(PartId, f64, u32)> {
        self.0.retain(|part, _| seen.contains_key(part));
        let mut news = Vec::new();
        for (part, (busy, memory_mib)) in seen {
            let known = self.0.entry(part).or_default();
            let told = known.take(busy, memory_mib);
            news.extend(told.map(|(busy, memory_mib)| (part, busy, memory_mib)));
        }
        news
    }

    /// Everything is news again.
    pub(super) fn tell_again(&mut self) {
        self.0.values_mut().for_each(|known| known.told = None);
    }
}

impl Use {
    fn take(&mut self, busy: Option<f64>, memory_mib: u32) -> Option<(f64, u32)> {
        if memory_mib == 0 && self.told.is_none() {
            return None;
        }
        self.busy.extend(busy.filter(|busy| busy.is_finite()));
        let old = self.busy.len().saturating_sub(LOOKS);
        self.busy.drain(..old);
        if self.busy.len() < LOOKS_MIN {
            return None;
        }
        let now = (mean(self.busy.iter())?, memory_mib);
        if self.told.is_some_and(|told| !is_news(told, now)) {
            return None;
        }
        self.told = Some(now);
        self.told
    }
}

fn is_news(told: (f64, u32), now: (f64, u32)) -> bool {
    let memory = f64::from(told.1.abs_diff(now.1)) > NEWS * f64::from(told.1.max(now.1));
    (told.0 - now.0).abs() > NEWS || memory
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use yard_core::ids::{JobId, LeaseId};

    use super::*;

    fn part(job: u64) -> PartId {
        PartId { lease: LeaseId(1), job: JobId(job), instance: 1 }
    }

    fn look(uses: &mut Uses, busy: f64, memory: u32) -> Option<(f64, u32)> {
        let news = uses.take(BTreeMap::from([(part(1), (Some(busy), memory))]));
        news.first().map(|(_, busy, memory)| (*busy, *memory))
    }

    #[test]
    fn a_part_is_known_after_two_looks_and_told_again_when_it_moves() {
        let mut uses = Uses::default();
        assert_eq!(look(&mut uses, 0.0, 0), None, "it loads");
        assert_eq!(look(&mut uses, 0.75, 1000), None);
        assert_eq!(look(&mut uses, 0.25, 1000), Some((0.5, 1000)));
        assert_eq!(look(&mut uses, 0.55, 1050), None, "nothing new");
        assert_eq!(look(&mut uses, 0.5, 1200), Some((0.5125, 1200)), "more memory");
        assert_eq!(look(&mut uses, 1.0, 1200), None, "one look is not much");
        assert_eq!(look(&mut uses, 1.0, 1200), Some((0.7625, 1200)));
        uses.tell_again();
        assert_eq!(look(&mut uses, 1.0, 1200), Some((0.875, 1200)));
        assert_eq!(uses.take(BTreeMap::new()), []);
        assert_eq!(look(&mut uses, 1.0, 1200), None, "it is another run");
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        let mut uses = Uses::default();
        for _ in 0..10 {
            assert_eq!(uses.take(BTreeMap::from([(part(1), (None, 500))])), []);
        }
    }

    #[test]
    fn a_part_on_two_cards_is_told_once() {
        let card = |busy, memory| CardNow { parts: vec![(part(1), busy, memory)], ..CardNow::default() };
        let cards = [card(Some(1.0), 10), card(Some(0.5), 30), card(None, u64::MAX)];
        assert_eq!(seen(&cards), BTreeMap::from([(part(1), (Some(0.75), u32::MAX))]));
    }

    proptest! {
        #[test]
        fn whatever_is_read_what_is_told_is_a_part_of_the_time(
            looks in prop::collection::vec((prop::option::of(prop::num::f64::ANY), any::<u32>()), 1..40)
        ) {
            let mut uses = Uses::default();
            for (busy, memory) in looks {
                for (_, busy, _) in uses.take(BTreeMap::from([(part(1), (busy, memory))])) {
                    prop_assert!((0.0..=1.0).contains(&busy), "{}", busy);
                }
            }
        }
    }
}
