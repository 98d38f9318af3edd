//! The command line's end of the API: one blocking request at a time, and for each way it can go wrong one sentence
//! that says what to do. The token is never printed.

mod pages;
mod place;

use std::fmt;
use std::io::Read;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, RequestBuilder};
use yard_live::request::JobRequest;
use yard_live::views::{ErrorView, JobView};

pub(crate) use pages::WhichJobs;
pub(crate) use place::{Place, ServerArgs};

/// Largest answer that is read: a hundred thousand jobs.
const ANSWER_MAX: u64 = 256 << 20;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pauses before a submission is sent again, when its connection broke. The server may be starting anew.
const RETRIES: [Duration; 6] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// A submission that came too soon is sent again by itself where it need not wait for longer.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// The longest pause that is made between two of many requests.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Why there is no answer to use.
#[derive(Debug)]
pub(crate) struct ApiFailure {
    /// How the server refused; none where it did not answer.
    pub(crate) status: Option<u16>,
    /// Whether the request never got as far as the server.
    unsent: bool,
    /// After how long the server said to try again, where there was too much at once.
    wait: Option<Duration>,
    message: String,
}

impl ApiFailure {
    /// Whether it may go better in a moment: nobody answered, or the server said so.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.status, None | Some(429 | 502 | 503 | 504))
    }
}

impl fmt::Display for ApiFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiFailure {}

/// The answer to a request.
pub(crate) type Answer<T> = Result<T, ApiFailure>;

/// Which job is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobRef {
    /// The one that this user submitted last.
    Last,
    /// This one.
    Id(u64),
}

impl std::str::FromStr for JobRef {
    type Err = String;

    fn from_str(text: &str) -> Result<JobRef, String> {
        match text {
            "last" => Ok(JobRef::Last),
            number => number.parse().map(JobRef::Id).map_err(|_| {
                format!(
                    "{text:?} is neither a job number nor last; yard jobs --name {text:?} \
                finds jobs by name"
                )
            }),
        }
    }
}

/// Asks the server.
pub(crate) struct Client {
    agent: Agent,
    place: Place,
}

impl Client {
    /// Finds out which server to ask, and as whom. Nothing is sent yet.
    pub(crate) fn new(args: &ServerArgs) -> anyhow::Result<Client> {
        let place = Place::find(args)?;
        let roots = match &place.ca {
            Some(pem) => RootCerts::new_with_certs(&[authority(pem, &place.url_from)?]),
            None => RootCerts::WebPki,
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // A cluster's server is near; and a token must not wander through whatever the environment names.
            .proxy(None)
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_recv_response(Some(PATIENCE))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .user_agent(concat!("yard/", env!("CARGO_PKG_VERSION")));
        Ok(Client { agent: config.build().new_agent(), place })
    }

    /// Reads something.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Answer<T> {
        self.decode(self.asked(path, query).config().timeout_global(Some(PATIENCE)).build().call())
    }

    /// Reads something that comes bit by bit, for as long as it comes. `after`: the last event that was seen.
    pub(crate) fn stream(
        &self,
        path: &str,
        query: &[(&str, String)],
        after: Option<u64>,
    ) -> Answer<impl Read> {
        let request = self.asked(path, query);
        let request = match after {
            Some(id) => request.header("Last-Event-ID", id.to_string()),
            None => request,
        };
        Ok(self.checked(request.call())?.into_body().into_reader())
    }

    /// Changes something; the answer is what it is then.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Answer<T> {
        self.decode(self.posted(path).send_json(body))
    }

    /// The same, among many: where the server wants a pause, it is made.
    pub(crate) fn post_patiently<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Answer<T> {
        let mut answer = self.post(path, body);
        for _ in 0..RETRIES.len() {
            match &answer {
                Err(ApiFailure { wait: Some(wait), .. }) if *wait <= PAUSE_MAX => std::thread::sleep(*wait),
                _ => break,
            }
            answer = self.post(path, body);
        }
        answer
    }

    /// Changes something, and that is all.
    pub(crate) fn order(&self, path: &str, body: &impl Serialize) -> Answer<()> {
        self.checked(self.posted(path).send_json(body)).map(drop)
    }

    /// Puts something in its place.
    pub(crate) fn put(&self, path: &str, body: &impl Serialize) -> Answer<()> {
        let request = self.signed(self.agent.put(format!("{}{path}", self.place.url)));
        let request = request.config().timeout_global(Some(PATIENCE)).build();
        self.checked(request.send_json(body)).map(drop)
    }

    /// Takes something away.
    pub(crate) fn delete(&self, path: &str) -> Answer<()> {
        let request = self.signed(self.agent.delete(format!("{}{path}", self.place.url)));
        self.checked(request.call()).map(drop)
    }

    /// The number of a job.
    pub(crate) fn job_id(&self, job: JobRef) -> Answer<u64> {
        match job {
            JobRef::Id(id) => Ok(id),
            JobRef::Last => self.get::<JobView>("/v1/jobs/last", &[]).map(|job| job.id),
        }
    }

    /// Submits a job. The key makes it harmless to send it again when the connection broke before the answer came.
    pub(crate) fn submit(&self, request: &JobRequest, key: &str) -> Answer<JobView> {
        let send = || self.decode(self.posted("/v1/jobs").header("Idempotency-Key", key).send_json(request));
        let mut answer = send();
        // Where nobody listens from the first, waiting helps nobody.
        if matches!(&answer, Err(failure) if failure.unsent) {
            return answer;
        }
        for pause in RETRIES {
            match &answer {
                Err(failure) if failure.status.is_none() => std::thread::sleep(pause),
                Err(ApiFailure { wait: Some(wait), .. }) if *wait <= WAIT_MAX => std::thread::sleep(*wait),
                _ => break,
            }
            answer = send();
        }
        answer
    }

    fn asked(&self, path: &str, query: &[(&str, String)]) -> RequestBuilder<ureq::typestate::WithoutBody> {
        let pairs = query.iter().map(|(key, value)| (*key, value.as_str()));
        self.signed(self.agent.get(format!("{}{path}", self.place.url)).query_pairs(pairs))
    }

    fn posted(&self, path: &str) -> RequestBuilder<ureq::typestate::WithBody> {
        self.signed(self.agent.post(format!("{}{path}", self.place.url)))
            .config()
            .timeout_global(Some(PATIENCE))
            .build()
    }

    fn signed<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.place.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn decode<T: DeserializeOwned>(&self, sent: Result<Response<Body>, ureq::Error>) -> Answer<T> {
        let mut response = self.checked(sent)?;
        let status = Some(response.status().as_u16());
        let body = response.body_mut().with_config().limit(ANSWER_MAX).read_json();
        body.map_err(|error| ApiFailure {
            status: if matches!(error, ureq::Error::Json(_)) { status } else { None },
            unsent: false,
            wait: None,
            message: format!(
                "{} sent an unexpected answer ({error}); is it a yard server of this version?",
                self.place.url
            ),
        })
    }

    /// An answer that is no refusal.
    fn checked(&self, sent: Result<Response<Body>, ureq::Error>) -> Answer<Response<Body>> {
        let mut response = sent.map_err(|error| self.unanswered(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let wait =
            response.headers().get("Retry-After").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let text = response.body_mut().with_config().limit(64 << 10).lossy_utf8(true).read_to_string();
        let said = said(&text.unwrap_or_default());
        let seconds = wait.as_ref().filter(|_| status == 429).and_then(|wait| wait.parse().ok());
        Err(ApiFailure {
            status: Some(status),
            unsent: false,
            wait: seconds.map(Duration::from_secs),
            message: self.refusal(status, &said, wait.as_deref()),
        })
    }

    fn unanswered(&self, error: &ureq::Error) -> ApiFailure {
        use ureq::Error::{ConnectionFailed, HostNotFound, Io};
        let unsent = match error {
            Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
            ConnectionFailed | HostNotFound => true,
            _ => false,
        };
        let Place { url, url_from, .. } = &self.place;
        let message = format!(
            "no server answers at {url} (from {url_from}): {error}; start one with: yard up, or choose another \
             with --server"
        );
        ApiFailure { status: None, unsent, wait: None, message }
    }

    fn refusal(&self, status: u16, said: &str, wait: Option<&str>) -> String {
        let Place { url, token_from, token, .. } = &self.place;
        match status {
            401 if token.is_none() => {
                format!("{url} requires a token and none was found; {}", place::TOKEN_REMEDY)
            }
            401 => {
                format!("{url} does not accept the token from {token_from}: {said}; {}", place::TOKEN_REMEDY)
            }
            429 if wait.is_some() => {
                let wait = wait.unwrap_or_default();
                format!("{url} got too many requests: {said}; try again in {wait} s")
            }
            503 => format!("{url} cannot do that now: {said}"),
            400..=499 => said.to_owned(),
            _ => format!("{url} answered {status}: {said}"),
        }
    }
}

fn authority(pem: &str, from: &str) -> anyhow::Result<Certificate<'static>> {
    let read = Certificate::from_pem(pem.as_bytes());
    read.map_err(|error| {
        anyhow::anyhow!("the certificate in {from} cannot be read: {error}; copy the file again")
    })
}

/// What the body of a refusal says.
fn said(body: &str) -> String {
    let view = serde_json::from_str::<ErrorView>(body);
    let text = match view {
        Ok(ErrorView { error, field: Some(field) }) if !error.contains(&field) => format!("{field}: {error}"),
        Ok(view) => view.error,
        Err(_) => body.lines().next().unwrap_or_default().chars().take(300).collect(),
    };
    if text.is_empty() { "it gave no reason".into() } else { crate::output::plain(&text) }
}

/// A part of a path, with what has a meaning there written as bytes.
pub(crate) fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_in_paths() {
        assert_eq!(segment("node-1"), "node-1");
        assert_eq!(segment("n1/h100"), "n1%2Fh100");
        assert_eq!(segment("../ä"), "..%2F%C3%A4");
    }

    #[test]
    fn jobs_are_named_by_number_or_last() {
        assert_eq!("last".parse(), Ok(JobRef::Last));
        assert_eq!("12".parse(), Ok(JobRef::Id(12)));
        assert!("-1".parse::<JobRef>().is_err() && "first".parse::<JobRef>().is_err());
    }

    #[test]
    fn refusals_are_told_in_one_line() {
        assert_eq!(said(r#"{"error":"too many","field":"gpus"}"#), "gpus: too many");
        assert_eq!(said(r#"{"error":"gpus is too many","field":"gpus"}"#), "gpus is too many");
        assert_eq!(said("<html>\nno"), "<html>");
        assert_eq!(said("\u{1b}[2Jboo"), "\u{fffd}[2Jboo");
        assert_eq!(said(""), "it gave no reason");
    }
}
