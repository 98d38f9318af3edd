//! Gandiva (Xiao et al., "Gandiva: Introspective Cluster Scheduling for Deep Learning", OSDI 2018): all jobs take
//! turns, and when there are more than the devices can take, pairs of them share devices: by trial and measurement,
//! not at random as in Gavel's version.
//!
//! Objective: equal time for all groups, x_gk = min(1, N_k / (n s_g)) on each kind k; with as few pairs as make the
//! groups fit, those first whose fractions of speed kept add up to most. A pair is kept while they add up to more
//! than `gain`. Taking turns gives 1; the default asks for a fifth more, because a pair that gains little holds both
//! back (chosen among 1 to 2 on Gavel's three traces, not derived). A pair of which nothing is known is hoped to do as much
//! as both ask of the device, where their usage is known: the least busy jobs are tried first. Where that is not known
//! either it is tried where the belief learns. The measurement decides; the belief is the memory.
//! Jobs that may run on more devices take those that would idle, and give them back when somebody comes (`grow`).
//! Reads: profiles, shapes, leases in common, the belief, usage, devices of each kind. Cost: O(profiles² kinds + jobs).
//! Only jobs of one size share devices; no migration to better places.
//! Not to be used where mean completion time matters and durations are known: see `srtf`.

mod grow;

use std::collections::{BTreeMap, BTreeSet};

use smallvec::smallvec;
use yard_core::allocation::{Allocation, Share};
use yard_core::ids::{JobIdx, KindId, LeaseId, ProfileId};
use yard_core::job::{Claim, Rank, Shape};
use yard_core::policy::{Cadence, Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::params::{ParamError, Params};
use crate::seats::fits_nodes;
use crate::together::{Likeness, Room, likeness};
use crate::{OTHER, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "gandiva",
    live: "company::a_pair_that_does_less_together_is_undone_and_not_tried_again",
    family: "sharing",
    paper: "Gandiva, Xiao et al., OSDI 2018",
    there: "time slices, pairs by trial and measurement, growing and shrinking",
    missing: "migration to better places, affinity of servers, over-subscription server by server",
    about: "Equal time in turns; pairs that do more together share devices when there are too few",
    params: &[(
        "gain",
        "what two jobs on the same devices must do together, 1 = one alone; 2 never packs [1.2]",
    )],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[],
    make: |params| Ok(Box::new(Gandiva::new(params)?)),
};

/// What a pair of which nothing is known is hoped to do: less than pairs known to be good, more than bad ones.
const HOPE: f64 = 1.25;

/// What two jobs must do together.
const GAIN: f64 = 1.2;

struct Gandiva {
    gain: f64,
}

impl Gandiva {
    fn new(params: &Params) -> Result<Gandiva, ParamError> {
        Ok(Gandiva { gain: params.positive("gain")?.unwrap_or(GAIN) })
    }
}

impl Policy for Gandiva {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let jobs: Vec<JobIdx> = view.active().collect();
        let supply: u32 = view.kinds.ids().map(|kind| view.capacity(kind)).sum();
        let demand: u64 = jobs.iter().map(|job| u64::from(size(view, *job))).sum();
        let room = Room::new(view);
        let groups = Pairing::new(&room, self.gain, jobs).groups(demand.saturating_sub(u64::from(supply)));
        Ok(Allocation::fractions(equal_shares(&room, &groups)))
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

/// The fewest devices of a job, on the kind it likes best.
fn size(view: &View, job: JobIdx) -> u32 {
    let shapes = &view.spec(job).shapes;
    let Some(first) = shapes.first() else { return 0 };
    shapes.iter().filter(|shape| same_kinds(shape, first)).map(Shape::devices).min().unwrap_or(0)
}

fn same_kinds(a: &Shape, b: &Shape) -> bool {
    a.needs.iter().map(|need| need.kind).eq(b.needs.iter().map(|need| need.kind))
}

/// A job, or two that share devices.
type GandivaGroup = (JobIdx, Option<JobIdx>);

/// Jobs of one size and profile that are alike beside others: the last is the number of what they say and do there.
type SizeClass = (u32, ProfileId, usize);

/// Who goes with whom.
struct Pairing<'a> {
    room: &'a Room<'a>,
    view: &'a View,
    gain: f64,
    /// Jobs without a partner, the oldest last.
    single: BTreeMap<SizeClass, Vec<JobIdx>>,
    /// The class of each job.
    class_of: BTreeMap<JobIdx, SizeClass>,
    groups: Vec<GandivaGroup>,
}

impl<'a> Pairing<'a> {
    fn new(room: &'a Room<'a>, gain: f64, mut jobs: Vec<JobIdx>) -> Pairing<'a> {
        let view = room.view;
        jobs.sort_unstable_by_key(|job| std::cmp::Reverse(view.run(*job).id));
        let known: BTreeSet<Manners> = jobs.iter().map(|job| manners(view, *job)).collect();
        let numbers: BTreeMap<Manners, usize> = known.into_iter().zip(0..).collect();
        let class = |job| (size(view, job), view.spec(job).profile, numbers[&manners(view, job)]);
        let class_of: BTreeMap<JobIdx, SizeClass> = jobs.iter().map(|job| (*job, class(*job))).collect();
        let mut single: BTreeMap<_, Vec<JobIdx>> = BTreeMap::new();
        for job in jobs {
            single.entry(class_of[&job]).or_default().push(job);
        }
        Pairing { room, view, gain, single, class_of, groups: Vec::new() }
    }

    /// Groups that ask for `excess` devices less than the jobs do, or as near to it as good pairs come.
    fn groups(mut self, excess: u64) -> Vec<GandivaGroup> {
        let mut left = excess as i64;
        for (a, b) in self.together() {
            if left > 0 && self.value(a, b).is_some() {
                left -= self.join(a, b);
            }
        }
        for (one, other) in self.candidates() {
            while let Some((a, b)) = self.next(one, other).filter(|_| left > 0) {
                left -= self.join(a, b);
            }
        }
        let rest = std::mem::take(&mut self.single).into_values().flatten().map(|job| (job, None));
        self.groups.extend(rest);
        self.groups
    }

    /// Pairs that share devices already.
    fn together(&self) -> Vec<(JobIdx, JobIdx)> {
        let mut leases: BTreeMap<LeaseId, Vec<JobIdx>> = BTreeMap::new();
        for job in self.single.values().flatten() {
            self.view.run(*job).lease.iter().for_each(|lease| leases.entry(*lease).or_default().push(*job));
        }
        let pair = |jobs: Vec<JobIdx>| <[JobIdx; 2]>::try_from(jobs).ok().map(|[a, b]| (a, b));
        let mut pairs: Vec<_> = leases.into_values().filter_map(pair).collect();
        pairs.iter_mut().for_each(|pair| *pair = self.in_order(pair.0, pair.1));
        pairs
    }

    /// Profiles of one size that do well together, the best first.
    fn candidates(&self) -> Vec<(SizeClass, SizeClass)> {
        let keys: Vec<_> = self.single.keys().copied().collect();
        let mut found = Vec::new();
        for (at, one) in keys.iter().enumerate() {
            for other in keys[at..].iter().take_while(|other| other.0 == one.0) {
                let jobs = self.single[one].last().zip(self.single[other].first());
                let value = jobs.and_then(|(a, b)| self.value(*a, *b));
                found.extend(value.map(|value| (value, *one, *other)));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        found.into_iter().map(|(_, one, other)| (one, other)).collect()
    }

    /// The oldest jobs of two profiles that can be joined.
    fn next(&self, one: SizeClass, other: SizeClass) -> Option<(JobIdx, JobIdx)> {
        let a = self.single.get(&one)?.last()?;
        let b = self.single.get(&other)?.iter().rev().find(|job| *job != a)?;
        let (a, b) = self.in_order(*a, *b);
        self.value(a, b).map(|_| (a, b))
    }

    fn in_order(&self, a: JobIdx, b: JobIdx) -> (JobIdx, JobIdx) {
        if self.view.run(a).id < self.view.run(b).id { (a, b) } else { (b, a) }
    }

    fn join(&mut self, a: JobIdx, b: JobIdx) -> i64 {
        for joined in [a, b] {
            let jobs = self.single.get_mut(&self.class_of[&joined]);
            jobs.into_iter().for_each(|jobs| jobs.retain(|job| *job != joined));
        }
        self.groups.push((a, Some(b)));
        i64::from(size(self.view, a))
    }

    /// What two jobs do together, by devices of each kind that the first could have; none where taking turns does
    /// as well.
    fn value(&self, a: JobIdx, b: JobIdx) -> Option<f64> {
        if size(self.view, a) != size(self.view, b) {
            return None;
        }
        let (mut sum, mut devices) = (0.0, 0.0);
        for (shape, capacity) in ways(self.view, a) {
            sum += capacity * together(self.room, a, b, shape).unwrap_or(0.0);
            devices += capacity;
        }
        Some(sum / devices).filter(|value| *value > self.gain)
    }
}

/// What a job says of others beside it, its memory in steps of a fifth, and how busy it is, in tenths. Coarse, so that
/// there are few classes; whether two jobs really fit is asked of the two.
type Manners<'v> = (Likeness<'v>, Option<u32>);

fn manners(view: &View, job: JobIdx) -> Manners<'_> {
    let busy = view.usage(job).map(|usage| (usage.busy * 10.0).ceil() as u32);
    let (claim, alone, memory, anti, exclusion) = likeness(view, job);
    let coarse = |mib: u32| {
        let dropped = 29 - mib.leading_zeros().min(29);
        mib >> dropped << dropped
    };
    ((claim, alone, memory.map(coarse), anti, exclusion), busy)
}

/// The smallest shape of a job on each kind that could be had now, the first of them, with the kind's devices. Shapes
/// that span kinds are left out.
fn ways(view: &View, job: JobIdx) -> Vec<(u16, f64)> {
    let shapes = &view.spec(job).shapes;
    let mut found: Vec<(KindId, u16)> = Vec::new();
    for (at, shape) in (0..).zip(shapes.iter()) {
        let [need] = &shape.needs[..] else { continue };
        if !fits_nodes(view, shape) {
            continue;
        }
        match found.iter_mut().find(|(kind, _)| *kind == need.kind) {
            Some((_, best)) if shapes[*best as usize].devices() > need.devices => *best = at,
            Some(_) => {}
            None => found.push((need.kind, at)),
        }
    }
    found.into_iter().map(|(kind, shape)| (shape, f64::from(view.capacity(kind)))).collect()
}

/// The fractions of their speeds that two jobs keep in a shape of the first, added up; none where they cannot share.
fn together(room: &Room<'_>, a: JobIdx, b: JobIdx, shape: u16) -> Option<f64> {
    let view = room.view;
    let (one, other) = (view.spec(a), view.spec(b));
    let (held, own) = (&one.shapes[shape as usize], other.way(&one.shapes[shape as usize])?);
    let kind = held.needs.first()?.kind;
    if view.belief.beside(one.profile, other.profile, kind).is_none() {
        return hope(view, a, b).filter(|_| room.fits_together(&[a, b], held));
    }
    let speeds = room.packed(a, b, shape)?;
    Some(speeds[0] / view.speed(a, shape) + speeds[1] / view.speed(b, own))
}

/// What a pair of which nothing is known may be hoped to do.
fn hope(view: &View, a: JobIdx, b: JobIdx) -> Option<f64> {
    let (one, other) = (view.spec(a), view.spec(b));
    let Some((ours, theirs)) = view.usage(a).zip(view.usage(b)) else {
        let learns = view.belief.learns() && one.profile.0 > 0 && other.profile.0 > 0;
        return learns.then_some(HOPE);
    };
    let left =
        |first: f64, second: f64| 1.0 + ((1.0 - first) / second.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    Some(match (one.sharing().claim, other.sharing().claim) {
        // Beside one that is guaranteed the other has what that leaves.
        (Claim::Guaranteed, _) => left(ours.busy, theirs.busy),
        (_, Claim::Guaranteed) => left(theirs.busy, ours.busy),
        _ => 2.0 / (ours.busy + theirs.busy).max(1.0),
    })
}

/// The same time for every group, over all kinds it can use; a job that has grown has what it has grown into.
fn equal_shares(room: &Room<'_>, groups: &[GandivaGroup]) -> Vec<Share> {
    let view = room.view;
    let mut shares = Vec::new();
    let grown = grow::grown(view, groups);
    for (lead, partner) in groups {
        if let Some(shape) = grown.get(lead) {
            shares.push(Share { shape: Some(*shape), ..Share::part(*lead, 1.0) });
            continue;
        }
        let fits = |shape: u16| partner.is_none_or(|other| together(room, *lead, other, shape).is_some());
        let mut ways = ways(view, *lead);
        ways.retain(|(shape, _)| fits(*shape));
        let wanted = (groups.len() as u32 * size(view, *lead)) as f64;
        let total: f64 = ways.iter().map(|(_, capacity)| capacity / wanted).sum();
        let jobs = partner.map_or_else(|| smallvec![*lead], |other| smallvec![*lead, other]);
        let share = |(shape, capacity): (u16, f64)| {
            let fraction = capacity / wanted / total.max(1.0);
            Share {
                jobs: smallvec::SmallVec::clone(&jobs),
                shape: Some(shape),
                fraction,
                rank: Rank::default(),
            }
        };
        if ways.is_empty() {
            // It can have none of that now, but perhaps a shape over several kinds, or one when nodes come back.
            shares.push(Share::part(*lead, 1.0 / groups.len() as f64));
        }
        shares.extend(ways.into_iter().map(share));
    }
    shares
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::allocation::Shares;
    use yard_core::belief::Belief;
    use yard_core::ids::JobId;

    use super::*;
    use crate::testing::{World, policy};

    /// Four jobs of profiles 1, 1, 2, 2 on two devices.
    fn crowded(kept: f64, learns: bool) -> World {
        let mut world = World::new(&[2]);
        world.submit_all(&[(1, 100.0); 4]);
        for (at, spec) in Arc::make_mut(&mut world.view.specs).iter_mut().enumerate() {
            Arc::make_mut(spec).profile = ProfileId(1 + at as u32 / 2);
        }
        let mut belief = Belief::default();
        for (a, b, kept) in [(1, 2, kept), (2, 1, kept), (1, 1, 0.65), (2, 2, 0.3)] {
            belief.set_beside(ProfileId(a), ProfileId(b), KindId(0), kept);
        }
        world.view.belief = Arc::new(if learns { belief.learning() } else { belief });
        world
    }

    fn groups(world: &World) -> Vec<(Vec<u32>, f64)> {
        let Ok(Allocation { shares: Shares::All(shares), .. }) = policy("gandiva").allocate(&world.view)
        else {
            panic!("it answers in full")
        };
        shares.iter().map(|share| (share.jobs.iter().map(|job| job.0).collect(), share.fraction)).collect()
    }

    #[test]
    fn the_best_pairs_share_devices_and_bad_ones_take_turns() {
        assert_eq!(groups(&crowded(0.9, false)), [(vec![0, 2], 1.0), (vec![1, 3], 1.0)]);
        // Jobs 0 and 1 do a little more together than in turns; the other two do not.
        let turns = 2.0 / 3.0;
        assert_eq!(groups(&crowded(0.5, false)), [(vec![0, 1], turns), (vec![3], turns), (vec![2], turns)]);
    }

    #[test]
    fn a_pair_in_being_is_kept_while_it_is_good_and_undone_when_not() {
        let paired = |kept| {
            let mut world = crowded(kept, false);
            let runs = Arc::make_mut(&mut world.view.runs);
            (runs[1].lease, runs[2].lease) = (Some(LeaseId(7)), Some(LeaseId(7)));
            groups(&world).into_iter().map(|(jobs, _)| jobs).collect::<Vec<_>>()
        };
        assert_eq!(paired(0.9), [[1, 2], [0, 3]]);
        assert!(!paired(0.45).contains(&vec![1, 2]));
    }

    #[test]
    fn unknown_pairs_are_tried_where_something_is_learned_from_it() {
        let unknown = |learns| {
            let mut world = crowded(0.4, learns);
            for spec in Arc::make_mut(&mut world.view.specs) {
                Arc::make_mut(spec).profile = ProfileId(spec.profile.0 + 7);
            }
            groups(&world).len()
        };
        assert_eq!((unknown(true), unknown(false)), (2, 4));
    }

    #[test]
    fn without_a_crowd_everybody_has_devices() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(1, 100.0); 4]);
        assert_eq!(groups(&world), [3, 2, 1, 0].map(|job| (vec![job], 1.0)));
        assert_eq!(world.view.run(JobIdx(3)).id, JobId(3));
    }
}
