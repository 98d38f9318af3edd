//! The agent's clock. Leases and graces are counted on a clock that neither jumps nor stops, and that goes on while
//! the agent is down: the time since boot. After a boot it starts anew, so what is persisted is carried over.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use yard_core::Time;

/// Microseconds since this machine was booted, its sleep included.
pub(crate) fn since_boot() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("Linux has had this clock since 2.6.39");
    Duration::from(now).as_micros() as u64
}

/// What to add to the time since boot, so that time never goes back, not even over boots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentClock {
    /// The boot it counts from.
    pub(crate) boot: String,
    base: u64,
}

impl AgentClock {
    /// The clock of this boot. `last` is a time that the clock given had already shown.
    pub(crate) fn resume(self, last: Time) -> AgentClock {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = boot.trim().to_owned();
        if boot == self.boot { self } else { AgentClock { boot, base: last.0 } }
    }

    /// Now.
    pub(crate) fn now(&self) -> Time {
        self.at(since_boot())
    }

    /// The time of this clock at so many microseconds since boot.
    pub(crate) fn at(&self, since_boot: u64) -> Time {
        Time(self.base.saturating_add(since_boot))
    }

    /// A time of this clock as time since boot, for the keeper.
    pub(crate) fn since_boot(&self, time: Time) -> u64 {
        time.0.saturating_sub(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_goes_on_within_a_boot_and_never_goes_back_over_boots() {
        let clock = AgentClock::default().resume(Time::ZERO);
        let now = clock.now();
        assert_eq!(clock.clone().resume(now), clock);
        let other = AgentClock { boot: "another".into(), base: 5_000_000_000_000_000 };
        let last = Time(6_000_000_000_000_000);
        let resumed = other.resume(last);
        assert!(resumed.now() >= last);
        assert_eq!(resumed.boot, clock.boot);
        assert_eq!(
            resumed.since_boot(resumed.now() + yard_core::Span(5)) / 1_000_000,
            since_boot() / 1_000_000
        );
    }
}
