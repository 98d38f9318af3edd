//! Jobs on one card, by measurement: who disturbs a guaranteed job is hushed, pairs are tried and judged, and jobs that
//! may grow take what is idle.

use crate::harness::{Cluster, LEDGER};

/// A job that is slower while its neighbour lives: `ME OTHER STEPS SECONDS SLOWER [beat]`. Each step it shows that it
/// lives; with `beat` it does nothing else.
const NEIGHBOUR: &str = r#"
import os, sys, time
import switchyard

me, other, total, pause, slower = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
slow = 0

def alive(name):
    try:
        return time.time() - os.stat(os.path.join(folder, name)).st_mtime < 0.2
    except OSError:
        return False

if "beat" in sys.argv:
    while True:
        open(os.path.join(folder, me), "w").close()
        time.sleep(0.02)
for step in switchyard.steps(total, save=lambda path: open(path, "w").close(), load=lambda path: None):
    open(os.path.join(folder, me), "w").close()
    disturbed = alive(other)
    slow += disturbed
    time.sleep(pause * slower if disturbed else pause)
    if step % 50 == 49:
        print("slow", slow, "of", step + 1, flush=True)
"#;

/// What the pretend card says of the first jobs: half busy, and a tenth of its memory each.
const CARDS: &str = r#"{"cards": {"v100:0": {"busy": 0.5, "memory_used_mib": 16000,
    "jobs": {"0": [0.5, 8000], "1": [0.5, 8000]}}}}"#;

fn cluster(policy: &str) -> Cluster {
    let cluster = Cluster::up(&format!("--fake v100:1 --policy {policy}"));
    cluster.folder.write("neighbour.py", NEIGHBOUR);
    cluster.folder.write(".yard/agent/fake-cards.json", CARDS);
    cluster
}

fn both_run(cluster: &Cluster, jobs: [u64; 2]) -> bool {
    jobs.iter().all(|job| cluster.state(*job) == "running")
}

/// The last line of a neighbour: `slow 12 of 650`.
fn slow_steps(log: &str) -> (u64, u64) {
    let last = log.lines().rfind(|line| line.starts_with("slow")).expect(log);
    let numbers: Vec<u64> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

#[test]
fn an_opportunistic_job_sleeps_while_it_would_slow_a_guaranteed_one() {
    let cluster = cluster("antman --round 1s");
    let args = ["one", "other", "1000000", "0.03", "2"];
    let first = cluster.python("--class guaranteed --max-slowdown 5%", "neighbour.py", &args);
    cluster.wait(first, "running");
    let args = ["other", "one", "0", "0", "0", "beat"];
    let second = cluster.python("--class opportunistic --gpu-memory 8GiB", "neighbour.py", &args);
    cluster.until("it joins the guaranteed one", || both_run(&cluster, [first, second]));
    cluster.until("people are told why it sleeps", || {
        cluster.job(second)["reason"].as_str().is_some_and(|reason| reason.contains("guaranteed job"))
    });
    cluster.until("the guaranteed one comes far", || cluster.job(first)["step"].as_u64() > Some(700));
    let (slow, steps) = slow_steps(&cluster.log(first));
    assert!(slow > 0 && 4 * slow < steps, "it was disturbed, and seldom: {slow} of {steps}");
    let job = cluster.job(first);
    assert_eq!((job["starts"].as_u64(), job["preemptions"].as_u64()), (Some(1), Some(0)), "{job:#}");
    cluster.yard(&format!("cancel {first}")).ok();
    cluster.until("nobody hushes the other any more", || {
        let beat = std::fs::metadata(cluster.folder.0.join("other")).and_then(|file| file.modified());
        beat.is_ok_and(|beat| beat.elapsed().is_ok_and(|age| age.as_secs() < 1))
    });
}

#[test]
fn a_pair_that_does_less_together_is_undone_and_not_tried_again() {
    let cluster = cluster("gandiva --round 2s");
    let args = |me, other| [me, other, "1000000", "0.05", "3"];
    let jobs =
        [("a", "b"), ("b", "a")].map(|(me, other)| cluster.python("", "neighbour.py", &args(me, other)));
    cluster.until("the pair is tried", || both_run(&cluster, jobs));
    cluster.until("the pair is undone", || !both_run(&cluster, jobs));
    for _ in 0..80 {
        assert!(!both_run(&cluster, jobs), "it is known to be bad");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn a_job_grows_into_idle_devices_and_gives_them_back_when_others_come() {
    let cluster = Cluster::up("--fake v100:4 --policy gandiva --round 1s");
    cluster.folder.write("ledger.py", LEDGER);
    let grows = cluster.python("--gpus 1 --min-gpus 1 --max-gpus 4", "ledger.py", &["400", "0.05"]);
    cluster.until("it has all four", || cluster.job(grows)["gpus"] == 4 && cluster.state(grows) == "running");
    let others: Vec<_> = (0..3).map(|_| cluster.python("", "ledger.py", &["40", "0.05"])).collect();
    cluster.until("it has given some back", || cluster.job(grows)["gpus"].as_u64() < Some(4));
    others.iter().for_each(|job| drop(cluster.wait(*job, "succeeded")));
    let job = cluster.wait(grows, "succeeded");
    cluster.each_step_once(grows, 400);
    assert!(job["starts"].as_u64() > Some(1), "{job:#}");
}
