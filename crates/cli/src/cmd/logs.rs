//! `yard logs`: what a rank of a job wrote.

use std::io::{Read, Write};
use std::time::Duration;

use yard_live::views::JobView;

use crate::client::{Answer, Client, JobRef, ServerArgs};
use crate::output;

/// How often to look whether a job has started.
const LOOKS: Duration = Duration::from_millis(500);

/// Which log.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard logs last\n  yard logs -f 12\n  yard logs --rank 3 --tail 50 12\n  yard logs --stdout 12 > result.txt\n\nStandard output and standard error are printed in order of arrival; --stdout and --stderr print one of the two."
)]
pub(crate) struct LogsArgs {
    /// Job number, or last
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// Follow the log until the job is over
    #[arg(short, long)]
    follow: bool,
    /// Rank of the process
    #[arg(long, value_name = "R", default_value_t = 0)]
    rank: u32,
    /// Only standard output
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
    /// Only standard error
    #[arg(long)]
    stderr: bool,
    /// Show only the last N lines
    #[arg(long, value_name = "N")]
    tail: Option<u64>,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &LogsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let id = client.job_id(args.job)?;
    if args.follow {
        until_started(&client, id)?;
    }
    let path = format!("/v1/jobs/{id}/logs");
    let yes = |name, given: bool| given.then(|| (name, "true".to_owned()));
    let tail = args.tail.map(|lines| ("tail", lines.to_string()));
    let rank = Some(("rank", args.rank.to_string()));
    let only = |name: &str, given: bool| given.then(|| ("stream", name.to_owned()));
    let stream = only("stdout", args.stdout).or(only("stderr", args.stderr));
    let query: Vec<_> = [rank, stream, tail, yes("follow", args.follow)].into_iter().flatten().collect();
    copy(&mut client.stream(&path, &query, None)?, out)
}

/// Waits for the first start of a job: until then there is nothing to follow.
fn until_started(client: &Client, id: u64) -> Answer<()> {
    let mut told = false;
    while waits(&client.get(&format!("/v1/jobs/{id}"), &[])?) {
        if !std::mem::replace(&mut told, true) {
            output::note(&format!("job {id} has not started yet; waiting"));
        }
        std::thread::sleep(LOOKS);
    }
    Ok(())
}

fn waits(job: &JobView) -> bool {
    (job.state == "pending" && job.starts == 0) || (job.state == "starting" && job.starts <= 1)
}

/// Passes on what comes as soon as it comes.
fn copy(from: &mut impl Read, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => out.write_all(&buffer[..count])?,
            Err(error) => anyhow::bail!(
                "the connection was lost: {error}; run the command again for the rest \
            of the log"
            ),
        }
        out.flush()?;
    }
}
