//! The simulated cluster. It owns the truth: how fast jobs really run, how far they are, what saving and
//! starting cost, which nodes fail. The engine learns of it through reports only.

use std::sync::Arc;

use smallvec::SmallVec;
use yard_core::belief::Belief;
use yard_core::cluster::{Nodes, Placement};
use yard_core::ids::{JobId, LeaseId, NodeId, ProfileId};
use yard_core::job::{Costs, JobSpec, Shape};
use yard_core::message::{Command, Input, News, NodeChange, Outcome, Report, Why};
use yard_core::table::Table;
use yard_core::training::{Batch, Timing};
use yard_core::{Span, Time};

use crate::company::{self, Mate};
use crate::course::{Course, CourseSpot};
use crate::faults::Faults;
use crate::queue::{Queue, QueueTurn};
use crate::random::Random;

/// Behaviours of papers' simulators that are not how a cluster works, each off by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quirks {
    /// Ends are noticed at multiples of this (Blox: at the end of a round).
    pub end_grain: Span,
    /// At every decision each running job loses its start-up time (Muri), whether it moved or not.
    pub toll: bool,
    /// In each span of this length a job makes whole steps only (Gavel: in each round).
    pub whole_steps: Span,
}

impl Quirks {
    /// Steps done in `worked` seconds.
    fn steps(&self, worked: f64, speed: f64) -> f64 {
        let every = self.whole_steps.secs();
        if every * speed < 1.0 {
            return worked * speed;
        }
        let spans = (worked / every).floor();
        spans * (every * speed).floor() + ((worked - spans * every) * speed).floor()
    }

    /// Seconds until so many steps are done. The last span may end with a part of a step: a job's steps need not
    /// be whole.
    fn seconds(&self, steps: f64, speed: f64) -> f64 {
        let every = self.whole_steps.secs();
        let whole = (every * speed).floor();
        // Slower than a step a span: such a job would never move, so it is let be.
        if whole < 1.0 {
            return steps / speed;
        }
        let spans = ((steps / whole).ceil() - 1.0).max(0.0);
        spans * every + (steps - spans * whole) / speed
    }
}

/// What is going to happen.
#[derive(Debug)]
pub(crate) enum Coming {
    /// A job comes up.
    Up(JobId, u32),
    /// A job may be done: it is asked when it is due.
    Done(JobId),
    /// A job has saved and stopped.
    Down(JobId, u32, Outcome),
    /// A job crashes.
    Crash(JobId, u32),
    /// A job has made enough steps to say how long they take.
    Says(JobId, u32),
    /// A node fails, or is back.
    Fail(NodeId),
    /// It is back.
    Back(NodeId),
    /// Something the scenario has in store.
    Planned(Box<Input>),
}

/// The truth about one job.
#[derive(Clone, Debug)]
struct Truth {
    steps: f64,
    shapes: Arc<[Shape]>,
    speeds: Arc<[f64]>,
    profile: ProfileId,
    /// What it is to its neighbours, where that is known.
    mate: Option<Mate>,
    costs: Costs,
    /// How it goes where that is not by the speeds above: its course, the stage it is in, where it lies, how fast
    /// its slowest node is, and what its steps are made of.
    course: Option<Arc<Course>>,
    stage: usize,
    spot: CourseSpot,
    node_pace: f64,
    batch: Option<Batch>,
    /// Steps done by `since`, and those that are safe in a checkpoint.
    done: f64,
    safe: f64,
    since: Time,
    /// When it came up; its own checkpoints are counted from there.
    up: Time,
    /// Steps a second, here and alone on its devices, and in the company it has.
    alone: f64,
    speed: f64,
    shape: u16,
    lease: LeaseId,
    /// Where it lies frozen, or would if it were stopped for others; none where it does not freeze.
    home: Option<Box<Placement>>,
    /// When it will be done as things are, and in which turn at that time.
    due: (Time, QueueTurn),
    /// When it is next asked: where it is due later, it is asked again then. So there is one question for each job
    /// and not one for each of its starts.
    asked: Time,
    /// Grows with each start and stop, so that what was to come of earlier ones is recognised as stale.
    turn: u32,
    working: bool,
}

/// Time after which a job that came up says how long its steps take.
const SETTLES: Span = Span::from_whole_secs(30);

impl Truth {
    /// The steps at which it next goes over to another stage, or is done.
    fn stage_end(&self) -> f64 {
        let course = self.course.as_ref().filter(|course| self.stage + 1 < course.stages());
        course.map_or(self.steps, |course| course.end(self.stage).min(self.steps))
    }

    /// It is in the stage that the steps it has done put it in.
    fn enter_stage(&mut self) {
        if let Some(course) = &self.course {
            self.stage = course.stage(self.done);
        }
        self.go();
    }

    /// How fast it is alone, as it goes now.
    fn go(&mut self) {
        let Some(course) = &self.course else { return };
        let going = course.going(self.stage, &self.spot, self.batch);
        let shape = if course.regime(0).is_some() { self.speeds[self.shape as usize] } else { 1.0 };
        self.alone = shape * going.speed * self.node_pace;
    }

    /// What it says of itself.
    fn news(&self) -> News {
        let steps = self.done;
        let Some(course) = &self.course else { return News::Progress { steps } };
        if let Some(regime) = course.regime(self.stage) {
            return News::Regime { steps, regime };
        }
        let going = course.going(self.stage, &self.spot, self.batch);
        let pace = self.node_pace;
        let slower = |t: Timing| Timing { grad_s: t.grad_s / pace, step_s: t.step_s / pace, ..t };
        News::Trained { steps, timing: going.timing.map(slower), noise: going.noise }
    }
}

/// The simulated cluster.
#[derive(Debug)]
pub(crate) struct World {
    jobs: Vec<Truth>,
    /// Where nodes are.
    nodes: Nodes,
    node_speeds: Vec<f64>,
    down: Vec<bool>,
    checkpoint_every: Span,
    quirks: Quirks,
    faults: Faults,
    random: Random,
    running: Vec<JobId>,
    /// What jobs keep of their speeds beside each other, and who shares devices with whom.
    pairs: Belief,
    groups: Table<SmallVec<[JobId; 2]>>,
    /// Whether jobs say how far they are, and what they have said.
    pub(crate) talks: bool,
    pub(crate) said: Vec<Input>,
    pub(crate) coming: Queue<Coming>,
}

impl World {
    pub(crate) fn new(
        nodes: Nodes,
        checkpoint_every: Span,
        quirks: Quirks,
        faults: Faults,
        pairs: Belief,
        seed: u64,
    ) -> World {
        let mut random = Random::new(seed);
        let node_speeds = faults.speeds(nodes.len(), &mut random);
        let mut coming = Queue::new();
        for node in 0..nodes.len() as u32 {
            if let Some(after) = faults.next_failure(&mut random) {
                coming.push(Time::ZERO + after, Coming::Fail(NodeId(node)));
            }
        }
        let (down, running) = (vec![false; nodes.len()], Vec::new());
        World {
            jobs: Vec::new(),
            nodes,
            node_speeds,
            down,
            checkpoint_every,
            quirks,
            faults,
            random,
            running,
            pairs,
            groups: Table::new(),
            talks: false,
            said: Vec::new(),
            coming,
        }
    }

    /// A job enters; the engine numbers jobs in the same order.
    pub(crate) fn add(&mut self, spec: &JobSpec, course: Option<Arc<Course>>) {
        self.jobs.push(Truth {
            steps: spec.steps,
            shapes: spec.shapes.clone(),
            speeds: spec.speeds.clone(),
            profile: spec.profile,
            mate: Mate::of(spec),
            costs: course.as_ref().map_or(spec.costs, |course| course.costs),
            course,
            stage: 0,
            spot: CourseSpot::default(),
            node_pace: 1.0,
            batch: None,
            done: 0.0,
            safe: 0.0,
            since: Time::ZERO,
            up: Time::ZERO,
            alone: 0.0,
            speed: 0.0,
            shape: 0,
            lease: LeaseId::default(),
            home: None,
            due: (Time::NEVER, QueueTurn::default()),
            asked: Time::NEVER,
            turn: 0,
            working: false,
        });
    }

    /// Carries out an order. What comes of it is reported later, at this instant at the earliest.
    pub(crate) fn execute(&mut self, now: Time, command: &Command) {
        match command {
            Command::Grant { lease, jobs, shapes, batches, placement, .. } => {
                match self.groups.get_mut(lease) {
                    Some(group) => group.extend_from_slice(jobs),
                    None => _ = self.groups.insert(*lease, SmallVec::from_slice(jobs)),
                }
                let each = jobs.iter().zip(shapes).zip(batches);
                each.for_each(|((job, shape), batch)| {
                    self.start(now, *job, *lease, (*shape, *batch), placement);
                });
            }
            Command::Renew { .. } => {}
            Command::Tune { lease, job, batch } => self.tune(now, *job, *lease, *batch),
            Command::Revoke { jobs, why, .. } => jobs.iter().for_each(|job| self.stop(now, *job, *why)),
        }
    }

    fn start(
        &mut self,
        now: Time,
        id: JobId,
        lease: LeaseId,
        (shape, batch): (u16, Option<Batch>),
        placement: &Placement,
    ) {
        // A gang goes at the pace of its slowest node.
        let pace = placement.0.iter().map(|slice| self.node_speeds[slice.node.index()]).fold(1.0, f64::min);
        let freezes = self.freezes(id);
        let job = &mut self.jobs[id.index()];
        if freezes && job.home.as_deref() != Some(placement) {
            // What it had on other devices is gone.
            (job.done, job.home) = (job.safe, Some(Box::new(placement.clone())));
        }
        let load = if job.done > 0.0 { job.costs.load } else { Span::ZERO };
        // Muri's simulator takes the start-up time at the next decision instead.
        let delay = if self.quirks.toll { Span::ZERO } else { job.costs.start + load };
        (job.lease, job.turn, job.shape) = (lease, job.turn + 1, shape);
        job.alone = job.speeds[self.nodes.lying(&job.shapes, shape, placement) as usize] * pace;
        (job.batch, job.node_pace) = (batch, pace);
        if job.course.is_some() {
            job.spot = CourseSpot {
                kind: job.shapes[shape as usize].needs.first().map(|need| need.kind).unwrap_or_default(),
                counts: placement.0.iter().map(|slice| slice.mask.count_ones()).collect(),
            };
            job.enter_stage();
        }
        job.speed = job.alone;
        self.coming.push(now + delay, Coming::Up(id, job.turn));
    }

    fn stop(&mut self, now: Time, id: JobId, why: Why) {
        self.settle(now, id);
        self.running.retain(|other| *other != id);
        let freezes = self.freezes(id);
        let job = &mut self.jobs[id.index()];
        job.turn += 1;
        job.due.0 = Time::NEVER;
        let worked = std::mem::take(&mut job.working);
        let (delay, outcome) = match why {
            Why::Lost => (Span::ZERO, Outcome::Lost),
            Why::Preempted if worked && freezes => (job.costs.save, Outcome::Frozen),
            _ if worked && !self.quirks.toll => (job.costs.save, Outcome::Saved),
            _ => (Span::ZERO, Outcome::Saved),
        };
        match outcome {
            Outcome::Saved => job.safe = job.done,
            Outcome::Frozen => {}
            _ => job.done = job.safe,
        }
        self.coming.push(now + delay, Coming::Down(id, job.turn, outcome));
        self.leave_group(now, id);
    }

    /// Whether a job lies frozen when it is stopped for others.
    fn freezes(&self, id: JobId) -> bool {
        self.faults.freezing && id.0.is_multiple_of(2)
    }

    /// Its steps are of another size from now on.
    fn tune(&mut self, now: Time, id: JobId, lease: LeaseId, batch: Batch) {
        if self.jobs[id.index()].lease != lease {
            return;
        }
        self.settle(now, id);
        let job = &mut self.jobs[id.index()];
        job.batch = Some(batch);
        job.go();
        if job.working {
            self.go_on(now, id);
        }
    }

    /// A job goes at another speed by itself from now on.
    fn go_on(&mut self, now: Time, id: JobId) {
        let lease = self.jobs[id.index()].lease;
        if self.groups.get(&lease).is_some_and(|group| group.len() > 1) {
            self.regroup(now, lease);
        } else {
            let job = &mut self.jobs[id.index()];
            job.speed = job.alone;
        }
        self.expect_end(now, id);
    }

    /// A job works no more; those it shared devices with go on.
    fn leave_group(&mut self, now: Time, id: JobId) {
        let lease = self.jobs[id.index()].lease;
        let Some(group) = self.groups.get_mut(&lease) else { return };
        group.retain(|member| *member != id);
        if group.is_empty() {
            self.groups.remove(&lease);
        }
        self.regroup(now, lease);
    }

    /// The company on these devices changed: all who work there go at another speed from now on.
    fn regroup(&mut self, now: Time, lease: LeaseId) {
        let Some(group) = self.groups.get(&lease) else { return };
        let works = |id: &JobId| self.jobs[id.index()].working;
        let working: SmallVec<[JobId; 2]> = group.iter().copied().filter(works).collect();
        let as_it_was = |id: &JobId| self.jobs[id.index()].speed == self.jobs[id.index()].alone;
        if working.len() == 1 && working.iter().all(as_it_was) {
            return;
        }
        for id in &working {
            self.tell(now, *id);
            self.jobs[id.index()].speed = self.speed_in(*id, &working);
            self.expect_end(now, *id);
        }
    }

    /// Brings a job's account up to `now`; where jobs talk, the engine hears of it.
    fn tell(&mut self, now: Time, id: JobId) {
        let news = self.jobs[id.index()].since < now;
        self.settle(now, id);
        if news && (self.talks || self.jobs[id.index()].course.is_some()) {
            self.said.push(self.report(id, self.jobs[id.index()].news()));
        }
    }

    /// All who work say how far they are, as before a decision.
    pub(crate) fn ask_all(&mut self, now: Time) {
        let says = |id: &&JobId| self.talks || self.jobs[id.index()].course.is_some();
        let who: Vec<JobId> = self.running.iter().filter(says).copied().collect();
        who.into_iter().for_each(|id| self.tell(now, id));
    }

    /// How fast a job really is.
    pub(crate) fn speed(&self, id: JobId) -> f64 {
        self.jobs[id.index()].speed
    }

    /// Steps a second of a job beside the others that work on its devices.
    fn speed_in(&self, id: JobId, working: &[JobId]) -> f64 {
        let job = &self.jobs[id.index()];
        let others = || working.iter().filter(|other| **other != id).map(|other| &self.jobs[other.index()]);
        let needs = &job.shapes[job.shape as usize].needs;
        let measured = |other: &Truth| {
            needs.iter().all(|need| self.pairs.beside(job.profile, other.profile, need.kind).is_some())
        };
        let mates: Option<SmallVec<[Mate; 4]>> = others().map(|other| other.mate).collect();
        match job.mate.zip(mates) {
            Some((mate, mates)) if !others().all(measured) => job.alone * company::kept(mate, &mates),
            _ => job.alone * self.pairs.kept(job.profile, others().map(|other| other.profile), needs),
        }
    }

    /// Brings a job's account up to `now`, its own checkpoints included.
    fn settle(&mut self, now: Time, id: JobId) {
        let job = &mut self.jobs[id.index()];
        if !job.working {
            return;
        }
        let worked = (now - job.since).secs();
        let every = self.checkpoint_every.secs();
        let before = (job.since - job.up).secs();
        let saved = ((now - job.up).secs() / every).floor() * every;
        if every == 0.0 {
            // Without a period every step is taken as saved, so that failures cost nothing but the restart.
            job.safe = (job.done + self.quirks.steps(worked, job.speed)).min(job.steps);
        } else if saved > before {
            job.safe = (job.done + self.quirks.steps(saved - before, job.speed)).min(job.steps);
        }
        job.done = (job.done + self.quirks.steps(worked, job.speed)).min(job.steps);
        job.since = now;
    }

    /// Turns what happens into an input for the engine; `None` where it has become stale.
    pub(crate) fn happen(&mut self, now: Time, turn: QueueTurn, coming: Coming) -> Option<Input> {
        match coming {
            Coming::Up(id, turn) => self.current(id, turn).then(|| self.up(now, id)),
            Coming::Done(id) => {
                let due = self.is_due(now, turn, id);
                due.then(|| self.end_stage(now, id).unwrap_or_else(|| self.done(now, id)))
            }
            Coming::Says(id, turn) => {
                if self.current(id, turn) {
                    self.tell(now, id);
                }
                None
            }
            Coming::Down(id, turn, outcome) => self.current(id, turn).then(|| self.down(id, outcome)),
            Coming::Crash(id, turn) => self.current(id, turn).then(|| self.crash(now, id)),
            Coming::Fail(node) => self.fail(now, node),
            Coming::Back(node) => self.back(now, node),
            Coming::Planned(input) => Some(*input),
        }
    }

    fn current(&self, id: JobId, turn: u32) -> bool {
        self.jobs[id.index()].turn == turn
    }

    /// Whether a job that is asked is done. One that is not yet is asked again when it should be.
    fn is_due(&mut self, now: Time, turn: QueueTurn, id: JobId) -> bool {
        let job = &mut self.jobs[id.index()];
        if now == job.asked {
            job.asked = Time::NEVER;
        }
        let is_due = job.due == (now, turn);
        if !is_due {
            self.ask(id);
        }
        is_due
    }

    /// Asks a job when it is due whether it is done, unless it is asked before anyway.
    fn ask(&mut self, id: JobId) {
        let job = &mut self.jobs[id.index()];
        let (due, turn) = job.due;
        if due < job.asked {
            job.asked = due;
            self.coming.push_in_turn(due, turn, Coming::Done(id));
        }
    }

    fn report(&self, id: JobId, news: News) -> Input {
        Input::Report(Report { lease: self.jobs[id.index()].lease, job: id, news })
    }

    fn up(&mut self, now: Time, id: JobId) -> Input {
        let job = &mut self.jobs[id.index()];
        (job.working, job.since, job.up) = (true, now, now);
        if let Some(after) = self.faults.next_crash(&mut self.random) {
            self.coming.push(now + after, Coming::Crash(id, job.turn));
        }
        if self.quirks.toll || self.talks || job.course.is_some() {
            self.running.push(id);
        }
        if job.course.is_some() {
            self.coming.push(now + SETTLES, Coming::Says(id, job.turn));
        }
        let lease = job.lease;
        self.expect_end(now, id);
        if self.groups.get(&lease).is_some_and(|group| group.len() > 1) {
            self.regroup(now, lease);
        }
        self.report(id, News::Started)
    }

    fn expect_end(&mut self, now: Time, id: JobId) {
        let job = &mut self.jobs[id.index()];
        let goal = job.stage_end();
        let left = Span::from_secs(self.quirks.seconds((goal - job.done).max(0.0), job.speed));
        let grain = if goal < job.steps { Span::ZERO } else { self.quirks.end_grain };
        let end = (now + left).round_up(grain);
        // Beside a neighbour that leaves it nothing it never ends.
        job.due = (if job.speed > 0.0 { end } else { Time::NEVER }, self.coming.turn());
        self.ask(id);
    }

    /// A job goes over to its next stage and says so; none where this was its last.
    fn end_stage(&mut self, now: Time, id: JobId) -> Option<Input> {
        let job = &self.jobs[id.index()];
        let goal = job.stage_end();
        if goal >= job.steps {
            return None;
        }
        self.settle(now, id);
        let job = &mut self.jobs[id.index()];
        // Whole microseconds: it may be a little short of what it has just reached.
        job.done = job.done.max(goal);
        job.enter_stage();
        let news = job.news();
        self.go_on(now, id);
        Some(self.report(id, news))
    }

    fn done(&mut self, now: Time, id: JobId) -> Input {
        self.running.retain(|other| *other != id);
        let job = &mut self.jobs[id.index()];
        (job.working, job.done, job.turn) = (false, job.steps, job.turn + 1);
        job.due.0 = Time::NEVER;
        let steps = job.steps;
        self.leave_group(now, id);
        self.report(id, News::Stopped { steps, outcome: Outcome::Finished })
    }

    fn down(&mut self, id: JobId, outcome: Outcome) -> Input {
        let steps = self.jobs[id.index()].done;
        self.report(id, News::Stopped { steps, outcome })
    }

    fn crash(&mut self, now: Time, id: JobId) -> Input {
        self.settle(now, id);
        self.running.retain(|other| *other != id);
        let job = &mut self.jobs[id.index()];
        (job.working, job.done, job.turn) = (false, job.safe, job.turn + 1);
        job.due.0 = Time::NEVER;
        self.leave_group(now, id);
        self.down(id, Outcome::Crashed)
    }

    fn fail(&mut self, now: Time, node: NodeId) -> Option<Input> {
        self.coming.push(now + self.faults.repair, Coming::Back(node));
        let was_down = std::mem::replace(&mut self.down[node.index()], true);
        (!was_down).then_some(Input::Node(NodeChange::Fail(node)))
    }

    fn back(&mut self, now: Time, node: NodeId) -> Option<Input> {
        self.down[node.index()] = false;
        if let Some(after) = self.faults.next_failure(&mut self.random) {
            self.coming.push(now + after, Coming::Fail(node));
        }
        Some(Input::Node(NodeChange::Resume(node)))
    }

    /// Muri's toll: what every running job reports just before a decision.
    pub(crate) fn toll(&mut self, now: Time) -> Vec<Input> {
        if !self.quirks.toll {
            return Vec::new();
        }
        let running = self.running.clone();
        running.iter().map(|id| self.pay(now, *id)).collect()
    }

    fn pay(&mut self, now: Time, id: JobId) -> Input {
        let job = &mut self.jobs[id.index()];
        // Nothing is taken twice at one instant.
        let worked = (now - job.since).secs();
        job.done = (job.done + (worked - job.costs.start.secs()).max(0.0) * job.speed).min(job.steps);
        (job.since, job.turn) = (now, job.turn + 1);
        let steps = job.done;
        self.expect_end(now, id);
        self.report(id, News::Progress { steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_steps_are_made_in_each_span() {
        let quirks = Quirks { whole_steps: Span::from_secs(10.0), ..Quirks::default() };
        // 2 steps in each 10 s at 0.25 a second; 5.5 steps are 2 + 2 + 1.5.
        assert_eq!(quirks.steps(25.0, 0.25), 5.0);
        assert_eq!(quirks.seconds(5.5, 0.25), 26.0);
        assert_eq!(quirks.seconds(2.0, 0.25), 8.0);
        assert_eq!(quirks.seconds(0.0, 0.25), 0.0);
        assert_eq!(Quirks::default().seconds(5.5, 0.25), 22.0);
    }
}
