//! A job over two nodes: two agents in network namespaces of their own, joined by a bridge to the server.

use std::process::Command;

use crate::harness::{Cluster, Folder, LEDGER};

/// Two namespaces and a bridge, taken down with the test.
struct Nets(String);

impl Nets {
    /// None where this machine does not let us make them.
    fn new() -> Option<Nets> {
        let tag = format!("y{}", std::process::id() % 10_000);
        let nets = Nets(tag.clone());
        let mut lines = vec![
            format!("link add {tag}b type bridge"),
            format!("addr add 10.213.0.1/24 dev {tag}b"),
            format!("link set {tag}b up"),
        ];
        for at in [1, 2] {
            lines.push(format!("netns add {tag}n{at}"));
            lines.push(format!("link add {tag}v{at} type veth peer name eth0 netns {tag}n{at}"));
            lines.push(format!("link set {tag}v{at} master {tag}b up"));
            lines.push(format!("-n {tag}n{at} addr add 10.213.0.1{at}/24 dev eth0"));
            lines.push(format!("-n {tag}n{at} link set eth0 up"));
            lines.push(format!("-n {tag}n{at} link set lo up"));
        }
        lines.iter().all(|line| ip(line)).then_some(nets)
    }

    fn name(&self, at: u32) -> String {
        format!("{}n{at}", self.0)
    }
}

impl Drop for Nets {
    fn drop(&mut self) {
        for line in [
            format!("netns del {}n1", self.0),
            format!("netns del {}n2", self.0),
            format!("link del {}b", self.0),
        ] {
            ip(&line);
        }
    }
}

fn ip(line: &str) -> bool {
    Command::new("ip").args(line.split_whitespace()).output().is_ok_and(|output| output.status.success())
}

/// Each rank says who it is and what it hears from the first one, through the address they were given.
const MEET: &str = r#"
import os, socket, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(("", where[1]))
    for _ in range(world - 1):
        peer, _ = server.accept()
        peer.sendall(b"hello from rank 0\n")
else:
    for attempt in range(100):
        try:
            peer = socket.create_connection(where, timeout=5)
            break
        except OSError:
            time.sleep(0.1)
    print(peer.makefile().readline().strip())
names = ["WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "SLURM_PROCID", "SLURM_NNODES"]
print(" ".join(name + "=" + os.environ[name] for name in names))
"#;

#[test]
fn a_gang_over_two_nodes_has_its_ranks_in_order_and_its_ranks_meet() {
    let nets = Nets::new();
    if !yard_needs::needs("network namespaces (root and iproute2)", nets.is_some()) {
        return;
    }
    let nets = nets.expect("they were made");
    let mut cluster = Cluster::up_in(Folder::new(), "10.213.0.1:0", "--no-agent --round 1s");
    for (at, name) in [(1, "one"), (2, "two")] {
        let through = ["ip", "netns", "exec", &nets.name(at)];
        cluster.agent_by(&through, name, &format!("--fake v100:2 --address 10.213.0.1{at}"));
    }
    let script = cluster.folder.write("meet.py", MEET);
    let script = script.to_str().expect("test paths are UTF-8");
    let id = cluster.submit("--gpus 4 --nodes 2 --ranks device", &["python3", script]);
    cluster.wait(id, "succeeded");
    for rank in 0..4 {
        let log = cluster.yard(&format!("logs --rank {rank} {id}")).ok();
        let wanted = format!(
            "WORLD_SIZE=4 RANK={rank} LOCAL_RANK={} LOCAL_WORLD_SIZE=2 NODE_RANK={} SLURM_PROCID={rank} SLURM_NNODES=2",
            rank % 2,
            rank / 2
        );
        assert!(log.contains(&wanted), "rank {rank}: {log}");
        assert!(rank == 0 || log.contains("hello from rank 0"), "rank {rank}: {log}");
    }
    // A gang that is stopped stops everywhere at the same step, and goes on from there.
    cluster.folder.write("ledger.py", LEDGER);
    let shared = cluster.folder.0.join("checkpoints");
    std::fs::create_dir(&shared).expect("a folder can be made");
    let options = format!("--gpus 4 --nodes 2 --ranks device --checkpoint-dir {}", shared.display());
    let id = cluster.python(&options, "ledger.py", &["60", "0.05"]);
    cluster.until("it has done some steps", || cluster.job(id)["step"].as_u64() > Some(5));
    cluster.yard("drain one --evict").ok();
    cluster.until("it was stopped", || cluster.state(id) == "suspended" || cluster.state(id) == "pending");
    cluster.yard("resume one").ok();
    cluster.wait(id, "succeeded");
    cluster.each_step_once(id, 60);
}

#[test]
fn ranks_of_a_gang_on_one_node_stop_together_and_go_on_together() {
    let cluster = Cluster::up("--fake v100:4 --name here --round 1s");
    cluster.folder.write("ledger.py", LEDGER);
    let id = cluster.python("--gpus 4 --ranks device", "ledger.py", &["60", "0.05"]);
    cluster.until("it has done some steps", || cluster.job(id)["step"].as_u64() > Some(5));
    cluster.yard("drain here --evict").ok();
    cluster.until("it was stopped", || matches!(cluster.state(id).as_str(), "suspended" | "pending"));
    cluster.yard("resume here").ok();
    cluster.wait(id, "succeeded");
    cluster.each_step_once(id, 60);
}
