//! Jobs of which is known how they train: Sia's and Pollux' applications. An adaptive job has shapes of all of Sia's
//! configurations, one that scales strongly those that its batch size allows, a rigid one its own size on each kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::cluster::{Level, NodeSpec};
use yard_core::ids::KindId;
use yard_core::job::{Costs, Shape};
use yard_core::training::{Fits, Profiled, Timing, Training};

use super::{Made, WorkloadError, WorkloadSite};
use crate::course::{Course, CourseSpot, CourseTrained, CourseWay};
use crate::throughput::{App, Timings};
use crate::trace::{Scaling, TraceJob, Work};

/// What jobs say of how they train, shared between like jobs.
#[derive(Default)]
pub(super) struct Trainings {
    known: BTreeMap<Like, Arc<Training>>,
}

/// What like jobs have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Like {
    app: Arc<str>,
    batches: [u32; 2],
    scaling: Scaling,
    /// Kinds and devices of their shapes, in order.
    sizes: Vec<(KindId, u32)>,
}

impl WorkloadSite<'_> {
    pub(super) fn no_profile(&self, job: &TraceJob) -> WorkloadError {
        let what = match self.options.table {
            None => "no profiles are given",
            Some(_) => "the profiles given have none of it",
        };
        let (source_name, line) = (self.trace.source.clone(), job.line);
        let model = job.model.as_deref().unwrap_or("no model").to_owned();
        WorkloadError::NoProfile { source_name, line, job: job.name.to_string(), model, what }
    }

    /// A job that trains an application.
    pub(super) fn trained(
        &self,
        job: &TraceJob,
        app: &Arc<App>,
        trainings: &mut Trainings,
    ) -> Result<Made, WorkloadError> {
        let scaling = self.scaling(job);
        let trained = CourseTrained { app: app.clone(), on: self.timings(job, app) };
        let [least, most] = self.batches(job, app, scaling)?;
        let way = match scaling {
            Scaling::Adaptive => CourseWay::Adapts(trained.clone()),
            Scaling::Rigid | Scaling::Strong => CourseWay::Fixed(trained.clone(), least),
        };
        let (believed, costs) = self.starts(job, app);
        let course = Course { way, costs, ideal_s: 0.0 };
        let spots = self.spots(job, &trained, scaling, most)?;
        let steps = self.steps(job, &course)?;
        let ideal_s = self.alone_s(job, &course, &trained, &spots, steps);
        let training = (scaling != Scaling::Rigid)
            .then(|| self.shared_training(&trained, [least, most], scaling, &spots, trainings));
        Ok(Made {
            ways: self.ways(&course, &spots, scaling),
            steps,
            profiled: false,
            costs: believed,
            training,
            regimes: None,
            course: Some(Arc::new(Course { ideal_s, ..course })),
        })
    }

    /// How long steps take on each kind that the job may use.
    fn timings(&self, job: &TraceJob, app: &App) -> Arc<[Option<Arc<Timings>>]> {
        let kinds = &self.cluster.kinds;
        let timings = |kind| app.timings(kinds.name(kind)).filter(|_| self.allows(job, kind)).cloned();
        kinds.ids().map(timings).collect()
    }

    /// Costs of a start: as believed, and as they are.
    fn starts(&self, job: &TraceJob, app: &App) -> (Costs, Costs) {
        if !self.options.overheads.by_app {
            let costs = self.options.overheads.of(job.model.as_deref(), job.gpus);
            return (costs, costs);
        }
        let start = |start| Costs { start, ..Costs::default() };
        (start(app.believed_start()), start(app.start()))
    }

    /// The batch size in which steps are counted, and the most that the job may use.
    fn batches(&self, job: &TraceJob, app: &App, scaling: Scaling) -> Result<[u32; 2], WorkloadError> {
        let [least, most] = app.batches();
        let fits = |field, size: Option<u32>| match size.filter(|size| !(least..=most).contains(size)) {
            None => Ok(()),
            Some(size) => {
                let problem = format!("gives {size}, and the runs of {} are of {least} to {most}", app.name);
                let nearest = if size > most { most } else { least };
                Err(self.contradiction(job, field, problem, format!("{nearest} would work")))
            }
        };
        fits("batch_max", job.batch_max)?;
        if scaling == Scaling::Adaptive {
            return Ok([least, job.batch_max.unwrap_or(most)]);
        }
        fits("batch_size", job.batch_size)?;
        let own = job.batch_size.unwrap_or(least);
        Ok([own, own])
    }

    fn steps(&self, job: &TraceJob, course: &Course) -> Result<f64, WorkloadError> {
        match job.work {
            Work::Profile => Ok(course.end(course.stages() - 1)),
            Work::Steps(steps) => Ok(steps),
            Work::Seconds(seconds) => Err(self.contradiction(
                job,
                "duration_s",
                format!("gives {seconds} seconds, and its profile has steps"),
                "leave it empty for the whole run, or give steps".to_owned(),
            )),
        }
    }

    /// Where the job may lie, packed: one for each shape, those nearest to what it asks for first.
    fn spots(
        &self,
        job: &TraceJob,
        trained: &CourseTrained,
        scaling: Scaling,
        batch_max: u32,
    ) -> Result<Vec<CourseSpot>, WorkloadError> {
        let (min, max) = self.bounds(job);
        let (mut spots, mut have) = (Vec::new(), 0);
        let kinds = || self.cluster.kinds.ids().filter(|kind| self.allows(job, *kind));
        for kind in kinds() {
            let Some(timings) = &trained.on[kind.index()] else { continue };
            have = have.max(self.totals[kind.index()]);
            let worth = |devices: &u32| {
                (min..=max).contains(devices) && devices.saturating_mul(timings.least) <= batch_max
            };
            let mut sizes = match scaling {
                Scaling::Rigid => vec![job.gpus],
                Scaling::Strong | Scaling::Adaptive => self.configurations(kind, timings),
            };
            sizes.retain(|size| scaling == Scaling::Rigid || worth(size));
            sizes.retain(|size| *size <= self.totals[kind.index()]);
            let each = self.largest[kind.index()];
            spots.extend(sizes.into_iter().map(|devices| CourseSpot::packed(kind, devices, each)));
        }
        if spots.is_empty() {
            let unknown = kinds().all(|kind| trained.on[kind.index()].is_none());
            return Err(self.refusal(job, have, unknown && kinds().next().is_some()));
        }
        let apart = |spot: &CourseSpot| {
            let times = f64::from(spot.devices()) / f64::from(job.gpus);
            times.max(1.0 / times)
        };
        spots.sort_by(|a, b| apart(a).total_cmp(&apart(b)));
        Ok(spots)
    }

    /// Sia's configurations of a kind: powers of two on a node, then whole nodes, as many as were ever measured.
    fn configurations(&self, kind: KindId, timings: &Timings) -> Vec<u32> {
        let each = self.largest[kind.index()];
        let of_kind = |node: &&NodeSpec| node.pool(kind).is_some_and(|(pool, _)| pool.devices == each);
        let nodes = self.cluster.nodes.iter().filter(of_kind).count() as u32;
        let doubled = std::iter::successors(Some(1), |size: &u32| size.checked_mul(2));
        let mut sizes: Vec<u32> = doubled.take_while(|size| *size < each).collect();
        sizes.extend((1..=nodes.min(timings.nodes_max())).map(|nodes| nodes * each));
        sizes
    }

    /// Shapes, and how fast the job is believed to be in each before anything is learned. A rigid job takes devices
    /// wherever they are, the fastest kind first; what may grow stays together on a node where one holds it.
    fn ways(&self, course: &Course, spots: &[CourseSpot], scaling: Scaling) -> (Vec<Shape>, Vec<f64>) {
        let rigid = scaling == Scaling::Rigid;
        let known = |spot: &CourseSpot| self.options.profiled || rigid || spot.devices() == 1;
        let speed = |spot: &CourseSpot| if known(spot) { course.going(0, spot, None).speed } else { 0.0 };
        let shape = |spot: &CourseSpot| {
            let level = if !rigid && spot.counts.len() == 1 { Level::Node } else { Level::Any };
            Shape::of(spot.kind, spot.devices()).within(level)
        };
        let mut ways: Vec<(Shape, f64)> = spots.iter().map(|spot| (shape(spot), speed(spot))).collect();
        if rigid {
            ways.sort_by(|a, b| b.1.total_cmp(&a.1));
        }
        ways.into_iter().unzip()
    }

    /// What the job says of how it trains, the same for like jobs.
    fn shared_training(
        &self,
        trained: &CourseTrained,
        batches: [u32; 2],
        scaling: Scaling,
        spots: &[CourseSpot],
        trainings: &mut Trainings,
    ) -> Arc<Training> {
        let mut spots = spots.to_vec();
        spots.sort_by_key(|spot| (spot.kind, spot.devices()));
        let sizes = spots.iter().map(|spot| (spot.kind, spot.devices())).collect();
        let like = Like { app: trained.app.name.clone(), batches, scaling, sizes };
        let new = || Arc::new(self.training(trained, batches, scaling, &spots));
        trainings.known.entry(like).or_insert_with(new).clone()
    }

    /// What the job says of how it trains: what was measured on one device of each kind, or on all that it may use.
    fn training(
        &self,
        trained: &CourseTrained,
        [least, most]: [u32; 2],
        scaling: Scaling,
        spots: &[CourseSpot],
    ) -> Training {
        let adapts = scaling == Scaling::Adaptive;
        let kinds = self.cluster.kinds.ids();
        let fits = kinds.filter_map(|kind| {
            let timings = trained.on[kind.index()].as_ref()?;
            Some(Fits { kind, least: timings.least, most: timings.most })
        });
        let known = spots.iter().filter(|spot| self.options.profiled || spot.devices() == 1);
        Training {
            batch: least,
            batch_max: most,
            adapts,
            accumulates: true,
            fits: fits.collect(),
            profiled: known.flat_map(|spot| trained.measured(spot)).collect(),
            noise: (self.options.profiled && adapts).then(|| trained.app.noise(f64::from(least), 0)),
        }
    }

    /// Seconds alone, on the devices that are nearest to what the job asks for.
    fn alone_s(
        &self,
        job: &TraceJob,
        course: &Course,
        trained: &CourseTrained,
        spots: &[CourseSpot],
        steps: f64,
    ) -> f64 {
        let nearest = spots.iter().filter(|spot| spot.devices() == spots[0].devices());
        let seconds = |spot: &CourseSpot| match course.way {
            CourseWay::Adapts(_) => {
                let all = trained.alone_s(spot, job.batch_max.unwrap_or(u32::MAX));
                all * steps / course.end(course.stages() - 1)
            }
            CourseWay::Fixed(..) | CourseWay::Regimes(_) => steps / course.going(0, spot, None).speed,
        };
        nearest.map(seconds).fold(f64::INFINITY, f64::min)
    }
}

impl CourseTrained {
    /// What was measured on these devices.
    fn measured(&self, spot: &CourseSpot) -> Vec<Profiled> {
        let (kind, slowdown) = (spot.kind, self.app.slowdown());
        let timing = |(local, times): (u32, [f64; 2])| {
            let [step_s, sync_s] = times.map(|time| time * slowdown);
            let (nodes, devices) = (spot.counts.len() as u32, spot.devices());
            Profiled { kind, timing: Timing { nodes, devices, local, grad_s: step_s - sync_s, step_s } }
        };
        self.on[kind.index()].iter().flat_map(|timings| timings.measured(&spot.counts)).map(timing).collect()
    }
}
