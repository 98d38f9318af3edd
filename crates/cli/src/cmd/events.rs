//! `yard events`: what happened, and what happens.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use serde::Deserialize;
use yard_live::views::EventView;

use crate::client::{Client, ServerArgs};
use crate::clock;
use crate::output::{self, OutputFormat};

/// Pauses before a stream that broke is taken up again; after the last it is given up.
const RETRIES: [u64; 6] = [1, 1, 2, 4, 8, 16];

/// Longest line of a stream that is believed.
const LINE_MAX: u64 = 4 << 20;

/// Which events.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard events\n  yard events -f --job 12\n  yard events -f -o json | jq -c 'select(.event == \"granted\")'\n\nWith -o json, each line is one event."
)]
pub(crate) struct EventsArgs {
    /// Follow new events as they happen
    #[arg(short, long)]
    follow: bool,
    /// Only events of this job
    #[arg(long, value_name = "ID")]
    job: Option<u64>,
    /// Only events after the one with this number
    #[arg(long, value_name = "ID")]
    after: Option<u64>,
    /// At most N events, the newest [default: 1000; with --job or --after all]
    #[arg(long, value_name = "N", conflicts_with_all = ["follow", "after"], value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    limit: Option<u64>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArgs,
}

/// A page of events.
#[derive(Deserialize)]
struct Events {
    events: Vec<EventView>,
}

/// Events that are asked for at once.
const PAGE: u64 = 5_000;

/// Events that are printed where nothing else is said.
const SHOWN: u64 = 1_000;

pub(crate) fn run(args: &EventsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    if args.follow {
        return follow(args, &client, out);
    }
    // From a number on, or of one job, all there are; otherwise the newest.
    match args.after.or(args.job.filter(|_| args.limit.is_none()).map(|_| 0)) {
        Some(after) => print_after(args, &client, after, out),
        None => print_newest(args, &client, out),
    }
}

/// All events after a number, page by page.
fn print_after(
    args: &EventsArgs,
    client: &Client,
    mut after: u64,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    loop {
        let from = ("after", after.to_string());
        let Events { events } = client.get("/v1/events", &query(args, PAGE, Some(from)))?;
        events.iter().try_for_each(|event| print(args, event, out))?;
        match events.last() {
            Some(last) if events.len() as u64 >= PAGE && last.id > after => after = last.id,
            _ => return Ok(()),
        }
    }
}

/// The newest events; where older ones are left out, that is said.
fn print_newest(args: &EventsArgs, client: &Client, out: &mut dyn Write) -> anyhow::Result<()> {
    let limit = args.limit.unwrap_or(SHOWN) as usize;
    let (mut found, mut before) = (VecDeque::new(), None);
    // One more than is shown tells whether there are more.
    while found.len() <= limit {
        let asked = (limit + 1 - found.len()).min(PAGE as usize);
        let Events { events } = client.get("/v1/events", &query(args, asked as u64, before))?;
        before = events.first().map(|event| ("before", event.id.to_string()));
        let whole = events.len() >= asked;
        events.into_iter().rev().for_each(|event| found.push_front(event));
        if !whole {
            break;
        }
    }
    if found.len() > limit {
        found.drain(..found.len() - limit);
        output::note(&format!(
            "only the newest {limit} events are shown; use a larger --limit for older ones"
        ));
    }
    found.iter().try_for_each(|event| print(args, event, out))
}

fn query(
    args: &EventsArgs,
    limit: u64,
    bound: Option<(&'static str, String)>,
) -> Vec<(&'static str, String)> {
    let job = args.job.map(|job| ("job", job.to_string()));
    let always = [("follow", "false".to_owned()), ("limit", limit.to_string())];
    always.into_iter().chain(job).chain(bound).collect()
}

/// Prints events as they come. A server that restarts is asked for what came after the last that was seen.
fn follow(args: &EventsArgs, client: &Client, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut last = args.after;
    let mut tries = RETRIES.iter();
    let job: Vec<_> = args.job.map(|job| ("job", job.to_string())).into_iter().collect();
    loop {
        match client.stream("/v1/events", &job, last) {
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
            anyhow::bail!("the connection was lost and the server did not come back; try: yard nodes")
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
    // An older server follows all jobs.
    if args.job.is_some() && args.job != event.job {
        return Ok(());
    }
    if args.output == OutputFormat::Json {
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
