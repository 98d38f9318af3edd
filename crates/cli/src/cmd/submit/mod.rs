//! `yard submit`: a job from flags, from a job file, or from a script with `#SBATCH` lines. Flags come before files.

mod build;
mod wait;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
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
  yard submit --gpu-fraction 0.5 --gpu-memory 8GiB -- python small.py       # half a card, through MPS
  yard submit --class guaranteed --max-slowdown 5% -- python serve.py
  yard submit -f job.yaml --priority 10
  yard submit --after 12,13 -- python evaluate.py      # once both have succeeded
  yard submit -f job.sh -- --epochs 90      # a script with #SBATCH lines, and arguments for it
  id=$(yard submit --parsable -- make)      # only the number

A job file, with any of the fields that `yard submit --dry-run` prints:
  name: resnet
  run: python train.py
  gpus: 4
  kind: a100|h100
  time: 2h
  checkpoint: {signal: USR1, grace: 2m}

Exit codes: 0 the job was taken (with --wait: it succeeded), 2 bad usage or no server, 3 it was rejected or
cancelled; with --wait the job's own code, or 4 if the system failed it.";

/// A job.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SubmitArgs {
    /// A job file in YAML, or a script with #SBATCH lines
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What to call it [default: the program's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where it runs [default: here]
    #[arg(long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Adds to its environment, for all to see who may see the job; may be given several times
    #[arg(short, long, value_name = "KEY=VALUE")]
    env: Vec<String>,
    /// Gives it a secret of yours: as the variable NAME, or with :file as the file NAME in $YARD_SECRETS_DIR; may be given
    /// several times (see yard secret)
    #[arg(long, value_name = "NAME[:file]", value_parser = parse_secret)]
    secret: Vec<(String, Handed)>,
    /// The team it counts for
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Where its output goes: %j job, %x name, %t rank, %n node rank [default: the agent's folder; see yard logs]
    #[arg(long, value_name = "FILE")]
    stdout: Option<String>,
    /// Where its standard error goes
    #[arg(long, value_name = "FILE")]
    stderr: Option<String>,

    /// Devices it needs, all at once; 0 for a processor slot, where nodes offer kind cpu [default: 1]
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = amounts::devices, help_heading = "What it needs")]
    gpus: Option<u32>,
    /// The least it can run with
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = amounts::devices, help_heading = "What it needs")]
    min_gpus: Option<u32>,
    /// The most it can use
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = amounts::devices, help_heading = "What it needs")]
    max_gpus: Option<u32>,
    /// Kinds it may run on, in order of preference, as a100|h100 or a100,h100 [default: any]
    #[arg(long, value_name = "KIND[,KIND…]", help_heading = "What it needs")]
    kind: Option<String>,
    /// 1: all of it on one node; other numbers are not enforced [default: as few nodes as there can be]
    #[arg(long, value_name = "N", help_heading = "What it needs")]
    nodes: Option<u32>,
    /// One process on each node, or one for each device: node or device [default: node]
    #[arg(long, value_name = "EACH", value_parser = parse_ranks, help_heading = "What it needs")]
    ranks: Option<Ranks>,
    /// Memory it has on each node, as 16GiB or 500M; without a unit in MiB [default: what belongs to its GPUs]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = amounts::memory, help_heading = "What it needs")]
    memory: Option<u64>,
    /// Processor cores it has on each node [default: those that belong to its GPUs]
    #[arg(long, value_name = "N", help_heading = "What it needs")]
    cpus: Option<f64>,
    /// What else it needs on each node, as scratch_gb=100, by the names that nodes count (`yard nodes`). Repeatable
    #[arg(long, value_name = "NAME=N", value_parser = amounts::resource, help_heading = "What it needs")]
    resource: Vec<(String, u32)>,
    /// Share its devices with no other job, even where the policy packs jobs
    #[arg(long, help_heading = "What it needs")]
    exclusive: bool,

    /// The part of one card's processors it asks for and may use: 0.5 or 50%; MPS sees to it
    #[arg(long, value_name = "PART", allow_negative_numbers = true, value_parser = amounts::part, help_heading = "Sharing cards")]
    gpu_fraction: Option<f64>,
    /// The most of it that it may use while others leave it free [default: --gpu-fraction]
    #[arg(long, value_name = "PART", allow_negative_numbers = true, value_parser = amounts::part, help_heading = "Sharing cards")]
    gpu_limit: Option<f64>,
    /// Memory on the card that it asks for and may use, as 8GiB
    #[arg(long, value_name = "SIZE", value_parser = amounts::memory, help_heading = "Sharing cards")]
    gpu_memory: Option<u64>,
    /// ordinary, guaranteed (loses at most --max-slowdown to others on its cards) or opportunistic (has what others
    /// leave) [default: ordinary]
    #[arg(long, value_name = "CLASS", value_parser = parse_class, help_heading = "Sharing cards")]
    class: Option<Claim>,
    /// The part of its speed alone that a guaranteed job may lose: 5% or 0.05 [default: 5%]
    #[arg(long, value_name = "PART", allow_negative_numbers = true, value_parser = amounts::part, help_heading = "Sharing cards")]
    max_slowdown: Option<f64>,
    /// Place jobs with this label on the same GPU
    #[arg(long, value_name = "WORD", help_heading = "Sharing cards")]
    affinity: Option<String>,
    /// Place no two jobs with this label on the same GPU
    #[arg(long, value_name = "WORD", help_heading = "Sharing cards")]
    anti_affinity: Option<String>,
    /// Share GPUs only with jobs that carry the same exclusion label
    #[arg(long, value_name = "WORD", help_heading = "Sharing cards")]
    exclusion: Option<String>,

    /// When it should be done: 18:00, 6h (from now), 2026-11-20T18:00, with a zone if wanted
    #[arg(long, value_name = "TIME", help_heading = "When")]
    deadline: Option<String>,
    /// What becomes of it if its deadline cannot be promised: try (it runs as well as it can) or refuse [default: try]
    #[arg(long, value_name = "WHAT", value_parser = parse_late, help_heading = "When")]
    late: Option<Late>,
    /// What it is worth to be done by a time, as 18:00=10; may be given several times, with times ascending and worths
    /// falling: the deadline is soft, and the first is the deadline
    #[arg(long, value_name = "TIME=WORTH", help_heading = "When")]
    reward: Vec<String>,
    /// When it may start at the earliest, written like a deadline
    #[arg(long, value_name = "TIME", help_heading = "When")]
    begin: Option<String>,
    /// Jobs that must have succeeded before it starts, by number or last; if one of them fails, it is cancelled
    #[arg(long, value_name = "JOB[,JOB…]", value_delimiter = ',', help_heading = "When")]
    after: Vec<JobRef>,
    /// How long it may run, over all its starts, as 2h or 1h30m
    #[arg(long, value_name = "TIME", help_heading = "When")]
    time: Option<String>,
    /// How long it should take, for policies that go by it
    #[arg(long, value_name = "TIME", help_heading = "When")]
    duration: Option<String>,
    /// Its weight in fair shares
    #[arg(long, value_name = "W", help_heading = "When")]
    weight: Option<f64>,
    /// Larger is more urgent [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "When")]
    priority: Option<i32>,
    /// What it trains, for what is known of its speed
    #[arg(long, value_name = "NAME", help_heading = "When")]
    model: Option<String>,
    /// The batch size it trains with
    #[arg(long, value_name = "N", help_heading = "When")]
    batch_size: Option<u32>,

    /// How it gives its devices back before it is done: auto, checkpoint, stop, freeze (the driver moves
    /// what it has on cards to the host's memory) or never [default: auto]
    #[arg(long, value_name = "HOW", value_parser = parse_pause, help_heading = "Pausing and failing")]
    pause: Option<Pause>,
    /// Where it keeps checkpoints: a folder that all nodes see, if it is to move
    #[arg(long, value_name = "DIR", help_heading = "Pausing and failing")]
    checkpoint_dir: Option<PathBuf>,
    /// The signal that asks it to save and exit [default: TERM]
    #[arg(long, value_name = "NAME", help_heading = "Pausing and failing")]
    stop_signal: Option<String>,
    /// How long it has for that before it is killed [default: 30s]
    #[arg(long, value_name = "TIME", help_heading = "Pausing and failing")]
    grace: Option<String>,
    /// Failures after which it is given up
    #[arg(long, value_name = "N", help_heading = "Pausing and failing")]
    max_restarts: Option<u32>,

    /// Wait until it is over, and exit as it did
    #[arg(long)]
    wait: bool,
    /// Print only its number
    #[arg(long, conflicts_with = "output")]
    parsable: bool,
    /// Check it and print what would be sent, and what would become of it
    #[arg(long, conflicts_with_all = ["wait", "parsable"])]
    dry_run: bool,
    /// Makes it harmless to submit again: the same key is the same job
    #[arg(long, value_name = "TEXT")]
    key: Option<String>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArgs,
    /// The program and its arguments; after a script, its arguments
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
    for warning in &job.warnings {
        output::note(&format!("warning: job {id}: {}", output::plain(warning)));
    }
    Ok(())
}

/// What was said of a job's deadline.
fn promised(job: &JobView) -> Option<String> {
    let id = job.id;
    let more = "fewer or shorter jobs before it, more devices (--max-gpus) or other kinds may help too";
    match (job.promise, job.earliest) {
        (Some(by), _) => Some(format!("job {id}: accepted, will be done by {}", clock::written(by))),
        (None, Some(at)) if job.state == "rejected" => {
            Some(format!("the earliest deadline that can be kept is {}; {more}", clock::written(at)))
        }
        (None, Some(at)) => {
            let at = clock::written(at);
            Some(format!("job {id}: accepted without a promise; the earliest that could be promised is {at}"))
        }
        (None, None) if job.deadline.is_some() && job.state != "rejected" => Some(format!(
            "job {id}: accepted without a promise; say how long it takes (--duration or --time) to get one"
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
        Err(error) => output::note(&format!("what would become of it is not known: {error}")),
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
        Some((_, other)) => Err(format!("{other:?} is not env or file")),
    }
}

fn parse_ranks(text: &str) -> Result<Ranks, String> {
    match text {
        "node" => Ok(Ranks::Node),
        "device" => Ok(Ranks::Device),
        _ => Err("a job has one process on each node, or one for each device: node or device".into()),
    }
}

fn parse_pause(text: &str) -> Result<Pause, String> {
    match text {
        "auto" => Ok(Pause::Auto),
        "checkpoint" => Ok(Pause::Checkpoint),
        "stop" => Ok(Pause::Stop),
        "freeze" => Ok(Pause::Freeze),
        "never" => Ok(Pause::Never),
        _ => Err("a job pauses by auto, checkpoint, stop, freeze or never".into()),
    }
}

fn parse_late(text: &str) -> Result<Late, String> {
    match text {
        "try" => Ok(Late::Try),
        "refuse" => Ok(Late::Refuse),
        _ => Err("a job whose deadline cannot be promised is run as well as it can be, or not at all: try or refuse".into()),
    }
}

fn parse_class(text: &str) -> Result<Claim, String> {
    match text {
        "ordinary" => Ok(Claim::Ordinary),
        "guaranteed" => Ok(Claim::Guaranteed),
        "opportunistic" => Ok(Claim::Opportunistic),
        _ => Err("a job's class is ordinary, guaranteed or opportunistic".into()),
    }
}
