//! A cluster in miniature: it keeps the view, applies allocations as the engine would, by counting, and
//! lets time pass. Starts and stops take effect at once unless a test says otherwise.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::cluster::Kinds;
use yard_core::ids::{JobId, JobIdx, KindId, LeaseId};
use yard_core::job::{JobRun, JobState, Shape, Sharing};
use yard_core::policy::{Cadence, Policy};
use yard_core::units::{Span, Time};
use yard_core::view::{Changed, View};

use super::{TestNode, job, nodes_of};

/// The cluster in miniature. All devices are of one kind.
pub(crate) struct World {
    pub(crate) view: View,
    /// Whether rows of ended jobs are used again.
    pub(crate) reuse: bool,
    /// When jobs ended, by number, in seconds.
    pub(crate) ends: BTreeMap<JobId, f64>,
    /// Deadlines in seconds of jobs that come when `run` comes to them, by number; none where there are fewer.
    pub(crate) deadlines: Vec<f64>,
    /// The shares in force, by their first job.
    pub(crate) shares: BTreeMap<JobIdx, Share>,
    /// Memory of each device.
    memory_mib: Option<u32>,
    leases: u64,
    sizes: Vec<u32>,
    mode: Mode,
    arrivals: VecDeque<(Time, u32, f64)>,
    submitted: u64,
}

impl World {
    /// Nodes with so many devices each.
    pub(crate) fn new(sizes: &[u32]) -> World {
        let mut kinds = Kinds::default();
        kinds.intern("gpu");
        let mut world = World {
            view: View {
                now: Time::ZERO,
                round: Span::from_secs(1.0),
                specs: Arc::default(),
                runs: Arc::default(),
                nodes: Arc::default(),
                kinds: Arc::new(kinds),
                belief: Arc::default(),
                prices: Arc::default(),
                lengths: None,
                changed: Changed { all: true, ..Changed::default() },
            },
            reuse: false,
            ends: BTreeMap::new(),
            deadlines: Vec::new(),
            shares: BTreeMap::new(),
            memory_mib: None,
            leases: 0,
            sizes: sizes.to_vec(),
            mode: Mode::Fractions,
            arrivals: VecDeque::new(),
            submitted: 0,
        };
        world.count_devices();
        world
    }

    /// The same with so much memory on each device.
    pub(crate) fn with_memory(sizes: &[u32], memory_mib: u32) -> World {
        let mut world = World { memory_mib: Some(memory_mib), ..World::new(sizes) };
        world.count_devices();
        world
    }

    /// From now on lengths may be wrong or missing, and nothing is known of past ones.
    pub(crate) fn learn_lengths(&mut self) {
        self.view.lengths = Some(Arc::default());
        self.view.changed.all = true;
    }

    /// A job that runs has had so many seconds, whatever it said.
    pub(crate) fn overrun(&mut self, row: usize, seconds: f64) {
        let now = self.view.now;
        let run = self.run_mut(JobIdx(row as u32));
        (run.done, run.as_of) = (seconds, now);
        self.view.changed.touched.push(JobIdx(row as u32));
    }

    /// A job that says this of sharing arrives now; its row.
    pub(crate) fn submit_sharing(&mut self, devices: u32, seconds: f64, sharing: Sharing) -> usize {
        let row = self.submit(devices, seconds).index();
        Arc::make_mut(&mut Arc::make_mut(&mut self.view.specs)[row]).sharing = Some(Arc::new(sharing));
        row
    }

    /// Jobs of so many devices and seconds that arrive now.
    pub(crate) fn submit_all(&mut self, jobs: &[(u32, f64)]) {
        for (devices, seconds) in jobs {
            self.submit(*devices, *seconds);
        }
    }

    /// A job that arrives when `run` comes to it. Arrivals at one time keep their order.
    pub(crate) fn submit_at(&mut self, at: f64, devices: u32, seconds: f64) {
        self.arrivals.push_back((Time::from_secs(at), devices, seconds));
        self.arrivals.make_contiguous().sort_by_key(|arrival| arrival.0);
    }

    fn submit(&mut self, devices: u32, seconds: f64) -> JobIdx {
        let id = JobId(self.submitted);
        self.submitted += 1;
        let (spec, run) = (Arc::new(job(devices, seconds)), JobRun::new(id, self.view.now));
        let (specs, runs) = (Arc::make_mut(&mut self.view.specs), Arc::make_mut(&mut self.view.runs));
        let vacant = runs.iter().position(|run| run.state.is_final()).filter(|_| self.reuse);
        let at = vacant.unwrap_or(runs.len());
        if at == runs.len() {
            specs.push(spec);
            runs.push(run);
        } else {
            (specs[at], runs[at]) = (spec, run);
        }
        self.view.changed.added.push(JobIdx(at as u32));
        JobIdx(at as u32)
    }

    /// A job that may run in these sizes, given as devices and speed, arrives now; its row.
    pub(crate) fn submit_sizes(&mut self, sizes: &[(u32, f64)], steps: f64) -> usize {
        let row = self.submit(1, steps).index();
        let spec = Arc::make_mut(&mut Arc::make_mut(&mut self.view.specs)[row]);
        spec.shapes = sizes.iter().map(|(devices, _)| Shape::of(KindId(0), *devices)).collect();
        spec.speeds = sizes.iter().map(|(_, speed)| *speed).collect();
        row
    }

    pub(crate) fn set_deadline(&mut self, row: usize, deadline: f64) {
        Arc::make_mut(&mut Arc::make_mut(&mut self.view.specs)[row]).deadline =
            Some(Time::from_secs(deadline));
    }

    pub(crate) fn set_priority(&mut self, row: usize, priority: i32) {
        Arc::make_mut(&mut Arc::make_mut(&mut self.view.specs)[row]).priority = priority;
    }

    /// A job that is there is held back until these rows have ended.
    pub(crate) fn come_after(&mut self, row: usize, rows: &[usize]) {
        let after = rows.iter().map(|row| self.view.runs[*row].id).collect();
        Arc::make_mut(&mut Arc::make_mut(&mut self.view.specs)[row]).after = after;
        Arc::make_mut(&mut self.view.runs)[row].held_until = Some(Time::NEVER);
        self.view.changed.added.retain(|job| job.index() != row);
    }

    /// Who waited for others and does no longer comes in.
    fn let_in(&mut self) {
        let rows = (0..self.view.runs.len() as u32).map(JobIdx);
        let free =
            |job: &JobIdx| self.view.run(*job).held_until.is_some() && self.view.awaits(*job).is_empty();
        for job in rows.filter(free).collect::<Vec<_>>() {
            Arc::make_mut(&mut self.view.runs)[job.index()].held_until = None;
            self.view.changed.added.push(job);
        }
    }

    /// Asks, applies, starts and stops.
    pub(crate) fn plan(&mut self, policy: &mut dyn Policy) -> Allocation {
        let allocation = policy.allocate(&self.view).expect("an answer");
        self.apply(&allocation);
        self.pass();
        self.settle();
        allocation
    }

    /// The shares as they would be after this answer.
    pub(crate) fn after(&self, allocation: &Allocation) -> BTreeMap<JobIdx, Share> {
        let (mut shares, new) = match &allocation.shares {
            Shares::All(new) => (BTreeMap::new(), new),
            Shares::Changed(new) => (self.shares.clone(), new),
        };
        shares.extend(new.iter().map(|share| (share.jobs[0], share.clone())));
        shares
    }

    /// Puts an answer in force.
    pub(crate) fn apply(&mut self, allocation: &Allocation) {
        self.shares = self.after(allocation);
        self.mode = allocation.mode;
        self.view.changed = Changed::default();
        let runs = Arc::make_mut(&mut self.view.runs);
        for share in self.shares.values() {
            share.jobs.iter().for_each(|job| runs[job.index()].rank = share.rank);
        }
    }

    /// Decides who runs, as the engine does: by rank, or by share over time received.
    pub(crate) fn pass(&mut self) {
        let chosen = self.choose();
        let running = |world: &World, job: &JobIdx| world.view.is_running(*job);
        for job in self.view.active().filter(|job| running(self, job)).collect::<Vec<_>>() {
            if !chosen.contains(&job)
                || self.named(job).is_some_and(|shape| shape != self.view.run(job).shape)
            {
                self.stop(job);
            }
        }
        for share in self.shares.values().cloned().collect::<Vec<_>>() {
            self.leases += 1;
            let held = share.jobs.iter().find(|job| running(self, job));
            let lease = held.map_or(Some(LeaseId(self.leases)), |job| self.view.run(*job).lease);
            let starts = |job: &&JobIdx| chosen.contains(job) && !running(self, job);
            let starts: Vec<_> = share.jobs.iter().filter(starts).copied().collect();
            starts.into_iter().for_each(|job| self.start(job, lease));
        }
        self.count_devices();
    }

    /// Devices that the running ones of these jobs hold; who shares them is counted once.
    fn held(&self, jobs: impl Iterator<Item = JobIdx>) -> u32 {
        let leases = jobs.filter(|job| self.view.is_running(*job));
        let leases = leases.map(|job| (self.view.run(job).lease, self.view.devices(job)));
        leases.collect::<BTreeMap<_, _>>().into_values().sum()
    }

    fn choose(&self) -> BTreeSet<JobIdx> {
        let (preempt, skip) = match self.mode {
            Mode::Ordered { preempt, skip, .. } => (preempt, skip),
            Mode::Fractions | Mode::Capped => (true, true),
        };
        let keeps = |job: &JobIdx| !preempt && self.view.is_running(*job);
        let mut chosen: BTreeSet<JobIdx> = self.view.active().filter(keeps).collect();
        let mut free = self.sizes.iter().sum::<u32>() - self.held(chosen.iter().copied());
        for lead in self.in_order() {
            let group = &self.shares[&lead].jobs;
            let able = |job: &&JobIdx| self.view.is_running(**job) || self.view.run(**job).state.is_waiting();
            let able: Vec<JobIdx> = group.iter().filter(able).copied().collect();
            // Who joins others that keep their devices needs none.
            let devices = if group.iter().any(|job| chosen.contains(job)) { 0 } else { self.asked(lead) };
            if devices <= free && !able.is_empty() {
                free -= devices;
                chosen.extend(able);
            } else if !skip && !able.is_empty() {
                break;
            }
        }
        chosen
    }

    /// The shape that a job's own share names.
    fn named(&self, job: JobIdx) -> Option<u16> {
        self.shares.get(&job).and_then(|share| share.shape)
    }

    /// Devices of the shape that a job's share names.
    fn asked(&self, job: JobIdx) -> u32 {
        let named = self.named(job).map(|shape| self.view.spec(job).shapes[shape as usize].devices());
        named.unwrap_or_else(|| self.view.devices(job))
    }

    fn in_order(&self) -> Vec<JobIdx> {
        let key = |job: &JobIdx| {
            let (run, share) = (self.view.run(*job), &self.shares[job]);
            let received = run.executed_at(self.view.now).secs() / share.fraction;
            let of = share.jobs.iter().map(|job| self.view.spec(*job).priority);
            let class = of.max().filter(|_| self.mode.has_classes()).map(Reverse);
            if self.mode.takes_turns() {
                (class, received, 0.0, run.id)
            } else {
                (class, share.rank.0, share.rank.1, run.id)
            }
        };
        let mut jobs: Vec<JobIdx> = self.shares.keys().copied().collect();
        jobs.sort_by(|left, right| key(left).partial_cmp(&key(right)).expect("ranks are numbers"));
        jobs
    }

    fn run_mut(&mut self, job: JobIdx) -> &mut JobRun {
        self.view.changed.touched.push(job);
        &mut Arc::make_mut(&mut self.view.runs)[job.index()]
    }

    fn become_state(&mut self, job: JobIdx, state: JobState) {
        let now = self.view.now;
        let run = self.run_mut(job);
        (run.state, run.since) = (state, now);
    }

    fn start(&mut self, job: JobIdx, lease: Option<LeaseId>) {
        let shape = self.named(job);
        self.become_state(job, JobState::Starting);
        let run = self.run_mut(job);
        (run.lease, run.shape) = (lease, shape.unwrap_or(run.shape));
    }

    fn stop(&mut self, job: JobIdx) {
        let now = self.view.now;
        if self.view.run(job).state == JobState::Starting {
            let state = if self.view.run(job).starts > 0 { JobState::Suspended } else { JobState::Pending };
            self.become_state(job, state);
            self.run_mut(job).lease = None;
            return;
        }
        self.become_state(job, JobState::Suspending);
        let run = self.run_mut(job);
        (run.done, run.as_of, run.speed) = (run.done_at(now), now, 0.0);
    }

    /// Lets starts and stops take effect.
    pub(crate) fn settle(&mut self) {
        for job in self.view.active().collect::<Vec<_>>() {
            match self.view.run(job).state {
                JobState::Starting => self.granted(job),
                JobState::Suspending => self.stopped(job),
                _ => {}
            }
        }
    }

    fn granted(&mut self, job: JobIdx) {
        let (now, devices, shape) = (self.view.now, self.view.devices(job), self.view.run(job).shape);
        let speed = self.view.speed(job, shape);
        self.become_state(job, JobState::Running);
        let run = self.run_mut(job);
        run.first_start.get_or_insert(now);
        (run.held_since, run.devices, run.as_of, run.speed) = (now, devices, now, speed);
        run.starts += 1;
    }

    fn stopped(&mut self, job: JobIdx) {
        let now = self.view.now;
        self.become_state(job, JobState::Suspended);
        let run = self.run_mut(job);
        run.attained += u64::from(run.devices) * (now - run.held_since).0;
        run.executed = run.executed_at(now);
        (run.devices, run.lease, run.last_stop) = (0, None, Some(now));
        run.preemptions += 1;
    }

    /// Lets time pass; jobs that are done by then end then.
    pub(crate) fn advance(&mut self, seconds: f64) {
        self.view.now = self.view.now + Span::from_secs(seconds);
        // What a job says is true here, whether the policy is told or not.
        let done = |job: &JobIdx| {
            let (run, spec) = (self.view.run(*job), self.view.spec(*job));
            let left = (spec.steps - run.done_at(self.view.now)).max(0.0);
            run.state == JobState::Running && left / run.speed < 5e-7
        };
        for job in self.view.active().filter(done).collect::<Vec<_>>() {
            let now = self.view.now;
            self.become_state(job, JobState::Succeeded);
            self.view.changed.touched.pop();
            self.view.changed.ended.push(job);
            self.shares.remove(&job);
            self.ends.insert(self.view.run(job).id, now.secs());
        }
        self.let_in();
        self.count_devices();
    }

    /// Writes down which devices are promised, from the first node on.
    fn count_devices(&mut self) {
        let mut used = self.held(self.view.active());
        let mut node = |devices: &u32| {
            let here = used.min(*devices);
            used -= here;
            let free = (1u64 << devices) - (1u64 << here);
            TestNode { kind: 0, devices: *devices, rack: 0, up: true, free }
        };
        let list: Vec<_> = self.sizes.iter().map(&mut node).collect();
        self.view.nodes = Arc::new(nodes_of(&list, self.memory_mib));
    }

    /// From event to event until all jobs have ended.
    pub(super) fn run(&mut self, policy: &mut dyn Policy) {
        loop {
            while self.arrivals.front().is_some_and(|arrival| arrival.0 <= self.view.now) {
                let (_, devices, seconds) = self.arrivals.pop_front().expect("one is due");
                let (row, by) =
                    (self.submit(devices, seconds).index(), self.deadlines.get(self.submitted as usize - 1));
                by.copied().into_iter().for_each(|by| self.set_deadline(row, by));
            }
            let asked = self.plan(policy).replan_at;
            let now = self.view.now;
            let round = (policy.cadence() == Cadence::EveryRound).then(|| now + self.view.round);
            let end = |job| Time::from_secs(now.secs() + self.view.seconds_left(job));
            let ends = self.view.active().filter(|job| self.view.is_running(*job)).map(end);
            let arrival = self.arrivals.front().map(|arrival| arrival.0);
            let Some(next) = ends.min().into_iter().chain(arrival).min() else { return };
            let next =
                [Some(next), asked, round].into_iter().flatten().min().unwrap_or(next).max(now + Span(1));
            self.advance((next - now).secs());
        }
    }

    /// Rows that have devices.
    pub(crate) fn running(&self) -> Vec<usize> {
        self.view.active().filter(|job| self.view.is_running(*job)).map(JobIdx::index).collect()
    }

    /// Rows that wait.
    pub(crate) fn waiting(&self) -> Vec<usize> {
        self.view.active().filter(|job| self.view.run(*job).state.is_waiting()).map(JobIdx::index).collect()
    }

    /// The first part of each rank, by row.
    pub(crate) fn ranks(&self) -> Vec<f64> {
        self.view.runs.iter().map(|run| run.rank.0).collect()
    }

    /// The parts of the time, by row.
    pub(crate) fn fractions(&self) -> Vec<f64> {
        self.shares.values().map(|share| share.fraction).collect()
    }

    pub(crate) fn seconds_left(&self, row: usize) -> f64 {
        self.view.seconds_left(JobIdx(row as u32))
    }

    pub(crate) fn devices(&self, row: usize) -> u32 {
        self.view.devices(JobIdx(row as u32))
    }
}
