//! What is said between yard and a program that decides, word for word: docs/exec-policies.md is the reference. One
//! JSON object a line. A change that an older program could not follow has a new `PROTOCOL`.

use std::collections::BTreeMap;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use yard_core::allocation::Mode;
use yard_core::job::{JobState, Rank};
use yard_core::policy::{Knowledge, Priorities};

/// The version of the protocol.
pub(super) const PROTOCOL: u32 = 1;

/// What to use instead of priorities.
const OTHER: &str = "choose a policy that honours them";

/// A line to the program.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExecTold<'a> {
    Hello(ExecHello<'a>),
    View(ViewLine<'a>),
}

/// The first line.
#[derive(Serialize)]
pub(super) struct ExecHello<'a> {
    pub(super) protocol: u32,
    pub(super) yard: &'a str,
    pub(super) params: &'a BTreeMap<String, String>,
}

/// What there is to decide.
#[derive(Serialize)]
pub(super) struct ViewLine<'a> {
    pub(super) seq: u64,
    pub(super) now_us: u64,
    pub(super) round_us: u64,
    /// Whether this is everything: what was told before is to be forgotten.
    pub(super) full: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kinds: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nodes: Option<Vec<ExecNode<'a>>>,
    pub(super) ended: Vec<u64>,
    pub(super) jobs: Vec<ExecJob<'a>>,
}

#[derive(Serialize)]
pub(super) struct ExecNode<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    /// Devices that jobs may be given, free or not.
    pub(super) gpus: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_mib: Option<u32>,
}

/// A job: what was submitted where that is new, and how it is going.
#[derive(Serialize)]
pub(super) struct ExecJob<'a> {
    pub(super) id: u64,
    pub(super) row: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spec: Option<SpecRow<'a>>,
    pub(super) state: JobState,
    pub(super) submitted_us: u64,
    pub(super) since_us: u64,
    pub(super) first_start_us: Option<u64>,
    pub(super) done: f64,
    pub(super) as_of_us: u64,
    pub(super) speed: f64,
    pub(super) shape: u16,
    pub(super) devices: u32,
    pub(super) held_since_us: u64,
    pub(super) attained_us: u64,
    pub(super) executed_us: u64,
    pub(super) starts: u32,
    pub(super) preemptions: u32,
    pub(super) failures: u32,
    pub(super) rank: (f64, f64),
    pub(super) promise_us: Option<u64>,
    /// Steps left as believed at `now_us`, where lengths are learned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) steps_left: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct SpecRow<'a> {
    pub(super) name: &'a str,
    pub(super) user: Option<&'a str>,
    pub(super) tenant: Option<&'a str>,
    pub(super) weight: f64,
    pub(super) priority: i32,
    pub(super) deadline_us: Option<u64>,
    pub(super) steps: f64,
    pub(super) pausable: bool,
    pub(super) shapes: Vec<ShapeRow<'a>>,
}

#[derive(Serialize)]
pub(super) struct ShapeRow<'a> {
    /// Devices by kind.
    pub(super) gpus: BTreeMap<&'a str, u32>,
    /// Believed steps per second.
    pub(super) speed: f64,
    pub(super) spread: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) batch_size: Option<u32>,
}

/// A line from the program.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExecSaid {
    Hello(Declared),
    Plan(PlanLine),
    Error(String),
}

/// What the program says of itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Declared {
    pub(super) protocol: u32,
    #[serde(default)]
    mode: Shared,
    #[serde(default)]
    preempt: bool,
    #[serde(default = "yes")]
    skip: bool,
    #[serde(default)]
    pub(super) cadence: ExecAsked,
    rounds: Option<bool>,
    priorities: Option<Urgency>,
    #[serde(default)]
    needs: Vec<ExecNeed>,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shared {
    #[default]
    Ordered,
    Fractions,
    Capped,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ExecAsked {
    #[default]
    OnChange,
    EveryRound,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Urgency {
    Classes,
    Worth,
    Refused,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ExecNeed {
    Durations,
    Progress,
    Speeds,
    Losses,
    Regimes,
}

impl Declared {
    /// How its shares become who runs.
    pub(super) fn mode(&self) -> Mode {
        let classes = self.priorities() == Priorities::Classes;
        match self.mode {
            Shared::Ordered => Mode::Ordered { preempt: self.preempt, skip: self.skip, classes },
            Shared::Fractions => Mode::Fractions,
            Shared::Capped => Mode::Capped,
        }
    }

    /// Whether it is run in rounds unless told otherwise: where it stops jobs, or has them take turns.
    pub(crate) fn rounds(&self) -> bool {
        let usual = self.preempt || self.cadence == ExecAsked::EveryRound || self.mode != Shared::Ordered;
        self.rounds.unwrap_or(usual)
    }

    /// What it makes of priorities. Shares of time know none.
    pub(crate) fn priorities(&self) -> Priorities {
        match self.priorities {
            Some(Urgency::Worth) => Priorities::Worth,
            Some(Urgency::Classes) if self.mode == Shared::Ordered => Priorities::Classes,
            None if self.mode == Shared::Ordered => Priorities::Classes,
            _ => Priorities::Refused(OTHER),
        }
    }

    /// What it must be told of jobs.
    pub(crate) fn needs(&self) -> Vec<Knowledge> {
        let known = |need: &ExecNeed| match need {
            ExecNeed::Durations => Knowledge::Durations,
            ExecNeed::Progress => Knowledge::Progress,
            ExecNeed::Speeds => Knowledge::Speeds,
            ExecNeed::Losses => Knowledge::Losses,
            ExecNeed::Regimes => Knowledge::Regimes,
        };
        self.needs.iter().map(known).collect()
    }
}

/// An answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanLine {
    pub(super) seq: u64,
    /// Whether a job that is not named gets nothing; otherwise it keeps what it has.
    pub(super) all: bool,
    pub(super) shares: Vec<ShareRow>,
    #[serde(default)]
    pub(super) replan_at_us: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShareRow {
    #[serde(default)]
    pub(super) job: Option<u64>,
    #[serde(default)]
    pub(super) jobs: Vec<u64>,
    #[serde(default)]
    pub(super) shape: Option<u16>,
    #[serde(default = "whole")]
    pub(super) fraction: f64,
    #[serde(default, deserialize_with = "rank")]
    pub(super) rank: Rank,
}

fn whole() -> f64 {
    1.0
}

/// A number, or two of which the second counts where the first are equal.
fn rank<'de, D: Deserializer<'de>>(from: D) -> Result<Rank, D::Error> {
    struct ExecNumbers;
    impl<'de> Visitor<'de> for ExecNumbers {
        type Value = Rank;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a number or a list of two numbers")
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<Rank, E> {
            Ok(Rank(number, 0.0))
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Rank, E> {
            Ok(Rank(number as f64, 0.0))
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Rank, E> {
            Ok(Rank(number as f64, 0.0))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Rank, A::Error> {
            let two = (numbers.next_element()?, numbers.next_element()?, numbers.next_element::<f64>()?);
            let (Some(first), Some(second), None) = two else {
                return Err(A::Error::custom("a rank is a number or a list of two numbers"));
            };
            Ok(Rank(first, second))
        }
    }
    from.deserialize_any(ExecNumbers)
}
