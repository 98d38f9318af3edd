//! The processes a keeper is the parent of. Each rank has a process group of its own; whatever a rank leaves
//! behind, also outside its group, comes to the keeper as an orphan and is ended before the rank counts as gone.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use yard_core::part::{LAPSED_GRACE, PartId};

use super::group::ProcessGroup;
use super::marks::{LOOK_MAX, Marks};
use super::output::Output;
use super::secrets::{make_files, remove_files};
use super::start::{Setting, Started, Unstartable, node_fault, start_rank};
use super::tree;
use super::words::{ProcessExit, RankSpec, Say, StartPart};
use crate::auth::hex;

/// How long a launcher may take: it looks users up, which may ask other machines.
const LAUNCH: Duration = Duration::from_secs(60);

/// Longest answer of a launcher.
const ANSWER_MAX: u64 = 64 << 10;

/// What tasks of the table found out.
pub(super) enum FoundProcess {
    /// The launcher with this mark became its rank, or did not.
    Launched(String, Result<(), Unstartable>),
    /// All output of a stream is on file.
    Written,
}

/// All of them.
pub(super) struct KeptTable {
    /// What the marks of this keeper's processes begin with.
    id: String,
    parts: BTreeMap<PartId, KeptPart>,
    /// The ranks' own processes.
    pids: BTreeMap<i32, (PartId, u32)>,
    /// Orphans that hide their mark or made one up, with the parts that were there when they came: one of them must have
    /// started it, so it is ended when all of them are over.
    strays: BTreeMap<i32, BTreeSet<PartId>>,
    marks: Marks,
    /// The folders of control groups that were used.
    homes: BTreeSet<PathBuf>,
    /// Where tasks say what they found out: a few words for each rank.
    found: mpsc::UnboundedSender<FoundProcess>,
}

struct KeptPart {
    ranks: BTreeMap<u32, KeptRank>,
    group: Option<ProcessGroup>,
    /// A folder of secrets that goes with the part.
    secrets: Option<PathBuf>,
    /// Nobody was told yet whether it started.
    starting: bool,
    stop_signal: i32,
    grace: u64,
    frozen: bool,
    /// It was asked to stop because the node's lease lapsed.
    lapsed: bool,
}

struct KeptRank {
    pid: i32,
    child: Child,
    mark: String,
    /// Its process is still the launcher.
    launching: bool,
    /// It never ran: what counts as its exit, with no code where that is not the job's fault.
    unlaunched: Option<ProcessExit>,
    output: Output,
    /// How its own process ended; what it left behind is being ended.
    exit: Option<ProcessExit>,
}

impl KeptTable {
    /// No processes yet.
    pub(super) fn new(id: String, found: mpsc::UnboundedSender<FoundProcess>) -> KeptTable {
        let (parts, pids, strays) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let marks = Marks::new(Path::new("/proc"));
        KeptTable { id, parts, pids, strays, marks, homes: BTreeSet::new(), found }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.strays.is_empty()
    }

    /// Part and rank of everything that is not over.
    pub(super) fn alive(&self) -> Vec<(PartId, u32)> {
        self.parts.iter().flat_map(|(id, part)| part.ranks.keys().map(|rank| (*id, *rank))).collect()
    }

    /// Starts all ranks of a part; says how that went, unless launchers have yet to say. Where one fails, those that run
    /// are killed; they are still to be waited for.
    pub(super) fn start(&mut self, mut wanted: StartPart) -> Option<Say> {
        let part = wanted.part;
        if let Some(known) = self.parts.get(&part) {
            return (!known.starting).then_some(Say::Started { part });
        }
        let ranks = std::mem::take(&mut wanted.ranks);
        let fresh = KeptPart::new(&wanted);
        self.homes.extend(fresh.group.as_ref().and_then(ProcessGroup::home));
        self.parts.insert(part, fresh);
        let secrets = wanted.confine.secrets.as_ref().filter(|secrets| !secrets.mounted);
        let handed = secrets.map_or(Ok(()), make_files).map_err(|error| Unstartable {
            code: None,
            message: format!("this node cannot hand secrets over as files: {error}"),
        });
        let started =
            handed.and_then(|()| ranks.into_iter().try_for_each(|rank| self.start_rank(rank, &wanted)));
        match started {
            Ok(()) => self.started(part),
            Err(error) => Some(self.fail(part, error)),
        }
    }

    fn start_rank(&mut self, spec: RankSpec, wanted: &StartPart) -> Result<(), Unstartable> {
        let (number, mark) = (spec.rank, fresh_mark(&self.id)?);
        let StartPart { user, confine, log_max, .. } = wanted;
        let setting = Setting { user: user.as_ref(), confine, log_max: *log_max };
        let Started { mut child, launch, streams } = start_rank(spec, &setting, &mark)?;
        let found = self.found.clone();
        let output = Output::begin(streams, move || drop(found.send(FoundProcess::Written)));
        let output = output.map_err(|error| {
            let _gone = child.kill().and_then(|()| child.wait());
            node_fault(&error)
        })?;
        let launching = launch.is_some();
        if let Some((line, orders)) = launch {
            let (found, mark) = (self.found.clone(), mark.clone());
            tokio::task::spawn_local(async move {
                let answer = tokio::time::timeout(LAUNCH, instruct(line, orders)).await;
                let late =
                    || Unstartable { code: None, message: format!("it was not ready within {LAUNCH:?}") };
                let _gone = found.send(FoundProcess::Launched(mark, answer.unwrap_or_else(|_| Err(late()))));
            });
        }
        let (pid, exit, unlaunched) = (child.id() as i32, None, None);
        self.pids.insert(pid, (wanted.part, number));
        let rank = KeptRank { pid, child, mark, launching, unlaunched, output, exit };
        self.parts.entry(wanted.part).and_modify(|part| drop(part.ranks.insert(number, rank)));
        Ok(())
    }

    /// A launcher said how it went; says how that went for its part, once that is known.
    pub(super) fn launched(&mut self, mark: &str, answer: Result<(), Unstartable>) -> Option<Say> {
        let has = |part: &KeptPart| part.ranks.values().any(|rank| rank.mark == mark);
        let (id, part) = self.parts.iter_mut().find(|(_, part)| has(part))?;
        let (id, rank) = (*id, part.ranks.values_mut().find(|rank| rank.mark == mark)?);
        rank.launching = false;
        match answer {
            Ok(()) => self.started(id),
            Err(error) => {
                rank.unlaunched =
                    Some(ProcessExit { code: error.code, signal: None, ..ProcessExit::default() });
                let unsaid = part.starting;
                let say = self.fail(id, error);
                unsaid.then_some(say)
            }
        }
    }

    /// Says that a part has started, once all its launchers became its ranks.
    fn started(&mut self, id: PartId) -> Option<Say> {
        let part = self.parts.get_mut(&id)?;
        if !part.starting || part.ranks.values().any(|rank| rank.launching) {
            return None;
        }
        part.starting = false;
        Some(Say::Started { part: id })
    }

    fn fail(&mut self, id: PartId, error: Unstartable) -> Say {
        self.kill(id);
        if let Some(part) = self.parts.get_mut(&id) {
            part.starting = false;
            if part.ranks.is_empty() {
                part.clear();
                self.parts.remove(&id);
            }
        }
        Say::Failed { part: id, code: error.code, message: error.message }
    }

    /// Removes the folders of control groups in which nothing is left.
    pub(super) fn leave(&self) {
        self.homes.iter().for_each(|home| {
            let _in_use = std::fs::remove_dir(home);
        });
    }

    /// Sends a signal to the process groups of some ranks.
    pub(super) fn signal(&self, id: PartId, ranks: &[u32], signal: i32) {
        let Ok(signal) = Signal::try_from(signal) else { return };
        let Some(part) = self.parts.get(&id) else { return };
        let wanted = part.ranks.iter().filter(|(number, _)| ranks.contains(number));
        wanted.for_each(|(_, rank)| rank.signal(signal));
    }

    /// Kills a part; its exits come as its processes do go.
    pub(super) fn kill(&mut self, id: PartId) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        part.ranks.values().for_each(|rank| rank.signal(Signal::SIGKILL));
        part.group.iter().for_each(ProcessGroup::kill);
    }

    /// Stops a part's processes where they are, or lets them go on, also those outside their rank's group. A user can
    /// send their own processes on again, but not out of a control group that is frozen.
    pub(super) fn freeze(&mut self, id: PartId, frozen: bool) {
        self.parts.get_mut(&id).into_iter().for_each(|part| part.frozen = frozen);
        self.hush(id, frozen);
    }

    /// The same for a moment: the part counts as one that runs.
    pub(super) fn hush(&mut self, id: PartId, hushed: bool) {
        let signal = if hushed { Signal::SIGSTOP } else { Signal::SIGCONT };
        self.processes(id).into_iter().for_each(|pid| tree::send(pid, signal));
        let Some(part) = self.parts.get(&id) else { return };
        part.living().for_each(|rank| rank.signal(signal));
        part.group.iter().for_each(|group| group.freeze(hushed));
    }

    /// All processes of a part, also those outside their rank's group.
    pub(super) fn processes(&mut self, id: PartId) -> BTreeSet<i32> {
        let Some(part) = self.parts.get(&id) else { return BTreeSet::new() };
        if let Some(group) = &part.group {
            return group.pids();
        }
        self.marks.look(LOOK_MAX);
        let marks: BTreeSet<&str> = part.ranks.values().map(|rank| rank.mark.as_str()).collect();
        let orphans = tree::children().into_iter().filter(|pid| {
            !self.pids.contains_key(pid)
                && self.marks.mark(*pid).is_some_and(|mark| marks.contains(mark.as_str()))
        });
        let roots: Vec<i32> = part.living().map(|rank| rank.pid).chain(orphans).collect();
        tree::descendants(&roots)
    }

    /// How much memory a part may use from now on.
    pub(super) fn limit_memory(&self, id: PartId, max: Option<u64>) {
        let group = self.parts.get(&id).and_then(|part| part.group.as_ref());
        group.into_iter().for_each(|group| group.limit_memory(max));
    }

    /// The part has another name from now on.
    pub(super) fn rename(&mut self, id: PartId, new: PartId) {
        let Some(part) = self.parts.remove(&id) else { return };
        self.pids.values_mut().filter(|(known, _)| *known == id).for_each(|(known, _)| *known = new);
        for parts in self.strays.values_mut() {
            if parts.remove(&id) {
                parts.insert(new);
            }
        }
        self.parts.insert(new, part);
    }

    /// The node's lease lapsed so long ago: asks parts to stop, and kills those whose grace is over, which counts as
    /// no longer than `LAPSED_GRACE`: the server gives their jobs to others then. Stopped
    /// processes use nothing and stay.
    pub(super) fn lapse(&mut self, ago: u64, ask: bool, margin: u64) {
        let mut late = Vec::new();
        for (id, part) in self.parts.iter_mut().filter(|(_, part)| !part.frozen) {
            if ask
                && !std::mem::replace(&mut part.lapsed, true)
                && let Ok(signal) = Signal::try_from(part.stop_signal)
            {
                part.living().for_each(|rank| rank.signal(signal));
            }
            if ago >= part.grace.min(LAPSED_GRACE.0).saturating_add(margin) {
                late.push(*id);
            }
        }
        late.into_iter().for_each(|id| self.kill(id));
    }

    /// The lease holds again.
    pub(super) fn renewed(&mut self) {
        self.parts.values_mut().for_each(|part| part.lapsed = false);
    }

    /// Takes in what has exited, and gives the ranks of which nothing is left.
    pub(super) fn reap(&mut self) -> Vec<(PartId, u32, ProcessExit)> {
        while let Some((pid, exit)) = self.next_dead() {
            if let Some((id, number)) = self.pids.get(&pid).copied() {
                // While the leader is not waited for, its group's number cannot be another's.
                let _gone = killpg(Pid::from_raw(pid), Signal::SIGKILL);
                let rank = self.parts.get_mut(&id).and_then(|part| part.ranks.get_mut(&number));
                rank.into_iter().for_each(|rank| rank.exit = Some(exit));
            }
            self.pids.remove(&pid);
            self.strays.remove(&pid);
            let _reaped = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
        }
        self.mop()
    }

    /// The next child that has exited, not yet waited for.
    fn next_dead(&mut self) -> Option<(i32, ProcessExit)> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::All, flags) {
            Ok(WaitStatus::Exited(pid, code)) => {
                Some((pid.as_raw(), ProcessExit { code: Some(code), signal: None, ..ProcessExit::default() }))
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) => Some((
                pid.as_raw(),
                ProcessExit { code: None, signal: Some(signal as i32), ..ProcessExit::default() },
            )),
            Ok(_) | Err(Errno::ECHILD) => None,
            Err(error) => self.next_odd(error),
        }
    }

    /// A child whose end has no name in the library: a real-time signal. If it is no rank it is only cleared away.
    fn next_odd(&mut self, error: Errno) -> Option<(i32, ProcessExit)> {
        let ranks = self.parts.values_mut().flat_map(|part| part.ranks.values_mut());
        for rank in ranks.filter(|rank| rank.exit.is_none()) {
            if let Ok(Some(status)) = rank.child.try_wait() {
                return Some((
                    rank.pid,
                    ProcessExit { code: status.code(), signal: status.signal(), ..ProcessExit::default() },
                ));
            }
        }
        let cleared = waitpid(None, Some(WaitPidFlag::WNOHANG));
        tracing::debug!(%error, ?cleared, "a child ended in an odd way");
        None
    }

    /// Ends what dead ranks left behind, and gives those that left nothing.
    fn mop(&mut self) -> Vec<(PartId, u32, ProcessExit)> {
        if self.strays.is_empty() && !self.parts.values().any(|part| part.dead().next().is_some()) {
            return Vec::new();
        }
        let leavers = self.kill_leftovers();
        let mut gone = Vec::new();
        for (id, part) in &mut self.parts {
            let over = part.take_done(&leavers);
            gone.extend(over.into_iter().map(|(number, exit)| (*id, number, exit)));
            if part.ranks.is_empty() {
                part.clear();
            }
        }
        self.parts.retain(|_, part| !part.ranks.is_empty());
        self.kill_strays();
        gone
    }

    /// Kills orphans of dead ranks; gives the marks of those that had any.
    fn kill_leftovers(&mut self) -> BTreeSet<String> {
        let dead: BTreeSet<String> =
            self.parts.values().flat_map(|part| part.dead().map(|(_, rank)| rank.mark.clone())).collect();
        let living: BTreeSet<&str> =
            self.parts.values().flat_map(|part| part.living().map(|rank| rank.mark.as_str())).collect();
        let mut leavers = BTreeSet::new();
        self.marks.look(LOOK_MAX);
        for pid in tree::children().into_iter().filter(|pid| !self.pids.contains_key(pid)) {
            match self.marks.mark(pid) {
                Some(mark) if dead.contains(&mark) => {
                    tree::send(pid, Signal::SIGKILL);
                    leavers.insert(mark);
                }
                Some(mark) if living.contains(mark.as_str()) => {}
                _ => drop(self.strays.entry(pid).or_insert_with(|| self.parts.keys().copied().collect())),
            }
        }
        leavers
    }

    fn kill_strays(&mut self) {
        let over = |parts: &BTreeSet<PartId>| parts.iter().all(|part| !self.parts.contains_key(part));
        let ownerless = self.strays.iter().filter(|(_, parts)| over(parts)).map(|(pid, _)| *pid);
        ownerless.for_each(|pid| tree::send(pid, Signal::SIGKILL));
    }
}

/// A mark for one rank. Its end is random, so that a job cannot guess another's mark and claim it.
fn fresh_mark(id: &str) -> Result<String, Unstartable> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| node_fault(&error.into()))?;
    Ok(format!("{id}:{}", hex(&bytes)))
}

/// Tells a launcher what to become, and waits until it did.
async fn instruct(line: std::os::unix::net::UnixStream, orders: Vec<u8>) -> Result<(), Unstartable> {
    line.set_nonblocking(true).map_err(|error| node_fault(&error))?;
    let mut line = UnixStream::from_std(line).map_err(|error| node_fault(&error))?;
    // One that ends before it knows what to launch says the rest by its exit.
    let told = line.write_all(&orders).await;
    let told = told.and(line.shutdown().await);
    let mut answer = Vec::new();
    let heard = line.take(ANSWER_MAX).read_to_end(&mut answer).await;
    if let Err(error) = told.and(heard.map(drop)) {
        tracing::debug!(%error, "a launcher ended before its time");
    }
    serde_json::from_slice(&answer).map_or(Ok(()), Err)
}

impl KeptPart {
    fn new(wanted: &StartPart) -> KeptPart {
        let StartPart { confine, stop_signal, grace, .. } = wanted;
        let secrets = confine.secrets.as_ref().filter(|secrets| !secrets.mounted);
        KeptPart {
            ranks: BTreeMap::new(),
            group: confine.cgroup.clone().map(ProcessGroup),
            secrets: secrets.map(|secrets| secrets.folder.clone()),
            starting: true,
            stop_signal: *stop_signal,
            grace: *grace,
            frozen: false,
            lapsed: false,
        }
    }

    fn living(&self) -> impl Iterator<Item = &KeptRank> {
        self.ranks.values().filter(|rank| rank.exit.is_none())
    }

    fn dead(&self) -> impl Iterator<Item = (u32, &KeptRank)> {
        self.ranks.iter().filter(|(_, rank)| rank.exit.is_some()).map(|(number, rank)| (*number, rank))
    }

    /// Takes out the ranks of which nothing is left and all output is on file.
    fn take_done(&mut self, leavers: &BTreeSet<String>) -> Vec<(u32, ProcessExit)> {
        let dead = self.living().next().is_none();
        if dead {
            self.group.iter().for_each(ProcessGroup::kill);
        }
        let busy = dead && self.group.as_ref().is_some_and(|group| !group.is_empty());
        let starved = self.group.as_ref().and_then(ProcessGroup::out_of_memory);
        let done = self.ranks.iter_mut().filter_map(|(number, rank)| {
            let mut exit = rank.exit.filter(|_| !busy && !rank.launching && !leavers.contains(&rank.mark))?;
            if exit.signal == Some(Signal::SIGKILL as i32) {
                exit.starved = starved;
                let line = |what| format!("yard: killed: {what}; ask for more with --memory");
                starved.iter().for_each(|what| rank.output.say_last(line(what)));
            }
            rank.output.finish().then_some((*number, rank.unlaunched.unwrap_or(exit)))
        });
        let done: Vec<(u32, ProcessExit)> = done.collect();
        done.iter().for_each(|(number, _)| drop(self.ranks.remove(number)));
        done
    }

    /// Nothing of it is left: nor should anything that was made for it.
    fn clear(&self) {
        self.group.iter().for_each(ProcessGroup::remove);
        self.secrets.iter().for_each(|folder| remove_files(folder));
    }
}

impl KeptRank {
    /// Signals its process group. One that is not waited for still has its number.
    fn signal(&self, signal: Signal) {
        if self.exit.is_none()
            && let Err(error) = killpg(Pid::from_raw(self.pid), signal)
        {
            tracing::debug!(pid = self.pid, %signal, %error, "signal not sent");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_cannot_be_guessed_from_the_one_before() {
        let marks: Vec<String> = (0..100).map(|_| fresh_mark("id:7").unwrap()).collect();
        let secrets: BTreeSet<&str> = marks.iter().filter_map(|mark| mark.strip_prefix("id:7:")).collect();
        assert_eq!(secrets.len(), 100);
        assert!(secrets.iter().all(|secret| secret.len() == 16));
        let numbers: Vec<u64> =
            marks.iter().map(|mark| u64::from_str_radix(&mark["id:7:".len()..], 16).unwrap()).collect();
        assert!(numbers.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 1 << 20), "{numbers:x?}");
    }
}
