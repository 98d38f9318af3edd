//! The one place that reads the clock: how long things took, never what is decided.

#![expect(clippy::disallowed_methods, reason = "a stopwatch for the results; nothing is decided by it")]

use std::time::Instant;

use yard_core::allocation::Allocation;
use yard_core::policy::{Cadence, Policy, PolicyError};
use yard_core::view::View;

/// Measures from its making.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// A policy, and how long it thought.
pub(crate) struct Timed {
    inner: Box<dyn Policy>,
    pub(crate) seconds: f64,
}

impl Timed {
    pub(crate) fn new(inner: Box<dyn Policy>) -> Timed {
        Timed { inner, seconds: 0.0 }
    }
}

impl Policy for Timed {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let watch = Stopwatch::start();
        let answer = self.inner.allocate(view);
        self.seconds += watch.seconds();
        answer
    }

    fn cadence(&self) -> Cadence {
        self.inner.cadence()
    }

    fn agnostic(&self) -> bool {
        self.inner.agnostic()
    }

    fn blocking(&self) -> bool {
        self.inner.blocking()
    }
}

/// CPU seconds of this thread so far, where the system tells.
pub(crate) fn thread_cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanos / 1e9)
}

/// Most memory this process ever held, in MiB, where the system tells.
pub(crate) fn peak_rss_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
