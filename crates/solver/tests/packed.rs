//! The packed problem over classes against the same problem with a column for every group of jobs.

#![expect(clippy::unwrap_used, reason = "a test")]

use proptest::prelude::*;
use yard_solver::conic::Accuracy;
use yard_solver::lp::{Lp, LpGoal, Sense};
use yard_solver::packed::{
    JobClass, JobGroup, Needs, PackedError, PackedGroup, PackedProblem, PackedSolution, PackedWork, Role,
    finish_time, hand_back, makespan, max_min, water_filling, weighted_sum,
};
use yard_solver::reference::{Instance, Progress};

/// Every job a class of its own, and every way to fill a group's roles with distinct jobs.
fn one_by_one(packed: &PackedProblem) -> PackedProblem {
    let mut firsts = vec![0u32];
    let mut classes = Vec::new();
    for class in &packed.classes {
        classes.extend(vec![JobClass { jobs: 1, ..*class }; class.jobs as usize]);
        firsts.push(classes.len() as u32);
    }
    let mut groups = Vec::new();
    for group in &packed.groups {
        let mean = |class: u32| {
            let of: Vec<f64> = group.roles.iter().filter(|r| r.class == class).map(|r| r.speed).collect();
            of.iter().sum::<f64>() / of.len() as f64
        };
        let mut filled: Vec<Vec<Role>> = vec![Vec::new()];
        for role in &group.roles {
            let jobs = firsts[role.class as usize]..firsts[role.class as usize + 1];
            let more = |roles: Vec<Role>| {
                let new = jobs
                    .clone()
                    .filter(|job| roles.iter().all(|role| role.class < *job || role.class >= jobs.end));
                let speed = mean(role.class);
                let of_job = |class| [roles.clone(), vec![Role { class, speed }]].concat();
                new.map(of_job).collect::<Vec<_>>()
            };
            filled = filled.into_iter().flat_map(more).collect();
        }
        groups.extend(
            filled.into_iter().map(|roles| PackedGroup { roles: roles.into(), uses: group.uses.clone() }),
        );
    }
    PackedProblem { capacity: packed.capacity.clone(), classes, groups }
}

/// The rows of the problem for clarabel; the level, if any, is the last column.
fn lp(packed: &PackedProblem, floor: impl Fn(usize) -> f64, level: bool) -> Lp {
    let mut lp = Lp::new(LpGoal::Maximise);
    packed.groups.iter().for_each(|_| {
        lp.variable(0.0);
    });
    let column = lp.variable(f64::from(u8::from(level)));
    for (kind, capacity) in packed.capacity.iter().enumerate() {
        let used = |group: &PackedGroup| {
            group.uses.iter().filter(|u| u.kind as usize == kind).map(|u| u.devices).sum::<f64>()
        };
        lp.row(packed.groups.iter().map(used).enumerate().collect::<Vec<_>>(), Sense::Le, *capacity);
    }
    for (at, class) in packed.classes.iter().enumerate() {
        let of = |group: &PackedGroup, value: fn(&Role) -> f64| {
            group.roles.iter().filter(|role| role.class as usize == at).map(value).sum::<f64>()
        };
        let time: Vec<_> = packed.groups.iter().map(|group| of(group, |_| 1.0)).enumerate().collect();
        lp.row(time, Sense::Le, f64::from(class.jobs));
        let mut speed: Vec<_> =
            packed.groups.iter().map(|group| of(group, |role| role.speed)).enumerate().collect();
        speed.push((column, -f64::from(class.jobs) * class.weight));
        lp.row(speed, Sense::Ge, floor(at) * f64::from(class.jobs));
    }
    lp
}

/// Without the groups that want more jobs of a class than there are.
fn runnable(packed: &PackedProblem) -> PackedProblem {
    let mut packed = packed.clone();
    let classes = packed.classes.clone();
    packed.groups.retain(|group| {
        let places = |class: u32| group.roles.iter().filter(|role| role.class == class).count() as u32;
        group.roles.iter().all(|role| places(role.class) <= classes[role.class as usize].jobs)
    });
    packed
}

/// Names for the jobs: 0, 1, 2 … through the classes.
fn names(packed: &PackedProblem) -> Vec<Vec<u32>> {
    let mut next = 0;
    let mut of = |class: &JobClass| {
        next += class.jobs;
        (next - class.jobs..next).collect()
    };
    packed.classes.iter().map(&mut of).collect()
}

/// What each job gets, after checking that devices and time are kept and nobody meets oneself.
fn speeds(packed: &PackedProblem, shares: &[JobGroup]) -> Vec<f64> {
    let jobs = packed.classes.iter().map(|class| class.jobs as usize).sum();
    let class_of: Vec<usize> =
        packed.classes.iter().enumerate().flat_map(|(at, class)| vec![at; class.jobs as usize]).collect();
    let (mut speeds, mut time, mut devices) =
        (vec![0.0; jobs], vec![0.0; jobs], vec![0.0; packed.capacity.len()]);
    for share in shares {
        let group = &packed.groups[share.group as usize];
        assert!(share.fraction > 0.0 && share.fraction <= 1.0, "{share:?}");
        for (at, job) in share.members.iter().enumerate() {
            assert!(!share.members[..at].contains(job), "with oneself: {share:?}");
            let class = group.roles[at].class;
            assert_eq!(class_of[*job as usize], class as usize);
            let same: Vec<f64> = group.roles.iter().filter(|r| r.class == class).map(|r| r.speed).collect();
            speeds[*job as usize] += share.fraction * same.iter().sum::<f64>() / same.len() as f64;
            time[*job as usize] += share.fraction;
        }
        group.uses.iter().for_each(|used| devices[used.kind as usize] += share.fraction * used.devices);
    }
    assert!(time.iter().all(|time| *time <= 1.0 + 1e-9), "{time:?}");
    assert!(
        devices.iter().zip(&packed.capacity).all(|(used, room)| *used <= room * (1.0 + 1e-9)),
        "{devices:?}"
    );
    speeds
}

fn given(packed: &PackedProblem, solution: &PackedSolution) -> Vec<f64> {
    let names = names(packed);
    let members: Vec<&[u32]> = names.iter().map(|names| &names[..]).collect();
    let shares = hand_back(packed, solution, &members).unwrap();
    let places: usize = packed.groups.iter().map(|group| group.roles.len()).sum();
    let jobs: u32 = packed.classes.iter().map(|class| class.jobs).sum();
    assert!(shares.len() <= 4 * (jobs as usize + places), "{} shares", shares.len());
    speeds(packed, &shares)
}

/// A few classes; whole-number speeds now and then, for ties; zero speeds; a kind that nobody has.
fn problem(own: bool) -> impl Strategy<Value = PackedProblem> {
    let speed = || prop_oneof![6 => 0.05..2.0f64, 2 => Just(1.0), 1 => Just(0.0)];
    let weight = prop_oneof![4 => 0.2..3.0f64, 3 => Just(1.0), 1 => Just(1e-3), 1 => Just(1e3)];
    let class = (1u32..5, weight, prop_oneof![3 => Just(1.0), 1 => Just(2.0)]);
    let kind = prop_oneof![5 => 0.3..4.0f64, 2 => Just(1.0), 1 => Just(0.0)];
    let sized = (prop::collection::vec(class, 1..5), prop::collection::vec(kind, 1..4));
    let speeds = prop::collection::vec(prop::collection::vec((speed(), speed(), 0.0..1.3f64), 3), 5);
    let triples = prop::collection::vec((0usize..4, 0usize..4, 0usize..4, 0usize..3, 0.1..0.9f64), 0..3);
    (sized, speeds, triples).prop_map(move |((classes, capacity), speeds, triples)| {
        let mut groups = Vec::new();
        for kind in 0..capacity.len() as u32 {
            for (at, class) in classes.iter().enumerate() {
                let alone = |class: usize| speeds[class][kind as usize].0;
                groups.push(PackedGroup::new(kind, class.2, &[(at as u32, alone(at))]));
                for (other, size) in
                    classes.iter().enumerate().skip(at).map(|(other, class)| (other, class.2))
                {
                    if (other == at && !own) || size != class.2 {
                        continue;
                    }
                    let (slow, fast) = (speeds[at][kind as usize].2, speeds[other][kind as usize].1.min(1.0));
                    let pair = [(at as u32, alone(at) * slow.min(1.0)), (other as u32, alone(other) * fast)];
                    groups.push(PackedGroup::new(kind, size, &pair));
                }
            }
        }
        for (one, two, three, kind, slow) in triples {
            let list = [one, two, three];
            let distinct = one != two && two != three && one != three;
            if list.iter().all(|at| *at < classes.len()) && kind < capacity.len() && (own || distinct) {
                let role = |at: &usize| (*at as u32, speeds[*at][kind].0 * slow);
                groups.push(PackedGroup::new(kind as u32, 1.0, &list.iter().map(role).collect::<Vec<_>>()));
            }
        }
        let classes =
            classes.iter().map(|(jobs, weight, _)| JobClass { jobs: *jobs, weight: *weight }).collect();
        PackedProblem { capacity, classes, groups }
    })
}

/// Classes that can run nowhere are left out of the fairness: give them no weight for the referee.
fn without(packed: &PackedProblem, unmet: &[u32]) -> PackedProblem {
    let mut packed = packed.clone();
    unmet.iter().for_each(|class| packed.classes[*class as usize].weight = 0.0);
    packed
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 2e-6 * left.abs().max(right.abs()) + 1e-9
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn max_min_over_classes_is_max_min_over_jobs(packed in problem(true)) {
        let solution = match max_min(&packed, &PackedWork::default()) {
            Err(PackedError::Nobody) => return Ok(()),
            solution => solution.unwrap(),
        };
        prop_assert!(solution.bound >= solution.objective && solution.gap() < 1e-8, "{solution:?}");
        let jobs = one_by_one(&without(&packed, &solution.unmet));
        let referee = lp(&jobs, |_| 0.0, true).solve(&Accuracy::default()).unwrap();
        prop_assert!(close(solution.objective, referee.objective), "{} {}", solution.objective, referee.objective);
        let speeds = given(&packed, &solution);
        let weights = packed.classes.iter().enumerate().flat_map(|(at, class)| vec![(at, class.weight); class.jobs as usize]);
        for (job, (class, weight)) in weights.enumerate() {
            let least = solution.levels[class] * weight;
            prop_assert!(speeds[job] >= least - 1e-9 * least.max(1.0), "job {job}: {} of {least}", speeds[job]);
        }
    }

    #[test]
    fn after_max_min_nothing_is_wasted(packed in problem(true)) {
        let mut packed = runnable(&packed);
        // The referee's tolerance on the level buys much where two ways differ by less than it, or where one
        // class is a million times heavier than another: coarse speeds and near weights only.
        packed.groups.iter_mut().flat_map(|g| &mut g.roles).for_each(|role| role.speed = (role.speed * 16.0).round() / 16.0);
        packed.classes.iter_mut().for_each(|class| class.weight = class.weight.clamp(0.2, 3.0));
        let Ok(solution) = max_min(&packed, &PackedWork::default()) else { return Ok(()) };
        let floor = |class: usize| match solution.unmet.contains(&(class as u32)) {
            true => 0.0,
            false => packed.classes[class].weight * solution.objective * (1.0 - 1e-7),
        };
        let total = |group: usize| packed.groups.get(group).map_or(0.0, |g| g.roles.iter().map(|r| r.speed).sum());
        let mut unweighted = packed.clone();
        unweighted.classes.iter_mut().for_each(|class| class.weight = 0.0);
        let mut referee = lp(&unweighted, floor, false);
        referee.aim(LpGoal::Maximise, total);
        let referee = referee.solve(&Accuracy::default()).unwrap();
        let reached: f64 = solution.time.iter().enumerate().map(|(group, time)| time * total(group)).sum();
        prop_assert!(reached >= referee.objective * (1.0 - 1e-4) - 1e-6, "{reached} of {}", referee.objective);
    }

    #[test]
    fn water_rises_alike_over_classes_and_over_jobs(packed in problem(true)) {
        let Ok(solution) = water_filling(&packed, &PackedWork::default()) else { return Ok(()) };
        let jobs = water_filling(&one_by_one(&packed), &PackedWork::default()).unwrap();
        let expanded = packed.classes.iter().zip(&solution.levels).flat_map(|(c, level)| vec![(c.weight, *level); c.jobs as usize]);
        for ((weight, level), job) in expanded.zip(&jobs.levels) {
            prop_assert!((level - job).abs() <= 1e-6 * level.max(1.0 / weight), "{level} {job}");
        }
        given(&packed, &solution);
    }

    #[test]
    fn water_rises_as_the_reference_says(packed in problem(true)) {
        let mut packed = packed;
        packed.groups.retain(|group| group.roles.len() == 1);
        // Weights within what the reference, with its tolerances, can tell apart.
        packed.classes.iter_mut().for_each(|class| class.weight = class.weight.clamp(0.2, 3.0));
        let Ok(solution) = water_filling(&packed, &PackedWork::default()) else { return Ok(()) };
        let jobs = one_by_one(&without(&packed, &solution.unmet));
        let options = |class: usize| {
            let own = jobs.groups.iter().filter(move |group| group.roles[0].class as usize == class);
            own.map(|g| (g.roles[0].speed, vec![(g.uses[0].kind, g.uses[0].devices)])).collect::<Vec<_>>()
        };
        let instance = Instance::new(jobs.capacity.clone(), &(0..jobs.classes.len()).map(options).collect::<Vec<_>>());
        let weights: Vec<f64> = jobs.classes.iter().map(|class| class.weight).collect();
        // The referee gives up now and then where floors leave it hardly any room.
        let Ok((_, levels)) = instance.water_filling(&weights, &Accuracy::default()) else { return Ok(()) };
        let expanded = packed.classes.iter().zip(&solution.levels).flat_map(|(class, level)| vec![*level; class.jobs as usize]);
        for ((level, wanted), weight) in expanded.zip(&levels).zip(&weights).filter(|(_, weight)| **weight > 0.0) {
            prop_assert!((level - wanted).abs() < 1e-4, "{level} {wanted} at {weight}");
        }
    }

    #[test]
    fn a_weighted_sum_keeps_its_floors_or_names_those_it_cannot(
        packed in problem(true),
        floors in prop::collection::vec(prop_oneof![Just(0.0), 0.0..0.8f64], 5),
        values in prop::collection::vec(-0.2..2.0f64, 40),
    ) {
        let floors = &floors[..packed.classes.len()];
        let packed = runnable(&packed);
        // What a group is worth grows with its speeds: one that does not move is never run.
        let speed = |group: &PackedGroup| group.roles.iter().map(|role| role.speed).sum::<f64>();
        let values: Vec<f64> = packed.groups.iter().zip(values.iter().cycle()).map(|(g, value)| value * speed(g)).collect();
        let solution = weighted_sum(&packed, &values, floors, &PackedWork::default()).unwrap();
        let kept = |class: usize| if solution.unmet.contains(&(class as u32)) { 0.0 } else { floors[class] };
        let mut unweighted = packed.clone();
        unweighted.classes.iter_mut().for_each(|class| class.weight = 0.0);
        let with = |floor: &dyn Fn(usize) -> f64| {
            let mut lp = lp(&unweighted, floor, false);
            lp.aim(LpGoal::Maximise, |at| values.get(at).copied().unwrap_or(0.0));
            lp.solve(&Accuracy::default())
        };
        let enough = |floor: f64| (floor - 1e-7).max(0.0);
        let referee = with(&|class| enough(kept(class))).unwrap();
        prop_assert!((solution.objective - referee.objective).abs() < 1e-4, "{} {}", solution.objective, referee.objective);
        prop_assert!(solution.bound >= solution.objective && solution.bound - solution.objective < 1e-6, "{solution:?}");
        // None is given up without need.
        if let Some(class) = solution.unmet.last() {
            let all = with(&|at| if floors[at] > 0.0 { floors[at] * 1.0001 } else { 0.0 });
            prop_assert!(all.is_err(), "{class} was given up, and all floors could be kept");
        }
    }

    #[test]
    fn different_needs_without_own_pairs_are_exact(packed in problem(false), seed in prop::collection::vec(0.1..9.0f64, 16)) {
        let steps = needs(&packed, &seed);
        let Ok(solution) = makespan(&packed, &steps, &PackedWork::default()) else { return Ok(()) };
        prop_assert!(solution.bound <= solution.objective * (1.0 + 1e-12) && solution.gap() < 1e-8, "{solution:?}");
        let jobs = one_by_one(&packed);
        let flat: Vec<Vec<f64>> = steps.iter().flatten().map(|steps| vec![*steps]).collect();
        let direct = makespan(&jobs, &flat, &PackedWork::default()).unwrap();
        prop_assert!((solution.objective / direct.objective - 1.0).abs() < 1e-7, "{} {}", solution.objective, direct.objective);
        let mut weighted = without(&jobs, &direct.unmet);
        let referee = weighted.classes.iter_mut().zip(&flat).filter(|(class, _)| class.weight > 0.0);
        referee.for_each(|(class, steps)| class.weight = steps[0]);
        let referee = lp(&weighted, |_| 0.0, true).solve(&Accuracy::default()).unwrap();
        prop_assert!(close(1.0 / direct.objective, referee.objective), "{} {}", 1.0 / direct.objective, referee.objective);
        for ((speed, steps), class) in given(&packed, &solution).iter().zip(steps.iter().flatten()).zip(class_of(&packed)) {
            let met = speed * solution.objective >= steps * (1.0 - 1e-8);
            prop_assert!(met || solution.unmet.contains(&class), "{speed} {steps}");
        }
    }

    #[test]
    fn different_needs_with_own_pairs_keep_a_true_bound(packed in problem(true), seed in prop::collection::vec(0.1..9.0f64, 16)) {
        let steps = needs(&packed, &seed);
        let Ok(solution) = makespan(&packed, &steps, &PackedWork::default()) else { return Ok(()) };
        let flat: Vec<Vec<f64>> = steps.iter().flatten().map(|steps| vec![*steps]).collect();
        let direct = makespan(&one_by_one(&packed), &flat, &PackedWork::default()).unwrap();
        prop_assert!(solution.bound <= direct.objective * (1.0 + 1e-8), "{} {}", solution.bound, direct.objective);
        given(&packed, &solution);
    }

    #[test]
    fn finish_times_are_as_fair_as_the_conic_program_says(
        packed in problem(false),
        seed in prop::collection::vec((0.1..9.0f64, 0.1..5.0f64, prop_oneof![Just(0.0), 0.0..4.0f64]), 16),
    ) {
        let mut packed = packed;
        packed.groups.retain(|group| group.roles.len() == 1 && group.roles[0].speed > 0.02);
        let mut next = seed.iter().cycle();
        let mut job = || next.next().map(|(steps, isolated, elapsed)| Progress { steps: *steps, isolated: *isolated, elapsed: *elapsed }).unwrap();
        let jobs: Vec<Vec<Progress>> = packed.classes.iter().map(|class| (0..class.jobs).map(|_| job()).collect()).collect();
        let Ok(solution) = finish_time(&packed, &jobs, &PackedWork::default()) else { return Ok(()) };
        if !solution.unmet.is_empty() { return Ok(()) }
        prop_assert!(solution.bound <= solution.objective && solution.gap() < 1e-7, "{solution:?}");
        let singles = one_by_one(&packed);
        let flat: Vec<Progress> = jobs.iter().flatten().copied().collect();
        let options = |class: usize| {
            let own = singles.groups.iter().filter(move |group| group.roles[0].class as usize == class);
            own.map(|g| (g.roles[0].speed, vec![(g.uses[0].kind, g.uses[0].devices)])).collect::<Vec<_>>()
        };
        let instance = Instance::new(packed.capacity.clone(), &(0..flat.len()).map(options).collect::<Vec<_>>());
        if let Ok(referee) = instance.finish_time(&flat, &Accuracy::default()) {
            prop_assert!((solution.objective / referee.objective - 1.0).abs() < 1e-4, "{} {}", solution.objective, referee.objective);
        }
        for (job, speed) in flat.iter().zip(given(&packed, &solution)) {
            let rho = (job.elapsed + job.steps / speed) / job.isolated;
            prop_assert!(rho <= solution.objective * (1.0 + 1e-8), "{rho} of {}", solution.objective);
        }
    }
}

fn class_of(packed: &PackedProblem) -> Vec<u32> {
    packed.classes.iter().enumerate().flat_map(|(at, class)| vec![at as u32; class.jobs as usize]).collect()
}

fn needs(packed: &PackedProblem, seed: &[f64]) -> Vec<Vec<f64>> {
    let mut next = seed.iter().cycle().copied();
    packed.classes.iter().map(|class| next.by_ref().take(class.jobs as usize).collect()).collect()
}

/// Speeds (2, 1, ½) and (3, 2, 1) over their means, and pairs that cost nothing.
#[test]
fn free_pairs_make_one_and_a_half() {
    let (one, two) = ([2.0, 1.0, 0.5], [3.0, 2.0, 1.0]);
    let mut groups = Vec::new();
    for kind in 0..3 {
        let (one, two) = (one[kind] / (3.5 / 3.0), two[kind] / 2.0);
        for roles in [&[(0, one)][..], &[(1, two)], &[(0, one), (1, two)]] {
            groups.push(PackedGroup::new(kind as u32, 1.0, roles));
        }
    }
    let classes = vec![JobClass { jobs: 1, weight: 1.0 }; 2];
    let packed = PackedProblem { capacity: vec![1.0; 3], classes, groups };
    let solution = max_min(&packed, &PackedWork::default()).unwrap();
    assert!((solution.objective - 1.5).abs() < 1e-9, "{solution:?}");
    assert!(solution.gap() < 1e-9);
    assert_eq!(solution.needs, Needs::Equal);
}

#[test]
fn mistakes_are_named() {
    let good = PackedProblem {
        capacity: vec![1.0],
        classes: vec![JobClass { jobs: 2, weight: 1.0 }],
        groups: vec![PackedGroup::new(0, 1.0, &[(0, 1.0)])],
    };
    let limits = PackedWork::default();
    let with = |change: &dyn Fn(&mut PackedProblem)| {
        let mut packed = good.clone();
        change(&mut packed);
        max_min(&packed, &limits).unwrap_err().to_string()
    };
    assert!(with(&|p| p.groups[0].roles[0].speed = f64::NAN).starts_with("speed in group 0: NaN"));
    assert!(with(&|p| p.groups[0].roles[0].speed = -1.0).starts_with("speed in group 0: -1"));
    assert!(with(&|p| p.capacity[0] = f64::INFINITY).starts_with("capacity of kind 0"));
    assert!(with(&|p| p.classes[0].weight = -1.0).starts_with("weight of class 0"));
    assert!(with(&|p| p.groups[0].roles[0].class = 7).contains("no class 7"));
    assert!(with(&|p| p.groups[0].uses[0].kind = 7).contains("no kind 7"));
    assert!(with(&|p| p.groups[0].roles.clear()).contains("no job"));
    assert!(with(&|p| p.groups[0].uses[0].devices = 0.0).contains("no device"));
    assert!(with(&|p| p.classes[0].weight = 0.0).contains("no class has a weight"));
    assert!(with(&|p| p.groups.clear()).contains("no class has a weight"));
    assert!(matches!(makespan(&good, &[vec![1.0]], &limits), Err(PackedError::Length { .. })));
    assert!(makespan(&good, &[vec![1.0, f64::NAN]], &limits).is_err());
    assert!(matches!(weighted_sum(&good, &[], &[0.0], &limits), Err(PackedError::Length { .. })));
    let solution = max_min(&good, &limits).unwrap();
    assert!(matches!(hand_back(&good, &solution, &[&[1]]), Err(PackedError::Length { .. })));
}

#[test]
fn weights_over_twelve_orders_are_kept_apart() {
    let class = |weight| JobClass { jobs: 3, weight };
    let group = |class| PackedGroup::new(0, 1.0, &[(class, 1.0)]);
    let packed = PackedProblem {
        capacity: vec![2.0],
        classes: vec![class(1e-6), class(1.0), class(1e6)],
        groups: vec![group(0), group(1), group(2)],
    };
    let solution = max_min(&packed, &PackedWork::default()).unwrap();
    let exact = 2.0 / (3.0 * (1e6 + 1.0 + 1e-6));
    assert!((solution.objective / exact - 1.0).abs() < 1e-6, "{solution:?}");
    assert!(solution.gap() < 1e-6, "{solution:?}");
}
