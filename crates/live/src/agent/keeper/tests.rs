//! The keeper as a process, with real processes under it.

mod confined;
mod flooded;

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;
use yard_core::ids::{JobId, LeaseId};
use yard_core::part::PartId;

use super::words::{Confine, KeeperAsk, ProcessExit, RankSpec, RunAs, Say, Sink, StartPart};
use super::{Keeper, tree};
use crate::agent::testing::{Folder, other_user, program};

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Small, so that it is soon full.
const LOG_MAX: u64 = 1 << 20;

struct Bench {
    folder: Folder,
    /// None while the agent is dead.
    keeper: Option<Keeper>,
    says: mpsc::UnboundedReceiver<Option<Say>>,
}

fn part(number: u64) -> PartId {
    PartId { lease: LeaseId(number), job: JobId(number), instance: 1 }
}

fn code(code: i32) -> ProcessExit {
    ProcessExit { code: Some(code), signal: None, ..ProcessExit::default() }
}

fn killed(signal: Signal) -> ProcessExit {
    ProcessExit { code: None, signal: Some(signal as i32), ..ProcessExit::default() }
}

impl Bench {
    async fn new() -> Bench {
        let folder = Folder::new();
        let (keeper, says) = Bench::connect(&folder).await;
        Bench { folder, keeper: Some(keeper), says }
    }

    async fn connect(folder: &Folder) -> (Keeper, mpsc::UnboundedReceiver<Option<Say>>) {
        let (say, says) = mpsc::unbounded_channel();
        let keeper =
            Keeper::find(&folder.path().join("k"), &[program(), "keeper".into()], say).await.unwrap();
        (keeper, says)
    }

    /// As when an agent died and another one comes.
    async fn reconnect(&mut self) {
        let (keeper, says) = Bench::connect(&self.folder).await;
        (self.keeper, self.says) = (Some(keeper), says);
    }

    fn ask(&self, ask: &KeeperAsk) {
        self.keeper.iter().for_each(|keeper| keeper.ask(ask));
    }

    fn rank(&self, number: u32, argv: &[&str]) -> RankSpec {
        let path = self.folder.path().join(format!("{number}.out"));
        RankSpec {
            rank: number,
            argv: argv.iter().map(|word| word.to_string()).collect(),
            env: BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]),
            cwd: self.folder.path().to_owned(),
            stdout: Sink { path, theirs: false, header: None },
            stderr: None,
        }
    }

    fn start(&self, number: u64, commands: &[&[&str]]) {
        let ranks = commands.iter().zip(0..).map(|(argv, rank)| self.rank(rank, argv)).collect();
        self.start_ranks(number, ranks, None);
    }

    fn start_ranks(&self, number: u64, ranks: Vec<RankSpec>, user: Option<RunAs>) {
        self.start_confined(number, ranks, user, Confine::default());
    }

    fn start_confined(&self, number: u64, ranks: Vec<RankSpec>, user: Option<RunAs>, confine: Confine) {
        let start = StartPart {
            part: part(number),
            ranks,
            user,
            confine,
            stop_signal: Signal::SIGTERM as i32,
            grace: 200_000,
            log_max: LOG_MAX,
        };
        self.ask(&KeeperAsk::Start(Box::new(start)));
    }

    async fn hear(&mut self) -> Say {
        let heard = tokio::time::timeout(PATIENCE, self.says.recv()).await.expect("the keeper is silent");
        heard.flatten().expect("the keeper is gone")
    }

    /// The next exit, whatever else is said before.
    async fn exit(&mut self) -> (u64, u32, ProcessExit) {
        loop {
            if let Say::Exited { part, rank, exit } = self.hear().await {
                return (part.lease.0, rank, exit);
            }
        }
    }

    async fn list(&mut self) -> Say {
        self.ask(&KeeperAsk::List);
        loop {
            if let parts @ Say::Parts { .. } = self.hear().await {
                return parts;
            }
        }
    }

    /// Waits for a file that a job writes, and gives what is in it.
    async fn read(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        for _ in 0..PATIENCE.as_millis() / 10 {
            match std::fs::read_to_string(&path) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        panic!("nobody wrote {}", path.display())
    }
}

impl Drop for Bench {
    /// Lets the keeper go at once instead of after its time.
    fn drop(&mut self) {
        if let Ok(mut stream) =
            std::os::unix::net::UnixStream::connect(super::socket(&self.folder.path().join("k")))
        {
            let _gone = stream.write_all(&super::words::line(&KeeperAsk::Leave));
        }
    }
}

/// Whether a process runs; one that only waits to be waited for does not.
fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| !fields.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn codes_and_signals_are_told() {
    let mut bench = Bench::new().await;
    bench.start(1, &[&["sh", "-c", "exit 7"]]);
    assert_eq!(bench.hear().await, Say::Started { part: part(1) });
    assert_eq!(bench.exit().await, (1, 0, code(7)));
    bench.start(2, &[&["true"], &["sleep", "600"]]);
    assert_eq!(bench.exit().await, (2, 0, code(0)));
    bench.ask(&KeeperAsk::Signal { part: part(2), ranks: vec![1], signal: Signal::SIGUSR1 as i32 });
    assert_eq!(bench.exit().await, (2, 1, killed(Signal::SIGUSR1)));
    bench.start(3, &[&["sh", "-c", "kill -40 $$"]]);
    assert_eq!(
        bench.exit().await,
        (3, 0, ProcessExit { code: None, signal: Some(40), ..ProcessExit::default() })
    );
}

#[tokio::test]
async fn what_cannot_start_says_why_and_leaves_nothing() {
    let mut bench = Bench::new().await;
    bench.start(1, &[&["sleep", "600"], &["no-such-program"]]);
    let Say::Failed { code: Some(127), message, .. } = bench.hear().await else { panic!("it started") };
    assert!(message.contains("no-such-program"), "{message}");
    assert_eq!(bench.exit().await, (1, 0, killed(Signal::SIGKILL)));
    let mut lost = bench.rank(0, &["true"]);
    lost.cwd = "/no/such/folder".into();
    bench.start_ranks(2, vec![lost], None);
    assert!(matches!(bench.hear().await, Say::Failed { code: Some(126), .. }));
    bench.start(3, &[&[]]);
    assert!(matches!(bench.hear().await, Say::Failed { code: Some(127), .. }));
    let Say::Parts { alive, .. } = bench.list().await else { unreachable!() };
    assert_eq!(alive, []);
}

#[tokio::test]
async fn a_tree_that_hides_is_ended_whole() {
    let mut bench = Bench::new().await;
    // A child in a session of its own, a daemon whose parent is gone, and one that hides its mark as well.
    let script = "setsid sleep 601 & echo $! > child
        (setsid sh -c 'echo $$ > daemon; exec sleep 602' &)
        (env -i setsid sh -c 'echo $$ > hidden; exec sleep 603' &)
        sleep 604";
    bench.start(1, &[&["sh", "-c", script]]);
    bench.start(2, &[&["sleep", "605"]]);
    let mut pids = Vec::new();
    for name in ["child", "daemon", "hidden"] {
        pids.push(bench.read(name).await.parse::<i32>().unwrap());
    }
    assert!(pids.iter().all(|pid| lives(*pid)));
    bench.ask(&KeeperAsk::Kill { part: part(1) });
    assert_eq!(bench.exit().await, (1, 0, killed(Signal::SIGKILL)));
    assert!(!lives(pids[0]) && !lives(pids[1]));
    // The hidden one could be either part's, so it goes with the last of them.
    bench.ask(&KeeperAsk::Kill { part: part(2) });
    assert_eq!(bench.exit().await, (2, 0, killed(Signal::SIGKILL)));
    while lives(pids[2]) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_mark_that_no_rank_has_saves_no_orphan() {
    let mut bench = Bench::new().await;
    let script = "(YARD_KEEPER=none setsid sh -c 'echo $$ > liar; exec sleep 609' &)
        while [ ! -e liar ]; do sleep 0.01; done";
    bench.start(1, &[&["sh", "-c", script]]);
    assert_eq!(bench.exit().await, (1, 0, code(0)));
    let liar: i32 = bench.read("liar").await.parse().unwrap();
    let ended = async {
        while lives(liar) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE / 4, ended).await;
    tree::send(liar, Signal::SIGKILL);
    ended.expect("an orphan with a mark of its own outlived its job");
}

#[tokio::test]
async fn an_orphan_of_a_rank_that_lives_is_left_alone() {
    let mut bench = Bench::new().await;
    let script = "(setsid sh -c 'echo $$ > daemon; exec sleep 610' &); sleep 611";
    bench.start(1, &[&["sh", "-c", script]]);
    let daemon: i32 = bench.read("daemon").await.parse().unwrap();
    bench.start(2, &[&["true"]]);
    assert_eq!(bench.exit().await, (2, 0, code(0)));
    bench.list().await;
    assert!(lives(daemon));
    bench.ask(&KeeperAsk::Kill { part: part(1) });
    assert_eq!(bench.exit().await, (1, 0, killed(Signal::SIGKILL)));
    assert!(!lives(daemon));
}

#[tokio::test]
async fn a_rank_is_gone_only_when_its_children_are() {
    let mut bench = Bench::new().await;
    bench.start(1, &[&["sh", "-c", "setsid sleep 606 & echo $! > child; sleep 0.2; exit 3"]]);
    let child: i32 = bench.read("child").await.parse().unwrap();
    assert_eq!(bench.exit().await, (1, 0, code(3)));
    assert!(!lives(child));
}

#[tokio::test]
async fn exits_are_known_after_the_agents_death() {
    let mut bench = Bench::new().await;
    bench.start(1, &[&["sh", "-c", "while [ ! -e go ]; do sleep 0.01; done; exit 9"]]);
    bench.start(2, &[&["sleep", "607"]]);
    bench.hear().await;
    bench.reconnect().await;
    std::fs::write(bench.folder.path().join("go"), "").unwrap();
    assert_eq!(bench.exit().await, (1, 0, code(9)));
    bench.reconnect().await;
    let parts = bench.list().await;
    assert_eq!(
        parts,
        Say::Parts { alive: vec![(part(2), 0)], exits: vec![(part(1), 0, code(9))], lease: None }
    );
    bench.ask(&KeeperAsk::Forget { part: part(1) });
    bench.ask(&KeeperAsk::Kill { part: part(2) });
    assert_eq!(bench.exit().await, (2, 0, killed(Signal::SIGKILL)));
    let parts = bench.list().await;
    assert_eq!(
        parts,
        Say::Parts { alive: vec![], exits: vec![(part(2), 0, killed(Signal::SIGKILL))], lease: None }
    );
}

#[tokio::test]
async fn a_keeper_that_died_leaves_no_processes() {
    let mut bench = Bench::new().await;
    bench.start(1, &[&["sh", "-c", "echo $PPID > keeper; echo $$ > job; exec sleep 608"]]);
    bench.start(2, &[&["sh", "-c", "exit 4"]]);
    assert_eq!(bench.exit().await, (2, 0, code(4)));
    let keeper: i32 = bench.read("keeper").await.parse().unwrap();
    let job: i32 = bench.read("job").await.parse().unwrap();
    tree::send(keeper, Signal::SIGKILL);
    while lives(keeper) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(lives(job));
    bench.reconnect().await;
    let parts = bench.list().await;
    assert_eq!(parts, Say::Parts { alive: vec![], exits: vec![(part(2), 0, code(4))], lease: None });
    while lives(job) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn stopped_processes_wait_and_go_on_under_another_name() {
    let mut bench = Bench::new().await;
    let script = "setsid sh -c 'echo $$ > child; while :; do sleep 0.01; done' & while [ ! -e go ]; do sleep 0.01; done; exit 5";
    bench.start(1, &[&["sh", "-c", script]]);
    let child: i32 = bench.read("child").await.parse().unwrap();
    bench.ask(&KeeperAsk::Freeze { part: part(1) });
    let state = |pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // D: in the middle of a vfork, held by what it just began.
    while ![") T ", ") D "].iter().any(|held| state(child).contains(held)) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    std::fs::write(bench.folder.path().join("go"), "").unwrap();
    let Say::Parts { alive, .. } = bench.list().await else { unreachable!() };
    assert_eq!(alive, [(part(1), 0)]);
    bench.ask(&KeeperAsk::Pids { part: part(1) });
    let Say::Pids { pids, .. } = bench.hear().await else { unreachable!() };
    assert!(pids.contains(&child) && pids.len() >= 2, "{pids:?}");
    bench.ask(&KeeperAsk::Thaw { part: part(1), as_part: part(2) });
    assert_eq!(bench.exit().await, (2, 0, code(5)));
    assert!(!lives(child));
}

#[tokio::test]
async fn without_an_agent_a_lapsed_lease_ends_jobs() {
    let mut bench = Bench::new().await;
    bench.start(1, &[&["sh", "-c", "trap '' TERM; echo > ready; while :; do sleep 0.01; done"]]);
    bench.start(2, &[&["sh", "-c", "trap 'exit 6' TERM; echo > steady; while :; do sleep 0.01; done"]]);
    bench.hear().await;
    bench.ask(&KeeperAsk::Lease { until: crate::agent::clock::since_boot() + 300_000 });
    while !["ready", "steady"].iter().all(|name| bench.folder.path().join(name).exists()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.list().await;
    bench.keeper = None;
    let record = bench.folder.path().join("k/exits");
    while std::fs::read_to_string(&record).unwrap_or_default().lines().count() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bench.reconnect().await;
    let Say::Parts { alive, exits, .. } = bench.list().await else { unreachable!() };
    assert_eq!(alive, []);
    assert_eq!(exits, [(part(1), 0, killed(Signal::SIGKILL)), (part(2), 0, code(6))]);
}

#[tokio::test]
async fn a_lapsed_lease_gives_no_more_time_than_the_server_waits() {
    let bench = Bench::new().await;
    let lapses = tokio::time::timeout(PATIENCE, lapse(&bench));
    tokio::task::LocalSet::new().run_until(lapses).await.expect("it comes to an end");
}

/// A part whose job wants a day, in a table of its own.
async fn lapse(bench: &Bench) {
    let (found, _found) = tokio::sync::mpsc::unbounded_channel();
    let mut table = super::table::KeptTable::new("test".into(), found);
    let rank = bench.rank(0, &["sh", "-c", "trap '' TERM; echo > ready; while :; do sleep 0.01; done"]);
    let (user, confine, stop_signal, grace) =
        (None, Confine::default(), Signal::SIGTERM as i32, 86_400_000_000);
    let log_max = crate::agent::logs::LOG_MAX;
    table.start(StartPart { part: part(1), ranks: vec![rank], user, confine, stop_signal, grace, log_max });
    while !bench.folder.path().join("ready").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pid = *table.processes(part(1)).first().unwrap();
    table.lapse(29_000_000, true, 0);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!is_dead(pid), "it has 30 s");
    table.lapse(30_000_000, true, 0);
    while !is_dead(pid) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    table.kill(part(1));
}

/// Whether a process has exited; nobody waits for it here.
fn is_dead(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn many_short_processes_end_with_their_own_codes() {
    let mut bench = Bench::new().await;
    let mut open = 0;
    let mut codes = BTreeMap::new();
    for number in 0..500 {
        let wanted = format!("exit {}", number % 7);
        if number % 2 == 0 {
            bench.start(number, &[&["true"]])
        } else {
            bench.start(number, &[&["sh", "-c", &wanted]])
        }
        open += 1;
        while open > 8 {
            let (number, _, exit) = bench.exit().await;
            codes.insert(number, exit);
            open -= 1;
        }
    }
    while codes.len() < 500 {
        let (number, _, exit) = bench.exit().await;
        codes.insert(number, exit);
    }
    let expected = |number: u64| code(if number.is_multiple_of(2) { 0 } else { (number % 7) as i32 });
    assert!(codes.iter().all(|(number, exit)| *exit == expected(*number)));
}

#[tokio::test]
async fn another_users_job_has_that_users_rights_and_no_others() {
    let Some(user) = other_user() else { return };
    let mut bench = Bench::new().await;
    let mut rank = bench.rank(0, &["sh", "-c", "id -u; id -G; echo $X; cat /etc/shadow || exit 5"]);
    rank.env.insert("X".into(), "from the job".into());
    rank.env.insert("LD_PRELOAD".into(), "/no/such/library.so".into());
    bench.start_ranks(1, vec![rank], Some(user.clone()));
    assert_eq!(bench.exit().await, (1, 0, code(5)));
    let out = bench.read("0.out").await;
    let expected = [user.uid.to_string(), user.gid.to_string(), "from the job".to_string()];
    let said: Vec<&str> = out.lines().filter(|line| !line.starts_with("ERROR")).take(3).collect();
    assert_eq!(said, expected, "{out}");
    // A file that the user may not write is not written for them.
    let mut rank = bench.rank(0, &["true"]);
    rank.stdout = Sink { path: bench.folder.path().join("theirs"), theirs: true, header: None };
    bench.start_ranks(2, vec![rank], Some(user));
    assert_eq!(bench.exit().await, (2, 0, code(126)));
    assert!(!bench.folder.path().join("theirs").exists());
}
