//! `yard policies`: the table of policies, as the code has it.

use std::io::Write;

use serde_json::json;
use yard_policies::{ALL, Entry, PLACERS};

use crate::compat;
use crate::output::{self, Format};

/// What to list.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  yard policies\n  yard policies --params")]
pub(crate) struct PoliciesArgs {
    /// Also list each policy's parameters, given as NAME:key=value
    #[arg(long)]
    params: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub(crate) fn run(args: &PoliciesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    match args.output {
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&listed())?)?,
        Format::Table => print(args.params, out)?,
    }
    Ok(())
}

fn print(params: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut table = output::table(&["policy", "family", "runs", "paper", "what it does"], 9);
    for entry in ALL {
        table.add_row([entry.name, entry.family, runs(entry), entry.paper, entry.about]);
    }
    writeln!(out, "{table}")?;
    if params {
        writeln!(out, "\nParameters, as in --policy tiresias:promote=8:")?;
        for entry in ALL {
            for (key, about) in entry.params {
                writeln!(out, "  {}:{key}=…  {about}", entry.name)?;
            }
        }
    }
    writeln!(out, "\nPlacers (--placer):")?;
    for placer in PLACERS {
        writeln!(out, "  {:10} {}", placer.name, placer.about)?;
    }
    writeln!(out, "\nOther simulators' settings (--compat):")?;
    for compat in compat::ALL {
        writeln!(out, "  {:10} {}", compat.name, compat.about)?;
    }
    Ok(())
}

fn runs(entry: &Entry) -> &'static str {
    if entry.rounds { "in rounds" } else { "by event" }
}

fn listed() -> serde_json::Value {
    let rows = ALL.iter().map(|entry| {
        let params: Vec<_> =
            entry.params.iter().map(|(key, about)| json!({"key": key, "about": about})).collect();
        json!({
            "name": entry.name, "family": entry.family, "paper": entry.paper, "about": entry.about,
            "rounds": entry.rounds, "params": params,
        })
    });
    json!({ "policies": rows.collect::<Vec<_>>() })
}
