//! What must always hold. `check` visits everything and is called now and then in production, after
//! every step under fuzz; assertions on single steps stand where the step is (`cluster`, `leases`,
//! `job`). A broken invariant is a bug: better to stop than to give a device twice.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{Amounts, Mask, Nodes, Slice};
use crate::gate::Gate;
use crate::ids::{JobId, JobIdx, LeaseId, ShareId};
use crate::job::{JobState, Shape};
use crate::leases::{Lease, LeaseState};
use crate::policy::Placer;
use crate::state::State;
use crate::units::Time;

/// Checks everything that can be read off a state.
pub(crate) fn check(state: &State) {
    devices_held_once(state);
    gangs_whole(state);
    shares_at_most_one(state);
    no_job_lost(state);
    held_back_ask_for_nothing(state);
    followers_wait(state);
    work_conserved(state);
    homes_known(state);
}

/// No device is held twice or promised twice, and the nodes' account is the leases' account.
fn devices_held_once(state: &State) {
    let mut held: Vec<Mask> = vec![0; state.nodes.len()];
    let mut promised: Vec<Mask> = vec![0; state.nodes.len()];
    for (id, lease) in state.leases.iter() {
        for slice in &lease.placement.0 {
            let at = slice.node.index();
            if lease.state != LeaseState::Promised {
                assert!(held[at] & slice.mask == 0, "lease {id}: a device of node {at} is held twice");
                held[at] |= slice.mask;
            }
            if lease.state != LeaseState::Ending {
                assert!(
                    promised[at] & slice.mask == 0,
                    "lease {id}: a device of node {at} is promised twice"
                );
                promised[at] |= slice.mask;
            }
        }
    }
    hosts_never_oversubscribed(state);
    for (id, node) in state.nodes.iter() {
        assert!(held[id.index()] == node.all() & !node.idle, "node {id}: held devices do not match");
        assert!(promised[id.index()] == node.all() & !node.free, "node {id}: promised devices do not match");
        assert!(
            promised[id.index()] & node.bad == 0,
            "node {id}: a device that is out of service is promised"
        );
    }
}

/// Nobody has more of a host than there is, and the nodes' account is the leases' account.
fn hosts_never_oversubscribed(state: &State) {
    let mut held = vec![Amounts::NONE; state.nodes.len()];
    let mut promised = held.clone();
    let add = |sums: &mut Vec<Amounts>, slice: &Slice| {
        sums[slice.node.index()] = sums[slice.node.index()].plus(&slice.host);
    };
    for (_, lease) in state.leases.iter() {
        if lease.state != LeaseState::Promised {
            lease.placement.0.iter().for_each(|slice| add(&mut held, slice));
        }
        if lease.state != LeaseState::Ending {
            lease.placement.0.iter().for_each(|slice| add(&mut promised, slice));
        }
    }
    for (id, node) in state.nodes.iter() {
        let (held, promised) = (held[id.index()], promised[id.index()]);
        assert!(node.spec.host.covers(&held), "node {id}: more of its host is held than there is");
        assert!(node.spec.host.covers(&promised), "node {id}: more of its host is promised than there is");
        assert!(node.host_idle() == node.spec.host.minus(&held), "node {id}: held amounts do not match");
        assert!(
            node.host_free() == node.spec.host.minus(&promised),
            "node {id}: promised amounts do not match"
        );
    }
}

/// Each lease has exactly the devices of its shape, and its jobs know it.
fn gangs_whole(state: &State) {
    for (id, lease) in state.leases.iter() {
        let Some(job) = lease.jobs.first() else { panic!("lease {id} has no job") };
        let shape = &state.specs[job.index()].shapes[lease.shape as usize];
        for need in &shape.needs {
            let of_kind = |slice: &Slice| slice.mask & state.nodes.get(slice.node).of_kind(need.kind);
            let devices: u32 = lease.placement.0.iter().map(|slice| of_kind(slice).count_ones()).sum();
            assert!(
                devices == need.devices,
                "lease {id}: {devices} devices where {} make the gang",
                need.devices
            );
        }
        if lease.state != LeaseState::Promised {
            for job in &lease.jobs {
                let run = state.run(*job);
                assert!(
                    run.lease == Some(id) && run.devices > 0,
                    "lease {id}: job {} does not hold it",
                    run.id
                );
            }
        }
    }
}

/// The shares in force of one job add up to at most one, and at most one of them has a lease.
fn shares_at_most_one(state: &State) {
    for row in state.rows.values() {
        let shares = state.book.shares_of(*row).iter().map(|share| state.book.entry(*share));
        let (sum, leases) = shares.fold((0.0, 0), |(sum, leases), entry| {
            (sum + entry.fraction, leases + entry.lease.is_some() as u32)
        });
        let id = state.run(*row).id;
        assert!(sum <= 1.0 + 1e-6, "job {id}: its shares add up to {sum}");
        assert!(leases <= 1, "job {id}: {leases} leases at once");
    }
}

/// Every job submitted is either over or on record, in a living state that fits what it holds.
fn no_job_lost(state: &State) {
    let living = state.rows.len() as u64;
    assert!(state.ledger.submitted == state.ledger.ended + living, "a job was lost");
    for (id, row) in state.rows.iter() {
        let run = state.run(*row);
        assert!(run.id == *id && !run.state.is_final(), "job {id}: its row is another's");
        let working = matches!(run.state, JobState::Starting | JobState::Running | JobState::Suspending);
        assert!(working == run.lease.is_some(), "job {id}: {:?} with lease {:?}", run.state, run.lease);
        assert!(
            run.lease.is_none_or(|lease| state.leases.get(lease).is_some()),
            "job {id}: its lease is gone"
        );
    }
}

/// Jobs that are held back wait, are in no share, and come in when their time has come.
fn held_back_ask_for_nothing(state: &State) {
    for (id, row) in state.rows.iter() {
        let run = state.run(*row);
        let Some(until) = run.held_until else { continue };
        assert!(state.delayed.contains(&(until, *row)), "job {id}: held back for ever");
        assert!(run.state.is_waiting(), "job {id}: held back while {:?}", run.state);
        assert!(state.book.shares_of(*row).is_empty(), "job {id}: held back with a share");
    }
    for (id, row) in state.rows.iter() {
        let run = state.run(*row);
        let aside = run.held_until == Some(Time::NEVER);
        let why = run.held || state.after.awaits(*row);
        assert!(!aside || why, "job {id}: nothing will let it in");
        let asks = run.state.is_waiting() && run.held_until.is_none();
        assert!(!(run.held && asks), "job {id}: held, and asks for devices");
        assert!(
            !(run.held && run.promise.is_some() && run.held_until.is_some()),
            "job {id}: held, with a promise"
        );
    }
    let held = state.rows.values().filter(|row| state.run(**row).held_until.is_some()).count();
    assert!(held == state.delayed.len(), "a job that is not held back is to come in");
}

/// A job whose predecessors have not all succeeded is held back for ever, and each of them knows it; no other job
/// names one that is on record.
fn followers_wait(state: &State) {
    let mut waits: Vec<(JobId, JobIdx)> = Vec::new();
    for (id, row) in state.rows.iter() {
        let after = &state.specs[row.index()].after;
        let awaited: BTreeSet<JobId> =
            after.iter().copied().filter(|job| state.rows.contains_key(job)).collect();
        assert!(awaited.is_empty() || state.after.awaits(*row), "job {id}: asks for devices before its time");
        waits.extend(awaited.into_iter().map(|job| (job, *row)));
    }
    let mut counts: BTreeMap<JobIdx, usize> = BTreeMap::new();
    waits.iter().for_each(|(_, row)| *counts.entry(*row).or_default() += 1);
    for (row, left) in state.after.left() {
        let run = state.run(row);
        assert!(run.held_until == Some(Time::NEVER), "job {}: waits for others and is not held back", run.id);
        let awaited = counts.get(&row).copied().unwrap_or(0);
        assert!(awaited == left as usize && left > 0, "job {}: waits for {left}, not {awaited}", run.id);
    }
    let known = state.after.followers().flat_map(|(job, rows)| rows.iter().map(move |row| (job, *row)));
    let known: BTreeSet<_> = known.collect();
    assert!(known == waits.iter().copied().collect(), "a job waits for one that does not know it");
}

/// Jobs that lie frozen wait, and are known to.
fn homes_known(state: &State) {
    for (id, row) in state.rows.iter() {
        let run = state.run(*row);
        assert!(run.home.is_some() == state.resting.contains(row), "job {id}: a home that nobody knows of");
        assert!(run.home.is_none() || run.state.is_waiting(), "job {id}: at home and {:?}", run.state);
    }
    let known = state.rows.values().filter(|row| state.resting.contains(row)).count();
    assert!(known == state.resting.len(), "a job that is over lies frozen");
}

/// Device time by the leases' account equals device time by the jobs' account.
fn work_conserved(state: &State) {
    let living: u64 = state.rows.values().map(|row| state.run(*row).attained).sum();
    assert!(state.ledger.leased == state.ledger.ended_attained + living, "device time was lost or made up");
}

/// The job of the first share of all, if that waits.
pub(crate) fn waiting_head(state: &State, first: Option<ShareId>) -> Option<JobId> {
    let first = state.book.entry(first?);
    first.lease.is_none().then(|| state.run(first.jobs[0]).id)
}

/// A feasible job that nothing outranks runs: at once where it may stop others and devices lie together,
/// at the latest after the round that places everybody anew.
pub(crate) fn head_runs(
    state: &State,
    placer: &dyn Placer,
    first: Option<ShareId>,
    repacked: bool,
    gate: &Gate,
) {
    let waits = waiting_head(state, first).is_some();
    let Some(first) = first.filter(|_| waits && ((state.preempts() && repacked) || state.leases.is_empty()))
    else {
        return;
    };
    // Its job may run through another of its shares, on a node that drains and so keeps it.
    if state.book.taken_elsewhere(first) {
        return;
    }
    // One that could not be stopped waits for what was promised to others.
    if gate.concerns(&state.book.entry(first).jobs) {
        return;
    }
    // One that lies frozen waits for its home.
    if state.book.entry(first).jobs.iter().any(|job| state.resting.contains(job)) {
        return;
    }
    // Gangs that span nodes and may not be stopped keep others that do off their nodes.
    let spans = |(id, lease): (LeaseId, &Lease)| state.is_kept(id, lease) && lease.placement.spans_nodes();
    if state.settings.apart && state.leases.iter().any(spans) {
        return;
    }
    let class = state.book.class(state.book.entry(first).class);
    let empty = emptied(state);
    let feasible = |shape: &Shape| placer.lay(&empty, shape).is_some();
    let fits = class.options.iter().any(|option| feasible(&class.shapes[*option as usize]));
    assert!(!fits, "share {first:?} is first, feasible, and was passed over");
}

/// The nodes as they would be with nothing on them but what may not be stopped.
fn emptied(state: &State) -> Nodes {
    let mut empty = state.nodes.emptied();
    let fixed = state.leases.iter().filter(|(id, lease)| state.is_kept(*id, lease));
    fixed.for_each(|(_, lease)| empty.promise(&lease.placement));
    empty
}
