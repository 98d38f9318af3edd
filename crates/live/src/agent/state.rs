//! What survives an agent's restart. It is written several times for each job, so it must be cheap: two files take
//! turns and are written in place, each with a number and a checksum; the newest that is whole counts. (Renaming a
//! new file over the old one makes ext4 write it out: 3 ms each time where this takes microseconds.) Nothing is
//! synced: what is written outlives the agent, and a machine that goes down takes all processes with it; whatever is
//! then in the files, the keeper has nothing left and the server hears that the parts are lost.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use yard_core::Time;
use yard_core::holder::Holder;
use yard_core::part::PartId;

use super::clock::AgentClock;

/// All of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct AgentState {
    /// Grows with each time it is written.
    number: u64,
    /// The clock that the times below were read from.
    pub(crate) clock: AgentClock,
    /// When this was written.
    pub(crate) last: Time,
    /// Until when the node's lease is valid.
    pub(crate) valid_until: Time,
    /// The kinds of the groups, in order: leases name groups by number.
    pub(crate) kinds: Vec<String>,
    /// The folders of sockets that processes may still know; thawed parts have that of the part they were.
    pub(crate) sockets: Vec<(PartId, PathBuf)>,
    /// What was decided.
    pub(crate) holder: Holder,
}

impl AgentState {
    /// The state in these files. One that cannot be read is an agent that starts anew: what its keeper still runs is
    /// ended, because nobody knows what it may use.
    pub(crate) fn load(path: &Path) -> io::Result<AgentState> {
        let mut newest: Option<AgentState> = None;
        for turn in 0..2 {
            let found = read(&file(path, turn))?;
            newest = newest.into_iter().chain(found).max_by_key(|state| state.number);
        }
        if newest.is_none() && file(path, 0).exists() {
            tracing::warn!(path = %path.display(), "the agent's state is damaged; it starts anew");
        }
        Ok(newest.unwrap_or_default())
    }

    /// Writes it over the older of the two.
    pub(crate) fn save(&mut self, path: &Path) -> io::Result<()> {
        self.number += 1;
        let body = serde_json::to_vec(self)?;
        let mut text = format!("{} {}\n", body.len(), checksum(&body)).into_bytes();
        text.extend(body);
        let mut options = File::options();
        let file =
            options.create(true).truncate(false).write(true).mode(0o600).open(file(path, self.number % 2))?;
        file.write_all_at(&text, 0)
    }
}

/// Where it is written in its turn.
fn file(path: &Path, turn: u64) -> PathBuf {
    path.with_extension(turn.to_string())
}

/// The state in one file, if there is one and it is whole.
fn read(path: &Path) -> io::Result<Option<AgentState>> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    Ok(parse(&text))
}

fn parse(text: &[u8]) -> Option<AgentState> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let (length, sum) = std::str::from_utf8(&text[..end]).ok()?.split_once(' ')?;
    // What is behind it is left of a longer one.
    let body = text.get(end + 1..)?.get(..length.parse().ok()?)?;
    if sum == checksum(body) { serde_json::from_slice(body).ok() } else { None }
}

fn checksum(body: &[u8]) -> String {
    crate::auth::hex(&Sha256::digest(body))
}

/// Replaces a file whole. Nobody else can read it.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let next = path.with_extension("next");
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&next)?;
    file.write_all(content)?;
    std::fs::rename(&next, path)
}

#[cfg(test)]
mod tests {
    use yard_core::holder::Happening;
    use yard_core::part::Order;

    use super::*;
    use crate::agent::testing::{Folder, start};

    #[test]
    fn what_was_decided_is_found_again_and_damage_is_a_new_beginning() {
        let folder = Folder::new();
        let path = folder.path().join("state");
        let mut state = AgentState {
            valid_until: Time(90),
            kinds: vec!["h100".into()],
            ..AgentState::load(&path).unwrap()
        };
        state.holder.step(Time(0), Happening::Contact { valid_until: Time(90) }, &mut Vec::new());
        let mut first = start(7, 3);
        first.devices[0].mask = 1 << 127;
        state.holder.step(Time(1), Happening::Order(Order::Start(first)), &mut Vec::new());
        state.save(&path).unwrap();
        let found = AgentState::load(&path).unwrap();
        assert_eq!((&found.holder, found.valid_until), (&state.holder, Time(90)));
        assert!(found.holder.holds(0, 127));
        // The next one is torn: the one before counts.
        state.valid_until = Time(91);
        state.save(&path).unwrap();
        assert_eq!(AgentState::load(&path).unwrap().valid_until, Time(91));
        File::options()
            .write(true)
            .open(file(&path, state.number % 2))
            .unwrap()
            .write_all_at(b"#", 200)
            .unwrap();
        assert_eq!(AgentState::load(&path).unwrap().valid_until, Time(90));
        // A shorter one over a longer one is whole.
        state.sockets = vec![(start(7, 3).part, "a".repeat(500).into())];
        state.save(&path).unwrap();
        state.save(&path).unwrap();
        state.sockets.clear();
        state.save(&path).unwrap();
        assert!(AgentState::load(&path).unwrap().sockets.is_empty());
        (0..2).for_each(|turn| std::fs::write(file(&path, turn), "{").unwrap());
        assert!(AgentState::load(&path).unwrap().holder.is_idle());
    }
}
