//! What can be said, without knowing the cluster, of a request that is about sharing cards: parts of a card, classes,
//! and words for who goes with whom. Each answer names the nearest thing that would work.

use yard_core::job::Claim;
use yard_core::part::Pause;

use super::JobRequest;
use super::check::{Problem, name, problem};

/// The smallest part of a card that can be asked for: MPS counts in whole percent.
const PART_MIN: f64 = 0.01;

/// Less memory than any process needs that uses a card at all.
const MEMORY_MIN_MIB: u64 = 64;

/// More memory than any card has.
const MEMORY_MAX_MIB: u64 = 1 << 30;

impl JobRequest {
    /// The part of a card's processors that it asks for.
    pub(crate) fn card_request(&self) -> f64 {
        self.gpu_fraction.or(self.gpu_limit).unwrap_or(1.0)
    }

    /// The most of them that it may use.
    pub(crate) fn card_limit(&self) -> f64 {
        self.gpu_limit.or(self.gpu_fraction).unwrap_or(1.0)
    }

    /// The field by which it asks for less than a whole card, where it does.
    pub(crate) fn limited_by(&self) -> Option<&'static str> {
        let less = |part: Option<f64>| part.is_some_and(|part| part < 1.0);
        match self {
            _ if less(self.gpu_fraction) => Some("gpu_fraction"),
            _ if less(self.gpu_limit) => Some("gpu_limit"),
            _ => self.gpu_memory_mib.map(|_| "gpu_memory_mib"),
        }
    }
}

/// Whether what it says of sharing makes sense.
pub(super) fn check(request: &JobRequest) -> Result<(), Problem> {
    part("gpu_fraction", request.gpu_fraction)?;
    part("gpu_limit", request.gpu_limit)?;
    memory(request)?;
    one_card(request)?;
    class(request)?;
    freeze(request)?;
    words(request)
}

fn part(field: &'static str, part: Option<f64>) -> Result<(), Problem> {
    match part {
        Some(part) if part > 1.0 => {
            let cards = part.min(f64::from(super::check::GPUS_MAX)).ceil();
            problem(field, format!("{part} is more than one GPU; use gpus: {cards} for whole GPUs"))
        }
        Some(part) if part.is_nan() || part < PART_MIN => problem(
            field,
            format!("{part} is not part of a GPU; use {PART_MIN} to 1, such as 0.5 for half of one"),
        ),
        _ => Ok(()),
    }
}

fn memory(request: &JobRequest) -> Result<(), Problem> {
    match request.gpu_memory_mib {
        Some(mib) if mib < MEMORY_MIN_MIB => problem(
            "gpu_memory_mib",
            format!("{mib} MiB is too little for any GPU job; did you mean gpu_memory: {}GiB?", mib.max(1)),
        ),
        Some(mib) if mib > MEMORY_MAX_MIB => problem(
            "gpu_memory_mib",
            format!("{mib} MiB is more than any GPU has; without a unit the number is in MiB"),
        ),
        _ => Ok(()),
    }
}

/// MPS limits what a job takes of one card, so a part of a card is a part of one.
fn one_card(request: &JobRequest) -> Result<(), Problem> {
    let (fraction, limit) = (request.gpu_fraction, request.gpu_limit);
    if fraction.zip(limit).is_some_and(|(fraction, limit)| limit < fraction) {
        return problem(
            "gpu_limit",
            format!(
                "{} is less than gpu_fraction, which is {}; raise it, or leave it out",
                request.card_limit(),
                request.card_request()
            ),
        );
    }
    let Some(field) = request.limited_by() else { return Ok(()) };
    let most = request.max_gpus.or(request.gpus).unwrap_or(1).max(request.min_gpus.unwrap_or(0));
    if request.gpus == Some(0) {
        return problem(field, "the job has no GPU (gpus: 0); use gpus: 1");
    }
    if most > 1 {
        return problem(
            field,
            format!("it applies to one GPU, and the job may have {most}; use gpus: 1, or leave out {field}"),
        );
    }
    Ok(())
}

fn class(request: &JobRequest) -> Result<(), Problem> {
    match (request.class, request.max_slowdown) {
        (_, Some(part)) if !(0.0..=1.0).contains(&part) => problem(
            "max_slowdown",
            format!("{part} is not from 0 to 1; for {part} percent write {part}% or {}", part / 100.0),
        ),
        (Claim::Ordinary | Claim::Opportunistic, Some(_)) => {
            problem("max_slowdown", "only guaranteed jobs have it; use class: guaranteed, or leave it out")
        }
        (Claim::Opportunistic, None) if request.pause == Pause::Never => {
            problem("class", "an opportunistic job must be pausable; use pause: auto, or class: ordinary")
        }
        _ => Ok(()),
    }
}

fn freeze(request: &JobRequest) -> Result<(), Problem> {
    if request.pause != Pause::Freeze {
        return Ok(());
    }
    if request.gpus == Some(0) {
        return problem("pause", "a job without a GPU (gpus: 0) has nothing to freeze; use pause: stop");
    }
    match request.limited_by() {
        Some(field) => problem(
            "pause",
            format!(
                "the driver cannot freeze a job with a limited part of a GPU ({field}); use pause: checkpoint \
                 or pause: auto, or leave out {field}"
            ),
        ),
        None => Ok(()),
    }
}

fn words(request: &JobRequest) -> Result<(), Problem> {
    name("affinity", request.affinity.as_deref())?;
    name("anti_affinity", request.anti_affinity.as_deref())?;
    name("exclusion", request.exclusion.as_deref())?;
    if request.exclusive && request.affinity.is_some() {
        return problem(
            "affinity",
            "exclusive jobs share with no other job; leave out exclusive or affinity",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn said(change: impl Fn(&mut JobRequest)) -> Result<(), Problem> {
        let mut request = JobRequest { command: vec!["true".into()], ..JobRequest::default() };
        change(&mut request);
        super::super::check::check(&request)
    }

    fn wrong(change: impl Fn(&mut JobRequest), sentence: Expect) {
        sentence.assert_eq(&said(change).expect_err("it is wrong").to_string());
    }

    #[test]
    fn a_part_of_a_card_is_more_than_nothing_and_at_most_all() {
        wrong(
            |r| r.gpu_fraction = Some(1.7),
            expect!["gpu_fraction: 1.7 is more than one GPU; use gpus: 2 for whole GPUs"],
        );
        wrong(
            |r| r.gpu_limit = Some(3.0),
            expect!["gpu_limit: 3 is more than one GPU; use gpus: 3 for whole GPUs"],
        );
        wrong(
            |r| r.gpu_fraction = Some(0.0),
            expect!["gpu_fraction: 0 is not part of a GPU; use 0.01 to 1, such as 0.5 for half of one"],
        );
        for bad in [-0.5, f64::NAN, f64::NEG_INFINITY, 0.009, f64::INFINITY, 1.0 + 1e-9] {
            assert_eq!(said(|r| r.gpu_fraction = Some(bad)).expect_err("it is wrong").field, "gpu_fraction");
            assert_eq!(said(|r| r.gpu_limit = Some(bad)).expect_err("it is wrong").field, "gpu_limit");
        }
        for good in [0.01, 0.5, 1.0] {
            assert_eq!(said(|r| r.gpu_fraction = Some(good)), Ok(()));
        }
    }

    #[test]
    fn a_limit_is_no_less_than_what_is_asked_for() {
        wrong(
            |r| (r.gpu_fraction, r.gpu_limit) = (Some(0.5), Some(0.3)),
            expect!["gpu_limit: 0.3 is less than gpu_fraction, which is 0.5; raise it, or leave it out"],
        );
        assert_eq!(said(|r| (r.gpu_fraction, r.gpu_limit) = (Some(0.5), Some(0.5))), Ok(()));
        assert_eq!(said(|r| r.gpu_limit = Some(0.3)), Ok(()));
    }

    #[test]
    fn parts_are_of_one_card() {
        wrong(
            |r| (r.gpu_fraction, r.gpus) = (Some(0.5), Some(2)),
            expect![
                "gpu_fraction: it applies to one GPU, and the job may have 2; use gpus: 1, or leave out gpu_fraction"
            ],
        );
        wrong(
            |r| (r.gpu_fraction, r.gpus) = (Some(0.5), Some(0)),
            expect!["gpu_fraction: the job has no GPU (gpus: 0); use gpus: 1"],
        );
        wrong(
            |r| (r.gpu_memory_mib, r.max_gpus) = (Some(8192), Some(4)),
            expect![
                "gpu_memory_mib: it applies to one GPU, and the job may have 4; use gpus: 1, or leave out gpu_memory_mib"
            ],
        );
        assert_eq!(
            said(|r| (r.gpu_fraction, r.gpus) = (Some(1.0), Some(2))),
            Ok(()),
            "whole cards are no parts"
        );
    }

    #[test]
    fn memory_without_a_unit_is_noticed() {
        wrong(
            |r| r.gpu_memory_mib = Some(8),
            expect!["gpu_memory_mib: 8 MiB is too little for any GPU job; did you mean gpu_memory: 8GiB?"],
        );
        wrong(
            |r| r.gpu_memory_mib = Some(u64::MAX),
            expect![
                "gpu_memory_mib: 18446744073709551615 MiB is more than any GPU has; without a unit the number is in MiB"
            ],
        );
        assert_eq!(said(|r| r.gpu_memory_mib = Some(8192)), Ok(()));
    }

    #[test]
    fn classes_go_with_what_they_promise() {
        wrong(
            |r| r.max_slowdown = Some(0.05),
            expect!["max_slowdown: only guaranteed jobs have it; use class: guaranteed, or leave it out"],
        );
        wrong(
            |r| (r.class, r.max_slowdown) = (Claim::Guaranteed, Some(5.0)),
            expect!["max_slowdown: 5 is not from 0 to 1; for 5 percent write 5% or 0.05"],
        );
        wrong(
            |r| (r.class, r.pause) = (Claim::Opportunistic, Pause::Never),
            expect!["class: an opportunistic job must be pausable; use pause: auto, or class: ordinary"],
        );
        assert!(said(|r| (r.class, r.max_slowdown) = (Claim::Guaranteed, Some(f64::NAN))).is_err());
        assert_eq!(said(|r| (r.class, r.max_slowdown) = (Claim::Guaranteed, Some(0.0))), Ok(()));
        assert_eq!(said(|r| r.class = Claim::Opportunistic), Ok(()));
    }

    #[test]
    fn what_runs_through_mps_or_without_a_card_is_not_frozen() {
        wrong(
            |r| (r.pause, r.gpu_fraction) = (Pause::Freeze, Some(0.5)),
            expect![
                "pause: the driver cannot freeze a job with a limited part of a GPU (gpu_fraction); use pause: checkpoint or pause: auto, or leave out gpu_fraction"
            ],
        );
        wrong(
            |r| (r.pause, r.gpu_memory_mib) = (Pause::Freeze, Some(8192)),
            expect![
                "pause: the driver cannot freeze a job with a limited part of a GPU (gpu_memory_mib); use pause: checkpoint or pause: auto, or leave out gpu_memory_mib"
            ],
        );
        wrong(
            |r| (r.pause, r.gpus) = (Pause::Freeze, Some(0)),
            expect!["pause: a job without a GPU (gpus: 0) has nothing to freeze; use pause: stop"],
        );
        assert_eq!(said(|r| (r.pause, r.gpu_fraction) = (Pause::Freeze, Some(1.0))), Ok(()));
    }

    #[test]
    fn words_are_plain() {
        wrong(
            |r| r.affinity = Some("a/b".into()),
            expect![[r#"affinity: "a/b" has a slash, two dots or a control character; use plain text"#]],
        );
        for bad in ["", " ", "..", "bell\u{7}"] {
            assert!(said(|r| r.anti_affinity = Some(bad.into())).is_err(), "{bad:?}");
            assert!(said(|r| r.exclusion = Some(bad.into())).is_err(), "{bad:?}");
        }
        wrong(
            |r| (r.exclusive, r.affinity) = (true, Some("team".into())),
            expect!["affinity: exclusive jobs share with no other job; leave out exclusive or affinity"],
        );
    }
}
