//! Where nodes are: in an NVLink clique, a rack, a block, a zone. How close devices lie is a level of that path: node, the
//! domains innermost first, anywhere.
//!
//! What nobody says of a node: without a clique its NVLink ends at the node; without a rack, a block or a zone it is in
//! one with all others in the same outer domain of which nobody says it either. A domain is known by its whole path, so
//! that racks of one name in two blocks are two racks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{DomainId, NodeId};

/// How close together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// On one node.
    #[serde(alias = "Node")]
    Node,
    /// Nodes that NVLink connects.
    Clique,
    /// Under one rack's switch.
    #[serde(alias = "Rack")]
    Rack,
    /// In racks that lie close.
    Block,
    /// In one hall or data centre.
    Zone,
    /// Anywhere in the cluster.
    #[default]
    #[serde(alias = "Any")]
    Any,
}

/// Levels that have domains.
const DOMAINS: usize = 4;

impl Level {
    /// All of them, the closest first.
    pub const ALL: [Level; DOMAINS + 2] =
        [Level::Node, Level::Clique, Level::Rack, Level::Block, Level::Zone, Level::Any];

    /// Those that have domains, innermost first.
    pub const DOMAINS: [Level; DOMAINS] = [Level::Clique, Level::Rack, Level::Block, Level::Zone];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Node => "node",
            Level::Clique => "clique",
            Level::Rack => "rack",
            Level::Block => "block",
            Level::Zone => "zone",
            Level::Any => "any",
        }
    }

    /// The level of this name.
    pub fn named(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Its place on a path.
    fn at(self) -> Option<usize> {
        Level::DOMAINS.iter().position(|level| *level == self)
    }
}

/// The names of the domains that a node is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Level, Arc<str>>", into = "BTreeMap<Level, Arc<str>>")]
pub struct DomainPath(Option<Arc<Names>>);

/// A name for each level that has domains, where somebody said it.
type Names = [Option<Arc<str>>; DOMAINS];

/// Nobody said anything.
const NOWHERE: &Names = &[None, None, None, None];

/// Bytes of a domain's name.
const NAME_MAX: usize = 64;

impl DomainPath {
    /// What `accepts` wants, for people.
    pub const NAMES: &'static str = "use 1 to 64 letters, digits, '-', '_' and '.'";

    /// Whether a domain may be called so.
    pub fn accepts(name: &str) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(plain)
    }

    /// The same with a domain of this level; only levels that have domains count.
    pub fn with(mut self, level: Level, name: impl Into<Arc<str>>) -> DomainPath {
        if let Some(at) = level.at() {
            Arc::make_mut(self.0.get_or_insert_default())[at] = Some(name.into());
        }
        self
    }

    fn names(&self) -> &Names {
        self.0.as_deref().unwrap_or(NOWHERE)
    }

    /// The name of the domain of a level, where somebody said it.
    pub fn get(&self, level: Level) -> Option<&str> {
        self.names()[level.at()?].as_deref()
    }

    /// The domains that somebody named, innermost first.
    pub fn iter(&self) -> impl Iterator<Item = (Level, &str)> {
        Level::DOMAINS.into_iter().filter_map(|level| Some((level, self.get(level)?)))
    }

    /// Whether nobody named any.
    pub fn is_empty(&self) -> bool {
        self.names().iter().all(Option::is_none)
    }
}

impl From<BTreeMap<Level, Arc<str>>> for DomainPath {
    fn from(named: BTreeMap<Level, Arc<str>>) -> DomainPath {
        named.into_iter().fold(DomainPath::default(), |path, (level, name)| path.with(level, name))
    }
}

impl From<DomainPath> for BTreeMap<Level, Arc<str>> {
    fn from(path: DomainPath) -> BTreeMap<Level, Arc<str>> {
        let names = Level::DOMAINS.into_iter().zip(path.names());
        names.filter_map(|(level, name)| Some((level, name.clone()?))).collect()
    }
}

/// The domains that a node is in, by number, innermost first.
pub(crate) type Located = [DomainId; DOMAINS];

/// A node as a domain of its own. Counted from the end, where no domain with a name comes.
fn alone(node: NodeId) -> DomainId {
    DomainId(u32::MAX - node.0)
}

/// The domain of a level that a node is in.
pub(crate) fn domain_of(node: NodeId, located: &Located, level: Level) -> DomainId {
    match level.at() {
        Some(at) => located[at],
        None if level == Level::Node => alone(node),
        None => DomainId::default(),
    }
}

/// The domains by number, in the order in which nodes first were in them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Domain>", into = "Vec<Domain>")]
pub(crate) struct Domains(BTreeMap<Domain, DomainId>);

/// A domain: the one it is in, and its name there.
type Domain = (Option<DomainId>, Option<Arc<str>>);

impl From<Vec<Domain>> for Domains {
    fn from(list: Vec<Domain>) -> Domains {
        Domains(list.into_iter().zip((0..).map(DomainId)).collect())
    }
}

impl From<Domains> for Vec<Domain> {
    fn from(domains: Domains) -> Vec<Domain> {
        let mut list: Vec<_> = domains.0.into_iter().map(|(domain, id)| (id, domain)).collect();
        list.sort_unstable_by_key(|(id, _)| *id);
        list.into_iter().map(|(_, domain)| domain).collect()
    }
}

impl Domains {
    /// The domains of a node, new ones if need be.
    pub(crate) fn locate(&mut self, node: NodeId, path: &DomainPath) -> Located {
        let mut located = [alone(node); DOMAINS];
        let mut within = None;
        for (at, name) in path.names().iter().enumerate().rev() {
            if Level::DOMAINS[at] == Level::Clique && name.is_none() {
                continue;
            }
            let next = DomainId(self.0.len() as u32);
            located[at] = *self.0.entry((within, name.clone())).or_insert(next);
            within = Some(located[at]);
        }
        located
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(words: &str) -> DomainPath {
        let pairs = words.split_whitespace().filter_map(|word| word.split_once('='));
        pairs.fold(DomainPath::default(), |path, (level, name)| {
            path.with(Level::named(level).expect("a level"), name)
        })
    }

    /// Whether two nodes on these paths share a domain, level by level.
    fn shared(one: &str, other: &str) -> String {
        let mut domains = Domains::default();
        let (a, b) = (domains.locate(NodeId(0), &path(one)), domains.locate(NodeId(1), &path(other)));
        let same = |level: &Level| domain_of(NodeId(0), &a, *level) == domain_of(NodeId(1), &b, *level);
        let words: Vec<_> = Level::ALL.into_iter().filter(same).map(Level::name).collect();
        words.join(" ")
    }

    #[test]
    fn what_nobody_says_is_shared_but_for_the_clique() {
        assert_eq!(shared("", ""), "rack block zone any");
        assert_eq!(shared("rack=a", ""), "block zone any");
        assert_eq!(shared("rack=a", "rack=a"), "rack block zone any");
        assert_eq!(shared("clique=c rack=a", "clique=c rack=a"), "clique rack block zone any");
        assert_eq!(shared("block=x", "block=y"), "zone any", "and never across outer domains");
    }

    #[test]
    fn racks_of_one_name_in_two_blocks_are_two() {
        assert_eq!(shared("rack=a block=x", "rack=a block=y"), "zone any");
        assert_eq!(shared("clique=c rack=a", "clique=c rack=b"), "block zone any");
    }

    #[test]
    fn numbers_and_paths_are_saved() {
        let mut domains = Domains::default();
        let before = ["rack=b", "rack=a block=x", ""].map(|words| domains.locate(NodeId(0), &path(words)));
        let text = serde_json::to_string(&domains).unwrap();
        let mut read: Domains = serde_json::from_str(&text).unwrap();
        assert_eq!(read, domains);
        let after = ["rack=b", "rack=a block=x", ""].map(|words| read.locate(NodeId(0), &path(words)));
        assert_eq!(before, after);
        let said = path("rack=a zone=z");
        assert_eq!(serde_json::to_string(&said).unwrap(), r#"{"rack":"a","zone":"z"}"#);
        assert_eq!(serde_json::from_str::<DomainPath>(r#"{"rack":"a","zone":"z"}"#).unwrap(), said);
    }
}
