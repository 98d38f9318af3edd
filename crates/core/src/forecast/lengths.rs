//! How long jobs are of which nobody said so, in a scenario.

use super::Scenario;
use super::past::Draw;
use crate::job::{JobSpec, Length};
use crate::state::State;

impl State {
    /// Draws the lengths that nobody stated, of jobs that are here and of jobs that come: each as long as one like it.
    pub(crate) fn draw_lengths(&self, scenario: &mut Scenario, draw: Draw<'_>) {
        let told = self.lengths.told();
        let mut drawn = |spec: &JobSpec, done| told.drawn(spec, done, (draw(999) + 1) as f64 / 1_000.0);
        let open = |spec: &JobSpec| self.settings.learns_lengths && spec.length != Length::Stated;
        for (job, row) in self.rows.iter() {
            let spec = &self.specs[row.index()];
            if open(spec) {
                scenario.steps.insert(*job, drawn(spec, self.run(*row).done_at(self.now)));
            }
        }
        let coming = scenario.arrivals.iter_mut().filter(|(_, spec, _)| open(spec));
        coming.for_each(|(_, spec, steps)| *steps = drawn(spec, 0.0));
    }
}
