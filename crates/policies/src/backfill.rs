//! EASY backfilling (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem and Feitelson,
//! "Utilization, predictability, workloads, and user runtime estimates in scheduling the IBM SP2 with
//! backfilling", IEEE TPDS 2001): first in, first out, with a reservation for the head.
//!
//! Objective: in order of submission inside each class of priority, the head starts at t* = min{t : free(t) ≥ g_head}, as running jobs' believed ends say; any
//! later job starts now if it fits now and does not move t*: now + r_j ≤ t*, or g_j is to spare at t*.
//! Reads: submission times, free devices by kind, believed ends of running jobs, lengths of waiting ones.
//! Cost: O(log jobs) for each job that changed, O(demands · log waiting) for each that starts, where a
//! demand is a distinct list of shapes, and one step for each end before t* and for each job that is short
//! enough, where its demand fits only in time; O(running) where everything or the nodes changed, or where a
//! permission falls. Asking on change is enough: as time passes, t* stands still and whoever was too long
//! for the gap stays so.
//! Not to be used where durations are guesses far below the truth: the reservation then slides. It
//! counts devices; where the placer wants them close together the head may wait longer, but not for
//! later jobs: the first job that cannot be placed blocks the rest.

use yard_core::allocation::{Allocation, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::{JobState, Length, Shape};
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::units::{Span, Time};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::counts::KindCounts;
use crate::index::{Index, Lines, Permits};
use crate::ranked::{finite, in_shape};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "backfill",
    live: "",
    family: "queue",
    paper: "EASY, Lifka, JSSPP 1995",
    there: "the reservation of the head and who may go before it, by believed ends",
    missing: "reservations behind the head (conservative backfilling)",
    about: "In order of submission; the head has a reservation and shorter jobs fill the gap before it",
    params: &[],
    rounds: false,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make: |_| Ok(Box::new(Backfill::default())),
};

#[derive(Default)]
struct Backfill {
    /// Running jobs by believed end.
    ends: Index<Time>,
    waiting: Lines,
    permits: Permits,
}

impl Policy for Backfill {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let running = |job: JobIdx| view.is_running(job).then(|| end(view, job, view.run(job).shape));
        let new = self.ends.follow(view, running);
        self.waiting.follow(view, |job| length(view, job));
        let started = BackfillPlan::make(view, &self.ends, &self.waiting);
        let all = self.permits.follow(view, started.iter().map(|start| start.job).collect());
        let shares = started.iter().map(|start| in_shape(view, start.job, start.shape));
        if !(new || all) {
            return Ok(Allocation::queue(Shares::Changed(shares.collect()), false));
        }
        let kept = holding(view, &self.ends).map(|(_, job)| in_shape(view, job, view.run(job).shape));
        Ok(Allocation::queue(Shares::All(shares.chain(kept).collect()), false))
    }
}

/// Running jobs by believed end. That a job was told to stop is no news, so the index may still have it.
fn holding<'a>(view: &'a View, ends: &'a Index<Time>) -> impl Iterator<Item = (Time, JobIdx)> + 'a {
    ends.iter().filter(|(_, job)| view.is_running(*job))
}

/// A job that may start.
struct BackfillStart<'a> {
    end: Time,
    job: JobIdx,
    shape: u16,
    takes: &'a Shape,
}

/// Who will start.
struct BackfillPlan<'a> {
    view: &'a View,
    free: KindCounts,
    started: Vec<BackfillStart<'a>>,
}

/// What the head of the queue was promised.
struct Reservation {
    /// When it can start; never if no end of a running job makes room for it.
    at: Time,
    /// Devices that it will not need then.
    spare: KindCounts,
}

impl<'a> BackfillPlan<'a> {
    fn make(view: &'a View, ends: &'a Index<Time>, waiting: &Lines) -> Vec<BackfillStart<'a>> {
        let mut plan = BackfillPlan { view, free: KindCounts::free(view), started: Vec::new() };
        let mut last = None;
        // Whoever fits while nobody waits before it starts; the first who does not is the head.
        let head = loop {
            last = waiting.next(last, |_| Some(Span(u64::MAX)));
            let Some((.., job)) = last else { return plan.started };
            if !plan.start(job) {
                break job;
            }
        };
        let mut reservation = plan.reserve(head, ends);
        while let Some(place) = waiting.next(last, |shapes| reservation.longest(view.now, &plan.free, shapes))
        {
            plan.fill(place.3, &mut reservation);
            last = Some(place);
        }
        plan.started
    }

    fn take(&mut self, job: JobIdx, shape: u16) {
        let takes = &self.view.spec(job).shapes[shape as usize];
        self.free.take(takes);
        self.started.push(BackfillStart { end: end(self.view, job, shape), job, shape, takes });
    }

    /// Starts a job if its devices are free.
    fn start(&mut self, job: JobIdx) -> bool {
        let shape = self.free.first_fit(&self.view.spec(job).shapes);
        shape.map(|shape| self.take(job, shape)).is_some()
    }

    /// The earliest start of a job that does not fit now, and what will be left beside it.
    fn reserve(&mut self, head: JobIdx, ends: &'a Index<Time>) -> Reservation {
        let (view, shapes) = (self.view, &self.view.spec(head).shapes);
        let held = |job: JobIdx| view.spec(job).shapes.get(view.run(job).shape as usize);
        let running =
            holding(view, ends).filter_map(|(end, job)| Some((believed(view, end, job), held(job)?)));
        // Ends as stated keep their order. Learned ones do not, and then all of them are looked at.
        let running: Box<dyn Iterator<Item = (Time, &'a Shape)> + '_> = match view.lengths {
            None => Box::new(running),
            Some(_) => Box::new(sorted(running)),
        };
        self.started.sort_by_key(|start| start.end);
        let mut ends = merge(running, self.started.iter().map(|start| (start.end, start.takes))).peekable();
        let mut spare = self.free.clone();
        while let Some((at, shape)) = ends.next() {
            spare.give(shape);
            let more = ends.peek().is_some_and(|next| next.0 == at);
            if let Some(shape) = spare.first_fit(shapes).filter(|_| !more) {
                spare.take(&shapes[shape as usize]);
                return Reservation { at, spare };
            }
        }
        Reservation { at: Time::NEVER, spare }
    }

    /// Starts a job behind the head if that does not move the reservation.
    fn fill(&mut self, job: JobIdx, reservation: &mut Reservation) {
        for (at, shape) in self.view.spec(job).shapes.iter().enumerate() {
            let in_time = end(self.view, job, at as u16) <= reservation.at;
            if self.free.fits(shape) && (in_time || reservation.spare.fits(shape)) {
                if !in_time {
                    reservation.spare.take(shape);
                }
                return self.take(job, at as u16);
            }
        }
    }
}

impl Reservation {
    /// How long a job that asks for this may be, to start now; none if it may not at all.
    fn longest(&self, now: Time, free: &KindCounts, shapes: &[Shape]) -> Option<Span> {
        free.first_fit(shapes)?;
        let aside = shapes.iter().any(|shape| free.fits(shape) && self.spare.fits(shape));
        Some(if aside || self.at == Time::NEVER { Span(u64::MAX) } else { self.at - now })
    }
}

/// Ends in ascending order.
fn sorted<T>(ends: impl Iterator<Item = (Time, T)>) -> impl Iterator<Item = (Time, T)> {
    let mut ends: Vec<_> = ends.collect();
    ends.sort_by_key(|(end, _)| *end);
    ends.into_iter()
}

/// Two ascending lists as one.
fn merge<T>(
    left: impl Iterator<Item = (Time, T)>,
    right: impl Iterator<Item = (Time, T)>,
) -> impl Iterator<Item = (Time, T)> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(one), Some(other)) if other.0 < one.0 => right.next(),
        (Some(_), _) => left.next(),
        (None, _) => right.next(),
    })
}

/// When a running job is believed to end that was believed to end at a time. Who should have ended already is believed
/// to end now, or where lengths are learned to go on as `View::steps_left` says.
fn believed(view: &View, end: Time, job: JobIdx) -> Time {
    let open = view.spec(job).length != Length::Stated || end < view.now;
    match &view.lengths {
        Some(_) if open => view.now + Span::from_secs(finite(view.seconds_left(job))),
        _ => end.max(view.now),
    }
}

/// When a job is believed to end in this shape. Stands still while it runs, and while it starts.
fn end(view: &View, job: JobIdx, shape: u16) -> Time {
    let run = view.run(job);
    match run.state {
        JobState::Running => run.as_of + work(view, job, shape),
        JobState::Starting => run.since + before(view, job) + work(view, job, shape),
        _ => view.now + before(view, job) + work(view, job, shape),
    }
}

/// How long a waiting job takes in the shape that is fastest for it.
fn length(view: &View, job: JobIdx) -> Span {
    let shapes = 0..view.spec(job).shapes.len() as u16;
    before(view, job) + shapes.map(|shape| work(view, job, shape)).min().unwrap_or_default()
}

/// Time until a job that starts gets to work.
fn before(view: &View, job: JobIdx) -> Span {
    let costs = &view.spec(job).costs;
    costs.start + if view.run(job).done > 0.0 { costs.load } else { Span::ZERO }
}

/// Time for the steps that were left when last reported.
fn work(view: &View, job: JobIdx, shape: u16) -> Span {
    let (run, spec) = (view.run(job), view.spec(job));
    let believed = spec.speeds.get(shape as usize).copied().unwrap_or(0.0);
    let speed = if run.speed > 0.0 { run.speed } else { believed };
    let left = match &view.lengths {
        Some(_) if spec.length != Length::Stated || run.done > spec.steps => view.steps_left(job),
        _ => (spec.steps - run.done).max(0.0),
    };
    if speed > 0.0 { Span::from_secs(left / speed) } else { Span(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::{World, policy, run};

    #[test]
    fn a_short_job_fills_the_gap_and_a_long_one_waits() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(3, 10.0), (4, 10.0), (1, 11.0), (1, 9.0)]);
        assert_eq!(run("backfill", &mut world), [10.0, 20.0, 31.0, 9.0]);
    }

    #[test]
    fn a_long_job_may_use_what_the_head_leaves() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(3, 10.0), (2, 10.0), (1, 99.0)]);
        assert_eq!(run("backfill", &mut world), [10.0, 20.0, 99.0]);
    }

    #[test]
    fn who_runs_beyond_its_stated_length_is_not_believed_to_end_at_once() {
        let mut world = World::new(&[4]);
        world.learn_lengths();
        let mut backfill = policy("backfill");
        world.submit_all(&[(3, 100.0), (4, 10.0)]);
        world.plan(&mut *backfill);
        world.overrun(0, 200.0);
        world.submit_all(&[(1, 150.0), (1, 250.0)]);
        world.plan(&mut *backfill);
        assert_eq!(world.running(), [0, 2], "it has as much again to go, and the gap is as long");
    }

    #[test]
    fn a_head_that_can_never_start_holds_nobody_back() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(9, 10.0), (4, 10.0)]);
        world.plan(&mut *policy("backfill"));
        assert_eq!(world.running(), [1]);
    }

    /// A world of four devices: job 0 has three for 10 s, job 1 wants all four.
    fn gap(backfill: &mut dyn Policy) -> World {
        let mut world = World::new(&[4]);
        world.submit_all(&[(3, 10.0), (4, 10.0)]);
        world.plan(backfill);
        world
    }

    #[test]
    fn the_answer_names_only_who_may_start() {
        let mut backfill = policy("backfill");
        let mut world = gap(&mut *backfill);
        world.submit_all(&[(1, 11.0), (1, 9.0)]);
        let named = vec![in_shape(&world.view, JobIdx(3), 0)];
        assert_eq!(world.plan(&mut *backfill).shares, Shares::Changed(named));
    }

    #[test]
    fn a_permission_that_was_not_used_in_time_is_taken_back() {
        let mut backfill = policy("backfill");
        let mut world = gap(&mut *backfill);
        world.submit_all(&[(1, 9.0)]);
        // The placer finds no place for job 2, and by then it is too long for the gap.
        let answer = backfill.allocate(&world.view).unwrap();
        world.apply(&answer);
        assert!(world.shares.contains_key(&JobIdx(2)));
        world.advance(5.0);
        world.submit_all(&[(4, 1.0)]);
        let withdrawn = Shares::All(vec![in_shape(&world.view, JobIdx(0), 0)]);
        assert_eq!(backfill.allocate(&world.view).unwrap().shares, withdrawn);
        // That answer was lost; the next one is not, and from then on changes are enough.
        assert_eq!(world.plan(&mut *backfill).shares, withdrawn);
        world.submit_all(&[(4, 1.0)]);
        assert_eq!(world.plan(&mut *backfill).shares, Shares::Changed(vec![]));
    }

    #[test]
    fn a_job_thrown_back_has_to_ask_again() {
        let mut backfill = policy("backfill");
        let mut world = gap(&mut *backfill);
        world.plan(&mut *backfill);
        // Its devices are gone too: they are not counted as free.
        let run = &mut Arc::make_mut(&mut world.view.runs)[0];
        (run.state, run.speed) = (JobState::Pending, 0.0);
        world.view.changed.touched.push(JobIdx(0));
        assert_eq!(backfill.allocate(&world.view).unwrap().shares, Shares::All(vec![]));
    }

    /// When the head could start if only the jobs in `held` (seconds left, devices) kept their devices.
    fn earliest(devices: u32, held: &[(f64, u32)], head: u32) -> f64 {
        let free_at = |t: f64| devices - held.iter().filter(|job| job.0 > t).map(|job| job.1).sum::<u32>();
        let times = held.iter().map(|job| job.0).chain([0.0]);
        times.filter(|t| free_at(*t) >= head).fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn the_heads_reservation_is_never_moved(
            jobs in prop::collection::vec((1u32..7, 1u32..30), 1..20),
            more in prop::collection::vec((1u32..7, 1u32..30), 1..20),
            gap in 0u32..30,
        ) {
            let mut world = World::new(&[6]);
            let mut backfill = policy("backfill");
            let submit = |world: &mut World, jobs: &[(u32, u32)]| {
                jobs.iter().for_each(|(size, long)| world.submit_all(&[(*size, f64::from(*long))]));
            };
            submit(&mut world, &jobs);
            world.plan(&mut *backfill);
            world.advance(f64::from(gap));
            submit(&mut world, &more);
            let before = world.running();
            world.plan(&mut *backfill);
            let held = |world: &World, jobs: &[usize]| -> Vec<(f64, u32)> {
                jobs.iter().map(|at| (world.seconds_left(*at), world.devices(*at))).collect()
            };
            let after = world.running();
            // Everybody up to the head started in order; the head is the first who waits.
            if let Some(head) = world.waiting().first() {
                let ahead: Vec<usize> =
                    after.iter().copied().filter(|at| before.contains(at) || at < head).collect();
                let promised = earliest(6, &held(&world, &ahead), world.devices(*head));
                let kept = earliest(6, &held(&world, &after), world.devices(*head));
                prop_assert_eq!(promised, kept);
            }
        }
    }
}
