//! The dashboard: a page and what it loads, built into the binary from `web/dist`. It holds nothing private; what it
//! shows it asks of the API, with the token that its reader gives it. Nothing may be loaded from elsewhere, and no
//! script but the page's own may run.

use std::io::Write;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::ApiProblem;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// A file of the dashboard.
struct WebFile {
    name: &'static str,
    kind: &'static str,
    plain: &'static [u8],
    packed: Vec<u8>,
    tag: String,
}

static FILES: LazyLock<[WebFile; 4]> = LazyLock::new(|| {
    [
        file("", "text/html; charset=utf-8", include_bytes!("../../../../web/dist/index.html")),
        file(
            "app.js",
            "text/javascript; charset=utf-8",
            include_bytes!("../../../../web/dist/assets/app.js"),
        ),
        file("app.css", "text/css; charset=utf-8", include_bytes!("../../../../web/dist/assets/app.css")),
        file("icon.svg", "image/svg+xml", include_bytes!("../../../../web/dist/assets/icon.svg")),
    ]
});

fn file(name: &'static str, kind: &'static str, plain: &'static [u8]) -> WebFile {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail; what is sent packed would be empty, and a test looks.
    let packed = packer.write_all(plain).and_then(|()| packer.finish()).unwrap_or_default();
    let tag: String = Sha256::digest(plain).iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    WebFile { name, kind, plain, packed, tag: format!("\"{tag}\"") }
}

#[utoipa::path(get, path = "/", responses((status = 200, content_type = "text/html", body = String,
    description = "The dashboard")))]
pub(super) async fn page(headers: HeaderMap) -> Result<Response, ApiProblem> {
    serve("", &headers)
}

#[utoipa::path(get, path = "/assets/{file}", params(("file" = String, Path, description = "Its name")),
    responses((status = 200, description = "What the dashboard loads")))]
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, ApiProblem> {
    serve(&name, &headers)
}

fn serve(name: &str, headers: &HeaderMap) -> Result<Response, ApiProblem> {
    let missing = || ApiProblem::new(StatusCode::NOT_FOUND, "there is no such file; the dashboard is at /");
    let file = FILES.iter().find(|file| file.name == name).ok_or_else(missing)?;
    let asked = |name, word: &str| {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).any(|value| value.contains(word))
    };
    let mut response = if asked(header::IF_NONE_MATCH, &file.tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if asked(header::ACCEPT_ENCODING, "gzip") {
        ([(header::CONTENT_ENCODING, "gzip")], file.packed.as_slice()).into_response()
    } else {
        file.plain.into_response()
    };
    // `extend` would add to what is there: a page with two content types is refused by browsers.
    for (name, value) in guards(file) {
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// A browser asks each time whether the file is still the same, so that page and script are of one build.
fn guards(file: &'static WebFile) -> [(header::HeaderName, HeaderValue); 7] {
    [
        (header::CONTENT_TYPE, HeaderValue::from_static(file.kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::ETAG, HeaderValue::from_str(&file.tag).unwrap_or(HeaderValue::from_static("\"\""))),
    ]
}
