//! Where jobs lie stopped in memory, and whether they can go on there.

use std::collections::{BTreeMap, BTreeSet};

use super::{FromGang, GangPart, Gangs, discard};
use crate::ids::{AgentId, JobId};

/// Processes of a job that lie stopped.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resting {
    pub(super) agent: AgentId,
    /// What they were; unknown after a restart of the server.
    pub(super) part: Option<GangPart>,
}

/// Whether stopped processes are what a new lease wants. Where the server does not know them any more, the agent
/// judges, which it can only where it has them all.
pub(super) fn fits(resting: &[Resting], parts: &[GangPart]) -> bool {
    let same = |(rest, part): (&Resting, &GangPart)| match &rest.part {
        Some(old) => old.fits(part),
        None => rest.agent == part.agent && parts.len() == 1,
    };
    resting.len() == parts.len() && resting.iter().zip(parts).all(same)
}

impl GangPart {
    fn fits(&self, other: &GangPart) -> bool {
        let count = |part: &GangPart| -> u32 { part.devices.iter().map(|held| held.mask.count_ones()).sum() };
        let groups = |part: &GangPart| part.devices.iter().map(|held| held.group).collect::<Vec<_>>();
        (self.agent, self.ranks, self.card) == (other.agent, other.ranks, other.card)
            && groups(self) == groups(other)
            && count(self) == count(other)
            && (!self.card || self.devices == other.devices)
    }
}

impl Gangs {
    /// An agent says which jobs lie stopped there.
    pub(super) fn lie(&mut self, agent: AgentId, paused: &BTreeSet<JobId>, out: &mut Vec<FromGang>) {
        // Jobs that are in a gang, and whether they have a part there.
        let mut in_gangs: BTreeMap<JobId, bool> = BTreeMap::new();
        for (part, gang) in self.gangs.iter().filter(|(part, _)| paused.contains(&part.job)) {
            *in_gangs.entry(part.job).or_default() |= gang.place(agent).is_some();
        }
        for job in paused {
            let own = |rest: &Resting| rest.agent == agent;
            if let Some(here) = in_gangs.get(job) {
                if !here {
                    out.push(discard(agent, *job));
                }
            } else if !self.resting.get(job).is_some_and(|rests| rests.iter().any(own)) {
                self.resting.entry(*job).or_default().push(Resting { agent, part: None });
            }
        }
    }

    /// Forgets what lay stopped on an agent and does no more; what the rest of such a gang has elsewhere is of no use.
    pub(super) fn wake(&mut self, agent: AgentId, paused: &BTreeSet<JobId>, out: &mut Vec<FromGang>) {
        let gone = |(job, rests): (&JobId, &Vec<Resting>)| {
            let there = rests.iter().any(|rest| rest.agent == agent);
            (there && !paused.contains(job)).then_some(*job)
        };
        let jobs: Vec<JobId> = self.resting.iter().filter_map(gone).collect();
        for job in jobs {
            let rests = self.resting.remove(&job).unwrap_or_default();
            out.extend(rests.into_iter().map(|rest| discard(rest.agent, job)));
        }
    }
}
