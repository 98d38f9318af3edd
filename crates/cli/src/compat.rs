//! Named bundles of settings that reproduce a paper's own simulator, and its names for policies.

use yard_core::Span;
use yard_sim::Quirks;

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
    /// Whether a gang's speed depends on where it lies, where the table says so.
    pub(crate) placement_aware: bool,
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
        placement_aware: true,
        aliases: &[
            ("fjf", "fifo-fit"),
            ("shortest", "srtf"),
            ("shortest-gpu", "srsf"),
            ("dlas-gpu", "tiresias"),
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
        placement_aware: true,
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
        placement_aware: true,
        aliases: &[],
    },
];

impl Compat {
    pub(crate) fn find(name: &str) -> anyhow::Result<&'static Compat> {
        let names = || ALL.iter().map(|compat| compat.name).collect::<Vec<_>>().join(", ");
        let found = ALL.iter().find(|compat| compat.name == name);
        found.ok_or_else(|| anyhow::anyhow!("--compat {name:?} is not known; there are {}", names()))
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
        Quirks { end_grain: if self.ends_in_rounds { round } else { Span::ZERO }, toll: self.toll }
    }
}
