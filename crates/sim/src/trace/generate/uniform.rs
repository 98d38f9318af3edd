//! Short, even jobs for demonstrations: 1 to 8 devices, 10 minutes to 4 hours in whole seconds.

use yard_core::Time;

use super::super::Work;
use super::super::jobs::TraceJobs;
use super::draw::TraceDraw;

pub(super) fn add(jobs: &mut TraceJobs, submits: impl Iterator<Item = Time>, mut draw: TraceDraw) {
    for (number, submit) in submits.enumerate() {
        let gpus = 1 + draw.index(8) as u32;
        let seconds = draw.between(600.0, 14_400.0).round();
        jobs.add(itoa::Buffer::new().format(number), submit, gpus, Work::Seconds(seconds), 0);
    }
}
