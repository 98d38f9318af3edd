//! What starting, saving and loading cost in the simulated cluster.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use thiserror::Error;
use yard_core::Span;
use yard_core::job::Costs;

use crate::cluster::toml_problem;

/// Costs of interruptions, and how often running jobs save by themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Overheads {
    /// The profile's name.
    pub name: String,
    /// For models without figures of their own.
    pub costs: Costs,
    /// By model, then from so many devices on, ascending; by no name, for the others.
    pub models: BTreeMap<String, Vec<(u32, Costs)>>,
    /// Whether applications whose profiles are given cost what those say instead.
    pub by_app: bool,
    /// Time between checkpoints while a job runs; what came after the last one is lost with a node.
    pub checkpoint_every: Span,
}

/// What is wrong with an overhead profile.
#[derive(Debug, Error)]
#[error("overheads {name:?}: {problem}")]
pub struct OverheadsError {
    name: String,
    problem: String,
}

/// Names that need no file, with what they stand for.
pub const PROFILES: &[(&str, &str)] = &[
    (
        "h200",
        "measured on one NVIDIA H200: 4.1 s process start, 0.40 s save, 0.24 s load (mean of eight models)",
    ),
    ("none", "starting, stopping and moving cost nothing"),
    (
        "sia",
        "what Sia's simulator charges for each start of an application, 15 to 250 s; policies are told what Sia's are",
    ),
    (
        "elasticflow",
        "what ElasticFlow's simulator charges: 2 + 2 (1 + log2 GPUs) s a start, 27 s more to start again",
    ),
    ("chronus", "what Chronus' simulator charges: half a minute times 1 + log2 GPUs to start again"),
    ("muri", "start-up seconds by model and devices of Muri's simulator, for --compat muri"),
];

impl Overheads {
    /// Nothing costs anything.
    pub fn none() -> Overheads {
        Overheads {
            name: "none".into(),
            costs: Costs::default(),
            models: BTreeMap::new(),
            by_app: false,
            checkpoint_every: Span::ZERO,
        }
    }

    /// Means over eight models on one H200 with a RAM disk, November 2026: saving takes 0.03 to 1.3 s,
    /// loading 0.02 to 0.7 s, a fresh process 3.4 to 4.8 s.
    pub fn h200() -> Overheads {
        let costs =
            Costs { save: Span::from_secs(0.403), load: Span::from_secs(0.237), start: Span::from_secs(4.1) };
        Overheads {
            name: "h200".into(),
            costs,
            models: BTreeMap::new(),
            by_app: false,
            checkpoint_every: Span::from_secs(600.0),
        }
    }

    /// A profile by name, or from a TOML file.
    pub fn parse(name: &str) -> Result<Overheads, OverheadsError> {
        match name {
            "none" => Ok(Overheads::none()),
            "h200" => Ok(Overheads::h200()),
            "muri" => Ok(Overheads::muri()),
            "sia" => Ok(Overheads::sia()),
            "elasticflow" => Ok(Overheads::elasticflow()),
            "chronus" => Ok(Overheads::chronus()),
            _ => from_file(name).map_err(|problem| OverheadsError { name: name.to_owned(), problem }),
        }
    }

    /// What Sia's simulator charges (SOSP 2023 artifact): seconds of each start by application, and 30 for others.
    pub fn sia() -> Overheads {
        let costs = Costs { start: Span::from_whole_secs(30), ..Costs::default() };
        Overheads { name: "sia".into(), costs, by_app: true, ..Overheads::none() }
    }

    /// What ElasticFlow's simulator charges (ASPLOS 2023 artifact) on clusters below 256 devices.
    pub fn elasticflow() -> Overheads {
        let costs = |depth: f64| Costs {
            start: Span::from_secs(2.0 + 2.0 * depth),
            load: Span::from_whole_secs(27),
            ..Costs::default()
        };
        Overheads::by_depth("elasticflow", costs)
    }

    /// What Chronus' simulator charges (SoCC 2021 artifact): checkpoint and resume together, at the resume.
    pub fn chronus() -> Overheads {
        let costs = |depth: f64| Costs { load: Span::from_secs(30.0 * depth), ..Costs::default() };
        Overheads::by_depth("chronus", costs)
    }

    /// The same for all models, by 1 + log2 of the devices.
    fn by_depth(name: &str, costs: impl Fn(f64) -> Costs) -> Overheads {
        const DEVICES_MAX: u32 = 1024;
        let row = |devices: u32| (devices, costs(1.0 + libm::log2(f64::from(devices))));
        let rows = (1..=DEVICES_MAX).map(row).collect();
        let models = BTreeMap::from([(String::new(), rows)]);
        Overheads { name: name.into(), costs: costs(1.0), models, ..Overheads::none() }
    }

    /// What Muri's simulator charges (SIGCOMM 2022 artifact): seconds of start-up by model and devices.
    pub fn muri() -> Overheads {
        const SIZES: [u32; 6] = [1, 2, 4, 8, 16, 32];
        const STARTS: [(&str, [u32; 6]); 6] = [
            ("vgg16", [7, 7, 8, 9, 9, 10]),
            ("vgg19", [7, 7, 8, 9, 10, 10]),
            ("resnet18", [4, 5, 5, 7, 7, 7]),
            ("shufflenet_v2_x1_0", [4, 4, 5, 5, 7, 8]),
            ("a2c", [38, 39, 39, 46, 46, 46]),
            ("dqn", [5, 5, 6, 6, 8, 8]),
        ];
        let start = |seconds: u32| Costs { start: Span::from_secs(seconds as f64), ..Costs::default() };
        let rows = |starts: [u32; 6]| SIZES.into_iter().zip(starts.map(start)).collect();
        let models = STARTS.into_iter().map(|(model, starts)| (model.to_owned(), rows(starts))).collect();
        Overheads {
            name: "muri".into(),
            costs: start(10),
            models,
            by_app: false,
            checkpoint_every: Span::ZERO,
        }
    }

    /// The costs of a job that trains this model on so many devices.
    pub fn of(&self, model: Option<&str>, devices: u32) -> Costs {
        let rows = model.and_then(|model| self.models.get(model)).or_else(|| self.models.get(""));
        let rows = rows.map_or(&[][..], |rows| rows);
        rows.iter().rev().find(|(from, _)| *from <= devices).map_or(self.costs, |(_, costs)| *costs)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverheadsFile {
    save_s: f64,
    load_s: f64,
    start_s: f64,
    #[serde(default)]
    checkpoint_every_s: f64,
    #[serde(default)]
    models: BTreeMap<String, OverheadModel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverheadModel {
    save_s: f64,
    load_s: f64,
    start_s: f64,
}

fn from_file(name: &str) -> Result<Overheads, String> {
    let names = PROFILES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if !Path::new(name).is_file() {
        return Err(format!(
            "no profile and no file of that name; there are {names}, or a TOML file with save_s, load_s and start_s"
        ));
    }
    let text = std::fs::read_to_string(name).map_err(|error| error.to_string())?;
    let file: OverheadsFile = toml::from_str(&text).map_err(|error| toml_problem(&error, &text))?;
    let every = seconds("checkpoint_every_s", file.checkpoint_every_s)?;
    let mut models = BTreeMap::new();
    for (model, costs) in file.models {
        models.insert(model, vec![(0, checked(costs.save_s, costs.load_s, costs.start_s)?)]);
    }
    let costs = checked(file.save_s, file.load_s, file.start_s)?;
    Ok(Overheads { name: name.to_owned(), costs, models, by_app: false, checkpoint_every: every })
}

fn checked(save: f64, load: f64, start: f64) -> Result<Costs, String> {
    Ok(Costs {
        save: seconds("save_s", save)?,
        load: seconds("load_s", load)?,
        start: seconds("start_s", start)?,
    })
}

fn seconds(field: &str, value: f64) -> Result<Span, String> {
    if (0.0..=1e9).contains(&value) {
        return Ok(Span::from_secs(value));
    }
    Err(format!("{field} = {value} is not a number of seconds from 0 to 1e9"))
}
