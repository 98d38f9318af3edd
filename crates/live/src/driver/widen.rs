//! Jobs that name no kinds may run on any: those that wait are offered a kind that joins later.

use yard_core::cluster::Kinds;
use yard_core::ids::JobId;
use yard_core::job::{JobSpec, Shape};
use yard_core::message::{Input, Widen};

use super::Driver;
use super::jobs::JobPapers;
use crate::translate::translate;

impl Driver {
    /// Offers kinds that the engine does not know yet to the jobs that wait for any.
    pub(super) fn offer_new_kinds(&mut self) {
        let open = self.records.all.iter().filter(|(job, record)| {
            let waits = self.engine.job(**job).is_some_and(|run| run.state.is_waiting());
            let request = &record.request;
            waits && request.kinds.is_empty() && request.gpus != Some(0) && request.training.is_none()
        });
        let wider: Vec<Widen> = open.filter_map(|(job, record)| self.wider(*job, record)).collect();
        wider.into_iter().for_each(|widen| self.staged.keep(Input::Widen(Box::new(widen))));
    }

    /// The ways in which a job may run on what is new.
    fn wider(&self, job: JobId, record: &JobPapers) -> Option<Widen> {
        let offers = self.hosts.offers();
        let made = |kinds: &Kinds| {
            translate(&record.view.user, &record.request, kinds, &*self.config.catalog, &offers).ok()
        };
        let (old, new) = (made(self.engine.kinds())?, made(self.kinds())?);
        let (shapes, speeds) = added(&old, &new);
        (!shapes.is_empty()).then_some(Widen { job, shapes, speeds })
    }
}

/// What a job could do more. Its work is counted in seconds on what was the fastest kind when it came, so that what is said
/// now is brought to the same measure by a shape that is in both.
fn added(old: &JobSpec, new: &JobSpec) -> (Vec<Shape>, Vec<f64>) {
    let ways = || new.shapes.iter().zip(&*new.speeds);
    let same = ways().find_map(|(shape, speed)| Some(old.speeds[usize::from(old.way(shape)?)] / speed));
    let scale = same.filter(|scale| scale.is_finite() && *scale > 0.0).unwrap_or(1.0);
    let more = ways().filter(|(shape, _)| old.way(shape).is_none());
    more.map(|(shape, speed)| (shape.clone(), speed * scale)).unzip()
}
