//! Small runs whose whole event log is on this page. What changes here changes for every user: a blessed
//! difference (`make bless`) needs a reason in the changelog.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};
use sha2::{Digest, Sha256};
use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::cluster::{Nodes, Placement, Slice};
use yard_core::ids::{JobId, NodeId};
use yard_core::job::{Costs, Rank, Shape};
use yard_core::message::{Input, NodeChange};
use yard_core::policy::{Placer, Policy, PolicyError};
use yard_core::view::View;
use yard_core::{Settings, Span, Time};
use yard_sim::cluster::ClusterSpec;
use yard_sim::faults::Faults;
use yard_sim::overheads::Overheads;
use yard_sim::record::Keep;
use yard_sim::workload::Workload;
use yard_sim::{Outcome, Quirks, Simulation};

/// First in, first out; the head blocks the rest. The simulator knows no policy, so the test brings one.
struct Fifo;

impl Policy for Fifo {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let share = |job| Share::whole(job, Rank(view.run(job).submitted.secs(), 0.0));
        Ok(Allocation::queue(Shares::All(view.active().map(share).collect()), false))
    }
}

/// Any free devices, lowest nodes first.
struct Lowest;

impl Placer for Lowest {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        let [need] = shape.needs[..] else { return None };
        let mut placement = Placement::default();
        for (node, state) in nodes.iter().filter(|(_, node)| node.spec.kind == need.kind) {
            let take = (need.devices - placement.devices()).min(state.free_count());
            if take > 0 {
                placement.0.push(Slice { node, mask: state.take(take) });
            }
        }
        (placement.devices() == need.devices).then_some(placement)
    }
}

/// Bytes that can be looked at after their writer is gone.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no writer panicked").clone()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panicked").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whole seconds, so that every time in a log can be checked in the head.
fn costs() -> Overheads {
    let seconds = Span::from_whole_secs;
    Overheads {
        costs: Costs { save: seconds(1), load: seconds(2), start: seconds(4) },
        checkpoint_every: seconds(100),
        ..Overheads::none()
    }
}

/// Runs a trace under `Fifo`; returns the event log and the outcome.
fn simulate(trace: &str, cluster: &str, script: &[(u64, Input)]) -> (String, Outcome) {
    let trace = yard_sim::trace::read("golden.csv", trace.as_bytes(), None).expect("the trace is sound").trace;
    let cluster = ClusterSpec::parse(cluster).expect("the cluster is sound");
    let workload = Workload::new(&trace, &cluster, None, &costs()).expect("the jobs fit the cluster");
    let jobs: Vec<_> = trace.jobs.iter().map(|job| job.submit).zip(&workload.specs).collect();
    let log = Shared::default();
    let at = |(second, input): &(u64, Input)| (Time::ZERO + Span::from_whole_secs(*second), input.clone());
    let outcome = yard_sim::run(Simulation {
        jobs: &jobs,
        cluster: &cluster,
        settings: Settings::default(),
        policy: &mut Fifo,
        placer: Box::new(Lowest),
        checkpoint_every: costs().checkpoint_every,
        quirks: Quirks::default(),
        faults: Faults::default(),
        script: script.iter().map(at).collect(),
        seed: 0,
        keep: Keep::default(),
        events: Some(Box::new(log.clone())),
        progress: None,
        steps_max: 10_000,
        probe: None,
    });
    let log = String::from_utf8(log.bytes()).expect("the log is text");
    (log, outcome.expect("memory can be written"))
}

/// Compares the log, and its hash with that of the bytes: the hash is what other machines are compared by.
fn check(log: &str, outcome: &Outcome, lines: Expect, hash: Expect) {
    lines.assert_eq(log);
    hash.assert_eq(&outcome.events_sha256);
    let of_bytes = Sha256::digest(log).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(of_bytes, outcome.events_sha256, "the hash is of the bytes that were written");
}

fn end_of(outcome: &Outcome, job: usize) -> Option<f64> {
    outcome.record.jobs[job].end.map(Time::secs)
}

fn drain(node: u32) -> Input {
    Input::Node(NodeChange::Drain(NodeId(node)))
}

fn resume(node: u32) -> Input {
    Input::Node(NodeChange::Resume(NodeId(node)))
}

/// Seven jobs on two nodes of four devices: a gang over both nodes, a head that blocks smaller jobs, a node
/// that drains while it works, a running job that is cancelled and saves, a waiting one that just goes.
#[test]
fn a_drain_and_two_cancellations() {
    let trace = "\
job_id,submit_s,gpus,duration_s
a,0,2,100
b,0,4,60
c,10,6,50
d,12,1,30
e,15,2,500
f,20,4,40
g,200,8,20
";
    let script = [
        (30, drain(1)),
        (90, Input::Cancel(JobId(5))),
        (120, resume(1)),
        (400, Input::Cancel(JobId(4))),
    ];
    let (log, outcome) = simulate(trace, "gpu:2x4", &script);
    check(&log, &outcome, expect![[]], expect![[]]);
    // c waits for a (4 s start + 100 s) and for node 1, which is back at 120: 120 + 4 + 50.
    assert_eq!(end_of(&outcome, 2), Some(174.0));
}

/// A node fails and takes what came after the last checkpoint with it.
#[test]
fn a_failed_node_loses_what_was_not_saved() {
    let trace = "job_id,submit_s,gpus,duration_s\nlong,0,4,1000\nshort,0,4,200\n";
    let script =
        [(354, Input::Node(NodeChange::Fail(NodeId(0)))), (400, Input::Node(NodeChange::Resume(NodeId(0))))];
    let (log, outcome) = simulate(trace, "gpu:2x4", &script);
    check(&log, &outcome, expect![[]], expect![[]]);
    // It works from 4 on (process start), saves at 104, 204 and 304, and is lost at 354 with 300 s of
    // 1000 done. Node 1 has been free since 204, so it goes on there at once: 4 s start, 2 s load, and the
    // remaining 700 s: 354 + 6 + 700.
    assert_eq!(end_of(&outcome, 0), Some(1060.0));
    assert_eq!(end_of(&outcome, 1), Some(204.0));
}
