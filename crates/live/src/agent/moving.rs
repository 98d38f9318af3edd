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
use super::keeper::Ask;
use super::layout::Layout;
use super::serve::Agent;
use super::{AgentConfig, Offer};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the cards to the host's memory.
    Freeze,
    /// And back.
    Thaw,
}

/// How a move ended.
pub(super) struct MoveEnd {
    number: u64,
    part: PartId,
    way: Way,
    done: Result<Moved, Failure>,
}

/// Moves under way, and what can be moved at all.
pub(super) struct Moving {
    freezer: Freezer,
    /// Why nothing can be frozen, where that is so.
    pub(super) no_freeze: Option<String>,
    /// Memory that frozen jobs may hold, as far as it is set; and what was free when the agent started.
    room_mib: Option<u64>,
    free: u64,
    moves: BTreeMap<PartId, (u64, Way)>,
    begun: u64,
    ends: Arc<mpsc::UnboundedSender<MoveEnd>>,
}

impl Moving {
    /// Finds out what can be frozen here.
    pub(super) async fn prepare(
        config: &AgentConfig,
        layout: &Layout,
        devices: &Devices,
        ends: mpsc::UnboundedSender<MoveEnd>,
    ) -> Moving {
        let cards = devices.groups().iter().any(|group| group.kind != CPU);
        let fake = matches!(config.offer, Offer::Fake(_));
        let freezer = match cards {
            true => Freezer::new(&config.freezer, layout.freezer(), fake),
            false => Freezer::idle(),
        };
        let no_freeze = freezer.probe().await.err().map(|failure| failure.reason);
        if let Some(reason) = &no_freeze {
            tracing::info!(%reason, "jobs on cards cannot be frozen here");
        }
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let free = bytes_of(&meminfo, "MemAvailable:").unwrap_or(0);
        let (room_mib, moves, ends) = (config.freeze_room_mib, BTreeMap::new(), Arc::new(ends));
        Moving { freezer, no_freeze, room_mib, free, moves, begun: 0, ends }
    }

    /// Memory that frozen jobs may hold: as was said, else half of what would be free without them.
    pub(super) fn room(&self, holder: &Holder) -> u64 {
        if self.no_freeze.is_some() {
            return 0;
        }
        let half = || self.free.saturating_add(holder.frozen_bytes()) / 2;
        self.room_mib.map_or_else(half, |mib| mib.saturating_mul(1 << 20))
    }

    /// The processes of all moves are gone.
    pub(super) fn forget_all(&mut self) {
        self.moves.clear();
    }
}

impl Agent {
    /// Begins to move a part: first its processes must be known.
    pub(super) fn move_part(&mut self, part: PartId, way: Way) {
        self.moving.begun += 1;
        self.moving.moves.insert(part, (self.moving.begun, way));
        self.keeper.ask(&Ask::Pids { part });
    }

    pub(super) fn move_processes(&mut self, part: PartId, pids: Vec<i32>) {
        let Some((number, way)) = self.moving.moves.get(&part).copied() else { return };
        let (freezer, ends) = (self.moving.freezer.clone(), self.moving.ends.clone());
        tokio::spawn(async move {
            let done = match way {
                Way::Freeze => freezer.freeze(pids).await,
                Way::Thaw => freezer.thaw(pids).await,
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
        self.happen(match (way, done) {
            (Way::Freeze, Ok(Moved { bytes, seconds })) => {
                self.keeper.ask(&Ask::Freeze { part });
                Happening::Frozen { part, bytes, took: Span::from_secs(seconds) }
            }
            (Way::Freeze, Err(Failure { reason, forever })) => {
                Happening::FreezeFailed { part, reason, forever }
            }
            (Way::Thaw, Ok(moved)) => Happening::Thawed { part, took: Span::from_secs(moved.seconds) },
            (Way::Thaw, Err(failure)) => Happening::ThawFailed { part, reason: failure.reason },
        });
    }
}
