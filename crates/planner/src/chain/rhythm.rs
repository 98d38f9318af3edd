//! One forward, one backward: each stage first runs some forward passes, then backward and forward in turn, then what is
//! left of the backward ones.
//!
//! The closed form of DAPPLE's paper is exact for equal stages and up to 40 % too short for stages that differ by a tenth;
//! so candidates are simulated, and [`Rhythm::bound`] says which need not be.

/// A stage: computing, or handing over between two that compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RhythmBeats {
    /// Seconds of a micro-batch forward.
    pub forward: f64,
    /// Seconds of a micro-batch backward.
    pub backward: f64,
    /// Seconds of reducing its gradients at the end.
    pub reduce: f64,
    /// Forward passes before the first backward one, at most.
    pub ahead: u32,
}

/// Stages in order, and how many micro-batches go through them.
#[derive(Clone, Debug, PartialEq)]
pub struct Rhythm {
    pub(super) stages: Vec<RhythmBeats>,
    pub(super) micro_batches: u32,
}

/// What a stage does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RhythmTurn {
    forward: bool,
    micro_batch: usize,
}

impl RhythmBeats {
    /// The turn at a place of the stage's order.
    fn turn(&self, at: usize, micro_batches: usize) -> RhythmTurn {
        let ahead = (self.ahead as usize).clamp(1, micro_batches);
        if at < ahead {
            return RhythmTurn { forward: true, micro_batch: at };
        }
        let after = at - ahead;
        let alternating = 2 * (micro_batches - ahead);
        if after >= alternating {
            return RhythmTurn { forward: false, micro_batch: micro_batches - ahead + (after - alternating) };
        }
        match after % 2 {
            0 => RhythmTurn { forward: false, micro_batch: after / 2 },
            _ => RhythmTurn { forward: true, micro_batch: ahead + after / 2 },
        }
    }
}

/// Where the simulation of a stage stands.
struct RhythmProgress {
    at: usize,
    now: f64,
    /// When each micro-batch's forward pass ended, and its backward pass.
    ends: [Vec<f64>; 2],
}

impl Rhythm {
    /// Stages that run no further ahead than those before them let them: else each would wait for the other.
    pub fn new(mut stages: Vec<RhythmBeats>, micro_batches: u32) -> Rhythm {
        let mut most = u32::MAX;
        for stage in &mut stages {
            most = most.min(stage.ahead).max(1);
            stage.ahead = most;
        }
        Rhythm { stages, micro_batches }
    }

    /// Seconds until the last stage has reduced its gradients.
    pub fn simulate(&self) -> f64 {
        let turns = 2 * self.micro_batches as usize;
        let new = || RhythmProgress { at: 0, now: 0.0, ends: [Vec::new(), Vec::new()] };
        let mut all: Vec<RhythmProgress> = self.stages.iter().map(|_| new()).collect();
        while all.iter().any(|one| one.at < turns) {
            let before: usize = all.iter().map(|one| one.at).sum();
            (0..all.len()).for_each(|stage| self.advance(stage, &mut all));
            let after: usize = all.iter().map(|one| one.at).sum();
            assert!(after > before, "a stage never waits for what waits for it");
        }
        let ends = self.stages.iter().zip(&all).map(|(stage, one)| one.now + stage.reduce);
        ends.fold(0.0, f64::max)
    }

    /// Runs a stage until it has to wait for another.
    fn advance(&self, stage: usize, all: &mut [RhythmProgress]) {
        let (beats, many) = (&self.stages[stage], self.micro_batches as usize);
        while all[stage].at < 2 * many {
            let turn = beats.turn(all[stage].at, many);
            let Some(ready) = self.ready(stage, turn, all) else { return };
            let one = &mut all[stage];
            one.now = one.now.max(ready) + if turn.forward { beats.forward } else { beats.backward };
            one.ends[usize::from(!turn.forward)].push(one.now);
            one.at += 1;
        }
    }

    /// When what a turn needs from elsewhere is there, if that is known yet.
    fn ready(&self, stage: usize, turn: RhythmTurn, all: &[RhythmProgress]) -> Option<f64> {
        let [forward, last] = [turn.forward, stage + 1 == self.stages.len()];
        let ends = match (forward, last) {
            (true, _) if stage == 0 => return Some(0.0),
            (true, _) => &all[stage - 1].ends[0],
            (false, true) => &all[stage].ends[0],
            (false, false) => &all[stage + 1].ends[1],
        };
        ends.get(turn.micro_batch).copied()
    }

    /// No simulation is shorter than this.
    pub fn bound(&self) -> f64 {
        let (many, mut bound, mut before) = (f64::from(self.micro_batches), 0.0f64, 0.0);
        for (at, stage) in self.stages.iter().enumerate() {
            let after: f64 = self.stages[at + 1..].iter().map(|other| other.forward + other.backward).sum();
            let ahead = f64::from(stage.ahead.clamp(1, self.micro_batches));
            let busy = many * (stage.forward + stage.backward);
            let waiting = stage.forward + after + (many - ahead) * stage.forward + many * stage.backward;
            let mut end = before + busy.max(waiting);
            bound = bound.max(end + stage.reduce);
            for earlier in self.stages[..at].iter().rev() {
                end += earlier.backward;
                bound = bound.max(end + earlier.reduce);
            }
            before += stage.forward;
        }
        bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(stages: u32, micro_batches: u32) -> Rhythm {
        let beats = |at| RhythmBeats { forward: 1.0, backward: 2.0, reduce: 0.5, ahead: stages - at };
        Rhythm::new((0..stages).map(beats).collect(), micro_batches)
    }

    #[test]
    fn equal_stages_take_the_known_time() {
        // All micro-batches once, and the bubble of the other stages.
        for (stages, micro_batches) in [(1, 1), (1, 8), (2, 8), (4, 4), (4, 16), (8, 3)] {
            let known = 3.0 * f64::from(micro_batches + stages - 1) + 0.5;
            assert_eq!(equal(stages, micro_batches).simulate(), known, "{stages} stages");
            assert_eq!(equal(stages, micro_batches).bound(), known, "{stages} stages");
        }
    }

    #[test]
    fn turns_are_each_pass_once_and_backward_after_forward() {
        for (ahead, many) in [(1, 1), (1, 5), (3, 5), (5, 5), (9, 5)] {
            let beats = RhythmBeats { forward: 1.0, backward: 1.0, reduce: 0.0, ahead };
            let turns: Vec<RhythmTurn> = (0..2 * many).map(|at| beats.turn(at, many)).collect();
            for micro_batch in 0..many {
                let place = |forward| {
                    let found: Vec<_> = (0..2 * many)
                        .filter(|at| turns[*at] == RhythmTurn { forward, micro_batch })
                        .collect();
                    assert_eq!(found.len(), 1, "{turns:?}");
                    found[0]
                };
                assert!(place(true) < place(false), "{turns:?}");
            }
        }
    }
}
