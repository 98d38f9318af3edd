//! Every field of a request has an effect: on the job as the engine takes it, on the process as its agent starts it, or
//! it is refused. A new field does not compile here until it is shown to have one.

use super::*;
use crate::request::{Checkpoint, Ranks, RegimeRequest, RewardRequest, TrainingRequest};
use crate::secrets::Secrets;
use crate::wire::{Handed, SecretValue};
use yard_core::cluster::Level;
use yard_core::job::{Claim, Late};
use yard_core::part::Pause;

/// What a field is changed to.
type Change = (&'static str, fn(&mut JobRequest));

/// A change of each field; all of them, or it does not compile.
macro_rules! changes {
    ($($field:ident: $value:expr),* $(,)?) => {{
        let JobRequest { $($field: _),* } = JobRequest::default();
        let all: Vec<Change> = vec![$((stringify!($field), |job| job.$field = $value)),*];
        all
    }};
}

fn changes() -> Vec<Change> {
    changes! {
        name: Some("other".into()),
        command: vec!["false".into()],
        env: [("A".to_owned(), "b".to_owned())].into(),
        secrets: [("KEY".to_owned(), Handed::Env)].into(),
        workdir: Some("/elsewhere".into()),
        gpus: Some(1),
        min_gpus: Some(1),
        max_gpus: Some(4),
        kinds: vec!["h100".into()],
        nodes: Some(1),
        segment: Some(2),
        close: Some(Level::Node),
        prefer: Some(Level::Node),
        tasks_per_node: Some(3),
        ranks: Ranks::Device,
        tenant: Some("vision".into()),
        weight: Some(0.5),
        priority: 3,
        deadline: Some(5e9),
        late: Some(Late::Refuse),
        rewards: vec![RewardRequest { by: 4e9, worth: 2.0 }, RewardRequest { by: 5e9, worth: 1.0 }],
        begin: Some(3e9),
        after: vec![99],
        time_limit_s: Some(500.0),
        duration_s: Some(61.0),
        model: Some("ResNet-50".into()),
        batch_size: Some(64),
        training: Some(TrainingRequest { batch: 64, steps: 1000, ..TrainingRequest::default() }),
        regimes: [(32, 0.1), (64, 0.2)].map(|(batch, step_s)| RegimeRequest { batch, step_s }).to_vec(),
        max_restarts: Some(7),
        pause: Pause::Never,
        checkpoint: Checkpoint { grace_s: Some(7.0), ..Checkpoint::default() },
        output: Some("%j.out".into()),
        error: Some("%j.err".into()),
        memory_mib: Some(512),
        cpus: Some(1.5),
        resources: [("licence".to_owned(), 1)].into(),
        exclusive: true,
        gpu_fraction: Some(0.5),
        gpu_limit: Some(0.5),
        gpu_memory_mib: Some(1024),
        class: Claim::Opportunistic,
        max_slowdown: Some(0.5),
        affinity: Some("word".into()),
        anti_affinity: Some("word".into()),
        exclusion: Some("word".into()),
    }
}

/// A job that says as little as it can, so that each field can be changed by itself.
fn plain() -> JobRequest {
    JobRequest {
        command: vec!["true".into()],
        gpus: Some(2),
        deadline: Some(4e9),
        duration_s: Some(60.0),
        ..JobRequest::default()
    }
}

/// The job as the engine takes it, or why it is refused.
async fn taken(rig: &Rig, request: JobRequest) -> Result<String, String> {
    let id = rig.try_submit("ann", request, None).await.map_err(|refusal| refusal.to_string())?.id;
    let view = rig.handle.ask(|reply| Ask::View { reply }).await.expect("the driver answers");
    let row = (0..).zip(&*view.runs).find(|(_, run)| run.id == JobId(id)).expect("it is there").0;
    Ok(format!("{:?}", view.spec(yard_core::ids::JobIdx(row))))
}

async fn rig() -> (Rig, Agent) {
    let rig = Rig::new();
    let secrets = Secrets::open(rig.dir.path()).expect("a folder for secrets");
    secrets.set("ann", "KEY", &SecretValue("value".into())).expect("it is kept");
    let agent = Agent::join(&rig.handle, "n1", &[("a100", 4), ("h100", 4)]).await;
    (rig, agent)
}

/// What its agent is told to start. The number of the part is the same in every rig.
async fn started(rig: &Rig, agent: &mut Agent, request: JobRequest) -> String {
    rig.submit(request).await;
    let part = agent.start().await;
    let (start, task) = &agent.tasks[&part];
    format!("{start:?} {task:?}")
}

#[tokio::test]
async fn every_field_of_a_request_has_an_effect() {
    let (usual, mut agent) = rig().await;
    let spec = taken(&rig().await.0, plain()).await;
    let process = started(&usual, &mut agent, plain()).await;
    for (field, change) in changes() {
        let mut request = plain();
        change(&mut request);
        let (other, _) = rig().await;
        if taken(&other, request.clone()).await != spec {
            continue;
        }
        let (other, mut agent) = rig().await;
        assert_ne!(started(&other, &mut agent, request).await, process, "{field} changes nothing");
    }
}
