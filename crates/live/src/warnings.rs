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
            "goes by how long jobs take: those that do not say (--duration or --time) are taken to last as long as past jobs like them"
        }
        Knowledge::Progress => {
            "goes by how far jobs are: those that do not report their steps are taken to be as far as their duration says"
        }
        Knowledge::Speeds => {
            "goes by speeds on each kind and size: where neither --throughputs nor a job's training says them, twice the devices are taken for twice the speed, on every kind"
        }
        Knowledge::Losses => {
            "goes by how losses fall: jobs that do not report theirs are taken to do all the steps they state"
        }
        Knowledge::Regimes => {
            "goes by how speeds change as jobs train: those that do not say (regimes) are taken not to change"
        }
    }
}

/// What the policy needs and this job does not say, with the remedy. What only reports can tell is not known yet.
pub(crate) fn of_job(config: &Config, request: &JobRequest, spec: &JobSpec) -> Vec<String> {
    let policy = &config.policy;
    let lacks = |need: &&Knowledge| lacks(**need, config, request, spec);
    let told = config.needs.iter().filter(lacks).map(|need| format!("policy {policy} {}", remedy(*need)));
    told.chain(spread(request)).collect()
}

/// A number of nodes that nobody sees to.
fn spread(request: &JobRequest) -> Option<String> {
    let nodes = request.nodes.filter(|nodes| *nodes > 1)?;
    Some(format!(
        "nodes: {nodes} is not enforced: a job is spread over as few nodes as there can be; only 1 is"
    ))
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
            "goes by the length of jobs and this job states none, so that past jobs like it count: say how long it takes (--duration 2h, or --time)"
        }
        Knowledge::Speeds => {
            "goes by speeds on each kind and size and nothing is known of this job's: name its model (--model, with --throughputs at the server), or say how it trains (training)"
        }
        Knowledge::Regimes => {
            "goes by how the speed of jobs changes and this job does not say: name its regimes, if it has any"
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
        assert!(said.len() == all.len() && said.iter().all(|line| line.starts_with("policy sum goes by")));
    }
}
