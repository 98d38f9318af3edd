//! What a job with a deadline is told when it is submitted.

use yard_core::Time;
use yard_core::job::Late;

use super::*;
use crate::driver::clock::Clock;

fn due(in_s: f64, duration_s: f64, late: Late) -> JobRequest {
    let now = Clock::new(Time::ZERO).now().secs();
    let deadline = Some(now + in_s);
    JobRequest { deadline, duration_s: Some(duration_s), late: Some(late), ..job(0.0, 0) }
}

fn promising() -> Rig {
    Rig::with(|config| config.settings.promises = true)
}

#[tokio::test]
async fn a_deadline_that_can_be_kept_is_promised_and_a_later_one_does_not_break_it() {
    let rig = promising();
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let first = rig.submit(due(10_000.0, 6_000.0, Late::Refuse)).await;
    assert_eq!((first.promise.is_some(), first.promise), (true, first.deadline));
    let second = rig.submit(due(10_000.0, 6_000.0, Late::Try)).await;
    assert_eq!((second.state.as_str(), second.promise), ("pending", None));
    let earliest = second.earliest.expect("there is a deadline that works");
    assert!(earliest > second.deadline.unwrap() + 1_000.0, "{second:?}");
    let third = rig.submit(due(10_000.0, 6_000.0, Late::Refuse)).await;
    assert_eq!(third.state, "rejected");
    assert!(third.reason.unwrap().contains("the earliest that can is"), "it says what would work");
    assert!(third.earliest.is_some());
    assert_eq!(rig.job(first.id).unwrap().promise, first.promise);
}

#[tokio::test]
async fn a_deadline_in_the_past_and_one_that_nobody_promises_are_refused() {
    let text = |refusal: Result<JobView, Refusal>| refusal.unwrap_err().to_string();
    let rig = promising();
    let past = text(rig.try_submit("ann", due(-5.0, 1.0, Late::Try), None).await);
    assert!(past.contains("its deadline is in the past; give a later one, or none"), "{past}");
    let off = Rig::new();
    let insists = text(off.try_submit("ann", due(1_000.0, 1.0, Late::Refuse), None).await);
    assert!(insists.contains("this server does not promise deadlines"), "{insists}");
}

/// One user, 300 days and near deadlines would keep every device from everybody else.
#[tokio::test]
async fn one_user_is_promised_only_so_much() {
    let rig = promising();
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 4)]).await;
    let hours = |length: f64, late| due((length + 1.0) * 3_600.0, length * 3_600.0, late);
    let long = rig.try_submit("eve", hours(7_200.0, Late::Refuse), None).await;
    let Err(Refusal::TooMany(why)) = long else { panic!("{long:?}") };
    assert!(why.contains("0.0 of at most 100 device-hours") && why.contains("--user-promised-max"), "{why}");
    let wish = rig.try_submit("eve", hours(7_200.0, Late::Try), None).await.unwrap();
    assert_eq!((wish.state.as_str(), wish.promise), ("pending", None), "it is only aimed at");
    let both = [60.0, 60.0].map(|length| rig.try_submit("eve", hours(length, Late::Try), None));
    let both = futures_util::future::join_all(both).await;
    let promised = both.iter().filter(|job| job.as_ref().unwrap().promise.is_some()).count();
    assert_eq!(promised, 1, "also of two at once");
    let bob = rig.try_submit("bob", hours(60.0, Late::Refuse), None).await.unwrap();
    assert!(bob.promise.is_some(), "others are promised theirs");
}
