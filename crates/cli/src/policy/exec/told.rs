//! A view as a program is told it: everything once, then the rows that changed. What was told is remembered by row, so
//! that a change that is told twice, or a row that is used again, still reads right.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_core::Time;
use yard_core::cluster::{Kinds, NodeState};
use yard_core::ids::{JobId, JobIdx};
use yard_core::job::JobSpec;
use yard_core::view::View;

use super::words::{ExecJob, ExecNode, ShapeRow, SpecRow, ViewLine};

/// What one program was told.
#[derive(Default)]
pub(super) struct Memory {
    rows: BTreeMap<JobIdx, (JobId, Arc<JobSpec>)>,
    /// Where the jobs are that it knows.
    pub(super) ids: BTreeMap<u64, JobIdx>,
    begun: bool,
}

impl Memory {
    /// The line for this view.
    pub(super) fn line<'a>(&mut self, view: &'a View, seq: u64) -> ViewLine<'a> {
        let full = view.changed.all || !self.begun;
        let (ended, jobs) = if full { self.all(view) } else { self.changes(view) };
        self.begun = true;
        let places = full || view.changed.nodes;
        ViewLine {
            seq,
            now_us: view.now.0,
            round_us: view.round.0,
            full,
            kinds: places.then(|| view.kinds.ids().map(|kind| view.kinds.name(kind)).collect()),
            nodes: places.then(|| nodes(view)),
            ended,
            jobs,
        }
    }

    fn all<'a>(&mut self, view: &'a View) -> (Vec<u64>, Vec<ExecJob<'a>>) {
        (self.rows, self.ids) = Default::default();
        (Vec::new(), view.active().map(|job| self.row(view, job)).collect())
    }

    fn changes<'a>(&mut self, view: &'a View) -> (Vec<u64>, Vec<ExecJob<'a>>) {
        let changed = &view.changed;
        let rows = changed.ended.iter().chain(&changed.added).chain(&changed.touched).copied();
        let mut rows: BTreeSet<JobIdx> = rows.collect();
        // What is believed of the lengths of jobs that run changes as they run.
        if view.lengths.is_some() {
            rows.extend(view.active().filter(|job| view.run(*job).holds()));
        }
        let ended = rows.iter().filter_map(|job| self.forget(view, *job)).collect();
        let rows = rows.into_iter().filter(|job| view.run(*job).is_active());
        (ended, rows.map(|job| self.row(view, job)).collect())
    }

    /// Forgets who was in a row and is there no longer.
    fn forget(&mut self, view: &View, job: JobIdx) -> Option<u64> {
        let (before, _) = self.rows.get(&job)?;
        let run = view.run(job);
        if run.is_active() && run.id == *before {
            return None;
        }
        let (before, _) = self.rows.remove(&job).expect("it was there");
        self.ids.remove(&before.0);
        Some(before.0)
    }

    fn row<'a>(&mut self, view: &'a View, job: JobIdx) -> ExecJob<'a> {
        let (run, spec) = (view.run(job), &view.specs[job.index()]);
        let before = self.rows.insert(job, (run.id, spec.clone()));
        let same = before.is_some_and(|(id, told)| id == run.id && Arc::ptr_eq(&told, spec));
        self.ids.insert(run.id.0, job);
        ExecJob {
            id: run.id.0,
            row: job.0,
            spec: (!same).then(|| submitted(spec, &view.kinds)),
            state: run.state,
            submitted_us: run.submitted.0,
            since_us: run.since.0,
            first_start_us: run.first_start.map(|time| time.0),
            done: run.done,
            as_of_us: run.as_of.0,
            speed: run.speed,
            shape: run.shape,
            devices: run.devices,
            held_since_us: run.held_since.0,
            attained_us: run.attained,
            executed_us: run.executed.0,
            starts: run.starts,
            preemptions: run.preemptions,
            failures: run.failures,
            rank: (run.rank.0, run.rank.1),
            promise_us: run.promise.map(|time| time.0),
            steps_left: view.lengths.is_some().then(|| view.steps_left(job)),
        }
    }
}

fn submitted<'a>(spec: &'a JobSpec, kinds: &'a Kinds) -> SpecRow<'a> {
    let shape = |(shape, speed): (&yard_core::job::Shape, &f64)| ShapeRow {
        gpus: shape.needs.iter().map(|need| (kinds.name(need.kind), need.devices)).collect(),
        speed: *speed,
        spread: shape.level().name(),
        batch_size: shape.batch_size,
    };
    SpecRow {
        name: &spec.name,
        user: spec.user.as_deref(),
        tenant: spec.tenant.as_deref(),
        weight: spec.weight,
        priority: spec.priority,
        deadline_us: spec.deadline.map(|Time(us)| us),
        steps: spec.steps,
        pausable: spec.pausable,
        shapes: spec.shapes.iter().zip(&*spec.speeds).map(shape).collect(),
    }
}

/// The nodes that take jobs, a row for each of their kinds.
fn nodes(view: &View) -> Vec<ExecNode<'_>> {
    let up = view.nodes.iter().filter(|(_, node)| node.state == NodeState::Up);
    let pools = up.flat_map(|(_, node)| node.spec.pools.iter().map(move |pool| (node, pool)));
    pools
        .map(|(node, pool)| ExecNode {
            name: &node.spec.name,
            kind: view.kinds.name(pool.kind),
            gpus: node.up_count(pool.kind),
            memory_mib: pool.memory_mib,
        })
        .collect()
}
