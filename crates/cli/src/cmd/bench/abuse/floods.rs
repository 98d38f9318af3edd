//! The floods: each does one thing as fast and as often as it can until it is told to stop.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use yard_live::request::JobRequest;
use yard_live::views::JobView;

use super::super::live::process::until;
use super::job::AbuseJob;
use crate::client::Client;

/// Threads that flood at once.
const THREADS: usize = 4;
/// How long a connection waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a user can flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Flood {
    /// A job's socket to its agent: many connections, lines without end
    Socket,
    /// Output without end, and followers that hardly read it
    Logs,
    /// Watchers of the whole board that do not read
    Watch,
    /// Jobs with as large an environment as is taken
    Environment,
    /// Requests as fast as they are answered
    Requests,
    /// Bodies that are begun and never finished
    Bodies,
}

impl std::fmt::Display for Flood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Flood::Socket => "socket",
            Flood::Logs => "logs",
            Flood::Watch => "watch",
            Flood::Environment => "environment",
            Flood::Requests => "requests",
            Flood::Bodies => "bodies",
        })
    }
}

impl Flood {
    pub(super) const ALL: [Flood; 6] =
        [Flood::Socket, Flood::Logs, Flood::Watch, Flood::Environment, Flood::Requests, Flood::Bodies];

    pub(super) fn about(self) -> &'static str {
        match self {
            Flood::Socket => "a job floods its agent's socket",
            Flood::Logs => "a job writes without end, and its log is followed slowly",
            Flood::Watch => "many watch and do not read",
            Flood::Environment => "jobs come with large environments",
            Flood::Requests => "requests come as fast as they are answered",
            Flood::Bodies => "bodies are begun and never finished",
        }
    }
}

/// How much was sent, and how much of it the server refused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) sent: u64,
    pub(super) refused: u64,
}

/// A user with a submit token.
pub(super) struct Attacker {
    address: String,
    token: String,
    client: Client,
}

impl Attacker {
    pub(super) fn new(url: String, token: String, client: Client) -> Attacker {
        let address = url.trim_start_matches("http://").to_owned();
        Attacker { address, token, client }
    }

    /// Floods until told to stop.
    pub(super) fn flood(&self, flood: Flood, stop: &AtomicBool) -> anyhow::Result<Sent> {
        match flood {
            Flood::Socket => self.job(AbuseJob::Socket).map(|_| Sent { sent: 1, refused: 0 }),
            Flood::Logs => self.logs(stop),
            Flood::Watch => Ok(self.everywhere(stop, |held| self.hold_open("/v1/watch", held))),
            Flood::Environment => Ok(self.everywhere(stop, |_| self.large_job())),
            Flood::Requests => {
                Ok(self.everywhere(stop, |_| self.answered(&self.request("GET", "/v1/jobs", ""))))
            }
            Flood::Bodies => Ok(self.everywhere(stop, |held| self.half_a_body(held))),
        }
    }

    /// Does something on several threads, with the connections that each holds open.
    fn everywhere(
        &self,
        stop: &AtomicBool,
        once: impl Fn(&mut Vec<TcpStream>) -> std::io::Result<bool> + Sync,
    ) -> Sent {
        let (sent, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    // A flood from another machine takes no processor here.
                    yard_live::give_way();
                    let mut held = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let taken = once(&mut held);
                        sent.fetch_add(1, Ordering::Relaxed);
                        if !taken.unwrap_or(false) {
                            refused.fetch_add(1, Ordering::Relaxed);
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                });
            }
        });
        Sent { sent: sent.into_inner(), refused: refused.into_inner() }
    }

    /// A job of the attacker that runs.
    fn job(&self, what: AbuseJob) -> anyhow::Result<u64> {
        let program = std::env::current_exe().context("cannot find the file of this program")?;
        let command = [program.to_string_lossy().into_owned()]
            .into_iter()
            .chain(["bench", "abuse", "--job"].map(str::to_owned))
            .chain([what.name().to_owned()]);
        let request = JobRequest { command: command.collect(), ..JobRequest::default() };
        let view: JobView = self.client.post("/v1/jobs", &request)?;
        let path = format!("/v1/jobs/{}", view.id);
        until("the attacker's job runs", || {
            let view = self.client.get::<JobView>(&path, &[]).ok()?;
            (view.state == "running" || view.ended_at.is_some()).then_some(())
        })?;
        Ok(view.id)
    }

    /// Followers that read a byte now and then.
    fn logs(&self, stop: &AtomicBool) -> anyhow::Result<Sent> {
        let job = self.job(AbuseJob::Output)?;
        let path = format!("/v1/jobs/{job}/logs?follow=true");
        let sent = self.everywhere(stop, |held| {
            let taken = self.hold_open(&path, held)?;
            for stream in held.iter_mut() {
                let _nothing = stream.read(&mut [0]);
            }
            Ok(taken)
        });
        let _over = self.client.order(&format!("/v1/jobs/{job}/cancel"), &json!({ "force": true }));
        Ok(sent)
    }

    /// Opens a stream and keeps it, unread; whether the server took it.
    fn hold_open(&self, path: &str, held: &mut Vec<TcpStream>) -> std::io::Result<bool> {
        let mut stream = self.connect()?;
        stream.write_all(self.request("GET", path, "").as_bytes())?;
        let taken = took(&mut stream)?;
        if taken {
            stream.set_nonblocking(true)?;
            held.push(stream);
        }
        Ok(taken)
    }

    /// A job that holds as much as is taken, and waits.
    fn large_job(&self) -> std::io::Result<bool> {
        let request = JobRequest {
            command: vec!["true".into()],
            env: [("FILL".to_owned(), "x".repeat(60 << 10))].into(),
            begin: Some(crate::clock::seconds_now() + 1e6),
            ..JobRequest::default()
        };
        self.answered(&self.request("POST", "/v1/jobs", &json!(request).to_string()))
    }

    /// Most of a large body, and then nothing.
    fn half_a_body(&self, held: &mut Vec<TcpStream>) -> std::io::Result<bool> {
        let mut stream = self.connect()?;
        let head = self.request("POST", "/v1/jobs", "");
        let head = head.replace("content-length: 0", "content-length: 1000000");
        stream.write_all(head.as_bytes())?;
        stream.write_all(&vec![b' '; 900_000])?;
        held.push(stream);
        if held.len() > 1_000 {
            held.clear();
        }
        Ok(true)
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Sends a request on a connection of its own; whether the server did what it asks.
    fn answered(&self, request: &str) -> std::io::Result<bool> {
        let mut stream = self.connect()?;
        stream.write_all(request.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes())?;
        let taken = took(&mut stream)?;
        std::io::copy(&mut stream, &mut std::io::sink())?;
        Ok(taken)
    }

    fn request(&self, method: &str, path: &str, body: &str) -> String {
        let (token, length) = (&self.token, body.len());
        format!(
            "{method} {path} HTTP/1.1\r\nhost: yard\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    }
}

/// Whether the answer begins with a success.
fn took(stream: &mut TcpStream) -> std::io::Result<bool> {
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    Ok(head[9] == b'2')
}
