//! The plain status page. Without a token it says only what this is and how to go on. No scripts, nothing from
//! elsewhere, and everything that came from outside is escaped.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use super::Site;
use super::extract::Maybe;
use crate::board::Board;
use crate::views::{DeviceView, NodeView, StatusView};

const STYLE: &str = "
:root{color-scheme:light dark;--line:#8884;--held:#2a78d6;--free:#8883;--bad:#d0403a}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem}dl{display:flex;flex-wrap:wrap;gap:.5rem 2rem}dt{opacity:.7}dd{margin:0;font-size:1.3rem}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line)}
.cell{display:inline-block;width:.9rem;height:.9rem;margin:1px;border-radius:2px;background:var(--free)}
.held{background:var(--held)}.broken{background:var(--bad)}code{background:#8882;padding:.1rem .3rem;border-radius:3px}";
/// Nothing may be loaded or run but the style in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

#[utoipa::path(get, path = "/", responses((status = 200, content_type = "text/html", body = String,
    description = "A status page; says more with a token")))]
pub(super) async fn page(
    State(site): State<Arc<Site>>,
    caller: Result<Maybe, super::Problem>,
) -> Result<impl IntoResponse, super::Problem> {
    let Maybe(caller) = caller?;
    let body = match caller {
        Some(caller) => inside(&site.board(), &caller.who.user),
        None => outside(),
    };
    let version = env!("CARGO_PKG_VERSION");
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>Switchyard</title><style>{STYLE}</style><h1>Switchyard {version}</h1>{body}</html>\n"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, page))
}

fn outside() -> String {
    "<p>This is a scheduler for deep-learning clusters. To see more, show your token: \
     <code>curl -H \"Authorization: Bearer $(cat .yard/token)\" URL</code>, or use the command line, which finds the \
     token by itself: <code>yard nodes</code>, <code>yard jobs</code>, <code>yard top</code>.</p>\
     <p>The API is described at <a href=/v1/openapi.json>/v1/openapi.json</a>.</p>"
        .to_owned()
}

fn inside(board: &Board, user: &str) -> String {
    let counts = board.status.as_ref().map_or_else(String::new, counts);
    let nodes: String = board.nodes.values().map(node).collect();
    format!(
        "<p>You are <b>{}</b>.</p><dl>{counts}</dl>\
         <table><tr><th>node<th>state<th>devices<th>held</tr>{nodes}</table>\
         <p>First commands: <code>yard submit --gpus 1 -- python train.py</code>, <code>yard jobs</code>, \
         <code>yard logs -f last</code>, <code>yard explain last</code>.</p>",
        escape(user)
    )
}

fn counts(status: &StatusView) -> String {
    let devices = format!("{} of {}", status.devices_held, status.devices);
    let numbers = [
        ("policy", status.policy.clone()),
        ("pending", status.pending.to_string()),
        ("running", status.running.to_string()),
        ("ended", status.ended.to_string()),
        ("nodes up", status.nodes_up.to_string()),
        ("devices held", devices),
    ];
    numbers
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value)))
        .collect()
}

fn node(node: &NodeView) -> String {
    let cells: String = node.devices.iter().map(cell).collect();
    let held = node.devices.iter().filter(|device| !device.jobs.is_empty()).count();
    let state =
        node.reason.as_ref().map_or_else(|| node.state.clone(), |reason| format!("{}: {reason}", node.state));
    let (name, state, all) = (escape(&node.name), escape(&state), node.devices.len());
    format!("<tr><td>{name}<td>{state}<td>{cells}<td>{held} of {all}</tr>")
}

fn cell(device: &DeviceView) -> String {
    let class = match (device.jobs.is_empty(), &device.problem) {
        (false, _) => "cell held",
        (true, Some(_)) => "cell broken",
        (true, None) => "cell",
    };
    let mut title = format!("{} {}", device.kind, device.index);
    for job in &device.jobs {
        write!(title, ", job {job}").expect("a string takes what is written");
    }
    if let Some(problem) = &device.problem {
        write!(title, ": {problem}").expect("a string takes what is written");
    }
    format!("<span class=\"{class}\" title=\"{}\"></span>", escape(&title))
}

fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
        safe
    })
}
