//! Asked and received: for each job and kind, the time that plans promised and the time it held devices. How
//! far they are apart says how closely rounds follow the plan. Only plans that share time out ask for anything.

use yard_core::Time;
use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::{JobId, KindId};
use yard_core::view::View;

use crate::thin::Thin;

/// One job on one kind over its life, as parts of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Followed {
    /// What the plans in force asked for.
    pub asked: f64,
    /// What it got.
    pub received: f64,
}

/// What was asked and received so far.
#[derive(Debug, Default)]
pub struct Follow {
    /// Jobs that are over, one for each kind they were asked for or held; some of them where there are many.
    pub points: Thin<Followed>,
    /// Living jobs, by number.
    jobs: Vec<Vec<Account>>,
    /// Whom the plan in force asks for.
    asked: Vec<JobId>,
    proposal: Option<Proposal>,
    applies: bool,
    off_s: f64,
    life_s: f64,
}

/// What an answer asks for: for whom, where, and which part of the time.
#[derive(Debug)]
struct Proposal {
    full: bool,
    asks: Vec<(JobId, Option<KindId>, f64)>,
}

/// One job on one kind; without a kind, on any.
#[derive(Clone, Debug)]
struct Account {
    kind: Option<KindId>,
    rate: f64,
    since: Time,
    asked_s: f64,
    received_s: f64,
    held_since: Option<Time>,
}

impl Account {
    fn ask(&mut self, now: Time, rate: f64) {
        self.asked_s += self.rate * (now - self.since).secs();
        (self.rate, self.since) = (rate, now);
    }
}

impl Follow {
    /// Mean difference between asked and received, as a part of the jobs' lives, summed over kinds.
    pub fn error(&self) -> Option<f64> {
        (self.applies && self.life_s > 0.0).then(|| self.off_s / self.life_s)
    }

    /// Takes note of an answer that is not in force yet.
    pub(crate) fn propose(&mut self, view: &View, allocation: &Allocation) {
        let (full, shares) = match &allocation.shares {
            Shares::All(shares) => (true, shares),
            Shares::Changed(shares) => (false, shares),
        };
        let mut asks = Vec::new();
        if allocation.mode.takes_turns() {
            self.applies = true;
            asks.reserve(shares.len());
            for share in shares {
                asks.extend(asks_of(view, share));
            }
        }
        self.proposal = Some(Proposal { full, asks });
    }

    /// The answer is in force from now on.
    pub(crate) fn settle(&mut self, now: Time) {
        let Some(Proposal { full, asks }) = self.proposal.take() else { return };
        // Shares replace those of the jobs they name; an answer in full, those of all.
        if full {
            let before = std::mem::take(&mut self.asked);
            before.iter().for_each(|job| self.ask_nothing(now, *job));
            self.asked.reserve(asks.len());
        } else {
            asks.iter().for_each(|ask| self.ask_nothing(now, ask.0));
        }
        for (job, kind, fraction) in asks {
            let account = self.account(now, job, kind);
            // Several shares may be on one kind: packed, or spread in another way.
            let rate = account.rate + fraction;
            account.ask(now, rate);
            if self.asked.last() != Some(&job) {
                self.asked.push(job);
            }
        }
        if !full {
            self.asked.sort_unstable();
            self.asked.dedup();
        }
    }

    fn ask_nothing(&mut self, now: Time, job: JobId) {
        self.accounts(job).iter_mut().for_each(|account| account.ask(now, 0.0));
    }

    /// A job got devices of a kind.
    pub(crate) fn hold(&mut self, now: Time, job: JobId, kind: KindId) {
        if !self.applies {
            return;
        }
        let any = self.accounts(job).iter().any(|account| account.kind.is_none());
        self.account(now, job, if any { None } else { Some(kind) }).held_since = Some(now);
    }

    /// A job laid its devices down.
    pub(crate) fn lay_down(&mut self, now: Time, job: JobId) {
        for account in self.accounts(job) {
            let held = account.held_since.take().map_or(0.0, |since| (now - since).secs());
            account.received_s += held;
        }
    }

    /// A job is over.
    pub(crate) fn end(&mut self, now: Time, job: JobId, submitted: Time, keep: bool) {
        let life = (now - submitted).secs();
        for mut account in self.jobs.get_mut(job.index()).map(std::mem::take).unwrap_or_default() {
            account.ask(now, 0.0);
            self.off_s += (account.asked_s - account.received_s).abs();
            if keep && life > 0.0 {
                let (asked, received) = (account.asked_s / life, account.received_s / life);
                self.points.push(Followed { asked, received });
            }
        }
        self.life_s += if self.applies { life } else { 0.0 };
    }

    /// What is known of a job: nothing, where nobody ever asked for it.
    fn accounts(&mut self, job: JobId) -> &mut [Account] {
        self.jobs.get_mut(job.index()).map_or(&mut [], |accounts| accounts)
    }

    fn account(&mut self, now: Time, job: JobId, kind: Option<KindId>) -> &mut Account {
        if self.jobs.len() <= job.index() {
            self.jobs.resize_with(job.index() + 1, Vec::new);
        }
        let accounts = &mut self.jobs[job.index()];
        let at = accounts.iter().position(|account| account.kind == kind).unwrap_or_else(|| {
            let (rate, asked_s, received_s, held_since) = (0.0, 0.0, 0.0, None);
            accounts.push(Account { kind, rate, since: now, asked_s, received_s, held_since });
            accounts.len() - 1
        });
        &mut accounts[at]
    }
}

/// What a share asks for. Senseless ones ask for nothing: the engine has not looked at them yet.
fn asks_of(view: &View, share: &Share) -> impl Iterator<Item = (JobId, Option<KindId>, f64)> {
    let spec = share.jobs.first().and_then(|lead| view.specs.get(lead.index()));
    let shape = share.shape.and_then(|shape| spec?.shapes.get(shape as usize));
    let kind = shape.and_then(|shape| shape.needs.first()).map(|need| need.kind);
    let runs = share.jobs.iter().filter_map(|job| view.runs.get(job.index()));
    runs.map(move |run| (run.id, kind, share.fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_secs(seconds)
    }

    /// A plan in force, given as job, kind and part of the time.
    fn plan(follow: &mut Follow, now: f64, asks: &[(u64, u16, f64)]) {
        follow.applies = true;
        let ask = |(job, kind, part): &(u64, u16, f64)| (JobId(*job), Some(KindId(*kind)), *part);
        follow.proposal = Some(Proposal { full: true, asks: asks.iter().map(ask).collect() });
        follow.settle(at(now));
    }

    #[test]
    fn what_is_asked_and_not_received_is_the_error() {
        let mut follow = Follow::default();
        plan(&mut follow, 0.0, &[(0, 0, 0.5), (1, 0, 0.5)]);
        follow.hold(at(0.0), JobId(0), KindId(0));
        plan(&mut follow, 10.0, &[(0, 1, 0.25), (1, 0, 0.5)]);
        follow.lay_down(at(20.0), JobId(0));
        follow.end(at(20.0), JobId(0), Time::ZERO, true);
        // 5 s asked on the first kind and 20 s received; 2.5 s asked on the second.
        let points = follow.points.kept();
        assert_eq!(points[0], Followed { asked: 0.25, received: 1.0 });
        assert_eq!(points[1], Followed { asked: 0.125, received: 0.0 });
        assert_eq!(follow.error(), Some(17.5 / 20.0));
    }

    #[test]
    fn who_takes_turns_by_rank_was_asked_for_nothing() {
        let mut follow = Follow::default();
        follow.hold(at(0.0), JobId(7), KindId(0));
        follow.lay_down(at(10.0), JobId(7));
        follow.end(at(10.0), JobId(7), Time::ZERO, true);
        assert_eq!((follow.error(), follow.points.kept().len()), (None, 0));
    }
}
