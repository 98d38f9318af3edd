//! What there is of this machine beside its devices.

use std::collections::BTreeMap;
use std::fs;

use super::devices::{DeviceOffer, cores};
use super::freezer::bytes_of;

/// What an agent counts: cores and memory as the system says, and what the administrator says, which goes before. Of a
/// machine that only pretends to have devices nothing is counted that nobody said.
pub fn resources(offer: &DeviceOffer, said: &[(String, u32)]) -> BTreeMap<String, u32> {
    let mut resources = BTreeMap::new();
    if !matches!(offer, DeviceOffer::Fake(_)) {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let mib = bytes_of(&meminfo, "MemTotal:").unwrap_or(0) >> 20;
        resources.insert("cores".to_owned(), cores().saturating_mul(1000));
        resources.insert("memory".to_owned(), u32::try_from(mib).unwrap_or(u32::MAX));
    }
    resources.extend(said.iter().cloned());
    resources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_goes_before_what_is_found() {
        let found = resources(&DeviceOffer::NoCards, &[("cores".into(), 500), ("licence".into(), 3)]);
        assert_eq!((found["cores"], found["licence"]), (500, 3));
        assert!(found["memory"] > 0, "{found:?}");
        let pretend = DeviceOffer::Fake("h100:2".parse().unwrap());
        assert_eq!(resources(&pretend, &[("licence".into(), 3)]), BTreeMap::from([("licence".into(), 3)]));
    }
}
