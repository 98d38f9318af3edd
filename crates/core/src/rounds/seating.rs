//! Who was promised devices for now has them before anybody's order. First each is given room by stopping others; where
//! that is not enough, because those who keep theirs lie in the way, all who were promised are placed anew, the largest
//! first: then all find their places (`promise::Room`).

use super::{Decision, Parts, Round};
use crate::book::{Key, ShareId};
use crate::leases::Lease;

/// Gives devices to these shares, largest first in the list. Others of the list are not stopped for one; `bound` says
/// whose leases nobody may stop.
pub(crate) fn seat(parts: Parts<'_>, seats: &[ShareId], bound: &dyn Fn(&Lease) -> bool) -> Decision {
    let mut round = Round::new(parts, false);
    let mut all = true;
    for share in seats {
        let entry = round.book.entry(*share);
        if entry.lease.is_none() {
            let key = entry.key;
            all &= round.try_choose(key, true);
        }
    }
    if !all {
        round.reseat(seats, bound);
    }
    round.finish()
}

impl Round<'_> {
    fn reseat(&mut self, seats: &[ShareId], bound: &dyn Fn(&Lease) -> bool) {
        let movable = |key: &Key| !bound(self.lease_of(key.share));
        let stopped: Vec<ShareId> =
            self.book.chosen_from_last().filter(movable).map(|key| key.share).collect();
        stopped.iter().for_each(|share| self.stop(*share));
        for share in seats {
            let entry = self.book.entry(*share);
            if entry.lease.is_none() {
                self.try_choose(entry.key, false);
            }
        }
        // Who is not in the way stays where it was.
        for share in stopped.iter().rev().filter(|share| !seats.contains(share)) {
            self.return_to_own(*share);
        }
    }
}
