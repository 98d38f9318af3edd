//! The command `yard`: it puts the parts together, and it alone prints, reads the clock and exits.

mod clock;
mod cmd;
mod compat;
mod output;
mod report;
mod results;
mod runner;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// A scheduler for deep-learning clusters: compare policies on real traces, on one deterministic core.
#[derive(Parser)]
#[command(name = "yard", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "First steps:\n  \
    yard trace gen --jobs 500 --rate 60 > day.csv\n  \
    yard sim --trace day.csv --cluster gpu:8x8 --policy fifo,tiresias,srtf --html report.html\n  \
    yard policies")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a trace through one or several policies and compare them
    Sim(Box<cmd::sim::SimArgs>),
    /// Ask a policy once: what it would give to the jobs of a trace
    Plan(cmd::plan::PlanArgs),
    /// Make, convert and look at traces
    Trace(cmd::trace::TraceArgs),
    /// List the policies: name, family, paper, what it does
    Policies(cmd::policies::PoliciesArgs),
    /// Compare this build with published reference results
    Validate(cmd::validate::ValidateArgs),
    /// Try random clusters, jobs and faults, checking every invariant after every step
    Fuzz(cmd::fuzz::FuzzArgs),
    /// Measure the solvers on problems of any size
    Bench(cmd::bench::BenchArgs),
    /// Print a completion script for your shell
    #[command(
        after_help = "Examples:\n  yard completions bash > ~/.local/share/bash-completion/completions/yard\n  yard completions fish > ~/.config/fish/completions/yard.fish"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let done = run(cli.command, &mut out).and_then(|()| Ok(out.flush()?));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command, out: &mut dyn Write) -> anyhow::Result<()> {
    match command {
        Command::Sim(args) => cmd::sim::run(&args, out),
        Command::Plan(args) => cmd::plan::run(&args, out),
        Command::Trace(args) => cmd::trace::run(args, out),
        Command::Policies(args) => cmd::policies::run(&args, out),
        Command::Validate(args) => cmd::validate::run(&args, out),
        Command::Fuzz(args) => cmd::fuzz::run(&args, out),
        Command::Bench(args) => cmd::bench::run(&args, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "yard", &mut script);
            Ok(out.write_all(&script)?)
        }
    }
}
