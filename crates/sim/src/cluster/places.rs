//! Where the nodes of a group are: domains by name, or so many nodes to each, which are then numbered.

use serde::Deserialize;
use yard_core::cluster::{DomainPath, Level};

/// What a group of nodes says of where it is, level by level: a domain's name, or how many nodes one has.
pub(super) struct Places(pub(super) [(Level, Option<DomainName>, Option<u32>); 4]);

/// A domain: a name, or a number as a rack has.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum DomainName {
    Number(u32),
    Text(String),
}

impl std::fmt::Display for DomainName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DomainName::Number(number) => write!(f, "{number}"),
            DomainName::Text(text) => f.write_str(text),
        }
    }
}

/// The numbers that domains have next, level by level, behind all that were given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DomainNumbers([u64; Level::ALL.len()]);

impl Places {
    /// Whether it makes sense.
    pub(super) fn check(&self, kind: &str) -> Result<(), String> {
        for (level, name, size) in &self.0 {
            let level = level.name();
            if name.is_some() && size.is_some() {
                return Err(format!("{kind}: {level} and nodes_per_{level} cannot both be given"));
            }
            if *size == Some(0) {
                return Err(format!("{kind}: nodes_per_{level} is 0; a {level} has at least one node"));
            }
            if let Some(DomainName::Text(text)) =
                name.as_ref().filter(|name| !DomainPath::accepts(&name.to_string()))
            {
                return Err(format!(
                    "{kind}: {level} = {text:?} is no name for a {level}; {}",
                    DomainPath::NAMES
                ));
            }
        }
        Ok(())
    }

    /// Where each of so many nodes is. Domains that are numbered go on where those before them ended.
    pub(super) fn of_nodes(
        self,
        nodes: u32,
        numbers: &mut DomainNumbers,
    ) -> impl Iterator<Item = DomainPath> {
        let first = *numbers;
        for (level, name, size) in &self.0 {
            let next = &mut numbers.0[*level as usize];
            let last = match (name, size) {
                (Some(DomainName::Number(number)), _) => Some(u64::from(*number)),
                (_, Some(size)) => Some(*next + u64::from(nodes.saturating_sub(1) / size)),
                _ => None,
            };
            *next = (*next).max(last.map_or(0, |last| last + 1));
        }
        (0..nodes).map(move |at| self.of_node(at, &first))
    }

    fn of_node(&self, at: u32, first: &DomainNumbers) -> DomainPath {
        let number = |level: Level, size: u32| first.0[level as usize] + u64::from(at / size);
        self.0.iter().fold(DomainPath::default(), |path, (level, name, size)| match (name, size) {
            (Some(name), _) => path.with(*level, name.to_string()),
            (None, Some(size)) => path.with(*level, number(*level, *size).to_string()),
            (None, None) => path,
        })
    }
}
