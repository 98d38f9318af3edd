//! Who was promised devices for now has them before anybody's order, on the nodes where they were promised. Whoever is in
//! the way there is stopped; nobody else is, and nobody who was promised something moves.

use super::{Decision, Parts, Round};
use crate::cluster::{Piece, Placement, Slice};
use crate::ids::ShareId;
use crate::promise::{Spot, host_on, spot_of};

/// A share that must have devices now, and where.
pub(crate) struct Seat {
    pub(crate) share: ShareId,
    pub(crate) shape: u16,
    pub(crate) spot: Spot,
}

/// Gives devices to these shares.
pub(crate) fn seat(parts: Parts<'_>, seats: &[Seat]) -> Decision {
    let mut round = Round::new(parts, false);
    for seat in seats {
        if round.book.entry(seat.share).lease.is_none()
            && let Some(placement) = round.clear_spot(seat)
        {
            round.promise(seat.share, seat.shape, placement);
        }
    }
    // Who is not in the way after all stays where it was.
    let mut stopped = round.stopped.clone();
    stopped.sort_unstable();
    stopped.into_iter().for_each(|share| _ = round.return_to_own(share));
    round.finish()
}

impl Round<'_> {
    /// The devices of a seat, once whoever is in the way is stopped; none where that may not be.
    fn clear_spot(&mut self, seat: &Seat) -> Option<Placement> {
        if let Some(home) = self.home(seat.share).filter(|home| spot_of(self.nodes, home) == seat.spot) {
            self.stop_on(|slice| {
                home.0.iter().any(|own| own.node == slice.node && own.mask & slice.mask != 0)
            });
            if self.nodes.are_free(&home) {
                return Some(home);
            }
        }
        for piece in &seat.spot {
            while !self.has_room(piece, &seat.spot) {
                self.stop(self.last_on(piece)?);
            }
        }
        let slice = |piece: &Piece| {
            let mask = self.nodes.get(piece.node).take(piece.kind, piece.count);
            Slice { host: piece.host, ..Slice::of(piece.node, mask) }
        };
        Some(Placement(seat.spot.iter().map(slice).collect()))
    }

    /// Whether a piece of a spot is free, and of its host as much as all pieces there take.
    fn has_room(&self, piece: &Piece, spot: &Spot) -> bool {
        let node = self.nodes.get(piece.node);
        node.free_count(piece.kind) >= piece.count && node.host_free().covers(&host_on(spot, piece.node))
    }

    /// The last in order that is in the way of a piece and may be stopped.
    fn last_on(&self, piece: &Piece) -> Option<ShareId> {
        let in_the_way = |slice: &Slice| slice.node == piece.node && self.nodes.makes_room(slice, piece.kind);
        let on_it = |share: &ShareId| self.placement_of(*share).0.iter().any(in_the_way);
        let mut shares = self.book.chosen_from_last().map(|key| key.share);
        shares.find(|share| on_it(share) && !self.is_fixed(*share))
    }

    /// Stops all that may be stopped and have devices for which this is true.
    fn stop_on(&mut self, hit: impl Fn(&Slice) -> bool) {
        let on_it = |share: &ShareId| self.placement_of(*share).0.iter().any(&hit) && !self.is_fixed(*share);
        let shares: Vec<ShareId> = self.book.chosen_from_last().map(|key| key.share).filter(on_it).collect();
        shares.into_iter().for_each(|share| self.stop(share));
    }
}
