//! `yard submit`: a job from flags, from a job file, or from a script with `#SBATCH` lines. Flags come before files.

mod build;
mod wait;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use yard_core::cluster::Level;
use yard_core::job::{Claim, Late};
use yard_core::part::Pause;
use yard_live::request::{JobRequest, Ranks, amounts};
use yard_live::views::JobView;
use yard_live::wire::Handed;

use super::what_if;
use crate::client::{Client, JobRef, ServerArgs};
use crate::clock;
use crate::output::{self, OutputFormat};

/// The job never runs: it was rejected or cancelled.
const EXIT_WITHDRAWN: u8 = 3;

const EXAMPLES: &str = "Examples:
  yard submit -- python train.py
  yard submit --name resnet --gpus 4 --kind 'a100|h100' --time 2h --deadline 18:00 -- python train.py
  yard submit --gpus 2 --max-gpus 8 --pause checkpoint --wait -- python train.py --epochs 90
  yard submit --gpu-fraction 0.5 --gpu-memory 8GiB -- python small.py       # half a GPU, through MPS
  yard submit --class guaranteed --max-slowdown 5% -- python serve.py
  yard submit -f job.yaml --priority 10
  yard submit --after 12,13 -- python evaluate.py      # once both have succeeded
  yard submit -f job.sh -- --epochs 90      # a script with #SBATCH lines, and arguments for it
  id=$(yard submit --parsable -- make)      # only the number

A job file may have any of the fields that `yard submit --dry-run` prints:
  name: resnet
  run: python train.py
  gpus: 4
  kind: a100|h100
  time: 2h
  checkpoint: {signal: USR1, grace: 2m}

Exit codes: 0 the job was accepted (with --wait: it succeeded), 2 bad usage or no server, 3 rejected or cancelled;
with --wait, the job's own code, or 4 if the system failed it.";

/// A job.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SubmitArgs {
    /// A job file in YAML, or a script with #SBATCH lines
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Name of the job [default: the program's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Working directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Environment variable, visible to everyone who may see the job (repeatable)
    #[arg(short, long, value_name = "KEY=VALUE")]
    env: Vec<String>,
    /// One of your secrets: as the variable NAME, or with :file as the file NAME in $YARD_SECRETS_DIR (repeatable; see
    /// yard secret)
    #[arg(long, value_name = "NAME[:file]", value_parser = parse_secret)]
    secret: Vec<(String, Handed)>,
    /// Team that the job counts for
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// File for standard output: %j job, %x name, %t rank, %n node rank [default: kept by the agent; see yard logs]
    #[arg(long, value_name = "FILE")]
    stdout: Option<String>,
    /// File for standard error
    #[arg(long, value_name = "FILE")]
    stderr: Option<String>,

    /// Number of GPUs; 0 for a CPU slot, where nodes offer the kind cpu [default: 1]
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = amounts::devices, help_heading = "Resources")]
    gpus: Option<u32>,
    /// Smallest number of GPUs it can run with
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = amounts::devices, help_heading = "Resources")]
    min_gpus: Option<u32>,
    /// Largest number of GPUs it can use
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = amounts::devices, help_heading = "Resources")]
    max_gpus: Option<u32>,
    /// Kinds of GPU it may run on, in order of preference, such as a100|h100 or a100,h100 [default: any]
    #[arg(long, value_name = "KIND[,KIND…]", help_heading = "Resources")]
    kind: Option<String>,
    /// Run on exactly N nodes, with as many devices on each [default: as few nodes as possible]
    #[arg(long, value_name = "N", help_heading = "Resources")]
    nodes: Option<u32>,
    /// Processes on each node, in place of --ranks
    #[arg(long, value_name = "N", conflicts_with = "ranks", help_heading = "Resources")]
    tasks_per_node: Option<u32>,
    /// How close together it must run: on one node, or in one clique (NVLink), rack, block or zone [default: any]
    #[arg(long, value_name = "LEVEL", value_parser = parse_level, help_heading = "Resources")]
    close: Option<Level>,
    /// How close together it should run, without waiting for that
    #[arg(long, value_name = "LEVEL", value_parser = parse_level, help_heading = "Resources")]
    prefer: Option<Level>,
    /// Keep each K of its nodes as close as --close or --prefer says, rather than all of them
    #[arg(long, value_name = "K", help_heading = "Resources")]
    segment: Option<u32>,
    /// Processes to start: one per node or one per device [default: node]
    #[arg(long, value_name = "EACH", value_parser = parse_ranks, help_heading = "Resources")]
    ranks: Option<Ranks>,
    /// Host memory per node, such as 16GiB or 500M; MiB if there is no unit [default: the share of its GPUs]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = amounts::memory, help_heading = "Resources")]
    memory: Option<u64>,
    /// CPU cores per node [default: the share of its GPUs]
    #[arg(long, value_name = "N", help_heading = "Resources")]
    cpus: Option<f64>,
    /// Another resource per node, such as scratch_gb=100, by the names in yard nodes (repeatable)
    #[arg(long, value_name = "NAME=N", value_parser = amounts::resource, help_heading = "Resources")]
    resource: Vec<(String, u32)>,
    /// Never share its devices with other jobs, even if the policy packs jobs
    #[arg(long, help_heading = "Resources")]
    exclusive: bool,

    /// Part of one GPU's compute it requests, such as 0.5 or 50%; enforced by MPS
    #[arg(long, value_name = "PART", allow_negative_numbers = true, value_parser = amounts::part, help_heading = "Sharing GPUs")]
    gpu_fraction: Option<f64>,
    /// Largest part it may use while the rest is free [default: --gpu-fraction]
    #[arg(long, value_name = "PART", allow_negative_numbers = true, value_parser = amounts::part, help_heading = "Sharing GPUs")]
    gpu_limit: Option<f64>,
    /// GPU memory it requests and may use, such as 8GiB
    #[arg(long, value_name = "SIZE", value_parser = amounts::memory, help_heading = "Sharing GPUs")]
    gpu_memory: Option<u64>,
    /// ordinary, guaranteed (others on its GPUs slow it by at most --max-slowdown) or opportunistic (uses what others
    /// leave) [default: ordinary]
    #[arg(long, value_name = "CLASS", value_parser = parse_class, help_heading = "Sharing GPUs")]
    class: Option<Claim>,
    /// How much other jobs may slow a guaranteed job, such as 5% or 0.05 [default: 5%]
    #[arg(long, value_name = "PART", allow_negative_numbers = true, value_parser = amounts::part, help_heading = "Sharing GPUs")]
    max_slowdown: Option<f64>,
    /// Place jobs with this label on the same GPU
    #[arg(long, value_name = "WORD", help_heading = "Sharing GPUs")]
    affinity: Option<String>,
    /// Place no two jobs with this label on the same GPU
    #[arg(long, value_name = "WORD", help_heading = "Sharing GPUs")]
    anti_affinity: Option<String>,
    /// Share GPUs only with jobs that carry the same exclusion label
    #[arg(long, value_name = "WORD", help_heading = "Sharing GPUs")]
    exclusion: Option<String>,

    /// Deadline: 18:00, 6h (from now) or 2026-11-20T18:00, optionally with a time zone
    #[arg(long, value_name = "TIME", help_heading = "Scheduling")]
    deadline: Option<String>,
    /// If the deadline cannot be promised: try (run anyway, best effort) or refuse [default: try]
    #[arg(long, value_name = "WHAT", value_parser = parse_late, help_heading = "Scheduling")]
    late: Option<Late>,
    /// Soft deadline: the value of being done by a time, such as 18:00=10 (repeatable, with later times and smaller
    /// values; the first time is the deadline)
    #[arg(long, value_name = "TIME=WORTH", help_heading = "Scheduling")]
    reward: Vec<String>,
    /// Earliest start, written like a deadline
    #[arg(long, value_name = "TIME", help_heading = "Scheduling")]
    begin: Option<String>,
    /// Jobs that must succeed first, by number or last; if one of them fails, this job is cancelled
    #[arg(long, value_name = "JOB[,JOB…]", value_delimiter = ',', help_heading = "Scheduling")]
    after: Vec<JobRef>,
    /// Time limit over all starts, such as 2h or 1h30m
    #[arg(long, value_name = "TIME", help_heading = "Scheduling")]
    time: Option<String>,
    /// Expected duration, for policies that use it
    #[arg(long, value_name = "TIME", help_heading = "Scheduling")]
    duration: Option<String>,
    /// Weight in fair shares
    #[arg(long, value_name = "W", help_heading = "Scheduling")]
    weight: Option<f64>,
    /// Priority; larger numbers are more urgent [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Scheduling")]
    priority: Option<i32>,
    /// Model it trains, to look up its speed
    #[arg(long, value_name = "NAME", help_heading = "Scheduling")]
    model: Option<String>,
    /// Batch size it trains with
    #[arg(long, value_name = "N", help_heading = "Scheduling")]
    batch_size: Option<u32>,

    /// How it is preempted: auto, checkpoint (save and exit), stop (SIGSTOP), freeze (GPU memory moves to host
    /// memory) or never [default: auto]
    #[arg(long, value_name = "HOW", value_parser = parse_pause, help_heading = "Preemption and failures")]
    pause: Option<Pause>,
    /// Folder for checkpoints; must be shared by all nodes if the job may move
    #[arg(long, value_name = "DIR", help_heading = "Preemption and failures")]
    checkpoint_dir: Option<PathBuf>,
    /// Signal that asks it to save and exit [default: TERM]
    #[arg(long, value_name = "NAME", help_heading = "Preemption and failures")]
    stop_signal: Option<String>,
    /// Time to save and exit before it is killed [default: 30s]
    #[arg(long, value_name = "TIME", help_heading = "Preemption and failures")]
    grace: Option<String>,
    /// Restarts after failures before the job counts as failed [default: 0]
    #[arg(long, value_name = "N", help_heading = "Preemption and failures")]
    max_restarts: Option<u32>,

    /// Wait until the job is over and exit with its code
    #[arg(long)]
    wait: bool,
    /// Print only the job number
    #[arg(long, conflicts_with = "output")]
    parsable: bool,
    /// Do not submit: check the job, print it as a job file, and estimate when it would run
    #[arg(long, conflicts_with_all = ["wait", "parsable"])]
    dry_run: bool,
    /// Idempotency key: submitting again with the same key makes no second job
    #[arg(long, value_name = "TEXT")]
    key: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArgs,
    /// Command and its arguments; with a script, arguments for it
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(crate) fn run(args: &SubmitArgs, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let requests = build::requests(args, &predecessors(args)?)?;
    if args.dry_run {
        return print_dry(args, &requests, out).map(|()| ExitCode::SUCCESS);
    }
    let client = Client::new(&args.server)?;
    let mut jobs = submit_all(args, &client, &requests, out)?;
    if args.wait {
        // Who reads the numbers wants them before the jobs are over.
        out.flush()?;
        jobs = jobs.iter().map(|job| wait::until_over(&client, job)).collect::<Result<_, _>>()?;
    }
    if args.output == OutputFormat::Json {
        print_json(&jobs, out)?;
    }
    let codes = jobs.iter().map(|job| if args.wait { wait::exit_code(job) } else { taken(job) });
    Ok(ExitCode::from(codes.into_iter().find(|&code| code != 0).unwrap_or(0)))
}

/// The numbers of the jobs that it comes after; the server knows which is the last.
fn predecessors(args: &SubmitArgs) -> anyhow::Result<Vec<u64>> {
    let number = |job: &JobRef| match job {
        JobRef::Id(id) => Ok(*id),
        JobRef::Last => Ok(Client::new(&args.server)?.job_id(*job)?),
    };
    args.after.iter().map(number).collect()
}

/// Submits each job and says so at once: what was taken is known, should a later one fail.
fn submit_all(
    args: &SubmitArgs,
    client: &Client,
    requests: &[JobRequest],
    out: &mut dyn Write,
) -> anyhow::Result<Vec<JobView>> {
    let base = args.key.clone().map_or_else(build::random_key, Ok)?;
    let mut jobs = Vec::with_capacity(requests.len());
    for (number, request) in requests.iter().enumerate() {
        let key = if requests.len() == 1 { base.clone() } else { format!("{base}-{number}") };
        let job = client.submit(request, &key)?;
        announce(args, &job, out)?;
        jobs.push(job);
    }
    Ok(jobs)
}

fn announce(args: &SubmitArgs, job: &JobView, out: &mut dyn Write) -> anyhow::Result<()> {
    let JobView { id, name, .. } = job;
    if args.parsable {
        writeln!(out, "{id}")?;
    } else if args.output == OutputFormat::Table {
        writeln!(out, "job {id}  {}", output::plain(name))?;
    }
    if job.state == "rejected" && !args.wait {
        output::note(&format!("job {id} was rejected{}", wait::because(job)));
    }
    promised(job).iter().for_each(|said| output::note(said));
    // What a policy would make of a job that never runs is of no use.
    for warning in job.warnings.iter().filter(|_| job.state != "rejected") {
        output::note(&format!("warning: job {id}: {}", output::plain(warning)));
    }
    Ok(())
}

/// What was said of a job's deadline.
fn promised(job: &JobView) -> Option<String> {
    let id = job.id;
    let more = "a shorter --duration, more GPUs (--max-gpus) or other kinds may also help";
    match (job.promise, job.earliest) {
        (Some(by), _) => Some(format!("job {id}: accepted; done by {} is promised", clock::written(by))),
        (None, Some(at)) if job.state == "rejected" => {
            Some(format!("the earliest deadline that can be promised is {}; {more}", clock::written(at)))
        }
        (None, Some(at)) => {
            let at = clock::written(at);
            Some(format!(
                "job {id}: accepted, but the deadline is not promised; the earliest that could be is {at}"
            ))
        }
        (None, None) if job.deadline.is_some() && job.state != "rejected" => Some(format!(
            "job {id}: accepted, but the deadline is not promised: state how long the job takes (--duration or --time)"
        )),
        (None, None) => None,
    }
}

/// The code for a job that was submitted and is not waited for.
fn taken(job: &JobView) -> u8 {
    if job.state == "rejected" { EXIT_WITHDRAWN } else { 0 }
}

fn print_json(jobs: &[JobView], out: &mut dyn Write) -> anyhow::Result<()> {
    match jobs {
        [job] => output::json(job, out),
        jobs => output::json(&json!({ "jobs": jobs }), out),
    }
}

impl SubmitArgs {
    /// The jobs, of which nothing may be run: one without a command is as good as any.
    pub(super) fn only_asked(mut self, file: Option<PathBuf>) -> anyhow::Result<Vec<JobRequest>> {
        self.file = self.file.or(file);
        if self.file.is_none() && self.command.is_empty() {
            self.command = vec!["what-if".into()];
        }
        build::requests(&self, &predecessors(&self)?)
    }

    /// How to print, and whom to ask.
    pub(super) fn asked_of(&self) -> (OutputFormat, &ServerArgs) {
        (self.output, &self.server)
    }
}

/// What would be sent, as a job file that could be submitted, without what is not said.
fn print_dry(args: &SubmitArgs, requests: &[JobRequest], out: &mut dyn Write) -> anyhow::Result<()> {
    for (number, request) in requests.iter().enumerate() {
        let said = without_nothing(serde_json::to_value(request)?);
        match args.output {
            OutputFormat::Json => output::json(&said, out)?,
            OutputFormat::Table => {
                let between = if number > 0 { "---\n" } else { "" };
                write!(out, "{between}{}", serde_saphyr::to_string(&said)?)?;
                foretell(args, request, out)?;
            }
        }
    }
    Ok(())
}

/// What would become of it, as comments: what is printed stays a job file. Without a server there is nothing to ask.
fn foretell(args: &SubmitArgs, request: &JobRequest, out: &mut dyn Write) -> anyhow::Result<()> {
    let told = Client::new(&args.server).and_then(|client| Ok(what_if::ask(&client, request)?));
    match told {
        Ok(told) => {
            let lines = what_if::lines(&told, clock::seconds_now());
            lines.iter().try_for_each(|line| writeln!(out, "# {line}"))?;
        }
        Err(error) => output::note(&format!("no estimate: {error}")),
    }
    Ok(())
}

fn without_nothing(value: Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, without_nothing(value)));
            Value::Object(fields.filter(|(_, value)| !empty(value)).collect())
        }
        other => other,
    }
}

/// `NAME` or `NAME:file`.
fn parse_secret(text: &str) -> Result<(String, Handed), String> {
    match text.split_once(':') {
        None | Some((_, "env")) => Ok((text.trim_end_matches(":env").to_owned(), Handed::Env)),
        Some((name, "file")) => Ok((name.to_owned(), Handed::File)),
        Some((_, other)) => Err(format!("{other:?} is neither env nor file")),
    }
}

fn parse_level(text: &str) -> Result<Level, String> {
    let names = || Level::ALL.map(Level::name).join(", ");
    Level::named(text).ok_or_else(|| format!("{text:?} is no level; use one of {}", names()))
}

fn parse_ranks(text: &str) -> Result<Ranks, String> {
    match text {
        "node" => Ok(Ranks::Node),
        "device" => Ok(Ranks::Device),
        _ => Err("choose node (one process per node) or device (one process per device)".into()),
    }
}

fn parse_pause(text: &str) -> Result<Pause, String> {
    match text {
        "auto" => Ok(Pause::Auto),
        "checkpoint" => Ok(Pause::Checkpoint),
        "stop" => Ok(Pause::Stop),
        "freeze" => Ok(Pause::Freeze),
        "never" => Ok(Pause::Never),
        _ => Err("choose auto, checkpoint, stop, freeze or never".into()),
    }
}

fn parse_late(text: &str) -> Result<Late, String> {
    match text {
        "try" => Ok(Late::Try),
        "refuse" => Ok(Late::Refuse),
        _ => Err("choose try (run anyway, best effort) or refuse".into()),
    }
}

fn parse_class(text: &str) -> Result<Claim, String> {
    match text {
        "ordinary" => Ok(Claim::Ordinary),
        "guaranteed" => Ok(Claim::Guaranteed),
        "opportunistic" => Ok(Claim::Opportunistic),
        _ => Err("choose ordinary, guaranteed or opportunistic".into()),
    }
}
