//! How pretend cards are doing: as a file in the agent's folder says, so that people and tests can try out what a
//! cluster makes of a busy, an idle, a broken or a lost card. Without the file they are well and nothing is known.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::{CardPlace, Reading, Sensor};

/// How long a driver that pretends to hang sleeps before it looks whether it still should.
const NAP: Duration = Duration::from_millis(20);

/// Reads the file.
pub(crate) struct Fakes {
    /// The cards, as the file calls them: `h100:0`.
    pub(crate) cards: Vec<(CardPlace, String)>,
    /// The file.
    pub(crate) path: PathBuf,
}

/// The file: `{"cards": {"h100:0": {"busy": 0.5}, "h100:1": null}}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Said {
    /// How cards are doing; null: the card does not answer.
    cards: BTreeMap<String, Option<Reading>>,
    /// The driver does not answer.
    hangs: bool,
}

impl Fakes {
    fn said(&self) -> Said {
        let Ok(text) = std::fs::read(&self.path) else { return Said::default() };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(%error, path = %self.path.display(), "pretend cards: the file is not understood");
            Said::default()
        })
    }
}

impl Sensor for Fakes {
    fn read(&mut self) -> BTreeMap<CardPlace, Reading> {
        let mut said = self.said();
        while said.hangs {
            std::thread::sleep(NAP);
            said = self.said();
        }
        let mut found = BTreeMap::new();
        for (place, name) in &self.cards {
            if let Some(mut reading) = said.cards.remove(name).unwrap_or_else(|| Some(Reading::default())) {
                if reading.jobs.is_empty() && reading.others_mib == 0 {
                    reading.others_mib = reading.memory_used_mib.unwrap_or(0);
                }
                found.insert(*place, reading);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::testing::Folder;

    #[test]
    fn the_file_says_how_pretend_cards_are_doing() {
        let folder = Folder::new();
        let path = folder.path().join("fake-cards.json");
        let cards = vec![((0, 0), "h100:0".to_owned()), ((0, 1), "h100:1".to_owned())];
        let mut fakes = Fakes { cards, path: path.clone() };
        assert_eq!(
            fakes.read(),
            BTreeMap::from([((0, 0), Reading::default()), ((0, 1), Reading::default())])
        );
        let text = r#"{"cards": {"h100:0": null, "h100:1": {"busy": 0.5, "memory_used_mib": 7, "xids": [79],
            "jobs": {"12": {"busy": 0.25, "memory_mib": 6}}}}}"#;
        std::fs::write(&path, text).unwrap();
        let found = fakes.read();
        assert!(!found.contains_key(&(0, 0)));
        let card = &found[&(0, 1)];
        assert_eq!(
            (card.busy, card.memory_used_mib, card.xids.as_slice()),
            (Some(0.5), Some(7), [79].as_slice())
        );
        assert_eq!(card.jobs[&yard_core::ids::JobId(12)].memory_mib, 6);
        std::fs::write(&path, "{").unwrap();
        assert_eq!(fakes.read().len(), 2, "what is not understood is nothing");
    }
}
