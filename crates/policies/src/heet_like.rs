//! Matching of jobs to pieces of the cluster by price, then growth. In the manner of Heet (Mo et al., "Heet:
//! Accelerating Elastic Training in Heterogeneous Deep Learning Clusters", ASPLOS 2024), of which the abstract is public
//! and the price function is not: nothing here claims to be as good as that.
//!
//! Objective, each round: min Σ w(j, c) over matchings of jobs j to pieces c of one size on one kind, with
//!   w = − (speed_j(c) / best speed of j) · fairness / price_c^`weight`, price_c = devices of c over all devices.
//! Fairness is 1 + the time since submission over the time left at the job's best. Pieces are cut so that there are as
//! many as jobs where devices allow, the largest size first that gives so many. What the matching leaves is then traded:
//! to whoever gains most of its best speed for each device.
//! Reads: sizes, speeds, steps left, submission. Cost: O(jobs² · pieces), pieces being sizes × kinds.
//! Not to be used to judge the paper.

use yard_core::allocation::Allocation;
use yard_core::ids::KindId;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::assignment::{CostMatrix, assign};

use crate::sizes::{Growth, Size, SizeRow, Step};
use crate::{OTHER, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "heet-like",
    live: "",
    family: "elastic",
    paper: "in the manner of Heet, Mo et al., ASPLOS 2024",
    there: "a matching of jobs to pieces by a price of our own, then trades",
    missing: "the paper's price function and its prediction of speeds, which are not public",
    about: "Jobs matched to pieces of the cluster by speed, wait and price, then grown; no parity with the paper claimed",
    params: &[("weight", "power of the price: 0.5 prefers large pieces, 1 what each device gives [0.5]")],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make: |params| Ok(Box::new(Heet { weight: params.positive("weight")?.unwrap_or(0.5) })),
};

struct Heet {
    weight: f64,
}

/// So many pieces of one size of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MatchPiece {
    kind: KindId,
    devices: u32,
    count: usize,
}

impl Policy for Heet {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut growth = Growth::new(view);
        let pieces = cut(view, &growth);
        let fits = |row: &SizeRow, piece: &MatchPiece| {
            let of = |size: &&Size| {
                let needs = &view.spec(row.job).shapes[size.shape as usize].needs;
                needs.len() == 1 && needs[0].kind == piece.kind && size.devices == piece.devices
            };
            row.sizes().find(of).copied()
        };
        // One column more is for those that get nothing: where jobs are more than pieces, the matching says who.
        let cost = |at: usize, piece: usize| {
            let row = &growth.rows[at];
            let Some(piece) = pieces.get(piece) else { return 0.0 };
            let size = fits(row, piece).filter(|_| !row.is_pinned());
            size.map_or(f64::INFINITY, |size| self.cost(view, row, size))
        };
        let costs = CostMatrix::new(growth.rows.len(), pieces.len() + 1, cost);
        let room = pieces.iter().map(|piece| piece.count).chain([growth.rows.len()]);
        let matched = assign(&costs, &room.collect::<Vec<_>>()).columns;
        for (row, piece) in matched.into_iter().enumerate() {
            let piece = piece.and_then(|piece| pieces.get(piece));
            let size = piece.and_then(|piece| fits(&growth.rows[row], piece));
            size.map(|size| growth.set(row, size.shape));
        }
        trade(&mut growth);
        Ok(growth.allocation())
    }
}

impl Heet {
    fn cost(&self, view: &View, row: &SizeRow, size: Size) -> f64 {
        let all: u32 = view.kinds.ids().map(|kind| view.capacity(kind)).sum();
        let price = f64::from(size.devices) / f64::from(all.max(1));
        let best = row.best_speed();
        let waited = (view.now - view.run(row.job).submitted).secs();
        let fairness = 1.0 + waited / (view.steps_left(row.job) / best).max(1.0);
        -(size.speed / best) * fairness / libm::pow(price, self.weight)
    }
}

/// Each kind in pieces of one size: the largest that gives at least one piece for each job in all, the smaller sizes
/// for what it leaves.
fn cut(view: &View, growth: &Growth<'_>) -> Vec<MatchPiece> {
    let jobs = growth.rows.iter().filter(|row| !row.is_pinned()).count();
    let mut sizes: Vec<u32> =
        growth.rows.iter().flat_map(|row| row.sizes().map(|size| size.devices)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let pieces = |largest: u32| -> Vec<MatchPiece> {
        let within: Vec<u32> = sizes.iter().copied().filter(|size| *size <= largest).rev().collect();
        view.kinds
            .ids()
            .flat_map(|kind| {
                let mut left = growth.free().of(kind);
                within
                    .clone()
                    .into_iter()
                    .filter_map(move |devices| {
                        let count = left.checked_div(devices)?;
                        left -= count * devices;
                        (count > 0).then_some(MatchPiece { kind, devices, count: count as usize })
                    })
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    let enough = |pieces: &Vec<MatchPiece>| pieces.iter().map(|piece| piece.count).sum::<usize>() >= jobs;
    let found = sizes.iter().rev().map(|largest| pieces(*largest)).find(enough);
    found.unwrap_or_else(|| sizes.first().map_or_else(Vec::new, |least| pieces(*least)))
}

/// What is left, step by step to who gains most of its best speed for each device.
fn trade(growth: &mut Growth<'_>) {
    let best = |growth: &Growth<'_>| -> Option<(usize, Step)> {
        let gain = |at: usize| {
            let (step, row) = (growth.step(at)?, &growth.rows[at]);
            Some((at, step, (step.size.speed - row.speed()) / row.best_speed() / step.extra))
        };
        let all = (0..growth.rows.len()).filter_map(gain);
        all.reduce(|best, next| if next.2 > best.2 { next } else { best }).map(|(at, step, _)| (at, step))
    };
    while let Some((row, step)) = best(growth) {
        growth.take(row, step);
    }
}

#[cfg(test)]
mod tests {
    use yard_core::allocation::Shares;
    use yard_core::units::Time;

    use super::*;
    use crate::testing::{elastic, policy};

    fn shapes(view: &View) -> Vec<(Option<u16>, bool)> {
        let Shares::All(shares) = policy("heet-like").allocate(view).unwrap().shares else { panic!("all") };
        shares.iter().map(|share| (share.shape, share.rank.0 < 0.0)).collect()
    }

    #[test]
    fn each_job_has_the_kind_that_suits_it_as_the_best_matching_says() {
        let (one, other) = ([(0, 1, 4.0), (1, 1, 1.0)], [(0, 1, 4.0), (1, 1, 3.0)]);
        let view = elastic(&[1, 1], &[(&other, 100.0), (&one, 100.0)]);
        assert_eq!(shapes(&view), [(Some(1), true), (Some(0), true)]);
    }

    #[test]
    fn pieces_are_as_large_as_leaves_one_for_each() {
        let sizes = [(0, 1, 1.0), (0, 2, 2.0), (0, 4, 4.0)];
        let view = elastic(&[8], &[(&sizes, 10.0), (&sizes, 10.0), (&sizes, 10.0)]);
        let pieces = cut(&view, &Growth::new(&view));
        assert_eq!(pieces, [MatchPiece { kind: KindId(0), devices: 2, count: 4 }]);
        let given = shapes(&view);
        assert!(given.iter().all(|(shape, chosen)| *chosen && shape.unwrap() >= 1), "{given:?}");
        assert!(given.contains(&(Some(2), true)), "what is left over goes to one of them: {given:?}");
    }

    #[test]
    fn who_waited_longer_is_matched_where_there_are_too_few() {
        let sizes = [(0, 1, 1.0)];
        let mut view = elastic(&[1], &[(&sizes, 100.0), (&sizes, 100.0)]);
        view.now = Time::from_secs(100.0);
        std::sync::Arc::make_mut(&mut view.runs)[0].submitted = Time::from_secs(90.0);
        let Shares::All(shares) = policy("heet-like").allocate(&view).unwrap().shares else { panic!("all") };
        let chosen = shares.iter().find(|share| share.rank.0 < 0.0).map(|share| share.jobs[0].index());
        assert_eq!(chosen, Some(1));
    }
}
