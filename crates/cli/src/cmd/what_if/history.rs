//! `yard what-if --history`: the jobs of some days once more, under other policies, rounds or nodes, beside how it was.
//! The server simulates; this prints.

mod report;
mod tables;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, ensure};
use yard_live::replay::view::ReplayView;
use yard_live::replay::{Replay, ReplayChange};
use yard_live::request::times;

use crate::client::Client;
use crate::clock;
use crate::cmd::sim;
use crate::output::{self, OutputFormat};

/// How often the sign that something happens moves.
const TICK: Duration = Duration::from_millis(100);

/// Which part of the past, and what should have been different.
#[derive(clap::Args, Debug)]
pub(super) struct HistoryArgs {
    /// Instead of a job: replay the jobs of this past period, such as 7d, 24h or 30m
    #[arg(long, value_name = "TIME", conflicts_with_all = ["job_file", "only", "drain", "fail", "from"], help_heading = "The past")]
    history: Option<String>,
    /// Start of the replay, such as 2026-11-20 or 2026-11-20T18:00
    #[arg(long, value_name = "TIME", conflicts_with_all = ["job_file", "only", "drain", "fail"], help_heading = "The past")]
    from: Option<String>,
    /// End of the replay [default: now]
    #[arg(long, value_name = "TIME", help_heading = "The past")]
    to: Option<String>,
    /// Policies to compare (see yard policies)
    #[arg(long, value_name = "NAME[:k=v][,…]", value_delimiter = ',', help_heading = "The past")]
    policy: Vec<String>,
    /// Round length, such as 360s; 0 decides at each event
    #[arg(long, value_name = "TIME", help_heading = "The past")]
    round: Option<sim::Duration>,
    /// Add these nodes (repeatable)
    #[arg(long, value_name = "KIND:NODESxGPUS", help_heading = "The past")]
    add: Vec<String>,
    /// Remove this node (repeatable)
    #[arg(long, value_name = "NODE", help_heading = "The past")]
    remove: Vec<String>,
    /// Price of a device of this kind per hour (repeatable)
    #[arg(long, value_name = "KIND=DOLLARS", value_parser = parse_price, help_heading = "The past")]
    price: Vec<(String, f64)>,
    /// Write an HTML report, like yard sim (admins only)
    #[arg(long, value_name = "FILE", help_heading = "The past")]
    html: Option<PathBuf>,
}

fn parse_price(text: &str) -> Result<(String, f64), String> {
    let wrong = || format!("{text:?} is not KIND=PRICE, with a price per hour, such as h100=2.5");
    let (kind, price) = text.split_once('=').ok_or_else(wrong)?;
    let price: f64 = price.trim().parse().map_err(|_| wrong())?;
    if kind.is_empty() || !(0.0..=1e9).contains(&price) { Err(wrong()) } else { Ok((kind.to_owned(), price)) }
}

impl HistoryArgs {
    /// What to ask, where it is about the past.
    pub(super) fn question(&self) -> anyhow::Result<Option<Replay>> {
        if self.history.is_none() && self.from.is_none() {
            let given = [
                ("--to", self.to.is_some()),
                ("--policy", !self.policy.is_empty()),
                ("--round", self.round.is_some()),
                ("--add", !self.add.is_empty()),
                ("--remove", !self.remove.is_empty()),
                ("--price", !self.price.is_empty()),
                ("--html", self.html.is_some()),
            ];
            return match given.iter().find(|(_, given)| *given) {
                Some((flag, _)) => {
                    Err(anyhow!("{flag} replays the past; add how much of it, such as --history 7d"))
                }
                None => Ok(None),
            };
        }
        let history = self.history.as_deref().map(times::length).transpose();
        let moment = |flag: &str, text: &Option<String>| {
            let moment = text.as_deref().map(|text| times::moment(text, &clock::now())).transpose();
            moment.map_err(|why| anyhow!("{flag}: {why}"))
        };
        let (from, to) = (moment("--from", &self.from)?, moment("--to", &self.to)?);
        ensure!(from.is_none_or(|from| from < clock::seconds_now()), "--from: that time is in the future");
        Ok(Some(Replay {
            history_s: history.map_err(|why| anyhow!("--history: {why}"))?,
            from,
            to,
            alternatives: self.alternatives(),
            prices: self.price.iter().cloned().collect::<BTreeMap<_, _>>(),
            detail: self.html.is_some(),
        }))
    }

    /// One for each policy, with all other changes; one where only those are asked for.
    fn alternatives(&self) -> Vec<ReplayChange> {
        let round_s = self.round.map(|round| round.0.secs());
        let (add, remove) = (self.add.clone(), self.remove.clone());
        let other = ReplayChange { policy: None, round_s, add, remove };
        if self.policy.is_empty() {
            return if other == ReplayChange::default() { Vec::new() } else { vec![other] };
        }
        let with = |policy: &String| ReplayChange { policy: Some(policy.clone()), ..other.clone() };
        self.policy.iter().map(with).collect()
    }
}

/// Asks, and prints the answer.
pub(super) fn run(
    args: &HistoryArgs,
    asked: Replay,
    client: &Client,
    format: OutputFormat,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    args.html.iter().try_for_each(|path| output::check_target(path))?;
    let mut told = waited(|| client.post::<ReplayView>("/v1/what-if/history", &asked))?;
    if let Some(path) = &args.html {
        output::write_whole(path, report::html(&told).as_bytes())?;
        output::note(&format!("report: {}", path.display()));
    }
    let rows = std::iter::once(&mut told.baseline).chain(&mut told.alternatives);
    rows.for_each(|row| row.detail = None);
    match format {
        OutputFormat::Json => output::json(&told, out),
        OutputFormat::Table => {
            tables::lines(&told).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            Ok(())
        }
    }
}

/// Shows that something happens while it does, to who watches.
fn waited<T>(ask: impl FnOnce() -> T) -> T {
    let sign = output::is_watched().then(indicatif::ProgressBar::new_spinner);
    if let Some(sign) = &sign {
        sign.set_message("simulating on the server");
        sign.enable_steady_tick(TICK);
    }
    let told = ask();
    sign.iter().for_each(indicatif::ProgressBar::finish_and_clear);
    told
}
