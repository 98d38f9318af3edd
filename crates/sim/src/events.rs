//! The event log: one JSON object a line, the same bytes for the same run, and their SHA-256.

use std::fmt;
use std::io::{self, Write};

use sha2::{Digest, Sha256};
use yard_core::Time;
use yard_core::cluster::{Mask, Placement};
use yard_core::ids::JobId;
use yard_core::message::{Event, Outcome, Why};
use yard_core::units::MICROS;

/// Writes events, and hashes what it writes.
pub(crate) struct EventLog {
    hash: Sha256,
    buffer: Vec<u8>,
    /// How lines of an instant begin, and which: many things happen at once.
    beginning: (Time, Vec<u8>),
    file: Option<Box<dyn Write + Send>>,
    failed: Option<io::Error>,
}

/// Bytes gathered before they are hashed and written.
const CHUNK: usize = 1 << 16;

impl EventLog {
    pub(crate) fn new(file: Option<Box<dyn Write + Send>>) -> EventLog {
        let (hash, buffer) = (Sha256::new(), Vec::with_capacity(CHUNK + 4096));
        EventLog { hash, buffer, beginning: (Time::NEVER, Vec::new()), file, failed: None }
    }

    pub(crate) fn record(&mut self, now: Time, event: &Event) {
        if self.beginning.0 != now {
            self.beginning = (now, beginning(now));
        }
        self.buffer.extend_from_slice(&self.beginning.1);
        write_event(&mut self.buffer, event);
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

/// How all lines of an instant begin.
fn beginning(now: Time) -> Vec<u8> {
    let mut out = b"{\"t\":".to_vec();
    seconds(&mut out, now);
    out.extend_from_slice(b",\"event\":\"");
    out
}

/// The rest of a line.
fn write_event(out: &mut Vec<u8>, event: &Event) {
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
        Event::Held { job } => one_job(out, "held", *job),
        Event::Released { job } => one_job(out, "released", *job),
        Event::Edited { job } => one_job(out, "edited", *job),
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
            quoted(out, "why", word_of_why(*why));
            if !to.is_empty() {
                key(out, "to");
                integers(out, to);
            }
        }
        Event::Stopped { job, steps, outcome } => {
            one_job(out, "stopped", *job);
            quoted(out, "outcome", word_of_outcome(*outcome));
            key(out, "steps");
            decimal(out, *steps);
        }
        Event::Ended { job, state } => {
            one_job(out, "ended", *job);
            name(out, "state", state);
        }
        Event::Freed { lease, .. } => {
            head(out, "freed");
            number(out, "lease", lease.0);
        }
        Event::Node { node, change } => {
            head(out, "node");
            number(out, "node", node.0 as u64);
            name(out, "change", change);
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

#[inline(always)] // so that the name is a constant, as below
fn head(out: &mut Vec<u8>, name: &str) {
    put(out, name.as_bytes());
    put(out, b"\"");
}

#[inline(always)]
fn one_job(out: &mut Vec<u8>, name: &str, job: JobId) {
    put(out, name.as_bytes());
    put(out, b"\",\"job\":");
    integer(out, job.0);
}

/// A few bytes that are known when this is compiled, without a call.
#[inline(always)]
fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(bytes.iter().copied());
}

#[inline(always)]
fn key(out: &mut Vec<u8>, key: &str) {
    put(out, b",\"");
    put(out, key.as_bytes());
    put(out, b"\":");
}

#[inline(always)]
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

fn quoted(out: &mut Vec<u8>, of: &str, word: &str) {
    key(out, of);
    out.push(b'"');
    out.extend_from_slice(word.as_bytes());
    out.push(b'"');
}

/// The words of what happens by the million are written out: formatting them takes longer than all the rest of a line.
fn word_of_why(why: Why) -> &'static str {
    match why {
        Why::Preempted => "preempted",
        Why::Moved => "moved",
        Why::Cancelled => "cancelled",
        Why::Killed => "killed",
        Why::Held => "held",
        Why::Requeued => "requeued",
        Why::Drained => "drained",
        Why::Lost => "lost",
    }
}

fn word_of_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Finished => "finished",
        Outcome::Saved => "saved",
        Outcome::Frozen => "frozen",
        Outcome::Lost => "lost",
        Outcome::Crashed => "crashed",
        Outcome::Expired => "expired",
    }
}

/// The name of a variant that has nothing but a name, in lower case.
fn name(out: &mut Vec<u8>, of: &str, variant: &impl fmt::Debug) {
    key(out, of);
    out.push(b'"');
    let start = out.len();
    write!(out, "{variant:?}").expect("a vector takes all that is written");
    out[start..].make_ascii_lowercase();
    out.push(b'"');
}

/// A number in the shortest form that reads back as the same. Whole ones, as most counts of steps are, are written
/// as integers, which is the same and quicker.
fn decimal(out: &mut Vec<u8>, value: f64) {
    let whole = value as u64;
    if value.is_sign_positive() && whole as f64 == value && whole < 1 << 53 {
        return integer(out, whole);
    }
    write!(out, "{value}").expect("a vector takes all that is written");
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
pub(crate) fn runs(mut mask: Mask) -> impl Iterator<Item = (u32, u32)> + Clone {
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
    fn whole_numbers_are_written_as_all_others_are() {
        for value in
            [0.0, -0.0, 1.0, 0.5, 1e15, 9_007_199_254_740_991.0, 9_007_199_254_740_992.0, 1e20, -3.0, 1e-7]
        {
            let mut out = Vec::new();
            decimal(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }

    #[test]
    fn words_are_the_names_of_variants() {
        use {Outcome as O, Why as W};
        for why in [W::Preempted, W::Moved, W::Cancelled, W::Killed, W::Drained, W::Lost] {
            assert_eq!(word_of_why(why), format!("{why:?}").to_lowercase());
        }
        for outcome in [O::Finished, O::Saved, O::Frozen, O::Lost, O::Crashed, O::Expired] {
            assert_eq!(word_of_outcome(outcome), format!("{outcome:?}").to_lowercase());
        }
    }

    #[test]
    fn a_line_is_json_with_exact_time() {
        let mut out = Vec::new();
        out.extend(beginning(Time(12_000_034)));
        write_event(
            &mut out,
            &Event::Rejected { job: JobId(3), reason: "too \"large\"".into(), earliest: None },
        );
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((value["t"].as_f64(), value["job"].as_u64()), (Some(12.000034), Some(3)));
        assert_eq!(value["reason"], "too \"large\"");
    }
}
