//! How the node's cards are doing. Cards are read on threads of their own, because a driver in trouble may never
//! answer: the agent asks, goes on, and takes whatever comes back. What is read becomes three things: a picture for
//! people (`Looked`), what each part does to its devices (`Used`, see `using`), and whether a card can still be
//! trusted (`health`). Readings come through `Sensor`, so that pretend cards go the same way as real ones.

mod fake;
mod health;
mod owner;
mod using;

use std::collections::BTreeMap;
use std::sync::mpsc as threads;

use serde::Deserialize;
use smallvec::SmallVec;
use tokio::sync::mpsc;
use yard_core::ids::JobId;
use yard_core::part::{Held, PartId};
use yard_core::{Span, Time};

pub(crate) use self::fake::Fakes;
use self::health::Health;
pub(crate) use self::health::SPLIT;
pub(crate) use self::owner::job_of;
use self::using::Uses;
use crate::wire::{CardNow, FromAgent};

/// A card that has not answered for so many looks hangs.
const LOOKS_MAX: u64 = 15;

/// Which device: its group and its number.
pub(crate) type CardPlace = (u32, u32);

/// A part that runs, and its devices.
pub(crate) type LiveCards = (PartId, SmallVec<[Held; 1]>);

/// What was read of a card.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Reading {
    /// The part of the time in which it computed.
    pub(crate) busy: Option<f64>,
    /// Memory in use.
    pub(crate) memory_used_mib: Option<u64>,
    /// Degrees Celsius.
    pub(crate) temperature_c: Option<u32>,
    /// Power drawn.
    pub(crate) power_w: Option<f64>,
    /// Why its clocks are held back.
    pub(crate) throttled: Option<String>,
    /// Memory errors that were corrected, and those that were not.
    pub(crate) ecc: Option<(u64, u64)>,
    /// Critical errors since the last look, by the numbers that NVIDIA gives them.
    pub(crate) xids: Vec<u64>,
    /// Whether rows of its memory wait for a reset to be replaced.
    pub(crate) remap_pending: bool,
    /// Whether it is split into instances.
    pub(crate) split: bool,
    /// What the processes of each job do on it.
    pub(crate) jobs: BTreeMap<JobId, OfJob>,
    /// Memory of processes that cannot be told to be some job's.
    pub(crate) others_mib: u64,
}

/// What a job does on a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OfJob {
    /// The part of the time in which it computed; not known under MPS.
    pub(crate) busy: Option<f64>,
    /// Memory it holds.
    pub(crate) memory_mib: u64,
}

/// Reads cards.
pub(crate) trait Sensor: Send {
    /// How they are doing; a card that does not answer is left out. May take for ever.
    fn read(&mut self) -> BTreeMap<CardPlace, Reading>;
}

/// What a sensor found, by the sensor's number.
pub(crate) type FoundCards = (usize, BTreeMap<CardPlace, Reading>);

/// The cards of this node.
pub(crate) struct CardReaders {
    watched: Vec<WatchedCards>,
    cards: BTreeMap<CardPlace, Card>,
    uses: Uses,
    /// What sensors found.
    pub(crate) found: mpsc::UnboundedReceiver<FoundCards>,
    /// Keeps the channel open where there are no sensors.
    _open: mpsc::UnboundedSender<FoundCards>,
}

/// A sensor, on its thread.
struct WatchedCards {
    places: Vec<CardPlace>,
    ask: threads::Sender<()>,
    /// Since when it owes an answer.
    asked: Option<Time>,
}

#[derive(Debug, Default)]
struct Card {
    reading: Option<Reading>,
    health: Health,
}

impl CardReaders {
    /// Gives each sensor a thread. It ends with the agent, unless the driver never lets it go.
    pub(crate) fn watch(sensors: Vec<(Vec<CardPlace>, Box<dyn Sensor>)>) -> CardReaders {
        let (answer, found) = mpsc::unbounded_channel();
        let places: Vec<CardPlace> = sensors.iter().flat_map(|(places, _)| places.clone()).collect();
        let start = |(number, (places, sensor))| WatchedCards {
            places,
            ask: start(number, sensor, answer.clone()),
            asked: None,
        };
        let watched = sensors.into_iter().enumerate().map(start).collect();
        let cards = places.into_iter().map(|place| (place, Card::default())).collect();
        CardReaders { watched, cards, uses: Uses::default(), found, _open: answer }
    }

    /// Asks all sensors that owe no answer. One that owes it for too long hangs, and its cards with it.
    pub(crate) fn look(&mut self, now: Time, every: Span) {
        let patience = Span(every.0.saturating_mul(LOOKS_MAX));
        for watched in &mut self.watched {
            let Some(asked) = watched.asked else {
                watched.asked = watched.ask.send(()).is_ok().then_some(now);
                continue;
            };
            if now - asked >= patience {
                let hung = self.cards.iter_mut().filter(|(place, _)| watched.places.contains(place));
                for (_, card) in hung {
                    card.reading = None;
                    card.health.hangs(patience);
                }
            }
        }
    }

    /// Takes in what a sensor found; whether nothing more is to come of this look.
    pub(crate) fn take(&mut self, (number, mut found): FoundCards) -> bool {
        let Some(watched) = self.watched.get_mut(number) else { return false };
        watched.asked = None;
        for place in &watched.places {
            if let Some(card) = self.cards.get_mut(place) {
                card.reading = found.remove(place);
                card.health.take(card.reading.as_ref());
            }
        }
        self.watched.iter().all(|watched| watched.asked.is_none() || self.hangs(watched))
    }

    fn hangs(&self, watched: &WatchedCards) -> bool {
        watched.places.iter().filter_map(|place| self.cards.get(place)).any(|card| card.health.is_hanging())
    }

    /// What is wrong with each card.
    pub(crate) fn problems(&self) -> Vec<(CardPlace, Option<String>)> {
        let problem = |card: &Card| card.health.problem().map(str::to_owned);
        self.cards.iter().map(|(place, card)| (*place, problem(card))).collect()
    }

    /// What is wrong with a card.
    pub(crate) fn problem(&self, place: CardPlace) -> Option<&str> {
        self.cards.get(&place)?.health.problem()
    }

    /// What there is to tell the server after a look, given what runs here.
    pub(crate) fn news(&mut self, live: &[LiveCards]) -> Vec<FromAgent> {
        if self.cards.is_empty() {
            return Vec::new();
        }
        let read = self.cards.iter().filter_map(|(place, card)| Some((*place, card.reading.as_ref()?)));
        let cards: Vec<CardNow> = read.map(|(place, reading)| reading.card(place, live)).collect();
        let used = self.uses.take(using::seen(&cards));
        let used =
            used.into_iter().map(|(part, busy, memory_mib)| FromAgent::Used { part, busy, memory_mib });
        let used: Vec<_> = used.collect();
        std::iter::once(FromAgent::Looked { cards }).chain(used).collect()
    }

    /// The server is another, or may have missed something: what parts do is told again.
    pub(crate) fn tell_again(&mut self) {
        self.uses.tell_again();
    }
}

impl Reading {
    /// As the server is told of it.
    fn card(&self, (group, device): CardPlace, live: &[LiveCards]) -> CardNow {
        let holds = |held: &Held| held.group == group && held.mask >> device & 1 == 1;
        let here = live.iter().filter(|(_, devices)| devices.iter().any(holds));
        let here: Vec<PartId> = here.map(|(part, _)| *part).collect();
        let of = |part: &PartId| {
            let OfJob { busy, memory_mib } = self.of(part.job, here.len() == 1)?;
            Some((*part, busy, memory_mib))
        };
        CardNow {
            group,
            device,
            busy: self.busy,
            memory_used_mib: self.memory_used_mib,
            temperature_c: self.temperature_c,
            power_w: self.power_w,
            throttled: self.throttled.clone(),
            ecc: self.ecc,
            parts: here.iter().filter_map(of).collect(),
        }
    }

    /// What a job does here. One that is alone on the card does all that is done there: the card's own figure is the
    /// better one then, because that of processes covers only part of the time.
    fn of(&self, job: JobId, alone: bool) -> Option<OfJob> {
        let known = self.jobs.get(&job).copied();
        if !alone {
            return known;
        }
        let known = known.unwrap_or(OfJob { busy: None, memory_mib: self.others_mib });
        Some(OfJob { busy: self.busy.or(known.busy), ..known })
    }
}

/// Starts a sensor's thread; returns how it is asked.
fn start(
    number: usize,
    mut sensor: Box<dyn Sensor>,
    answer: mpsc::UnboundedSender<FoundCards>,
) -> threads::Sender<()> {
    let (ask, asked) = threads::channel();
    let serve = move || {
        while asked.recv().is_ok() && answer.send((number, sensor.read())).is_ok() {}
    };
    if let Err(error) = std::thread::Builder::new().name("yard-cards".into()).spawn(serve) {
        tracing::error!(%error, "cards are not watched: no thread can be started");
    }
    ask
}

#[cfg(test)]
mod tests;
