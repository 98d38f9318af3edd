use super::*;
use crate::driver::Meter;
use crate::quota::{Quota, QuotaLimits};

#[tokio::test]
async fn a_job_is_submitted_shown_and_cancelled() {
    let world = World::new();
    let request = Request::builder().method("POST").uri("/v1/jobs");
    let request =
        request.header("authorization", format!("bearer {}", world.bob)).header("Idempotency-Key", "k1");
    let made = world.send(request.body(Body::from(train("mine"))).unwrap()).await;
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(made.json()["id"], 3);
    assert_eq!(world.heard.lock().unwrap()[0], r#"submit bob Some("k1")"#);
    let shown = world.get("/v1/jobs/last", &world.bob).await.json();
    assert_eq!((&shown["id"], &shown["request"]["name"]), (&3.into(), &"mine".into()));
    let listed = world.get("/v1/jobs", &world.bob).await.json();
    assert_eq!(listed["jobs"][0]["id"], 3);
    assert!(listed["jobs"][0].get("request").is_none(), "a list is short");
    let cancelled = world.call("POST", "/v1/jobs/3/cancel", Some(&world.bob), r#"{"reason":"typo"}"#).await;
    assert_eq!(cancelled.json()["state"], "cancelled");
    assert_eq!(world.heard.lock().unwrap()[1], r#"cancel bob 3 Some("typo")"#);
    assert_eq!(world.get("/v1/jobs/last/explain", &world.bob).await.json()["reason"], "running");
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_and_may_be_tried_again() {
    let world = World::new();
    let answer = world.call("POST", "/v1/jobs", Some(&world.ada), r#"{"command":["disk-full"]}"#).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.json()["error"], "the disk is full");
    assert_eq!(answer.headers["retry-after"], "1");
}

#[tokio::test]
async fn requests_with_one_token_have_a_rate() {
    let world = World::new();
    let limits = QuotaLimits { token_requests: 0.001, ..QuotaLimits::default() };
    let router = router(Arc::new(ApiSite { quota: Quota::new(limits), ..flood::quick(&world) }));
    let world = World { router, ..world };
    let submit = async |token: &str| world.call("POST", "/v1/jobs", Some(token), &train("one")).await;
    assert_eq!(submit(&world.ada).await.status, StatusCode::CREATED);
    let refused = submit(&world.ada).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() > 1);
    let error = refused.json()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("0.001 per second") && error.contains("--token-requests"), "{error}");
    assert_eq!(world.get("/v1/jobs", &world.ada).await.status, StatusCode::TOO_MANY_REQUESTS, "any request");
    assert_eq!(world.get("/v1/jobs", &world.looker).await.status, StatusCode::OK, "another token of theirs");
    assert_eq!(submit(&world.bob).await.status, StatusCode::CREATED, "others go on");
    for _ in 0..20 {
        assert_eq!(submit(&world.admin).await.status, StatusCode::CREATED, "and admins");
    }
}

#[tokio::test]
async fn pages_of_jobs_follow_each_other() {
    let world = World::new();
    for id in 10..29 {
        world.past.jobs.lock().unwrap().push(job(id, "ada", "succeeded"));
    }
    world.past.jobs.lock().unwrap().push(job(29, "ada", "running"));
    world.site.handle.board.write().unwrap().put_job(job(29, "ada", "failed"));
    let ids = async |query: &str| -> Vec<u64> {
        let answer = world.get(&format!("/v1/jobs?{query}"), &world.ada).await;
        answer.json()["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids("all=true&limit=3").await, [27, 28, 29]);
    assert_eq!(ids("all=true&limit=3&after=1").await, [2, 10, 11]);
    assert_eq!(ids("all=true&limit=3&after=11").await, [12, 13, 14]);
    assert_eq!(ids("state=failed").await, [29], "the board knows better than the history");
    assert_eq!(ids("state=succeeded&limit=1").await, [28]);
    assert_eq!(ids("").await, [2], "what is over is not shown unless asked for");
    for (query, field) in [("state=napping", Some("state")), ("limit=-1", None), ("colour=red", None)] {
        let answer = world.get(&format!("/v1/jobs?{query}"), &world.ada).await;
        assert_eq!((answer.status, answer.field().as_deref()), (StatusCode::BAD_REQUEST, field), "{query}");
    }
}

#[tokio::test]
async fn pages_go_back_say_whether_there_is_more_and_choose_by_name() {
    let world = World::new();
    for id in 10..30 {
        let name = if id % 2 == 0 { format!("sweep-{id}") } else { "other".to_owned() };
        world.past.jobs.lock().unwrap().push(JobView { name, ..job(id, "ada", "succeeded") });
    }
    let page = async |query: &str| {
        let answer = world.get(&format!("/v1/jobs?all=true&{query}"), &world.ada).await.json();
        let ids = answer["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_u64().unwrap());
        (ids.collect::<Vec<_>>(), answer["more"].as_bool().unwrap())
    };
    assert_eq!(page("limit=2").await, (vec![28, 29], true));
    assert_eq!(page("limit=2&before=28").await, (vec![26, 27], true));
    assert_eq!(page("limit=5&before=10").await, (vec![1, 2], false));
    assert_eq!(page("limit=2&after=27").await, (vec![28, 29], false));
    assert_eq!(page("limit=2&after=26").await, (vec![27, 28], true));
    assert_eq!(page("limit=2&name=sweep-*&before=28").await, (vec![24, 26], true));
    assert_eq!(page("limit=2&name=sweep-1?&before=13").await, (vec![10, 12], false));
    assert_eq!(page("name=%27%3B%20DROP*").await, (vec![], false));
    let long = format!("/v1/jobs?name={}", "*a".repeat(200));
    assert_eq!(world.get(&long, &world.ada).await.field().as_deref(), Some("name"));
}

#[tokio::test]
async fn who_sees_only_their_own_is_told_how_many_are_hidden() {
    let world = World::new();
    let board = || world.site.handle.board.write().unwrap();
    board().put_job(job(40, "bob", "pending"));
    board().put_job(JobView { ended_at: Some(1.0), ..job(41, "bob", "failed") });
    let hidden = async |path: &str, token: &str| world.get(path, token).await.json()["hidden"].clone();
    assert_eq!(hidden("/v1/jobs", &world.looker).await, 1);
    assert_eq!(hidden("/v1/queue", &world.looker).await, 1);
    assert_eq!(hidden("/v1/jobs", &world.admin).await, 0, "an admin sees all");
}

#[tokio::test]
async fn what_was_asked_for_is_there_from_the_first_for_its_owner_alone() {
    let world = World::new();
    let asked = serde_json::from_str(&train("mine")).unwrap();
    world.past.requests.lock().unwrap().insert(2, asked);
    let shown = world.get("/v1/jobs/2", &world.ada).await.json();
    assert_eq!((&shown["state"], &shown["request"]["name"]), (&"running".into(), &"mine".into()));
    assert_eq!(world.get("/v1/jobs/2", &world.bob).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_failed_job_comes_with_the_end_of_its_log() {
    let world = World::new();
    let board = || world.site.handle.board.write().unwrap();
    board().put_job(JobView { ended_at: Some(1.0), ..job(40, "ada", "failed") });
    assert_eq!(world.get("/v1/jobs/40", &world.ada).await.json()["log_end"], "one\ntwo\n");
    assert!(world.get("/v1/jobs/2", &world.ada).await.json().get("log_end").is_none(), "it runs");
    let listed = world.get("/v1/jobs?all=true", &world.ada).await.json();
    assert!(listed["jobs"].as_array().unwrap().iter().all(|job| job.get("log_end").is_none()));
}

#[tokio::test]
async fn a_log_is_streamed_or_says_why_not() {
    let world = World::new();
    let log = world.get("/v1/jobs/2/logs?tail=5&follow=true", &world.ada).await;
    assert_eq!((log.status, log.body.as_str()), (StatusCode::OK, "one\ntwo\n"));
    let none = world.get("/v1/jobs/2/logs?rank=1", &world.ada).await;
    assert_eq!(
        (none.status, none.json()["error"].as_str()),
        (StatusCode::NOT_FOUND, Some("rank 1 has no log"))
    );
    let request = Request::builder().uri("/v1/jobs/2/logs?rank=2");
    let request =
        request.header("authorization", format!("Bearer {}", world.ada)).body(Body::empty()).unwrap();
    let (status, _, body) = world.begin(request).await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        axum::body::to_bytes(body, 1 << 20).await.is_err(),
        "a log that breaks off is not taken for whole"
    );
}

#[tokio::test]
async fn metrics_count_jobs_nodes_devices_and_requests() {
    let world = World::new();
    world.get("/v1/jobs/2", &world.ada).await;
    world.call("GET", "/v1/jobs/4711", Some(&world.ada), "").await;
    world.call("BREW", "/coffee", None, "").await;
    world.site.metrics.submitted(3);
    world.site.metrics.ended("failed");
    world.site.metrics.commit(Duration::from_millis(3));
    world.site.metrics.wasted(Duration::from_millis(1500));
    let text = world.get("/metrics", &world.looker).await.body;
    for line in [
        r#"yard_jobs{state="running"} 1"#,
        r#"yard_jobs{state="pending"} 0"#,
        r#"yard_nodes{state="up"} 1"#,
        r#"yard_devices{kind="h100",state="held"} 1"#,
        r#"yard_devices{kind="h100",state="free"} 1"#,
        "yard_devices_idle_held 1",
        "yard_idle_cluster_seconds 1.5",
        r#"yard_device_busy_ratio{node="node-1",device="h100:0"} 0.25"#,
        r#"yard_device_memory_used_bytes{node="node-1",device="h100:1"} 2097152"#,
        "yard_submissions_total 3",
        r#"yard_jobs_ended_total{state="failed"} 1"#,
        "yard_journal_commit_seconds_count 1",
        r#"yard_http_request_seconds_count{method="GET",route="/v1/jobs/{id}",code="200"} 1"#,
        r#"yard_http_request_seconds_count{method="GET",route="/v1/jobs/{id}",code="404"} 1"#,
        r#"yard_http_request_seconds_count{method="other",route="none",code="404"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(text.contains("yard_seconds_since_last_cycle") && !text.contains("4711"));
}
