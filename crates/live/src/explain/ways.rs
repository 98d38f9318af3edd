//! Why a running job has the size and the kind it has, in a sentence.

use yard_core::explain::{Explained, Way};

use super::{Names, plural};
use crate::views::WayView;

/// The ways in which a job may run, for people.
pub(super) fn views(told: &Explained, names: &Names<'_>) -> Vec<WayView> {
    let view = |way: &Way| WayView {
        kind: (names.kind)(way.kind),
        gpus: way.devices,
        rate: way.speed,
        price: way.price,
        held: way.held,
    };
    told.ways.iter().map(view).collect()
}

/// What a running job has, and why not something faster.
pub(super) fn sentence(told: &Explained, names: &Names<'_>) -> String {
    let Some(held) = told.ways.iter().find(|way| way.held) else { return "The job runs.".into() };
    let has = size(held, names);
    match told.ways.first().filter(|best| told.ways.len() > 1 && best.speed > held.speed) {
        _ if told.ways.len() == 1 => format!("The job runs on {has}, as requested."),
        None => format!("The job runs on {has}, the fastest of the {} ways it may run.", told.ways.len()),
        Some(best) => {
            let faster = best.speed / held.speed;
            let why = why_not(told, held, best);
            format!("The job runs on {has}; {} would be {faster:.1} times as fast, {why}.", size(best, names))
        }
    }
}

fn why_not(told: &Explained, held: &Way, best: &Way) -> String {
    let free = told.kinds.iter().find(|kind| kind.kind == best.kind).map_or(0, |kind| kind.free);
    let mine = if best.kind == held.kind { held.devices } else { 0 };
    match held.price.zip(best.price).filter(|(own, _)| *own > 0.0) {
        Some((own, other)) => format!("for {:.1} times the price", other / own),
        None if free + mine < best.devices => format!("but only {free} more are free"),
        None => "but the policy has better use for those devices".into(),
    }
}

fn size(way: &Way, names: &Names<'_>) -> String {
    let word = plural(way.devices as usize, "device", "devices");
    format!("{} {word} of kind {}", way.devices, (names.kind)(way.kind))
}
