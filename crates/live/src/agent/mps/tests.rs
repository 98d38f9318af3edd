//! Daemons of a program that stands in for the driver's: it keeps a list of its calls, stays until it is told to
//! quit, and has its number in a file, as the real one does.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use std::sync::{Arc, RwLock};

use proptest::prelude::*;
use tokio::sync::{broadcast, mpsc};
use yard_core::holder::Happening;
use yard_core::ids::{JobId, LeaseId};
use yard_core::part::Order;

use super::*;
use crate::agent::serve::Agent;
use crate::agent::testing::{Folder, LinkAttack, NOBODY, is_root, other_user, owner_and_mode, program, task};
use crate::agent::{AgentCommands, AgentConfig, AgentGuests, DeviceOffer, LinkServer};
use crate::board::Board;
use crate::handle::Handle;
use crate::wire::Task;

/// Calls go to `calls` beside it; `broken` there has it fail. It is gone with its pid file, so also with the folder.
const STAND_IN: &str = r#"#!/bin/sh
here=$(dirname "$0"); pid="$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
case "$1" in
-d) echo "start $CUDA_VISIBLE_DEVICES $(id -u)" >> "$here/calls"
    if [ -e "$here/broken" ]; then echo "no luck today" >&2; exit 3; fi
    "$0" -f < /dev/null > /dev/null 2>&1 &
    until [ -s "$pid" ]; do sleep 0.01; done ;;
-f) echo $$ > "$pid"; while [ -e "$pid" ]; do sleep 0.02; done ;;
*)  read word; echo "$word $(id -u)" >> "$here/calls"; rm "$pid" ;;
esac
"#;

struct Node {
    folder: Folder,
    mps: Mps,
}

impl Node {
    fn new() -> Node {
        let folder = Folder::new();
        // By another process: a file that this one has open for writing cannot be run, and others here are forking.
        let write = "umask 0; printf %s \"$1\" > \"$0\"; chmod 755 \"$0\"; : > \"$(dirname \"$0\")/calls\"";
        let path = folder.path().join(CONTROL);
        let written = std::process::Command::new("sh").args(["-c", write]).arg(&path).arg(STAND_IN).status();
        assert!(written.unwrap().success());
        std::fs::create_dir(folder.path().join("mps")).unwrap();
        let mps = Node::open(&folder);
        Node { folder, mps }
    }

    /// As an agent does when it starts.
    fn open(folder: &Folder) -> Mps {
        let tool = Tool::search([folder.path().to_owned()], "n1");
        assert_eq!(tool, Tool::Program(folder.path().join(CONTROL)));
        Mps::open(folder.path().join("mps"), tool, vec![program(), "launch".into()], at(0)).unwrap()
    }

    fn join(&mut self, job: u64, card: &str) -> Result<MpsClient, Unspawned> {
        self.mps.join(part(job), HALF, &[card.to_owned()], &me())
    }

    /// What the program was called for, in order.
    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("calls")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn pipe(&self, card: &str) -> PathBuf {
        pipe_in(&self.folder.path().join("mps"), card, geteuid().as_raw())
    }
}

const HALF: Limits = Limits { compute: 0.5, memory_mib: None };

/// Whether a daemon of this user has these pipes.
fn is_alive(pipe: &Path) -> bool {
    Control::of(geteuid().as_raw(), pipe).is_alive()
}

fn part(job: u64) -> PartId {
    PartId { lease: LeaseId(job), job: JobId(job), instance: 1 }
}

fn me() -> UserAccount {
    UserAccount { run_as: None, base: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]) }
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_whole_secs(seconds)
}

fn words(call: &str) -> String {
    format!("{call} {}", geteuid())
}

#[test]
fn who_goes_without_finds_no_idle_daemon_on_its_card() {
    let mut node = Node::new();
    node.join(1, "GPU-1").unwrap();
    node.join(2, "GPU-2").unwrap();
    node.mps.leave(part(1), at(1));
    // One is idle and on its card, the other is neither.
    node.mps.vacate(&["GPU-1".to_owned()]);
    assert!(!is_alive(&node.pipe("GPU-1")) && is_alive(&node.pipe("GPU-2")));
    node.mps.vacate(&["GPU-2".to_owned()]);
    assert!(is_alive(&node.pipe("GPU-2")), "it has a client");
    node.mps.end_all();
}

#[test]
fn a_card_and_a_user_have_one_daemon() {
    let mut node = Node::new();
    assert_eq!(node.calls(), [""; 0], "nobody needs one yet");
    let first = node.join(1, "GPU-a").unwrap();
    assert_eq!(node.join(2, "GPU-a").unwrap(), first);
    let other = node.join(3, "GPU-b").unwrap();
    assert_ne!(other.pipe, first.pipe);
    assert_eq!(node.calls(), [words("start GPU-a"), words("start GPU-b")]);
    assert!(is_alive(&first.pipe) && is_alive(&other.pipe));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&first.pipe), mode(first.pipe.parent().unwrap())), (0o700, 0o711));
    assert_ne!(folder_name("GPU-a", 0), folder_name("GPU-a", 1), "another user has another");
}

#[test]
fn a_daemon_ends_a_while_after_its_last_client() {
    let mut node = Node::new();
    let pipe = node.join(1, "GPU-a").unwrap().pipe;
    node.join(2, "GPU-a").unwrap();
    node.mps.leave(part(1), at(10));
    node.mps.look(at(500));
    node.mps.rename(part(2), part(7));
    node.mps.leave(part(2), at(500));
    node.mps.look(at(600));
    assert!(is_alive(&pipe), "one is left, under another name");
    node.mps.leave(part(7), at(600));
    node.mps.look(at(659));
    assert_eq!(node.calls(), [words("start GPU-a")]);
    node.mps.look(at(660));
    assert!(wait(|| !is_alive(&pipe)));
    assert_eq!(node.calls(), [words("start GPU-a"), words("quit")]);
    assert!(wait(|| {
        node.mps.look(at(661));
        !pipe.exists() && node.mps.daemons.is_empty()
    }));
}

#[test]
fn who_begins_while_a_daemon_ends_gets_a_new_one() {
    let mut node = Node::new();
    node.join(1, "GPU-a").unwrap();
    node.mps.leave(part(1), at(0));
    node.mps.look(at(100));
    let pipe = node.join(2, "GPU-a").unwrap().pipe;
    assert!(is_alive(&pipe));
    assert_eq!(node.calls(), [words("start GPU-a"), words("quit"), words("start GPU-a")]);
    node.mps.look(at(1_000));
    assert!(is_alive(&pipe), "it has a client");
}

#[test]
fn the_next_agent_finds_daemons_and_their_clients() {
    let mut node = Node::new();
    let (a, b) = (node.join(1, "GPU-a").unwrap().pipe, node.join(2, "GPU-b").unwrap().pipe);
    node.mps = Node::open(&node.folder);
    node.mps.rejoin(part(1), &["GPU-a".to_owned()], &me());
    node.mps.look(at(100));
    assert!(wait(|| !is_alive(&b)), "nobody uses it any more");
    assert!(is_alive(&a));
    node.join(3, "GPU-a").unwrap();
    assert_eq!(node.calls(), [words("start GPU-a"), words("start GPU-b"), words("quit")], "it was there");
    node.mps.end_all();
    assert!(!is_alive(&a) && !a.exists() && !b.exists());
}

#[test]
fn a_daemon_that_died_is_started_anew() {
    let mut node = Node::new();
    let pipe = node.join(1, "GPU-a").unwrap().pipe;
    let pid: i32 =
        std::fs::read_to_string(pipe.join(format!("{CONTROL}.pid"))).unwrap().trim().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(wait(|| !is_alive(&pipe)));
    node.join(2, "GPU-a").unwrap();
    assert!(is_alive(&pipe));
    assert_eq!(node.calls(), [words("start GPU-a"), words("start GPU-a")]);
}

#[test]
fn a_daemon_that_does_not_start_is_the_nodes_fault_and_says_why() {
    let mut node = Node::new();
    std::fs::write(node.folder.path().join("broken"), "").unwrap();
    let failed = node.join(1, "GPU-a").unwrap_err();
    assert_eq!(failed.code, None);
    assert!(
        failed.message.contains("GPU-a") && failed.message.contains("no luck today"),
        "{}",
        failed.message
    );
    let two = node.mps.join(part(1), HALF, &["GPU-a".to_owned(), "GPU-b".to_owned()], &me()).unwrap_err();
    assert!(two.message.contains("one card"), "{}", two.message);
    let none = Tool::search([node.folder.path().join("nothing")], "n1");
    node.mps = Mps::open(node.folder.path().join("mps"), none, Vec::new(), at(0)).unwrap();
    let why = "nvidia-cuda-mps-control is not installed on node n1; install the driver's MPS tools";
    assert_eq!(node.mps.missing().as_deref(), Some(why));
    assert!(node.join(1, "GPU-a").unwrap_err().message.contains(why));
}

#[test]
fn pretend_devices_have_the_same_environment_and_no_daemon() {
    let mut node = Node::new();
    node.mps = Mps::open(node.folder.path().join("mps"), Tool::Pretend, Vec::new(), at(0)).unwrap();
    assert_eq!(node.mps.missing(), None);
    assert_eq!(node.join(1, "0").unwrap().pipe, node.pipe("0"));
    node.mps.leave(part(1), at(0));
    node.mps.look(at(100));
    node.mps.end_all();
    assert!(node.mps.daemons.is_empty() && node.calls().is_empty());
}

#[test]
fn clients_are_told_their_limits() {
    let vars = |compute, memory_mib| {
        let client = MpsClient { pipe: "/p".into(), limits: Limits { compute, memory_mib } };
        client.environment().into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    let (pipe, percent) = ("CUDA_MPS_PIPE_DIRECTORY=/p", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    assert_eq!(vars(1.0, None), [pipe]);
    assert_eq!(vars(0.5, None), [pipe, &format!("{percent}=50")]);
    assert_eq!(vars(0.001, None), [pipe, &format!("{percent}=1")]);
    assert_eq!(vars(1.0, Some(8192)), [pipe, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8192M"]);
}

#[test]
fn what_a_user_puts_into_the_folder_is_no_daemon_and_what_does_not_end_is_killed() {
    let mut node = Node::new();
    let pipe = node.pipe("GPU-a");
    std::fs::create_dir_all(&pipe).unwrap();
    std::fs::write(pipe.join(format!("{CONTROL}.pid")), std::process::id().to_string()).unwrap();
    assert!(!is_alive(&pipe), "a number in a file is no process");
    // A process that looks like the daemon, and listens to nobody.
    let fake = node.folder.path().join("fake").join(CONTROL);
    std::fs::create_dir(fake.parent().unwrap()).unwrap();
    std::fs::copy("/bin/sleep", &fake).unwrap();
    let mut child = std::process::Command::new(&fake).arg("600").env(PIPE, &pipe).spawn().unwrap();
    assert!(wait(|| is_alive(&pipe)));
    assert!(!Control::of(geteuid().as_raw() + 1, &pipe).is_alive(), "it is not that of another user");
    node.mps = Node::open(&node.folder);
    assert!(wait(|| {
        node.mps.look(at(100));
        matches!(child.try_wait(), Ok(Some(_)))
    }));
    assert!(wait(|| {
        node.mps.look(at(101));
        node.mps.daemons.is_empty()
    }));
    assert!(!pipe.exists());
}

#[test]
fn a_user_who_fills_the_folder_with_links_leads_root_nowhere() {
    if !is_root("only root has folders of other users") {
        return;
    }
    let node = Node::new();
    let victim = node.folder.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("secret"), "").unwrap();
    let owners = || [owner_and_mode(&victim), owner_and_mode(&victim.join("secret"))];
    let before = owners();
    let daemon = node.mps.make_folder("x-65534", Some(NOBODY)).unwrap();
    let attack = LinkAttack::begin(&daemon, &[PIPES, LOGS], &victim);
    for _ in 0..500 {
        node.mps.clear("x-65534");
        node.mps.make_folder("x-65534", Some(NOBODY)).unwrap();
    }
    let (rounds, made) = attack.end();
    assert!(rounds > 0, "the attack ran");
    assert_eq!(made, 0, "the daemon's folder is not theirs to change");
    assert_eq!(owners(), before, "and links in their own lead nowhere");
    assert_eq!((owner_and_mode(&daemon).0, owner_and_mode(&daemon.join(PIPES)).0), (0, NOBODY.0));
}

#[test]
fn a_daemon_runs_as_the_user_of_its_clients() {
    let Some(user) = other_user() else { return };
    let (mut node, uid) = (Node::new(), user.uid);
    let theirs = UserAccount { run_as: Some(user), base: me().base };
    let pipe = node.mps.join(part(1), HALF, &["GPU-a".to_owned()], &theirs).unwrap().pipe;
    assert_eq!(node.calls(), [format!("start GPU-a {uid}")]);
    let (daemon, log) = (pipe.parent().unwrap(), pipe.with_file_name(LOGS));
    let owner = |path: &Path| path.metadata().unwrap().uid();
    assert_eq!((owner(&pipe), owner(&log), owner(daemon)), (uid, uid, 0));
    node.mps = Node::open(&node.folder);
    node.mps.end_all();
    assert_eq!(node.calls(), [format!("start GPU-a {uid}"), format!("quit {uid}")]);
    assert!(!pipe.exists());
}

/// What may happen to a part, by number.
#[derive(Clone, Copy, Debug)]
enum Step {
    Join { job: u64, card: usize },
    Leave { job: u64 },
    Rename { job: u64, to: u64 },
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    let join = (0u64..6, 0usize..3).prop_map(|(job, card)| Step::Join { job, card });
    let leave = (0u64..12).prop_map(|job| Step::Leave { job });
    let rename = (0u64..6, 6u64..12).prop_map(|(job, to)| Step::Rename { job, to });
    prop_oneof![join, leave, rename, Just(Step::Look)]
}

proptest! {
    #[test]
    fn a_daemon_stays_for_as_long_as_it_has_clients(steps in prop::collection::vec((step(), 0u64..100), 0..60)) {
        const CARDS: [&str; 3] = ["0", "1", "2"];
        let folder = Folder::new();
        let mut mps = Mps::open(folder.path().to_owned(), Tool::Pretend, Vec::new(), at(0)).unwrap();
        let (mut clients, mut now) = (BTreeMap::<u64, usize>::new(), 0);
        for (step, later) in steps {
            now += later;
            match step {
                Step::Join { job, card } => {
                    let card = *clients.entry(job).or_insert(card);
                    mps.join(part(job), HALF, &[CARDS[card].to_owned()], &me()).unwrap();
                }
                Step::Leave { job } => {
                    mps.leave(part(job), at(now));
                    clients.remove(&job);
                }
                Step::Rename { to, .. } if clients.contains_key(&to) => {} // No two parts have one name.
                Step::Rename { job, to } => {
                    mps.rename(part(job), part(to));
                    let card = clients.remove(&job);
                    clients.extend(card.map(|card| (to, card)));
                }
                Step::Look => mps.look(at(now)),
            }
            for (card, name) in CARDS.iter().enumerate() {
                let of = |(job, on): (&u64, &usize)| (*on == card).then_some(part(*job));
                let expected: BTreeSet<_> = clients.iter().filter_map(of).collect();
                let daemon = mps.daemons.get(&folder_name(name, geteuid().as_raw()));
                let known = daemon.map(|daemon| daemon.parts.clone()).unwrap_or_default();
                prop_assert_eq!(known, expected, "{}", name);
                let overdue = |daemon: &Daemon| daemon.parts.is_empty() && at(now) - daemon.idle >= IDLE;
                prop_assert!(!matches!(step, Step::Look) || !daemon.is_some_and(overdue));
            }
        }
    }
}

/// An agent with one pretend card that nobody talks to.
async fn agent(folder: &Folder) -> Agent {
    let (events, board) = (broadcast::channel(4).0, Arc::new(RwLock::new(Board::default())));
    let handle = Handle { asks: mpsc::channel(64).0, board, events };
    let config = AgentConfig {
        data: folder.path().join("a"),
        name: "n1".into(),
        address: "127.0.0.1".into(),
        offer: DeviceOffer::Fake("v100:1".parse().unwrap()),
        cpu_slots: None,
        resources: std::collections::BTreeMap::new(),
        domains: Default::default(),
        server: LinkServer::Local(handle),
        commands: AgentCommands {
            keeper: vec![program(), "keeper".into()],
            launcher: vec![program(), "launch".into()],
            freezer: vec![program(), "freezer".into()],
        },
        freeze_room_mib: None,
        cgroups: None,
        guests: AgentGuests::default(),
        confinement: crate::agent::Confinement::default(),
        take_jobs_along: false,
        look: Duration::from_secs(5),
    };
    Agent::start(config).await.unwrap()
}

#[tokio::test]
async fn an_agent_starts_a_daemon_for_a_job_and_knows_it_after_a_restart() {
    let node = Node::new();
    let mut first = agent(&node.folder).await;
    first.mps = Mps { dir: first.spawner.layout.mps(), ..Node::open(&node.folder) };
    let start = crate::agent::testing::start(1, 1);
    // It ends with the test's folder.
    let script = "env > env.new; mv env.new env; while [ -e env ]; do sleep 0.05; done";
    let job = Task { workdir: node.folder.path().into(), limits: Some(HALF), ..task(&["sh", "-c", script]) };
    first.keep_task(start.part, job);
    let valid_until = first.now() + Span::from_whole_secs(60);
    first.happen(Happening::Contact { valid_until });
    first.happen(Happening::Order(Order::Start(start.clone())));
    first.settle();
    assert_eq!(node.calls(), [words("start 0")]);
    let env = node.folder.path().join("env");
    while !env.exists() {
        tokio::time::sleep(LOOK).await;
    }
    let env = std::fs::read_to_string(env).unwrap();
    let pipe = pipe_in(&first.spawner.layout.mps(), "0", geteuid().as_raw());
    assert!(env.contains(&format!("{PIPE}={}\n", pipe.display())), "{env}");
    assert!(
        env.contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50\n") && env.contains("CUDA_VISIBLE_DEVICES=0\n")
    );
    drop(first);
    let second = agent(&node.folder).await;
    let known: Vec<_> = second.mps.daemons.values().map(|daemon| daemon.parts.clone()).collect();
    assert_eq!(known, [BTreeSet::from([start.part])]);
    assert!(is_alive(&pipe), "the daemon outlived its agent");
}

#[tokio::test]
async fn a_job_whose_daemon_does_not_start_is_refused_by_the_node() {
    let node = Node::new();
    std::fs::write(node.folder.path().join("broken"), "").unwrap();
    let mut agent = agent(&node.folder).await;
    agent.mps = Mps { dir: agent.spawner.layout.mps(), ..Node::open(&node.folder) };
    let start = crate::agent::testing::start(1, 1);
    agent.keep_task(start.part, Task { limits: Some(HALF), ..task(&["true"]) });
    let valid_until = agent.now() + Span::from_whole_secs(60);
    agent.happen(Happening::Contact { valid_until });
    agent.happen(Happening::Order(Order::Start(start.clone())));
    agent.settle();
    let told = agent.state.holder.parts();
    let [(part, yard_core::part::Told::Ended(ending))] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*part, ending.code), (start.part, None));
    assert!(ending.message.as_ref().is_some_and(|message| message.contains("no luck today")), "{ending:?}");
}
