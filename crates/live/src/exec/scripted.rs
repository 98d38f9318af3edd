//! A backend without machines, for tests of the driver. The file `script` in the data folder names its hosts, one a line:
//! `n1 a100 2`. A job's command says what becomes of it: `run SECONDS CODE`. It chooses devices itself, cannot freeze, keeps
//! no logs, and gives each device to one job. Its jobs outlive the server: after a restart they begin once more what they
//! were doing, under the same lease.

use std::collections::{BTreeMap, BTreeSet};

use yard_core::ids::{JobId, LeaseId};
use yard_core::message::Outcome;
use yard_core::part::Pause;
use yard_core::units::Span;

use super::host::groups;
use super::{
    Audience, Backend, BackendAbilities, BackendEntry, ChosenDevices, DeviceChoice, Directive, HostAbilities,
    HostId, HostOffer, Incoming, JobLaunch, JobNews, Notice, RunEnd, Survived,
};
use crate::driver::Config;
use crate::store::StoreError;

/// The line of the table.
pub(super) const ENTRY: BackendEntry =
    BackendEntry { name: "scripted", about: "Does what jobs' commands say, for tests", make };

/// The file that names its hosts.
pub(crate) const SCRIPT: &str = "script";

struct ScriptedBackend {
    abilities: BackendAbilities,
    /// Hosts that are not here yet.
    offers: Vec<HostOffer>,
    /// Devices of each host by group.
    devices: BTreeMap<(HostId, u32), BTreeSet<u32>>,
    /// Hosts that wait for an answer.
    waiting: BTreeMap<u64, HostOffer>,
    runs: BTreeMap<(LeaseId, JobId), ScriptedRun>,
}

/// A job that runs.
struct ScriptedRun {
    launch: JobLaunch,
    since: Span,
    started: bool,
    /// The devices that were chosen for it.
    chosen: Vec<((HostId, u32), u32)>,
}

impl ScriptedRun {
    /// What its command says: how long it takes, and how it ends.
    fn plan(&self) -> (Span, i32) {
        let word = |at: usize| self.launch.request.command.get(at);
        let seconds = word(1).and_then(|word| word.parse().ok()).map_or(Span::ZERO, Span::from_secs);
        (seconds, word(2).and_then(|word| word.parse().ok()).unwrap_or(0))
    }
}

fn make(config: &Config) -> Result<Box<dyn Backend>, StoreError> {
    let path = config.data.join(SCRIPT);
    let text = std::fs::read_to_string(&path).map_err(|source| StoreError::Io { path, source })?;
    let abilities = BackendAbilities {
        name: ENTRY.name,
        pauses: &[Pause::Auto, Pause::Checkpoint, Pause::Never],
        devices: DeviceChoice::Counts,
        shares: false,
        logs: false,
        signals: false,
        only: None,
        look_every: Span(2_000),
        margin: Span(50_000),
    };
    let offers = text.lines().map(offer).collect();
    let (devices, waiting, runs) = Default::default();
    Ok(Box::new(ScriptedBackend { abilities, offers, devices, waiting, runs }))
}

/// `n1 a100 2`.
fn offer(line: &str) -> HostOffer {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, kind, count] = words[..] else { panic!("a line of the script: {line:?}") };
    HostOffer {
        domains: Default::default(),
        name: name.into(),
        address: name.into(),
        groups: groups(&[(kind, count.parse().expect("a number of devices"))]),
        resources: BTreeMap::new(),
        abilities: HostAbilities::default(),
        audience: Audience::Everybody,
    }
}

impl ScriptedBackend {
    fn begin(&mut self, now: Span, lease: LeaseId, launch: JobLaunch) {
        let mut chosen = Vec::new();
        for place in &launch.places {
            for wanted in &place.devices {
                let ChosenDevices::Count(count) = wanted.chosen else {
                    panic!("it is told how many, not which")
                };
                let at = (place.host, wanted.group);
                let free = self.devices.get_mut(&at).expect("a host that is here");
                let taken: Vec<u32> = free.iter().copied().take(count as usize).collect();
                assert_eq!(taken.len(), count as usize, "no more is granted than there is: {launch:?}");
                taken.iter().for_each(|device| _ = free.remove(device));
                chosen.extend(taken.into_iter().map(|device| (at, device)));
            }
        }
        let key = (lease, launch.job);
        let run = ScriptedRun { launch, since: now, started: false, chosen };
        assert!(self.runs.insert(key, run).is_none(), "nothing runs twice");
    }

    fn end(&mut self, (lease, job): (LeaseId, JobId), outcome: Outcome, code: i32, out: &mut Vec<Notice>) {
        let Some(run) = self.runs.remove(&(lease, job)) else { return };
        for (at, device) in run.chosen {
            self.devices.entry(at).or_default().insert(device);
        }
        let (step, signal, message) = (None, None, None);
        let end = RunEnd { outcome, step, code: Some(code), signal, message };
        out.push(Notice::Job { lease, job, news: JobNews::Ended(end) });
    }

    fn add(&mut self, host: HostId, offered: &[super::GroupOnWire]) {
        for (group, of_kind) in (0..).zip(offered) {
            self.devices.entry((host, group)).or_insert_with(|| (0..of_kind.devices.len() as u32).collect());
        }
    }
}

impl Backend for ScriptedBackend {
    fn abilities(&self) -> &BackendAbilities {
        &self.abilities
    }

    fn restore(&mut self, now: Span, survived: Survived) {
        survived.hosts.iter().for_each(|known| self.add(known.host, &known.groups));
        survived.jobs.into_iter().for_each(|job| self.begin(now, job.lease, job.launch));
    }

    fn execute(&mut self, now: Span, directive: Directive, out: &mut Vec<Notice>) {
        match directive {
            Directive::Admit { ticket, host } => {
                let offer = self.waiting.remove(&ticket).expect("it was offered");
                self.add(host, &offer.groups);
            }
            Directive::Grant { lease, launches } => {
                launches.into_iter().for_each(|launch| self.begin(now, lease, launch));
            }
            Directive::Revoke { lease, jobs, .. } => {
                jobs.into_iter().for_each(|job| self.end((lease, job), Outcome::Saved, 0, out));
            }
            // It keeps nothing that ended, and has no logs to show.
            _ => {}
        }
    }

    fn hear(&mut self, _: Span, _: Incoming, _: &mut Vec<Notice>) {}

    fn look(&mut self, now: Span, out: &mut Vec<Notice>) {
        for offer in std::mem::take(&mut self.offers) {
            let ticket = self.waiting.last_key_value().map_or(0, |(last, _)| last + 1);
            self.waiting.insert(ticket, offer.clone());
            out.push(Notice::Offer { ticket, offer });
        }
        let mut due = Vec::new();
        for ((lease, job), run) in &mut self.runs {
            if !std::mem::replace(&mut run.started, true) {
                out.push(Notice::Job { lease: *lease, job: *job, news: JobNews::Started });
            }
            let (length, code) = run.plan();
            if now >= run.since + length {
                due.push(((*lease, *job), code));
            }
        }
        for (run, code) in due {
            let outcome = if code == 0 { Outcome::Finished } else { Outcome::Crashed };
            self.end(run, outcome, code, out);
        }
    }

    fn heard(&self, _: HostId) -> Option<Span> {
        None
    }
}
