//! What survives an agent's restart, in one file that is replaced whole. It is written but not synced: what is written
//! outlives the agent, and a machine that goes down takes all processes with it; whatever is then in the file, the
//! keeper has nothing left and the server hears that the parts are lost.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use yard_core::Time;
use yard_core::holder::Holder;
use yard_core::part::PartId;

use super::clock::Clock;

/// All of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// The clock that the times below were read from.
    pub(crate) clock: Clock,
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

impl State {
    /// The state in this file. One that cannot be read is an agent that starts anew: what its keeper still runs is
    /// ended, because nobody knows what it may use.
    pub(crate) fn load(path: &Path) -> io::Result<State> {
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::default()),
            other => other?,
        };
        Ok(serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(%error, path = %path.display(), "the agent's state is damaged; it starts anew");
            State::default()
        }))
    }

    /// Replaces the file.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        replace(path, &serde_json::to_vec(self)?)
    }
}

/// Replaces a file whole.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let next = path.with_extension("next");
    std::fs::write(&next, content)?;
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
        let path = folder.path().join("state.json");
        let mut state =
            State { valid_until: Time(90), kinds: vec!["h100".into()], ..State::load(&path).unwrap() };
        state.holder.step(Time(0), Happening::Contact { valid_until: Time(90) }, &mut Vec::new());
        let mut first = start(7, 3);
        first.devices[0].mask = 1 << 127;
        state.holder.step(Time(1), Happening::Order(Order::Start(first)), &mut Vec::new());
        state.save(&path).unwrap();
        let found = State::load(&path).unwrap();
        assert_eq!((&found.holder, found.valid_until), (&state.holder, Time(90)));
        assert!(found.holder.holds(0, 127));
        std::fs::write(&path, "{").unwrap();
        assert!(State::load(&path).unwrap().holder.is_idle());
    }
}
