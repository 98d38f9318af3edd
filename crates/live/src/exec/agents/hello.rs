//! An agent says hello. What it is called and offers is checked, and refused where it is wrong or too long; what people
//! only read is shortened. All of it is kept in memory, written down and sent to whoever looks.

use std::collections::BTreeSet;

use tokio::sync::mpsc;
use yard_core::cluster::{DomainPath, NODE_DEVICES_MAX};
use yard_core::gang::ToGang;
use yard_core::ids::AgentId;
use yard_core::part::Told;
use yard_core::units::Span;

use super::peers::{AgentPeer, Newcomer};
use super::{Agents, agent, audience};
use crate::exec::notice::shortened;
use crate::exec::{Audience, HostAbilities, HostId, HostOffer, Notice};
use crate::handle::{Refusal, Reply};
use crate::wire::{Device, GroupOnWire, Hello, ToAgent, WIRE_VERSION, WIRE_VERSIONS};

/// Longest name of a node.
const NAME_MAX: usize = 128;

/// Most groups of one node.
const GROUPS_MAX: usize = 64;

/// Bytes of a name, an address or a few words.
pub(super) const WORDS_MAX: usize = 256;

/// Bytes of a reason.
const REASON_MAX: usize = 4_096;

/// Bytes of the word for how two devices are linked.
const LINK_MAX: usize = 16;

/// Most parts, and most stopped jobs, that one hello lists.
const LISTED_MAX: usize = 16_384;

impl Agents {
    /// An agent connected: the driver is asked whether it may stay.
    pub(super) fn connect(
        &mut self,
        hello: Hello,
        link: mpsc::Sender<ToAgent>,
        reply: Reply<u64>,
        out: &mut Vec<Notice>,
    ) {
        let hello = tidied(hello);
        let wrong = |message| Refusal::Invalid { field: None, message };
        let checked = check(&hello).and_then(|()| audience::check(&self.peers, &hello)).map_err(wrong);
        let checked = checked.and_then(|()| self.no_rival(&hello));
        let (offer, waiting) = (offer(&hello), Newcomer { hello, link, reply });
        match checked {
            Ok(()) => out.push(Notice::Offer { ticket: self.peers.wait(waiting), offer }),
            Err(refusal) => refuse(waiting, refusal),
        }
    }

    /// Refuses an agent whose name another machine has. A restarted one takes the place of its former connection; one
    /// that does not say which machine it is does not pass for one that did.
    fn no_rival(&self, hello: &Hello) -> Result<(), Refusal> {
        let name = &hello.name;
        match self.peers.there(name) {
            Some((machine, address)) if !machine.is_empty() && machine != hello.host => {
                Err(Refusal::Conflict(format!(
                    "node {name} is connected from another machine ({address}); give one of them another name with --name, or remove the agent's folder if it was copied"
                )))
            }
            _ => Ok(()),
        }
    }

    /// An agent is on record: it may speak from now on.
    pub(super) fn admit(&mut self, now: Span, ticket: u64, host: HostId, out: &mut Vec<Notice>) {
        let Some(Newcomer { hello, link, reply }) = self.peers.leave(ticket) else { return };
        let (agent, name) = (agent(host), &hello.name);
        let connection = self.peers.connect(agent, &hello, link, now);
        self.note_audience(agent);
        tracing::info!(node = %name, connection, "an agent connected");
        let (lease_s, beat_s) = (self.terms.lease.secs(), self.terms.beat.secs());
        self.peers.send(agent, ToAgent::Welcome { lease_s, beat_s });
        // Who asked may have gone.
        let _ = reply.send(Ok(connection));
        let (parts, paused) = (hello.parts, hello.paused);
        self.step_gangs(ToGang::Hello { agent, parts, paused }, out);
    }

    /// Says whose jobs alone are run, after an agent came or went.
    pub(super) fn note_audience(&mut self, changed: AgentId) {
        let everybody = |peer: &AgentPeer| peer.audience == Some(Audience::Everybody);
        if self.abilities.only.is_some() || !self.peers.get(changed).is_some_and(everybody) {
            self.abilities.only = audience::only(&self.peers);
        }
    }

    /// The driver does not take it.
    pub(super) fn decline(&mut self, ticket: u64, refusal: Refusal) {
        self.peers.leave(ticket).into_iter().for_each(|waiting| refuse(waiting, refusal.clone()));
    }
}

/// One that says something wrong is told so; one that is in the way of another may try again.
fn refuse(Newcomer { link, reply, .. }: Newcomer, refusal: Refusal) {
    if let Refusal::Invalid { message, .. } = &refusal {
        let _ = link.try_send(ToAgent::Refused { reason: message.clone() });
    }
    let _ = reply.send(Err(refusal));
}

fn offer(hello: &Hello) -> HostOffer {
    let (no_freeze, no_limits) = (hello.abilities.no_freeze.clone(), hello.abilities.no_limits.clone());
    HostOffer {
        name: hello.name.clone(),
        address: hello.address.clone(),
        groups: hello.groups.clone(),
        resources: hello.resources.clone(),
        domains: hello.domains.clone(),
        abilities: HostAbilities { no_freeze, no_limits },
        audience: Audience::of(hello),
    }
}

/// Whether an agent can be taken in, and if not, why.
fn check(hello: &Hello) -> Result<(), String> {
    check_version(hello.version)?;
    check_lengths(hello)?;
    let word = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(plain) && !name.starts_with('.')
    };
    if !word(&hello.name) {
        return Err("a node's name has letters, digits, '-', '_' and '.' only; name it with --name".into());
    }
    let mut seen = BTreeSet::new();
    if let Some(GroupOnWire { kind, .. }) =
        hello.groups.iter().find(|group| !word(&group.kind) || !seen.insert(&group.kind))
    {
        return Err(format!("the kind {kind:?} of its devices is not a plain word, or is given twice"));
    }
    if let Some(name) = hello.resources.keys().find(|name| !word(name)) {
        return Err(format!(
            "{:?} is not a name for a resource; use letters, digits, '-', '_' and '.'",
            shortened(name.clone(), NAME_MAX)
        ));
    }
    if let Some((level, _)) = hello.domains.iter().find(|(_, name)| !DomainPath::accepts(name)) {
        return Err(format!("the name of its {} is none; {}", level.name(), DomainPath::NAMES));
    }
    let all: usize = hello.groups.iter().map(|group| group.devices.len()).sum();
    if hello.groups.iter().any(|group| group.devices.is_empty())
        || !(1..=NODE_DEVICES_MAX as usize).contains(&all)
    {
        return Err(format!(
            "a node offers 1 to {NODE_DEVICES_MAX} devices, including CPU slots (--cpu-slots); this one offers {all}"
        ));
    }
    Ok(())
}

fn check_version(found: u32) -> Result<(), String> {
    if WIRE_VERSIONS.contains(&found) {
        return Ok(());
    }
    let before = WIRE_VERSIONS.start();
    Err(format!(
        "this server speaks versions {before} and {WIRE_VERSION} with agents, not {found}; install the same version of yard on both"
    ))
}

/// Whether a hello is short enough.
fn check_lengths(hello: &Hello) -> Result<(), String> {
    if hello.groups.len() > GROUPS_MAX {
        return Err(format!("a node has at most {GROUPS_MAX} kinds of devices"));
    }
    let only = hello.abilities.only_user.as_ref().map_or("", |only| &only.name);
    let mut words = vec![("address", hello.address.as_str()), ("host", &hello.host), ("user", only)];
    words.extend(hello.groups.iter().map(|group| ("kind of devices", group.kind.as_str())));
    if let Some((what, _)) = words.into_iter().find(|(_, text)| text.len() > WORDS_MAX) {
        return Err(format!("the node's {what} is longer than {WORDS_MAX} bytes"));
    }
    if hello.parts.len() > LISTED_MAX || hello.paused.len() > LISTED_MAX {
        return Err(format!("a node lists at most {LISTED_MAX} parts and as many stopped jobs"));
    }
    hello.groups.iter().try_for_each(check_devices)
}

fn check_devices(group: &GroupOnWire) -> Result<(), String> {
    let is_long = |device: &Device| {
        let uuid = device.uuid.as_ref().map_or(0, String::len);
        device.name.len().max(uuid) > WORDS_MAX
    };
    if group.devices.iter().any(is_long) {
        return Err(format!("a device's name or uuid is longer than {WORDS_MAX} bytes"));
    }
    let count = group.devices.len();
    let is_tangled = |device: &Device| {
        device.links.len() > count || device.links.iter().any(|(_, word)| word.len() > LINK_MAX)
    };
    if group.devices.iter().any(is_tangled) {
        return Err("a device has at most one link to each device of its kind, each a short word".into());
    }
    Ok(())
}

/// A hello whose texts for people are short.
fn tidied(mut hello: Hello) -> Hello {
    for device in hello.groups.iter_mut().flat_map(|group| &mut group.devices) {
        shorten(&mut device.problem, WORDS_MAX);
    }
    let abilities = &mut hello.abilities;
    shorten(&mut abilities.no_freeze, REASON_MAX);
    shorten(&mut abilities.no_limits, REASON_MAX);
    if let Some(only) = &mut abilities.only_user {
        only.why = shortened(std::mem::take(&mut only.why), WORDS_MAX);
    }
    hello.parts.iter_mut().for_each(|(_, told)| tidy_news(told));
    hello
}

/// News of a part whose texts are short and whose numbers can be.
pub(super) fn tidied_news(mut told: Told) -> Told {
    tidy_news(&mut told);
    told
}

fn tidy_news(told: &mut Told) {
    if let Told::Ended(ending) = told {
        shorten(&mut ending.message, REASON_MAX);
        ending.signal = ending.signal.filter(|signal| (1..=64).contains(signal));
    }
}

fn shorten(text: &mut Option<String>, most: usize) {
    *text = text.take().map(|text| shortened(text, most));
}

#[cfg(test)]
mod tests {
    use yard_core::ids::{JobId, LeaseId};
    use yard_core::part::{Ending, How, PartId};

    use super::*;
    use crate::exec::host::groups;
    use crate::wire::{OnlyUser, WIRE_VERSION, WireAbilities};

    fn hello() -> Hello {
        Hello {
            version: WIRE_VERSION,
            name: "n1".into(),
            address: "10.0.0.1".into(),
            groups: groups(&[("a100", 2), ("cpu", 1)]),
            parts: vec![],
            paused: vec![],
            abilities: WireAbilities::default(),
            host: "boot-1".into(),
            resources: std::collections::BTreeMap::new(),
            domains: yard_core::cluster::DomainPath::default(),
        }
    }

    fn ended(signal: i32, message: &str) -> Told {
        let (signal, message) = (Some(signal), Some(message.to_owned()));
        Told::Ended(Ending { how: How::Crashed, step: None, code: None, signal, message })
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let long = "x".repeat(WORDS_MAX + 1);
        let part = PartId { lease: LeaseId(1), job: JobId(1), instance: 1 };
        type Change<'a> = &'a dyn Fn(&mut Hello);
        let changes: [(&str, Change<'_>); 10] = [
            ("kinds", &|hello| hello.groups = vec![hello.groups[0].clone(); GROUPS_MAX + 1]),
            ("address", &|hello| hello.address.clone_from(&long)),
            ("host", &|hello| hello.host.clone_from(&long)),
            ("user", &|hello| {
                hello.abilities.only_user = Some(OnlyUser { name: long.clone(), why: String::new() });
            }),
            ("kind of devices", &|hello| hello.groups[1].kind.clone_from(&long)),
            ("name or uuid", &|hello| hello.groups[0].devices[1].name.clone_from(&long)),
            ("name or uuid", &|hello| hello.groups[0].devices[1].uuid = Some(long.clone())),
            ("link", &|hello| hello.groups[0].devices[0].links = vec![(1, "pcie".into()); 3]),
            ("link", &|hello| hello.groups[0].devices[0].links = vec![(1, long.clone())]),
            ("stopped jobs", &|hello| hello.paused = vec![JobId(1); LISTED_MAX + 1]),
        ];
        assert_eq!(check(&hello()), Ok(()));
        for (word, change) in changes {
            let mut hello = hello();
            change(&mut hello);
            let said = check(&hello).unwrap_err();
            assert!(said.contains(word) && said.len() < 200, "{word}: {said}");
        }
        let parts = vec![(part, Told::Started); LISTED_MAX + 1];
        assert!(check(&Hello { parts, ..hello() }).is_err());
    }

    #[test]
    fn what_people_read_is_shortened() {
        let long = "é".repeat(REASON_MAX);
        let mut said = hello();
        said.groups[0].devices[0].problem = Some(long.clone());
        said.abilities.no_freeze = Some(long.clone());
        said.abilities.only_user = Some(OnlyUser { name: "ada".into(), why: long.clone() });
        let part = PartId { lease: LeaseId(1), job: JobId(1), instance: 1 };
        said.parts = vec![(part, ended(9, &long))];
        let kept = tidied(said);
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        assert!((WORDS_MAX - 4..=WORDS_MAX).contains(&length(&kept.groups[0].devices[0].problem)));
        assert!(length(&kept.abilities.no_freeze) <= REASON_MAX);
        assert!(kept.abilities.only_user.is_some_and(|only| only.why.len() <= WORDS_MAX));
        let Told::Ended(ending) = &kept.parts[0].1 else { panic!("it ended") };
        assert!(length(&ending.message) <= REASON_MAX);
        assert_eq!(shortened("short".into(), WORDS_MAX), "short");
    }

    #[test]
    fn a_signal_is_one_that_there_is() {
        for (said, kept) in
            [(9, Some(9)), (64, Some(64)), (0, None), (-9, None), (65, None), (i32::MAX, None)]
        {
            let Told::Ended(ending) = tidied_news(ended(said, "")) else { panic!("it ended") };
            assert_eq!(ending.signal, kept, "{said}");
        }
    }

    fn node(name: &str, devices: &[(&str, usize)]) -> Hello {
        Hello { name: name.into(), groups: groups(devices), ..hello() }
    }

    #[test]
    fn what_an_agent_says_is_checked() {
        assert_eq!(check(&node("n-1.lab", &[("a100", 8), ("cpu", 120)])), Ok(()));
        for bad in ["", "a/b", "a b", "..", "é", &"n".repeat(129)] {
            assert!(check(&node(bad, &[("a100", 8)])).is_err(), "{bad:?}");
        }
        assert!(check(&node("n", &[])).is_err());
        assert!(check(&node("n", &[("a100", 0)])).is_err());
        assert!(check(&node("n", &[("a100", 8), ("cpu", 121)])).is_err());
        assert!(check(&node("n", &[("a100", 1), ("a100", 1)])).is_err());
        assert!(check(&node("n", &[("a/b", 1)])).is_err());
        for name in ["", "a b", "\u{1b}[2J", &"n".repeat(129)] {
            let resources = [(name.to_owned(), 1)].into();
            assert!(check(&Hello { resources, ..node("n", &[("a100", 1)]) }).is_err(), "{name:?}");
        }
        let before = Hello { version: WIRE_VERSION - 1, ..node("n", &[("a100", 1)]) };
        assert_eq!(check(&before), Ok(()), "it is brought up to date after the server");
        assert!(check(&Hello { version: WIRE_VERSION - 2, ..node("n", &[("a100", 1)]) }).is_err());
    }
}
