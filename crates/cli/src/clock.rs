//! The one place that reads the clock: how long things took and what the time is, never what is decided.

#![expect(clippy::disallowed_methods, reason = "a stopwatch for the results; nothing is decided by it")]

use std::time::Instant;

use yard_core::allocation::Allocation;
use yard_core::policy::{Cadence, Policy, PolicyError};
use yard_core::view::View;

/// Measures from its making.
pub(crate) struct CommandStopwatch(Instant);

impl CommandStopwatch {
    pub(crate) fn start() -> CommandStopwatch {
        CommandStopwatch(Instant::now())
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// What the time is, in the user's zone.
pub(crate) fn now() -> jiff::Zoned {
    jiff::Zoned::now()
}

/// Seconds since 1970.
pub(crate) fn seconds_now() -> f64 {
    jiff::Timestamp::now().as_microsecond() as f64 / 1e6
}

/// A moment given in seconds since 1970, as people here write it.
pub(crate) fn written(seconds: f64) -> String {
    let moment = jiff::Timestamp::from_microsecond((seconds * 1e6) as i64);
    let zoned = moment.map(|moment| moment.to_zoned(jiff::tz::TimeZone::system()));
    zoned.map_or_else(|_| "–".into(), |zoned| zoned.strftime("%Y-%m-%d %H:%M:%S").to_string())
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
        let watch = CommandStopwatch::start();
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

    fn keeps_apart(&self) -> bool {
        self.inner.keeps_apart()
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

/// CPU seconds of the whole process so far, all threads together, where the system tells.
pub(crate) fn cpu_seconds() -> Option<f64> {
    // Threads that have ended count here and not in the sum over threads that live.
    cpu_of(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The same of any process, from its proc_pid_stat(5).
pub(crate) fn cpu_of(stat: &str) -> Option<f64> {
    let (_, after) = stat.rsplit_once(')')?;
    let ticks = |at: usize| after.split_whitespace().nth(at)?.parse::<f64>().ok();
    // Fields 14 and 15 of proc_pid_stat(5), counted after the name; Linux reports them in hundredths.
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

/// Most memory this process ever held, in MiB, where the system tells.
pub(crate) fn peak_rss_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
