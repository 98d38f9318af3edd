//! Whether a card can be trusted. A card that does not answer, hangs or waits to have memory replaced is out of
//! service for as long as that is so. One that reported an error which only a reset clears is out of service until
//! the agent is started again: a card cannot be reset while the agent has it open.

use yard_core::Span;

use super::Reading;

/// Why a card that is split is not offered.
pub(crate) const SPLIT: &str = "it is split into MIG instances, which are not supported yet; undo with \
nvidia-smi -mig 0";

const GONE: &str = "the GPU no longer answers the driver; reset it or reboot the machine";

const REMAP: &str = "a row remapping of its memory is pending; stop the agent and reset the GPU (nvidia-smi \
--gpu-reset)";

/// What is known against a card.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Memory errors that could not be corrected, at the first look.
    uncorrected: Option<u64>,
    /// What only a reset clears.
    condemned: Option<String>,
    /// What may pass.
    passing: Option<String>,
    hanging: bool,
}

impl Health {
    /// Takes in what was read; nothing, where the card does not answer.
    pub(super) fn take(&mut self, reading: Option<&Reading>) {
        self.hanging = false;
        self.passing = passing(reading).map(str::to_owned);
        let Some(reading) = reading else { return };
        let uncorrected = reading.ecc.map(|(_, uncorrected)| uncorrected);
        let news = reading.xids.iter().find_map(|xid| verdict(*xid));
        let news = news.or_else(|| grown(self.uncorrected, uncorrected));
        self.uncorrected = self.uncorrected.or(uncorrected);
        if self.condemned.is_none() {
            self.condemned = news;
        }
    }

    /// It has owed an answer for so long.
    pub(super) fn hangs(&mut self, span: Span) {
        self.hanging = true;
        let seconds = span.secs();
        self.passing =
            Some(format!("the driver has not answered for {seconds} s; if this lasts, reboot the machine"));
    }

    pub(super) fn is_hanging(&self) -> bool {
        self.hanging
    }

    /// Why it is out of service, if it is.
    pub(super) fn problem(&self) -> Option<&str> {
        self.condemned.as_deref().or(self.passing.as_deref())
    }
}

/// What is wrong for as long as it is read.
fn passing(reading: Option<&Reading>) -> Option<&'static str> {
    match reading {
        None => Some(GONE),
        Some(reading) if reading.split => Some(SPLIT),
        Some(reading) if reading.remap_pending => Some(REMAP),
        Some(_) => None,
    }
}

/// Errors of memory that grow while the agent looks are the card's end for now.
fn grown(first: Option<u64>, now: Option<u64>) -> Option<String> {
    let more = now?.checked_sub(first?).filter(|more| *more > 0)?;
    Some(condemn(&format!("{more} uncorrectable memory errors")))
}

/// What an error of the driver's says against the card. Many are what a job did wrong, such as a bad address (13, 31,
/// 43, 45, 68), and say nothing.
fn verdict(xid: u64) -> Option<String> {
    let what = match xid {
        48 => "an uncorrectable memory error",
        62 => "its controller halted",
        63 | 64 => "rows of its memory must be remapped",
        74 => "its NVLink failed",
        79 => "it fell off the bus",
        92 => "too many memory errors",
        94 | 95 => "a memory error affected a job",
        119 | 120 => "its system processor does not answer",
        _ => return None,
    };
    Some(condemn(&format!("{what} (XID {xid})")))
}

fn condemn(what: &str) -> String {
    format!("{what}; stop the agent, reset the GPU (nvidia-smi --gpu-reset) and start the agent again")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with_ecc(uncorrected: u64) -> Reading {
        Reading { ecc: Some((5, uncorrected)), ..Reading::default() }
    }

    fn with_xid(xid: u64) -> Reading {
        Reading { xids: vec![xid], ..Reading::default() }
    }

    #[test]
    fn what_a_job_did_wrong_is_not_the_cards_fault() {
        for xid in [0, 13, 31, 43, 45, 68, u64::MAX] {
            let mut health = Health::default();
            health.take(Some(&with_xid(xid)));
            assert_eq!(health.problem(), None, "{xid}");
        }
    }

    #[test]
    fn what_only_a_reset_clears_stays_and_names_the_remedy() {
        for xid in [48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120] {
            let mut health = Health::default();
            health.take(Some(&with_xid(xid)));
            health.take(None);
            health.take(Some(&Reading::default()));
            let problem = health.problem().unwrap();
            assert!(problem.contains(&format!("XID {xid})")) && problem.contains("reset"), "{problem}");
        }
    }

    #[test]
    fn only_errors_that_come_while_we_look_count() {
        let mut health = Health::default();
        health.take(Some(&with_ecc(3)));
        health.take(Some(&Reading::default()));
        health.take(Some(&with_ecc(3)));
        assert_eq!(health.problem(), None, "they are old");
        health.take(Some(&with_ecc(5)));
        assert!(health.problem().unwrap().starts_with("2 uncorrectable memory errors"));
    }

    proptest! {
        #[test]
        fn a_card_is_out_of_service_exactly_while_there_is_a_reason(
            looks in prop::collection::vec(
                prop::option::of((prop::collection::vec(0..130_u64, 0..3), prop::option::of(0..4_u64), any::<bool>())),
                1..20,
            )
        ) {
            let (mut health, mut condemned, mut first) = (Health::default(), false, None);
            for look in looks {
                let reading = look.map(|(xids, errors, remap_pending)| {
                    Reading { xids, remap_pending, ecc: errors.map(|errors| (0, errors)), ..Reading::default() }
                });
                health.take(reading.as_ref());
                if let Some(Reading { xids, ecc, .. }) = &reading {
                    let errors = ecc.map(|(_, errors)| errors);
                    condemned |= xids.iter().any(|xid| verdict(*xid).is_some()) || first.is_some() && errors > first;
                    first = first.or(errors);
                }
                let passing = reading.is_none_or(|reading| reading.remap_pending);
                prop_assert_eq!(health.problem().is_some(), condemned || passing);
            }
        }
    }

    #[test]
    fn what_passes_is_forgotten() {
        let mut health = Health::default();
        let sick = [
            (None, "no longer answers"),
            (Some(Reading { remap_pending: true, ..Reading::default() }), "remapping"),
            (Some(Reading { split: true, ..Reading::default() }), "MIG"),
        ];
        for (reading, word) in sick {
            health.take(reading.as_ref());
            assert!(health.problem().unwrap().contains(word));
            health.take(Some(&Reading::default()));
            assert_eq!(health.problem(), None);
        }
        health.hangs(Span::from_whole_secs(30));
        assert!(health.is_hanging() && health.problem().unwrap().contains("for 30 s"));
        health.take(Some(&Reading::default()));
        assert!(!health.is_hanging() && health.problem().is_none());
    }
}
