//! From what a user asks for to what the engine takes: the ways in which the job may run, with a believed speed for
//! each. Work is counted in seconds on the fastest kind with the devices that were asked for, so that a job without
//! a throughput table runs at speed 1 wherever it is.

use std::sync::Arc;

use yard_core::belief::Belief;
use yard_core::cluster::Kinds;
use yard_core::ids::{JobId, KindId, ProfileId};
use yard_core::job::{Costs, JobSpec, Length, Shape, Sharing};
use yard_core::part::Pause;
use yard_core::units::Time;

use crate::handle::Refusal;
use crate::likeness::likeness;
use crate::offers::Offers;
use crate::request::{JobRequest, closeness, regimes, rewards};

/// The kind of processor slots, for jobs that want no accelerator.
pub const CPU: &str = "cpu";

/// Work of a job of which nobody says how long it takes, in seconds.
pub const DURATION_S: f64 = 3_600.0;

/// Most devices one job may ask for.
pub const GPUS_MAX: u32 = 1 << 16;

/// What is known of speeds beforehand, as from a throughput table.
pub trait Catalog: Send + Sync {
    /// Steps a second of a model on so many devices of a kind; none where that is not known.
    fn speed(&self, model: &str, batch_size: Option<u32>, gpus: u32, kind: &str) -> Option<f64>;

    /// The number of what such jobs have in common. The same one after a restart: it is in the journal.
    fn profile(&self, _model: &str, _batch_size: Option<u32>, _gpus: u32) -> ProfileId {
        ProfileId::default()
    }

    /// What is believed of jobs that share devices of these kinds; none: nothing.
    fn belief(&self, _kinds: &Kinds) -> Option<Belief> {
        None
    }
}

/// Knows nothing: twice the devices are twice the speed, on every kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Blank;

impl Catalog for Blank {
    fn speed(&self, _: &str, _: Option<u32>, _: u32, _: &str) -> Option<f64> {
        None
    }
}

/// What the engine is given for a request.
pub fn translate(
    user: &str,
    request: &JobRequest,
    kinds: &Kinds,
    catalog: &dyn Catalog,
    offers: &Offers,
) -> Result<JobSpec, Refusal> {
    let sizes = Sizes::of(request)?;
    closeness::check(request).map_err(|wrong| invalid(wrong.field, &wrong.message))?;
    let allowed = offers.serving(request, allowed(request, kinds)?, kinds)?;
    let (mut shapes, speeds) = ways(request, &sizes, &allowed, kinds, catalog);
    let host = offers.host(request)?;
    shapes.iter_mut().for_each(|shape| shape.host.clone_from(&host));
    let deadline = seconds(request.deadline, "deadline", false)?;
    let not_before = seconds(request.begin, "begin", false)?;
    let limit = seconds(request.time_limit_s, "time_limit_s", true)?;
    let duration = seconds(request.duration_s, "duration_s", true)?;
    let steps = request.training.as_ref().map(|training| training.steps as f64);
    let said = steps.or(duration).or(limit);
    let nodes_max = if sizes.most == 0 { GPUS_MAX } else { sizes.most };
    if request.nodes.is_some_and(|nodes| nodes == 0 || nodes > nodes_max) {
        return Err(invalid("nodes", "nodes is at least 1, and at most the devices of the job"));
    }
    let weight = seconds(request.weight, "weight", true)?.unwrap_or(1.0);
    // How long it takes is anybody's guess: then no time can be promised.
    let unknown = (duration.or(limit).is_none() && deadline.is_some()).then(|| Arc::from([]));
    Ok(JobSpec {
        name: name(request)?.into(),
        user: Some(user.into()),
        tenant: request.tenant.as_deref().map(Arc::from),
        weight,
        priority: request.priority,
        deadline: deadline.map(Time::from_secs),
        steps: said.unwrap_or(DURATION_S),
        length: if said.is_some() { Length::Stated } else { Length::Predicted },
        profile: profile(user, request, &sizes, catalog, offers),
        shapes: shapes.into(),
        speeds: speeds.into(),
        costs: Costs::default(),
        failures_max: request.max_restarts.unwrap_or(0),
        pausable: request.pause != Pause::Never,
        not_before: not_before.map(Time::from_secs),
        sharing: sharing(request, offers),
        training: request.training.as_ref().map(|training| Arc::new(training.on(&allowed))),
        regimes: regimes::regimes(request),
        rewards: unknown.or_else(|| rewards::rewards(request, weight)),
        late: request.late.unwrap_or_default(),
        after: request.after.iter().copied().map(JobId).collect(),
    })
}

/// What people call the job.
pub fn name(request: &JobRequest) -> Result<String, Refusal> {
    let Some(program) = request.command.first().filter(|program| !program.is_empty()) else {
        return Err(invalid("command", "a job needs a command: a program and its arguments"));
    };
    let own = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(program);
    Ok(request.name.clone().unwrap_or_else(|| own.to_owned()))
}

/// How many devices a job may have.
struct Sizes {
    least: u32,
    asked: u32,
    most: u32,
}

impl Sizes {
    fn of(request: &JobRequest) -> Result<Sizes, Refusal> {
        let asked = request.gpus.unwrap_or(request.min_gpus.unwrap_or(1));
        let (least, most) = (request.min_gpus.unwrap_or(asked), request.max_gpus.unwrap_or(asked));
        if asked > GPUS_MAX || most > GPUS_MAX {
            return Err(invalid("gpus", &format!("a job may ask for at most {GPUS_MAX} devices")));
        }
        if least > asked || request.min_gpus == Some(0) {
            return Err(invalid("min_gpus", "min_gpus is at least 1 and at most gpus"));
        }
        if most < asked || (asked == 0 && most > 0) {
            return Err(invalid("max_gpus", "max_gpus is at least gpus, and 0 where gpus is 0"));
        }
        Ok(Sizes { least, asked, most })
    }

    /// From most to least: the ends, what was asked for, and powers of two between them.
    fn list(&self) -> Vec<u32> {
        let powers = (0..32).map(|power| 1 << power).filter(|size| (self.least..=self.most).contains(size));
        let mut sizes: Vec<u32> = powers.chain([self.least, self.asked, self.most]).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.reverse();
        sizes
    }
}

/// The kinds that the job may run on.
fn allowed(request: &JobRequest, kinds: &Kinds) -> Result<Vec<KindId>, Refusal> {
    let known = || kinds.ids().map(|kind| kinds.name(kind)).collect::<Vec<_>>().join(", ");
    let find = |name: &str, field| {
        let message = || match name {
            CPU => format!(
                "no node has CPU slots (kind cpu) for jobs without GPUs: use --gpus 1 (kinds: {}), or ask an admin to start one: yard agent --cpu-slots N",
                known()
            ),
            _ => format!(
                "no node has devices of kind {name:?}; there are: {} (--kind, and in scripts --partition and \
                 --constraint, select kinds; leave them out to run on any)",
                known()
            ),
        };
        kinds.find(name).ok_or_else(|| invalid(field, &message()))
    };
    if kinds.ids().next().is_none() {
        let message = "no node has joined yet, so no kinds are known; start an agent first";
        return Err(Refusal::Unavailable(message.into()));
    }
    if request.gpus == Some(0) {
        if let Some(kind) = request.kinds.iter().find(|kind| *kind != CPU) {
            let message = format!(
                "a job without GPUs runs on a CPU slot, not on {kind:?}: request GPUs (--gpus 1, or #SBATCH \
                 --gpus=1 in a script), or leave out the kind (--kind, or --partition and --constraint in a script)"
            );
            return Err(invalid("kinds", &message));
        }
        return Ok(vec![find(CPU, "gpus")?]);
    }
    if !request.kinds.is_empty() {
        let mut named = Vec::with_capacity(request.kinds.len());
        for kind in &request.kinds {
            let kind = find(kind, "kinds")?;
            if !named.contains(&kind) {
                named.push(kind);
            }
        }
        return Ok(named);
    }
    let cards: Vec<_> = kinds.ids().filter(|kind| kinds.name(*kind) != CPU).collect();
    Ok(if cards.is_empty() { kinds.ids().collect() } else { cards })
}

/// All ways to run, with a speed for each. Where the user names no kinds, faster ones come first.
fn ways(
    request: &JobRequest,
    sizes: &Sizes,
    allowed: &[KindId],
    kinds: &Kinds,
    catalog: &dyn Catalog,
) -> (Vec<Shape>, Vec<f64>) {
    let known = |kind: KindId, gpus: u32| {
        let model = request.model.as_deref()?;
        let speed = catalog.speed(model, request.batch_size, gpus, kinds.name(kind))?;
        (speed > 0.0 && speed.is_finite()).then_some(speed)
    };
    let fastest = allowed.iter().filter_map(|kind| known(*kind, sizes.asked)).reduce(f64::max);
    let speed = |kind: KindId, gpus: u32| match fastest {
        Some(fastest) => known(kind, gpus).map(|speed| speed / fastest),
        None => Some(gpus.max(1) as f64 / sizes.asked.max(1) as f64),
    };
    let mut ways = Vec::new();
    for gpus in sizes.list().into_iter().filter(|gpus| closeness::allows(request, *gpus)) {
        // A job without devices has a slot on each of its nodes.
        let devices = if gpus == 0 { request.nodes.unwrap_or(1) } else { gpus };
        let here = allowed.iter().filter_map(|kind| Some((*kind, speed(*kind, gpus)?)));
        let shape = |kind| closeness::laid(request, Shape::of(kind, devices));
        let mut here: Vec<_> = here.map(|(kind, speed)| (shape(kind), speed)).collect();
        if request.kinds.is_empty() {
            here.sort_by(|a, b| b.1.total_cmp(&a.1));
        }
        ways.extend(here);
    }
    ways.into_iter().unzip()
}

/// What it has in common with others: by the table, else by what it runs. A job that shares its devices with nobody
/// is one of which nothing is known: no policy packs those.
fn profile(
    user: &str,
    request: &JobRequest,
    sizes: &Sizes,
    catalog: &dyn Catalog,
    offers: &Offers,
) -> ProfileId {
    if is_alone(request, offers) {
        return ProfileId::default();
    }
    let model = request.model.as_deref();
    let known = model.map(|model| catalog.profile(model, request.batch_size, sizes.asked));
    known.filter(|known| *known != ProfileId::default()).unwrap_or_else(|| likeness(user, request))
}

/// Whether it shares its devices with nobody: it says so, or whoever runs it cannot do otherwise.
fn is_alone(request: &JobRequest, offers: &Offers) -> bool {
    request.exclusive || !offers.shares()
}

/// What it says of sharing its devices, where it says anything.
fn sharing(request: &JobRequest, offers: &Offers) -> Option<Arc<Sharing>> {
    let word = |word: &Option<String>| word.as_deref().map(Arc::from);
    let sharing = Sharing {
        claim: request.class,
        loss_max: request.max_slowdown.unwrap_or(Sharing::PLAIN.loss_max),
        request: request.card_request(),
        limit: request.card_limit(),
        memory_mib: request.gpu_memory_mib.map(|mib| u32::try_from(mib).unwrap_or(u32::MAX)),
        usage: None,
        alone: is_alone(request, offers),
        affinity: word(&request.affinity),
        anti_affinity: word(&request.anti_affinity),
        exclusion: word(&request.exclusion),
    };
    (sharing != Sharing::PLAIN).then(|| Arc::new(sharing))
}

/// A number that is finite and not below zero, or above it.
fn seconds(value: Option<f64>, field: &str, above: bool) -> Result<Option<f64>, Refusal> {
    let sound = |value: &f64| value.is_finite() && (*value > 0.0 || !above && *value == 0.0);
    if value.as_ref().is_none_or(sound) {
        return Ok(value);
    }
    let least = if above { "above 0" } else { "of 0 or more" };
    Err(invalid(field, &format!("{field} is a finite number {least}")))
}

fn invalid(field: &str, message: &str) -> Refusal {
    Refusal::Invalid { field: Some(field.to_owned()), message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use yard_core::cluster::Level;
    use yard_core::job::Claim;

    use super::*;

    fn kinds() -> Kinds {
        let mut kinds = Kinds::default();
        for name in ["cpu", "v100", "a100"] {
            kinds.intern(name);
        }
        kinds
    }

    fn request() -> JobRequest {
        JobRequest { command: vec!["/bin/true".into()], ..JobRequest::default() }
    }

    fn spec(change: impl FnOnce(&mut JobRequest)) -> Result<JobSpec, Refusal> {
        let mut request = request();
        change(&mut request);
        translate("ann", &request, &kinds(), &Blank, &Offers::default())
    }

    /// `kind x devices @ speed` of each shape.
    fn text(spec: &JobSpec) -> String {
        let kinds = kinds();
        let way = |(shape, speed): (&Shape, &f64)| {
            format!("{}x{}@{speed}", kinds.name(shape.needs[0].kind), shape.needs[0].devices)
        };
        spec.shapes.iter().zip(&*spec.speeds).map(way).collect::<Vec<_>>().join(" ")
    }

    fn field(result: Result<JobSpec, Refusal>) -> String {
        match result {
            Err(Refusal::Invalid { field: Some(field), .. }) => field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_names_no_kind_gets_every_accelerator() {
        let plain = spec(|_| ()).unwrap();
        assert_eq!(text(&plain), "v100x1@1 a100x1@1");
        assert_eq!((&*plain.name, plain.steps, plain.failures_max), ("true", DURATION_S, 0));
        let mut only_cpu = Kinds::default();
        only_cpu.intern("cpu");
        let spec = translate("ann", &request(), &only_cpu, &Blank, &Offers::default()).unwrap();
        assert_eq!(
            spec.shapes[0],
            Shape::of(KindId(0), 1),
            "or a processor slot where there is nothing else"
        );
    }

    #[test]
    fn kinds_keep_their_order_and_unknown_ones_are_named() {
        let liked = spec(|job| job.kinds = vec!["a100".into(), "v100".into(), "a100".into()]).unwrap();
        assert_eq!(text(&liked), "a100x1@1 v100x1@1");
        let Err(Refusal::Invalid { field, message }) = spec(|job| job.kinds = vec!["h100".into()]) else {
            panic!("there is no h100");
        };
        assert_eq!(field.as_deref(), Some("kinds"));
        assert!(message.contains("h100") && message.contains("cpu, v100, a100"), "{message}");
    }

    #[test]
    fn zero_devices_are_a_processor_slot() {
        assert_eq!(text(&spec(|job| job.gpus = Some(0)).unwrap()), "cpux1@1");
        assert_eq!(field(spec(|job| (job.gpus, job.kinds) = (Some(0), vec!["a100".into()]))), "kinds");
    }

    #[test]
    fn who_asks_for_no_gpu_where_there_are_only_gpus_is_told_what_is_possible() {
        let mut cards = Kinds::default();
        cards.intern("h100");
        let said = |job: &JobRequest, kinds: &Kinds| {
            translate("ann", job, kinds, &Blank, &Offers::default()).expect_err("it is refused").to_string()
        };
        let none = JobRequest { gpus: Some(0), ..request() };
        let text = said(&none, &cards);
        assert!(text.contains("use --gpus 1") && text.contains("yard agent --cpu-slots"), "{text}");
        let partition = JobRequest { kinds: vec!["gpu".into()], ..none };
        let text = said(&partition, &cards);
        assert!(text.contains("#SBATCH --gpus=1") && text.contains("--partition"), "{text}");
        let unknown = JobRequest { kinds: vec!["gpu".into()], ..request() };
        let text = said(&unknown, &cards);
        assert!(text.contains("there are: h100") && text.contains("--partition"), "{text}");
    }

    #[test]
    fn elastic_jobs_have_a_shape_for_each_power_of_two_and_the_ends() {
        let elastic = |job: &mut JobRequest| {
            (job.gpus, job.min_gpus, job.max_gpus) = (Some(3), Some(1), Some(6));
            job.kinds = vec!["a100".into()];
        };
        let sizes = spec(elastic).unwrap();
        assert_eq!(sizes.shapes.iter().map(Shape::devices).collect::<Vec<_>>(), [6, 4, 3, 2, 1]);
        assert_eq!(sizes.speeds[0], 2.0, "twice what was asked for");
        assert_eq!(sizes.speeds[2], 1.0);
    }

    #[test]
    fn a_table_gives_relative_speeds() {
        struct SpeedTable;
        impl Catalog for SpeedTable {
            fn speed(&self, model: &str, _: Option<u32>, gpus: u32, kind: &str) -> Option<f64> {
                let base = match kind {
                    "v100" => 10.0,
                    "a100" => 40.0,
                    _ => return None,
                };
                (model == "resnet").then_some(base * gpus as f64)
            }
        }
        let mut job = request();
        (job.model, job.gpus) = (Some("resnet".into()), Some(2));
        assert_eq!(
            text(&translate("ann", &job, &kinds(), &SpeedTable, &Offers::default()).unwrap()),
            "a100x2@1 v100x2@0.25"
        );
        job.model = Some("unheard-of".into());
        assert_eq!(
            text(&translate("ann", &job, &kinds(), &SpeedTable, &Offers::default()).unwrap()),
            "v100x2@1 a100x2@1"
        );
    }

    #[test]
    fn nonsense_is_refused_by_its_field() {
        assert_eq!(field(spec(|job| job.command.clear())), "command");
        assert_eq!(field(spec(|job| job.weight = Some(0.0))), "weight");
        assert_eq!(field(spec(|job| job.weight = Some(f64::NAN))), "weight");
        assert_eq!(field(spec(|job| job.deadline = Some(-1.0))), "deadline");
        assert_eq!(field(spec(|job| job.duration_s = Some(f64::INFINITY))), "duration_s");
        assert_eq!(field(spec(|job| job.time_limit_s = Some(0.0))), "time_limit_s");
        assert_eq!(field(spec(|job| job.gpus = Some(u32::MAX))), "gpus");
        assert_eq!(field(spec(|job| job.max_gpus = Some(0))), "max_gpus");
        assert_eq!(field(spec(|job| job.min_gpus = Some(0))), "min_gpus");
        assert_eq!(field(spec(|job| (job.gpus, job.min_gpus) = (Some(2), Some(3)))), "min_gpus");
        assert_eq!(field(spec(|job| job.nodes = Some(2))), "nodes");
        let nobody = translate("ann", &request(), &Kinds::default(), &Blank, &Offers::default());
        assert!(matches!(nobody, Err(Refusal::Unavailable(_))));
    }

    #[test]
    fn what_is_said_of_sharing_is_passed_on() {
        assert_eq!(spec(|_| ()).unwrap().sharing, None);
        assert_eq!(
            spec(|job| job.gpu_fraction = Some(1.0)).unwrap().sharing,
            None,
            "a whole card is nothing new"
        );
        let alone = spec(|job| job.exclusive = true).unwrap();
        assert_eq!(*alone.sharing(), Sharing { alone: true, ..Sharing::PLAIN });
        let half = spec(|job| (job.gpu_fraction, job.gpu_memory_mib) = (Some(0.5), Some(8192))).unwrap();
        let expected = Sharing { request: 0.5, limit: 0.5, memory_mib: Some(8192), ..Sharing::PLAIN };
        assert_eq!(*half.sharing(), expected);
        let more = spec(|job| {
            (job.gpu_fraction, job.gpu_limit) = (Some(0.25), Some(0.75));
            (job.class, job.max_slowdown) = (Claim::Guaranteed, Some(0.1));
            (job.affinity, job.exclusion) = (Some("a".into()), Some("b".into()));
        });
        let expected = Sharing {
            claim: Claim::Guaranteed,
            loss_max: 0.1,
            request: 0.25,
            limit: 0.75,
            affinity: Some("a".into()),
            exclusion: Some("b".into()),
            ..Sharing::PLAIN
        };
        assert_eq!(*more.unwrap().sharing(), expected);
        assert_eq!(spec(|job| job.gpu_limit = Some(0.3)).unwrap().sharing().request, 0.3);
    }

    #[test]
    fn one_node_and_no_pause_are_passed_on() {
        let job = spec(|job| {
            (job.gpus, job.nodes, job.pause, job.begin) = (Some(4), Some(1), Pause::Never, Some(10.0));
        });
        let job = job.unwrap();
        assert_eq!((job.shapes[0].level(), job.pausable), (Level::Node, false));
        assert_eq!(job.not_before, Some(Time::from_secs(10.0)));
    }
}
