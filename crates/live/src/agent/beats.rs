//! The agent's beats: the node's lease runs from when the last one was sent that the server answered.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};
use yard_core::{Span, Time};

/// How often a beat is sent until the server has said how often.
const BEAT: Duration = Duration::from_secs(2);

/// Beats that were not answered yet, and what an answer is worth.
pub(crate) struct Beats {
    pub(super) every: Interval,
    pub(super) lease: Span,
    pub(super) seq: u64,
    pub(super) hello: Time,
    pub(super) sent: BTreeMap<u64, Time>,
}

impl Beats {
    pub(super) fn new() -> Beats {
        let every = Beats::interval(BEAT);
        Beats { every, lease: Span::ZERO, seq: 0, hello: Time::ZERO, sent: BTreeMap::new() }
    }

    fn interval(every: Duration) -> Interval {
        let mut interval = interval(every);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        interval
    }

    /// The server says how long answers count and how often it wants to be asked.
    pub(super) fn welcome(&mut self, lease_s: f64, beat_s: f64) {
        self.lease = Span::from_secs(lease_s);
        let every = Duration::from_micros(Span::from_secs(beat_s.clamp(0.01, 3_600.0)).0);
        if every != self.every.period() {
            self.every = Beats::interval(every);
        }
    }
}
