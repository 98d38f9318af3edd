//! A job file in YAML. It has the fields of a request, with values as people write them (`time: 2h`, `deadline: 18:00`,
//! `kind: a100|h100`, `gpu_memory: 8GiB`, `max_slowdown: 5%`) and `run`, a text for the shell, in place of `command`. Unknown fields are refused, and so is
//! what grows when it is read.

mod wrong;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Zoned;
use serde::Deserialize;
use yard_core::cluster::Level;
use yard_core::job::{Claim, Late};
use yard_core::part::Pause;

use super::{
    Checkpoint, JobRequest, Mistake, Ranks, RegimeRequest, RewardRequest, TrainingRequest, amounts, times,
};
use crate::wire::Handed;

/// Bytes of a job file.
const BYTES_MAX: usize = 1 << 20;

/// A job file as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct JobFile {
    name: Option<String>,
    command: Vec<String>,
    run: Option<String>,
    env: BTreeMap<String, String>,
    secrets: BTreeMap<String, Handed>,
    workdir: Option<PathBuf>,
    gpus: Option<u32>,
    min_gpus: Option<u32>,
    max_gpus: Option<u32>,
    kind: Option<String>,
    kinds: Vec<String>,
    nodes: Option<u32>,
    segment: Option<u32>,
    close: Option<Level>,
    prefer: Option<Level>,
    tasks_per_node: Option<u32>,
    ranks: Ranks,
    tenant: Option<String>,
    weight: Option<f64>,
    priority: i32,
    deadline: Option<String>,
    late: Option<Late>,
    rewards: Vec<RewardFile>,
    begin: Option<String>,
    after: Vec<u64>,
    #[serde(alias = "time_limit_s")]
    time: Option<String>,
    #[serde(alias = "duration_s")]
    duration: Option<String>,
    model: Option<String>,
    batch_size: Option<u32>,
    training: Option<TrainingRequest>,
    regimes: Vec<RegimeRequest>,
    max_restarts: Option<u32>,
    pause: Pause,
    checkpoint: CheckpointFile,
    output: Option<String>,
    error: Option<String>,
    #[serde(alias = "memory_mib")]
    memory: Option<String>,
    cpus: Option<f64>,
    resources: BTreeMap<String, u32>,
    exclusive: bool,
    gpu_fraction: Option<String>,
    gpu_limit: Option<String>,
    #[serde(alias = "gpu_memory_mib")]
    gpu_memory: Option<String>,
    class: Claim,
    max_slowdown: Option<String>,
    affinity: Option<String>,
    anti_affinity: Option<String>,
    exclusion: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RewardFile {
    by: String,
    worth: f64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CheckpointFile {
    dir: Option<PathBuf>,
    signal: Option<String>,
    #[serde(alias = "grace_s")]
    grace: Option<String>,
}

/// Reads a job file. Times of the day are counted from `now`, in its zone.
pub fn parse(text: &str, now: &Zoned) -> Result<JobRequest, Mistake> {
    if text.len() > BYTES_MAX {
        return Err(Mistake { line: None, message: format!("a job file has at most {BYTES_MAX} bytes") });
    }
    let file: JobFile =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| mistake(text, &error))?;
    file.request(now).map_err(|message| Mistake { line: None, message })
}

/// Small limits: a job file is a page, and one that unfolds to more is an attack.
fn options() -> serde_saphyr::Options {
    let budget = serde_saphyr::budget! {
        max_depth: 16,
        max_nodes: 50_000,
        max_events: 150_000,
        max_aliases: 64,
        max_anchors: 64,
    };
    serde_saphyr::options! { budget: budget, with_snippet: false }
}

fn mistake(text: &str, error: &serde_saphyr::Error) -> Mistake {
    let message = error.without_snippet().to_string().replace('\n', " ");
    let place = error.location().map(|location| (location.line(), location.column()));
    let plain = place.and_then(|(line, column)| wrong::plain(text, line, column, &message));
    Mistake { line: place.map(|(line, _)| line), message: plain.unwrap_or(message) }
}

impl JobFile {
    fn request(self, now: &Zoned) -> Result<JobRequest, String> {
        let moment = |field: &str, text: Option<String>| {
            text.map(|text| times::moment(&text, now))
                .transpose()
                .map_err(|wrong| format!("{field}: {wrong}"))
        };
        let reward = |one: RewardFile| {
            let by = times::moment(&one.by, now).map_err(|wrong| format!("rewards: {wrong}"))?;
            Ok(RewardRequest { by, worth: one.worth })
        };
        let rewards: Vec<RewardRequest> =
            self.rewards.into_iter().map(reward).collect::<Result<_, String>>()?;
        // The first reward is for the deadline.
        let deadline = moment("deadline", self.deadline)?.or(rewards.first().map(|first| first.by));
        Ok(JobRequest {
            command: command(self.command, self.run)?,
            kinds: kinds(self.kind, self.kinds)?,
            deadline,
            rewards,
            late: self.late,
            begin: moment("begin", self.begin)?,
            time_limit_s: length("time", self.time)?,
            duration_s: length("duration", self.duration)?,
            checkpoint: self.checkpoint.read()?,
            name: self.name,
            env: self.env,
            secrets: self.secrets,
            workdir: self.workdir,
            gpus: self.gpus,
            min_gpus: self.min_gpus,
            max_gpus: self.max_gpus,
            nodes: self.nodes,
            segment: self.segment,
            close: self.close,
            prefer: self.prefer,
            tasks_per_node: self.tasks_per_node,
            ranks: self.ranks,
            tenant: self.tenant,
            weight: self.weight,
            priority: self.priority,
            model: self.model,
            batch_size: self.batch_size,
            training: self.training,
            regimes: self.regimes,
            after: self.after,
            max_restarts: self.max_restarts,
            pause: self.pause,
            output: self.output,
            error: self.error,
            memory_mib: amount("memory", self.memory, amounts::memory)?,
            cpus: self.cpus,
            resources: self.resources,
            exclusive: self.exclusive,
            gpu_fraction: amount("gpu_fraction", self.gpu_fraction, amounts::part)?,
            gpu_limit: amount("gpu_limit", self.gpu_limit, amounts::part)?,
            gpu_memory_mib: amount("gpu_memory", self.gpu_memory, amounts::memory)?,
            class: self.class,
            max_slowdown: amount("max_slowdown", self.max_slowdown, amounts::part)?,
            affinity: self.affinity,
            anti_affinity: self.anti_affinity,
            exclusion: self.exclusion,
        })
    }
}

impl CheckpointFile {
    fn read(self) -> Result<Checkpoint, String> {
        let grace_s = length("checkpoint.grace", self.grace)?;
        Ok(Checkpoint { dir: self.dir, signal: self.signal, grace_s })
    }
}

fn length(field: &str, text: Option<String>) -> Result<Option<f64>, String> {
    amount(field, text, times::length)
}

fn amount<T>(
    field: &str,
    text: Option<String>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    text.map(|text| read(&text)).transpose().map_err(|wrong| format!("{field}: {wrong}"))
}

/// A program with arguments, or a text for the shell, which ends at its first failing line.
fn command(command: Vec<String>, run: Option<String>) -> Result<Vec<String>, String> {
    match run {
        None => Ok(command),
        Some(_) if !command.is_empty() => Err("command and run are both given; keep one".into()),
        Some(script) => Ok(vec!["/bin/sh".into(), "-ec".into(), script]),
    }
}

fn kinds(one: Option<String>, all: Vec<String>) -> Result<Vec<String>, String> {
    match one {
        None => Ok(all),
        Some(_) if !all.is_empty() => Err("kind and kinds are both given; keep one".into()),
        Some(text) => Ok(split_kinds(&text)),
    }
}

/// `a100|h100` or `a100,h100`, in order of preference.
pub fn split_kinds(text: &str) -> Vec<String> {
    text.split(['|', ',']).map(|kind| kind.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;

    fn now() -> Zoned {
        Timestamp::constant(1_794_758_400, 0).to_zoned(TimeZone::UTC)
    }

    fn wrong(text: &str) -> String {
        parse(text, &now()).expect_err("it is wrong").to_string()
    }

    const WHOLE: &str = "\
name: resnet
command: [python, train.py, --epochs, '90']
env: {EPOCHS: 90, OFF: no, NAME: x}
secrets: {WANDB_API_KEY: env, hf-token: file}
workdir: /data
gpus: 4
min_gpus: 2
max_gpus: 8
kind: a100|h100
nodes: 2
segment: 1
close: block
prefer: rack
tasks_per_node: 3
ranks: device
tenant: vision
weight: 2
priority: 5
deadline: 18:00
late: refuse
rewards: [{by: '18:00', worth: 10}, {by: 20:00, worth: 2.5}]
begin: 1h
after: [3, 12]
time: 2h
duration: 90m
model: ResNet-50
batch_size: 64
training: {batch: 64, steps: 1000, max: 512, accumulate: true, local_min: 8, local_max: 128}
regimes: [{batch: 32, step_s: 0.1}, {batch: 64, step_s: 0.17}]
max_restarts: 3
pause: checkpoint
checkpoint: {dir: /ckpt, signal: USR1, grace: 2m}
output: '%x-%j.out'
error: '%x-%j.err'
memory_mib: 1024
cpus: 1.5
resources: { scratch_gb: 100 }
exclusive: true
gpu_fraction: 50%
gpu_limit: 0.8
gpu_memory: 8GiB
class: guaranteed
max_slowdown: 5%
affinity: pair
anti_affinity: heavy
exclusion: vision
";

    #[test]
    fn every_field_is_read() {
        let read = parse(WHOLE, &now()).expect("it is sound");
        let start = 1_794_758_400.0;
        let expected = JobRequest {
            name: Some("resnet".into()),
            command: ["python", "train.py", "--epochs", "90"].map(String::from).to_vec(),
            env: [("EPOCHS", "90"), ("OFF", "no"), ("NAME", "x")].map(|(k, v)| (k.into(), v.into())).into(),
            secrets: [("WANDB_API_KEY", Handed::Env), ("hf-token", Handed::File)]
                .map(|(name, handed)| (name.into(), handed))
                .into(),
            workdir: Some("/data".into()),
            gpus: Some(4),
            min_gpus: Some(2),
            max_gpus: Some(8),
            kinds: vec!["a100".into(), "h100".into()],
            nodes: Some(2),
            segment: Some(1),
            close: Some(Level::Block),
            prefer: Some(Level::Rack),
            tasks_per_node: Some(3),
            ranks: Ranks::Device,
            tenant: Some("vision".into()),
            weight: Some(2.0),
            priority: 5,
            deadline: Some(start + 2.0 * 3600.0),
            late: Some(Late::Refuse),
            rewards: vec![
                RewardRequest { by: start + 2.0 * 3600.0, worth: 10.0 },
                RewardRequest { by: start + 4.0 * 3600.0, worth: 2.5 },
            ],
            begin: Some(start + 3600.0),
            after: vec![3, 12],
            time_limit_s: Some(7200.0),
            duration_s: Some(5400.0),
            model: Some("ResNet-50".into()),
            batch_size: Some(64),
            training: Some(TrainingRequest {
                batch: 64,
                steps: 1000,
                max: Some(512),
                adapt: None,
                accumulate: true,
                local_min: Some(8),
                local_max: Some(128),
            }),
            regimes: vec![
                RegimeRequest { batch: 32, step_s: 0.1 },
                RegimeRequest { batch: 64, step_s: 0.17 },
            ],
            max_restarts: Some(3),
            pause: Pause::Checkpoint,
            checkpoint: Checkpoint {
                dir: Some("/ckpt".into()),
                signal: Some("USR1".into()),
                grace_s: Some(120.0),
            },
            output: Some("%x-%j.out".into()),
            error: Some("%x-%j.err".into()),
            memory_mib: Some(1024),
            cpus: Some(1.5),
            resources: BTreeMap::from([("scratch_gb".into(), 100)]),
            exclusive: true,
            gpu_fraction: Some(0.5),
            gpu_limit: Some(0.8),
            gpu_memory_mib: Some(8192),
            class: Claim::Guaranteed,
            max_slowdown: Some(0.05),
            affinity: Some("pair".into()),
            anti_affinity: Some("heavy".into()),
            exclusion: Some("vision".into()),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn a_request_written_as_yaml_is_read_back() {
        let request = parse(WHOLE, &now()).expect("it is sound");
        let text = serde_saphyr::to_string(&request).expect("a request is data");
        assert_eq!(parse(&text, &now()), Ok(request), "{text}");
    }

    #[test]
    fn a_text_for_the_shell_is_a_command() {
        let request = parse("run: |\n  set -x\n  python train.py\n", &now()).expect("it is sound");
        assert_eq!(request.command, ["/bin/sh", "-ec", "set -x\npython train.py\n"]);
    }

    #[test]
    fn mistakes_name_their_line() {
        let unknown = wrong("name: a\ngpu: 4\n");
        assert!(unknown.starts_with("line 2:") && unknown.contains("gpu"), "{unknown}");
        let type_of = wrong("name: a\n\ngpus: many\n");
        assert_eq!(
            type_of,
            "line 3: gpus: \"many\" is not a whole number of GPUs from 0 to 1000000, such as 4"
        );
        assert!(wrong("gpus: 0.5\n").contains("--gpu-fraction 0.5"));
        assert_eq!(wrong("cpus: lots # of them\n"), "line 1: cpus: \"lots\" is not a number");
        assert_eq!(
            wrong("max_restarts: -1\n"),
            "line 1: max_restarts: \"-1\" is not a whole number, 0 or more"
        );
        assert_eq!(wrong("exclusive: maybe\n"), "line 1: exclusive: \"maybe\" is not true or false");
        let inner = wrong("training: {batch: big, steps: 5}\n");
        assert_eq!(inner, "line 1: batch: \"big\" is not a whole number, 0 or more");
        assert!(wrong("name: a\nname: b\n").contains("name"));
        assert_eq!(
            wrong("gpus: 1\npause: maybe\n"),
            "line 2: pause: \"maybe\" is not one of auto, checkpoint, stop, freeze, never"
        );
        assert_eq!(wrong("after: [3, x]\n"), "line 1: after: \"x\" is not a whole number, 0 or more");
        assert_eq!(wrong("after:\n- 3\n- x\n"), "line 3: after: \"x\" is not a whole number, 0 or more");
        assert_eq!(wrong("kinds: a100\n"), "line 1: kinds: \"a100\" is not a list, such as [a, b]");
        assert_eq!(wrong("env: [A]\n"), "line 1: env: give NAME: value pairs, such as {NAME: value}");
        let fields = "job files have the fields that yard submit --dry-run prints";
        assert_eq!(wrong("tme: 2h\n"), format!("line 1: unknown field tme; did you mean time? ({fields})"));
        assert_eq!(wrong("zebra: 2h\n"), format!("line 1: unknown field zebra ({fields})"));
        let inner = "line 1: unknown field grce; did you mean grace? (fields: dir, signal, grace, grace_s)";
        assert_eq!(wrong("checkpoint: {grce: 2m}\n"), inner);
        assert!(wrong("deadline: soon\n").starts_with("deadline: \"soon\" is not a time"));
        assert!(wrong("time: never\n").starts_with("time: \"never\" is not a length"));
        assert!(wrong("command: [a]\nrun: b\n").contains("both"));
        assert!(wrong("kind: a\nkinds: [b]\n").contains("both"));
        assert!(wrong("gpu_memory: much\n").starts_with("gpu_memory: \"much\" is not a size such as"));
        assert!(wrong("gpu_fraction: half\n").starts_with("gpu_fraction: \"half\" is not a part such as"));
        assert!(wrong("gpu_memory: 8GiB\ngpu_memory_mib: 8192\n").contains("gpu_memory"));
        assert!(wrong("class: best\n").contains("guaranteed"));
        assert!(wrong("[1, 2]").lines().count() == 1);
    }

    #[test]
    fn what_grows_when_it_is_read_is_refused() {
        let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
        for (from, to) in ('a'..'i').zip('b'..'j') {
            bomb += &format!("{to}: &{to} [{}]\n", vec![format!("*{from}"); 9].join(", "));
        }
        assert!(!wrong(&bomb).is_empty());
        assert!(!wrong(&format!("command: {}", "[".repeat(100_000))).is_empty());
        assert!(wrong(&" ".repeat(BYTES_MAX + 1)).contains("at most"));
    }

    proptest! {
        #[test]
        fn damaged_files_are_refused_or_read(at in 0..WHOLE.len(), damage in "\\PC{0,4}", cut in 0usize..20) {
            let end = (at + cut).min(WHOLE.len());
            let text = format!("{}{damage}{}", &WHOLE[..at], &WHOLE[end..]);
            if let Err(mistake) = parse(&text, &now()) {
                prop_assert_eq!(mistake.to_string().lines().count(), 1);
            }
        }

        #[test]
        fn noise_is_no_panic(text in "[-a-z:{}\\[\\]&*!|>'\"%@#, \n]{0,60}") {
            let _ = parse(&text, &now());
        }
    }
}
