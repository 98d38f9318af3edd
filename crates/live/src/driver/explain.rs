//! Why a job waits, in words: the engine's reason with its numbers, who is in front, and what would help.

use std::collections::BTreeMap;

use yard_core::cluster::Kinds;
use yard_core::explain::{Explained, KindCount, Reason, Remedy};
use yard_core::ids::{JobId, KindId};

use super::Driver;
use crate::handle::{Refusal, Reply};
use crate::views::Explanation;

impl Driver {
    pub(super) fn take_explain(&self, job: JobId, reply: Reply<Explanation>) {
        let over = || Refusal::Conflict(format!("job {job} is over; yard show {job} says how it ended"));
        let explained = self.engine.explain(job).map(|explained| self.in_words(&explained));
        // Who asked may have gone.
        let _ = reply.send(explained.ok_or_else(over));
    }

    fn in_words(&self, explained: &Explained) -> Explanation {
        let kinds = self.engine.kinds();
        let name = |kind: KindId| kinds.name(kind).to_owned();
        let price = |count: &KindCount| Some((name(count.kind), count.price?));
        let state = self.engine.job(explained.job).map(|run| format!("{:?}", run.state).to_lowercase());
        Explanation {
            job: explained.job.0,
            state: state.unwrap_or_default(),
            reason: format!("{:?}", explained.reason).to_lowercase(),
            text: sentence(explained, kinds, self.engine.now().secs()),
            numbers: numbers(explained, kinds),
            ahead: explained.ahead.iter().map(|ahead| ahead.job.0).collect(),
            remedies: explained.remedies.iter().map(|remedy| self.remedy(remedy)).collect(),
            prices: explained.kinds.iter().filter_map(price).collect(),
        }
    }

    fn remedy(&self, remedy: &Remedy) -> String {
        let kind = |kind: &KindId| self.engine.kinds().name(*kind).to_owned();
        let node = |node| self.engine.nodes().get(node).spec.name.clone();
        match remedy {
            Remedy::Fewer { kind: of, devices } => {
                format!("with {devices} of {} it would start now: --gpus {devices}", kind(of))
            }
            Remedy::Kind { kind: of, free } => {
                format!("{} has {free} free; it would start there now: --kind {}", kind(of), kind(of))
            }
            Remedy::Resume { node: at } => {
                format!(
                    "{} takes no jobs; if it did, this one would start: yard resume {}",
                    node(*at),
                    node(*at)
                )
            }
            Remedy::Repair { node: at } => {
                format!(
                    "{} has devices out of service; with them this job would start: see yard nodes",
                    node(*at)
                )
            }
        }
    }
}

/// The reason in a sentence.
fn sentence(explained: &Explained, kinds: &Kinds, now: f64) -> String {
    let offer = |count: &KindCount| {
        format!("{} (needs {}, free {} of {})", kinds.name(count.kind), count.needed, count.free, count.up)
    };
    let offers: Vec<_> = explained.kinds.iter().map(offer).collect();
    let offers = offers.join(", ");
    let front = in_front(explained);
    match explained.reason {
        Reason::Running => "it is running".into(),
        Reason::Starting => "it has devices, or is about to get some that others are giving back".into(),
        Reason::Stopping => "it was told to stop and is saving its progress".into(),
        Reason::Held => {
            let wait = explained.until.map_or(0.0, |until| (until.secs() - now).max(0.0));
            format!(
                "it is held back for another {wait:.0} s: it may not start yet, or failed and is tried again then"
            )
        }
        Reason::Capacity => format!("too few devices are free: {offers}{front}"),
        Reason::Gang => format!("enough devices are free or up, but not together: {offers}{front}"),
        Reason::Priority => format!("devices go to others first: {offers}{front}"),
        Reason::Share => {
            format!(
                "time is shared and it is others' turn; its share is {:.0} %: {offers}{front}",
                100.0 * explained.share
            )
        }
        Reason::Nodes => format!("no node with devices that it may use is up: {offers}"),
        Reason::Policy => "it has not been planned for yet; the next round decides".into(),
    }
}

fn in_front(explained: &Explained) -> String {
    let name = |ahead: &yard_core::explain::Ahead| match ahead.devices {
        0 => format!("job {}", ahead.job),
        devices => format!("job {} with {devices}", ahead.job),
    };
    let named: Vec<_> = explained.ahead.iter().take(3).map(name).collect();
    match explained.n_ahead.saturating_sub(named.len()) {
        _ if named.is_empty() => String::new(),
        0 => format!("; in front: {}", named.join(", ")),
        more => format!("; in front: {} and {more} more", named.join(", ")),
    }
}

fn numbers(explained: &Explained, kinds: &Kinds) -> BTreeMap<String, f64> {
    let mut numbers = BTreeMap::from([("ahead".to_owned(), explained.n_ahead as f64)]);
    numbers.insert("share".to_owned(), explained.share);
    for count in &explained.kinds {
        let counts = [
            ("needed", count.needed),
            ("free", count.free),
            ("together", count.together),
            ("up", count.up),
            ("total", count.total),
        ];
        let name = kinds.name(count.kind);
        numbers.extend(counts.map(|(what, number)| (format!("{name}.{what}"), f64::from(number))));
    }
    numbers
}
