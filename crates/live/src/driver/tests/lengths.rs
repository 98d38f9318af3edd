//! Jobs of which nobody says how long they take.

use yard_core::part::{How, Told};

use super::*;

fn train() -> JobRequest {
    JobRequest { name: Some("train".into()), ..job(0.0, 0) }
}

#[tokio::test]
async fn a_length_that_nobody_stated_is_unknown_then_predicted_and_still_is_after_a_restart() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    for ended in 0..3 {
        let id = rig.submit(train()).await.id;
        let part = agent.start().await;
        agent.tell(part, Told::Started).await;
        let length = rig.until_state(id, "running").await.length.expect("nobody stated it");
        assert_eq!((length.jobs, length.seconds.is_some()), (ended, ended > 0), "{length:?}");
        agent.end(part, How::Finished, Some(0)).await;
        agent.forget_of(part).await;
        assert_eq!(rig.until_state(id, "succeeded").await.length, None, "it is over");
    }
    let predicted = |board: &Board| {
        let length = board.jobs.get(&3).and_then(|job| job.length.clone());
        length.is_some_and(|length| (length.alike.as_str(), length.jobs) == ("name", 3))
    };
    rig.submit(train()).await;
    rig.until("predicted by its name", predicted).await;
    let stated = rig.submit(JobRequest { duration_s: Some(60.0), ..train() }).await.id;
    rig.until_state(stated, "pending").await;
    assert_eq!(rig.job(stated).and_then(|job| job.length), None);
    let dir = rig.stop(&["n1"]).await;
    let rig = Rig::at(dir, |_| ());
    rig.until("predicted after a restart", predicted).await;
}
