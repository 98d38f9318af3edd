//! The agent with its keeper and real processes, against a server that the test plays.

mod freezing;
mod secrets;

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use yard_core::Span;
use yard_core::cluster::DomainPath;
use yard_core::ids::{JobId, LeaseId};
use yard_core::message::Why;
use yard_core::part::{Ending, How, Order, PartId, Pause, Start, Told};
use yard_core::training::Batch;

use super::testing::{Folder, is_root, program, start, task};
use super::{AgentCommands, AgentConfig, AgentGuests, DeviceOffer, LinkServer, run};
use crate::board::Board;
use crate::exec::Incoming;
use crate::exec::agents::AgentCall;
use crate::handle::{Ask, Handle};
use crate::wire::{FromAgent, Hello, Task, ToAgent, Trained};

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that does what the test says, and answers beats by itself.
struct Stage {
    folder: Folder,
    asks: mpsc::Receiver<Ask>,
    handle: Handle,
    /// To the agent, while it is connected.
    link: Option<mpsc::Sender<ToAgent>>,
    answers_beats: bool,
    lease_s: f64,
    agent: Option<(JoinHandle<anyhow::Result<()>>, CancellationToken)>,
}

impl Stage {
    async fn new(offer: &str) -> Stage {
        let (tx, asks) = mpsc::channel(64);
        let (events, board) = (broadcast::channel(4).0, Arc::new(RwLock::new(Board::default())));
        let handle = Handle { asks: tx, board, events };
        let folder = Folder::new();
        let mut stage =
            Stage { folder, asks, handle, link: None, answers_beats: true, lease_s: 60.0, agent: None };
        stage.begin(offer).await;
        stage
    }

    fn config(&self, offer: &str) -> AgentConfig {
        AgentConfig {
            data: self.folder.path().join("a"),
            name: "n1".into(),
            address: "127.0.0.1".into(),
            offer: DeviceOffer::Fake(offer.parse().unwrap()),
            cpu_slots: None,
            resources: BTreeMap::new(),
            domains: DomainPath::default(),
            server: LinkServer::Local(self.handle.clone()),
            commands: AgentCommands {
                keeper: vec![program(), "keeper".into()],
                launcher: vec![program(), "launch".into()],
                freezer: vec![program(), "freezer".into()],
            },
            freeze_room_mib: None,
            cgroups: None,
            guests: AgentGuests::default(),
            confinement: super::Confinement::default(),
            take_jobs_along: false,
            look: Duration::from_millis(100),
        }
    }

    /// Starts an agent and waits for its hello.
    async fn begin(&mut self, offer: &str) -> Hello {
        let stop = CancellationToken::new();
        self.agent = Some((tokio::spawn(run(self.config(offer), stop.clone())), stop));
        self.welcome().await
    }

    /// Ends the agent as if it had died: its task is dropped wherever it is.
    async fn kill_agent(&mut self) {
        let (task, _) = self.agent.take().unwrap();
        task.abort();
        let _aborted = task.await;
        self.link = None;
    }

    async fn welcome(&mut self) -> Hello {
        loop {
            match self.ask().await {
                Ask::Exec(Incoming::Agents(AgentCall::Connect { hello, link, reply })) => {
                    let _gone = reply.send(Ok(1));
                    link.try_send(ToAgent::Welcome { lease_s: self.lease_s, beat_s: 0.05 }).unwrap();
                    self.link = Some(link);
                    return *hello;
                }
                Ask::Exec(Incoming::Agents(AgentCall::Disconnect { .. } | AgentCall::From { .. })) => {}
                other => panic!("an agent asks for {other:?}"),
            }
        }
    }

    async fn ask(&mut self) -> Ask {
        tokio::time::timeout(PATIENCE, self.asks.recv()).await.expect("the agent is silent").unwrap()
    }

    fn send(&self, message: ToAgent) {
        self.link.as_ref().unwrap().try_send(message).unwrap();
    }

    fn order(&self, order: Order, task: Option<Task>) {
        self.send(ToAgent::Order { order, task: task.map(Box::new) });
    }

    fn run(&self, start: Start, task: Task) {
        self.order(Order::Start(start), Some(task));
    }

    /// The next thing the agent says, beats apart.
    async fn hear(&mut self) -> FromAgent {
        loop {
            match self.ask().await {
                Ask::Exec(Incoming::Agents(AgentCall::From { message: FromAgent::Beat { seq }, .. })) => {
                    if self.answers_beats {
                        self.send(ToAgent::Beat { seq });
                    }
                }
                Ask::Exec(Incoming::Agents(AgentCall::From { message, .. })) => return message,
                other => panic!("an agent asks for {other:?}"),
            }
        }
    }

    /// The next thing of this sort that the agent says.
    async fn hear_of(&mut self, wanted: impl Fn(&FromAgent) -> bool) -> FromAgent {
        loop {
            let message = self.hear().await;
            if wanted(&message) {
                return message;
            }
        }
    }

    /// What is next said to be wrong with a device.
    async fn health(&mut self, wanted: u32) -> Option<String> {
        loop {
            if let FromAgent::Health { device, problem, .. } = self.hear().await
                && device == wanted
            {
                return problem;
            }
        }
    }

    /// How the pretend cards are doing from now on.
    fn fake_cards(&self, text: &str) {
        let path = self.folder.path().join("a/fake-cards.json");
        super::state::replace(&path, text.as_bytes()).unwrap();
    }

    /// The next news of a part that are of this sort.
    async fn told<T>(&mut self, wanted: impl Fn(&Told) -> Option<T>) -> (PartId, T) {
        loop {
            if let FromAgent::Told { part, told } = self.hear().await
                && let Some(found) = wanted(&told)
            {
                return (part, found);
            }
        }
    }

    async fn started(&mut self) -> PartId {
        self.told(|told| (*told == Told::Started).then_some(())).await.0
    }

    async fn ended(&mut self) -> (PartId, Ending) {
        let ending = |told: &Told| if let Told::Ended(ending) = told { Some(ending.clone()) } else { None };
        self.told(ending).await
    }

    /// A whole log.
    async fn log(&mut self, job: u64, stderr: bool, tail: Option<u64>) -> String {
        let (request, job) = (job, JobId(job));
        self.send(ToAgent::Logs { request, job, rank: 0, stderr, both: false, tail, follow: false });
        let mut log = String::new();
        loop {
            if let FromAgent::Logs { text, end, error, .. } = self.hear().await {
                log += &text;
                if end {
                    return log + &error.unwrap_or_default();
                }
            }
        }
    }

    /// Waits for a file that a job writes.
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

    /// A task that runs a script of the shell in the test's folder.
    fn script(&self, text: &str) -> Task {
        Task { workdir: self.folder.path().to_owned(), ..task(&["sh", "-c", text]) }
    }

    /// A task that runs a script of Python, which speaks the protocol by itself.
    fn python(&self, text: &str) -> Task {
        let speak = "import json,os,socket,sys,time\n\
            s=socket.socket(socket.AF_UNIX); s.connect(os.environ['YARD_SOCKET']); f=s.makefile('rw')\n\
            def say(**what): f.write(json.dumps(what)+'\\n'); f.flush()\n\
            def hear(): return json.loads(f.readline())\n\
            rank=int(os.environ['RANK']); say(hello={'rank':rank,'pid':os.getpid()})\n";
        Task { workdir: self.folder.path().to_owned(), ..task(&["python3", "-c", &format!("{speak}{text}")]) }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.agent.iter().for_each(|(task, _)| task.abort());
    }
}

fn part(lease: u64, job: u64) -> PartId {
    PartId { lease: LeaseId(lease), job: JobId(job), instance: 1 }
}

fn on_device(mut start: Start, device: u32) -> Start {
    start.devices[0].mask = 1 << device;
    start
}

#[tokio::test]
async fn a_job_runs_with_its_environment_and_its_code_and_output_are_told() {
    let mut stage = Stage::new("h100:2,v100:1").await;
    let script = "echo job $YARD_JOB_ID on $YARD_NODE device $CUDA_VISIBLE_DEVICES; echo oops >&2; exit 3";
    stage.run(on_device(start(7, 5), 1), stage.script(script));
    assert_eq!(stage.started().await, part(7, 5));
    let (id, ending) = stage.ended().await;
    assert_eq!((id, ending.how, ending.code), (part(7, 5), How::Crashed, Some(3)));
    assert_eq!(stage.log(5, false, None).await, "job 5 on n1 device 1\n");
    assert_eq!(stage.log(5, true, Some(1)).await, "oops\n");
    assert!(stage.log(6, false, None).await.contains("no log"));
    let mut again = on_device(start(8, 5), 0);
    again.part.instance = 2;
    stage.run(again, stage.script("echo again"));
    assert_eq!(stage.ended().await.1.how, How::Finished);
    let log = stage.log(5, false, None).await;
    assert!(log.contains("device 1\n--- start 2 on n1 at ") && log.ends_with(" ---\nagain\n"), "{log}");
}

#[tokio::test]
async fn a_job_that_ignores_its_signal_is_killed_after_its_grace() {
    let mut stage = Stage::new("h100:1").await;
    let mut deaf = start(1, 1);
    deaf.grace = Span::from_secs(0.3);
    stage.run(deaf, stage.script("trap '' TERM; echo > ready; while :; do sleep 0.05; done"));
    stage.read("ready").await;
    stage.order(Order::Stop { part: part(1, 1), why: Why::Cancelled }, None);
    let (_, ending) = stage.ended().await;
    assert_eq!((ending.how, ending.signal), (How::Saved, Some(9)));
    assert!(ending.message.unwrap().contains("was killed"));
}

#[tokio::test]
async fn a_signal_of_the_jobs_choice_stops_it() {
    let mut stage = Stage::new("h100:1").await;
    let mut task = stage.script("trap 'exit 0' USR1; echo > ready; while :; do sleep 0.05; done");
    task.stop_signal = "USR1".into();
    stage.run(start(1, 1), task);
    stage.read("ready").await;
    stage.order(Order::Stop { part: part(1, 1), why: Why::Preempted }, None);
    assert_eq!(stage.ended().await.1.how, How::Saved);
}

#[tokio::test]
async fn a_job_that_talks_saves_and_says_so() {
    let mut stage = Stage::new("h100:1").await;
    let talk = "say(progress={'step':4,'total':10})\n\
        stop=hear()['stop']; assert stop['why']=='moved' and stop['at'] is None, stop\n\
        say(checkpointed={'step':5,'seconds':0.25})";
    stage.run(start(1, 1), stage.python(talk));
    stage.told(|told| (*told == Told::Progress { step: 4, total: Some(10) }).then_some(())).await;
    stage.order(Order::Stop { part: part(1, 1), why: Why::Moved }, None);
    let saved = Told::Checkpointed { step: 5, took: Span::from_secs(0.25) };
    stage.told(|told| (*told == saved).then_some(())).await;
    let (_, ending) = stage.ended().await;
    assert_eq!((ending.how, ending.step, ending.code), (How::Saved, Some(5), Some(0)));
}

#[tokio::test]
async fn a_job_that_trains_says_how_long_its_steps_take_and_is_told_of_another_batch() {
    let mut stage = Stage::new("h100:1").await;
    let talk = "import os; assert (os.environ['YARD_BATCH_SIZE'], os.environ['YARD_ACCUMULATION']) == ('32', '1')\n\
        say(trained={'local':32,'grad_s':0.25,'step_s':0.5,'noise':[1.0,2.0]})\n\
        assert hear() == {'batch':{'local':64,'extra':0}}";
    let task = Task { batch_size: Some(32), accumulation: Some(1), ..stage.python(talk) };
    stage.run(start(1, 1), task);
    let said = Trained { local: 32, grad_s: 0.25, step_s: 0.5, noise: Some((1.0, 2.0)), loss: None };
    let expected = FromAgent::Trained { part: part(1, 1), said };
    stage.hear_of(|message| *message == expected).await;
    stage.send(ToAgent::Tune { part: part(1, 1), batch: Batch { local: 64, extra: 0 } });
    assert_eq!(stage.ended().await.1.how, How::Finished);
}

#[tokio::test]
async fn ranks_of_one_node_agree_on_the_step_at_which_they_stop() {
    let mut stage = Stage::new("h100:4").await;
    let talk = "assert 'hold' in hear(); say(boundary={'step':10+rank})\n\
        stop=hear()['stop']; say(checkpointed={'step':stop['at'],'seconds':0.0})";
    let mut gang = start(1, 1);
    (gang.devices[0].mask, gang.ranks.count, gang.ranks.world) = (0b1111, 4, 4);
    stage.run(gang, stage.python(&format!("open(f'rank{{rank}}','w').write('up\\n')\n{talk}")));
    for rank in 0..4 {
        stage.read(&format!("rank{rank}")).await;
    }
    stage.started().await;
    stage.order(Order::Stop { part: part(1, 1), why: Why::Preempted }, None);
    let (_, ending) = stage.ended().await;
    assert_eq!((ending.how, ending.step), (How::Saved, Some(13)));
}

#[tokio::test]
async fn an_agent_that_dies_finds_its_jobs_again() {
    let mut stage = Stage::new("h100:3").await;
    let wait = |name: &str, code: u32| format!("while [ ! -e {name} ]; do sleep 0.01; done; exit {code}");
    stage.run(on_device(start(1, 1), 0), stage.script(&wait("one", 4)));
    stage.run(on_device(start(2, 2), 1), stage.script(&wait("two", 5)));
    stage.run(on_device(start(3, 3), 2), stage.script("exit 6"));
    assert_eq!(stage.ended().await.0, part(3, 3));
    stage.kill_agent().await;
    std::fs::write(stage.folder.path().join("one"), "").unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let hello = stage.begin("h100:3").await;
    let ended = |id: PartId, code: i32| {
        let is = |told: &Told| matches!(told, Told::Ended(ending) if ending.code == Some(code));
        hello.parts.iter().any(|(known, told)| *known == id && is(told))
    };
    assert!(ended(part(3, 3), 6), "{hello:?}");
    if !ended(part(1, 1), 4) {
        assert_eq!(stage.ended().await.1.code, Some(4)); // It ended after the hello was made.
    }
    assert!(hello.parts.contains(&(part(2, 2), Told::Started)), "{hello:?}");
    std::fs::write(stage.folder.path().join("two"), "").unwrap();
    let (id, ending) = stage.ended().await;
    assert_eq!((id, ending.how, ending.code), (part(2, 2), How::Crashed, Some(5)));
    for (lease, job) in [(1, 1), (2, 2), (3, 3)] {
        stage.order(Order::Forget { part: part(lease, job) }, None);
    }
    stage.run(on_device(start(9, 9), 0), stage.script("true"));
    stage.ended().await;
    stage.kill_agent().await;
    let hello = stage.begin("h100:3").await;
    assert_eq!(hello.parts.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [part(9, 9)]);
}

#[tokio::test]
async fn old_leases_are_refused() {
    let mut stage = Stage::new("h100:1").await;
    stage.run(start(5, 1), stage.script("true"));
    assert_eq!(stage.ended().await.1.how, How::Finished);
    stage.kill_agent().await;
    stage.begin("h100:1").await;
    stage.run(start(4, 2), stage.script("echo > ran"));
    let (id, ending) = stage.ended().await;
    assert_eq!((id, ending.how), (part(4, 2), How::Refused));
    assert!(!stage.folder.path().join("ran").exists());
}

#[tokio::test]
async fn without_the_server_jobs_run_until_the_lease_is_over() {
    let mut stage = Stage::new("h100:1").await;
    stage.kill_agent().await;
    stage.lease_s = 1.5;
    stage.begin("h100:1").await;
    let mut short = start(1, 1);
    short.grace = Span::from_secs(5.0);
    stage.run(
        short,
        stage.script("trap 'echo > saved; exit 0' TERM; echo > ready; while :; do sleep 0.05; done"),
    );
    stage.read("ready").await;
    stage.answers_beats = false;
    let (_, ending) = stage.ended().await;
    assert_eq!(ending.how, How::Saved);
    assert!(stage.folder.path().join("saved").exists());
    stage.run(start(2, 2), stage.script("true"));
    assert_eq!(stage.ended().await.1.how, How::Refused);
}

#[tokio::test]
async fn a_stopped_job_goes_on_where_it_was() {
    let mut stage = Stage::new("h100:1").await;
    let mut first = start(1, 1);
    first.pause = Pause::Stop;
    let script = "echo > ready; while [ ! -e go ]; do sleep 0.01; done; exit 4";
    stage.run(first.clone(), stage.script(script));
    stage.read("ready").await;
    stage.order(Order::Stop { part: part(1, 1), why: Why::Preempted }, None);
    assert_eq!(stage.ended().await.1.how, How::Paused);
    stage.order(Order::Forget { part: part(1, 1) }, None);
    stage.run(start(2, 2), stage.script("true"));
    assert_eq!(stage.ended().await.1.how, How::Finished);
    stage.kill_agent().await;
    let hello = stage.begin("h100:1").await;
    assert_eq!(hello.paused, [JobId(1)]);
    std::fs::write(stage.folder.path().join("go"), "").unwrap();
    (first.part, first.thaw) = (part(3, 1), true);
    stage.run(first, stage.script(script));
    let (id, ending) = stage.ended().await;
    assert_eq!((id, ending.code), (part(3, 1), Some(4)));
}

#[tokio::test]
async fn a_log_is_followed_while_its_job_lives() {
    let mut stage = Stage::new("h100:1").await;
    stage.run(start(1, 1), stage.script("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two"));
    stage.started().await;
    stage.send(ToAgent::Logs {
        request: 8,
        job: JobId(1),
        rank: 0,
        stderr: false,
        both: false,
        tail: None,
        follow: true,
    });
    let (mut log, mut over) = (String::new(), false);
    while !over {
        if let FromAgent::Logs { text, end, error, request } = stage.hear().await {
            assert_eq!((request, error), (8, None));
            log += &text;
            over = end;
        }
        if log == "one\n" {
            std::fs::write(stage.folder.path().join("go"), "").unwrap();
        }
    }
    assert_eq!(log, "one\ntwo\n");
}

#[tokio::test]
async fn what_breaks_starts_of_several_users_is_taken_out_of_service() {
    if !is_root("only root can run jobs as other users") {
        return;
    }
    let mut stage = Stage::new("h100:2").await;
    for lease in 1..=4 {
        let user = if lease % 2 == 0 { "nobody" } else { "root" };
        let task = Task { workdir: "/".into(), user: user.into(), ..stage.script("exit 1") };
        stage.run(start(lease, lease), task);
        if lease < 4 {
            assert_eq!(stage.ended().await.1.code, Some(1));
        }
    }
    assert!(stage.health(0).await.unwrap().contains("the last 4 starts, by 2 users, failed"));
}

#[tokio::test]
async fn one_users_failures_take_nothing_out_of_service() {
    let mut stage = Stage::new("h100:2").await;
    for lease in 1..=40 {
        stage.run(on_device(start(lease, lease), lease as u32 % 2), task(&["false"]));
        let message = stage
            .hear_of(|message| {
                matches!(message, FromAgent::Health { .. } | FromAgent::Told { told: Told::Ended(_), .. })
            })
            .await;
        assert!(matches!(message, FromAgent::Told { .. }), "{message:?}");
    }
}

#[tokio::test]
async fn a_job_begins_with_a_login_and_nothing_of_its_agents() {
    let mut stage = Stage::new("h100:1").await;
    stage.run(start(1, 1), stage.script("env"));
    assert_eq!(stage.ended().await.1.how, How::Finished);
    let env = stage.log(1, false, None).await;
    let names: Vec<_> = env.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    assert!(names.contains(&"HOME") && names.contains(&"YARD_JOB_ID"), "{env}");
    // The tests have these of cargo, and so has the agent in this process.
    let own: Vec<_> =
        std::env::vars().map(|(name, _)| name).filter(|name| name.starts_with("CARGO")).collect();
    assert!(!own.is_empty() && own.iter().all(|name| !names.contains(&name.as_str())), "{env}");
}

/// A job that says how far it is for ever, and connects again whenever it must.
const PERSISTENT: &str = "
import itertools
for step in itertools.count(1):
  try: say(progress={'step':step,'total':None})
  except OSError:
    try:
      s=socket.socket(socket.AF_UNIX); s.connect(os.environ['YARD_SOCKET']); f=s.makefile('rw')
      say(hello={'rank':rank,'pid':os.getpid()})
    except OSError: pass
  time.sleep(0.02)";

impl Stage {
    /// Waits until the job says how far it is, and goes on doing so.
    async fn hears_progress(&mut self) {
        let far = |told: &Told| if let Told::Progress { step, .. } = told { Some(*step) } else { None };
        let all = async {
            let (_, before) = self.told(far).await;
            self.told(|told| far(told).filter(|step| *step > before + 5)).await;
        };
        tokio::time::timeout(PATIENCE, all).await.expect("the job is not heard");
    }
}

#[tokio::test]
async fn a_job_that_had_just_started_still_talks_after_its_agents_death() {
    let mut stage = Stage::new("h100:1").await;
    stage.run(start(1, 1), stage.python(PERSISTENT));
    stage.started().await;
    stage.kill_agent().await;
    stage.begin("h100:1").await;
    stage.hears_progress().await;
    stage.order(Order::Stop { part: part(1, 1), why: Why::Cancelled }, None);
    stage.ended().await;
}

#[tokio::test]
async fn a_job_that_was_just_thawed_still_talks_after_its_agents_death() {
    let mut stage = Stage::new("h100:1").await;
    let mut first = start(1, 1);
    first.pause = Pause::Stop;
    stage.run(first.clone(), stage.python(PERSISTENT));
    stage.hears_progress().await;
    stage.order(Order::Stop { part: part(1, 1), why: Why::Preempted }, None);
    assert_eq!(stage.ended().await.1.how, How::Paused);
    stage.order(Order::Forget { part: part(1, 1) }, None);
    (first.part, first.thaw) = (part(3, 1), true);
    stage.run(first, stage.python(PERSISTENT));
    assert_eq!(stage.started().await, part(3, 1));
    stage.kill_agent().await;
    stage.begin("h100:1").await;
    stage.hears_progress().await;
    stage.order(Order::Stop { part: part(3, 1), why: Why::Cancelled }, None);
    stage.ended().await;
}

#[tokio::test]
async fn an_agent_says_who_it_is_and_whose_jobs_it_runs_and_writes_no_secret() {
    let mut stage = Stage::new("h100:1").await;
    stage.kill_agent().await;
    let hello = stage.begin("h100:1").await;
    assert_eq!(hello.host.len(), 16);
    let root = nix::unistd::geteuid().is_root();
    assert_eq!(hello.abilities.only_user.map(|only| only.name), (!root).then(super::own_name));
    let secret = crate::wire::TaskSecret {
        name: "KEY".into(),
        handed: crate::wire::Handed::Env,
        value: crate::wire::SecretValue("hunter2".into()),
    };
    let script = "while [ ! -e go ]; do sleep 0.01; done";
    stage.run(start(1, 1), Task { secrets: vec![secret], ..stage.script(script) });
    stage.started().await;
    for entry in std::fs::read_dir(stage.folder.path().join("a/parts")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(text.contains("sleep 0.01") && !text.contains("hunter2"), "{text}");
    }
    std::fs::write(stage.folder.path().join("go"), "").unwrap();
    stage.ended().await;
}

#[tokio::test]
async fn a_second_agent_on_the_same_folder_is_refused() {
    let stage = Stage::new("h100:1").await;
    let refused = run(stage.config("h100:1"), CancellationToken::new()).await.unwrap_err();
    assert!(format!("{refused:#}").contains("another agent uses this folder"), "{refused:#}");
}

#[tokio::test]
async fn cards_that_fall_off_hang_or_report_errors_are_out_of_service() {
    let mut stage = Stage::new("h100:2").await;
    stage.fake_cards(r#"{"cards": {"h100:1": null}}"#);
    assert!(stage.health(1).await.unwrap().contains("no longer answers"));
    stage.fake_cards(r#"{"cards": {"h100:1": {"xids": [31]}}}"#);
    assert_eq!(stage.health(1).await, None, "it is back, and what a job did wrong is not its fault");
    stage.fake_cards(r#"{"hangs": true}"#);
    assert!(stage.health(0).await.unwrap().contains("has not answered"));
    stage.fake_cards("{}");
    assert_eq!(stage.health(0).await, None);
    stage.fake_cards(r#"{"cards": {"h100:0": {"xids": [79]}}}"#);
    assert!(stage.health(0).await.unwrap().contains("fell off the bus (XID 79); stop the agent"));
    // The next agent says so as long as it is so, and not longer.
    stage.fake_cards("{}");
    stage.kill_agent().await;
    let hello = stage.begin("h100:2").await;
    assert!(hello.groups[0].devices.iter().all(|device| device.problem.is_none()));
}

#[tokio::test]
async fn what_parts_do_to_their_cards_is_told() {
    let mut stage = Stage::new("h100:2").await;
    stage.fake_cards(r#"{"cards": {"h100:1": {"busy": 0.5, "memory_used_mib": 3000, "temperature_c": 61}}}"#);
    stage.run(on_device(start(1, 7), 1), stage.script("while [ ! -e go ]; do sleep 0.01; done"));
    let used = |message: &FromAgent| matches!(message, FromAgent::Used { .. });
    let expected = FromAgent::Used { part: part(1, 7), busy: 0.5, memory_mib: 3000 };
    assert_eq!(stage.hear_of(used).await, expected);
    let looked = |message: &FromAgent| matches!(message, FromAgent::Looked { .. });
    let FromAgent::Looked { cards } = stage.hear_of(looked).await else { panic!("it is a look") };
    let seen: Vec<_> = cards.iter().map(|card| (card.device, card.temperature_c, card.parts.len())).collect();
    assert_eq!(seen, [(0, None, 0), (1, Some(61), 1)]);
    stage.fake_cards(
        r#"{"cards": {"h100:1": {"busy": 0.9, "jobs": {"7": {"busy": 0.8, "memory_mib": 3000}}}}}"#,
    );
    let FromAgent::Used { busy, .. } = stage.hear_of(used).await else { panic!("it is a use") };
    assert!(busy > 0.5, "{busy}");
    std::fs::write(stage.folder.path().join("go"), "").unwrap();
    stage.ended().await;
}

#[tokio::test]
async fn many_short_jobs_on_eight_devices() {
    let mut stage = Stage::new("h100:8").await;
    let (count, mut given, mut ended) = (300, 0, 0);
    let mut free: Vec<u32> = (0..8).collect();
    let mut held = BTreeMap::new();
    while ended < count {
        while given < count
            && let Some(device) = free.pop()
        {
            given += 1;
            held.insert(part(given, given), device);
            stage.run(on_device(start(given, given), device), task(&["true"]));
        }
        let (id, ending) = stage.ended().await;
        assert_eq!((ending.how, ending.code), (How::Finished, Some(0)), "{id:?} {ending:?}");
        free.extend(held.remove(&id));
        stage.order(Order::Forget { part: id }, None);
        ended += 1;
    }
}
