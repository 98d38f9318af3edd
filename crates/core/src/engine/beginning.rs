//! A driver begins, at first or after a restart; and what it says of the cluster before any node joins.

use std::sync::Arc;

use super::Engine;
use crate::cluster::KINDS_MAX;
use crate::state::Settings;

impl Engine {
    /// New settings, and nothing that only the last driver remembered: who answered plans forgot all it knew, and
    /// the answer to one that was being made will not come.
    pub(super) fn begin(&mut self, settings: Settings) {
        settings.assert_sound();
        let state = &mut self.state;
        state.settings = settings;
        state.plan = None;
        state.promises.stale = true;
        state.vacant.append(&mut state.cooling);
        (state.changed.all, state.dirty, state.loose) = (true, true, true);
    }

    pub(super) fn kind(&mut self, name: &str) {
        let state = &mut self.state;
        if state.kinds.find(name).is_none() && state.kinds.len() < KINDS_MAX {
            Arc::make_mut(&mut state.kinds).intern(name);
            state.changed.nodes = true;
        }
    }
}
