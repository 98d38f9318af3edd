//! Server, agents and chance.

use std::collections::{BTreeMap, BTreeSet};

use yard_core::ids::{JobId, LeaseId};
use yard_core::part::PartId;
use yard_core::{Span, Time};

use crate::agent::{Agent, Process};
use crate::rules::GB;
use crate::server::{DEVICES, Server};

/// Chance from a seed (splitmix64).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn chance(&mut self, times: u64, of: u64) -> bool {
        self.below(of) < times
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { from.get(self.below(from.len() as u64) as usize).cloned() }
    }
}

/// What happened how often, so that a test can tell that it tested anything; and what happened in order, for a seed
/// that fails.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) tracing: bool,
    pub(crate) log: Vec<String>,
}

impl Tally {
    pub(crate) fn count(&mut self, what: &str) {
        match self.counts.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(what.to_owned(), 1)),
        }
    }

    pub(crate) fn note(&mut self, what: impl Fn() -> String) {
        if self.tracing {
            self.log.push(what());
        }
    }
}

/// Everything.
pub(crate) struct World {
    now: Time,
    rng: Rng,
    agents: Vec<Agent>,
    server: Server,
    /// Nothing goes wrong.
    calm: bool,
    /// The engine starts and stops jobs.
    decides: bool,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut rng = Rng(seed);
        let count = 1 + rng.below(3) as usize;
        let agents =
            (0..count).map(|number| Agent::new(number, [0, 10, 25, 1000][rng.below(4) as usize] * GB));
        let agents = agents.collect();
        let server = Server::new(count, 2 + rng.below(8));
        World { now: Time::from_secs(1000.0), rng, agents, server, calm: false, decides: true }
    }

    /// A world in which nothing breaks and processes do as they are told, with all the time they need.
    pub(crate) fn tame(seed: u64) -> World {
        let mut world = World { calm: true, ..World::new(seed) };
        world.agents.iter_mut().for_each(|agent| agent.tame = true);
        world.server.grace = (3600, 7200);
        world
    }

    /// Each part of which ranks stopped as they were told, with the steps before which they did.
    pub(crate) fn stopped(&self) -> BTreeMap<PartId, BTreeSet<u64>> {
        let mut steps: BTreeMap<PartId, BTreeSet<u64>> = BTreeMap::new();
        for (part, step) in self.agents.iter().flat_map(|agent| &agent.stopped) {
            steps.entry(*part).or_default().insert(*step);
        }
        steps
    }

    /// One thing happens.
    pub(crate) fn step(&mut self, tally: &mut Tally) {
        let at = self.rng.below(self.agents.len() as u64) as usize;
        let World { now, rng, agents, server, calm, .. } = self;
        match rng.below(100) {
            0..8 => self.pass(tally),
            8..26 => server.receive(*now, at, agents, rng, tally),
            26..44 if agents[at].up => agents[at].receive(*now, rng, tally, *calm),
            44..62 if agents[at].up => agents[at].hear(*now, rng, tally, *calm),
            62..78 => agents[at].work(rng, *calm),
            78..82 if agents[at].up => agents[at].drive(rng, tally, *calm),
            82..88 => server.commit(agents, rng, tally),
            88..92 if !agents[at].up => agents[at].restart(*now, rng, tally, *calm),
            88..92 if !agents[at].connected => agents[at].connect(*now),
            92..98 if self.decides => self.decide(tally),
            98..100 if !*calm => self.disturb(at, tally),
            _ => {}
        }
        self.check();
    }

    fn decide(&mut self, tally: &mut Tally) {
        if self.rng.chance(2, 3) {
            self.server.grant(&mut self.agents, &mut self.rng, tally);
        } else {
            self.server.revoke(false, &mut self.agents, &mut self.rng, tally);
        }
    }

    /// Something breaks.
    fn disturb(&mut self, at: usize, tally: &mut Tally) {
        let World { now, rng, agents, server, .. } = self;
        match rng.below(100) {
            0..45 => server.disconnect(at, agents),
            45..80 if agents[at].up => agents[at].crash(tally),
            80..85 => agents[at].lose_power(tally),
            85..100 => server.crash(*now, agents, tally),
            _ => {}
        }
    }

    fn pass(&mut self, tally: &mut Tally) {
        let World { now, rng, agents, server, calm, .. } = self;
        *now = *now + Span(rng.below(2_000_000));
        for agent in agents.iter_mut() {
            agent.pass(*now, rng, tally, *calm);
        }
        server.pass(*now, agents, rng, tally);
    }

    /// From now on nothing breaks, and everything is to stop: whether it does.
    pub(crate) fn settle(&mut self, tally: &mut Tally) -> bool {
        (self.calm, self.decides) = (true, false);
        for _ in 0..20_000 {
            self.server.revoke(true, &mut self.agents, &mut self.rng, tally);
            self.step(tally);
            if self.is_over() {
                return true;
            }
        }
        false
    }

    fn is_over(&self) -> bool {
        let rests = |((part, _), process): (&(PartId, u32), &Process)| {
            process.frozen && self.server.waiting.contains(&part.job)
        };
        let done =
            |agent: &Agent| agent.up && agent.holder.parts().is_empty() && agent.processes.iter().all(rests);
        self.server.is_idle() && self.agents.iter().all(done)
    }

    /// A device is used under one lease, and a job runs under one.
    fn check(&self) {
        let mut jobs: BTreeMap<JobId, BTreeSet<LeaseId>> = BTreeMap::new();
        for (at, agent) in self.agents.iter().enumerate() {
            let mut devices: BTreeMap<u32, BTreeSet<LeaseId>> = BTreeMap::new();
            for ((part, _), process) in agent.processes.iter().filter(|(_, process)| !process.frozen) {
                jobs.entry(part.job).or_default().insert(part.lease);
                let held = (0..DEVICES).filter(|bit| process.devices >> bit & 1 == 1);
                held.for_each(|device| devices.entry(device).or_default().extend([part.lease]));
            }
            assert!(agent.holder.frozen_bytes() <= agent.room, "agent {at}: more is frozen than may be");
            let shared = devices.iter().find(|(_, leases)| leases.len() > 1);
            assert!(shared.is_none(), "agent {at}: a device is used under several leases: {shared:?}");
        }
        let copies = jobs.iter().find(|(_, leases)| leases.len() > 1);
        assert!(copies.is_none(), "a job runs under several leases: {copies:?}");
    }

    pub(crate) fn describe(&self) -> String {
        let agents =
            self.agents.iter().map(|agent| (agent.up, agent.connected, &agent.holder, &agent.processes));
        format!("now {}\n{}\n{:?}", self.now, self.server.describe(), agents.collect::<Vec<_>>())
    }
}
