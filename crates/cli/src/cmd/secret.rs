//! `yard secret`: values that one's jobs are given and nobody else sees. A value comes from standard input or a file,
//! never from an argument, which every user of the machine could read.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use serde_json::json;
use yard_live::request::secrets::check_name;
use yard_live::secrets::VALUE_MAX;
use yard_live::views::{SecretList, SecretRequest};
use yard_live::wire::SecretValue;

use crate::client::{self, Client, ServerArgs};
use crate::clock;
use crate::output::{self, OutputFormat};

/// What to do with secrets.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  yard secret set WANDB_API_KEY < key.txt\n  yard secret list\n  yard submit --secret WANDB_API_KEY -- python train.py"
)]
pub(crate) struct SecretArgs {
    #[command(subcommand)]
    command: SecretCommand,
}

#[derive(clap::Subcommand, Debug)]
enum SecretCommand {
    /// Set a secret; the value is read from standard input or a file
    #[command(after_help = SET_EXAMPLES)]
    Set(SetArgs),
    /// List your secrets, without their values
    #[command(after_help = "Examples:\n  yard secret list\n  yard secret list -o json")]
    List(SecretListArgs),
    /// Remove a secret; jobs that need it no longer start
    #[command(after_help = "Examples:\n  yard secret rm WANDB_API_KEY")]
    Rm(RemoveArgs),
}

const SET_EXAMPLES: &str = "Examples:
  yard secret set WANDB_API_KEY                 # asks for it, without showing it
  pass show wandb | yard secret set WANDB_API_KEY
  yard secret set hf-token --file ~/.cache/huggingface/token

A line break at the end of standard input is dropped; a file is stored as it is.";

#[derive(clap::Args, Debug)]
struct SetArgs {
    /// Name: letters, digits, _, . and -
    #[arg(value_name = "NAME")]
    name: String,
    /// Read the value from this file [default: standard input]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(clap::Args, Debug)]
struct SecretListArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(clap::Args, Debug)]
struct RemoveArgs {
    /// The secret
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &SecretArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.command {
        SecretCommand::Set(args) => set(args, out),
        SecretCommand::List(args) => list(args, out),
        SecretCommand::Rm(args) => remove(args, out),
    }
}

fn set(args: &SetArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    check_name(&args.name).map_err(anyhow::Error::msg)?;
    let client = Client::new(&args.server)?;
    let value = match &args.file {
        Some(path) => read_file(path)?,
        None => read_input(&args.name)?,
    };
    client.put(&path_of(&args.name), &SecretRequest { value: SecretValue(value) })?;
    Ok(writeln!(out, "secret {} is set; jobs that start from now on receive it", args.name)?)
}

fn path_of(name: &str) -> String {
    format!("/v1/secrets/{}", client::segment(name))
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    read(file).with_context(|| path.display().to_string())
}

fn read_input(name: &str) -> anyhow::Result<String> {
    let input = std::io::stdin();
    let mut value = if input.is_terminal() {
        output::note(&format!("value of {name} (it is not shown):"));
        let _hidden = Hidden::begin();
        let mut line = String::new();
        input.read_line(&mut line)?;
        line
    } else {
        read(input.lock())?
    };
    if value.ends_with('\n') {
        value.truncate(value.len() - if value.ends_with("\r\n") { 2 } else { 1 });
    }
    Ok(value)
}

/// No more than a secret may have, so that a mistaken file is not read to its end.
fn read(from: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    from.take(VALUE_MAX as u64 + 2).read_to_end(&mut bytes)?;
    if bytes.len() > VALUE_MAX + 1 {
        bail!("the value is longer than {VALUE_MAX} bytes, the maximum for a secret");
    }
    String::from_utf8(bytes)
        .map_err(|_| anyhow::anyhow!("the value is not UTF-8 text; encode it, for example with base64"))
}

/// While it lives, the terminal does not show what is typed.
struct Hidden(Option<Termios>);

impl Hidden {
    fn begin() -> Hidden {
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(mut quiet) = before.clone() {
            quiet.local_flags.remove(LocalFlags::ECHO);
            quiet.local_flags.insert(LocalFlags::ECHONL);
            let _shown = tcsetattr(std::io::stdin(), SetArg::TCSAFLUSH, &quiet);
        }
        Hidden(before)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _gone = tcsetattr(std::io::stdin(), SetArg::TCSANOW, before);
        }
    }
}

fn list(args: &SecretListArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let SecretList { secrets } = Client::new(&args.server)?.get("/v1/secrets", &[])?;
    if args.output == OutputFormat::Json {
        return output::json(&json!({ "secrets": secrets }), out);
    }
    let mut table = output::table(&["secret", "bytes", "set"], 3);
    for secret in &secrets {
        let set = clock::written(secret.set_at);
        table.add_row([output::plain(&secret.name), secret.bytes.to_string(), set]);
    }
    Ok(writeln!(out, "{table}")?)
}

fn remove(args: &RemoveArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    Client::new(&args.server)?.delete(&path_of(&args.name))?;
    Ok(writeln!(out, "secret {} is removed", output::plain(&args.name))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_text_of_a_limited_size() {
        assert_eq!(read(&b"abc\n"[..]).unwrap(), "abc\n");
        let long = vec![b'x'; VALUE_MAX + 2];
        assert!(read(&long[..]).unwrap_err().to_string().contains("longer than"));
        assert!(read(&b"\xff"[..]).unwrap_err().to_string().contains("base64"));
    }
}
