//! Jobs that train: what is believed of their speed, which batch they are given, and what they say of both.

use std::sync::Arc;

use super::Engine;
use crate::cluster::Placement;
use crate::goodput::learned::limits;
use crate::ids::{JobIdx, KindId, LeaseId};
use crate::job::{JobSpec, JobState, Shape};
use crate::message::{Command, Effect};
use crate::state::{State, Trainee};
use crate::training::{Batch, Noise, Timing, Training};

/// How much better another batch must be before a running job changes to it.
const TUNE_MIN: f64 = 1.05;

/// Speeds that moved less are left as they are: each change is work for the policy.
const SPEED_DRIFT_MAX: f64 = 0.01;

/// Speeds that moved more are a reason to plan anew.
const SPEED_NEWS: f64 = 0.1;

impl Engine {
    /// A job says how long its steps take and how noisy its gradients are.
    pub(super) fn trained(
        &mut self,
        job: JobIdx,
        lease: LeaseId,
        timing: Option<Timing>,
        noise: Option<Noise>,
        out: &mut Vec<Effect>,
    ) {
        if self.state.learn(job, timing, noise) {
            self.state.respeed(job);
            self.state.set_paces(lease);
            self.tune(job, lease, out);
        }
    }

    /// Has a running job change to another batch where that is clearly better.
    fn tune(&mut self, job: JobIdx, lease: LeaseId, out: &mut Vec<Effect>) {
        let run = self.state.run(job);
        let Some(now) = run.batch.filter(|_| run.state == JobState::Running) else { return };
        let Some(batch) = self.state.better_batch(job, lease, now) else { return };
        let run = self.state.run_mut(job);
        run.batch = Some(batch);
        let job = run.id;
        out.push(Effect::Execute(Command::Tune { lease, job, batch }));
    }
}

impl State {
    /// The speeds of a new job, where they follow from how it trains.
    pub(super) fn first_speeds(&mut self, spec: &JobSpec) -> Option<Arc<[f64]>> {
        let training = spec.training.as_ref()?;
        let goodput = self.first_fits.of(training);
        Some(goodput.speeds(training, &spec.shapes, &spec.speeds, &self.nodes).into())
    }

    /// Remembers a new job that trains; `guesses` are the speeds it came with.
    pub(super) fn begin_training(&mut self, job: JobIdx, guesses: Arc<[f64]>) {
        if let Some(training) = &self.specs[job.index()].training {
            let goodput = self.first_fits.of(training);
            self.trainees.insert(job, Trainee { goodput, guesses });
        }
    }

    /// The batch with which a job starts on these devices.
    pub(super) fn set_batch(&mut self, job: JobIdx, placement: &Placement) {
        let Some(trainee) = self.trainees.get(&job) else { return };
        let (spec, run) = (&self.specs[job.index()], self.run(job));
        let Some(training) = &spec.training else { return };
        let (shape, nodes) = (&spec.shapes[run.shape as usize], placement.0.len() as u32);
        let choice = trainee.goodput.choose(training, shape, nodes, &self.nodes);
        let batch = choice.map(|choice| choice.batch).or_else(|| first_batch(training, shape));
        self.run_mut(job).batch = batch;
    }

    /// A batch that is clearly better than this one where the job runs.
    fn better_batch(&self, job: JobIdx, lease: LeaseId, now: Batch) -> Option<Batch> {
        let (spec, run, trainee) = (&self.specs[job.index()], self.run(job), self.trainees.get(&job)?);
        let training = spec.training.as_ref().filter(|training| training.adapts)?;
        let (shape, nodes) =
            (&spec.shapes[run.shape as usize], self.leases.get(lease)?.placement.0.len() as u32);
        let best = trainee.goodput.choose(training, shape, nodes, &self.nodes)?;
        let rate = trainee.goodput.rate(training, shape, nodes, now, &self.nodes)?;
        (best.batch != now && best.goodput > TUNE_MIN * rate).then_some(best.batch)
    }

    /// Takes what a job says of itself. Whether it changes what is believed; nonsense does not, nor does the time of a
    /// step for which several kinds or other jobs were waited for.
    fn learn(&mut self, job: JobIdx, timing: Option<Timing>, noise: Option<Noise>) -> bool {
        let kind = self.timed_kind(job);
        let Some(trainee) = self.trainees.get_mut(&job) else { return false };
        let devices = self.runs[job.index()].devices;
        let timing = timing.zip(kind).filter(|(timing, _)| timing.devices == devices && timing.is_sound());
        let noise = noise.filter(Noise::is_sound);
        if timing.is_none() && noise.is_none() {
            return false;
        }
        let goodput = Arc::make_mut(&mut trainee.goodput);
        let seen = timing.is_some_and(|(timing, kind)| goodput.see(kind, &timing));
        let heard = noise.is_some_and(|noise| goodput.hear(noise));
        seen || heard
    }

    /// The kind that a job's times tell something of: the only one it holds, with nobody else there.
    fn timed_kind(&self, job: JobIdx) -> Option<KindId> {
        let run = self.run(job);
        let lease = self.leases.get(run.lease?)?;
        match self.specs[job.index()].shapes[run.shape as usize].needs[..] {
            [need] if lease.jobs.len() == 1 => Some(need.kind),
            _ => None,
        }
    }

    /// What is believed of a job's speeds shows in its spec.
    fn respeed(&mut self, job: JobIdx) {
        let (spec, trainee) = (&self.specs[job.index()], self.trainees.get(&job));
        let Some((training, trainee)) = spec.training.as_ref().zip(trainee) else { return };
        let speeds = trainee.goodput.speeds(training, &spec.shapes, &trainee.guesses, &self.nodes);
        let moved = |by: f64| {
            let far =
                |(now, then): (&f64, &f64)| (now - then).abs() > by * then || (*now > 0.0) != (*then > 0.0);
            speeds.iter().zip(&*spec.speeds).any(far)
        };
        if moved(SPEED_DRIFT_MAX) {
            self.dirty |= moved(SPEED_NEWS);
            self.change_spec(job, |spec| spec.speeds = speeds.into());
            self.changed.touched.push(job);
        }
    }

    /// A node came: jobs that train may lie on other numbers of nodes from now on.
    pub(super) fn respeed_all(&mut self) {
        let jobs: Vec<JobIdx> = self.trainees.keys().copied().collect();
        for job in jobs {
            self.respeed(job);
            let lease = self.run(job).lease;
            lease.iter().for_each(|lease| self.set_paces(*lease));
        }
    }
}

/// Of a job of whose times nothing is known: the submitted batch, or the least that memory takes.
fn first_batch(training: &Training, shape: &Shape) -> Option<Batch> {
    let limits = limits(training, &shape.needs)?;
    limits.batches(shape.devices()).next()
}
