//! Lucid (Hu et al., "Lucid: A Non-intrusive, Scalable and Interpretable Scheduler for Deep Learning Training Jobs",
//! ASPLOS 2023): shortest first without stopping anybody, and pairs by a model that a person can read.
//!
//! Objective: least P_j = duration × devices first, which keeps the mean completion time small; when more wait than
//! fits, a job j goes beside the first running job i that is alone, of the same shape, with memory for both,
//! S_i + S_j ≤ 2 and P_j ≤ 2 P_i, so that nobody is held back for long. S is the sharing score of a job: 0 tiny,
//! 1 medium, 2 jumbo. At most two jobs share devices, and jobs of more than eight devices never do.
//!
//! The score is a decision tree of our own on what the profiler sees, fitted to the pairs of eight models measured on
//! an H200 (a test fits it anew where those data are beside the project): a job is jumbo where what it and its
//! neighbours keep is below 0.6 on the mean, which is where a pair does less than 1.2 of one job. The paper's bounds,
//! 0.85 and 0.95, are for cards that one job cannot fill: on an H200 they would let nobody share. Of the pairs no
//! memory was recorded, so memory bounds who fits and is not in the tree.
//!
//! Missing: the profiler's own cluster, the duration model (an additive model on names, users and times), the model of
//! arrivals that turns packing off, and a tree that was learned on more than one feature.
//! Where the paper runs each job on a small cluster first to profile it, here a job of which nothing is known runs
//! alone until its usage was measured. Durations are the belief's: steps over speed. The paper turns packing off when
//! it predicts few arrivals; here it is off while all that wait fits.
//!
//! Reads: usage, memory, steps, speeds, leases. Cost: O(waiting jobs · groups). Never stops a job.
//! Not to be used where durations are unknown: the order is then arbitrary.

use std::collections::BTreeSet;

use yard_core::allocation::{Allocation, Shares};
use yard_core::ids::JobIdx;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::ranked::{class, classes, finite};
use crate::seats::{Seat, Seats};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "lucid",
    live: "policies::lucid_pairs_light_jobs_and_stops_nobody",
    family: "sharing",
    paper: "Lucid, Hu et al., ASPLOS 2023",
    there: "least device time first, pairs by sharing scores, no job is ever stopped",
    missing: "the profiler's own small cluster (a job is seen while it runs alone), the duration model (durations are the belief's), the throughput model that turns packing off, and a learned tree: this one has two thresholds on one feature",
    about: "Least device time first; pairs by sharing scores from a small decision tree; never stops a job",
    params: &[],
    rounds: false,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations],
    make: |_| Ok(Box::new(Lucid)),
};

/// Scores of a pair together.
const SCORES_MAX: u8 = 2;
/// Devices of a job that may share them.
const DEVICES_MAX: u32 = 8;
/// How much longer than its neighbour's a job's device time may be.
const LONGER_MAX: f64 = 2.0;

/// Below this a job is tiny: beside the mean of the eight models, busy for 0.87 of the time, it keeps 0.85 where the
/// two together ask for 1.18 of a device. None of the eight is so idle, so this bound is reckoned and not fitted.
const TINY: f64 = 0.3;
/// Below this a job is medium: midway between the busiest of the eight that keeps enough, 0.77, and the others, 1.
const MEDIUM: f64 = 0.884;

struct Lucid;

impl Policy for Lucid {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut seats = Seats::new(view);
        let mut waiting = std::mem::take(&mut seats.waiting);
        let shorter = |a: JobIdx, b: JobIdx| device_time(view, a).total_cmp(&device_time(view, b));
        waiting.sort_by(|a, b| class(view, *a).cmp(&class(view, *b)).then_with(|| shorter(*a, *b)));
        for range in classes(&waiting, |job| class(view, *job)) {
            seat(&mut seats, &waiting[range]);
        }
        Ok(Allocation::queue(Shares::All(seats.shares()), true))
    }
}

/// Seats jobs of one class, the shortest first.
fn seat(seats: &mut Seats<'_>, waiting: &[JobIdx]) {
    let packs = seats.is_crowded(waiting);
    let mut hopeless = BTreeSet::new();
    for job in waiting.iter().copied() {
        let sort = (seats.sort(job), score(seats.view, job));
        let found = (packs && !hopeless.contains(&sort)).then(|| mate(seats, job));
        match found.flatten() {
            Some(at) => seats.list[at].jobs.push(job),
            None => {
                // Later ones are longer, so they find no mate either.
                hopeless.extend(seats.free_shape(job).is_none().then_some(sort));
                seats.open(job);
            }
        }
    }
}

/// The first job alone on its devices that a job may join.
fn mate(seats: &Seats<'_>, job: JobIdx) -> Option<usize> {
    let view = seats.view;
    let score = score(view, job)?;
    let may = |seat: &Seat<'_>| {
        let [mate] = seat.jobs[..] else { return false };
        if !seat.placed {
            return false;
        }
        let scores = self::score(view, mate).is_some_and(|other| score + other <= SCORES_MAX);
        let small = seat.shape.devices() <= DEVICES_MAX;
        let soon = device_time(view, job) <= LONGER_MAX * device_time(view, mate);
        scores && small && soon && seats.may_join(seat, job)
    };
    seats.list.iter().position(may)
}

/// Device-seconds of a job from start to end, as believed, in the shape it likes best.
fn device_time(view: &View, job: JobIdx) -> f64 {
    let spec = view.spec(job);
    let way = spec.usable().next().map_or(0, usize::from);
    finite(view.steps_in_all(job) / spec.speeds[way] * f64::from(spec.shapes[way].devices()))
}

/// How much a job disturbs others; none where nothing is known of it.
fn score(view: &View, job: JobIdx) -> Option<u8> {
    Some(match view.usage(job)?.busy {
        busy if busy < TINY => 0,
        busy if busy < MEDIUM => 1,
        _ => 2,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Value;
    use yard_core::job::{Sharing, Usage};

    use super::*;
    use crate::testing::{World, policy};

    fn seen(busy: f64, memory_mib: u32) -> Sharing {
        Sharing { usage: Some(Usage { busy, memory_mib }), ..Sharing::PLAIN }
    }

    fn world(devices: u32, jobs: &[(f64, Sharing)]) -> World {
        let mut world = World::with_memory(&[devices], 100);
        for (seconds, sharing) in jobs {
            world.submit_sharing(1, *seconds, sharing.clone());
        }
        world.plan(&mut *policy("lucid"));
        world
    }

    #[test]
    fn pairs_have_small_scores_memory_and_like_ends() {
        let beside = |seconds, job| world(1, &[(100.0, seen(0.5, 50)), (seconds, job)]).running().len();
        assert_eq!(beside(150.0, seen(0.5, 50)), 2);
        assert_eq!(beside(150.0, seen(0.5, 51)), 1, "no memory");
        assert_eq!(beside(150.0, seen(1.0, 50)), 1, "one and two is too much");
        assert_eq!(beside(201.0, seen(0.5, 50)), 1, "it would stay long after the other");
        assert_eq!(beside(150.0, Sharing::PLAIN), 1, "nothing is known of it");
    }

    #[test]
    fn nobody_shares_while_there_is_room() {
        let world = world(2, &[(100.0, seen(0.1, 1)), (100.0, seen(0.1, 1))]);
        assert!(world.shares.values().all(|share| share.jobs.len() == 1));
        assert_eq!(world.running(), [0, 1]);
    }

    #[test]
    fn a_third_finds_no_place() {
        assert_eq!(
            world(1, &[(9.0, seen(0.1, 1)), (9.0, seen(0.1, 1)), (9.0, seen(0.1, 1))]).running(),
            [0, 1]
        );
    }

    proptest! {
        #[test]
        fn every_pair_keeps_the_rules(
            jobs in prop::collection::vec((1u32..3, 1.0..500.0f64, 0.0..1.0f64, 1u32..100), 1..20),
            pauses in prop::collection::vec(0.0..60.0f64, 20),
        ) {
            let mut world = World::with_memory(&[2, 2], 100);
            let mut policy = policy("lucid");
            for ((devices, seconds, busy, memory), pause) in jobs.into_iter().zip(pauses) {
                world.submit_sharing(devices, seconds, seen(busy, memory));
                world.plan(&mut *policy);
                for share in world.shares.values().filter(|share| share.jobs.len() > 1) {
                    let [a, b] = share.jobs[..] else { panic!("{share:?}") };
                    let used = |job| world.view.usage(job).expect("all are known");
                    prop_assert!(score(&world.view, a).zip(score(&world.view, b)).is_some_and(|(a, b)| a + b <= 2));
                    prop_assert!(used(a).memory_mib + used(b).memory_mib <= 100);
                    prop_assert_eq!(world.view.devices(a), world.view.devices(b));
                    let (one, other) = (device_time(&world.view, a), device_time(&world.view, b));
                    prop_assert!(one <= 2.0 * other || other <= 2.0 * one);
                }
                world.advance(pause);
            }
        }
    }

    /// Steps a second of the eight models, alone and in pairs; none, loudly, where they are not beside the project.
    fn measured() -> Option<Value> {
        let text = yard_needs::shared_text("h200/time_sliced.json")?;
        Some(serde_json::from_str(&text).expect("it is JSON"))
    }

    /// By model: how busy it is, and what it and its neighbours keep on the mean.
    fn models(data: &Value) -> BTreeMap<String, (f64, f64)> {
        let number = |value: &Value| value.as_f64().expect("a number");
        let mut kept: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut busy = BTreeMap::new();
        for pair in data["pairs"].as_array().expect("pairs") {
            let name = |at: usize| pair[at].as_str().expect("a model");
            let part = |at: usize| number(&pair[at + 2]) / number(&data["solo"][name(at)]);
            let mean = (part(0) + part(1)) / 2.0;
            kept.entry(name(0).to_owned()).or_default().push(mean);
            if name(0) == name(1) {
                // Two of a kind that each ask for u of a device keep 1 / 2u of their speeds, or all of them.
                busy.insert(name(0).to_owned(), (0.5 / mean).min(1.0));
            } else {
                kept.entry(name(1).to_owned()).or_default().push(mean);
            }
        }
        let mean = |list: &Vec<f64>| list.iter().sum::<f64>() / list.len() as f64;
        kept.iter().map(|(name, list)| (name.clone(), (busy[name], mean(list)))).collect()
    }

    #[test]
    fn the_tree_is_the_one_that_the_measurements_give() {
        let Some(data) = measured() else { return };
        let models = models(&data);
        assert_eq!(models.len(), 8);
        // The split of `busy` that tells models that keep 0.6 from the others with the fewest errors, midway.
        let mut by_busy: Vec<(f64, bool)> =
            models.values().map(|(busy, kept)| (*busy, *kept < 0.6)).collect();
        by_busy.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wrong = |split: f64| by_busy.iter().filter(|(busy, jumbo)| (*busy >= split) != *jumbo).count();
        let splits = by_busy.windows(2).map(|pair| (pair[0].0 + pair[1].0) / 2.0);
        let best = splits.min_by_key(|split| wrong(*split)).expect("eight models");
        assert_eq!(wrong(best), 0, "the tree tells all eight apart");
        assert!((best - MEDIUM).abs() < 0.005, "{best}: {models:?}");
        let mean = models.values().map(|(busy, _)| busy).sum::<f64>() / 8.0;
        assert!((1.0 / 0.85 - mean - TINY).abs() < 0.01, "{mean}");
    }
}
