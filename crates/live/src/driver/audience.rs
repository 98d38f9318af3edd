//! Who a cluster runs jobs for: everybody, where its agents are root, or the one user whose own agents they are. It is
//! one or the other, because a job must be able to run on every node that it may be given.

use super::Driver;
use super::agents::{Agent, Agents};
use crate::handle::Refusal;
use crate::wire::{Hello, OnlyUser};
use yard_core::cluster::NodeState;

/// Who an agent runs jobs for, as it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// All users.
    Everybody,
    /// One user.
    One(OnlyUser),
}

impl Audience {
    /// That of an agent that comes.
    pub(super) fn of(hello: &Hello) -> Audience {
        hello.abilities.only_user.clone().map_or(Audience::Everybody, Audience::One)
    }

    /// Whether a job may run on both. The reasons may differ.
    fn is_same(&self, other: &Audience) -> bool {
        match (self, other) {
            (Audience::Everybody, Audience::Everybody) => true,
            (Audience::One(one), Audience::One(other)) => one.name == other.name,
            _ => false,
        }
    }

    fn words(&self) -> String {
        match self {
            Audience::Everybody => "jobs of all users".into(),
            Audience::One(OnlyUser { name, why }) => format!("only jobs of {name} ({why})"),
        }
    }
}

impl Driver {
    /// Refuses jobs of users whom no agent here would run them for.
    pub(super) fn serves(&self, user: &str) -> Result<(), Refusal> {
        let there = self.agents.list.iter().filter(|agent| agent.link.is_some());
        let only = there.filter_map(|agent| match &agent.audience {
            Some(Audience::One(only)) if only.name != user => Some(only),
            _ => None,
        });
        only.map(|OnlyUser { name, why }| {
            Err(Refusal::Forbidden(format!(
                "This cluster runs only jobs of {name}: {why}. \
                 An agent that runs as root, with its data in a folder such as /var/lib/yard-agent, runs jobs of all users."
            )))
        })
        .next()
        .unwrap_or(Ok(()))
    }
}

/// Whether an agent runs jobs for the same users as those that are known and not given up. After a start of the server
/// these have to come back first: a new node must not decide for all who the cluster is for.
pub(super) fn check(agents: &Agents, hello: &Hello) -> Result<(), String> {
    let new = Audience::of(hello);
    let is_known = agents.named(&hello.name).is_some();
    let counts = |agent: &&Agent| agent.name != hello.name && agent.state != NodeState::Down;
    for agent in agents.list.iter().filter(counts) {
        if agent.audience.is_none() && !is_known && new != Audience::Everybody {
            let (new, other) = (new.words(), &agent.name);
            return Err(format!(
                "this node runs {new}, and node {other} has not said yet who it runs jobs for; \
                 it is tried again until that node is back or given up"
            ));
        }
        let Some(known) = agent.audience.as_ref().filter(|known| !known.is_same(&new)) else { continue };
        let (name, other) = (&hello.name, &agent.name);
        let (new, known) = (new.words(), known.words());
        return Err(format!(
            "node {name} runs {new}, but node {other} runs {known}; \
             all agents of a cluster must run jobs of the same users: run them all as root, or all as one user"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use yard_core::units::Span;

    use super::*;
    use crate::store::NodeRow;
    use crate::wire::{Abilities, WIRE_VERSION};

    fn one(name: &str) -> Option<OnlyUser> {
        Some(OnlyUser { name: name.into(), why: "its agent does not run as root".into() })
    }

    fn hello(name: &str, only_user: Option<OnlyUser>) -> Hello {
        Hello {
            version: WIRE_VERSION,
            name: name.into(),
            address: String::new(),
            groups: vec![],
            parts: vec![],
            paused: vec![],
            abilities: Abilities { only_user, ..Abilities::default() },
            host: String::new(),
        }
    }

    /// A cluster with one agent that runs jobs for this audience, if it has said so.
    fn cluster(audience: Option<Audience>) -> Agents {
        let row = NodeRow { name: "n1".into(), address: String::new(), groups: vec![], drain: None };
        let mut agents = Agents::default();
        let id = agents.add(Agent::new(row, vec![], Span::ZERO));
        agents.get_mut(id).audience = audience;
        agents
    }

    #[test]
    fn a_cluster_runs_jobs_of_everybody_or_of_one() {
        let (all, ada) = (cluster(Some(Audience::Everybody)), cluster(one("ada").map(Audience::One)));
        assert_eq!(check(&all, &hello("n2", None)), Ok(()));
        assert_eq!(check(&ada, &hello("n2", one("ada"))), Ok(()));
        let refused = check(&all, &hello("n2", one("ada"))).unwrap_err();
        assert!(
            refused.contains("node n2 runs only jobs of ada") && refused.contains("node n1 runs jobs of all")
        );
        assert!(check(&ada, &hello("n2", None)).unwrap_err().contains("does not run as root"));
        assert!(check(&ada, &hello("n2", one("bob"))).is_err());
    }

    #[test]
    fn an_agent_may_change_and_those_that_are_gone_or_not_yet_back_do_not_count() {
        let mut all = cluster(Some(Audience::Everybody));
        assert_eq!(check(&all, &hello("n1", one("ada"))), Ok(()), "it is the same one");
        all.list[0].state = NodeState::Down;
        assert_eq!(check(&all, &hello("n2", one("ada"))), Ok(()));
        // After a start of the server, those that were there before come back in any order.
        assert_eq!(check(&cluster(None), &hello("n1", one("ada"))), Ok(()));
        assert_eq!(check(&cluster(None), &hello("n2", None)), Ok(()));
        let early = check(&cluster(None), &hello("n2", one("ada"))).unwrap_err();
        assert!(early.contains("node n1 has not said yet"), "{early}");
    }
}
