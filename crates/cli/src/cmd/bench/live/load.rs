//! Clients that submit as fast as they get answers, and what the disk under the server could do at best.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use yard_live::request::JobRequest;

use crate::client::{Client, ServerArgs};
use crate::clock::CommandStopwatch;

/// How long the disk is tried.
const DISK_S: f64 = 1.0;
/// As much as a page of the journal.
const BLOCK: [u8; 4096] = [7; 4096];

/// What submitting took.
pub(super) struct Submitted {
    pub(super) wall_s: f64,
    /// Seconds of each submission, the quickest first.
    each_s: Vec<f64>,
}

impl Submitted {
    pub(super) fn per_second(&self) -> f64 {
        self.each_s.len() as f64 / self.wall_s
    }

    /// Milliseconds within which this part of the submissions were answered.
    pub(super) fn quantile_ms(&self, part: f64) -> f64 {
        let at = (self.each_s.len() as f64 * part).ceil() as usize;
        self.each_s.get(at.max(1) - 1).map_or(0.0, |seconds| seconds * 1e3)
    }
}

/// The job of each number.
pub(super) type Requests<'a> = &'a (dyn Fn(usize) -> JobRequest + Sync);

/// Submits so many jobs from so many clients. Each has one connection and waits for each answer, so every job that
/// counts is durable.
pub(super) fn submit(
    server: &ServerArgs,
    clients: usize,
    jobs: usize,
    request: Requests<'_>,
) -> anyhow::Result<Submitted> {
    let taken = AtomicUsize::new(0);
    let watch = CommandStopwatch::start();
    let each_s: anyhow::Result<Vec<Vec<f64>>> = std::thread::scope(|scope| {
        let client = || scope.spawn(|| submit_some(server, &taken, jobs, request));
        let threads: Vec<_> = (0..clients).map(|_| client()).collect();
        threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
    });
    let wall_s = watch.seconds();
    let mut each_s = each_s?.concat();
    each_s.sort_by(f64::total_cmp);
    Ok(Submitted { wall_s, each_s })
}

/// One client's part.
fn submit_some(
    server: &ServerArgs,
    taken: &AtomicUsize,
    jobs: usize,
    request: Requests<'_>,
) -> anyhow::Result<Vec<f64>> {
    let client = Client::new(server)?;
    let mut each_s = Vec::new();
    loop {
        let number = taken.fetch_add(1, Ordering::Relaxed);
        if number >= jobs {
            return Ok(each_s);
        }
        let watch = CommandStopwatch::start();
        client.submit(&request(number), &format!("bench-{number}"))?;
        each_s.push(watch.seconds());
    }
}

/// How often in a second the disk makes a block durable.
pub(super) fn fsyncs_per_second(folder: &Path) -> anyhow::Result<f64> {
    let path = folder.join("fsync");
    let fails = || format!("cannot write {}", path.display());
    let mut file = File::create(&path).with_context(fails)?;
    let watch = CommandStopwatch::start();
    let mut times = 0;
    while watch.seconds() < DISK_S {
        file.write_all(&BLOCK).and_then(|()| file.sync_data()).with_context(fails)?;
        times += 1;
    }
    Ok(f64::from(times) / watch.seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_those_that_were_answered() {
        let submitted = Submitted { wall_s: 2.0, each_s: (1..=100).map(f64::from).collect() };
        assert_eq!(submitted.per_second(), 50.0);
        assert_eq!((submitted.quantile_ms(0.5), submitted.quantile_ms(0.99)), (50e3, 99e3));
        assert_eq!(Submitted { wall_s: 1.0, each_s: vec![] }.quantile_ms(0.99), 0.0);
    }
}
