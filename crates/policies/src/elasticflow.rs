//! ElasticFlow: enough devices for every deadline, and the rest where it costs least (Gu et al., "ElasticFlow: An Elastic
//! Serverless Training Platform for Distributed Deep Learning", ASPLOS 2023).
//!
//! Objective: min Σ_j (device time of j) with every deadline met and no device idle in the slot that begins. First each
//! job with a deadline, earliest first, has its minimum satisfactory share (`yard_core::promise`); then those without
//! devices get their smallest size, those that run keep theirs, and level after level goes to the job whose device time
//! grows least by it: (T(n⁺) − T(n)) / (n⁺ − n), T with the plan that is left after this slot. Jobs whose deadline cannot
//! be met, and those without one, come after. `artifact=true` gives levels to whose device time grows most, as the
//! paper's own program does by a sign.
//! Which jobs are taken on is the engine's matter (`Settings::promises`); a promised job goes by its promise.
//! Reads: deadlines, promises, speeds and restart costs of all shapes, steps left.
//! Cost: O(jobs · shapes² · steps) for the plans, O(levels · log jobs) for the rest.
//! Not to be used where speeds at other sizes are not known, or where nothing has a deadline: it then is
//! first come, first served with what is left.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use yard_core::Span;
use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::promise::{Ask, Grid, Room, Stretch, Timeline, Way, satisfy};
use yard_core::units::Time;
use yard_core::view::View;

use crate::PolicyEntry;
use crate::ranked::{class, classes};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "elasticflow",
    live: "policies::elasticflow_gives_a_deadline_what_it_needs_and_refuses_what_cannot_be",
    family: "deadline",
    paper: "Gu et al., ASPLOS 2023",
    there: "minimum satisfactory shares, admission (`--promises`), the rest by least growth of device time",
    missing: "buddy placement with migration: the placer packs, and jobs move only when all are placed anew",
    about: "As many devices as each deadline needs, the rest where device time grows least; needs speeds at all sizes",
    params: &[(
        "artifact",
        "levels go where device time grows most, as in the paper's program: true or false [false]",
    )],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make: |params| Ok(Box::new(ElasticFlow { artifact: params.flag("artifact")? })),
};

/// The slot where decisions follow events.
const SLOT: Span = Span::from_whole_secs(60);

struct ElasticFlow {
    artifact: bool,
}

impl Policy for ElasticFlow {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut slot = Slot::new(view, self.artifact);
        // One class after the other: its jobs fare as if those of smaller priority were not there.
        for class in classes(&slot.players, |player| class(view, player.job)) {
            slot.satisfy_all(class.clone());
            slot.start_all(class.clone());
            slot.go_on(class.clone());
            slot.grow(class);
        }
        let shares = slot.into_shares();
        Ok(Allocation::preemptive(Shares::All(shares)))
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

/// A job in the slot that begins.
struct Player {
    job: JobIdx,
    ask: Ask,
    /// What it needs to be in time, after this slot; nothing where it cannot be.
    plan: Option<Vec<Stretch>>,
    /// The way in which it runs in this slot.
    way: Option<usize>,
    /// The way in which it runs now.
    held: Option<usize>,
}

struct Slot<'a> {
    view: &'a View,
    grid: Grid,
    end: Time,
    timeline: Timeline,
    players: Vec<Player>,
    artifact: bool,
}

impl<'a> Slot<'a> {
    fn new(view: &'a View, artifact: bool) -> Slot<'a> {
        let length = if view.round > Span::ZERO { view.round } else { SLOT };
        let grid = Grid::new(view.now, length);
        let room = Room::of(&view.nodes, view.kinds.len());
        let mut players: Vec<Player> = view.active().map(|job| player(view, &room, job)).collect();
        players.sort_by_key(|player| {
            let run = view.run(player.job);
            (class(view, player.job), player.ask.by, run.submitted, run.id)
        });
        let timeline = Timeline::new(grid.now, room.free());
        Slot { view, end: grid.now + length, grid, timeline, players, artifact }
    }

    /// Each deadline that can be met gets what it needs, earliest first.
    fn satisfy_all(&mut self, class: Range<usize>) {
        for player in self.players[class.clone()].iter_mut().filter(|player| player.ask.by < Time::NEVER) {
            let Some(plan) = satisfy(&player.ask, &self.timeline, &self.grid) else { continue };
            self.timeline.take_plan(&player.ask, &plan, &self.grid);
            let first = plan.first().filter(|stretch| stretch.from <= self.grid.now);
            let now = first.and_then(|first| player.ask.ways.iter().position(|way| way.shape == first.shape));
            player.way = now;
            player.plan = Some(plan);
        }
        // Those that are in time go before those that cannot be.
        self.players[class].sort_by_key(|player| player.plan.is_none());
    }

    /// Who has nothing yet gets its smallest size.
    fn start_all(&mut self, class: Range<usize>) {
        for at in class {
            if self.players[at].way.is_none() {
                let ways = &self.players[at].ask.ways;
                let fitting = (0..ways.len()).filter(|way| self.fits(None, &ways[*way]));
                let smallest = fitting.min_by_key(|way| ways[*way].devices);
                self.set(at, smallest);
            }
        }
    }

    /// Who holds more than it needs goes on with it where there is room: another size would cost a restart.
    fn go_on(&mut self, class: Range<usize>) {
        for at in class {
            let player = &self.players[at];
            let (Some(held), Some(way)) = (player.held, player.way) else { continue };
            let ways = &player.ask.ways;
            if held != way && ways[held].speed >= ways[way].speed && self.fits(Some(&ways[way]), &ways[held])
            {
                self.set(at, Some(held));
            }
        }
    }

    /// Level after level goes to who pays least for it.
    fn grow(&mut self, class: Range<usize>) {
        let mut queue: BTreeSet<(Reverse<bool>, u64, usize)> =
            class.filter_map(|at| self.offer(at)).collect();
        while let Some((promised, price, at)) = queue.pop_first() {
            let Some(next) = self.next_way(at) else { continue };
            let ways = &self.players[at].ask.ways;
            if self.fits(self.players[at].way.map(|way| &ways[way]), &ways[next]) {
                debug_assert!(promised.0 == self.players[at].plan.is_some() && price < u64::MAX);
                self.set(at, Some(next));
                queue.extend(self.offer(at));
            }
        }
    }

    /// A player's place in the queue for its next level.
    fn offer(&self, at: usize) -> Option<(Reverse<bool>, u64, usize)> {
        let (player, next) = (&self.players[at], self.next_way(at)?);
        let way = player.way?;
        let more = player.ask.ways[next].devices - player.ask.ways[way].devices;
        let grown = (self.device_time(player, next) - self.device_time(player, way)) / f64::from(more);
        let grown = if self.artifact { -grown } else { grown };
        (!grown.is_nan()).then_some((Reverse(player.plan.is_some()), ordered(grown), at))
    }

    /// The next larger size of the same kinds that is faster.
    fn next_way(&self, at: usize) -> Option<usize> {
        let player = &self.players[at];
        let ways = &player.ask.ways;
        let now = &ways[player.way?];
        let larger = |way: &usize| {
            ways[*way].family == now.family
                && ways[*way].devices > now.devices
                && ways[*way].speed > now.speed
        };
        (0..ways.len()).filter(larger).min_by_key(|way| ways[*way].devices)
    }

    /// Device time until the job is done, if it runs so in this slot and by its plan afterwards; without a plan, if it
    /// runs on as it is.
    fn device_time(&self, player: &Player, at: usize) -> f64 {
        let (ask, way) = (&player.ask, &player.ask.ways[at]);
        let slot = (self.end - self.grid.now).secs();
        let lost = if player.held == Some(at) { 0.0 } else { ask.overhead.secs() };
        let left = ask.left - way.speed * (slot - lost).max(0.0);
        let devices = f64::from(way.devices);
        if left <= 0.0 {
            return devices * (lost + ask.left / way.speed);
        }
        let Some(plan) = &player.plan else { return devices * (lost + ask.left / way.speed) };
        let clipped = |stretch: &Stretch| Stretch { from: stretch.from.max(self.end), ..*stretch };
        let rest: Vec<Stretch> =
            plan.iter().map(clipped).filter(|stretch| stretch.from < stretch.until).collect();
        let later = Ask { left, ..ask.clone() };
        let trimmed = later.trim(&rest, &self.grid).unwrap_or(rest);
        devices * slot + later.cost(&trimmed)
    }

    fn fits(&self, instead: Option<&Way>, way: &Way) -> bool {
        let Some(before) = instead else { return self.timeline.fits_for(way, self.grid.now, self.end) };
        let mut timeline = self.timeline.clone();
        timeline.give(&before.takes, self.grid.now, self.end);
        timeline.fits_for(way, self.grid.now, self.end)
    }

    /// Has a player run so in this slot.
    fn set(&mut self, at: usize, way: Option<usize>) {
        let (now, end) = (self.grid.now, self.end);
        let player = &mut self.players[at];
        if let Some(before) = player.way {
            self.timeline.give(&player.ask.ways[before].takes, now, end);
        }
        if let Some(way) = way {
            self.timeline.take(&player.ask.ways[way].takes, now, end);
        }
        player.way = way;
    }

    /// Shares of those that run; the others may have what is left after all.
    fn into_shares(self) -> Vec<Share> {
        let share = |(place, player): (u32, &Player)| {
            let rank = Rank(f64::from(u8::from(player.way.is_none())), f64::from(place));
            let shape = player.way.map(|way| player.ask.ways[way].shape);
            Share { shape, ..Share::whole(player.job, rank) }
        };
        let usable = |player: &&Player| self.view.spec(player.job).usable().next().is_some();
        (0..).zip(self.players.iter().filter(usable)).map(share).collect()
    }
}

fn player(view: &View, room: &Room, job: JobIdx) -> Player {
    let (spec, run) = (view.spec(job), view.run(job));
    let mut ways = room.ways(spec);
    ways.sort_by_key(|way| (way.family, way.devices, way.shape));
    let held = ways.iter().position(|way| view.is_running(job) && way.shape == run.shape);
    let ask = Ask {
        by: run.promise.or(spec.deadline).unwrap_or(Time::NEVER),
        from: view.now,
        left: view.steps_left(job),
        ways,
        overhead: spec.costs.restart(),
        whole: !spec.pausable,
    };
    Player { job, ask, plan: None, way: None, held }
}

/// A number whose order is that of whole numbers.
fn ordered(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::ids::KindId;
    use yard_core::job::Shape;

    use super::*;
    use crate::testing::{World, policy, run};

    /// Jobs of so many steps that run on 1, 2 or 4 devices at these speeds, with deadlines.
    fn world(devices: u32, jobs: &[(f64, f64, [f64; 3])]) -> World {
        let mut world = World::new(&[devices]);
        for (at, (steps, deadline, speeds)) in jobs.iter().enumerate() {
            world.submit_all(&[(1, *steps)]);
            world.set_deadline(at, *deadline);
            let spec = Arc::make_mut(&mut Arc::make_mut(&mut world.view.specs)[at]);
            spec.shapes = [1, 2, 4].map(|devices| Shape::of(KindId(0), devices)).into();
            spec.speeds = Arc::from(*speeds);
        }
        world
    }

    fn sizes(world: &World, spec: &str) -> Vec<(usize, Option<u16>)> {
        let answer = policy(spec).allocate(&world.view).expect("an answer");
        let Shares::All(mut shares) = answer.shares else { panic!("it answers in full") };
        shares.sort_by_key(|share| share.jobs[0]);
        shares.iter().map(|share| (share.jobs[0].index(), share.shape)).collect()
    }

    const LINEAR: [f64; 3] = [1.0, 2.0, 4.0];
    const POOR: [f64; 3] = [1.0, 1.2, 1.3];

    #[test]
    fn a_tight_deadline_takes_what_it_needs() {
        // 39.5 steps by 10 s need all four devices from now on; the other has time afterwards.
        let world = world(4, &[(39.5, 10.0, LINEAR), (10.0, 100.0, LINEAR)]);
        assert_eq!(sizes(&world, "elasticflow"), [(0, Some(2)), (1, None)]);
    }

    #[test]
    fn the_rest_goes_where_device_time_grows_least() {
        // One device each, and one to spare. Plans are counted in whole slots, as in the paper.
        let world = world(3, &[(59.5, 62.0, POOR), (59.5, 62.0, LINEAR)]);
        assert_eq!(sizes(&world, "elasticflow"), [(0, Some(0)), (1, Some(1))]);
        assert_eq!(sizes(&world, "elasticflow:artifact=true"), [(0, Some(1)), (1, Some(0))]);
    }

    #[test]
    fn what_cannot_be_in_time_does_not_keep_others_from_it() {
        let mut world = world(1, &[(50.0, 10.0, LINEAR), (10.0, 12.0, LINEAR)]);
        assert_eq!(run("elasticflow", &mut world), [60.0, 10.0]);
    }
}
