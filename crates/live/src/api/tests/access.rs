use super::*;
use crate::clock::now_us;

/// These say nothing private, or ask for a secret of their own.
const PUBLIC: [&str; 5] = ["/", "/assets/{file}", "/healthz", "/readyz", "/v1/openapi.json"];

pub(super) async fn routes(world: &World) -> Vec<(String, String)> {
    let document = world.call("GET", "/v1/openapi.json", None, "").await.json();
    let paths = document["paths"].as_object().unwrap().clone();
    let each = |(path, methods): (String, Value)| {
        let methods: Vec<String> =
            methods.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        methods.into_iter().map(move |method| (method, path.clone()))
    };
    paths.into_iter().flat_map(each).collect()
}

pub(super) fn concrete(path: &str) -> String {
    path.replace("{id}", "2").replace("{name}", "node-1").replace("{file}", "app.js")
}

/// A body that would be accepted, so that only the token is at fault.
pub(super) fn body(path: &str) -> String {
    match path {
        "/v1/jobs" => train("fine"),
        "/v1/what-if" => format!(r#"{{"job":{}}}"#, train("fine")),
        "/v1/what-if/history" => r#"{"history_s":60}"#.into(),
        "/v1/nodes/drain" => r#"{"kind":"h100","count":1}"#.into(),
        "/v1/tokens" => r#"{"scope":"admin"}"#.into(),
        "/v1/jobs/{id}/edit" => r#"{"name":"new"}"#.into(),
        "/v1/join" => r#"{"name":"node-1","csr":"","token":null}"#.into(),
        "/v1/secrets/{name}" => r#"{"value":"x"}"#.into(),
        _ => String::new(),
    }
}

#[tokio::test]
async fn each_route_refuses_who_has_no_good_token() {
    let world = World::new();
    let expired =
        world.site.tokens.create("ada", Scope::Admin, Some(now_us() - 1), "root", "").unwrap().secret;
    let revoked = world.site.tokens.create("ada", Scope::Admin, None, "root", "").unwrap();
    world.site.tokens.revoke(&revoked.token.id, None, "root").unwrap();
    let wrong = format!("yard_{}", "0".repeat(80));
    let bad = [
        None,
        Some(wrong.as_str()),
        Some(&expired),
        Some(&revoked.secret),
        Some(&world.join),
        Some("nonsense"),
    ];
    let mut refused = 0;
    for (method, path) in routes(&world).await {
        if PUBLIC.contains(&path.as_str()) {
            continue;
        }
        for token in bad {
            let answer = world.call(&method, &concrete(&path), token, &body(&path)).await;
            let denied = [StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS, StatusCode::FORBIDDEN];
            assert!(denied.contains(&answer.status), "{method} {path} with {token:?}: {}", answer.status);
            assert!(answer.json()["error"].as_str().unwrap().len() > 10);
            refused += 1;
        }
    }
    assert!(refused >= 17 * bad.len(), "{refused} tried");
    let none = world.call("GET", "/v1/jobs", None, "").await;
    assert_eq!(none.status, StatusCode::UNAUTHORIZED);
    assert_eq!(none.headers["www-authenticate"], "Bearer");
    assert!(world.heard.lock().unwrap().is_empty(), "nothing reached the driver");
}

#[tokio::test]
async fn a_token_in_the_address_is_no_token() {
    let world = World::new();
    let answer = world.call("GET", &format!("/v1/status?token={}", world.admin), None, "").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn others_jobs_do_not_exist_whatever_is_asked_of_them() {
    let world = World::new();
    for (method, path) in
        routes(&world).await.into_iter().filter(|(_, path)| path.starts_with("/v1/jobs/{id}"))
    {
        for id in ["1", "2"] {
            let theirs = world.call(&method, &path.replace("{id}", id), Some(&world.bob), "").await;
            let missing = world.call(&method, &path.replace("{id}", "99"), Some(&world.bob), "").await;
            assert_eq!(theirs.status, StatusCode::NOT_FOUND, "{method} {path}");
            assert_eq!(
                theirs.body.replace(&format!("job {id};"), "job 99;"),
                missing.body,
                "{method} {path}: it looks like any missing job"
            );
        }
    }
    assert!(world.heard.lock().unwrap().is_empty(), "nothing reached the driver");
    for token in [&world.ada, &world.admin] {
        assert_eq!(world.get("/v1/jobs/2", token).await.status, StatusCode::OK);
        assert_eq!(world.get("/v1/jobs/1", token).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn lists_and_exports_hold_only_ones_own() {
    let world = World::new();
    let numbers = |answer: Answered| -> Vec<u64> {
        answer.json()["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_u64().unwrap()).collect()
    };
    for query in ["", "?all=true", "?user=ada", "?user=ada&all=true", "?state=succeeded", "?state=running"] {
        assert_eq!(numbers(world.get(&format!("/v1/jobs{query}"), &world.bob).await), [0; 0], "{query}");
    }
    assert_eq!(numbers(world.get("/v1/jobs?all=true", &world.ada).await), [1, 2]);
    assert_eq!(numbers(world.get("/v1/jobs?all=true&user=ada", &world.admin).await), [1, 2]);
    assert_eq!(numbers(world.get("/v1/jobs?all=true&mine=true", &world.admin).await), [0; 0]);
    assert_eq!(world.get("/v1/trace", &world.bob).await.body, "job_id,user\n");
    assert_eq!(world.get("/v1/trace", &world.ada).await.body, "job_id,user\n1,ada\n");
    assert_eq!(world.get("/v1/jobs/last", &world.bob).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/v1/jobs/last", &world.ada).await.json()["id"], 2);
    world.past.events.lock().unwrap().extend([event(1, Some("ada")), event(2, None), event(3, Some("bob"))]);
    let events = world.get("/v1/events?follow=false", &world.bob).await.json();
    let ids: Vec<_> =
        events["events"].as_array().unwrap().iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [2, 3]);
    for (token, count) in [(&world.bob, 0), (&world.ada, 1), (&world.looker, 1), (&world.admin, 1)] {
        let events = world.get("/v1/events?follow=false&job=1", token).await.json();
        assert_eq!(events["events"].as_array().unwrap().len(), count);
    }
    let stream = world.get("/v1/events?before=1", &world.ada).await;
    assert_eq!(stream.field().as_deref(), Some("before"), "a stream goes on, not back");
}

#[tokio::test]
async fn a_scope_allows_what_it_says() {
    let world = World::new();
    let job = train("fine");
    assert_eq!(world.call("POST", "/v1/jobs", Some(&world.looker), &job).await.status, StatusCode::FORBIDDEN);
    let cancel = world.call("POST", "/v1/jobs/2/cancel", Some(&world.looker), "").await;
    assert_eq!(cancel.status, StatusCode::FORBIDDEN);
    for path in ["/v1/nodes/node-1/drain", "/v1/nodes/node-1/resume", "/v1/tokens"] {
        let answer = world.call("POST", path, Some(&world.ada), r#"{"scope":"read"}"#).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
        assert!(answer.body.contains("admin"), "{path}");
    }
    for path in ["/v1/nodes", "/v1/status", "/metrics", "/v1/tokens", "/"] {
        assert_eq!(world.get(path, &world.looker).await.status, StatusCode::OK, "{path}");
    }
    let drain = |name: &'static str| world.call("POST", name, Some(&world.admin), r#"{"reason":"fan"}"#);
    assert_eq!(drain("/v1/nodes/node-1/drain").await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.get("/v1/nodes", &world.ada).await.json()["nodes"][0]["state"], "draining");
    assert_eq!(drain("/v1/nodes/node-9/drain").await.status, StatusCode::NOT_FOUND);
    let some = |token| {
        world.call("POST", "/v1/nodes/drain", Some(token), r#"{"kind":"a100","count":1,"evict":true}"#)
    };
    assert_eq!(some(&world.ada).await.status, StatusCode::FORBIDDEN);
    assert_eq!(some(&world.admin).await.json()["nodes"][0], "node-1");
}

#[tokio::test]
async fn tokens_are_made_by_admins_listed_and_revoked_by_their_users() {
    let world = World::new();
    let make = r#"{"user":"eve","scope":"submit","expires_s":3600}"#;
    let made = world.call("POST", "/v1/tokens", Some(&world.admin), make).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let (secret, id) = (made.json()["secret"].as_str().unwrap().to_owned(), made.json()["id"].clone());
    assert_eq!(world.get("/v1/jobs", &secret).await.status, StatusCode::OK);
    let listed = world.get("/v1/tokens", &secret).await;
    assert_eq!(listed.json()["tokens"].as_array().unwrap().len(), 1);
    assert!(!listed.body.contains(&secret[21..]), "a list never shows secrets");
    assert_eq!(world.get("/v1/tokens", &world.admin).await.json()["tokens"].as_array().unwrap().len(), 6);

    let path = format!("/v1/tokens/{}", id.as_str().unwrap());
    assert_eq!(world.call("DELETE", &path, Some(&world.bob), "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.call("DELETE", &path, Some(&secret), "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.get("/v1/jobs", &secret).await.status, StatusCode::UNAUTHORIZED);
    for (body, field) in [
        (r#"{"scope":"god"}"#, "scope"),
        (r#"{"scope":"read","user":"../etc"}"#, "user"),
        (r#"{"scope":"read","expires_s":-1}"#, "expires_s"),
        (r#"{"scope":"read","power":9000}"#, "power"),
    ] {
        let answer = world.call("POST", "/v1/tokens", Some(&world.admin), body).await;
        assert_eq!(
            (answer.status, answer.field().as_deref()),
            (StatusCode::BAD_REQUEST, Some(field)),
            "{body}"
        );
    }
}

/// A token that leaks must not take its user's larger ones with it.
#[tokio::test]
async fn a_token_revokes_none_that_allows_more() {
    let world = World::new();
    let make = |user, scope| world.site.tokens.create(user, scope, None, "root", "").unwrap();
    let (admin, join) = (make("ada", Scope::Admin), make("ada", Scope::Join));
    let (read, submit) = (make("ada", Scope::Read), make("ada", Scope::Submit));
    let revoke = async |token: &str, id: &str| {
        world.call("DELETE", &format!("/v1/tokens/{id}"), Some(token), "").await.status
    };
    for larger in [&admin, &join] {
        assert_eq!(revoke(&world.ada, &larger.token.id).await, StatusCode::FORBIDDEN);
        assert_eq!(revoke(&world.bob, &larger.token.id).await, StatusCode::NOT_FOUND, "others' do not exist");
    }
    assert_eq!(world.get("/v1/me", &admin.secret).await.status, StatusCode::OK);
    for (token, id) in [
        (&world.ada, &read.token.id),
        (&submit.secret, &submit.token.id),
        (&admin.secret, &join.token.id),
        (&admin.secret, &admin.token.id),
    ] {
        assert_eq!(revoke(token, id).await, StatusCode::NO_CONTENT);
    }
    let last = || world.site.tokens.store().last_audit().unwrap();
    let before = last();
    assert_eq!(revoke(&world.ada, &read.token.id).await, StatusCode::NO_CONTENT);
    assert_eq!(last(), before, "what is revoked already is not written down again");
}

#[tokio::test]
async fn too_many_wrong_tokens_are_told_to_wait() {
    let world = World::new();
    let mut last = world.get("/v1/jobs", "yard_wrong").await;
    for _ in 0..40 {
        last = world.get("/v1/jobs", "yard_wrong").await;
    }
    assert_eq!(last.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(last.headers["retry-after"], "1");
    assert_eq!(world.get("/v1/jobs", &world.ada).await.status, StatusCode::OK, "a good token still is");
}

#[tokio::test]
async fn readiness_follows_the_loop() {
    let world = World::new();
    assert_eq!(world.call("GET", "/readyz", None, "").await.status, StatusCode::OK);
    world.site.handle.board.write().unwrap().alive = now_us() - 60_000_000;
    let late = world.call("GET", "/readyz", None, "").await;
    assert_eq!(late.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(late.body.contains("has not gone round"));
    assert_eq!(world.call("GET", "/healthz", None, "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn when_a_token_was_used_is_kept_at_the_end() {
    let world = World::new();
    world.get("/v1/jobs", &world.ada).await;
    world.site.stop.cancel();
    crate::api::housekeeping(world.site.clone()).await;
    let again = Tokens::open(&world.scratch.path().join("yard.db")).unwrap();
    let used = again.list(Some("ada")).into_iter().filter(|token| token.last_used_at.is_some());
    assert_eq!(used.count(), 1);
}
