//! `yard events`: what happened, and what happens.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use serde::Deserialize;
use yard_live::views::EventView;

use crate::client::{Client, ServerArgs};
use crate::clock;
use crate::output::{self, Format};

/// Pauses before a stream that broke is taken up again; after the last it is given up.
const RETRIES: [u64; 6] = [1, 1, 2, 4, 8, 16];

/// Longest line of a stream that is believed.
const LINE_MAX: u64 = 4 << 20;

/// Which events.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard events\n  yard events -f --job 12\n  yard events -f -o json | jq -c 'select(.event == \"granted\")'\n\nWith -o json each line is one event."
)]
pub(crate) struct EventsArgs {
    /// Go on with what happens
    #[arg(short, long)]
    follow: bool,
    /// Only those about this job
    #[arg(long, value_name = "ID")]
    job: Option<u64>,
    /// Only those after the one with this number
    #[arg(long, value_name = "ID")]
    after: Option<u64>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    server: ServerArgs,
}

/// A page of events.
#[derive(Deserialize)]
struct Events {
    events: Vec<EventView>,
}

pub(crate) fn run(args: &EventsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    if args.follow {
        return follow(args, &client, out);
    }
    let after = args.after.map(|id| ("after", id.to_string()));
    let query: Vec<_> = [Some(("follow", "false".to_owned())), after].into_iter().flatten().collect();
    let Events { events } = client.get("/v1/events", &query)?;
    events.iter().try_for_each(|event| print(args, event, out))
}

/// Prints events as they come. A server that restarts is asked for what came after the last that was seen.
fn follow(args: &EventsArgs, client: &Client, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut last = args.after;
    let mut tries = RETRIES.iter();
    loop {
        match client.stream("/v1/events", &[], last) {
            Ok(stream) => {
                let before = last;
                read(stream, |event| {
                    last = Some(event.id);
                    print(args, &event, out)?;
                    Ok(out.flush()?)
                })?;
                if last != before {
                    tries = RETRIES.iter();
                }
            }
            Err(failure) if !failure.is_passing() || last.is_none() => return Err(failure.into()),
            Err(_) => {}
        }
        let Some(&pause) = tries.next() else {
            anyhow::bail!("the server does not come back; yard nodes says more")
        };
        std::thread::sleep(Duration::from_secs(pause));
    }
}

/// Reads server-sent events until the stream ends or breaks.
fn read(stream: impl Read, mut each: impl FnMut(EventView) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut data = String::new();
    loop {
        let mut line = Vec::new();
        match stream.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(more) = line.strip_prefix("data:") {
            data.push_str(more.strip_prefix(' ').unwrap_or(more));
        } else if line.is_empty() && !data.is_empty() {
            // What is no event of this version is for newer programs.
            if let Ok(event) = serde_json::from_str(&data) {
                each(event)?;
            }
            data.clear();
        }
    }
}

fn print(args: &EventsArgs, event: &EventView, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.job.is_some() && args.job != event.job {
        return Ok(());
    }
    if args.output == Format::Json {
        return Ok(writeln!(out, "{}", serde_json::to_string(event)?)?);
    }
    let job = event.job.map_or_else(String::new, |job| format!("job {job}"));
    let node = event.node.as_deref().unwrap_or_default();
    let line = format!("{}  {:11} {job:9} {node} {}", clock::written(event.time), event.event, detail(event));
    Ok(writeln!(out, "{}", output::plain(line.trim_end()))?)
}

/// `key=value`, as far as there is some.
fn detail(event: &EventView) -> String {
    let Some(fields) = event.detail.as_object() else { return String::new() };
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let some = fields.iter().filter(|(_, value)| !value.is_null());
    some.map(|(key, value)| format!("{key}={}", text(value))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_in_any_pieces() {
        let one = r#"{"id":7,"time":1.5,"event":"granted","job":3,"node":null,"detail":{}}"#;
        let text = format!(
            ": hello\r\n\r\nid: 7\r\nevent: granted\r\ndata: {one}\r\n\r\ndata: nonsense\n\ndata:{one}\n\n"
        );
        let mut seen = Vec::new();
        read(text.as_bytes(), |event| {
            seen.push((event.id, event.job));
            Ok(())
        })
        .expect("nothing is printed");
        assert_eq!(seen, [(7, Some(3)), (7, Some(3))]);
    }
}
