//! How fast jobs are beside each other where nobody measured it but it is known how busy each is alone. A device has
//! one unit of computing time a second; each job asks for the part in which it computes alone, at most its limit.
//!
//! Where all ask for no more than there is, nobody loses. Else each gets its part of what all ask for, as the driver's
//! time slicing gives it. A guaranteed job loses no more than it may; the others share what it does not ask for, by
//! what they ask for: agents see to that, by pausing them (AntMan, Xiao et al., OSDI 2020, as an abstraction).

use yard_core::job::{Claim, JobSpec};

/// What a job is to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mate {
    /// The part of the time in which it computes alone.
    busy: f64,
    /// The part of a device that it may have.
    limit: f64,
    /// The part of its speed that it may lose, where it is guaranteed.
    loss_max: Option<f64>,
}

impl Mate {
    /// Of a job that says how busy it is.
    pub(crate) fn of(spec: &JobSpec) -> Option<Mate> {
        let said = spec.sharing.as_deref()?;
        let loss_max = (said.claim == Claim::Guaranteed).then_some(said.loss_max);
        Some(Mate { busy: said.usage?.busy, limit: said.limit, loss_max })
    }

    fn asks(&self) -> f64 {
        self.busy.min(self.limit)
    }
}

/// The part of its speed alone that a job keeps beside these others.
pub(crate) fn kept(job: Mate, others: &[Mate]) -> f64 {
    if others.is_empty() || job.busy <= 0.0 {
        return 1.0;
    }
    let all = || others.iter().chain([&job]);
    let sum: f64 = all().map(Mate::asks).sum();
    let firm: f64 = all().filter(|mate| mate.loss_max.is_some()).map(Mate::asks).sum();
    let part = match job.loss_max {
        _ if sum <= 1.0 => 1.0,
        Some(_) if firm > 1.0 => 1.0 / firm,
        Some(loss_max) => (1.0 - loss_max).max(1.0 / sum),
        None => ((1.0 - firm) / (sum - firm)).clamp(0.0, 1.0),
    };
    part * (job.asks() / job.busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mate(busy: f64) -> Mate {
        Mate { busy, limit: 1.0, loss_max: None }
    }

    fn firm(busy: f64) -> Mate {
        Mate { loss_max: Some(0.05), ..mate(busy) }
    }

    #[test]
    fn what_is_asked_for_is_time_sliced() {
        assert_eq!(kept(mate(0.4), &[mate(0.6)]), 1.0);
        assert_eq!(kept(mate(0.8), &[mate(0.8)]), 0.625);
        assert_eq!(kept(mate(0.5), &[mate(1.0), mate(0.5)]), 0.5);
        assert_eq!(kept(mate(0.9), &[]), 1.0);
        assert_eq!(kept(mate(0.0), &[mate(1.0)]), 1.0);
    }

    #[test]
    fn guaranteed_jobs_lose_little_and_the_others_have_the_rest() {
        assert_eq!(kept(firm(0.75), &[mate(0.5)]), 0.95);
        assert_eq!(kept(mate(0.5), &[firm(0.75)]), 0.5);
        assert_eq!(kept(mate(0.25), &[firm(0.75), mate(0.25)]), 0.5);
        assert_eq!(kept(mate(0.5), &[firm(1.0)]), 0.0);
        assert_eq!(kept(firm(0.5), &[mate(0.51)]), 1.0 / 1.01, "less than it may lose");
        assert_eq!(kept(firm(1.0), &[firm(1.0)]), 0.5, "two of them cannot both have it");
    }

    #[test]
    fn limits_hold() {
        let bound = Mate { limit: 0.25, ..mate(0.5) };
        assert_eq!(kept(bound, &[mate(0.75)]), 0.5);
        assert_eq!(kept(mate(0.75), &[bound]), 1.0);
    }

    /// Nobody gets more than there is: all parts add up to one device at most.
    #[test]
    fn a_device_has_one_second_a_second() {
        let mut random = crate::random::Random::new(3);
        for _ in 0..1_000 {
            let mates: Vec<Mate> = (0..2 + random.below(4))
                .map(|at| Mate {
                    busy: 0.01 + random.unit() * 0.99,
                    limit: 0.1 + random.unit() * 0.9,
                    loss_max: (at == 0 && random.chance(0.5)).then_some(0.05),
                })
                .collect();
            let used: f64 = (0..mates.len())
                .map(|at| {
                    let others: Vec<Mate> = [&mates[..at], &mates[at + 1..]].concat();
                    kept(mates[at], &others) * mates[at].busy
                })
                .sum();
            assert!(used <= 1.0 + 1e-9, "{used}: {mates:?}");
        }
    }
}
