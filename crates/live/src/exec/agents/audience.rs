//! Who a cluster runs jobs for: everybody, where its agents are root, or the one user whose own agents they are. It is
//! one or the other, because a job must be able to run on every node that it may be given.

use super::peers::Peers;
use crate::exec::OnlyFor;
use crate::wire::{Audience, Hello, OnlyUser};

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

/// Whether an agent runs jobs for the same users as it did before and as all nodes on record do, whether they are there
/// or not. A newcomer never decides for the others who the cluster is for, however early it comes after a start.
pub(super) fn check(peers: &Peers, hello: &Hello) -> Result<(), String> {
    let (name, new) = (&hello.name, Audience::of(hello));
    if let Some(known) = peers.audience_of(name) {
        return if known.is_same(&new) { Ok(()) } else { Err(changed(name, known, &new)) };
    }
    let mut others = peers.on_record().filter(|(other, ..)| *other != name);
    others.try_for_each(|(other, audience, lost)| meet((name, &new), (other, audience.as_ref()), lost))
}

/// The one user whose jobs are run, as the driver says it to others.
pub(super) fn only(peers: &Peers) -> Option<OnlyFor> {
    let only = peers.connected().find_map(|peer| match &peer.audience {
        Some(Audience::One(only)) => Some(only),
        _ => None,
    })?;
    let because = format!(
        "{}. An agent that runs as root, with its data in a folder such as /var/lib/yard-agent, runs jobs of all users.",
        only.why
    );
    Some(OnlyFor { user: only.name.clone(), because })
}

fn changed(name: &str, known: &Audience, new: &Audience) -> String {
    let (known, new) = (known.words(), new.words());
    format!(
        "node {name} runs {new}, but ran {known} before; if that change is intended, remove the node first: \
         yard nodes rm {name}"
    )
}

/// Whether a node that is not on record goes with one that is.
fn meet(
    (name, new): (&str, &Audience),
    (other, audience): (&str, Option<&Audience>),
    lost: bool,
) -> Result<(), String> {
    match audience {
        None if *new != Audience::Everybody && !lost => {
            let new = new.words();
            Err(format!(
                "this node runs {new}, and node {other} has not reported yet whose jobs it runs; retrying until \
                 that node is back or given up"
            ))
        }
        Some(known) if !known.is_same(new) => {
            let (new, known) = (new.words(), known.words());
            Err(format!(
                "node {name} runs {new}, but node {other} runs {known}; all agents of a cluster must run jobs \
                 of the same users: run them all as root, or all as one user. If {other} is gone for good: yard \
                nodes rm {other}"
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use yard_core::ids::AgentId;
    use yard_core::units::Span;

    use super::*;
    use crate::exec::{HostId, SurvivedHost};
    use crate::wire::{WIRE_VERSION, WireAbilities};

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
            abilities: WireAbilities { only_user, ..WireAbilities::default() },
            host: String::new(),
            resources: std::collections::BTreeMap::new(),
            domains: yard_core::cluster::DomainPath::default(),
        }
    }

    /// A cluster with one agent that runs jobs for this audience, if it has said so.
    fn cluster(audience: Option<Audience>) -> Peers {
        let mut peers = Peers::default();
        peers.restore(Span::ZERO, survivor(0, "n1", audience));
        peers
    }

    fn survivor(host: u32, name: &str, audience: Option<Audience>) -> SurvivedHost {
        let (host, name, address) = (HostId(host), name.into(), String::new());
        SurvivedHost { host, name, address, groups: vec![], audience, lost: false }
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
    fn an_agent_may_not_change_and_those_that_are_down_count() {
        let mut all = cluster(Some(Audience::Everybody));
        let changed = check(&all, &hello("n1", one("ada"))).unwrap_err();
        assert!(changed.contains("yard nodes rm n1"), "{changed}");
        all.get_mut(AgentId(0)).unwrap().lost = true;
        assert!(check(&all, &hello("n2", one("ada"))).is_err());
        all.get_mut(AgentId(0)).unwrap().removing = true;
        assert_eq!(check(&all, &hello("n2", one("ada"))), Ok(()), "it was removed");
    }

    #[test]
    fn a_node_of_one_user_waits_for_those_of_which_nothing_is_on_record() {
        // As after an update from a version that did not keep it.
        let mut unknown = cluster(None);
        assert_eq!(check(&unknown, &hello("n1", one("ada"))), Ok(()), "it is the only one");
        assert_eq!(check(&unknown, &hello("n2", None)), Ok(()));
        let early = check(&unknown, &hello("n2", one("ada"))).unwrap_err();
        assert!(early.contains("node n1 has not reported yet"), "{early}");
        unknown.restore(Span::ZERO, survivor(1, "n2", None));
        assert!(check(&unknown, &hello("n2", one("ada"))).is_err(), "known or not");
        unknown.get_mut(AgentId(0)).unwrap().lost = true;
        assert_eq!(check(&unknown, &hello("n2", one("ada"))), Ok(()), "it was given up");
    }
}
