//! From a recorded job to one that a simulation can run: the work it did is the time it held devices at the speed it
//! is believed to have where it ran, so that it takes another time elsewhere. What it said of its length is what the
//! scheduler goes by, as it did then.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::cluster::{Kinds, Nodes};
use yard_core::ids::{JobId, KindId};
use yard_core::job::{Costs, JobSpec, Need, Reward, Shape};
use yard_core::units::Time;

use super::{Present, Recorded, SceneJob};
use crate::translate::{CPU, translate};

/// The least part of its time that is left of a job when the restarts it had are taken off. What they really took is not
/// recorded: to take off more would be a guess.
const WORK_LEAST: f64 = 0.9;

/// Where jobs are to run.
pub(super) struct ReplaySite<'a> {
    pub(super) present: &'a Present,
    pub(super) kinds: &'a Kinds,
    pub(super) nodes: &'a Nodes,
    /// Which instant of the history is zero.
    pub(super) base: Time,
    /// What it costs to stop a job and let it go on.
    pub(super) costs: Costs,
    /// The number of each job in the simulation, by its number in the history.
    pub(super) numbers: &'a BTreeMap<u64, usize>,
}

impl ReplaySite<'_> {
    /// The job as it is simulated; and whether it might run on a kind of which nobody knows how fast it is there.
    pub(super) fn job(&self, job: &Recorded) -> (SceneJob, bool) {
        let request = &job.row.request;
        let made =
            translate(&job.row.user, request, self.kinds, &*self.present.catalog, &self.present.offers);
        let (made, unknown) = made.map_or((None, false), |spec| self.simulated(job, spec));
        let deadline = request.deadline.map(Time::from_secs).filter(|time| *time > job.row.submitted);
        let told = SceneJob {
            id: job.row.id.0,
            name: job.view.name.clone(),
            team: job.team().to_owned(),
            submit: self.since(job.submit),
            gpus: job.view.gpus.max(1),
            deadline: deadline.map(|time| self.since(time)),
            said: made.as_ref().map_or(0.0, |(_, said)| *said),
            spec: made.map(|(spec, _)| spec),
        };
        let spec = told.spec.map(|spec| JobSpec {
            deadline: told.deadline,
            rewards: spec.rewards.as_deref().map(|rewards| self.shifted(rewards)),
            ..spec
        });
        (SceneJob { spec, ..told }, unknown)
    }

    /// Rewards at the times of the simulation.
    fn shifted(&self, rewards: &[Reward]) -> Arc<[Reward]> {
        rewards.iter().map(|reward| Reward { by: self.since(reward.by), ..*reward }).collect()
    }

    fn since(&self, time: Time) -> Time {
        Time(time.0.saturating_sub(self.base.0))
    }

    /// Its shapes, speeds and steps here, and how many steps it says it has to do.
    fn simulated(&self, job: &Recorded, spec: JobSpec) -> (Option<(JobSpec, f64)>, bool) {
        let speeds = self.present.belief.believed(spec.profile, &spec.shapes, &spec.speeds);
        let mut ways: Vec<(Shape, f64)> = spec.shapes.iter().cloned().zip(speeds).collect();
        let speed = self.speed_then(job, &ways);
        let unknown = self.add_unknown(job, &mut ways);
        ways.retain(|(shape, _)| self.nodes.could_hold(shape));
        if ways.is_empty() {
            return (None, unknown);
        }
        let steps = self.seconds(job) * speed;
        // How a job trains is not simulated: it goes at the speed it had.
        let said = if spec.training.is_some() { steps } else { spec.steps };
        let (shapes, speeds): (Vec<_>, Vec<_>) = ways.into_iter().unzip();
        let made = JobSpec {
            steps,
            shapes: shapes.into(),
            speeds: speeds.into(),
            costs: self.costs,
            training: None,
            not_before: spec.not_before.map(|time| self.since(time)),
            after: self.after(&spec),
            ..spec
        };
        (Some((made, said)), unknown)
    }

    /// Seconds that it worked: without the restarts that it had.
    fn seconds(&self, job: &Recorded) -> f64 {
        let restarts = f64::from(job.view.starts.saturating_sub(1)) * self.costs.restart().secs();
        (job.seconds - restarts).max(job.seconds * WORK_LEAST)
    }

    /// How fast it is believed to have been where it ran; its fastest where it never did.
    fn speed_then(&self, job: &Recorded, ways: &[(Shape, f64)]) -> f64 {
        let kind = job.view.kind.as_deref().and_then(|kind| self.kinds.find(kind));
        let there = |shape: &Shape| shape.needs.iter().any(|need| Some(need.kind) == kind);
        let same = ways.iter().find(|(shape, _)| there(shape) && shape.devices() == job.view.gpus);
        let fastest = || ways.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
        same.map_or_else(fastest, |(_, speed)| *speed)
    }

    /// On a kind that is new here and of which no table says how fast it is there, a job goes as fast as where it ran.
    /// Returns whether there is such a kind.
    fn add_unknown(&self, job: &Recorded, ways: &mut Vec<(Shape, f64)>) -> bool {
        let unknown: Vec<KindId> = self.new_kinds(job).filter(|kind| !self.is_known(job, *kind)).collect();
        for kind in &unknown {
            ways.retain(|(shape, _)| !of(shape, *kind));
            let ran = job.view.kind.as_deref().and_then(|kind| self.kinds.find(kind));
            let ran = ran.or_else(|| Some(ways.first()?.0.needs.first()?.kind));
            let there: Vec<_> =
                ways.iter().filter(|(shape, _)| ran.is_some_and(|ran| of(shape, ran))).cloned().collect();
            ways.extend(there.into_iter().map(|(shape, speed)| (on(shape, *kind), speed)));
        }
        !unknown.is_empty()
    }

    /// The kinds that it may use and that are not there now.
    fn new_kinds(&self, job: &Recorded) -> impl Iterator<Item = KindId> {
        let request = &job.row.request;
        let allowed = move |kind: &KindId| {
            let name = self.kinds.name(*kind);
            let named = request.kinds.is_empty() || request.kinds.iter().any(|kind| kind == name);
            request.gpus != Some(0) && name != CPU && named
        };
        self.kinds.ids().filter(|kind| self.present.kinds.get(*kind).is_none()).filter(allowed)
    }

    /// Whether a table says how fast it is on a kind.
    fn is_known(&self, job: &Recorded, kind: KindId) -> bool {
        let (request, name) = (&job.row.request, self.kinds.name(kind));
        let speed = |model: &String| {
            self.present.catalog.speed(model, request.batch_size, job.view.gpus.max(1), name)
        };
        request.model.as_ref().and_then(speed).is_some()
    }

    /// The jobs that it comes after, where they take part.
    fn after(&self, spec: &JobSpec) -> Box<[JobId]> {
        let number = |job: &JobId| self.numbers.get(&job.0).map(|number| JobId(*number as u64));
        spec.after.iter().filter_map(number).collect()
    }
}

/// Whether a shape takes devices of a kind alone.
fn of(shape: &Shape, kind: KindId) -> bool {
    shape.needs.iter().all(|need| need.kind == kind)
}

/// The same devices of another kind.
fn on(shape: Shape, kind: KindId) -> Shape {
    let needs = shape.needs.iter().map(|need| Need { kind, ..*need }).collect();
    Shape { needs, ..shape }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::cluster::NodeSpec;
    use yard_core::units::Span;

    use super::super::past::PastPart;
    use super::super::testing::present;
    use super::*;
    use crate::request::JobRequest;
    use crate::store::{Facts, JobRow};
    use crate::translate::Catalog;
    use crate::views::JobView;

    /// h100 makes two steps a second and v100 one; of others nothing is known.
    struct ReplayTable;

    impl Catalog for ReplayTable {
        fn speed(&self, _: &str, _: Option<u32>, gpus: u32, kind: &str) -> Option<f64> {
            let one = [("h100", 2.0), ("v100", 1.0)].into_iter().find(|(known, _)| *known == kind)?.1;
            Some(one * f64::from(gpus))
        }
    }

    /// A job of two devices that ran 100 s on an h100.
    fn ran(change: impl FnOnce(&mut JobRequest)) -> Recorded {
        let view = serde_json::json!({
            "id": 7, "name": "job", "user": "ann", "state": "succeeded", "gpus": 2, "kind": "h100", "nodes": [],
            "priority": 0, "submitted_at": 1_000.0, "executed_s": 100.0, "starts": 1, "preemptions": 0,
            "migrations": 0, "failures": 0,
        });
        let view: JobView = serde_json::from_value(view).unwrap();
        let mut request = JobRequest {
            command: vec!["train".into()],
            gpus: Some(2),
            model: Some("net".into()),
            duration_s: Some(600.0),
            deadline: Some(1_500.0),
            ..JobRequest::default()
        };
        change(&mut request);
        let (id, user, submitted) = (JobId(7), "ann".to_owned(), Time::from_secs(1_000.0));
        let row =
            JobRow { id, user, submitted, request, facts: Facts::default(), summary: Some(view.clone()) };
        let (part, held) = (PastPart::Counted, Span::from_whole_secs(100));
        Recorded { row, view, part, submit: submitted, held, seconds: 100.0 }
    }

    /// `kind x devices: seconds` in each shape, on nodes of four devices of these kinds.
    fn told(job: &Recorded, on: &[&str], costs: Costs) -> (SceneJob, String, bool) {
        let present = Present { catalog: Arc::new(ReplayTable), ..present() };
        let (mut kinds, mut nodes) = (present.kinds.clone(), Nodes::default());
        for name in on {
            let (name, kind) = ((*name).to_owned(), kinds.intern(name));
            nodes.add(NodeSpec::of(name, kind, 4));
        }
        let base = Time::from_secs(960.0);
        let numbers = BTreeMap::from([(3, 0)]);
        let site =
            ReplaySite { present: &present, kinds: &kinds, nodes: &nodes, base, costs, numbers: &numbers };
        let (made, unknown) = site.job(job);
        let ways = made.spec.iter().flat_map(|spec| {
            let seconds = |(shape, speed): (&Shape, &f64)| {
                let need = shape.needs[0];
                format!("{}x{}: {:.0}", kinds.name(need.kind), need.devices, spec.steps / speed)
            };
            spec.shapes.iter().zip(&*spec.speeds).map(seconds).collect::<Vec<_>>()
        });
        let ways = ways.collect::<Vec<_>>().join(" ");
        (made, ways, unknown)
    }

    #[test]
    fn the_work_is_what_was_done_and_takes_its_time_elsewhere() {
        let costs = Costs::default();
        let (made, ways, unknown) = told(&ran(|_| ()), &["h100", "v100"], costs);
        assert_eq!((ways.as_str(), unknown), ("h100x2: 100 v100x2: 200", false));
        let spec = made.spec.unwrap();
        assert_eq!(
            (made.said, spec.deadline),
            (600.0, Some(Time::from_secs(540.0))),
            "what it said is what is known"
        );
        let (_, ways, unknown) = told(&ran(|_| ()), &["h100", "tpu"], costs);
        assert_eq!((ways.as_str(), unknown), ("h100x2: 100 tpux2: 100", true), "as long as where it ran");
        let (_, ways, unknown) = told(&ran(|job| job.kinds = vec!["h100".into()]), &["h100", "tpu"], costs);
        assert_eq!((ways.as_str(), unknown), ("h100x2: 100", false));
        let (made, _, _) = told(&ran(|job| job.kinds = vec!["h100".into()]), &["v100"], costs);
        assert!(made.spec.is_none(), "nothing there could run it");
    }

    #[test]
    fn restarts_are_no_work_and_only_who_takes_part_is_waited_for() {
        let costs = Costs { load: Span::from_whole_secs(2), ..Costs::default() };
        let job = ran(|job| (job.after, job.deadline) = (vec![2, 3], Some(10.0)));
        let again = Recorded { view: JobView { starts: 4, ..job.view.clone() }, ..job };
        let (made, ways, _) = told(&again, &["h100"], costs);
        assert_eq!(ways, "h100x2: 94");
        let spec = made.spec.unwrap();
        assert_eq!(
            (&*spec.after, spec.deadline),
            (&[JobId(0)][..], None),
            "a deadline that was past is none"
        );
        let often = Recorded { view: JobView { starts: 40, ..again.view.clone() }, ..again };
        assert_eq!(told(&often, &["h100"], costs).1, "h100x2: 90");
    }
}
