//! A round: from shares to who runs where. Shares are taken in order; each gets its devices if enough
//! are left, counting those of shares behind it where it may stop them. Who keeps its devices is left
//! alone. The work grows with what changes hands and the number of distinct demands, not with all jobs.
//! Shares of time are another matter, see `sharing`: their order is new in each round.

mod apart;
mod seating;
mod sharing;
mod turning;

pub(crate) use self::seating::{Seat, seat};
use std::collections::BTreeSet;

use smallvec::SmallVec;

pub(crate) use self::turning::Turning;
use crate::allocation::Mode;
use crate::book::{Book, Key};
use crate::cluster::{NodeState, Nodes, Placement, Slice};
use crate::gate::Gate;
use crate::ids::{JobIdx, KindId, LeaseId, ShareId};
use crate::job::{JobRun, Need, Shape};
use crate::leases::{Lease, LeaseState, Leases};
use crate::policy::Placer;
use crate::units::Time;

/// Times that another place is looked for where a share would be in the way of who was promised its devices.
const DETOURS_MAX: usize = 8;

/// What a round decided; promises are already on record.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// New promises, in order.
    pub(crate) promised: Vec<LeaseId>,
    /// Leases to end.
    pub(crate) ended: Vec<LeaseId>,
    /// Whether some share had enough devices by count, but not in one place.
    pub(crate) fragmented: bool,
    /// The first share of all.
    pub(crate) head: Option<ShareId>,
}

/// What a round works on.
pub(crate) struct Parts<'a> {
    pub(crate) book: &'a mut Book,
    pub(crate) nodes: &'a mut Nodes,
    pub(crate) leases: &'a mut Leases,
    pub(crate) placer: &'a dyn Placer,
    /// Whether a lease is too young to be stopped.
    pub(crate) young: &'a dyn Fn(&Lease) -> bool,
    /// Whether a lease is never stopped for others.
    pub(crate) fixed: &'a dyn Fn(LeaseId, &Lease) -> bool,
    /// For the order of shares of time.
    pub(crate) turning: Turning,
    /// Where jobs lie frozen.
    pub(crate) homes: Homes<'a>,
    /// Who may start where, though it could not be stopped when others have been promised its devices.
    pub(crate) gate: &'a Gate,
    /// Whether at most one gang that spans nodes may lie on a node.
    pub(crate) apart: bool,
}

/// Where jobs lie frozen: those go on there or not at all.
#[derive(Clone, Copy)]
pub(crate) struct Homes<'a> {
    pub(crate) resting: &'a BTreeSet<JobIdx>,
    pub(crate) runs: &'a [JobRun],
}

impl Homes<'_> {
    /// Where a group must lie, if one of it lies frozen.
    fn of(&self, jobs: &[JobIdx]) -> Option<Placement> {
        let resting = jobs.iter().find(|job| !self.resting.is_empty() && self.resting.contains(job))?;
        self.runs[resting.index()].home.as_deref().cloned()
    }
}

/// Gives free devices to waiting shares in order, and stops nobody.
pub(crate) fn fill(parts: Parts<'_>) -> Vec<LeaseId> {
    let mut round = Round::new(parts, false);
    match round.book.mode {
        Mode::Ordered { skip, .. } => round.fill_with(false, skip),
        Mode::Fractions | Mode::Capped => round.fill_in(round.waiting()),
    }
    round.finish().promised
}

/// Decides one round.
pub(crate) fn decide(parts: Parts<'_>, repack: bool) -> Decision {
    let mut round = Round::new(parts, repack);
    match round.book.mode {
        Mode::Ordered { preempt, skip, .. } => {
            round.decision.head = round.book.first().map(|key| key.share);
            if repack {
                round.clear();
            }
            round.fill_with(preempt, skip);
        }
        Mode::Fractions | Mode::Capped => {
            let mut order = round.turning.order(round.book);
            round.decision.head = order.first().filter(|share| !round.stays_out(*share));
            round.share_out(order);
        }
    }
    round.finish()
}

struct Round<'a> {
    book: &'a mut Book,
    nodes: &'a mut Nodes,
    leases: &'a mut Leases,
    placer: &'a dyn Placer,
    young: &'a dyn Fn(&Lease) -> bool,
    fixed: &'a dyn Fn(LeaseId, &Lease) -> bool,
    turning: Turning,
    homes: Homes<'a>,
    gate: &'a Gate,
    apart: bool,
    repack: bool,
    /// Shares whose leases were taken from them in this round; one that comes back finds its own in its entry.
    stopped: Vec<ShareId>,
    decision: Decision,
}

impl<'a> Round<'a> {
    fn new(parts: Parts<'a>, repack: bool) -> Round<'a> {
        let Parts { book, nodes, leases, placer, young, fixed, turning, homes, gate, apart } = parts;
        let (stopped, decision) = (Vec::new(), Decision::default());
        Round {
            book,
            nodes,
            leases,
            placer,
            young,
            fixed,
            turning,
            homes,
            gate,
            apart,
            repack,
            stopped,
            decision,
        }
    }

    /// Takes waiting shares in order, class by class, until none fits.
    fn fill_with(&mut self, preempt: bool, skip: bool) {
        let mut cursors: Vec<Cursor> = vec![Cursor::Start; self.book.n_classes()];
        while let Some((class, key)) = self.next(&cursors) {
            if self.book.taken_elsewhere(key.share) {
                cursors[class] = Cursor::After(key);
            } else if !self.try_choose(key, preempt) {
                // What does not fit here, fits no later share of this class: less is left for those. One that waits
                // for its home, or may not start, says nothing about others.
                let bound = self.home(key.share).is_some() || self.is_gated(key.share);
                cursors[class] = if bound { Cursor::After(key) } else { Cursor::Closed };
                if !skip {
                    return;
                }
            }
        }
    }

    /// The first waiting share of all classes that are still open.
    fn next(&self, cursors: &[Cursor]) -> Option<(usize, Key)> {
        let heads = cursors.iter().enumerate().filter_map(|(class, cursor)| match cursor {
            Cursor::Closed => None,
            Cursor::Start => Some((class, self.book.head(class, None)?)),
            Cursor::After(key) => Some((class, self.book.head(class, Some(*key))?)),
        });
        heads.min_by_key(|(_, key)| *key)
    }

    /// Gives a share devices, its own old ones if it can, and stops shares behind it if it may.
    fn try_choose(&mut self, key: Key, preempt: bool) -> bool {
        let class = self.book.class(self.book.entry(key.share).class);
        let (shapes, options) = (class.shapes.clone(), class.options.clone());
        if !self.crosses_at_home(key.share) && self.return_to_own(key.share) {
            return true;
        }
        for option in &options {
            if let Some(placement) = self.place(key.share, *option, &shapes[*option as usize]) {
                self.promise(key.share, *option, placement);
                return true;
            }
        }
        preempt && options.iter().any(|option| self.make_room(key, &shapes[*option as usize], *option))
    }

    /// A share stopped earlier in this round takes its devices back, where they are still free.
    fn return_to_own(&mut self, share: ShareId) -> bool {
        let Some(lease) = self.book.entry(share).stopped else { return false };
        let placement =
            &self.leases.get(lease).expect("a stopped lease is on record until the round ends").placement;
        if self.repack || !self.nodes.are_free(placement) {
            return false;
        }
        self.nodes.promise(placement);
        let shape = self.book.entry(share).held();
        self.take_back(share, lease, shape);
        true
    }

    /// A share has the lease again that was taken from it.
    fn take_back(&mut self, share: ShareId, lease: LeaseId, shape: u16) {
        self.book.entry_mut(share).stopped = None;
        self.book.choose(share, lease, shape);
    }

    /// Whether it may not start just anywhere.
    fn is_gated(&self, share: ShareId) -> bool {
        self.gate.concerns(&self.book.entry(share).jobs)
    }

    /// Where a share must lie, because a job of it lies frozen there.
    fn home(&self, share: ShareId) -> Option<Placement> {
        self.homes.of(&self.book.entry(share).jobs)
    }

    fn place(&mut self, share: ShareId, option: u16, shape: &Shape) -> Option<Placement> {
        if let Some(home) = self.home(share) {
            let free = self.nodes.are_free(&home) && self.nodes.suits(&home, shape);
            let enters = |home: &Placement| {
                self.gate.enter(self.nodes, &self.book.entry(share).jobs, option, home).is_ok()
            };
            return Some(home).filter(|home| free && !self.crosses(home) && enters(home));
        }
        if shape.needs.iter().any(|need| self.nodes.free(need.kind) < need.devices) {
            return None;
        }
        let placement = self.lay(shape);
        self.decision.fragmented |= placement.is_none();
        self.let_in(share, option, shape, placement?)
    }

    /// The placement, or another where it would be in the way of who was promised its devices.
    fn let_in(&mut self, share: ShareId, option: u16, shape: &Shape, first: Placement) -> Option<Placement> {
        if !self.is_gated(share) {
            return Some(first);
        }
        let jobs = self.book.entry(share).jobs.clone();
        let (mut shut, mut found): (Vec<Placement>, Option<Placement>) = (Vec::new(), Some(first));
        while let Some(placement) = found.take() {
            match self.gate.enter(self.nodes, &jobs, option, &placement) {
                Ok(()) => found = Some(placement),
                Err(nodes) if !nodes.is_empty() && shut.len() < DETOURS_MAX => {
                    let all = nodes.iter().map(|id| Slice::of(*id, self.nodes.get(*id).take_all()));
                    let closed = Placement(all.collect());
                    self.nodes.promise(&closed);
                    shut.push(closed);
                    found = self.lay(shape);
                    continue;
                }
                Err(_) => {}
            }
            break;
        }
        shut.iter().for_each(|closed| self.nodes.release(closed));
        found
    }

    fn promise(&mut self, share: ShareId, shape: u16, placement: Placement) {
        self.nodes.promise(&placement);
        let same = self.book.entry(share).stopped.filter(|old| {
            let lease = self.leases.get(*old).expect("a stopped lease is on record until the round ends");
            lease.placement == placement && self.book.entry(share).held() == shape
        });
        if let Some(lease) = same {
            return self.take_back(share, lease, shape);
        }
        let jobs = SmallVec::from_slice(&self.book.entry(share).jobs);
        let (state, granted_at, until) = (LeaseState::Promised, Time::NEVER, Time::NEVER);
        let lease = self.leases.promise(Lease { share, jobs, shape, placement, state, granted_at, until });
        self.book.choose(share, lease, shape);
        self.decision.promised.push(lease);
    }

    /// Stops shares behind `key`, last first, until `shape` finds its place; stops none if it never does.
    fn make_room(&mut self, key: Key, shape: &Shape, option: u16) -> bool {
        let Some(victims) = self.victims(key, shape) else { return false };
        let mut stopped = victims;
        stopped.iter().for_each(|share| self.stop(*share));
        loop {
            if let Some(placement) = self.place(key.share, option, shape) {
                self.promise(key.share, option, placement);
                return true;
            }
            // Enough by count, but scattered: go on until enough lie together.
            let Some(more) = self.behind(key, shape).next() else { break };
            self.stop(more);
            stopped.push(more);
        }
        for share in stopped.into_iter().rev() {
            assert!(self.return_to_own(share), "nobody took these devices in between");
        }
        false
    }

    /// Chosen shares behind `key` that may be stopped and whose devices `shape` could use, last first.
    fn behind(&self, key: Key, shape: &Shape) -> impl Iterator<Item = ShareId> {
        let behind = self.book.chosen_from_last().take_while(move |other| *other > key);
        let may = move |share: &ShareId| !self.stays(*share) && self.helps(*share, shape);
        behind.map(|other| other.share).filter(may)
    }

    /// Whether a chosen share is not to be stopped in this round.
    fn stays(&self, share: ShareId) -> bool {
        self.is_fixed(share) || (self.young)(self.lease_of(share))
    }

    fn is_fixed(&self, share: ShareId) -> bool {
        let lease = self.book.entry(share).lease.expect("a chosen share has a lease");
        (self.fixed)(lease, self.lease_of(share))
    }

    /// The shares behind `key` that must stop until there are enough devices by count.
    fn victims(&self, key: Key, shape: &Shape) -> Option<Vec<ShareId>> {
        let short = |need: &Need| need.devices as i64 - self.nodes.free(need.kind) as i64;
        let mut missing: SmallVec<[i64; 2]> = shape.needs.iter().map(short).collect();
        let mut victims = Vec::new();
        let mut behind = self.behind(key, shape);
        while missing.iter().any(|count| *count > 0) {
            let share = behind.next()?;
            victims.push(share);
            for (count, need) in missing.iter_mut().zip(&shape.needs) {
                *count -= self.freed(share, need.kind) as i64;
            }
        }
        // Who fits into what is too much, stays: it would only come back, and perhaps to other devices.
        for at in (0..victims.len()).rev() {
            let spared = |(need, count): (&Need, &i64)| *count + self.freed(victims[at], need.kind) as i64;
            let left: SmallVec<[i64; 2]> = shape.needs.iter().zip(&missing).map(spared).collect();
            if left.iter().all(|count| *count <= 0) {
                missing = left;
                victims.remove(at);
            }
        }
        Some(victims)
    }

    /// Usable devices of a kind that stopping a share would free.
    fn freed(&self, share: ShareId, kind: KindId) -> u32 {
        self.placement_of(share).0.iter().map(|slice| self.nodes.usable(slice, kind)).sum()
    }

    /// Whether stopping a share frees anything that `shape` could use.
    fn helps(&self, share: ShareId, shape: &Shape) -> bool {
        let makes_room =
            |slice: &Slice| shape.needs.iter().any(|need| self.nodes.makes_room(slice, need.kind));
        self.placement_of(share).0.iter().any(makes_room)
    }

    fn lease_of(&self, share: ShareId) -> &Lease {
        let lease = self.book.entry(share).lease.expect("a chosen share has a lease");
        self.leases.get(lease).expect("its lease is on record")
    }

    fn placement_of(&self, share: ShareId) -> &Placement {
        &self.lease_of(share).placement
    }

    fn stop(&mut self, share: ShareId) {
        let lease = self.book.unchoose(share).expect("a chosen share has a lease");
        self.nodes.release(&self.leases.get(lease).expect("its lease is on record").placement);
        // Shares are taken in order and stopped from the end, so nobody is stopped in the round that chose it.
        self.book.entry_mut(share).stopped = Some(lease);
        self.stopped.push(share);
    }

    fn clear(&mut self) {
        // A draining node keeps what it runs; none of that would help anybody.
        let up = |slice: &Slice| self.nodes.get(slice.node).state == NodeState::Up;
        let movable = |key: &Key| {
            let lease = self.lease_of(key.share);
            lease.placement.0.iter().any(up) && !self.is_fixed(key.share)
        };
        let chosen: Vec<_> = self.book.chosen_from_last().filter(movable).collect();
        for key in chosen {
            self.stop(key.share);
        }
    }

    fn finish(mut self) -> Decision {
        self.stopped.sort_unstable();
        let Round { book, stopped, .. } = &mut self;
        let ended = stopped.iter().filter_map(|share| book.entry_mut(*share).stopped.take());
        self.decision.ended = ended.collect();
        self.decision
    }
}

#[derive(Clone, Copy)]
enum Cursor {
    Start,
    After(Key),
    Closed,
}
