//! Protects guaranteed jobs from those that share their devices (the local coordinator of AntMan, Xiao et al., OSDI
//! 2020). It knows how long a guaranteed part takes for a unit of work alone, from when no opportunistic neighbour
//! was awake, and what it lost to them since. The moment it is slower than it may be, its opportunistic neighbours are
//! hushed: stopped where they are, on their devices. They are woken when what was lost is small against the time that
//! passed, and after a wait that doubles each time they disturb again.
//!
//! No clock, no IO, nothing that must survive a restart: all is measured anew then.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::job::Claim;
use crate::part::{Held, PartId, overlap};
use crate::units::{Span, Time};

/// Time and reports alone after which a part's own speed is known.
const ALONE_MIN: Span = Span::from_whole_secs(1);
const ALONE_REPORTS: u32 = 4;

/// How long neighbours are hushed the first time, and at most.
const WAIT_MIN: Span = Span::from_whole_secs(2);
const WAIT_MAX: Span = Span::from_whole_secs(120);

/// How long a guaranteed part that never says how far it is keeps others waiting: of such a one nothing can be known.
const SILENT_MAX: Span = Span::from_whole_secs(60);

/// What is allowed for the way of a report.
const MARGIN: Span = Span(50_000);

/// Weight of the newest stretch in what is known of a part alone.
const NEWS: f64 = 0.2;

/// What happens to parts.
#[derive(Clone, Debug, PartialEq)]
pub enum Watch {
    /// A part runs from now on.
    Came {
        /// The part.
        part: PartId,
        /// Its devices.
        devices: SmallVec<[Held; 1]>,
        /// How firm its claim on them is.
        claim: Claim,
        /// What it may lose to others, where it is guaranteed.
        loss_max: f64,
    },
    /// A part is over, or is to stop: it is not hushed any more.
    Gone {
        /// The part.
        part: PartId,
    },
    /// So much work of a part is done in all: steps, or seconds in which it computed.
    Worked {
        /// The part.
        part: PartId,
        /// The work.
        work: f64,
    },
    /// Time has passed; due at `Guard::deadline`.
    Tick,
}

/// What should be done, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiet {
    /// Stop its processes where they are. They keep what they have on their devices.
    Hush(PartId),
    /// Let them go on.
    Wake(PartId),
}

/// What is known of a guaranteed part.
#[derive(Clone, Debug, Default)]
struct Pace {
    /// Seconds that a unit of work takes alone.
    alone: Option<f64>,
    /// Time and reports alone that this rests on.
    seen: Span,
    reports: u32,
    /// The longest time between two reports alone.
    gap: Span,
    /// The last report: when, and how much work.
    last: Option<(Time, f64)>,
    /// The stretch before the last, where neighbours were awake: seconds and work.
    before: (f64, f64),
    /// Seconds lost to neighbours.
    lost: f64,
    came: Time,
    /// Neighbours are hushed until then, and for how long.
    hushed: Option<Time>,
    wait: Span,
}

#[derive(Clone, Debug)]
struct Watched {
    devices: SmallVec<[Held; 1]>,
    claim: Claim,
    loss_max: f64,
    /// Of an opportunistic part: whether it is hushed; nobody knows yet how an agent before this one left it.
    quiet: Option<bool>,
    /// Of a guaranteed part.
    pace: Pace,
}

/// All parts of a node.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    parts: BTreeMap<PartId, Watched>,
}

impl Guard {
    /// Something happened: what should be done is appended to `out`.
    pub fn step(&mut self, now: Time, what: Watch, out: &mut Vec<Quiet>) {
        match what {
            Watch::Came { part, devices, claim, loss_max } => {
                let pace = Pace { came: now, wait: WAIT_MIN, ..Pace::default() };
                self.parts.insert(part, Watched { devices, claim, loss_max, quiet: None, pace });
            }
            Watch::Gone { part } => {
                let gone = self.parts.remove(&part);
                out.extend(gone.filter(|gone| gone.quiet == Some(true)).map(|_| Quiet::Wake(part)));
            }
            Watch::Worked { part, work } => self.worked(now, part, work),
            Watch::Tick => self.notice_silence(now),
        }
        self.settle(now, out);
    }

    /// When it next wants a tick.
    pub fn deadline(&self) -> Option<Time> {
        let guarded = self.parts.iter().filter(|(_, part)| part.claim == Claim::Guaranteed);
        let wanted = guarded.filter(|(id, _)| self.neighbours(**id).next().is_some());
        wanted.filter_map(|(id, part)| part.pace.deadline(self.disturbs(*id), part.loss_max)).min()
    }

    /// Opportunistic parts on the same devices.
    fn neighbours(&self, part: PartId) -> impl Iterator<Item = (PartId, &Watched)> {
        let own = self.parts.get(&part).map_or(&[][..], |part| &part.devices);
        let beside = move |(id, other): &(PartId, &Watched)| {
            *id != part && other.claim == Claim::Opportunistic && overlap(own, &other.devices)
        };
        self.parts.iter().map(|(id, part)| (*id, part)).filter(beside)
    }

    /// Whether somebody is awake who may disturb a part.
    fn disturbs(&self, part: PartId) -> bool {
        self.neighbours(part).any(|(_, other)| other.quiet != Some(true))
    }

    fn worked(&mut self, now: Time, id: PartId, work: f64) {
        let disturbed = self.disturbs(id);
        if let Some(part) = self.parts.get_mut(&id).filter(|_| work.is_finite()) {
            part.pace.worked(now, work, disturbed, part.loss_max);
        }
    }

    /// A part that says nothing while others are awake is disturbed.
    fn notice_silence(&mut self, now: Time) {
        let disturbed: Vec<PartId> = self.parts.keys().copied().filter(|id| self.disturbs(*id)).collect();
        for id in disturbed {
            if let Some(part) = self.parts.get_mut(&id).filter(|part| part.claim == Claim::Guaranteed) {
                part.pace.notice_silence(now, part.loss_max);
            }
        }
    }

    /// Hushes and wakes, so that everybody is as those who are guaranteed want it.
    fn settle(&mut self, now: Time, out: &mut Vec<Quiet>) {
        let guarded: Vec<(SmallVec<[Held; 1]>, bool)> = self
            .parts
            .values_mut()
            .filter(|part| part.claim == Claim::Guaranteed)
            .map(|part| (part.devices.clone(), part.pace.wants_quiet(now, part.loss_max)))
            .collect();
        let mut changed = false;
        for (id, part) in self.parts.iter_mut().filter(|(_, part)| part.claim == Claim::Opportunistic) {
            let quiet = guarded.iter().any(|(held, wants)| *wants && overlap(held, &part.devices));
            if Some(quiet) != part.quiet {
                out.push(if quiet { Quiet::Hush(*id) } else { Quiet::Wake(*id) });
                (part.quiet, changed) = (Some(quiet), true);
            }
        }
        if changed {
            // A stretch in mixed company tells nothing.
            self.parts.values_mut().for_each(|part| part.pace.begin_anew());
        }
    }
}

impl Pace {
    /// A report: the stretch since the last one was alone, or in company.
    fn worked(&mut self, now: Time, work: f64, disturbed: bool, loss_max: f64) {
        let Some((since, before)) = self.last.replace((now, work)) else { return };
        let (span, done) = (now - since, work - before);
        if done <= 0.0 {
            self.last = Some((since, before.min(work)));
            return;
        }
        match self.alone {
            _ if !disturbed => self.learn(span, done),
            Some(alone) => self.compare(now, alone, span.secs(), done, loss_max),
            None => {}
        }
    }

    fn learn(&mut self, span: Span, done: f64) {
        let each = span.secs() / done;
        self.alone = Some(self.alone.map_or(each, |known| (1.0 - NEWS) * known + NEWS * each));
        (self.seen, self.reports, self.gap) = (self.seen + span, self.reports + 1, self.gap.max(span));
    }

    /// Over the last two stretches, so that one slow step alone hushes nobody.
    fn compare(&mut self, now: Time, alone: f64, seconds: f64, done: f64, loss_max: f64) {
        self.lost = (self.lost + seconds - done * alone).max(0.0);
        let (earlier, made) = std::mem::replace(&mut self.before, (seconds, done));
        let usual = (made + done) * alone;
        if made > 0.0 && earlier + seconds > usual * (1.0 + loss_max) {
            self.hush(now);
        } else if self.wait > WAIT_MIN && made > 0.0 {
            self.wait = Span(self.wait.0 / 2).max(WAIT_MIN);
        }
    }

    fn hush(&mut self, now: Time) {
        self.hushed = Some(now + self.wait);
        self.wait = Span(self.wait.0.saturating_mul(2)).min(WAIT_MAX);
    }

    fn begin_anew(&mut self) {
        (self.last, self.before) = (None, (0.0, 0.0));
    }

    fn is_known(&self) -> bool {
        self.seen >= ALONE_MIN && self.reports >= ALONE_REPORTS
    }

    fn loss(&self, now: Time) -> f64 {
        self.lost / (now - self.came).secs().max(1.0)
    }

    /// Whether its neighbours must be quiet: nothing is known of its speed, they disturbed it a moment ago, or it has
    /// lost too much already.
    fn wants_quiet(&mut self, now: Time, loss_max: f64) -> bool {
        if !self.is_known() {
            return self.reports > 0 || now < self.came + SILENT_MAX;
        }
        match self.hushed {
            Some(until) if now < until || self.loss(now) > loss_max / 2.0 => true,
            _ => {
                self.hushed = None;
                false
            }
        }
    }

    /// When silence becomes a sign: two reports are overdue.
    fn overdue(&self, loss_max: f64) -> Option<Time> {
        let (since, _) = self.last?;
        Some(since + Span::from_secs(2.0 * self.gap.secs() * (1.0 + loss_max)) + MARGIN)
    }

    fn notice_silence(&mut self, now: Time, loss_max: f64) {
        let late = self.overdue(loss_max).is_some_and(|due| now >= due);
        if late && self.is_known() && self.hushed.is_none() {
            self.lost += self.last.map_or(0.0, |(since, _)| (now - since).secs());
            self.hush(now);
        }
    }

    fn deadline(&self, disturbed: bool, loss_max: f64) -> Option<Time> {
        if let Some(until) = self.hushed {
            let repaid = self.came + Span::from_secs(2.0 * self.lost / loss_max.max(1e-3));
            return Some(until.max(repaid));
        }
        if !self.is_known() {
            return (self.reports == 0).then(|| self.came + SILENT_MAX);
        }
        self.overdue(loss_max).filter(|_| disturbed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{JobId, LeaseId};

    const STEP: f64 = 0.1;

    fn part(job: u64) -> PartId {
        PartId { lease: LeaseId(1), job: JobId(job), instance: 1 }
    }

    fn at(seconds: f64) -> Time {
        Time::from_secs(seconds)
    }

    /// A guaranteed part 0 and an opportunistic part 1 on one device.
    struct Stage {
        guard: Guard,
        now: f64,
        steps: f64,
        awake: bool,
        /// Seconds for which part 1 was awake, and times it was hushed.
        woken: f64,
        hushes: u32,
        /// Steps of part 0 since part 1 was last woken.
        since: u32,
    }

    impl Stage {
        fn new(loss_max: f64) -> Stage {
            let guard = Guard::default();
            let mut stage =
                Stage { guard, now: 0.0, steps: 0.0, awake: true, woken: 0.0, hushes: 0, since: 0 };
            for (job, claim) in [(0, Claim::Guaranteed), (1, Claim::Opportunistic)] {
                let devices = SmallVec::from_slice(&[Held { group: 0, mask: 1 }]);
                stage.step(Watch::Came { part: part(job), devices, claim, loss_max });
            }
            stage
        }

        fn step(&mut self, what: Watch) {
            let mut out = Vec::new();
            self.guard.step(at(self.now), what, &mut out);
            for quiet in out {
                self.awake = quiet == Quiet::Wake(part(1));
                self.hushes += u32::from(!self.awake);
                self.since = 0;
            }
        }

        /// One step of part 0, which takes so much longer while part 1 is awake.
        fn work(&mut self, slower: f64) {
            let until = self.now + STEP * if self.awake { 1.0 + slower } else { 1.0 };
            while let Some(due) = self.guard.deadline().filter(|due| *due < at(until)) {
                let due = due.secs().max(self.now);
                self.woken += if self.awake { due - self.now } else { 0.0 };
                self.now = due;
                let before = self.guard.deadline();
                self.step(Watch::Tick);
                if self.guard.deadline() == before {
                    break;
                }
            }
            self.woken += if self.awake { until - self.now } else { 0.0 };
            (self.now, self.steps, self.since) = (until, self.steps + 1.0, self.since + 1);
            self.step(Watch::Worked { part: part(0), work: self.steps });
        }

        fn loss(&self) -> f64 {
            1.0 - self.steps * STEP / self.now
        }
    }

    #[test]
    fn nobody_is_beside_it_until_its_own_speed_is_known() {
        let mut stage = Stage::new(0.05);
        assert!(!stage.awake, "hushed at once");
        (0..9).for_each(|_| stage.work(0.0));
        assert!(!stage.awake);
        (0..5).for_each(|_| stage.work(0.0));
        assert!(stage.awake);
    }

    #[test]
    fn one_that_disturbs_is_hushed_within_two_steps_and_the_loss_stays_small() {
        let mut stage = Stage::new(0.05);
        let mut longest = 0;
        for _ in 0..6_000 {
            stage.work(0.5);
            longest = longest.max(if stage.awake { stage.since } else { 0 });
        }
        assert!(longest <= 2, "{longest} steps beside it");
        assert!(stage.hushes > 3 && stage.loss() < 0.05, "{} {}", stage.hushes, stage.loss());
    }

    #[test]
    fn one_that_does_not_disturb_is_left_alone() {
        let mut stage = Stage::new(0.05);
        (0..6_000).for_each(|_| stage.work(0.02));
        assert!(stage.woken > 0.95 * stage.now && stage.loss() < 0.025, "{} of {}", stage.woken, stage.now);
    }

    #[test]
    fn silence_is_a_sign_and_an_end_wakes_the_others() {
        let mut stage = Stage::new(0.05);
        (0..40).for_each(|_| stage.work(0.0));
        assert!(stage.awake);
        let due = stage.guard.deadline().expect("it watches");
        assert!(due.secs() - stage.now < 3.0 * STEP);
        stage.now = due.secs();
        stage.step(Watch::Tick);
        assert!(!stage.awake);
        stage.step(Watch::Gone { part: part(0) });
        assert!(stage.awake && stage.guard.deadline().is_none());
    }

    #[test]
    fn one_of_which_nothing_is_ever_known_keeps_others_waiting_for_a_while_only() {
        let mut stage = Stage::new(0.05);
        let due = stage.guard.deadline().expect("it waits");
        stage.now = due.secs();
        stage.step(Watch::Tick);
        assert!(stage.awake);
    }

    proptest::proptest! {
        #[test]
        fn whatever_the_neighbour_does_the_loss_stays_within_the_promise(
            phases in proptest::collection::vec((0.0..2.0_f64, 1..400_usize), 1..20),
            loss_max in 0.02..0.3_f64,
        ) {
            let mut stage = Stage::new(loss_max);
            (0..100).for_each(|_| stage.work(0.0));
            for (slower, steps) in phases {
                (0..steps).for_each(|_| stage.work(slower));
                // What two steps beside the worst neighbour may cost before anybody can know.
                let unseen = 3.0 * STEP * 2.0 / stage.now;
                assert!(stage.loss() <= loss_max + unseen, "{} of {loss_max}", stage.loss());
            }
        }
    }
}
