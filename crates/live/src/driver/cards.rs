//! How cards are doing: checked, kept for people to see, and never written down. Whoever holds a device
//! and does not use it is shown as such, by job, because nobody else can tell whether that is meant.

use std::collections::BTreeMap;

use yard_core::ids::JobId;
use yard_core::job::Usage;
use yard_core::message::News;
use yard_core::units::Span;

use super::Driver;
use super::hosts::{GroupMask, Host};
use super::jobs::devices;
use crate::exec::{CardReport, GroupOnWire, HostId};

/// Who computes for less than this part of the time does nothing.
const IDLE: f64 = 0.01;

/// Longest reason for which clocks are held back.
const REASON_MAX: usize = 200;

/// A device of a host: its group and its number.
pub(super) type DriverCardPlace = (u32, u32);

/// How a host's cards are doing.
#[derive(Debug, Default)]
pub(super) struct Cards {
    now: BTreeMap<DriverCardPlace, CardReport>,
    /// Since when jobs have held devices and not used them.
    idle: BTreeMap<(DriverCardPlace, JobId), Span>,
}

impl Cards {
    /// How one is doing, where that is known.
    pub(super) fn get(&self, place: DriverCardPlace) -> Option<&CardReport> {
        self.now.get(&place)
    }

    /// For how long a job has held a device without using it.
    pub(super) fn idle(&self, place: DriverCardPlace, job: JobId, now: Span) -> Option<Span> {
        self.idle.get(&(place, job)).map(|since| Span(now.0.saturating_sub(since.0)))
    }

    /// A job does not hold a device any more.
    pub(super) fn put_down(&mut self, place: DriverCardPlace, job: JobId) {
        self.idle.remove(&(place, job));
    }

    /// Takes in a look at cards. `holders` says who holds a device.
    fn take(
        &mut self,
        cards: BTreeMap<DriverCardPlace, CardReport>,
        holders: impl Fn(DriverCardPlace) -> Vec<JobId>,
        now: Span,
    ) {
        let mut idle = BTreeMap::new();
        for (place, card) in &cards {
            let jobs = holders(*place);
            for job in jobs.iter().filter(|job| is_idle(card, **job, jobs.len())) {
                let since = self.idle.get(&(*place, *job)).copied().unwrap_or(now);
                idle.insert((*place, *job), since);
            }
        }
        (self.now, self.idle) = (cards, idle);
    }
}

/// Whether a job that holds a card is known to do nothing there.
fn is_idle(card: &CardReport, job: JobId, holders: usize) -> bool {
    let own = card.jobs.iter().find(|(on, _)| *on == job).and_then(|(_, busy)| *busy);
    let busy = own.or(card.busy.filter(|_| holders == 1));
    busy.is_some_and(|busy| busy < IDLE)
}

/// What a host may say of its cards: each device it has once, and numbers that are some.
fn sane(groups: &[GroupOnWire], cards: Vec<CardReport>) -> BTreeMap<DriverCardPlace, CardReport> {
    let known = |group: u32, device: u32| {
        groups.get(group as usize).is_some_and(|group| (device as usize) < group.devices.len())
    };
    let cards = cards.into_iter().filter(|card| known(card.group, card.device));
    cards.map(|card| ((card.group, card.device), sane_card(card))).collect()
}

fn sane_card(mut card: CardReport) -> CardReport {
    card.busy = card.busy.and_then(part_of_one);
    card.power_w = card.power_w.filter(|power| power.is_finite() && *power >= 0.0);
    card.throttled = card.throttled.map(|reason| reason.chars().take(REASON_MAX).collect());
    card.jobs.iter_mut().for_each(|(_, busy)| *busy = busy.and_then(part_of_one));
    card
}

fn part_of_one(value: f64) -> Option<f64> {
    value.is_finite().then(|| value.clamp(0.0, 1.0))
}

impl Host {
    /// Takes in a look at its cards.
    fn looked(&mut self, cards: Vec<CardReport>, now: Span) {
        let mut cards = sane(&self.groups, cards);
        for (place, card) in &mut cards {
            let jobs: Vec<_> = self.holders(*place).collect();
            card.jobs.retain(|(job, _)| jobs.contains(job));
            card.jobs.sort_by_key(|(job, _)| *job);
            card.jobs.dedup_by_key(|(job, _)| *job);
        }
        let mut known = std::mem::take(&mut self.cards);
        known.take(cards, |place| self.holders(place).collect(), now);
        self.cards = known;
    }
}

impl Driver {
    /// A host says how its cards are doing.
    pub(super) fn looked(&mut self, host: HostId, cards: Vec<CardReport>) {
        let now = self.clock.elapsed();
        self.hosts.get_mut(host).looked(cards, now);
        self.changed_hosts.insert(host);
    }

    /// What a job does to its devices. What is no number must not get into the journal, and what is known already need
    /// not.
    pub(super) fn usage_news(&self, job: JobId, usage: Usage) -> Option<News> {
        let known = self.engine.job(job).and_then(|run| run.usage);
        let is_news = part_of_one(usage.busy) == Some(usage.busy) && known != Some(usage);
        is_news.then_some(News::Usage(usage))
    }

    /// A job is stopped on its card for a moment, or goes on.
    pub(super) fn hushed(&mut self, job: JobId, hushed: bool) {
        if let Some(record) = self.records.all.get_mut(&job) {
            record.hushed = hushed;
            self.changed_jobs.insert(job);
        }
    }

    /// For how long a job has used none of the devices it holds, where that is long enough to be shown.
    pub(super) fn idle(&self, job: JobId) -> Option<Span> {
        let now = self.clock.elapsed();
        let (_, placement) = self.records.all.get(&job)?.held.as_ref()?;
        let mut least = Span(u64::MAX);
        for slice in &placement.0 {
            let (host, GroupMask { group, mask }) = self.hosts.holder_of(slice)?;
            let cards = &self.hosts.get(host).cards;
            for device in devices(mask) {
                least = least.min(cards.idle((group, device), job, now)?);
            }
        }
        (least >= self.config.idle).then_some(least)
    }

    /// Jobs that hold devices and do not use them are shown so, and those that use them again are not any more.
    pub(super) fn look_for_idle(&mut self) {
        let shown =
            |job: &JobId| self.records.all.get(job).is_some_and(|record| record.view.idle_s.is_some());
        let holding = self.records.holding.iter();
        let idle: Vec<_> = holding.filter(|job| shown(job) || self.idle(**job).is_some()).copied().collect();
        self.changed_jobs.extend(idle);
    }
}

/// `has not used its 2 devices for 12 min`.
pub(super) fn idle_reason(count: u32, idle: Span) -> String {
    let span = match idle.0 / 60_000_000 {
        minutes if minutes >= 120 => format!("{} h", minutes / 60),
        0 => format!("{} s", idle.0 / 1_000_000),
        minutes => format!("{minutes} min"),
    };
    match count {
        1 => format!("has not used its device for {span}"),
        count => format!("has not used its {count} devices for {span}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::exec::host::groups;

    fn card(busy: Option<f64>, jobs: &[(u64, Option<f64>)]) -> BTreeMap<DriverCardPlace, CardReport> {
        let jobs = jobs.iter().map(|(job, busy)| (JobId(*job), *busy)).collect();
        BTreeMap::from([((0, 0), CardReport { busy, jobs, ..CardReport::default() })])
    }

    #[test]
    fn idleness_is_counted_by_job_and_ends_with_work() {
        let seconds = Span::from_whole_secs;
        let mut cards = Cards::default();
        let one = |_: DriverCardPlace| vec![JobId(1)];
        let two = |_: DriverCardPlace| vec![JobId(1), JobId(2)];
        let mut look = |at, seen, both: bool| {
            if both {
                cards.take(seen, two, seconds(at))
            } else {
                cards.take(seen, one, seconds(at))
            }
            let idle = |job| cards.idle((0, 0), JobId(job), seconds(at)).map(|span| span.0 / 1_000_000);
            (idle(1), idle(2))
        };
        assert_eq!(look(10, card(Some(0.005), &[]), false), (Some(0), None), "alone on the card");
        assert_eq!(look(15, card(Some(0.0), &[(1, None)]), false), (Some(5), None));
        assert_eq!(look(20, card(Some(0.5), &[(1, Some(0.0)), (2, Some(0.5))]), true), (Some(10), None));
        assert_eq!(look(25, card(Some(0.0), &[(1, None), (2, None)]), true), (None, None), "nobody can say");
        assert_eq!(look(30, card(Some(0.0), &[]), false), (Some(0), None), "it begins anew");
        assert_eq!(look(35, card(Some(0.02), &[]), false), (None, None), "it works");
        assert_eq!(look(40, card(None, &[]), false), (None, None), "nothing is known");
        assert_eq!(look(45, BTreeMap::new(), false), (None, None), "the card is lost");
    }

    #[test]
    fn idleness_is_said_in_a_sentence() {
        let minutes = |minutes: u64| Span::from_whole_secs(60 * minutes);
        assert_eq!(idle_reason(2, minutes(12)), "has not used its 2 devices for 12 min");
        assert_eq!(idle_reason(1, minutes(180)), "has not used its device for 3 h");
        assert_eq!(idle_reason(1, Span(1_500_000)), "has not used its device for 1 s");
    }

    proptest! {
        #[test]
        fn whatever_is_said_of_cards_what_is_kept_is_sane(
            said in prop::collection::vec((0..4_u32, 0..4_u32, prop::num::f64::ANY, ".{0,300}"), 0..40)
        ) {
            let card = |(group, device, number, reason): (u32, u32, f64, String)| CardReport {
                group, device, busy: Some(number), power_w: Some(number), throttled: Some(reason),
                jobs: vec![(JobId(1), Some(number))], ..CardReport::default()
            };
            let groups = groups(&[("a100", 2), ("cpu", 1)]);
            let kept = sane(&groups, said.into_iter().map(card).collect());
            prop_assert!(kept.len() <= 3);
            for card in kept.values() {
                let all = card.busy.into_iter().chain(card.jobs[0].1);
                prop_assert!(all.into_iter().all(|busy| (0.0..=1.0).contains(&busy)));
                prop_assert!(card.power_w.is_none_or(|power| power.is_finite() && power >= 0.0));
                prop_assert!(card.throttled.as_ref().is_some_and(|reason| reason.chars().count() <= REASON_MAX));
            }
        }
    }
}
