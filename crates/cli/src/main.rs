//! The command `yard`: it puts the parts together, and it alone prints, reads the clock and exits.

mod client;
mod clock;
mod cmd;
mod compat;
mod live;
mod output;
mod policy;
mod report;
mod results;
mod runner;
mod study;
mod usage;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// A scheduler for deep-learning clusters: runs jobs on real machines, and simulates policies on traces with the same code.
#[derive(Parser)]
#[command(name = "yard", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "First steps, live:\n  \
    yard up --fake h100:8\n  \
    yard submit --gpus 2 -- sleep 60\n  \
    yard top\n\n\
    First steps, simulated:\n  \
    yard trace gen --jobs 500 --rate 60 > day.csv\n  \
    yard sim --trace day.csv --cluster gpu:8x8 --policy fifo,tiresias,srtf --html report.html\n  \
    yard policies")]
struct Cli {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Start everything on this machine: server, agent and API in one process
    Up(Box<cmd::up::UpArgs>),
    /// Start a server, which agents on other machines join
    Server(Box<cmd::server::ServerCommandArgs>),
    /// Offer this machine's devices to a server
    Agent(Box<cmd::agent::AgentArgs>),
    #[command(hide = true)]
    Keeper(cmd::agent::KeeperArgs),
    #[command(hide = true)]
    Freezer(cmd::agent::FreezerArgs),
    /// What becomes a job of another user. Keepers start it; nobody else does.
    #[command(hide = true)]
    Launch,
    /// What becomes a program that decides, so that it ends with whoever asks it
    #[command(hide = true)]
    PolicyProgram {
        /// The process that asks it
        parent: i32,
        /// The program
        path: std::path::PathBuf,
    },
    /// Submit a job: from flags, from a job file, or from a script with #SBATCH lines
    Submit(Box<cmd::submit::SubmitArgs>),
    /// List jobs: where they run, or what they wait for
    #[command(visible_aliases = ["queue", "ls"])]
    Jobs(cmd::jobs::JobsArgs),
    /// Show everything about one job
    Show(cmd::show::JobShowArgs),
    /// Print the output of a job
    Logs(cmd::logs::LogsArgs),
    /// Cancel jobs
    Cancel(cmd::cancel::CancelArgs),
    /// Keep jobs from running until they are released
    Hold(cmd::hold::HoldArgs),
    /// Let held jobs run again
    Release(cmd::hold::ReleaseArgs),
    /// Restart running jobs from their last checkpoints
    Requeue(cmd::hold::RequeueArgs),
    /// Change the name, priority, weight, deadline or times of waiting jobs
    Edit(Box<cmd::edit::EditArgs>),
    /// Explain why a job is waiting, and what would start it sooner
    Explain(cmd::explain::ExplainArgs),
    /// Ask what happens if a job is submitted, if a node drains or fails, or if the past had had other settings
    WhatIf(Box<cmd::what_if::WhatIfArgs>),
    /// List nodes, their devices, and the jobs on them
    Nodes(cmd::nodes::NodesArgs),
    /// Stop placing new jobs on a node
    Drain(cmd::drain::DrainArgs),
    /// Place jobs on a drained node again
    Resume(cmd::drain::ResumeArgs),
    /// Print events, or follow them as they happen
    Events(cmd::events::EventsArgs),
    /// Show who did what: submissions, drains, tokens
    Audit(cmd::audit::AuditArgs),
    /// Watch nodes, devices and jobs in the terminal
    Top(cmd::top::TopArgs),
    /// Create, list and revoke tokens
    Token(cmd::token::TokenArgs),
    /// List inputs that were set aside because the scheduler failed on them, or retry them
    Repair(cmd::repair::RepairArgs),
    /// Store secrets for your jobs, such as API keys
    Secret(cmd::secret::SecretArgs),
    /// Simulate a trace under one or several policies and compare them
    Sim(Box<cmd::sim::SimArgs>),
    /// Plot results of yard sim as SVG or PDF
    Plot(cmd::plot::PlotArgs),
    /// Run a bundle of yard sim --bundle again, and compare the results
    Bundle(cmd::bundle::BundleArgs),
    /// Show one allocation: what a policy gives to the jobs of a trace
    Plan(cmd::plan::PlanArgs),
    /// List every way to run a model that fits in memory: kind, count, split, step time
    Shapes(Box<cmd::shapes::ShapesArgs>),
    /// Generate, convert, import and inspect traces
    Trace(cmd::trace::TraceArgs),
    /// List the policies: name, family, paper, what it does
    Policies(cmd::policies::PoliciesArgs),
    /// Compare this build with published reference results
    Validate(cmd::validate::ValidateArgs),
    /// Try random clusters, jobs and faults, checking every invariant after every step
    Fuzz(cmd::fuzz::FuzzArgs),
    /// Benchmark the solvers and the live cluster
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
    let cli: Cli = usage::parse(Cli::command(), std::env::args_os()).unwrap_or_else(|error| error.exit());
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let done = run(cli.command, &mut out).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    match done {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Subcommands, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    match command {
        // Commands whose result is in their exit code.
        Subcommands::Submit(args) => return cmd::submit::run(&args, out),
        Subcommands::Fuzz(args) => return cmd::fuzz::run(&args, out),
        Subcommands::Bundle(args) => return cmd::bundle::run(&args, out),
        Subcommands::Validate(args) => return cmd::validate::run(&args, out),
        Subcommands::Launch => return Ok(yard_live::agent::launch_main()),
        Subcommands::PolicyProgram { parent, path } => return Err(policy::become_program(parent, &path)),
        Subcommands::Up(args) => live::up(&args),
        Subcommands::Server(args) => live::server(&args),
        Subcommands::Agent(args) => live::agent(&args),
        Subcommands::Keeper(args) => live::keeper(&args),
        Subcommands::Freezer(args) => live::freezer(&args),
        Subcommands::Jobs(args) => cmd::jobs::run(&args, out),
        Subcommands::Show(args) => cmd::show::run(&args, out),
        Subcommands::Logs(args) => cmd::logs::run(&args, out),
        Subcommands::Cancel(args) => cmd::cancel::run(&args, out),
        Subcommands::Hold(args) => cmd::hold::hold(&args, out),
        Subcommands::Release(args) => cmd::hold::release(&args, out),
        Subcommands::Requeue(args) => cmd::hold::requeue(&args, out),
        Subcommands::Edit(args) => cmd::edit::run(&args, out),
        Subcommands::Explain(args) => cmd::explain::run(&args, out),
        Subcommands::WhatIf(args) => cmd::what_if::run(*args, out),
        Subcommands::Nodes(args) => cmd::nodes::run(&args, out),
        Subcommands::Drain(args) => cmd::drain::drain(&args, out),
        Subcommands::Resume(args) => cmd::drain::resume(&args, out),
        Subcommands::Events(args) => cmd::events::run(&args, out),
        Subcommands::Audit(args) => cmd::audit::run(&args, out),
        Subcommands::Top(args) => cmd::top::run(&args),
        Subcommands::Token(args) => cmd::token::run(&args, out),
        Subcommands::Repair(args) => cmd::repair::run(&args, out),
        Subcommands::Secret(args) => cmd::secret::run(&args, out),
        Subcommands::Sim(args) => cmd::sim::run(&args, out),
        Subcommands::Plot(args) => cmd::plot::run(&args),
        Subcommands::Plan(args) => cmd::plan::run(&args, out),
        Subcommands::Shapes(args) => cmd::shapes::run(&args, out),
        Subcommands::Trace(args) => cmd::trace::run(args, out),
        Subcommands::Policies(args) => cmd::policies::run(&args, out),
        Subcommands::Bench(args) => cmd::bench::run(&args, out),
        Subcommands::Completions { shell } => completions(shell, out),
    }
    .map(|()| ExitCode::SUCCESS)
}

fn completions(shell: clap_complete::Shell, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "yard", &mut script);
    Ok(out.write_all(&script)?)
}
