//! Growing and shrinking (Gandiva, section 3.2): a job that may run on more devices than its fewest takes some that
//! would idle, and gives them back as soon as somebody waits for them. It is restarted in the other shape, so it grows
//! only where that costs little of the time it has left. Where its devices lie is not known here: it grows where one
//! node has enough of them, or where all nodes are one.

use std::collections::BTreeMap;

use yard_core::cluster::Level;
use yard_core::ids::{JobIdx, KindId};
use yard_core::job::{JobState, Shape};
use yard_core::view::View;

use super::{GandivaGroup, ways};

/// The most of its remaining time that a restart may take.
const COST_MAX: f64 = 0.1;

/// The shapes of jobs that have grown, or should, by job.
pub(super) fn grown(view: &View, groups: &[GandivaGroup]) -> BTreeMap<JobIdx, u16> {
    let mut single: Vec<JobIdx> =
        groups.iter().filter(|(_, partner)| partner.is_none()).map(|(job, _)| *job).collect();
    single.sort_unstable_by_key(|job| view.run(*job).id);
    let mut spare = spare(view);
    let mut shapes = BTreeMap::new();
    // The youngest give back first.
    for job in single.iter().rev() {
        let Some((kind, extra)) = extra_now(view, *job) else { continue };
        if spare[kind.index()] < 0 {
            spare[kind.index()] += i64::from(extra);
        } else {
            shapes.insert(*job, view.run(*job).shape);
        }
    }
    for job in single {
        if let Some((shape, kind, extra)) = growth(view, job, &spare) {
            spare[kind.index()] -= i64::from(extra);
            shapes.insert(job, shape);
        }
    }
    shapes
}

/// Devices that nobody has and nobody waits for, by kind; below zero where there are too few.
fn spare(view: &View) -> Vec<i64> {
    let mut spare: Vec<i64> = view.kinds.ids().map(|kind| i64::from(view.nodes.free(kind))).collect();
    for job in view.active().filter(|job| view.run(*job).is_waiting()) {
        // It waits for all the kinds it could use: devices of any of them might be what it gets.
        for (shape, _) in ways(view, job) {
            for need in &view.spec(job).shapes[shape as usize].needs {
                spare[need.kind.index()] -= i64::from(need.devices);
            }
        }
    }
    spare
}

/// The kind and number of devices that a job holds beyond its fewest.
fn extra_now(view: &View, job: JobIdx) -> Option<(KindId, u32)> {
    let (run, spec) = (view.run(job), view.spec(job));
    let held = run.lease.map(|_| &spec.shapes[run.shape as usize])?;
    let (kind, least) = least(view, job, held)?;
    let extra = held.devices().checked_sub(least).filter(|extra| *extra > 0)?;
    Some((kind, extra))
}

/// The kind of a shape, and the fewest devices of it on which the job can run.
fn least(view: &View, job: JobIdx, held: &Shape) -> Option<(KindId, u32)> {
    let [need] = held.needs[..] else { return None };
    let on_kind = |(shape, _): &(u16, f64)| {
        let shape = &view.spec(job).shapes[*shape as usize];
        (shape.needs[0].kind == need.kind).then(|| shape.devices())
    };
    ways(view, job).iter().find_map(on_kind).map(|least| (need.kind, least))
}

/// The largest shape that a job may grow into, its kind, and how many devices more that takes.
fn growth(view: &View, job: JobIdx, spare: &[i64]) -> Option<(u16, KindId, u32)> {
    let (run, spec) = (view.run(job), view.spec(job));
    let [need] = spec.shapes[run.shape as usize].needs[..] else { return None };
    let cheap = spec.costs.restart().secs() <= COST_MAX * view.seconds_left(job);
    if run.state != JobState::Running || !spec.pausable || run.stuck || !cheap {
        return None;
    }
    let larger = |(at, shape): (u16, &Shape)| {
        let [more] = shape.needs[..] else { return None };
        let extra = more.devices.checked_sub(need.devices).filter(|extra| *extra > 0)?;
        let fits = more.kind == need.kind && i64::from(extra) <= spare[more.kind.index()];
        let faster = view.speed(job, at) > view.speed(job, run.shape);
        (fits && faster && lies_together(view, shape, extra)).then_some((at, more.kind, extra))
    };
    (0..).zip(spec.shapes.iter()).filter_map(larger).max_by_key(|(_, _, extra)| *extra)
}

/// Whether a shape will surely find its devices in one place, where it must lie there.
fn lies_together(view: &View, shape: &Shape, extra: u32) -> bool {
    let [need] = shape.needs[..] else { return false };
    if shape.level() == Level::Any {
        return true;
    }
    let free: Vec<u32> = view
        .nodes
        .iter()
        .filter(|(_, node)| node.up_count(need.kind) > 0)
        .map(|(_, node)| node.free_count(need.kind))
        .collect();
    match free[..] {
        [only] => only >= extra,
        _ => free.into_iter().any(|free| free >= need.devices),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::allocation::Shares;
    use yard_core::job::Costs;
    use yard_core::units::Span;

    use super::*;
    use crate::testing::{World, policy};

    /// A job that runs on one device and could on two or four, with so many seconds left, among four devices.
    fn world(seconds: f64, restart: f64) -> World {
        let mut world = World::new(&[4]);
        world.submit_all(&[(1, seconds)]);
        let spec = Arc::make_mut(&mut Arc::make_mut(&mut world.view.specs)[0]);
        spec.shapes = [4, 2, 1].map(|devices| Shape::of(KindId(0), devices)).into_iter().collect();
        spec.speeds = Arc::from([3.0, 1.9, 1.0]);
        spec.costs = Costs { start: Span::from_secs(restart), ..Costs::default() };
        let run = &mut Arc::make_mut(&mut world.view.runs)[0];
        run.shape = 2;
        world
    }

    fn shapes(world: &World) -> Vec<Option<u16>> {
        let answer = policy("gandiva").allocate(&world.view).unwrap();
        let (Shares::All(shares) | Shares::Changed(shares)) = answer.shares;
        shares.iter().map(|share| share.shape).collect()
    }

    #[test]
    fn a_job_takes_what_would_idle_and_gives_it_back() {
        let mut world = world(1000.0, 5.0);
        assert_eq!(shapes(&world), [Some(2)], "it begins small");
        world.plan(&mut *policy("gandiva"));
        Arc::make_mut(&mut world.view.runs)[0].shape = 2;
        world.advance(1.0);
        assert_eq!(shapes(&world), [Some(0)], "three devices idle");
        Arc::make_mut(&mut world.view.runs)[0].shape = 0;
        world.plan(&mut *policy("gandiva"));
        assert_eq!(shapes(&world), [Some(0)], "it stays so");
        world.submit_all(&[(1, 50.0)]);
        assert_eq!(shapes(&world), [Some(0), Some(2)], "somebody waits; the newcomer has one shape");
    }

    #[test]
    fn it_does_not_grow_where_the_restart_costs_too_much() {
        let mut world = world(1000.0, 101.0);
        world.plan(&mut *policy("gandiva"));
        Arc::make_mut(&mut world.view.runs)[0].shape = 2;
        assert_eq!(shapes(&world), [Some(2)]);
    }
}
