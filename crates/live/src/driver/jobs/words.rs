//! What the engine says of jobs, as people read it.

use yard_core::Engine;
use yard_core::cluster::{Mask, NODE_DEVICES_MAX, Placement, Slice};
use yard_core::ids::JobId;
use yard_core::job::JobState;
use yard_core::lengths::{Alike, Predicted};
use yard_core::message::Why;

use crate::driver::machines::{kind_of, named};
use crate::views::LengthView;

/// A length that was predicted, as people see it.
pub(super) fn length_of(told: &Predicted) -> LengthView {
    let alike = match told.alike {
        Alike::Name => "name",
        Alike::User => "user",
        Alike::Size => "size",
        Alike::All => "all",
    };
    LengthView { seconds: told.seconds, alike: alike.to_owned(), jobs: told.ended }
}

/// A state by the name that the API gives it.
pub(in crate::driver) fn state_name(state: JobState) -> String {
    let name = match state {
        JobState::Pending => "pending",
        JobState::Starting => "starting",
        JobState::Running => "running",
        JobState::Suspending => "suspending",
        JobState::Suspended => "suspended",
        JobState::Succeeded => "succeeded",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
        JobState::Rejected => "rejected",
    };
    name.to_owned()
}

/// The devices of a set, in order.
pub(in crate::driver) fn devices(mask: Mask) -> impl Iterator<Item = u32> {
    (0..NODE_DEVICES_MAX).filter(move |device| mask >> device & 1 == 1)
}

/// `node[device,…]` for each node.
pub(super) fn places(engine: &Engine, placement: &Placement) -> Vec<String> {
    let place = |slice: &Slice| {
        let (name, mask) = named(engine.nodes(), engine.kinds(), slice);
        let list: Vec<_> = devices(mask).map(|device| device.to_string()).collect();
        format!("{name}[{}]", list.join(","))
    };
    placement.0.iter().map(place).collect()
}

pub(super) fn kind(engine: &Engine, placement: &Placement) -> Option<String> {
    kind_of(engine.nodes(), engine.kinds(), placement).map(str::to_owned)
}

pub(super) fn because(why: Why, to: &[JobId]) -> String {
    let gets = match to {
        [] => None,
        [one] => Some(format!("job {one}")),
        [one, rest @ ..] => Some(format!("job {one} and {} others", rest.len())),
    };
    match (why, gets) {
        (Why::Preempted, Some(gets)) if to.len() == 1 => format!("{gets} is using its devices"),
        (Why::Preempted, Some(gets)) => format!("{gets} are using its devices"),
        (Why::Preempted, None) => "another job is using its devices".into(),
        (Why::Moved, Some(gets)) => format!("it moves to other devices, and {gets} gets these"),
        (Why::Moved, None) => "it moves to other devices".into(),
        (Why::Cancelled, _) => "it was cancelled".into(),
        (Why::Killed, _) => "it was cancelled with --force".into(),
        (Why::Held, _) => "it is held".into(),
        (Why::Requeued, _) => "it restarts from its last checkpoint".into(),
        (Why::Drained, _) => "its devices are taken out of service".into(),
        (Why::Lost, _) => "its node was lost".into(),
    }
}
