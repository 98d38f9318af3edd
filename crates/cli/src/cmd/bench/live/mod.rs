//! `yard bench live`: how fast a real server takes jobs and gives out devices while a thousand nodes are connected, how
//! fast one agent runs jobs that do nothing, and what each of them weighs.

mod crowd;
mod load;
pub(super) mod process;
pub(super) mod what_if;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::json;
use yard_live::agent::Dial;
use yard_live::request::JobRequest;
use yard_live::views::{JobList, StatusView};

use self::crowd::{Burst, Crowd};
use self::load::Submitted;
use self::process::{ScratchServer, Yard, until};
use super::BenchFigures;
use crate::client::{Client, ServerArgs};
use crate::clock::CommandStopwatch;
use crate::output::{OutputFormat, note};

/// Any free port of this machine, and room for all the jobs of one user.
const LISTEN: [&str; 6] =
    ["--listen", "127.0.0.1:0", "--user-jobs-max", "200000", "--user-bytes-max", "1GiB"];
/// A round is over when the server was silent for this part of it.
const SILENCE: f64 = 0.25;
/// How long an agent is left alone before it is weighed.
const IDLE: Duration = Duration::from_secs(3);

/// What to measure.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench live\n  yard bench live --agents 100 --jobs 1000 --trivial 500 -o json\n\nAgents are pretend ones of 8 devices; jobs have one device each and run on until all are counted."
)]
pub(crate) struct LiveArgs {
    /// Agents connected to the server
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    agents: u32,
    /// Jobs submitted to it
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    jobs: u32,
    /// Clients that submit, each on its own connection
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: u32,
    /// Trivial jobs, run to the end by one real agent
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    trivial: u32,
    /// Slots of that agent
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    slots: u32,
    /// Scheduling policy
    #[arg(long, value_name = "NAME[:k=v]", default_value = "market")]
    policy: String,
    /// Round length, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    round: u32,
    /// Number of rounds to measure
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Folder for the servers' temporary data [default: the system's]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: OutputFormat,
}

pub(super) fn measure(args: &LiveArgs) -> anyhow::Result<BenchFigures> {
    let scratch = ScratchServer::new(&args.dir.clone().unwrap_or_else(std::env::temp_dir))?;
    let mut figures = BenchFigures::default();
    figures.put("agents", json!(args.agents));
    figures.put("devices", json!(args.agents * crowd::DEVICES));
    figures.put("jobs", json!(args.jobs));
    figures.put("clients", json!(args.clients));
    cluster(args, &scratch.0, &mut figures)?;
    trivial(args, &scratch.0, &mut figures)?;
    Ok(figures)
}

/// A server with many nodes.
fn cluster(args: &LiveArgs, scratch: &Path, figures: &mut BenchFigures) -> anyhow::Result<()> {
    let data = scratch.join("server");
    let round = args.round.to_string();
    let options = ["--policy", &args.policy, "--round", &round];
    let mut server = Yard::start("server", &data, &[&LISTEN[..], &options[..]].concat())?;
    let asked = server.answers()?;
    note(&format!("{} agents join", args.agents));
    let watch = CommandStopwatch::start();
    let mut crowd =
        Crowd::join(&dial(&asked, &data)?, &scratch.join("nodes"), args.agents as usize, &[crowd::KIND])?;
    figures.put("join_s", json!(watch.seconds()));
    submissions(args, scratch, &asked, figures)?;
    rounds(args, &asked, &mut crowd, figures)?;
    let memory = server.memory()?;
    figures.put("server_rss_mib", json!(memory.now));
    figures.put("server_peak_rss_mib", json!(memory.peak));
    endings(args, &asked, &crowd, figures)?;
    drop(crowd);
    idle_agent(&asked, scratch, figures)
}

fn dial(asked: &ServerArgs, data: &Path) -> anyhow::Result<Dial> {
    let url = asked.server.as_deref().unwrap_or_default();
    let address =
        url.strip_prefix("http://").context("a server on this machine is asked in plain")?.to_owned();
    let join_token = std::fs::read_to_string(data.join("join-token")).context("no join token")?;
    Ok(Dial { address, join_token: Some(join_token.trim().to_owned()) })
}

/// How fast jobs are taken. The disk is tried right before and after, because it is the disk that decides.
fn submissions(
    args: &LiveArgs,
    scratch: &Path,
    asked: &ServerArgs,
    figures: &mut BenchFigures,
) -> anyhow::Result<()> {
    note(&format!("{} clients submit {} jobs", args.clients, args.jobs));
    let before = load::fsyncs_per_second(scratch)?;
    let submitted = load::submit(asked, args.clients as usize, args.jobs as usize, &|_| job(1))?;
    let fsyncs = f64::midpoint(before, load::fsyncs_per_second(scratch)?);
    put_submitted(&submitted, figures);
    figures.put("fsyncs_per_s", json!(fsyncs));
    figures.put("submissions_per_fsync", json!(submitted.per_second() / fsyncs));
    Ok(())
}

fn put_submitted(submitted: &Submitted, figures: &mut BenchFigures) {
    figures.put("submissions_per_s", json!(submitted.per_second()));
    figures.put("submit_p50_ms", json!(submitted.quantile_ms(0.5)));
    figures.put("submit_p99_ms", json!(submitted.quantile_ms(0.99)));
}

/// A job that does nothing, with so many devices.
fn job(gpus: u32) -> JobRequest {
    JobRequest { command: vec!["true".into()], gpus: Some(gpus), ..JobRequest::default() }
}

/// How long the server takes from the beat of a round to its last grant.
fn rounds(
    args: &LiveArgs,
    asked: &ServerArgs,
    crowd: &mut Crowd,
    figures: &mut BenchFigures,
) -> anyhow::Result<()> {
    note("jobs take turns");
    let (mut quiet, silence_s) = (CommandStopwatch::start(), f64::from(args.round) * SILENCE);
    until("the server settles", || {
        if !crowd.orders().is_empty() {
            quiet = CommandStopwatch::start();
        }
        (quiet.seconds() >= silence_s).then_some(())
    })?;
    let client = Client::new(asked)?;
    let before = BenchSums::read(&client)?;
    std::thread::sleep(Duration::from_secs(u64::from(args.round) * u64::from(args.rounds)));
    let after = BenchSums::read(&client)?;
    let seen = crowd::bursts(&crowd.orders(), (silence_s * 1e6) as u64);
    put_rounds(&seen, figures);
    figures.put("round_mean_ms", json!(after.mean_ms(&before, "round")));
    figures.put("plan_mean_ms", json!(after.mean_ms(&BenchSums::none(), "plan")));
    figures.put("commit_mean_ms", json!(after.mean_ms(&BenchSums::none(), "journal_commit")));
    Ok(())
}

fn put_rounds(seen: &[Burst], figures: &mut BenchFigures) {
    let longest = seen.iter().map(|burst| burst.to_last_grant_ms).reduce(f64::max);
    let grants = seen.iter().map(|burst| burst.grants).sum::<usize>();
    figures.put("rounds_watched", json!(seen.len()));
    figures.put("grants_per_round", json!(grants / seen.len().max(1)));
    figures.put("round_to_last_grant_ms", json!(longest));
}

/// The server's own account of what took how long.
struct BenchSums(String);

impl BenchSums {
    /// Nothing so far.
    fn none() -> BenchSums {
        BenchSums(String::new())
    }

    fn read(client: &Client) -> anyhow::Result<BenchSums> {
        let mut text = String::new();
        client.stream("/metrics", &[], None)?.read_to_string(&mut text)?;
        Ok(BenchSums(text))
    }

    fn value(&self, name: &str) -> f64 {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_default()
    }

    /// The mean of what came after the others; none where nothing did.
    fn mean_ms(&self, before: &BenchSums, what: &str) -> Option<f64> {
        let since = |name: &str| self.value(name) - before.value(name);
        let (sum, count) =
            (since(&format!("yard_{what}_seconds_sum")), since(&format!("yard_{what}_seconds_count")));
        (count > 0.0).then(|| sum / count * 1e3)
    }
}

/// How fast jobs end and make room for others, when all end as soon as they run.
fn endings(
    args: &LiveArgs,
    asked: &ServerArgs,
    crowd: &Crowd,
    figures: &mut BenchFigures,
) -> anyhow::Result<()> {
    note("jobs end");
    let watch = CommandStopwatch::start();
    crowd.finish();
    status_is(&Client::new(asked)?, "all jobs end", |status| status.ended >= u64::from(args.jobs))?;
    figures.put("ended_per_s", json!(f64::from(args.jobs) / watch.seconds()));
    Ok(())
}

fn status_is(client: &Client, what: &str, wanted: impl Fn(&StatusView) -> bool) -> anyhow::Result<()> {
    let status = || client.get::<StatusView>("/v1/status", &[]).ok();
    until(what, || status().filter(&wanted).map(drop))
}

/// What an agent with nothing to do weighs, and its keeper.
fn idle_agent(asked: &ServerArgs, scratch: &Path, figures: &mut BenchFigures) -> anyhow::Result<()> {
    note("an agent idles");
    let data = scratch.join("agent");
    let url = asked.server.as_deref().unwrap_or_default();
    let token = scratch.join("server/join-token");
    let token = token.to_string_lossy();
    let options = ["--server", url, "--join-token", &token, "--name", "idle", "--cpu-slots", "8"];
    let agent = Yard::start("agent", &data, &options)?;
    until("the agent joins", || data.join("identity/node.pem").exists().then_some(()))?;
    std::thread::sleep(IDLE);
    figures.put("agent_rss_mib", json!(agent.memory()?.now));
    figures.put("keeper_rss_mib", json!(agent.keeper_memory()?.now));
    Ok(())
}

/// Jobs that do nothing, one process each, on one agent with a few slots.
fn trivial(args: &LiveArgs, scratch: &Path, figures: &mut BenchFigures) -> anyhow::Result<()> {
    note(&format!("one agent runs {} jobs that do nothing", args.trivial));
    let data = scratch.join("up");
    let slots = args.slots.to_string();
    let mut up = Yard::start("up", &data, &[&LISTEN[..], &["--cpu-slots", &slots][..]].concat())?;
    let asked = up.answers()?;
    let client = Client::new(&asked)?;
    status_is(&client, "the agent joins", |status| status.nodes_up > 0)?;
    load::submit(&asked, args.clients as usize, args.trivial as usize, &|_| job(0))?;
    status_is(&client, "all jobs end", |status| status.ended >= u64::from(args.trivial))?;
    figures.put("trivial_jobs", json!(args.trivial));
    figures.put("trivial_slots", json!(args.slots));
    figures.put("trivial_per_s", json!(f64::from(args.trivial) / took_s(&client, args.trivial)?));
    Ok(())
}

/// From the first start to the last end, as the history has it.
fn took_s(client: &Client, jobs: u32) -> anyhow::Result<f64> {
    let query = [("all", "true".to_owned()), ("limit", jobs.to_string())];
    let list: JobList = client.get("/v1/jobs", &query)?;
    if let Some(job) = list.jobs.iter().find(|job| job.state != "succeeded") {
        bail!("job {} is {}, though it does nothing", job.id, job.state);
    }
    ensure!(list.jobs.len() == jobs as usize, "{} of {jobs} jobs are in the history", list.jobs.len());
    let start = list.jobs.iter().filter_map(|job| job.started_at).reduce(f64::min);
    let end = list.jobs.iter().filter_map(|job| job.ended_at).reduce(f64::max);
    let (start, end) = start.zip(end).context("no job started")?;
    Ok((end - start).max(1e-3))
}
