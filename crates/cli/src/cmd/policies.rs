//! `yard policies`: the table of policies, as the code has it.

use std::io::Write;

use serde_json::json;
use yard_policies::{ALL, PLACERS, PolicyEntry};

use crate::compat;
use crate::output::{self, OutputFormat};

/// What to list.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  yard policies\n  yard policies tiresias\n  yard policies --params")]
pub(crate) struct PoliciesArgs {
    /// Show this policy in full: its paper, what is implemented and what is missing, its parameters
    name: Option<String>,
    /// Also list the parameters of each policy, set as NAME:key=value
    #[arg(long)]
    params: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(crate) fn run(args: &PoliciesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let one = args.name.as_deref().map(yard_policies::find).transpose()?;
    match (args.output, one) {
        (OutputFormat::Json, Some(entry)) => {
            writeln!(out, "{}", serde_json::to_string_pretty(&said(entry))?)?
        }
        (OutputFormat::Json, None) => writeln!(out, "{}", serde_json::to_string_pretty(&listed())?)?,
        (OutputFormat::Table, Some(entry)) => show(entry, out)?,
        (OutputFormat::Table, None) => print(args.params, out)?,
    }
    Ok(())
}

/// One policy whole.
fn show(entry: &PolicyEntry, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "{} ({}, {}): {}", entry.name, entry.family, runs(entry), entry.about)?;
    writeln!(out, "  paper    {}", entry.paper)?;
    writeln!(out, "  there    {}", entry.there)?;
    writeln!(out, "  missing  {}", entry.missing)?;
    writeln!(out, "  tested   {}", if entry.live.is_empty() { "in simulation" } else { entry.live })?;
    writeln!(out, "  priorities {}; needs {}", entry.priority.name(), needs(entry))?;
    for (key, about) in entry.params {
        writeln!(out, "  {}:{key}=…  {about}", entry.name)?;
    }
    Ok(())
}

fn print(params: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let columns = ["policy", "family", "runs", "priorities", "needs", "paper", "what it does"];
    let mut table = output::table(&columns, 9);
    for entry in ALL {
        let row = [entry.name, entry.family, runs(entry), entry.priority.name(), &needs(entry)];
        table.add_row(row.into_iter().chain([entry.paper, entry.about]));
    }
    writeln!(out, "{table}\n\n{MEANINGS}")?;
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

/// What the columns say.
const MEANINGS: &str =
    "Priorities: classes: jobs with a higher priority come first; among equals the policy's \
own order \
holds; worth: each step of priority doubles a job's value; refused: jobs with a priority are refused.
Needs: what jobs must state for the policy to work, with its default parameters.";

/// What it needs, in words.
fn needs(entry: &PolicyEntry) -> String {
    let names: Vec<_> = entry.needs.iter().map(|need| need.name()).collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

fn runs(entry: &PolicyEntry) -> &'static str {
    if entry.rounds { "in rounds" } else { "by event" }
}

fn listed() -> serde_json::Value {
    json!({ "policies": ALL.iter().map(said).collect::<Vec<_>>() })
}

fn said(entry: &PolicyEntry) -> serde_json::Value {
    let params: Vec<_> =
        entry.params.iter().map(|(key, about)| json!({"key": key, "about": about})).collect();
    json!({
        "name": entry.name, "family": entry.family, "paper": entry.paper, "about": entry.about,
        "there": entry.there, "missing": entry.missing, "rounds": entry.rounds,
        "priorities": entry.priority.name(),
        "needs": entry.needs.iter().map(|need| need.name()).collect::<Vec<_>>(), "params": params,
        "live": entry.live,
    })
}

/// The test that runs it live, for the documentation.
#[cfg(test)]
fn tested(entry: &PolicyEntry) -> String {
    if entry.live.is_empty() { "–".to_owned() } else { format!("`{}`", entry.live) }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect_file;

    use super::*;

    #[test]
    fn one_policy_is_shown_whole() {
        for entry in ALL {
            let args =
                PoliciesArgs { name: Some(entry.name.into()), params: false, output: OutputFormat::Table };
            let mut out = Vec::new();
            run(&args, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let keys = entry.params.iter().map(|(key, _)| *key);
            let told = [entry.about, entry.paper, entry.there, entry.missing].into_iter().chain(keys);
            told.for_each(|part| assert!(text.contains(part), "{part} is not in\n{text}"));
        }
        let args = PoliciesArgs { name: Some("tiresius".into()), params: false, output: OutputFormat::Table };
        let error = run(&args, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("tiresias"), "{error}");
    }

    /// docs/policies.md is the table, not a copy of it; `make bless` rewrites it.
    #[test]
    fn the_documentation_is_the_table() {
        let mut text = String::from(
            "# Policies\n\nFrom the table in the code; `yard policies` prints the same. Each policy's file opens with its \
             paper, its objective, what it reads, what it costs, and when not to use it.\n\n\
             | policy | family | runs | priorities | needs | paper | what it does |\n|---|---|---|---|---|---|---|\n",
        );
        for entry in ALL {
            let (name, priorities) = (format!("`{}`", entry.name), entry.priority.name());
            let row = [&name, entry.family, runs(entry), priorities, &needs(entry), entry.paper, entry.about]
                .join(" | ");
            writeln!(text, "| {row} |").unwrap();
        }
        write!(text, "\n{}\n", MEANINGS.replace('\n', "\n\n")).unwrap();
        text += "\n## What of each paper is there\n\n`yard policies NAME` prints the same for one of them. \
                 Tests are those in `crates/cli/tests/live`, through real agents on pretend devices; the other policies are tested \
                 in simulation.\n\n| policy | what of the paper is there | what is not | tested live by |\n|---|---|---|---|\n";
        for entry in ALL {
            let row = [entry.there, entry.missing, &tested(entry)].join(" | ");
            writeln!(text, "| `{}` | {row} |", entry.name).unwrap();
        }
        text += "\n## Parameters\n\nGiven as `--policy NAME:key=value`, as in `tiresias:promote=8`.\n\n| policy | key | meaning |\n|---|---|---|\n";
        for (entry, (key, about)) in
            ALL.iter().flat_map(|entry| entry.params.iter().map(move |param| (entry, param)))
        {
            writeln!(text, "| `{}` | `{key}` | {about} |", entry.name).unwrap();
        }
        text += "\n## Placers\n\n| placer | what it does |\n|---|---|\n";
        PLACERS.iter().for_each(|placer| writeln!(text, "| `{}` | {} |", placer.name, placer.about).unwrap());
        text += "\nAll of them obey what a job says of nodes and closeness (`nodes`, `close`, `segment`), and look for the level it prefers first.\n";
        expect_file!["../../../../docs/policies.md"].assert_eq(&text);
    }
}
