//! How much an agent may say. What a node is called and offers is refused where it is too long; what people only read
//! is shortened. All of it is kept in memory, written down and sent to whoever looks.

use yard_core::part::Told;

use crate::wire::{Device, Group, Hello};

/// Most groups of one node.
const GROUPS_MAX: usize = 64;

/// Bytes of a name, an address or a few words.
pub(super) const WORDS_MAX: usize = 256;

/// Bytes of a reason.
pub(super) const REASON_MAX: usize = 4_096;

/// Bytes of the word for how two devices are linked.
const LINK_MAX: usize = 16;

/// Most parts, and most stopped jobs, that one hello lists.
const LISTED_MAX: usize = 16_384;

/// Whether a hello is short enough.
pub(super) fn check(hello: &Hello) -> Result<(), String> {
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

fn check_devices(group: &Group) -> Result<(), String> {
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
pub(super) fn tidied(mut hello: Hello) -> Hello {
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

/// A text that is no longer than so many bytes, and ends with `…` where it was.
pub(super) fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        let most = most - '…'.len_utf8();
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use yard_core::ids::{JobId, LeaseId};
    use yard_core::part::{Ending, How, PartId};

    use super::*;
    use crate::driver::tests::groups;
    use crate::wire::{Abilities, OnlyUser, WIRE_VERSION};

    fn hello() -> Hello {
        Hello {
            version: WIRE_VERSION,
            name: "n1".into(),
            address: "10.0.0.1".into(),
            groups: groups(&[("a100", 2), ("cpu", 1)]),
            parts: vec![],
            paused: vec![],
            abilities: Abilities::default(),
            host: "boot-1".into(),
            resources: std::collections::BTreeMap::new(),
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
}
