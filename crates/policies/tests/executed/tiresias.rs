//! `tiresias:consolidate`: who loses much when scattered waits for one node, and who does not is scattered.

use std::collections::BTreeSet;

use yard_core::cluster::Level;
use yard_core::ids::{JobId, KindId};
use yard_core::job::{JobSpec, Shape};

use super::{Scene, job, rigid};

/// Two devices, on one node or scattered at a part of the speed.
fn pair(scattered: f64) -> JobSpec {
    let any = Shape::of(KindId(0), 2);
    job(vec![any.clone().within(Level::Node), any], &[1.0, scattered], 500.0)
}

/// The nodes on which the pair lay, and when it began. One device falls free on each of two nodes at 100 s, and for more
/// than an hour no others do.
fn nodes_of_pair(policy: &str, scattered: f64) -> (BTreeSet<u32>, f64) {
    let jobs = [rigid(1, 5000.0), rigid(1, 100.0), rigid(1, 5000.0), rigid(1, 100.0), pair(scattered)];
    let outcome = Scene::new("a:2x2", &jobs).run(policy);
    let bars: Vec<_> = outcome.record.bars.iter().filter(|bar| bar.job == JobId(4)).collect();
    let begin = bars.iter().map(|bar| bar.start.secs()).fold(f64::INFINITY, f64::min);
    (bars.iter().map(|bar| bar.node).collect(), begin)
}

#[test]
fn who_loses_much_waits_for_one_node_and_who_does_not_is_scattered() {
    let policy = "tiresias:thresholds=1000000:consolidate=0.8";
    let (nodes, begin) = nodes_of_pair(policy, 0.5);
    assert!(nodes.len() == 1 && begin >= 5000.0, "{nodes:?} from {begin}");
    let (nodes, begin) = nodes_of_pair(policy, 0.9);
    assert!(nodes.len() == 2 && begin < 200.0, "{nodes:?} from {begin}");
    let (nodes, _) = nodes_of_pair("tiresias:thresholds=1000000", 0.5);
    assert_eq!(nodes.len(), 2, "unless told, it takes what there is");
}
