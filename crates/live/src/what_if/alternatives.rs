//! Other ways to ask for the same job: half and twice the devices, each other kind, and without its deadline. The work
//! stays what it is, so that fewer devices take longer, as far as speeds are known.

use yard_core::cluster::Kinds;
use yard_core::ids::KindId;
use yard_core::job::{JobSpec, Late, Shape};

use super::{OtherWay, WhatIfChange};
use crate::handle::Refusal;
use crate::offers::Offers;
use crate::request::JobRequest;
use crate::translate::{CPU, Catalog, translate};

/// Ways to ask, at most.
const WAYS_MAX: usize = 8;

/// The job as it was asked for, then the other ways. One that nothing could serve is left out.
pub(crate) fn ways(
    user: &str,
    request: &JobRequest,
    kinds: &Kinds,
    catalog: &dyn Catalog,
    offers: &Offers,
    others: bool,
) -> Result<Vec<OtherWay>, Refusal> {
    let made = |request: &JobRequest| translate(user, request, kinds, catalog, offers);
    let mut ways = vec![way("as asked", made(request)?)];
    if others {
        ways.extend(sizes(request, &made));
        ways.extend(other_kinds(request, kinds, &made));
        ways.extend(no_deadline(request, &made));
    }
    ways.truncate(WAYS_MAX);
    Ok(ways)
}

type MadeAlternative<'a> = &'a dyn Fn(&JobRequest) -> Result<JobSpec, Refusal>;

/// Half and twice the devices, where it does not have that choice already.
fn sizes(request: &JobRequest, made: MadeAlternative<'_>) -> Vec<OtherWay> {
    let asked = request.gpus.unwrap_or(request.min_gpus.unwrap_or(1));
    let allowed = request.min_gpus.unwrap_or(asked)..=request.max_gpus.unwrap_or(asked);
    let sizes = [asked / 2, asked.saturating_mul(2)];
    let size = |size: u32| {
        let (least, most) = (size.min(asked), size.max(asked));
        // Among all three sizes speeds are what they are beside the one that was asked for.
        let wide = JobRequest {
            gpus: Some(asked),
            min_gpus: Some(least),
            max_gpus: Some(most),
            nodes: None,
            ..request.clone()
        };
        let spec = only(made(&wide).ok()?, |shape| shape.devices() == size)?;
        let label = if size == 1 { "1 device".to_owned() } else { format!("{size} devices") };
        Some(way(&label, spec))
    };
    sizes.into_iter().filter(|size| *size > 0 && !allowed.contains(size)).filter_map(size).collect()
}

/// Each kind that it does not name.
fn other_kinds(request: &JobRequest, kinds: &Kinds, made: MadeAlternative<'_>) -> Vec<OtherWay> {
    if request.kinds.is_empty() || request.gpus == Some(0) {
        return Vec::new();
    }
    let own: Vec<KindId> = request.kinds.iter().filter_map(|kind| kinds.find(kind)).collect();
    let others = kinds.ids().filter(|kind| !own.contains(kind) && kinds.name(*kind) != CPU);
    let on = |kind: KindId| {
        let name = kinds.name(kind).to_owned();
        let all = [request.kinds.clone(), vec![name.clone()]].concat();
        let both = made(&JobRequest { kinds: all, ..request.clone() }).ok()?;
        // How long it takes was said of its own kinds.
        let own = both.shapes.iter().zip(&*both.speeds).filter(|(shape, _)| of(shape, &own));
        let scale = own.map(|(_, speed)| *speed).fold(0.0, f64::max);
        let most = both.speeds.iter().copied().fold(0.0, f64::max);
        let steps = if request.training.is_some() { both.steps } else { both.steps * scale / most };
        let spec = only(JobSpec { steps, ..both }, |shape| of(shape, &[kind]))?;
        Some(way(&format!("on {name}"), spec))
    };
    others.filter_map(on).collect()
}

/// Without its deadline.
fn no_deadline(request: &JobRequest, made: MadeAlternative<'_>) -> Option<OtherWay> {
    request.deadline?;
    let free = JobRequest { deadline: None, late: request.late.map(|_| Late::Try), ..request.clone() };
    Some(way("no deadline", made(&free).ok()?))
}

fn way(label: &str, spec: JobSpec) -> OtherWay {
    OtherWay { label: label.to_owned(), change: WhatIfChange::Job(Box::new(spec)) }
}

fn of(shape: &Shape, kinds: &[KindId]) -> bool {
    shape.needs.iter().all(|need| kinds.contains(&need.kind))
}

/// The job with some of its shapes; none where none is left.
fn only(spec: JobSpec, wanted: impl Fn(&Shape) -> bool) -> Option<JobSpec> {
    let left = spec.shapes.iter().cloned().zip(spec.speeds.iter().copied());
    let (shapes, speeds): (Vec<_>, Vec<_>) = left.filter(|(shape, _)| wanted(shape)).unzip();
    (!shapes.is_empty()).then(|| JobSpec { shapes: shapes.into(), speeds: speeds.into(), ..spec })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a100 is twice as fast as v100, and two devices are 1.5 times as fast as one.
    struct AlternativeTable;

    impl Catalog for AlternativeTable {
        fn speed(&self, _: &str, _: Option<u32>, gpus: u32, kind: &str) -> Option<f64> {
            let kind = if kind == "a100" { 2.0 } else { 1.0 };
            Some(kind * libm::pow(1.5, f64::from(gpus).log2()))
        }
    }

    fn told(change: impl FnOnce(&mut JobRequest)) -> Vec<(String, f64)> {
        let mut kinds = Kinds::default();
        ["cpu", "v100", "a100"].into_iter().for_each(|kind| _ = kinds.intern(kind));
        let mut request = JobRequest {
            command: vec!["train".into()],
            model: Some("net".into()),
            gpus: Some(2),
            kinds: vec!["v100".into()],
            duration_s: Some(1200.0),
            ..JobRequest::default()
        };
        change(&mut request);
        let ways = ways("ann", &request, &kinds, &AlternativeTable, &Offers::default(), true).unwrap();
        let seconds = |way: OtherWay| {
            let spec = way.spec().unwrap();
            (way.label.clone(), spec.steps / spec.speeds[0])
        };
        ways.into_iter().map(seconds).map(|(label, seconds)| (label, seconds.round())).collect()
    }

    fn lines(told: &[(String, f64)]) -> Vec<(&str, f64)> {
        told.iter().map(|(label, seconds)| (label.as_str(), *seconds)).collect()
    }

    #[test]
    fn the_work_stays_and_the_time_follows_the_speed() {
        let all = [("as asked", 1200.0), ("1 device", 1800.0), ("4 devices", 800.0), ("on a100", 600.0)];
        assert_eq!(lines(&told(|_| ())), all);
    }

    #[test]
    fn what_it_may_have_anyway_is_no_other_way() {
        let free = told(|job| (job.min_gpus, job.max_gpus, job.kinds) = (Some(1), Some(4), Vec::new()));
        assert_eq!(free.len(), 1, "{free:?}");
        let due = told(|job| (job.deadline, job.gpus) = (Some(9e9), Some(1)));
        let labels: Vec<_> = due.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(labels, ["as asked", "2 devices", "on a100", "no deadline"]);
    }
}
