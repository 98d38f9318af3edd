//! Leases: who may use which devices. A lease is promised when a round decides it, granted when its
//! devices are idle, ending once it is revoked, and gone when its last job gave the devices back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

use crate::cluster::Placement;
use crate::ids::{JobIdx, LeaseId, NodeId, ShareId};
use crate::job::JobSpec;
use crate::rising::{Rising, as_set};
use crate::table::Table;
use crate::units::Time;

/// How far a lease has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LeaseState {
    /// Decided; its devices are still in others' hands.
    Promised,
    /// Its jobs hold the devices.
    Granted,
    /// Its jobs were told to stop; the devices are promised onwards.
    Ending,
}

/// The right of a group to some devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lease {
    pub(crate) share: ShareId,
    pub(crate) jobs: SmallVec<[JobIdx; 1]>,
    pub(crate) shape: u16,
    pub(crate) placement: Placement,
    pub(crate) state: LeaseState,
    pub(crate) granted_at: Time,
    pub(crate) until: Time,
}

impl Lease {
    /// Whether it is not stopped for others: one of its jobs holds devices and may not be stopped.
    pub(crate) fn is_fixed(&self, specs: &[Arc<JobSpec>]) -> bool {
        self.state == LeaseState::Granted && self.jobs.iter().any(|job| !specs[job.index()].pausable)
    }

    /// Whether it is what its job was promised for now: `due` has the shapes.
    pub(crate) fn is_due(&self, due: &BTreeMap<JobIdx, u16>) -> bool {
        let alone = self.jobs.len() == 1 && self.state != LeaseState::Ending;
        alone && due.get(&self.jobs[0]) == Some(&self.shape)
    }

    /// Those who are about to leave come last, so that the lease is named by the shapes of one who stays.
    pub(crate) fn put_last(&mut self, leavers: &[JobIdx], specs: &[Arc<JobSpec>]) {
        let led = self.jobs[0];
        self.jobs.sort_by_key(|job| leavers.contains(job));
        self.shape = own_way(specs, led, self.jobs[0], self.shape);
    }

    /// A job leaves the group; the shape is then named by the list of who is first.
    pub(crate) fn drop_job(&mut self, job: JobIdx, specs: &[Arc<JobSpec>]) {
        let led = self.jobs.first() == Some(&job);
        self.jobs.retain(|member| *member != job);
        if let Some(lead) = self.jobs.first().filter(|_| led) {
            self.shape = own_way(specs, job, *lead, self.shape);
        }
    }
}

/// The shape of `lead` that takes the same devices as this one of `job`. Jobs of a group have one.
pub(crate) fn own_way(specs: &[Arc<JobSpec>], job: JobIdx, lead: JobIdx, shape: u16) -> u16 {
    let (from, to) = (&specs[job.index()], &specs[lead.index()]);
    // By value: a restored state has equal lists in other places.
    if job == lead || from.shapes == to.shapes {
        return shape;
    }
    to.way(&from.shapes[shape as usize]).expect("jobs of a group take the same devices")
}

/// All leases that are not over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Leases {
    all: Table<Lease>,
    next: u64,
    /// Promised leases by node, so that freed devices find who waits for them.
    promised: ByNode,
    /// Granted leases by the time at which they lapse, which rises as they are granted and renewed.
    #[serde(with = "as_set")]
    lapses: Rising<(Time, LeaseId), ()>,
}

/// Leases by node.
#[derive(Clone, Debug, Default)]
struct ByNode(Vec<SmallVec<[LeaseId; 2]>>);

impl ByNode {
    fn insert(&mut self, node: NodeId, lease: LeaseId) {
        if self.0.len() <= node.index() {
            self.0.resize_with(node.index() + 1, SmallVec::new);
        }
        self.0[node.index()].push(lease);
    }

    fn remove(&mut self, node: NodeId, lease: LeaseId) {
        self.0[node.index()].retain(|other| *other != lease);
    }

    fn on(&self, node: NodeId) -> &[LeaseId] {
        self.0.get(node.index()).map_or(&[], |leases| leases)
    }

    /// All of them in order.
    fn pairs(&self) -> BTreeSet<(NodeId, LeaseId)> {
        let nodes = (0..).map(NodeId).zip(&self.0);
        nodes.flat_map(|(node, leases)| leases.iter().map(move |lease| (node, *lease))).collect()
    }
}

impl PartialEq for ByNode {
    fn eq(&self, other: &ByNode) -> bool {
        self.pairs() == other.pairs()
    }
}

impl Serialize for ByNode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.pairs().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ByNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByNode, D::Error> {
        let mut all = ByNode::default();
        let pairs = BTreeSet::<(NodeId, LeaseId)>::deserialize(deserializer)?;
        pairs.into_iter().for_each(|(node, lease)| all.insert(node, lease));
        Ok(all)
    }
}

impl Leases {
    #[inline]
    pub(crate) fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: LeaseId) -> Option<&mut Lease> {
        self.all.get_mut(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.all.iter().map(|(id, lease)| (*id, lease))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The number that the next lease will have.
    pub(crate) fn next(&self) -> LeaseId {
        LeaseId(self.next)
    }

    /// Records a promise.
    pub(crate) fn promise(&mut self, lease: Lease) -> LeaseId {
        let id = self.next();
        self.next += 1;
        assert!(lease.state == LeaseState::Promised, "a lease begins as a promise");
        lease.placement.0.iter().for_each(|slice| self.promised.insert(slice.node, id));
        self.all.insert(id, lease);
        id
    }

    /// Promised leases that wait for devices of these nodes.
    pub(crate) fn promised_on(&self, placement: &Placement) -> SmallVec<[LeaseId; 4]> {
        let nodes = placement.0.iter().flat_map(|slice| self.promised.on(slice.node));
        let mut leases: SmallVec<[LeaseId; 4]> = nodes.copied().collect();
        leases.sort_unstable();
        leases.dedup();
        leases
    }

    /// Promised leases that wait for devices of a node.
    pub(crate) fn promised_on_node(&self, node: NodeId) -> &[LeaseId] {
        self.promised.on(node)
    }

    /// Turns a promise into a grant.
    pub(crate) fn grant(&mut self, id: LeaseId, now: Time, until: Time) {
        let lease = self.all.get_mut(&id).expect("a promised lease is on record");
        assert!(lease.state == LeaseState::Promised, "lease {id} granted twice");
        (lease.state, lease.granted_at, lease.until) = (LeaseState::Granted, now, until);
        for slice in &lease.placement.0 {
            self.promised.remove(slice.node, id);
        }
        self.lapses.insert((until, id), ());
    }

    /// Marks a granted lease as ending.
    pub(crate) fn end(&mut self, id: LeaseId) {
        let lease = self.all.get_mut(&id).expect("a granted lease is on record");
        assert!(lease.state == LeaseState::Granted, "lease {id} revoked twice");
        lease.state = LeaseState::Ending;
        self.lapses.remove(&(lease.until, id));
    }

    /// Takes a lease off the record: the one place where it ends.
    pub(crate) fn remove(&mut self, id: LeaseId) -> Lease {
        let lease = self.all.remove(&id).expect("each lease is freed once");
        match lease.state {
            LeaseState::Promised => {
                lease.placement.0.iter().for_each(|slice| self.promised.remove(slice.node, id));
            }
            LeaseState::Granted => _ = self.lapses.remove(&(lease.until, id)),
            LeaseState::Ending => {}
        }
        lease
    }

    /// When the next lease lapses.
    pub(crate) fn next_lapse(&self) -> Option<Time> {
        self.lapses.first().map(|((time, _), ())| *time).filter(|time| *time < Time::NEVER)
    }

    /// Extends all leases that lapse by `by`; returns them.
    pub(crate) fn renew(&mut self, by: Time, until: Time) -> Vec<LeaseId> {
        let mut renewed = Vec::new();
        while let Some((time, id)) = self.lapses.first().map(|(key, ())| *key).filter(|(time, _)| *time <= by)
        {
            self.lapses.remove(&(time, id));
            self.lapses.insert((until, id), ());
            self.all.get_mut(&id).expect("a granted lease is on record").until = until;
            renewed.push(id);
        }
        renewed
    }
}
