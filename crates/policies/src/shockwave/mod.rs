//! Fair and efficient over time, for jobs whose speed changes as they train (Zheng et al., "Shockwave: Fair and
//! Efficient Cluster Scheduling for Dynamic Adaptation in Machine Learning", NSDI 2023).
//!
//! Objective: over the next R rounds, max 1/(J·R) · Σ_j w_j log̃ U_j − k · max_j (time left to j after them); U is the
//! part of its work that a job will have done. Nobody's projected finish-time fairness ρ_j may exceed `rho`; where that
//! cannot be had, w_j = ρ_j^λ for those beyond it (ρ_j^100 for a last round), else 1. ρ_j is the time since submission
//! plus the time left at a fair share min(1, devices / J), over the running mean of what all of its time would have
//! taken at fair shares. The artifact divides points in time where we divide times, which forgives late comers; it asks
//! for rho = 1, and so do we.
//! The time left is predicted (`predict`), the window planned by marginal gains (`window`), with a proof of how far from
//! the best it can be (`bound`): the window's program as above, under the devices of all its rounds together. The plan is made anew every
//! round and its first round used: who needs all rounds of it goes first, then of the planned who is beyond `rho`, then by
//! rounds planned, and with what is left the longest.
//! Reads: devices of the best liked usable shape, speeds, steps, regimes seen; the mean is the second part of the rank
//! in force. Cost: O(J · R · log J) for each of about 30 levels of the last term.
//! Not to be used on mixed kinds or for elastic jobs: devices are counted as if all were alike, sizes as given.

mod bound;
mod predict;
mod window;

use yard_core::allocation::{Allocation, Certificate, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;

use self::predict::PredictedCourse;
use self::window::{PlanWindow, WindowRow};
use crate::ranked::finite;
use crate::{OTHER, ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "shockwave",
    live: "",
    family: "fair shares",
    paper: "Shockwave, Zheng et al., NSDI 2023",
    there: "Nash welfare over a window with the makespan term, the bound on unfairness, the restatement rule",
    missing: "the fairness of points in time (we divide times), log-linear pieces by integer variables (solved by gains with a bound), keeping a plan for eight rounds (made anew each round)",
    about: "Nash welfare over a window of rounds, within a bound on unfairness, for jobs that change as they train",
    params: &[
        ("window", "rounds that are planned ahead [20]"),
        ("k", "what a second costs that the last job is late after the window [0.001]"),
        ("lambda", "power of the unfairness by which jobs beyond the bound count more [12]"),
        ("rho", "projected finish-time fairness beyond which a job counts more and goes first [1]"),
    ],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Durations, Knowledge::Regimes],
    make: |params| Ok(Box::new(Shockwave::new(params)?)),
};

/// The length of a round where decisions follow events.
const ROUND_S: f64 = 120.0;

/// The part of the mean of past estimates in what counts as fair; the rest is the latest.
const PAST: f64 = 0.9;

/// The power for those that would be done within a round, and the most that it may make of them.
const LAST_POWER: f64 = 100.0;
const WEIGHT_MAX: f64 = 1e12;

struct Shockwave {
    rounds: u32,
    k: f64,
    lambda: f64,
    rho: f64,
}

impl Shockwave {
    fn new(params: &Params) -> Result<Shockwave, ParamError> {
        let window = params.positive("window")?.unwrap_or(20.0);
        if window.fract() != 0.0 || window > 1000.0 {
            let (value, allowed) = (window.to_string(), "a whole number of rounds, 1000 at most");
            return Err(ParamError::Value { key: "window", value, allowed });
        }
        Ok(Shockwave {
            rounds: window as u32,
            k: params.positive("k")?.unwrap_or(1e-3),
            lambda: params.positive("lambda")?.unwrap_or(12.0),
            rho: params.positive("rho")?.unwrap_or(1.0),
        })
    }
}

/// A job as it is and as it is expected to be.
struct WindowOutlook {
    job: JobIdx,
    devices: u32,
    course: PredictedCourse,
    /// Running mean of the seconds that all of it takes at fair shares.
    mean: f64,
    /// What counts as fair, in seconds from submission.
    fair: f64,
    /// Seconds since it was submitted.
    age: f64,
    rho: f64,
}

impl Policy for Shockwave {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let round = if view.round.0 > 0 { view.round.secs() } else { ROUND_S };
        let devices: u32 = view.kinds.ids().map(|kind| view.capacity(kind)).sum();
        let jobs = view.active().count().max(1);
        let share = (f64::from(devices) / jobs as f64).min(1.0);
        let outlooks: Vec<WindowOutlook> =
            view.active().filter_map(|job| outlook(view, job, share, round)).collect();
        let window = PlanWindow { rounds: self.rounds, seconds: round, k: self.k, devices };
        let rows = self.rows(&outlooks, &window, share);
        let planned = window::plan(&rows, &window);
        let all = window::length(&rows, &planned, &window);
        let place = |at: usize| (self.place(&outlooks[at], planned[at], all), view.run(outlooks[at].job).id);
        let mut order: Vec<usize> = (0..outlooks.len()).collect();
        order.sort_by(|a, b| {
            let (((class_a, large_a), id_a), ((class_b, large_b), id_b)) = (place(*a), place(*b));
            let larger = || large_b[0].total_cmp(&large_a[0]).then(large_b[1].total_cmp(&large_a[1]));
            class_a.cmp(&class_b).then_with(larger).then(id_a.cmp(&id_b))
        });
        let whole = |(rank, at): (usize, &usize)| {
            Share::whole(outlooks[*at].job, Rank(rank as f64, finite(outlooks[*at].mean)))
        };
        let shares = order.iter().enumerate().map(whole);
        let certificate = (!rows.is_empty()).then(|| {
            let (objective, bound) = (window::worth(&rows, &planned, &window), bound::bound(&rows, &window));
            Box::new(Certificate { objective, bound: bound.max(objective), ..Certificate::default() })
        });
        Ok(Allocation { certificate, ..Allocation::preemptive(Shares::All(shares.collect())) })
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

impl Shockwave {
    /// Who needs all rounds that the plan takes; of the others in it those beyond the bound, as the artifact's second
    /// program has them; and who has what is left: each the largest first.
    fn place(&self, own: &WindowOutlook, planned: u32, all: u32) -> (u8, [f64; 2]) {
        if planned == 0 {
            (3, [own.course.left, 0.0])
        } else if planned >= all {
            (0, [own.rho, own.course.left])
        } else if own.rho > self.rho {
            (1, [own.rho, 0.0])
        } else {
            (2, [f64::from(planned), own.course.left])
        }
    }

    /// The rows of the window: rounds that fairness asks for where all can have them, else weights.
    fn rows(&self, outlooks: &[WindowOutlook], window: &PlanWindow, share: f64) -> Vec<WindowRow> {
        let plain = |own: &WindowOutlook| WindowRow {
            devices: own.devices,
            weight: 1.0,
            done: own.course.done,
            rate: own.course.rate,
            left: own.course.left,
            floor: 0,
        };
        let floored =
            |own: &WindowOutlook| Some(WindowRow { floor: self.floor(own, window, share)?, ..plain(own) });
        let floors: Option<Vec<WindowRow>> = outlooks.iter().map(floored).collect();
        let fits =
            |rows: &Vec<WindowRow>| rows.iter().map(WindowRow::floor_use).sum::<u64>() <= window.room();
        if let Some(rows) = floors.filter(fits) {
            return rows;
        }
        outlooks.iter().map(|own| WindowRow { weight: self.weight(own, window), ..plain(own) }).collect()
    }

    /// The rounds a job must have in the window to be fair after it; none where the window is too short.
    fn floor(&self, own: &WindowOutlook, window: &PlanWindow, share: f64) -> Option<u32> {
        let spare = (self.rho * own.fair - own.age - window.length()) * share;
        let rounds = ((own.course.left - spare) / window.seconds - 1e-9).ceil().max(0.0);
        (spare >= 0.0 && rounds <= f64::from(window.most(own.course.left))).then_some(rounds as u32)
    }

    fn weight(&self, own: &WindowOutlook, window: &PlanWindow) -> f64 {
        let power = if own.course.left < window.seconds { LAST_POWER } else { self.lambda };
        if own.rho > self.rho { libm::pow(own.rho, power).min(WEIGHT_MAX) } else { 1.0 }
    }
}

/// None for a job that cannot run anywhere now.
fn outlook(view: &View, job: JobIdx, share: f64, round: f64) -> Option<WindowOutlook> {
    let (spec, run) = (view.spec(job), view.run(job));
    let shape = spec.usable().next()?;
    let course = PredictedCourse::predict(view, job, view.speed(job, shape));
    let age = (view.now - run.submitted).secs();
    let now = (course.spent + course.left) / share;
    // A rank without a mean is that of a job that no plan of this policy has named.
    let before = Some(run.rank.1).filter(|mean| *mean > 0.0 && mean.is_finite());
    let mean = before.map_or(now, |mean| mean + (now - mean) * (round / age.max(round)));
    let fair = (PAST * mean + (1.0 - PAST) * now).max(f64::MIN_POSITIVE);
    let rho = (age + course.left / share) / fair;
    let devices = spec.shapes[shape as usize].devices();
    Some(WindowOutlook {
        job,
        devices,
        course,
        mean,
        fair,
        age,
        rho: if rho.is_finite() { rho } else { 0.0 },
    })
}

#[cfg(test)]
mod tests {
    use yard_core::units::Span;

    use crate::testing::{World, policy, run};

    #[test]
    fn the_longest_job_runs_all_the_time_while_others_take_turns() {
        let mut world = World::new(&[2]);
        world.view.round = Span::from_secs(10.0);
        world.submit_all(&[(1, 100.0), (1, 50.0), (1, 50.0)]);
        let ends = run("shockwave", &mut world);
        let last = ends.iter().copied().fold(0.0, f64::max);
        assert!(last <= 110.0, "two devices could be done with it all after 100 s: {ends:?}");
    }

    #[test]
    fn who_is_beyond_the_bound_goes_first() {
        let mut world = World::new(&[1]);
        world.view.round = Span::from_secs(10.0);
        world.submit_all(&[(1, 1000.0)]);
        let mut shockwave = policy("shockwave");
        world.plan(&mut *shockwave);
        world.submit_all(&[(1, 20.0)]);
        let mut waited = 0;
        while world.running() == [0] && waited < 100 {
            world.advance(10.0);
            world.plan(&mut *shockwave);
            waited += 1;
        }
        // Alone on half of the device it would be done after 40 s.
        assert!(world.running() == [1] && waited <= 5, "{waited} rounds");
    }

    #[test]
    fn parameters_are_checked() {
        for spec in ["shockwave:window=0", "shockwave:window=1.5", "shockwave:k=x", "shockwave:rho=-1"] {
            assert!(crate::make(spec, std::sync::Arc::from([])).is_err(), "{spec}");
        }
    }
}
