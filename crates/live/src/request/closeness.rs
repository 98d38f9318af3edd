//! On how many nodes a job runs, and how close together: what can be said of it without knowing the cluster, and what the
//! engine makes of it.

use yard_core::cluster::Level;
use yard_core::job::{Close, Shape};

use super::check::{Problem, problem};
use super::{JobRequest, Ranks};

/// Most processes of a job on one node.
const TASKS_MAX: u32 = 1024;

/// Whether it makes sense.
pub(crate) fn check(request: &JobRequest) -> Result<(), Problem> {
    let JobRequest { nodes, segment, close, prefer, tasks_per_node, .. } = *request;
    let (count, gpus) = (nodes.unwrap_or(1), asked(request));
    if gpus.checked_rem(count).is_some_and(|rest| rest > 0) {
        return problem(
            "nodes",
            format!(
                "{gpus} devices cannot be shared evenly by {count} nodes, which is what nodes asks for: leave nodes out, or \
                 change one of the two"
            ),
        );
    }
    if close == Some(Level::Node) && count > 1 {
        return problem("close", format!("{count} nodes cannot lie on one; use rack, block or zone"));
    }
    let widest = if nodes == Some(1) { Level::Node } else { close.unwrap_or_default() };
    if let Some(prefer) = prefer.filter(|prefer| *prefer > widest) {
        let (prefer, widest) = (prefer.name(), widest.name());
        return problem("prefer", format!("{prefer} is wider than {widest}, in which it must lie anyway"));
    }
    if let Some(segment) = segment {
        check_segment(request, segment)?;
    }
    if tasks_per_node.is_some_and(|tasks| tasks == 0 || tasks > TASKS_MAX) {
        return problem("tasks_per_node", format!("it must be from 1 to {TASKS_MAX}"));
    }
    if tasks_per_node.is_some() && request.ranks == Ranks::Device {
        return problem(
            "tasks_per_node",
            "ranks: device says already how many there are; leave one of them out",
        );
    }
    Ok(())
}

fn check_segment(request: &JobRequest, segment: u32) -> Result<(), Problem> {
    let Some(nodes) = request.nodes else {
        return problem("segment", "it is a part of the job's nodes: say how many there are with nodes");
    };
    if nodes.checked_rem(segment) != Some(0) {
        return problem("segment", format!("{nodes} nodes are not made of whole segments of {segment}"));
    }
    if request.close.is_none() && request.prefer.is_none() {
        return problem("segment", "say where each segment lies: close: rack, or prefer: rack");
    }
    Ok(())
}

/// Devices that it asks for in its usual size.
fn asked(request: &JobRequest) -> u32 {
    request.gpus.or(request.min_gpus).unwrap_or(1)
}

/// The number of nodes that it names; one node is a matter of closeness alone.
fn counted(request: &JobRequest) -> Option<u32> {
    request.nodes.filter(|nodes| *nodes > 1)
}

/// Whether a job of so many devices can be on the nodes that it names.
pub(crate) fn allows(request: &JobRequest, gpus: u32) -> bool {
    counted(request).is_none_or(|nodes| gpus.is_multiple_of(nodes))
}

/// A shape of the job, as close together and on as many nodes as it says. Without devices it has a slot on each node.
pub(crate) fn laid(request: &JobRequest, shape: Shape) -> Shape {
    let required = if request.nodes == Some(1) { Level::Node } else { request.close.unwrap_or_default() };
    let preferred = request.prefer.unwrap_or(required).min(required);
    let nodes = counted(request);
    Shape {
        close: Close { required, preferred },
        nodes,
        segment: request.segment.filter(|_| nodes.is_some()),
        ..shape
    }
}

#[cfg(test)]
mod tests {
    use yard_core::ids::KindId;

    use super::*;

    fn request(change: impl Fn(&mut JobRequest)) -> JobRequest {
        let mut request = JobRequest { command: vec!["true".into()], ..JobRequest::default() };
        change(&mut request);
        request
    }

    fn wrong(change: impl Fn(&mut JobRequest)) -> &'static str {
        super::super::check::check(&request(change)).expect_err("it is wrong").field
    }

    #[test]
    fn what_contradicts_itself_is_refused_by_its_field() {
        assert_eq!(wrong(|r| (r.gpus, r.nodes) = (Some(5), Some(2))), "nodes");
        assert_eq!(wrong(|r| (r.gpus, r.nodes, r.close) = (Some(4), Some(2), Some(Level::Node))), "close");
        assert_eq!(wrong(|r| (r.close, r.prefer) = (Some(Level::Rack), Some(Level::Zone))), "prefer");
        assert_eq!(wrong(|r| (r.nodes, r.prefer) = (Some(1), Some(Level::Rack))), "prefer");
        assert_eq!(wrong(|r| (r.segment, r.close) = (Some(2), Some(Level::Rack))), "segment");
        let four = |r: &mut JobRequest| (r.gpus, r.nodes) = (Some(8), Some(4));
        for (segment, close) in [(3, Some(Level::Rack)), (0, Some(Level::Rack)), (2, None)] {
            assert_eq!(
                wrong(|r| {
                    four(r);
                    (r.segment, r.close) = (Some(segment), close);
                }),
                "segment"
            );
        }
        assert_eq!(wrong(|r| r.tasks_per_node = Some(0)), "tasks_per_node");
        assert_eq!(wrong(|r| r.tasks_per_node = Some(u32::MAX)), "tasks_per_node");
        assert_eq!(wrong(|r| (r.tasks_per_node, r.ranks) = (Some(2), Ranks::Device)), "tasks_per_node");
    }

    #[test]
    fn shapes_say_on_how_many_nodes_and_how_close() {
        let shape = |change: fn(&mut JobRequest)| laid(&request(change), Shape::of(KindId(0), 8));
        assert_eq!(shape(|_| ()), Shape::of(KindId(0), 8));
        assert_eq!(shape(|r| r.nodes = Some(1)), Shape::of(KindId(0), 8).within(Level::Node));
        let segments = shape(|r| {
            (r.nodes, r.segment) = (Some(4), Some(2));
            (r.close, r.prefer) = (Some(Level::Block), Some(Level::Rack));
        });
        let close = Close { required: Level::Block, preferred: Level::Rack };
        assert_eq!(segments, Shape { close, ..Shape::of(KindId(0), 8).on_nodes(4).in_segments(2) });
    }
}
