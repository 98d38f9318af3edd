//! A scenario as a list of parts, any of which can be left out: this is how a failing one is made short. What
//! brings a node back stays as long as anything takes it away, so that leaving parts out keeps nobody waiting for good.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use yard_core::ids::{JobId, NodeId};
use yard_core::job::{Costs, JobSpec, Shape};
use yard_core::message::{Edit, Input, NodeChange, Report, Widen};
use yard_core::turns::Turns;
use yard_core::{Span, Time};

use super::Scenario;

/// One part of a scenario. Numbers count in the whole scenario of the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A node.
    Node(usize),
    /// A job.
    Job(usize),
    /// Something that happens.
    Event(usize),
    /// A driver that begins.
    Driver(usize),
    /// A setting other than the plainest.
    Setting(Setting),
    /// Something that one job says.
    Detail(usize, Detail),
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[allow(missing_docs, reason = "each has its word beside it")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($variant,)* }

        impl $name {
            const ALL: &[($name, &str)] = &[$(($name::$variant, $word),)*];

            fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            fn named(word: &str) -> Option<$name> {
                $name::ALL.iter().find(|(_, other)| *other == word).map(|(this, _)| *this)
            }
        }
    };
}

words! {
    /// A setting that can be left out.
    Setting {
        Rounds = "rounds",
        Repack = "repack",
        Fill = "fill",
        Turns = "turns",
        PlanGap = "plan-gap",
        Checkpoints = "checkpoints",
        Backoff = "backoff",
        Promises = "promises",
        Learning = "learning",
        Pairs = "pairs",
        NodeFailures = "node-failures",
        SlowNodes = "slow-nodes",
        Crashes = "crashes",
        Freezing = "freezing",
    }
}

words! {
    /// Something a job can do without.
    Detail {
        After = "after",
        Deadline = "deadline",
        Priority = "priority",
        Training = "training",
        Regimes = "regimes",
        Sharing = "sharing",
        Host = "host",
        NotBefore = "not-before",
        Unpausable = "unpausable",
        Costs = "costs",
        Shapes = "shapes",
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Node(at) => write!(f, "node{at}"),
            Part::Job(at) => write!(f, "job{at}"),
            Part::Event(at) => write!(f, "event{at}"),
            Part::Driver(at) => write!(f, "driver{at}"),
            Part::Setting(setting) => write!(f, "{}", setting.word()),
            Part::Detail(at, detail) => write!(f, "job{at}.{}", detail.word()),
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let number = |prefix: &str, text: &str| text.strip_prefix(prefix)?.parse::<usize>().ok();
        let detail =
            |(job, word): (&str, &str)| Some(Part::Detail(number("job", job)?, Detail::named(word)?));
        let part = match text.split_once('.') {
            Some(both) => detail(both),
            None => number("node", text)
                .map(Part::Node)
                .or_else(|| number("job", text).map(Part::Job))
                .or_else(|| number("event", text).map(Part::Event))
                .or_else(|| number("driver", text).map(Part::Driver))
                .or_else(|| Setting::named(text).map(Part::Setting)),
        };
        part.ok_or_else(|| {
            format!(
                "{text} is no part of a scenario; parts are like node0, job3, job3.sharing, event2, rounds"
            )
        })
    }
}

impl Scenario {
    /// All parts that can be left out.
    pub fn parts(&self) -> Vec<Part> {
        let events = (0..self.script.len()).filter(|at| !self.mends(*at)).map(Part::Event);
        let details = (0..self.jobs.len()).flat_map(|job| {
            let said = Detail::ALL.iter().filter(move |(detail, _)| self.says(job, *detail));
            said.map(move |(detail, _)| Part::Detail(job, *detail))
        });
        let settings = Setting::ALL.iter().filter(|(setting, _)| self.sets(*setting));
        (0..self.jobs.len())
            .map(Part::Job)
            .chain((0..self.cluster.nodes.len()).map(Part::Node))
            .chain(events)
            .chain((0..self.upsets.begins.len()).map(Part::Driver))
            .chain(settings.map(|(setting, _)| Part::Setting(*setting)))
            .chain(details)
            .collect()
    }

    /// Whether there is nothing to run, or nowhere to run it.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() || self.cluster.nodes.is_empty()
    }

    /// The same with these parts only.
    pub fn only(&self, parts: &[Part]) -> Scenario {
        let keep: BTreeSet<Part> = parts.iter().copied().collect();
        let mut scenario = self.clone();
        scenario.leave_details(&keep);
        scenario.leave_settings(&keep);
        scenario.keep_events(&keep);
        scenario.keep_nodes(&kept(self.cluster.nodes.len(), |at| keep.contains(&Part::Node(at))));
        scenario.keep_jobs(&kept(self.jobs.len(), |at| keep.contains(&Part::Job(at))));
        scenario
    }

    fn says(&self, job: usize, detail: Detail) -> bool {
        let spec = &self.jobs[job].1;
        match detail {
            Detail::After => !spec.after.is_empty(),
            Detail::Deadline => spec.deadline.is_some() || spec.rewards.is_some(),
            Detail::Priority => spec.priority != 0,
            Detail::Training => spec.training.is_some(),
            Detail::Regimes => spec.regimes.is_some(),
            Detail::Sharing => spec.sharing.is_some() || spec.tenant.is_some(),
            Detail::Host => spec.asks_hosts(),
            Detail::NotBefore => spec.not_before.is_some(),
            Detail::Unpausable => !spec.pausable,
            Detail::Costs => spec.costs != Costs::default(),
            Detail::Shapes => spec.shapes.len() > 1,
        }
    }

    fn leave_details(&mut self, keep: &BTreeSet<Part>) {
        for job in 0..self.jobs.len() {
            let left = Detail::ALL.iter().filter(|(detail, _)| !keep.contains(&Part::Detail(job, *detail)));
            left.for_each(|(detail, _)| self.leave(job, *detail));
        }
    }

    fn leave(&mut self, job: usize, detail: Detail) {
        let spec = &mut self.jobs[job].1;
        match detail {
            Detail::After => spec.after = Box::default(),
            Detail::Deadline => (spec.deadline, spec.rewards) = (None, None),
            Detail::Priority => spec.priority = 0,
            Detail::Training => spec.training = None,
            Detail::Regimes => {
                spec.regimes = None;
                self.courses.get_mut(job).into_iter().for_each(|course| *course = None);
            }
            Detail::Sharing => (spec.sharing, spec.tenant) = (None, None),
            Detail::Host => {
                let plain = |shape: &Shape| Shape { host: None, ..shape.clone() };
                spec.shapes = spec.shapes.iter().map(plain).collect();
            }
            Detail::NotBefore => spec.not_before = None,
            Detail::Unpausable => spec.pausable = true,
            Detail::Costs => spec.costs = Costs::default(),
            Detail::Shapes => {
                spec.shapes = spec.shapes[..1].into();
                spec.speeds = spec.speeds[..1].into();
            }
        }
    }

    fn sets(&self, setting: Setting) -> bool {
        match setting {
            Setting::Rounds => self.round > Span::ZERO,
            Setting::Repack => self.repack,
            Setting::Fill => self.fill,
            Setting::Turns => self.turns != Turns::Owed,
            Setting::PlanGap => self.plan_gap > Span::ZERO,
            Setting::Checkpoints => self.checkpoint_every > Span::ZERO,
            Setting::Backoff => self.upsets.backoff > Span::ZERO,
            Setting::Promises => self.promises.on,
            Setting::Learning => self.learns,
            Setting::Pairs => !self.pairs.is_empty(),
            Setting::NodeFailures => self.faults.node_mtbf.is_some(),
            Setting::SlowNodes => self.faults.slow_nodes > 0.0,
            Setting::Crashes => self.faults.job_mtbf.is_some(),
            Setting::Freezing => self.faults.freezing,
        }
    }

    fn leave_settings(&mut self, keep: &BTreeSet<Part>) {
        let left = Setting::ALL.iter().filter(|(setting, _)| !keep.contains(&Part::Setting(*setting)));
        for (setting, _) in left {
            match setting {
                Setting::Rounds => self.round = Span::ZERO,
                Setting::Repack => self.repack = false,
                Setting::Fill => self.fill = false,
                Setting::Turns => self.turns = Turns::Owed,
                Setting::PlanGap => self.plan_gap = Span::ZERO,
                Setting::Checkpoints => self.checkpoint_every = Span::ZERO,
                Setting::Backoff => self.upsets.backoff = Span::ZERO,
                Setting::Promises => self.promises.on = false,
                Setting::Learning => self.learns = false,
                Setting::Pairs => self.pairs = Default::default(),
                Setting::NodeFailures => self.faults.node_mtbf = None,
                Setting::SlowNodes => self.faults.slow_nodes = 0.0,
                Setting::Crashes => self.faults.job_mtbf = None,
                Setting::Freezing => self.faults.freezing = false,
            }
        }
    }

    /// Whether an event only makes good what others did.
    fn mends(&self, at: usize) -> bool {
        let undone = |other: usize| matter(&self.script[other].1) == matter(&self.script[at].1);
        self.restores(at) && (0..self.script.len()).any(|other| undone(other) && !self.restores(other))
    }

    fn restores(&self, at: usize) -> bool {
        let lends = |event: &(Time, Input)| matches!(event.1, Input::Node(NodeChange::Lent { .. }));
        match &self.script[at].1 {
            Input::Node(NodeChange::Resume(_) | NodeChange::Health { bad: 0, .. }) => true,
            Input::Release(_) => true,
            Input::Node(NodeChange::Lent { .. }) => !self.script[at + 1..].iter().any(lends),
            _ => false,
        }
    }

    fn keep_events(&mut self, keep: &BTreeSet<Part>) {
        let of = |at: usize| matter(&self.script[at].1);
        let chosen = |at: usize| keep.contains(&Part::Event(at)) && !self.mends(at);
        let upset: BTreeSet<_> = (0..self.script.len()).filter(|at| chosen(*at)).filter_map(of).collect();
        let stays = |at: usize| {
            if self.mends(at) { of(at).is_some_and(|it| upset.contains(&it)) } else { chosen(at) }
        };
        let stays: Vec<bool> = (0..self.script.len()).map(stays).collect();
        retain(&mut self.script, |at| stays[at]);
        retain(&mut self.upsets.begins, |at| keep.contains(&Part::Driver(at)));
    }

    fn keep_nodes(&mut self, new: &[Option<usize>]) {
        retain(&mut self.cluster.nodes, |at| new[at].is_some());
        let change = |(time, input): (Time, Input)| {
            let Input::Node(change) = input else { return Some((time, input)) };
            Some((time, Input::Node(on_nodes(change, new)?)))
        };
        self.script = std::mem::take(&mut self.script).into_iter().filter_map(change).collect();
    }

    fn keep_jobs(&mut self, new: &[Option<usize>]) {
        retain(&mut self.jobs, |at| new[at].is_some());
        retain(&mut self.courses, |at| new[at].is_some());
        for (_, spec) in &mut self.jobs {
            come_after(spec, new);
        }
        let change = |(time, input): (Time, Input)| Some((time, of_jobs(input, new)?));
        self.script = std::mem::take(&mut self.script).into_iter().filter_map(change).collect();
    }
}

/// New numbers for what is kept.
fn kept(of: usize, keep: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
    let mut next = 0..;
    (0..of).map(|at| keep(at).then(|| next.next().unwrap_or_default())).collect()
}

fn retain<T>(list: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
    let mut at = 0..;
    list.retain(|_| at.next().is_some_and(&keep));
}

/// What an event is about, so that one that mends it is found.
fn matter(input: &Input) -> Option<(u8, Option<u64>)> {
    match input {
        Input::Node(
            NodeChange::Drain(node)
            | NodeChange::Leave(node)
            | NodeChange::Fail(node)
            | NodeChange::Resume(node),
        ) => Some((0, Some(node.0.into()))),
        Input::Node(NodeChange::Health { node, .. }) => Some((1, Some(node.0.into()))),
        Input::Node(NodeChange::Lent { .. }) => Some((2, None)),
        Input::Hold(job) | Input::Release(job) => Some((3, Some(job.0))),
        _ => None,
    }
}

fn on_nodes(change: NodeChange, new: &[Option<usize>]) -> Option<NodeChange> {
    let at = |node: NodeId| new.get(node.0 as usize).copied().flatten().map(|at| NodeId(at as u32));
    Some(match change {
        NodeChange::Join(spec) => NodeChange::Join(spec),
        NodeChange::Drain(node) => NodeChange::Drain(at(node)?),
        NodeChange::Resume(node) => NodeChange::Resume(at(node)?),
        NodeChange::Leave(node) => NodeChange::Leave(at(node)?),
        NodeChange::Fail(node) => NodeChange::Fail(at(node)?),
        NodeChange::Health { node, bad } => NodeChange::Health { node: at(node)?, bad },
        NodeChange::Moved { node, domains } => NodeChange::Moved { node: at(node)?, domains },
        NodeChange::Counted { node, host, parts } => NodeChange::Counted { node: at(node)?, host, parts },
        NodeChange::Lent { among, nodes } => {
            let among: Vec<_> = among.into_iter().filter_map(at).collect();
            let nodes = nodes.min(among.len() as u32);
            NodeChange::Lent { among, nodes }
        }
    })
}

fn of_jobs(input: Input, new: &[Option<usize>]) -> Option<Input> {
    // Numbers beyond the last job stay beyond it.
    let beyond = |at: usize| new.iter().flatten().count() + at - new.len();
    let id = |job: JobId| {
        let at = job.index();
        let now = if at < new.len() { new[at] } else { Some(beyond(at)) };
        now.map(|at| JobId(at as u64))
    };
    Some(match input {
        Input::Cancel(job) => Input::Cancel(id(job)?),
        Input::Hold(job) => Input::Hold(id(job)?),
        Input::Release(job) => Input::Release(id(job)?),
        Input::Requeue(job) => Input::Requeue(id(job)?),
        Input::Widen(widen) => Input::Widen(Box::new(Widen { job: id(widen.job)?, ..*widen })),
        Input::Edit(edit) => Input::Edit(Box::new(Edit { job: id(edit.job)?, ..*edit })),
        Input::Report(report) => Input::Report(Report { job: id(report.job)?, ..report }),
        other => other,
    })
}

fn come_after(spec: &mut JobSpec, new: &[Option<usize>]) {
    let still = spec.after.iter().filter_map(|job| new[job.index()].map(|at| JobId(at as u64)));
    spec.after = still.collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_make_the_whole_and_none_make_nothing() {
        for seed in 0..200 {
            let scenario = Scenario::new(seed);
            let parts = scenario.parts();
            assert!(format!("{:?}", scenario.only(&parts)) == format!("{scenario:?}"), "seed {seed}");
            let nothing = scenario.only(&[]);
            assert!(
                nothing.jobs.is_empty() && nothing.cluster.nodes.is_empty() && nothing.parts().is_empty()
            );
        }
    }

    #[test]
    fn parts_are_read_as_they_are_written() {
        let parts = (0..50).flat_map(|seed| Scenario::new(seed).parts());
        for part in parts {
            assert_eq!(part.to_string().parse(), Ok(part));
        }
        let refused = "job3.colour".parse::<Part>().expect_err("there is no such detail");
        assert!(refused.contains("job3.colour is no part"), "{refused}");
    }

    #[test]
    fn a_node_that_is_taken_away_comes_back_whatever_is_left_out() {
        let takes = |input: &Input| {
            matches!(input, Input::Node(NodeChange::Drain(_) | NodeChange::Leave(_) | NodeChange::Fail(_)))
        };
        let backs = |input: &Input| matches!(input, Input::Node(NodeChange::Resume(_)));
        let mut seen = 0;
        for seed in 0..100 {
            let scenario = Scenario::new(seed);
            let nodes = (0..scenario.cluster.nodes.len()).map(Part::Node);
            let away = scenario.script.iter().position(|(_, input)| takes(input));
            let Some(away) = away else { continue };
            let short = scenario.only(&nodes.chain([Part::Event(away)]).collect::<Vec<_>>());
            assert!(short.script.len() >= 2 && short.script[1..].iter().all(|(_, input)| backs(input)));
            seen += 1;
        }
        assert!(seen > 20, "only {seen} scenarios take a node away");
    }
}
