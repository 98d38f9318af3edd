//! What a class has been given, and what its jobs can get out of it.
//!
//! A class holds y_o of time at speed a_o, over its options o. Which demands can n jobs, each with a time of
//! one, meet with that? Sort the time by speed, fastest first; G(k) is the work in its first k units. Demands
//! d_1 ≥ d_2 ≥ … can be met if and only if
//!
//!   d_1 + … + d_k ≤ G(k)   for every k.
//!
//! It is necessary since k jobs have k units of time and G(k) is the most those can do. It is enough since
//! the job with the largest demand can take a window of length one of the sorted time, just where it holds
//! d_1; then G'(k) = G(k) up to the window and G(k+1) − d_1 beyond, and the rest of the demands fit that.
//! (It is preemptive scheduling on machines of different speed; Horvath, Lam and Sethi, J. ACM, 1977.)
//!
//! G(k) = min over θ of θ·k + Σ y_o·max(a_o − θ, 0), so each such condition is a row in the y_o.

/// Time at one speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    pub(super) speed: f64,
    pub(super) amount: f64,
    /// What the time is spent in; the caller's number.
    pub(super) option: usize,
}

/// Sorts by speed, fastest first, and by option among equals.
pub(super) fn sort(segments: &mut [Segment]) {
    segments.sort_by(|left, right| right.speed.total_cmp(&left.speed).then(left.option.cmp(&right.option)));
}

/// G(0), G(1), …, G(jobs), with the speed of the time at each.
pub(super) fn work(segments: &[Segment], jobs: usize) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(jobs + 1);
    points.push((0.0, segments.first().map_or(0.0, |segment| segment.speed)));
    let (mut done, mut begin, mut at) = (0.0, 0.0, 0);
    for jobs in 1..=jobs {
        let end = jobs as f64;
        while let Some(segment) = segments.get(at).filter(|segment| begin + segment.amount <= end) {
            done += segment.amount * segment.speed;
            begin += segment.amount;
            at += 1;
        }
        let speed = segments.get(at).map_or(0.0, |segment| segment.speed);
        points.push((done + (end - begin).max(0.0) * speed, speed));
    }
    points
}

/// A condition that was not kept: the first `jobs` demands exceed the work in as much time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProfileCut {
    pub(super) jobs: usize,
    pub(super) speed: f64,
}

/// The condition missed by most, relative to the demands, for demands sorted from the largest down.
pub(super) fn missed(
    segments: &[Segment],
    demands: impl ExactSizeIterator<Item = f64>,
) -> Option<(ProfileCut, f64)> {
    let work = work(segments, demands.len());
    let mut sum = 0.0;
    let mut worst: Option<(ProfileCut, f64)> = None;
    for (jobs, demand) in demands.enumerate() {
        sum += demand;
        let (done, speed) = work[jobs + 1];
        let by = (sum - done) / sum.max(f64::MIN_POSITIVE);
        if by > worst.map_or(0.0, |(_, by)| by) {
            worst = Some((ProfileCut { jobs: jobs + 1, speed }, by));
        }
    }
    worst
}

/// What each job gets so that all time is used and every job gets the same multiple of its need, or more
/// where that takes nothing from the others. `needs` are sorted from the largest down; the multiple is the
/// slope of the lower hull of (needs summed, work), which rises from block to block of jobs.
pub(super) fn targets(segments: &[Segment], needs: &[f64]) -> Vec<f64> {
    let most = needs.first().copied().unwrap_or(0.0);
    // A job without a need still has a place in the order, the last.
    let need = |at: usize| if most > 0.0 { needs[at].max(1e-12 * most) } else { 1.0 };
    let work = work(segments, needs.len());
    let mut hull: Vec<(f64, f64, usize)> = vec![(0.0, 0.0, 0)];
    let mut sum = 0.0;
    for at in 0..needs.len() {
        sum += need(at);
        let point = (sum, work[at + 1].0, at + 1);
        while let [.., before, last] = hull[..]
            && slope(before, last) >= slope(last, point)
        {
            hull.pop();
        }
        hull.push(point);
    }
    let mut targets = Vec::with_capacity(needs.len());
    for ends in hull.windows(2) {
        let slope = slope(ends[0], ends[1]);
        targets.extend((ends[0].2..ends[1].2).map(|at| slope * need(at)));
    }
    targets
}

fn slope(from: (f64, f64, usize), to: (f64, f64, usize)) -> f64 {
    (to.1 - from.1) / (to.0 - from.0)
}

/// A job that takes its part: how much time it has and how much work it wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Taker {
    pub(super) time: f64,
    pub(super) work: f64,
}

/// Gives the time out: one window for each taker, in the order of work per time from the largest down,
/// which the caller keeps. `give(taker, option, amount)` is called for each piece; there are at most two
/// pieces for each taker beyond one for each segment. Idle time at the end belongs into the segments, too.
pub(super) fn give_out(
    mut segments: Vec<Segment>,
    takers: impl Iterator<Item = Taker>,
    mut give: impl FnMut(usize, usize, f64),
) {
    // The time before and after the place of the last window, nearest to it at the end of each list.
    segments.reverse();
    let (mut before, mut after) = (Vec::new(), segments);
    for (at, taker) in takers.enumerate() {
        while work_in(&after, taker.time) > taker.work
            && let Some(segment) = after.pop()
        {
            before.push(segment);
        }
        let from_before = reach_back(&before, &after, taker);
        take(&mut before, from_before, |option, amount| give(at, option, amount));
        take(&mut after, taker.time - from_before, |option, amount| give(at, option, amount));
    }
}

/// The work in the next `time` of a list.
fn work_in(list: &[Segment], mut time: f64) -> f64 {
    let mut work = 0.0;
    for segment in list.iter().rev() {
        let taken = time.min(segment.amount);
        work += taken * segment.speed;
        time -= taken;
        if time <= 0.0 {
            break;
        }
    }
    work
}

/// How much of the faster time before the gap a window needs, the rest of it being after the gap.
fn reach_back(before: &[Segment], after: &[Segment], taker: Taker) -> f64 {
    let mut missing = taker.work - work_in(after, taker.time);
    let mut taken = 0.0;
    // The end of the window moves back through the slower time as its begin moves forward.
    let (mut fast, mut fast_left) = (before.len(), 0.0);
    let (mut slow, mut slow_left) = slow_end(after, taker.time);
    // Where too little is left after the gap, the window must reach back for time as well as for work.
    while (missing > 0.0 || (slow == 0 && slow_left > 0.0)) && taken < taker.time {
        if fast_left <= 0.0 {
            let Some(next) = fast.checked_sub(1) else { break };
            (fast, fast_left) = (next, before[next].amount);
            continue;
        }
        if slow_left <= 0.0 {
            slow += 1;
            slow_left = after.get(slow - 1).map_or(f64::INFINITY, |segment| segment.amount);
            continue;
        }
        let slow_speed =
            slow.checked_sub(1).and_then(|at| after.get(at)).map_or(0.0, |segment| segment.speed);
        let gain = before[fast].speed - slow_speed;
        let step = fast_left.min(slow_left).min(taker.time - taken);
        if slow > 0 && gain > 0.0 && missing <= gain * step {
            return taken + missing / gain;
        }
        taken += step;
        missing -= gain * step;
        fast_left -= step;
        slow_left -= step;
    }
    taken.min(taker.time)
}

/// Where a window of this length ends in a list: the segment, counted from one, and how much of it the window
/// covers. Zero is the idle time that counts as following where the list is too short.
fn slow_end(list: &[Segment], mut time: f64) -> (usize, f64) {
    for (at, segment) in list.iter().enumerate().rev() {
        if time <= segment.amount {
            return (at + 1, time);
        }
        time -= segment.amount;
    }
    (0, time)
}

fn take(list: &mut Vec<Segment>, mut time: f64, mut give: impl FnMut(usize, f64)) {
    while time > 0.0
        && let Some(segment) = list.last_mut()
    {
        let taken = time.min(segment.amount);
        give(segment.option, taken);
        segment.amount -= taken;
        time -= taken;
        if segment.amount <= 0.0 {
            list.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segments(list: &[(f64, f64)]) -> Vec<Segment> {
        let segment = |(option, (speed, amount)): (usize, &(f64, f64))| Segment {
            speed: *speed,
            amount: *amount,
            option,
        };
        let mut segments: Vec<Segment> = list.iter().enumerate().map(segment).collect();
        sort(&mut segments);
        segments
    }

    #[test]
    fn work_fills_the_fastest_first() {
        let segments = segments(&[(1.0, 1.5), (3.0, 0.5), (2.0, 0.25)]);
        let work: Vec<f64> = work(&segments, 3).iter().map(|(work, _)| *work).collect();
        assert_eq!(work, vec![0.0, 1.5 + 0.5 + 0.25, 3.25, 3.5]);
    }

    #[test]
    fn what_is_missed_is_named() {
        let segments = segments(&[(1.0, 2.0)]);
        assert_eq!(missed(&segments, [1.0, 1.0].into_iter()), None);
        let (cut, by) = missed(&segments, [1.25, 0.5].into_iter()).unwrap();
        assert_eq!((cut.jobs, by), (1, 0.2));
    }

    #[test]
    fn one_need_too_large_does_not_hold_the_others_back() {
        // The first job cannot get more than a whole unit of time; the others share the rest.
        let targets = targets(&segments(&[(1.0, 2.0)]), &[9.0, 1.0, 1.0]);
        assert_eq!(targets, vec![1.0, 0.5, 0.5]);
    }

    proptest! {
        /// Random time and needs: everyone gets the target, nobody more than a unit of time, nothing is
        /// left, and there are few pieces.
        #[test]
        fn all_time_is_given_out_as_promised(
            list in prop::collection::vec((0.0..3.0f64, 0.01..2.0f64), 1..8),
            needs in prop::collection::vec(prop_oneof![Just(1.0), 0.0..5.0f64], 1..12),
        ) {
            let jobs = needs.len() as f64;
            let total: f64 = list.iter().map(|(_, amount)| amount).sum();
            let list: Vec<_> = list.iter().map(|(speed, amount)| (*speed, amount * (jobs / total).min(1.0))).collect();
            let mut needs = needs;
            needs.sort_by(|left, right| right.total_cmp(left));
            let mut pool = segments(&list);
            let targets = targets(&pool, &needs);
            let speeds: Vec<f64> = list.iter().map(|(speed, _)| *speed).collect();
            let idle = jobs - list.iter().map(|(_, amount)| amount).sum::<f64>();
            pool.push(Segment { speed: 0.0, amount: idle.max(0.0), option: speeds.len() });
            let mut order: Vec<usize> = (0..needs.len()).collect();
            order.sort_by(|left, right| targets[*right].total_cmp(&targets[*left]));
            let (mut work, mut time, mut pieces) = (vec![0.0; needs.len()], vec![0.0; needs.len()], 0);
            let most = pool.len() + 2 * needs.len();
            let takers = order.iter().map(|at| Taker { time: 1.0, work: targets[*at] });
            give_out(pool, takers, |at, option, amount| {
                work[order[at]] += amount * speeds.get(option).copied().unwrap_or(0.0);
                time[order[at]] += amount;
                pieces += 1;
            });
            for at in 0..needs.len() {
                prop_assert!(work[at] >= targets[at] - 1e-9, "{at}: {} of {}", work[at], targets[at]);
                prop_assert!(time[at] <= 1.0 + 1e-9);
            }
            prop_assert!(pieces <= most, "{pieces} pieces, at most {most}");
            prop_assert!((time.iter().sum::<f64>() - jobs).abs() < 1e-6);
        }
    }
}
