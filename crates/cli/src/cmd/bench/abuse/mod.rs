//! `yard bench abuse`: what a user with a submit token and a job can do to a server and an agent. Each flood goes on for
//! a while; meanwhile the memory of both processes is sampled and another user submits jobs and waits for the answers.

mod floods;
mod job;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::json;
use yard_live::request::JobRequest;
use yard_live::views::{NewToken, StatusView};

use self::floods::{Attacker, Flood};
use super::live::process::{ProcessMemory, ScratchServer, Yard, until};
use crate::client::{Client, ServerArgs};
use crate::clock::{CommandStopwatch, seconds_now};
use crate::output::{self, OutputFormat, note};

/// Memory may grow by so much under a flood, in MiB.
const GROWTH_MAX_MIB: f64 = 50.0;
/// Other users' submissions are answered within so many milliseconds, 99 of 100.
const P99_MAX_MS: f64 = 100.0;
/// How often memory is sampled.
const SAMPLE: Duration = Duration::from_millis(200);
/// How long the other user waits between submissions.
const PAUSE: Duration = Duration::from_millis(40);
/// How long everything is left alone before a flood, so that its memory is what it is.
const REST: Duration = Duration::from_secs(2);

/// What to measure.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench abuse\n  yard bench abuse --seconds 10 --only socket,logs -o json\n\nA server and an agent with eight pretend devices run on this machine. As root, the attacker's jobs run as the user nobody. Threads that flood over the network give way to all else, as if they\nran on another machine."
)]
pub(crate) struct AbuseArgs {
    /// Duration of each flood
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: u32,
    /// Which floods, separated by commas
    #[arg(long, value_name = "FLOOD[,…]", value_enum, value_delimiter = ',')]
    only: Vec<Flood>,
    /// Folder for temporary data [default: the system's]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    /// Be the attacker's job; yard bench abuse starts it
    #[arg(long, hide = true, value_enum)]
    job: Option<job::AbuseJob>,
}

/// What came of one flood.
#[derive(Debug, Serialize)]
struct AbuseOutcome {
    flood: String,
    seconds: f64,
    /// What the attacker sent: connections, lines or requests, and how much of it was refused.
    sent: u64,
    refused: u64,
    server_before_mib: f64,
    server_most_mib: f64,
    agent_before_mib: f64,
    agent_most_mib: f64,
    keeper_most_mib: f64,
    submissions: usize,
    submit_p50_ms: f64,
    submit_p99_ms: f64,
    ok: bool,
}

pub(super) fn run(args: &AbuseArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(job) = args.job {
        return job::run(job);
    }
    let scratch = ScratchServer::new(&args.dir.clone().unwrap_or_else(std::env::temp_dir))?;
    let site = Site::start(&scratch.0)?;
    let floods = if args.only.is_empty() { Flood::ALL.to_vec() } else { args.only.clone() };
    let mut outcomes = Vec::new();
    for flood in floods {
        note(&format!("{} for {} s", flood.about(), args.seconds));
        outcomes.push(site.endure(flood, f64::from(args.seconds))?);
    }
    print(&outcomes, args.output, out)?;
    ensure!(outcomes.iter().all(|outcome| outcome.ok), "some floods got through: see MISSED above");
    Ok(())
}

/// A server, an agent, and two users.
struct Site {
    server: Yard,
    agent: Yard,
    admin: Client,
    attacker: Attacker,
    other: Client,
}

impl Site {
    fn start(scratch: &Path) -> anyhow::Result<Site> {
        let data = scratch.join("server");
        let mut server = Yard::start("server", &data, &["--listen", "127.0.0.1:0", "--round", "5s"])?;
        let asked = server.answers()?;
        let url = asked.server.clone().context("a server has an address")?;
        let join = data.join("join-token").to_string_lossy().into_owned();
        let options =
            ["--server", &url, "--join-token", &join, "--name", "n1", "--fake", "h100:8", "--min-uid", "0"];
        let agent = Yard::start("agent", &scratch.join("agent"), &options)?;
        let admin = Client::new(&asked)?;
        let up = || admin.get::<StatusView>("/v1/status", &[]).ok().filter(|status| status.nodes_up > 0);
        until("the agent joins", up)?;
        let secret = |user: &str| token(&admin, user);
        let (mallory, ada) = (secret(attacker_name()?.as_str())?, secret(other_name()?.as_str())?);
        let other = Client::new(&as_user(&asked, scratch, "other", &ada)?)?;
        let theirs = Client::new(&as_user(&asked, scratch, "attacker", &mallory)?)?;
        let attacker = Attacker::new(url, mallory, theirs);
        Ok(Site { server, agent, admin, attacker, other })
    }

    /// One flood from its beginning to its end.
    fn endure(&self, flood: Flood, seconds: f64) -> anyhow::Result<AbuseOutcome> {
        std::thread::sleep(REST);
        let before = self.weigh()?;
        let stop = AtomicBool::new(false);
        let watch = CommandStopwatch::start();
        let (sent, submitted, most) = std::thread::scope(|scope| {
            let sent = scope.spawn(|| self.attacker.flood(flood, &stop));
            let submitted = scope.spawn(|| submit(&self.other, &stop));
            let mut most = before;
            while watch.seconds() < seconds {
                std::thread::sleep(SAMPLE);
                let now = self.weigh();
                most = now.map_or(most, |now| most.max(now));
            }
            stop.store(true, Ordering::Relaxed);
            (sent.join(), submitted.join(), most)
        });
        let broke = |_| anyhow::anyhow!("a thread of the measurement broke down");
        let (sent, mut each_s) = (sent.map_err(broke)??, submitted.map_err(broke)??);
        each_s.sort_by(f64::total_cmp);
        self.clear()?;
        Ok(outcome(flood, watch.seconds(), sent, before, most, &each_s))
    }

    fn weigh(&self) -> anyhow::Result<AbuseWeights> {
        let keeper = self.agent.keeper_memory().map_or(0.0, |memory| memory.now);
        Ok(AbuseWeights { server: now(self.server.memory()?), agent: now(self.agent.memory()?), keeper })
    }

    /// Nothing of a flood is left for the next one.
    fn clear(&self) -> anyhow::Result<()> {
        let open = |client: &Client| -> anyhow::Result<Vec<u64>> {
            let query = [("limit", "10000".to_owned())];
            let jobs: yard_live::views::JobList = client.get("/v1/jobs", &query)?;
            Ok(jobs.jobs.into_iter().filter(|job| job.ended_at.is_none()).map(|job| job.id).collect())
        };
        until("the flood's jobs end", || {
            let jobs = open(&self.admin).ok()?;
            for id in &jobs {
                let _gone = self.admin.order(&format!("/v1/jobs/{id}/cancel"), &json!({ "force": true }));
            }
            jobs.is_empty().then_some(())
        })
    }
}

fn now(memory: ProcessMemory) -> f64 {
    memory.now
}

/// Memory of the processes, in MiB.
#[derive(Clone, Copy)]
struct AbuseWeights {
    server: f64,
    agent: f64,
    keeper: f64,
}

impl AbuseWeights {
    fn max(self, other: AbuseWeights) -> AbuseWeights {
        AbuseWeights {
            server: self.server.max(other.server),
            agent: self.agent.max(other.agent),
            keeper: self.keeper.max(other.keeper),
        }
    }
}

fn outcome(
    flood: Flood,
    seconds: f64,
    sent: floods::Sent,
    before: AbuseWeights,
    most: AbuseWeights,
    each_s: &[f64],
) -> AbuseOutcome {
    let quantile = |part: f64| {
        let at = (each_s.len() as f64 * part).ceil() as usize;
        each_s.get(at.max(1) - 1).map_or(0.0, |seconds| seconds * 1e3)
    };
    let p99 = quantile(0.99);
    let grown = [most.server - before.server, most.agent - before.agent, most.keeper - before.keeper];
    let flat = grown.iter().all(|grown| *grown <= GROWTH_MAX_MIB);
    AbuseOutcome {
        flood: flood.to_string(),
        seconds,
        sent: sent.sent,
        refused: sent.refused,
        server_before_mib: before.server,
        server_most_mib: most.server,
        agent_before_mib: before.agent,
        agent_most_mib: most.agent,
        keeper_most_mib: most.keeper,
        submissions: each_s.len(),
        submit_p50_ms: quantile(0.5),
        submit_p99_ms: p99,
        ok: flat && p99 <= P99_MAX_MS && !each_s.is_empty(),
    }
}

/// Another user's submissions, until told to stop; seconds of each. They are held back, so that they take no devices.
fn submit(client: &Client, stop: &AtomicBool) -> anyhow::Result<Vec<f64>> {
    let mut each_s = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let request = JobRequest {
            command: vec!["true".into()],
            begin: Some(seconds_now() + 1e6),
            ..JobRequest::default()
        };
        let watch = CommandStopwatch::start();
        let view: yard_live::views::JobView = client.post("/v1/jobs", &request)?;
        each_s.push(watch.seconds());
        client.order(&format!("/v1/jobs/{}/cancel", view.id), &json!({}))?;
        std::thread::sleep(PAUSE);
    }
    Ok(each_s)
}

fn token(admin: &Client, user: &str) -> anyhow::Result<String> {
    let made: NewToken = admin.post("/v1/tokens", &json!({ "user": user, "scope": "submit" }))?;
    Ok(made.secret)
}

/// How to ask as a user.
fn as_user(asked: &ServerArgs, scratch: &Path, name: &str, secret: &str) -> anyhow::Result<ServerArgs> {
    let file = scratch.join(format!("{name}.token"));
    yard_live::ca::write_private(&file, secret)?;
    Ok(ServerArgs { token_file: Some(file), ..asked.clone() })
}

/// Whose jobs flood: somebody without rights where that can be, else whoever runs this.
fn attacker_name() -> anyhow::Result<String> {
    if nix::unistd::geteuid().is_root() { Ok("nobody".into()) } else { other_name() }
}

/// Who else submits: only whoever runs this may, where the agent does not run as root.
fn other_name() -> anyhow::Result<String> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid())?;
    Ok(user.context("whoever runs this has no name")?.name)
}

fn print(outcomes: &[AbuseOutcome], format: OutputFormat, out: &mut dyn Write) -> anyhow::Result<()> {
    if format == OutputFormat::Json {
        return output::json(&json!({ "floods": outcomes }), out);
    }
    let header = [
        "flood",
        "sent",
        "refused",
        "server MiB",
        "agent MiB",
        "keeper MiB",
        "submissions",
        "p50 ms",
        "p99 ms",
        "",
    ];
    let mut table = output::table(&header, 1);
    for one in outcomes {
        table.add_row([
            one.flood.clone(),
            one.sent.to_string(),
            one.refused.to_string(),
            format!("{:.0} → {:.0}", one.server_before_mib, one.server_most_mib),
            format!("{:.0} → {:.0}", one.agent_before_mib, one.agent_most_mib),
            format!("{:.0}", one.keeper_most_mib),
            one.submissions.to_string(),
            format!("{:.1}", one.submit_p50_ms),
            format!("{:.1}", one.submit_p99_ms),
            if one.ok { "ok".into() } else { "MISSED".into() },
        ]);
    }
    writeln!(out, "{table}")?;
    Ok(writeln!(
        out,
        "ok: memory grew by at most {GROWTH_MAX_MIB} MiB and 99 of 100 submissions of another user took at most {P99_MAX_MS} ms"
    )?)
}
