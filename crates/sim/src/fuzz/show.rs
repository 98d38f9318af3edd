//! A scenario in words, for whoever looks for the cause of a failure.

use std::fmt;

use yard_core::cluster::{Amounts, Kinds, Level, Pool};
use yard_core::job::{JobSpec, Shape};
use yard_core::turns::Turns;
use yard_core::{Span, Time};

use super::Scenario;

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, node) in self.cluster.nodes.iter().enumerate() {
            let pool = |pool: &Pool| {
                let memory = pool.memory_mib.map(|mib| format!(" of {mib} MiB")).unwrap_or_default();
                format!("{} x {}{memory}", pool.devices, self.cluster.kinds.name(pool.kind))
            };
            let pools: Vec<_> = node.pools.iter().map(pool).collect();
            let host = amounts(&node.host);
            let domains: String =
                node.domains.iter().map(|(level, name)| format!(", {} {name}", level.name())).collect();
            writeln!(f, "  node {at}: {}{domains}{host}", pools.join(" + "))?;
        }
        for (at, (time, spec)) in self.jobs.iter().enumerate() {
            writeln!(f, "  job {at} at {time}: {}", job(spec, &self.cluster.kinds))?;
        }
        let mut script: Vec<_> = self.script.iter().collect();
        script.sort_by_key(|(time, _)| *time);
        for (time, input) in script {
            writeln!(f, "  at {time}: {input:?}")?;
        }
        for (time, _) in &self.upsets.begins {
            writeln!(f, "  at {time}: a driver begins, with other settings")?;
        }
        writeln!(f, "  {}", self.settings_said().join(", "))
    }
}

impl Scenario {
    /// How many jobs, nodes and events it has.
    pub fn size(&self) -> String {
        let events = self.script.len() + self.upsets.begins.len();
        format!("{} jobs, {} nodes and {events} events", self.jobs.len(), self.cluster.nodes.len())
    }

    fn settings_said(&self) -> Vec<String> {
        let faults = &self.faults;
        let span = |word: &str, span: Span| (span > Span::ZERO).then(|| format!("{word} {span}"));
        let flag = |word: &str, on: bool| on.then(|| word.to_owned());
        let said = [
            span("rounds of", self.round).or_else(|| Some("no rounds of its own".into())),
            flag("everybody is placed anew each round", self.repack),
            flag("free devices are filled between rounds", self.fill),
            (self.turns != Turns::Owed).then(|| format!("turns {:?}", self.turns)),
            span("plans at least every", self.plan_gap),
            span("checkpoints every", self.checkpoint_every),
            span("back-off", self.upsets.backoff),
            flag("deadlines are promised", self.promises.on),
            flag("nothing else goes wrong", self.promises.calm),
            flag("beliefs are learned", self.learns && !self.promises.calm),
            flag("pairs are known", !self.pairs.is_empty()),
            faults.node_mtbf.map(|mtbf| format!("a node fails every {mtbf}, for {}", faults.repair)),
            faults.job_mtbf.map(|mtbf| format!("a job crashes every {mtbf}")),
            flag("every second job that is stopped lies frozen", faults.freezing),
            (faults.slow_nodes > 0.0).then(|| format!("{} of the nodes are slow", faults.slow_nodes)),
        ];
        said.into_iter().flatten().collect()
    }
}

fn job(spec: &JobSpec, kinds: &Kinds) -> String {
    let shapes = spec.shapes.iter().zip(spec.speeds.iter());
    let shapes: Vec<_> =
        shapes.map(|(one, speed)| format!("{} at {speed:.3}/s", shape(one, kinds))).collect();
    let by = |time: Time| format!("deadline {time} ({:?})", spec.late);
    let said = [
        Some(format!("{} steps on {}", spec.steps, shapes.join(" or "))),
        spec.deadline.map(by),
        (spec.priority != 0).then(|| format!("priority {}", spec.priority)),
        spec.rewards.as_ref().map(|rewards| format!("rewards {rewards:?}")),
        (!spec.after.is_empty()).then(|| format!("after {:?}", spec.after)),
        spec.not_before.map(|time| format!("not before {time}")),
        (!spec.pausable).then(|| "never stopped for others".into()),
        (spec.costs.restart() > Span::ZERO).then(|| format!("{:?}", spec.costs)),
        spec.tenant.as_ref().map(|tenant| format!("tenant {tenant}")),
        spec.sharing.as_ref().map(|sharing| format!("{sharing:?}")),
        spec.training.as_ref().map(|training| format!("{training:?}")),
        spec.regimes.as_ref().map(|regimes| format!("{regimes:?}")),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What there is of a host, where anything is counted.
fn amounts(host: &Amounts) -> String {
    let list: Vec<u32> = (*host).into();
    if list.is_empty() { String::new() } else { format!(", host {list:?}") }
}

fn shape(shape: &Shape, kinds: &Kinds) -> String {
    let need = |need: &yard_core::job::Need| format!("{} x {}", need.devices, kinds.name(need.kind));
    let needs: Vec<_> = shape.needs.iter().map(need).collect();
    let close = match shape.level() {
        Level::Any => String::new(),
        level => format!(" in one {}", level.name()),
    };
    let nodes = shape.nodes.map(|nodes| format!(" on {nodes} nodes")).unwrap_or_default();
    let segment = shape.segment.map(|nodes| format!(" in segments of {nodes}")).unwrap_or_default();
    let wish = Some(shape.close.preferred).filter(|level| *level != shape.level());
    let wish = wish.map(|level| format!(" rather in one {}", level.name())).unwrap_or_default();
    let host = shape.host.as_ref().map(|host| format!(" with {host:?}")).unwrap_or_default();
    format!("{}{nodes}{segment}{close}{wish}{host}", needs.join(" + "))
}
