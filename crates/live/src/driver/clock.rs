//! The only clock of the live cluster's server. Two readings: the time of the day, which never goes back, for the
//! engine and for people; and the time since the start, which nobody can set, for leases and limits.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use yard_core::units::{Span, Time};

/// Tells how long something took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the live cluster runs by the real clock, and this is it")]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    #[expect(clippy::disallowed_methods, reason = "the live cluster runs by the real clock, and this is it")]
    pub(crate) fn took(&self) -> Duration {
        Instant::now() - self.0
    }
}

/// Tells how long the thread that made it worked, whatever else the machine did meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worked(Duration);

impl Worked {
    pub(crate) fn start() -> Worked {
        Worked(thread_time())
    }

    /// As the same thread sees it.
    pub(crate) fn took(&self) -> Duration {
        thread_time().saturating_sub(self.0)
    }
}

/// What this thread had of a processor; nothing where the system does not tell.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// The clock.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Stopwatch,
    last: Time,
    last_elapsed: Span,
}

impl Clock {
    /// A clock that goes on from `last`.
    pub(crate) fn new(last: Time) -> Clock {
        Clock { start: Stopwatch::start(), last, last_elapsed: Span::ZERO }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Span {
        Span(self.start.took().as_micros() as u64)
    }

    /// The time of the day.
    pub(crate) fn now(&mut self) -> Time {
        (self.last, self.last_elapsed) = (self.peek(), self.elapsed());
        self.last
    }

    /// The same, for who only looks.
    #[expect(clippy::disallowed_methods, reason = "the live cluster runs by the real clock, and this is it")]
    pub(crate) fn peek(&self) -> Time {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let passed = Span(self.elapsed().0 - self.last_elapsed.0);
        forward(self.last, passed, Time(wall.as_micros() as u64))
    }
}

/// The time after `last` when `passed` went by and the wall clock shows `wall`. Where somebody set that back, time
/// goes at half its pace until they agree: standing still would stop all rounds.
fn forward(last: Time, passed: Span, wall: Time) -> Time {
    wall.max(last + Span(passed.0 / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back_and_never_stands_still() {
        let wall = forward(Time(100), Span(10), Time(110));
        assert_eq!(wall, Time(110));
        assert_eq!(forward(wall, Span(10), Time(20)), Time(115), "set back: at half the pace");
        assert_eq!(forward(Time(115), Span(10), Time(130)), Time(130), "and with it again");
    }

    #[test]
    fn a_thread_that_waits_does_not_work() {
        let (worked, watch) = (Worked::start(), Stopwatch::start());
        std::thread::sleep(Duration::from_millis(50));
        assert!(worked.took() < watch.took() / 2);
        let sum: u64 = (0..20_000u64).map(|n| n.wrapping_mul(n) ^ watch.took().as_nanos() as u64).sum();
        assert!(worked.took() > Duration::ZERO, "{sum}");
    }

    #[test]
    fn readings_grow() {
        let mut clock = Clock::new(Time(5));
        let (first, second) = (clock.now(), clock.now());
        assert!(first > Time(5) && second >= first);
    }
}
