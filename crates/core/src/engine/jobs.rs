//! Jobs come, are withdrawn, and end.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Engine;
use super::promises::Answer;
use crate::cluster::{Kinds, Level, Nodes, ResourceId, Resources, Shortage};
use crate::goodput::checks;
use crate::ids::{JobId, JobIdx, LeaseId};
use crate::job::{JobRun, JobSpec, JobState, Length, Shape};
use crate::leases::LeaseState;
use crate::message::{Effect, Event, Why};
use crate::state::State;

impl Engine {
    pub(super) fn submit(&mut self, mut spec: JobSpec, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        let id = JobId(state.ledger.submitted);
        let admitted = admit(&spec, state).and_then(|()| state.awaited(&spec));
        state.ledger.submitted += 1;
        let awaited = match admitted {
            Ok(awaited) => awaited,
            Err(reason) => {
                state.ledger.ended += 1;
                state.after.note_failed(id);
                return out.push(Effect::Publish(Event::Rejected { job: id, reason, earliest: None }));
            }
        };
        let guesses = spec.speeds.clone();
        if let Some(speeds) = state.first_speeds(&spec) {
            spec.speeds = speeds;
        } else if state.belief.learns() {
            spec.speeds =
                Arc::make_mut(&mut state.belief).guess(spec.profile, &spec.shapes, &spec.speeds).into();
        }
        if state.settings.learns_lengths && spec.length != Length::Stated {
            spec.steps = state.lengths.told().steps(&spec);
        }
        let answer = state.answer(&spec);
        if let Answer::Refused { reason, earliest } = answer {
            state.ledger.ended += 1;
            state.after.note_failed(id);
            return out.push(Effect::Publish(Event::Rejected { job: id, reason, earliest }));
        }
        let later = spec.not_before;
        let row = state.add_row(spec, JobRun::new(id, state.now));
        state.begin_training(row, guesses);
        if awaited.is_empty() {
            state.enter_or_hold(row, later);
        } else {
            state.hold_for(row, &awaited);
        }
        out.push(Effect::Publish(Event::Submitted { job: id }));
        out.extend(state.note_answer(row, answer).map(Effect::Publish));
    }

    pub(super) fn cancel(&mut self, job: JobId, why: Why, out: &mut Vec<Effect>) {
        let Some(row) = self.state.rows.get(&job).copied() else { return };
        let run = self.state.run_mut(row);
        run.cancelled = true;
        let lease = run.lease;
        self.state.changed.touched.push(row);
        match lease {
            None => self.end_job(row, JobState::Cancelled, out),
            Some(lease) => self.stop_jobs(lease, &[row], why, out),
        }
    }

    /// A job is over, and so is the wait of those that come after it.
    pub(super) fn end_job(&mut self, job: JobIdx, end: JobState, out: &mut Vec<Effect>) {
        let id = self.state.run(job).id;
        self.end_row(job, end, out);
        self.settle_followers(id, end, out);
    }

    /// A job leaves the book and its row becomes free.
    pub(super) fn end_row(&mut self, job: JobIdx, end: JobState, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        state.withdraw(job);
        state.forget_delay(job);
        state.forget_awaited(job);
        state.stints.remove(&job);
        state.trainees.remove(&job);
        state.forget_promise(job);
        let now = state.now;
        let run = state.run_mut(job);
        run.become_state(now, end);
        let (id, attained) = (run.id, run.attained);
        state.ledger.ended += 1;
        state.ledger.ended_attained += attained;
        state.resting.remove(&job);
        state.rows.remove(&id);
        let rows = if state.plan.is_some() { &mut state.cooling } else { &mut state.vacant };
        rows.push(job);
        out.push(Effect::Publish(Event::Ended { job: id, state: end }));
    }
}

impl State {
    /// Takes a job that holds no devices out of all shares: it asks for nothing, as if it were over.
    pub(super) fn withdraw(&mut self, job: JobIdx) {
        for share in SmallVec::<[_; 1]>::from_slice(self.book.shares_of(job)) {
            // A promise to a single job falls with it; a group goes on without it.
            let entry = self.book.entry(share);
            let lease = entry.lease.filter(|_| entry.jobs.len() == 1);
            if let Some(lease) = lease {
                self.release(lease);
                self.book.unchoose(share);
                self.abandon(lease);
            } else if let Some(lease) = entry.lease.and_then(|lease| self.leases.get_mut(lease)) {
                lease.drop_job(job, &self.specs);
            }
        }
        self.book.remove_job(job, &self.specs);
        self.changed.ended.push(job);
        self.dirty = true;
    }

    /// A lease goes to nobody. Those who are still on their way out of it give the devices back.
    fn abandon(&mut self, lease: LeaseId) {
        if self.leases.get(lease).is_some_and(|lease| lease.state == LeaseState::Promised) {
            self.leases.remove(lease);
        } else {
            self.leases.end(lease);
        }
    }
}

/// Whether a job can ever run here, and if not, why. An empty cluster takes any.
fn admit(spec: &JobSpec, state: &State) -> Result<(), String> {
    let (nodes, kinds, resources) = (&state.nodes, &*state.kinds, &state.resources);
    if spec.shapes.is_empty() || spec.speeds.len() != spec.shapes.len() {
        return Err("a job needs at least one shape, and one speed for each".into());
    }
    if spec.speeds.iter().any(|speed| !(*speed >= 0.0 && speed.is_finite())) {
        return Err("a job's speeds must be finite numbers, none below 0".into());
    }
    if !spec.shapes.iter().all(names_kinds_once) {
        return Err(
            "each shape needs devices, at least one of each kind it names, and names a kind once".into()
        );
    }
    if spec.shapes.iter().any(|shape| shape.needs.len() > 1 && shape.host.is_some()) {
        return Err(
            "a shape of several kinds has what belongs to its devices, and cannot ask for amounts of hosts"
                .into(),
        );
    }
    if !spec.shapes.iter().all(is_even) {
        return Err("a shape that names a number of nodes has devices of one kind, as many on each, and nodes in whole \
                    segments"
            .into());
    }
    if spec.shapes.iter().flat_map(|shape| &shape.needs).any(|need| kinds.get(need.kind).is_none()) {
        return Err("a job's shapes must name kinds that are known here".into());
    }
    if !(spec.steps > 0.0 && spec.steps.is_finite() && spec.weight > 0.0 && spec.weight.is_finite()) {
        return Err("a job's steps and weight must be finite numbers above 0".into());
    }
    spec.training.as_ref().map_or(Ok(()), |training| checks::check(training, &spec.shapes, kinds))?;
    if nodes.is_empty() || spec.shapes.iter().any(|shape| nodes.could_hold(shape)) {
        return Ok(());
    }
    let smallest = spec.shapes.iter().min_by_key(|shape| shape.devices()).expect("it has a shape");
    if let Some(short) = nodes.never_enough(smallest) {
        return Err(too_little(short, resources));
    }
    if let Some(refusal) = too_few_nodes(smallest, nodes, kinds) {
        return Err(refusal);
    }
    Err(smallest.needs.first().map_or("it asks for no device".into(), |need| {
        let (kind, have) =
            (kinds.get(need.kind).unwrap_or("an unknown kind"), nodes.most(smallest, need.kind));
        let place = match smallest.level() {
            Level::Any => "the cluster has".to_owned(),
            level => format!("no {} has more than", level.name()),
        };
        format!("it asks for {} devices of {kind}, and {place} {have}", need.devices)
    }))
}

/// What hosts have too little of, in the words of people.
fn too_little(short: Shortage, resources: &Resources) -> String {
    let amount = |amount: u32| match short.resource {
        ResourceId::CORES => format!("{} cores", f64::from(amount) / 1000.0),
        ResourceId::MEMORY => format!("{amount} MiB of memory"),
        other => format!("{amount} {}", resources.name(other)),
    };
    format!(
        "it asks for {} on a node, and no node it may use has more than {}",
        amount(short.needed),
        amount(short.free)
    )
}

/// Why a number of nodes is too large, in the words of people.
fn too_few_nodes(shape: &Shape, nodes: &Nodes, kinds: &Kinds) -> Option<String> {
    let (asked, each) = (shape.nodes?, shape.each_node()?);
    let kind = shape.needs[0].kind;
    let together = match (shape.segment, shape.level()) {
        (_, Level::Any) => String::new(),
        (None, level) => format!(" in one {}", level.name()),
        (Some(segment), level) => format!(", in segments of {segment} in one {}", level.name()),
    };
    let (most, name) = (nodes.most(shape, kind) / each.max(1), kinds.name(kind));
    Some(format!(
        "it asks for {asked} nodes with {each} devices of {name} each{together}, and there are {most}"
    ))
}

/// Whether its devices can be shared evenly among the nodes that it names, and those among its segments.
fn is_even(shape: &Shape) -> bool {
    match (shape.nodes, shape.segment) {
        (None, segment) => segment.is_none(),
        (Some(nodes), segment) => {
            let whole = segment.is_none_or(|segment| nodes.checked_rem(segment) == Some(0));
            shape.each_node().is_some_and(|each| each > 0) && whole
        }
    }
}

/// Whether a shape can be asked for at all.
pub(super) fn is_sound_shape(shape: &Shape) -> bool {
    names_kinds_once(shape) && is_even(shape) && (shape.needs.len() == 1 || shape.host.is_none())
}

fn names_kinds_once(shape: &Shape) -> bool {
    let once = |at: usize| shape.needs[..at].iter().all(|need| need.kind != shape.needs[at].kind);
    !shape.needs.is_empty() && (0..shape.needs.len()).all(|at| shape.needs[at].devices > 0 && once(at))
}
