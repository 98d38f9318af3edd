//! Soft deadlines: what it is worth to be done by later and later times. Worths are a job's own: its first counts as
//! much as its weight, which its user's token bounds, so that nobody outbids others by writing down large numbers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use yard_core::job::Reward;
use yard_core::units::Time;

use super::JobRequest;
use super::check::{Problem, problem};

/// Times that one job may name.
pub const REWARDS_MAX: usize = 16;

/// The largest worth beside the smallest.
const WORTH_MAX: f64 = 1e6;

/// What it is worth to be done by a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RewardRequest {
    /// The time: seconds since 1970, UTC.
    pub by: f64,
    /// What that is worth, beside the job's other times.
    pub worth: f64,
}

/// Whether soft deadlines make sense: times ascend, worths fall, and the first is the deadline.
pub(super) fn check(request: &JobRequest) -> Result<(), Problem> {
    let rewards = &request.rewards;
    let Some(first) = rewards.first() else { return Ok(()) };
    if rewards.len() > REWARDS_MAX {
        return problem("rewards", format!("{} times, of at most {REWARDS_MAX}", rewards.len()));
    }
    let sound = |reward: &RewardRequest| {
        let worth = reward.worth > 0.0 && reward.worth <= WORTH_MAX * rewards[rewards.len() - 1].worth;
        worth && reward.worth.is_finite() && reward.by > 0.0 && reward.by <= 1e11
    };
    if !rewards.iter().all(sound) {
        let allowed =
            "each is a time and what it is worth, above 0, the first at most a million times the last";
        return problem("rewards", allowed);
    }
    if !rewards.windows(2).all(|pair| pair[0].by < pair[1].by && pair[0].worth >= pair[1].worth) {
        return problem("rewards", "each time must be later than the one before it, with no larger value");
    }
    if request.deadline != Some(first.by) {
        return problem("rewards", "the first is for the deadline: give the same time as deadline");
    }
    if request.duration_s.or(request.time_limit_s).is_none() {
        return problem("rewards", "they need the job's length: state duration or time");
    }
    Ok(())
}

/// The rewards as the engine takes them, for a job of this weight.
pub(crate) fn rewards(request: &JobRequest, weight: f64) -> Option<Arc<[Reward]>> {
    let first = request.rewards.first()?.worth;
    let reward =
        |one: &RewardRequest| Reward { by: Time::from_secs(one.by), worth: weight * (one.worth / first) };
    Some(request.rewards.iter().map(reward).collect())
}

/// `TIME=WORTH`, as in `18:00=10`; `moment` reads the time.
pub fn parse(text: &str, moment: impl Fn(&str) -> Result<f64, String>) -> Result<RewardRequest, String> {
    let wrong = || format!("{text:?} is not TIME=WORTH, as in 18:00=10");
    let (by, worth) = text.rsplit_once('=').ok_or_else(wrong)?;
    Ok(RewardRequest { by: moment(by)?, worth: worth.trim().parse().map_err(|_| wrong())? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(rewards: &[(f64, f64)]) -> JobRequest {
        let rewards: Vec<_> =
            rewards.iter().map(|(by, worth)| RewardRequest { by: *by, worth: *worth }).collect();
        let deadline = rewards.first().map(|first| first.by);
        JobRequest { deadline, rewards, duration_s: Some(60.0), ..JobRequest::default() }
    }

    fn wrong(change: impl Fn(&mut JobRequest)) -> String {
        let mut request = job(&[(1e9, 8.0), (2e9, 2.0)]);
        change(&mut request);
        check(&request).map_or_else(|wrong| wrong.to_string(), |()| String::new())
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(wrong(|_| ()), "");
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(wrong(|job| job.rewards[0].worth = bad).contains("above 0"), "{bad}");
        }
        assert!(wrong(|job| job.rewards[1].worth = f64::MIN_POSITIVE).contains("a million times"));
        assert!(wrong(|job| job.rewards[1].by = 5e8).contains("later than"));
        assert!(wrong(|job| job.rewards[1].worth = 9.0).contains("later than"));
        assert!(wrong(|job| job.deadline = Some(3e9)).contains("deadline"));
        assert!(wrong(|job| job.deadline = None).contains("deadline"));
        assert!(wrong(|job| job.duration_s = None).contains("length"));
        assert!(wrong(|job| job.rewards = vec![job.rewards[0]; 1_000_000]).contains("at most 16"));
    }

    #[test]
    fn large_numbers_outbid_nobody() {
        let worths = |job: &JobRequest, weight| -> Vec<f64> {
            rewards(job, weight).unwrap().iter().map(|reward| reward.worth).collect()
        };
        assert_eq!(worths(&job(&[(1e9, 8.0), (2e9, 2.0)]), 1.0), [1.0, 0.25]);
        assert_eq!(worths(&job(&[(1e9, 8e9), (2e9, 2e9)]), 1.0), [1.0, 0.25]);
        assert_eq!(
            worths(&job(&[(1e9, 8.0), (2e9, 2.0)]), 4.0),
            [4.0, 1.0],
            "its weight is its token's matter"
        );
        assert_eq!(rewards(&job(&[]), 1.0), None);
    }

    #[test]
    fn a_reward_is_a_time_and_a_worth() {
        let moment = |text: &str| text.parse::<f64>().map_err(|_| format!("{text:?} is no time"));
        assert_eq!(parse("12=3.5", moment), Ok(RewardRequest { by: 12.0, worth: 3.5 }));
        assert!(parse("12", moment).unwrap_err().contains("TIME=WORTH"));
        assert!(parse("x=1", moment).unwrap_err().contains("no time"));
        assert!(parse("12=much", moment).unwrap_err().contains("TIME=WORTH"));
    }
}
