use std::sync::Arc;

use super::past::{Past, Ratio};
use super::*;
use crate::Settings;
use crate::allocation::{Allocation, Share, Shares};
use crate::cluster::{Kinds, NodeSpec, Nodes, Placement, Slice};
use crate::ids::KindId;
use crate::job::{Costs, Rank, Shape};
use crate::message::NodeChange;
use crate::policy::PolicyError;
use crate::view::View;

/// First come, first served; `preempt`: shortest first, stopping others.
struct Order {
    preempt: bool,
}

impl Policy for Order {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let rank = |job| if self.preempt { view.seconds_left(job) } else { view.run(job).submitted.secs() };
        let shares = Shares::All(view.active().map(|job| Share::whole(job, Rank(rank(job), 0.0))).collect());
        Ok(if self.preempt { Allocation::preemptive(shares) } else { Allocation::queue(shares, true) })
    }
}

/// The first node with enough free devices.
struct First;

impl Placer for First {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        let devices = shape.devices();
        let (node, is) = nodes.iter().find(|(_, node)| node.free_count(shape.needs[0].kind) >= devices)?;
        let mask =
            (0..128).map(|bit| 1u128 << bit).filter(|bit| is.free & bit != 0).take(devices as usize).sum();
        Some(Placement([Slice::of(node, mask)].into_iter().collect()))
    }
}

fn job(devices: u32, steps: f64) -> JobSpec {
    JobSpec {
        costs: Costs {
            save: Span::from_whole_secs(3),
            load: Span::from_whole_secs(2),
            start: Span::from_whole_secs(1),
        },
        ..JobSpec::new("job", [Shape::of(KindId(0), devices)], [2.0], steps)
    }
}

/// A node of two devices, and jobs that wait.
fn waiting(jobs: &[JobSpec]) -> State {
    let mut kinds = Kinds::default();
    kinds.intern("a");
    let mut engine = Engine::new(Settings::default(), kinds, Box::new(First));
    let spec = NodeSpec::of("n", KindId(0), 2);
    engine.step(Time::ZERO, Input::Node(NodeChange::Join(spec)), &mut Vec::new());
    for job in jobs {
        engine.step(Time::ZERO, Input::Submit(Box::new(job.clone())), &mut Vec::new());
    }
    engine.state().clone()
}

fn foretold(state: &State, preempt: bool, scenario: &Scenario) -> Vec<(Option<f64>, Option<f64>)> {
    let got =
        run(state, Box::new(First), &mut Order { preempt }, scenario, Limits::default()).expect("a state");
    let secs = |time: Option<Time>| time.map(Time::secs);
    got.outlooks.values().map(|outlook| (secs(outlook.start), secs(outlook.end))).collect()
}

#[test]
fn jobs_start_in_order_and_take_what_they_take() {
    let state = waiting(&[job(2, 20.0), job(1, 10.0), job(1, 6.0)]);
    let got = foretold(&state, false, &Scenario::default());
    assert_eq!(got, [(Some(0.0), Some(11.0)), (Some(11.0), Some(17.0)), (Some(11.0), Some(15.0))]);
}

#[test]
fn a_job_that_has_more_to_do_ends_later_and_others_start_later() {
    let state = waiting(&[job(2, 20.0), job(2, 10.0)]);
    let longer = Scenario { steps: [(JobId(0), 40.0)].into(), ..Scenario::default() };
    assert_eq!(foretold(&state, false, &longer), [(Some(0.0), Some(21.0)), (Some(21.0), Some(27.0))]);
}

#[test]
fn who_comes_later_may_stop_a_job_which_saves_and_loads() {
    let state = waiting(&[job(2, 40.0)]);
    let comes = Scenario { arrivals: vec![(Time::from_secs(11.0), job(2, 2.0), 2.0)], ..Scenario::default() };
    // 20 of 40 steps by 11 s, saved by 14; the other from 14 to 16; again from 19 with 10 s to go.
    assert_eq!(foretold(&state, true, &comes), [(Some(0.0), Some(29.0))]);
    assert_eq!(foretold(&state, true, &Scenario::default()), [(Some(0.0), Some(21.0))]);
}

#[test]
fn who_can_never_run_has_no_end_and_the_limits_hold() {
    let mut slow = job(1, 10.0);
    slow.speeds = Arc::from([0.0]);
    let state = waiting(&[slow, job(1, 10.0)]);
    let got = foretold(&state, false, &Scenario::default());
    assert_eq!((got[0].1, got[1]), (None, (Some(0.0), Some(6.0))));
    let limits = Limits { horizon: Span::from_whole_secs(5), ..Limits::default() };
    let cut = run(&state, Box::new(First), &mut Order { preempt: false }, &Scenario::default(), limits);
    assert!(cut.expect("a state").outlooks.values().all(|outlook| outlook.end.is_none()));
}

#[test]
fn nobody_waits_for_a_job_that_is_held_or_for_those_after_it() {
    let after = JobSpec { after: Box::from([JobId(0)]), ..job(2, 10.0) };
    let state = waiting(&[job(2, 20.0), job(2, 10.0), after]);
    let mut engine = Engine::restore(state, Box::new(First)).expect("a state");
    engine.step(Time::ZERO, Input::Hold(JobId(0)), &mut Vec::new());
    let comes =
        Scenario { arrivals: vec![(Time::from_secs(900.0), job(2, 2.0), 2.0)], ..Scenario::default() };
    let limits = Limits::default();
    let got = run(engine.state(), Box::new(First), &mut Order { preempt: false }, &comes, limits);
    let got = got.expect("a state");
    let ends: Vec<_> = got.outlooks.values().map(|outlook| outlook.end.map(Time::secs)).collect();
    assert_eq!((ends, got.cut), (vec![None, Some(6.0), None], false));
    assert_eq!(got.reached.secs(), 6.0, "it ends with the last that can");
}

/// Numbers that look random.
fn draws() -> impl FnMut(u64) -> u64 {
    let mut at = 1u64;
    move |below| {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(at) * u128::from(below)) >> 64) as u64
    }
}

/// What a job that says 10 steps and has done so many may have to do in all, sorted, after these.
fn lengths(done: f64, past: Option<Vec<Ratio>>) -> Vec<f64> {
    let mut state = waiting(&[job(1, 10.0)]);
    let row = state.rows[&JobId(0)];
    state.run_mut(row).done = done;
    let (past, mut draw) = (Past { ratios: past, ..Past::default() }, draws());
    let mut drawn: Vec<f64> = (0..400)
        .map(|_| {
            past.scenario(1, &state, Span::ZERO, &mut draw).steps.get(&JobId(0)).copied().unwrap_or(10.0)
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    drawn
}

#[test]
fn a_scenario_has_jobs_as_long_as_those_of_the_past_and_longer_than_they_ran() {
    let past =
        || Some((0..60).map(|nth| Ratio::of(&job(1, 10.0), [1.0, 2.0, 0.5][nth % 3])).collect::<Vec<_>>());
    let near = |steps: f64| [5.0, 10.0, 20.0].iter().any(|known| (steps - known).abs() < 1e-6);
    assert!(lengths(0.0, past()).into_iter().all(near));
    assert!(lengths(15.0, past()).into_iter().all(|steps| (steps - 20.0).abs() < 1e-6));
    assert!(lengths(30.0, past()).into_iter().all(|steps| (30.0..=60.0).contains(&steps)));
}

#[test]
fn lengths_are_known_only_where_that_is_said() {
    assert!(lengths(0.0, None).into_iter().all(|steps| steps == 10.0));
    let drawn = lengths(0.0, Some(Vec::new()));
    assert!(drawn[20] < 5.0 && drawn[380] > 20.0 && (8.0..12.5).contains(&drawn[200]), "{drawn:?}");
}

#[test]
fn who_said_much_is_not_taken_for_one_who_said_little() {
    // All took 40 steps, whatever they said, from a fourth of it to four times as much.
    let said = |nth: u32| 10.0 * libm::exp2(f64::from(nth) / 25.0);
    let past = (0..=100).map(|nth| Ratio::of(&job(1, said(nth)), 40.0 / said(nth))).collect();
    let drawn = lengths(0.0, Some(past));
    // One that says 10 had 40 to do: none of those that said so had less.
    assert!(drawn[40] > 20.0 && drawn[360] <= 40.1, "{drawn:?}");
}

#[test]
fn where_all_say_the_same_it_is_no_reason_to_doubt_it() {
    // One in ten took four times as long as the others: so will one in ten.
    let past = (0..100).map(|nth| Ratio::of(&job(1, 10.0), if nth % 10 == 0 { 4.0 } else { 1.0 })).collect();
    let drawn = lengths(0.0, Some(past));
    let long = drawn.iter().filter(|steps| **steps > 30.0).count();
    assert!((20..60).contains(&long), "{long} of 400");
}

#[test]
fn jobs_that_are_not_over_are_long_ones() {
    // Sixty are over that took 100 steps; they said a third to three times as much. Of as many others all have done 200.
    let said = |nth: usize| 100.0 * [0.33, 0.5, 1.0, 2.0, 3.0][nth % 5];
    let ratios = (0..60).map(|nth| Ratio::of(&job(1, said(nth)), 100.0 / said(nth))).collect();
    let past = Past { ratios: Some(ratios), ..Past::default() };
    let long = |others: usize| {
        let mut state = waiting(&[vec![job(1, 300.0)], vec![job(1, 600.0); others]].concat());
        for other in 1..=others {
            let row = state.rows[&JobId(other as u64)];
            state.run_mut(row).done = 200.0;
        }
        let mut draw = draws();
        let drawn = (0..200).map(|_| past.scenario(1, &state, Span::ZERO, &mut draw).steps[&JobId(0)]);
        drawn.filter(|steps| *steps > 200.0).count()
    };
    assert!(long(0) < 20 && (40..160).contains(&long(60)), "{} and {} of 200", long(0), long(60));
}

#[test]
fn nobody_is_expected_for_longer_than_they_have_come_so_far() {
    let mut state = waiting(&[]);
    state.now = Time::from_secs(1_000.0);
    let arrivals =
        (0..100).map(|nth| (Time::from_secs(10.0 * f64::from(nth)), Arc::new(job(1, 5.0)))).collect();
    let (past, mut draw) = (Past { arrivals, ratios: None }, draws());
    let lasts: Vec<f64> = (0..50)
        .filter_map(|_| {
            let scenario = past.scenario(1, &state, Span::from_whole_secs(100_000), &mut draw);
            scenario.arrivals.last().map(|(time, ..)| time.secs() - 1_000.0)
        })
        .collect();
    assert!(lasts.iter().all(|last| *last <= 1_000.0), "{lasts:?}");
    let sooner = lasts.iter().filter(|last| **last < 500.0).count();
    assert!((10..40).contains(&sooner), "{lasts:?}");
}

#[test]
fn the_past_comes_again_in_stretches() {
    let mut state = waiting(&[]);
    state.now = Time::from_secs(100.0);
    let at = |seconds: f64| (Time::from_secs(seconds), Arc::new(job(1, seconds)));
    let past = Past { arrivals: vec![at(20.0), at(50.0), at(58.0), at(90.0)], ratios: None };
    // 80 s from the first job on, in stretches of 5 s, each from 48.5 s on: one comes, after 1.5 s.
    let coming = past.scenario(1, &state, Span::from_whole_secs(12), &mut |below| 28_500_000.min(below - 1));
    let times: Vec<_> =
        coming.arrivals.iter().map(|(time, spec, steps)| (time.secs(), spec.steps, *steps)).collect();
    assert_eq!(times, [(101.5, 50.0, 50.0), (106.5, 50.0, 50.0), (111.5, 50.0, 50.0)]);
    for (past, nth) in [(Past::default(), 1), (past, 0)] {
        let nobody = past.scenario(nth, &state, Span::from_whole_secs(100), &mut |_| 0);
        assert!(nobody.arrivals.is_empty());
    }
}

#[test]
fn rounds_grow_where_exactness_is_not_asked_for() {
    // Twenty jobs of minutes, rounds of a second.
    let mut state = waiting(&vec![job(2, 400.0); 20]);
    let Settings { round, every_round, fill, .. } = &mut state.settings;
    (*round, *every_round, *fill) = (Span::from_whole_secs(1), true, true);
    let run = |exact_max| {
        let limits = Limits { exact_max, ..Limits::default() };
        run(&state, Box::new(First), &mut Order { preempt: true }, &Scenario::default(), limits)
            .expect("a state")
    };
    let (exact, rough) = (run(u64::MAX), run(100));
    assert!(exact.work > 10 * rough.work, "{} and {}", exact.work, rough.work);
    assert_eq!((exact.rough_from, exact.cut, rough.cut), (None, false, false));
    let from = rough.rough_from.expect("it was long");
    for (job, exact) in &exact.outlooks {
        let (exact, rough) = (exact.end.expect("it ends"), rough.outlooks[job].end.expect("it ends"));
        let off = (exact - rough).max(rough - exact);
        assert!(off.0 <= (exact - from).0 / 8 + 1_000_000, "{job}: {exact} and {rough}");
    }
}

/// Asks a state: first come, first served, or the shortest first.
fn asker(state: &State, preempt: bool, steps: u64, ask: impl FnOnce(&mut what_if::Asker<'_>)) {
    ask(&mut what_if::Asker {
        state,
        at: Time::ZERO,
        past: &Past::default(),
        policy: &|| Box::new(Order { preempt }),
        placer: &|| Box::new(First),
        limits: Limits::default(),
        work_left: steps,
        stop: &|| false,
    });
}

/// What would become of a job.
fn asked(state: &State, preempt: bool, job: &JobSpec, steps: u64) -> what_if::Told {
    let mut told = what_if::Told::default();
    asker(state, preempt, steps, |asker| {
        told = asker.first(job).expect("a state").0;
    });
    told
}

/// Whom it hits if this happens to the only node after so many seconds: number, seconds later, stops, deadline missed.
fn hit(state: &State, at: f64, change: NodeChange) -> Vec<(u64, Option<f64>, u32, bool)> {
    let mut hits = Vec::new();
    asker(state, false, 1_000, |asker| {
        let without = asker.without(None).expect("a state");
        hits = asker.nodes(&[(Time::from_secs(at), change)], &without).expect("a state").hits;
    });
    hits.iter().map(|hit| (hit.job.0, hit.delay.map(Span::secs), hit.stops, hit.late)).collect()
}

#[test]
fn a_node_that_goes_hits_who_is_on_it_and_who_waits_for_it() {
    let mut due = job(2, 10.0);
    due.deadline = Some(Time::from_secs(20.0));
    let state = waiting(&[job(2, 20.0), due]);
    let node = crate::ids::NodeId(0);
    // The first runs to its end; the second, from 11 s to 17 s, never begins.
    assert_eq!(hit(&state, 5.0, NodeChange::Drain(node)), [(1, None, 0, true)]);
    assert_eq!(hit(&state, 5.0, NodeChange::Fail(node)), [(0, None, 1, false), (1, None, 0, true)]);
    assert_eq!(hit(&state, 5.0, NodeChange::Leave(node)), [(0, None, 1, false), (1, None, 0, true)]);
    assert_eq!(hit(&state, 50.0, NodeChange::Fail(node)), []);
}

#[test]
fn a_job_that_is_asked_about_hits_those_it_would_stop() {
    let state = waiting(&[job(2, 40.0), job(2, 10.0)]);
    let before = state.clone();
    // It is the shortest: it goes first, the others wait for it, and nobody runs yet who could be stopped.
    let told = asked(&state, true, &job(2, 2.0), 1_000);
    let hit = |job, seconds: f64| what_if::Hit {
        job: JobId(job),
        delay: Some(Span::from_secs(seconds)),
        stops: 0,
        late: false,
    };
    assert_eq!((told.quiet.start, told.quiet.end), (Some(Time::ZERO), Some(Time::from_secs(2.0))));
    assert_eq!(told.hits, [hit(0, 2.0), hit(1, 2.0)]);
    assert_eq!(told.place.map(|place| place.devices()), Some(2));
    // Behind all others it hits nobody.
    let told = asked(&state, false, &job(2, 2.0), 1_000);
    assert_eq!((told.quiet.start.map(Time::secs), told.hits, told.cut), (Some(27.0), Vec::new(), false));
    assert!(asked(&state, false, &job(2, 2.0), 5).cut);
    assert_eq!(state, before, "asking changes nothing");
}

#[test]
fn a_first_answer_takes_less_work_and_one_that_is_cut_off_says_not_before_when() {
    let state = waiting(&[job(2, 40.0), job(2, 10.0)]);
    let of = |steps: u64, alone: bool| {
        let (mut told, mut left) = (what_if::Told::default(), 0);
        asker(&state, false, steps, |asker| {
            let job = job(2, 2.0);
            told = if alone { asker.alone(&job) } else { asker.first(&job).map(|told| told.0) }
                .expect("a state");
            left = asker.work_left;
        });
        (told, steps - left)
    };
    let ((first, long), (alone, short)) = (of(1_000, false), of(1_000, true));
    assert_eq!((alone.quiet, alone.not_before, alone.cut), (first.quiet, None, false));
    assert!(alone.hits.is_empty() && short < long, "{short} of {long}");
    for alone in [false, true] {
        let cut = |steps| of(steps, alone).0;
        let waits = |told: &what_if::Told| told.cut && told.quiet.start.is_none();
        let bounds: Vec<Time> =
            (3..30).map(cut).take_while(waits).map(|told| told.not_before.unwrap()).collect();
        assert!(bounds.is_sorted() && bounds.last() > Some(&Time::ZERO), "{bounds:?}");
        assert!(bounds.last().copied() <= first.quiet.start, "{bounds:?}");
    }
}

#[test]
fn who_could_never_run_has_no_start() {
    let state = waiting(&[job(1, 10.0)]);
    let told = asked(&state, false, &job(3, 1.0), 1_000);
    assert_eq!((told.quiet.start, told.quiet.end), (None, None), "{told:?}");
}

#[test]
fn who_is_told_to_stop_says_so() {
    let state = waiting(&[job(2, 20.0), job(2, 20.0)]);
    let (limits, mut policy) = (Limits::default(), Order { preempt: false });
    let told = run_until(&state, Box::new(First), &mut policy, &Scenario::default(), limits, &|| true);
    let told = told.expect("a state");
    assert!(told.cut && told.outlooks.values().all(|outlook| outlook.end.is_none()), "{told:?}");
}
