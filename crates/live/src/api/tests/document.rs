use expect_test::expect;

use super::*;

/// What is served is what is documented, because both are one line; the list itself is part of the contract.
#[tokio::test]
async fn every_route_is_documented() {
    let world = World::new();
    let document = world.call("GET", "/v1/openapi.json", None, "").await.json();
    let mut routes = String::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let methods: Vec<_> = methods.as_object().unwrap().keys().map(String::as_str).collect();
        routes += &format!("{path} {}\n", methods.join(" "));
    }
    expect![[r#"
        / get
        /assets/{file} get
        /healthz get
        /metrics get
        /readyz get
        /v1/agent get
        /v1/audit get
        /v1/events get
        /v1/jobs get post
        /v1/jobs/{id} get
        /v1/jobs/{id}/cancel post
        /v1/jobs/{id}/edit post
        /v1/jobs/{id}/explain get
        /v1/jobs/{id}/hold post
        /v1/jobs/{id}/logs get
        /v1/jobs/{id}/progress get
        /v1/jobs/{id}/release post
        /v1/jobs/{id}/requeue post
        /v1/join post
        /v1/me get
        /v1/nodes get
        /v1/nodes/drain post
        /v1/nodes/{name} delete
        /v1/nodes/{name}/drain post
        /v1/nodes/{name}/resume post
        /v1/nodes/{name}/revoke post
        /v1/openapi.json get
        /v1/queue get
        /v1/secrets get
        /v1/secrets/{name} delete put
        /v1/status get
        /v1/tokens get post
        /v1/tokens/{id} delete
        /v1/trace get
        /v1/watch get
        /v1/what-if post
        /v1/what-if/history post
    "#]]
    .assert_eq(&routes);
    let mut ids = std::collections::BTreeSet::new();
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap());
    for operation in operations.map(|(_, operation)| operation) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "two operations are called {id}");
        for (status, response) in operation["responses"].as_object().unwrap() {
            assert!(!response["description"].as_str().unwrap().is_empty(), "{id} {status} says nothing");
        }
    }
    let schemas = &document["components"]["schemas"];
    for schema in ["JobRequest", "JobView", "NodeView", "Explanation", "ErrorView", "NewToken", "JoinReply"] {
        assert!(schemas[schema].is_object(), "{schema} is described");
    }
}
