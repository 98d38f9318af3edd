//! Who may be on the same devices. Every policy that puts several jobs there asks here, so that what a job says of
//! sharing, and the memory of the devices, count the same for all of them.
//!
//! A job that wants to be alone is. A guaranteed job has none beside it but opportunistic ones: only those are
//! paused when they disturb it. Words of anti-affinity and exclusion are KubeShare's and hold everywhere. Memory of
//! all must fit: what a job asked for and may not exceed, else what it was seen to hold. Where a job's memory is not
//! known it fits only beside those with which it was measured, or where the device's memory is not known either.

use yard_core::ids::{JobIdx, KindId};
use yard_core::job::{Claim, Shape, Sharing};
use yard_core::view::View;

/// What devices have room for.
pub(crate) struct Room<'v> {
    pub(crate) view: &'v View,
    /// Memory of each device, by kind; looked up once, because it is asked for each pair of jobs.
    memory_mib: Vec<Option<u32>>,
}

impl<'v> Room<'v> {
    pub(crate) fn new(view: &'v View) -> Room<'v> {
        Room { view, memory_mib: view.kinds.ids().map(|kind| view.memory_mib(kind)).collect() }
    }

    /// Whether these jobs may be on the same devices in this shape. One alone always may.
    pub(crate) fn fits_together(&self, jobs: &[JobIdx], shape: &Shape) -> bool {
        jobs.len() < 2 || self.may_share(jobs, shape) && self.memory_fits(jobs, shape)
    }

    /// Steps a second of two jobs on the same devices, as believed, in a shape of the first; none where it is not
    /// known, they may not, or a guaranteed one would lose more than it may.
    pub(crate) fn packed(&self, a: JobIdx, b: JobIdx, shape_of_a: u16) -> Option<[f64; 2]> {
        let (view, shape) = (self.view, self.view.spec(a).shapes.get(shape_of_a as usize)?);
        let speeds = view.packed(a, b, shape_of_a).filter(|_| self.fits_together(&[a, b], shape))?;
        let alone = [view.speed(a, shape_of_a), view.speed(b, view.spec(b).way(shape)?)];
        let keeps = |at: usize, job: JobIdx| {
            let said = view.spec(job).sharing();
            said.claim != Claim::Guaranteed || speeds[at] >= alone[at] * (1.0 - said.loss_max)
        };
        (keeps(0, a) && keeps(1, b)).then_some(speeds)
    }

    /// Whether what these jobs say allows them on the same devices, whatever their memory.
    pub(crate) fn may_share(&self, jobs: &[JobIdx], shape: &Shape) -> bool {
        let runs_so = |job: &JobIdx| {
            let spec = self.view.spec(*job);
            spec.way(shape).is_some_and(|way| spec.speeds[way as usize] > 0.0)
        };
        let home = |job: &JobIdx| &self.view.run(*job).home;
        // Who lies frozen goes on there, and where others are is not known here.
        let same_home = jobs.iter().all(|job| home(job) == home(&jobs[0]));
        // What a job asks of its hosts it has for itself.
        let asks = |job: &JobIdx| jobs.len() > 1 && self.view.spec(*job).asks_hosts();
        same_home
            && !jobs.iter().any(asks)
            && jobs.iter().all(runs_so)
            && agree(jobs.iter().map(|job| self.view.spec(*job).sharing()))
    }

    fn memory_fits(&self, jobs: &[JobIdx], shape: &Shape) -> bool {
        shape.needs.iter().all(|need| self.memory_fits_on(jobs, need.kind))
    }

    fn memory_fits_on(&self, jobs: &[JobIdx], kind: KindId) -> bool {
        let Some(total) = self.memory_of(kind) else { return true };
        let (mut sum, mut known) = (0, true);
        for job in jobs {
            known &= memory_mib(self.view, *job).is_some();
            sum += u64::from(memory_mib(self.view, *job).unwrap_or(0));
        }
        sum <= u64::from(total) && (known || self.measured(jobs, kind))
    }

    /// Memory of each device of a kind, where it is known.
    pub(crate) fn memory_of(&self, kind: KindId) -> Option<u32> {
        self.memory_mib.get(kind.index()).copied().flatten()
    }

    /// Whether something is known of every two of these jobs beside each other.
    fn measured(&self, jobs: &[JobIdx], kind: KindId) -> bool {
        let profile = |job: &JobIdx| self.view.spec(*job).profile;
        let known = |a: &JobIdx, b: &JobIdx| self.view.belief.pair(profile(a), profile(b), kind).is_some();
        jobs.iter().enumerate().all(|(at, a)| jobs[at + 1..].iter().all(|b| known(a, b)))
    }
}

/// Memory that a job takes of each of its devices, where that is known.
pub(crate) fn memory_mib(view: &View, job: JobIdx) -> Option<u32> {
    view.spec(job).sharing().memory_mib.or_else(|| view.usage(job).map(|usage| usage.memory_mib))
}

/// All that counts of a job when others are beside it, but for its speed.
pub(crate) type Likeness<'v> = (Claim, bool, Option<u32>, Option<&'v str>, Option<&'v str>);

/// Jobs of equal likeness may be beside the same ones.
pub(crate) fn likeness(view: &View, job: JobIdx) -> Likeness<'_> {
    let said = view.spec(job).sharing();
    let (anti, exclusion) = (said.anti_affinity.as_deref(), said.exclusion.as_deref());
    (said.claim, said.alone, memory_mib(view, job), anti, exclusion)
}

/// Whether what jobs say of sharing allows all of them on one device.
fn agree<'a>(jobs: impl Iterator<Item = &'a Sharing> + Clone) -> bool {
    let count = |claim: Claim| jobs.clone().filter(|job| job.claim == claim).count();
    let guarded = match count(Claim::Guaranteed) {
        0 => true,
        1 => count(Claim::Ordinary) == 0,
        _ => false,
    };
    let mut words = jobs.clone().filter_map(|job| job.anti_affinity.as_deref()).collect::<Vec<_>>();
    words.sort_unstable();
    let apart = words.windows(2).all(|pair| pair[0] != pair[1]);
    let mut exclusions = jobs.clone().map(|job| &job.exclusion);
    let first = exclusions.next();
    guarded && apart && exclusions.all(|word| Some(word) == first) && !jobs.clone().any(|job| job.alone)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::belief::Belief;
    use yard_core::ids::ProfileId;
    use yard_core::job::Usage;

    use super::*;
    use crate::testing::World;

    fn fits(memory_mib: Option<u32>, jobs: &[Sharing]) -> bool {
        let mut world = memory_mib.map_or_else(|| World::new(&[1]), |mib| World::with_memory(&[1], mib));
        for job in jobs {
            world.submit_sharing(1, 10.0, job.clone());
        }
        let rows: Vec<_> = world.view.active().collect();
        Room::new(&world.view).fits_together(&rows, &world.view.specs[0].shapes[0])
    }

    fn of(memory_mib: u32) -> Sharing {
        Sharing { memory_mib: Some(memory_mib), ..Sharing::PLAIN }
    }

    #[test]
    fn memory_of_all_must_fit() {
        assert!(fits(Some(100), &[of(60), of(40)]));
        assert!(!fits(Some(100), &[of(60), of(41)]));
        assert!(fits(Some(100), &[of(101)]), "one alone is tried");
        let seen = Sharing { usage: Some(Usage { busy: 0.5, memory_mib: 41 }), ..Sharing::PLAIN };
        assert!(!fits(Some(100), &[of(60), seen.clone()]));
        assert!(
            fits(Some(100), &[of(60), Sharing { memory_mib: Some(40), ..seen }]),
            "it may not exceed that"
        );
    }

    #[test]
    fn unknown_memory_fits_where_nothing_is_known_or_it_was_measured() {
        assert!(!fits(Some(100), &[of(60), Sharing::PLAIN]));
        assert!(fits(None, &[of(60), Sharing::PLAIN]));
        let mut world = World::with_memory(&[1], 100);
        world.submit_all(&[(1, 10.0); 2]);
        for spec in Arc::make_mut(&mut world.view.specs) {
            Arc::make_mut(spec).profile = ProfileId(1);
        }
        let mut belief = Belief::default();
        belief.set_beside(ProfileId(1), ProfileId(1), KindId(0), 0.7);
        world.view.belief = Arc::new(belief);
        let shape = &world.view.specs[0].shapes[0];
        assert!(Room::new(&world.view).fits_together(&[JobIdx(0), JobIdx(1)], shape));
    }

    #[test]
    fn words_keep_jobs_apart() {
        let claims = |claims: &[Claim]| {
            let jobs: Vec<_> = claims.iter().map(|claim| Sharing { claim: *claim, ..of(1) }).collect();
            fits(None, &jobs)
        };
        use Claim::{Guaranteed, Opportunistic, Ordinary};
        assert!(claims(&[Guaranteed, Opportunistic, Opportunistic]));
        assert!(claims(&[Ordinary, Opportunistic]));
        assert!(!claims(&[Guaranteed, Guaranteed]) && !claims(&[Guaranteed, Ordinary]));
        let word = |text: &str| Some(Arc::from(text));
        let anti = |text| Sharing { anti_affinity: word(text), ..of(1) };
        assert!(fits(None, &[anti("a"), anti("b")]) && !fits(None, &[anti("a"), of(1), anti("a")]));
        let excluded = |text| Sharing { exclusion: word(text), ..of(1) };
        assert!(fits(None, &[excluded("a"), excluded("a")]));
        assert!(!fits(None, &[excluded("a"), of(1)]) && !fits(None, &[excluded("a"), excluded("b")]));
        assert!(!fits(None, &[of(1), Sharing { alone: true, ..of(1) }]));
    }
}
