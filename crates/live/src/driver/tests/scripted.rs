//! The driver on a backend that is no agents: jobs run to their end, crash and start again, and go on over a restart of the
//! server. It chooses devices itself and asserts that it is never given more than it has, and nothing twice.

use expect_test::expect;
use yard_core::part::Pause;

use super::*;
use crate::exec;
use crate::exec::scripted::SCRIPT;
use crate::handle::{LogOf, LogRequest};

fn folder(script: &str) -> Arc<Scratch> {
    let dir = Arc::new(Scratch::new());
    std::fs::write(dir.path().join(SCRIPT), script).expect("a script can be written");
    dir
}

fn rig(dir: Arc<Scratch>) -> Rig {
    Rig::at(dir, |config| config.backend = exec::find("scripted").expect("it is in the table"))
}

#[tokio::test]
async fn jobs_run_to_their_end_and_never_on_more_than_there_is() {
    let rig = rig(folder("n1 a100 2\nn2 a100 1"));
    rig.until_node("n2", "up").await;
    let first = rig.submit(wide(3)).await.id;
    let more: Vec<u64> = {
        let mut ids = Vec::new();
        for _ in 0..10 {
            ids.push(rig.submit(job(0.01, 0)).await.id);
        }
        ids
    };
    let view = rig.until_state(first, "succeeded").await;
    assert_eq!((view.starts, view.exit_code), (1, Some(0)));
    for id in more {
        assert_eq!(rig.until_state(id, "succeeded").await.starts, 1);
    }
    let names: Vec<_> = rig.events_of(first, "ended").await.into_iter().map(|event| event.event).collect();
    assert_eq!(names, ["submitted", "granted", "started", "ended"]);
    assert_eq!(rig.look(|board| board.status.clone()).map(|status| status.devices_held), Some(0));
    rig.stop(&[]).await;
}

#[tokio::test]
async fn a_job_that_crashes_starts_again_until_it_has_failed_enough() {
    let rig = rig(folder("n1 a100 1"));
    rig.until_node("n1", "up").await;
    let id = rig.submit(JobRequest { max_restarts: Some(2), ..job(0.005, 7) }).await.id;
    let view = rig.until_state(id, "failed").await;
    assert_eq!((view.starts, view.failures, view.exit_code), (3, 3, Some(7)));
    let next = rig.submit(job(0.0, 0)).await.id;
    rig.until_state(next, "succeeded").await;
    let long = rig.submit(job(1_000.0, 0)).await.id;
    rig.until_state(long, "running").await;
    rig.cancel("ann", long).await.unwrap();
    rig.until_state(long, "cancelled").await;
    rig.stop(&[]).await;
}

#[tokio::test]
async fn jobs_outlive_the_server() {
    let first = rig(folder("n1 a100 2"));
    first.until_node("n1", "up").await;
    let id = first.submit(job(0.3, 0)).await.id;
    first.until_state(id, "running").await;
    let waiting = first.submit(wide(2)).await.id;
    // The server dies: what is left is what is on its disk.
    let left = crashes::copy(&first.dir);
    std::fs::copy(first.dir.path().join(SCRIPT), left.path().join(SCRIPT)).unwrap();
    let second = rig(left);
    assert_eq!(second.job(id).unwrap().state, "running");
    let view = second.until_state(id, "succeeded").await;
    assert_eq!((view.starts, view.failures), (1, 0), "it went on under its lease");
    assert_eq!(second.until_state(waiting, "succeeded").await.starts, 1);
    first.stop(&[]).await;
    second.stop(&[]).await;
}

#[tokio::test]
async fn what_the_backend_cannot_do_is_refused_with_the_reason() {
    let rig = rig(folder("n1 a100 2"));
    rig.until_node("n1", "up").await;
    let refused = async |change: fn(&mut JobRequest)| {
        let mut request = job(0.0, 0);
        change(&mut request);
        match rig.try_submit("ann", request, None).await {
            Err(Refusal::Invalid { field, message }) => (field.unwrap_or_default(), message),
            other => panic!("{other:?}"),
        }
    };
    let (field, message) = refused(|job| job.pause = Pause::Freeze).await;
    assert_eq!(field, "pause");
    expect![[r#"pause: freeze cannot be had here: jobs are run by scripted, which can pause them in these ways: auto, checkpoint, never"#]]
        .assert_eq(&message);
    let (field, message) = refused(|job| job.gpu_fraction = Some(0.5)).await;
    assert_eq!(field, "gpu_fraction");
    expect![[r#"gpu_fraction: jobs are run by scripted, which gives each device to one job alone; ask for whole ones with gpus: 1"#]]
        .assert_eq(&message);
    let (field, message) = refused(|job| job.checkpoint.signal = Some("USR1".into())).await;
    assert_eq!(field, "checkpoint");
    expect![[
        r#"checkpoint: jobs are run by scripted, which stops them in its own way; leave the signal out"#
    ]]
    .assert_eq(&message);
    let id = rig.submit(job(0.0, 0)).await.id;
    rig.until_state(id, "succeeded").await;
    let log = LogRequest { job: JobId(id), rank: 0, of: LogOf::Both, tail: None, follow: false };
    let asked = rig.handle.ask(|reply| Ask::Logs { who: who("ann"), log, reply }).await;
    let Err(Refusal::NotFound(message)) = asked else { panic!("{asked:?}") };
    assert!(message.contains("scripted"), "{message}");
    rig.stop(&[]).await;
}
