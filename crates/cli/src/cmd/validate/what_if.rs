//! What-ifs before submitting: a job is asked about just before it is submitted, in clusters where a hundred jobs and
//! more wait and run, and its real start is compared. If nobody comes after it, the start is exact; if others come, it
//! is in its interval nine times in ten.

use std::fmt::Write as _;
use std::path::Path;

use yard_sim::random::Random;

use super::Check;
use super::estimates::planned;

const POLICIES: [&str; 4] = ["fifo", "las", "srtf", "max-min"];

/// Jobs that must be there when the question is asked.
const LIVING: usize = 100;

/// States of each policy, quiet ones and those into which others come.
const QUIET: u64 = 50;
const BUSY: u64 = 50;

/// Needs no data.
pub(super) fn suite(_: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let mut checks = exact(QUIET)?;
    checks.extend(inside(BUSY)?);
    Ok(Some(checks))
}

/// Of so many states for each policy, in how many the start was exact.
fn exact(states: u64) -> anyhow::Result<Vec<Check>> {
    let mut counts = [0u64; POLICIES.len()];
    for seed in 0..states {
        let jobs = 150;
        let plan = planned(burst(seed, jobs).as_bytes(), "gpu:4x8", &POLICIES.join(","))?;
        for (choice, exact) in plan.choices.iter().zip(&mut counts) {
            let asked = plan.what_if(choice, jobs - 1, jobs, false)?;
            *exact += asked.is_some_and(|asked| asked.living >= LIVING && asked.exact()) as u64;
        }
    }
    let check = |(policy, exact): (&str, u64)| {
        Check::decimals("what-if", policy, "exact starts, nobody comes after", states as f64, exact as f64)
    };
    Ok(POLICIES.into_iter().zip(counts).map(check).collect())
}

/// Of so many states for each policy, how often the intervals held while others came.
fn inside(states: u64) -> anyhow::Result<Vec<Check>> {
    let (mut all, mut starts, mut ends) = (0u64, 0u64, 0u64);
    for seed in 0..states {
        let jobs = 700;
        let plan = planned(stream(seed, jobs).as_bytes(), "gpu:8x8", &POLICIES.join(","))?;
        for choice in &plan.choices {
            let at = 400 + seed as usize;
            let asked = plan.what_if(choice, at, jobs, true)?.filter(|asked| asked.living >= LIVING);
            if let Some((start, end)) = asked.map(|asked| asked.held()) {
                (all, starts, ends) = (all + 1, starts + start as u64, ends + end as u64);
            }
        }
    }
    let check = |figure, count: u64| {
        let held = count as f64 / all.max(1) as f64;
        let check = Check::new("what-if", "all four", figure, 0.9, held, 0.05 / 0.9).or_higher();
        Check { ok: check.ok && all * 2 >= states * POLICIES.len() as u64, ..check }
    };
    Ok(vec![check("starts inside, others come", starts), check("ends inside, others come", ends)])
}

/// Jobs that come within minutes and take up to hours.
fn burst(seed: u64, jobs: usize) -> String {
    text(seed, jobs, |random, at| (at + random.below(10), 1_000 + random.below(20_000)))
}

/// Jobs that go on coming, a little more than there is room for, as long as one looks.
fn stream(seed: u64, jobs: usize) -> String {
    text(seed, jobs, |random, at| {
        let gap = -80.0 * libm::log(1.0 - random.unit());
        (at + gap as u64, 200 + random.below(6_000))
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
