//! A model of an agent's machine: the processes with their parent, which survive the agent, and the agent that
//! executes what its holder decides.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use yard_core::holder::{Act, Happening, Holder};
use yard_core::ids::JobId;
use yard_core::part::{Order, PartId, Start, Told};
use yard_core::{Span, Time};

use crate::rules::GB;
use crate::world::{Rng, Tally};

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) devices: u128,
    pub(crate) frozen: bool,
    pub(crate) grace: Span,
    /// What it has on its cards.
    bytes: u64,
    speaks: bool,
    stubborn: bool,
    connected: bool,
    signalled: bool,
    hold: Option<u64>,
    stop: Option<Option<u64>>,
    step: u64,
    total: u64,
}

type Exit = (Option<i32>, Option<i32>);

/// What the driver was asked to do with a part's processes and has not done yet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moving {
    Freeze(PartId),
    Thaw(PartId),
}

/// From an agent to the server.
#[derive(Clone, Debug)]
pub(crate) enum Up {
    Hello { sent: Time, parts: Vec<(PartId, Told)>, paused: Vec<JobId> },
    Beat { sent: Time },
    Told { part: PartId, told: Told },
}

/// From the server to an agent.
#[derive(Clone, Debug)]
pub(crate) enum Down {
    Contact { sent: Time },
    Order(Order),
}

/// An agent and its machine.
#[derive(Default)]
pub(crate) struct Agent {
    number: usize,
    /// Its processes all talk and do as they are told.
    pub(crate) tame: bool,
    pub(crate) holder: Holder,
    pub(crate) up: bool,
    pub(crate) connected: bool,
    /// Which of its connections this is, or was.
    pub(crate) connection: u64,
    pub(crate) to_server: VecDeque<Up>,
    pub(crate) to_agent: VecDeque<Down>,
    /// Orders that this connection will repeat, some time.
    pub(crate) repeats: Vec<Order>,
    /// What its own machine says, in order; lost when the agent crashes.
    inbox: VecDeque<Happening>,
    saved: Holder,
    /// What frozen jobs may hold of its memory.
    pub(crate) room: u64,
    /// What its driver is at; lost when the agent crashes.
    moving: Vec<Moving>,
    pub(crate) processes: BTreeMap<(PartId, u32), Process>,
    exits: BTreeMap<(PartId, u32), Exit>,
    valid_until: Time,
    next_beat: Time,
    /// Steps that each job saved here, ever.
    pub(crate) checkpoints: BTreeMap<JobId, BTreeSet<u64>>,
    /// The steps before which ranks stopped as they were told.
    pub(crate) stopped: Vec<(PartId, u64)>,
}

/// How long the node's lease is.
pub(crate) const LEASE: Span = Span::from_whole_secs(20);

impl Agent {
    pub(crate) fn new(number: usize, room: u64) -> Agent {
        let mut agent = Agent { number, up: true, room, ..Agent::default() };
        agent.holder.step(Time::ZERO, Happening::Room { bytes: room }, &mut Vec::new());
        agent.saved = agent.holder.clone();
        agent
    }

    /// The holder decides; what matters is saved before it is done. The agent may die in between.
    pub(crate) fn step(&mut self, now: Time, what: Happening, rng: &mut Rng, tally: &mut Tally, calm: bool) {
        let mut acts = Vec::new();
        tally.note(|| format!("{now} agent {}: {what:?}", self.number));
        self.holder.step(now, what, &mut acts);
        tally.note(|| format!("    {acts:?}"));
        let matters = |act: &Act| {
            matches!(
                act,
                Act::Spawn { .. }
                    | Act::Thaw { .. }
                    | Act::Freeze { .. }
                    | Act::Tell { told: Told::Ended(_), .. }
            )
        };
        if acts.iter().any(matters) {
            self.saved = self.holder.clone();
        }
        for act in acts {
            if !calm && rng.chance(1, 400) {
                return self.crash(tally);
            }
            self.execute(act, rng, tally, calm);
            if !self.up {
                return;
            }
        }
    }

    fn execute(&mut self, act: Act, rng: &mut Rng, tally: &mut Tally, calm: bool) {
        tally.count(act_name(&act));
        match act {
            Act::Reserve { part } => self.inbox.push_back(Happening::PortFound { part, port: 1000 }),
            Act::Spawn { part, .. } => self.spawn(part, rng, tally, calm),
            Act::Hold { part, ranks } => self.hold(part, ranks, rng),
            Act::Stop { part, ranks, at, .. } => {
                for rank in ranks {
                    let process = self.processes.get_mut(&(part, rank)).filter(|process| process.connected);
                    process.into_iter().for_each(|process| process.stop = Some(at));
                }
            }
            Act::Signal { part, ranks } => {
                for rank in ranks {
                    let process = self.processes.get_mut(&(part, rank));
                    process.into_iter().for_each(|process| process.signalled = true);
                }
            }
            Act::Kill { part } | Act::Drop { part } => self.kill(part),
            Act::Freeze { part, deep: false } => {
                self.of(part).for_each(|(_, process)| process.frozen = true);
            }
            Act::Freeze { part, deep: true } => self.moving.push(Moving::Freeze(part)),
            Act::Thaw { part, as_part, deep } => {
                self.thaw(part, as_part);
                self.moving.extend(deep.then_some(Moving::Thaw(as_part)));
            }
            Act::Tell { part, told } => {
                match &told {
                    Told::Ended(ending) => tally.count(&format!("{:?}", ending.how)),
                    Told::Stuck(true) => tally.count("stuck"),
                    Told::Stuck(false) => tally.count("not stuck any more"),
                    _ => {}
                }
                if self.connected {
                    self.to_server.push_back(Up::Told { part, told });
                }
            }
            Act::Forget { part } => self.exits.retain(|(id, _), _| *id != part),
        }
    }

    fn of(&mut self, part: PartId) -> impl Iterator<Item = (&(PartId, u32), &mut Process)> {
        self.processes.iter_mut().filter(move |((id, _), _)| *id == part)
    }

    fn spawn(&mut self, part: PartId, rng: &mut Rng, tally: &mut Tally, calm: bool) {
        let start = self.holder.start(part).expect("what is spawned is on record").clone();
        if !calm && rng.chance(1, 30) {
            let code = rng.chance(1, 2).then_some(127);
            let failed = Happening::SpawnFailed { part, code, message: "no such program".into() };
            return self.inbox.push_back(failed);
        }
        let speaks = self.tame || rng.chance(2, 3);
        let mixed = !self.tame && rng.chance(1, 6);
        for rank in start.ranks.first..start.ranks.first + start.ranks.count {
            if !calm && rng.chance(1, 200) {
                return self.crash(tally);
            }
            let speaks = speaks && !(mixed && rank % 2 == 1);
            let stubborn = !self.tame && rng.chance(1, 8);
            self.processes.insert((part, rank), process(&start, speaks, stubborn));
        }
        self.inbox.push_back(Happening::Spawned { part });
    }

    fn hold(&mut self, part: PartId, ranks: Vec<u32>, rng: &mut Rng) {
        for rank in ranks {
            let Some(process) = self.processes.get_mut(&(part, rank)).filter(|process| process.connected)
            else {
                continue;
            };
            let step = process.step + rng.below(2);
            process.hold = Some(step);
            self.inbox.push_back(Happening::Boundary { part, rank, step });
        }
    }

    /// Devices that are no cards are as good as each other: the processes take those of the new lease.
    fn thaw(&mut self, part: PartId, as_part: PartId) {
        let devices = self.holder.start(as_part).expect("what is thawed is on record").devices[0].mask;
        let old: Vec<_> = self.of(part).map(|(key, _)| *key).collect();
        for key in old {
            let mut process = self.processes.remove(&key).expect("just found");
            (process.frozen, process.devices) = (false, devices);
            self.processes.insert((as_part, key.1), process);
        }
        self.of(as_part).for_each(|(_, process)| process.frozen = false);
    }

    /// The driver is done with something, in whatever order, after whatever time, and not always well.
    pub(crate) fn drive(&mut self, rng: &mut Rng, tally: &mut Tally, calm: bool) {
        let Some(done) = rng.pick(&self.moving) else { return };
        self.moving.retain(|moving| *moving != done);
        let (Moving::Freeze(part) | Moving::Thaw(part)) = done;
        if !calm && rng.chance(1, 10) {
            tally.count("died in the driver's hands");
            let first = self.of(part).map(|(key, _)| *key).next();
            first.into_iter().for_each(|key| self.exit(key, (None, Some(9))));
        }
        let took = Span(rng.below(5_000_000));
        let (well, reason) = (calm || rng.chance(3, 4), "the driver said no".to_owned());
        let bytes = self.of(part).map(|(_, process)| process.bytes).sum();
        let answer = match done {
            Moving::Freeze(_) if well => Happening::Frozen { part, bytes, took },
            Moving::Freeze(_) => Happening::FreezeFailed { part, reason, forever: rng.chance(1, 3) },
            Moving::Thaw(_) if well => Happening::Thawed { part, took },
            Moving::Thaw(_) => Happening::ThawFailed { part, reason },
        };
        let frozen = matches!(answer, Happening::Frozen { .. });
        self.of(part).for_each(|(_, process)| process.frozen = frozen);
        tally.count(match answer {
            Happening::Frozen { .. } => "frozen",
            Happening::FreezeFailed { .. } => "freeze failed",
            Happening::Thawed { .. } => "thawed",
            _ => "thaw failed",
        });
        self.inbox.push_back(answer);
    }

    fn kill(&mut self, part: PartId) {
        let ranks: Vec<_> = self.of(part).map(|(key, _)| *key).collect();
        ranks.into_iter().for_each(|key| self.exit(key, (None, Some(9))));
    }

    fn exit(&mut self, key: (PartId, u32), exit: Exit) {
        self.processes.remove(&key);
        self.exits.insert(key, exit);
        if self.up {
            self.inbox.push_back(Happening::Exited {
                part: key.0,
                rank: key.1,
                code: exit.0,
                signal: exit.1,
                starved: None,
            });
        }
    }

    /// The agent dies; its processes do not.
    pub(crate) fn crash(&mut self, tally: &mut Tally) {
        tally.count("agent crashed");
        tally.note(|| format!("agent {} crashes", self.number));
        self.up = false;
        self.inbox.clear();
        self.moving.clear();
        self.disconnect();
        self.processes.values_mut().for_each(|process| process.connected = false);
    }

    /// The whole machine loses power: processes are gone and nobody saw how.
    pub(crate) fn lose_power(&mut self, tally: &mut Tally) {
        self.crash(tally);
        tally.count("power lost");
        self.processes.clear();
        self.exits.clear();
    }

    pub(crate) fn disconnect(&mut self) {
        self.connected = false;
        self.to_server.clear();
        self.to_agent.clear();
        self.repeats.clear();
    }

    pub(crate) fn restart(&mut self, now: Time, rng: &mut Rng, tally: &mut Tally, calm: bool) {
        let text = serde_json::to_string(&self.saved).expect("a holder can be written");
        self.holder = serde_json::from_str(&text).expect("and read");
        assert_eq!(self.holder, self.saved, "a holder is read as it was written");
        self.up = true;
        self.step(now, Happening::Room { bytes: self.room }, rng, tally, calm);
        self.step(now, Happening::Contact { valid_until: self.valid_until }, rng, tally, calm);
        for ((part, rank), (code, signal)) in self.exits.clone() {
            if self.up {
                self.step(
                    now,
                    Happening::Exited { part, rank, code, signal, starved: None },
                    rng,
                    tally,
                    calm,
                );
            }
        }
        if self.up {
            let alive = self.processes.keys().copied().collect();
            self.step(now, Happening::Restarted { alive }, rng, tally, calm);
        }
    }

    /// Time has passed: ticks that are due, beats, and the keeper's own watch where the agent is down.
    pub(crate) fn pass(&mut self, now: Time, rng: &mut Rng, tally: &mut Tally, calm: bool) {
        if self.up && self.holder.deadline().is_some_and(|due| due <= now) {
            self.step(now, Happening::Tick, rng, tally, calm);
            let due = self.holder.deadline().filter(|_| self.up);
            assert!(due.is_none_or(|due| due > now), "a tick leaves nothing due: {:?}", self.holder);
        }
        if self.connected && now >= self.next_beat {
            self.next_beat = now + Span::from_whole_secs(2);
            self.to_server.push_back(Up::Beat { sent: now });
        }
        if !self.up {
            let late = |process: &Process| !process.frozen && now >= self.valid_until + process.grace;
            let due: Vec<_> = self.processes.iter().filter(|(_, process)| late(process)).collect();
            let due: Vec<_> = due.into_iter().map(|(key, _)| *key).collect();
            due.into_iter().for_each(|key| self.exit(key, (None, Some(9))));
        }
    }

    pub(crate) fn connect(&mut self, now: Time) {
        self.disconnect();
        self.connected = true;
        self.connection += 1;
        let (parts, paused) = (self.holder.parts(), self.holder.paused());
        self.to_server.push_back(Up::Hello { sent: now, parts, paused });
    }

    /// One thing that its machine has to say.
    pub(crate) fn hear(&mut self, now: Time, rng: &mut Rng, tally: &mut Tally, calm: bool) {
        if let Some(what) = self.inbox.pop_front() {
            self.step(now, what, rng, tally, calm);
        }
    }

    /// One thing that the server has to say.
    pub(crate) fn receive(&mut self, now: Time, rng: &mut Rng, tally: &mut Tally, calm: bool) {
        if rng.chance(1, 20) && !self.repeats.is_empty() {
            let order = self.repeats.swap_remove(rng.below(self.repeats.len() as u64) as usize);
            self.to_agent.push_back(Down::Order(order));
        }
        let what = match self.to_agent.pop_front() {
            None => return,
            Some(Down::Order(order)) => Happening::Order(order),
            Some(Down::Contact { sent }) => {
                self.valid_until = self.valid_until.max(sent + LEASE);
                Happening::Contact { valid_until: sent + LEASE }
            }
        };
        self.step(now, what, rng, tally, calm);
    }

    /// A process of its own accord: talks, works, saves, ends.
    pub(crate) fn work(&mut self, rng: &mut Rng, calm: bool) {
        let Some(key) = rng.pick(&self.processes.keys().copied().collect::<Vec<_>>()) else { return };
        let (part, rank) = key;
        let ahead = self.of(part).map(|(_, process)| process.step).min().unwrap_or(0);
        let process = self.processes.get_mut(&key).expect("just picked");
        let (talks, step, total) = (process.connected && self.up, process.step, process.total);
        if process.frozen {
            if !calm && rng.chance(1, 60) {
                self.exit(key, (None, Some(9)));
            }
        } else if process.signalled && !process.stubborn {
            self.exit(key, (None, Some(15)));
        } else if process.speaks && !process.connected && self.up {
            process.connected = true;
            self.inbox.push_back(Happening::Hello { part, rank });
        } else if process.stop.is_some_and(|at| at.is_none_or(|at| step >= at) && !process.stubborn) {
            self.stopped.push((part, step));
            self.save(key, step, talks);
            self.exit(key, (Some(0), None));
        } else if !calm && rng.chance(1, 80) {
            self.exit(key, (Some(1), None));
        } else if self.up && rng.chance(1, 8) {
            let bytes = self.of(part).map(|(_, process)| process.bytes).sum();
            self.inbox.push_back(Happening::Usage { part, bytes });
        } else if step >= total {
            self.exit(key, (Some(0), None));
        } else if process.hold.is_none_or(|hold| step < hold) || process.stop.is_some() {
            process.step += u64::from(step <= ahead);
            let step = process.step;
            if talks {
                self.inbox.push_back(Happening::Progress { part, rank, step, total: Some(total) });
                if rng.chance(1, 4) {
                    self.save(key, step, talks);
                }
            }
        }
    }

    fn save(&mut self, (part, rank): (PartId, u32), step: u64, talks: bool) {
        self.checkpoints.entry(part.job).or_default().insert(step);
        if talks {
            let took = Span::from_whole_secs(1);
            self.inbox.push_back(Happening::Checkpointed { part, rank, step, took });
        }
    }
}

fn process(start: &Start, speaks: bool, stubborn: bool) -> Process {
    Process {
        devices: start.devices.iter().map(|held| held.mask).fold(0, |all, mask| all | mask),
        frozen: false,
        grace: start.lapsed_grace(),
        bytes: (1 + start.part.job.0 % 9) * GB,
        speaks,
        stubborn,
        connected: false,
        signalled: false,
        hold: None,
        stop: None,
        step: 0,
        total: 3 + start.part.job.0 * 7 % 20,
    }
}

fn act_name(act: &Act) -> &'static str {
    match act {
        Act::Reserve { .. } => "reserve",
        Act::Spawn { .. } => "spawn",
        Act::Hold { .. } => "hold",
        Act::Stop { at: Some(_), .. } => "stop at",
        Act::Stop { .. } => "stop",
        Act::Signal { .. } => "signal",
        Act::Kill { .. } => "kill",
        Act::Freeze { deep: true, .. } => "freeze deeply",
        Act::Freeze { .. } => "freeze",
        Act::Thaw { deep: true, .. } => "thaw deeply",
        Act::Thaw { .. } => "thaw",
        Act::Drop { .. } => "drop",
        Act::Tell { .. } => "tell",
        Act::Forget { .. } => "forget",
    }
}
