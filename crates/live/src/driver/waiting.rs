//! What jobs wait for, in a few words. It is worked out for every job that waits, again and again as nodes change, so it
//! asks nothing of the policy: `yard explain` does, for one job.

use std::ops::Bound::{Excluded, Unbounded};

use yard_core::Engine;
use yard_core::ids::{JobId, KindId};
use yard_core::job::JobSpec;

use super::Driver;

/// Jobs that are looked at in one go.
const AT_ONCE: usize = 4_096;

/// Kinds that are named.
const NAMED: usize = 3;

/// How far the look at waiting jobs has come.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Devices in service and free ones, by kind, when the look began.
    seen: Vec<(u32, u32)>,
    /// The last job that was looked at; none: all were.
    at: Option<JobId>,
}

impl Driver {
    /// Brings up to date what waiting jobs wait for, some at a time.
    pub(super) fn look_for_waiting(&mut self) {
        let (nodes, kinds) = (self.engine.nodes(), self.engine.kinds());
        let now: Vec<_> = kinds.ids().map(|kind| (nodes.up(kind), nodes.free(kind))).collect();
        let from = match self.waiting.at {
            Some(job) => Excluded(job),
            None if now == self.waiting.seen => return,
            None => Unbounded,
        };
        if from == Unbounded {
            self.waiting.seen = now;
        }
        let some = self.records.all.range((from, Unbounded)).take(AT_ONCE);
        let some: Vec<JobId> = some.map(|(job, _)| *job).collect();
        self.waiting.at = some.last().copied().filter(|_| some.len() == AT_ONCE);
        let stale = some.into_iter().filter(|job| self.waits_otherwise(*job));
        let stale: Vec<JobId> = stale.collect();
        self.changed_jobs.extend(stale);
    }

    /// Whether people are shown something else than what a job waits for now.
    fn waits_otherwise(&self, job: JobId) -> bool {
        let known = self.engine.job(job).zip(self.engine.job_spec(job)).zip(self.records.all.get(&job));
        known.is_some_and(|((run, spec), record)| {
            run.is_waiting() && record.waits_for(&self.engine, run, spec) != record.view.reason
        })
    }
}

/// What a job waits for that nothing but the lack of devices, or the order of jobs, holds back.
pub(super) fn wanted(engine: &Engine, spec: &JobSpec) -> String {
    let nodes = engine.nodes();
    let wants = wants(spec);
    let all = |holds: &dyn Fn(KindId, u32) -> bool| wants.iter().all(|(kind, least)| holds(*kind, *least));
    let list = |word: &dyn Fn(KindId, u32) -> String| list(&wants, word);
    let name = |kind: KindId| engine.kinds().name(kind);
    if wants.is_empty() || !all(&|kind, least| nodes.free(kind) < least) {
        "waits for its turn".into()
    } else if all(&|kind, _| nodes.up(kind) == 0) {
        format!("no {} node is up", list(&|kind, _| name(kind).to_owned()))
    } else if all(&|kind, least| nodes.up(kind) < least) {
        format!(
            "needs {}",
            list(&|kind, least| format!("{least} {}, {} in service", name(kind), nodes.up(kind)))
        )
    } else {
        format!("waits for {}", list(&|kind, least| format!("{least} {}", name(kind))))
    }
}

/// The fewest devices of each kind that will do, kinds in the order of its shapes.
fn wants(spec: &JobSpec) -> Vec<(KindId, u32)> {
    let mut wants: Vec<(KindId, u32)> = Vec::new();
    for need in spec.usable().flat_map(|shape| &spec.shapes[shape as usize].needs) {
        match wants.iter_mut().find(|(kind, _)| *kind == need.kind) {
            Some((_, least)) => *least = (*least).min(need.devices),
            None => wants.push((need.kind, need.devices)),
        }
    }
    wants
}

/// `a or b or c`, and no more than that.
fn list(wants: &[(KindId, u32)], word: &dyn Fn(KindId, u32) -> String) -> String {
    let named: Vec<_> = wants.iter().take(NAMED).map(|(kind, least)| word(*kind, *least)).collect();
    let more = if wants.len() > NAMED { " or others" } else { "" };
    named.join(" or ") + more
}
