//! Named bundles of settings that reproduce a paper's own simulator, and its names for policies.

use yard_core::Span;
use yard_core::policy::Policy;
use yard_core::turns::{GavelTurns, Turns};
use yard_sim::Quirks;
use yard_sim::trace::Scaling;

/// A bundle.
pub(crate) struct Compat {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) round_s: f64,
    pub(crate) overheads: &'static str,
    pub(crate) placer: &'static str,
    /// Policies that the artifact places by count whatever it is told.
    by_count: &'static [&'static str],
    pub(crate) repack: bool,
    pub(crate) toll: bool,
    pub(crate) ends_in_rounds: bool,
    /// Whether shares of time become turns as in Gavel's simulator, and a round makes whole steps only.
    gavel_turns: bool,
    plan_gap_s: f64,
    /// Whether a gang's speed depends on where it lies, where the table says so.
    pub(crate) placement_aware: bool,
    /// What of all jobs is the scheduler's choice, whatever the trace says.
    pub(crate) scaling: Option<Scaling>,
    /// The artifact's name and ours.
    aliases: &'static [(&'static str, &'static str)],
}

/// All bundles.
pub(crate) const ALL: &[Compat] = &[
    Compat {
        name: "tiresias",
        about: "Tiresias' simulator (NSDI 2019): by event, GPUs counted, no costs; fjf, lpjf, shortest, shortest-gpu, dlas-gpu",
        round_s: 0.0,
        overheads: "none",
        placer: "count",
        by_count: &[],
        repack: false,
        toll: false,
        ends_in_rounds: false,
        gavel_turns: false,
        plan_gap_s: 0.0,
        placement_aware: true,
        scaling: None,
        aliases: &[
            ("fjf", "fifo-fit"),
            ("shortest", "srtf:artifact=true"),
            ("shortest-gpu", "srsf:artifact=true"),
            ("dlas-gpu", "tiresias:artifact=true"),
        ],
    },
    Compat {
        name: "muri",
        about: "Muri's simulator (SIGCOMM 2022): everybody placed anew at each event, and charged the start-up",
        round_s: 0.0,
        overheads: "muri",
        placer: "yarn",
        by_count: &["tiresias"],
        repack: true,
        toll: true,
        ends_in_rounds: false,
        gavel_turns: false,
        plan_gap_s: 0.0,
        placement_aware: true,
        scaling: None,
        aliases: &[("shortest", "srtf"), ("shortest-gpu", "srsf"), ("dlas-gpu", "tiresias")],
    },
    Compat {
        name: "blox",
        about: "Blox' simulator (EuroSys 2024): 300 s rounds, ends noticed at the end of a round, no costs",
        round_s: 300.0,
        overheads: "none",
        placer: "count",
        by_count: &[],
        repack: false,
        toll: false,
        ends_in_rounds: true,
        gavel_turns: false,
        plan_gap_s: 0.0,
        placement_aware: true,
        scaling: None,
        aliases: &[],
    },
    Compat {
        name: "gavel",
        about: "Gavel's simulator (OSDI 2020): 360 s rounds served kind by kind, plans 1920 s apart, whole steps, no costs",
        round_s: 360.0,
        overheads: "none",
        placer: "count",
        by_count: &[],
        repack: false,
        toll: false,
        ends_in_rounds: false,
        gavel_turns: true,
        plan_gap_s: 1920.0,
        placement_aware: false,
        scaling: None,
        aliases: &[
            ("fifo_perf", "fifo-het"),
            ("allox", "allox:pin=allocated"),
            ("max_min_fairness_perf", "max-min"),
            ("max_min_fairness", "max-min:agnostic=true"),
            ("max_min_fairness_water_filling_perf", "water-filling"),
            ("max_min_fairness_water_filling", "water-filling:agnostic=true"),
            ("finish_time_fairness_perf", "finish-time"),
            ("finish_time_fairness", "finish-time:agnostic=true"),
            ("max_sum_throughput_perf", "max-throughput"),
            ("min_total_duration_perf", "makespan"),
            ("min_total_duration", "makespan:agnostic=true"),
        ],
    },
    Compat {
        name: "elasticflow",
        about: "ElasticFlow's simulator (ASPLOS 2023): all jobs grow and shrink with their batch size, 60 s slots, its costs",
        round_s: 60.0,
        overheads: "elasticflow",
        placer: "pack",
        by_count: &[],
        repack: false,
        toll: false,
        ends_in_rounds: false,
        gavel_turns: false,
        plan_gap_s: 0.0,
        placement_aware: true,
        scaling: Some(Scaling::Strong),
        aliases: &[("ef-accessctrl", "elasticflow"), ("dlas-gpu", "tiresias")],
    },
    Compat {
        name: "chronus",
        about: "Chronus' simulator (SoCC 2021): 5 min rounds, placement without effect on speed, its costs of a resume",
        round_s: 300.0,
        overheads: "chronus",
        placer: "pack",
        by_count: &[],
        repack: false,
        toll: false,
        ends_in_rounds: false,
        gavel_turns: false,
        plan_gap_s: 0.0,
        placement_aware: false,
        scaling: None,
        aliases: &[],
    },
];

impl Compat {
    pub(crate) fn find(name: &str) -> anyhow::Result<&'static Compat> {
        let names = || ALL.iter().map(|compat| compat.name).collect::<Vec<_>>().join(", ");
        let found = ALL.iter().find(|compat| compat.name == name);
        found.ok_or_else(|| anyhow::anyhow!("--compat {name:?} is unknown; choose from {}", names()))
    }

    /// Our name for what the artifact calls `policy`.
    pub(crate) fn policy<'a>(&self, policy: &'a str) -> &'a str {
        self.aliases.iter().find(|(theirs, _)| *theirs == policy).map_or(policy, |(_, ours)| ours)
    }

    /// The placer for one of our policies.
    pub(crate) fn placer(&self, policy: &str) -> &'static str {
        if self.by_count.contains(&policy) { "count" } else { self.placer }
    }

    pub(crate) fn quirks(&self, round: Span) -> Quirks {
        let rounds_if = |quirk| if quirk { round } else { Span::ZERO };
        let (end_grain, whole_steps) = (rounds_if(self.ends_in_rounds), rounds_if(self.gavel_turns));
        Quirks { end_grain, toll: self.toll, whole_steps }
    }

    /// How shares of time become turns. A kind's turn is drawn where the policy takes all kinds for equal.
    pub(crate) fn turns(&self, policy: &dyn Policy, seed: u64) -> Turns {
        if !self.gavel_turns {
            return Turns::Owed;
        }
        let shuffle = policy.agnostic().then_some(seed);
        Turns::Gavel(GavelTurns { shuffle, leftovers: !policy.blocking() })
    }

    /// Least time between plans.
    pub(crate) fn plan_gap(&self) -> Span {
        Span::from_secs(self.plan_gap_s)
    }
}
