//! A partial-allocation auction (Cole, Gkatzelis and Goel, EC 2013): devices go where the product of all values
//! is largest, and each winner is charged the part by which its presence lowered the others' product. Bidding
//! anything but the truth then never raises what one keeps, c · V, as long as winners are determined exactly.

/// One way to win.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bid {
    /// Logarithm of its value to the bidder.
    pub(super) value: f64,
    /// Devices by kind.
    pub(super) needs: Vec<u32>,
}

/// A bidder: what nothing is worth to it, and what else it would take.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bidder {
    /// Logarithm of the value of nothing.
    pub(super) nothing: f64,
    pub(super) bids: Vec<Bid>,
}

/// What a bidder gets: one of its bids, or nothing; and the part of it that it keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Won {
    pub(super) bid: Option<usize>,
    pub(super) keeps: f64,
}

/// Combinations up to which winners are determined by trying all.
const EXACT_MAX: f64 = 20_000.0;

/// Who wins what, and keeps which part of it.
pub(super) fn hold(free: &[u32], bidders: &[Bidder]) -> Vec<Won> {
    let all: Vec<&Bidder> = bidders.iter().collect();
    let best = winners(free, &all);
    let charge = |at: usize| {
        // Who gets nothing takes nothing from anybody.
        best[at].map_or(1.0, |_| kept(free, &all, &best, at))
    };
    (0..bidders.len()).map(|at| Won { bid: best[at], keeps: charge(at) }).collect()
}

/// The others' product with this bidder over their product without it.
fn kept(free: &[u32], all: &[&Bidder], best: &[Option<usize>], at: usize) -> f64 {
    let mut others = all.to_vec();
    others.remove(at);
    let mut now = best.to_vec();
    now.remove(at);
    let alone = winners(free, &others);
    libm::exp(worth(&others, &now) - worth(&others, &alone)).min(1.0)
}

fn value(bidder: &Bidder, bid: Option<usize>) -> f64 {
    bid.map_or(bidder.nothing, |bid| bidder.bids[bid].value)
}

fn worth(bidders: &[&Bidder], won: &[Option<usize>]) -> f64 {
    bidders.iter().zip(won).map(|(bidder, bid)| value(bidder, *bid)).sum()
}

/// The disjoint bids of the largest product: exactly where trying all is cheap, else greedily.
fn winners(free: &[u32], bidders: &[&Bidder]) -> Vec<Option<usize>> {
    let combinations: f64 = bidders.iter().map(|bidder| 1.0 + bidder.bids.len() as f64).product();
    if combinations > EXACT_MAX {
        return greedy(free, bidders);
    }
    let mut search = AuctionSearch { bidders, now: vec![None; bidders.len()], best: None };
    search.descend(0, &mut free.to_vec(), 0.0);
    search.best.map_or_else(Vec::new, |(_, won)| won)
}

struct AuctionSearch<'a> {
    bidders: &'a [&'a Bidder],
    now: Vec<Option<usize>>,
    best: Option<(f64, Vec<Option<usize>>)>,
}

impl AuctionSearch<'_> {
    /// Tries everything for the bidders from `at` on. Of equals the first tried stays: nothing before something.
    fn descend(&mut self, at: usize, free: &mut Vec<u32>, worth: f64) {
        let Some(bidder) = self.bidders.get(at) else {
            if self.best.as_ref().is_none_or(|(best, _)| worth > *best) {
                self.best = Some((worth, self.now.clone()));
            }
            return;
        };
        self.now[at] = None;
        self.descend(at + 1, free, worth + bidder.nothing);
        for (nth, bid) in bidder.bids.iter().enumerate().filter(|(_, bid)| bid.value > bidder.nothing) {
            if fits(free, bid) {
                take(free, bid);
                self.now[at] = Some(nth);
                self.descend(at + 1, free, worth + bid.value);
                free.iter_mut().zip(&bid.needs).for_each(|(free, need)| *free += need);
            }
        }
        self.now[at] = None;
    }
}

/// Bids by what they add for each part of the free devices they take, while they fit.
fn greedy(free: &[u32], bidders: &[&Bidder]) -> Vec<Option<usize>> {
    let part = |bid: &Bid| -> f64 {
        bid.needs.iter().zip(free).map(|(need, free)| f64::from(*need) / f64::from((*free).max(1))).sum()
    };
    let mut offers: Vec<(f64, usize, usize)> = Vec::new();
    for (at, bidder) in bidders.iter().enumerate() {
        let better = bidder.bids.iter().enumerate().filter(|(_, bid)| bid.value > bidder.nothing);
        offers.extend(better.map(|(nth, bid)| ((bid.value - bidder.nothing) / part(bid), at, nth)));
    }
    offers.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let (mut left, mut won) = (free.to_vec(), vec![None; bidders.len()]);
    for (_, at, nth) in offers {
        if won[at].is_none() && fits(&left, &bidders[at].bids[nth]) {
            take(&mut left, &bidders[at].bids[nth]);
            won[at] = Some(nth);
        }
    }
    won
}

/// Whether there are enough devices for a bid.
pub(super) fn fits(free: &[u32], bid: &Bid) -> bool {
    free.iter().zip(&bid.needs).all(|(free, need)| need <= free)
}

/// Takes a bid's devices.
pub(super) fn take(free: &mut [u32], bid: &Bid) {
    free.iter_mut().zip(&bid.needs).for_each(|(free, need)| *free -= need);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bidders(most: usize) -> impl Strategy<Value = Vec<Bidder>> {
        let bid = (0.1f64..5.0, 0u32..4, 0u32..4).prop_filter("takes something", |bid| bid.1 + bid.2 > 0);
        let bid = bid.prop_map(|(value, a, b)| Bid { value: libm::log(value), needs: vec![a, b] });
        let bidder = (0.05f64..1.0, prop::collection::vec(bid, 1..3));
        let bidder = bidder.prop_map(|(nothing, bids)| Bidder { nothing: libm::log(nothing), bids });
        prop::collection::vec(bidder, 1..=most)
    }

    /// Every way to give bids out, however wasteful.
    fn every_way(bidders: &[Bidder]) -> Vec<Vec<Option<usize>>> {
        bidders.iter().fold(vec![Vec::new()], |ways, bidder| {
            let choices: Vec<Option<usize>> =
                std::iter::once(None).chain((0..bidder.bids.len()).map(Some)).collect();
            let more = |way: Vec<Option<usize>>| {
                choices.clone().into_iter().map(move |choice| [way.clone(), vec![choice]].concat())
            };
            ways.into_iter().flat_map(more).collect()
        })
    }

    fn feasible(free: &[u32], bidders: &[Bidder], won: &[Option<usize>]) -> bool {
        let needs = |kind: usize| {
            bidders
                .iter()
                .zip(won)
                .filter_map(|(bidder, bid)| Some(bidder.bids[(*bid)?].needs[kind]))
                .sum::<u32>()
        };
        (0..free.len()).all(|kind| needs(kind) <= free[kind])
    }

    /// What a bidder keeps, by what it truly values.
    fn utility(truth: &Bidder, won: Won) -> f64 {
        won.keeps * libm::exp(value(truth, won.bid))
    }

    proptest! {
        #[test]
        fn winners_have_the_largest_product(bidders in bidders(5), a in 0u32..6, b in 0u32..6) {
            let (free, all) = ([a, b], bidders.iter().collect::<Vec<_>>());
            let won = winners(&free, &all);
            prop_assert!(feasible(&free, &bidders, &won));
            let ways = every_way(&bidders);
            let best = ways.iter().filter(|way| feasible(&free, &bidders, way)).map(|way| worth(&all, way)).fold(f64::MIN, f64::max);
            prop_assert!((worth(&all, &won) - best).abs() < 1e-9);
        }

        #[test]
        fn greedy_winners_fit_and_nobody_loses_by_winning(bidders in bidders(8), a in 0u32..9, b in 0u32..9) {
            let (free, all) = ([a, b], bidders.iter().collect::<Vec<_>>());
            let won = greedy(&free, &all);
            prop_assert!(feasible(&free, &bidders, &won));
            prop_assert!(all.iter().zip(&won).all(|(bidder, bid)| value(bidder, *bid) >= bidder.nothing));
        }

        /// Whatever one bids instead of the truth, higher or lower, one never keeps more.
        #[test]
        fn the_truth_is_the_best_bid(bidders in bidders(4), lies in prop::collection::vec(0.1f64..10.0, 3), a in 1u32..6, b in 1u32..6) {
            let honest = hold(&[a, b], &bidders);
            prop_assert!(honest.iter().all(|won| won.keeps > 0.0 && won.keeps <= 1.0));
            for liar in 0..bidders.len() {
                let mut told = bidders.clone();
                told[liar].nothing += libm::log(lies[2]);
                told[liar].bids.iter_mut().zip(&lies).for_each(|(bid, lie)| bid.value += libm::log(*lie));
                let lied = hold(&[a, b], &told);
                let (with, without) = (utility(&bidders[liar], honest[liar]), utility(&bidders[liar], lied[liar]));
                prop_assert!(without <= with * (1.0 + 1e-9), "{} > {}", without, with);
            }
        }
    }
}
