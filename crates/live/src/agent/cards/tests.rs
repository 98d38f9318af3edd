//! Sensors that are scripts: what comes of readings, and of sensors that never answer.

use std::time::Duration;

use yard_core::ids::LeaseId;

use super::*;

const LOOK: Span = Span::from_whole_secs(2);

/// Answers with what it is sent, and not before.
struct Script(threads::Receiver<BTreeMap<CardPlace, Reading>>);

impl Sensor for Script {
    fn read(&mut self) -> BTreeMap<CardPlace, Reading> {
        self.0.recv().unwrap_or_default()
    }
}

fn scripts<const N: usize>() -> (CardReaders, [threads::Sender<BTreeMap<CardPlace, Reading>>; N]) {
    let mut sensors: Vec<(Vec<CardPlace>, Box<dyn Sensor>)> = Vec::new();
    let senders = std::array::from_fn(|number| {
        let (sender, readings) = threads::channel();
        sensors.push((vec![(0, number as u32)], Box::new(Script(readings))));
        sender
    });
    (CardReaders::watch(sensors), senders)
}

async fn found(cards: &mut CardReaders) -> bool {
    let found = tokio::time::timeout(Duration::from_secs(60), cards.found.recv()).await.unwrap().unwrap();
    cards.take(found)
}

fn part(job: u64) -> PartId {
    PartId { lease: LeaseId(job), job: JobId(job), instance: 1 }
}

fn on(job: u64, mask: u128) -> LiveCards {
    (part(job), SmallVec::from_elem(Held { group: 0, mask }, 1))
}

fn busy(busy: f64, others_mib: u64) -> Reading {
    Reading { busy: Some(busy), others_mib, ..Reading::default() }
}

#[tokio::test]
async fn a_sensor_that_never_answers_is_a_hanging_card_and_holds_up_nobody() {
    let (mut cards, [well, hung]) = scripts();
    cards.look(Time(0), LOOK);
    well.send(BTreeMap::from([((0, 0), busy(0.5, 1))])).unwrap();
    assert!(!found(&mut cards).await, "the other may still answer");
    cards.look(Time(0) + Span(LOOK.0 * (LOOKS_MAX - 1)), LOOK);
    well.send(BTreeMap::from([((0, 0), busy(0.5, 1))])).unwrap();
    assert!(!found(&mut cards).await && cards.problem((0, 1)).is_none());
    cards.look(Time(0) + Span(LOOK.0 * LOOKS_MAX), LOOK);
    assert!(cards.problem((0, 1)).unwrap().contains("has not answered for 30 s"));
    well.send(BTreeMap::from([((0, 0), busy(0.5, 1))])).unwrap();
    assert!(found(&mut cards).await, "nobody waits for it any more");
    assert_eq!(cards.problem((0, 0)), None);
    hung.send(BTreeMap::from([((0, 1), Reading::default())])).unwrap();
    assert!(found(&mut cards).await);
    assert_eq!(cards.problem((0, 1)), None, "it came to");
    // A sensor that lost its card says so; a sensor that broke down does not answer.
    cards.look(Time(0) + Span(LOOK.0 * (LOOKS_MAX + 1)), LOOK);
    hung.send(BTreeMap::new()).unwrap();
    found(&mut cards).await;
    assert!(cards.problem((0, 1)).unwrap().contains("no longer answers"));
}

#[test]
fn what_is_on_a_card_is_told_by_part() {
    let of = |busy, memory_mib| OfJob { busy, memory_mib };
    let jobs =
        BTreeMap::from([(JobId(1), of(Some(0.25), 10)), (JobId(2), of(None, 20)), (JobId(9), of(None, 5))]);
    let reading = Reading { busy: Some(0.75), jobs, others_mib: 3, ..Reading::default() };
    let parts = |live: &[LiveCards]| reading.card((0, 1), live).parts;
    assert_eq!(
        parts(&[on(1, 0b10), on(2, 0b11), on(3, 0b01), on(4, 0b10)]),
        [
            (part(1), Some(0.25), 10),
            (part(2), None, 20), // Under MPS nobody can say.
        ]
    );
    assert_eq!(parts(&[on(1, 0b10)]), [(part(1), Some(0.75), 10)], "alone it does all of it");
    assert_eq!(parts(&[on(2, 0b10)]), [(part(2), Some(0.75), 20)]);
    assert_eq!(parts(&[on(4, 0b10)]), [(part(4), Some(0.75), 3)], "whoever else is there is its");
    assert_eq!(parts(&[]), []);
}

#[tokio::test]
async fn news_are_the_cards_and_what_parts_do() {
    let (mut cards, [card]) = scripts();
    let live = [on(1, 1)];
    let mut told = Vec::new();
    for turn in 0..3 {
        cards.look(Time(turn), LOOK);
        card.send(BTreeMap::from([((0, 0), busy(0.5, 100))])).unwrap();
        assert!(found(&mut cards).await);
        let news = cards.news(&live);
        assert!(
            matches!(&news[0], FromAgent::Looked { cards } if cards.len() == 1 && cards[0].busy == Some(0.5))
        );
        told.push(news.len() - 1);
    }
    assert_eq!(told, [0, 1, 0], "what it does is told once it is known");
    cards.tell_again();
    assert_eq!(cards.news(&live)[1], FromAgent::Used { part: part(1), busy: 0.5, memory_mib: 100 });
    assert_eq!(CardReaders::watch(Vec::new()).news(&live), [], "processor slots are no cards");
}
