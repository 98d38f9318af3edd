use super::*;

async fn submit(world: &World, body: &str) -> Answered {
    world.call("POST", "/v1/jobs", Some(&world.ada), body).await
}

#[tokio::test]
async fn a_broken_body_is_refused_and_the_field_named() {
    let world = World::new();
    let nested = "[".repeat(100_000);
    let deep = format!(r#"{{"command":{}1{}}}"#, "[".repeat(500), "]".repeat(500));
    for (body, field) in [
        ("", None),
        ("{", None),
        ("{}x", None),
        ("[]", None),
        ("{}", Some("command")),
        (r#"{"command":[""]}"#, Some("command")),
        ("\u{0}", None),
        (nested.as_str(), None),
        (deep.as_str(), Some("command[0]")),
        (r#"{"command":["a"],"gpus":"two"}"#, Some("gpus")),
        (r#"{"command":["a"],"gpus":-1}"#, Some("gpus")),
        (r#"{"command":["a",2]}"#, Some("command[1]")),
        (r#"{"command":["a"],"colour":"red"}"#, Some("colour")),
        (r#"{"command":["a"],"checkpoint":{"grace_s":"x"}}"#, Some("checkpoint.grace_s")),
        (r#"{"command":["a"],"name":"../../etc/passwd"}"#, Some("name")),
        (r#"{"command":["a"],"name":"a/b"}"#, Some("name")),
        (r#"{"command":["a"],"name":"a\u001b[31m"}"#, Some("name")),
        (r#"{"command":["a"],"name":"a\nb"}"#, Some("name")),
        (r#"{"command":["a"],"name":""}"#, Some("name")),
        (r#"{"command":["a"],"tenant":"a\tb"}"#, Some("tenant")),
        (r#"{"command":["a"],"kinds":["h100/.."]}"#, Some("kinds")),
        (r#"{"command":["a\u0000b"]}"#, Some("command")),
        (r#"{"command":["a"],"env":{"A=B":"c"}}"#, Some("env")),
    ] {
        let answer = submit(&world, body).await;
        let start: String = body.chars().take(60).collect();
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{start}");
        let named = answer.field();
        assert!(
            field.is_none() || named.as_deref().is_some_and(|named| named.starts_with(field.unwrap())),
            "{start}: {named:?}"
        );
    }
    assert!(world.heard.lock().unwrap().is_empty(), "nothing reached the driver");
}

#[tokio::test]
async fn a_body_of_100_mib_is_refused_after_one() {
    let world = World::new();
    let answer = submit(&world, &" ".repeat(100 << 20)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(answer.json()["error"].as_str().unwrap().contains("larger than"));
}

#[tokio::test]
async fn headers_and_paths_are_checked_too() {
    let world = World::new();
    for key in ["", "é", &"k".repeat(500)] {
        let request = Request::builder().method("POST").uri("/v1/jobs").header("Idempotency-Key", key);
        let request = request.header("authorization", format!("Bearer {}", world.ada));
        let answer = world.send(request.body(Body::from(train("x"))).unwrap()).await;
        assert_eq!(
            (answer.status, answer.field().as_deref()),
            (StatusCode::BAD_REQUEST, Some("Idempotency-Key"))
        );
    }
    for path in ["/v1/jobs/first", "/v1/jobs/-1", "/v1/jobs/99999999999999999999", "/v1/jobs/..%2f2"] {
        assert_eq!(world.get(path, &world.ada).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
    assert_eq!(world.get("/v2/jobs", &world.ada).await.status, StatusCode::NOT_FOUND);
    let wrong = world.call("DELETE", "/v1/jobs", Some(&world.ada), "").await;
    assert_eq!(wrong.status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(wrong.json()["error"].as_str().unwrap().contains("openapi"));
    let reason = world.call("POST", "/v1/jobs/2/cancel", Some(&world.ada), r#"{"reason":"a\nb"}"#).await;
    assert_eq!(reason.field().as_deref(), Some("reason"));
}

mod random {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Whatever is sent, the answer is one of ours, in JSON.
        #[test]
        fn any_body_is_answered(body in "[\\[\\]{}\":,a-z0-9\\\\ \u{0}-\u{20}é]{0,200}") {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let answer = runtime.block_on(async { submit(&World::new(), &body).await });
            prop_assert!(answer.status == StatusCode::BAD_REQUEST || answer.status == StatusCode::CREATED);
            answer.json();
        }
    }
}
