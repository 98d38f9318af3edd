//! Several jobs to do something with: by number, or by what they are. Then they are shown, and nothing is done before
//! the user said yes.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::ensure;
use serde_json::json;
use yard_live::views::JobView;

use crate::client::{Answer, Client, JobRef, ServerArgs, WhichJobs};
use crate::output::{self, OutputFormat};

/// States of jobs that are not over.
const OPEN: [&str; 5] = ["pending", "starting", "running", "suspending", "suspended"];

/// Jobs that are named before the question.
const NAMED: usize = 20;

/// Which jobs, where the server is, and how to print.
#[derive(clap::Args, Debug)]
pub(super) struct JobsChosen {
    /// Job numbers, or last
    #[arg(value_name = "JOB", required_unless_present_any = ["state", "user", "name"])]
    jobs: Vec<JobRef>,
    #[command(flatten)]
    chosen: ChosenArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArgs,
}

impl JobsChosen {
    /// Does something with each of them, says what came of it, and then which could not be helped.
    pub(super) fn each(
        &self,
        verb: &str,
        ask: impl Fn(&Client, u64) -> Answer<JobView>,
        line: impl Fn(&JobView) -> String,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        self.one_way(verb)?;
        let client = Client::new(&self.server)?;
        let jobs = if self.jobs.is_empty() { self.chosen.find(&client, verb)? } else { self.jobs.clone() };
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for job in jobs {
            match client.job_id(job).and_then(|id| ask(&client, id)) {
                Ok(job) => done.push(job),
                Err(failure) => failed.push(failure.to_string()),
            }
        }
        self.print(&done, line, out)?;
        ensure!(failed.is_empty(), "{}", failed.join("; "));
        Ok(())
    }

    /// Whether jobs are meant by number or by what they are. The name of a job chooses it, here as elsewhere.
    pub(super) fn one_way(&self, verb: &str) -> anyhow::Result<()> {
        let rename = if verb == "Edit" { "; to rename a job: yard edit JOB --rename NAME" } else { "" };
        ensure!(
            self.jobs.is_empty() || self.chosen.is_empty(),
            "give job numbers, or choose jobs by --state, --user and --name, not both{rename}"
        );
        Ok(())
    }

    fn print(
        &self,
        jobs: &[JobView],
        line: impl Fn(&JobView) -> String,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        if self.output == OutputFormat::Json {
            return output::json(&json!({ "jobs": jobs }), out);
        }
        for job in jobs {
            writeln!(out, "job {}  {}", job.id, line(job))?;
            job.warnings.iter().for_each(|warning| output::note(&format!("job {}: {warning}", job.id)));
        }
        Ok(())
    }
}

/// Which jobs.
#[derive(clap::Args, Debug)]
struct ChosenArgs {
    /// All jobs in this state that are not over
    #[arg(long, value_name = "STATE", value_parser = OPEN)]
    state: Option<String>,
    /// All jobs of this user that are not over; me is you
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// All jobs with a matching name that are not over: * matches any characters, ? one
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

impl ChosenArgs {
    fn is_empty(&self) -> bool {
        self.state.is_none() && self.user.is_none() && self.name.is_none()
    }

    /// The jobs that are meant, once the user agreed.
    fn find(&self, client: &Client, verb: &str) -> anyhow::Result<Vec<JobRef>> {
        let (state, name) = (self.state.clone(), self.name.clone());
        let which = WhichJobs { state, name, ..WhichJobs::default() }.of_user(self.user.as_deref());
        let jobs = client.jobs(&which)?.jobs;
        if jobs.is_empty() {
            output::note("no pending or running job matches; nothing was done");
        } else if !self.yes {
            agree(&jobs, verb)?;
        }
        Ok(jobs.iter().map(|job| JobRef::Id(job.id)).collect())
    }
}

/// Shows the jobs and asks. Where nobody can answer, that is an error and nothing is done.
fn agree(jobs: &[JobView], verb: &str) -> anyhow::Result<()> {
    let (count, word) = (jobs.len(), if jobs.len() == 1 { "job" } else { "jobs" });
    for job in jobs.iter().take(NAMED) {
        let (id, name, user) = (job.id, output::plain(&job.name), output::plain(&job.user));
        output::note(&format!("job {id}  {name}  {user}  {}", job.state));
    }
    if count > NAMED {
        output::note(&format!("and {} more", count - NAMED));
    }
    let input = std::io::stdin();
    ensure!(
        input.is_terminal(),
        "{count} {word} match, and there is no terminal to ask for confirmation; nothing was done. Add --yes to \
         skip the question"
    );
    output::note(&format!("{verb} {count} {word}? [y/N]"));
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    let agreed = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    ensure!(agreed, "nothing was done");
    Ok(())
}
