//! The choices that Narayanan et al. found best: what they published may be little behind what is predicted best.

use anyhow::{Context, bail};
use yard_planner::{ParallelPlan, Recompute, Transformer, evaluate};

use super::super::Check;
use super::super::sheet::{Sheet, SheetRecord};
use super::{at_least, model, reference_kind};

const SUITE: &str = "ptdp";

/// How far behind the published choice may be.
const BEHIND: f64 = 0.02;

/// What full recomputation costs at one sample, by figure 17.
const RECOMPUTE_GAIN: f64 = 1.33;

/// What a figure varies, as names and values: `t=8`, `p=12`.
type PlannerSetting = Vec<(String, u32)>;

pub(super) fn of(sheet: &Sheet) -> anyhow::Result<Vec<Check>> {
    let mut checks = Vec::new();
    for row in sheet.records() {
        let figure = Figure::read(&row)?;
        checks.extend(match row.text("choices")? {
            text if text.starts_with("recompute") => vec![figure.recomputing()?],
            text if text.starts_with("interleave") => vec![figure.interleaving()?],
            text => figure.choosing(text, row.text("published_best")?)?,
        });
    }
    Ok(checks)
}

/// A figure of the paper: a model on a fixed part of its split, at several batches.
struct Figure {
    number: String,
    model: Transformer,
    fixed: PlannerSetting,
    batches: Vec<u32>,
}

impl Figure {
    fn read(row: &SheetRecord<'_>) -> anyhow::Result<Figure> {
        let words = row.text("fixed")?.split_whitespace().filter(|word| !word.contains('*'));
        Ok(Figure {
            number: row.text("figure")?.to_owned(),
            model: model(row)?,
            // `n=64` says how many devices there are, which the choices say too.
            fixed: settings(words.filter(|word| !word.starts_with("n=")))?,
            batches: batches(row.text("batches")?)?,
        })
    }

    fn step(&self, plan: &ParallelPlan, batch: u32) -> anyhow::Result<f64> {
        let model = Transformer { batch, ..self.model.clone() };
        Ok(evaluate(&model, &reference_kind("a100-80")?, plan).step_s)
    }

    fn plan(&self, chosen: &PlannerSetting) -> anyhow::Result<ParallelPlan> {
        let mut plan = ParallelPlan { recompute: Recompute::Full, ..ParallelPlan::WHOLE };
        for (name, value) in self.fixed.iter().chain(chosen) {
            match name.as_str() {
                "t" => plan.tensor = *value,
                "p" => plan.pipeline = *value,
                "d" => plan.data = *value,
                "b" => plan.micro_batch = *value,
                _ => bail!("figure {}: {name} is none of t, p, d, b", self.number),
            }
        }
        Ok(plan)
    }

    /// The published choice against the one that is predicted best, at each batch.
    fn choosing(&self, choices: &str, published: &str) -> anyhow::Result<Vec<Check>> {
        let published = self.plan(&settings(published.split_whitespace())?)?;
        let choices: Vec<PlannerSetting> = listed(choices)?;
        let mut checks = Vec::new();
        for batch in &self.batches {
            let steps: Vec<f64> = choices
                .iter()
                .map(|chosen| self.step(&self.plan(chosen)?, *batch))
                .collect::<anyhow::Result<_>>()?;
            let best = steps.iter().copied().fold(f64::INFINITY, f64::min);
            let case = format!("figure {}, batch {batch}", self.number);
            let ours = self.step(&published, *batch)?;
            checks.push(Check::new(SUITE, &case, "published choice: step s", best, ours, BEHIND));
        }
        Ok(checks)
    }

    /// What keeping activations gains over computing them again, at the smallest batch.
    fn recomputing(&self) -> anyhow::Result<Check> {
        let batch = *self.batches.first().context("a figure has batches")?;
        let full = self.plan(&Vec::new())?;
        let kept = ParallelPlan { recompute: Recompute::None, ..full };
        let gain = self.step(&full, batch)? / self.step(&kept, batch)?;
        let case = format!("figure {}, batch {batch}", self.number);
        Ok(Check::new(SUITE, &case, "gain of not recomputing", RECOMPUTE_GAIN, gain, 0.02))
    }

    /// Interleaving has to gain at every batch, and most at the smallest.
    fn interleaving(&self) -> anyhow::Result<Check> {
        let plain = self.plan(&Vec::new())?;
        let woven = ParallelPlan { interleave: 2, ..plain };
        let gains: Vec<f64> = (self.batches.iter())
            .map(|batch| Ok(self.step(&plain, *batch)? / self.step(&woven, *batch)?))
            .collect::<anyhow::Result<_>>()?;
        let falling = gains.windows(2).filter(|pair| pair[0] > pair[1] && pair[1] > 1.0).count();
        let case = format!("figure {}", self.number);
        let steps = gains.len() - 1;
        Ok(at_least(
            SUITE,
            &case,
            "batches where interleaving gains less than before",
            steps as f64,
            falling as f64,
        ))
    }
}

/// `t=8 p=16` as names and values.
fn settings<'a>(words: impl Iterator<Item = &'a str>) -> anyhow::Result<PlannerSetting> {
    let setting = |word: &str| {
        let (name, value) = word.split_once('=').with_context(|| format!("{word:?} is no setting"))?;
        Ok((name.to_owned(), value.parse()?))
    };
    words.map(setting).collect()
}

/// `(p;t) in (2;32) (4;16)` or `b in 1 2 4` as settings.
fn listed(text: &str) -> anyhow::Result<Vec<PlannerSetting>> {
    let (names, values) =
        text.split_once(" in ").with_context(|| format!("{text:?} is no list of choices"))?;
    let parts = |word: &str| word.trim_matches(['(', ')']).split(';').map(str::to_owned).collect::<Vec<_>>();
    let names = parts(names);
    let choice = |word: &str| {
        let values = parts(word).into_iter().map(|value| Ok(value.parse()?));
        Ok(names.iter().cloned().zip(values.collect::<anyhow::Result<Vec<u32>>>()?).collect())
    };
    values.split_whitespace().map(choice).collect()
}

/// `12 24 36`, or the ends of `1..256`.
fn batches(text: &str) -> anyhow::Result<Vec<u32>> {
    let words: Vec<&str> = match text.split_once("..") {
        Some((first, last)) => vec![first, last],
        None => text.split_whitespace().collect(),
    };
    words.into_iter().map(|word| word.parse().with_context(|| format!("{word:?} is no batch"))).collect()
}
