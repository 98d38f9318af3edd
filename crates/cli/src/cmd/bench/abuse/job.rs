//! The attacker's job: it runs under an agent and does its worst until it is killed.

use std::io::Write;
use std::os::unix::net::UnixStream;

use anyhow::Context;

/// Connections that it opens to its agent.
const CONNECTIONS: usize = 64;

/// What the job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum AbuseJob {
    /// Floods its agent's socket
    Socket,
    /// Writes output without end
    Output,
}

impl AbuseJob {
    pub(super) fn name(self) -> &'static str {
        match self {
            AbuseJob::Socket => "socket",
            AbuseJob::Output => "output",
        }
    }
}

pub(super) fn run(job: AbuseJob) -> anyhow::Result<()> {
    match job {
        AbuseJob::Socket => flood_socket(),
        AbuseJob::Output => flood_output(),
    }
}

fn flood_socket() -> anyhow::Result<()> {
    let path = std::env::var_os("YARD_SOCKET").context("this runs as a job only")?;
    std::thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            let path = &path;
            scope.spawn(move || {
                loop {
                    // Cut off or refused: it comes back.
                    let _cut = UnixStream::connect(path).and_then(|stream| talk(stream, number as u32));
                }
            });
        }
    });
    Ok(())
}

/// Says hello, and then how far it is, without end.
fn talk(mut stream: UnixStream, rank: u32) -> std::io::Result<()> {
    stream.write_all(format!("{{\"hello\":{{\"rank\":{rank}}}}}\n").as_bytes())?;
    let lines = "{\"progress\":{\"step\":1,\"total\":null}}\n".repeat(1_000);
    loop {
        stream.write_all(lines.as_bytes())?;
    }
}

fn flood_output() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let block = "y\n".repeat(32 << 10);
    loop {
        out.write_all(block.as_bytes())?;
    }
}
