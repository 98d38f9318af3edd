//! The agent's loop: who it listens to, and what becomes of what it hears.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::fcntl::Flock;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use yard_core::guard::{Guard, Watch};
use yard_core::holder::{Act, Happening};
use yard_core::part::{Order, PartId};
use yard_core::{Span, Time};

use super::AgentConfig;
use super::admit::Admission;
use super::cards::{CardReaders, FoundCards};
use super::cgroup::Cgroups;
use super::devices::{DeviceOffer, Devices};
use super::host::host_id;
use super::keeper::{Keeper, KeeperAsk, ProcessExit, Say};
use super::layout::Layout;
use super::link::{LinkHeard, ServerLink};
use super::moving::{MoveEnd, MovingRanks};
use super::mps::{Mps, Tool};
use super::quarantine::Quarantine;
use super::quiet::Computed;
use super::reads::Reads;
use super::socket::{NEWS_MAX, NewsSender, Saying, Socket, SocketNews, remove};
use super::spawn::Spawner;
use super::state::AgentState;
use crate::wire::{FromAgent, Hello, Task, ToAgent, WIRE_VERSION, WireAbilities};

/// The longest that the driver of the cards may take to list them.
const LISTING: Duration = Duration::from_secs(60);

/// What is taken in at once before it is acted upon, and how much of that may come from jobs.
const BATCH: usize = 256;
const FROM_JOBS: usize = 64;

/// The agent.
pub(super) struct Agent {
    pub(super) config: AgentConfig,
    pub(super) state: AgentState,
    pub(super) devices: Devices,
    pub(super) cards: CardReaders,
    pub(super) quarantine: Quarantine,
    pub(super) spawner: Spawner,
    pub(super) mps: Mps,
    pub(super) keeper: Keeper,
    pub(super) moving: MovingRanks,
    pub(super) link: ServerLink,
    pub(super) reads: Reads,
    pub(super) parts: PartNotes,
    pub(super) sockets: Sockets,
    inboxes: Inboxes,
    /// Held for as long as the agent is there.
    _lock: Flock<File>,
}

/// What is known of parts besides what their holder knows.
#[derive(Default)]
pub(super) struct PartNotes {
    /// What is to be done with them.
    pub(super) acts: Vec<Act>,
    pub(super) guard: Guard,
    /// Work of those that do not say how far they are.
    pub(super) computed: BTreeMap<PartId, Computed>,
    /// What they run, until they are forgotten.
    pub(super) tasks: BTreeMap<PartId, Task>,
    /// When they started, for what fails too quickly.
    pub(super) started: BTreeMap<PartId, Time>,
}

/// Where jobs talk to the agent.
pub(super) struct Sockets {
    /// With their numbers, which stay when a part gets another name.
    pub(super) of_parts: BTreeMap<PartId, (u64, Socket)>,
    made: u64,
    pub(super) news: NewsSender,
}

impl Sockets {
    /// A number for another socket.
    pub(super) fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }
}

/// Who may say something.
struct Inboxes {
    keeper: mpsc::UnboundedReceiver<Option<Say>>,
    keeper_end: mpsc::UnboundedSender<Option<Say>>,
    moved: mpsc::UnboundedReceiver<MoveEnd>,
    sockets: mpsc::Receiver<(u64, SocketNews)>,
}

/// What woke the loop.
enum AgentWoken {
    Server(Option<LinkHeard>),
    Keeper(Option<Say>),
    Moved(MoveEnd),
    Job(u64, SocketNews),
    Cards(FoundCards),
    Beat,
    Look,
    Due,
    Stop,
}

impl Agent {
    /// Finds everything as the last agent left it.
    pub(super) async fn start(config: AgentConfig) -> anyhow::Result<Agent> {
        let data = config.data.display().to_string();
        let folder = || format!("the agent's folder {data}");
        let layout = Layout::open(&config.data).with_context(folder)?;
        let lock = layout.lock().await.with_context(folder)?;
        let admission = Admission::new(&config, layout.data());
        let mut state =
            AgentState::load(&layout.state()).with_context(|| format!("the agent's state in {data}"))?;
        state.clock = std::mem::take(&mut state.clock).resume(state.last);
        let devices = find(config.offer.clone(), config.cpu_slots, state.kinds.clone()).await?;
        let cards = CardReaders::watch(devices.sensors(&layout.fake_cards()));
        state.kinds = devices.groups().iter().map(|group| group.kind.clone()).collect();
        let (keeper_end, keeper_inbox) = mpsc::unbounded_channel();
        let keeper = Keeper::find(&layout.keeper(), &config.commands.keeper, keeper_end.clone()).await?;
        let (socket_news, sockets) = mpsc::channel(NEWS_MAX);
        let (moves, moved) = mpsc::unbounded_channel();
        let moving = MovingRanks::prepare(&config, &layout, &devices, &state.holder, moves).await;
        let cgroups = Cgroups::find(&config, &devices)?;
        let (node, launcher) = (config.name.clone(), config.commands.launcher.clone());
        let tool = Tool::find(&config.offer, devices.groups(), &node);
        let mps = Mps::open(layout.mps(), tool, launcher.clone(), state.clock.now())?;
        let link = ServerLink::keep(config.server.clone(), node.clone(), layout.identity());
        let mut agent = Agent {
            spawner: Spawner { layout, node, launcher, admission, cgroups },
            state,
            devices,
            cards,
            quarantine: Quarantine::default(),
            mps,
            keeper,
            moving,
            reads: Reads::new(link.logs.clone()),
            link,
            parts: PartNotes::default(),
            sockets: Sockets { of_parts: BTreeMap::new(), made: 0, news: socket_news },
            inboxes: Inboxes { keeper: keeper_inbox, keeper_end, moved, sockets },
            _lock: lock,
            config,
        };
        agent.restart().await?;
        Ok(agent)
    }

    pub(super) fn now(&self) -> Time {
        self.state.clock.now()
    }

    /// Something happened: what is to be done about it is in `acts`.
    pub(super) fn happen(&mut self, what: Happening) {
        let now = self.now();
        self.state.holder.step(now, what, &mut self.parts.acts);
    }

    /// Compares what was decided with what the keeper has, at the start and after a keeper died.
    async fn restart(&mut self) -> anyhow::Result<()> {
        self.keeper.ask(&KeeperAsk::List);
        let (alive, exits, lease) = loop {
            match self.inboxes.keeper.recv().await.flatten() {
                Some(Say::Parts { alive, exits, lease }) => break (alive, exits, lease),
                Some(_) => {} // It is in the list as well.
                None => bail!(
                    "the keeper died as soon as it was there; its log is in {:?}",
                    self.spawner.layout.keeper()
                ),
            }
        };
        self.open_sockets(&alive);
        self.happen(Happening::Room { bytes: self.moving.room });
        // The state says until when the lease was valid when it was written; the keeper was told since.
        let told = self.state.clock.at(lease.unwrap_or(0));
        self.contact(self.state.valid_until.max(told));
        for (part, rank, exit) in exits {
            self.happen(exited(part, rank, exit));
        }
        self.rejoin_mps(&alive);
        self.reads.set_live(alive.iter().map(|(part, _)| part.job));
        self.happen(Happening::Restarted { alive });
        self.settle();
        Ok(())
    }

    /// Listens again where processes of the last agent's time know it: at the folder of their part, or, once they were
    /// thawed, at that of the part they were, which is on file.
    fn open_sockets(&mut self, alive: &[(PartId, u32)]) {
        let on_file: BTreeMap<PartId, PathBuf> =
            std::mem::take(&mut self.state.sockets).into_iter().collect();
        let parts: BTreeSet<PartId> = alive.iter().map(|(part, _)| *part).collect();
        let folder_of = |agent: &Agent, part: PartId| {
            on_file.get(&part).cloned().unwrap_or_else(|| agent.spawner.layout.socket(part))
        };
        let used: BTreeSet<PathBuf> = parts.iter().map(|part| folder_of(self, *part)).collect();
        let there = self.spawner.layout.socket_folders().into_iter().map(|(_, folder)| folder);
        there
            .chain(on_file.values().cloned())
            .filter(|folder| !used.contains(folder))
            .for_each(|folder| remove(&folder));
        for part in parts {
            if !self.sockets.of_parts.contains_key(&part) {
                let folder = folder_of(self, part);
                self.reopen_socket(part, folder);
            }
        }
    }

    fn reopen_socket(&mut self, part: PartId, folder: PathBuf) {
        let account = self.task(part).map(|task| self.spawner.account(&task));
        let opened = match account {
            Some(Ok(account)) => {
                self.open_socket(part, folder, account.owner()).map_err(|error| error.to_string())
            }
            Some(Err(refused)) => Err(refused.message),
            None => Err("what it runs is not on file".to_owned()),
        };
        if let Err(error) = opened {
            tracing::warn!(error, %part.job, "a job cannot talk to the agent any more");
        }
    }

    /// Processes of the last agent's time that go through MPS still do.
    fn rejoin_mps(&mut self, alive: &[(PartId, u32)]) {
        for (part, _) in alive {
            let Some(task) = self.task(*part).filter(|task| task.limits.is_some()) else { continue };
            let start = self.state.holder.start(*part).map(|start| self.devices.visible(&start.devices));
            if let (Some(devices), Ok(account)) = (start, self.spawner.account(&task)) {
                self.mps.rejoin(*part, &devices, &account);
            }
        }
    }

    /// Serves until told to stop, or until the server does not let it in.
    pub(super) async fn serve(mut self, stop: CancellationToken) -> anyhow::Result<()> {
        let served = self.serve_until(stop).await;
        // What still runs is left to the keeper where the agent fails.
        if served.is_ok() || self.state.holder.is_idle() {
            self.leave().await;
        }
        served
    }

    async fn serve_until(&mut self, stop: CancellationToken) -> anyhow::Result<()> {
        let mut look = interval(self.config.look);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut leaving = false;
        while !(leaving && (self.state.holder.is_idle() || !self.config.take_jobs_along)) {
            let due = self.due();
            let woken = tokio::select! {
                heard = self.link.heard.recv() => AgentWoken::Server(heard),
                Some(said) = self.inboxes.keeper.recv() => AgentWoken::Keeper(said),
                Some(end) = self.inboxes.moved.recv() => AgentWoken::Moved(end),
                Some((number, news)) = self.inboxes.sockets.recv() => AgentWoken::Job(number, news),
                Some(found) = self.cards.found.recv() => AgentWoken::Cards(found),
                _ = self.link.beats.every.tick() => AgentWoken::Beat,
                _ = look.tick() => AgentWoken::Look,
                () = tokio::time::sleep(due) => AgentWoken::Due,
                () = stop.cancelled(), if !leaving => AgentWoken::Stop,
            };
            leaving |= matches!(woken, AgentWoken::Stop);
            self.take(woken).await?;
            self.drain().await?;
            self.settle();
        }
        Ok(())
    }

    /// How long the holder and the guard can wait.
    fn due(&self) -> Duration {
        let deadlines = [self.state.holder.deadline(), self.parts.guard.deadline()];
        let deadline = deadlines.into_iter().flatten().min().unwrap_or(Time::NEVER);
        Duration::from_micros((deadline - self.now()).0).min(self.config.look)
    }

    /// Takes in all that is already there, so that it is persisted and acted upon together.
    async fn drain(&mut self) -> anyhow::Result<()> {
        let mut from_jobs = FROM_JOBS;
        for _ in 0..BATCH {
            if let Ok(heard) = self.link.heard.try_recv() {
                self.take(AgentWoken::Server(Some(heard))).await?;
            } else if let Ok(said) = self.inboxes.keeper.try_recv() {
                self.take(AgentWoken::Keeper(said)).await?;
            } else if let Ok(end) = self.inboxes.moved.try_recv() {
                self.take(AgentWoken::Moved(end)).await?;
            } else if from_jobs > 0
                && let Ok((number, news)) = self.inboxes.sockets.try_recv()
            {
                from_jobs -= 1;
                self.take(AgentWoken::Job(number, news)).await?;
            } else {
                break;
            }
        }
        if self.state.holder.deadline().is_some_and(|deadline| deadline <= self.now()) {
            self.happen(Happening::Tick);
        }
        if self.parts.guard.deadline().is_some_and(|deadline| deadline <= self.now()) {
            self.watch(Watch::Tick);
        }
        Ok(())
    }

    async fn take(&mut self, woken: AgentWoken) -> anyhow::Result<()> {
        match woken {
            AgentWoken::Server(Some(LinkHeard::Up)) => self.hello(),
            AgentWoken::Server(Some(LinkHeard::Said(said))) => self.server_said(*said),
            AgentWoken::Server(Some(LinkHeard::Barred(reason))) => anyhow::bail!(reason),
            AgentWoken::Server(Some(LinkHeard::Down) | None) => {
                self.link.up = false;
                self.reads.end_all();
            }
            AgentWoken::Keeper(Some(said)) => self.keeper_said(said),
            AgentWoken::Keeper(None) => self.keeper_died().await?,
            AgentWoken::Moved(end) => self.moved(end),
            AgentWoken::Job(number, news) => self.job_said(number, news),
            AgentWoken::Cards(found) => self.cards_read(found),
            AgentWoken::Beat => self.beat(),
            AgentWoken::Look => self.look(),
            AgentWoken::Due | AgentWoken::Stop => {}
        }
        Ok(())
    }

    fn hello(&mut self) {
        self.link.beats.hello = self.now();
        self.link.beats.sent.clear();
        let hello = Hello {
            version: WIRE_VERSION,
            name: self.config.name.clone(),
            address: self.config.address.clone(),
            groups: self.devices.groups().to_vec(),
            parts: self.state.holder.parts(),
            paused: self.state.holder.paused(),
            abilities: WireAbilities {
                no_freeze: self.moving.no_freeze.clone(),
                freeze_room_mib: self.moving.room >> 20,
                no_limits: self.mps.missing(),
                only_user: self.spawner.admission.only_user(),
            },
            host: host_id(self.spawner.layout.data()),
            resources: self.config.resources.clone(),
            domains: self.config.domains.clone(),
        };
        self.link.up = true;
        self.cards.tell_again();
        self.say(FromAgent::Hello(hello));
    }

    /// Says something, if there is a connection; what matters is in the next hello if there is none.
    pub(super) fn say(&self, message: FromAgent) {
        if self.link.up {
            let _gone = self.link.news.send(message);
        }
    }

    fn beat(&mut self) {
        if !self.link.up {
            return;
        }
        self.link.beats.seq += 1;
        let (seq, now) = (self.link.beats.seq, self.now());
        self.link.beats.sent.insert(seq, now);
        self.say(FromAgent::Beat { seq });
    }

    fn server_said(&mut self, said: ToAgent) {
        match said {
            ToAgent::Welcome { lease_s, beat_s } => {
                self.link.beats.welcome(lease_s, beat_s);
                self.contact(self.link.beats.hello + self.link.beats.lease);
            }
            ToAgent::Refused { reason } => tracing::error!(%reason, "the server refuses this node"),
            ToAgent::Beat { seq } => {
                let later = self.link.beats.sent.split_off(&(seq + 1));
                let answered = std::mem::replace(&mut self.link.beats.sent, later).remove(&seq);
                answered.into_iter().for_each(|sent| self.contact(sent + self.link.beats.lease));
            }
            ToAgent::Order { order, task } => self.order(order, task),
            ToAgent::Tune { part, batch } => self.tune(part, batch),
            ToAgent::Logs { request, job, rank, stderr, both, tail, follow } => {
                let layout = &self.spawner.layout;
                let path = if both { layout.whole_log(job, rank) } else { layout.log(job, rank, stderr) };
                self.reads.begin(request, job, path, tail, follow);
            }
            ToAgent::LogsMore { request, pieces } => self.reads.more(request, pieces),
            ToAgent::LogsEnd { request } => self.reads.end(request),
        }
    }

    /// The node's lease is valid until then. The keeper is told too: it ends jobs should no agent be there to do so.
    fn contact(&mut self, valid_until: Time) {
        self.state.valid_until = self.state.valid_until.max(valid_until);
        let valid_until = self.state.valid_until;
        self.happen(Happening::Contact { valid_until });
        self.keeper.ask(&KeeperAsk::Lease { until: self.state.clock.since_boot(valid_until) });
    }

    fn order(&mut self, order: Order, task: Option<Box<Task>>) {
        if let (Order::Start(start), Some(task)) = (&order, task) {
            self.keep_task(start.part, *task);
        }
        self.happen(Happening::Order(order));
    }

    fn keeper_said(&mut self, said: Say) {
        match said {
            Say::Started { part } => self.happen(Happening::Spawned { part }),
            Say::Failed { part, code, message } => {
                self.happen(Happening::SpawnFailed { part, code, message })
            }
            Say::Exited { part, rank, exit } => {
                self.happen(exited(part, rank, exit));
                if self.state.holder.start(part).is_none() {
                    self.keeper.ask(&KeeperAsk::Forget { part }); // Nobody will ask for it: its job was dropped.
                }
            }
            Say::Pids { part, pids } => self.move_processes(part, pids),
            Say::Parts { .. } => {}
        }
    }

    async fn keeper_died(&mut self) -> anyhow::Result<()> {
        tracing::error!("the keeper died, and with it all jobs here; it is started again");
        let (folder, end) = (self.spawner.layout.keeper(), self.inboxes.keeper_end.clone());
        self.keeper = Keeper::find(&folder, &self.config.commands.keeper, end).await?;
        self.moving.forget_all();
        self.restart().await
    }

    fn job_said(&mut self, number: u64, news: SocketNews) {
        let Some((part, socket)) = self.sockets.of_parts.iter_mut().find(|(_, (known, _))| *known == number)
        else {
            return;
        };
        let (part, (rank, saying)) = (*part, socket.1.take(news));
        let speaks = socket.1.speaks(rank);
        match saying {
            Some(Saying::Hello { .. }) => self.happen(Happening::Hello { part, rank }),
            Some(Saying::Progress { step, total }) => {
                self.happen(Happening::Progress { part, rank, step, total });
                self.watch(Watch::Worked { part, work: step as f64 });
            }
            Some(Saying::Checkpointed { step, seconds }) => {
                // The job's own claim; what is no length of time says nothing.
                let took = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0).unwrap_or(0.0);
                let took = Span::from_secs(took);
                self.happen(Happening::Checkpointed { part, rank, step, took });
            }
            Some(Saying::Boundary { step }) => self.happen(Happening::Boundary { part, rank, step }),
            // One speaks for all: ranks wait for each other at each step.
            Some(Saying::Trained(said)) if rank == 0 => self.say(FromAgent::Trained { part, said }),
            Some(Saying::Trained(_)) => {}
            None if !speaks => self.happen(Happening::Silent { part, rank }),
            None => {}
        }
    }

    /// Leaves. Where jobs were taken along and none lies stopped, the keeper has nothing more to do.
    async fn leave(mut self) {
        self.save().unwrap_or_else(|error| tracing::error!(%error, "the agent's state was not written"));
        let holder = &self.state.holder;
        // Where nothing is left to keep, the keeper goes with its agent.
        if holder.paused().is_empty() && (self.config.take_jobs_along || holder.is_idle()) {
            self.keeper.leave().await;
            self.spawner.cgroups.iter().for_each(Cgroups::close);
            self.mps.end_all();
        }
    }
}

/// Finds what is offered, on a thread of its own: a driver that hangs must not hang the agent unseen.
async fn find(offer: DeviceOffer, slots: Option<u32>, before: Vec<String>) -> anyhow::Result<Devices> {
    let (answer, found) = oneshot::channel();
    std::thread::spawn(move || answer.send(Devices::find(&offer, slots, &before)));
    let found = tokio::time::timeout(LISTING, found).await;
    let seconds = LISTING.as_secs();
    let found = found.with_context(|| {
        format!("the GPU driver has not answered for {seconds} s; reboot the machine, or use --no-gpus")
    })?;
    found.context("the GPU driver failed; reboot the machine, or use --no-gpus")
}

/// A rank is gone, as the keeper says.
fn exited(part: PartId, rank: u32, exit: ProcessExit) -> Happening {
    let ProcessExit { code, signal, starved } = exit;
    Happening::Exited { part, rank, code, signal, starved }
}
