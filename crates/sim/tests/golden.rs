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
use yard_sim::workload::{Options, Workload};
use yard_sim::{Quirks, RunOutcome, Simulation};

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
        for (node, state) in nodes.iter() {
            let take = (need.devices - placement.devices()).min(state.free_count(need.kind));
            if take > 0 {
                placement.0.push(Slice::of(node, state.take(need.kind, take)));
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
fn simulate(trace: &str, cluster: &str, script: &[(u64, Input)]) -> (String, RunOutcome) {
    let trace =
        yard_sim::trace::read("golden.csv", trace.as_bytes(), None).expect("the trace is sound").trace;
    let cluster = ClusterSpec::parse(cluster).expect("the cluster is sound");
    let options =
        Options { table: None, overheads: &costs(), placement_aware: true, scaling: None, profiled: true };
    let workload = Workload::new(&trace, &cluster, options).expect("the jobs fit the cluster");
    let jobs: Vec<_> = trace.jobs.iter().map(|job| job.submit).zip(&workload.specs).collect();
    let log = Shared::default();
    let at = |(second, input): &(u64, Input)| (Time::ZERO + Span::from_whole_secs(*second), input.clone());
    let outcome = yard_sim::run(Simulation {
        speeds: Default::default(),
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
        stop: None,
        probe: None,
    });
    let log = String::from_utf8(log.bytes()).expect("the log is text");
    (log, outcome.expect("memory can be written"))
}

/// Compares the log, and its hash with that of the bytes: the hash is what other machines are compared by.
fn check(log: &str, outcome: &RunOutcome, lines: Expect, hash: Expect) {
    lines.assert_eq(log);
    hash.assert_eq(&outcome.events_sha256);
    let of_bytes = Sha256::digest(log).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(of_bytes, outcome.events_sha256, "the hash is of the bytes that were written");
}

fn end_of(outcome: &RunOutcome, job: usize) -> Option<f64> {
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
    let script =
        [(30, drain(1)), (90, Input::Cancel(JobId(5))), (120, resume(1)), (400, Input::Cancel(JobId(4)))];
    let (log, outcome) = simulate(trace, "gpu:2x4", &script);
    check(
        &log,
        &outcome,
        expect![[r#"
        {"t":0.000000,"event":"node","node":0,"change":"joined"}
        {"t":0.000000,"event":"node","node":1,"change":"joined"}
        {"t":0.000000,"event":"submitted","job":0}
        {"t":0.000000,"event":"submitted","job":1}
        {"t":0.000000,"event":"granted","lease":0,"jobs":[0],"devices":"0:0-1"}
        {"t":0.000000,"event":"granted","lease":1,"jobs":[1],"devices":"0:2-3 1:0-1"}
        {"t":4.000000,"event":"started","job":0}
        {"t":4.000000,"event":"started","job":1}
        {"t":10.000000,"event":"submitted","job":2}
        {"t":12.000000,"event":"submitted","job":3}
        {"t":15.000000,"event":"submitted","job":4}
        {"t":20.000000,"event":"submitted","job":5}
        {"t":30.000000,"event":"node","node":1,"change":"draining"}
        {"t":64.000000,"event":"freed","lease":1}
        {"t":64.000000,"event":"ended","job":1,"state":"succeeded"}
        {"t":90.000000,"event":"ended","job":5,"state":"cancelled"}
        {"t":104.000000,"event":"freed","lease":0}
        {"t":104.000000,"event":"ended","job":0,"state":"succeeded"}
        {"t":120.000000,"event":"node","node":1,"change":"resumed"}
        {"t":120.000000,"event":"granted","lease":2,"jobs":[2],"devices":"0:0-3 1:0-1"}
        {"t":120.000000,"event":"granted","lease":3,"jobs":[3],"devices":"1:2"}
        {"t":124.000000,"event":"started","job":2}
        {"t":124.000000,"event":"started","job":3}
        {"t":154.000000,"event":"freed","lease":3}
        {"t":154.000000,"event":"ended","job":3,"state":"succeeded"}
        {"t":154.000000,"event":"granted","lease":4,"jobs":[4],"devices":"1:2-3"}
        {"t":158.000000,"event":"started","job":4}
        {"t":174.000000,"event":"freed","lease":2}
        {"t":174.000000,"event":"ended","job":2,"state":"succeeded"}
        {"t":200.000000,"event":"submitted","job":6}
        {"t":400.000000,"event":"stopping","job":4,"why":"cancelled"}
        {"t":401.000000,"event":"freed","lease":4}
        {"t":401.000000,"event":"ended","job":4,"state":"cancelled"}
        {"t":401.000000,"event":"granted","lease":5,"jobs":[6],"devices":"0:0-3 1:0-3"}
        {"t":405.000000,"event":"started","job":6}
        {"t":425.000000,"event":"freed","lease":5}
        {"t":425.000000,"event":"ended","job":6,"state":"succeeded"}
    "#]],
        expect!["d79dcd998ea7298da4033e6f5e23929f93adaf6afac5cda9e6c6242d7e76ad3c"],
    );
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
    check(
        &log,
        &outcome,
        expect![[r#"
        {"t":0.000000,"event":"node","node":0,"change":"joined"}
        {"t":0.000000,"event":"node","node":1,"change":"joined"}
        {"t":0.000000,"event":"submitted","job":0}
        {"t":0.000000,"event":"submitted","job":1}
        {"t":0.000000,"event":"granted","lease":0,"jobs":[0],"devices":"0:0-3"}
        {"t":0.000000,"event":"granted","lease":1,"jobs":[1],"devices":"1:0-3"}
        {"t":4.000000,"event":"started","job":0}
        {"t":4.000000,"event":"started","job":1}
        {"t":204.000000,"event":"freed","lease":1}
        {"t":204.000000,"event":"ended","job":1,"state":"succeeded"}
        {"t":354.000000,"event":"stopping","job":0,"why":"lost"}
        {"t":354.000000,"event":"node","node":0,"change":"failed"}
        {"t":354.000000,"event":"freed","lease":0}
        {"t":354.000000,"event":"stopped","job":0,"outcome":"lost","steps":300}
        {"t":354.000000,"event":"granted","lease":2,"jobs":[0],"devices":"1:0-3"}
        {"t":360.000000,"event":"started","job":0}
        {"t":400.000000,"event":"node","node":0,"change":"resumed"}
        {"t":1060.000000,"event":"freed","lease":2}
        {"t":1060.000000,"event":"ended","job":0,"state":"succeeded"}
    "#]],
        expect!["8f9c3f77e974182b6d507708a4f791e25f83ddef911973c0ae1324444ca4057b"],
    );
    // It works from 4 on (process start), saves at 104, 204 and 304, and is lost at 354 with 300 s of
    // 1000 done. Node 1 has been free since 204, so it goes on there at once: 4 s start, 2 s load, and the
    // remaining 700 s: 354 + 6 + 700.
    assert_eq!(end_of(&outcome, 0), Some(1060.0));
    assert_eq!(end_of(&outcome, 1), Some(204.0));
}
