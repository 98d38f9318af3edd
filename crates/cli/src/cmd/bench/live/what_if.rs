//! `yard bench what-if`: how long who asks what would become of a job waits for the answer, on a real server where many
//! jobs wait and run; beside it, how long one plan of the same state takes. And whether the server schedules as fast
//! as before while ten people ask without pause.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use serde::Serialize;
use serde_json::json;
use yard_live::request::JobRequest;
use yard_live::views::{NewToken, StatusView, WhatIfView};
use yard_live::what_if::WhatIf;
use yard_sim::random::Random;

use super::crowd::Crowd;
use super::load;
use super::process::{ScratchServer, Yard};
use super::{BenchSums, LISTEN, dial};
use crate::client::{Client, ServerArgs};
use crate::clock::CommandStopwatch;
use crate::output::{self, OutputFormat, note};

/// What the nodes are.
const KINDS: [&str; 2] = ["h100", "a100"];
/// Clients that submit the jobs, and people that ask at once.
const CLIENTS: usize = 16;
const ASKERS: usize = 10;
/// How often scheduling is looked at alone and with people who ask, by turns.
const TURNS: u64 = 5;
/// How often somebody submits a job and cancels it again, while scheduling is measured.
const PAUSE: Duration = Duration::from_millis(20);

/// What to measure.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench what-if\n  yard bench what-if --jobs 200 --nodes 16 --policy srtf --load 5 -o json\n\nNodes are pretend ones of 8 devices, of two kinds. Jobs take 10 minutes to 8 hours on 1, 2, 4 or 8 devices (70, 10,\n15 and 5 %); a quarter could do with half or twice as many, and half name a kind."
)]
pub(crate) struct BenchWhatIfArgs {
    /// Jobs that wait and run
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    jobs: u32,
    /// Nodes that they are on
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    nodes: u32,
    /// Scheduling policy (repeatable)
    #[arg(long, value_name = "NAME[:k=v]", default_values = ["market", "max-min", "fifo", "srtf"])]
    policy: Vec<String>,
    /// Questions; each is asked three times: for its first answer, with other ways to ask, and with intervals
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    questions: u32,
    /// Round length, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    round: u32,
    /// Also measure scheduling for so many seconds alone and as many while ten people ask, by turns; rounds should be
    /// short enough that some fall into each
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    load: u32,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for the servers' temporary data [default: the system's]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// What came of one policy.
#[derive(Serialize)]
struct WhatIfBenchRow {
    policy: String,
    jobs: u32,
    /// One plan of the server's policy, on average.
    plan_ms: Option<f64>,
    /// The first answer: the job as it is asked for.
    first: Waits,
    /// With the other ways to ask for it.
    ways: Waits,
    /// With intervals too.
    all: Waits,
    /// How many ways there were.
    ways_mean: f64,
    scheduling: Option<[AskingPace; 2]>,
}

/// How long answers took.
#[derive(Serialize)]
struct Waits {
    p50_ms: f64,
    max_ms: f64,
    /// What the server's processor spent on each in the mean, with all else that it did meanwhile.
    cpu_ms: f64,
    /// Answers in which not all could be said.
    cut: usize,
}

/// How fast a server schedules.
#[derive(Serialize)]
struct AskingPace {
    /// While people asked: how many answers they had, and how often they were told to wait.
    answers: usize,
    refused: usize,
    submit_p50_ms: f64,
    submit_p99_ms: f64,
    plan_mean_ms: Option<f64>,
    round_mean_ms: Option<f64>,
}

pub(in super::super) fn run(args: &BenchWhatIfArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let scratch = ScratchServer::new(&args.dir.clone().unwrap_or_else(std::env::temp_dir))?;
    let rows = args.policy.iter().enumerate();
    let rows = rows.map(|(at, policy)| measure(args, policy, &scratch.0.join(at.to_string())));
    let rows: Vec<WhatIfBenchRow> = rows.collect::<anyhow::Result<_>>()?;
    match args.output {
        OutputFormat::Json => {
            output::json(&json!({ "seed": args.seed, "round_s": args.round, "policies": rows }), out)
        }
        OutputFormat::Table => {
            writeln!(out, "{}", table(&rows))?;
            let paced = rows.iter().any(|row| row.scheduling.is_some());
            if paced {
                writeln!(out, "{}", paces(&rows))?;
            }
            Ok(())
        }
    }
}

/// One policy on a server of its own.
fn measure(args: &BenchWhatIfArgs, policy: &str, folder: &Path) -> anyhow::Result<WhatIfBenchRow> {
    std::fs::create_dir_all(folder)?;
    let (data, round) = (folder.join("server"), args.round.to_string());
    let options = ["--policy", policy, "--round", &round];
    let mut server = Yard::start("server", &data, &[&LISTEN[..], &options[..]].concat())?;
    let asked = server.answers()?;
    note(&format!("{policy}: {} nodes join, {} jobs come", args.nodes, args.jobs));
    let nodes = args.nodes as usize;
    let _crowd = Crowd::join(&dial(&asked, &data)?, &folder.join("nodes"), nodes, &KINDS)?;
    load::submit(&asked, CLIENTS, args.jobs as usize, &|number| job(args.seed, number as u64))?;
    let client = Client::new(&asked)?;
    let before = BenchSums::read(&client)?;
    settle(&client, args)?;
    note(&format!("{policy}: {} questions", 3 * args.questions));
    let (first, _) = ask(&client, &server, args, (false, false))?;
    let (ways, ways_mean) = ask(&client, &server, args, (true, false))?;
    let (all, _) = ask(&client, &server, args, (true, true))?;
    let scheduling = (args.load > 0).then(|| both(&asked, &client, args, folder)).transpose()?;
    let plan_ms = BenchSums::read(&client)?;
    let plan_ms = plan_ms.mean_ms(&before, "plan").or_else(|| plan_ms.mean_ms(&BenchSums::none(), "plan"));
    Ok(WhatIfBenchRow {
        policy: policy.to_owned(),
        jobs: args.jobs,
        plan_ms,
        first,
        ways,
        all,
        ways_mean,
        scheduling,
    })
}

/// Waits for a plan that knows all jobs, two rounds at most: some policies plan at beats only, others at each event.
fn settle(client: &Client, args: &BenchWhatIfArgs) -> anyhow::Result<()> {
    let plans = || client.get::<StatusView>("/v1/status", &[]).map(|status| status.plans);
    let (before, watch) = (plans()?, CommandStopwatch::start());
    while plans()? == before && watch.seconds() < 2.0 * f64::from(args.round) {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// One of the jobs. The same seed and number give the same one.
fn job(seed: u64, number: u64) -> JobRequest {
    let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let gpus = match random.below(100) {
        0..70 => 1,
        70..80 => 2,
        80..95 => 4,
        _ => 8,
    };
    let elastic = random.below(4) == 0;
    let kind = random.below(4) as usize;
    JobRequest {
        command: vec!["true".into()],
        gpus: Some(gpus),
        min_gpus: elastic.then_some(gpus.div_ceil(2)),
        max_gpus: elastic.then_some(gpus * 2),
        kinds: KINDS.get(kind).map(|kind| (*kind).to_owned()).into_iter().collect(),
        duration_s: Some(libm::exp(libm::log(600.0) + libm::log(48.0) * random.unit())),
        ..JobRequest::default()
    }
}

/// Asks about as many jobs, one after another; also how many ways there were in the mean.
fn ask(
    client: &Client,
    server: &Yard,
    args: &BenchWhatIfArgs,
    wanted: (bool, bool),
) -> anyhow::Result<(Waits, f64)> {
    let (mut each_s, mut cut, mut ways, before) = (Vec::new(), 0, 0, server.cpu_seconds()?);
    for number in 0..u64::from(args.questions) {
        let question = about(job(args.seed ^ 0xa5c, number), wanted);
        let watch = CommandStopwatch::start();
        let told: WhatIfView = client.post("/v1/what-if", &question)?;
        each_s.push(watch.seconds());
        cut += usize::from(told.cut);
        ways += told.rows.len();
        ensure!(!told.rows.is_empty(), "an answer has no rows");
    }
    let each = f64::from(args.questions);
    let (p50_ms, max_ms) = (quantile_ms(&mut each_s, 0.5), quantile_ms(&mut each_s, 1.0));
    let cpu_ms = (server.cpu_seconds()? - before) * 1e3 / each;
    Ok((Waits { p50_ms, max_ms, cpu_ms, cut }, ways as f64 / each))
}

/// A question about a job, with other ways to ask for it or not, and with intervals or not; without both, for a first
/// answer.
fn about(job: JobRequest, (alternatives, intervals): (bool, bool)) -> WhatIf {
    let quick = !alternatives && !intervals;
    let (alternatives, intervals) = (Some(alternatives), Some(intervals));
    WhatIf { job: Some(job), alternatives, intervals, quick, ..WhatIf::default() }
}

/// How fast the server schedules alone, and while people ask: in turns, so that a machine that is slower for a while is so
/// for both.
fn both(
    asked: &ServerArgs,
    client: &Client,
    args: &BenchWhatIfArgs,
    folder: &Path,
) -> anyhow::Result<[AskingPace; 2]> {
    let people = people(asked, client, folder)?;
    let [mut alone, mut busy] = ["alone", "busy"].map(|when| WhatIfSeen { when, ..WhatIfSeen::default() });
    for turn in 0..TURNS {
        note(&format!("jobs come and go, {} of {TURNS}", turn + 1));
        look(client, args, &mut alone)?;
        note(&format!("and {ASKERS} people ask"));
        while_asked(&people, args.seed ^ turn << 32, &mut busy, |busy| look(client, args, busy))?;
    }
    ensure!(busy.answers > 0, "nobody was answered while jobs came and went");
    Ok([alone.pace(), busy.pace()])
}

/// Has people ask without pause while something is looked at.
fn while_asked(
    people: &[Client],
    seed: u64,
    seen: &mut WhatIfSeen,
    looks: impl FnOnce(&mut WhatIfSeen) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (stop, answers, refused) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for (number, person) in people.iter().enumerate() {
            let (stop, answers, refused) = (&stop, &answers, &refused);
            scope.spawn(move || pester(person, seed ^ number as u64, stop, answers, refused));
        }
        let looked = looks(seen);
        stop.store(true, Ordering::Relaxed);
        looked
    })?;
    seen.answers += answers.into_inner();
    seen.refused += refused.into_inner();
    Ok(())
}

/// People who may ask: each has a token of their own.
fn people(asked: &ServerArgs, client: &Client, folder: &Path) -> anyhow::Result<Vec<Client>> {
    let person = |number: usize| {
        let body = json!({ "user": format!("asker{number}"), "scope": "submit" });
        let made: NewToken = client.post("/v1/tokens", &body)?;
        let file = folder.join(format!("token{number}"));
        output::write_whole(&file, made.secret.as_bytes())?;
        Client::new(&ServerArgs { token_file: Some(file), ..asked.clone() })
    };
    (0..ASKERS).map(person).collect()
}

/// Asks without pause until it is told to stop; who is sent away asks again a little later.
fn pester(person: &Client, seed: u64, stop: &AtomicBool, answers: &AtomicUsize, refused: &AtomicUsize) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        match person.post::<WhatIfView>("/v1/what-if", &about(job(seed ^ 0xbee, number), (true, true))) {
            Ok(_) => answers.fetch_add(1, Ordering::Relaxed),
            Err(_) => {
                std::thread::sleep(PAUSE);
                refused.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}

/// Submits and cancels a job now and then, and looks at how long it and the plans take.
fn look(client: &Client, args: &BenchWhatIfArgs, seen: &mut WhatIfSeen) -> anyhow::Result<()> {
    let (before, watch) = (BenchSums::read(client)?, CommandStopwatch::start());
    while watch.seconds() < f64::from(args.load) / TURNS as f64 {
        let number = seen.submits_s.len() as u64;
        let one = CommandStopwatch::start();
        let made = client.submit(&job(args.seed ^ 0xcafe, number), &format!("{}-{number}", seen.when))?;
        seen.submits_s.push(one.seconds());
        client.order(&format!("/v1/jobs/{}/cancel", made.id), &json!({}))?;
        std::thread::sleep(PAUSE);
    }
    let after = BenchSums::read(client)?;
    seen.plans_ms.extend(after.mean_ms(&before, "plan"));
    seen.rounds_ms.extend(after.mean_ms(&before, "round"));
    Ok(())
}

/// What was seen of scheduling.
#[derive(Default)]
struct WhatIfSeen {
    /// Distinguishes its submissions from others.
    when: &'static str,
    submits_s: Vec<f64>,
    /// The mean of each turn.
    plans_ms: Vec<f64>,
    rounds_ms: Vec<f64>,
    answers: usize,
    refused: usize,
}

impl WhatIfSeen {
    fn pace(mut self) -> AskingPace {
        let mean = |each: &[f64]| (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64);
        AskingPace {
            answers: self.answers,
            refused: self.refused,
            submit_p50_ms: quantile_ms(&mut self.submits_s, 0.5),
            submit_p99_ms: quantile_ms(&mut self.submits_s, 0.99),
            plan_mean_ms: mean(&self.plans_ms),
            round_mean_ms: mean(&self.rounds_ms),
        }
    }
}

/// Milliseconds that this part of them took at most.
fn quantile_ms(each_s: &mut [f64], part: f64) -> f64 {
    each_s.sort_by(f64::total_cmp);
    let at = (each_s.len() as f64 * part).ceil() as usize;
    each_s.get(at.max(1) - 1).map_or(0.0, |seconds| seconds * 1e3)
}

fn table(rows: &[WhatIfBenchRow]) -> comfy_table::Table {
    let head = ["policy", "plan", "", "p50", "max", "cpu", "p50 in plans", "cut", "ways"];
    let mut table = output::table(&head, 1);
    let ms = |ms: f64| format!("{ms:.1} ms");
    let none = || "–".to_owned();
    for row in rows {
        let answers = [("first answer", &row.first, 1.0), ("all ways", &row.ways, row.ways_mean)];
        for (what, waits, ways) in answers.into_iter().chain([("with intervals", &row.all, row.ways_mean)]) {
            let plans = row.plan_ms.map_or_else(none, |plan| format!("{:.0}", waits.p50_ms / plan));
            let plan = row.plan_ms.map_or_else(none, ms);
            let times = [waits.p50_ms, waits.max_ms, waits.cpu_ms].map(ms);
            let mut cells = vec![row.policy.clone(), plan, what.to_owned()];
            cells.extend(times.into_iter().chain([plans, waits.cut.to_string(), format!("{ways:.1}")]));
            table.add_row(cells);
        }
    }
    table
}

/// Scheduling alone, and while people ask.
fn paces(rows: &[WhatIfBenchRow]) -> comfy_table::Table {
    let head = ["policy", "", "submit p50", "p99", "plan", "round", "answers", "told to wait"];
    let mut table = output::table(&head, 2);
    let ms = |ms: Option<f64>| ms.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.1} ms"));
    for (row, paces) in rows.iter().filter_map(|row| Some((row, row.scheduling.as_ref()?))) {
        for (what, pace) in ["alone", "ten ask"].into_iter().zip(paces) {
            let submits = [Some(pace.submit_p50_ms), Some(pace.submit_p99_ms)];
            let times = submits.into_iter().chain([pace.plan_mean_ms, pace.round_mean_ms]).map(ms);
            let mut cells = vec![row.policy.clone(), what.to_owned()];
            cells.extend(times.chain([pace.answers.to_string(), pace.refused.to_string()]));
            table.add_row(cells);
        }
    }
    table
}
