//! When Tiresias' own simulator notices demotions. Its clock has whole seconds; at each event all running jobs that have
//! reached their threshold θ go down, in the order of submission. Of itself it wakes up for that only after
//! ⌈(θ − T)/g⌉ more seconds, where (θ − g·T)/g are missing: T is the time that the job ran, g its devices. So a gang that
//! has run before goes down late, unless something else happens first. (The program is written for Python 2, where that
//! division rounds down before ⌈·⌉ has anything to do; the rule here is the one that it states.)

use yard_core::ids::JobIdx;
use yard_core::units::{MICROS, Span, Time};
use yard_core::view::View;

use super::Tiresias;

/// The whole second in which an instant lies.
fn second(now: Time) -> Time {
    Time(now.0 / MICROS * MICROS)
}

/// Whether anything is noticed now. Between two seconds we only look who started.
pub(super) fn notices(now: Time) -> bool {
    second(now) == now
}

/// When it next wakes up for a demotion.
pub(super) fn wakes(policy: &Tiresias, view: &View) -> Option<Time> {
    view.active().filter(|job| view.is_running(*job)).filter_map(|job| wakes_for(policy, view, job)).min()
}

fn wakes_for(policy: &Tiresias, view: &View, job: JobIdx) -> Option<Time> {
    let run = view.run(job);
    let threshold = *policy.thresholds.get(run.rank.0 as usize)? as u64;
    let missing = threshold.saturating_sub(run.executed_at(view.now).0 / MICROS);
    let seconds = missing.div_ceil(u64::from(run.devices.max(1)));
    Some(second(view.now) + Span::from_whole_secs(seconds))
}
