//! Kinds that are all the same to a job. A solution may spread it over them, and then it is moved about for nothing:
//! so its time is put on one of them, the one that it is on if there is room. Nobody's speed changes, and nothing is
//! given away twice. Whom no kind has room for as a whole stays spread; those are fewer than kinds.

use smallvec::SmallVec;
use yard_core::allocation::Share;
use yard_core::ids::KindId;
use yard_core::turns::Turns;
use yard_core::view::View;

/// Shares below this say who has what is left; nobody is moved about for them.
const SLIVER: f64 = 1e-6;

/// Devices by which sums may be off.
const ROUNDING: f64 = 1e-9;

/// Shapes that are the same to a job, by kind.
type Same = SmallVec<[(KindId, u16); 4]>;

/// Jobs to which the same kinds are the same, in gangs of one size.
struct Pool<'s> {
    kinds: Same,
    devices: f64,
    members: Vec<Member<'s>>,
}

/// A job's meant shares, all in shapes that are the same to it.
struct Member<'s> {
    same: Same,
    own: &'s [Share],
    held: Option<u16>,
}

impl Member<'_> {
    fn time(&self) -> f64 {
        self.own.iter().map(|share| share.fraction).sum::<f64>().min(1.0)
    }

    /// Where it is, if it is on one of these kinds.
    fn place_held(&self) -> Option<usize> {
        self.same.iter().position(|(_, shape)| Some(*shape) == self.held)
    }

    fn share(&self, place: usize, fraction: f64) -> Share {
        Share { shape: Some(self.same[place].1), fraction, ..self.own[0].clone() }
    }
}

/// These shares, the meant ones of a job next to each other and first, with nobody spread who need not be. Gavel's
/// simulator has turns of its own, in which all of a job's kinds count.
pub(crate) fn whole(view: &View, shares: Vec<Share>) -> Vec<Share> {
    let jobs = || shares.chunk_by(|a, b| a.jobs == b.jobs && a.fraction >= SLIVER && b.fraction >= SLIVER);
    let is_spread = |own: &[Share]| own.len() > 1 && member(view, own).is_some();
    if view.turns != Turns::Owed || !jobs().any(is_spread) {
        return shares;
    }
    let mut spare: Vec<f64> = view.kinds.ids().map(|kind| view.capacity(kind) as f64).collect();
    let (mut pools, mut settled) = (Vec::new(), Vec::with_capacity(shares.len()));
    for own in jobs() {
        own.iter().for_each(|share| count(view, share, -1.0, &mut spare));
        match member(view, own) {
            Some(member) => join(view, &mut pools, member),
            None => settled.extend_from_slice(own),
        }
    }
    pools.iter().for_each(|pool| hand_out(view, pool, &mut spare, &mut settled));
    settled
}

/// A job that could be on any of several kinds, by its shares.
fn member<'s>(view: &View, own: &'s [Share]) -> Option<Member<'s>> {
    let (job, first) = (own[0].jobs[0], own[0].shape? as usize);
    if own[0].jobs.len() > 1 || own[0].fraction < SLIVER {
        return None;
    }
    let spec = view.spec(job);
    let like = &spec.shapes[first];
    let is_same = |(shape, speed): &(u16, &f64)| {
        let other = &spec.shapes[*shape as usize];
        **speed == spec.speeds[first]
            && (other.needs.len(), other.spread, other.devices()) == (1, like.spread, like.devices())
            && other.devices() <= view.capacity(other.needs[0].kind)
    };
    let same = (0..).zip(&*spec.speeds).filter(is_same);
    let same: Same = same.map(|(shape, _)| (spec.shapes[shape as usize].needs[0].kind, shape)).collect();
    let lies = |share: &Share| same.iter().any(|(_, shape)| Some(*shape) == share.shape);
    let distinct = same.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let held = view.run(job).lease.map(|_| view.run(job).shape);
    (same.len() > 1 && distinct && own.iter().all(lies)).then_some(Member { same, own, held })
}

/// Adds what a share takes of each kind to what is there.
fn count(view: &View, share: &Share, sign: f64, devices: &mut [f64]) {
    let Some(shape) = share.shape else { return };
    for need in &view.spec(share.jobs[0]).shapes[shape as usize].needs {
        devices[need.kind.index()] += sign * share.fraction * need.devices as f64;
    }
}

fn join<'s>(view: &View, pools: &mut Vec<Pool<'s>>, member: Member<'s>) {
    let devices = view.spec(member.own[0].jobs[0]).shapes[member.same[0].1 as usize].devices() as f64;
    let kinds = |same: &Same| same.iter().map(|(kind, _)| *kind).collect::<SmallVec<[KindId; 4]>>();
    let fits = |pool: &Pool<'_>| pool.devices == devices && kinds(&pool.kinds) == kinds(&member.same);
    match pools.iter().position(fits) {
        Some(at) => pools[at].members.push(member),
        None => pools.push(Pool { kinds: member.same.clone(), devices, members: vec![member] }),
    }
}

/// Puts each job of a pool on one kind: first who is there already, then the others, then who must be spread.
fn hand_out(view: &View, pool: &Pool<'_>, spare: &mut [f64], settled: &mut Vec<Share>) {
    for share in pool.members.iter().flat_map(|member| member.own) {
        count(view, share, 1.0, spare);
    }
    let mut deal = Deal { pool, spare, settled };
    let mut left: Vec<&Member<'_>> = pool.members.iter().collect();
    left.retain(|member| !deal.is_put(member, member.place_held()));
    left.retain(|member| !deal.is_put(member, Some(deal.widest())));
    left.into_iter().for_each(|member| deal.spread(member));
}

/// A pool while its devices are handed out.
struct Deal<'d, 's> {
    pool: &'d Pool<'s>,
    /// Devices left, by kind.
    spare: &'d mut [f64],
    settled: &'d mut Vec<Share>,
}

impl Deal<'_, '_> {
    /// Puts all of a job's time in one place, if there is room. Returns whether there was.
    fn is_put(&mut self, member: &Member<'_>, place: Option<usize>) -> bool {
        let room = |place: &usize| self.left(*place) + ROUNDING >= member.time() * self.pool.devices;
        let place = place.filter(room);
        place.inspect(|place| self.put(member, *place, member.time())).is_some()
    }

    /// Puts a job where most is left, then the rest of it where most is left then.
    fn spread(&mut self, member: &Member<'_>) {
        let mut time = member.time();
        while time > SLIVER {
            let place = self.widest();
            let part = time.min(self.left(place) / self.pool.devices);
            if part <= ROUNDING {
                break;
            }
            self.put(member, place, part);
            time -= part;
        }
    }

    fn put(&mut self, member: &Member<'_>, place: usize, time: f64) {
        self.spare[self.pool.kinds[place].0.index()] -= time * self.pool.devices;
        self.settled.push(member.share(place, time));
    }

    fn left(&self, place: usize) -> f64 {
        self.spare[self.pool.kinds[place].0.index()]
    }

    /// Where most is left; of equals the first.
    fn widest(&self) -> usize {
        let by_left = |a: &usize, b: &usize| self.left(*a).total_cmp(&self.left(*b));
        (0..self.pool.kinds.len()).rev().max_by(by_left).expect("it has several kinds")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use yard_core::ids::JobIdx;
    use yard_core::job::Rank;

    use super::*;
    use crate::testing::mixed;

    fn parts(job: u32, parts: &[f64]) -> Vec<Share> {
        let share = |(shape, part): (u16, &f64)| {
            let like = Share::leftover(JobIdx(job), shape, Rank::default());
            Share { fraction: *part, ..like }
        };
        (0..).zip(parts).filter(|(_, part)| **part > SLIVER).map(share).collect()
    }

    #[test]
    fn who_is_the_same_everywhere_is_in_one_place_and_who_is_not_is_left_alone() {
        let view = mixed(&[2, 2], &[(1, &[3.0, 3.0]), (1, &[1.0, 1.0]), (1, &[4.0, 2.0])], &[10.0; 3]);
        let third = 1.0 / 3.0;
        let spread: Vec<Share> = (0..3).flat_map(|job| parts(job, &[third, 2.0 * third])).collect();
        let told: Vec<_> = whole(&view, spread)
            .iter()
            .map(|share| (share.jobs[0].0, share.shape.unwrap(), (share.fraction * 3.0).round()))
            .collect();
        assert_eq!(told, [(2, 0, 1.0), (2, 1, 2.0), (0, 0, 3.0), (1, 1, 3.0)]);
    }

    #[test]
    fn in_gavels_turns_nothing_is_changed() {
        let mut view = mixed(&[2, 2], &[(1, &[3.0, 3.0])], &[10.0]);
        view.turns = Turns::Gavel(yard_core::turns::GavelTurns { shuffle: None, leftovers: true });
        assert_eq!(whole(&view, parts(0, &[0.5, 0.5])), parts(0, &[0.5, 0.5]));
    }

    proptest! {
        #[test]
        fn everybody_keeps_its_time_and_every_kind_its_capacity(
            jobs in prop::collection::vec((0..2_u32, prop::bool::ANY, prop::array::uniform3(0.0..1.0_f64)), 1..30),
        ) {
            let speeds = |same: bool| if same { [2.0, 2.0, 2.0] } else { [3.0, 2.0, 1.0] };
            let specs: Vec<_> = jobs.iter().map(|job| (1 << job.0, speeds(job.1))).collect();
            let lines: Vec<(u32, &[f64])> = specs.iter().map(|(size, speeds)| (*size, &speeds[..])).collect();
            let view = mixed(&[6, 5, 4], &lines, &vec![10.0; jobs.len()]);
            // Scaled so that all of it fits.
            let most = jobs.len() as f64 * 2.0 / 4.0;
            let scale = |parts: [f64; 3]| parts.map(|part| part / 3.0 / most.max(1.0));
            let spread: Vec<Share> = (0..).zip(&jobs).flat_map(|(at, job)| parts(at, &scale(job.2))).collect();
            let settled = whole(&view, spread.clone());
            let time = |shares: &[Share], job: u32| -> f64 {
                shares.iter().filter(|share| share.jobs[0].0 == job).map(|share| share.fraction).sum()
            };
            for job in 0..jobs.len() as u32 {
                prop_assert!((time(&spread, job) - time(&settled, job)).abs() < 1e-5);
            }
            let mut left = vec![6.0, 5.0, 4.0];
            settled.iter().for_each(|share| count(&view, share, -1.0, &mut left));
            prop_assert!(left.iter().all(|left| *left > -1e-6), "{left:?}");
            let spread_still = (0..).zip(&jobs).filter(|(_, job)| job.1).filter(|(at, _)| {
                settled.iter().filter(|share| share.jobs[0].0 == *at).count() > 1
            });
            prop_assert!(spread_still.count() <= 4, "two sizes on three kinds leave at most two each");
        }
    }
}
