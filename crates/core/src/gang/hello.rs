//! An agent connects and says what it knows: where that differs from what the engine granted, one side gives way.

use std::collections::BTreeSet;

use super::{FromGang, Gangs, unknown};
use crate::ids::{AgentId, JobId};
use crate::part::{PartId, Told};

impl Gangs {
    pub(super) fn hello(
        &mut self,
        agent: AgentId,
        parts: Vec<(PartId, Told)>,
        paused: Vec<JobId>,
        out: &mut Vec<FromGang>,
    ) {
        let paused: BTreeSet<JobId> = paused.into_iter().collect();
        self.wake(agent, &paused, out);
        self.lie(agent, &paused, out);
        let listed: BTreeSet<PartId> = parts.iter().map(|(part, _)| *part).collect();
        for (part, told) in parts {
            self.fact(agent, part, told, out);
        }
        for (part, gang) in &mut self.gangs {
            let Some(at) = gang.place(agent) else { continue };
            if listed.contains(part) {
                gang.remind(*part, at, out);
            } else {
                gang.missing(*part, at, paused.contains(&part.job), out);
            }
            gang.react(*part, out);
        }
    }

    /// Takes note of one line; what follows from all of them comes after.
    fn fact(&mut self, agent: AgentId, part: PartId, told: Told, out: &mut Vec<FromGang>) {
        match self.gangs.get_mut(&part).and_then(|gang| Some((gang.place(agent)?, gang))) {
            Some((at, gang)) => gang.hear(part, at, told, out),
            None => out.extend(unknown(agent, part, &told)),
        }
    }
}
