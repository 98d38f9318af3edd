//! The jobs that are not over as a graph: who comes after whom, and in which ways each may run.

use std::collections::BTreeMap;

use yard_core::ids::{JobId, JobIdx, KindId};
use yard_core::job::Need;
use yard_core::view::View;

/// One way to run a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TaskWay {
    /// Which of its shapes.
    pub(super) shape: u16,
    pub(super) needs: Vec<Need>,
    /// How long it takes so.
    pub(super) seconds: f64,
    /// How long all devices of the cluster would have to work for that, the kinds on average.
    pub(super) area: f64,
}

/// A job.
#[derive(Clone, Debug)]
pub(super) struct FlowTask {
    pub(super) job: JobIdx,
    /// Whether it has its devices already; it then has one way.
    pub(super) runs: bool,
    /// The tasks it comes after, all with smaller numbers.
    pub(super) before: Vec<usize>,
    /// Fastest first; a slower one takes less work. Never empty.
    pub(super) ways: Vec<TaskWay>,
}

/// All jobs that can run, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    pub(super) tasks: Vec<FlowTask>,
    /// Devices by kind.
    pub(super) capacity: Vec<u32>,
}

impl Flow {
    pub(super) fn of(view: &View) -> Flow {
        let capacity: Vec<u32> = view.kinds.ids().map(|kind| view.capacity(kind)).collect();
        let mut flow = Flow { tasks: Vec::new(), capacity };
        let living = (0..).map(JobIdx).zip(&*view.runs).filter(|(_, run)| !run.state.is_final());
        let mut rows: Vec<(JobId, JobIdx)> = living.map(|(row, run)| (run.id, row)).collect();
        rows.sort_unstable();
        let mut numbers: BTreeMap<JobId, usize> = BTreeMap::new();
        for (id, job) in rows {
            let ways = flow.ways(view, job);
            // One that fits nowhere now keeps nobody else from being planned.
            if ways.is_empty() {
                continue;
            }
            numbers.insert(id, flow.tasks.len());
            let before =
                view.spec(job).after.iter().filter_map(|other| numbers.get(other).copied()).collect();
            flow.tasks.push(FlowTask { job, runs: view.run(job).lease.is_some(), before, ways });
        }
        flow
    }

    fn ways(&self, view: &View, job: JobIdx) -> Vec<TaskWay> {
        let (spec, run) = (view.spec(job), view.run(job));
        if run.lease.is_some() {
            let speed = if run.speed > 0.0 { run.speed } else { view.speed(job, run.shape) };
            let seconds = view.steps_left(job) / speed;
            return vec![self.way(run.shape, &spec.shapes[run.shape as usize].needs, seconds)];
        }
        let load = if run.starts > 0 { spec.costs.load.secs() } else { 0.0 };
        let begin = spec.costs.start.secs() + load;
        let usable = spec.usable().map(|shape| (shape, &spec.shapes[shape as usize].needs));
        let fitting =
            usable.filter(|(_, needs)| needs.iter().all(|need| self.have(need.kind) >= need.devices));
        let seconds = |shape| begin + view.steps_left(job) / view.speed(job, shape);
        worthwhile(fitting.map(|(shape, needs)| self.way(shape, needs, seconds(shape))).collect())
    }

    pub(super) fn way(&self, shape: u16, needs: &[Need], seconds: f64) -> TaskWay {
        let part = |need: &Need| f64::from(need.devices) / f64::from(self.have(need.kind).max(1));
        // A job whose speed is not known any more ends some day.
        let seconds = if seconds.is_finite() { seconds } else { FOREVER };
        let area = seconds * needs.iter().map(part).sum::<f64>() / self.kinds() as f64;
        TaskWay { shape, needs: needs.to_vec(), seconds, area }
    }

    fn have(&self, kind: KindId) -> u32 {
        self.capacity.get(kind.index()).copied().unwrap_or(0)
    }

    /// How many kinds there are devices of.
    pub(super) fn kinds(&self) -> usize {
        self.capacity.iter().filter(|devices| **devices > 0).count().max(1)
    }
}

const FOREVER: f64 = 1e9;

/// Without the ways that are no faster than another of no more work.
fn worthwhile(mut ways: Vec<TaskWay>) -> Vec<TaskWay> {
    ways.sort_by(|a, b| a.seconds.total_cmp(&b.seconds).then(a.area.total_cmp(&b.area)));
    let mut least = f64::INFINITY;
    ways.retain(|way| {
        let better = way.area < least;
        least = least.min(way.area);
        better
    });
    ways
}
