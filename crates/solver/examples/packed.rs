//! How long the packed problem takes: `cargo run --release -p yard-solver --example packed -- JOBS MODELS KINDS`.
//! The instance is made up (speeds of models on kinds, pairs that slow each other down) and the same each time.

#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::disallowed_methods, reason = "a stopwatch needs a clock")]

use std::time::Instant;

use yard_solver::packed::{
    JobClass, PackedGroup, PackedProblem, PackedWork, finish_time, hand_back, makespan, max_min,
    water_filling,
};
use yard_solver::reference::Progress;

/// Knuth's 64-bit generator, for numbers in [0, 1).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn problem(jobs: usize, models: usize, kinds: usize, random: &mut Random) -> (PackedProblem, Vec<Vec<u32>>) {
    let mut members = vec![Vec::new(); models];
    (0..jobs as u32).for_each(|job| members[(random.next() * models as f64) as usize].push(job));
    let speeds: Vec<Vec<f64>> =
        (0..models).map(|_| (0..kinds).map(|kind| 0.3 + kind as f64 * random.next()).collect()).collect();
    let busy: Vec<f64> = (0..models).map(|_| 0.2 + 0.8 * random.next()).collect();
    let mut groups = Vec::new();
    for kind in 0..kinds {
        let mean = |model: usize| speeds[model].iter().sum::<f64>() / kinds as f64;
        let speed = |model: usize| speeds[model][kind] / mean(model);
        for one in 0..models {
            groups.push(PackedGroup::new(kind as u32, 1.0, &[(one as u32, speed(one))]));
            for two in one..models {
                let slow = (1.1 / (busy[one] + busy[two])).min(1.0) * (0.9 + 0.1 * random.next());
                groups.push(PackedGroup::new(
                    kind as u32,
                    1.0,
                    &[(one as u32, slow * speed(one)), (two as u32, slow * speed(two))],
                ));
            }
        }
    }
    let classes =
        members.iter().map(|members| JobClass { jobs: members.len() as u32, weight: 1.0 }).collect();
    (PackedProblem { capacity: vec![(jobs / 4) as f64; kinds], classes, groups }, members)
}

fn main() {
    let argument =
        |at: usize, default| std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (jobs, models, kinds) = (argument(1, 65_536), argument(2, 26), argument(3, 3));
    let mut random = Random(1);
    let (packed, members) = problem(jobs, models, kinds, &mut random);
    let steps: Vec<Vec<f64>> =
        members.iter().map(|m| m.iter().map(|_| libm::exp(3.0 * random.next())).collect()).collect();
    let progress: Vec<Vec<Progress>> = steps
        .iter()
        .map(|steps| {
            let job = |steps: &f64| Progress {
                steps: *steps,
                isolated: steps * 1.3,
                elapsed: steps * random.next(),
            };
            steps.iter().map(job).collect()
        })
        .collect();
    let slices: Vec<&[u32]> = members.iter().map(|members| &members[..]).collect();
    println!("{jobs} jobs, {models} models, {kinds} kinds, {} groups", packed.groups.len());
    let limits = PackedWork::default();
    for (name, solve) in [
        ("max-min", &(|| max_min(&packed, &limits)) as &dyn Fn() -> _),
        ("water-filling", &|| water_filling(&packed, &limits)),
        ("makespan", &|| makespan(&packed, &steps, &limits)),
        ("finish-time", &|| finish_time(&packed, &progress, &limits)),
    ] {
        for _ in 0..3 {
            let start = Instant::now();
            let solved = solve();
            let solve_ms = 1e3 * start.elapsed().as_secs_f64();
            match solved {
                Err(error) => println!("{name}: {error}"),
                Ok(solution) => {
                    let shares = hand_back(&packed, &solution, &slices).map_or(0, |shares| shares.len());
                    let all_ms = 1e3 * start.elapsed().as_secs_f64();
                    println!(
                        "{name}: {:.8}, gap {:.1e}, {} pivots, {solve_ms:.1} ms; with {shares} shares {all_ms:.1} ms",
                        solution.objective,
                        solution.gap(),
                        solution.pivots
                    );
                }
            }
        }
    }
}
