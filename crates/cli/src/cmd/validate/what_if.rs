//! What-ifs before submitting: a job is asked about just before it is submitted, in clusters where a hundred jobs and
//! more wait and run, and its real start is compared. If nobody comes after it, the start is exact; if others come, it
//! is in its interval nine times in ten, neither more nor less often than chance allows. Intervals that are points, as
//! of who is served first come first, are always right, and counted apart.

use std::fmt::Write as _;
use std::path::Path;

use yard_core::forecast::record::What;
use yard_sim::asked::Asked;
use yard_sim::held::Held;
use yard_sim::random::Random;

use super::Check;
use super::estimates::{planned, share};

const POLICIES: [&str; 4] = ["fifo", "las", "srtf", "max-min"];

/// Jobs that must be there when the question is asked.
const LIVING: usize = 100;

/// States of each policy, quiet ones and those into which others come.
const QUIET: u64 = 50;
const BUSY: u64 = 300;

/// The part of the time from start to end by which nine ends in ten may be off; set after they were seen.
const END_OFF: f64 = 0.25;

/// The first seed of those into which others come: none of them was used to choose how intervals are made.
const SEEDS: u64 = 80_000;

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
            *starts += asked.as_ref().is_some_and(Asked::exact) as u64;
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

/// Of so many states for each policy, how often the intervals held while others came. States of one trace go together.
fn inside(states: u64) -> anyhow::Result<Vec<Check>> {
    let (mut starts, mut ends, mut sure) = (Held::default(), Held::default(), Held::default());
    for seed in SEEDS..SEEDS + states {
        [&mut starts, &mut ends, &mut sure].into_iter().for_each(Held::begin);
        let jobs = 1_000;
        let plan = planned(stream(seed, jobs).as_bytes(), "gpu:32x8", &POLICIES.join(","))?;
        for choice in &plan.choices {
            let at = 400 + (seed - SEEDS) as usize;
            let asked = plan.what_if(choice, at, jobs, true)?.filter(|asked| asked.living >= LIVING);
            for (what, interval, real) in asked.iter().flat_map(Asked::turned_out) {
                let of_it = match what {
                    _ if interval.is_some_and(|interval| interval.is_sure()) => &mut sure,
                    What::Start => &mut starts,
                    What::End => &mut ends,
                };
                of_it.note(asked.as_ref().map_or(real, |asked| asked.at), interval, real);
            }
        }
    }
    let figures = [
        ("starts inside, others come", &starts, (0.9, 0.05)),
        ("ends inside, others come", &ends, (0.9, 0.05)),
        ("points that are right, others come", &sure, (1.0, 0.01)),
    ];
    Ok(figures
        .into_iter()
        .filter_map(|(figure, held, goal)| share("what-if", "all four", figure, held, goal))
        .collect())
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
