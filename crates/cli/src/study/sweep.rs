//! What is varied (`--sweep KEY=VALUES`): the points of a study, each with the settings that it has instead.

use anyhow::{Context, bail};

use crate::cmd::sim::SimArgs;

/// The most values that one sweep may have.
const VALUES_MAX: usize = 1_000;

/// A setting and the values it takes in turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sweep {
    key: String,
    values: Vec<String>,
}

/// Settings by name, in the order of the sweeps.
pub(crate) type SweepPoint = Vec<(String, String)>;

impl std::str::FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        let how = "write KEY=A,B,C or KEY=FROM..TO or KEY=FROM..TO:STEP";
        let (key, values) = text.rsplit_once('=').filter(|(key, _)| !key.is_empty()).ok_or(how)?;
        let values = match values.split_once("..") {
            Some((from, to)) => range(from, to).ok_or_else(|| format!("{values:?} is not a range; {how}"))?,
            // A cluster has commas of its own.
            None => values.split(if values.contains(';') { ';' } else { ',' }).map(str::to_owned).collect(),
        };
        if values.iter().any(String::is_empty) {
            return Err(format!("{text:?} has an empty value; {how}"));
        }
        Ok(Sweep { key: key.to_owned(), values })
    }
}

impl Sweep {
    /// Whether what it varies is random.
    pub(super) fn draws(&self) -> bool {
        ["node-mtbf", "slow-nodes", "profiled"].contains(&self.key.as_str())
            || self.values.iter().any(|value| value.starts_with("noisy:"))
    }
}

/// From one number to another, both included, in steps of 1 where both are whole, else of 0.1.
fn range(from: &str, to: &str) -> Option<Vec<String>> {
    let (to, step) = to.split_once(':').map_or((to, None), |(to, step)| (to, Some(step)));
    let whole = from.parse::<i64>().is_ok() && to.parse::<i64>().is_ok();
    let (from, to): (f64, f64) = (from.parse().ok()?, to.parse().ok()?);
    let step: f64 = step.map_or(Some(if whole { 1.0 } else { 0.1 }), |step| step.parse().ok())?;
    let count = ((to - from) / step + 1e-9).floor() + 1.0;
    if !(step > 0.0 && (1.0..=VALUES_MAX as f64).contains(&count)) {
        return None;
    }
    // To nine digits, so that 0.5 and two steps of 0.1 are 0.7.
    let value = |at: usize| ((from + at as f64 * step) * 1e9).round() / 1e9;
    Some((0..count as usize).map(|at| value(at).to_string()).collect())
}

/// All combinations of values; one point without settings where nothing is varied.
pub(crate) fn points(sweeps: &[Sweep]) -> anyhow::Result<Vec<SweepPoint>> {
    let mut points: Vec<SweepPoint> = vec![Vec::new()];
    for sweep in sweeps {
        let with = |point: &SweepPoint| -> Vec<SweepPoint> {
            let value = |value: &String| [point.clone(), vec![(sweep.key.clone(), value.clone())]].concat();
            sweep.values.iter().map(value).collect()
        };
        points = points.iter().flat_map(with).collect();
        if points.len() > VALUES_MAX {
            bail!("--sweep: {} points are too many; vary fewer values", points.len());
        }
    }
    Ok(points)
}

/// The same simulation with another setting. A key with a colon is a parameter of one of the policies.
pub(crate) fn set(args: &mut SimArgs, key: &str, value: &str) -> anyhow::Result<()> {
    let wrong = || format!("--sweep {key}={value}");
    let number = || value.parse::<f64>().map_err(|_| anyhow::anyhow!("{value:?} is not a number"));
    let text = || anyhow::Ok(value.to_owned());
    let time = || value.parse().map_err(anyhow::Error::msg);
    let done = match key {
        "load" => number().map(|load| args.load = Some(load)),
        "round" => value.parse().map(|round| args.round = Some(round)).map_err(anyhow::Error::msg),
        "cluster" => text().map(|cluster| args.cluster = cluster),
        "placer" => text().map(|placer| args.placer = Some(placer)),
        "overheads" => text().map(|overheads| args.overheads = Some(overheads)),
        "lengths" => value.parse().map(|lengths| args.lengths = lengths).map_err(anyhow::Error::msg),
        "profiled" => number().map(|part| args.profiled = part),
        "node-mtbf" => time().map(|time| args.node_mtbf = Some(time)),
        "repair" => time().map(|time| args.repair = time),
        "slow-nodes" => number().map(|part| args.slow_nodes = part),
        "slow-factor" => number().map(|factor| args.slow_factor = factor),
        _ => parameter(args, key, value),
    };
    done.with_context(wrong)
}

/// `tiresias:promote`: the parameter `promote` of the policy that is named `tiresias`, with what else it has.
fn parameter(args: &mut SimArgs, key: &str, value: &str) -> anyhow::Result<()> {
    let named = key.rsplit_once(':').and_then(|(policy, name)| {
        let of = |given: &&mut String| **given == policy || given.starts_with(&format!("{policy}:"));
        Some((args.policy.iter_mut().find(of)?, name))
    });
    let Some((policy, name)) = named else {
        bail!(
            "there is no such setting; vary load, round, cluster, placer, overheads, lengths, profiled, node-mtbf, repair, slow-nodes, slow-factor, or POLICY:PARAMETER of one of the policies"
        )
    };
    policy.push_str(&format!(":{name}={value}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Result<Vec<String>, String> {
        text.parse::<Sweep>().map(|sweep| sweep.values)
    }

    #[test]
    fn values_are_a_list_or_a_range() {
        let list = |words: &str| Ok(words.split(' ').map(str::to_owned).collect());
        assert_eq!(values("round=60s,2m"), list("60s 2m"));
        assert_eq!(values("load=0.5..1.1"), list("0.5 0.6 0.7 0.8 0.9 1 1.1"));
        assert_eq!(values("tiresias:promote=2..4"), list("2 3 4"));
        assert_eq!(values("load=0.5..1:0.25"), list("0.5 0.75 1"));
        assert_eq!(values("cluster=a:1,b:2;a:2,b:1"), list("a:1,b:2 a:2,b:1"));
        assert!(values("load").unwrap_err().contains("KEY=A,B,C"));
        assert!(values("load=1..0").unwrap_err().contains("not a range"));
        assert!(values("load=0..1:0").unwrap_err().contains("not a range"));
        assert!(values("load=1,,2").unwrap_err().contains("empty"));
    }

    #[test]
    fn points_are_all_combinations() {
        let sweeps = ["a=1,2".parse().unwrap(), "b=3,4,5".parse().unwrap()];
        let points = points(&sweeps).unwrap();
        assert_eq!(
            (points.len(), points[1].clone()),
            (6, vec![("a".into(), "1".into()), ("b".into(), "4".into())])
        );
        assert_eq!(super::points(&[]).unwrap(), [vec![]], "nothing varied is one point");
    }
}
