//! Jobs in control groups, with devices that are not theirs, and with secrets. All of it needs root.

use std::path::Path;

use yard_core::part::Held;

use super::*;
use crate::agent::cgroup::Cgroups;
use crate::agent::confinement::{Confinement, NodeSize};
use crate::agent::device_files::{DeviceFile, DeviceFiles};
use crate::agent::keeper::words::SecretFiles;
use crate::agent::testing::task;
use crate::wire::SecretValue;

/// Control groups of one test.
struct Groups(Cgroups);

impl Drop for Groups {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Control groups for this test alone, where this machine has any of version 2.
fn groups(bench: &Bench) -> Option<Groups> {
    let node = NodeSize { memory: 1 << 30, devices: 2 };
    let found = Cgroups::open(Path::new("/sys/fs/cgroup"), bench.folder.path(), Confinement::default(), node);
    yard_needs::needs("control groups of version 2", found.is_some()).then(|| Groups(found.unwrap()))
}

/// Two pretend cards.
fn cards() -> DeviceFiles {
    let file = |name: &str, minor, at| DeviceFile { path: name.into(), major: 1, minor, card: Some((0, at)) };
    let files = vec![file("/dev/zero", 5, 0), file("/dev/full", 7, 1)];
    DeviceFiles { files, closed: vec![], control: vec![] }
}

fn confine(groups: &Groups, number: u64, mask: u128) -> Confine {
    let group = groups.0.make(part(number), &task(&["true"]), &[Held { group: 0, mask }]).unwrap();
    let launcher = vec![program(), "launch".into()];
    Confine { cgroup: Some(group.path), closed: group.closed, secrets: None, launcher }
}

#[tokio::test]
async fn a_job_is_in_its_control_group_at_its_first_act() {
    if other_user().is_none() {
        return;
    }
    let mut bench = Bench::new().await;
    let Some(groups) = groups(&bench) else { return };
    for number in 1..=20 {
        let held = confine(&groups, number, 1);
        let own = held.cgroup.clone().unwrap();
        // No shell, which would take its time.
        bench.start_confined(number, vec![bench.rank(0, &["cat", "/proc/self/cgroup"])], None, held);
        assert_eq!(bench.hear().await, Say::Started { part: part(number) });
        assert_eq!(bench.exit().await, (number, 0, code(0)));
        let seen = std::fs::read_to_string(bench.folder.path().join("0.out")).unwrap();
        let last = seen.lines().filter_map(|line| line.strip_prefix("0::")).next_back().unwrap();
        assert!(own.ends_with(last.trim_start_matches('/')), "{last} is not {}", own.display());
        assert!(!own.exists(), "the group of a part that is over stays");
    }
}

#[tokio::test]
async fn nothing_of_a_job_runs_before_it_is_in_its_group() {
    let mut bench = Bench::new().await;
    // A group that takes its time: whoever writes to a named pipe waits for a reader.
    let group = bench.folder.path().join("group");
    let procs = group.join("cgroup.procs");
    std::fs::create_dir(&group).unwrap();
    nix::unistd::mkfifo(&procs, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let launcher = vec![program(), "launch".into()];
    let confine = Confine { cgroup: Some(group.clone()), launcher, ..Confine::default() };
    let rank = bench.rank(0, &["sh", "-c", "echo > ran; while [ ! -e go ]; do sleep 0.01; done"]);
    bench.start_confined(1, vec![rank], None, confine);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!bench.folder.path().join("ran").exists(), "it ran before it was in its group");
    let pid = tokio::task::spawn_blocking({
        let procs = procs.clone();
        move || std::fs::read_to_string(procs).unwrap()
    });
    let pid: i32 = pid.await.unwrap().parse().unwrap();
    bench.read("ran").await;
    assert!(lives(pid));
    std::fs::remove_file(&procs).unwrap();
    std::fs::write(&procs, "").unwrap();
    std::fs::write(bench.folder.path().join("go"), "").unwrap();
    assert_eq!(bench.exit().await, (1, 0, code(0)));
}

#[tokio::test]
async fn what_cannot_be_put_into_its_group_does_not_run() {
    let mut bench = Bench::new().await;
    let launcher = vec![program(), "launch".into()];
    let confine = Confine { cgroup: Some("/no/such/group".into()), launcher, ..Confine::default() };
    let rank = bench.rank(0, &["sh", "-c", "echo > ran"]);
    bench.start_confined(1, vec![rank], None, confine);
    let Say::Failed { code: None, message, .. } = bench.hear().await else { panic!("it started") };
    assert!(message.contains("control group"), "{message}");
    assert!(!bench.folder.path().join("ran").exists());
}

#[tokio::test]
async fn a_job_that_hides_in_its_group_is_ended_with_it() {
    if other_user().is_none() {
        return;
    }
    let mut bench = Bench::new().await;
    let Some(groups) = groups(&bench) else { return };
    bench.start(2, &[&["sleep", "600"]]);
    let script =
        "(env -i setsid sh -c 'echo $$ > hidden; exec sleep 603' &); while [ ! -e hidden ]; do :; done";
    let rank = bench.rank(0, &["sh", "-c", script]);
    bench.start_confined(1, vec![rank], None, confine(&groups, 1, 1));
    assert_eq!(bench.exit().await, (1, 0, code(0)));
    let hidden: i32 = bench.read("hidden").await.parse().unwrap();
    assert!(!lives(hidden));
    bench.ask(&KeeperAsk::Kill { part: part(2) });
    assert_eq!(bench.exit().await, (2, 0, killed(Signal::SIGKILL)));
}

#[tokio::test]
async fn a_job_can_use_its_own_device_and_no_other() {
    let Some(nobody) = other_user() else { return };
    let mut bench = Bench::new().await;
    let Some(mut groups) = groups(&bench) else { return };
    let guards = groups.0.guard(cards());
    if !yard_needs::needs("a kernel that guards devices (BPF)", guards.is_ok()) {
        return;
    }
    let script = "for f in zero full null; do (: < /dev/$f) 2>/dev/null && echo $f; done
        mknod other c 1 7 2>/dev/null && (: < other) && echo made; echo done";
    for (number, mask, user, expected) in [
        (1, 0b01, None, "zero\nnull\ndone"),
        (2, 0b10, Some(nobody.clone()), "full\nnull\ndone"),
        (3, 0b00, Some(nobody), "null\ndone"),
        (4, 0b11, None, "zero\nfull\nnull\nmade\ndone"),
    ] {
        let mut rank = bench.rank(0, &["sh", "-c", script]);
        rank.stdout.path = bench.folder.path().join(format!("{number}.out"));
        bench.start_confined(number, vec![rank], user, confine(&groups, number, mask));
        assert_eq!(bench.exit().await, (number, 0, code(0)));
        assert_eq!(bench.read(&format!("{number}.out")).await, expected, "{number}");
    }
}

#[tokio::test]
async fn a_part_fails_where_another_parts_device_is_open_to_it() {
    let mut bench = Bench::new().await;
    let Some(groups) = groups(&bench) else { return };
    // The program that would close it was never attached.
    let confine = Confine { closed: vec!["/dev/full".into()], ..confine(&groups, 1, 1) };
    bench.start_confined(1, vec![bench.rank(0, &["sh", "-c", "echo > ran"])], None, confine);
    let Say::Failed { code: None, message, .. } = bench.hear().await else { panic!("it started") };
    assert!(message.contains("/dev/full"), "{message}");
    assert_eq!(bench.exit().await, (1, 0, ProcessExit::default()));
    assert!(!bench.folder.path().join("ran").exists());
}

#[tokio::test]
async fn secrets_are_files_that_only_the_rank_sees() {
    let Some(nobody) = other_user() else { return };
    let mut bench = Bench::new().await;
    let folder = bench.folder.path().join("secrets");
    std::fs::create_dir(&folder).unwrap();
    let files = vec![("token".to_owned(), SecretValue("hush-77c1".into()))];
    let secrets = Some(SecretFiles { folder: folder.clone(), mounted: true, files });
    let open = || std::fs::read_dir(&folder).unwrap().next().is_some();
    let script = "cat secrets/token; echo; stat -c '%a %u' secrets secrets/token; id -u > up; while [ ! -e go ]; do sleep 0.01; done";
    let mut rank = bench.rank(0, &["sh", "-c", script]);
    rank.env.insert("PATH".into(), "/usr/bin:/bin".into());
    let theirs = bench.folder.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(nobody.uid), None).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(bench.folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let confine = Confine { secrets, ..Confine::default() };
    bench.start_confined(1, vec![rank], Some(nobody.clone()), confine);
    bench.read("up").await;
    assert!(!open(), "the secrets are there for everybody");
    std::fs::write(bench.folder.path().join("go"), "").unwrap();
    assert_eq!(bench.exit().await, (1, 0, code(0)));
    let seen = bench.read("0.out").await;
    assert_eq!(seen, format!("hush-77c1\n500 {0}\n400 {0}", nobody.uid));
    assert!(!open());
}

#[tokio::test]
async fn secrets_in_a_folder_go_with_the_part_also_under_another_name() {
    let mut bench = Bench::new().await;
    let base = crate::agent::keeper::secrets_base(&bench.folder.path().join("k"));
    let folder = base.join("1-1-1");
    let files = vec![("token".to_owned(), SecretValue("hush-77c2".into()))];
    let secrets = Some(SecretFiles { folder: folder.clone(), mounted: false, files });
    let mut rank = bench.rank(
        0,
        &["sh", "-c", "cat $D/token > /dev/null && echo > up; while [ ! -e go ]; do sleep 0.01; done"],
    );
    rank.env.insert("D".into(), folder.to_string_lossy().into_owned());
    bench.start_confined(1, vec![rank], None, Confine { secrets, ..Confine::default() });
    bench.read("up").await;
    bench.ask(&KeeperAsk::Thaw { part: part(1), as_part: part(2) });
    std::fs::write(bench.folder.path().join("go"), "").unwrap();
    assert_eq!(bench.exit().await, (2, 0, code(0)));
    assert!(!folder.exists());
    std::fs::remove_dir(&base).unwrap();
}

#[tokio::test]
async fn all_processes_in_a_jobs_group_are_its_own_whatever_their_mark() {
    if other_user().is_none() {
        return;
    }
    let mut bench = Bench::new().await;
    let Some(groups) = groups(&bench) else { return };
    let script = "(env -i setsid sh -c 'echo $$ > hidden; exec sleep 612' &); exec sleep 613";
    bench.start_confined(1, vec![bench.rank(0, &["sh", "-c", script])], None, confine(&groups, 1, 1));
    assert_eq!(bench.hear().await, Say::Started { part: part(1) });
    let hidden: i32 = bench.read("hidden").await.parse().unwrap();
    bench.ask(&KeeperAsk::Pids { part: part(1) });
    let Say::Pids { pids, .. } = bench.hear().await else { unreachable!() };
    assert!(pids.contains(&hidden), "{pids:?} has no {hidden}");
    bench.ask(&KeeperAsk::Kill { part: part(1) });
    assert_eq!(bench.exit().await, (1, 0, killed(Signal::SIGKILL)));
}

/// How often a job got round its loop.
fn rounds(bench: &Bench) -> u64 {
    std::fs::metadata(bench.folder.path().join("rounds")).map_or(0, |file| file.len())
}

async fn goes_on(bench: &Bench) {
    let before = rounds(bench);
    let more = async {
        while rounds(bench) <= before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, more).await.expect("it does not go on");
}

#[tokio::test]
async fn a_frozen_job_stays_frozen_whatever_its_user_sends() {
    if other_user().is_none() {
        return;
    }
    let mut bench = Bench::new().await;
    let Some(groups) = groups(&bench) else { return };
    let held = confine(&groups, 1, 1);
    let group = held.cgroup.clone().unwrap();
    let rank = bench.rank(0, &["sh", "-c", "while :; do echo >> rounds; sleep 0.01; done"]);
    bench.start_confined(1, vec![rank], None, held);
    let frozen = || std::fs::read_to_string(group.join("cgroup.events")).unwrap().contains("frozen 1");
    for freeze in [
        [KeeperAsk::Freeze { part: part(1) }, KeeperAsk::Thaw { part: part(1), as_part: part(1) }],
        [KeeperAsk::Hush { part: part(1), hushed: true }, KeeperAsk::Hush { part: part(1), hushed: false }],
    ] {
        goes_on(&bench).await;
        bench.ask(&freeze[0]);
        bench.list().await;
        for _ in (0..500).take_while(|_| !frozen()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let before = rounds(&bench);
        for _ in 0..50 {
            let pids = std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
            pids.lines().for_each(|pid| tree::send(pid.parse().unwrap(), Signal::SIGCONT));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(rounds(&bench), before, "{:?}", freeze[0]);
        bench.ask(&freeze[1]);
    }
    goes_on(&bench).await;
    bench.ask(&KeeperAsk::Freeze { part: part(1) });
    bench.ask(&KeeperAsk::Kill { part: part(1) });
    assert_eq!(bench.exit().await, (1, 0, killed(Signal::SIGKILL)));
    assert!(!group.exists());
}
