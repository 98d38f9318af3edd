//! How things are, for who runs the past again: a copy, and the driver does no more for it.

use yard_core::cluster::NodeState;

use super::Driver;
use crate::handle::Refusal;
use crate::replay::Present;

impl Driver {
    pub(super) fn present(&self) -> Result<Present, Refusal> {
        let none = "this server runs without estimates";
        let (how, make) = self.forecaster.how().ok_or_else(|| Refusal::Unavailable(none.into()))?;
        let mut nodes = Vec::new();
        for host in self.hosts.list.iter().filter(|host| !host.is_gone()) {
            for node in host.nodes.iter().map(|node| self.engine.nodes().get(*node)) {
                nodes.push((host.name.clone(), node.spec.clone(), node.state == NodeState::Down));
            }
        }
        Ok(Present {
            at: self.clock.peek().max(self.engine.now()),
            kinds: self.engine.kinds().clone(),
            nodes,
            settings: self.config.settings.clone(),
            policy: self.config.policy.clone(),
            make,
            placer: how.placer,
            catalog: self.config.catalog.clone(),
            belief: self.engine.view().belief,
            offers: self.offers(),
        })
    }
}
