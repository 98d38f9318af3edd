//! What would become of a job that is not submitted yet, and of the others because of it: the state is run forward
//! twice, with the job and without it, and compared. Those two runs are *quiet*: nobody else comes, and jobs take as
//! long as they say; if that is so, they are exact. Further runs, in which jobs like those of the past come and take as
//! long as such jobs did, make an interval of it.
//!
//! Nothing changes: all of it happens to copies. Work is bounded over all runs together; what was asked first is
//! answered first, and an answer for which too little was left says so. Runs that are compared have rounds that grow
//! from the same time on; runs for an interval have them from the first, since they need not be exact.

use std::collections::BTreeMap;

use super::interval::{Estimate, RUNS, estimates};
use super::past::{Draw, Past};
use super::{Forecast, Limits, Outlook, Scenario, run_until};
use crate::cluster::Placement;
use crate::ids::JobId;
use crate::job::JobSpec;
use crate::message::NodeChange;
use crate::policy::{Placer, Policy};
use crate::state::{RestoreError, State};
use crate::units::{Span, Time};

/// Delays below this are no news: rounds and beats move by as much.
const DELAY_MIN: Span = Span::from_whole_secs(1);

/// What a question is asked of.
pub struct Asker<'a> {
    /// The state, of which copies are run.
    pub state: &'a State,
    /// When the job would be submitted.
    pub at: Time,
    /// What was, for who may come later.
    pub past: &'a Past,
    /// Makes the policy, for each run.
    pub policy: &'a dyn Fn() -> Box<dyn Policy>,
    /// Makes the placer, for each run.
    pub placer: &'a dyn Fn() -> Box<dyn Placer>,
    /// How far each run goes.
    pub limits: Limits,
    /// Work that is left for all runs together, as limits count it.
    pub work_left: u64,
    /// Whether to stop now, whatever is left to do.
    pub stop: &'a dyn Fn() -> bool,
}

/// What would become of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// If nobody else comes and jobs take as long as they say.
    pub quiet: Outlook,
    /// Its first devices then.
    pub place: Option<Placement>,
    /// Why it would be refused, and the earliest deadline that could be promised.
    pub refused: Option<(String, Option<Time>)>,
    /// Whom it would delay or stop, those first whom it costs most.
    pub hits: Vec<Hit>,
    /// With those who may come later; none where there was no work left for it.
    pub estimate: Option<Estimate>,
    /// Whether work ran out before all was known.
    pub cut: bool,
    /// From when on it is about right and not exact, though nobody else comes: rounds have grown.
    pub grown_from: Option<Time>,
    /// When it starts at the earliest, where it was cut off before it did.
    pub not_before: Option<Time>,
}

impl Told {
    /// Whether a time is not exact, though nobody else comes.
    pub fn is_rough(&self, time: Option<Time>) -> bool {
        self.grown_from.is_some_and(|from| time.is_none_or(|time| time > from))
    }
}

/// What a job costs another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The other.
    pub job: JobId,
    /// How much later it would end; none: not at all.
    pub delay: Option<Span>,
    /// How many more times it would be stopped.
    pub stops: u32,
    /// Whether it would miss its deadline.
    pub late: bool,
}

impl Asker<'_> {
    /// What would become of a job, if nobody else comes; and how things go without it.
    pub fn first(&mut self, job: &JobSpec) -> Result<(Told, Forecast), RestoreError> {
        let with = self.come(job, None)?;
        let without = self.without(with.rough_from.or(Some(Time::NEVER)))?;
        Ok((self.told(with, &without), without))
    }

    /// When it would start and end, in a hurry: whom it would hit is not looked at, and rounds grow from the first on.
    pub fn alone(&mut self, job: &JobSpec) -> Result<Told, RestoreError> {
        let (asked, rough_from) = (Some((Box::new(job.clone()), job.steps)), Some(self.at));
        let with = self.run(Scenario { asked, only_asked: true, rough_from, ..Scenario::default() })?;
        Ok(self.told(with, &Forecast::default()))
    }

    /// The same of another job, beside how things go without it.
    pub fn with(&mut self, job: &JobSpec, without: &Forecast) -> Result<Told, RestoreError> {
        // Where rounds never grew, they need not now.
        let with = self.come(job, without.rough_from.or(Some(Time::NEVER)))?;
        Ok(self.told(with, without))
    }

    /// How things go without anybody new; `rough_from`: as in the run that it is compared with.
    pub fn without(&mut self, rough_from: Option<Time>) -> Result<Forecast, RestoreError> {
        self.run(Scenario { rough_from, ..Scenario::default() })
    }

    /// How things go if a job comes.
    fn come(&mut self, job: &JobSpec, rough_from: Option<Time>) -> Result<Forecast, RestoreError> {
        let asked = Some((Box::new(job.clone()), job.steps));
        self.run(Scenario { asked, rough_from, ..Scenario::default() })
    }

    fn told(&self, with: Forecast, without: &Forecast) -> Told {
        let (hits, grown_from) = (self.hits(&with, without), with.grown_from);
        let Some(asked) = with.asked else { return Told { cut: true, ..Told::default() } };
        let quiet = with.outlooks.get(&asked.job).copied().unwrap_or_default();
        let cut = with.cut || without.cut;
        let waits = with.cut && quiet.start.is_none() && asked.refused.is_none();
        let not_before = waits.then_some(with.reached);
        let (place, refused) = (asked.place, asked.refused);
        Told { quiet, place, refused, hits, estimate: None, cut, grown_from, not_before }
    }

    /// What would become of the jobs if this happened to nodes.
    pub fn nodes(&mut self, nodes: &[(Time, NodeChange)], without: &Forecast) -> Result<Told, RestoreError> {
        let rough_from = without.rough_from;
        let forecast = self.run(Scenario { nodes: nodes.to_vec(), rough_from, ..Scenario::default() })?;
        let hits = self.hits(&forecast, without);
        Ok(Told {
            hits,
            cut: forecast.cut || without.cut,
            grown_from: forecast.grown_from,
            ..Told::default()
        })
    }

    /// When it would start and end, with those who may come; none where there is not enough work left.
    /// `among`: with how many estimates, this one included, the work that is left is shared.
    pub fn estimate(
        &mut self,
        job: &JobSpec,
        among: u64,
        draw: Draw<'_>,
    ) -> Result<Option<Estimate>, RestoreError> {
        let mut runs = Vec::with_capacity(RUNS);
        let limits = self.limits;
        self.limits.work_max = limits.work_max.min(self.work_left / among.max(1) / RUNS as u64);
        while runs.len() < RUNS && self.limits.work_max > 0 {
            // Not the first, in which nobody comes: that is the quiet run, and here all have to be alike.
            let scenario = self.past.scenario(runs.len() + 1, self.state, self.limits.horizon, draw);
            let asked = Some((Box::new(job.clone()), self.past.steps_of(job, self.state, draw)));
            let rough_from = Some(self.at);
            let forecast = self.run(Scenario { asked, only_asked: true, rough_from, ..scenario })?;
            runs.extend(forecast.asked.map(|asked| one(asked.job, &forecast.outlooks)));
            if (self.stop)() && runs.len() < RUNS {
                runs.clear(); // What a few of them say is not what all of them would.
                break;
            }
        }
        self.limits = limits;
        Ok(estimates(&runs).into_values().next())
    }

    /// Whom it hits: the same jobs with it and without it.
    fn hits(&self, with: &Forecast, without: &Forecast) -> Vec<Hit> {
        let hit = |(job, before): (&JobId, &Outlook)| {
            let (after, end) = (with.outlooks.get(job)?, before.end?);
            let delay = match after.end {
                Some(after) => Some(after - end).filter(|delay| *delay >= DELAY_MIN).unwrap_or_default(),
                // What was cut off may end yet.
                None if with.cut => Span::ZERO,
                None => Span(u64::MAX),
            };
            let stops = after.stops.saturating_sub(before.stops);
            let late = self.deadline(*job).is_some_and(|due| end <= due && end + delay > due);
            let delay = (delay < Span(u64::MAX)).then_some(delay);
            (delay != Some(Span::ZERO) || stops > 0).then_some(Hit { job: *job, delay, stops, late })
        };
        let mut hits: Vec<Hit> = without.outlooks.iter().filter_map(hit).collect();
        let loss = |hit: &Hit| (hit.delay.is_none(), hit.delay, hit.stops);
        hits.sort_by_key(|hit| (std::cmp::Reverse(loss(hit)), hit.job));
        hits
    }

    fn deadline(&self, job: JobId) -> Option<Time> {
        let row = self.state.rows.get(&job)?;
        self.state.specs[row.index()].deadline
    }

    fn run(&mut self, scenario: Scenario) -> Result<Forecast, RestoreError> {
        let work_max = self.limits.work_max.min(self.work_left);
        let (limits, scenario) = (Limits { work_max, ..self.limits }, Scenario { at: self.at, ..scenario });
        let (placer, mut policy) = ((self.placer)(), (self.policy)());
        let forecast = run_until(self.state, placer, &mut *policy, &scenario, limits, self.stop)?;
        self.work_left = self.work_left.saturating_sub(forecast.work);
        Ok(forecast)
    }
}

/// Of a forecast only one job.
fn one(job: JobId, outlooks: &BTreeMap<JobId, Outlook>) -> Forecast {
    let outlook = outlooks.get(&job).copied().unwrap_or_default();
    Forecast { outlooks: BTreeMap::from([(job, outlook)]), ..Forecast::default() }
}
