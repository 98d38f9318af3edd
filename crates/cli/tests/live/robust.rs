//! What strangers and full disks do, and what they are told.

use std::process::Command;

use crate::harness::Cluster;

#[test]
fn strangers_are_refused() {
    let cluster = Cluster::up("--fake v100:1 --round 1s");
    let url = cluster.url();
    let jobs = format!("{url}/v1/jobs");
    assert_eq!(cluster.curl(&[&jobs]).0, 401, "no token");
    assert_eq!(cluster.curl(&["-H", "Authorization: Bearer yard_0000", &jobs]).0, 401, "a wrong token");
    let auth = format!("Authorization: Bearer {}", cluster.token());
    let json = "Content-Type: application/json";
    let post = |body: &str| cluster.curl(&["-H", &auth, "-H", json, "-d", body, &jobs]);
    assert_eq!(post("{\"command\":").0, 400, "broken JSON");
    let (code, said) = post(r#"{"command":["true"],"gpuz":1}"#);
    assert!((code == 400 || code == 422) && said.contains("gpuz"), "an unknown field: {code} {said}");
    for name in ["../../etc/passwd", "a\u{7}b", "a\nb"] {
        let body = serde_json::json!({ "command": ["true"], "name": name }).to_string();
        let (code, said) = post(&body);
        assert!((400..500).contains(&code) && said.contains("name"), "{name:?}: {code} {said}");
    }
    let big = cluster.folder.0.join("big");
    let file = std::fs::File::create(&big).expect("a file can be made");
    file.set_len(100 << 20).expect("it can be sparse");
    let (code, _) = cluster.curl(&["-H", &auth, "-H", json, "-H", "Expect:", "--data-binary", "@big", &jobs]);
    assert!(code == 413 || code == 0, "a body of 100 MiB is cut off: {code}");
    let id = cluster.submit("", &["true"]);
    cluster.wait(id, "succeeded");
}

#[test]
fn users_see_and_touch_only_what_is_theirs() {
    let cluster = Cluster::up("--fake v100:1 --round 1s");
    let id = cluster.submit("", &["sleep", "1000"]);
    cluster.wait(id, "running");
    let made = cluster.yard("token create --user nobody --scope submit -o json").ok();
    let made: serde_json::Value = serde_json::from_str(&made).expect("it is JSON");
    let secret = made["secret"].as_str().expect("it shows the secret once");
    let other = |line: &str| {
        let args: Vec<_> = line.split_whitespace().collect();
        let mut command: Command = cluster.command(&args);
        let output = command.env("YARD_TOKEN", secret).output().expect("the binary can be run");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for line in ["show", "logs", "cancel", "explain"] {
        assert_eq!(other(&format!("{line} {id}")).0, Some(2), "{line}");
    }
    let (code, listed) = other("jobs --all -o json");
    assert_eq!(code, Some(0));
    assert!(!listed.contains("sleep"), "{listed}");
    assert_eq!(other("drain anything").0, Some(2));
    assert_eq!(other("token create --user root --scope admin").0, Some(2));
    assert_eq!(cluster.state(id), "running");
    let listed = cluster.yard("token list").ok();
    assert!(!listed.contains(secret), "a secret is shown once");
}

#[test]
fn secrets_are_in_no_log_no_argument_and_no_file_that_others_read() {
    use std::os::unix::fs::PermissionsExt;
    let cluster = Cluster::up("--fake v100:1 --round 1s");
    let id = cluster.submit("", &["env"]);
    cluster.wait(id, "succeeded");
    let token = cluster.token();
    let log = std::fs::read_to_string(cluster.folder.0.join("up.log")).expect("the log is there");
    assert!(!log.contains(&token), "a token is in the log: the first start names the file");
    assert!(!cluster.log(id).contains(&token));
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let data = cluster.folder.0.join(".yard");
    let folder = if nix::unistd::geteuid().is_root() { 0o711 } else { 0o700 };
    assert_eq!(mode(&data), folder);
    // The agent's folder lets jobs' users through to what is theirs; the server's address is for everybody.
    let open = ["agent", "server.json"];
    for entry in data.read_dir().expect("it can be listed").map(|entry| entry.expect("it is an entry")) {
        let (name, found) = (entry.file_name(), entry.metadata().expect("it is there"));
        let closed = if found.is_dir() { 0o700 } else { 0o600 };
        assert!(open.iter().any(|open| name == *open) || mode(&entry.path()) == closed, "{name:?}");
    }
}

#[test]
fn a_full_disk_refuses_submissions_and_harms_nothing() {
    let folder = crate::harness::Folder::new();
    let mount =
        |args: &[&str]| Command::new("mount").args(args).output().is_ok_and(|output| output.status.success());
    let target = folder.0.to_str().expect("test paths are UTF-8");
    let mounted = mount(&["-t", "tmpfs", "-o", "size=24m", "tmpfs", target]);
    if !yard_needs::needs("the right to mount a small disk (root)", mounted) {
        return;
    }
    let cluster = Cluster::up_in(folder, "127.0.0.1:0", "--fake v100:2 --round 1s");
    let running = cluster.submit("", &["sleep", "6"]);
    cluster.wait(running, "running");
    let filler = cluster.folder.0.join("filler");
    let _ = Command::new("dd").args(["if=/dev/zero", "bs=64k", &format!("of={}", filler.display())]).output();
    let mut refused = None;
    for _ in 0..200 {
        let answer = cluster.yard("submit --parsable -- true");
        if answer.code != Some(0) {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a full disk cannot keep submissions");
    assert!(refused.err.contains("disk") || refused.err.contains("full"), "{}", refused.err);
    std::fs::remove_file(&filler).expect("it can be removed");
    cluster.wait(running, "succeeded");
    cluster
        .until("submissions are taken again", || cluster.yard("submit --parsable -- true").code == Some(0));
    let last = cluster.submit("", &["true"]);
    cluster.wait(last, "succeeded");
    let target = cluster.folder.0.clone();
    drop(cluster);
    let _ = Command::new("umount").args(["-l"]).arg(target).output();
}
