//! A policy without sense, for fuzzing: random shares, groups, shapes and orders, all of them legal. What
//! the engine promises must hold whatever a policy answers.

use smallvec::smallvec;
use yard_core::Time;
use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Policy, PolicyError};
use yard_core::view::{Changed, View};

use crate::random::Random;

/// Why it sometimes has no answer.
pub(crate) const NO_SENSE: &str = "no sense today";

/// When all that a scenario has in store is over, and sense may come back.
pub const SENSE_FROM: Time = Time(6_000_000_000);

/// A policy without sense.
pub struct Chaos {
    random: Random,
    mode: Mode,
    /// Who answers from `SENSE_FROM` on.
    then: Option<Box<dyn Policy>>,
}

impl Chaos {
    /// One that is as senseless as its seed.
    pub fn new(seed: u64) -> Chaos {
        let mut random = Random::new(seed);
        let ordered = Mode::Ordered { preempt: random.chance(0.7), skip: random.chance(0.8), classes: true };
        let shares = if seed.is_multiple_of(4) { Mode::Capped } else { Mode::Fractions };
        let mode = if random.chance(0.5) { shares } else { ordered };
        Chaos { random, mode, then: None }
    }

    /// The same until nothing goes wrong any more; then one that has sense takes over. Whatever was decided before,
    /// it must bring every job to its end.
    pub fn followed_by(self, then: Box<dyn Policy>) -> Chaos {
        Chaos { then: Some(then), ..self }
    }

    fn share(&mut self, view: &View, job: JobIdx, rest: &mut Vec<JobIdx>) -> Share {
        let mut share = Share::whole(job, Rank(self.random.below(4) as f64, self.random.unit()));
        let shapes = &view.spec(job).shapes;
        if self.random.chance(0.5) {
            share.shape = Some(self.random.below(shapes.len() as u64) as u16);
        }
        if self.mode.takes_turns() {
            share.fraction = 0.1 + 0.9 * self.random.unit();
        }
        let fits = |other: &JobIdx| match share.shape {
            _ if view.spec(*other).asks_hosts() || view.spec(job).asks_hosts() => false,
            Some(shape) => view.spec(*other).way(&shapes[shape as usize]).is_some(),
            None => view.spec(*other).shapes == *shapes,
        };
        let like = rest.iter().position(fits);
        if let Some(at) = like.filter(|_| self.random.chance(0.3)) {
            share.jobs = smallvec![job, rest.swap_remove(at)];
        }
        share
    }
}

impl Chaos {
    /// The same part of the time, now and then divided over all shapes of the lead.
    fn split(&mut self, view: &View, share: Share) -> Vec<Share> {
        let shapes = view.spec(share.jobs[0]).shapes.len();
        let alike = |job: &JobIdx| view.spec(*job).shapes == view.spec(share.jobs[0]).shapes;
        if !self.mode.takes_turns() || shapes < 2 || !share.jobs.iter().all(alike) || !self.random.chance(0.4)
        {
            return vec![share];
        }
        let fraction = share.fraction / shapes as f64;
        (0..shapes as u16).map(|shape| Share { shape: Some(shape), fraction, ..share.clone() }).collect()
    }
}

impl Policy for Chaos {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        if let Some(then) = self.then.as_mut().filter(|_| view.now >= SENSE_FROM) {
            // It knows nothing of the plans before its own.
            let changed = Changed { all: true, ..view.changed.clone() };
            return then.allocate(&View { changed, ..view.clone() });
        }
        if self.random.chance(0.05) {
            return Err(PolicyError(NO_SENSE.into()));
        }
        let mut rest: Vec<JobIdx> = view.active().collect();
        let mut shares = Vec::new();
        while let Some(job) = rest.pop() {
            let share = self.share(view, job, &mut rest);
            shares.extend(self.split(view, share));
        }
        Ok(Allocation { mode: self.mode, shares: Shares::All(shares), replan_at: None, certificate: None })
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}
