//! What users do to their own jobs while those are not over: hold them, release them, have them start again, and
//! change what they ask for. A job that is held asks for nothing, as one that waits for others (`delays`); no time can
//! be promised to it, so that what it was promised is given up once it has no devices.

use super::Engine;
use super::jobs::is_sound_shape;
use crate::cluster::Kinds;
use crate::ids::{JobId, JobIdx};
use crate::job::{JobSpec, Length, Shape};
use crate::message::{Edit, Effect, Event, Why, Widen};
use crate::state::State;
use crate::units::Time;

impl Engine {
    pub(super) fn hold(&mut self, job: JobId, out: &mut Vec<Effect>) {
        let Some(row) = self.state.rows.get(&job).copied() else { return };
        if self.state.run(row).held || self.state.run(row).cancelled {
            return;
        }
        self.state.run_mut(row).held = true;
        self.state.changed.touched.push(row);
        out.push(Effect::Publish(Event::Held { job }));
        match self.state.run(row).lease {
            Some(lease) => self.stop_jobs(lease, &[row], Why::Held, out),
            None if self.state.run(row).held_until.is_none() => {
                self.state.withdraw(row);
                self.state.set_aside(row);
            }
            None => self.state.give_up_promise(row),
        }
    }

    /// A job that is still being stopped waits like any other once it has stopped.
    pub(super) fn release_held(&mut self, job: JobId, out: &mut Vec<Effect>) {
        let Some(row) = self.state.rows.get(&job).copied() else { return };
        let state = &mut self.state;
        if !std::mem::take(&mut state.run_mut(row).held) {
            return;
        }
        state.changed.touched.push(row);
        out.push(Effect::Publish(Event::Released { job }));
        if state.run(row).held_until == Some(Time::NEVER) && !state.after.awaits(row) {
            state.forget_delay(row);
            let later = state.specs[row.index()].not_before;
            state.enter_or_hold(row, later);
        }
    }

    /// One that holds no devices waits already.
    pub(super) fn requeue(&mut self, job: JobId, out: &mut Vec<Effect>) {
        let row = self.state.rows.get(&job).copied();
        if let Some((row, lease)) = row.and_then(|row| Some((row, self.state.run(row).lease?))) {
            self.state.promises.stale |= self.state.run(row).promise.is_some();
            self.stop_jobs(lease, &[row], Why::Requeued, out);
        }
    }

    /// A job that asks for devices does so anew: its place in the order may be another one.
    pub(super) fn edit(&mut self, edit: Edit, out: &mut Vec<Effect>) {
        let row = self.state.rows.get(&edit.job).copied();
        let Some(row) = row.filter(|row| self.state.run(*row).state.is_waiting() && is_sound(&edit)) else {
            return;
        };
        let (state, job) = (&mut self.state, edit.job);
        let asks = state.run(row).held_until.is_none();
        if asks {
            state.withdraw(row);
        }
        state.rewrite(row, edit);
        if asks {
            state.newcomers.retain(|other| *other != row);
            state.enter(row);
        }
        state.changed.touched.push(row);
        out.push(Effect::Publish(Event::Edited { job }));
    }

    /// A job that waits may run in more ways from now on. Not one that was promised a time, which is planned in those it had,
    /// that lies frozen, or whose speeds follow from how it trains.
    pub(super) fn widen(&mut self, widen: Widen) {
        let state = &mut self.state;
        let Some(row) = state.rows.get(&widen.job).copied() else { return };
        let (run, spec) = (state.run(row), &state.specs[row.index()]);
        let open = run.state.is_waiting() && run.promise.is_none() && run.home.is_none();
        let more = more_ways(spec, widen, &state.kinds);
        if !open || spec.training.is_some() || more.is_empty() {
            return;
        }
        let asks = run.held_until.is_none();
        if asks {
            state.withdraw(row);
        }
        state.change_spec(row, |spec| {
            spec.shapes = spec.shapes.iter().chain(more.iter().map(|(shape, _)| shape)).cloned().collect();
            spec.speeds = spec.speeds.iter().copied().chain(more.iter().map(|(_, speed)| *speed)).collect();
        });
        if asks {
            state.newcomers.retain(|other| *other != row);
            state.enter(row);
        }
        state.changed.touched.push(row);
    }
}

/// Those of the ways that a job does not have, and can have.
fn more_ways(spec: &JobSpec, widen: Widen, kinds: &Kinds) -> Vec<(Shape, f64)> {
    let known = |shape: &Shape| shape.needs.iter().all(|need| kinds.get(need.kind).is_some());
    let sound = |(shape, speed): &(Shape, f64)| {
        let fits = spec.way(shape).is_none() && is_sound_shape(shape) && known(shape);
        fits && *speed >= 0.0 && speed.is_finite()
    };
    let room = usize::from(u16::MAX).saturating_sub(spec.shapes.len());
    widen.shapes.into_iter().zip(widen.speeds).filter(sound).take(room).collect()
}

impl State {
    /// A job that has no share any more asks for nothing until it is released.
    pub(super) fn set_aside(&mut self, job: JobIdx) {
        self.newcomers.retain(|other| *other != job);
        self.give_up_promise(job);
        self.hold_back(job, Time::NEVER);
    }

    /// Nobody knows when a job that is held will be done. Who comes after it may be late as well.
    fn give_up_promise(&mut self, job: JobIdx) {
        if self.run_mut(job).promise.take().is_some() {
            self.forget_promise(job);
            self.promises.stale = true;
        }
    }

    fn rewrite(&mut self, job: JobIdx, edit: Edit) {
        let (learns, told) = (self.settings.learns_lengths, self.lengths.told().clone());
        let promised = self.run(job).promise.is_some();
        self.change_spec(job, |spec: &mut JobSpec| {
            (spec.name, spec.weight, spec.priority) = (edit.name, edit.weight, edit.priority);
            if !promised && spec.rewards.as_ref().is_none_or(|rewards| rewards.is_empty()) {
                spec.deadline = edit.deadline;
            }
            // What was promised is planned for the length that was known then.
            let Some((steps, length)) = edit.steps.filter(|_| !promised) else { return };
            (spec.steps, spec.length) = (steps, length);
            if learns && length != Length::Stated {
                spec.steps = told.steps(spec);
            }
        });
    }
}

fn is_sound(edit: &Edit) -> bool {
    let above_zero = |value: f64| value > 0.0 && value.is_finite();
    above_zero(edit.weight) && edit.steps.is_none_or(|(steps, _)| above_zero(steps))
}
