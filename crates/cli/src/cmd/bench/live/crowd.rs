//! A thousand nodes in this process, and what they saw of the server's rounds.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use yard_live::agent::{Dial, Pretend, Seen};
use yard_live::listen;

/// Nodes that join at once: the rest of them waits, as machines that boot at different times do.
const JOINING: usize = 32;

/// What the nodes offer.
pub(super) const KIND: &str = "h100";
pub(super) const DEVICES: u32 = 8;

/// Nodes that run nothing, for as long as this is there.
pub(super) struct Crowd {
    /// One thread: the server needs the others.
    _runtime: Runtime,
    seen: mpsc::UnboundedReceiver<Seen>,
    finish: watch::Sender<bool>,
}

impl Crowd {
    /// So many nodes of these kinds in turn, all of them connected.
    pub(super) fn join(dial: &Dial, folder: &Path, nodes: usize, kinds: &[&str]) -> anyhow::Result<Crowd> {
        // Each has a connection; asking for the limits raises what this process may open.
        listen::ListenLimits::for_process();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.context("cannot start threads")?;
        let (sees, seen) = mpsc::unbounded_channel();
        let (finish, finishes) = watch::channel(false);
        for node in runtime.block_on(connect(dial, folder, nodes, kinds))? {
            runtime.spawn(node.serve(sees.clone(), finishes.clone()));
        }
        Ok(Crowd { _runtime: runtime, seen, finish })
    }

    /// The orders that came since this was last asked, oldest first.
    pub(super) fn orders(&mut self) -> Vec<Seen> {
        let mut orders: Vec<_> = std::iter::from_fn(|| self.seen.try_recv().ok()).collect();
        orders.sort();
        orders
    }

    /// From now on jobs are done as soon as they run.
    pub(super) fn finish(&self) {
        self.finish.send_replace(true);
    }
}

async fn connect(dial: &Dial, folder: &Path, nodes: usize, kinds: &[&str]) -> anyhow::Result<Vec<Pretend>> {
    let places = Arc::new(Semaphore::new(JOINING));
    let mut joining = JoinSet::new();
    for number in 0..nodes {
        let (places, dial, name) = (places.clone(), dial.clone(), format!("node{number:04}"));
        let (folder, kind) = (folder.join(&name), kinds[number % kinds.len()].to_owned());
        joining.spawn(async move {
            let _place = places.acquire().await?;
            Pretend::join(dial, &name, folder, &kind, DEVICES).await
        });
    }
    let mut connected = Vec::with_capacity(nodes);
    while let Some(joined) = joining.join_next().await {
        connected.push(joined.context("a node broke down")??);
    }
    Ok(connected)
}

/// What a round was, as the nodes saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Burst {
    /// Orders to start.
    pub(super) grants: usize,
    /// From the first order of any kind to the last one to start, in milliseconds.
    pub(super) to_last_grant_ms: f64,
}

/// Rounds, told apart by the silence between them. Those in which nothing started are left out.
pub(super) fn bursts(orders: &[Seen], silence_us: u64) -> Vec<Burst> {
    let rounds = orders.chunk_by(|one, next| next.at_us - one.at_us < silence_us);
    let burst = |round: &[Seen]| {
        let last = round.iter().rfind(|order| order.start)?;
        let grants = round.iter().filter(|order| order.start).count();
        Some(Burst { grants, to_last_grant_ms: (last.at_us - round[0].at_us) as f64 / 1e3 })
    };
    rounds.filter_map(burst).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_told_apart_by_silence_and_end_with_their_last_grant() {
        let order = |at_us, start| Seen { at_us, start };
        let orders = [
            order(0, false),
            order(2_000, true),
            order(5_000, true),
            order(6_000, false),
            order(50_000, false), // Nothing starts.
            order(100_000, true),
        ];
        let wanted = [Burst { grants: 2, to_last_grant_ms: 5.0 }, Burst { grants: 1, to_last_grant_ms: 0.0 }];
        assert_eq!(bursts(&orders, 10_000), wanted);
        assert_eq!(bursts(&[], 10_000), []);
    }
}
