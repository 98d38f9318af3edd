//! The processes a keeper is the parent of. Each rank has a process group of its own; whatever a rank leaves
//! behind, also outside its group, comes to the keeper as an orphan and is ended before the rank counts as gone.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Child;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use yard_core::part::PartId;

use super::start::{Unstartable, start};
use super::tree;
use super::words::{Exit, StartPart};

/// All of them.
pub(super) struct Table {
    /// What the marks of this keeper's processes begin with.
    id: String,
    /// Marks given so far.
    marks: u64,
    parts: BTreeMap<PartId, Part>,
    /// The ranks' own processes.
    pids: BTreeMap<i32, (PartId, u32)>,
    /// Orphans that hide their mark, with the parts that were there when they came: one of them must have
    /// started it, so it is ended when all of them are over.
    strays: BTreeMap<i32, BTreeSet<PartId>>,
}

struct Part {
    ranks: BTreeMap<u32, Rank>,
    cgroup: Option<PathBuf>,
    stop_signal: i32,
    grace: u64,
    frozen: bool,
    /// It was asked to stop because the node's lease lapsed.
    lapsed: bool,
}

struct Rank {
    pid: i32,
    child: Child,
    mark: String,
    /// How its own process ended; what it left behind is being ended.
    exit: Option<Exit>,
}

impl Table {
    /// No processes yet.
    pub(super) fn new(id: String) -> Table {
        Table { id, marks: 0, parts: BTreeMap::new(), pids: BTreeMap::new(), strays: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.strays.is_empty()
    }

    /// Part and rank of everything that is not over.
    pub(super) fn alive(&self) -> Vec<(PartId, u32)> {
        self.parts.iter().flat_map(|(id, part)| part.ranks.keys().map(|rank| (*id, *rank))).collect()
    }

    pub(super) fn knows(&self, part: PartId) -> bool {
        self.parts.contains_key(&part)
    }

    /// Starts all ranks of a part. Where one fails, those that run are killed; they are still to be waited for.
    pub(super) fn start(&mut self, wanted: StartPart) -> Result<(), Unstartable> {
        let StartPart { part: id, ranks, user, cgroup, stop_signal, grace } = wanted;
        let fresh = Part { ranks: BTreeMap::new(), cgroup, stop_signal, grace, frozen: false, lapsed: false };
        self.parts.insert(id, fresh);
        for spec in ranks {
            self.marks += 1;
            let (rank, mark) = (spec.rank, format!("{}:{}", self.id, self.marks));
            match start(spec, user.as_ref(), &mark) {
                Ok(child) => self.add(id, rank, Rank { pid: child.id() as i32, child, mark, exit: None }),
                Err(error) => {
                    self.kill(id);
                    self.parts.retain(|known, part| *known != id || !part.ranks.is_empty());
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, id: PartId, number: u32, rank: Rank) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        if let Some(cgroup) = &part.cgroup
            && let Err(error) = std::fs::write(cgroup.join("cgroup.procs"), rank.pid.to_string())
        {
            tracing::warn!(%error, cgroup = %cgroup.display(), "a rank runs outside its control group");
        }
        self.pids.insert(rank.pid, (id, number));
        part.ranks.insert(number, rank);
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
        part.kill_cgroup();
    }

    /// Stops a part's processes where they are, or lets them go on, also those outside their rank's group.
    pub(super) fn freeze(&mut self, id: PartId, frozen: bool) {
        self.parts.get_mut(&id).into_iter().for_each(|part| part.frozen = frozen);
        self.hush(id, frozen);
    }

    /// The same for a moment: the part counts as one that runs.
    pub(super) fn hush(&self, id: PartId, hushed: bool) {
        let Some(part) = self.parts.get(&id) else { return };
        let signal = if hushed { Signal::SIGSTOP } else { Signal::SIGCONT };
        self.processes(id).into_iter().for_each(|pid| tree::send(pid, signal));
        part.living().for_each(|rank| rank.signal(signal));
    }

    /// All processes of a part, also those outside their rank's group.
    pub(super) fn processes(&self, id: PartId) -> BTreeSet<i32> {
        let Some(part) = self.parts.get(&id) else { return BTreeSet::new() };
        let marks: BTreeSet<&str> = part.ranks.values().map(|rank| rank.mark.as_str()).collect();
        let orphans = tree::children().into_iter().filter(|pid| {
            !self.pids.contains_key(pid) && tree::mark(*pid).is_some_and(|mark| marks.contains(mark.as_str()))
        });
        let roots: Vec<i32> = part.living().map(|rank| rank.pid).chain(orphans).collect();
        tree::descendants(&roots)
    }

    /// How much memory a part may use from now on.
    pub(super) fn limit_memory(&self, id: PartId, max: Option<u64>) {
        let max = max.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string());
        if let Some(cgroup) = self.parts.get(&id).and_then(|part| part.cgroup.as_ref())
            && let Err(error) = std::fs::write(cgroup.join("memory.max"), max)
        {
            tracing::warn!(%error, cgroup = %cgroup.display(), "a limit of memory was not changed");
        }
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

    /// The node's lease lapsed so long ago: asks parts to stop, and kills those whose grace is over. Stopped
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
            if ago >= part.grace.saturating_add(margin) {
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
    pub(super) fn reap(&mut self) -> Vec<(PartId, u32, Exit)> {
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
    fn next_dead(&mut self) -> Option<(i32, Exit)> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::All, flags) {
            Ok(WaitStatus::Exited(pid, code)) => {
                Some((pid.as_raw(), Exit { code: Some(code), signal: None }))
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) => {
                Some((pid.as_raw(), Exit { code: None, signal: Some(signal as i32) }))
            }
            Ok(_) | Err(Errno::ECHILD) => None,
            Err(error) => self.next_odd(error),
        }
    }

    /// A child whose end has no name in the library: a real-time signal. If it is no rank it is only cleared away.
    fn next_odd(&mut self, error: Errno) -> Option<(i32, Exit)> {
        let ranks = self.parts.values_mut().flat_map(|part| part.ranks.values_mut());
        for rank in ranks.filter(|rank| rank.exit.is_none()) {
            if let Ok(Some(status)) = rank.child.try_wait() {
                return Some((rank.pid, Exit { code: status.code(), signal: status.signal() }));
            }
        }
        let cleared = waitpid(None, Some(WaitPidFlag::WNOHANG));
        tracing::debug!(%error, ?cleared, "a child ended in an odd way");
        None
    }

    /// Ends what dead ranks left behind, and gives those that left nothing.
    fn mop(&mut self) -> Vec<(PartId, u32, Exit)> {
        if self.strays.is_empty() && !self.parts.values().any(|part| part.dead().next().is_some()) {
            return Vec::new();
        }
        let leavers = self.kill_leftovers();
        let mut gone = Vec::new();
        for (id, part) in &mut self.parts {
            let done = part.dead().filter(|(_, rank)| !leavers.contains(&rank.mark));
            let done: Vec<(u32, Exit)> =
                done.filter_map(|(number, rank)| Some((number, rank.exit?))).collect();
            gone.extend(done.iter().map(|(number, exit)| (*id, *number, *exit)));
            done.iter().for_each(|(number, _)| drop(part.ranks.remove(number)));
            if part.ranks.is_empty() {
                part.kill_cgroup();
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
        let mut leavers = BTreeSet::new();
        for pid in tree::children().into_iter().filter(|pid| !self.pids.contains_key(pid)) {
            match tree::mark(pid) {
                Some(mark) if dead.contains(&mark) => {
                    tree::send(pid, Signal::SIGKILL);
                    leavers.insert(mark);
                }
                Some(_) => {}
                None => drop(self.strays.entry(pid).or_insert_with(|| self.parts.keys().copied().collect())),
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

impl Part {
    fn living(&self) -> impl Iterator<Item = &Rank> {
        self.ranks.values().filter(|rank| rank.exit.is_none())
    }

    fn dead(&self) -> impl Iterator<Item = (u32, &Rank)> {
        self.ranks.iter().filter(|(_, rank)| rank.exit.is_some()).map(|(number, rank)| (*number, rank))
    }

    /// Ends everything in the part's control group, wherever it hides.
    fn kill_cgroup(&self) {
        if let Some(cgroup) = &self.cgroup
            && let Err(error) = std::fs::write(cgroup.join("cgroup.kill"), "1")
        {
            tracing::debug!(%error, cgroup = %cgroup.display(), "a control group was not killed");
        }
    }
}

impl Rank {
    /// Signals its process group. One that is not waited for still has its number.
    fn signal(&self, signal: Signal) {
        if self.exit.is_none()
            && let Err(error) = killpg(Pid::from_raw(self.pid), signal)
        {
            tracing::debug!(pid = self.pid, %signal, %error, "signal not sent");
        }
    }
}
