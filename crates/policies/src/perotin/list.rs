//! The second phase: list scheduling by counting devices. At each end every job that is ready and fits is started, the
//! one first on whose end the longest path hangs.

use super::flow::{Flow, TaskWay};

/// What comes of it.
pub(super) struct ListedTask {
    /// For each task, the longest path from its start to the end of all.
    pub(super) tails: Vec<f64>,
    /// When the last task ends.
    pub(super) makespan: f64,
}

/// Runs all tasks, each in its way.
pub(super) fn run(flow: &Flow, ways: &[usize]) -> ListedTask {
    let way = |task: usize| &flow.tasks[task].ways[ways[task]];
    let tails = tails(flow, way);
    let mut order: Vec<usize> = (0..flow.tasks.len()).collect();
    // Who runs has its devices.
    order.sort_by(|a, b| {
        let runs = |task: usize| !flow.tasks[task].runs;
        runs(*a).cmp(&runs(*b)).then(tails[*b].total_cmp(&tails[*a])).then(a.cmp(b))
    });
    ListedTask { makespan: makespan(flow, way, &order), tails }
}

fn tails<'a>(flow: &Flow, way: impl Fn(usize) -> &'a TaskWay) -> Vec<f64> {
    let mut tails: Vec<f64> = (0..flow.tasks.len()).map(|task| way(task).seconds).collect();
    for task in (0..flow.tasks.len()).rev() {
        for before in &flow.tasks[task].before {
            tails[*before] = tails[*before].max(way(*before).seconds + tails[task]);
        }
    }
    tails
}

/// When the last one ends if they are started in this order.
pub(super) fn makespan<'a>(flow: &Flow, way: impl Fn(usize) -> &'a TaskWay, order: &[usize]) -> f64 {
    let mut free: Vec<i64> = flow.capacity.iter().map(|devices| i64::from(*devices)).collect();
    let (mut now, mut ends) = (0.0f64, vec![f64::INFINITY; flow.tasks.len()]);
    let (mut waiting, mut running) = (order.to_vec(), Vec::new());
    while !waiting.is_empty() || !running.is_empty() {
        waiting.retain(|task| {
            let ready = flow.tasks[*task].before.iter().all(|other| ends[*other] <= now);
            let fits = way(*task).needs.iter().all(|need| free[need.kind.index()] >= i64::from(need.devices));
            // Devices may have gone since it got them; it holds them all the same.
            let starts = ready && (fits || flow.tasks[*task].runs);
            if starts {
                way(*task).needs.iter().for_each(|need| free[need.kind.index()] -= i64::from(need.devices));
                ends[*task] = now + way(*task).seconds;
                running.push(*task);
            }
            !starts
        });
        let Some(next) = running.iter().map(|task| ends[*task]).min_by(f64::total_cmp) else { break };
        now = next;
        running.retain(|task| {
            let over = ends[*task] <= now;
            if over {
                way(*task).needs.iter().for_each(|need| free[need.kind.index()] += i64::from(need.devices));
            }
            !over
        });
    }
    now
}
