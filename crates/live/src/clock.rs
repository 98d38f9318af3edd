//! The wall clock of the API: when tokens and certificates were made and end.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970, UTC.
#[expect(clippy::disallowed_methods, reason = "the live crate runs in real time; the core never calls this")]
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

/// Microseconds as the seconds that the API shows.
pub fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}
