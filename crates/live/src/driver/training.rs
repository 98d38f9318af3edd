//! Jobs that train: what they say of their steps goes to the engine.

use yard_core::ids::{JobId, LeaseId};
use yard_core::message::{Input, News, Report};
use yard_core::training::{Noise, Timing};
use yard_core::units::Time;

use super::Driver;
use crate::exec::Trained;

impl Driver {
    /// A job says how long its steps take. What is no number must not get into the journal, nor more than is of use.
    pub(super) fn trained(&mut self, now: Time, lease: LeaseId, job: JobId, said: Trained) {
        let regime = self.regime_news(now, job, said);
        let news = [regime, self.trained_news(now, job, said), self.loss_news(now, job, said)];
        let Some(record) = self.records.all.get_mut(&job) else { return };
        record.loss = loss_of(said).or(record.loss);
        let due = record.trained.is_none_or(|last| now - last >= self.config.progress);
        if due && news.iter().any(Option::is_some) {
            record.trained = Some(now);
            let report = |news| Input::Report(Report { lease, job, news });
            news.into_iter().flatten().for_each(|news| self.staged.keep(report(news)));
        }
    }

    /// It is at the batch size of another of its regimes.
    fn regime_news(&self, now: Time, job: JobId, said: Trained) -> Option<News> {
        let (run, request) = (self.engine.job(job)?, &self.records.all.get(&job)?.request);
        let batch = said.local.checked_mul(run.devices)?;
        let regime = request.regimes.iter().position(|regime| regime.batch == batch)? as u16;
        (regime != run.regime).then(|| News::Regime { steps: run.done_at(now), regime })
    }

    fn loss_news(&self, now: Time, job: JobId, said: Trained) -> Option<News> {
        let loss = loss_of(said)?;
        Some(News::Loss { steps: self.engine.job(job)?.done_at(now), loss })
    }

    fn trained_news(&self, now: Time, job: JobId, said: Trained) -> Option<News> {
        let run = self.engine.job(job)?;
        let (_, placement) = self.records.all.get(&job)?.held.as_ref()?;
        let timing = Timing {
            nodes: placement.0.len() as u32,
            devices: run.devices,
            local: said.local,
            grad_s: said.grad_s,
            step_s: said.step_s,
        };
        let timing = Some(timing).filter(Timing::is_sound);
        let noise = said.noise.map(|(sqr, var)| Noise { sqr, var }).filter(Noise::is_sound);
        let news = News::Trained { steps: run.done_at(now), timing, noise };
        (timing.is_some() || noise.is_some()).then_some(news)
    }
}

/// The loss that a job reports, if it can be one.
fn loss_of(said: Trained) -> Option<f64> {
    said.loss.filter(|loss| loss.is_finite() && *loss >= 0.0)
}
