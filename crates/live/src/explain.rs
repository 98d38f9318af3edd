//! Why a job waits, in words: the engine's answer with names instead of numbers, a sentence, and remedies as people
//! would type them.

mod ways;

use std::collections::BTreeMap;

use yard_core::Time;
use yard_core::cluster::{Level, ResourceId};
use yard_core::explain::{Apart, Explained, KindCount, Reason, Remedy};
use yard_core::ids::{JobId, KindId, NodeId};

use crate::views::Explanation;

/// What things are called.
pub struct Names<'a> {
    /// Kinds.
    pub kind: &'a dyn Fn(KindId) -> String,
    /// Nodes.
    pub node: &'a dyn Fn(NodeId) -> String,
    /// What is counted of hosts.
    pub resource: &'a dyn Fn(ResourceId) -> String,
}

/// The engine's answer for people. `state` is the job's, as they see it.
pub fn words(told: &Explained, state: &str, now: Time, names: &Names<'_>) -> Explanation {
    let kinds = told.kinds.iter().map(|kind| ((names.kind)(kind.kind), kind));
    Explanation {
        job: told.job.0,
        state: state.to_owned(),
        reason: word(told.reason).to_owned(),
        text: sentence(told, now, names),
        numbers: numbers(told),
        ahead: told
            .ahead
            .iter()
            .map(|ahead| ahead.job.0)
            .chain(told.awaits.iter().map(|job| job.0))
            .collect(),
        remedies: told.remedies.iter().map(|remedy| advice(*remedy, names)).collect(),
        prices: kinds.filter_map(|(name, kind)| Some((name, kind.price?))).collect(),
        ways: ways::views(told, names),
        length: None,
        estimate: None,
    }
}

/// A job that is over needs no engine.
pub fn over(job: u64, state: &str, reason: Option<&str>) -> Explanation {
    let why = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    Explanation {
        job,
        state: state.to_owned(),
        reason: "over".to_owned(),
        text: format!("The job is over: {state}{why}."),
        numbers: BTreeMap::new(),
        ahead: Vec::new(),
        remedies: Vec::new(),
        prices: BTreeMap::new(),
        ways: Vec::new(),
        length: None,
        estimate: None,
    }
}

fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Running => "running",
        Reason::Held => "held",
        Reason::Dependency => "dependency",
        Reason::Starting => "starting",
        Reason::Stopping => "stopping",
        Reason::Capacity => "capacity",
        Reason::Gang => "gang",
        Reason::Topology => "topology",
        Reason::Host => "host",
        Reason::Priority => "priority",
        Reason::Share => "share",
        Reason::Nodes => "nodes",
        Reason::Deadline => "deadline",
        Reason::Price => "price",
        Reason::Frozen => "frozen",
        Reason::Policy => "policy",
    }
}

fn sentence(told: &Explained, now: Time, names: &Names<'_>) -> String {
    let kinds = join(told.kinds.iter().map(|kind| of(kind, names)));
    match told.reason {
        Reason::Running => ways::sentence(told, names),
        Reason::Held => held(told, now),
        Reason::Dependency => waits_for(&told.awaits),
        Reason::Starting => "The job is starting: it has devices, or is about to get them back.".into(),
        Reason::Stopping => "The job was told to stop and is saving its work.".into(),
        Reason::Capacity => format!("Not enough devices are free: {kinds}."),
        Reason::Gang => format!("Too large for the nodes that are up, even when they are empty: {kinds}."),
        Reason::Topology => apart(told, &kinds),
        Reason::Host => host(told, &kinds, names),
        Reason::Priority => {
            let ahead = told.n_ahead;
            let jobs = plural(ahead, "job ahead of it holds, or is", "jobs ahead of it hold, or are");
            format!("{ahead} {jobs} about to get, the devices it could use{}: {kinds}.", urgent(told))
        }
        Reason::Share => format!(
            "Jobs take turns here; it is another job's turn. This job gets {:.0} % of the time.",
            told.share * 100.0
        ),
        Reason::Deadline => format!(
            "Devices it could use are reserved for jobs with deadlines, which need them before this job would finish: \
             {kinds}."
        ),
        Reason::Price => format!("At current prices, other jobs make better use of the devices: {kinds}."),
        Reason::Nodes => {
            let kinds: Vec<_> = told.kinds.iter().map(|kind| (names.kind)(kind.kind)).collect();
            let kinds = if kinds.is_empty() { "devices it may use".into() } else { kinds.join(" or ") };
            format!("No node with {kinds} is up.")
        }
        Reason::Frozen => {
            "The job is frozen on the devices where it ran, and continues when they are free; elsewhere it \
             would have to \
             restart."
                .into()
        }
        Reason::Policy => "The policy has not planned it yet; the next round will.".into(),
    }
}

/// What is not free close enough together.
fn apart(told: &Explained, kinds: &str) -> String {
    let Some(Apart { level, nodes, devices, most }) = told.apart else {
        return format!("Enough devices are free, but not close enough together: {kinds}.");
    };
    let within = match level {
        Level::Any => String::new(),
        level => format!(" in one {}", level.name()),
    };
    match nodes {
        Some(nodes) => format!(
            "Enough devices are free, but the job needs {nodes} nodes with {devices} free devices each{within}, and there are \
             {most}: {kinds}."
        ),
        None => format!(
            "Enough devices are free, but the job needs {devices}{within}, and no {} has more than {most} free: {kinds}.",
            level.name()
        ),
    }
}

/// What hosts are short of.
fn host(told: &Explained, kinds: &str, names: &Names<'_>) -> String {
    let Some(short) = told.short else {
        return format!("Enough devices are free, but their nodes are short of cores or memory: {kinds}.");
    };
    let amount = |amount: u32| match short.resource {
        ResourceId::CORES => format!("{} cores", f64::from(amount) / 1000.0),
        ResourceId::MEMORY => format!("{:.1} GiB of memory", f64::from(amount) / 1024.0),
        other => format!("{amount} {}", (names.resource)(other)),
    };
    format!(
        "Enough devices are free, but the job needs {} on a node, and nodes with free devices have at most {} \
         free: {kinds}.",
        amount(short.needed),
        amount(short.free)
    )
}

/// How many of those in front are there by their priority, where any are.
fn urgent(told: &Explained) -> String {
    match told.n_urgent {
        0 => String::new(),
        all if all == told.n_ahead => ", because of their priority".into(),
        some => format!(", {some} of them because of their priority"),
    }
}

fn held(told: &Explained, now: Time) -> String {
    let left = told.until.map_or(0.0, |until| (until.secs() - now.secs()).max(0.0));
    if left < 1.0 {
        return "The job may start now; it is added to the queue at any moment.".into();
    }
    format!("The job may start in {left:.0} s: it has a begin time, or waits after a failure.")
}

/// Which jobs one waits for to succeed.
pub(crate) fn waits_for(awaits: &[JobId]) -> String {
    const NAMED: usize = 10;
    let jobs: Vec<_> = awaits.iter().take(NAMED).map(JobId::to_string).collect();
    let more =
        if awaits.len() > NAMED { format!(" and {} more", awaits.len() - NAMED) } else { String::new() };
    let (word, does) = if awaits.len() == 1 { ("job", "succeeds") } else { ("jobs", "succeed") };
    format!("The job depends on other jobs and starts once {word} {}{more} {does}.", jobs.join(", "))
}

fn of(kind: &KindCount, names: &Names<'_>) -> String {
    let name = (names.kind)(kind.kind);
    let KindCount { needed, free, together, up, .. } = *kind;
    format!("{name} needs {needed}, free {free} of {up} ({together} on one node)")
}

fn numbers(told: &Explained) -> BTreeMap<String, f64> {
    let least = |pick: fn(&KindCount) -> u32| told.kinds.iter().map(pick).min().unwrap_or(0).into();
    let sum = |pick: fn(&KindCount) -> u32| told.kinds.iter().map(pick).sum::<u32>().into();
    let numbers = [
        ("needed", least(|kind| kind.needed)),
        ("free", sum(|kind| kind.free)),
        ("up", sum(|kind| kind.up)),
        ("total", sum(|kind| kind.total)),
        ("ahead", told.n_ahead as f64),
        ("urgent", told.n_urgent as f64),
        ("share", told.share),
    ];
    numbers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn advice(remedy: Remedy, names: &Names<'_>) -> String {
    match remedy {
        Remedy::Fewer { kind, devices } => {
            let word = plural(devices as usize, "device", "devices");
            format!("ask for {devices} {word} of kind {}: it would start now", (names.kind)(kind))
        }
        Remedy::Kind { kind, free } => {
            let name = (names.kind)(kind);
            format!("allow kind {name}, of which {free} are free (--kind {name}): it would start now")
        }
        Remedy::Resume { node } => {
            let name = (names.node)(node);
            format!("resume node {name}: yard resume {name}")
        }
        Remedy::Repair { node } => format!("repair the broken devices of node {}", (names.node)(node)),
    }
}

fn plural<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use yard_core::cluster::Shortage;
    use yard_core::explain::{Ahead, Way};

    fn way(kind: u16, devices: u32, speed: f64, held: bool) -> Way {
        Way { kind: KindId(kind), devices, speed, price: Some(f64::from(devices) * 0.1), held }
    }

    fn told(reason: Reason) -> Explained {
        let count = |kind, free, price| KindCount {
            kind: KindId(kind),
            needed: 8,
            free,
            together: 2,
            up: 16,
            total: 32,
            price,
        };
        Explained {
            job: JobId(7),
            reason,
            until: Some(Time::from_secs(130.0)),
            awaits: if reason == Reason::Dependency { vec![JobId(4), JobId(5)] } else { Vec::new() },
            short: Some(Shortage { resource: ResourceId::CORES, needed: 8_000, free: 2_500 }),
            apart: Some(Apart { level: Level::Rack, nodes: None, devices: 8, most: 6 }),
            share: 0.25,
            kinds: vec![count(0, 4, Some(1.5)), count(1, 6, None)],
            ahead: vec![Ahead { job: JobId(3), devices: 12, urgent: false }],
            n_ahead: 1,
            n_urgent: 0,
            ways: vec![way(0, 8, 3.0, false), way(0, 4, 2.0, true)],
            remedies: vec![
                Remedy::Fewer { kind: KindId(0), devices: 4 },
                Remedy::Kind { kind: KindId(1), free: 8 },
                Remedy::Resume { node: NodeId(5) },
            ],
        }
    }

    fn explained(reason: Reason) -> Explanation {
        let kind = |kind: KindId| ["h100", "a100"][kind.index()].to_owned();
        let node = |node: NodeId| format!("node-{node}");
        words(
            &told(reason),
            "pending",
            Time::from_secs(100.0),
            &Names { kind: &kind, node: &node, resource: &|_| "cores".into() },
        )
    }

    #[test]
    fn reasons_are_sentences_with_their_numbers() {
        let all = [
            Reason::Capacity,
            Reason::Priority,
            Reason::Share,
            Reason::Held,
            Reason::Gang,
            Reason::Topology,
            Reason::Host,
            Reason::Dependency,
            Reason::Running,
            Reason::Price,
            Reason::Deadline,
        ];
        let lines: String = all.map(|reason| explained(reason).text + "\n").concat();
        expect![[r#"
            Not enough devices are free: h100 needs 8, free 4 of 16 (2 on one node); a100 needs 8, free 6 of 16 (2 on one node).
            1 job ahead of it holds, or is about to get, the devices it could use: h100 needs 8, free 4 of 16 (2 on one node); a100 needs 8, free 6 of 16 (2 on one node).
            Jobs take turns here; it is another job's turn. This job gets 25 % of the time.
            The job may start in 30 s: it has a begin time, or waits after a failure.
            Too large for the nodes that are up, even when they are empty: h100 needs 8, free 4 of 16 (2 on one node); a100 needs 8, free 6 of 16 (2 on one node).
            Enough devices are free, but the job needs 8 in one rack, and no rack has more than 6 free: h100 needs 8, free 4 of 16 (2 on one node); a100 needs 8, free 6 of 16 (2 on one node).
            Enough devices are free, but the job needs 8 cores on a node, and nodes with free devices have at most 2.5 cores free: h100 needs 8, free 4 of 16 (2 on one node); a100 needs 8, free 6 of 16 (2 on one node).
            The job depends on other jobs and starts once jobs 4, 5 succeed.
            The job runs on 4 devices of kind h100; 8 devices of kind h100 would be 1.5 times as fast, for 2.0 times the price.
            At current prices, other jobs make better use of the devices: h100 needs 8, free 4 of 16 (2 on one node); a100 needs 8, free 6 of 16 (2 on one node).
            Devices it could use are reserved for jobs with deadlines, which need them before this job would finish: h100 needs 8, free 4 of 16 (2 on one node); a100 needs 8, free 6 of 16 (2 on one node).
        "#]]
        .assert_eq(&lines);
    }

    #[test]
    fn a_time_that_has_come_is_not_said_as_nothing() {
        let now = Time::from_secs(130.0);
        let name = |_: KindId| String::new();
        let node = |_: NodeId| String::new();
        let text = words(
            &told(Reason::Held),
            "pending",
            now,
            &Names { kind: &name, node: &node, resource: &|_| "cores".into() },
        )
        .text;
        assert!(text.contains("may start now") && !text.contains("0 s"), "{text}");
    }

    #[test]
    fn remedies_can_be_typed_and_numbers_read() {
        let explanation = explained(Reason::Priority);
        expect![[r#"
            [
                "ask for 4 devices of kind h100: it would start now",
                "allow kind a100, of which 8 are free (--kind a100): it would start now",
                "resume node node-5: yard resume node-5",
            ]
        "#]]
        .assert_debug_eq(&explanation.remedies);
        assert_eq!(explanation.reason, "priority");
        assert_eq!((explanation.numbers["needed"], explanation.numbers["free"]), (8.0, 10.0));
        assert_eq!(explanation.prices, BTreeMap::from([("h100".to_owned(), 1.5)]));
        assert_eq!(over(7, "failed", Some("exit code 1")).text, "The job is over: failed (exit code 1).");
    }
}
