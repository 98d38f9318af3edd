//! Users' secrets: nobody gets a value back, and nobody else gets near it.

use super::access::{body, concrete, routes};
use super::*;

const VALUE: &str = "wandb-3b1f0c-unlike-anything-else";

async fn set(world: &World, token: &str, name: &str, value: &str) -> Answered {
    let body = serde_json::json!({ "value": value }).to_string();
    world.call("PUT", &format!("/v1/secrets/{name}"), Some(token), &body).await
}

async fn names(world: &World, token: &str) -> Vec<String> {
    let told = world.get("/v1/secrets", token).await.json();
    told["secrets"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

fn job_with(name: &str) -> String {
    format!(r#"{{"command":["train"],"secrets":{{"{name}":"env"}}}}"#)
}

fn holds(bytes: &[u8]) -> bool {
    bytes.windows(VALUE.len()).any(|window| window == VALUE.as_bytes())
}

#[tokio::test]
async fn a_secret_is_used_and_listed_by_its_owner_alone() {
    let world = World::new();
    assert_eq!(set(&world, &world.ada, "KEY", VALUE).await.status, StatusCode::NO_CONTENT);
    assert_eq!(set(&world, &world.looker, "KEY", VALUE).await.status, StatusCode::FORBIDDEN);
    assert_eq!(names(&world, &world.ada).await, ["KEY"]);
    let submit = async |token: &str| world.call("POST", "/v1/jobs", Some(token), &job_with("KEY")).await;
    assert_eq!(submit(&world.ada).await.status, StatusCode::CREATED);
    for other in [&world.bob, &world.admin] {
        assert_eq!(names(&world, other).await, [""; 0], "not even an admin sees it");
        let refused = submit(other).await;
        assert_eq!((refused.status, refused.field().as_deref()), (StatusCode::BAD_REQUEST, Some("secrets")));
        assert!(
            refused.body.contains("has no secret KEY; set it first: yard secret set KEY"),
            "{}",
            refused.body
        );
        let taken = world.call("DELETE", "/v1/secrets/KEY", Some(other), "").await;
        assert_eq!(taken.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(
        world.call("DELETE", "/v1/secrets/KEY", Some(&world.ada), "").await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(submit(&world.ada).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_value_is_in_no_answer_and_in_no_file() {
    let world = World::new();
    assert_eq!(set(&world, &world.ada, "KEY", VALUE).await.status, StatusCode::NO_CONTENT);
    let job = world.call("POST", "/v1/jobs", Some(&world.ada), &job_with("KEY")).await;
    assert!(job.status == StatusCode::CREATED && !holds(job.body.as_bytes()));
    let shown = world.get("/v1/jobs/3", &world.ada).await.json();
    assert_eq!(shown["request"]["secrets"]["KEY"], "env", "that it is used is no secret");
    // Streams are not waited for, and what changes nothing is asked.
    let streams = ["/v1/events", "/v1/watch", "/v1/agent"];
    for (method, path) in routes(&world).await {
        if method != "GET" || streams.contains(&path.as_str()) {
            continue;
        }
        for token in [&world.ada, &world.bob, &world.admin] {
            let path = concrete(&path).replace("/jobs/2", "/jobs/3");
            let told = world.call(&method, &path, Some(token), &body(&path)).await;
            assert!(!holds(told.body.as_bytes()), "{method} {path}");
        }
    }
    let mut files = 0;
    for file in std::fs::read_dir(world.scratch.path()).unwrap().map(|file| file.unwrap().path()) {
        if file.is_file() {
            assert!(!holds(&std::fs::read(&file).unwrap()), "{}", file.display());
            files += 1;
        }
    }
    assert!(files >= 2, "the key and the database");
    let audit = rusqlite::Connection::open(world.scratch.path().join("yard.db")).unwrap();
    let newest = "SELECT user || ' ' || what || ' ' || target FROM audit ORDER BY id DESC LIMIT 1";
    let newest: String = audit.query_row(newest, [], |row| row.get(0)).unwrap();
    assert_eq!(newest, "ada secret set KEY", "who set what is written down");
}

#[tokio::test]
async fn names_sizes_and_numbers_are_checked() {
    let world = World::new();
    let long = "x".repeat(crate::secrets::VALUE_MAX + 1);
    for (name, value, field) in [
        ("1a", "x", "name"),
        ("a%2fb", "x", "name"),
        ("a%0ab", "x", "name"),
        ("KEY", "", "value"),
        ("KEY", &long, "value"),
        ("KEY", "a\0b", "value"),
    ] {
        let refused = set(&world, &world.ada, name, value).await;
        assert_eq!(
            (refused.status, refused.field().as_deref()),
            (StatusCode::BAD_REQUEST, Some(field)),
            "{name}"
        );
    }
    assert_eq!(set(&world, &world.ada, "KEY", &long[1..]).await.status, StatusCode::NO_CONTENT);
    for number in 1..crate::secrets::COUNT_MAX {
        assert_eq!(set(&world, &world.ada, &format!("S{number}"), "x").await.status, StatusCode::NO_CONTENT);
    }
    let full = set(&world, &world.ada, "ONE_MORE", "x").await;
    assert_eq!(full.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(full.body.contains("100 secrets"), "{}", full.body);
    assert_eq!(set(&world, &world.ada, "KEY", "again").await.status, StatusCode::NO_CONTENT);
    assert_eq!(set(&world, &world.bob, "KEY", "his").await.status, StatusCode::NO_CONTENT);
    for (secrets, says) in [
        (r#"{"LD_PRELOAD":"env"}"#, "LD_PRELOAD"),
        (r#"{"CUDA_VISIBLE_DEVICES":"env"}"#, "CUDA_VISIBLE_DEVICES"),
        (r#"{"../../etc/passwd":"file"}"#, "cannot name a secret"),
        (r#"{"KEY":"shell"}"#, "unknown variant"),
    ] {
        let job = format!(r#"{{"command":["train"],"secrets":{secrets}}}"#);
        let refused = world.call("POST", "/v1/jobs", Some(&world.ada), &job).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{secrets}");
        assert!(refused.body.contains(says), "{}", refused.body);
    }
}
