//! What the files of `yard sim` say, as curves.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;

/// A figure to draw.
#[derive(Debug, Default)]
pub(super) struct Chart {
    pub(super) title: Option<String>,
    pub(super) x: String,
    pub(super) y: String,
    /// Whether the horizontal axis has times in seconds, on a logarithmic scale.
    pub(super) times: bool,
    pub(super) curves: Vec<PlotCurve>,
}

/// One line of it.
#[derive(Debug, Default)]
pub(super) struct PlotCurve {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// The interval around each point, where there is one.
    pub(super) intervals: Vec<(f64, f64, f64)>,
    /// Whether a value holds until the next.
    pub(super) stairs: bool,
}

/// Reads a file; what it is, is seen from its beginning.
pub(super) fn read(path: &Path, figure: Option<&str>) -> anyhow::Result<Chart> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let chart = if text.starts_with("policy,job_id,") {
        distribution(&text, figure.unwrap_or("jct_s"))
    } else if text.starts_with("policy,t_s,") {
        series(&text, figure.unwrap_or("utilization"))
    } else if text.trim_start().starts_with('{') {
        sweep(&serde_json::from_str(&text)?, figure.unwrap_or("avg_jct_s"))
    } else {
        bail!(
            "it is none of the files that yard sim writes with --per-job, --series, or -o json with --sweep"
        )
    };
    let chart = chart.with_context(|| path.display().to_string())?;
    if chart.curves.iter().all(|curve| curve.points.is_empty()) {
        bail!("{}: there is nothing to draw", path.display());
    }
    Ok(chart)
}

/// What a figure is called in print.
fn named(figure: &str) -> &str {
    match figure {
        "jct_s" => "completion time",
        "queue_s" => "waiting time",
        "rho" => "finish-time fairness",
        "utilization" => "utilization",
        "avg_jct_s" => "mean completion time",
        "p50_jct_s" => "median completion time",
        "p90_jct_s" => "90th percentile of completion time",
        "p99_jct_s" => "99th percentile of completion time",
        "makespan_s" => "makespan",
        "avg_queue_s" => "mean waiting time",
        "running_jobs" => "running jobs",
        "queued_jobs" => "waiting jobs",
        "used_gpus" => "GPUs in use",
        "queued_gpus" => "GPUs waited for",
        "deadline_miss_ratio" => "deadlines missed",
        other => other,
    }
}

/// Rows of a CSV by policy, in the order in which policies come: two of its columns, where both are there.
type PlotRows = Vec<(String, Vec<(f64, f64)>)>;

fn columns(text: &str, x: &str, y: &str) -> anyhow::Result<PlotRows> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let find = |name: &str| {
        let known = || format!("there is no column {name:?}; there are: {}", header.join(", "));
        header.iter().position(|column| *column == name).with_context(known)
    };
    let (x, y) = (find(x)?, find(y)?);
    let mut rows: PlotRows = Vec::new();
    for (at, line) in lines.enumerate() {
        let cells = cells(line);
        if cells.len() != header.len() {
            bail!("line {}: it has {} fields, and the header {}", at + 2, cells.len(), header.len());
        }
        let of = match rows.iter().position(|(policy, _)| *policy == cells[0]) {
            Some(of) => of,
            None => {
                rows.push((cells[0].clone(), Vec::new()));
                rows.len() - 1
            }
        };
        if let (Ok(x), Ok(y)) = (cells[x].parse(), cells[y].parse()) {
            rows[of].1.push((x, y));
        }
    }
    Ok(rows)
}

/// The fields of a line; quoted ones may have commas.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            _ => cells.last_mut().expect("there is one").push(letter),
        }
    }
    cells
}

/// What part of the jobs has at most so much of a figure.
fn distribution(text: &str, figure: &str) -> anyhow::Result<Chart> {
    let times = figure.ends_with("_s");
    let curve = |(name, rows): (String, Vec<(f64, f64)>)| {
        let mut values: Vec<f64> = rows.into_iter().map(|(_, value)| value).collect();
        values.sort_unstable_by(f64::total_cmp);
        let part = |at: usize| (at + 1) as f64 / values.len() as f64;
        let first = values.first().map(|value| (*value, 0.0));
        let points = first.into_iter().chain(values.iter().enumerate().map(|(at, value)| (*value, part(at))));
        PlotCurve { name, points: points.collect(), stairs: true, ..PlotCurve::default() }
    };
    let curves = columns(text, "submit_s", figure)?.into_iter().map(curve).collect();
    Ok(Chart { x: named(figure).into(), y: "fraction of jobs".into(), times, curves, title: None })
}

/// A figure over time.
fn series(text: &str, figure: &str) -> anyhow::Result<Chart> {
    let curve = |(name, rows): (String, Vec<(f64, f64)>)| {
        let points = rows.into_iter().map(|(time, value)| (time / 3600.0, value)).collect();
        PlotCurve { name, points, stairs: true, ..PlotCurve::default() }
    };
    let curves = columns(text, "t_s", figure)?.into_iter().map(curve).collect();
    Ok(Chart { x: "time (h)".into(), y: named(figure).into(), curves, ..Chart::default() })
}

/// A figure over what was varied, with its intervals.
fn sweep(json: &Value, figure: &str) -> anyhow::Result<Chart> {
    let means = json["means"].as_array().filter(|means| !means.is_empty());
    let means = means.context("it has no means: run yard sim with --sweep and -o json")?;
    let keys: Vec<&String> = means[0]["sweep"].as_object().into_iter().flat_map(|keys| keys.keys()).collect();
    let [key] = keys[..] else {
        bail!("{} settings were varied; a curve has one: --sweep KEY=VALUES once", keys.len())
    };
    let known = || -> String {
        let names = means[0]["figures"].as_object().into_iter().flat_map(|figures| figures.keys());
        names.cloned().collect::<Vec<_>>().join(", ")
    };
    if means[0]["figures"].get(figure).is_none() {
        bail!("there is no figure {figure:?}; there are: {}", known());
    }
    let most = means.iter().filter_map(|mean| mean["figures"][figure]["mean"].as_f64()).fold(0.0, f64::max);
    let (unit, label) = unit(figure, most);
    let mut curves: BTreeMap<usize, PlotCurve> = BTreeMap::new();
    for mean in means {
        let policy = mean["policy"].as_str().unwrap_or_default();
        let at = curves.values().position(|curve| curve.name == policy).unwrap_or(curves.len());
        let text = mean["sweep"][key].as_str().unwrap_or_default();
        let x =
            number(text).with_context(|| format!("{key}={text} is no number: it has no place on an axis"))?;
        let of = |part: &str| mean["figures"][figure][part].as_f64().map(|value| value / unit);
        let curve =
            curves.entry(at).or_insert_with(|| PlotCurve { name: policy.into(), ..PlotCurve::default() });
        curve.points.extend(of("mean").map(|mean| (x, mean)));
        curve.intervals.extend(of("low").zip(of("high")).map(|(low, high)| (x, low, high)));
    }
    let x = if means[0]["sweep"][key].as_str().is_some_and(|text| text.ends_with(['s', 'm', 'h', 'd'])) {
        format!("{key} (s)")
    } else {
        key.clone()
    };
    Ok(Chart {
        x,
        y: format!("{}{label}", named(figure)),
        curves: curves.into_values().collect(),
        ..Chart::default()
    })
}

/// A number, or a time in seconds.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().or_else(|| text.parse::<crate::cmd::sim::Duration>().ok().map(|time| time.0.secs()))
}

/// The unit that suits a figure, and how it is written.
fn unit(figure: &str, most: f64) -> (f64, &'static str) {
    match most {
        _ if !figure.ends_with("_s") => (1.0, ""),
        most if most < 300.0 => (1.0, " (s)"),
        most if most < 18_000.0 => (60.0, " (min)"),
        _ => (3600.0, " (h)"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_distribution_rises_to_one() {
        let text = "policy,job_id,submit_s,jct_s\nfifo,a,0,10\nfifo,\"b,c\",0,30\nsrtf,a,0,5\nfifo,d,0,\n";
        let chart = distribution(text, "jct_s").unwrap();
        assert_eq!(chart.curves[0].points, [(10.0, 0.0), (10.0, 0.5), (30.0, 1.0)]);
        assert_eq!((chart.curves.len(), chart.curves[1].name.as_str(), chart.times), (2, "srtf", true));
        let said = distribution(text, "jct").unwrap_err().to_string();
        assert!(said.contains("no column \"jct\"; there are: policy, job_id"), "{said}");
        assert!(
            distribution("policy,job_id,submit_s,jct_s\nfifo,1", "jct_s")
                .unwrap_err()
                .to_string()
                .contains("line 2")
        );
    }

    #[test]
    fn a_sweep_has_a_curve_a_policy_with_its_intervals() {
        let mean = |policy: &str, load: &str, mean: f64| {
            json!({ "policy": policy, "sweep": { "load": load },
                "figures": { "avg_jct_s": { "mean": mean, "low": mean - 60.0, "high": mean + 60.0 } } })
        };
        let all = json!({ "means": [mean("fifo", "0.5", 600.0), mean("srtf", "0.5", 300.0), mean("fifo", "1", 1200.0)] });
        let chart = sweep(&all, "avg_jct_s").unwrap();
        assert_eq!(chart.y, "mean completion time (min)");
        assert_eq!(chart.curves[0].points, [(0.5, 10.0), (1.0, 20.0)]);
        assert_eq!(chart.curves[0].intervals[1], (1.0, 19.0, 21.0));
        assert_eq!(chart.curves[1].name, "srtf");
        assert!(sweep(&all, "p7").unwrap_err().to_string().contains("avg_jct_s"));
        assert!(sweep(&json!({ "runs": [] }), "avg_jct_s").unwrap_err().to_string().contains("--sweep"));
        assert_eq!((number("2m"), number("0.5"), number("pack")), (Some(120.0), Some(0.5), None));
    }
}
