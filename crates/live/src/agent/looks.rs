//! What nobody tells the agent and it has to look for itself: how cards are doing, and which are to be trusted.

use std::collections::BTreeMap;

use yard_core::Span;
use yard_core::part::{PartId, Told};

use super::cards::{FoundCards, LiveCards};
use super::serve::Agent;
use crate::wire::FromAgent;

impl Agent {
    /// Looks at what nobody tells of: cards, and times that pass.
    pub(super) fn look(&mut self) {
        self.cards.look(self.now(), Span(self.config.look.as_micros() as u64));
        self.examine();
        self.mps.look(self.now());
        for (group, device) in self.quarantine.released(self.now()) {
            let problem = self.cards.problem((group, device)).map(str::to_owned);
            self.health(group, device, problem);
        }
    }

    /// Some cards were read. Once all were, the server is told.
    pub(super) fn cards_read(&mut self, found: FoundCards) {
        let whole = self.cards.take(found);
        self.examine();
        if whole && self.link.up {
            let live = self.live();
            for news in self.cards.news(&live) {
                if let FromAgent::Looked { cards } = &news {
                    self.watch_cards(cards);
                    self.measure(cards);
                }
                self.say(news);
            }
        }
    }

    /// Cards whose problems are others than before. One that fails jobs stays out of service, however well it looks.
    fn examine(&mut self) {
        for ((group, device), problem) in self.cards.problems() {
            let quarantined = || self.quarantine.reason((group, device)).map(str::to_owned);
            self.health(group, device, problem.or_else(quarantined));
        }
    }

    /// The parts that have not ended, with their devices.
    fn live(&self) -> Vec<LiveCards> {
        // Of what is known of a part, the last counts.
        let parts: BTreeMap<PartId, Told> = self.state.holder.parts().into_iter().collect();
        let live =
            parts.into_iter().filter(|(_, told)| !matches!(told, Told::Ended(_))).map(|(part, _)| part);
        live.filter_map(|part| Some((part, self.state.holder.start(part)?.devices.clone()))).collect()
    }

    /// Notes what is wrong with a device, and says so where that is news.
    pub(super) fn health(&mut self, group: u32, device: u32, problem: Option<String>) {
        if self.devices.set_problem(group, device, problem.clone()) {
            tracing::warn!(group, device, ?problem, "device");
            self.say(FromAgent::Health { group, device, problem });
        }
    }
}
