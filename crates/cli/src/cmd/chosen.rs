//! Several jobs to do something with: by number, or by what they are. Then they are shown, and nothing is done before
//! the user said yes.

use std::io::{BufRead, IsTerminal, Write};

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
    /// The jobs: their numbers, or last
    #[arg(value_name = "JOB", required_unless_present_any = ["state", "user", "name"])]
    jobs: Vec<JobRef>,
    #[command(flatten)]
    chosen: ChosenArgs,
    /// How to print
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
        anyhow::ensure!(failed.is_empty(), "{}", failed.join("; "));
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
    /// All jobs in this state
    #[arg(long, value_name = "STATE", value_parser = OPEN, conflicts_with = "jobs")]
    state: Option<String>,
    /// All jobs of this user; me is you
    #[arg(long, value_name = "NAME", conflicts_with = "jobs")]
    user: Option<String>,
    /// All jobs with a name like this: * stands for any characters, ? for one
    #[arg(long, value_name = "GLOB", conflicts_with = "jobs")]
    name: Option<String>,
    /// Do not ask first
    #[arg(short, long)]
    yes: bool,
}

impl ChosenArgs {
    /// The jobs that are meant, once the user agreed.
    fn find(&self, client: &Client, verb: &str) -> anyhow::Result<Vec<JobRef>> {
        let (state, name) = (self.state.clone(), self.name.clone());
        let which = WhichJobs { state, name, ..WhichJobs::default() }.of_user(self.user.as_deref());
        let jobs = client.jobs(&which)?.jobs;
        if jobs.is_empty() {
            output::note("no jobs that are not over match; nothing was done");
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
    anyhow::ensure!(
        input.is_terminal(),
        "{count} {word} match and nobody can be asked here; nothing was done: add --yes if you mean all of them"
    );
    output::note(&format!("{verb} {count} {word}? [y/N]"));
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    let agreed = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    anyhow::ensure!(agreed, "nothing was done");
    Ok(())
}
