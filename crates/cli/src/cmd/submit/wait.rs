//! Waiting for a job to be over. The server may go away and come back meanwhile; the job does not mind, and neither
//! do we.

use std::time::Duration;

use yard_live::views::JobView;

use super::EXIT_WITHDRAWN;
use crate::client::{Answer, Client};
use crate::output;

/// The system failed the job.
const EXIT_SYSTEM: u8 = 4;

/// How often to look, first and at most.
const LOOKS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The job once it is over.
pub(super) fn until_over(client: &Client, job: &JobView) -> Answer<JobView> {
    let (mut pause, longest) = LOOKS;
    let (mut state, mut away) = (job.state.clone(), false);
    let mut seen = job.clone();
    while !is_over(&seen.state) {
        std::thread::sleep(pause);
        pause = (pause * 3 / 2).min(longest);
        match client.get::<JobView>(&format!("/v1/jobs/{}", job.id), &[]) {
            Ok(job) => (seen, away) = (job, false),
            Err(failure) if failure.is_passing() => {
                if !std::mem::replace(&mut away, true) {
                    output::note(&format!("{failure}; waiting for it"));
                }
            }
            Err(failure) => return Err(failure),
        }
        if seen.state != state && output::is_watched() {
            output::note(&format!("job {} is {}{}", seen.id, seen.state, because(&seen)));
        }
        state.clone_from(&seen.state);
    }
    if seen.state != "succeeded" {
        output::note(&format!("job {} {}{}", seen.id, outcome(&seen), because(&seen)));
    }
    Ok(seen)
}

fn is_over(state: &str) -> bool {
    matches!(state, "succeeded" | "failed" | "cancelled" | "rejected")
}

fn outcome(job: &JobView) -> String {
    match (job.state.as_str(), job.exit_code) {
        ("failed", Some(code)) => format!("failed with exit code {code}"),
        ("failed", None) => "failed".into(),
        (state, _) => format!("was {state}"),
    }
}

/// The reason as the rest of a sentence.
pub(super) fn because(job: &JobView) -> String {
    job.reason.as_ref().map_or_else(String::new, |reason| format!(": {}", output::plain(reason)))
}

/// The code with which `--wait` ends.
pub(super) fn exit_code(job: &JobView) -> u8 {
    match (job.state.as_str(), job.exit_code) {
        ("succeeded", _) => 0,
        ("cancelled" | "rejected", _) => EXIT_WITHDRAWN,
        ("failed", Some(code)) if code != 0 => u8::try_from(code).unwrap_or(EXIT_SYSTEM),
        _ => EXIT_SYSTEM,
    }
}
