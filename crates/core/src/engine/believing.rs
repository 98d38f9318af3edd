//! What the engine believes of speeds, what it learns of them from reports, and where that shows: in how fast it
//! takes its jobs to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Engine;
use crate::belief::Belief;
use crate::ids::{JobIdx, LeaseId, ProfileId};
use crate::job::{JobSpec, JobState, Length, Shape, Usage};
use crate::state::{State, Stint};
use crate::units::Span;

/// Shapes, and a speed for each.
type Ways = (Arc<[Shape]>, Arc<[f64]>);

/// Steps that a job would have made alone before making none beside another counts.
const STEPS_MISSED: f64 = 10.0;

/// Who computes less than this alone cannot be measured by it.
const BUSY_MIN: f64 = 0.05;

/// A shorter stretch says more of when reports are sent than of speed.
const STINT_MIN: Span = Span::from_whole_secs(1);

impl Engine {
    pub(super) fn believe(&mut self, belief: Belief) {
        let state = &mut self.state;
        let mut belief = belief.sound();
        belief.remember(&state.belief);
        for row in state.rows.values() {
            let spec = &state.specs[row.index()];
            if spec.training.is_some() {
                continue;
            }
            belief.guess(spec.profile, &spec.shapes, &spec.speeds);
        }
        state.belief = Arc::new(belief);
        state.stints.clear();
        state.changed.all = true;
        state.dirty |= !state.rows.is_empty();
    }
}

impl State {
    /// The jobs on a lease's devices changed, or what is believed of them: how fast each is taken to be, anew.
    pub(super) fn set_paces(&mut self, lease: LeaseId) {
        let Some(lease) = self.leases.get(lease) else { return };
        let works = |job: &JobIdx| self.run(*job).state == JobState::Running;
        let working: SmallVec<[JobIdx; 2]> = lease.jobs.iter().copied().filter(works).collect();
        for job in &working {
            let profile = |other: &JobIdx| self.specs[other.index()].profile;
            let company = working.iter().filter(|other| *other != job).map(profile).collect();
            self.set_pace(*job, &company);
            if self.belief.measures() {
                self.watch(*job, company);
            }
        }
    }

    fn set_pace(&mut self, job: JobIdx, company: &SmallVec<[ProfileId; 1]>) {
        let (now, spec, at) = (self.now, &self.specs[job.index()], self.way(job));
        let kept = self.belief.kept(spec.profile, company.iter().copied(), &spec.shapes[at].needs);
        let speed = spec.speeds[at] * kept;
        if self.run(job).speed != speed {
            let run = self.run_mut(job);
            (run.done, run.as_of, run.speed) = (run.done_at(now), now, speed);
            self.changed.touched.push(job);
        }
    }

    /// The shape by whose speed a job that holds devices goes.
    fn way(&self, job: JobIdx) -> usize {
        let (run, shapes) = (self.run(job), &self.specs[job.index()].shapes);
        let lease = run.lease.and_then(|lease| self.leases.get(lease));
        lease.map_or(run.shape, |lease| self.nodes.lying(shapes, run.shape, &lease.placement)) as usize
    }

    /// Goes on measuring a job where it is in the same company, or where it was just heard of. Else the next
    /// report begins anew: a stretch in mixed company tells nothing.
    fn watch(&mut self, job: JobIdx, company: SmallVec<[ProfileId; 1]>) {
        let (now, started, steps) = (self.now, self.run(job).since, self.run(job).done);
        match self.stints.get_mut(&job) {
            Some(stint) if stint.company == company => {}
            Some(stint) if stint.since == now => stint.company = company,
            None if started == now => {
                self.stints.insert(job, Stint { since: now, steps, company, until: None });
            }
            _ => _ = self.stints.remove(&job),
        }
    }

    /// A job is known to have done so many steps by now: learns how fast it was since it was last heard of.
    pub(super) fn measure(&mut self, job: JobIdx, steps: f64) {
        let (now, spec) = (self.now, &self.specs[job.index()]);
        if !self.belief.measures() || spec.training.is_some() {
            return;
        }
        // Nobody makes more steps than there are: one that says so would teach all of its profile a speed that is none.
        let steps = if spec.length == Length::Stated { steps.min(spec.steps) } else { steps };
        let fresh = || Stint { since: now, steps, company: SmallVec::new(), until: None };
        let stint = self.stints.entry(job).or_insert_with(fresh);
        let (span, made) = (stint.until.unwrap_or(now) - stint.since, steps - stint.steps);
        if span < STINT_MIN || stint.company.len() > 1 {
            return;
        }
        let other = stint.company.first().copied();
        let (spec, at) = (self.specs[job.index()].clone(), self.way(job));
        // No step is no measurement: the next report tells of all the time since. Beside another job it may mean that
        // the two do not go together, once many steps would have been made.
        if made <= 0.0 && (other.is_none() || spec.speeds[at] * span.secs() < STEPS_MISSED) {
            return;
        }
        self.stints.entry(job).and_modify(|stint| (stint.since, stint.steps) = (now, steps));
        let belief = Arc::make_mut(&mut self.belief);
        self.dirty |= belief.observe(spec.profile, &spec.shapes[at], other, made.max(0.0) / span.secs());
        if spec.profile != ProfileId::default() {
            self.learned_of.insert(spec.profile);
            self.follow(job);
        }
    }

    /// A job goes by what is believed of its profile now.
    fn follow(&mut self, job: JobIdx) {
        let spec = &self.specs[job.index()];
        let speeds = self.belief.speeds(spec.profile, &spec.shapes);
        if spec.speeds[..] != speeds[..] {
            self.change_spec(job, |spec| spec.speeds = speeds.into());
            self.changed.touched.push(job);
        }
    }

    /// How much a job computes. Beside another, one that never says how far it is, is measured by it.
    pub(super) fn note_usage(&mut self, job: JobIdx, usage: Usage) {
        let lease = self.run(job).lease.and_then(|lease| self.leases.get(lease));
        let works = |other: &&JobIdx| **other != job && self.run(**other).state == JobState::Running;
        let company: SmallVec<[JobIdx; 2]> =
            lease.into_iter().flat_map(|lease| &lease.jobs).filter(works).copied().collect();
        let before = self.run(job).usage;
        if company.is_empty() {
            self.run_mut(job).usage = Some(usage);
            let profile = self.specs[job.index()].profile;
            if self.belief.learns() {
                Arc::make_mut(&mut self.belief).observe_usage(profile, usage);
            }
            return;
        }
        let alone = before.map_or(0.0, |usage| usage.busy);
        self.run_mut(job).usage = Some(Usage { busy: alone, ..usage });
        let (spec, at) = (self.specs[job.index()].clone(), self.way(job));
        let shape = &spec.shapes[at];
        if let [other] = company[..]
            && spec.profile != ProfileId::default()
            && self.specs[other.index()].profile != ProfileId::default()
            && alone >= BUSY_MIN
            && self.belief.learns()
            && !self.belief.is_measured(spec.profile, shape)
        {
            let other = self.specs[other.index()].profile;
            let kept = (usage.busy / alone).min(1.0);
            self.dirty |= Arc::make_mut(&mut self.belief).observe_kept(spec.profile, shape, other, kept);
            let lease = self.run(job).lease;
            lease.iter().for_each(|lease| self.set_paces(*lease));
        }
    }

    /// What was learned since the last plan shows in the specs of all jobs of those profiles. Not with each
    /// measurement: many jobs of few profiles would be written anew whenever one of them says something.
    pub(super) fn believe_anew(&mut self) {
        let profiles = std::mem::take(&mut self.learned_of);
        if profiles.is_empty() {
            return;
        }
        let follows = |spec: &JobSpec| spec.training.is_none() && profiles.contains(&spec.profile);
        let rows = self.rows.values().copied().filter(|row| follows(&self.specs[row.index()]));
        let rows: Vec<JobIdx> = rows.collect();
        // Jobs of a profile have few lists of shapes among them, if many copies of each.
        let mut known: BTreeMap<ProfileId, Vec<Ways>> = BTreeMap::new();
        for row in rows {
            let (profile, shapes) = (self.specs[row.index()].profile, &self.specs[row.index()].shapes);
            let known = known.entry(profile).or_default();
            let same = known.iter().find(|(list, _)| Arc::ptr_eq(list, shapes) || list == shapes);
            let speeds = match same {
                Some((_, speeds)) => speeds.clone(),
                None => {
                    let speeds: Arc<[f64]> = self.belief.speeds(profile, shapes).into();
                    known.push((shapes.clone(), speeds.clone()));
                    speeds
                }
            };
            if self.specs[row.index()].speeds != speeds {
                self.change_spec(row, |spec| spec.speeds = speeds);
                self.changed.touched.push(row);
            }
        }
    }
}
