//! AlloX (Le et al., "AlloX: Compute Allocation in Hybrid Clusters", EuroSys 2020): least mean completion time
//! on machines of unlike speed, by matching.
//!
//! Objective: min Σ C_j, exactly, for jobs of one device that all are here: a job that is the p-th from the end
//! on its device adds its own time p times, so the optimum is a matching of jobs to (device, p) at cost
//! p · seconds_jk. Devices of a kind are alike, so we match to (kind, p) with room for as many as the kind has.
//! Only the first job on each device is started; the others are matched anew at the next event.
//! `alpha` below 1 lets only that part of the waiting jobs in, the longest waiting first (at least as many as
//! there are free devices). `pin=running`: who runs is left alone. `pin=allocated`: as in Gavel's artifact, who
//! was once given a kind has it for life, and rounds may stop it; the rank in force carries the shape. Devices are
//! then matched one by one: which jobs queue behind each other on a device is all the same to the sum, but decides
//! who starts now, and with jobs that never move that tells for weeks.
//! A gang of s devices counts as s · seconds on one: the same device time. Gangs are then started as far as
//! devices reach, small ones past large ones, and the optimum is no longer proven. One that no kind by itself has room for
//! starts on several at once, where devices are left.
//! Reads: steps left, speeds, free devices. Cost: O(n² m) for n waiting jobs and m = Σ_k n / free_k places.
//! Not to be used for many large gangs: they wait until enough devices happen to be free at once.

use smallvec::smallvec;
use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::{JobIdx, KindId};
use yard_core::job::{Rank, Shape};
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::reach::Reach;
use yard_core::view::View;
use yard_solver::assignment::{CostMatrix, assign};

use crate::counts::KindCounts;
use crate::leftovers::with_leftovers;
use crate::ranked::finite;
use crate::{OTHER, ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "allox",
    live: "",
    family: "matching",
    paper: "AlloX, Le et al., EuroSys 2020",
    there: "the matching of jobs to places from the end, exact for jobs of one device; `alpha`",
    missing: "the estimator that samples speeds; a proof for gangs, which are counted by device time",
    about: "Least mean completion time on unlike devices by min-cost matching; jobs of one device; never stops a job",
    params: &[
        ("alpha", "part of the waiting jobs that is matched, the longest waiting first [default: 1]"),
        (
            "pin",
            "running: who runs is left alone; allocated: who was given a kind keeps it [default: running]",
        ),
    ],
    rounds: false,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make: |params| Ok(Box::new(AlloX::new(params)?)),
};

struct AlloX {
    alpha: f64,
    pin: Pin,
}

/// Who is not matched anew.
#[derive(Clone, Copy, PartialEq)]
enum Pin {
    Running,
    Allocated,
}

/// A job and the shape it should have.
type AlloxStart = (JobIdx, u16);

impl AlloX {
    fn new(params: &Params) -> Result<AlloX, ParamError> {
        let alpha = params.positive("alpha")?.unwrap_or(1.0);
        let pin = match params.text("pin") {
            None | Some("running") => Pin::Running,
            Some("allocated") => Pin::Allocated,
            Some(other) => {
                let (value, allowed) = (other.to_owned(), "running or allocated");
                return Err(ParamError::Value { key: "pin", value, allowed });
            }
        };
        Ok(AlloX { alpha, pin })
    }

    /// The shape a job keeps, if it keeps one.
    fn pinned(&self, view: &View, job: JobIdx) -> Option<u16> {
        let run = view.run(job);
        match self.pin {
            Pin::Running => run.lease.map(|_| run.shape),
            // Ranks count from 1, so that 0 is a job that no plan has named.
            Pin::Allocated => (run.rank.0 >= 1.0).then(|| run.rank.0 as u16 - 1),
        }
    }

    /// The longest waiting jobs, as many as are to be matched.
    fn waiting(&self, view: &View, n_free: u32) -> Vec<JobIdx> {
        let waits = |job: &JobIdx| self.pinned(view, *job).is_none();
        let mut jobs: Vec<JobIdx> = view.active().filter(waits).collect();
        jobs.sort_by_key(|job| (view.run(*job).submitted, view.run(*job).id));
        let most = (self.alpha * jobs.len() as f64) as usize;
        jobs.truncate(most.max(n_free as usize));
        jobs
    }

    fn free(&self, view: &View, pinned: &[AlloxStart]) -> KindCounts {
        if self.pin == Pin::Running {
            return KindCounts::free(view);
        }
        let mut free = KindCounts::up(view);
        pinned.iter().for_each(|(job, shape)| free.take(&view.spec(*job).shapes[*shape as usize]));
        free
    }
}

impl Policy for AlloX {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let pin = |job| Some((job, self.pinned(view, job)?));
        let mut starts: Vec<AlloxStart> = view.active().filter_map(pin).collect();
        let mut free = self.free(view, &starts);
        let jobs = self.waiting(view, free.total());
        let matched = match self.pin {
            Pin::Running => matched(view, &jobs, &free),
            Pin::Allocated => first_by_device(view, &jobs, &free),
        };
        starts.extend(as_far_as_devices_reach(view, matched, &mut free));
        starts.extend(over_several_kinds(view, &jobs, &mut free));
        let whole = |(job, shape): AlloxStart| {
            let rank = Rank(f64::from(shape) + 1.0, 0.0);
            Share { jobs: smallvec![job], shape: Some(shape), fraction: 1.0, rank }
        };
        let shares = starts.into_iter().map(whole).collect();
        Ok(match self.pin {
            Pin::Running => Allocation::queue(Shares::All(shares), true),
            Pin::Allocated => Allocation::fractions(with_leftovers(view, shares)),
        })
    }
}

/// Of matched jobs those that are first on some device, and in which shape.
fn as_far_as_devices_reach(view: &View, mut matched: Vec<Matched>, free: &mut KindCounts) -> Vec<AlloxStart> {
    // The larger the position from the end, the earlier; which of the devices of a kind are then left to which
    // of those one behind is all the same to the sum, and the shorter go first.
    matched.sort_by(|a, b| b.position.cmp(&a.position).then(a.seconds.total_cmp(&b.seconds)));
    matched.retain(|one| {
        let shape = &view.spec(one.job).shapes[one.shape as usize];
        let fits = free.fits(shape);
        if fits {
            free.take(shape);
        }
        fits
    });
    matched.into_iter().map(|one| (one.job, one.shape)).collect()
}

/// Of jobs that no kind by itself has room for, those for which devices of several are left, longest waiting first.
fn over_several_kinds(view: &View, jobs: &[JobIdx], free: &mut KindCounts) -> Vec<AlloxStart> {
    let reach = Reach::of(&view.nodes);
    let unmatched = |job: &&JobIdx| view.kinds.ids().all(|kind| way(view, &reach, **job, kind).is_none());
    let start = |job: &JobIdx| {
        let spec = view.spec(*job);
        let fits = |shape: &Shape| free.fits(shape) && reach.holds(shape);
        let shape = spec.usable().find(|shape| fits(&spec.shapes[*shape as usize]))?;
        free.take(&spec.shapes[shape as usize]);
        Some((*job, shape))
    };
    jobs.iter().filter(unmatched).filter_map(start).collect()
}

/// A job at its place.
struct Matched {
    job: JobIdx,
    shape: u16,
    position: usize,
    seconds: f64,
}

/// The cheapest matching of jobs to (kind, position from the end).
fn matched(view: &View, jobs: &[JobIdx], free: &KindCounts) -> Vec<Matched> {
    // In the optimum a position is used only where the one before it is used on every device.
    let reach =
        |kind| (1..=jobs.len().div_ceil(free.of(kind) as usize)).map(move |position| (kind, position));
    let open = view.kinds.ids().filter(|kind| free.of(*kind) > 0);
    let places: Vec<(KindId, usize)> = open.flat_map(reach).collect();
    let room: Vec<usize> = places.iter().map(|(kind, _)| free.of(*kind) as usize).collect();
    match_to(view, jobs, &places, &room).into_iter().map(|(_, matched)| matched).collect()
}

/// The same, device by device; of each device the job that goes first.
fn first_by_device(view: &View, jobs: &[JobIdx], free: &KindCounts) -> Vec<Matched> {
    let devices = view.kinds.ids().flat_map(|kind| vec![kind; free.of(kind) as usize]);
    let devices: Vec<(usize, KindId)> = devices.enumerate().collect();
    // One position after the other, in each all devices of kinds that have so many: columns past that would never
    // be reached, and leaving them out does not change in which order the others are looked at.
    let reach = |kind| jobs.len().div_ceil(free.of(kind) as usize);
    let at = |position| {
        devices.iter().filter(move |one| position <= reach(one.1)).map(move |one| (*one, position))
    };
    let columns: Vec<((usize, KindId), usize)> = (1..=jobs.len()).flat_map(at).collect();
    let places: Vec<(KindId, usize)> =
        columns.iter().map(|((_, kind), position)| (*kind, *position)).collect();
    let mut first: Vec<Option<Matched>> = devices.iter().map(|_| None).collect();
    for (column, matched) in match_to(view, jobs, &places, &vec![1; places.len()]) {
        let device = &mut first[columns[column].0.0];
        if device.as_ref().is_none_or(|other| other.position < matched.position) {
            *device = Some(matched);
        }
    }
    first.into_iter().flatten().collect()
}

/// The cheapest matching of jobs to places with room for so many, with the place of each.
fn match_to(
    view: &View,
    jobs: &[JobIdx],
    places: &[(KindId, usize)],
    room: &[usize],
) -> Vec<(usize, Matched)> {
    let reach = Reach::of(&view.nodes);
    let ways: Vec<Vec<Option<(u16, f64)>>> =
        jobs.iter().map(|job| view.kinds.ids().map(|kind| way(view, &reach, *job, kind)).collect()).collect();
    let costs = CostMatrix::new(jobs.len(), places.len(), |row, column| {
        let (kind, position) = places[column];
        ways[row][kind.index()].map_or(f64::INFINITY, |(_, seconds)| seconds * position as f64)
    });
    let columns = assign(&costs, room).columns;
    let at = |(row, column): (usize, &Option<usize>)| {
        let (kind, position) = places[(*column)?];
        let (shape, seconds) = ways[row][kind.index()]?;
        Some(((*column)?, Matched { job: jobs[row], shape, position, seconds }))
    };
    columns.iter().enumerate().filter_map(at).collect()
}

/// The shape in which a job runs on this kind alone, with the nodes that are up, and the device-seconds it has left there.
fn way(view: &View, reach: &Reach<'_>, job: JobIdx, kind: KindId) -> Option<(u16, f64)> {
    let spec = view.spec(job);
    let alone = |shape: &u16| {
        let shape = &spec.shapes[*shape as usize];
        matches!(&shape.needs[..], [need] if need.kind == kind) && reach.holds(shape)
    };
    let seconds = |shape: u16| {
        let devices = f64::from(spec.shapes[shape as usize].devices());
        finite(devices * view.steps_left(job) / view.speed(job, shape))
    };
    let ways = spec.usable().filter(alone).map(|shape| (shape, seconds(shape)));
    ways.min_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use yard_core::allocation::Shares;
    use yard_core::ids::{JobIdx, KindId};
    use yard_core::job::{Need, Shape};

    use super::matched;
    use crate::counts::KindCounts;
    use crate::testing::{World, cases, mixed, permutations, policy, run};

    #[test]
    fn jobs_go_where_the_artifact_puts_them() {
        cases("allox", "allox", 0.0);
        cases("allox", "allox:pin=allocated", 0.0);
    }

    #[test]
    fn on_one_kind_the_shortest_go_first() {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 30.0), (1, 10.0), (1, 20.0)]);
        assert_eq!(run("allox", &mut world), [60.0, 10.0, 30.0]);
    }

    /// Two kinds with a device each, and one job with these shapes, of which the first is the fastest: the one it starts in.
    fn started(shapes: [Shape; 2]) -> Vec<Option<u16>> {
        let mut view = mixed(&[1, 1], &[(1, &[5.0, 1.0])], &[100.0]);
        let spec = Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[0]);
        spec.shapes = shapes.into();
        let Shares::All(shares) = policy("allox").allocate(&view).unwrap().shares else { panic!("all") };
        shares.iter().map(|share| share.shape).collect()
    }

    #[test]
    fn what_no_node_could_hold_is_no_way_to_run() {
        assert_eq!(started([Shape::of(KindId(0), 2), Shape::of(KindId(1), 1)]), [Some(1)]);
        assert_eq!(started([Shape::of(KindId(0), 1), Shape::of(KindId(1), 1)]), [Some(0)]);
    }

    #[test]
    fn a_job_that_needs_several_kinds_at_once_starts_where_devices_are_left() {
        let needs = [0, 1].map(|kind| Need { kind: KindId(kind), devices: 1 }).to_vec();
        let both = Shape { needs, ..Shape::of(KindId(0), 1) };
        assert_eq!(started([Shape::of(KindId(0), 2), both]), [Some(1)]);
    }

    #[test]
    fn with_a_small_alpha_the_longest_waiting_goes_first() {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 30.0), (1, 10.0), (1, 20.0)]);
        assert_eq!(run("allox:alpha=0.1", &mut world), [30.0, 40.0, 60.0]);
    }

    /// The least sum of completion times: all orders, cut between the machines in all ways.
    fn brute(seconds: &[Vec<f64>], machines: &[usize]) -> f64 {
        let n = seconds.len();
        let ways = machines.len().pow(n as u32);
        let sum = |order: &[usize], mut way: usize| {
            let mut busy = vec![0.0; machines.len()];
            let end = |job: &usize| {
                let machine = way % machines.len();
                way /= machines.len();
                busy[machine] += seconds[*job][machines[machine]];
                busy[machine]
            };
            order.iter().map(end).sum::<f64>()
        };
        let orders = permutations(n);
        let all = orders.iter().flat_map(|order| (0..ways).map(move |way| (order, way)));
        all.map(|(order, way)| sum(order, way)).fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_order_on_any_machines_ends_sooner_on_average(
            speeds in prop::collection::vec(prop::collection::vec(0.1..3.0f64, 2), 1..6),
            free in (1u32..3, 0u32..2),
        ) {
            let free = [free.0, free.1];
            let jobs: Vec<(u32, &[f64])> = speeds.iter().map(|speeds| (1, &speeds[..])).collect();
            let view = mixed(&free, &jobs, &vec![100.0; jobs.len()]);
            let rows: Vec<JobIdx> = view.active().collect();
            let found: f64 =
                matched(&view, &rows, &KindCounts::up(&view)).iter().map(|one| one.position as f64 * one.seconds).sum();
            let seconds: Vec<Vec<f64>> =
                speeds.iter().map(|speeds| speeds.iter().map(|speed| 100.0 / speed).collect()).collect();
            let machines: Vec<usize> = (0..2).flat_map(|kind| vec![kind; free[kind] as usize]).collect();
            let least = brute(&seconds, &machines);
            prop_assert!((found - least).abs() < 1e-6 * least, "{found} where {least} can be had");
            prop_assert_eq!(view.capacity(KindId(0)), free[0]);
        }
    }

    #[test]
    fn seven_jobs_on_three_kinds_end_as_soon_as_they_can() {
        let speeds: Vec<Vec<f64>> = (0..7u32)
            .map(|job| (0..3u32).map(|kind| f64::from(1 + (job * 5 + kind * 7 + job * kind) % 9)).collect())
            .collect();
        let jobs: Vec<(u32, &[f64])> = speeds.iter().map(|speeds| (1, &speeds[..])).collect();
        let view = mixed(&[1, 1, 1], &jobs, &[100.0; 7]);
        let rows: Vec<JobIdx> = view.active().collect();
        let found: f64 = matched(&view, &rows, &KindCounts::up(&view))
            .iter()
            .map(|one| one.position as f64 * one.seconds)
            .sum();
        let seconds: Vec<Vec<f64>> =
            speeds.iter().map(|speeds| speeds.iter().map(|speed| 100.0 / speed).collect()).collect();
        // Orders matter within a machine only, and there the shortest go first: try all cuts of that order.
        let least = (0..3usize.pow(7))
            .map(|way| {
                let of = |machine: usize| {
                    let mut own: Vec<f64> = (0..7)
                        .filter(|job| way / 3usize.pow(*job) % 3 == machine)
                        .map(|job| seconds[job as usize][machine])
                        .collect();
                    own.sort_by(f64::total_cmp);
                    own.iter()
                        .rev()
                        .zip(1..)
                        .map(|(seconds, position)| f64::from(position) * seconds)
                        .sum::<f64>()
                };
                (0..3).map(of).sum::<f64>()
            })
            .fold(f64::INFINITY, f64::min);
        assert!((found - least).abs() < 1e-9 * least, "{found} where {least} can be had");
    }
}
