//! Attacks with a submit token: a job says of itself that it is heavy, urgent, guaranteed, or somebody else's.

use super::*;

fn with(extra: &str) -> String {
    format!(r#"{{"command":["true"],{extra}}}"#)
}

#[tokio::test]
async fn a_submit_token_asks_for_no_more_than_everybody_may() {
    let world = World::new();
    for (extra, field, allowed) in [
        (r#""weight":1000000"#, "weight", "the limit of your token, 1"),
        (r#""class":"guaranteed""#, "class", "it allows ordinary, opportunistic"),
        (r#""priority":100"#, "priority", "the limit of your token, 0"),
        (r#""tenant":"vision""#, "tenant", "leave out tenant"),
    ] {
        let what_if = format!(r#"{{"job":{}}}"#, with(extra));
        for (path, body) in [("/v1/jobs", with(extra)), ("/v1/what-if", what_if)] {
            let refused = world.call("POST", path, Some(&world.bob), &body).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path} {extra}: {}", refused.body);
            assert_eq!(refused.field().as_deref(), Some(field));
            assert!(refused.body.contains(allowed), "{}", refused.body);
        }
        let admin = world.call("POST", "/v1/jobs", Some(&world.admin), &with(extra)).await;
        assert_eq!(admin.status, StatusCode::CREATED, "admins have no limits: {}", admin.body);
    }
    for extra in [r#""priority":-100"#, r#""weight":0.1"#, r#""class":"opportunistic""#] {
        let taken = world.call("POST", "/v1/jobs", Some(&world.bob), &with(extra)).await;
        assert_eq!(taken.status, StatusCode::CREATED, "{extra}: {}", taken.body);
    }
    let heard = world.heard.lock().unwrap();
    assert_eq!(heard.iter().filter(|said| said.starts_with("submit bob")).count(), 3, "{heard:?}");
}

#[tokio::test]
async fn a_token_carries_what_its_user_may_ask_for() {
    let world = World::new();
    let body = r#"{"user":"eve","scope":"submit","teams":["vision","nlp"],"weight_max":4,"priority_max":10,
        "classes":["ordinary","guaranteed"]}"#;
    let made = world.call("POST", "/v1/tokens", Some(&world.admin), body).await.json();
    let limits = serde_json::json!({
        "teams": ["vision", "nlp"], "weight_max": 4.0, "priority_max": 10, "classes": ["ordinary", "guaranteed"]
    });
    assert_eq!(made["limits"], limits);
    let eve = made["secret"].as_str().unwrap();
    assert_eq!(world.get("/v1/me", eve).await.json()["limits"], limits);
    assert_eq!(world.get("/v1/tokens", eve).await.json()["tokens"][0]["limits"], limits);
    assert!(world.get("/v1/me", &world.admin).await.json()["limits"].is_null());
    let most = with(r#""weight":4,"priority":10,"class":"guaranteed","tenant":"nlp""#);
    assert_eq!(world.call("POST", "/v1/jobs", Some(eve), &most).await.status, StatusCode::CREATED);
    let plain = world.call("POST", "/v1/jobs", Some(eve), &with(r#""gpus":1"#)).await.json();
    let shown = world.get(&format!("/v1/jobs/{}", plain["id"]), eve).await.json();
    assert_eq!(shown["request"]["tenant"], "vision", "the first team is written into the job");
    let again = Tokens::open(&world.scratch.path().join("yard.db")).unwrap();
    assert_eq!(serde_json::to_value(&again.list(Some("eve"))[0].limits).unwrap(), limits, "over restarts");
}

#[tokio::test]
async fn a_job_is_killed_when_that_is_asked_for() {
    let world = World::new();
    let kill = |token| world.call("POST", "/v1/jobs/2/cancel", Some(token), r#"{"force":true}"#);
    assert_eq!(kill(&world.bob).await.status, StatusCode::NOT_FOUND);
    assert_eq!(kill(&world.ada).await.status, StatusCode::OK);
    assert_eq!(world.heard.lock().unwrap().as_slice(), ["kill ada 2 None"]);
}

#[tokio::test]
async fn an_edit_asks_for_no_more_than_the_token_allows() {
    let world = World::new();
    let edit = async |body: &str| world.call("POST", "/v1/jobs/2/edit", Some(&world.ada), body).await;
    for (body, field) in [(r#"{"priority":1}"#, "priority"), (r#"{"weight":2.0}"#, "weight")] {
        let answer = edit(body).await;
        assert_eq!(
            (answer.status, answer.field().as_deref()),
            (StatusCode::FORBIDDEN, Some(field)),
            "{body}"
        );
    }
    for body in ["{}", r#"{"gpus":4}"#, r#"{"name":5}"#] {
        assert_eq!(edit(body).await.status, StatusCode::BAD_REQUEST, "{body}");
    }
    assert!(world.heard.lock().unwrap().is_empty(), "nothing reached the driver");
    assert_eq!(edit(r#"{"priority":-1,"deadline":null}"#).await.status, StatusCode::OK);
    assert!(world.heard.lock().unwrap()[0].starts_with("ada 2 Edit("));
}
