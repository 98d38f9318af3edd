//! The event log: one JSON object a line, the same bytes for the same run, and their SHA-256.

use std::io::{self, Write};

use sha2::{Digest, Sha256};
use yard_core::Time;
use yard_core::cluster::{Mask, Placement};
use yard_core::ids::JobId;
use yard_core::message::Event;
use yard_core::units::MICROS;

/// Writes events, and hashes what it writes.
pub(crate) struct EventLog {
    hash: Sha256,
    buffer: Vec<u8>,
    file: Option<Box<dyn Write + Send>>,
    failed: Option<io::Error>,
}

/// Bytes gathered before they are hashed and written.
const CHUNK: usize = 1 << 16;

impl EventLog {
    pub(crate) fn new(file: Option<Box<dyn Write + Send>>) -> EventLog {
        EventLog { hash: Sha256::new(), buffer: Vec::with_capacity(CHUNK + 4096), file, failed: None }
    }

    pub(crate) fn record(&mut self, now: Time, event: &Event) {
        write_event(&mut self.buffer, now, event);
        if self.buffer.len() >= CHUNK {
            self.flush();
        }
    }

    /// The hash of all lines, or why the file could not be written.
    pub(crate) fn finish(mut self) -> io::Result<String> {
        self.flush();
        if let Some(file) = &mut self.file {
            file.flush()?;
        }
        self.failed.map_or(Ok(()), Err)?;
        Ok(self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn flush(&mut self) {
        self.hash.update(&self.buffer);
        if let (Some(file), None) = (&mut self.file, &self.failed) {
            self.failed = file.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }
}

fn write_event(out: &mut Vec<u8>, now: Time, event: &Event) {
    out.extend_from_slice(b"{\"t\":");
    seconds(out, now);
    match event {
        Event::Submitted { job } => one_job(out, "submitted", *job),
        Event::Promised { job, by, devices } => {
            one_job(out, "promised", *job);
            number(out, "by_us", by.0);
            number(out, "devices", u64::from(*devices));
        }
        Event::Unpromised { job, earliest } => {
            one_job(out, "unpromised", *job);
            earliest.iter().for_each(|time| number(out, "earliest_us", time.0));
        }
        Event::AtRisk { job, by, likely } => {
            one_job(out, "at_risk", *job);
            number(out, "by_us", by.0);
            likely.iter().for_each(|time| number(out, "likely_us", time.0));
        }
        Event::Rejected { job, reason, earliest } => {
            one_job(out, "rejected", *job);
            text(out, "reason", reason);
            earliest.iter().for_each(|time| number(out, "earliest_us", time.0));
        }
        Event::Orphaned { job, after } => {
            one_job(out, "orphaned", *job);
            number(out, "after", after.0);
        }
        Event::Granted { lease, jobs, placement } => {
            head(out, "granted");
            number(out, "lease", lease.0);
            job_list(out, jobs);
            devices(out, placement);
        }
        Event::Started { job } => one_job(out, "started", *job),
        Event::Stopping { job, why, to } => {
            one_job(out, "stopping", *job);
            text(out, "why", &format!("{why:?}").to_lowercase());
            if !to.is_empty() {
                key(out, "to");
                integers(out, to);
            }
        }
        Event::Stopped { job, steps, outcome } => {
            one_job(out, "stopped", *job);
            text(out, "outcome", &format!("{outcome:?}").to_lowercase());
            out.extend_from_slice(format!(",\"steps\":{steps}").as_bytes());
        }
        Event::Ended { job, state } => {
            one_job(out, "ended", *job);
            text(out, "state", &format!("{state:?}").to_lowercase());
        }
        Event::Freed { lease, .. } => {
            head(out, "freed");
            number(out, "lease", lease.0);
        }
        Event::Node { node, change } => {
            head(out, "node");
            number(out, "node", node.0 as u64);
            text(out, "change", &format!("{change:?}").to_lowercase());
        }
        Event::Planned { plan, certificate, unmet } => {
            head(out, "planned");
            number(out, "plan", plan.0);
            let (objective, bound) = (certificate.objective, certificate.bound);
            out.extend_from_slice(format!(",\"objective\":{objective},\"bound\":{bound}").as_bytes());
            let prices: Vec<_> = certificate.prices.iter().map(f64::to_string).collect();
            out.extend_from_slice(format!(",\"prices\":[{}]", prices.join(",")).as_bytes());
            if !unmet.is_empty() {
                key(out, "unmet");
                integers(out, unmet);
            }
        }
        Event::PlanFailed { plan, reason } => {
            head(out, "plan_failed");
            number(out, "plan", plan.0);
            text(out, "reason", reason);
        }
        Event::Stale { lease, job } => {
            one_job(out, "stale", *job);
            number(out, "lease", lease.0);
        }
    }
    out.extend_from_slice(b"}\n");
}

fn head(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"event\":\"");
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
}

fn one_job(out: &mut Vec<u8>, name: &str, job: JobId) {
    head(out, name);
    number(out, "job", job.0);
}

fn key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

fn number(out: &mut Vec<u8>, name: &str, value: u64) {
    key(out, name);
    integer(out, value);
}

fn integer(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    key(out, name);
    out.extend_from_slice(serde_json::to_string(value).expect("a string is valid JSON").as_bytes());
}

/// Seconds with six decimals, straight from microseconds.
fn seconds(out: &mut Vec<u8>, time: Time) {
    integer(out, time.0 / MICROS);
    out.push(b'.');
    let fraction = time.0 % MICROS;
    let mut digits = [b'0'; 6];
    let mut left = fraction;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    out.extend_from_slice(&digits);
}

fn job_list(out: &mut Vec<u8>, jobs: &[JobId]) {
    key(out, "jobs");
    integers(out, jobs);
}

fn integers(out: &mut Vec<u8>, jobs: &[JobId]) {
    for (at, job) in jobs.iter().enumerate() {
        out.push(if at == 0 { b'[' } else { b',' });
        integer(out, job.0);
    }
    out.push(b']');
}

/// Devices as `node:first-last`, runs separated by `+`, nodes by a space.
fn devices(out: &mut Vec<u8>, placement: &Placement) {
    key(out, "devices");
    out.push(b'"');
    for (at, slice) in placement.0.iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        integer(out, slice.node.0 as u64);
        let mut separator = b':';
        for (first, length) in runs(slice.mask) {
            out.push(separator);
            integer(out, first as u64);
            if length > 1 {
                out.push(b'-');
                integer(out, (first + length - 1) as u64);
            }
            separator = b'+';
        }
    }
    out.push(b'"');
}

/// The runs of consecutive devices in a mask, as (first, length).
pub(crate) fn runs(mut mask: Mask) -> impl Iterator<Item = (u32, u32)> {
    let mut base = 0;
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let skip = mask.trailing_zeros();
        mask >>= skip;
        let length = mask.trailing_ones();
        mask = mask.checked_shr(length).unwrap_or(0);
        let first = base + skip;
        base = first + length;
        Some((first, length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_the_mask() {
        assert_eq!(runs(0b1011_0110).collect::<Vec<_>>(), [(1, 2), (4, 2), (7, 1)]);
        assert_eq!(runs(Mask::MAX).collect::<Vec<_>>(), [(0, 128)]);
        assert_eq!(runs(0).count(), 0);
    }

    #[test]
    fn a_line_is_json_with_exact_time() {
        let mut out = Vec::new();
        write_event(
            &mut out,
            Time(12_000_034),
            &Event::Rejected { job: JobId(3), reason: "too \"large\"".into(), earliest: None },
        );
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((value["t"].as_f64(), value["job"].as_u64()), (Some(12.000034), Some(3)));
        assert_eq!(value["reason"], "too \"large\"");
    }
}
