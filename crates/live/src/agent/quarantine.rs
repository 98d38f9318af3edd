//! Devices that break whatever is put on them: one on which several starts in a row failed within seconds is out of
//! service for a while, twice as long each time, until something succeeds there. One user's failures prove nothing,
//! however many there are: their jobs may be at fault, and nobody may take devices from others that way. So two users
//! must have failed there, each more than once. What fails everywhere is the jobs' fault too, so at most half of a
//! group is taken out.

use std::collections::BTreeMap;

use yard_core::{Span, Time};

/// A failure is quick within so long of the start.
const QUICK: Span = Span::from_whole_secs(10);

/// So many users must have failed in a row, each so often.
const USERS: usize = 2;
const FAILURES: u32 = 2;

/// How long a device is out of service the first time.
const FIRST: Span = Span::from_whole_secs(600);

/// Doublings end here: ten minutes become about a day.
const DOUBLINGS: u32 = 7;

#[derive(Clone, Debug, Default)]
struct QuarantineRecord {
    /// Quick failures in a row, by user.
    failures: BTreeMap<String, u32>,
    /// Times it was out of service since anything succeeded.
    times: u32,
    /// Until when it is out of service, and why.
    out: Option<(Time, String)>,
}

impl QuarantineRecord {
    /// Takes the device out of service; why.
    fn take_out(&mut self, now: Time) -> String {
        let span = Span(FIRST.0 << self.times.min(DOUBLINGS));
        let (users, starts) = (self.failures.len(), self.failures.values().sum::<u32>());
        let (quick, minutes) = (QUICK.0 / 1_000_000, span.0 / 60_000_000);
        let reason = format!(
            "the last {starts} starts, by {users} users, failed here within {quick} s; out of service for {minutes} min"
        );
        self.times += 1;
        self.failures.clear();
        self.out = Some((now + span, reason.clone()));
        reason
    }
}

/// A job that failed on a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed<'a> {
    /// Whose it was.
    pub(crate) user: &'a str,
    /// How long it ran.
    pub(crate) ran: Span,
    /// How many devices the device's group has.
    pub(crate) size: u32,
}

/// What is known of each device, by group and number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine(BTreeMap<(u32, u32), QuarantineRecord>);

impl Quarantine {
    /// Something that ran on a device failed. Why the device is now out of service, if it is.
    pub(crate) fn failed(&mut self, device: (u32, u32), failed: Failed<'_>, now: Time) -> Option<String> {
        if failed.ran > QUICK {
            self.succeeded(device);
            return None;
        }
        let out = self.0.iter().filter(|(other, record)| other.0 == device.0 && record.out.is_some()).count();
        let record = self.0.entry(device).or_default();
        *record.failures.entry(failed.user.to_owned()).or_default() += 1;
        let users = record.failures.values().filter(|times| **times >= FAILURES).count();
        if users < USERS || record.out.is_some() || out as u32 >= failed.size.div_ceil(2) {
            return None;
        }
        Some(record.take_out(now))
    }

    /// Something ran well on a device.
    pub(crate) fn succeeded(&mut self, device: (u32, u32)) {
        if let Some(record) = self.0.get_mut(&device) {
            record.failures.clear();
            record.times = 0;
        }
    }

    /// Why a device is out of service, if it is.
    pub(crate) fn reason(&self, device: (u32, u32)) -> Option<&str> {
        self.0.get(&device)?.out.as_ref().map(|(_, reason)| reason.as_str())
    }

    /// Devices that are in service again.
    pub(crate) fn released(&mut self, now: Time) -> Vec<(u32, u32)> {
        let is_due = |record: &QuarantineRecord| record.out.as_ref().is_some_and(|(until, _)| now >= *until);
        let due = self.0.iter_mut().filter(|(_, record)| is_due(record));
        due.map(|(device, record)| {
            record.out = None;
            *device
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Span = Span::from_whole_secs(1);

    /// Ada and Bob fail in turn; what the last failure led to.
    fn fail(quarantine: &mut Quarantine, device: u32, times: usize, now: Time) -> Option<String> {
        let users = ["ada", "bob"].into_iter().cycle().take(times);
        users.map(|user| quarantine.failed((0, device), by(user), now)).last().flatten()
    }

    fn by(user: &str) -> Failed<'_> {
        Failed { user, ran: SOON, size: 4 }
    }

    #[test]
    fn quick_failures_in_a_row_take_a_device_out_for_longer_each_time() {
        let mut quarantine = Quarantine::default();
        assert_eq!(fail(&mut quarantine, 0, 3, Time(0)), None);
        quarantine.succeeded((0, 0));
        assert_eq!(fail(&mut quarantine, 0, 3, Time(0)), None);
        let reason = quarantine.failed((0, 0), by("bob"), Time(0)).unwrap();
        assert!(
            reason.contains("the last 4 starts, by 2 users") && reason.contains("for 10 min"),
            "{reason}"
        );
        assert!(quarantine.reason((0, 0)) == Some(&reason) && quarantine.reason((0, 1)).is_none());
        assert_eq!(quarantine.released(Time(0) + Span(FIRST.0 - 1)), []);
        assert_eq!(quarantine.released(Time(0) + FIRST), [(0, 0)]);
        assert_eq!(quarantine.reason((0, 0)), None);
        assert!(fail(&mut quarantine, 0, 4, Time(0) + FIRST).unwrap().contains("for 20 min"));
    }

    #[test]
    fn one_users_failures_take_nothing_out_and_one_slip_of_another_does_not_help() {
        let mut quarantine = Quarantine::default();
        for number in 0..40 {
            assert_eq!(quarantine.failed((0, number % 4), by("mallory"), Time(0)), None);
        }
        for device in 0..4 {
            assert_eq!(quarantine.failed((0, device), by("ada"), Time(0)), None);
        }
        assert!((0..4).all(|device| quarantine.reason((0, device)).is_none()));
    }

    #[test]
    fn a_late_failure_is_the_jobs_own() {
        let mut quarantine = Quarantine::default();
        fail(&mut quarantine, 0, 3, Time(0));
        let late = Failed { ran: Span::from_whole_secs(11), ..by("bob") };
        assert_eq!(quarantine.failed((0, 0), late, Time(0)), None);
        assert_eq!(fail(&mut quarantine, 0, 3, Time(0)), None);
    }

    #[test]
    fn what_fails_everywhere_leaves_half_of_the_devices() {
        let mut quarantine = Quarantine::default();
        (0..4).for_each(|device| drop(fail(&mut quarantine, device, 9, Time(0))));
        let marked = quarantine.0.values().filter(|record| record.out.is_some()).count();
        assert_eq!(marked, 2);
        let mut alone = Quarantine::default();
        let all: Vec<_> = ["ada", "ada", "bob", "bob"]
            .map(|user| alone.failed((1, 0), Failed { size: 1, ..by(user) }, Time(0)))
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(all.len(), 1);
    }
}
