use yard_core::ids::JobId;

use super::*;
use crate::replay::JOBS_MAX;
use crate::replay::testing::{Endless, WAIT_S};
use crate::store::Facts;

pub(super) fn recorded(jobs: &[JobView], from: Time, to: Time, limit: usize) -> Vec<JobRow> {
    let row = |view: &JobView| JobRow {
        id: JobId(view.id),
        user: view.user.clone(),
        submitted: Time::from_secs(view.submitted_at),
        request: JobRequest {
            command: vec!["true".into()],
            tenant: view.tenant.clone(),
            ..JobRequest::default()
        },
        facts: Facts::default(),
        summary: Some(view.clone()),
    };
    let there = |job: &&JobView| {
        let ended = job.ended_at.unwrap_or(f64::MAX);
        Time::from_secs(job.submitted_at) < to && Time::from_secs(ended) > from
    };
    jobs.iter().filter(there).map(row).take(limit).collect()
}

/// Ada has two jobs in the history, one for a team, and bob one; each waited 100 s and ran 200.
pub(super) fn world() -> World {
    let world = World::new();
    let over = |id, user: &str, tenant: Option<&str>| JobView {
        tenant: tenant.map(str::to_owned),
        submitted_at: 9_000.0,
        started_at: Some(9_100.0),
        ended_at: Some(9_300.0),
        executed_s: 200.0,
        starts: 1,
        kind: Some("h100".into()),
        ..job(id, user, "succeeded")
    };
    *world.past.jobs.lock().unwrap() =
        vec![over(1, "ada", None), over(2, "ada", Some("vision")), over(3, "bob", Some("vision"))];
    world
}

async fn ask(world: &World, token: &str, body: &str) -> Answered {
    world.call("POST", "/v1/what-if/history", Some(token), body).await
}

#[tokio::test]
async fn everybody_sees_totals_and_only_admins_all_teams() {
    let world = world();
    let body =
        r#"{"history_s":3600,"alternatives":[{"policy":"srtf","add":["h100:2x2"]},{"remove":["node-2"]}]}"#;
    let all = [("ada", 1), ("vision", 2)];
    let own = [("ada", 1), ("vision", 1)];
    for (token, teams) in [
        (&world.admin, &all[..]),
        (&world.ada, &own[..]),
        (&world.looker, &own[..]),
        (&world.bob, &[("vision", 1)][..]),
    ] {
        let told = ask(&world, token, body).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.body);
        let told = told.json();
        let rows = [&told["recorded"], &told["baseline"], &told["alternatives"][0], &told["alternatives"][1]];
        for (row, wait, devices) in [
            (rows[0], 100.0, 4),
            (rows[1], WAIT_S / 4.0, 4),
            (rows[2], WAIT_S / 8.0, 8),
            (rows[3], WAIT_S / 2.0, 2),
        ] {
            assert_eq!((&row["run"]["jobs"], &row["run"]["avg_queue_s"]), (&3.into(), &wait.into()));
            assert_eq!(row["run"]["devices"], devices);
            let named = row["teams"].as_array().unwrap().iter();
            let named: Vec<_> =
                named.map(|team| (team["team"].as_str().unwrap(), team["jobs"].as_u64().unwrap())).collect();
            assert_eq!(named, teams);
        }
        assert_eq!(rows[1]["against_baseline"], Value::Null);
        assert_eq!(rows[2]["against_baseline"]["avg_queue_s"], WAIT_S / 8.0 - WAIT_S / 4.0);
        assert_eq!(rows[2]["teams"][0]["against_baseline"]["avg_queue_s"], WAIT_S / 8.0 - WAIT_S / 4.0);
        assert_eq!(
            (&rows[2]["label"], &rows[2]["run"]["cluster"]),
            (&"srtf, with h100:2x2".into(), &"h100:4x2".into())
        );
        let window = &told["window"];
        assert_eq!(
            (&window["jobs"], &window["from"], &window["to"]),
            (&3.into(), &6_400.0.into(), &10_000.0.into())
        );
        assert!(told["notes"].to_string().contains("down now are left out: old"), "{}", told["notes"]);
    }
    assert_eq!(world.call("POST", "/v1/what-if/history", None, body).await.status, StatusCode::UNAUTHORIZED);
    let detail = r#"{"history_s":3600,"detail":true}"#;
    assert_eq!(ask(&world, &world.ada, detail).await.status, StatusCode::FORBIDDEN);
    assert_eq!(ask(&world, &world.admin, detail).await.status, StatusCode::OK);
    assert!(world.heard.lock().unwrap().is_empty(), "nothing was submitted");
}

#[tokio::test]
async fn mistakes_are_named_before_anything_is_simulated() {
    let world = world();
    for (body, field, says) in [
        (r#"{}"#, "history_s", "give the period"),
        (r#"{"history_s":60,"from":5}"#, "history_s", "give the period"),
        (r#"{"history_s":-1}"#, "history_s", "0 or more"),
        (r#"{"history_s":0}"#, "history_s", "choose an earlier start"),
        (r#"{"from":9000,"to":8000}"#, "from", "choose an earlier start"),
        (r#"{"history_s":3600,"days":1}"#, "days", "unknown field"),
        (r#"{"history_s":3600,"prices":{"h100":-1}}"#, "prices", "dollars"),
        (r#"{"history_s":3600,"alternatives":[{"policy":"srft"}]}"#, "policy", "srtf"),
        (r#"{"history_s":3600,"alternatives":[{"policy":"las","round_s":0}]}"#, "round_s", "above 0"),
        (r#"{"history_s":3600,"alternatives":[{"round_s":-5}]}"#, "round_s", "from 0"),
        (r#"{"history_s":3600,"alternatives":[{"add":["h100"]}]}"#, "add", "NODESxGPUS"),
        (r#"{"history_s":3600,"alternatives":[{"add":["h100:99999999x1"]}]}"#, "add", "more than"),
        (r#"{"history_s":3600,"alternatives":[{"add":["/etc/passwd"]}]}"#, "add", "NODESxGPUS"),
        (
            r#"{"history_s":3600,"alternatives":[{"remove":["nod-1"]}]}"#,
            "remove",
            "there are: node-1, node-2",
        ),
        (
            r#"{"history_s":3600,"alternatives":[{"remove":["node-1","node-2"]}]}"#,
            "remove",
            "no node would be left",
        ),
        (r#"{"history_s":3600,"alternatives":[{},{},{},{},{},{},{},{},{}]}"#, "alternatives", "at most 8"),
    ] {
        let told = ask(&world, &world.ada, body).await;
        let got = (told.status, told.field().unwrap_or_default());
        assert_eq!(got, (StatusCode::BAD_REQUEST, field.to_owned()), "{body}: {}", told.body);
        assert!(told.body.contains(says), "{body}: {}", told.body);
    }
    let nothing = ask(&world, &world.ada, r#"{"history_s":60}"#).await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
    assert!(nothing.body.contains("no job was submitted"), "{}", nothing.body);
}

#[tokio::test]
async fn few_questions_at_a_time_and_not_about_too_many_jobs() {
    let world = world();
    let turns: Vec<_> = (0..4).map(|_| world.site.asking.turn("ada").ok()).collect();
    let body = r#"{"history_s":3600}"#;
    assert_eq!(ask(&world, &world.ada, body).await.status, StatusCode::TOO_MANY_REQUESTS);
    drop(turns);
    assert_eq!(ask(&world, &world.ada, body).await.status, StatusCode::OK);
    let other = world.site.asking.turn("eve").ok();
    let past = other.as_ref().map(|turn| turn.past().ok());
    let busy = ask(&world, &world.ada, body).await;
    assert_eq!(
        (busy.status, busy.headers["retry-after"].to_str().ok()),
        (StatusCode::TOO_MANY_REQUESTS, Some("10"))
    );
    drop((past, other));
    assert_eq!(ask(&world, &world.ada, body).await.status, StatusCode::OK);
    let many = world.past.jobs.lock().unwrap()[0].clone();
    *world.past.jobs.lock().unwrap() = vec![many; JOBS_MAX + 1];
    let told = ask(&world, &world.ada, body).await;
    assert_eq!((told.status, told.field()), (StatusCode::BAD_REQUEST, Some("history_s".into())));
    assert!(told.body.contains("yard trace export"), "{}", told.body);
}

#[tokio::test]
async fn what_takes_too_long_is_given_up_and_so_is_what_nobody_waits_for() {
    let mut world = world();
    let short = Duration::from_millis(100);
    let site = |patience| ApiSite { patience, replayer: Arc::new(Endless), ..super::flood::quick(&world) };
    let (hasty, patient) = (Arc::new(site(short)), Arc::new(site(Duration::from_secs(600))));
    world.router = router(hasty.clone());
    let body = r#"{"history_s":3600,"alternatives":[{"policy":"srtf"}]}"#;
    let told = ask(&world, &world.ada, body).await;
    assert_eq!((told.status, told.field()), (StatusCode::BAD_REQUEST, Some("history_s".into())));
    assert!(told.body.contains("1 of 6 jobs") && told.body.contains("shorter"), "{}", told.body);
    free_again(&hasty).await;
    world.router = router(patient.clone());
    assert!(tokio::time::timeout(short, ask(&world, &world.ada, body)).await.is_err(), "who asked went away");
    free_again(&patient).await;
}

/// Waits until the work of a question has stopped: its place is free again.
async fn free_again(site: &ApiSite) {
    let free = || site.asking.turn("ada").and_then(|turn| turn.past().map(drop)).is_ok();
    while !free() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
