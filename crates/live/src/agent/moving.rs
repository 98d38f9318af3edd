//! What the agent does to freeze and thaw: the keeper names a part's processes, the freezer moves what they have on
//! cards, and the keeper stops them; the other way round they go on first, because they move it back themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use yard_core::Span;
use yard_core::holder::{Happening, Holder};
use yard_core::part::PartId;

use super::devices::{CPU, Devices};
use super::freezer::{Failure, Freezer, Moved, bytes_of};
use super::keeper::KeeperAsk;
use super::layout::Layout;
use super::serve::Agent;
use super::{AgentConfig, DeviceOffer};
use crate::wire::CardNow;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MovingWay {
    /// From the cards to the host's memory.
    Freeze,
    /// And back.
    Thaw,
}

/// How a move ended.
pub(super) struct MoveEnd {
    number: u64,
    part: PartId,
    way: MovingWay,
    done: Result<Moved, Failure>,
}

/// Moves under way, and what can be moved at all.
pub(super) struct MovingRanks {
    freezer: Freezer,
    /// Why nothing can be frozen, where that is so.
    pub(super) no_freeze: Option<String>,
    /// Memory that frozen jobs may hold.
    pub(super) room: u64,
    moves: BTreeMap<PartId, (u64, MovingWay)>,
    begun: u64,
    ends: Arc<mpsc::UnboundedSender<MoveEnd>>,
}

impl MovingRanks {
    /// Finds out what can be frozen here.
    pub(super) async fn prepare(
        config: &AgentConfig,
        layout: &Layout,
        devices: &Devices,
        holder: &Holder,
        ends: mpsc::UnboundedSender<MoveEnd>,
    ) -> MovingRanks {
        let cards = devices.groups().iter().any(|group| group.kind != CPU);
        let fake = matches!(config.offer, DeviceOffer::Fake(_));
        let freezer = match cards {
            true => Freezer::new(&config.commands.freezer, layout.freezer(), fake),
            false => Freezer::idle(),
        };
        let no_freeze = freezer.probe().await.err().map(|failure| failure.reason);
        if let Some(reason) = &no_freeze {
            tracing::info!(%reason, "jobs on cards cannot be frozen here");
        }
        let room = if no_freeze.is_some() { 0 } else { room(config.freeze_room_mib, holder) };
        MovingRanks { freezer, no_freeze, room, moves: BTreeMap::new(), begun: 0, ends: Arc::new(ends) }
    }

    /// The processes of all moves are gone.
    pub(super) fn forget_all(&mut self) {
        self.moves.clear();
    }
}

/// Memory that frozen jobs may hold: as was said, else half of what would be free without them.
fn room(said_mib: Option<u64>, holder: &Holder) -> u64 {
    let half = || {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let free = bytes_of(&meminfo, "MemAvailable:").unwrap_or(0);
        free.saturating_add(holder.frozen_bytes()) / 2
    };
    said_mib.map_or_else(half, |mib| mib.saturating_mul(1 << 20))
}

impl Agent {
    /// Begins to move a part: first its processes must be known.
    pub(super) fn move_part(&mut self, part: PartId, way: MovingWay) {
        self.moving.begun += 1;
        self.moving.moves.insert(part, (self.moving.begun, way));
        self.limit_memory(part, false);
        // It does part of the work itself, which it cannot in its sleep.
        self.keeper.ask(&KeeperAsk::Hush { part, hushed: false });
        self.keeper.ask(&KeeperAsk::Pids { part });
    }

    /// What parts hold on their cards: so much would have to be moved.
    pub(super) fn measure(&mut self, cards: &[CardNow]) {
        let mut all: BTreeMap<PartId, u64> = BTreeMap::new();
        for (part, _, memory_mib) in cards.iter().flat_map(|card| &card.parts) {
            let bytes = all.entry(*part).or_default();
            *bytes = bytes.saturating_add(memory_mib.saturating_mul(1 << 20));
        }
        all.retain(|_, bytes| *bytes > 0);
        all.into_iter().for_each(|(part, bytes)| self.happen(Happening::Usage { part, bytes }));
    }

    /// What a job has on its cards is not meant by its limit of memory: while it is frozen there is none.
    fn limit_memory(&self, part: PartId, limited: bool) {
        let (Some(groups), Some(task)) = (&self.spawner.cgroups, self.task(part)) else { return };
        let held = self.state.holder.start(part).map(|start| start.devices.clone()).unwrap_or_default();
        if let Some(bytes) = groups.memory(&task, &held) {
            self.keeper.ask(&KeeperAsk::Memory { part, max: limited.then_some(bytes) });
        }
    }

    /// What is known of a part before it runs: the driver cannot freeze what goes through MPS.
    pub(super) fn foresee(&mut self, part: PartId) {
        if self.task(part).is_some_and(|task| task.limits.is_some()) {
            let reason = "it shares its GPU through MPS".to_owned();
            self.happen(Happening::Unfreezable { part, reason });
        }
    }

    pub(super) fn move_processes(&mut self, part: PartId, pids: Vec<i32>) {
        let Some((number, way)) = self.moving.moves.get(&part).copied() else { return };
        let (freezer, ends) = (self.moving.freezer.clone(), self.moving.ends.clone());
        tokio::spawn(async move {
            let done = match way {
                MovingWay::Freeze => freezer.freeze(pids).await,
                MovingWay::Thaw => freezer.thaw(pids).await,
            };
            let _gone = ends.send(MoveEnd { number, part, way, done });
        });
    }

    pub(super) fn moved(&mut self, end: MoveEnd) {
        let MoveEnd { number, part, way, done } = end;
        if self.moving.moves.get(&part) != Some(&(number, way)) {
            return; // Its processes are gone, with their keeper.
        }
        self.moving.moves.remove(&part);
        tracing::info!(%part.job, ?way, ?done, "moved");
        self.limit_memory(part, way == MovingWay::Thaw || done.is_err());
        self.happen(match (way, done) {
            (MovingWay::Freeze, Ok(Moved { bytes, seconds })) => {
                self.keeper.ask(&KeeperAsk::Freeze { part });
                Happening::Frozen { part, bytes, took: Span::from_secs(seconds) }
            }
            (MovingWay::Freeze, Err(Failure { reason, forever })) => {
                Happening::FreezeFailed { part, reason, forever }
            }
            (MovingWay::Thaw, Ok(moved)) => Happening::Thawed { part, took: Span::from_secs(moved.seconds) },
            (MovingWay::Thaw, Err(failure)) => Happening::ThawFailed { part, reason: failure.reason },
        });
    }
}
