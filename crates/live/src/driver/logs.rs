//! Jobs' logs lie on the hosts that ran them; this passes requests on and hands the pieces back. Nothing of it
//! is durable: who still wants a log after a restart asks again.
//!
//! A log is sent no faster than it is read: a host has credit for a few pieces and gets more as the reader takes
//! them. So a reader who stands still costs those few pieces, however large the log is.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use yard_core::units::Time;

use super::Driver;
use super::clients::no_job;
use crate::clock::now_us;
use crate::exec::{Directive, HostId, LOG_CREDIT, LOG_PIECE};
use crate::handle::{LogRequest, LogStream, Refusal, Reply, Who};
use crate::store::Ran;

/// Bytes of text in one piece, at most.
const TEXT_MAX: usize = 3 * LOG_PIECE + 16;

/// Requests that hosts are answering.
#[derive(Debug)]
pub(super) struct Logs {
    open: BTreeMap<u64, OpenLog>,
    /// The last number that was given. It grows over restarts, so that what a host still sends to an older request
    /// never reaches the reader of another log.
    requests: u64,
    /// Requests whose asker is gone, to be called off.
    unwanted: Vec<(HostId, u64)>,
}

/// A request that a host is answering.
#[derive(Debug)]
struct OpenLog {
    host: HostId,
    /// Pieces that the host may still send.
    credit: u32,
    /// Has room for as many, and for the reason why it ends.
    asker: mpsc::Sender<Result<String, String>>,
}

impl Default for Logs {
    fn default() -> Logs {
        Logs { open: BTreeMap::new(), requests: now_us(), unwanted: Vec::new() }
    }
}

impl Logs {
    fn begin(&mut self, host: HostId) -> LogStream {
        let (asker, pieces) = mpsc::channel(LOG_CREDIT as usize + 1);
        self.requests += 1;
        self.open.insert(self.requests, OpenLog { host, credit: LOG_CREDIT, asker });
        LogStream { request: self.requests, pieces }
    }

    /// A host sent a piece.
    pub(super) fn piece(
        &mut self,
        host: HostId,
        request: u64,
        text: String,
        end: bool,
        error: Option<String>,
    ) {
        let Some(open) = self.open.get_mut(&request).filter(|open| open.host == host) else { return };
        let goes_on = open.take(text, error);
        if end || !goes_on {
            self.open.remove(&request);
        }
        if !end && !goes_on {
            self.unwanted.push((host, request));
        }
    }

    /// The reader took pieces: whose host may send as many more, if any.
    fn grant(&mut self, request: u64, pieces: u32) -> Option<(HostId, u32)> {
        let open = self.open.get_mut(&request)?;
        let pieces = pieces.min(LOG_CREDIT - open.credit);
        open.credit += pieces;
        (pieces > 0).then_some((open.host, pieces))
    }

    /// A host is gone with all it was sending.
    pub(super) fn lost(&mut self, host: HostId, reason: &str) {
        self.open.retain(|_, open| {
            if open.host == host {
                let _ = open.asker.try_send(Err(reason.to_owned()));
            }
            open.host != host
        });
    }

    /// Notes who does not listen any more, and returns what to call off.
    pub(super) fn call_off(&mut self) -> Vec<(HostId, u64)> {
        let mut unwanted = std::mem::take(&mut self.unwanted);
        self.open.retain(|request, open| {
            if open.asker.is_closed() {
                unwanted.push((open.host, *request));
            }
            !open.asker.is_closed()
        });
        unwanted
    }
}

impl OpenLog {
    /// Hands a piece on; whether the request goes on. A host that sends more than it may is cut off.
    fn take(&mut self, text: String, error: Option<String>) -> bool {
        if let Some(error) = error {
            return self.asker.try_send(Err(error)).is_ok();
        }
        if text.is_empty() {
            return !self.asker.is_closed();
        }
        if self.credit == 0 || text.len() > TEXT_MAX {
            let error = "the node sent more of the log than requested; try again, and please report this";
            let _ = self.asker.try_send(Err(error.to_owned()));
            return false;
        }
        self.credit -= 1;
        self.asker.try_send(Ok(text)).is_ok()
    }
}

impl Driver {
    pub(super) fn take_logs(&mut self, now: Time, who: &Who, log: LogRequest, reply: Reply<LogStream>) {
        let _ = reply.send(self.open_log(now, who, log));
    }

    fn open_log(&mut self, now: Time, who: &Who, log: LogRequest) -> Result<LogStream, Refusal> {
        let LogRequest { job, rank, .. } = log;
        self.look_up_for(who, job)?;
        let ran = self.ran(job)?;
        let can = self.backend.abilities();
        if !can.logs {
            return Err(Refusal::NotFound(format!(
                "the output of job {job} is not kept: jobs are run by {}, which has no logs to show; have the job write to a file",
                can.name
            )));
        }
        let has = |ran: &&Ran| (ran.first..ran.first.saturating_add(ran.count)).contains(&rank);
        let Some(ran) = ran.iter().find(has) else {
            let world: u32 = ran.iter().map(|ran| ran.count).sum();
            let message = if world == 0 {
                format!("job {job} has not started yet, so it has no output")
            } else {
                format!("job {job} has no rank {rank}; its ranks are 0 to {}", world - 1)
            };
            return Err(Refusal::NotFound(message));
        };
        let there = self.hosts.named(&ran.node).filter(|host| self.hosts.get(*host).is_there());
        let Some(host) = there else {
            let message = format!("the output of job {job} is on node {}, which cannot be reached", ran.node);
            return Err(Refusal::Unavailable(message));
        };
        let stream = self.logs.begin(host);
        let request = stream.request;
        self.direct(now, Directive::ReadLog { host, request, log });
        Ok(stream)
    }

    /// The reader of a log wants more of it.
    pub(super) fn grant_log(&mut self, now: Time, request: u64, pieces: u32) {
        if let Some((host, pieces)) = self.logs.grant(request, pieces) {
            self.direct(now, Directive::ReadMore { host, request, pieces });
        }
    }

    /// Where a job ran last.
    fn ran(&self, job: yard_core::ids::JobId) -> Result<Vec<Ran>, Refusal> {
        if let Some(record) = self.records.all.get(&job) {
            return Ok(record.facts.ran.clone());
        }
        let row = self.store.job(job).map_err(|error| Refusal::Unavailable(error.to_string()))?;
        row.map(|row| row.facts.ran).ok_or_else(|| no_job(job))
    }

    /// Tells hosts about askers that are gone.
    pub(super) fn call_off_logs(&mut self, now: Time) {
        for (host, request) in self.logs.call_off() {
            self.direct(now, Directive::StopReading { host, request });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: HostId = HostId(3);

    fn send(logs: &mut Logs, request: u64) {
        logs.piece(NODE, request, "x".repeat(LOG_PIECE), false, None);
    }

    fn taken(stream: &mut LogStream) -> Vec<bool> {
        std::iter::from_fn(|| stream.pieces.try_recv().ok()).map(|piece| piece.is_ok()).collect()
    }

    #[test]
    fn a_reader_who_stands_still_costs_no_more_than_the_credit() {
        let mut logs = Logs::default();
        let (mut still, mut other) = (logs.begin(NODE), logs.begin(NODE));
        for _ in 0..1_000 {
            send(&mut logs, still.request);
        }
        send(&mut logs, other.request);
        let mut pieces = taken(&mut still);
        assert_eq!(pieces.pop(), Some(false), "the node is cut off, and the reader is told");
        assert_eq!(pieces, vec![true; LOG_CREDIT as usize]);
        assert_eq!(logs.call_off(), [(NODE, still.request)], "and the node is told to stop");
        assert_eq!(taken(&mut other), [true], "another reader goes on");
    }

    #[test]
    fn credit_comes_back_as_pieces_are_taken_and_never_exceeds_the_first() {
        let mut logs = Logs::default();
        let mut stream = logs.begin(NODE);
        assert_eq!(logs.grant(stream.request, 100), None, "nothing was taken yet");
        (0..10).for_each(|_| send(&mut logs, stream.request));
        assert_eq!(taken(&mut stream).len(), 10);
        assert_eq!(logs.grant(stream.request, 8), Some((NODE, 8)));
        assert_eq!(logs.grant(stream.request, u32::MAX), Some((NODE, 2)));
        (0..LOG_CREDIT).for_each(|_| send(&mut logs, stream.request));
        assert_eq!(taken(&mut stream), vec![true; LOG_CREDIT as usize]);
        assert_eq!(logs.grant(999, 1), None, "no such request");
    }

    #[test]
    fn a_piece_that_is_too_large_ends_the_request() {
        let mut logs = Logs::default();
        let mut stream = logs.begin(NODE);
        logs.piece(NODE, stream.request, "x".repeat(TEXT_MAX + 1), false, None);
        assert_eq!(taken(&mut stream), [false]);
        let mut stream = logs.begin(NODE);
        logs.piece(HostId(4), stream.request, "another node's".into(), false, None);
        assert_eq!(taken(&mut stream), [true; 0], "only the node that was asked answers");
    }

    #[test]
    fn requests_of_another_start_have_other_numbers() {
        let before = Logs::default().begin(NODE).request;
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(Logs::default().begin(NODE).request > before);
    }
}
