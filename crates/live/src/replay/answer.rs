//! All runs of a question, one after another, and what they say beside each other.

use std::collections::BTreeMap;

use yard_core::cluster::NodeSpec;
use yard_core::units::{Span, Time};

use super::past::{PastPart, ReplayPast};
use super::scenes::{Maker, NamedScene, cluster};
use super::view::{Figures, ReplayRow, ReplayView, ReplayedRun, TeamView, WindowView};
use super::{Present, Replay, ReplayChange, ReplayRan, ReplayWatch, Replayer};
use crate::handle::{Refusal, Who};
use crate::store::JobRow;
use crate::views::JobView;

/// What is true of every answer.
const ALWAYS: &str = "the baseline simulates the same jobs on the nodes of now: past failures and drains are \
not repeated, and preempted jobs continue from where they stopped";

/// A question, with all that is needed to answer it.
pub(crate) struct ReplayAsked {
    pub(crate) who: Who,
    pub(crate) replay: Replay,
    pub(crate) present: Present,
    /// The jobs of the window and those that were still there when it began.
    pub(crate) rows: Vec<JobRow>,
    /// Of those that are not over, how they are doing.
    pub(crate) living: BTreeMap<u64, JobView>,
    pub(crate) window: (Time, Time),
}

impl ReplayAsked {
    /// Simulates and compares.
    pub(crate) fn answer(self, replayer: &dyn Replayer, watch: &ReplayWatch) -> Result<ReplayView, Refusal> {
        let (from, to) = self.window;
        let past = ReplayPast::new(self.rows, &self.living, (from, self.present.at));
        if past.count(PastPart::Counted) == 0 {
            return Err(Refusal::NotFound(nothing(past.count(PastPart::Open) + past.left_out)));
        }
        let (teams, groups) = past.groups(&self.who);
        let (present, replay) = (&self.present, &self.replay);
        ReplayAsking { past: &past, present, replay, replayer, watch, teams, groups }.compared(from, to)
    }
}

/// A question in the course of being answered.
struct ReplayAsking<'a> {
    past: &'a ReplayPast,
    present: &'a Present,
    replay: &'a Replay,
    replayer: &'a dyn Replayer,
    watch: &'a ReplayWatch,
    teams: Vec<String>,
    groups: Vec<Vec<usize>>,
}

impl ReplayAsking<'_> {
    fn compared(&self, from: Time, to: Time) -> Result<ReplayView, Refusal> {
        // What is wrong with any change is said before the first of them is simulated.
        let maker = Maker::new(self.present, self.past, self.replayer, &self.replay.prices);
        let baseline = maker.scene(&ReplayChange::default())?;
        let others = self.replay.alternatives.iter().map(|change| maker.scene(change));
        let others: Vec<NamedScene> = others.collect::<Result<_, _>>()?;
        let base = self.run(&baseline)?;
        let mut notes = vec![ALWAYS.to_owned()];
        notes.extend(gone(self.present));
        notes.extend(unpriced(self.replay, &baseline, &others));
        notes.extend(told("baseline", &baseline, &base));
        let mut alternatives = Vec::with_capacity(others.len());
        for other in &others {
            let ran = self.run(other)?;
            notes.extend(told(&other.label, other, &ran));
            alternatives.push(row(other, &other.label, ran, &self.teams, Some(&base.figures)));
        }
        let recorded = row(&baseline, "recorded", self.recorded(&baseline), &self.teams, Some(&base.figures));
        let baseline = row(&baseline, "baseline", base, &self.teams, None);
        Ok(ReplayView { window: self.window(from, to), recorded, baseline, alternatives, notes })
    }

    fn run(&self, named: &NamedScene) -> Result<ReplayRan, Refusal> {
        let ran = self.replayer.run(&named.scene, &self.groups, self.replay.detail, self.watch);
        if self.watch.is_stopped() {
            return Err(Refusal::Unavailable("nobody waits for the answer any more".into()));
        }
        ran.map_err(Refusal::Unavailable)
    }

    fn recorded(&self, baseline: &NamedScene) -> ReplayRan {
        let mut figures = self.replayer.recorded(&self.past.jobs, &baseline.scene, &self.groups);
        if let Some(all) = figures.first_mut() {
            all.utilization = utilization(self.past, baseline, self.present.at);
        }
        ReplayRan { figures, ..ReplayRan::default() }
    }

    fn window(&self, from: Time, to: Time) -> WindowView {
        let ReplayPast { left_out, .. } = *self.past;
        let [jobs, carried, open] =
            [PastPart::Counted, PastPart::Carried, PastPart::Open].map(|part| self.past.count(part));
        WindowView { from: from.secs(), to: to.secs(), jobs, carried, open, left_out }
    }
}

/// Why there is nothing to compare, and what to do about it.
fn nothing(others: usize) -> String {
    match others {
        0 => "no job was submitted in that period; choose a longer or earlier one".into(),
        others => format!(
            "none of the {others} jobs submitted in that period has finished yet; choose a longer period, or \
             try again later"
        ),
    }
}

fn row(
    named: &NamedScene,
    label: &str,
    ran: ReplayRan,
    teams: &[String],
    base: Option<&[Figures]>,
) -> ReplayRow {
    let NamedScene { policy, change, scene, .. } = named;
    let mut figures = ran.figures.into_iter();
    let all = figures.next().unwrap_or_default();
    let against = |at: usize, figures: &Figures| Some(figures.minus(base?.get(at)?));
    let team = |(at, (team, figures)): (usize, (&String, Figures))| TeamView {
        team: team.clone(),
        against_baseline: against(at + 1, &figures),
        figures,
    };
    ReplayRow {
        label: label.to_owned(),
        change: change.clone(),
        against_baseline: against(0, &all),
        run: ReplayedRun {
            policy: policy.clone(),
            round_s: scene.settings.round.secs(),
            cluster: cluster(scene),
            devices: scene.nodes.iter().map(NodeSpec::devices).sum(),
            figures: all,
        },
        teams: teams.iter().zip(figures).enumerate().map(team).collect(),
        detail: ran.detail,
    }
}

/// What was held against what there was, from when the first job came until the last was over.
fn utilization(past: &ReplayPast, baseline: &NamedScene, now: Time) -> Option<f64> {
    let first = past.jobs.iter().map(|job| job.submit).min()?;
    let last = past.jobs.iter().map(|job| job.ended().unwrap_or(now)).max()?;
    let devices: u32 = baseline.scene.nodes.iter().map(NodeSpec::devices).sum();
    let there = (last - first).secs() * f64::from(devices);
    let held = past.jobs.iter().map(|job| Span::secs(job.held) * f64::from(job.view.gpus.max(1)));
    (there > 0.0).then(|| held.sum::<f64>() / there)
}

/// What there is to say of one run.
fn told(label: &str, named: &NamedScene, ran: &ReplayRan) -> Vec<String> {
    named.notes.iter().chain(&ran.notes).map(|note| format!("{label}: {note}")).collect()
}

fn gone(present: &Present) -> Option<String> {
    let mut gone: Vec<&str> =
        present.nodes.iter().filter(|(_, _, down)| *down).map(|(name, ..)| name.as_str()).collect();
    gone.dedup();
    (!gone.is_empty()).then(|| format!("nodes that are down now are left out: {}", gone.join(", ")))
}

/// Kinds without a price, where others have one.
fn unpriced(replay: &Replay, baseline: &NamedScene, others: &[NamedScene]) -> Option<String> {
    let scenes = std::iter::once(baseline).chain(others).map(|named| &named.scene);
    let kinds = scenes.flat_map(|scene| {
        scene.nodes.iter().flat_map(|node| &node.pools).map(|pool| scene.kinds.name(pool.kind))
    });
    let mut free: Vec<&str> = kinds.filter(|kind| !replay.prices.contains_key(*kind)).collect();
    free.sort_unstable();
    free.dedup();
    let some = !replay.prices.is_empty() && !free.is_empty();
    some.then(|| format!("kinds without a price, counted as free: {}", free.join(", ")))
}
