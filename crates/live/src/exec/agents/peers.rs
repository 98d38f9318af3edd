//! The agents that ever joined, and their connections.

use std::cell::Cell;
use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use yard_core::ids::AgentId;
use yard_core::units::Span;

use super::older::for_version;
use crate::exec::SurvivedHost;
use crate::handle::Reply;
use crate::wire::{Audience, GroupOnWire, Hello, ToAgent, WIRE_VERSION, WireAbilities};

/// An agent on record.
#[derive(Debug)]
pub(super) struct AgentPeer {
    pub(super) name: String,
    pub(super) address: String,
    /// The kinds of its devices, and whether they are cards, which processes keep to themselves.
    pub(super) groups: Vec<(String, bool)>,
    /// What it can do, as it said when it last came.
    pub(super) abilities: WireAbilities,
    /// Who it runs jobs for; none: nothing is on record.
    pub(super) audience: Option<Audience>,
    /// The machine that is connected, as it told itself apart.
    pub(super) machine: String,
    /// The version of the protocol that it speaks.
    version: u32,
    pub(super) link: Option<AgentLink>,
    /// When a beat of it was last answered.
    pub(super) heard: Span,
    /// Whether it has said nothing for too many beats.
    pub(super) silent: bool,
    /// It was silent for so long that its jobs were given up.
    pub(super) lost: bool,
    /// An admin removed it; jobs may still hold its devices.
    pub(super) removing: bool,
}

/// A connection.
#[derive(Debug)]
pub(super) struct AgentLink {
    pub(super) connection: u64,
    sender: mpsc::Sender<ToAgent>,
    /// Whether something did not fit. Nothing is sent after that: what follows a gap would be misunderstood.
    pub(super) full: Cell<bool>,
}

/// An agent that said hello and is not on record yet.
#[derive(Debug)]
pub(super) struct Newcomer {
    pub(super) hello: Hello,
    pub(super) link: mpsc::Sender<ToAgent>,
    pub(super) reply: Reply<u64>,
}

impl AgentPeer {
    pub(super) fn new(name: String, address: String, groups: &[GroupOnWire], now: Span) -> AgentPeer {
        let is_cards = |group: &GroupOnWire| group.devices.iter().any(|device| device.uuid.is_some());
        AgentPeer {
            name,
            address,
            groups: groups.iter().map(|group| (group.kind.clone(), is_cards(group))).collect(),
            abilities: WireAbilities::default(),
            audience: None,
            machine: String::new(),
            version: WIRE_VERSION,
            link: None,
            heard: now,
            silent: false,
            lost: false,
            removing: false,
        }
    }

    /// Sends something, if it is connected.
    fn send(&self, message: ToAgent) {
        let Some(link) = self.link.as_ref().filter(|link| !link.full.get()) else { return };
        // A closed link is told apart by `AgentCall::Disconnect`, and what matters is said again after it.
        if let Err(TrySendError::Full(_)) = link.sender.try_send(for_version(self.version, message)) {
            link.full.set(true);
        }
    }

    /// Whether it can be reached.
    pub(super) fn is_there(&self) -> bool {
        self.link.is_some() && !self.silent
    }

    /// Whether a group's devices are cards.
    pub(super) fn has_cards(&self, group: u32) -> bool {
        self.groups.get(group as usize).is_some_and(|(_, cards)| *cards)
    }
}

/// All agents.
#[derive(Debug, Default)]
pub(super) struct Peers {
    list: BTreeMap<AgentId, AgentPeer>,
    by_name: BTreeMap<String, AgentId>,
    by_connection: BTreeMap<u64, AgentId>,
    connections: u64,
    waiting: BTreeMap<u64, Newcomer>,
    tickets: u64,
}

impl Peers {
    /// One that was on record when the server went down.
    pub(super) fn restore(&mut self, now: Span, known: SurvivedHost) {
        let peer = AgentPeer::new(known.name, known.address, &known.groups, now);
        self.insert(
            super::agent(known.host),
            AgentPeer { audience: known.audience, lost: known.lost, ..peer },
        );
    }

    fn insert(&mut self, id: AgentId, peer: AgentPeer) {
        self.by_name.insert(peer.name.clone(), id);
        self.list.insert(id, peer);
    }

    /// One said hello; the number by which it waits.
    pub(super) fn wait(&mut self, waiting: Newcomer) -> u64 {
        let audience = Audience::of(&waiting.hello);
        let known = self.by_name.get(&waiting.hello.name).and_then(|id| self.list.get_mut(id));
        known.into_iter().for_each(|peer| peer.audience = Some(audience.clone()));
        self.tickets += 1;
        self.waiting.insert(self.tickets, waiting);
        self.tickets
    }

    /// One waits no longer.
    pub(super) fn leave(&mut self, ticket: u64) -> Option<Newcomer> {
        self.waiting.remove(&ticket)
    }

    /// One is on record and connected; its connection's number. A connection that it had before is closed.
    pub(super) fn connect(
        &mut self,
        id: AgentId,
        hello: &Hello,
        sender: mpsc::Sender<ToAgent>,
        now: Span,
    ) -> u64 {
        self.disconnect(id);
        self.connections += 1;
        let connection = self.connections;
        self.by_connection.insert(connection, id);
        let peer = AgentPeer::new(hello.name.clone(), hello.address.clone(), &hello.groups, now);
        let removing = self.get(id).is_some_and(|peer| peer.removing);
        let peer = AgentPeer {
            abilities: hello.abilities.clone(),
            audience: Some(Audience::of(hello)),
            machine: hello.host.clone(),
            version: hello.version,
            link: Some(AgentLink { connection, sender, full: Cell::new(false) }),
            removing,
            ..peer
        };
        self.insert(id, peer);
        connection
    }

    pub(super) fn disconnect(&mut self, id: AgentId) {
        if let Some(link) = self.list.get_mut(&id).and_then(|peer| peer.link.take()) {
            self.by_connection.remove(&link.connection);
        }
    }

    /// One was removed: its name is free.
    pub(super) fn forget(&mut self, id: AgentId) {
        self.disconnect(id);
        if let Some(peer) = self.list.remove(&id) {
            self.by_name.remove(&peer.name);
        }
    }

    pub(super) fn get(&self, id: AgentId) -> Option<&AgentPeer> {
        self.list.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: AgentId) -> Option<&mut AgentPeer> {
        self.list.get_mut(&id)
    }

    pub(super) fn of_connection(&self, connection: u64) -> Option<AgentId> {
        self.by_connection.get(&connection).copied()
    }

    pub(super) fn ids(&self) -> Vec<AgentId> {
        self.list.keys().copied().collect()
    }

    /// Sends something to an agent, if it is connected.
    pub(super) fn send(&self, id: AgentId, message: ToAgent) {
        if let Some(peer) = self.get(id) {
            peer.send(message);
        }
    }

    pub(super) fn connected(&self) -> impl Iterator<Item = &AgentPeer> {
        self.list.values().filter(|peer| peer.link.is_some())
    }

    /// Who is there under a name, or about to be: the machine, and its address.
    pub(super) fn there(&self, name: &str) -> Option<(&str, &str)> {
        let waits = self.waiting.values().rfind(|waiting| waiting.hello.name == name);
        if let Some(Newcomer { hello, .. }) = waits {
            return Some((&hello.host, &hello.address));
        }
        let peer = self.get(*self.by_name.get(name)?)?;
        peer.is_there().then_some((&peer.machine, &peer.address))
    }

    /// Who an agent on record runs jobs for, where it has said so.
    pub(super) fn audience_of(&self, name: &str) -> Option<&Audience> {
        let peer = self.get(*self.by_name.get(name)?)?;
        peer.audience.as_ref().filter(|_| !peer.removing)
    }

    /// All that are on record, or about to be, and not being removed.
    pub(super) fn on_record(&self) -> impl Iterator<Item = (&str, Option<Audience>, bool)> {
        let known = self.list.values().filter(|peer| !peer.removing);
        let known = known.map(|peer| (peer.name.as_str(), peer.audience.clone(), peer.lost));
        let new = self.waiting.values().map(|waiting| &waiting.hello);
        let new = new.filter(|hello| !self.by_name.contains_key(&hello.name));
        known.chain(new.map(|hello| (hello.name.as_str(), Some(Audience::of(hello)), false)))
    }
}
