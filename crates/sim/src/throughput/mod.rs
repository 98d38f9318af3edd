//! Throughput tables: how many steps a second a model makes, by kind of device and gang; where the gang is
//! spread over nodes; and beside another job on the same devices.
//!
//! Read are Gavel's JSON (`gavel`), a folder of ElasticFlow's CSV files (`elasticflow`), the native CSV and TOML
//! (`native`), and Sia's folders of profiles (`sia`), which also say how well steps train. A speed of 0 says that it cannot run so. Kinds that the cluster does not have do no harm.

mod elasticflow;
mod gavel;
mod native;
mod sia;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use sia::App;
pub(crate) use sia::{Timings, split};

use crate::trace::{Column, Row, Text, TraceError, load, unpack};

/// No device makes more steps a second.
const MAX_SPEED: f64 = 1e12;

/// What determines speed beside the devices: the model, its batch size, and the size of the gang.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Profile {
    /// The model.
    pub model: Arc<str>,
    /// Its batch size, where the table tells them apart.
    pub batch_size: Option<u32>,
    /// Devices of the gang.
    pub gpus: u32,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let batch = self.batch_size.map_or(String::new(), |size| format!(" (batch size {size})"));
        write!(f, "{}{batch} on {}", self.model, self.gpus)
    }
}

/// Speeds by kind, model, batch size and gang.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throughputs {
    /// Alone, by kind (or mix of kinds) and model, in order of batch size, gang and spread.
    speeds: BTreeMap<Box<str>, BTreeMap<Arc<str>, Vec<Speed>>>,
    /// Of the first beside the second, by kind.
    beside: BTreeMap<Box<str>, BTreeMap<(Profile, Profile), f64>>,
    /// As `beside`, by the word of the other's entry only.
    told: BTreeMap<Box<str>, BTreeMap<(Profile, Profile), f64>>,
    /// Applications of which is known how they train, by name.
    apps: BTreeMap<Arc<str>, Arc<App>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Speed {
    shape: (Option<u32>, u32, bool),
    steps_per_s: f64,
}

/// One speed as a file has it.
struct ThroughputEntry {
    kind: Box<str>,
    profile: Profile,
    beside: Option<Profile>,
    spread: bool,
    steps_per_s: f64,
}

impl ThroughputEntry {
    fn alone(kind: &str, profile: Profile, steps_per_s: f64) -> ThroughputEntry {
        ThroughputEntry { kind: kind.into(), profile, beside: None, spread: false, steps_per_s }
    }
}

/// Why a throughput table was not read. Each message is one sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum ThroughputError {
    /// A file or a row that cannot be read.
    #[error(transparent)]
    Input(#[from] TraceError),
    /// A folder that cannot be listed.
    #[error("{folder}: the folder cannot be read: {source}")]
    Folder {
        /// The folder.
        folder: String,
        /// What the system said.
        source: io::Error,
    },
    /// Not the JSON of a throughput table.
    #[error("{file}: not a throughput table in Gavel's JSON: {source}")]
    Json {
        /// The file.
        file: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// An entry that cannot be a speed.
    #[error("{file}, entry {entry}: {problem}; {allowed}")]
    Entry {
        /// The file.
        file: String,
        /// The kind and the key.
        entry: String,
        /// What is wrong.
        problem: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Profiles of training runs that make no sense.
    #[error("{file}: {problem}")]
    Profile {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// Not the TOML of a throughput table.
    #[error("{file}: not a throughput table in TOML: {problem}")]
    Toml {
        /// The file.
        file: String,
        /// Where and why.
        problem: String,
    },
    /// The same shape twice.
    #[error("{file}: {entry} is there twice; each shape has one speed")]
    Repeated {
        /// The file or folder.
        file: String,
        /// Kind, model, batch size and gang.
        entry: String,
    },
    /// No speeds at all.
    #[error("{file}: there are no throughputs in it")]
    Empty {
        /// The file or folder.
        file: String,
    },
}

impl Throughputs {
    /// Reads a table: a folder of folders as Sia's profiles, another folder as ElasticFlow's, a file that begins with `{` as Gavel's, one whose name ends in
    /// `.toml` as TOML, else as the native CSV; files may be gzipped.
    pub fn open(path: &Path) -> Result<Throughputs, ThroughputError> {
        let table = match path.is_dir() {
            true if sia::is_folder(path) => sia::open_folder(path)?,
            true => elasticflow::open_folder(path)?,
            false => open_file(path)?,
        };
        table.finish(&path.display().to_string())
    }

    /// The application of this name, where it is known how it trains.
    pub fn app(&self, name: &str) -> Option<&Arc<App>> {
        self.apps.get(name)
    }

    /// The applications of which is known how they train, in order of name.
    pub fn apps(&self) -> impl Iterator<Item = &Arc<App>> {
        self.apps.values()
    }

    /// Steps a second of a gang of `gpus` devices of `kind`, on one node; none where the table has no such
    /// entry or says that it cannot run. Batch sizes match exactly: none matches only an entry with none.
    pub fn speed(&self, kind: &str, model: &str, batch: Option<u32>, gpus: u32) -> Option<f64> {
        self.find(kind, model, (batch, gpus, false)).filter(|&speed| speed > 0.0)
    }

    /// The sizes of gang for which a model has a speed on a kind, ascending.
    pub fn sizes(&self, kind: &str, model: &str, batch: Option<u32>) -> impl Iterator<Item = u32> {
        let speeds = self.speeds.get(kind).and_then(|models| models.get(model));
        let of_batch = move |speed: &&Speed| speed.shape.0 == batch && speed.steps_per_s > 0.0;
        speeds.into_iter().flatten().filter(of_batch).map(|speed| speed.shape.1)
    }

    /// Steps a second of a gang that is spread over nodes: 0 where it cannot run so, none where the table does
    /// not say.
    pub fn speed_spread(&self, kind: &str, model: &str, batch: Option<u32>, gpus: u32) -> Option<f64> {
        self.find(kind, model, (batch, gpus, true))
    }

    fn find(&self, kind: &str, model: &str, shape: (Option<u32>, u32, bool)) -> Option<f64> {
        let speeds = self.speeds.get(kind)?.get(model)?;
        let at = speeds.binary_search_by(|speed| speed.shape.cmp(&shape)).ok()?;
        Some(speeds[at].steps_per_s)
    }

    /// The part of its speed alone that `profile` keeps beside `other` on devices of `kind`: 0 where it cannot
    /// run so, none where the table does not say.
    pub fn kept(&self, kind: &str, profile: &Profile, other: &Profile) -> Option<f64> {
        let together = *self.beside.get(kind)?.get(&(profile.clone(), other.clone()))?;
        let alone = self.speed(kind, &profile.model, profile.batch_size, profile.gpus);
        Some(alone.map_or(0.0, |alone| together / alone))
    }

    /// The kinds and mixes of kinds, in order of name.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.speeds.keys().map(|kind| &**kind)
    }

    /// The mixes of kinds: each as it is looked up, with how many devices of which kinds.
    pub fn mixes(&self) -> impl Iterator<Item = (&str, Vec<(&str, u32)>)> {
        let mixed = self.kinds().filter(|kind| kind.contains('+'));
        mixed.filter_map(|kind| parts(kind).map(|parts| (kind, parts)))
    }

    /// The models of all kinds, in order of name.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        let models: BTreeSet<&str> =
            self.speeds.values().flat_map(|m| m.keys().map(|model| &**model)).collect();
        models.into_iter()
    }

    /// Everything that has a speed on some kind, in order.
    pub fn profiles(&self) -> BTreeSet<Profile> {
        let models = self.speeds.values().flatten();
        let rows = models.flat_map(|(model, speeds)| speeds.iter().map(move |speed| (model, speed)));
        let some = rows.filter(|(_, speed)| speed.steps_per_s > 0.0);
        let profile = |(model, speed): (&Arc<str>, &Speed)| Profile {
            model: model.clone(),
            batch_size: speed.shape.0,
            gpus: speed.shape.1,
        };
        some.map(profile).collect()
    }

    fn add(&mut self, file: &str, entry: ThroughputEntry) -> Result<(), ThroughputError> {
        let place = format!("{} of {}", entry.profile, entry.kind);
        self.add_named(file, || place.clone(), entry)
    }

    /// Takes an entry in; `place` names it where it is wrong.
    fn add_named(
        &mut self,
        file: &str,
        place: impl Fn() -> String,
        entry: ThroughputEntry,
    ) -> Result<(), ThroughputError> {
        let ThroughputEntry { kind, profile, beside, spread, steps_per_s } = entry;
        if !(0.0..=MAX_SPEED).contains(&steps_per_s) {
            let (problem, allowed) =
                (format!("{steps_per_s} is no speed"), "a speed is a number from 0 to 1e12");
            return Err(ThroughputError::Entry {
                file: file.to_owned(),
                entry: plain(&place()),
                problem,
                allowed,
            });
        }
        let Some(other) = beside else {
            let shape = (profile.batch_size, profile.gpus, spread);
            let models = self.speeds.entry(kind).or_default();
            models.entry(profile.model).or_default().push(Speed { shape, steps_per_s });
            return Ok(());
        };
        let entry = format!("{profile} of {kind} beside {other}");
        match self.beside.entry(kind).or_default().insert((profile, other), steps_per_s) {
            None => Ok(()),
            Some(_) => Err(ThroughputError::Repeated { file: file.to_owned(), entry: plain(&entry) }),
        }
    }

    /// What an entry says of the other job in it.
    fn tell(&mut self, kind: &str, profile: &Profile, other: &Profile, steps_per_s: f64) {
        if (0.0..=MAX_SPEED).contains(&steps_per_s) {
            let told = self.told.entry(kind.into()).or_default();
            told.insert((profile.clone(), other.clone()), steps_per_s);
        }
    }

    /// Sorts what was read, and looks for what is there twice or makes no sense.
    fn finish(mut self, file: &str) -> Result<Throughputs, ThroughputError> {
        if self.speeds.is_empty() && self.apps.is_empty() {
            return Err(ThroughputError::Empty { file: file.to_owned() });
        }
        for (kind, models) in &mut self.speeds {
            for (model, speeds) in models {
                speeds.sort_by_key(|speed| speed.shape);
                if let Some(pair) = speeds.windows(2).find(|pair| pair[0].shape == pair[1].shape) {
                    let (batch_size, gpus, spread) = pair[0].shape;
                    let over = if spread { " spread over nodes" } else { "" };
                    let entry =
                        format!("{} of {kind}{over}", Profile { model: model.clone(), batch_size, gpus });
                    return Err(ThroughputError::Repeated { file: file.to_owned(), entry: plain(&entry) });
                }
            }
        }
        for (kind, pairs) in std::mem::take(&mut self.told) {
            let known = self.beside.entry(kind).or_default();
            pairs.into_iter().for_each(|(pair, speed)| {
                known.entry(pair).or_insert(speed);
            });
        }
        self.check_pairs(file)?;
        Ok(self)
    }

    fn check_pairs(&self, file: &str) -> Result<(), ThroughputError> {
        for (kind, pairs) in &self.beside {
            for (profile, other) in pairs.keys() {
                let bad = |problem: String, allowed| {
                    let entry = plain(&format!("{profile} of {kind} beside {other}"));
                    Err(ThroughputError::Entry { file: file.to_owned(), entry, problem, allowed })
                };
                if let Some(lone) = [profile, other].into_iter().find(|one| !self.knows(kind, one)) {
                    let problem = plain(&format!("{lone} of {kind} has no speed alone"));
                    return bad(problem, "a pair is of shapes with a speed alone");
                }
                if !pairs.contains_key(&(other.clone(), profile.clone())) {
                    return bad("the other's speed is not there".into(), "each of a pair has its own entry");
                }
            }
        }
        Ok(())
    }

    /// Whether there is an entry for it alone, be it that it cannot run.
    fn knows(&self, kind: &str, profile: &Profile) -> bool {
        let speeds = self.speeds.get(kind).and_then(|models| models.get(&profile.model));
        speeds.is_some_and(|speeds| {
            speeds.iter().any(|speed| (speed.shape.0, speed.shape.1) == (profile.batch_size, profile.gpus))
        })
    }
}

/// `v100*2+p100*2` as its parts.
fn parts(mix: &str) -> Option<Vec<(&str, u32)>> {
    mix.split('+').map(part).collect()
}

fn part(text: &str) -> Option<(&str, u32)> {
    let (kind, count) = text.split_once('*')?;
    let count = count.trim().parse().ok().filter(|count| *count > 0)?;
    (!kind.trim().is_empty()).then_some((kind.trim(), count))
}

fn open_file(path: &Path) -> Result<Throughputs, ThroughputError> {
    let file = path.display().to_string();
    let (bytes, _) = load(path)?;
    let bytes = unpack(&file, &bytes)?;
    let text = Text { file: &file, bytes: &bytes };
    let is_toml = file.ends_with(".toml") || file.ends_with(".toml.gz");
    match bytes.trim_ascii_start().first() {
        Some(b'{') => gavel::read(text),
        _ if is_toml => native::read_toml(text),
        _ => native::read_csv(text),
    }
}

/// Text of a file as a message can show it.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn speed(row: &Row<'_>, column: &Column) -> Result<f64, TraceError> {
    row.number(column, false, MAX_SPEED, || "a speed is a number of steps a second from 0 up".to_owned())
}

#[cfg(test)]
mod tests;
