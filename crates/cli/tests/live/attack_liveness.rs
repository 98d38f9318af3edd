//! An input that makes the scheduler fail: the server comes up all the same, says so, and goes on.

use std::process::Command;

use crate::harness::Cluster;

/// Adds an input that the engine cannot take, as a crash would leave it in the journal.
const POISON: &str = "
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
row = 'SELECT seq, time_us, version, input FROM journal ORDER BY seq DESC'
begin = next(r for r in db.execute(row) if r[3].startswith('{\"Begin\"'))
last = next(db.execute(row))
settings = json.loads(begin[3])
settings['Begin']['lease'] = 0
db.execute('INSERT INTO journal VALUES(?,?,?,?)', (last[0] + 1, last[1], last[2], json.dumps(settings)))
db.commit()
";

#[test]
fn a_journal_that_makes_the_scheduler_fail_does_not_keep_it_down() {
    let mut cluster = Cluster::up("--fake v100:1 --round 1s");
    let before = cluster.submit("", &["sleep", "1"]);
    cluster.kill_server();
    let db = cluster.folder.0.join(".yard/yard.db");
    let poisoned = Command::new("python3").args(["-c", POISON]).arg(&db).output().expect("python3 is there");
    assert!(poisoned.status.success(), "{}", String::from_utf8_lossy(&poisoned.stderr));
    cluster.start();
    let said = std::fs::read_to_string(cluster.folder.0.join("up.log")).expect("the log is there");
    assert!(said.contains("THE SCHEDULER FAILED ON AN INPUT") && said.contains("yard repair"), "{said}");
    let after = cluster.submit("", &["true"]);
    assert_eq!(after, before + 1);
    cluster.wait(before, "succeeded");
    cluster.wait(after, "succeeded");
    let listed = cluster.yard("repair").ok();
    assert!(listed.contains("a lease lasts longer than no time"), "{listed}");
    let refused = cluster.yard("repair --retry 1");
    assert!(refused.code == Some(2) && refused.err.contains("another server"), "{}", refused.err);
    let status: serde_json::Value = {
        let auth = format!("Authorization: Bearer {}", cluster.token());
        let (_, body) = cluster.curl(&["-H", &auth, &format!("{}/v1/status", cluster.url())]);
        serde_json::from_str(&body).expect("a status is JSON")
    };
    assert_eq!(status["set_aside"], 1);
}
