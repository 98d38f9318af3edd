//! Which parts run through MPS, and what they may take of their card: those of jobs that ask for less than a whole
//! card, and, where the operator wants it, every job on one card that could share it.

use yard_core::job::Claim;
use yard_core::part::{Pause, Start};

use super::CardSharing;
use crate::request::JobRequest;
use crate::translate::CPU;
use crate::wire::{Limits, WireAbilities};

/// What a part may take of its card through MPS; none: it runs without.
pub(super) fn limits(
    request: &JobRequest,
    start: &Start,
    kind: &str,
    node: &WireAbilities,
    sharing: CardSharing,
) -> Option<Limits> {
    let limits = Limits { compute: request.card_limit(), memory_mib: request.gpu_memory_mib };
    if request.limited_by().is_some() {
        return Some(limits);
    }
    let devices: u32 = start.devices.iter().map(|held| held.mask.count_ones()).sum();
    let one_card = devices == 1 && start.ranks.world == 1 && kind != CPU;
    // A process under MPS cannot be frozen by the driver, one that is alone gains nothing by it, and one that is
    // guaranteed would lose by it: on an H200 up to a sixth, with nobody else on the card.
    let shares = !request.exclusive && request.pause != Pause::Freeze && request.class != Claim::Guaranteed;
    let wanted = sharing == CardSharing::Mps && one_card && shares && node.no_limits.is_none();
    wanted.then_some(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::testing::start;

    fn of(sharing: CardSharing, change: impl Fn(&mut JobRequest, &mut Start)) -> Option<Limits> {
        let (mut request, mut start) = (JobRequest::default(), start(1, 1));
        change(&mut request, &mut start);
        limits(&request, &start, "a100", &WireAbilities::default(), sharing)
    }

    const WHOLE: Limits = Limits { compute: 1.0, memory_mib: None };

    #[test]
    fn who_asks_for_a_part_of_a_card_is_limited() {
        let plain = |change: fn(&mut JobRequest)| of(CardSharing::Plain, |request, _| change(request));
        assert_eq!(plain(|_| ()), None);
        assert_eq!(plain(|r| r.gpu_fraction = Some(1.0)), None);
        assert_eq!(plain(|r| r.gpu_fraction = Some(0.5)), Some(Limits { compute: 0.5, memory_mib: None }));
        let more = plain(|r| (r.gpu_fraction, r.gpu_limit) = (Some(0.5), Some(0.8)));
        assert_eq!(more, Some(Limits { compute: 0.8, memory_mib: None }), "the limit is what is enforced");
        assert_eq!(plain(|r| r.gpu_memory_mib = Some(99)), Some(Limits { memory_mib: Some(99), ..WHOLE }));
    }

    #[test]
    fn an_operator_can_have_all_jobs_share_through_mps() {
        let mps = |change: fn(&mut JobRequest, &mut Start)| of(CardSharing::Mps, change);
        assert_eq!(mps(|_, _| ()), Some(WHOLE));
        assert_eq!(mps(|r, _| r.exclusive = true), None);
        assert_eq!(mps(|r, _| r.class = Claim::Guaranteed), None);
        assert_eq!(mps(|r, _| r.pause = Pause::Freeze), None);
        assert_eq!(mps(|_, s| s.devices[0].mask = 0b11), None, "two cards");
        assert_eq!(mps(|_, s| s.ranks.world = 2), None, "a gang");
        let (request, start) = (JobRequest::default(), start(1, 1));
        let without = WireAbilities { no_limits: Some("no MPS".into()), ..WireAbilities::default() };
        assert_eq!(limits(&request, &start, "a100", &without, CardSharing::Mps), None);
        assert_eq!(limits(&request, &start, CPU, &WireAbilities::default(), CardSharing::Mps), None);
    }
}
