//! The true course of a job that does not go at one speed: it trains better or worse from epoch to epoch and with
//! one batch size or another (Sia's and Pollux' simulators), or it goes through regimes of its own (Shockwave's).
//! A course has stages; within one, on the same devices and with the same batch, a job goes at one speed.

use std::sync::Arc;

use smallvec::SmallVec;
use yard_core::ids::KindId;
use yard_core::job::Costs;
use yard_core::training::{Batch, Noise, Timing};

use crate::throughput::{App, Timings, split};

/// The true course of a job.
#[derive(Clone, Debug)]
pub struct Course {
    pub(crate) way: CourseWay,
    /// What interruptions really cost.
    pub(crate) costs: Costs,
    /// Seconds it takes alone on the devices it asks for.
    pub(crate) ideal_s: f64,
}

#[derive(Clone, Debug)]
pub(crate) enum CourseWay {
    /// As an application trains, with steps counted at its smallest batch size.
    Adapts(CourseTrained),
    /// As an application trains with one batch size, in which steps are counted.
    Fixed(CourseTrained, u32),
    /// Through regimes, one after the other.
    Regimes(Vec<Stretch>),
}

/// An application, and how long its steps take on each kind of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct CourseTrained {
    pub(crate) app: Arc<App>,
    pub(crate) on: Arc<[Option<Arc<Timings>>]>,
}

/// A while in one regime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Which of the regimes that the job may be in.
    pub(crate) regime: u16,
    /// Steps by its end.
    pub(crate) end: f64,
    /// Its speed against that of the first.
    pub(crate) pace: f64,
}

/// Where a job lies: devices of one kind on each of its nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CourseSpot {
    pub(crate) kind: KindId,
    pub(crate) counts: SmallVec<[u32; 4]>,
}

impl CourseSpot {
    /// `devices` of a kind on as few nodes as hold them, `each` on a node.
    pub(crate) fn packed(kind: KindId, devices: u32, each: u32) -> CourseSpot {
        let each = each.max(1);
        let mut counts: SmallVec<[u32; 4]> = (0..devices / each).map(|_| each).collect();
        counts.extend(Some(devices % each).filter(|rest| *rest > 0));
        CourseSpot { kind, counts }
    }

    pub(crate) fn devices(&self) -> u32 {
        self.counts.iter().sum()
    }
}

/// How a job goes for now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Going {
    /// Steps a second; against `speeds` of the shape in the first regime, where it goes through regimes.
    pub(crate) speed: f64,
    /// How long its steps take, where it can say.
    pub(crate) timing: Option<Timing>,
    /// How noisy its gradients are, where it can say.
    pub(crate) noise: Option<Noise>,
}

impl Course {
    /// How many stages there are.
    pub(crate) fn stages(&self) -> usize {
        match &self.way {
            CourseWay::Adapts(trained) => trained.app.epochs().len(),
            CourseWay::Fixed(..) => 1,
            CourseWay::Regimes(stretches) => stretches.len(),
        }
    }

    /// Steps by the end of a stage.
    pub(crate) fn end(&self, stage: usize) -> f64 {
        match &self.way {
            CourseWay::Adapts(trained) => trained.app.epochs()[stage],
            CourseWay::Fixed(trained, batch) => trained.app.steps_of(*batch),
            CourseWay::Regimes(stretches) => stretches[stage].end,
        }
    }

    /// The stage in which a job is that has done so many steps.
    pub(crate) fn stage(&self, done: f64) -> usize {
        let last = self.stages() - 1;
        (0..last).find(|stage| done < self.end(*stage)).unwrap_or(last)
    }

    /// Which regime a stage is of, where there are any.
    pub(crate) fn regime(&self, stage: usize) -> Option<u16> {
        match &self.way {
            CourseWay::Regimes(stretches) => Some(stretches[stage].regime),
            CourseWay::Adapts(_) | CourseWay::Fixed(..) => None,
        }
    }

    /// How it goes in a stage on these devices; with `batch`, or as it was submitted where nobody says.
    pub(crate) fn going(&self, stage: usize, spot: &CourseSpot, batch: Option<Batch>) -> Going {
        match &self.way {
            CourseWay::Adapts(trained) => trained.going(stage, spot, batch, None),
            CourseWay::Fixed(trained, size) => trained.going(stage, spot, batch, Some(*size)),
            CourseWay::Regimes(stretches) => {
                Going { speed: stretches[stage].pace, timing: None, noise: None }
            }
        }
    }
}

impl CourseTrained {
    fn going(&self, epoch: usize, spot: &CourseSpot, batch: Option<Batch>, fixed: Option<u32>) -> Going {
        let Some(timings) = &self.on[spot.kind.index()] else {
            return Going { speed: 0.0, timing: None, noise: None };
        };
        let (app, devices) = (&self.app, spot.devices());
        let size = fixed.unwrap_or_else(|| app.batches()[0].max(timings.least * devices));
        let batch = batch.unwrap_or_else(|| split(size, devices, timings.most));
        let local = batch.local.max(1);
        let [step, sync] = timings.at(&spot.counts, f64::from(local)).map(|time| time * app.slowdown());
        let (grad, global) = (step - sync, batch.global(devices) as f64);
        let worth = if fixed.is_some() { 1.0 } else { app.gain(global, epoch) };
        let timing = Timing { nodes: spot.counts.len() as u32, devices, local, grad_s: grad, step_s: step };
        Going {
            speed: worth / (step + grad * f64::from(batch.extra)),
            timing: Some(timing),
            noise: fixed.is_none().then(|| app.noise(global, epoch)),
        }
    }

    /// Seconds of the whole run on these devices, with the best of the batch sizes that were tried in each epoch.
    pub(crate) fn alone_s(&self, spot: &CourseSpot, batch_max: u32) -> f64 {
        let Some(timings) = &self.on[spot.kind.index()] else { return f64::INFINITY };
        let devices = spot.devices();
        let [least, most] = self.app.batches();
        let doubled = std::iter::successors(Some(least), |size| size.checked_mul(2));
        let sizes: Vec<u32> = doubled.take_while(|size| *size <= most.min(batch_max)).collect();
        let mut before = 0.0;
        let epochs = self.app.epochs().iter().enumerate().map(|(epoch, end)| {
            let speed =
                |size: &u32| self.going(epoch, spot, Some(split(*size, devices, timings.most)), None).speed;
            let steps = end - std::mem::replace(&mut before, *end);
            steps / sizes.iter().map(speed).fold(0.0, f64::max)
        });
        epochs.sum()
    }
}
