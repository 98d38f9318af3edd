//! A server that says what the test wrote down, and remembers what it was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::common::{Answer, Dir};

/// The token that the tests use; it must never be printed.
pub(crate) const TOKEN: &str = "yard_very-secret-token";

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// `GET /v1/jobs?all=true`.
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }
}

/// What to answer: `METHOD /path`, a status and a body. Of several for one path each is given once, the last for ever.
type Script = Vec<(String, u16, String)>;

#[derive(Default)]
struct Shared {
    script: Mutex<Script>,
    seen: Mutex<Vec<Seen>>,
}

/// The server; it ends with the test.
pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<Shared>,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    pub(crate) fn new(script: &[(&str, u16, Value)]) -> Server {
        let text = |body: &Value| body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let script = script.iter().map(|(line, status, body)| (line.to_string(), *status, text(body)));
        let shared = Arc::new(Shared { script: Mutex::new(script.collect()), ..Shared::default() });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let listener =
            runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let app = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Server { url, shared, _runtime: runtime }
    }

    /// What was asked so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().expect("nobody panicked").clone()
    }

    /// The lines of what was asked so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }

    /// Runs a command line against this server, arguments separated by blanks.
    pub(crate) fn yard(&self, dir: &Dir, line: &str) -> Answer {
        self.run(dir, &line.split_whitespace().collect::<Vec<_>>())
    }

    /// The same with arguments that may have blanks.
    pub(crate) fn run(&self, dir: &Dir, args: &[&str]) -> Answer {
        let answer = Answer::of(self.command(dir, args).output().expect("the binary can be run"));
        assert!(!answer.out.contains(TOKEN) && !answer.err.contains(TOKEN), "it shows the token: {answer:?}");
        answer
    }

    pub(crate) fn command(&self, dir: &Dir, args: &[&str]) -> std::process::Command {
        let mut command = dir.command(args);
        command.env("YARD_SERVER", &self.url).env("YARD_TOKEN", TOKEN).env("TZ", "UTC");
        command
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let seen = Seen {
        line: format!("{method} {uri}"),
        headers: headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    shared.seen.lock().expect("nobody panicked").push(seen);
    let asked = format!("{method} {}", uri.path());
    let mut script = shared.script.lock().expect("nobody panicked");
    let mut matching = script.iter().enumerate().filter(|(_, (line, ..))| *line == asked).map(|(at, _)| at);
    let (first, more) = (matching.next(), matching.next().is_some());
    let (_, status, body) = match first {
        Some(at) if more => script.remove(at),
        Some(at) => script[at].clone(),
        None => (
            String::new(),
            404,
            json!({"error": format!("no {asked} in the script"), "field": null}).to_string(),
        ),
    };
    let status = StatusCode::from_u16(status).expect("the test gives a status");
    (status, [("Retry-After", "7")], body).into_response()
}

/// A job as the server tells of it.
pub(crate) fn job(id: u64, state: &str) -> Value {
    json!({
        "id": id, "name": "train.py", "user": "ada", "tenant": null, "state": state, "reason": null, "gpus": 1,
        "kind": null, "nodes": [], "priority": 0, "deadline": null, "submitted_at": 1_794_758_400.0, "started_at": null,
        "ended_at": null, "executed_s": 0.0, "step": null, "steps": null, "checkpointed": null, "rate": null, "starts": 0,
        "preemptions": 0, "migrations": 0, "failures": 0, "exit_code": null,
    })
}

/// The same with some fields changed.
pub(crate) fn job_with(id: u64, state: &str, changes: Value) -> Value {
    let mut job = job(id, state);
    for (key, value) in changes.as_object().expect("changes are fields") {
        job[key] = value.clone();
    }
    job
}
