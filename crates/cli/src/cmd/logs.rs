//! `yard logs`: what a rank of a job wrote.

use std::io::{Read, Write};

use crate::client::{Client, JobRef, ServerArgs};

/// Which log.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard logs last\n  yard logs -f 12\n  yard logs --rank 3 --stderr --tail 50 12"
)]
pub(crate) struct LogsArgs {
    /// The job: its number, or last
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// Go on with what is written, until the job is over
    #[arg(short, long)]
    follow: bool,
    /// Which of its processes
    #[arg(long, value_name = "R", default_value_t = 0)]
    rank: u32,
    /// Standard error rather than output
    #[arg(long)]
    stderr: bool,
    /// Only so many of the last lines
    #[arg(long, value_name = "N")]
    tail: Option<u64>,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &LogsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let path = format!("/v1/jobs/{}/logs", client.job_id(args.job)?);
    let yes = |name, given: bool| given.then(|| (name, "true".to_owned()));
    let tail = args.tail.map(|lines| ("tail", lines.to_string()));
    let rank = Some(("rank", args.rank.to_string()));
    let query: Vec<_> =
        [rank, yes("stderr", args.stderr), tail, yes("follow", args.follow)].into_iter().flatten().collect();
    copy(&mut client.stream(&path, &query, None)?, out)
}

/// Passes on what comes as soon as it comes.
fn copy(from: &mut impl Read, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => out.write_all(&buffer[..count])?,
            Err(error) => anyhow::bail!("the log broke off: {error}; run the command again for the rest"),
        }
        out.flush()?;
    }
}
