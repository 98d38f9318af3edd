//! Every route, as everybody: a new route that is not in this table fails the test.

use std::fmt::Write;

use expect_test::expect;

use super::access::{body, concrete, routes};
use super::*;

/// What a call is answered. Streams are not waited for.
async fn status(world: &World, token: Option<&String>, method: &str, path: &str) -> u16 {
    let request = Request::builder().method(method).uri(concrete(path));
    let request = token
        .into_iter()
        .fold(request, |request, token| request.header("authorization", format!("Bearer {token}")));
    let (status, _, _) = world.begin(request.body(Body::from(body(path))).unwrap()).await;
    status.as_u16()
}

#[tokio::test]
async fn who_may_do_what() {
    let mut table = String::from("nobody other reader owner admin\n");
    for (method, path) in routes(&World::new()).await {
        // A world of its own: some calls change it.
        let world = World::new();
        for who in [None, Some(&world.bob), Some(&world.looker), Some(&world.ada), Some(&world.admin)] {
            let _ = write!(table, "{:<6} ", status(&world, who, &method, &path).await);
        }
        let _ = writeln!(table, "{method} {path}");
    }
    expect![[r#"
        nobody other reader owner admin
        200    200    200    200    200    GET /
        200    200    200    200    200    GET /assets/{file}
        200    200    200    200    200    GET /healthz
        401    200    200    200    200    GET /metrics
        200    200    200    200    200    GET /readyz
        401    401    401    401    401    GET /v1/agent
        401    403    403    403    200    GET /v1/audit
        401    200    200    200    200    GET /v1/events
        401    200    200    200    200    GET /v1/jobs
        401    201    403    201    201    POST /v1/jobs
        401    404    200    200    200    GET /v1/jobs/{id}
        401    404    403    200    200    POST /v1/jobs/{id}/cancel
        401    404    403    200    200    POST /v1/jobs/{id}/edit
        401    404    200    200    200    GET /v1/jobs/{id}/explain
        401    404    403    200    200    POST /v1/jobs/{id}/hold
        401    404    200    200    200    GET /v1/jobs/{id}/logs
        401    404    200    200    200    GET /v1/jobs/{id}/progress
        401    404    403    200    200    POST /v1/jobs/{id}/release
        401    404    403    200    200    POST /v1/jobs/{id}/requeue
        401    401    401    401    401    POST /v1/join
        401    200    200    200    200    GET /v1/me
        401    200    200    200    200    GET /v1/nodes
        401    403    403    403    200    POST /v1/nodes/drain
        401    403    403    403    409    DELETE /v1/nodes/{name}
        401    403    403    403    204    POST /v1/nodes/{name}/drain
        401    403    403    403    204    POST /v1/nodes/{name}/resume
        401    403    403    403    204    POST /v1/nodes/{name}/revoke
        200    200    200    200    200    GET /v1/openapi.json
        401    200    200    200    200    GET /v1/queue
        401    200    403    200    200    GET /v1/secrets
        401    404    403    404    404    DELETE /v1/secrets/{name}
        401    204    403    204    204    PUT /v1/secrets/{name}
        401    200    200    200    200    GET /v1/status
        401    200    200    200    200    GET /v1/tokens
        401    403    403    403    201    POST /v1/tokens
        401    404    403    404    404    DELETE /v1/tokens/{id}
        401    200    200    200    200    GET /v1/trace
        401    200    200    200    200    GET /v1/watch
        401    200    200    200    200    POST /v1/what-if
        401    404    404    404    404    POST /v1/what-if/history
    "#]]
    .assert_eq(&table);
}
