//! Devices that break whatever is put on them: one on which several starts in a row failed within seconds is out of
//! service for a while, twice as long each time, until something succeeds there. What fails everywhere is the jobs'
//! fault and not the devices', so at most half of a group is taken out this way.

use std::collections::BTreeMap;

use yard_core::{Span, Time};

/// A failure is quick within so long of the start.
const QUICK: Span = Span::from_whole_secs(10);

/// So many in a row are too many.
const FAILURES: u32 = 3;

/// How long a device is out of service the first time.
const FIRST: Span = Span::from_whole_secs(600);

/// Doublings end here: ten minutes become about a day.
const DOUBLINGS: u32 = 7;

#[derive(Clone, Debug, Default)]
struct Record {
    /// Quick failures in a row.
    failures: u32,
    /// Times it was out of service since anything succeeded.
    times: u32,
    /// Until when it is out of service, and why.
    out: Option<(Time, String)>,
}

/// What is known of each device, by group and number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine(BTreeMap<(u32, u32), Record>);

impl Quarantine {
    /// Something that ran on a device failed after so long. Why the device is now out of service, if it is.
    /// `size` is how many devices its group has.
    pub(crate) fn failed(&mut self, device: (u32, u32), ran: Span, size: u32, now: Time) -> Option<String> {
        if ran > QUICK {
            self.succeeded(device);
            return None;
        }
        let out = self.0.iter().filter(|(other, record)| other.0 == device.0 && record.out.is_some()).count();
        let record = self.0.entry(device).or_default();
        record.failures += 1;
        if record.failures < FAILURES || record.out.is_some() || out as u32 >= size.div_ceil(2) {
            return None;
        }
        let span = Span(FIRST.0 << record.times.min(DOUBLINGS));
        let (quick, minutes) = (QUICK.0 / 1_000_000, span.0 / 60_000_000);
        let reason = format!(
            "{FAILURES} starts in a row failed here within {quick} s; out of service for {minutes} min"
        );
        (record.times, record.failures) = (record.times + 1, 0);
        record.out = Some((now + span, reason.clone()));
        Some(reason)
    }

    /// Something ran well on a device.
    pub(crate) fn succeeded(&mut self, device: (u32, u32)) {
        if let Some(record) = self.0.get_mut(&device) {
            (record.failures, record.times) = (0, 0);
        }
    }

    /// Why a device is out of service, if it is.
    pub(crate) fn reason(&self, device: (u32, u32)) -> Option<&str> {
        self.0.get(&device)?.out.as_ref().map(|(_, reason)| reason.as_str())
    }

    /// Devices that are in service again.
    pub(crate) fn released(&mut self, now: Time) -> Vec<(u32, u32)> {
        let is_due = |record: &Record| record.out.as_ref().is_some_and(|(until, _)| now >= *until);
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

    fn fail(quarantine: &mut Quarantine, device: u32, times: u32, now: Time) -> Option<String> {
        (0..times).map(|_| quarantine.failed((0, device), SOON, 4, now)).last().flatten()
    }

    #[test]
    fn quick_failures_in_a_row_take_a_device_out_for_longer_each_time() {
        let mut quarantine = Quarantine::default();
        assert_eq!(fail(&mut quarantine, 0, 2, Time(0)), None);
        quarantine.succeeded((0, 0));
        assert_eq!(fail(&mut quarantine, 0, 2, Time(0)), None);
        assert!(fail(&mut quarantine, 0, 1, Time(0)).unwrap().contains("for 10 min"));
        assert!(
            quarantine.reason((0, 0)).unwrap().contains("3 starts") && quarantine.reason((0, 1)).is_none()
        );
        assert_eq!(quarantine.released(Time(0) + Span(FIRST.0 - 1)), []);
        assert_eq!(quarantine.released(Time(0) + FIRST), [(0, 0)]);
        assert_eq!(quarantine.reason((0, 0)), None);
        assert!(fail(&mut quarantine, 0, 3, Time(0) + FIRST).unwrap().contains("for 20 min"));
    }

    #[test]
    fn a_late_failure_is_the_jobs_own() {
        let mut quarantine = Quarantine::default();
        fail(&mut quarantine, 0, 2, Time(0));
        assert_eq!(quarantine.failed((0, 0), Span::from_whole_secs(11), 4, Time(0)), None);
        assert_eq!(fail(&mut quarantine, 0, 2, Time(0)), None);
    }

    #[test]
    fn what_fails_everywhere_leaves_half_of_the_devices() {
        let mut quarantine = Quarantine::default();
        let out = (0..4).filter(|device| fail(&mut quarantine, *device, 9, Time(0)).is_some()).count();
        assert!(out <= 2);
        let marked = quarantine.0.values().filter(|record| record.out.is_some()).count();
        assert_eq!(marked, 2);
        let mut alone = Quarantine::default();
        (0..2).for_each(|_| drop(alone.failed((1, 0), SOON, 1, Time(0))));
        assert!(alone.failed((1, 0), SOON, 1, Time(0)).is_some());
    }
}
