//! The commands for a live cluster against a server that follows a script: what they send, what they print, how they
//! exit, and what they say when something is wrong.

mod common;

#[path = "common/server.rs"]
mod server;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

use common::{Answer, Dir};
use serde_json::{Value, json};
use server::{Seen, Server, job, job_with};

/// A command that went wrong: exit code 2, one sentence, nothing on stdout.
fn refused(answer: Answer) -> String {
    assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{}", answer.err);
    assert!(answer.err.starts_with("error: ") && answer.err.lines().count() == 1, "{}", answer.err);
    answer.err.trim_end().to_owned()
}

/// A server that takes every job.
fn taking() -> Server {
    Server::new(&[("POST /v1/jobs", 201, job(7, "pending"))])
}

/// What was submitted, by a command that is fine.
fn submitted(dir: &Dir, args: &[&str]) -> Vec<Seen> {
    let server = taking();
    server.run(dir, args).quietly();
    server.seen()
}

// Submitting.

#[test]
fn a_job_from_flags_is_sent_whole() {
    let dir = Dir::new();
    let args = "submit --name resnet --gpus 4 --min-gpus 2 --max-gpus 8 --kind a100|h100 --nodes 2 --ranks device \
        --tenant vision --weight 2 --priority -3 --deadline 2026-11-20T18:00:00Z --begin 2026-11-20 --time 2h --duration 1h30m \
        --env A=1 --env B=x=y --workdir /data --model ResNet-50 --batch-size 64 --pause checkpoint --checkpoint-dir ckpt \
        --stop-signal SIGUSR1 --grace 2m --max-restarts 3 --memory 1024 --cpus 2 --exclusive --gpu-limit 100% --class guaranteed --max-slowdown 5% --anti-affinity heavy --exclusion vision --stdout %x-%j.out --stderr /err/%t -- python train.py --lr 0.1";
    let seen = submitted(&dir, &args.split_whitespace().collect::<Vec<_>>());
    let expected = json!({
        "name": "resnet", "command": ["python", "train.py", "--lr", "0.1"], "env": {"A": "1", "B": "x=y"},
        "workdir": "/data", "gpus": 4, "min_gpus": 2, "max_gpus": 8, "kinds": ["a100", "h100"], "nodes": 2,
        "after": [], "late": null, "training": null,
        "ranks": "device", "tenant": "vision", "weight": 2.0, "priority": -3, "deadline": 1_795_197_600.0,
        "begin": 1_795_132_800.0, "time_limit_s": 7200.0, "duration_s": 5400.0, "model": "ResNet-50", "batch_size": 64,
        "max_restarts": 3, "pause": "checkpoint",
        "checkpoint": {"dir": "/data/ckpt", "signal": "USR1", "grace_s": 120.0},
        "output": "/data/%x-%j.out", "error": "/err/%t", "memory_mib": 1024, "cpus": 2.0, "exclusive": true,
        "gpu_fraction": null, "gpu_limit": 1.0, "gpu_memory_mib": null, "class": "guaranteed", "max_slowdown": 0.05,
        "affinity": null, "anti_affinity": "heavy", "exclusion": "vision",
    });
    assert_eq!(seen[0].json(), expected);
    assert_eq!(seen[0].headers["authorization"], format!("Bearer {}", server::TOKEN));
    assert_eq!(seen[0].headers["idempotency-key"].len(), 32);
}

#[test]
fn a_job_runs_where_it_was_submitted() {
    let dir = Dir::new();
    let seen = submitted(&dir, &["submit", "--", "true"]);
    let here = dir.path("").canonicalize().expect("it is there");
    assert_eq!(seen[0].json()["workdir"], here.to_str().expect("it is UTF-8"));
}

#[test]
fn the_answer_is_for_people_scripts_or_programs() {
    let dir = Dir::new();
    let answer =
        |options: &str| taking().yard(&dir, &format!("submit {options} -- python train.py")).quietly();
    assert_eq!(answer(""), "job 7  train.py\n");
    assert_eq!(answer("--parsable"), "7\n");
    let json: Value = serde_json::from_str(&answer("-o json")).expect("it is JSON");
    assert_eq!(json["id"], 7);
}

#[test]
fn flags_come_before_the_job_file() {
    let dir = Dir::new();
    dir.write("job.yaml", "name: a\nrun: |\n  python train.py\ngpus: 4\ntime: 2h\nenv: {A: 1, B: 2}\n");
    let seen = submitted(&dir, &["submit", "-f", "job.yaml", "--name", "b", "--env", "B=3"]);
    let sent = seen[0].json();
    assert_eq!(
        (&sent["name"], &sent["gpus"], &sent["time_limit_s"]),
        (&json!("b"), &json!(4), &json!(7200.0))
    );
    assert_eq!(sent["command"], json!(["/bin/sh", "-ec", "python train.py\n"]));
    assert_eq!(sent["env"], json!({"A": "1", "B": "3"}));
    let seen = submitted(&dir, &["submit", "-f", "job.yaml", "--", "other"]);
    assert_eq!(seen[0].json()["command"], json!(["other"]));
}

#[test]
fn a_script_is_a_job_with_arguments() {
    let dir = Dir::new();
    dir.write("job.sh", "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:a100:4\n#SBATCH --time=1:00:00\necho $1\n");
    let seen = submitted(&dir, &["submit", "-f", "job.sh", "--", "one", "two words"]);
    let sent = seen[0].json();
    let script = dir.path("").canonicalize().expect("it is there").join("job.sh");
    assert_eq!(sent["command"], json!(["/bin/bash", script, "one", "two words"]));
    assert_eq!((&sent["gpus"], &sent["nodes"], &sent["kinds"]), (&json!(8), &json!(2), &json!(["a100"])));
    assert_eq!(sent["time_limit_s"], 3600.0);
}

#[test]
fn an_array_is_several_submissions() {
    let dir = Dir::new();
    dir.write("job.sh", "#!/bin/sh\n#SBATCH --array=3-5\n#SBATCH -o %A_%a.out\n");
    let seen = submitted(&dir, &["submit", "-f", "job.sh"]);
    let tasks: Vec<_> = seen.iter().map(|seen| seen.json()["env"]["SLURM_ARRAY_TASK_ID"].clone()).collect();
    assert_eq!(tasks, ["3", "4", "5"]);
    assert!(seen[1].json()["output"].as_str().is_some_and(|output| output.ends_with("/%j_4.out")));
    let keys: std::collections::BTreeSet<_> =
        seen.iter().map(|seen| &seen.headers["idempotency-key"]).collect();
    assert_eq!(keys.len(), 3, "each is a job of its own");
}

#[test]
fn a_dry_run_submits_nothing_and_can_be_submitted() {
    let (dir, server) = (Dir::new(), taking());
    // A server that cannot say what would become of it is no reason not to print it.
    let dry = |line: &str| {
        let answer = server.yard(&dir, line);
        let unknown = answer.err.starts_with("no estimate: ");
        assert!(answer.code == Some(0) && unknown, "{}", answer.err);
        answer.out
    };
    let yaml = dry("submit --dry-run --gpus 2 --deadline 6h --kind a|b --env X=1 -- python train.py");
    assert!(server.seen().iter().all(|call| !call.line.contains("/v1/jobs")));
    assert!(yaml.contains("gpus: 2") && !yaml.contains("null"), "{yaml}");
    dir.write("again.yaml", &yaml);
    assert_eq!(dry("submit --dry-run -f again.yaml"), yaml);
    let json = server.yard(&dir, "submit --dry-run -o json --gpus 2 -- true").json();
    assert_eq!((&json["gpus"], &json["command"]), (&json!(2), &json!(["true"])));
}

#[test]
fn waiting_ends_as_the_job_did() {
    let dir = Dir::new();
    for (state, exit_code, code) in [
        ("succeeded", Some(0), 0),
        ("failed", Some(41), 41),
        ("failed", None, 4),
        ("failed", Some(-9), 4),
        ("cancelled", None, 3),
        ("rejected", None, 3),
    ] {
        let over = job_with(7, state, json!({"exit_code": exit_code, "reason": "so it was"}));
        let server = Server::new(&[
            ("POST /v1/jobs", 201, job(7, "pending")),
            ("GET /v1/jobs/7", 200, job(7, "running")),
            ("GET /v1/jobs/7", 503, json!({"error": "not now", "field": null})),
            ("GET /v1/jobs/7", 200, over),
        ]);
        let answer = server.yard(&dir, "submit --wait --parsable -- true");
        assert_eq!((answer.code, answer.out.as_str()), (Some(code), "7\n"), "{state}: {}", answer.err);
        assert_eq!(answer.err.contains("so it was"), state != "succeeded", "{}", answer.err);
    }
}

#[test]
fn a_rejected_job_is_told_of() {
    let rejected = job_with(7, "rejected", json!({"reason": "no node has 9 devices"}));
    let server = Server::new(&[("POST /v1/jobs", 201, rejected)]);
    let answer = server.yard(&Dir::new(), "submit --gpus 9 -- true");
    assert_eq!(answer.code, Some(3));
    assert!(answer.err.contains("job 7 was rejected: no node has 9 devices"), "{}", answer.err);
}

/// A server whose first connections break after the request was read; what it read.
fn breaking(breaks: usize) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it has an address"));
    let serve = move || {
        let mut seen = Vec::new();
        for stream in listener.incoming().take(breaks + 1) {
            let mut stream = stream.expect("somebody connects");
            seen.push(read_request(&mut stream));
            if seen.len() > breaks {
                let body = job(7, "pending").to_string();
                let head = format!(
                    "HTTP/1.1 201 Created\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                stream.write_all((head + &body).as_bytes()).expect("it listens");
            }
        }
        seen
    };
    (url, std::thread::spawn(serve))
}

fn read_request(stream: &mut impl Read) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.ends_with('}') {
        let count = stream.read(&mut buffer).expect("it is sent");
        text.push_str(std::str::from_utf8(&buffer[..count]).expect("it is UTF-8"));
    }
    text
}

#[test]
fn a_submission_whose_connection_broke_is_sent_again_with_its_key() {
    let (url, served) = breaking(2);
    let dir = Dir::new();
    let output = dir
        .command(&["submit", "--server", &url, "--parsable", "--", "true"])
        .env_remove("YARD_DATA")
        .env_remove("YARD_SERVER")
        .output();
    assert_eq!(Answer::of(output.expect("the binary can be run")).quietly(), "7\n");
    let seen = served.join().expect("it served");
    let key = |text: &String| {
        text.lines().find(|line| line.to_ascii_lowercase().starts_with("idempotency-key")).map(str::to_owned)
    };
    assert_eq!(seen.len(), 3);
    assert!(key(&seen[0]).is_some() && seen.iter().all(|request| key(request) == key(&seen[0])), "{seen:?}");
}

// Looking.

fn a_running_job() -> Value {
    job_with(
        3,
        "running",
        json!({"nodes": ["n1[0,1]"], "kind": "h100", "step": 30, "steps": 120, "executed_s": 3720.0, "starts": 2, "name": "bad\u{1b}[2Jname"}),
    )
}

#[test]
fn jobs_are_listed() {
    let waiting = job_with(4, "pending", json!({"reason": "waits for 8 h100"}));
    let server = Server::new(&[("GET /v1/jobs", 200, json!({"jobs": [a_running_job(), waiting]}))]);
    let dir = Dir::new();
    let table = server.yard(&dir, "jobs").quietly();
    for part in ["where", "n1[0,1] h100", "25% 30/120", "runs 1h02m", "waits for 8 h100", "pending"] {
        assert!(table.contains(part), "no {part} in\n{table}");
    }
    assert!(!table.contains('\u{1b}'), "names cannot move the cursor");
    let bare = server.yard(&dir, "queue --no-header").quietly();
    assert_eq!(bare.lines().count(), 2, "{bare}");
    assert!(server.yard(&dir, "ls -o wide").quietly().contains("preempted"));
    assert_eq!(server.yard(&dir, "jobs -o json").json()["jobs"][0]["id"], 3);
    server.yard(&dir, "jobs --mine --all --limit 5").quietly();
    server.yard(&dir, "jobs --state failed --user bob").quietly();
    let lines = server.lines();
    assert_eq!(lines[0], "GET /v1/jobs?limit=5000");
    let asked = ["mine=true&all=true&limit=5", "state=failed&user=bob&limit=1000"];
    assert_eq!(lines[4..], asked.map(|query| format!("GET /v1/jobs?{query}")));
}

#[test]
fn all_pages_of_jobs_are_listed_and_what_is_left_out_is_said() {
    let page = |ids: &[u64], more: bool| {
        let jobs: Vec<_> = ids.iter().map(|id| job(*id, "pending")).collect();
        json!({"jobs": jobs, "more": more, "hidden": 2})
    };
    let pages = || {
        Server::new(&[
            ("GET /v1/jobs", 200, page(&[5, 6], true)),
            ("GET /v1/jobs", 200, page(&[3, 4], false)),
        ])
    };
    let (server, dir) = (pages(), Dir::new());
    let all = server.yard(&dir, "jobs --name sweep-* --user me --no-header");
    let ids: Vec<_> = all.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ids, ["3", "4", "5", "6"], "older ones first, whatever the page");
    let query = "mine=true&name=sweep-*";
    let lines = [format!("{query}&limit=5000"), format!("{query}&before=5&limit=5000")];
    assert_eq!(server.lines(), lines.map(|query| format!("GET /v1/jobs?{query}")));
    assert_eq!(all.err, "", "one's own were asked for");
    let some = pages().yard(&dir, "jobs --limit 2");
    assert!(some.err.contains("the newest 2 jobs are shown; for older ones: --before 5"), "{}", some.err);
    assert!(some.err.contains("2 jobs of other users are running or waiting"), "{}", some.err);
    let none = Server::new(&[("GET /v1/jobs", 200, page(&[], false))]).yard(&dir, "jobs");
    assert!(
        none.err.contains("no jobs of yours") && none.err.contains("2 jobs of other users"),
        "{}",
        none.err
    );
}

#[test]
fn jobs_are_cancelled_by_what_they_are_and_only_when_that_is_meant() {
    let dir = Dir::new();
    let server = || {
        let jobs = json!({"jobs": [job(3, "pending"), job(4, "pending")], "more": false});
        let done = |id: u64| job(id, "cancelled");
        Server::new(&[
            ("GET /v1/jobs", 200, jobs),
            ("POST /v1/jobs/3/cancel", 200, done(3)),
            ("POST /v1/jobs/4/cancel", 200, done(4)),
        ])
    };
    let line = "cancel --state pending --user me --name train*";
    let (asked, agreed) = (server(), server());
    let refused = asked.yard(&dir, line);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "nobody can be asked");
    assert!(refused.err.contains("job 3  train.py  ada  pending") && refused.err.contains("--yes"));
    assert_eq!(asked.lines(), ["GET /v1/jobs?mine=true&state=pending&name=train*&limit=5000"]);
    assert_eq!(agreed.yard(&dir, &format!("{line} --yes")).quietly(), "job 3  cancelled\njob 4  cancelled\n");
    let both = server().yard(&dir, "edit 3 --name better");
    assert!(both.err.contains("not both; to rename a job: yard edit JOB --rename NAME"), "{}", both.err);
    for wrong in ["cancel --yes", "cancel 3 --user me", "cancel --state failed --yes"] {
        let server = server();
        assert_eq!(server.yard(&dir, wrong).code, Some(2), "{wrong}");
        assert_eq!(server.lines(), [""; 0], "{wrong}");
    }
}

#[test]
fn a_list_that_is_watched_goes_on_until_nobody_reads() {
    let server = Server::new(&[("GET /v1/jobs", 200, json!({"jobs": [job(3, "running")]}))]);
    let dir = Dir::new();
    let mut command = server.command(&dir, &["jobs", "--watch", "--no-header"]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary can be run");
    let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
    let ids: Vec<_> = (0..2).map(|_| lines.next().expect("another look").expect("it is UTF-8")).collect();
    assert!(ids.iter().all(|line| line.trim_start().starts_with('3')), "{ids:?}");
    drop(lines);
    assert_eq!(Answer::of(child.wait_with_output().expect("it ends")).code, Some(0));
}

#[test]
fn a_job_is_shown() {
    let request = json!({"command": ["python", "train.py"], "workdir": "/data"});
    let mut job = a_running_job();
    job["request"] = request;
    let server = Server::new(&[("GET /v1/jobs/last", 200, job)]);
    let shown = server.yard(&Dir::new(), "show last").quietly();
    for part in ["python train.py", "/data", "n1[0,1] h100", "2026-11-15 16:00:00", "25% 30/120"] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    assert_eq!(server.yard(&Dir::new(), "show last -o json").json()["request"]["workdir"], "/data");
}

#[test]
fn a_failed_job_is_shown_with_the_end_of_its_log() {
    let end = "step 1\n10%\r99%\r\nTraceback\u{1b}[2J\n";
    let failed = job_with(3, "failed", json!({"log_end": end, "reason": "rank 0 exited with code 1"}));
    let server = Server::new(&[("GET /v1/jobs/3", 200, failed)]);
    let shown = server.yard(&Dir::new(), "show 3").quietly();
    let tail = "last lines of its log (whole log: yard logs 3):\n  step 1\n  99%\n  Traceback\u{fffd}[2J\n";
    assert!(shown.ends_with(tail), "{shown}");
}

#[test]
fn logs_are_passed_on() {
    let server = Server::new(&[
        ("GET /v1/jobs/last", 200, job(12, "running")),
        ("GET /v1/jobs/12", 200, job(12, "running")),
        ("GET /v1/jobs/12/logs", 200, json!("one\ntwo\n")),
    ]);
    assert_eq!(server.yard(&Dir::new(), "logs -f --rank 3 --stderr --tail 2 last").quietly(), "one\ntwo\n");
    let lines = server.lines();
    let stderr = "GET /v1/jobs/12/logs?rank=3&stream=stderr&tail=2&follow=true";
    assert_eq!(lines, ["GET /v1/jobs/last", "GET /v1/jobs/12", stderr]);
    server.yard(&Dir::new(), "logs 12").quietly();
    server.yard(&Dir::new(), "logs --stdout 12").quietly();
    let both = ["GET /v1/jobs/12/logs?rank=0", "GET /v1/jobs/12/logs?rank=0&stream=stdout"];
    assert_eq!(server.lines()[3..], both, "both streams where nothing is said");
}

#[test]
fn a_job_that_has_not_started_is_waited_for_where_its_log_is_followed() {
    let server = Server::new(&[
        ("GET /v1/jobs/12", 200, job(12, "pending")),
        ("GET /v1/jobs/12", 200, job_with(12, "starting", json!({"starts": 1}))),
        ("GET /v1/jobs/12", 200, job_with(12, "running", json!({"starts": 1}))),
        ("GET /v1/jobs/12/logs", 200, json!("one\n")),
    ]);
    let answer = server.yard(&Dir::new(), "logs -f 12");
    assert_eq!((answer.code, answer.out.as_str()), (Some(0), "one\n"));
    assert_eq!(answer.err, "job 12 has not started yet; waiting\n");
    assert_eq!(server.lines().len(), 4, "it looked until the job had started");
}

#[test]
fn jobs_are_cancelled_as_far_as_they_can_be() {
    let server = Server::new(&[
        ("POST /v1/jobs/3/cancel", 200, job(3, "suspending")),
        ("POST /v1/jobs/4/cancel", 409, json!({"error": "job 4 is over", "field": null})),
        ("POST /v1/jobs/5/cancel", 200, job(5, "cancelled")),
    ]);
    let args = ["cancel", "3", "4", "5", "--reason", "wrong data"];
    let answer = server.run(&Dir::new(), &args);
    assert_eq!(answer.code, Some(2));
    assert_eq!(answer.out, "job 3  suspending; it is being stopped\njob 5  cancelled\n");
    assert_eq!(answer.err, "error: job 4 is over\n");
    assert_eq!(server.seen()[0].json(), json!({"reason": "wrong data"}));
}

#[test]
fn waits_are_explained() {
    let told = json!({
        "job": 4, "state": "pending", "reason": "capacity", "text": "it needs 8 h100 and 2 are free",
        "numbers": {"needed": 8.0, "free": 2.0, "up": 14.0, "total": 16.0, "share": 0.25, "ahead": 2.0, "urgent": 0.0}, "ahead": [1, 2], "remedies": ["ask for 2 devices"], "prices": {"h100": 1.25},
    });
    let server = Server::new(&[("GET /v1/jobs/4/explain", 200, told)]);
    let text = server.yard(&Dir::new(), "explain 4").quietly();
    for part in [
        "capacity",
        "needs 8 h100 and 2 are free",
        "devices it can use: 2 of 14 are free, 2 out of service; it needs at least 8",
        "share of time that the policy gives it: 25 %",
        "2 ahead of it: 1, 2",
        "- ask for 2 devices",
        "h100 1.250",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert_eq!(server.yard(&Dir::new(), "explain 4 -o json").json()["reason"], "capacity");
}

fn two_nodes() -> Value {
    let device = |index: u32, jobs: &[u64], problem: Option<&str>| json!({"kind": "h100", "index": index, "name": "H100 SXM", "uuid": null, "memory_mib": 81920, "jobs": jobs, "problem": problem});
    json!({"nodes": [
        {"name": "n1", "state": "up", "reason": null, "address": "10.0.0.1", "devices": [device(0, &[3], None), device(1, &[], Some("fell off the bus"))], "heard_s": 5.1},
        {"name": "n2/h100", "state": "draining", "reason": "fan is loud", "address": "10.0.0.2", "devices": [], "heard_s": null},
    ]})
}

#[test]
fn a_job_that_does_not_use_its_devices_is_shown() {
    let reason = "has not used its 2 devices for 12 min";
    let idle = job_with(3, "running", json!({"gpus": 2, "idle_s": 720.0, "reason": reason}));
    let server =
        Server::new(&[("GET /v1/jobs/3", 200, idle.clone()), ("GET /v1/jobs", 200, json!({"jobs": [idle]}))]);
    let dir = Dir::new();
    let shown = server.yard(&dir, "show 3").quietly();
    assert!(shown.contains("idle          12.0 min") && shown.contains(reason), "{shown}");
    assert!(server.yard(&dir, "jobs").quietly().contains(reason));
    assert_eq!(server.yard(&dir, "jobs -o json").json()["jobs"][0]["idle_s"], 720.0);
}

#[test]
fn cards_are_listed_with_how_they_are_doing() {
    let card = |index: u32, more: Value| {
        let mut card = json!({"kind": "h200", "index": index, "name": "NVIDIA H200", "uuid": format!("GPU-{index}"),
            "memory_mib": 143_360, "jobs": [], "problem": null});
        let more = more.as_object().expect("an object").clone();
        card.as_object_mut().expect("an object").extend(more);
        card
    };
    let cards = [
        card(
            0,
            json!({"busy": 0.974, "memory_used_mib": 20_480, "temperature_c": 61, "power_w": 512.3, "jobs": [3, 4]}),
        ),
        card(1, json!({"busy": 0.0, "memory_used_mib": 1024, "jobs": [5], "idle_jobs": [5]})),
        card(2, json!({"busy": 0.5, "throttled": "too hot"})),
        card(3, json!({"problem": "it fell off the bus (XID 79)", "links": [[0, "nvlink"]]})),
    ];
    let node =
        json!({"name": "n1", "state": "up", "reason": null, "address": "", "devices": cards, "heard_s": 1.0});
    let server = Server::new(&[("GET /v1/nodes", 200, json!({"nodes": [node]}))]);
    let dir = Dir::new();
    let table = server.yard(&dir, "nodes --devices").quietly();
    let lines: Vec<&str> = table.lines().collect();
    for (line, parts) in [
        (0, ["device", "busy", "memory", "heat", "why"].as_slice()),
        (1, &["h200:0", "NVIDIA H200", "97%", "20/140 GiB", "61°C 512W", "3 4"]),
        (2, &["h200:1", "0%", "1.0/140 GiB", "not used by job 5"]),
        (3, &["50%", "slowed down: too hot"]),
        (4, &["h200:3", "140 GiB", "it fell off the bus (XID 79)"]),
    ] {
        for part in parts {
            assert!(lines[line].contains(part), "no {part} in\n{table}");
        }
    }
    let table = server.yard(&dir, "nodes").quietly();
    for part in ["49%", "h200:1: not used by job 5", "h200:2: slowed down", "h200:3: it fell off"] {
        assert!(table.contains(part), "no {part} in\n{table}");
    }
    let json = server.yard(&dir, "nodes -o json").json();
    assert_eq!(json["nodes"][0]["devices"][3]["links"], json!([[0, "nvlink"]]));
    assert_eq!(json["nodes"][0]["devices"][1]["idle_jobs"], json!([5]));
}

#[test]
fn nodes_are_listed_drained_and_resumed() {
    let server = Server::new(&[
        ("GET /v1/nodes", 200, two_nodes()),
        ("POST /v1/nodes/n2%2Fh100/drain", 200, json!("")),
        ("POST /v1/nodes/n1/resume", 204, json!("")),
    ]);
    let dir = Dir::new();
    let table = server.yard(&dir, "nodes").quietly();
    for part in ["2 h100", "1/2", "fan is loud", "h100:1: fell off the bus", "5s ago"] {
        assert!(table.contains(part), "no {part} in\n{table}");
    }
    let wide = server.yard(&dir, "nodes -o wide --no-header").quietly();
    assert!(wide.lines().count() == 2 && wide.contains("80 GiB"), "{wide}");
    assert_eq!(server.yard(&dir, "nodes -o json").json()["nodes"][1]["name"], "n2/h100");
    let drained = server.run(&dir, &["drain", "n2/h100", "--reason", "fan is loud"]).quietly();
    assert!(drained.contains("yard resume n2/h100"), "{drained}");
    assert_eq!(server.yard(&dir, "resume n1").quietly(), "n1 takes jobs again\n");
    assert_eq!(server.seen()[3].json(), json!({"reason": "fan is loud", "evict": false}));
}

fn event(id: u64, job: u64) -> Value {
    json!({"id": id, "time": 1_794_758_400.5, "event": "granted", "job": job, "node": "n1", "detail": {"gpus": 2, "why": null}})
}

#[test]
fn events_are_listed() {
    let server = Server::new(&[("GET /v1/events", 200, json!({"events": [event(1, 3), event(2, 4)]}))]);
    let text = server.yard(&Dir::new(), "events --job 4 --after 1").quietly();
    assert_eq!(text, "2026-11-15 16:00:00  granted     job 4     n1 gpus=2\n");
    assert_eq!(server.lines(), ["GET /v1/events?follow=false&limit=5000&job=4&after=1"]);
    let lines = server.yard(&Dir::new(), "events -o json").quietly();
    assert_eq!(lines.lines().count(), 2);
    server.yard(&Dir::new(), "events --job 4").quietly();
    let asked = ["limit=1001", "limit=5000&job=4&after=0"];
    assert_eq!(server.lines()[1..], asked.map(|query| format!("GET /v1/events?follow=false&{query}")));
    let newest = server.yard(&Dir::new(), "events --limit 1 -o json");
    assert!(newest.out.lines().count() == 1 && newest.out.contains("\"id\":2"), "{}", newest.out);
    assert!(newest.err.contains("only the newest 1 events are shown"), "{}", newest.err);
}

#[test]
fn events_are_followed_over_a_restart_of_the_server() {
    let stream = |id: u64| json!(format!(": hi\n\nid: {id}\nevent: granted\ndata: {}\n\n", event(id, 3)));
    let server = Server::new(&[
        ("GET /v1/events", 200, stream(41)),
        ("GET /v1/events", 503, json!("")),
        ("GET /v1/events", 200, stream(42)),
    ]);
    let dir = Dir::new();
    let mut command = server.command(&dir, &["events", "-f", "-o", "json"]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary can be run");
    let lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
    let ids: Vec<Value> = lines
        .take(2)
        .map(|line| serde_json::from_str::<Value>(&line.expect("a line")).expect("JSON")["id"].clone())
        .collect();
    assert_eq!(ids, [41, 42]);
    child.kill().expect("it runs until it is ended");
    child.wait().expect("it ends");
    let after: Vec<_> = server.seen().iter().map(|seen| seen.headers.get("last-event-id").cloned()).collect();
    assert_eq!(after[..3], [None, Some("41".into()), Some("41".into())]);
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let token = json!({"id": "3f9a", "user": "ada", "scope": "submit", "created_at": 1_794_758_400.0, "expires_at": null, "revoked": false});
    let mut made = token.clone();
    made["secret"] = json!("yard_new");
    let server = Server::new(&[
        ("POST /v1/tokens", 201, made),
        ("GET /v1/tokens", 200, json!({"tokens": [token]})),
        ("DELETE /v1/tokens/3f9a", 204, json!("")),
    ]);
    let dir = Dir::new();
    let created = server.yard(&dir, "token create --user ada --scope submit --expires 30d");
    assert_eq!(
        (created.code, created.out.as_str()),
        (Some(0), "yard_new\n"),
        "the secret is alone on stdout"
    );
    assert!(created.err.contains("3f9a"), "{}", created.err);
    assert_eq!(server.seen()[0].json(), json!({"user": "ada", "scope": "submit", "expires_s": 2_592_000.0}));
    let listed = server.yard(&dir, "token list").quietly();
    assert!(listed.contains("3f9a") && listed.contains("no expiry"), "{listed}");
    assert_eq!(server.yard(&dir, "token revoke 3f9a").quietly(), "token 3f9a is revoked\n");
    server.yard(
        &dir,
        "token create --team vision --team nlp --weight-max 4 --priority-max -1 --class ordinary",
    );
    let limits = json!({"scope": "submit", "teams": ["vision", "nlp"], "weight_max": 4.0, "priority_max": -1,
        "classes": ["ordinary"]});
    assert_eq!(server.seen()[3].json(), limits);
    server.yard(&dir, "token create --scope join --nodes gpu-* --uses 3");
    assert_eq!(server.seen()[4].json(), json!({"scope": "join", "nodes": ["gpu-*"], "uses": 3}));
}

#[test]
fn nodes_are_removed_and_cut_off_and_jobs_killed() {
    let killed = job(12, "cancelled");
    let server = Server::new(&[
        ("DELETE /v1/nodes/gpu-7", 204, json!("")),
        ("DELETE /v1/nodes/gpu-8", 204, json!("")),
        ("POST /v1/nodes/gpu-7/revoke", 204, json!("")),
        ("POST /v1/jobs/12/cancel", 200, killed),
    ]);
    let dir = Dir::new();
    assert!(server.yard(&dir, "nodes rm gpu-7").quietly().contains("gpu-7 is being removed"));
    server.yard(&dir, "nodes rm --force gpu-8").quietly();
    assert!(server.yard(&dir, "nodes revoke gpu-7").quietly().contains("yard nodes rm gpu-7"));
    server.yard(&dir, "cancel --force 12").quietly();
    let lines = server.lines();
    assert_eq!(lines[..2], ["DELETE /v1/nodes/gpu-7", "DELETE /v1/nodes/gpu-8?force=true"]);
    assert_eq!(server.seen()[3].json()["force"], true);
    assert_eq!(server.yard(&dir, "nodes rm").code, Some(2), "which");
    assert_eq!(server.yard(&dir, "nodes --devices rm gpu-7").code, Some(2), "a list removes nothing");
}

#[test]
fn secrets_are_set_from_input_or_a_file_and_never_shown() {
    let listed = json!({"secrets": [{"name": "KEY", "bytes": 9, "set_at": 1_794_758_400.0}]});
    let server = Server::new(&[
        ("PUT /v1/secrets/KEY", 204, json!("")),
        ("GET /v1/secrets", 200, listed),
        ("DELETE /v1/secrets/KEY", 204, json!("")),
    ]);
    let dir = Dir::new();
    let mut command = server.command(&dir, &["secret", "set", "KEY"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hunter two\n").unwrap();
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert!(!answer.out.contains("hunter") && answer.quietly().contains("secret KEY is set"));
    dir.write("key.txt", "from a file\n");
    server.yard(&dir, "secret set KEY --file key.txt").quietly();
    let sent: Vec<_> = server.seen().iter().map(Seen::json).collect();
    assert_eq!(sent, [json!({"value": "hunter two"}), json!({"value": "from a file\n"})]);
    assert!(server.yard(&dir, "secret list").quietly().contains("KEY"));
    assert_eq!(server.yard(&dir, "secret rm KEY").quietly(), "secret KEY is removed\n");
    let wrong = refused(server.yard(&dir, "secret set 1x --file key.txt"));
    assert!(wrong.contains("cannot name a secret"), "{wrong}");
    assert_eq!(server.lines().len(), 4, "nothing was sent for it");
}

#[test]
fn a_job_names_the_secrets_it_is_given() {
    let dir = Dir::new();
    let seen = submitted(&dir, &["submit", "--secret", "KEY", "--secret", "hf-token:file", "--", "true"]);
    assert_eq!(seen[0].json()["secrets"], json!({"KEY": "env", "hf-token": "file"}));
    let wrong = refused(taking().run(&dir, &["submit", "--secret", "LD_PRELOAD", "--", "true"]));
    assert!(wrong.contains("LD_PRELOAD is reserved"), "{wrong}");
}

#[test]
fn history_becomes_a_trace() {
    let server = Server::new(&[("GET /v1/trace", 200, json!(common::THREE_JOBS))]);
    let dir = Dir::new();
    assert_eq!(server.yard(&dir, "trace export").quietly(), common::THREE_JOBS);
    server.yard(&dir, "trace export --from 2026-11-15 --to 2026-11-16 -o t.csv").quietly();
    assert_eq!(dir.read("t.csv"), common::THREE_JOBS);
    assert_eq!(server.lines()[1], "GET /v1/trace?from=1794700800&to=1794787200");
    dir.yard("sim --trace t.csv --cluster gpu:1x4 --policy fifo").printed();
}

// Which server, and as whom.

#[test]
fn the_nearest_folder_names_the_server() {
    let server = Server::new(&[("GET /v1/nodes", 200, json!({"nodes": []}))]);
    let dir = Dir::new();
    dir.make_folder(".yard");
    dir.make_folder("below");
    dir.write(".yard/server.json", json!({"url": server.url, "ca": null}).to_string());
    dir.write(".yard/token", format!("{}\n", server::TOKEN));
    let mut command = dir.command(&["nodes"]);
    command
        .env_remove("YARD_DATA")
        .env_remove("YARD_SERVER")
        .env_remove("YARD_TOKEN")
        .current_dir(dir.path("below"));
    Answer::of(command.output().expect("the binary can be run")).printed();
    assert_eq!(server.seen()[0].headers["authorization"], format!("Bearer {}", server::TOKEN));
}

#[test]
fn where_no_server_is_known_the_remedy_is_told() {
    let dir = Dir::new();
    let mut command = dir.command(&["jobs"]);
    command
        .env_remove("YARD_DATA")
        .env_remove("YARD_SERVER")
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", "/nowhere")
        .current_dir("/");
    let said = refused(Answer::of(command.output().expect("the binary can be run")));
    assert!(said.contains("no server is known") && said.contains("yard up"), "{said}");
}

#[test]
fn a_server_that_is_not_there_is_named_with_its_source() {
    let closed =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port is free");
    let dir = Dir::new();
    for line in ["jobs", "submit -- true", "logs 1"] {
        let (before, after) =
            line.split_once(" -- ").map_or((line, String::new()), |(a, b)| (a, format!(" -- {b}")));
        let said = refused(dir.yard(&format!("{before} --server http://{closed}{after}")));
        assert!(said.contains(&format!("no server answers at http://{closed} (from --server)")), "{said}");
        assert!(said.contains("yard up"), "{said}");
    }
}

#[test]
fn refusals_are_one_sentence() {
    for (status, body, part) in [
        (
            401,
            json!({"error": "the token is revoked", "field": null}),
            "does not accept the token from YARD_TOKEN: the token is revoked",
        ),
        (
            403,
            json!({"error": "only an administrator may drain nodes", "field": null}),
            "error: only an administrator may drain nodes",
        ),
        (404, json!({"error": "there is no job 9", "field": null}), "error: there is no job 9"),
        (409, json!({"error": "the key is taken", "field": null}), "error: the key is taken"),
        (422, json!({"error": "more than there are", "field": "gpus"}), "error: gpus: more than there are"),
        (429, json!({"error": "slow down", "field": null}), "slow down; try again in 7 s"),
        (503, json!({"error": "the disk is full", "field": null}), "cannot do that now: the disk is full"),
        (500, json!("oops\nmore"), "answered 500: oops"),
        (302, json!(""), "answered 302"),
        (200, json!("<html>"), "an unexpected answer"),
    ] {
        let server = Server::new(&[("GET /v1/jobs/9", status, body)]);
        let said = refused(server.yard(&Dir::new(), "show 9"));
        assert!(said.contains(part), "{status}: {said}");
    }
}

// Mistakes on the command line. Nothing is sent.

/// A submission that is refused before anything is sent.
fn check_submit(dir: &Dir, args: &[&str], part: &str) {
    let server = taking();
    let said = refused(server.run(dir, &[&["submit"], args].concat()));
    assert!(said.contains(part), "{args:?}: {said}");
    assert!(server.seen().is_empty(), "{args:?}");
}

#[test]
fn jobs_that_make_no_sense_are_not_sent() {
    let dir = Dir::new();
    check_submit(&dir, &[], "no command to run");
    check_submit(
        &dir,
        &["--deadline", "soon", "--", "true"],
        "--deadline \"soon\" is not a time such as 18:00",
    );
    check_submit(&dir, &["--time", "never", "--", "true"], "--time \"never\" is not a length of time");
    check_submit(&dir, &["--env", "X", "--", "true"], "--env \"X\" is not KEY=VALUE");
    check_submit(&dir, &["--name", "../x", "--", "true"], "name: \"../x\" has a slash");
    check_submit(&dir, &["--gpus", "4", "--max-gpus", "2", "--", "true"], "max_gpus: it is less than gpus");
    check_submit(&dir, &["--kind", "a b", "--", "true"], "kinds: \"a b\" is not a kind");
    check_submit(&dir, &["--stop-signal", "KILL", "--", "true"], "\"KILL\" is not a signal");
    check_submit(&dir, &["-f", "none.yaml"], "cannot read none.yaml");
    check_submit(&dir, &["--gpu-fraction", "1.7", "--", "true"], "gpu_fraction: 1.7 is more than one GPU");
    check_submit(&dir, &["--gpu-fraction", "-1", "--", "true"], "gpu_fraction: -1 is not part of a GPU");
    check_submit(&dir, &["--gpu-memory", "8", "--", "true"], "did you mean gpu_memory: 8GiB");
    check_submit(&dir, &["--max-slowdown", "5%", "--", "true"], "use class: guaranteed, or leave it out");
    check_submit(
        &dir,
        &["--pause", "freeze", "--gpu-fraction", "50%", "--", "true"],
        "use pause: checkpoint or pause: auto, or leave out gpu_fraction",
    );
}

#[test]
fn values_that_a_flag_cannot_have_are_named() {
    let dir = Dir::new();
    for (flags, said) in [
        ("--cpus many", "give a number, such as 0.5"),
        ("--priority high", "give a whole number, such as 4"),
        ("--nodes -1", "give a whole number, 0 or more"),
        ("--gpus -1", "\"-1\" is not a whole number of GPUs from 0"),
        ("--memory much", "\"much\" is not a size such as 16G"),
        ("--resource scratch", "\"scratch\" is not NAME=N"),
        ("--gpu 1", "tip: a similar argument exists: '--gpus'"),
    ] {
        let answer = dir.yard(&format!("submit {flags} -- true"));
        assert_eq!(answer.code, Some(2), "{}", answer.err);
        assert!(answer.err.contains(said) && !answer.err.contains("as a value"), "{}", answer.err);
    }
}

#[test]
fn files_that_make_no_sense_are_refused_with_their_line() {
    let dir = Dir::new();
    dir.write("unknown.yaml", "name: x\ngpu: 4\n");
    check_submit(&dir, &["-f", "unknown.yaml"], "unknown.yaml: line 2: ");
    dir.write("many.yaml", "run: true\ngpus: many\n");
    check_submit(
        &dir,
        &["-f", "many.yaml"],
        "many.yaml: line 2: gpus: \"many\" is not a whole number of GPUs",
    );
    dir.write("part.yaml", "run: true\ngpu_fraction: 1.7\n");
    check_submit(&dir, &["-f", "part.yaml"], "use gpus: 2 for whole GPUs");
    dir.write("mps.sh", "#!/bin/sh\n#SBATCH --gres=mps:150\n");
    check_submit(
        &dir,
        &["-f", "mps.sh"],
        "mps.sh: line 2: --gres: 150 percent is more than one GPU; use gpu:2",
    );
    dir.write("flag.sh", "#!/bin/sh\n#SBATCH --mail-type=END\n");
    check_submit(&dir, &["-f", "flag.sh"], "flag.sh: line 2: --mail-type is not supported");
    dir.write("after.sh", "#!/bin/sh\n#SBATCH --dependency=afterany:3\n");
    check_submit(
        &dir,
        &["-f", "after.sh"],
        "after.sh: line 2: --dependency: \"afterany:3\" is not afterok:JOB[:JOB…]; only afterok is supported",
    );
    dir.write("binary", [0xff, 0xfe, 0]);
    check_submit(&dir, &["-f", "binary"], "cannot read binary");
}

#[test]
fn the_grammar_names_what_is_wrong() {
    let dir = Dir::new();
    for (line, part) in [
        ("show first", "\"first\" is neither a job number nor last; yard jobs --name \"first\" finds"),
        ("cancel", "required arguments"),
        ("jobs --state happy", "possible values: pending"),
        ("submit --pause later -- true", "choose auto, checkpoint, stop, freeze or never"),
        ("submit --class best -- true", "choose ordinary, guaranteed or opportunistic"),
        ("submit --gpu-fraction half -- true", "\"half\" is not a part such as 0.5 or 50%"),
        ("submit --gpu-memory much -- true", "\"much\" is not a size such as 16G, 8GiB or 500M"),
        ("up --sharing time", "possible values: plain, mps"),
        ("submit --parsable -o json -- true", "cannot be used with"),
        ("submit --dry-run --wait -- true", "cannot be used with"),
        ("token create --scope root", "possible values: read"),
        ("up --fake h100:0", "is not KIND:N"),
        ("up --listen here", "invalid value"),
        ("agent", "--server <URL>"),
    ] {
        let answer = dir.yard(line);
        assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{line}");
        assert!(answer.err.contains(part), "{line}: {}", answer.err);
    }
}

#[test]
fn the_screen_needs_a_terminal() {
    let said = refused(taking().yard(&Dir::new(), "top"));
    assert!(said.contains("needs a terminal"), "{said}");
}

#[test]
fn a_token_stays_on_this_machine_unless_encrypted() {
    let said = refused(taking().yard(&Dir::new(), "jobs --server http://example.org:7411"));
    assert!(said.contains("use https://"), "{said}");
}

#[test]
fn the_audit_trail_is_read_newest_last() {
    let entry = |id: u64, what: &str| json!({"id": id, "time": 1_794_758_400.0, "user": "ada", "what": what, "target": "job 7", "outcome": "accepted"});
    let list = json!({"entries": [entry(9, "cancel"), entry(8, "submit")], "more": true});
    let server = Server::new(&[("GET /v1/audit", 200, list)]);
    let answer = server.yard(&Dir::new(), "audit --user ada --before 10 --limit 2");
    let rows: Vec<Vec<_>> = answer.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows[1..],
        [
            ["8", "2026-11-15", "16:00:00", "ada", "submit", "job", "7", "accepted"],
            ["9", "2026-11-15", "16:00:00", "ada", "cancel", "job", "7", "accepted"],
        ]
    );
    assert_eq!(answer.err, "older entries: yard audit --before 8\n");
    assert_eq!(server.lines(), ["GET /v1/audit?before=10&user=ada&limit=2"]);
}
