//! KubeShare 1.0 (Yeh et al., "KubeShare: A Framework to Manage GPUs as First-Class and Shared Resources in Container
//! Cloud", HPDC 2020): jobs ask for a part of a device and of its memory, and devices are filled by best fit.
//!
//! Objective: as few devices as first come, first served allows, with Σ request ≤ 1 and memory enough on each. A job
//! goes where its word of affinity already is, or waits for it. Else, among devices with room whose words of
//! anti-affinity and exclusion allow it, to the one with least left, argmin_d 1 − Σ_{i on d} r_i − r_j; devices with a
//! word of affinity only where no other will do, and then the one with most left, to keep room for jobs of that word.
//! Else to a free device, or it waits for one; jobs of one word of affinity wait together, unless it is for more devices than are up.
//! A job that asks for a whole device has it alone. Limits and memory are enforced by agents, not here.
//!
//! Reads: requests, memory, words, leases. Cost: O(waiting jobs · groups). Never stops a job.
//! Not to be used where jobs do not say what they need: they are then given whole devices.

use std::collections::BTreeSet;

use yard_core::allocation::{Allocation, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Sharing;
use yard_core::policy::{Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::seats::{Seat, Seats, Sort};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "kubeshare",
    live: "policies::kubeshare_fills_devices_by_request_and_keeps_jobs_apart_by_label",
    family: "sharing",
    paper: "KubeShare 1.0, Yeh et al., HPDC 2020",
    there: "requests, limits, memory, affinity, anti-affinity and exclusion; best fit",
    missing: "the token by which its daemon shares a device: shares are enforced by MPS or not at all; version 2.0",
    about: "Parts of devices by request, best fit, with affinity, anti-affinity and exclusion; never stops a job",
    params: &[],
    rounds: false,
    priority: Priorities::Classes,
    needs: &[],
    make: |_| Ok(Box::new(KubeShare)),
};

struct KubeShare;

impl Policy for KubeShare {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut seats = Seats::new(view);
        let mut hopeless = BTreeSet::new();
        for job in std::mem::take(&mut seats.waiting) {
            place(&mut seats, job, &mut hopeless);
        }
        Ok(Allocation::queue(Shares::All(seats.shares()), true))
    }
}

/// What rounding may add to a sum of requests.
const ROUNDING: f64 = 1e-9;

/// Gives a job its devices; `hopeless` are those sorts, with their requests, that find none.
fn place<'v>(seats: &mut Seats<'v>, job: JobIdx, hopeless: &mut BTreeSet<(Sort<'v>, u64)>) {
    // One that waits for devices which nobody has now, because nodes are down, keeps nobody waiting.
    let there = |seat: &Seat<'_>| seat.placed || seats.reach.holds(seat.shape);
    let same = |seat: &Seat<'_>| {
        let word = &said(seats, job).affinity;
        word.is_some() && there(seat) && seat.jobs.iter().any(|other| said(seats, *other).affinity == *word)
    };
    if seats.list.iter().any(same) {
        let found = seats.list.iter().position(|seat| same(seat) && left(seats, seat, job).is_some());
        return found.into_iter().for_each(|at| seats.list[at].jobs.push(job));
    }
    let sort = (seats.sort(job), said(seats, job).request.to_bits());
    let found = (!hopeless.contains(&sort)).then(|| best(seats, job)).flatten();
    match found {
        Some(at) => seats.list[at].jobs.push(job),
        None => {
            hopeless.extend(seats.free_shape(job).is_none().then_some(sort));
            seats.open(job);
        }
    }
}

fn said<'v>(seats: &Seats<'v>, job: JobIdx) -> &'v Sharing {
    seats.view.spec(job).sharing()
}

/// What would be left of the devices of a seat beside its jobs and this one, in units of `ROUNDING`, so that equal parts
/// are equal however they were added up; none where it may not go there.
fn left(seats: &Seats<'_>, seat: &Seat<'_>, job: JobIdx) -> Option<f64> {
    let asked: f64 = seat.jobs.iter().chain([&job]).map(|job| said(seats, *job).request).sum();
    (asked <= 1.0 + ROUNDING && seats.may_join(seat, job)).then(|| ((1.0 - asked) / ROUNDING).round())
}

/// The seat that a job goes to, of those that have devices.
fn best(seats: &Seats<'_>, job: JobIdx) -> Option<usize> {
    let labelled = |seat: &Seat<'_>| seat.jobs.iter().any(|job| said(seats, *job).affinity.is_some());
    let able = seats.list.iter().enumerate().filter(|(_, seat)| seat.placed);
    let able = able.filter_map(|(at, seat)| Some((labelled(seat), left(seats, seat, job)?, at)));
    // Best fit among devices without a word of affinity, worst fit among the others.
    let cost = |(labelled, left, _): &(bool, f64, usize)| (*labelled, if *labelled { -left } else { *left });
    let less = |a: &(bool, f64, usize), b: &(bool, f64, usize)| {
        let (a, b) = (cost(a), cost(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    able.min_by(less).map(|(_, _, at)| at)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::{World, policy};

    const MEMORY: u32 = 100;

    fn part(request: f64, memory_mib: u32) -> Sharing {
        Sharing { request, memory_mib: Some(memory_mib), ..Sharing::PLAIN }
    }

    fn labelled(request: f64, affinity: &str) -> Sharing {
        Sharing { affinity: Some(affinity.into()), ..part(request, 10) }
    }

    /// The rows that run, device by device.
    fn devices(world: &World) -> Vec<Vec<usize>> {
        let mut found: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for row in world.running() {
            found.entry(world.view.runs[row].lease).or_default().push(row);
        }
        found.into_values().collect()
    }

    fn live(sizes: &[u32], jobs: &[Sharing]) -> World {
        let mut world = World::with_memory(sizes, MEMORY);
        let mut policy = policy("kubeshare");
        for job in jobs {
            world.submit_sharing(1, 100.0, job.clone());
            world.plan(&mut *policy);
        }
        world
    }

    #[test]
    fn devices_are_filled_by_best_fit() {
        let world = live(&[3], &[0.5, 0.7, 0.3, 0.4].map(|request| part(request, 10)));
        assert_eq!(devices(&world), [vec![0, 3], vec![1, 2]]);
        let world = live(&[3], &[part(0.5, 60), part(0.5, 60), Sharing::PLAIN]);
        assert_eq!(devices(&world), [[0], [1], [2]], "memory counts, and a whole device is a whole device");
    }

    #[test]
    fn words_of_affinity_bring_jobs_together_or_make_them_wait() {
        let world = live(&[3], &[labelled(0.6, "a"), part(0.3, 10), labelled(0.4, "a"), labelled(0.1, "a")]);
        // The second goes beside the first, because there is no device without a word; the third then has no room
        // where it must go; the last has.
        assert_eq!((devices(&world), world.waiting()), (vec![vec![0, 1, 3]], vec![2]));
        let world = live(&[3], &[labelled(0.4, "a"), labelled(0.2, "b"), part(0.2, 10)]);
        assert_eq!(devices(&world), [[0, 1, 2]], "a job of another word uses what there is");
    }

    #[test]
    fn who_waits_for_more_devices_than_are_up_keeps_none_of_its_word_waiting() {
        let mut world = World::with_memory(&[1], MEMORY);
        let wide = world.submit_sharing(3, 100.0, labelled(0.8, "a"));
        let small = world.submit_sharing(1, 100.0, labelled(0.8, "a"));
        world.plan(&mut *policy("kubeshare"));
        assert_eq!((world.running(), world.waiting()), (vec![small], vec![wide]));
    }

    #[test]
    fn who_waits_for_one_device_gets_it_together() {
        let mut world = live(&[1], &[Sharing::PLAIN, part(0.5, 10), part(0.5, 10), part(0.5, 10)]);
        world.advance(100.0);
        world.plan(&mut *policy("kubeshare"));
        assert_eq!(world.running(), [1, 2]);
    }

    fn drawn() -> impl Strategy<Value = Sharing> {
        let word = || prop_oneof![3 => Just(None), 1 => Just(Some("a")), 1 => Just(Some("b"))];
        let word = || word().prop_map(|word| word.map(Arc::from));
        let request =
            prop_oneof![4 => (1u32..10).prop_map(|tenths| f64::from(tenths) / 10.0), 1 => Just(1.0)];
        (request, 5u32..60, word(), word(), word()).prop_map(
            |(request, memory, affinity, anti, exclusion)| Sharing {
                affinity,
                anti_affinity: anti,
                exclusion,
                ..part(request, memory)
            },
        )
    }

    /// The paper's choice for a job that arrives, by looking at every device: the device's number, a new one
    /// (`Some(None)`), or none.
    fn reference(devices: &[Vec<Sharing>], free: bool, job: &Sharing) -> Option<Option<usize>> {
        let allowed = |device: &&Vec<Sharing>| {
            let anti =
                |other: &Sharing| other.anti_affinity.is_some() && other.anti_affinity == job.anti_affinity;
            let room = device.iter().map(|other| other.request).sum::<f64>() + job.request <= 1.0 + 1e-9;
            let memory = device.iter().chain([job]).filter_map(|job| job.memory_mib).sum::<u32>() <= MEMORY;
            room && memory && device.iter().all(|other| other.exclusion == job.exclusion && !anti(other))
        };
        let has =
            |device: &&Vec<Sharing>, word: &Option<Arc<str>>| device.iter().any(|job| job.affinity == *word);
        let mine: Vec<usize> = (0..devices.len())
            .filter(|at| job.affinity.is_some() && has(&&devices[*at], &job.affinity))
            .collect();
        if !mine.is_empty() {
            return mine.into_iter().find(|at| allowed(&&devices[*at])).map(Some);
        }
        let used =
            |at: &usize| (devices[*at].iter().map(|job| job.request).sum::<f64>() * 10.0).round() as i32;
        let able: Vec<usize> = (0..devices.len()).filter(|at| allowed(&&devices[*at])).collect();
        let plain = |at: &usize| devices[*at].iter().all(|job| job.affinity.is_none());
        let (plain, labelled): (Vec<usize>, Vec<usize>) = able.into_iter().partition(plain);
        let fullest = plain.iter().copied().rev().max_by_key(used);
        let emptiest = labelled.iter().copied().min_by_key(used);
        fullest.or(emptiest).map(Some).or(free.then_some(None))
    }

    proptest! {
        #[test]
        fn every_choice_is_the_papers(jobs in prop::collection::vec(drawn(), 1..14)) {
            let mut world = World::with_memory(&[4], MEMORY);
            let mut policy = policy("kubeshare");
            for job in jobs {
                let before = devices(&world);
                let said = |rows: &Vec<usize>| -> Vec<Sharing> {
                    rows.iter().map(|row| world.view.specs[*row].sharing().clone()).collect()
                };
                // Who waited may not change the choice: the policy is asked for this job alone.
                if !world.waiting().is_empty() {
                    break;
                }
                let wanted = reference(&before.iter().map(said).collect::<Vec<_>>(), before.len() < 4, &job);
                let row = world.submit_sharing(1, 1e6, job);
                world.plan(&mut *policy);
                let found = devices(&world).iter().position(|device| device.contains(&row));
                let found = found.map(|at| (at < before.len()).then_some(at));
                prop_assert_eq!(found, wanted);
            }
        }
    }
}
