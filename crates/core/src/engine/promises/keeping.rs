//! How promises are kept: who must have devices now has them, where they were promised.

use std::collections::BTreeSet;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::engine::Engine;
use crate::gate::Gate;
use crate::ids::{JobIdx, LeaseId, ShareId};
use crate::leases::{Lease, LeaseState};
use crate::message::{Effect, Why};
use crate::promise::spot_of;
use crate::rounds;
use crate::state::State;

impl Engine {
    /// Gives devices to all who must have them now, before anybody's order.
    pub(in crate::engine) fn keep_promises(&mut self, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        if !state.settings.promises || state.promises.kept.is_empty() {
            state.promises.due.clear();
            state.promises.bound.clear();
            return;
        }
        state.look_ahead(out);
        self.drop_unplanned(out);
        let mut seats: Vec<rounds::Seat> = Vec::new();
        for (job, shape) in self.state.promises.due.clone() {
            self.state.stay(job, shape);
            seats.extend(self.seat_for(job, shape, out));
        }
        let state = &mut self.state;
        if seats.iter().all(|seat| state.book.entry(seat.share).lease.is_some()) {
            return;
        }
        let kept = state.leases.iter().filter(|(id, lease)| state.is_kept(*id, lease));
        let mut stays: BTreeSet<ShareId> = kept.map(|(_, lease)| lease.share).collect();
        stays.extend(seats.iter().map(|seat| seat.share));
        let turning = state.turning();
        let decision = rounds::seat(
            rounds::Parts {
                book: &mut state.book,
                nodes: Arc::make_mut(&mut state.nodes),
                leases: &mut state.leases,
                placer: &*self.placer,
                young: &|_| false,
                fixed: &|_, lease| stays.contains(&lease.share),
                turning,
                homes: rounds::Homes { resting: &state.resting, runs: &state.runs },
                gate: &Gate::default(),
                apart: state.settings.apart,
            },
            &seats,
        );
        self.carry_out(decision, out);
    }

    /// Who may not be stopped and was planned anew before it had its devices does not get them: it would be in the way
    /// of others for as long as it runs.
    fn drop_unplanned(&mut self, out: &mut Vec<Effect>) {
        let state = &self.state;
        let lost = |(id, lease): &(LeaseId, &Lease)| {
            let waits = lease.state == LeaseState::Promised && !state.promises.bound.contains_key(id);
            waits && state.binds(lease)
        };
        let lost: Vec<_> = state.leases.iter().filter(lost).map(|(id, lease)| (id, lease.share)).collect();
        for (lease, share) in lost {
            self.state.release(lease);
            self.state.book.unchoose(share);
            self.end_lease(lease, Why::Moved, out);
        }
    }

    /// The share through which a job has what it was promised; a new one in the place of all that it had, where none
    /// of those is. None while it may not be stopped where it is, or is not there to run.
    fn seat_for(&mut self, job: JobIdx, shape: u16, out: &mut Vec<Effect>) -> Option<rounds::Seat> {
        let state = &self.state;
        let spot = state.promises.kept.get(&job).and_then(|promise| promise.plan.spots.first())?.clone();
        if !state.run(job).is_active() || state.run(job).cancelled {
            return None;
        }
        let shares: SmallVec<[ShareId; 1]> = SmallVec::from_slice(state.book.shares_of(job));
        let has_it = |share: &ShareId| {
            let lease = state.book.entry(*share).lease.and_then(|id| state.leases.get(id));
            lease.is_some_and(|lease| {
                is_alone_in(lease, job, shape) && spot_of(&state.nodes, &lease.placement) == spot
            })
        };
        if let Some(share) = shares.iter().copied().find(has_it) {
            return Some(rounds::Seat { share, shape, spot });
        }
        if state.run(job).lease.is_some() && state.is_binding(job) {
            return None;
        }
        self.clear_shares(job, &shares, out);
        let state = &mut self.state;
        state.changed.touched.push(job);
        let share = state.book.put_first(job, shape, state.now, &state.specs, &state.runs);
        Some(rounds::Seat { share, shape, spot })
    }

    /// Takes a job out of all its shares; groups that it leaves go on.
    fn clear_shares(&mut self, job: JobIdx, shares: &[ShareId], out: &mut Vec<Effect>) {
        let mut left = Vec::new();
        for share in shares {
            let (lease, alone) =
                (self.state.book.entry(*share).lease, self.state.book.entry(*share).jobs.len() == 1);
            let Some(lease) = lease else { continue };
            if alone {
                self.state.release(lease);
                self.state.book.unchoose(*share);
                self.end_lease(lease, Why::Moved, out);
            } else if let Some(held) = self.state.leases.get_mut(lease) {
                match held.state {
                    LeaseState::Promised => held.drop_job(job, &self.state.specs),
                    LeaseState::Granted | LeaseState::Ending => left.push(lease),
                }
            }
        }
        self.state.book.remove_job(job, &self.state.specs);
        left.into_iter().for_each(|lease| self.regroup(lease, out));
    }
}

impl State {
    /// Who has what it must have, though elsewhere, stays there where nobody else was promised that.
    fn stay(&mut self, job: JobIdx, shape: u16) {
        let leases = self.book.shares_of(job).iter().filter_map(|share| self.book.entry(*share).lease);
        let lease = leases.filter_map(|id| self.leases.get(id)).find(|lease| is_alone_in(lease, job, shape));
        let Some(lease) = lease else { return };
        let spot = spot_of(&self.nodes, &lease.placement);
        let Some(promise) = self.promises.kept.get(&job) else { return };
        let Some((stretch, promised)) = promise.plan.iter().next() else { return };
        if spot == *promised {
            return;
        }
        let lacking = self.ground().lacking(&self.nodes, &spot, (self.now, stretch.until), &[job]);
        if lacking.is_empty()
            && let Some(promise) = self.promises.kept.get_mut(&job)
        {
            promise.plan.spots[0] = spot;
            self.unbind_planned();
        }
    }
}

/// Whether a lease is one job's alone, in this shape.
fn is_alone_in(lease: &Lease, job: JobIdx, shape: u16) -> bool {
    lease.jobs[..] == [job] && lease.shape == shape && lease.state != LeaseState::Ending
}

/// Checks that nothing that was promised is forgotten, and that all of it fits: nowhere and at no time more is spoken
/// for than there is. Costs the order of all stretches, n log n; what happened and was not planned around yet is not
/// looked at.
pub(crate) fn check(state: &State) {
    for job in state.promises.kept.keys() {
        let run = state.run(*job);
        assert!(run.promise.is_some(), "job {}: a plan without a promise", run.id);
    }
    let promised = state.rows.values().filter(|row| state.run(**row).promise.is_some());
    assert!(promised.count() == state.promises.kept.len(), "a promise was forgotten");
    let planned = state.settings.promises && !state.promises.stale;
    let sound = !planned || state.ground().is_sound(&state.nodes, state.now);
    assert!(sound, "more is promised than there is");
}
