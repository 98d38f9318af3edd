//! `sacct --json`, as Slurm 21.08 and later write it. Numbers and states changed their form over the years: a number is
//! itself or `{"set": true, "number": 5}`, a state one word or a list of words.

use serde::Deserialize;
use yard_core::Time;

use super::super::super::TraceError;
use super::super::super::bytes::Text;
use super::super::super::jobs::TraceJobs;
use super::super::super::table::MAX_SECONDS;
use super::tres::{self, GpuRequest, TresCount};
use super::{SlurmRun, SlurmRuns};

#[derive(Deserialize)]
struct SacctListing {
    jobs: Vec<SacctJob>,
}

#[derive(Deserialize)]
struct SacctJob {
    job_id: u64,
    #[serde(default)]
    array: SacctArray,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    account: Option<String>,
    state: SacctState,
    time: SacctTimes,
    tres: SacctTres,
}

#[derive(Default, Deserialize)]
struct SacctArray {
    #[serde(default)]
    job_id: u64,
    #[serde(default)]
    task_id: Option<SacctNumber>,
}

#[derive(Deserialize)]
struct SacctState {
    current: OneOrMany,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
struct SacctTimes {
    submission: SacctNumber,
    #[serde(default)]
    eligible: Option<SacctNumber>,
    #[serde(default)]
    elapsed: Option<SacctNumber>,
}

#[derive(Deserialize)]
struct SacctTres {
    #[serde(default)]
    allocated: Vec<SacctResource>,
    #[serde(default)]
    requested: Vec<SacctResource>,
}

#[derive(Deserialize)]
struct SacctResource {
    #[serde(rename = "type")]
    class: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    count: f64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum SacctNumber {
    Plain(f64),
    Wrapped {
        #[serde(default)]
        set: bool,
        #[serde(default)]
        number: f64,
    },
}

impl SacctNumber {
    fn get(self) -> Option<f64> {
        match self {
            SacctNumber::Plain(number) => Some(number),
            SacctNumber::Wrapped { set, number } => set.then_some(number),
        }
    }
}

pub(super) fn read(text: Text<'_>, runs: &mut SlurmRuns, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let file = text.file.to_owned();
    let listing: SacctListing = serde_json::from_slice(text.bytes)
        .map_err(|source| TraceError::Json { file: file.clone(), source })?;
    for (element, job) in listing.jobs.iter().enumerate() {
        let run = job.run(element as u64 + 1);
        let run = run.map_err(|problem| TraceError::Element { file: file.clone(), element, problem })?;
        runs.add(run, jobs);
    }
    Ok(())
}

impl SacctJob {
    fn run(&self, line: u64) -> Result<SlurmRun, String> {
        let text = |word: &Option<String>| word.clone().unwrap_or_default();
        let state = match &self.state.current {
            OneOrMany::One(state) => state.clone(),
            OneOrMany::Many(states) => states.first().cloned().unwrap_or_default(),
        };
        Ok(SlurmRun {
            name: self.name(),
            user: text(&self.user),
            account: text(&self.account),
            state,
            eligible: self.eligible()?,
            elapsed_s: seconds("elapsed", self.time.elapsed)?.unwrap_or(0.0),
            gpus: self.gpus()?,
            line,
        })
    }

    /// As the other form writes it: a task of an array is `ARRAY_TASK`.
    fn name(&self) -> String {
        let task = self.array.task_id.and_then(SacctNumber::get).filter(|_| self.array.job_id > 0);
        task.map_or(self.job_id.to_string(), |task| format!("{}_{task}", self.array.job_id))
    }

    fn eligible(&self) -> Result<Option<Time>, String> {
        let at = self.time.eligible.unwrap_or(self.time.submission);
        Ok(seconds("eligible", Some(at))?.filter(|at| *at > 0.0).map(Time::from_secs))
    }

    fn gpus(&self) -> Result<GpuRequest, String> {
        let (had, asked) = (gpus_of(&self.tres.allocated)?, gpus_of(&self.tres.requested)?);
        Ok(GpuRequest { count: if had.count > 0 { had.count } else { asked.count }, kind: asked.kind })
    }
}

fn seconds(what: &str, number: Option<SacctNumber>) -> Result<Option<f64>, String> {
    match number.and_then(SacctNumber::get) {
        Some(number) if !(0.0..=MAX_SECONDS).contains(&number) => {
            Err(format!("time.{what} {number} is not a number of seconds from 0 up"))
        }
        number => Ok(number),
    }
}

fn gpus_of(resources: &[SacctResource]) -> Result<GpuRequest, String> {
    let gres = resources.iter().filter(|resource| resource.class == "gres");
    tres::total(gres.filter_map(|resource| {
        let name = resource.name.as_deref().filter(|name| name.starts_with("gpu"))?;
        Some(TresCount { name, count: resource.count })
    }))
}
