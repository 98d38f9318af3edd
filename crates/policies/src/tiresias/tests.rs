//! The rules one by one.

use yard_core::units::Time;

use super::place::{RUNNING, is_running_place};
use crate::testing::{World, policy};

/// Queue and place; a running place is told as the time it stands for.
fn ranks(world: &World) -> Vec<(f64, f64)> {
    let place = |place| if is_running_place(place) { place - RUNNING } else { place };
    world.view.runs.iter().map(|run| (run.rank.0, place(run.rank.1))).collect()
}

#[test]
fn it_asks_for_the_moment_at_which_a_job_goes_down() {
    let mut world = World::new(&[2]);
    let mut tiresias = policy("tiresias:thresholds=100/200");
    world.submit_all(&[(2, 1000.0)]);
    world.plan(&mut *tiresias);
    let asked = world.plan(&mut *tiresias).replan_at;
    assert_eq!(asked, Some(Time::from_secs(50.0)));
    world.advance(50.0);
    let asked = world.plan(&mut *tiresias).replan_at;
    assert_eq!((ranks(&world), asked), (vec![(1.0, 50.0)], Some(Time(50_000_001))), "who starts now?");
    assert_eq!(world.plan(&mut *tiresias).replan_at, Some(Time::from_secs(100.0)));
    world.advance(50.0);
    world.plan(&mut *tiresias);
    assert_eq!(world.plan(&mut *tiresias).replan_at, None);
    assert_eq!(ranks(&world), [(2.0, 100.0)]);
}

#[test]
fn who_runs_is_not_stopped_for_one_of_the_same_queue() {
    let mut world = World::new(&[4]);
    let mut tiresias = policy("tiresias:thresholds=100");
    world.submit_all(&[(3, 50.0), (4, 50.0), (1, 50.0)]);
    world.plan(&mut *tiresias);
    assert_eq!(world.running(), [0, 2]);
    world.advance(5.0);
    world.plan(&mut *tiresias);
    assert_eq!(world.running(), [0, 2], "1 is older than 2, but 2 runs");
}

#[test]
fn a_demoted_job_goes_behind_those_that_wait_there() {
    let mut world = World::new(&[1]);
    let mut tiresias = policy("tiresias:thresholds=10");
    world.submit_all(&[(1, 100.0), (1, 100.0), (1, 100.0)]);
    let mut seen = Vec::new();
    for _ in 0..5 {
        world.plan(&mut *tiresias);
        world.plan(&mut *tiresias);
        seen.extend(world.running());
        world.advance(10.0);
    }
    assert_eq!(seen, [0, 1, 2, 0, 0], "in the last queue the first who came there runs on");
    assert_eq!(ranks(&world), [(1.0, 30.0), (1.0, 20.0), (1.0, 30.0)]);
}

#[test]
fn a_stopped_job_goes_before_those_that_wait() {
    let mut world = World::new(&[2]);
    let mut tiresias = policy("tiresias:thresholds=10");
    world.submit_all(&[(2, 100.0), (2, 100.0)]);
    world.plan(&mut *tiresias);
    world.advance(5.0);
    world.plan(&mut *tiresias);
    assert_eq!((ranks(&world), world.running()), (vec![(1.0, 5.0), (0.0, 0.0)], vec![1]));
    world.advance(5.0);
    world.plan(&mut *tiresias);
    world.plan(&mut *tiresias);
    assert_eq!(world.running(), [0]);
    world.submit_all(&[(1, 1.0)]);
    world.plan(&mut *tiresias);
    world.plan(&mut *tiresias);
    assert_eq!(world.running(), [2]);
    assert_eq!(ranks(&world), [(1.0, -10.0), (1.0, 10.0), (0.0, 10.0)]);
}

#[test]
fn a_job_that_waits_too_long_is_promoted_and_counted_anew() {
    let mut world = World::new(&[1]);
    let mut tiresias = policy("tiresias:thresholds=10:promote=2");
    world.submit_all(&[(1, 100.0), (1, 9.0), (1, 9.0), (1, 9.0)]);
    world.plan(&mut *tiresias);
    world.advance(10.0);
    world.plan(&mut *tiresias);
    let asked = world.plan(&mut *tiresias).replan_at;
    assert_eq!(asked, Some(Time::from_secs(20.0)), "job 1 will have had its ten seconds");
    for _ in 0..3 {
        world.advance(9.0);
        world.plan(&mut *tiresias);
    }
    world.submit_all(&[(1, 100.0)]);
    world.plan(&mut *tiresias);
    assert_eq!(world.running(), [0], "promoted at 30 s, so it is before the new job");
    assert_eq!(world.view.runs[0].rank.0, 0.0);
    let asked = world.plan(&mut *tiresias).replan_at;
    assert_eq!(asked, Some(Time::from_secs(47.0)), "ten new seconds from its start at 37 s");
}

#[test]
fn ranks_of_another_policy_are_read_as_service() {
    let mut world = World::new(&[2]);
    let mut las = policy("las");
    world.submit_all(&[(1, 1000.0), (1, 1000.0)]);
    world.plan(&mut *las);
    world.advance(150.5);
    world.plan(&mut *las);
    world.view.changed.all = true;
    world.plan(&mut *policy("tiresias:thresholds=100/200"));
    assert_eq!(world.ranks(), [1.0, 1.0]);
}

#[test]
fn the_papers_simulator_notices_late_that_a_gang_has_reached_its_threshold() {
    let mut world = World::new(&[4]);
    let mut tiresias = policy("tiresias:thresholds=100:artifact=true");
    world.submit_all(&[(4, 1000.0)]);
    world.plan(&mut *tiresias);
    let asked = world.plan(&mut *tiresias).replan_at;
    assert_eq!(asked, Some(Time::from_secs(25.0)), "100/4");
    world.advance(20.0);
    let asked = world.plan(&mut *tiresias).replan_at;
    assert_eq!(asked, Some(Time::from_secs(40.0)), "20 + (100 - 20)/4, though 5 s are missing");
    world.advance(6.5);
    world.plan(&mut *tiresias);
    assert_eq!(world.ranks(), [0.0], "nothing is noticed between two seconds");
    world.advance(1.5);
    world.plan(&mut *tiresias);
    assert_eq!(world.ranks(), [1.0], "at any event at which the service is reached it goes down");
}
