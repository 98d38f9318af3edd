//! Where nodes are, as administrators say it in a file of the server. What it says of a node comes before what the node's agent
//! says of itself: who may start an agent must not be able to move a machine into another rack.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;
use yard_core::cluster::{DomainPath, Level};

use crate::request::Mistake;

/// Most nodes that a file may name.
const NODES_MAX: usize = 100_000;

/// Bytes of a file.
const BYTES_MAX: usize = 16 << 20;

/// Bytes of a node's name.
const NAME_MAX: usize = 128;

/// Where nodes are, by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology(BTreeMap<String, DomainPath>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopologyFile {
    #[serde(default)]
    nodes: Vec<NodesThere>,
}

/// Nodes in the same domains.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodesThere {
    names: Vec<Spanned<String>>,
    clique: Option<Spanned<String>>,
    rack: Option<Spanned<String>>,
    block: Option<Spanned<String>>,
    zone: Option<Spanned<String>>,
}

impl Topology {
    /// Where a node is; none where the file does not name it.
    pub fn of(&self, node: &str) -> Option<&DomainPath> {
        self.0.get(node)
    }

    /// How many nodes it names.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it names none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a file.
    pub fn parse(text: &str) -> Result<Topology, Mistake> {
        if text.len() > BYTES_MAX {
            return Err(Mistake { line: None, message: format!("it has more than {BYTES_MAX} bytes") });
        }
        let line = |at: usize| Some(text[..at.min(text.len())].matches('\n').count() as u64 + 1);
        let file: TopologyFile = toml::from_str(text).map_err(|error| Mistake {
            line: error.span().and_then(|span| line(span.start)),
            message: error.message().replace('\n', " "),
        })?;
        let mut topology = Topology::default();
        for there in &file.nodes {
            let at = |span: &Spanned<String>, message| Mistake { line: line(span.span().start), message };
            let path = there.path().map_err(|(span, message)| at(span, message))?;
            for names in &there.names {
                topology.add(names.get_ref(), &path).map_err(|message| at(names, message))?;
            }
        }
        Ok(topology)
    }

    fn add(&mut self, names: &str, path: &DomainPath) -> Result<(), String> {
        for name in expanded(names)? {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(plain) {
                return Err(format!(
                    "names: {name:?} is no node's name; use letters, digits, '-', '_' and '.', and [01-16] for a range"
                ));
            }
            if self.0.len() >= NODES_MAX {
                return Err(format!("names: more than {NODES_MAX} nodes"));
            }
            if self.0.insert(name.clone(), path.clone()).is_some() {
                return Err(format!("names: {name} is named twice; a node is in one place"));
            }
        }
        Ok(())
    }
}

impl NodesThere {
    /// Where they are, or the name that is none.
    fn path(&self) -> Result<DomainPath, (&Spanned<String>, String)> {
        let said = [&self.clique, &self.rack, &self.block, &self.zone];
        let mut path = DomainPath::default();
        for (level, name) in Level::DOMAINS.into_iter().zip(said) {
            let Some(name) = name else { continue };
            if !DomainPath::accepts(name.get_ref()) {
                let (level, name_text) = (level.name(), name.get_ref());
                return Err((name, format!("{level}: {name_text:?} is no name; {}", DomainPath::NAMES)));
            }
            path = path.with(level, name.get_ref().as_str());
        }
        Ok(path)
    }
}

/// `gpu-[01-16]`: sixteen names; any other text is one.
fn expanded(names: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = names.split_once('[') else { return Ok(vec![names.to_owned()]) };
    let wrong = || format!("names: {names:?} is not a range such as gpu-[01-16]");
    let (range, after) = rest.split_once(']').ok_or_else(wrong)?;
    let (first, last) = range.split_once('-').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
    let (from, to) = (number(first)?, number(last)?);
    if from > to || to - from >= NODES_MAX {
        return Err(wrong());
    }
    let width = first.len();
    Ok((from..=to).map(|number| format!("{before}{number:0width$}{after}")).collect())
}

/// `rack=r1` or `rack=r1,block=b2`, as an agent is told where it is.
pub fn domain(text: &str) -> Result<(Level, String), String> {
    let levels = || Level::DOMAINS.map(Level::name).join(", ");
    let (level, name) =
        text.split_once('=').ok_or_else(|| format!("{text:?} is not LEVEL=NAME, as in rack=r1"))?;
    let level = Level::named(level).filter(|level| Level::DOMAINS.contains(level));
    let level = level.ok_or_else(|| format!("{text:?} names no level; the levels are {}", levels()))?;
    if !DomainPath::accepts(name) {
        return Err(format!("{name:?} is no name for a {}; {}", level.name(), DomainPath::NAMES));
    }
    Ok((level, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: Option<&DomainPath>) -> String {
        let words = path.into_iter().flat_map(DomainPath::iter);
        words.map(|(level, name)| format!("{}={name}", level.name())).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn nodes_are_named_one_by_one_and_in_ranges() {
        let text = "[[nodes]]\nnames = ['gpu-[08-10]', 'head']\nrack = 'r1'\nblock = 'b1'\n\n\
                    [[nodes]]\nnames = ['gpu-11']\nclique = 'c1'\nzone = 'hall'\n";
        let topology = Topology::parse(text).unwrap();
        assert_eq!(topology.len(), 5);
        assert_eq!(said(topology.of("gpu-09")), "rack=r1 block=b1");
        assert_eq!(said(topology.of("gpu-11")), "clique=c1 zone=hall");
        assert_eq!(topology.of("gpu-9"), None);
        assert!(Topology::parse("").unwrap().is_empty());
    }

    #[test]
    fn mistakes_are_named_by_line_and_field() {
        let wrong = |text: &str| Topology::parse(text).unwrap_err().to_string();
        let one = |line: &str| wrong(&format!("# racks\n[[nodes]]\nnames = ['a']\n{line}\n"));
        assert!(
            one("rack = 'r 1'").starts_with("line 4: rack: \"r 1\" is no name"),
            "{}",
            one("rack = 'r 1'")
        );
        assert!(one("rack = 7").starts_with("line 4: "), "{}", one("rack = 7"));
        assert!(one("row = 'x'").contains("unknown field `row`"), "{}", one("row = 'x'"));
        for (names, part) in [
            ("['a', 'a']", "line 2: names: a is named twice"),
            ("['../etc']", "is no node's name"),
            ("['a[1-']", "is not a range"),
            ("['a[9-1]']", "is not a range"),
            ("['a[0-99999999999]']", "is not a range"),
            ("['a[0-18446744073709551616]']", "is not a range"),
            ("['']", "is no node's name"),
        ] {
            let said = wrong(&format!("[[nodes]]\nnames = {names}\n"));
            assert!(said.contains(part), "{names}: {said}");
        }
        assert!(wrong(&"#".repeat(BYTES_MAX + 1)).contains("bytes"));
        let many = "[[nodes]]\nnames = ['a[0-99999]', 'b']\n";
        assert!(wrong(many).contains("more than 100000 nodes"));
    }

    #[test]
    fn an_agent_is_told_where_it_is() {
        assert_eq!(domain("rack=r1"), Ok((Level::Rack, "r1".to_owned())));
        for (text, part) in [
            ("rack", "is not LEVEL=NAME"),
            ("row=1", "the levels are clique, rack, block, zone"),
            ("node=n1", "names no level"),
            ("rack=", "is no name"),
            ("rack=a b", "is no name"),
        ] {
            let wrong = domain(text).unwrap_err();
            assert!(wrong.contains(part), "{text}: {wrong}");
        }
    }
}
