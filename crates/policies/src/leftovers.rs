//! What shares of time leave over. A policy's shares need not fill the cluster, and a job need not be where it
//! was given a share when devices elsewhere fall free. So each job also gets a share of next to nothing of
//! every shape it can use: rounds serve those last, and no device idles while a job that could use it waits.

use yard_core::allocation::Share;
use yard_core::job::Rank;
use yard_core::view::View;

/// These shares, and leftovers for all living jobs.
pub(crate) fn with_leftovers(view: &View, mut shares: Vec<Share>) -> Vec<Share> {
    let mut named: Vec<NamedShape> = vec![NamedShape::default(); view.runs.len()];
    for share in shares.iter().filter(|share| share.jobs.len() == 1) {
        named[share.jobs[0].index()].add(share);
    }
    for job in view.active() {
        let own = &named[job.index()];
        let others = view.spec(job).usable().filter(|shape| !own.holds(*shape));
        let left = view.steps_left(job);
        // Of those that wait, who would be done soonest is served first.
        let leftover = |shape| {
            let hours = left / view.speed(job, shape) / 3600.0;
            Share {
                fraction: Share::LEFTOVER / (1.0 + 4.0 * hours * hours),
                ..Share::leftover(job, shape, own.rank)
            }
        };
        shares.extend(others.map(leftover));
    }
    shares
}

/// The shapes of a job that have a share, bit by bit, and the rank they gave it: leftovers keep it.
#[derive(Clone, Copy, Default)]
struct NamedShape {
    shapes: u128,
    rank: Rank,
}

impl NamedShape {
    fn add(&mut self, share: &Share) {
        self.shapes |= share.shape.map_or(u128::MAX, bit);
        self.rank = share.rank;
    }

    /// Shapes past the last bit count as named: nobody has so many.
    fn holds(&self, shape: u16) -> bool {
        bit(shape) == 0 || self.shapes & bit(shape) != 0
    }
}

fn bit(shape: u16) -> u128 {
    1u128.checked_shl(u32::from(shape)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use yard_core::ids::JobIdx;

    use super::*;
    use crate::testing::mixed;

    #[test]
    fn every_shape_that_makes_progress_has_one_share() {
        let view = mixed(&[4, 4, 4], &[(1, &[3.0, 2.0, 0.0]), (2, &[1.0, 1.0, 1.0])], &[10.0, 10.0]);
        let own = Share { shape: Some(1), ..Share::whole(JobIdx(0), Rank(7.0, 0.0)) };
        let shares = with_leftovers(&view, vec![own]);
        let told: Vec<_> = shares.iter().map(|share| (share.jobs[0].0, share.shape)).collect();
        assert_eq!(told, [(0, Some(1)), (0, Some(0)), (1, Some(0)), (1, Some(1)), (1, Some(2))]);
        assert!(shares[1..].iter().all(|share| share.fraction > 0.0 && share.fraction <= Share::LEFTOVER));
        assert!(shares[1].fraction > shares[2].fraction, "who is done sooner comes first");
        assert_eq!(shares[1].rank, Rank(7.0, 0.0));
    }
}
