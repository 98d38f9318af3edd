//! `yard token`: who may speak to the server. A token's secret is shown once, when it is made.

use std::io::Write;

use serde::Deserialize;
use serde_json::json;
use yard_live::request::times;
use yard_live::views::{NewToken, TokenView};

use crate::client::{self, Client, ServerArgs};
use crate::clock;
use crate::output::{self, Format};

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
    /// Make a token; its secret is printed, once, alone on stdout
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// List tokens, without their secrets
    #[command(after_help = "Examples:\n  yard token list\n  yard token list -o json")]
    List(ListArgs),
    /// Make a token worthless, at once and for good
    #[command(after_help = "Examples:\n  yard token revoke 3f9a")]
    Revoke(RevokeArgs),
}

const CREATE_EXAMPLES: &str = "Examples:
  yard token create --user ada > token             # submits and sees ada's own jobs
  yard token create --user grafana --scope read --expires 365d
  yard token create --scope join > join-token      # for yard agent --join-token";

#[derive(clap::Args, Debug)]
struct CreateArgs {
    /// Who it speaks for [default: whoever makes it]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// What it allows: read, submit, admin, or join for agents
    #[arg(long, value_name = "SCOPE", default_value = "submit", value_parser = ["read", "submit", "admin", "join"])]
    scope: String,
    /// How long it is good for, as 30d [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    expires: Option<f64>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(clap::Args, Debug)]
struct ListArgs {
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(clap::Args, Debug)]
struct RevokeArgs {
    /// The token, by the number that yard token list shows
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    server: ServerArgs,
}

/// All tokens that one may see.
#[derive(Deserialize)]
struct Tokens {
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
    let body = json!({ "user": args.user, "scope": args.scope, "expires_s": args.expires });
    let made: NewToken = Client::new(&args.server)?.post("/v1/tokens", &body)?;
    if args.output == Format::Json {
        return output::json(&made, out);
    }
    let TokenView { id, user, scope, expires_at, .. } = &made.token;
    let until = expires_at.map_or_else(|| "for ever".into(), |at| format!("until {}", clock::written(at)));
    output::note(&output::plain(&format!(
        "token {id} for {user}, scope {scope}, good {until}; it is shown only now:"
    )));
    Ok(writeln!(out, "{}", output::plain(&made.secret))?)
}

fn list(args: &ListArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let Tokens { tokens } = Client::new(&args.server)?.get("/v1/tokens", &[])?;
    if args.output == Format::Json {
        return output::json(&json!({ "tokens": tokens }), out);
    }
    let mut table = output::table(&["token", "user", "scope", "made", "good until"], 5);
    for token in &tokens {
        let until = match token.expires_at {
            _ if token.revoked => "revoked".into(),
            Some(at) => clock::written(at),
            None => "for ever".into(),
        };
        let made = clock::written(token.created_at);
        table.add_row([
            output::plain(&token.id),
            output::plain(&token.user),
            token.scope.clone(),
            made,
            until,
        ]);
    }
    Ok(writeln!(out, "{table}")?)
}

fn revoke(args: &RevokeArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    Client::new(&args.server)?.delete(&format!("/v1/tokens/{}", client::segment(&args.id)))?;
    Ok(writeln!(out, "token {} is revoked", args.id)?)
}
