//! A cluster whose agents run jobs of one user only.

use yard_core::part::How;

use super::*;
use crate::what_if::WhatIf;
use crate::wire::OnlyUser;

/// An agent that runs jobs of Ada only.
fn of_ada(name: &str) -> Agent {
    let mut agent = Agent::new(name, &[("a100", 1)]);
    let why = "its agent does not run as root".to_owned();
    agent.hello.abilities.only_user = Some(OnlyUser { name: "ada".into(), why });
    agent
}

#[tokio::test]
async fn others_are_refused_at_submission_with_the_reason() {
    let placer: crate::MakePlacer = Arc::new(|| yard_policies::placers::placer("pack").unwrap());
    let rig = Rig::with(|config| config.estimates = Some(crate::Estimating { every: Span(1_000), placer }));
    let mut agent = of_ada("n1");
    agent.connect(&rig.handle).await.unwrap();
    let refused = rig.try_submit("ann", job(0.0, 0), None).await.unwrap_err();
    let Refusal::Forbidden(said) = &refused else { panic!("{refused:?}") };
    assert!(
        said.starts_with("This cluster runs only jobs of ada: its agent does not run as root."),
        "{said}"
    );
    let asked = Box::new(WhatIf { job: Some(job(0.0, 0)), ..WhatIf::default() });
    let asked = rig.handle.ask(|reply| Ask::WhatIf { who: who("ann"), asked, reply }).await;
    assert_eq!(asked.err(), Some(refused), "and a question is answered the same");
    rig.try_submit("ada", job(0.0, 0), None).await.unwrap();
    agent.disconnect().await;
    rig.until_node("n1", "unreachable").await;
    rig.try_submit("ann", job(0.0, 0), None).await.unwrap();
}

#[tokio::test]
async fn agents_of_one_user_and_of_everybody_do_not_mix() {
    let rig = Rig::new();
    Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let refused = of_ada("n2").connect(&rig.handle).await.unwrap_err().to_string();
    assert!(refused.contains("node n2 runs only jobs of ada") && refused.contains("node n1"), "{refused}");
    let rig = Rig::new();
    of_ada("n1").connect(&rig.handle).await.unwrap();
    of_ada("n2").connect(&rig.handle).await.unwrap();
    let mut everybody = Agent::new("n3", &[("a100", 1)]);
    assert!(everybody.connect(&rig.handle).await.is_err());
}

/// A node that was root's says that it is of one user, before any other is back.
#[tokio::test]
async fn who_nodes_run_jobs_for_is_remembered_over_a_restart() {
    let rig = Rig::new();
    for name in ["n1", "n2"] {
        Agent::join(&rig.handle, name, &[("a100", 1)]).await;
    }
    let rig = Rig::at(rig.stop(&[]).await, |_| ());
    let changed = of_ada("n2").connect(&rig.handle).await.unwrap_err().to_string();
    assert!(changed.contains("yard nodes rm n2"), "{changed}");
    assert!(of_ada("n3").connect(&rig.handle).await.is_err(), "nor does a new one decide");
    let mut back = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let part = back.start_running().await;
    back.end(part, How::Finished, Some(0)).await;
    rig.until_state(id, "succeeded").await;
    // An admin may have it so.
    rig.remove("n1").await.unwrap();
    rig.remove("n2").await.unwrap();
    of_ada("n3").connect(&rig.handle).await.unwrap();
    let rig = Rig::at(rig.stop(&[]).await, |_| ());
    assert!(Agent::new("n1", &[("a100", 1)]).connect(&rig.handle).await.is_err());
    of_ada("n3").connect(&rig.handle).await.unwrap();
}
