//! One folder that reproduces a result (`--bundle DIR`, `yard bundle DIR`): the inputs with their hashes, the command,
//! the build, the results, the figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, FromArgMatches};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::cmd::plot::draw;
use crate::cmd::sim::SimArgs;
use crate::policy::PREFIX;

const MANIFEST: &str = "manifest.json";

/// The only folder of inputs.
const INPUTS: &str = "inputs";

/// Options whose values may name files that the result depends on.
const READS: [&str; 5] = ["--trace", "--cluster", "--throughputs", "--overheads", "--lend"];

/// Options that say where results go.
const WRITES: [&str; 7] = ["--bundle", "--html", "--events", "--per-job", "--series", "--output", "-o"];

/// Options without a value.
const FLAGS: [&str; 2] = ["--strict-rounds", "--promises"];

/// What a bundle says of itself.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Manifest {
    /// The version of yard.
    pub(crate) yard: String,
    /// The commit it was built from.
    pub(crate) commit: String,
    /// What follows `yard sim`, from within the bundle.
    pub(crate) command: Vec<String>,
    /// SHA-256 of each input.
    pub(crate) inputs: BTreeMap<String, String>,
    /// What happened in each run.
    pub(crate) runs: Vec<BundleRan>,
}

/// A run by what it varies, and the digest of its events.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct BundleRan {
    pub(crate) policy: String,
    pub(crate) seed: u64,
    #[serde(default)]
    pub(crate) sweep: Map<String, Value>,
    pub(crate) events_sha256: String,
}

impl BundleRan {
    /// Of a run as JSON has it.
    pub(crate) fn of(run: &Map<String, Value>) -> BundleRan {
        let text = |key: &str| run[key].as_str().unwrap_or_default().to_owned();
        let sweep = run.get("sweep").and_then(Value::as_object).cloned().unwrap_or_default();
        let seed = run["seed"].as_u64().unwrap_or_default();
        BundleRan { policy: text("policy"), seed, sweep, events_sha256: text("events_sha256") }
    }

    /// Whether the same happened. A program has another path in the bundle, so that names do not count: the runs of one
    /// command have one order.
    pub(crate) fn is_like(&self, other: &BundleRan) -> bool {
        (self.seed, &self.events_sha256) == (other.seed, &other.events_sha256)
    }
}

/// What this binary was built from.
pub(crate) fn commit() -> &'static str {
    env!("YARD_COMMIT")
}

/// Refuses a folder that has something in it, before anything is run.
pub(crate) fn check_target(folder: &Path) -> anyhow::Result<()> {
    match fs::read_dir(folder).map(|entries| entries.count()) {
        Ok(0) => Ok(()),
        Ok(_) => bail!("--bundle {}: the folder is not empty; choose a new one", folder.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("--bundle {}", folder.display())),
    }
}

/// Writes the bundle: `result` as JSON, and further files by name.
pub(crate) fn write(folder: &Path, result: &Value, files: &[(&str, String)]) -> anyhow::Result<()> {
    let about = || format!("cannot write the bundle {}", folder.display());
    fs::create_dir_all(folder.join(INPUTS)).with_context(about)?;
    let mut inputs = BTreeMap::new();
    let mut take = |path: &Path| copy(path, folder, &mut inputs);
    let command = rewritten(std::env::args().skip(2).collect(), &mut take)?;
    let runs = result["runs"].as_array().into_iter().flatten().filter_map(Value::as_object);
    let runs: Vec<BundleRan> = runs.map(BundleRan::of).collect();
    let yard = env!("CARGO_PKG_VERSION").to_owned();
    let manifest = Manifest { yard, commit: commit().to_owned(), command, inputs, runs };
    let save = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).with_context(about);
    save(MANIFEST, &pretty(&manifest)?)?;
    save("result.json", &pretty(result)?)?;
    save("README.md", readme(&manifest).as_bytes())?;
    for (name, text) in files {
        save(name, text.as_bytes())?;
    }
    figures(folder, files)
}

fn pretty(value: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    Ok([serde_json::to_vec_pretty(value)?, b"\n".to_vec()].concat())
}

/// What can be drawn of the files that were written.
fn figures(folder: &Path, files: &[(&str, String)]) -> anyhow::Result<()> {
    let result: Value = serde_json::from_slice(&fs::read(folder.join("result.json"))?)?;
    let varied = result["means"][0]["sweep"].as_object().map_or(0, Map::len);
    let mut wanted = Vec::new();
    if files.iter().any(|(name, _)| *name == "jobs.csv") {
        wanted.extend([("jobs.csv", "jct_s"), ("series.csv", "utilization"), ("series.csv", "queued_gpus")]);
    } else if varied == 1 {
        wanted.extend([("result.json", "avg_jct_s"), ("result.json", "p99_jct_s")]);
    }
    for (file, figure) in wanted {
        for ending in ["svg", "pdf"] {
            // Values that are no numbers have no place on an axis; the figures are in the JSON all the same.
            if let Err(error) =
                draw(&folder.join(file), Some(figure), None, &folder.join(format!("{figure}.{ending}")))
            {
                crate::output::note(&format!("note: no figure of {figure}: {error:#}"));
                break;
            }
        }
    }
    Ok(())
}

fn readme(manifest: &Manifest) -> String {
    format!(
        "# A result of Switchyard\n\nMade by yard {} ({}) with\n\n```\nyard sim {}\n```\n\nfrom within this folder. To run it again and compare what happened, event by event:\n\n```\nyard bundle .\n```\n\n`result.json` has all figures, `{MANIFEST}` the hashes of the inputs and of the events of each run.\n",
        manifest.yard,
        manifest.commit,
        crate::results::quoted_line(&manifest.command)
    )
}

/// The same command with its inputs in the bundle and without outputs.
fn rewritten(
    args: Vec<String>,
    take: &mut impl FnMut(&Path) -> anyhow::Result<String>,
) -> anyhow::Result<Vec<String>> {
    let mut command = Vec::new();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let (key, value) = match arg.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None if FLAGS.contains(&arg.as_str()) => (arg, None),
            None => (arg, args.next()),
        };
        if WRITES.contains(&key.as_str()) || key.starts_with("-o") {
            continue;
        }
        let Some(value) = value else {
            command.push(key);
            continue;
        };
        let value = match key.as_str() {
            // A sweep may be over a parameter of a policy that is a program.
            "--policy" | "--sweep" => policies(&value, take)?,
            key if READS.contains(&key) => input(&value, take)?,
            _ => value,
        };
        command.push(format!("{key}={value}"));
    }
    Ok(command)
}

/// An input by its place in the bundle, where it is a file; `FILE#MEMBER` keeps its member.
fn input(value: &str, take: &mut impl FnMut(&Path) -> anyhow::Result<String>) -> anyhow::Result<String> {
    let (path, member) = match value.rsplit_once('#') {
        Some((path, member)) if !Path::new(value).exists() => (path, format!("#{member}")),
        _ => (value, String::new()),
    };
    if !Path::new(path).exists() {
        return Ok(value.to_owned());
    }
    Ok(take(Path::new(path))? + &member)
}

fn policies(value: &str, take: &mut impl FnMut(&Path) -> anyhow::Result<String>) -> anyhow::Result<String> {
    let one = |policy: &str| {
        let Some(rest) = policy.strip_prefix(PREFIX) else { return Ok(policy.to_owned()) };
        let (path, params) = rest.split_at(rest.find(':').unwrap_or(rest.len()));
        Ok(format!("{PREFIX}{}{params}", take(Path::new(path))?))
    };
    let all: anyhow::Result<Vec<String>> = value.split(',').map(one).collect();
    Ok(all?.join(","))
}

/// Copies a file, or the files of a folder, into the bundle.
fn copy(from: &Path, folder: &Path, hashes: &mut BTreeMap<String, String>) -> anyhow::Result<String> {
    let about = || format!("cannot copy {} into the bundle", from.display());
    let name = from.file_name().with_context(about)?.to_string_lossy().into_owned();
    let place = format!("{INPUTS}/{name}");
    if from.is_dir() {
        fs::create_dir_all(folder.join(&place)).with_context(about)?;
        for entry in fs::read_dir(from).with_context(about)? {
            let path = entry.with_context(about)?.path();
            if path.is_file() {
                let inner = format!("{place}/{}", path.file_name().with_context(about)?.to_string_lossy());
                keep(&path, folder, inner, hashes).with_context(about)?;
            }
        }
    } else {
        keep(from, folder, place.clone(), hashes).with_context(about)?;
    }
    Ok(place)
}

fn keep(
    from: &Path,
    folder: &Path,
    place: String,
    hashes: &mut BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let hash = digest(from)?;
    if hashes.get(&place).is_some_and(|other| *other != hash) {
        bail!("two inputs are called {place}; rename one");
    }
    fs::copy(from, folder.join(&place))?;
    hashes.insert(place, hash);
    Ok(())
}

fn digest(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads a bundle, enters it, and checks that its inputs are as they were: the manifest, and what to run.
pub(crate) fn open(folder: &Path) -> anyhow::Result<(Manifest, SimArgs)> {
    let file: PathBuf = folder.join(MANIFEST);
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let manifest: Manifest =
        serde_json::from_str(&text).with_context(|| format!("{} is not a manifest", file.display()))?;
    std::env::set_current_dir(folder).with_context(|| format!("cannot enter {}", folder.display()))?;
    for (name, hash) in &manifest.inputs {
        if digest(Path::new(name))? != *hash {
            bail!("{name} has changed: its SHA-256 differs from the one in the bundle");
        }
    }
    let line = std::iter::once("yard sim".to_owned()).chain(manifest.command.iter().cloned());
    let command = SimArgs::augment_args(clap::Command::new("yard sim"));
    let matches = command.try_get_matches_from(line).with_context(|| format!("{}", file.display()))?;
    Ok((manifest, SimArgs::from_arg_matches(&matches)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(line: &str) -> Vec<String> {
        let mut take = |path: &Path| Ok(format!("inputs/{}", path.file_name().unwrap().to_string_lossy()));
        rewritten(line.split(' ').map(str::to_owned).collect(), &mut take).unwrap()
    }

    #[test]
    fn a_command_is_written_anew_with_its_inputs_in_the_bundle() {
        let line = "--trace Cargo.toml --cluster=gpu:8x8 --policy fifo,exec:src/main.rs:a=1 --strict-rounds --html x.html -o json --seed 3";
        let expected = [
            "--trace=inputs/Cargo.toml",
            "--cluster=gpu:8x8",
            "--policy=fifo,exec:inputs/main.rs:a=1",
            "--strict-rounds",
            "--seed=3",
        ];
        assert_eq!(made(line), expected);
        assert_eq!(made("--trace Cargo.toml#cluster01 --bundle=x"), ["--trace=inputs/Cargo.toml#cluster01"]);
        assert_eq!(made("--trace gen:philly:jobs=5:static"), ["--trace=gen:philly:jobs=5:static"]);
        assert_eq!(made("--sweep exec:src/main.rs:a=1,2"), ["--sweep=exec:inputs/main.rs:a=1,2"]);
        assert_eq!(made("--sweep load=0.5..1 --seeds=3"), ["--sweep=load=0.5..1", "--seeds=3"]);
    }
}
