//! `yard audit`: who did what.

use std::io::Write;

use yard_live::views::AuditList;

use crate::client::{Client, ServerArgs};
use crate::clock;
use crate::output::{self, OutputFormat};

const EXAMPLES: &str = "Examples:
  yard audit
  yard audit --user ada --limit 20
  yard audit --before 5000 -o json | jq '.entries[] | select(.outcome == \"refused\")'

Only administrators may read it.";

/// Which entries.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Only what this user did
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Only entries before the one with this number
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    /// At most N entries, the newest
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArgs,
}

/// Prints the entries, the newest last, as events are.
pub(crate) fn run(args: &AuditArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let before = args.before.map(|id| ("before", id.to_string()));
    let user = args.user.as_ref().map(|name| ("user", name.clone()));
    let limit = Some(("limit", args.limit.to_string()));
    let query: Vec<_> = [before, user, limit].into_iter().flatten().collect();
    let list: AuditList = Client::new(&args.server)?.get("/v1/audit", &query)?;
    if args.output == OutputFormat::Json {
        return output::json(&list, out);
    }
    let mut table = output::table(&["id", "time", "user", "what", "to", "outcome"], 6);
    for entry in list.entries.iter().rev() {
        let texts = [&entry.user, &entry.what, &entry.target, &entry.outcome].map(|text| output::plain(text));
        let [user, what, target, outcome] = texts;
        table.add_row([entry.id.to_string(), clock::written(entry.time), user, what, target, outcome]);
    }
    writeln!(out, "{table}")?;
    if let (true, Some(oldest)) = (list.more, list.entries.last()) {
        output::note(&format!("older entries: yard audit --before {}", oldest.id));
    }
    Ok(())
}
