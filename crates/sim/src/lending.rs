//! Nodes that are lent to the cluster for a while, such as inference servers at night (Li et al., "Lyra", EuroSys 2023):
//! a CSV file with the columns at_s, kind and nodes says how many nodes of a kind are there from a time on. Which of them
//! go when fewer are lent is the engine's choice (`yard_core::reclaim`). Before the first row of a kind all its nodes are
//! there.

use std::path::Path;

use thiserror::Error;
use yard_core::Time;
use yard_core::ids::{KindId, NodeId};
use yard_core::message::{Input, NodeChange};

use crate::cluster::ClusterSpec;

/// What is wrong with a file of lent nodes.
#[derive(Debug, Error)]
#[error("--lend {path}: {problem}")]
pub struct LendingError {
    path: String,
    problem: String,
}

/// What happens to the nodes of a cluster by such a file.
pub fn open(path: &Path, cluster: &ClusterSpec) -> Result<Vec<(Time, Input)>, LendingError> {
    let problem = |problem: String| LendingError { path: path.display().to_string(), problem };
    let text = std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    parse(&text, cluster).map_err(problem)
}

fn parse(text: &str, cluster: &ClusterSpec) -> Result<Vec<(Time, Input)>, String> {
    let plain = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut lines = text.lines().filter(plain);
    let header: Vec<&str> = lines.next().unwrap_or("").split(',').map(str::trim).collect();
    if header != ["at_s", "kind", "nodes"] {
        return Err("the first line must name the columns at_s,kind,nodes".into());
    }
    lines.map(|line| row(line, cluster)).collect()
}

fn row(line: &str, cluster: &ClusterSpec) -> Result<(Time, Input), String> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let [at, kind, nodes] = cells[..] else {
        return Err(format!("{line:?} has {} cells where at_s,kind,nodes are three", cells.len()));
    };
    let at: f64 = at
        .parse()
        .ok()
        .filter(|at| (0.0..=1e12).contains(at))
        .ok_or_else(|| format!("{at:?} in {line:?} is not a number of seconds from 0 on"))?;
    let among = match cluster.kinds.find(kind) {
        Some(kind) => of_kind(cluster, kind),
        None => return Err(format!("the cluster has no nodes of the kind {kind:?}")),
    };
    let wanted = nodes.parse().ok().filter(|wanted| *wanted <= among.len() as u32);
    let nodes = wanted.ok_or_else(|| {
        format!("{nodes:?} in {line:?} is not a number of nodes from 0 to the {} that there are", among.len())
    })?;
    Ok((Time::from_secs(at), Input::Node(NodeChange::Lent { among, nodes })))
}

fn of_kind(cluster: &ClusterSpec, kind: KindId) -> Vec<NodeId> {
    let nodes = (0..).map(NodeId).zip(&cluster.nodes);
    nodes.filter(|(_, node)| node.pool(kind).is_some()).map(|(id, _)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_the_nodes_of_its_kind() {
        let cluster = ClusterSpec::parse("v100:2x4,t4:3x8").unwrap();
        let script = parse("# at night\nat_s,kind,nodes\n0,t4,0\n3600, t4, 2\n", &cluster).unwrap();
        let among: Vec<NodeId> = [2, 3, 4].map(NodeId).into();
        let lent = |nodes| Input::Node(NodeChange::Lent { among: among.clone(), nodes });
        assert_eq!(script, [(Time::ZERO, lent(0)), (Time::from_secs(3600.0), lent(2))]);
    }

    #[test]
    fn mistakes_are_named() {
        let cluster = ClusterSpec::parse("v100:2x4").unwrap();
        for (text, part) in [
            ("", "at_s,kind,nodes"),
            ("at_s,kind,nodes\n1,v100", "three"),
            ("at_s,kind,nodes\n-1,v100,1", "seconds"),
            ("at_s,kind,nodes\n1,t4,1", "no nodes of the kind"),
            ("at_s,kind,nodes\n1,v100,3", "from 0 to the 2"),
        ] {
            let error = parse(text, &cluster).unwrap_err();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
