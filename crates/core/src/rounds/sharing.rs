//! A round of shares of time. Everything is decided anew: shares are taken in order, by counting devices;
//! then who is no longer among them is stopped, who still is keeps its devices, and the others are placed.
//! A job with shares in several kinds has whichever of them comes first.

use std::collections::BTreeMap;

use super::Round;
use super::turning::Order;
use crate::book::{Class, Entry};
use crate::cluster::{Mask, NodeState, Placement, Slice};
use crate::ids::{JobIdx, KindId, NodeId, ShareId};
use crate::job::{Need, Shape};
use crate::promise::spot_of;

/// A share that should have devices, and the shape it should have them in.
struct Pick {
    share: ShareId,
    option: u16,
}

/// What is given away while picking.
struct Counts {
    /// Devices left, by kind.
    left: Vec<u32>,
    /// Jobs that have devices, by row.
    taken: Vec<bool>,
}

/// Exact devices that are given away while picking, where jobs lie frozen on some.
struct Spots(BTreeMap<NodeId, Mask>);

impl Spots {
    fn are_taken(&self, spot: &Placement) -> bool {
        spot.0.iter().any(|slice| self.0.get(&slice.node).is_some_and(|taken| taken & slice.mask != 0))
    }

    fn take(&mut self, spot: &Placement) {
        spot.0.iter().for_each(|slice| *self.0.entry(slice.node).or_default() |= slice.mask);
    }
}

impl Counts {
    fn left(&self, kind: KindId) -> u32 {
        self.left.get(kind.index()).copied().unwrap_or(0)
    }

    fn fits(&self, shape: &Shape) -> bool {
        shape.needs.iter().all(|need| self.left(need.kind) >= need.devices)
    }

    fn are_taken(&self, jobs: &[JobIdx]) -> bool {
        jobs.iter().any(|job| self.taken[job.index()])
    }

    fn take(&mut self, jobs: &[JobIdx], devices: impl Iterator<Item = (KindId, u32)>) {
        jobs.iter().for_each(|job| self.taken[job.index()] = true);
        for (kind, count) in devices {
            self.left[kind.index()] -= count;
        }
    }
}

impl Round<'_> {
    /// Decides one round of shares of time.
    pub(super) fn share_out(&mut self, order: Order) {
        if self.repack {
            self.clear();
            return self.fill_in(order);
        }
        let picks = self.pick(order);
        let mut placed = true;
        for pick in picks {
            let class = self.book.class(self.book.entry(pick.share).class);
            let shapes = class.shapes.clone();
            match self.place(pick.share, pick.option, &shapes[pick.option as usize]) {
                Some(placement) => self.promise(pick.share, pick.option, placement),
                None => placed = false,
            }
        }
        if !placed {
            // What could not lie together is left to whoever can use it as it lies.
            self.fill_in(self.waiting());
        }
    }

    /// Shares whose jobs wait and could have one of their shapes by count, in order.
    pub(super) fn waiting(&self) -> Order {
        let enough = |need: &Need| self.nodes.free(need.kind) >= need.devices;
        let fits = |class: &Class| {
            class.options.iter().any(|option| class.shapes[*option as usize].needs.iter().all(enough))
        };
        let open: Vec<bool> = self.book.classes().map(fits).collect();
        let served = self.book.served();
        let waits = |entry: &Entry| open[entry.class.0 as usize] && !served.has_any(&entry.jobs);
        self.turning.order_of(self.book, &waits)
    }

    /// Gives free devices to waiting shares in order, and stops nobody.
    pub(super) fn fill_in(&mut self, mut order: Order) {
        let mut closed = vec![false; self.book.n_classes()];
        let is_full = |round: &Self, kind| round.nodes.free(kind) == 0;
        while let Some(share) =
            order.next(|kind| is_full(self, kind), |share| self.has_no_turn(share, &closed))
        {
            if self.has_no_turn(share, &closed) || self.stays_out(share) {
                continue;
            }
            let entry = self.book.entry(share);
            let (class, key) = (entry.class.0 as usize, entry.key);
            // What does not fit here, fits no later share of this class: less is left for those.
            let bound = self.home(share).is_some() || self.is_gated(share);
            closed[class] |= !self.try_choose(key, false) && !bound;
            if self.nodes.is_full() {
                return;
            }
        }
    }

    /// Whether nothing is left for a share: its class is closed, or a job of it has devices.
    fn has_no_turn(&self, share: ShareId, closed: &[bool]) -> bool {
        let entry = self.book.entry(share);
        closed[entry.class.0 as usize] || self.book.is_served(entry)
    }

    /// Counts who should have devices and stops who should not. Returns those that have none yet, in order.
    fn pick(&mut self, mut order: Order) -> Vec<Pick> {
        let mut counts = self.counts();
        let mut stays = vec![false; self.book.n_shares()];
        self.keep_fixed(&mut counts, &mut stays);
        let mut spots = Spots(BTreeMap::new());
        if !self.homes.resting.is_empty() {
            let kept = (0..).map(ShareId).zip(&stays).filter(|(_, stays)| **stays);
            kept.for_each(|(share, _)| spots.take(self.placement_of(share)));
        }
        let mut picks = Vec::new();
        while let Some(share) =
            order.next(|kind| counts.left(kind) == 0, |share| counts.are_taken(&self.book.entry(share).jobs))
        {
            let Some(option) = self.option(share, &counts) else { continue };
            let spot = self.spot(share, option);
            if spot.as_ref().is_some_and(|spot| spots.are_taken(spot)) {
                continue;
            }
            spot.iter().for_each(|spot| spots.take(spot));
            let entry = self.book.entry(share);
            let needs = self.book.class(entry.class).shapes[option as usize].needs.iter();
            counts.take(&entry.jobs, needs.map(|need| (need.kind, need.devices)));
            if entry.lease.is_some() && entry.held() == option {
                stays[share.0 as usize] = true;
            } else if !self.stays_out(share) {
                picks.push(Pick { share, option });
            }
            if counts.left.iter().all(|left| *left == 0) {
                break;
            }
        }
        let leaves = |share: &ShareId| !stays[share.0 as usize];
        let leaving: Vec<ShareId> = self.book.chosen().filter(leaves).collect();
        leaving.into_iter().for_each(|share| self.stop(share));
        picks
    }

    /// Where a share must lie if it is to have devices now: where it is, or where a job of it lies frozen. Asked only
    /// where some job does.
    fn spot(&self, share: ShareId, option: u16) -> Option<Placement> {
        if self.homes.resting.is_empty() {
            return None;
        }
        let entry = self.book.entry(share);
        let stays = entry.lease.is_some() && entry.held() == option;
        if stays { Some(self.placement_of(share).clone()) } else { self.home(share) }
    }

    /// Whether a share has its place in the order but may not run: in Gavel's simulator jobs that came after the
    /// last plan are counted when devices are given away, and left out when they are placed.
    pub(super) fn stays_out(&self, share: ShareId) -> bool {
        self.turning.turns.is_gavel() && self.book.entry(share).is_newcomer()
    }

    /// The shape in which a share could have devices: the one it has, or the first for which there are enough.
    fn option(&self, share: ShareId, counts: &Counts) -> Option<u16> {
        let entry = self.book.entry(share);
        if counts.are_taken(&entry.jobs) {
            return None;
        }
        let class = self.book.class(entry.class);
        let fits = |option: &u16| counts.fits(&class.shapes[*option as usize]);
        let held = entry.lease.map(|_| entry.held()).filter(fits);
        held.or_else(|| class.options.iter().copied().find(fits))
    }

    fn counts(&self) -> Counts {
        let left = self.nodes.kinds().map(|kind| self.nodes.up(kind)).collect();
        Counts { left, taken: vec![false; self.book.n_jobs()] }
    }

    /// Sets aside what is not to be stopped: leases that are too young, those of jobs that may not be stopped, and
    /// those on nodes that drain, from which nobody would gain.
    fn keep_fixed(&self, counts: &mut Counts, stays: &mut [bool]) {
        for share in self.book.chosen() {
            let id = self.book.entry(share).lease.expect("a chosen share has a lease");
            let lease = self.lease_of(share);
            let up = |slice: &&Slice| self.nodes.get(slice.node).state == NodeState::Up;
            let usable = lease.placement.0.iter().filter(up);
            let bound = (self.fixed)(id, lease) || (self.young)(lease);
            if bound || usable.clone().next().is_none() {
                // Those who wait to join count, and those who are about to leave do not.
                let jobs = &self.book.entry(share).jobs;
                let pieces = spot_of(self.nodes, &Placement(usable.copied().collect()));
                counts.take(jobs, pieces.iter().map(|piece| (piece.kind, piece.count)));
                stays[share.0 as usize] = true;
            }
        }
    }
}
