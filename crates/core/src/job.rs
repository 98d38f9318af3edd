//! What a job is, the ways in which it may run, and the states of its life.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::amounts::HostNeed;
use crate::domains::Level;
use crate::ids::{JobId, KindId, LeaseId, ProfileId};
use crate::placement::Placement;
use crate::training::{Batch, Losses, Regime, Training};
use crate::units::{Span, Time};

/// How many devices of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Need {
    /// The kind.
    pub kind: KindId,
    /// How many, all at once.
    pub devices: u32,
}

/// How close together the devices of one gang lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SavedClose", into = "SavedClose")]
pub struct Close {
    /// They must lie in one domain of this level.
    pub required: Level,
    /// They should lie in one of this level, which is no wider; that keeps no gang waiting.
    pub preferred: Level,
}

impl Close {
    /// As close as this, and it does not matter how much closer.
    pub const fn at(level: Level) -> Close {
        Close { required: level, preferred: level }
    }

    /// The levels to try, best first.
    pub fn levels(self) -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(move |level| (self.preferred..=self.required).contains(level))
    }
}

/// The wider ones first.
impl Ord for Close {
    fn cmp(&self, other: &Close) -> Ordering {
        (other.required, other.preferred).cmp(&(self.required, self.preferred))
    }
}

impl PartialOrd for Close {
    fn partial_cmp(&self, other: &Close) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What was saved: mostly a level, and before version 10 nothing else.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SavedClose {
    Level(Level),
    Both { required: Level, preferred: Level },
}

impl From<SavedClose> for Close {
    fn from(saved: SavedClose) -> Close {
        match saved {
            SavedClose::Level(level) => Close::at(level),
            SavedClose::Both { required, preferred } => Close { required, preferred },
        }
    }
}

impl From<Close> for SavedClose {
    fn from(Close { required, preferred }: Close) -> SavedClose {
        if required == preferred {
            SavedClose::Level(required)
        } else {
            SavedClose::Both { required, preferred }
        }
    }
}

/// One way in which a job may run. Several needs make a gang that spans kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shape {
    /// The devices it takes, all of them or none.
    pub needs: Vec<Need>,
    /// How close together they lie.
    #[serde(alias = "spread")]
    pub close: Close,
    /// The batch size it trains with there, where that is the scheduler's choice.
    pub batch_size: Option<u32>,
    /// What it asks of the hosts of its devices; nothing: what belongs to those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Arc<HostNeed>>,
    /// On exactly so many nodes, with as many devices on each; nothing: on as many as it comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// So many of those at a time are a segment: each by itself lies as close as `close` says, and not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<u32>,
}

impl Shape {
    /// `devices` of one kind, anywhere.
    pub fn of(kind: KindId, devices: u32) -> Shape {
        Shape::of_needs(vec![Need { kind, devices }], Level::Any)
    }

    /// Devices of one or more kinds, in one domain of this level.
    pub fn of_needs(needs: Vec<Need>, level: Level) -> Shape {
        Shape { needs, close: Close::at(level), batch_size: None, host: None, nodes: None, segment: None }
    }

    /// The same in one domain of this level.
    pub fn within(self, level: Level) -> Shape {
        Shape { close: Close::at(level), ..self }
    }

    /// The level of which one domain must hold it, or each of its segments.
    pub fn level(&self) -> Level {
        self.close.required
    }

    /// The same on exactly so many nodes.
    pub fn on_nodes(self, nodes: u32) -> Shape {
        Shape { nodes: Some(nodes), ..self }
    }

    /// The same in segments of so many nodes.
    pub fn in_segments(self, nodes: u32) -> Shape {
        Shape { segment: Some(nodes), ..self }
    }

    /// The devices on each of its nodes, where it says on how many it is; none where they cannot be divided so.
    pub fn each_node(&self) -> Option<u32> {
        let nodes = self.nodes.filter(|_| self.needs.len() == 1)?;
        (self.devices().checked_rem(nodes) == Some(0)).then(|| self.devices() / nodes)
    }

    /// How many of its nodes lie together.
    pub fn segment_nodes(&self) -> Option<u32> {
        self.segment.or(self.nodes)
    }

    /// Whether it takes the same devices; what a job does on them may differ.
    pub fn takes_same(&self, other: &Shape) -> bool {
        self.needs == other.needs
            && (self.close, self.nodes, self.segment) == (other.close, other.nodes, other.segment)
            && self.host == other.host
    }

    /// Devices of all kinds together.
    pub fn devices(&self) -> u32 {
        self.needs.iter().fold(0, |sum, need| sum.saturating_add(need.devices))
    }
}

/// What stopping and starting a job costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Writing a checkpoint before it gives its devices back.
    pub save: Span,
    /// Loading the checkpoint when it starts again.
    pub load: Span,
    /// Starting a fresh process, each time.
    pub start: Span,
}

impl Costs {
    /// Device time that one interruption loses: save, start anew, load.
    pub fn restart(&self) -> Span {
        self.save + self.start + self.load
    }
}

/// How firm a job's claim on its devices is while others share them (AntMan's classes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Claim {
    /// It shares as it comes.
    #[default]
    Ordinary,
    /// It loses at most a stated part of its speed to others on its devices.
    Guaranteed,
    /// It has what others leave, and pauses the moment it disturbs one that is guaranteed.
    Opportunistic,
}

/// What a job does to each of its devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The part of the time in which it computes, from 0 to 1.
    pub busy: f64,
    /// Memory it holds.
    pub memory_mib: u32,
}

/// What a job says of sharing its devices. Parts are of one device, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sharing {
    /// How firm its claim is.
    pub claim: Claim,
    /// The part of the speed alone that a guaranteed job may lose to others.
    pub loss_max: f64,
    /// The part of the computing time it asks for.
    pub request: f64,
    /// The most of it that it may take.
    pub limit: f64,
    /// Memory it asks for and may not exceed.
    pub memory_mib: Option<u32>,
    /// What it is known to do to a device before it has run.
    pub usage: Option<Usage>,
    /// It shares with nobody.
    pub alone: bool,
    /// Jobs of the same word share a device (KubeShare).
    pub affinity: Option<Arc<str>>,
    /// Jobs of the same word share no device.
    pub anti_affinity: Option<Arc<str>>,
    /// A device has jobs of one such word only, and none without.
    pub exclusion: Option<Arc<str>>,
}

impl Sharing {
    /// Of a job that says nothing about it: a whole device, shared as it comes.
    pub const PLAIN: Sharing = Sharing {
        claim: Claim::Ordinary,
        loss_max: 0.05,
        request: 1.0,
        limit: 1.0,
        memory_mib: None,
        usage: None,
        alone: false,
        affinity: None,
        anti_affinity: None,
        exclusion: None,
    };
}

/// What it is worth to be done by a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    /// The time.
    pub by: Time,
    /// The worth, above zero.
    pub worth: f64,
}

/// What becomes of a job whose deadline cannot be promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Late {
    /// It runs as well as it can.
    #[default]
    Try,
    /// It is refused, with the earliest deadline that would work.
    Refuse,
}

/// How the length of a job is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// It was stated.
    #[default]
    Stated,
    /// Nobody said: it is taken to be as long as jobs like it were.
    Predicted,
    /// Nobody said, and what jobs have in common says nothing: it is one of all jobs.
    Unknown,
}

/// What a user submits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The user's name for it.
    pub name: Box<str>,
    /// Who submitted it.
    pub user: Option<Arc<str>>,
    /// The team it counts for.
    pub tenant: Option<Arc<str>>,
    /// Its weight in fair shares, above zero.
    pub weight: f64,
    /// Larger is more urgent.
    pub priority: i32,
    /// When it should be done.
    pub deadline: Option<Time>,
    /// Steps to do; seconds of work where only a duration is known.
    pub steps: f64,
    /// How that is known.
    #[serde(default)]
    pub length: Length,
    /// The ways in which it may run, best liked first. Shared between like jobs.
    pub shapes: Arc<[Shape]>,
    /// Believed steps per second, one for each shape.
    pub speeds: Arc<[f64]>,
    /// What it has in common with jobs of equal speed.
    pub profile: ProfileId,
    /// What interruptions cost.
    pub costs: Costs,
    /// Failures after which it is given up; preemption is free.
    pub failures_max: u32,
    /// Whether it may be stopped for another job. One that may not keeps its devices until it is done, unless its
    /// user or its node takes them.
    pub pausable: bool,
    /// When it may first start.
    pub not_before: Option<Time>,
    /// What it says of sharing; nothing: `Sharing::PLAIN`. Shared between like jobs.
    pub sharing: Option<Arc<Sharing>>,
    /// How it trains, where its speeds follow from that; nothing: the speeds are as they stand.
    pub training: Option<Arc<Training>>,
    /// The ways in which it makes its steps as it goes along, the first of them first; its speeds are those of the
    /// one it is in. Nothing: there is one.
    pub regimes: Option<Arc<[Regime]>>,
    /// What it is worth to be done by later and later times, where the deadline is soft: the first is the deadline
    /// and worth most.
    pub rewards: Option<Arc<[Reward]>>,
    /// What becomes of it if its deadline cannot be promised.
    pub late: Late,
    /// Jobs that must have succeeded before it may start.
    pub after: Box<[JobId]>,
}

impl JobSpec {
    /// A job of which nothing is said but how it may run, how fast that is, and how much it has to do.
    pub fn new(
        name: impl Into<Box<str>>,
        shapes: impl Into<Arc<[Shape]>>,
        speeds: impl Into<Arc<[f64]>>,
        steps: f64,
    ) -> JobSpec {
        JobSpec {
            name: name.into(),
            user: None,
            tenant: None,
            weight: 1.0,
            priority: 0,
            deadline: None,
            steps,
            length: Length::Stated,
            shapes: shapes.into(),
            speeds: speeds.into(),
            profile: ProfileId::default(),
            costs: Costs::default(),
            failures_max: 0,
            pausable: true,
            not_before: None,
            sharing: None,
            training: None,
            regimes: None,
            rewards: None,
            late: Late::Try,
            after: Box::default(),
        }
    }

    /// What it says of sharing its devices.
    pub fn sharing(&self) -> &Sharing {
        const PLAIN: &Sharing = &Sharing::PLAIN;
        self.sharing.as_deref().unwrap_or(PLAIN)
    }

    /// The shapes in which it makes progress.
    pub fn usable(&self) -> impl Iterator<Item = u16> + '_ {
        (0..).zip(&*self.speeds).filter(|(_, speed)| **speed > 0.0).map(|(shape, _)| shape)
    }

    /// Speed in the slowest usable shape, and the devices of that one.
    pub fn slowest(&self) -> Option<(f64, f64)> {
        let speed = |shape: u16| self.speeds[shape as usize];
        let slowest = self.usable().reduce(|a, b| if speed(b) < speed(a) { b } else { a })?;
        Some((speed(slowest), f64::from(self.shapes[slowest as usize].devices().max(1))))
    }

    /// Whether it asks for amounts of its hosts. It then has them for itself, and shares its devices with nobody.
    pub fn asks_hosts(&self) -> bool {
        self.shapes.iter().any(|shape| shape.host.is_some())
    }

    /// Which of its shapes takes the same devices as `shape`.
    pub fn way(&self, shape: &Shape) -> Option<u16> {
        self.shapes.iter().position(|own| own.takes_same(shape)).map(|at| at as u16)
    }
}

/// Where a job is in its life. The names are those of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Waiting, never started or thrown back by a failure.
    Pending,
    /// Devices promised or granted, not yet working.
    Starting,
    /// Making progress.
    Running,
    /// Told to stop, still holding its devices.
    Suspending,
    /// Stopped with its progress kept, waiting to go on.
    Suspended,
    /// Done.
    Succeeded,
    /// Given up after too many failures.
    Failed,
    /// Withdrawn by its user.
    Cancelled,
    /// Never accepted.
    Rejected,
}

impl JobState {
    /// Whether the job is over.
    pub fn is_final(self) -> bool {
        use JobState::*;
        matches!(self, Succeeded | Failed | Cancelled | Rejected)
    }

    /// Whether it waits for devices and may be given some.
    pub fn is_waiting(self) -> bool {
        matches!(self, JobState::Pending | JobState::Suspended)
    }

    /// Whether the life cycle knows this step.
    pub fn may_become(self, next: JobState) -> bool {
        use JobState::*;
        match self {
            Pending | Suspended => matches!(next, Starting | Cancelled),
            // A promise that falls away before the start puts the job back where it was.
            // A start may go unreported, so a job may be done before it was seen to work.
            Starting => {
                matches!(next, Running | Suspending | Pending | Suspended | Succeeded | Failed | Cancelled)
            }
            Running => matches!(next, Suspending | Pending | Succeeded | Failed),
            Suspending => matches!(next, Suspended | Pending | Succeeded | Failed | Cancelled),
            Succeeded | Failed | Cancelled | Rejected => false,
        }
    }
}

/// A place in the order of a policy: smaller goes first, then the older job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rank(pub f64, pub f64);

impl Rank {
    /// The same place by numbers that every format can write; infinity is none of them.
    pub(crate) fn finite(self) -> Rank {
        Rank(self.0.clamp(f64::MIN, f64::MAX), self.1.clamp(f64::MIN, f64::MAX))
    }
}

/// What a job is stopped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// Another job goes first.
    Preempted,
    /// It goes on elsewhere.
    Moved,
    /// Its user withdrew it.
    Cancelled,
    /// Its user withdrew it and it has no time to save.
    Killed,
    /// It is held.
    Held,
    /// It is to start again from its last checkpoint.
    Requeued,
    /// Its node leaves, or its devices are out of service.
    Drained,
    /// Its node failed.
    Lost,
}

/// How a job is doing: the row of a `View` that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRun {
    /// Its number.
    pub id: JobId,
    /// Where it is in its life.
    pub state: JobState,
    /// Since when it is in this state.
    pub since: Time,
    /// When it was submitted.
    pub submitted: Time,
    /// When it first got devices.
    pub first_start: Option<Time>,
    /// When it last gave devices back.
    pub last_stop: Option<Time>,
    /// Steps done at `as_of`, as last reported.
    pub done: f64,
    /// When `done` was true.
    pub as_of: Time,
    /// Believed steps per second since `as_of`; zero while it is not running.
    pub speed: f64,
    /// Which of its shapes it holds or is about to.
    pub shape: u16,
    /// Devices it holds now, alone or with the others of its group.
    pub devices: u32,
    /// Since when it holds them.
    pub held_since: Time,
    /// Its lease, while it has or awaits one.
    pub lease: Option<LeaseId>,
    /// Device-microseconds received in leases that are over.
    pub attained: u64,
    /// Time spent holding devices in leases that are over.
    pub executed: Span,
    /// Device grants so far.
    pub starts: u32,
    /// Times it was stopped for another job.
    pub preemptions: u32,
    /// Starts on other devices than the time before.
    pub migrations: u32,
    /// Failures so far.
    pub failures: u32,
    /// Its place in the order that is in force; a policy may build on it.
    pub rank: Rank,
    /// Whether its user wants it gone; it still has to give its devices back.
    pub cancelled: bool,
    /// What it was told to stop for, while it still holds devices.
    pub stopping: Option<Why>,
    /// Until when it is held back: it waits, asks for nothing, and no policy sees it.
    pub held_until: Option<Time>,
    /// Whether it gets no devices until somebody releases it.
    #[serde(default)]
    pub held: bool,
    /// What it was last seen to do to its devices.
    pub usage: Option<Usage>,
    /// Whether whoever runs it has found that it cannot be paused there.
    pub stuck: bool,
    /// Where it lies frozen: elsewhere it would have to begin anew.
    pub home: Option<Box<Placement>>,
    /// The time by which it was promised to be done; kept whatever else is submitted later.
    pub promise: Option<Time>,
    /// What its steps are made of, where that is the scheduler's choice.
    pub batch: Option<Batch>,
    /// Which of its regimes it is in.
    pub regime: u16,
    /// Steps it did in each of its regimes, but for those since it last went from one to another.
    pub seen: Box<[f64]>,
    /// What it said of its loss.
    #[serde(default)]
    pub losses: Losses,
}

impl JobRun {
    /// A job as it enters.
    pub fn new(id: JobId, now: Time) -> JobRun {
        JobRun {
            id,
            state: JobState::Pending,
            since: now,
            submitted: now,
            first_start: None,
            last_stop: None,
            done: 0.0,
            as_of: now,
            speed: 0.0,
            shape: 0,
            devices: 0,
            held_since: now,
            lease: None,
            attained: 0,
            executed: Span::ZERO,
            starts: 0,
            preemptions: 0,
            migrations: 0,
            failures: 0,
            rank: Rank::default(),
            cancelled: false,
            stopping: None,
            held_until: None,
            held: false,
            usage: None,
            stuck: false,
            home: None,
            promise: None,
            batch: None,
            regime: 0,
            seen: Box::default(),
            losses: Losses::default(),
        }
    }

    /// Takes the next step of its life. An illegal one is a bug, in release builds too.
    pub(crate) fn become_state(&mut self, now: Time, next: JobState) {
        assert!(self.state.may_become(next), "job {}: {:?} cannot become {:?}", self.id, self.state, next);
        self.state = next;
        self.since = now;
    }

    /// Whether it asks for devices: not over, and not held back.
    pub fn is_active(&self) -> bool {
        !self.state.is_final() && self.held_until.is_none()
    }

    /// Whether it waits for devices and may be given some.
    pub fn is_waiting(&self) -> bool {
        self.state.is_waiting() && self.held_until.is_none()
    }

    /// Whether it holds devices now.
    pub fn holds(&self) -> bool {
        self.devices > 0
    }

    /// Steps believed done by `now`.
    pub fn done_at(&self, now: Time) -> f64 {
        self.done + self.speed * (now - self.as_of).secs()
    }

    /// Device-seconds received by `now`.
    pub fn attained_at(&self, now: Time) -> f64 {
        let open = if self.holds() { self.devices as u64 * (now - self.held_since).0 } else { 0 };
        (self.attained + open) as f64 / crate::units::MICROS as f64
    }

    /// Time spent holding devices by `now`.
    pub fn executed_at(&self, now: Time) -> Span {
        if self.holds() { self.executed + (now - self.held_since) } else { self.executed }
    }
}

#[cfg(test)]
mod tests {
    use super::JobState::*;
    use super::*;

    const ALL: [JobState; 9] =
        [Pending, Starting, Running, Suspending, Suspended, Succeeded, Failed, Cancelled, Rejected];

    #[test]
    fn nothing_leaves_a_final_state() {
        for state in ALL.into_iter().filter(|state| state.is_final()) {
            assert!(ALL.into_iter().all(|next| !state.may_become(next)), "{state:?}");
        }
    }

    #[test]
    fn every_living_state_can_reach_an_end() {
        for start in ALL.into_iter().filter(|state| !state.is_final()) {
            let mut reached = vec![start];
            for _ in ALL {
                let more: Vec<_> = ALL
                    .into_iter()
                    .filter(|next| reached.iter().any(|from| from.may_become(*next)))
                    .collect();
                reached.extend(more);
            }
            assert!(reached.contains(&Succeeded) && reached.contains(&Cancelled), "{start:?}");
        }
    }

    #[test]
    fn progress_runs_on_between_reports() {
        let mut run = JobRun::new(JobId(1), Time::ZERO);
        run.speed = 2.0;
        run.done = 10.0;
        run.as_of = Time::from_secs(5.0);
        assert_eq!(run.done_at(Time::from_secs(8.0)), 16.0);
    }
}
