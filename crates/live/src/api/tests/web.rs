use super::*;

#[tokio::test]
async fn the_dashboard_is_for_everybody_and_says_nothing_private() {
    let world = World::new();
    for path in ["/", "/assets/app.js", "/assets/app.css", "/assets/icon.svg"] {
        for token in [None, Some("yard_wrong"), Some(&*world.ada)] {
            let answer = world.call("GET", path, token, "").await;
            assert_eq!(answer.status, StatusCode::OK, "{path}");
            assert!(!answer.body.contains("node-1"), "{path}");
            let policy = answer.headers["content-security-policy"].to_str().unwrap();
            assert!(
                policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe")
            );
            assert_eq!(answer.headers["x-content-type-options"], "nosniff");
            let twice = answer.headers.keys().find(|name| answer.headers.get_all(*name).iter().count() > 1);
            assert_eq!(twice, None, "{path}: a header comes twice");
            let kind = answer.headers["content-type"].to_str().unwrap();
            assert!(!kind.contains("octet-stream"), "{path} is {kind}");
            assert_eq!(answer.headers["referrer-policy"], "no-referrer");
        }
    }
    let page = world.call("GET", "/", None, "").await.body;
    assert!(page.contains("/assets/app.js") && page.contains("/assets/app.css"));
    assert!(!page.contains("<style") && !page.contains("onload") && !page.contains(" style="));
    assert_eq!(page.matches("<script").count(), page.matches("<script type=\"module\"").count());
    assert_eq!(world.call("GET", "/assets/nothing.js", None, "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.call("GET", "/assets/..%2FCargo.toml", None, "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_file_is_sent_packed_and_not_twice() {
    let world = World::new();
    let ask = |name: &'static str, value: String| {
        Request::builder().uri("/assets/app.js").header(name, value).body(Body::empty()).unwrap()
    };
    let plain = world.call("GET", "/assets/app.js", None, "").await;
    let (status, headers, body) = world.begin(ask("accept-encoding", "gzip, br".into())).await;
    assert_eq!((status, headers["content-encoding"].to_str().unwrap()), (StatusCode::OK, "gzip"));
    let packed = axum::body::to_bytes(body, 16 << 20).await.unwrap();
    let mut unpacked = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&packed[..]), &mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body);
    assert!(packed.len() < 250_000, "{} bytes", packed.len());
    let tag = plain.headers["etag"].to_str().unwrap().to_owned();
    let again = world.send(ask("if-none-match", tag)).await;
    assert_eq!((again.status, again.body.as_str()), (StatusCode::NOT_MODIFIED, ""));
}

#[tokio::test]
async fn a_token_says_who_one_is() {
    let world = World::new();
    for (token, user, scope) in
        [(&world.admin, "root", "admin"), (&world.ada, "ada", "submit"), (&world.looker, "ada", "read")]
    {
        let me = world.get("/v1/me", token).await.json();
        assert_eq!((&me["user"], &me["scope"]), (&user.into(), &scope.into()));
    }
}

#[tokio::test]
async fn the_queue_is_ones_own_with_reasons() {
    let world = World::new();
    for (id, user) in [(3, "ada"), (4, "bob")] {
        world.site.handle.board.write().unwrap().put_job(job(id, user, "pending"));
    }
    let queue = async |token: &str| {
        let queue = world.get("/v1/queue", token).await.json();
        let jobs: Vec<_> = queue["jobs"].as_array().unwrap().iter().map(|job| job["job"].clone()).collect();
        (queue["waiting"].clone(), jobs)
    };
    assert_eq!(queue(&world.ada).await, (1.into(), vec![3.into()]));
    assert_eq!(queue(&world.looker).await, (1.into(), vec![3.into()]));
    assert_eq!(queue(&world.bob).await, (1.into(), vec![4.into()]));
    assert_eq!(queue(&world.admin).await, (2.into(), vec![3.into(), 4.into()]));
}
