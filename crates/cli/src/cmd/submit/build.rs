//! From a file and flags to requests that make sense. Paths become absolute here, because the nodes know nothing of
//! the folder in which the command was typed.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use yard_live::request::sbatch::{self, Script};
use yard_live::request::{JobRequest, check, rewards, times, yaml};

use super::SubmitArgs;
use crate::clock;

/// The jobs to submit: one, or as many as an array has.
pub(super) fn requests(args: &SubmitArgs, after: &[u64]) -> anyhow::Result<Vec<JobRequest>> {
    let here = std::env::current_dir().context("the current folder no longer exists")?;
    let mut script = read_file(args, &here)?;
    apply(args, &mut script.request)?;
    if !after.is_empty() {
        script.request.after = after.to_vec();
    }
    if script.request.command.is_empty() {
        bail!("there is no command to run; put it after --, as in: yard submit -- python train.py");
    }
    settle_paths(&mut script.request, &here);
    let jobs = script.jobs();
    for job in &jobs {
        check::check(job)?;
    }
    Ok(jobs)
}

/// What the file says, with the command that is given for it.
fn read_file(args: &SubmitArgs, here: &Path) -> anyhow::Result<Script> {
    let Some(path) = &args.file else {
        let request = JobRequest { command: args.command.clone(), ..JobRequest::default() };
        return Ok(Script { request, array: None });
    };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    if sbatch::is_script(&text) {
        let mut script =
            sbatch::parse(&text, &here.join(path), &clock::now()).with_context(|| place(path))?;
        script.request.command.extend(args.command.iter().cloned());
        return Ok(script);
    }
    let mut request = yaml::parse(&text, &clock::now()).with_context(|| place(path))?;
    if !args.command.is_empty() {
        request.command.clone_from(&args.command);
    }
    Ok(Script { request, array: None })
}

fn place(path: &Path) -> String {
    path.display().to_string()
}

/// What flags say comes before what the file says.
fn apply(args: &SubmitArgs, request: &mut JobRequest) -> anyhow::Result<()> {
    apply_plain(args, request);
    apply_times(args, request)?;
    for pair in &args.env {
        let (key, value) =
            pair.split_once('=').with_context(|| format!("--env {pair:?} is not KEY=VALUE"))?;
        request.env.insert(key.to_owned(), value.to_owned());
    }
    request.secrets.extend(args.secret.iter().cloned());
    Ok(())
}

fn apply_plain(args: &SubmitArgs, request: &mut JobRequest) {
    fn over<T: Clone>(field: &mut Option<T>, flag: &Option<T>) {
        if flag.is_some() {
            field.clone_from(flag);
        }
    }
    over(&mut request.name, &args.name);
    over(&mut request.workdir, &args.workdir);
    over(&mut request.tenant, &args.tenant);
    over(&mut request.output, &args.stdout);
    over(&mut request.error, &args.stderr);
    over(&mut request.gpus, &args.gpus);
    over(&mut request.min_gpus, &args.min_gpus);
    over(&mut request.max_gpus, &args.max_gpus);
    over(&mut request.nodes, &args.nodes);
    over(&mut request.segment, &args.segment);
    over(&mut request.close, &args.close);
    over(&mut request.prefer, &args.prefer);
    over(&mut request.tasks_per_node, &args.tasks_per_node);
    over(&mut request.memory_mib, &args.memory);
    over(&mut request.cpus, &args.cpus);
    request.resources.extend(args.resource.iter().cloned());
    over(&mut request.weight, &args.weight);
    over(&mut request.model, &args.model);
    over(&mut request.batch_size, &args.batch_size);
    over(&mut request.max_restarts, &args.max_restarts);
    over(&mut request.checkpoint.dir, &args.checkpoint_dir);
    over(&mut request.gpu_fraction, &args.gpu_fraction);
    over(&mut request.gpu_limit, &args.gpu_limit);
    over(&mut request.gpu_memory_mib, &args.gpu_memory);
    over(&mut request.max_slowdown, &args.max_slowdown);
    over(&mut request.affinity, &args.affinity);
    over(&mut request.anti_affinity, &args.anti_affinity);
    over(&mut request.exclusion, &args.exclusion);
    request.class = args.class.unwrap_or(request.class);
    request.ranks = args.ranks.unwrap_or(request.ranks);
    request.priority = args.priority.unwrap_or(request.priority);
    request.pause = args.pause.unwrap_or(request.pause);
    request.late = args.late.or(request.late);
    request.exclusive |= args.exclusive;
    if let Some(kind) = &args.kind {
        request.kinds = yaml::split_kinds(kind);
    }
    if let Some(signal) = &args.stop_signal {
        request.checkpoint.signal = Some(signal.strip_prefix("SIG").unwrap_or(signal).to_owned());
    }
}

fn apply_times(args: &SubmitArgs, request: &mut JobRequest) -> anyhow::Result<()> {
    let now = clock::now();
    let moment = |text: &str| times::moment(text, &now);
    timed("--deadline", args.deadline.as_deref(), moment, &mut request.deadline)?;
    if !args.reward.is_empty() {
        let read = |text: &String| rewards::parse(text, moment);
        let all: Result<Vec<_>, String> = args.reward.iter().map(read).collect();
        request.rewards = all.map_err(|wrong| anyhow::anyhow!("--reward {wrong}"))?;
        request.deadline = request.deadline.or(request.rewards.first().map(|first| first.by));
    }
    timed("--begin", args.begin.as_deref(), moment, &mut request.begin)?;
    timed("--time", args.time.as_deref(), times::length, &mut request.time_limit_s)?;
    timed("--duration", args.duration.as_deref(), times::length, &mut request.duration_s)?;
    timed("--grace", args.grace.as_deref(), times::length, &mut request.checkpoint.grace_s)
}

fn timed(
    flag: &str,
    text: Option<&str>,
    read: impl Fn(&str) -> Result<f64, String>,
    field: &mut Option<f64>,
) -> anyhow::Result<()> {
    if let Some(text) = text {
        *field = Some(read(text).map_err(|wrong| anyhow::anyhow!("{flag} {wrong}"))?);
    }
    Ok(())
}

/// A job runs where it was submitted, unless it says otherwise; its files lie relative to where it runs.
fn settle_paths(request: &mut JobRequest, here: &Path) {
    let workdir = here.join(request.workdir.take().unwrap_or_default());
    let workdir = tidy(&workdir);
    for file in [&mut request.output, &mut request.error].into_iter().flatten() {
        if !Path::new(file.as_str()).is_absolute() {
            *file = format!("{}/{file}", workdir.display());
        }
    }
    request.checkpoint.dir = request.checkpoint.dir.take().map(|dir| tidy(&workdir.join(dir)));
    request.workdir = Some(workdir);
}

/// Without `.` and empty parts; `..` stays, because links give it a meaning of its own.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

/// A key that nobody else has.
pub(super) fn random_key() -> anyhow::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow::anyhow!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
