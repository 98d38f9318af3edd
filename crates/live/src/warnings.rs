//! What the policy needs and is not told, and what a job asks for that nobody sees to: said when the server starts, and of
//! each job when it is submitted.

use yard_core::ids::ProfileId;
use yard_core::job::JobSpec;
use yard_core::policy::Knowledge;

use crate::driver::Config;
use crate::request::JobRequest;

/// What the policy needs of all jobs, one line for each need.
pub fn of_policy(policy: &str, needs: &[Knowledge]) -> Vec<String> {
    needs.iter().map(|need| format!("policy {policy} {}", at_start(*need))).collect()
}

fn at_start(need: Knowledge) -> &'static str {
    match need {
        Knowledge::Durations => {
            "uses the lengths of jobs: those that state none (--duration or --time) are assumed to take as long \
             as similar past jobs"
        }
        Knowledge::Progress => {
            "uses the progress of jobs: those that report no steps are assumed to progress evenly over their duration"
        }
        Knowledge::Speeds => {
            "uses speeds on each kind and size: without --throughputs or a job's training, twice the devices \
             are assumed to be twice as fast, on every kind"
        }
        Knowledge::Losses => {
            "uses the loss of jobs: those that report none are assumed to run all their steps"
        }
        Knowledge::Regimes => {
            "uses changes of speed during training: jobs without regimes are assumed to keep their speed"
        }
    }
}

/// What the policy needs and this job does not say, with the remedy. What only reports can tell is not known yet.
pub(crate) fn of_job(config: &Config, request: &JobRequest, spec: &JobSpec) -> Vec<String> {
    let policy = &config.policy;
    let lacks = |need: &&Knowledge| lacks(**need, config, request, spec);
    let told = config.needs.iter().filter(lacks).map(|need| format!("policy {policy} {}", remedy(*need)));
    told.collect()
}

fn lacks(need: Knowledge, config: &Config, request: &JobRequest, spec: &JobSpec) -> bool {
    match need {
        Knowledge::Durations => {
            request.duration_s.is_none() && request.time_limit_s.is_none() && request.training.is_none()
        }
        Knowledge::Speeds => {
            spec.shapes.len() > 1 && request.training.is_none() && !is_known(config, request)
        }
        Knowledge::Regimes => spec.regimes.is_none(),
        Knowledge::Progress | Knowledge::Losses => false,
    }
}

/// Whether the server's table has the model that it trains.
fn is_known(config: &Config, request: &JobRequest) -> bool {
    let gpus = request.gpus.or(request.min_gpus).unwrap_or(1);
    let model = request.model.as_deref();
    model.is_some_and(|model| config.catalog.profile(model, request.batch_size, gpus) != ProfileId::default())
}

fn remedy(need: Knowledge) -> &'static str {
    match need {
        Knowledge::Durations => {
            "uses the lengths of jobs and this job states none, so similar past jobs are used instead: state it \
             with --duration 2h, or --time"
        }
        Knowledge::Speeds => {
            "uses speeds on each kind and size and this job's are unknown: name its model (--model, with \
             --throughputs at the server), or describe its training (training)"
        }
        Knowledge::Regimes => {
            "uses changes of speed during training and this job states no regimes: give them, if it has any"
        }
        Knowledge::Progress | Knowledge::Losses => "goes by what jobs report",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_need_is_said_at_the_start() {
        use Knowledge::*;
        let all = [Durations, Progress, Speeds, Losses, Regimes];
        let said = of_policy("sum", &all);
        assert!(said.len() == all.len() && said.iter().all(|line| line.starts_with("policy sum uses")));
    }
}
