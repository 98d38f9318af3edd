//! What goes wrong in a simulated cluster, decided by a seed: nodes that fail and come back, nodes that
//! are slow, jobs that crash.

use yard_core::Span;

use crate::random::Random;

/// How often what goes wrong. All off by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Mean time between failures of one node.
    pub node_mtbf: Option<Span>,
    /// Time until a failed node is back.
    pub repair: Span,
    /// Fraction of the nodes that are slow.
    pub slow_nodes: f64,
    /// Speed of a slow node against a sound one.
    pub slow_factor: f64,
    /// Mean time between crashes of one running job.
    pub job_mtbf: Option<Span>,
    /// Whether every second job lies frozen when it is stopped for others: it goes on there, or from its last checkpoint.
    pub freezing: bool,
}

impl Faults {
    /// Speed factor of each node.
    pub(crate) fn speeds(&self, nodes: usize, random: &mut Random) -> Vec<f64> {
        (0..nodes).map(|_| if random.chance(self.slow_nodes) { self.slow_factor } else { 1.0 }).collect()
    }

    /// Time until a node fails.
    pub(crate) fn next_failure(&self, random: &mut Random) -> Option<Span> {
        self.node_mtbf.map(|mean| Span::from_secs(random.exponential(mean.secs())))
    }

    /// Time until a job crashes.
    pub(crate) fn next_crash(&self, random: &mut Random) -> Option<Span> {
        self.job_mtbf.map(|mean| Span::from_secs(random.exponential(mean.secs())))
    }
}
