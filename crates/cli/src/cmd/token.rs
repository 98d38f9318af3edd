//! `yard token`: who may speak to the server. A token's secret is shown once, when it is made.

use std::io::Write;

use serde::Deserialize;
use serde_json::json;
use yard_live::request::times;
use yard_live::views::{NewToken, TokenView};

use crate::client::{self, Client, ServerArgs};
use crate::clock;
use crate::output::{self, OutputFormat};

/// What to do with tokens.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  yard token create --user ada --scope submit --expires 30d\n  yard token list\n  yard token revoke 3f9a"
)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(clap::Subcommand, Debug)]
enum TokenCommand {
    /// Create a token; its secret is printed once, alone on stdout
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// List tokens, without their secrets
    #[command(after_help = "Examples:\n  yard token list\n  yard token list -o json")]
    List(TokenListArgs),
    /// Revoke a token immediately and permanently
    #[command(after_help = "Examples:\n  yard token revoke 3f9a")]
    Revoke(RevokeArgs),
}

const CREATE_EXAMPLES: &str = "Examples:
  yard token create --user ada > token             # submits and sees ada's own jobs only
  yard token create --user ada --team vision --weight-max 4 --priority-max 10 > token
  yard token create --user prod --class ordinary --class guaranteed > token
  yard token create --user grafana --scope read --expires 365d
  yard token create --scope join > join-token      # one machine, for yard agent --join-token
  yard token create --scope join --nodes 'gpu-*' > join-token    # all machines with matching names";

#[derive(clap::Args, Debug)]
struct CreateArgs {
    /// User that the token belongs to [default: you]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Scope: read, submit, admin, or join for agents
    #[arg(long, value_name = "SCOPE", default_value = "submit", value_parser = ["read", "submit", "admin", "join"])]
    scope: String,
    /// Lifetime, such as 30d [default: no expiry; join tokens: 1d, or 30d with --nodes]
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    expires: Option<f64>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    join: JoinArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArgs,
}

/// What jobs with it may ask for. Admins' may ask for everything.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Limits of jobs")]
struct LimitArgs {
    /// Team that jobs may count for; the first is the default (repeatable) [default: none]
    #[arg(long, value_name = "NAME")]
    team: Vec<String>,
    /// Largest weight of a job [default: 1]
    #[arg(long, value_name = "N")]
    weight_max: Option<f64>,
    /// Largest priority of a job [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority_max: Option<i32>,
    /// Class that jobs may have (repeatable) [default: ordinary and opportunistic]
    #[arg(long, value_name = "CLASS", value_parser = ["ordinary", "guaranteed", "opportunistic"])]
    class: Vec<String>,
}

/// Whom a join token lets in.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Join tokens")]
struct JoinArgs {
    /// Names of new nodes that may join, such as 'gpu-*' (repeatable) [default: one node of any name]
    #[arg(long, value_name = "PATTERN")]
    nodes: Vec<String>,
    /// Number of nodes that may join with it [default: 1; with --nodes: all that match]
    #[arg(long, value_name = "N")]
    uses: Option<u64>,
}

#[derive(clap::Args, Debug)]
struct TokenListArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(clap::Args, Debug)]
struct RevokeArgs {
    /// Token ID, as listed by yard token list
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    server: ServerArgs,
}

/// All tokens that one may see.
#[derive(Deserialize)]
struct TokenSelection {
    tokens: Vec<TokenView>,
}

pub(crate) fn run(args: &TokenArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.command {
        TokenCommand::Create(args) => create(args, out),
        TokenCommand::List(args) => list(args, out),
        TokenCommand::Revoke(args) => revoke(args, out),
    }
}

fn create(args: &CreateArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let body = request(args);
    let made: NewToken = Client::new(&args.server)?.post("/v1/tokens", &body)?;
    if args.output == OutputFormat::Json {
        return output::json(&made, out);
    }
    let TokenView { id, user, scope, expires_at, .. } = &made.token;
    let until =
        expires_at.map_or_else(|| "no expiry".into(), |at| format!("valid until {}", clock::written(at)));
    output::note(&output::plain(&format!(
        "token {id} for {user}, scope {scope}, {until}; it is shown only now:"
    )));
    Ok(writeln!(out, "{}", output::plain(&made.secret))?)
}

/// What to ask for. What is not said is left out.
fn request(args: &CreateArgs) -> serde_json::Value {
    let some = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
    let fields = [
        ("user", json!(args.user)),
        ("scope", json!(args.scope)),
        ("expires_s", json!(args.expires)),
        ("teams", json!(some(&args.limits.team))),
        ("weight_max", json!(args.limits.weight_max)),
        ("priority_max", json!(args.limits.priority_max)),
        ("classes", json!(some(&args.limits.class))),
        ("nodes", json!(some(&args.join.nodes))),
        ("uses", json!(args.join.uses)),
    ];
    fields
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// What a token is good for beyond its scope: `gpu-*, 3 more nodes` or `vision; weight 4, priority 10; ordinary`.
fn good_for(token: &TokenView) -> String {
    if token.scope == "join" {
        let left = token.uses_left.map(|left| match left {
            0 => "used".to_owned(),
            1 => "1 more node".to_owned(),
            left => format!("{left} more nodes"),
        });
        let nodes = if token.nodes.is_empty() { "no node".to_owned() } else { token.nodes.join(" ") };
        return [Some(nodes), left].into_iter().flatten().collect::<Vec<_>>().join(", ");
    }
    let Some(limits) = &token.limits else { return String::new() };
    let teams = (!limits.teams.is_empty()).then(|| limits.teams.join(" "));
    let most = format!("weight {}, priority {}", limits.weight_max, limits.priority_max);
    let all = [teams, Some(most), Some(limits.class_names())];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn list(args: &TokenListArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let TokenSelection { tokens } = Client::new(&args.server)?.get("/v1/tokens", &[])?;
    if args.output == OutputFormat::Json {
        return output::json(&json!({ "tokens": tokens }), out);
    }
    let mut table = output::table(&["token", "user", "scope", "created", "expires", "limits"], 6);
    for token in &tokens {
        let until = match token.expires_at {
            _ if token.revoked => "revoked".into(),
            Some(at) => clock::written(at),
            None => "no expiry".into(),
        };
        let made = clock::written(token.created_at);
        table.add_row([
            output::plain(&token.id),
            output::plain(&token.user),
            token.scope.clone(),
            made,
            until,
            output::plain(&good_for(token)),
        ]);
    }
    Ok(writeln!(out, "{table}")?)
}

fn revoke(args: &RevokeArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    Client::new(&args.server)?.delete(&format!("/v1/tokens/{}", client::segment(&args.id)))?;
    Ok(writeln!(out, "token {} is revoked", args.id)?)
}

#[cfg(test)]
mod tests {
    use yard_live::entitlements::Entitlements;

    use super::*;

    #[test]
    fn the_list_says_what_a_token_is_good_for() {
        let token = |scope: &str, nodes: &[&str], uses_left, limits| TokenView {
            id: "1".into(),
            user: "ada".into(),
            scope: scope.into(),
            created_at: 0.0,
            expires_at: None,
            revoked: false,
            last_used_at: None,
            limits,
            nodes: nodes.iter().map(ToString::to_string).collect(),
            uses_left,
        };
        assert_eq!(good_for(&token("join", &["*"], Some(1), None)), "*, 1 more node");
        assert_eq!(good_for(&token("join", &["gpu-*", "lab-?"], None, None)), "gpu-* lab-?");
        assert_eq!(good_for(&token("join", &["*"], Some(0), None)), "*, used");
        assert_eq!(good_for(&token("admin", &[], None, None)), "");
        let limits =
            Entitlements { teams: vec!["vision".into()], weight_max: 4.0, ..Entitlements::default() };
        let said = "vision; weight 4, priority 0; ordinary, opportunistic";
        assert_eq!(good_for(&token("submit", &[], None, Some(limits))), said);
    }
}
