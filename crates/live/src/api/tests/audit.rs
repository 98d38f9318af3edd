use super::*;

#[tokio::test]
async fn admins_see_who_did_what_a_page_at_a_time() {
    let world = World::new();
    for user in ["ada", "bob", "eve"] {
        let body = format!(r#"{{"user":"{user}","scope":"submit"}}"#);
        assert_eq!(
            world.call("POST", "/v1/tokens", Some(&world.admin), &body).await.status,
            StatusCode::CREATED
        );
    }
    world.site.tokens.audit("bob", "secret set", "KEY").unwrap();
    let newest = world.get("/v1/audit?limit=2", &world.admin).await.json();
    let entries = newest["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &newest["more"]), (2, &true.into()));
    assert_eq!(
        (&entries[0]["user"], &entries[0]["what"], &entries[0]["target"]),
        (&"bob".into(), &"secret set".into(), &"KEY".into())
    );
    assert!(entries[0]["time"].as_f64().unwrap() > 1.0e9 && entries[0]["outcome"] == "done");
    let before = entries[1]["id"].as_i64().unwrap();
    let older = world.get(&format!("/v1/audit?before={before}"), &world.admin).await.json();
    let older = older["entries"].as_array().unwrap();
    assert!(!older.is_empty() && older.iter().all(|entry| entry["id"].as_i64().unwrap() < before));
    let theirs = world.get("/v1/audit?user=bob", &world.admin).await.json();
    assert!(theirs["entries"].as_array().unwrap().iter().all(|entry| entry["user"] == "bob"));
    assert_eq!(theirs["more"], false);
    for token in [&world.ada, &world.looker] {
        assert_eq!(world.get("/v1/audit", token).await.status, StatusCode::FORBIDDEN);
    }
    let wrong = world.get("/v1/audit?limit=many", &world.admin).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}
