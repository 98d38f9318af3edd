//! On how many nodes a job of a trace runs, and how close together, becomes part of its shapes. Whether the cluster has such
//! a place is for the scheduler to say: it rejects the job with the reason.

use yard_core::job::Shape;

use crate::trace::TraceJob;

/// Lays all ways in which the job may run as it says; sizes that its nodes cannot share evenly fall away, but for the one it
/// asks for.
pub(super) fn ask((shapes, speeds): &mut (Vec<Shape>, Vec<f64>), job: &TraceJob) {
    let Some(asked) = &job.close else { return };
    let fits = |shape: &Shape| asked.nodes.is_none_or(|nodes| nodes == 1 || shape.needs.len() == 1);
    let ways = std::mem::take(shapes).into_iter().zip(std::mem::take(speeds));
    let ways = ways.filter(|(shape, _)| asked.allows(shape.devices()) && fits(shape));
    let ways = ways.map(|(shape, speed)| (asked.laid(shape), speed));
    (*shapes, *speeds) = ways.unzip();
}
