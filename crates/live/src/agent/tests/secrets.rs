//! Secrets that jobs are handed.

use std::path::Path;

use super::*;
use crate::wire::{Handed, SecretValue, TaskSecret};

/// What must be nowhere but with the job.
const IN_ENV: &str = "env-secret-5b1f";
const IN_FILE: &str = "file-secret-93ac";

fn secret(name: &str, handed: Handed, value: &str) -> TaskSecret {
    TaskSecret { name: name.into(), handed, value: SecretValue(value.into()) }
}

/// A task of this test with one secret of each sort.
fn with_secrets(task: Task) -> Task {
    let secrets = vec![secret("API_KEY", Handed::Env, IN_ENV), secret("key.pem", Handed::File, IN_FILE)];
    Task { secrets, ..task }
}

/// The files below a folder that contain a secret.
fn leaks(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(leaks(&entry.path()));
        } else if kind.is_file() {
            let text = std::fs::read(entry.path()).unwrap_or_default();
            let has = |secret: &str| text.windows(secret.len()).any(|part| part == secret.as_bytes());
            found.extend((has(IN_ENV) || has(IN_FILE)).then(|| entry.path()));
        }
    }
    found
}

#[tokio::test]
async fn a_job_sees_its_secrets_and_no_disk_does() {
    let mut stage = Stage::new("h100:1").await;
    // It compares them piece by piece: its command is on file.
    let script = "file=$(cat $YARD_SECRETS_DIR/key.pem)
        [ \"${API_KEY%-*} ${API_KEY##*-}\" = 'env-secret 5b1f' ] || exit 7
        [ \"${file%-*} ${file##*-}\" = 'file-secret 93ac' ] || exit 8
        echo $YARD_SECRETS_DIR > up; while [ ! -e go ]; do sleep 0.01; done";
    stage.run(start(1, 1), with_secrets(stage.script(script)));
    let folder = stage.read("up").await;
    assert_eq!(leaks(stage.folder.path()), Vec::<std::path::PathBuf>::new());
    std::fs::write(stage.folder.path().join("go"), "").unwrap();
    let (_, ending) = stage.ended().await;
    assert_eq!((ending.how, ending.code), (How::Finished, Some(0)));
    assert_eq!(leaks(stage.folder.path()), Vec::<std::path::PathBuf>::new());
    let left = std::fs::read_dir(&folder).map_or(0, |files| files.count());
    assert_eq!(left, 0, "{folder}");
}

#[tokio::test]
async fn secrets_that_went_with_an_agent_fail_the_start_and_nothing_runs_without_them() {
    let mut stage = Stage::new("h100:2").await;
    let mut gang = start(1, 1);
    // The ranks' meeting place is not known yet, so the agent dies between the order and the start.
    (gang.ranks.world, gang.ranks.nodes) = (2, 2);
    stage.run(gang, with_secrets(stage.script("echo > ran")));
    stage.told(|told| matches!(told, Told::Ready { .. }).then_some(())).await;
    // With this one what was decided comes on file.
    stage.run(on_device(start(2, 2), 1), stage.script("true"));
    stage.ended().await;
    stage.kill_agent().await;
    stage.begin("h100:2").await;
    let master = yard_core::part::Master { address: "127.0.0.1".into(), port: 1 };
    stage.order(Order::Go { part: part(1, 1), master }, None);
    let (_, ending) = stage.ended().await;
    assert_eq!(ending.how, How::Refused, "{ending:?}");
    assert!(ending.message.unwrap().contains("secrets"));
    assert!(!stage.folder.path().join("ran").exists());
}
