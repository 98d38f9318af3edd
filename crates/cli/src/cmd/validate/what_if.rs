//! What-ifs before submitting: a job is asked about just before it is submitted, in clusters where a hundred jobs and
//! more wait and run, and its real start is compared. If nobody comes after it, the start is exact; if others come, start
//! and end are in their intervals nine times in ten, 0.85 to 0.95. What all runs agree about, as when a job starts that is
//! served first come first, claims to be exact where enough of it was, has to be right, and is counted apart. The record of
//! how earlier questions turned out, and the naive reference, are made by the first half of the states; the second is judged.

use std::fmt::Write as _;
use std::path::Path;

use yard_core::forecast::record::{Record, What};
use yard_sim::asked::AskedWhatIf;
use yard_sim::estimates::Calibration;
use yard_sim::naive::Naive;
use yard_sim::random::Random;

use super::Check;
use super::estimates::{KNOWN_WIDTH, judged, planned};

const POLICIES: [&str; 5] = ["fifo", "las", "srtf", "max-min", "market"];

/// The policy that a cluster has unless it is told otherwise, which is judged alone too.
const DEFAULT: &str = "market";

/// Jobs that must be there when the question is asked.
const LIVING: usize = 100;

/// States of each policy, quiet ones and those into which others come.
const QUIET: u64 = 50;
const BUSY: u64 = 300;

/// The part of the time from start to end by which nine ends in ten may be off; set after they were seen.
const END_OFF: f64 = 0.25;

/// The first seed of those into which others come: none of them was used to choose how intervals are made.
const SEEDS: u64 = 90_000;

/// Needs no data.
pub(super) fn suite(_: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let mut checks = exact(QUIET)?;
    checks.extend(inside(BUSY)?);
    Ok(Some(checks))
}

/// Of so many states for each policy, in how many the start was exact, and by how much nine in ten ends were off.
fn exact(states: u64) -> anyhow::Result<Vec<Check>> {
    let mut found: [(u64, Vec<f64>); POLICIES.len()] = Default::default();
    for seed in 0..states {
        let jobs = 150;
        let plan = planned(burst(seed, jobs).as_bytes(), "gpu:4x8", &POLICIES.join(","))?;
        for (choice, (starts, off)) in plan.choices.iter().zip(&mut found) {
            let asked = plan.what_if(choice, jobs - 1, jobs, false)?.filter(|asked| asked.living >= LIVING);
            *starts += asked.as_ref().is_some_and(AskedWhatIf::exact) as u64;
            off.push(asked.and_then(|asked| asked.end_off()).unwrap_or(f64::INFINITY));
        }
    }
    let check = |(policy, (starts, mut off)): (&'static str, (u64, Vec<f64>))| {
        off.sort_by(f64::total_cmp);
        let (figure, nine_in_ten) =
            ("exact starts, nobody comes after", off[(off.len() * 9).div_ceil(10) - 1]);
        [
            Check::decimals("what-if", policy, figure, states as f64, starts as f64),
            Check::new("what-if", policy, "ends off by, nine in ten", END_OFF, nine_in_ten, 0.0).or_lower(),
        ]
    };
    Ok(POLICIES.into_iter().zip(found).flat_map(check).collect())
}

/// Of so many states for each policy, how the intervals turned out while others came: of all policies, and of the default.
fn inside(states: u64) -> anyhow::Result<Vec<Check>> {
    let mut found: [(Calibration, LearnedCase); POLICIES.len()] = Default::default();
    for nth in 0..states {
        let jobs = 1_000;
        let plan = planned(stream(SEEDS + nth, jobs).as_bytes(), "gpu:32x8", &POLICIES.join(","))?;
        for (choice, (told, learned)) in plan.choices.iter().zip(&mut found) {
            let asked = plan.what_if(choice, 400 + nth as usize, jobs, true)?;
            let asked = asked.filter(|asked| asked.living >= LIVING);
            asked.iter().for_each(|asked| note(asked, told, learned, nth >= states / 2));
        }
    }
    let (mut all, mut checks) = (Calibration::default(), Vec::new());
    for (policy, (told, _)) in POLICIES.into_iter().zip(found) {
        if policy == DEFAULT {
            checks = judged("what-if", &format!("{policy}, others come"), &told, KNOWN_WIDTH);
        }
        all.starts.join(told.starts);
        all.ends.join(told.ends);
        all.exact.join(told.exact);
    }
    checks.extend(judged("what-if", "all five, others come", &all, KNOWN_WIDTH));
    Ok(checks)
}

/// What earlier questions taught: us, and the reference.
type LearnedCase = (Record, Naive);

fn note(asked: &AskedWhatIf, told: &mut Calibration, (record, naive): &mut LearnedCase, judged: bool) {
    for (what, foretold, real) in asked.turned_out(record) {
        let of_it = match what {
            _ if foretold.is_ok_and(|interval| interval.exact) => &mut told.exact,
            What::Start => &mut told.starts,
            What::End => &mut told.ends,
        };
        let mid = foretold.map_or(asked.at, |interval| interval.mid);
        if judged {
            of_it.note(asked.at, foretold, naive.interval(asked.at, mid), real);
        }
        if foretold.is_ok() {
            naive.note(asked.at, mid, real);
        }
    }
}

/// Jobs that come within minutes and take up to hours.
fn burst(seed: u64, jobs: usize) -> String {
    text(seed, jobs, |random, at| (at + random.below(10), 1_000 + random.below(20_000)))
}

/// Jobs that go on coming as long as one looks, as much as there is room for.
fn stream(seed: u64, jobs: usize) -> String {
    text(seed, jobs, |random, at| {
        let gap = -29.0 * libm::log(1.0 - random.unit());
        (at + gap.round() as u64, 200 + random.below(6_000))
    })
}

/// A trace: `next` gives when the next job comes and how long it takes, from when the last one came.
fn text(seed: u64, jobs: usize, next: impl Fn(&mut Random, u64) -> (u64, u64)) -> String {
    let (mut random, mut at) = (Random::new(seed ^ 0x7a5c), 0);
    let mut text = String::from("job_id,submit_s,gpus,duration_s\n");
    for job in 0..jobs {
        let (comes, seconds) = next(&mut random, at);
        at = comes;
        let _ = writeln!(text, "{job},{comes},{},{seconds}", 1 << random.below(3));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some of the states that `yard validate` asks in, which take minutes.
    #[test]
    fn starts_are_exact_and_ends_nearly_where_nobody_comes_after() {
        let checks = exact(8).unwrap();
        assert_eq!(checks.len(), 2 * POLICIES.len());
        // Nine in ten of so few is all of them.
        let near = |check: &Check| check.figure.starts_with("ends") && check.ours < 2.0 * END_OFF;
        checks.iter().for_each(|check| assert!(check.ok || near(check), "{check:?}"));
    }
}
