//! What the agent does about what was decided. State is persisted before anything that could not be undone.

use std::io;
use std::path::PathBuf;

use yard_core::Span;
use yard_core::holder::{Act, Happening};
use yard_core::part::{Ending, How, Master, PartId, Told};
use yard_core::training::Batch;

use super::devices::CPU;
use super::keeper::KeeperAsk;
use super::moving::MovingWay;
use super::opendir::FileOwner;
use super::quarantine::Failed;
use super::serve::Agent;
use super::socket::{Socket, Telling, Users};
use super::spawn::{Unspawned, free_port, signal};
use super::state::replace;
use crate::wire::{FromAgent, Task};

/// Exit codes that say that the job could not even begin: no device is to blame for them.
const NOT_BEGUN: [i32; 2] = [126, 127];

impl Agent {
    /// Acts until there is nothing left to do.
    pub(super) fn settle(&mut self) {
        while !self.parts.acts.is_empty() {
            let acts = std::mem::take(&mut self.parts.acts);
            let saved = if acts.iter().any(matters) { self.save_before(&acts) } else { Ok(()) };
            if let Err(error) = &saved {
                tracing::error!(%error, "the agent's state cannot be written; nothing new is started");
            }
            for act in acts {
                match (act, &saved) {
                    (Act::Spawn { part, .. }, Err(error)) => {
                        let message = format!("this node cannot write to its disk: {error}");
                        self.happen(Happening::SpawnFailed { part, code: None, message });
                    }
                    (act, _) => self.act(act),
                }
            }
        }
    }

    /// Writes down what was decided.
    pub(super) fn save(&mut self) -> io::Result<()> {
        self.save_before(&[])
    }

    /// Writes down what was decided before it is done. Parts that are about to be thawed will be found under their next
    /// names already; should they not get them, nobody misses an entry without processes.
    fn save_before(&mut self, acts: &[Act]) -> io::Result<()> {
        self.state.last = self.now();
        let folder = |part: &PartId| self.sockets.of_parts.get(part).map(|(_, socket)| socket.folder());
        let thawed = acts.iter().filter_map(|act| match act {
            Act::Thaw { part, as_part, .. } => Some((*as_part, folder(part)?)),
            _ => None,
        });
        let known = self.sockets.of_parts.iter().map(|(part, (_, socket))| (*part, socket.folder()));
        self.state.sockets = known.chain(thawed).collect();
        self.state.save(&self.spawner.layout.state())
    }

    fn act(&mut self, act: Act) {
        if let Some(part) = disturbed(&act) {
            self.unwatch(part);
        }
        match act {
            Act::Reserve { part } => self.reserve(part),
            Act::Spawn { part, master } => self.spawn(part, master),
            Act::Hold { part, ranks } => self.tell_ranks(part, &ranks, &Telling::Hold {}),
            Act::Stop { part, ranks, at, cause, grace } => {
                let stop = Telling::Stop { at, why: cause.word().into(), grace_s: grace.secs() };
                self.tell_ranks(part, &ranks, &stop);
            }
            Act::Signal { part, ranks } => {
                let signal = self.task(part).map_or(signal("TERM"), |task| signal(&task.stop_signal)) as i32;
                self.keeper.ask(&KeeperAsk::Signal { part, ranks, signal });
            }
            Act::Kill { part } => self.keeper.ask(&KeeperAsk::Kill { part }),
            Act::Freeze { part, deep: false } => self.keeper.ask(&KeeperAsk::Freeze { part }),
            Act::Freeze { part, deep: true } => self.move_part(part, MovingWay::Freeze),
            Act::Thaw { part, as_part, deep } => {
                self.thaw(part, as_part);
                if deep {
                    self.move_part(as_part, MovingWay::Thaw);
                }
            }
            Act::Drop { part } => {
                self.keeper.ask(&KeeperAsk::Kill { part });
                self.close(part);
                self.forget(part);
            }
            Act::Tell { part, told } => self.tell(part, told),
            Act::Forget { part } => self.forget(part),
        }
    }

    fn reserve(&mut self, part: PartId) {
        match free_port() {
            Ok(port) => self.happen(Happening::PortFound { part, port }),
            Err(error) => {
                let message = format!("this node has no free port: {error}");
                self.happen(Happening::SpawnFailed { part, code: None, message });
            }
        }
    }

    fn spawn(&mut self, part: PartId, master: Option<Master>) {
        match self.prepare(part, master) {
            Ok(start) => {
                self.foresee(part);
                self.keeper.ask(&KeeperAsk::Start(Box::new(start)));
            }
            Err(Unspawned { code, message }) => {
                self.close(part);
                self.happen(Happening::SpawnFailed { part, code, message });
            }
        }
    }

    fn prepare(
        &mut self,
        part: PartId,
        master: Option<Master>,
    ) -> Result<super::keeper::StartPart, Unspawned> {
        let lost = |what: &str| Unspawned { code: None, message: format!("this node has lost {what}") };
        let start = self.state.holder.start(part).cloned().ok_or_else(|| lost("the order"))?;
        let task = self.task(part).ok_or_else(|| lost("what to run"))?;
        if !task.secrets.is_empty() && !self.parts.tasks.contains_key(&part) {
            return Err(lost("the job's secrets, because its agent was restarted"));
        }
        let account = self.spawner.account(&task)?;
        let devices = self.devices.visible(&start.devices);
        if task.limits.is_none() {
            self.mps.vacate(&devices);
        }
        let mps = task.limits.map(|limits| self.mps.join(part, limits, &devices, &account)).transpose()?;
        self.open_socket(part, self.spawner.layout.socket(part), account.owner())?;
        self.spawner.prepare(&start, &task, account, master, &devices, mps.as_ref())
    }

    /// Listens for a part's processes.
    pub(super) fn open_socket(
        &mut self,
        part: PartId,
        folder: PathBuf,
        owner: Option<FileOwner>,
    ) -> io::Result<()> {
        let number = self.sockets.next();
        let ranks = self.state.holder.start(part).map_or(1, |start| start.ranks.count);
        let socket = Socket::open(&folder, Users { owner, ranks }, number, self.sockets.news.clone())?;
        self.sockets.of_parts.insert(part, (number, socket));
        Ok(())
    }

    /// Tells all ranks of a part to make steps of another size. One that does not talk goes on as it began.
    pub(super) fn tune(&mut self, part: PartId, batch: Batch) {
        let Some(ranks) = self.state.holder.start(part).map(|start| start.ranks) else { return };
        let all: Vec<u32> = (ranks.first..ranks.first + ranks.count).collect();
        self.tell_ranks(part, &all, &Telling::Batch { local: batch.local, extra: batch.extra });
    }

    fn tell_ranks(&mut self, part: PartId, ranks: &[u32], telling: &Telling) {
        if let Some((_, socket)) = self.sockets.of_parts.get_mut(&part) {
            socket.tell(ranks, telling);
        }
    }

    /// Processes that were stopped go on under another name, with the socket they know.
    fn thaw(&mut self, part: PartId, as_part: PartId) {
        if let Some(socket) = self.sockets.of_parts.remove(&part) {
            self.sockets.of_parts.insert(as_part, socket);
        }
        self.mps.rename(part, as_part);
        self.reads.live(as_part.job, true);
        self.keeper.ask(&KeeperAsk::Thaw { part, as_part });
    }

    fn tell(&mut self, part: PartId, told: Told) {
        match &told {
            Told::Started => {
                let now = self.now();
                self.parts.started.insert(part, now);
                self.reads.live(part.job, true);
                self.watch_part(part);
            }
            Told::Ended(ending) => self.ended(part, ending),
            _ => {}
        }
        self.say(FromAgent::Told { part, told });
    }

    fn ended(&mut self, part: PartId, ending: &Ending) {
        self.unwatch(part);
        self.reads.live(part.job, false);
        if let Some(started) = self.parts.started.remove(&part) {
            self.judge_devices(part, ending, self.now() - started);
        }
        if ending.how != How::Paused {
            self.close(part);
        }
    }

    /// What an end says about the devices it was on.
    fn judge_devices(&mut self, part: PartId, ending: &Ending, ran: Span) {
        let Some(start) = self.state.holder.start(part) else { return };
        let blameless = ending.code.is_some_and(|code| NOT_BEGUN.contains(&code));
        let user = self.task(part).map_or_else(String::new, |task| task.user);
        for held in start.devices.clone() {
            let Some(group) = self.devices.groups().get(held.group as usize) else { continue };
            let size = group.devices.len() as u32;
            if group.kind == CPU || blameless {
                continue;
            }
            for device in (0..size).filter(|device| held.mask >> device & 1 == 1) {
                self.judge_device((held.group, device), ending.how, Failed { user: &user, ran, size });
            }
        }
    }

    fn judge_device(&mut self, device: (u32, u32), how: How, failed: Failed<'_>) {
        match how {
            How::Crashed => {
                if let Some(problem) = self.quarantine.failed(device, failed, self.now()) {
                    self.health(device.0, device.1, Some(problem));
                }
            }
            How::Finished => self.quarantine.succeeded(device),
            How::Saved | How::Paused | How::Expired | How::Refused | How::Lost => {}
        }
    }

    /// Nobody talks for this part any more, and its processes are gone or about to be.
    fn close(&mut self, part: PartId) {
        self.sockets.of_parts.remove(&part);
        self.mps.leave(part, self.now());
        self.spawner.cgroups.iter().for_each(|groups| groups.remove(part));
    }

    fn forget(&mut self, part: PartId) {
        self.keeper.ask(&KeeperAsk::Forget { part });
        self.parts.tasks.remove(&part);
        let path = self.spawner.layout.task(part);
        if let Err(error) = std::fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "a file that is not needed any more stays");
        }
    }

    /// Keeps what a part runs, also for the next agent: but for its secrets, of which only the names are on file.
    pub(super) fn keep_task(&mut self, part: PartId, task: Task) {
        let path = self.spawner.layout.task(part);
        let mut public = task.clone();
        public.secrets.iter_mut().for_each(|secret| secret.value.0.clear());
        let written =
            serde_json::to_vec(&public).map_err(io::Error::from).and_then(|text| replace(&path, &text));
        if let Err(error) = written {
            tracing::error!(%error, path = %path.display(), "what a job runs is not on file");
        }
        self.parts.tasks.insert(part, task);
    }

    /// What a part runs.
    pub(super) fn task(&self, part: PartId) -> Option<Task> {
        let on_file = || serde_json::from_slice(&std::fs::read(self.spawner.layout.task(part)).ok()?).ok();
        self.parts.tasks.get(&part).cloned().or_else(on_file)
    }
}

/// Whose processes must be awake for this.
fn disturbed(act: &Act) -> Option<PartId> {
    match act {
        Act::Hold { part, .. } | Act::Stop { part, .. } | Act::Signal { part, .. } => Some(*part),
        Act::Kill { part } | Act::Freeze { part, .. } | Act::Drop { part } => Some(*part),
        _ => None,
    }
}

/// Whether the state must be on file before this is done.
fn matters(act: &Act) -> bool {
    matches!(
        act,
        Act::Spawn { .. } | Act::Thaw { .. } | Act::Freeze { .. } | Act::Tell { told: Told::Ended(_), .. }
    )
}
